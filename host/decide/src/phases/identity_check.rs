//! P8: whose machine a device says that it is.

use crate::bug::{Bug, is_seeded};
use crate::draft::{Draft, Flow};
use crate::identity::{Match, made_anew, matches};
use crate::retry::park;
use crate::{End, MethodIndex, Operation, Rule};

/// P8: a machine that is not the node is never touched.
pub(crate) fn stop_if_other_machine(
    draft: &mut Draft<'_>,
    index: MethodIndex,
    identity: &[(alloc::string::String, alloc::string::String)],
) -> Option<Flow> {
    let method = draft.plan.method(index)?;
    match matches(method, identity, draft.policy.identity) {
        Match::Same => {
            let reason = made_anew(&draft.record, index, identity)?;
            draft.rule(Rule::P8);
            Some(park(draft, reason))
        }
        Match::Stop(_) if is_seeded(Bug::IdentityUnchecked) => None,
        Match::Stop(reason) => {
            draft.rule(Rule::P8);
            Some(park(draft, reason))
        }
    }
}

/// P8: whether what was read names another machine than the node's, or none although it has to.
pub(crate) fn is_other_machine(draft: &Draft<'_>, read: &Operation) -> bool {
    let Some(End::Succeeded { identity, .. }) = &read.end else { return false };
    let found =
        draft.plan.method(read.method).map(|one| matches(one, identity, draft.policy.identity));
    let is_stop = matches!(found, Some(Match::Stop(_))) && !is_seeded(Bug::IdentityUnchecked);
    is_stop || made_anew(&draft.record, read.method, identity).is_some()
}
