//! What a fact says of whatever switches a machine, be it a BMC, a plug of a PDU or switch, or a cloud: for
//! judges, who ask the same of all of them.

#![expect(clippy::wildcard_enum_match_arm, reason = "most facts are about no device")]

use super::{Power, What};

/// A power command that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken<'a> {
    /// For which node's machine.
    pub node: &'a str,
    /// The PDU or switch and its plug; nothing where it is the node's own BMC or instance.
    pub plug: (&'a str, u64),
    /// `off`, `on`, `reset`, …
    pub command: &'a str,
    /// Who asked: a process of node-remedy.
    pub by: &'a str,
}

impl What {
    /// The power command that was accepted, if this says so.
    pub fn taken(&self) -> Option<Taken<'_>> {
        match self {
            Self::BmcAccepted { node, command, by } | Self::CloudAccepted { node, command, by } => {
                Some(Taken { node, plug: ("", 0), command, by })
            }
            Self::PlugAccepted { node, device, plug, command, by } => {
                Some(Taken { node, plug: (device, *plug), command, by })
            }
            _ => None,
        }
    }

    /// The node of which a device said that it is off, or one of its plugs, if this says so.
    pub fn told_off(&self) -> Option<&str> {
        match self {
            Self::BmcReported { node, power: Power::Off, .. }
            | Self::PlugReported { node, power: Power::Off, .. } => Some(node),
            Self::CloudReported { node, state, .. } => {
                ["stopped", "terminated"].contains(&state.as_str()).then_some(node)
            }
            _ => None,
        }
    }

    /// The process whose command to change something a device answered with this.
    pub fn commanded(&self) -> Option<&str> {
        match self {
            Self::BmcAccepted { command, by, .. }
            | Self::BmcRefused { command, by, .. }
            | Self::PlugAccepted { command, by, .. }
            | Self::PlugRefused { command, by, .. }
            | Self::CloudAccepted { command, by, .. }
            | Self::CloudRefused { command, by, .. } => (command != "status").then_some(by),
            _ => None,
        }
    }
}
