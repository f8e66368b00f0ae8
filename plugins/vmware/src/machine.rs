//! A virtual machine: how it is found by id, name or UUID, what it reads, and when that is off.

use node_remedy_sdk::power::is_same_uuid;
use node_remedy_sdk::{Failure, FailureKind, Fields, Host, Level, PlugInfo, PlugState};
use serde_json::Value;

use crate::vcenter::VCenter;

/// Machines that are asked for their UUID, one request each; a call may make 512.
const ASKED_MAX: usize = 400;
/// Hosts that one question names.
const HOSTS_AT_ONCE: usize = 50;
const GIVE_IT: &str = "give the account System.Read on the hosts";
/// What no machines at all can mean.
const NONE_SEEN: &str =
    "vCenter shows none to an account without rights: check that it may read the machine";

/// A machine, as it was read.
pub(crate) struct VirtualMachine {
    pub(crate) id: String,
    resource: Value,
}

impl VirtualMachine {
    /// The machine of this id (`vm-42`), name, UUID, or `vsphere://UUID`.
    pub(crate) fn find<H: Host>(vcenter: &VCenter<'_, H>, plug: &str) -> Result<Self, Failure> {
        if plug.is_empty() {
            return no_such_plug(
                "the plug names no machine: expected its id, name or UUID".to_owned(),
            );
        }
        let uuid = plug.strip_prefix("vsphere://").unwrap_or(plug);
        if is_same_uuid(uuid, uuid) {
            return Self::of_uuid(vcenter, uuid);
        }
        if plug.strip_prefix("vm-").is_some_and(|number| number.parse::<u64>().is_ok()) {
            match Self::read(vcenter, plug) {
                Err(failure) if failure.kind == FailureKind::NoSuchPlug => {}
                read => return read,
            }
        }
        let found = vcenter.list("vm", &[("names", plug)])?;
        match ids(&found).as_slice() {
            [id] => Self::read(vcenter, id),
            [] => no_such_plug(format!("there is no machine {plug:?}; {NONE_SEEN}")),
            several => no_such_plug(format!(
                "{} machines have the name {plug:?}; name one by its id: {}",
                several.len(),
                several.join(", ")
            )),
        }
    }

    /// Asks every machine, or those of the name that is known, for its UUID: the list has none.
    fn of_uuid<H: Host>(vcenter: &VCenter<'_, H>, uuid: &str) -> Result<Self, Failure> {
        let named = vcenter.name.as_deref().map(|name| ("names", name));
        let listed = vcenter.list("vm", named.as_slice());
        let listed = listed.map_err(|failure| match failure.device_code {
            Some(400) => too_many(&failure.detail),
            Some(_) | None => failure,
        })?;
        let ids = ids(&listed);
        if ids.len() > ASKED_MAX {
            return Err(too_many(&format!("there are {} machines", ids.len())));
        }
        let mut found = Vec::new();
        for id in &ids {
            match Self::read(vcenter, id) {
                Ok(machine) if machine.has_uuid(uuid) => found.push(machine),
                // One that was deleted meanwhile.
                Err(failure) if failure.kind == FailureKind::NoSuchPlug => {}
                read => {
                    read?;
                }
            }
        }
        match (found.pop(), found.as_slice()) {
            (Some(one), []) => Ok(one),
            (Some(one), more) => {
                let ids = more.iter().chain([&one]).map(|one| one.id.as_str()).collect::<Vec<_>>();
                no_such_plug(format!("several machines have the UUID {uuid}: {}", ids.join(", ")))
            }
            (None, _) if ids.is_empty() => {
                no_such_plug(format!("no machine has the UUID {uuid}; {NONE_SEEN}"))
            }
            (None, _) => no_such_plug(format!(
                "none of the {} machines that were asked has the UUID {uuid}",
                ids.len()
            )),
        }
    }

    /// Reads the machine of this id.
    pub(crate) fn read<H: Host>(vcenter: &VCenter<'_, H>, id: &str) -> Result<Self, Failure> {
        let resource = match vcenter.machine(id) {
            // vCenter names the refusal; another server's 404 is a wrong address.
            Err(failure)
                if failure.device_code == Some(404)
                    && failure.detail.contains(id)
                    && says_more(&failure) =>
            {
                return no_such_plug(format!("there is no machine {id}"));
            }
            resource => resource?,
        };
        if resource.get("power_state").and_then(Value::as_str).is_none() {
            let sentence = format!("vCenter says nothing of the power of {id}");
            return Err(Failure::new(FailureKind::Protocol, sentence));
        }
        Ok(Self { id: id.to_owned(), resource })
    }

