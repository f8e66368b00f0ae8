//! Whether a plug that was switched off fed another machine than it is said to (rule P8): another node fell silent then.
//!
//! An outlet knows no machine, so only other nodes' signs of life speak against a wrong wiring table. Any node may hang on
//! the outlet, whatever its own plan says. A node is heard by a renewal clearly later than the last off. It does not count
//! if it was silent before the first off, or if its own incident explains its silence. A second plug of a device waits
//! until the first is proven; two that began at once do not. Not here: what follows, which `decide` says.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::coordination::v1::Lease;
use node_remedy_api::nodefence::{self as api, NodeFence};
use node_remedy_api::plan::{Binding as BindingWritten, NodePlan, PluginKind};
use node_remedy_decide::bug::{Bug, is_sown};
use node_remedy_decide::{
    Action, Binding, Kind, Method, Neighbours, Operation, Phase, Plan, Record, Span, Time,
};

use super::live::timed;
use super::seen::{LeaseSeen, NodeSeen};
use super::signs::LEASE;
use super::view::is_open;
use super::{NODE_LEASES, lease_key};
use crate::clock::{Clock, time_of};
use crate::cluster::{At, Cluster};
use crate::reconcile::Incident;

/// A neighbour that is not heard for so long after the off fell silent by it. Until then its Lease may
/// be told late.
const SILENT_AFTER: Span = Span::seconds(60);
/// What nobody told for so long may have happened all the same: nobody is called silent meanwhile.
const TOLD_WITHIN: Span = Span::seconds(10);
/// A renewal that was on its way when the machine was cut may arrive so much later.
const ON_ITS_WAY: Span = Span::seconds(5);
/// After this time an off that was not proven no longer holds up its neighbours.
const IN_QUESTION: Span = Span::seconds(90);
/// So many of their Leases are read live in one look; the others are waited for.
const READS_MAX: usize = 16;

/// What became of the neighbours of an incident's plugs. One that seems silent is asked for by name: the watch of
/// Leases may be late.
///
/// What was read stays in `live`, as a watch that is late for many tells of nobody for long.
pub async fn of<C: Cluster>(
    incident: &Incident<C>,
    live: &mut BTreeMap<String, LeaseSeen>,
) -> Neighbours {
    let parts = &incident.parts;
    let mut read = BTreeSet::new();
    loop {
        let found = by_caches(incident, live);
        if Cut::of(&incident.plan, &incident.record).is_none() {
            live.clear();
        }
        let Neighbours::Silent(name) = &found else { return found };
        if read.contains(name) || is_sown(Bug::NeighbourLeasesNotRead) {
            return found;
        }
        if read.len() >= READS_MAX {
            return Neighbours::Awaited;
        }
        let at = At::within(NODE_LEASES, name);
        let Ok(lease) = parts.cluster.get::<Lease>(at).await else { return Neighbours::Awaited };
        read.insert(name.clone());
        let lease = lease.and_then(|one| timed(&parts.mirror, &parts.clock, one));
        live.extend(lease.map(|lease| (name.clone(), lease)));
    }
}

/// The same from the caches, with Leases that were read live in place of theirs.
fn by_caches<C: Cluster>(incident: &Incident<C>, live: &BTreeMap<String, LeaseSeen>) -> Neighbours {
    let Some(cut) = Cut::of(&incident.plan, &incident.record) else { return Neighbours::Heard };
    let parts = &incident.parts;
    let (mirror, now) = (&parts.mirror, parts.clock.now());
    let (nodes, leases) = (mirror.nodes.all(), mirror.leases.all());
    let nodefences = mirror.nodefences.all();
    let is_explained = |node: &NodeSeen, lease: Option<&LeaseSeen>| {
        let mut open = nodefences.values().map(|kept| &kept.0).filter(|one| is_open(one));
        open.any(|one| one.spec.node.uid == node.uid && cut.is_explained(one, lease))
    };
    let target = &incident.nodefence.spec.node.name;
    let others = nodes.values().filter(|node| node.name != *target);
    let lease_of = |name: &str| {
        let told = leases.get(&lease_key(name));
        told.into_iter().chain(live.get(name)).max_by_key(|lease| lease.observed)
    };
    let unheard = others
        .map(|node| (node, lease_of(&node.name)))
        .filter(|(node, lease)| !cut.is_settled(node, *lease, &parts.clock))
        .filter(|(node, lease)| !is_explained(node, *lease));
    let mut found = Neighbours::Heard;
    // A node without a Lease gives no sign of life that could be missed.
    for (node, lease) in unheard.filter_map(|(node, lease)| Some((node, lease?))) {
        if cut.is_judged(lease, now, mirror.heard()) {
            return Neighbours::Silent(node.name.clone());
        }
        found = Neighbours::Awaited;
    }
    found
}

