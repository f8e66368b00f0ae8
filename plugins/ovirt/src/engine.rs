//! The engine: how its API is spoken to, and how a machine is found. Not here: what a machine's status
//! means.

use node_remedy_sdk::power::is_same_uuid;
use node_remedy_sdk::web::{Api, Manner, encoded};
use node_remedy_sdk::{Failure, FailureKind, Host};
use serde_json::Value;

/// Where the machines are.
pub(crate) const VMS: &str = "/ovirt-engine/api/vms";

pub(crate) const MANNER: Manner = Manner {
    endpoint: "engine",
    device: "the engine",
    request_ms: 25_000,
    // Without a version an engine answers as its newest one does.
    headers: &[("Accept", "application/json"), ("Version", "4")],
    unauthenticated: "check user@profile, such as admin@internal, and password",
    denied: "check the role of the account on the machine: UserRole may stop and start it",
    missing: "check that the address is the engine's",
};

/// A machine, as it was read.
pub(crate) struct VirtualMachine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) status: String,
}

impl VirtualMachine {
    /// The machine of this id or name.
    pub(crate) fn find<H: Host>(api: &Api<'_, H>, plug: &str) -> Result<Self, Failure> {
        if plug.is_empty() {
            return no_such_plug("the plug names no machine: expected its id or name".to_owned());
        }
        if is_same_uuid(plug, plug) && plug.contains('-') {
            return Self::read(api, plug);
        }
        // In a search some characters have a meaning; no machine has them in its name.
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
        if !plug.chars().all(is_plain) {
            let sentence = format!("{plug:?} is no name: expected letters, digits, '-', '_', '.'");
            return no_such_plug(sentence);
        }
        let found = listed(api, &format!("{VMS}?search={}", encoded(&format!("name={plug}"))))?;
        // A search takes no heed of letter case.
        let mut found: Vec<_> = found.into_iter().filter(|one| one.name == plug).collect();
        match (found.pop(), found.as_slice()) {
            (Some(one), []) => Ok(one),
            (Some(one), more) => {
                let ids = more.iter().chain([&one]).map(|one| one.id.as_str()).collect::<Vec<_>>();
                no_such_plug(format!("several machines have the name {plug:?}: {}", ids.join(", ")))
            }
            (None, _) => no_such_plug(format!(
                "there is no machine {plug:?} that the account sees; check name and role"
            )),
        }
    }

    /// Reads the machine of this id.
    pub(crate) fn read<H: Host>(api: &Api<'_, H>, id: &str) -> Result<Self, Failure> {
        let path = format!("{VMS}/{}", encoded(id));
        let answer = match api.get(&path) {
            Err(failure) if failure.device_code == Some(404) => {
                // The engine answers it with a document or with nothing; so would another server.
                api.get(&format!("{VMS}?max=1"))?;
                return no_such_plug(format!("there is no machine {id} that the account sees"));
            }
            answer => answer?,
        };
        let machine = Self::of(&answer).filter(|machine| is_same_uuid(&machine.id, id));
        machine.ok_or_else(|| {
            Failure::new(
                FailureKind::Protocol,
                format!("GET {path}: found no status of {id} in it"),
            )
        })
    }

    fn of(one: &Value) -> Option<Self> {
        let text = |name: &str| one.get(name).and_then(Value::as_str).map(str::to_owned);
        let (id, status) = (text("id")?, text("status")?);
        // It becomes part of a path.
        let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_plain.then(|| Self { id, name: text("name").unwrap_or_default(), status })
    }
}

/// Every machine that the account sees.
pub(crate) fn all<H: Host>(api: &Api<'_, H>) -> Result<Vec<VirtualMachine>, Failure> {
    listed(api, VMS)
}

/// The machines of a list; where there are none, the engine leaves the list out.
fn listed<H: Host>(api: &Api<'_, H>, path: &str) -> Result<Vec<VirtualMachine>, Failure> {
    let answer = api.get(path)?;
    let list = match answer.get("vm") {
        None if answer.as_object().is_some_and(serde_json::Map::is_empty) => return Ok(Vec::new()),
        list => list.and_then(Value::as_array),
    };
    let list = list.ok_or_else(|| {
        Failure::new(FailureKind::Protocol, format!("GET {path}: found no list of machines"))
    })?;
    let read = |one: &Value| {
        VirtualMachine::of(one).ok_or_else(|| {
            Failure::new(
                FailureKind::Protocol,
                format!("GET {path}: a machine without id or status"),
            )
        })
    };
    list.iter().map(read).collect()
}

fn no_such_plug<T>(detail: String) -> Result<T, Failure> {
    Err(Failure::new(FailureKind::NoSuchPlug, detail))
}
