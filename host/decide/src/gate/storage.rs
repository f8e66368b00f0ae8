//! The veto of the storage: a node that still uses it is alive, whoever else does not hear it.

use alloc::string::String;

use crate::bug::{Bug, guard};
use crate::gate::refusal::{Refusal, Verdict};
use crate::gate::view::StorageLease;
use crate::{Span, Time};

/// Refuses a node that was seen to use its storage within this time, or of which that is not known.
pub(super) fn refuse_storage(
    age_max: Option<Span>,
    lease: &StorageLease,
    now: Time,
    verdict: &mut Verdict,
) {
    let Some(age_max) = age_max else { return };
    match lease {
        StorageLease::Absent => {}
        StorageLease::Renewed { at } => {
            let age = now.since(*at);
            if guard(Bug::StorageIgnored, age < age_max) {
                verdict.refusals.push(Refusal::StorageLease { age, age_max });
                verdict.look_at(at.after(age_max));
            }
        }
        StorageLease::Unread { why } => {
            verdict.refusals.push(Refusal::StorageLeaseUnread { why: why.clone() });
        }
        StorageLease::NotAsked => {
            let why = String::from("nobody asked for it");
            verdict.refusals.push(Refusal::StorageLeaseUnread { why });
        }
    }
}