/// Offs of this process that no proof has followed yet: which devices are busy with one.
#[derive(Debug, Default)]
pub struct UnprovenOffs {
    by_node: RefCell<BTreeMap<String, Switched>>,
}

/// What one incident switched off.
#[derive(Debug)]
struct Switched {
    devices: BTreeSet<String>,
    until: Time,
}

impl UnprovenOffs {
    /// Updates what is known of an incident. Called before its record is written, so that no second off begins meanwhile.
    pub fn note(&self, node: &str, plan: &Plan, record: &Record) {
        let proof = record.proof.as_ref().filter(|proof| proof.voided_at.is_none());
        let proven_at = proof.map(|proof| proof.at).unwrap_or_default();
        let offs = standing_offs(plan, record);
        let offs: Vec<_> = offs.filter(|(method, _)| is_labelled_outlet(method)).collect();
        let last = offs.iter().map(|(_, off)| ended_at(off)).max();
        let last = last.filter(|last| record.parked.is_none() && *last > proven_at);
        let Some(last) = last else { return self.forget(node) };
        let devices = offs.into_iter().map(|(method, _)| method.device.clone()).collect();
        let switched = Switched { devices, until: last.after(IN_QUESTION) };
        self.by_node.borrow_mut().insert(node.to_owned(), switched);
    }

    /// An incident is over.
    pub fn forget(&self, node: &str) {
        self.by_node.borrow_mut().remove(node);
    }

    /// Another node whose unproven off used one of these devices. `None` if this node has one there, too: of two that began
    /// at once neither waits.
    fn in_the_way(&self, node: &str, devices: &BTreeSet<&str>, now: Time) -> Option<String> {
        let by_node = self.by_node.borrow();
        let shares = |one: &Switched| {
            now < one.until && one.devices.iter().any(|device| devices.contains(device.as_str()))
        };
        if by_node.get(node).is_some_and(shares) {
            return None;
        }
        by_node.iter().find(|(_, one)| shares(one)).map(|(other, _)| other.clone())
    }
}

/// The node whose off has to be proven before this one's plugs of the same device are switched.
pub fn unverified<C: Cluster>(incident: &Incident<C>) -> Option<String> {
    let methods = incident.plan.methods.iter().filter(|method| is_labelled_outlet(method));
    let devices: BTreeSet<&str> = methods.map(|method| method.device.as_str()).collect();
    let parts = &incident.parts;
    parts.unproven.in_the_way(incident.node(), &devices, parts.clock.now())
}

/// Whether it is a power plug that the configuration alone binds to the node: an outlet of a PDU.
fn is_labelled_outlet(method: &Method) -> bool {
    matches!(method.kind, Kind::Power(_)) && knows_no_machine(method)
}

/// A plug is bound to its node by the configuration alone.
fn knows_no_machine(method: &Method) -> bool {
    method.binding == Binding::Labelled
}

/// Whether a plan switches plugs that know no machine. Unverified ones are not switched.
fn uses_outlets(plan: &NodePlan) -> bool {
    let mut facts = plan.methods.iter().filter_map(|method| method.facts.as_ref());
    facts.any(|facts| {
        facts.kind == PluginKind::Power
            && matches!(facts.binding, BindingWritten::Verified | BindingWritten::Labelled)
    })
}

fn ended_at(off: &Operation) -> Time {
    off.ended_at.unwrap_or(off.intended_at)
}

