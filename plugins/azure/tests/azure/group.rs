//! A resource group of Azure, in memory: a machine, operations that take their time, and answers in
//! Azure Resource Manager's shapes.

use node_remedy_plugin_azure::Azure;
use node_remedy_sdk::testing::web::{self, Ended, Overlay};
use node_remedy_sdk::testing::{TestHost, Web};
use node_remedy_sdk::{Action, HttpRequest, HttpResponse, Request};
use serde_json::{Value, json};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;
/// The machine's path.
pub(crate) const PATH: &str = "/subscriptions/01234567-89ab-cdef-0123-456789abcdef/resourceGroups/g/\
     providers/Microsoft.Compute/virtualMachines/worker-1";
/// Where its operations are.
pub(crate) const OPERATIONS: &str = "/subscriptions/01234567-89ab-cdef-0123-456789abcdef/providers/\
     Microsoft.Compute/locations/westeurope/operations";
const UUID: &str = "11111111-2222-3333-4444-555555555555";

/// The group.
pub(crate) struct Group {
    /// Codes of the machine's statuses.
    pub(crate) codes: Vec<String>,
    pub(crate) comes: Option<(u64, &'static str)>,
    /// How long a change takes.
    pub(crate) late_ms: u64,
    /// The code that an operation ends with that fails.
    pub(crate) fails: Option<&'static str>,
    /// In front of the path at which an operation can be asked about.
    pub(crate) elsewhere: &'static str,
    pub(crate) ends_ms: u64,
    /// What was asked for that is not a read.
    pub(crate) changes: Vec<String>,
}

impl Group {
    /// With a machine of this power.
    pub(crate) fn with(power: &str) -> Self {
        Self::with_codes(&["ProvisioningState/succeeded", &format!("PowerState/{power}")])
    }

    /// With a machine of these statuses.
    pub(crate) fn with_codes(codes: &[&str]) -> Self {
        Self {
            codes: codes.iter().map(|&code| code.to_owned()).collect(),
            comes: None,
            late_ms: 0,
            fails: None,
            elsewhere: "",
            ends_ms: 0,
            changes: Vec::new(),
        }
    }

    /// Answers so to what begins so.
    pub(crate) fn instead(self, line: &str, status: u16, body: &str) -> Overlay<Self> {
        Overlay::new(self).instead(line, status, body)
    }

    fn operation(&self, now_ms: u64) -> Value {
        match self.fails {
            _ if now_ms < self.ends_ms => json!({ "name": "1", "status": "InProgress" }),
            None => json!({ "name": "1", "status": "Succeeded" }),
            Some(code) => json!({
                "name": "1", "status": "Failed", "error": { "code": code, "message": "It is so." }
            }),
        }
    }

    fn answer(
        &mut self,
        now_ms: u64,
        method: &str,
        path: &str,
    ) -> (u16, Vec<(String, String)>, Value) {
        if let Some((_, power)) = self.comes.take_if(|(at_ms, _)| *at_ms <= now_ms) {
            self.codes = vec![format!("PowerState/{power}")];
        }
        let (path, query) = path.split_once('?').unwrap();
        let query = query.strip_suffix("api-version=2026-04-01").unwrap();
        match (method, path, query) {
            ("GET", PATH, "$expand=instanceView&") => {
                let codes: Vec<_> = self.codes.iter().map(|code| json!({ "code": code })).collect();
                return (200, Vec::new(), machine(&codes));
            }
            ("GET", path, "") if path.starts_with(OPERATIONS) => {
                return (200, Vec::new(), self.operation(now_ms));
            }
            _ => {}
        }
        let Some(action) = path.strip_prefix(PATH).filter(|_| method == "POST") else {
            return (404, Vec::new(), error("ResourceNotFound", "It was not found."));
        };
        self.changes.push(format!("{action}?{query}"));
        self.ends_ms = now_ms + self.late_ms;
        let to = match action {
            "/powerOff" => "stopped",
            "/deallocate" => "deallocated",
            _ => "running",
        };
        if self.fails.is_none() {
            self.comes = Some((self.ends_ms, to));
        }
        let at = format!("{}{OPERATIONS}/1?api-version=2026-04-01", self.elsewhere);
        (202, vec![("azure-asyncoperation".to_owned(), at)], Value::Null)
    }
}

impl Web for Group {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let (status, headers, body) = self.answer(now_ms, &request.method, &request.path);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        (50, HttpResponse { status, headers, body })
    }
}

/// The machine, as Azure tells of it.
pub(crate) fn machine(statuses: &[Value]) -> Value {
    json!({
        "id": PATH, "name": "worker-1", "type": "Microsoft.Compute/virtualMachines",
        "properties": { "vmId": UUID, "instanceView": { "statuses": statuses } },
    })
}

/// A refusal.
pub(crate) fn error(code: &str, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}

/// One call.
pub(crate) fn ask(group: impl Into<Overlay<Group>>, action: Action) -> Ended<Group> {
    ask_for(group, &request(action), |host| host)
}

/// A request as the host makes it.
pub(crate) fn request(action: Action) -> Request {
    let parameters = vec![("off-by".to_owned(), "power-off".to_owned())];
    Request { plug: format!("azure://{PATH}"), parameters, ..Request::new(action, DEADLINE_MS) }
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    group: impl Into<Overlay<Group>>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Group> {
    web::ask::<Azure, Group>("management", group.into(), request, host)
}
