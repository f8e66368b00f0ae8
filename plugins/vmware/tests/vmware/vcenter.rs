//! A vCenter in memory, in both forms of its REST API: machines, hosts, and what goes wrong. Shapes are
//! those of the vSphere Automation API reference.

use node_remedy_plugin_vmware::VMware;
use node_remedy_sdk::testing::web::{self, Ended, Overlay};
use node_remedy_sdk::testing::{TestHost, Web};
use node_remedy_sdk::{Action, HttpRequest, HttpResponse, Request};
use serde_json::{Value, json};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;
pub(crate) const UUID: &str = "4213ab00-2222-4333-8444-000000000041";

/// A machine.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) power: &'static str,
    pub(crate) bios_uuid: String,
    pub(crate) host: &'static str,
}

/// The vCenter.
pub(crate) struct VCenter {
    pub(crate) machines: Vec<Machine>,
    pub(crate) is_old: bool,
    /// The host that vCenter does not hear.
    pub(crate) away: Option<&'static str>,
    /// Says yes and does nothing.
    pub(crate) is_stuck: bool,
    /// How long after its yes a machine has changed.
    pub(crate) late_ms: u64,
    pub(crate) comes: Vec<(u64, String, &'static str)>,
    /// More machines than a list may have.
    pub(crate) is_full: bool,
    /// What was asked for.
    pub(crate) asked: Vec<String>,
}

impl Default for VCenter {
    fn default() -> Self {
        Self {
            machines: vec![machine(41, "node1", "POWERED_ON"), machine(42, "node2", "POWERED_OFF")],
            is_old: false,
            away: None,
            is_stuck: false,
            late_ms: 0,
            comes: Vec::new(),
            is_full: false,
            asked: Vec::new(),
        }
    }
}

pub(crate) fn machine(number: u32, name: &str, power: &'static str) -> Machine {
    Machine {
        id: format!("vm-{number}"),
        name: name.to_owned(),
        power,
        bios_uuid: format!("4213ab00-2222-4333-8444-{number:012}"),
        host: "host-9",
    }
}

impl VCenter {
    /// With its first machine in this state.
    pub(crate) fn reading(power: &'static str) -> Self {
        Self { machines: vec![machine(41, "node1", power)], ..Self::default() }
    }

    fn answer(&mut self, now_ms: u64, request: &HttpRequest) -> Option<(u16, Value)> {
        for (_, id, power) in self.comes.extract_if(.., |(at_ms, ..)| *at_ms <= now_ms) {
            for machine in self.machines.iter_mut().filter(|one| one.id == id) {
                machine.power = power;
            }
        }
        let (root, before) = if self.is_old { ("/rest", "filter.") } else { ("/api", "") };
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let filter = |name: &str| {
            let name = format!("{before}{name}=");
            let values = query.split('&').filter_map(|pair| pair.strip_prefix(&name));
            Some(values.map(str::to_owned).collect::<Vec<_>>()).filter(|values| !values.is_empty())
        };
        let path = path.strip_prefix(root)?.strip_prefix("/vcenter/")?;
        if path == "host" {
            let hosts = ["host-9", "host-10"].map(|host| {
                let state = if self.away == Some(host) { "NOT_RESPONDING" } else { "CONNECTED" };
                json!({ "host": host, "name": format!("{host}.lan"), "connection_state": state })
            });
            return Some((200, hosts.to_vec().into()));
        }
        if path == "vm" {
            let (names, vms, hosts) = (filter("names"), filter("vms"), filter("hosts"));
            if self.is_full && names.is_none() && vms.is_none() {
                return Some((
                    400,
                    error("UNABLE_TO_ALLOCATE_RESOURCE", "Too many virtual machines."),
                ));
            }
            let is_wanted = |filter: &Option<Vec<String>>, found: &str| {
                filter.as_ref().is_none_or(|wanted| wanted.iter().any(|one| one == found))
            };
            let list = self.machines.iter().filter(|one| {
                is_wanted(&names, &one.name)
                    && is_wanted(&vms, &one.id)
                    && is_wanted(&hosts, one.host)
            });
            let list = list.map(|one| {
                json!({ "vm": one.id, "name": one.name, "power_state": one.power, "cpu_count": 2 })
            });
            return Some((200, list.collect::<Vec<_>>().into()));
        }
        let (id, rest) = path.strip_prefix("vm/")?.split_once('/').unwrap_or((&path[3..], ""));
        let Some(machine) = self.machines.iter().find(|one| one.id == id) else {
            let says = format!("Virtual machine with identifier '{id}' does not exist.");
            return Some((404, error("NOT_FOUND", &says)));
        };
        if rest.is_empty() {
            let identity = json!({
                "name": machine.name, "bios_uuid": machine.bios_uuid,
                "instance_uuid": format!("5013{}", &machine.bios_uuid[4..]),
            });
            return Some((200, json!({ "power_state": machine.power, "identity": identity })));
        }
        let word = rest.strip_prefix("power").map(|word| {
            if self.is_old {
                word.trim_start_matches('/')
            } else {
                query.trim_start_matches("action=")
            }
        })?;
        self.asked.push(format!("{word} {id}"));
        let power = if word == "stop" { "POWERED_OFF" } else { "POWERED_ON" };
        if machine.power == power && word != "reset" {
            return Some((
                400,
                error("ALREADY_IN_DESIRED_STATE", "The virtual machine is so already."),
            ));
        }
        if !self.is_stuck {
            self.comes.push((now_ms + self.late_ms, id.to_owned(), power));
        }
        Some((204, Value::Null))
    }
}

impl Web for VCenter {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let (status, body) = self.answer(now_ms, request).unwrap_or((404, Value::Null));
        let body = if body.is_null() {
            String::new()
        } else if self.is_old && status == 200 {
            json!({ "value": body }).to_string()
        } else if self.is_old {
            json!({ "type": "com.vmware.vapi.std.errors.error", "value": body }).to_string()
        } else {
            body.to_string()
        };
        (20, HttpResponse { status, headers: Vec::new(), body: body.into_bytes() })
    }
}

/// An error as vCenter writes it.
pub(crate) fn error(kind: &str, message: &str) -> Value {
    json!({ "error_type": kind, "messages": [{ "id": "x", "default_message": message, "args": [] }] })
}

/// One call to a vCenter.
pub(crate) fn ask(web: impl Into<Overlay<VCenter>>, action: Action, plug: &str) -> Ended<VCenter> {
    ask_for(web, action, plug, &[], |request| request, |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    web: impl Into<Overlay<VCenter>>,
    action: Action,
    plug: &str,
    parameters: &[(&str, &str)],
    request: impl FnOnce(Request) -> Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<VCenter> {
    let web = web.into();
    let endpoint = if web.server.is_old { "rest" } else { "api" };
    let own = [("api", endpoint)];
    let parameters = own.iter().chain(parameters);
    let plain = Request {
        plug: plug.to_owned(),
        parameters: parameters.map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        ..Request::new(action, DEADLINE_MS)
    };
    web::ask::<VMware, VCenter>(endpoint, web, &request(plain), host)
}