/// The offs of plugs that know no machine, since such a plug was last switched on: what an earlier pass switched off and
/// on again is not cut now.
fn standing_offs<'a>(
    plan: &'a Plan,
    record: &'a Record,
) -> impl Iterator<Item = (&'a Method, &'a Operation)> {
    let switched = record.operations.iter().filter(|one| one.may_have_acted()).filter_map(|one| {
        let method = plan.method(one.method).filter(|method| knows_no_machine(method))?;
        Some((method, one))
    });
    let is_on = |(_, one): &(&Method, &Operation)| one.action == Action::On;
    let on = switched.clone().filter(is_on).map(|(_, one)| one.id).max();
    switched.filter(move |(_, one)| {
        matches!(one.action, Action::Off | Action::Reset) && Some(one.id) > on
    })
}

/// When such plugs had been read as off: a slow one may go off long after its call, and `decide` notes the baseline only after
/// that.
fn read_off_at(record: &Record) -> Time {
    let baseline = record.baseline.as_ref().filter(|_| !is_sown(Bug::LateOutletBelieved));
    baseline.map(|baseline| baseline.at).unwrap_or_default()
}

/// When plugs that know no machine were switched off.
#[derive(Debug, PartialEq, Eq)]
struct Cut {
    first: Time,
    last: Time,
}

impl Cut {
    /// None where no such plug was, or nothing is to be proven.
    fn of(plan: &Plan, record: &Record) -> Option<Self> {
        if !matches!(record.phase, Phase::VerifyingOff | Phase::Restoring) {
            return None;
        }
        let offs = || standing_offs(plan, record);
        Some(Self {
            first: offs().map(|(_, off)| off.intended_at).min()?,
            last: offs().map(|(_, off)| ended_at(off)).max()?.max(read_off_at(record)),
        })
    }

    /// Whether a node was heard since, or was silent before anything was switched off. What a process
    /// found when it started to look is no renewal.
    fn is_settled(&self, node: &NodeSeen, lease: Option<&LeaseSeen>, clock: &Clock) -> bool {
        let ready = node.conditions.get("Ready");
        let was_silent = ready
            .is_some_and(|ready| ready.status == "Unknown" && clock.when(ready.since) < self.first);
        was_silent
            || lease.is_some_and(|lease| {
                lease.observed.after(overdue(lease)) < self.first
                    || lease.was_renewed() && lease.renewed_at() > self.last.after(ON_ITS_WAY)
            })
    }

    /// Whether a node's own incident tells why it is not heard: its Lease was not renewed since that incident proved it
    /// off, or, in its first pass, since it was opened for that silence.
    fn is_explained(&self, nodefence: &NodeFence, lease: Option<&LeaseSeen>) -> bool {
        let Some(status) = &nodefence.status else { return false };
        let stamp = lease.and_then(|lease| lease.renewed.parse::<jiff::Timestamp>().ok());
        let Some((lease, stamp)) = lease.zip(stamp) else { return false };
        let is_unheard = |signs: &api::Signs| {
            signs.lease_renewed.is_some_and(|at| Time(at.ms) == time_of(&stamp))
        };
        let proof = status.proof.as_ref().filter(|proof| proof.voided_at.is_none());
        let is_off = proof.is_some_and(|proof| {
            // A BMC that reads off has power; an outlet may be off for another one's sake.
            proof.grade == api::Grade::PowerOffVerified
                && (Time(proof.at.ms) <= self.first || !uses_outlets(&nodefence.spec.plan))
                && is_unheard(&proof.signs)
        });
        let trigger = &nodefence.spec.trigger;
        let silent_since = Time(trigger.since.ms).after(overdue(lease));
        let was_silent = trigger.condition_type == LEASE
            && status.attempt == 1
            && is_unheard(&status.signs_at_open)
            && silent_since < self.first;
        is_off || was_silent
    }

    /// Whether a node that was not heard had its time, with somebody to tell of it.
    fn is_judged(&self, lease: &LeaseSeen, now: Time, heard: Time) -> bool {
        let since = self.last.max(lease.observed);
        now >= since.after(SILENT_AFTER) && now < heard.after(TOLD_WITHIN)
    }
}

