//! What a fact says of whatever switches a machine, be it a BMC or a cloud: for judges, who ask the same
//! of all of them.

#![expect(clippy::wildcard_enum_match_arm, reason = "most facts are about no device")]

use super::{Power, What};

/// A power command that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yes<'a> {
    /// For which node's machine.
    pub node: &'a str,
    /// `off`, `on`, `reset`, …
    pub command: &'a str,
    /// Who asked: a process of node-remedy.
    pub by: &'a str,
}

impl What {
    /// The power command that was accepted, if this says so.
    pub fn yes(&self) -> Option<Yes<'_>> {
        match self {
            Self::BmcSaidYes { node, command, by } | Self::CloudSaidYes { node, command, by } => {
                Some(Yes { node, command, by })
            }
            _ => None,
        }
    }

    /// The node of which a device said that it is off, if this says so.
    pub fn told_off(&self) -> Option<&str> {
        match self {
            Self::BmcTold { node, power: Power::Off, .. } => Some(node),
            Self::CloudTold { node, state, .. } => {
                ["stopped", "terminated"].contains(&state.as_str()).then_some(node)
            }
            _ => None,
        }
    }

    /// Who asked a device something that it answered, if this is such an answer.
    pub fn asked_by(&self) -> Option<&str> {
        match self {
            Self::BmcSaidYes { by, .. }
            | Self::BmcRefused { by, .. }
            | Self::BmcTold { by, .. }
            | Self::CloudSaidYes { by, .. }
            | Self::CloudRefused { by, .. }
            | Self::CloudTold { by, .. } => Some(by),
            _ => None,
        }
    }
}
