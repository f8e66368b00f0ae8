//! One guest: what it reads.

use node_remedy_sdk::web::Api;
use node_remedy_sdk::{Failure, FailureKind, Host, Level, PlugState};
use serde_json::Value;

use crate::cluster::Place;

/// A guest, as it was read.
pub(crate) struct Guest {
    status: String,
    /// What the emulator says, for virtual machines.
    emulator: Option<String>,
    lock: Option<String>,
    /// What the cluster's high availability does with it, if it manages it: the state, or nothing where it names none.
    ha: Option<String>,
}

/// States of a managed guest in which nobody starts it (`pve-ha-manager`, "Service States").
const HA_LETS_IT_BE: [&str; 4] = ["stopped", "ignored", "disabled", "error"];

impl Guest {
    /// Reads it from the node it is on.
    pub(crate) fn read<H: Host>(api: &Api<'_, H>, place: &Place) -> Result<Self, Failure> {
        let path = format!("{}/status/current", place.path());
        let answer = api.get(&path)?;
        let text = |name: &str| {
            let text = answer.get("data").and_then(|data| data.get(name)).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let status = text("status").ok_or_else(|| {
            Failure::new(FailureKind::Protocol, format!("GET {path}: the guest has no status"))
        })?;
        let ha = answer.pointer("/data/ha").filter(|ha| {
            let managed = ha.get("managed");
            managed.is_some_and(|it| ![Value::from(0), "0".into(), false.into()].contains(it))
        });
        let ha =
            ha.map(|ha| ha.get("state").and_then(Value::as_str).unwrap_or("unknown").to_owned());
        Ok(Self { status, emulator: text("qmpstatus"), lock: text("lock"), ha })
    }

    /// Off is what nothing contradicts: a paused guest holds its memory and goes on where it was, one
    /// that is suspended to disk does so too when it is started, and while it is locked something is
    /// being done with it that may end in a guest that runs, here or on another node. So may what high availability does
    /// with one that it is to keep started: it runs again soon, or already does where this part of the cluster sees nothing.
    pub(crate) fn state(&self) -> PlugState {
        let emulator = self.emulator.as_deref();
        let is_started = self.ha.as_deref().is_some_and(|state| !HA_LETS_IT_BE.contains(&state));
        match (self.status.as_str(), emulator, self.lock.as_deref()) {
            ("stopped", None | Some("stopped"), None) if is_started => PlugState::Transitioning,
            ("stopped", None | Some("stopped"), None) => PlugState::Off,
            ("stopped", None | Some("stopped"), Some("suspended")) => PlugState::Unknown,
            ("stopped", None | Some("stopped"), Some(_)) => PlugState::Transitioning,
            // Memory, devices and disks are held as by one that runs.
            ("running", _, _) => PlugState::On,
            (_, _, _) => PlugState::Unknown,
        }
    }

    /// Whether its memory is on disk: started, it goes on with all that it was about to write.
    pub(crate) fn is_suspended(&self) -> bool {
        self.lock.as_deref() == Some("suspended")
    }

    /// The device's own words.
    pub(crate) fn words(&self) -> String {
        let word = |name: &str, value: Option<&str>| {
            value.map(|value| format!(", {name} {value}")).unwrap_or_default()
        };
        let emulator = self.emulator.as_deref().filter(|word| *word != self.status);
        let (emulator, lock) = (word("qmpstatus", emulator), word("lock", self.lock.as_deref()));
        let ha = word("high availability has it", self.ha.as_deref());
        format!("status is {}{emulator}{lock}{ha}", self.status)
    }
}

/// The UUID that its firmware shows to a virtual machine. A container sees its host's, so it has none.
pub(crate) fn uuid<H: Host>(api: &Api<'_, H>, place: &Place) -> Option<String> {
    if !place.is_machine() {
        return None;
    }
    let answer = match api.get(&format!("{}/config", place.path())) {
        Ok(answer) => answer,
        Err(failure) => {
            api.host().log(Level::Info, &failure.detail);
            return None;
        }
    };
    let fields = answer.pointer("/data/smbios1").and_then(Value::as_str)?;
    fields.split(',').find_map(|field| field.trim().strip_prefix("uuid=")).map(str::to_owned)
}