/// After so long without a renewal a kubelet is silent.
fn overdue(lease: &LeaseSeen) -> Span {
    Span(lease.duration_s.saturating_mul(1_000) * 3 / 10)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::Lease;
    use serde_json::json;

    use super::*;
    use crate::clock::{Clock, VirtualClock, timestamp};

    const CUT: Time = Time(1_000_000_000_000);

    fn cut() -> Cut {
        Cut { first: CUT, last: CUT.after(Span::seconds(2)) }
    }

    fn node(ready: &str, since: Time) -> NodeSeen {
        let condition = json!({
            "type": "Ready", "status": ready, "lastTransitionTime": timestamp(since).to_string(),
        });
        let object = json!({
            "metadata": {"name": "node-b", "uid": "u"}, "status": {"conditions": [condition]},
        });
        NodeSeen::of(serde_json::from_value(object).unwrap()).unwrap()
    }

    fn lease(renewed: Time) -> LeaseSeen {
        let stamp = format!("{:.6}", timestamp(renewed));
        let object = json!({
            "metadata": {"name": "node-b"},
            "spec": {"renewTime": stamp, "leaseDurationSeconds": 40},
        });
        let lease: Lease = serde_json::from_value(object).unwrap();
        LeaseSeen::of(lease, renewed).unwrap()
    }

    /// As a process sees it that saw the renewal before, too.
    fn renewed_at(time: Time) -> LeaseSeen {
        lease(time).after(&lease(Time(time.0 - 10_000)))
    }

    /// What an outlet proved later may be off for another one's sake, whether it was verified or not.
    #[test]
    fn an_outlet_knows_no_machine_verified_or_not() {
        let switched = [("verified", true), ("labelled", true)];
        let not = [("reported", false), ("unverified", false)];
        for (binding, is_outlet) in switched.into_iter().chain(not) {
            let facts =
                json!({"digest": "d", "kind": "power", "feed": "whole", "binding": binding});
            let method = json!({"name": "power", "plugin": "p", "facts": facts});
            let methods = vec![serde_json::from_value(method).unwrap()];
            let plan = NodePlan { methods, ..NodePlan::default() };
            assert_eq!(uses_outlets(&plan), is_outlet, "{binding}");
        }
    }

    #[test]
    fn a_neighbour_is_heard_or_awaited_or_fell_silent() {
        let clock = Clock::simulated(VirtualClock::start_at(CUT));
        let at = |seconds: i64| Time(CUT.0.saturating_add_signed(seconds * 1_000));
        let settled = |node: &NodeSeen, renewed: i64| {
            cut().is_settled(node, Some(&renewed_at(at(renewed))), &clock)
        };
        let was_well = node("True", at(-500));
        let cases = [
            ("heard since", &was_well, 8, true),
            ("renewed before the off ended, or on its way then", &was_well, 6, false),
            ("renewed just before", &was_well, -9, false),
            ("silent before", &was_well, -13, true),
            ("said to be down before", &node("Unknown", at(-1)), -9, true),
            ("said to be down since", &node("Unknown", at(1)), -9, false),
            ("not ready before, and its kubelet runs", &node("False", at(-500)), -9, false),
        ];
        for (case, node, renewed, expected) in cases {
            assert_eq!(settled(node, renewed), expected, "{case}");
        }
        assert!(!cut().is_settled(&was_well, None, &clock), "one without a Lease is not heard");
        let listed = lease(at(30));
        let is_heard = cut().is_settled(&was_well, Some(&listed), &clock);
        assert!(!is_heard, "what a process finds when it starts may be old");

        let renewed = renewed_at(at(-5));
        let judged = |lease, now, heard| cut().is_judged(lease, at(now), at(heard));
        assert!(!judged(&renewed, 61, 61), "a Lease may be told late");
        assert!(judged(&renewed, 62, 62));
        assert!(!judged(&renewed, 62, 52), "nobody tells anything");
        assert!(!judged(&listed, 89, 89), "nor is it judged by who just started");
        assert!(judged(&listed, 90, 90));
    }
}