    /// Off is what is powered off on a host that vCenter hears. A suspended machine has its memory on disk:
    /// powered on, it goes on with the pods it had. Of a host that is away vCenter knows what was.
    pub(crate) fn state<H: Host>(&self, vcenter: &VCenter<'_, H>) -> (PlugState, String) {
        let power = self.text("/power_state").unwrap_or("nothing");
        let words = format!("power_state is {power}");
        match power {
            "POWERED_ON" => (PlugState::On, words),
            "POWERED_OFF" => match self.doubt(vcenter) {
                None => (PlugState::Off, words),
                Some(doubt) => (PlugState::Unknown, format!("{words}, but {doubt}")),
            },
            _ => (PlugState::Unknown, words),
        }
    }

    /// Why what vCenter says of the machine may be old: it is on no host that vCenter hears, as far as this account is told.
    fn doubt<H: Host>(&self, vcenter: &VCenter<'_, H>) -> Option<String> {
        let hosts = match vcenter.list("host", &[]) {
            Ok(hosts) if hosts.is_empty() => return Some(format!("no host is seen; {GIVE_IT}")),
            Ok(hosts) => hosts,
            Err(failure) if failure.kind == FailureKind::Denied => {
                return Some(format!("its host may not be seen: {}; {GIVE_IT}", failure.detail));
            }
            Err(failure) => {
                return Some(format!("the hosts could not be read: {}", failure.detail));
            }
        };
        let text = |host: &Value, name: &str| {
            host.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let is_heard = |host: &&Value| text(host, "connection_state") == "CONNECTED";
        let heard: Vec<_> = hosts.iter().filter(is_heard).map(|host| text(host, "host")).collect();
        for some in heard.chunks(HOSTS_AT_ONCE) {
            let filters = some.iter().map(|host| ("hosts", host.as_str()));
            let filters: Vec<_> =
                std::iter::once(("vms", self.id.as_str())).chain(filters).collect();
            match vcenter.list("vm", &filters).map(|list| ids(&list)) {
                Ok(machines) if machines.contains(&self.id) => return None,
                Ok(_) => {}
                Err(failure) => return Some(format!("nobody knows its host: {}", failure.detail)),
            }
        }
        Some(format!("it is on no host that vCenter hears; if it is, {GIVE_IT}"))
    }

    /// What vCenter calls the machine: the UUID of its firmware, which a node's providerID has too.
    pub(crate) fn identity(&self) -> Fields {
        let Some(uuid) = self.text("/identity/bios_uuid") else { return Fields::new() };
        let uuid = uuid.to_lowercase();
        ["instance-id", "system-uuid"].map(|name| (name.to_owned(), uuid.clone())).into()
    }

    fn has_uuid(&self, uuid: &str) -> bool {
        let named = ["/identity/bios_uuid", "/identity/instance_uuid"];
        named.into_iter().filter_map(|at| self.text(at)).any(|one| is_same_uuid(one, uuid))
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.resource.pointer(pointer)?.as_str()
    }
}

/// Every machine that the account sees, as the list has it.
pub(crate) fn all<H: Host>(vcenter: &VCenter<'_, H>) -> Result<Vec<PlugInfo>, Failure> {
    let listed = vcenter.list("vm", &[])?;
    if listed.is_empty() {
        vcenter.host().log(Level::Warn, &format!("there are no machines; {NONE_SEEN}"));
    }
    let plug = |one: &Value| {
        let text = |name: &str| one.get(name).and_then(Value::as_str).map(str::to_owned);
        let state = match text("power_state").as_deref() {
            Some("POWERED_ON") => PlugState::On,
            Some("POWERED_OFF") => PlugState::Off,
            Some(_) | None => PlugState::Unknown,
        };
        let (plug, name) = (text("vm")?, text("name").unwrap_or_default());
        Some(PlugInfo { plug, name, state, identity: Fields::new() })
    };
    Ok(listed.iter().filter_map(plug).collect())
}

fn ids(list: &[Value]) -> Vec<String> {
    let id = |one: &Value| Some(one.get("vm")?.as_str()?.to_owned());
    list.iter().filter_map(id).collect()
}

/// Whether the device said anything itself: a bare 404 is any server's.
fn says_more(failure: &Failure) -> bool {
    failure.detail.contains("HTTP 404: ")
}

fn too_many(detail: &str) -> Failure {
    let sentence = format!("{detail}; to find one of so many by its UUID, set the parameter name");
    Failure::new(FailureKind::BadParameters, sentence)
}

fn no_such_plug<T>(detail: String) -> Result<T, Failure> {
    Err(Failure::new(FailureKind::NoSuchPlug, detail))
}
