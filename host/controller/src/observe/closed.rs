//! Devices through which nothing is switched off: they failed to switch a machine on (rule A13).
//!
//! The records of the incidents say which (`onFailed`): until a later `on` of theirs works, or a
//! person acknowledges it. Nothing is remembered anywhere else.

use kube::ResourceExt as _;
use node_remedy_api::nodefence::{FailureKind, NodeFence, OnFailure};
use node_remedy_api::plan::{Method, NodePlan};
use node_remedy_api::time::Moment;
use node_remedy_decide::{ClosedDevice, Span, Time};

use super::Mirror;
use crate::cli::people::ACK;

/// Two devices of a kind that fail within this time speak against the kind.
const TOGETHER: Span = Span::minutes(60);

/// A device that failed to switch a machine on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failed {
    device: String,
    /// The plugin that speaks to it.
    kind: String,
    node: String,
    at: Time,
    /// It did not accept the credential: neither will others of its kind.
    is_denied: bool,
}

/// A device of this plan that is closed; what the incident `own` did is for its own retries.
pub fn device_of(plan: &NodePlan, mirror: &Mirror, own: Option<&str>) -> Option<ClosedDevice> {
    let nodefences = mirror.nodefences.all();
    let others = nodefences.values().map(|kept| &kept.0);
    let failed = others.filter(|one| Some(one.name_any().as_str()) != own).flat_map(failed_in);
    find(plan, &failed.collect::<Vec<_>>())
}

/// Whether a record keeps a device closed.
pub fn is_closing(nodefence: &NodeFence) -> bool {
    !failed_in(nodefence).is_empty()
}

fn find(plan: &NodePlan, failed: &[Failed]) -> Option<ClosedDevice> {
    let closes = |one: &&Failed| {
        plan.methods.iter().any(|method| {
            let of_kind = method.plugin.as_ref() == Some(&one.kind);
            let is_it = method.device == one.device;
            of_kind && (is_it || one.is_denied || is_one_of_two(one, failed))
        })
    };
    let found = failed.iter().find(closes)?;
    Some(ClosedDevice { device: found.device.clone(), node: found.node.clone() })
}

fn is_one_of_two(one: &Failed, failed: &[Failed]) -> bool {
    failed.iter().any(|other| {
        let apart = other.at.since(one.at).max(one.at.since(other.at));
        other.kind == one.kind && other.device != one.device && apart <= TOGETHER
    })
}

/// The devices that failed in one incident since somebody last acknowledged it.
fn failed_in(nodefence: &NodeFence) -> Vec<Failed> {
    let Some(status) = &nodefence.status else { return Vec::new() };
    let acknowledged = acknowledged_until(nodefence);
    let unseen = status.on_failed.iter().filter(|one| Some(one.at) > acknowledged);
    let failed = |one: &OnFailure| {
        let method: &Method = nodefence.spec.plan.methods.get(usize::try_from(one.method).ok()?)?;
        Some(Failed {
            device: method.device.clone(),
            kind: method.plugin.clone()?,
            node: nodefence.spec.node.name.clone(),
            at: Time(one.at.ms),
            is_denied: matches!(one.kind, FailureKind::Unauthenticated | FailureKind::Denied),
        })
    };
    unseen.filter_map(failed).collect()
}

/// What a person writes who has seen to the devices that failed in an incident so far: its UID,
/// and when the last of them failed. A later failure is not acknowledged by it.
pub fn acknowledgement(nodefence: &NodeFence) -> Option<String> {
    let last = nodefence.status.as_ref()?.on_failed.iter().map(|one| one.at.ms).max()?;
    Some(format!("{}/{last}", nodefence.uid()?))
}

fn acknowledged_until(nodefence: &NodeFence) -> Option<Moment> {
    let (uid, last) = nodefence.annotations().get(ACK)?.split_once('/')?;
    let is_of_this = Some(uid) == nodefence.uid().as_deref();
    is_of_this.then(|| last.parse().ok().map(Moment::from_ms))?
}

#[cfg(test)]
mod tests {
    use node_remedy_api::plan::Builtin;
    use node_remedy_decide::Hold;
    use node_remedy_world::facts::{Power, What};

    use super::*;
    use crate::refusals::{Reason, refusal_word};
    use crate::testing::night_of_a_failed_on;

    #[test]
    fn a_device_that_failed_to_switch_on_is_closed_until_somebody_acknowledges_it() {
        let played = night_of_a_failed_on();
        let is_cut = |what: &What| matches!(what, What::PowerChanged { power: Power::Off, .. });
        let cuts = played.facts.iter().filter(|fact| is_cut(&fact.what)).count();
        assert_eq!(cuts, 1, "it is not switched off again");
        let refused = played.collected.refused.iter().any(|refused| {
            matches!(&refused.reason, Reason::Hold(Hold::Gate(refusals))
                if refusals.iter().any(|one| refusal_word(one) == "DeviceClosed"))
        });
        assert!(refused, "and that is told");

        let (mut nodefence, ..) = played.collected.incidents.into_values().next().unwrap();
        let plan = nodefence.spec.plan.clone();
        let closed = find(&plan, &failed_in(&nodefence)).unwrap();
        assert_eq!(closed.node, "node-a");
        assert!(is_closing(&nodefence));
        let seen = acknowledgement(&nodefence).unwrap();
        let uid = nodefence.uid().unwrap();
        for (word, is_open) in [("another/9", false), (&*uid, false), (seen.as_str(), true)] {
            nodefence.annotations_mut().insert(ACK.to_owned(), word.to_owned());
            assert_eq!(find(&plan, &failed_in(&nodefence)).is_none(), is_open, "{word}");
        }
        let at = nodefence.status.as_ref().unwrap().on_failed[0].at;
        nodefence.status.as_mut().unwrap().on_failed[0].at = Moment::from_ms(at.ms + 1);
        assert!(is_closing(&nodefence), "what fails later was not acknowledged");

        nodefence.annotations_mut().clear();
        let mut other = plan.clone();
        other.methods.iter_mut().for_each(|method| method.device = "10.9.9.9".to_owned());
        assert_eq!(find(&other, &failed_in(&nodefence)), None, "another device of its kind");
        let failed = failed_in(&nodefence);
        let second = |device: &str, later: Span| {
            let mut second = failed.clone();
            for one in &mut second {
                one.device = device.to_owned();
                one.at = one.at.after(later);
            }
            [failed.clone(), second].concat()
        };
        assert!(find(&other, &second("10.9.9.8", Span::minutes(59))).is_some(), "two in an hour");
        assert_eq!(find(&other, &second("10.9.9.8", Span::minutes(61))), None);
        let same = failed[0].device.clone();
        assert_eq!(find(&other, &second(&same, Span::minutes(1))), None, "one device, twice");
        nodefence.status.as_mut().unwrap().on_failed[0].kind = FailureKind::Denied;
        assert!(find(&other, &failed_in(&nodefence)).is_some(), "the credential is the fleet's");

        // The API server refused it: no device did, and other nodes' NetworkFences are not theirs.
        let as_network_fence = |method: &mut Method| {
            method.plugin = None;
            method.builtin = Some(Builtin::NetworkFence);
        };
        nodefence.spec.plan.methods.iter_mut().for_each(as_network_fence);
        for plan in [&plan, &other, &nodefence.spec.plan] {
            assert_eq!(find(plan, &failed_in(&nodefence)), None, "a 403 closes nothing");
        }
        assert!(!is_closing(&nodefence));
    }
}
