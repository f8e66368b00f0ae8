//! vCenter's REST API in both its forms: where things are, and what wraps the answers. Not here: what
//! they mean.

use node_remedy_sdk::web::{Api, Body, Manner, encoded};
use node_remedy_sdk::{Failure, FailureKind, Fields, Host};
use serde_json::Value;

/// Since vCenter 7.0 U2.
const NEW: Manner = Manner {
    endpoint: "api",
    device: "vCenter",
    request_ms: 25_000,
    headers: &[("Accept", "application/json")],
    unauthenticated: "check user@domain and password",
    denied: "check the role of the account: System.Read, VirtualMachine.Interact.PowerOn, PowerOff, Reset",
    missing: "check that the address is vCenter's; before 7.0 U2 it needs api: rest",
};
/// Before.
const OLD: Manner = Manner {
    endpoint: "rest",
    missing: "check that the address is vCenter's; since 8.0 it may need api: api",
    ..NEW
};

/// A vCenter, as one account sees it.
pub(crate) struct VCenter<'a, H> {
    api: Api<'a, H>,
    is_old: bool,
    /// What the machine's name is, for plugs that are UUIDs.
    pub(crate) name: Option<String>,
}

impl<'a, H: Host> VCenter<'a, H> {
    pub(crate) fn new(host: &'a H, parameters: &Fields, deadline_ms: u32) -> Self {
        let parameter = |wanted: &str| {
            let is_it = |(name, _): &&(String, String)| name == wanted;
            parameters.iter().find(is_it).map(|(_, value)| value.clone())
        };
        let is_old = parameter("api").is_some_and(|form| form == "rest");
        let manner = if is_old { &OLD } else { &NEW };
        Self { api: Api::new(host, manner, deadline_ms), is_old, name: parameter("name") }
    }

    pub(crate) fn host(&self) -> &'a H {
        self.api.host()
    }

    /// Everything of a kind, `vm` or `host`, that these filters leave.
    pub(crate) fn list(&self, kind: &str, filters: &[(&str, &str)]) -> Result<Vec<Value>, Failure> {
        let before = if self.is_old { "filter." } else { "" };
        let pair = |(name, value): &(&str, &str)| format!("{before}{name}={}", encoded(value));
        let pairs = filters.iter().map(pair).collect::<Vec<_>>().join("&");
        let mark = if pairs.is_empty() { "" } else { "?" };
        let path = format!("{}/vcenter/{kind}{mark}{pairs}", self.root());
        let answer = self.api.ask("GET", &path, Body::Empty)?.json()?;
        let list = self.unwrap(&answer);
        let list = list.as_array().cloned();
        list.ok_or_else(|| {
            Failure::new(FailureKind::Protocol, format!("GET {path}: found no list"))
        })
    }

    /// All that it says of one machine.
    pub(crate) fn machine(&self, id: &str) -> Result<Value, Failure> {
        let path = format!("{}/vcenter/vm/{}", self.root(), encoded(id));
        Ok(self.unwrap(&self.api.get(&path)?))
    }

    /// Asks for `stop`, `start` or `reset`.
    pub(crate) fn switch(&self, id: &str, word: &str) -> Result<(), Failure> {
        let mark = if self.is_old { "/" } else { "?action=" };
        let path = format!("{}/vcenter/vm/{}/power{mark}{word}", self.root(), encoded(id));
        self.api.ask("POST", &path, Body::Empty).map(|_| ())
    }

    fn root(&self) -> &'static str {
        if self.is_old { "/rest" } else { "/api" }
    }

    /// The old form wraps what it says.
    fn unwrap(&self, answer: &Value) -> Value {
        if !self.is_old {
            return answer.clone();
        }
        answer.get("value").cloned().unwrap_or_default()
    }
}
