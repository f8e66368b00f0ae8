//! A port, as the YANG module `brocade-interface` has it in XML: its leaves before and since Fabric OS 9, and
//! when it is cut.

use node_remedy_sdk::web::text_of;
use node_remedy_sdk::{Failure, FailureKind, Fields, PlugInfo, PlugState};

/// A port, as it was read.
#[derive(Clone)]
pub(crate) struct Port {
    /// Slot and port: `0/3`.
    pub(crate) name: String,
    friendly_name: String,
    /// `enabled-state`: 2 or 6.
    number: Option<bool>,
    /// `is-enabled-state`, since Fabric OS 9.
    word: Option<bool>,
    operation: Operation,
    physical: String,
    /// `persistent-disable`, where the switch has it.
    pub(crate) persistent: Option<bool>,
}

/// `operational-status`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Online,
    Offline,
    /// Faulty, testing, undefined, or not told.
    Unclear,
}

/// Slot and port of a plug: `0/3`, or `3` where a switch has no slots.
pub(crate) fn name_of(plug: &str) -> Result<String, Failure> {
    let (slot, port) = plug.split_once('/').unwrap_or(("0", plug));
    let is_number = |text: &str| {
        (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if is_number(slot) && is_number(port) {
        return Ok(format!("{slot}/{port}"));
    }
    let sentence = format!("found the plug {plug:?}, expected slot/port, such as 0/3");
    Err(Failure::new(FailureKind::NoSuchPlug, sentence))
}

impl Port {
    /// The ports of an answer. One that was cut short is none.
    pub(crate) fn all(document: &str) -> Result<Vec<Self>, Failure> {
        let protocol = |sentence: &str| Failure::new(FailureKind::Protocol, sentence);
        if !document.contains("<Response") || !document.trim_end().ends_with("</Response>") {
            return Err(protocol("the switch listed no ports; is this the address of a switch?"));
        }
        let mut ports = Vec::new();
        for one in document.split("<fibrechannel>").skip(1) {
            let (one, _) = one
                .split_once("</fibrechannel>")
                .ok_or_else(|| protocol("the list of ports ends inside a port"))?;
            ports.push(
                Self::of(one).ok_or_else(|| protocol("the switch lists a port without name"))?,
            );
        }
        Ok(ports)
    }

    fn of(one: &str) -> Option<Self> {
        let text = |name: &str| text_of(one, name).map(str::trim);
        let truth = |value: &str, yes: &str, no: &str| match value {
            value if value == yes => Some(true),
            value if value == no => Some(false),
            _ => None,
        };
        // The word goes before the number, which newer switches call deprecated.
        let status = text("operational-status-string").or_else(|| text("operational-status"));
        let operation = match status {
            Some("online" | "2") => Operation::Online,
            Some("offline" | "3") => Operation::Offline,
            Some(_) | None => Operation::Unclear,
        };
        Some(Self {
            name: text("name").filter(|name| !name.is_empty())?.to_owned(),
            friendly_name: text("user-friendly-name").unwrap_or_default().to_owned(),
            number: text("enabled-state").and_then(|value| truth(value, "2", "6")),
            word: text("is-enabled-state").and_then(|value| truth(value, "true", "false")),
            operation,
            physical: text("physical-state").unwrap_or("not told").to_lowercase(),
            persistent: text("persistent-disable").and_then(|value| truth(value, "1", "0")),
        })
    }

    /// The leaf that enables and disables it, and its values for off and on.
    pub(crate) fn enabling(&self) -> (&'static str, [&'static str; 2]) {
        match self.word {
            Some(_) => ("is-enabled-state", ["false", "true"]),
            None => ("enabled-state", ["6", "2"]),
        }
    }

    fn is_enabled(&self) -> Option<bool> {
        match (self.word, self.number) {
            (Some(word), Some(number)) => (word == number).then_some(word),
            (word, number) => word.or(number),
        }
    }

    /// Cut is what is disabled and has no traffic; one without the other is not. What a port that is enabled
    /// does with the machine behind it is the machine's.
    pub(crate) fn state(&self) -> PlugState {
        match (self.is_enabled(), self.operation) {
            (Some(false), Operation::Offline) if self.physical != "online" => PlugState::Off,
            (Some(false), Operation::Offline | Operation::Online) => PlugState::Transitioning,
            (Some(true), _) => PlugState::On,
            (Some(false), Operation::Unclear) | (None, _) => PlugState::Unknown,
        }
    }

    /// The device's own words.
    pub(crate) fn words(&self) -> String {
        let state = match self.is_enabled() {
            Some(true) => "enabled",
            Some(false) => "disabled",
            None => "of unclear state",
        };
        let operation = match self.operation {
            Operation::Online => "online",
            Operation::Offline => "offline",
            Operation::Unclear => "neither online nor offline",
        };
        let lasting = match (self.is_enabled(), self.persistent) {
            (Some(false), Some(false)) => ", until the switch restarts",
            (_, _) => "",
        };
        format!("port {} is {state} and {operation} ({}){lasting}", self.name, self.physical)
    }

    /// As one of the plugs of the switch.
    pub(crate) fn plug_info(&self) -> PlugInfo {
        PlugInfo {
            plug: self.name.clone(),
            name: self.friendly_name.clone(),
            state: self.state(),
            identity: Fields::new(),
        }
    }
}
