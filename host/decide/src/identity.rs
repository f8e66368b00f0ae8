//! Whether the machine behind a device is the node.
//!
//! The observer lists every spelling of the node's own identity that counts as the same (byte
//! orders of a UUID, for instance); here they are only compared.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Binding, End, IdentityRule, Method, MethodIndex, ParkReason, Record};

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
    let mut is_known = false;
    for (field, found) in reported {
        let mut spellings = expected.iter().filter(|(wanted, _)| wanted == field).peekable();
        let Some((_, wanted)) = spellings.peek() else { continue };
        is_known = true;
        // One that agrees is outweighed by one that does not: a name may be given to another machine.
        if !spellings.any(|(_, value)| value.eq_ignore_ascii_case(found)) {
            return Match::Stop(other(field, wanted, found));
        }
    }
    match (is_known, rule) {
        (true, _) | (false, IdentityRule::Prefer) => Match::Same,
        (false, IdentityRule::Require) => Match::Stop(ParkReason::NoIdentity),
    }
}

/// What of a machine never changes, though no Node tells it.
const FOR_LIFE: [&str; 1] = ["numeric-id"];

/// Whether a machine is another one than at an earlier read of the same incident: the same name, made anew.
pub(crate) fn made_anew(
    record: &Record,
    method: MethodIndex,
    reported: &[(String, String)],
) -> Option<ParkReason> {
    let earlier = record.operations.iter().filter(|one| one.method == method);
    let identities = earlier.filter_map(|one| match &one.end {
        Some(End::Succeeded { identity, .. }) => Some(identity),
        Some(End::Failed(_) | End::NotAttempted(_) | End::Indeterminate) | None => None,
    });
    let known: Vec<&(String, String)> =
        identities.flatten().filter(|(field, _)| FOR_LIFE.contains(&&**field)).collect();
    reported.iter().find_map(|(field, found)| {
        let (_, before) = known.iter().find(|(name, value)| name == field && value != found)?;
        Some(other(field, before, found))
    })
}

fn other(field: &str, expected: &str, found: &str) -> ParkReason {
    ParkReason::WrongMachine {
        expected: format!("{field} {expected}"),
        found: format!("{field} {found}"),
    }
}
