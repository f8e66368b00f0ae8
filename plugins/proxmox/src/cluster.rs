//! The cluster: how its API is spoken to, which guests it has and where, and the tasks that change
//! them. Not here: what a guest reads.

use node_remedy_sdk::power::Change;
use node_remedy_sdk::web::{Api, Body, Manner, encoded};
use node_remedy_sdk::{Failure, FailureKind, Host, Level, PlugInfo, PlugState};
use serde_json::Value;

/// A ticket of the host, sent as a cookie.
pub(crate) const TICKET: Manner = Manner {
    endpoint: "api",
    device: "Proxmox",
    // A node asks another one for its guests, and that may be slow to say that it is not there.
    request_ms: 30_000,
    headers: &[("Accept", "application/json")],
    unauthenticated: "check user@realm and password; an account with a second factor needs login: token",
    denied: "check the rights: VM.Audit and VM.PowerMgmt on the guest",
    missing: "check that the address is Proxmox VE's API, whose port is 8006",
};

/// An API token in each request.
pub(crate) const TOKEN: Manner = Manner {
    endpoint: "api-token",
    unauthenticated: "check the token, user@realm!name, and its secret",
    denied: "check the rights of the token itself: VM.Audit and VM.PowerMgmt on the guest",
    ..TICKET
};

/// The pause between two looks at a task, in milliseconds.
const TASK_PAUSE_MS: u32 = 1_000;
/// What is left of the deadline for reading the guest after its task, in milliseconds.
const READ_BACK_MS: u32 = 4_000;

/// What sort of guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A virtual machine.
    Qemu,
    /// A container.
    Lxc,
}

/// A guest, and the node it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    kind: Kind,
    node: String,
    pub(crate) vmid: u64,
    name: String,
    is_template: bool,
    /// What the cluster said of it last; some seconds old.
    status: String,
}

impl Place {
    /// Every guest that the account may see.
    pub(crate) fn all<H: Host>(api: &Api<'_, H>) -> Result<Vec<Self>, Failure> {
        let answer = api.get("/api2/json/cluster/resources?type=vm")?;
        let list = answer.get("data").and_then(Value::as_array).ok_or_else(|| {
            let sentence = "the list of guests is none; is this the address of Proxmox?";
            Failure::new(FailureKind::Protocol, sentence)
        })?;
        Ok(list.iter().filter_map(Self::of).collect())
    }

    /// The guest of this number, name, or `proxmox://REGION/NUMBER`. A number goes before a name.
    pub(crate) fn find<H: Host>(api: &Api<'_, H>, plug: &str) -> Result<Self, Failure> {
        let none = |detail: String| Err(Failure::new(FailureKind::NoSuchPlug, detail));
        let wanted = plug
            .strip_prefix("proxmox://")
            .map_or(plug, |path| path.rsplit_once('/').map_or(path, |(_, number)| number));
        if wanted.is_empty() {
            return none("the plug names no guest: expected its number or name".to_owned());
        }
        let all = Self::all(api)?;
        let count = all.len();
        let number = wanted.parse::<u64>().ok();
        let (of_number, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| Some(one.vmid) == number);
        let mut found = of_number;
        if found.is_empty() {
            found = others.into_iter().filter(|one| one.name == wanted).collect();
        }
        match (found.pop(), found.as_slice()) {
            (Some(one), []) if one.is_template => none(format!("{wanted} is a template")),
            (Some(one), []) => Ok(one),
            (Some(one), more) => {
                let more = more.iter().map(|one| one.vmid.to_string()).collect::<Vec<_>>();
                let (number, more) = (one.vmid, more.join(", "));
                none(format!(
                    "several guests are {wanted:?}; name one by its number: {more}, {number}"
                ))
            }
            (None, _) if count == 0 => none(format!(
                "there is no guest {wanted:?}: the account sees none at all; check that it has VM.Audit"
            )),
            (None, _) => {
                none(format!("none of the {count} guests that the account sees is {wanted:?}"))
            }
        }
    }

