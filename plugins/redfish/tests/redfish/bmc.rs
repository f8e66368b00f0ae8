//! A BMC that speaks Redfish, in memory: service root, systems, resets, and what goes wrong with each.
//! Shapes are those of DSP0266 and its schema `ComputerSystem.v1`.

use node_remedy_plugin_redfish::Redfish;
use node_remedy_sdk::testing::web::{self, Ended, Overlay};
use node_remedy_sdk::testing::{TestHost, Web};
use node_remedy_sdk::{Action, HttpRequest, HttpResponse, Request};
use serde_json::{Value, json};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;

pub(crate) const UUID_A: &str = "11111111-2222-3333-4444-5555555555AA";
pub(crate) const UUID_B: &str = "11111111-2222-3333-4444-5555555555BB";

/// A machine behind the BMC.
pub(crate) struct Machine {
    id: String,
    /// Its `ComputerSystem` resource.
    pub(crate) resource: Value,
    /// What its power will be, and when.
    comes: Vec<(u64, &'static str)>,
}

/// The BMC.
#[derive(Default)]
pub(crate) struct Bmc {
    pub(crate) machines: Vec<Machine>,
    /// How long after its yes a reset shows.
    pub(crate) late_ms: u64,
    /// Says yes and does nothing.
    pub(crate) is_stuck: bool,
    /// Refuses with 409 what is so already.
    pub(crate) is_strict: bool,
    /// Members on a page of the collection; 0: all.
    pub(crate) page: usize,
    /// The next page is always the first.
    pub(crate) is_endless: bool,
    /// What was asked for: system and reset type.
    pub(crate) resets: Vec<(String, String)>,
}

impl Bmc {
    /// With machine 1, which is on, and machine 2, which is off.
    pub(crate) fn with_two() -> Self {
        let machines = vec![machine("1", UUID_A, "On"), machine("2", UUID_B, "Off")];
        Self { machines, ..Self::default() }
    }

    /// With machine 1 alone.
    pub(crate) fn with_one(power: &str) -> Self {
        Self { machines: vec![machine("1", UUID_A, power)], ..Self::default() }
    }

    /// Answers so to what begins so.
    pub(crate) fn instead(self, line: &str, status: u16, body: &str) -> Overlay<Self> {
        Overlay::new(self).instead(line, status, body)
    }

    /// Never answers to what begins so.
    pub(crate) fn silent(self, line: &str) -> Overlay<Self> {
        Overlay::new(self).silent(line)
    }

    /// With another resource of its first machine.
    pub(crate) fn changed(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.machines[0].resource);
        self
    }

    fn get(&mut self, now_ms: u64, path: &str) -> Option<Value> {
        if path == "/redfish/v1/" {
            return Some(json!({
                "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "@odata.id": "/redfish/v1/",
                "RedfishVersion": "1.15.0", "Systems": { "@odata.id": "/redfish/v1/Systems" }
            }));
        }
        if let Some(rest) = path.strip_prefix("/redfish/v1/Systems") {
            let skip = rest.strip_prefix("?$skip=").and_then(|skip| skip.parse().ok());
            if rest.is_empty() || skip.is_some() {
                return Some(self.collection(skip.unwrap_or(0)));
            }
        }
        if path == "/redfish/v1/Systems/1/ResetActionInfo" {
            return Some(json!({ "Parameters": [
                { "Name": "ResetType", "Required": true, "AllowableValues": ["On", "ForceOff"] }
            ]}));
        }
        let machine = self.machine(path.strip_prefix("/redfish/v1/Systems/")?)?;
        for (_, power) in machine.comes.extract_if(.., |(at_ms, _)| *at_ms <= now_ms) {
            machine.resource["PowerState"] = power.into();
        }
        Some(machine.resource.clone())
    }

    fn collection(&self, skip: usize) -> Value {
        let page = if self.page == 0 { self.machines.len() } else { self.page };
        let members = self.machines.iter().skip(skip).take(page);
        let mut collection = json!({
            "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection",
            "Members@odata.count": self.machines.len(),
            "Members": members
                .map(|machine| json!({ "@odata.id": format!("/redfish/v1/Systems/{}", machine.id) }))
                .collect::<Vec<_>>(),
        });
        if self.is_endless || skip + page < self.machines.len() {
            let next = if self.is_endless { 0 } else { skip + page };
            collection["Members@odata.nextLink"] =
                format!("/redfish/v1/Systems?$skip={next}").into();
        }
        collection
    }

    fn machine(&mut self, id: &str) -> Option<&mut Machine> {
        self.machines.iter_mut().find(|machine| machine.id == id)
    }

    fn reset(&mut self, now_ms: u64, id: &str, body: &[u8]) -> Option<(u16, String)> {
        let asked: Value = serde_json::from_slice(body).ok()?;
        let word = asked["ResetType"].as_str()?.to_owned();
        let (is_stuck, is_strict, late_ms) = (self.is_stuck, self.is_strict, self.late_ms);
        self.resets.push((id.to_owned(), word.clone()));
        let machine = self.machine(id)?;
        let power = if word == "ForceOff" { "Off" } else { "On" };
        if is_strict && machine.resource["PowerState"] == power {
            return Some((409, error("The system is in that state already.")));
        }
        if !is_stuck {
            machine.comes.push((now_ms + late_ms, power));
        }
        Some((204, String::new()))
    }
}

impl Web for Bmc {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let answer = if request.method == "GET" {
            self.get(now_ms, &request.path).map(|resource| (200, resource.to_string()))
        } else {
            let path = request.path.strip_prefix("/redfish/v1/Systems/");
            let id = path.and_then(|path| path.strip_suffix("/Actions/ComputerSystem.Reset"));
            id.and_then(|id| self.reset(now_ms, id, &request.body))
        };
        let (status, body) = answer.unwrap_or_else(|| (404, error("There is no such resource.")));
        (20, HttpResponse { status, headers: Vec::new(), body: body.into_bytes() })
    }
}

fn machine(id: &str, uuid: &str, power: &str) -> Machine {
    let resource = json!({
        "@odata.id": format!("/redfish/v1/Systems/{id}"),
        "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
        "Id": id, "Name": format!("Machine {id}"), "UUID": uuid, "SerialNumber": format!("SN{id}"),
        "PowerState": power,
        "Actions": { "#ComputerSystem.Reset": {
            "target": format!("/redfish/v1/Systems/{id}/Actions/ComputerSystem.Reset"),
            "ResetType@Redfish.AllowableValues":
                ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PushPowerButton"],
        }}
    });
    Machine { id: id.to_owned(), resource, comes: Vec::new() }
}

/// An error as DSP0266 section 8.6 has it.
pub(crate) fn error(message: &str) -> String {
    json!({ "error": {
        "code": "Base.1.8.GeneralError", "message": "A general error has occurred.",
        "@Message.ExtendedInfo": [{ "MessageId": "Base.1.8.GeneralError", "Message": message }]
    }})
    .to_string()
}

/// One call to a BMC.
pub(crate) fn ask(bmc: impl Into<Overlay<Bmc>>, action: Action, plug: &str) -> Ended<Bmc> {
    let request = Request { plug: plug.to_owned(), ..Request::new(action, DEADLINE_MS) };
    ask_for(bmc, &request, |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    bmc: impl Into<Overlay<Bmc>>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Bmc> {
    web::ask::<Redfish, Bmc>("bmc", bmc.into(), request, host)
}
