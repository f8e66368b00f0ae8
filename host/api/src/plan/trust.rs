//! Where a method connects, and what it cuts there, is not the word of the node that it fences.
//!
//! A kubelet can write its own Node's annotations, labels and addresses. If a device's address were taken
//! from there, a node could have the device's password sent to itself, or another machine cut in its place; and a
//! plug is which machine. So both are text or stand in the inventory, unless the admin trusts a field by name.

use super::expression::Expression;
use super::network_fence::CIDRS;
use super::plugins::{is_built_in, only_watches};
use super::source::{Does, Draft};
use crate::document::Problems;
use crate::plan::model::Builtin;

/// What to write instead, in a FenceConfiguration.
pub(super) const OF_FENCE_CONFIGURATION: &str =
    "expected text or ${inventory['…']}, or the same among trustedNodeFields";
/// The same in a ConfigMap, whose addresses are grants, too.
pub(super) const OF_CONFIG_MAP: &str =
    "expected text; only a FenceConfiguration can trust it, with trustedNodeFields and grants";

/// Says what a draft takes from its node that decides where it connects and what it cuts, beyond what is trusted.
pub(super) fn check(
    draft: &Draft,
    trusted: &[Expression],
    expected: &str,
    problems: &mut Problems,
) {
    let of_parameters = draft.parameters.iter().filter_map(|(name, value)| {
        let found = match takes(&draft.does, name) {
            Takes::Anything => None,
            Takes::Identity => value.distrusted_as_plug(trusted),
            Takes::Nothing => value.distrusted(trusted),
        };
        Some((found?, value))
    });
    let plug = draft.plug.distrusted_as_plug(trusted).map(|found| (found, &draft.plug));
    for (found, value) in of_parameters.chain(plug) {
        let sentence = format!("found {found}, which the node itself can write, {expected}");
        problems.push(value.spot.error(sentence));
    }
}

/// What a parameter may take from what a node says of itself.
enum Takes {
    Anything,
    /// What no other Node says, and what does not change.
    Identity,
    Nothing,
}

/// A parameter says where a method connects, or may say what it cuts there. What plugins from outside call it, nobody
/// here knows, and a webhook is told so by its paths and bodies.
fn takes(does: &Does, parameter: &str) -> Takes {
    let is_place = || {
        ["address", "url"].iter().any(|end| {
            parameter.strip_suffix(end).is_some_and(|stem| stem.is_empty() || stem.ends_with('-'))
        })
    };
    match does {
        // It is heard and never called: whose datagrams count, its grant says.
        Does::Plugin(plugin) if only_watches(plugin) => Takes::Anything,
        Does::Plugin(plugin) if is_built_in(plugin) && plugin != "webhook" && !is_place() => {
            Takes::Identity
        }
        Does::Plugin(_) => Takes::Nothing,
        Does::Builtin(Builtin::NetworkFence) if parameter == CIDRS => Takes::Nothing,
        Does::Builtin(_) | Does::Instance => Takes::Anything,
    }
}
