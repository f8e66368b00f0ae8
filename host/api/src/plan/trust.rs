//! Where a method connects is not the word of the node that it fences.
//!
//! A kubelet can write its own Node's annotations, labels and addresses. If a device's address were taken
//! from there, a node could have the device's password sent to itself, or another machine cut in its place.
//! So an address is text or stands in the inventory, unless the admin trusts a field by name.

use super::Builtin;
use super::expression::Expression;
use super::network_fence::CIDRS;
use super::plugins::{is_known, only_watches};
use super::source::{Does, Draft};
use crate::document::{Problem, Problems};

/// What to write instead, in a FenceConfiguration.
pub(super) const OF_FENCE_CONFIGURATION: &str =
    "expected text or ${inventory['…']}, or the same among trustedNodeFields";
/// The same in a ConfigMap, whose addresses are grants, too.
pub(super) const OF_CONFIG_MAP: &str =
    "expected text; only a FenceConfiguration can trust it, with trustedNodeFields and grants";

/// Says what a draft takes from its node that decides where it connects, beyond what is trusted.
pub(super) fn check(
    draft: &Draft,
    trusted: &[Expression],
    expected: &str,
    problems: &mut Problems,
) {
    let places = draft.parameters.iter().filter(|(name, _)| is_place(&draft.does, name));
    for problem in places.filter_map(|(_, value)| refusal(value, trusted, expected)) {
        problems.push(problem);
    }
}

fn refusal(value: &Expression, trusted: &[Expression], expected: &str) -> Option<Problem> {
    let found = value.distrusted(trusted)?;
    Some(value.spot.error(format!("found {found}, which the node itself can write, {expected}")))
}

/// Whether a parameter says where a method connects. What plugins from outside call it, nobody here knows.
fn is_place(does: &Does, parameter: &str) -> bool {
    match does {
        // It is heard and never called: whose datagrams count, its grant says.
        Does::Plugin(plugin) if only_watches(plugin) => false,
        Does::Plugin(plugin) if is_known(plugin) => ["address", "url"].iter().any(|end| {
            parameter.strip_suffix(end).is_some_and(|stem| stem.is_empty() || stem.ends_with('-'))
        }),
        Does::Plugin(_) => true,
        Does::Builtin(builtin) => *builtin == Builtin::NetworkFence && parameter == CIDRS,
        Does::Instance => false,
    }
}