    fn of(one: &Value) -> Option<Self> {
        let text = |name: &str| one.get(name).and_then(Value::as_str);
        let kind = match text("type")? {
            "qemu" => Kind::Qemu,
            "lxc" => Kind::Lxc,
            _ => return None,
        };
        Some(Self {
            kind,
            node: text("node")?.to_owned(),
            vmid: one.get("vmid")?.as_u64()?,
            name: text("name").unwrap_or_default().to_owned(),
            is_template: one.get("template").and_then(Value::as_u64) == Some(1),
            status: text("status").unwrap_or_default().to_owned(),
        })
    }

    /// Where the API has it.
    pub(crate) fn path(&self) -> String {
        let Self { node, vmid, .. } = self;
        let kind = match self.kind {
            Kind::Qemu => "qemu",
            Kind::Lxc => "lxc",
        };
        format!("{}/{kind}/{vmid}", node_path(node))
    }

    /// The command that does it, without asking an operating system.
    pub(crate) fn command(&self, change: Change) -> Result<&'static str, Failure> {
        match (change, self.kind) {
            (Change::Off, _) => Ok("stop"),
            (Change::On, _) => Ok("start"),
            (Change::Reset, Kind::Qemu) => Ok("reset"),
            (Change::Reset, Kind::Lxc) => Err(Failure::new(
                FailureKind::Unsupported,
                "a container has no reset, only a reboot that asks it; use off and on",
            )),
        }
    }

    pub(crate) fn is_machine(&self) -> bool {
        self.kind == Kind::Qemu
    }

    /// As one of the plugs of the cluster.
    pub(crate) fn plug_info(&self) -> PlugInfo {
        let state = match self.status.as_str() {
            "running" => PlugState::On,
            // The list is some seconds old and knows no locks; only the guest itself says more.
            _ => PlugState::Unknown,
        };
        let plug = self.vmid.to_string();
        let identity = vec![("vmid".to_owned(), plug.clone())];
        PlugInfo { plug, name: self.name.clone(), state, identity }
    }
}

fn node_path(node: &str) -> String {
    format!("/api2/json/nodes/{}", encoded(node))
}

/// Begins a command and follows its task to the end, as far as the deadline allows.
pub(crate) fn carry_through<H: Host>(
    api: &Api<'_, H>,
    place: &Place,
    command: &str,
) -> Result<(), Failure> {
    let path = format!("{}/status/{command}", place.path());
    let begun = api.ask("POST", &path, Body::Form(""))?.object()?;
    let Some(task) = begun.get("data").and_then(Value::as_str) else { return Ok(()) };
    let path = format!("{}/tasks/{}/status", node_path(&place.node), task.trim_end());
    let host = api.host();
    loop {
        let status = match api.get(&path) {
            Ok(status) => status,
            // The guest itself says what came of it.
            Err(failure) => {
                host.log(Level::Warn, &failure.detail);
                return Ok(());
            }
        };
        let text = |name: &str| status.pointer(name).and_then(Value::as_str);
        if text("/data/status") == Some("stopped") {
            return ended(task, text("/data/exitstatus").unwrap_or("nothing"));
        }
        if !api.has_time_for(TASK_PAUSE_MS + READ_BACK_MS) || !host.sleep(TASK_PAUSE_MS) {
            host.log(Level::Warn, &format!("task {task} has not ended yet"));
            return Ok(());
        }
    }
}

/// What a task's last word means: `OK`, warnings with their number, or an error.
fn ended(task: &str, exit: &str) -> Result<(), Failure> {
    if exit == "OK" || exit.starts_with("WARNINGS:") {
        return Ok(());
    }
    let said: String = exit.chars().filter(|one| !one.is_control()).take(200).collect();
    let mut failure = Failure::new(FailureKind::Device, format!("task {task} ended with: {said}"));
    failure.retryable = true;
    failure.device_code = Some(500);
    Err(failure)
}
