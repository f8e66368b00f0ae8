//! Whether a plug that was switched off feeds another machine than configured (rule P8): another node fell silent or rebooted.
//!
//! An outlet knows no machine, so only other nodes' signs of life can refute the wiring table. Any node may hang on the
//! outlet, whatever its own plan says. A node is cleared if it renews its Lease clearly after the last off and still runs
//! the same boot: a plug that comes on again boots its machine. It is also cleared if it was silent before the first off,
//! or if its own incident explains its silence. Not here: what follows, which `decide` says.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::coordination::v1::Lease;
use node_remedy_api::nodefence as api;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::plan::{Binding as BindingWritten, NodePlan, PluginKind};
use node_remedy_config::symptoms::LEASE;
use node_remedy_decide::bug::{Bug, guard, is_seeded};
use node_remedy_decide::{Action, Neighbours, Phase, Plan, Record, Span, Time};
use node_remedy_observe::caches::{NODE_LEASES, lease_key};
use node_remedy_observe::condition_history::Changes;
use node_remedy_observe::live::timed;
use node_remedy_observe::off_sightings::Sightings;
use node_remedy_observe::offs::{ended_at, standing_offs, switched};
use node_remedy_observe::pruned::{PrunedLease, PrunedNode};
use node_remedy_observe::view::boot_heard_at;
use node_remedy_runtime::clock::{Clock, time_of};
use node_remedy_runtime::cluster::{At, Cluster};

use crate::state::Incident;

/// A neighbour that is not heard for so long after the off fell silent by it. Until then its Lease may
/// be told late.
const SILENT_AFTER: Span = Span::seconds(60);
/// What nobody told for so long may have happened all the same: nobody is called silent meanwhile.
const TOLD_WITHIN: Span = Span::seconds(10);
/// A renewal that was on its way when the machine was cut may arrive so much later.
const ON_ITS_WAY: Span = Span::seconds(5);
/// A node that renews its Lease again reports its boot ID in its Node object within this time.
const BOOT_TOLD_WITHIN: Span = Span::seconds(30);
/// A machine is taken to need at least so long from the first off to the report of its next boot. A faster one is missed.
const BOOT_TAKES_AT_LEAST: Span = Span::seconds(5);
/// An outlet may go off so much later than its plugin says.
const LANDS_LATE_BY: Span = Span::seconds(60);
/// So many of their Leases are read live in one look; the others are waited for.
const READS_MAX: usize = 16;

/// What became of the neighbours of an incident's plugs. One that seems silent is asked for by name: the watch of
/// Leases may be late.
///
/// What was read stays in `live`, as a watch that is late for many tells of nobody for long.
pub async fn of<C: Cluster>(
    incident: &Incident<C>,
    live: &mut BTreeMap<String, PrunedLease>,
) -> Neighbours {
    let context = &incident.context;
    let mut read = BTreeSet::new();
    loop {
        let Some(cut) = cut_of(incident) else {
            live.clear();
            return Neighbours::Heard;
        };
        let found = by_caches(incident, &cut, live);
        let Neighbours::Silent(name) = &found else { return found };
        if read.contains(name) || is_seeded(Bug::NeighbourLeasesNotRead) {
            return found;
        }
        if read.len() >= READS_MAX {
            return Neighbours::Awaited;
        }
        let at = At::within(NODE_LEASES, name);
        let Ok(lease) = context.cluster.get::<Lease>(at).await else { return Neighbours::Awaited };
        read.insert(name.clone());
        let lease = lease.and_then(|one| timed(&context.caches, &context.clock, one));
        live.extend(lease.map(|lease| (name.clone(), lease)));
    }
}

fn cut_of<C: Cluster>(incident: &Incident<C>) -> Option<Cut> {
    let seen = incident.context.caches.off_sightings.of(&incident.name());
    Cut::of(&incident.plan, &incident.record, &seen)
}

