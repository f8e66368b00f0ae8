//! Whether the machine behind a device is the node.
//!
//! The observer lists every spelling of the node's own identity that counts as the same (byte
//! orders of a UUID, for instance); here they are only compared.

use alloc::format;
use alloc::string::String;

use crate::{Binding, IdentityRule, Method, ParkReason};

/// What a device's word about its machine comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Match {
    /// It is the node, or is bound to it in another way.
    Same,
    /// It is not, or it is not known and has to be.
    Stop(ParkReason),
}

/// Compares what `status` reported with what the method is bound to.
pub(crate) fn matches(method: &Method, reported: &[(String, String)], rule: IdentityRule) -> Match {
    let Binding::Reported { expected } = &method.binding else { return Match::Same };
    // Only fields that both know can be compared: a serial says nothing about a UUID.
    let mut other = None;
    for (field, found) in reported {
        for (wanted, value) in expected.iter().filter(|(wanted, _)| wanted == field) {
            if value.eq_ignore_ascii_case(found) {
                return Match::Same;
            }
            other = other.or(Some((wanted, value, found)));
        }
    }
    match (other, rule) {
        (Some((field, expected, found)), _) => Match::Stop(ParkReason::WrongMachine {
            expected: format!("{field} {expected}"),
            found: format!("{field} {found}"),
        }),
        (None, IdentityRule::Require) => Match::Stop(ParkReason::NoIdentity),
        (None, IdentityRule::Prefer) => Match::Same,
    }
}