/// The same from the caches, with Leases that were read live in place of theirs.
fn by_caches<C: Cluster>(
    incident: &Incident<C>,
    cut: &Cut,
    live: &BTreeMap<String, PrunedLease>,
) -> Neighbours {
    let context = &incident.context;
    let (caches, now) = (&context.caches, context.clock.now());
    let (nodes, leases) = (caches.nodes.all(), caches.leases.all());
    let nodefences = caches.nodefences.all();
    let mut by_node: BTreeMap<&str, Vec<&NodeFence>> = BTreeMap::new();
    for kept in nodefences.values() {
        by_node.entry(&kept.0.spec.node.uid).or_default().push(&kept.0);
    }
    let is_doubtful = context.clock.is_doubtful();
    let target = &incident.nodefence.spec.node.name;
    let others = nodes.values().filter(|node| node.name != *target);
    let lease_of = |name: &str| {
        let told = leases.get(&*lease_key(name));
        told.into_iter().chain(live.get(name)).max_by_key(|lease| lease.observed)
    };
    let mut found = Neighbours::Heard;
    // A node without a Lease gives no sign of life that could be missed.
    for (node, lease) in others.filter_map(|node| Some((node, lease_of(&node.name)?))) {
        let own = by_node.get(node.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
        let booted_at = boot_heard_at(node, own, caches.changes.rebooted_at(node));
        let ready = ready_of(node, &caches.changes, &context.clock);
        let mut is_explained = own.iter().map(|one| cut.is_explained(one, lease, is_doubtful));
        if cut.is_settled(ready, lease, booted_at, now) || is_explained.any(|is| is) {
            continue;
        }
        if cut.has_booted(lease, booted_at) || cut.is_judged(lease, now, caches.heard()) {
            return Neighbours::Silent(node.name.clone());
        }
        found = Neighbours::Awaited;
    }
    found
}

/// Whether a plan switches plugs that know no machine. Unverified ones are not switched.
fn uses_outlets(plan: &NodePlan) -> bool {
    let mut facts = plan.methods.iter().filter_map(|method| method.facts.as_ref());
    facts.any(|facts| {
        facts.kind == PluginKind::Power
            && matches!(facts.binding, BindingWritten::Verified | BindingWritten::Labelled)
    })
}

/// When earlier passes had such plugs off: from the first off to the end of the `on` after it.
fn earlier_offs(plan: &Plan, record: &Record) -> Vec<(Time, Time)> {
    let (mut off, mut times) = (None, Vec::new());
    for (_, one) in switched(plan, record) {
        if one.action == Action::On {
            times.extend(off.take().map(|off| (off, ended_at(one))));
        } else if one.cuts() {
            off.get_or_insert(one.intended_at);
        }
    }
    times
}

/// When all such plugs had read off. A slow outlet goes off long after its call; `decide` sets the baseline only once it
/// reads off.
fn read_off_at(record: &Record, seen: &Sightings) -> Time {
    let baseline = record.baseline.as_ref().filter(|_| !is_seeded(Bug::LateOutletBelieved));
    let seen_at = seen.baseline_seen_at().unwrap_or_default();
    baseline.map(|baseline| baseline.at.max(seen_at)).unwrap_or_default()
}

/// What a node's Ready condition says, by our own clock.
#[derive(Debug, Clone, Copy, Default)]
struct Ready {
    /// When it became Unknown, if it is. Setting the server's clock cannot make this earlier.
    unknown_since: Option<Time>,
    /// When its kubelet last reported it.
    reported_at: Time,
}

fn ready_of(node: &PrunedNode, changes: &Changes, clock: &Clock) -> Ready {
    let Some(ready) = node.conditions.get("Ready") else { return Ready::default() };
    let reported_at = ready.reported_at(clock).unwrap_or_default();
    let unknown_since = (ready.status == "Unknown").then(|| {
        let since = changes.began(node, "Ready", clock.when(ready.since), clock.now());
        if clock.is_doubtful() { since.max(changes.begun_at()) } else { since }
    });
    Ready { unknown_since, reported_at }
}

/// The period in which plugs that know no machine were switched off. The record and this process may disagree by which
/// clock: the wider period counts.
#[derive(Debug, PartialEq, Eq)]
struct Cut {
    /// When the first off began, at the earliest.
    first: Time,
    /// When the last off ended, at the latest.
    last: Time,
    /// When all of them had gone off: a PDU that is read hours later does not make its outlets go off later.
    landed: Time,
    /// From when to when earlier passes had them off.
    earlier: Vec<(Time, Time)>,
}

impl Cut {
    /// `None` if no such plug was switched off, or nothing is being verified.
    fn of(plan: &Plan, record: &Record, seen: &Sightings) -> Option<Self> {
        if !matches!(record.phase, Phase::VerifyingOff | Phase::Restoring) {
            return None;
        }
        let offs = || standing_offs(plan, record).map(|(_, off)| off);
        let began = offs()
            .map(|off| seen.intent_seen_at(off.id).unwrap_or(off.intended_at).min(off.intended_at));
        let ended =
            offs().map(|off| seen.last_seen_at(off.id).unwrap_or_default().max(ended_at(off)));
        let ended = ended.max()?;
        let lands = offs().map(|off| off.lands_until(plan)).max()?.after(LANDS_LATE_BY);
        let last = ended.max(read_off_at(record, seen));
        let landed = last.min(ended.max(lands));
        Some(Self { first: began.min()?, last, landed, earlier: earlier_offs(plan, record) })
    }

    /// Whether a node is cleared: heard since the last off in the same boot, or silent before the first. A Lease that a
    /// process only found at its start is no renewal.
    fn is_settled(&self, ready: Ready, lease: &PrunedLease, booted_at: Time, now: Time) -> bool {
        self.was_silent_before(ready, lease)
            || self.is_heard(lease)
                && !self.has_booted(lease, booted_at)
                && self.is_boot_told(lease, ready.reported_at, now)
    }

    /// Whether a node was heard since the last off.
    fn is_heard(&self, lease: &PrunedLease) -> bool {
        lease.was_renewed() && lease.renewed_at() > self.last.after(ON_ITS_WAY)
    }

    /// Whether a node was silent before the first off, by its Lease or its Ready condition.
    fn was_silent_before(&self, ready: Ready, lease: &PrunedLease) -> bool {
        // A node that boots renews its Lease before its Ready condition changes.
        let was_heard = |since: Time| lease.was_renewed() && lease.observed > since;
        let was_unknown =
            ready.unknown_since.is_some_and(|since| since < self.first && !was_heard(since));
        was_unknown && !self.fell_silent_in_earlier_pass(lease, lease.observed)
            || self.fell_silent_before(lease, lease.observed)
    }

    /// Whether a node that was heard at this time, and then no more, was silent before the first off.
    fn fell_silent_before(&self, lease: &PrunedLease, heard: Time) -> bool {
        heard.after(overdue(lease)) < self.first && !self.fell_silent_in_earlier_pass(lease, heard)
    }

    /// Whether a node that was heard at this time, and then no more, fell silent by an off of an earlier pass.
    fn fell_silent_in_earlier_pass(&self, lease: &PrunedLease, heard: Time) -> bool {
        self.earlier
            .iter()
            .any(|(off, on)| heard.after(overdue(lease)) >= *off && heard <= on.after(ON_ITS_WAY))
    }

    /// The node's last silence, if it ended after the first off.
    fn ended_silence(&self, lease: &PrunedLease) -> Option<(Time, Time)> {
        lease.silence.filter(|(_, ended)| *ended > self.first)
    }

    /// Whether the plugs may have caused a silence that began after this renewal.
    fn may_have_caused(&self, lease: &PrunedLease, renewed: Time) -> bool {
        !self.fell_silent_before(lease, renewed) && renewed <= self.landed.after(ON_ITS_WAY)
    }

    /// Whether a node booted after the first off, and the plugs may have caused that.
    fn has_booted(&self, lease: &PrunedLease, booted_at: Time) -> bool {
        let is_excused = lease.silence.is_some_and(|(before, ended)| {
            !self.may_have_caused(lease, before) && self.excuses(ended, booted_at)
        });
        guard(Bug::NeighbourBootsIgnored, booted_at > self.first && !is_excused)
    }

    /// Whether a silence that the plugs did not cause excuses this boot. It does if it ended after the plugs had gone off. If it
    /// ended earlier, the plugs may have rebooted the node since: then the boot must have been reported soon after that end, and
    /// too soon after the first off for the plugs to have caused it.
    fn excuses(&self, silence_ended: Time, booted_at: Time) -> bool {
        if silence_ended > self.landed.after(ON_ITS_WAY) {
            return true;
        }
        let until =
            silence_ended.after(BOOT_TOLD_WITHIN).min(self.first.after(BOOT_TAKES_AT_LEAST));
        booted_at <= until || is_seeded(Bug::OldSilenceExcusesBoots)
    }

    /// Whether the Node object is newer than the node's silence, so that its boot ID can be trusted. A booting kubelet may
    /// renew its Lease first.
    fn is_boot_told(&self, lease: &PrunedLease, reported_at: Time, now: Time) -> bool {
        let silence = self.ended_silence(lease);
        silence.filter(|(before, _)| self.may_have_caused(lease, *before)).is_none_or(
            |(before, ended)| {
                reported_at > before.after(overdue(lease)) || now > ended.after(BOOT_TOLD_WITHIN)
            },
        )
    }

    /// Whether the node's own incident explains its silence: it proved the node off, or, in its first attempt, was opened
    /// for that very silence.
    fn is_explained(&self, nodefence: &NodeFence, lease: &PrunedLease, is_doubtful: bool) -> bool {
        let Some(status) = &nodefence.status else { return false };
        let proof = status.proof.as_ref().filter(|proof| proof.voided_at.is_none());
        let trigger = &nodefence.spec.trigger;
        // The trigger's time may be the server's: it does not count while that clock is in doubt.
        let was_silent = !is_doubtful
            && !self.fell_silent_in_earlier_pass(lease, lease.observed)
            && trigger.condition_type == LEASE
            && status.attempt == 1
            && is_unheard(lease, &status.liveness_at_open)
            && Time(trigger.since.ms).after(overdue(lease)) < self.first;
        let (plan, operations) = (&nodefence.spec.plan, &status.operations);
        was_silent || proof.is_some_and(|proof| self.was_off(proof, plan, operations, lease))
    }

    /// Whether the node's own incident switched it off while it was still heard. An outlet does not count: it may be off for
    /// another machine. A BMC counts even while the plugs are off: its answer shows that its machine had power.
    fn was_off(
        &self,
        proof: &api::Proof,
        plan: &NodePlan,
        operations: &[api::Operation],
        lease: &PrunedLease,
    ) -> bool {
        let at = Time(proof.at.ms);
        let ended = self.ended_silence(lease);
        let ended = ended.filter(|(before, ended)| *before <= at && at <= *ended);
        let silent_since = ended.map_or(lease.observed, |(before, _)| before);
        let is_by_it = |one: &api::Operation| {
            matches!(one.action, api::Action::Off | api::Action::Reset)
                && one.intended_at.ms.abs_diff(silent_since.0) <= overdue(lease).0
        };
        let is_by_its_bmc = at >= self.last
            && !uses_outlets(plan)
            && (operations.iter().any(is_by_it) || is_seeded(Bug::LaterOffExplains));
        proof.grade == api::Grade::PowerOffVerified
            && (at <= self.first && !self.fell_silent_in_earlier_pass(lease, silent_since)
                || is_by_its_bmc)
            && (ended.is_some() && self.is_heard(lease) || is_unheard(lease, &proof.liveness))
    }

    /// Whether a node that was not heard had its time, with somebody to tell of it.
    fn is_judged(&self, lease: &PrunedLease, now: Time, heard: Time) -> bool {
        let since = self.last.max(lease.observed);
        let silent_after = SILENT_AFTER.max(Span::seconds(lease.duration_s));
        now >= since.after(silent_after) && now < heard.after(TOLD_WITHIN)
    }
}

/// Whether a Lease was not renewed since these signs of life.
fn is_unheard(lease: &PrunedLease, liveness: &api::Liveness) -> bool {
    let renewed = lease.renewed.parse::<jiff::Timestamp>().ok();
    let known = liveness.lease_renewed.map(|at| Time(at.ms));
    known.zip(renewed).is_some_and(|(known, renewed)| known == time_of(&renewed))
}

/// After so long without a renewal a kubelet is silent: one and a half intervals, 15 s for a Lease of 40 s. A renewal may be some
/// seconds late.
fn overdue(lease: &PrunedLease) -> Span {
    Span(lease.duration_s.saturating_mul(1_000) * 3 / 8)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::Lease;
    use node_remedy_api::time::Moment;
    use serde_json::json;

    use super::*;
    use node_remedy_runtime::clock::timestamp;
    use node_remedy_runtime::virtual_clock::VirtualClock;

    const CUT: Time = Time(1_000_000_000_000);

    fn cut() -> Cut {
        let last = CUT.after(Span::seconds(2));
        Cut { first: CUT, last, landed: last, earlier: Vec::new() }
    }

    fn lease(renewed: Time) -> PrunedLease {
        let stamp = format!("{:.6}", timestamp(renewed));
        let object = json!({
            "metadata": {"name": "node-b"},
            "spec": {"renewTime": stamp, "leaseDurationSeconds": 40},
        });
        let lease: Lease = serde_json::from_value(object).unwrap();
        PrunedLease::of(lease, renewed).unwrap()
    }

    /// As a process sees it that saw the renewal before, too.
    fn renewed_at(time: Time) -> PrunedLease {
        lease(time).after(&lease(Time(time.0 - 10_000)))
    }

    fn plan(binding: &str) -> NodePlan {
        let facts = json!({"digest": "d", "kind": "power", "feed": "whole", "binding": binding});
        let method = json!({"name": "power", "plugin": "p", "facts": facts});
        let methods = vec![serde_json::from_value(method).unwrap()];
        NodePlan { methods, ..NodePlan::default() }
    }

    /// What an outlet proved later may be off for another one's sake, whether it was verified or not.
    #[test] // promise: P8
    fn an_outlet_knows_no_machine_verified_or_not() {
        let switched = [("verified", true), ("labelled", true)];
        let not = [("reported", false), ("unverified", false)];
        for (binding, is_outlet) in switched.into_iter().chain(not) {
            assert_eq!(uses_outlets(&plan(binding)), is_outlet, "{binding}");
        }
    }

    /// A server's clock that was set back makes no silence older, in a process that saw it begin, and in one that did not.
    #[test]
    fn a_node_is_not_silent_before_the_off_by_a_clock_that_was_set() {
        let machine = VirtualClock::start_at(CUT);
        let clock = Clock::simulated(machine.clone());
        clock.correct(CUT);
        let node = |ready: &str, since: Time| {
            let ready = json!({
                "type": "Ready", "status": ready, "lastTransitionTime": timestamp(since).to_string(),
            });
            let node = json!({
                "metadata": {"name": "node-b", "uid": "u"}, "status": {"conditions": [ready]},
            });
            PrunedNode::of(serde_json::from_value(node).unwrap()).unwrap()
        };
        let long_ago = Time(CUT.0 - 600_000);
        let (well, silent) = (node("True", long_ago), node("Unknown", long_ago));
        let unknown_since = |changes: &Changes| ready_of(&silent, changes, &clock).unknown_since;
        let seen = Changes::default();
        seen.begin(Time(CUT.0 - 900_000));
        assert_eq!(unknown_since(&seen), Some(long_ago), "nothing speaks against it");
        seen.note(Some(&well), &silent, CUT);
        assert!(unknown_since(&seen) > Some(Time(CUT.0 - 20_000)), "it was seen to begin");
        let later = Changes::default();
        later.begin(CUT);
        clock.correct(Time(CUT.0 - 300_000));
        assert_eq!(unknown_since(&later), Some(CUT), "nobody knows since when");
    }

    #[test] // promise: P8
    fn a_neighbour_is_heard_or_awaited_or_fell_silent() {
        let at = |seconds: i64| Time(CUT.0.saturating_add_signed(seconds * 1_000));
        let settled = |ready: Ready, renewed: i64| {
            cut().is_settled(ready, &renewed_at(at(renewed)), Time(0), at(60))
        };
        let well = Ready::default();
        let unknown = |since: i64| Ready { unknown_since: Some(at(since)), ..Ready::default() };
        let cases = [
            ("heard since", well, 8, true),
            ("renewed before the off ended, or on its way then", well, 6, false),
            ("renewed just before, or late", well, -14, false),
            ("silent before", well, -16, true),
            ("said to be down before", unknown(-1), -9, true),
            ("said to be down since", unknown(1), -9, false),
            ("said to be down before, and heard since", unknown(-30), -9, false),
        ];
        for (case, ready, renewed, expected) in cases {
            assert_eq!(settled(ready, renewed), expected, "{case}");
        }
        let listed = lease(at(30));
        let is_heard = cut().is_settled(well, &listed, Time(0), at(60));
        assert!(!is_heard, "what a process finds when it starts may be old");

        let renewed = renewed_at(at(-5));
        let judged = |lease, now, heard| cut().is_judged(lease, at(now), at(heard));
        assert!(!judged(&renewed, 61, 61), "a Lease may be told late");
        assert!(judged(&renewed, 62, 62));
        assert!(!judged(&renewed, 62, 52), "nobody tells anything");
        assert!(!judged(&listed, 89, 89), "nor is it judged by who just started");
        assert!(judged(&listed, 90, 90));
    }

    /// An earlier pass had the plugs off from -100 s to -60 s.
    #[test] // promise: P8
    fn a_neighbour_that_fell_silent_in_an_earlier_pass_was_not_silent_before() {
        let at = |seconds: i64| Time(CUT.0.saturating_add_signed(seconds * 1_000));
        let cut = Cut { earlier: vec![(at(-100), at(-60))], ..cut() };
        for (heard, expected) in [(-116, true), (-114, false), (-56, false), (-54, true)] {
            let unknown = Ready { unknown_since: Some(at(heard + 40)), ..Ready::default() };
            for ready in [Ready::default(), unknown] {
                let is_settled = cut.is_settled(ready, &renewed_at(at(heard)), Time(0), at(60));
                assert_eq!(is_settled, expected, "{heard}");
            }
        }
    }

    /// Cut at 0 to 2 s, heard from 7 s on. A plug that comes on again boots the machine that hangs on it.
    #[test] // promise: P8
    fn a_neighbour_that_booted_since_hung_on_the_plug() {
        let at = |seconds: i64| Time(CUT.0.saturating_add_signed(seconds * 1_000));
        let told = |silent: i64, heard: i64, booted: i64, reported: i64| {
            let ready = Ready { reported_at: at(reported), unknown_since: None };
            let lease = lease(at(heard)).after(&renewed_at(at(silent)));
            let is_settled = cut().is_settled(ready, &lease, at(booted), at(heard + 5));
            (is_settled, cut().has_booted(&lease, at(booted)))
        };
        // Its PDU was read an hour later: who booted meanwhile, after the offs had landed, did not hang on it.
        let read_late = Cut { last: at(3_600), ..cut() };
        let rebooted = lease(at(1_200)).after(&renewed_at(at(1_000)));
        assert!(!read_late.has_booted(&rebooted, at(1_201)));
        let victim = lease(at(1_200)).after(&renewed_at(at(-3)));
        assert!(read_late.has_booted(&victim, at(1_201)));
        let heard_before = read_late.is_settled(Ready::default(), &rebooted, Time(0), at(3_601));
        assert!(!heard_before, "a slow outlet may have gone off since");
        let back = lease(at(-60)).after(&renewed_at(at(-300)));
        let back =
            (-5..2).map(|tens| lease(at(tens * 10))).fold(back, |before, one| one.after(&before));
        assert!(
            cut().has_booted(&back, at(10)),
            "it was back a minute before the off, and booted again since"
        );
        let (heard, booted, awaited) = ((true, false), (false, true), (false, false));
        let cases = [
            ("silent and back, the same boot", -3, 50, -900, 51, heard),
            ("silent and back, and nobody told its boot yet", -3, 50, -900, -4, awaited),
            ("silent and back in another boot", -3, 50, 51, 51, booted),
            ("booted within two renewals", -3, 15, 15, 15, booted),
            ("silent before the off, and booted then", -16, 50, 51, 51, heard),
            ("heard since the off, and booted then", 8, 50, 51, 51, heard),
            ("back before the off, and told its boot since", -300, -8, 3, 3, awaited),
            ("back before the off, and booted again since", -300, -8, 18, 18, booted),
            ("back while the plugs went off, and told its boot later", -300, 4, 6, 6, booted),
        ];
        for (case, silent, heard, booted, reported, expected) in cases {
            assert_eq!(told(silent, heard, booted, reported), expected, "{case}");
        }
    }

    /// What its own incident switched off while it was heard, by a BMC that answered while the plug was off.
    #[test] // promise: P8
    fn only_its_own_off_explains_why_a_neighbour_fell_silent() {
        let at = |seconds: i64| Time(CUT.0.saturating_add_signed(seconds * 1_000));
        let moment = |seconds: i64| Moment::from_ms(at(seconds).0);
        let explained = |off: i64, proven: i64, binding: &str, lease: &PrunedLease| {
            let proof = api::Proof {
                grade: api::Grade::PowerOffVerified,
                at: moment(proven),
                by: api::Evidence::default(),
                liveness: api::Liveness {
                    lease_renewed: Some(moment(-5)),
                    ..api::Liveness::default()
                },
                voided_at: None,
            };
            let off = json!({
                "id": 1, "method": 0, "action": "off", "attempt": 1, "epoch": 1, "process": "x", "intendedAt": moment(off),
                "stateBefore": "on",
            });
            let operations = [serde_json::from_value(off).unwrap()];
            cut().was_off(&proof, &plan(binding), &operations, lease)
        };
        let silent = renewed_at(at(-5));
        let back = lease(at(90)).after(&silent);
        for lease in [&silent, &back] {
            assert!(explained(-2, -1, "labelled", lease), "off before the plug");
            assert!(!explained(0, 1, "reported", lease), "the plug may have gone off after that");
            assert!(explained(2, 3, "reported", lease), "the plug was off, and its BMC had power");
            assert!(!explained(2, 3, "labelled", lease), "an outlet may be off for another's sake");
            assert!(!explained(50, 51, "reported", lease), "it was switched off for its silence");
        }
        let heard = lease(at(-20)).after(&renewed_at(at(-300)));
        let silent_again = lease(at(-4)).after(&heard);
        assert!(!explained(-200, -199, "reported", &silent_again), "it was heard since");
    }
}
