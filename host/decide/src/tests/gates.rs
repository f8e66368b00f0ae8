//! The gate: rows of clusters, and what it says about each.
#![expect(clippy::needless_raw_string_hashes, reason = "as expect-test writes them")]

mod vetoes;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use expect_test::{Expect, expect};

use super::orders::Dice;
use crate::*;

pub(super) const A: u64 = 1_000_000;

/// A cluster in which `silent` nodes fell silent with the target, seen `after` seconds later;
/// the others renew every ten seconds, spread evenly.
pub(super) fn cluster(total: u64, silent: u64, after_s: u64) -> (GateView, Time) {
    let now = Time(A).after(Span::seconds(after_s));
    let nodes = (0..total)
        .map(|index| {
            let phase = Span(index.saturating_mul(10_000) / total);
            let age = Span(now.since(Time(A)).0.saturating_sub(phase.0) % 10_000);
            let renewed_at = if index < silent { Time(A) } else { Time(now.0 - age.0) };
            NodeHealth {
                name: format!("node-{index}"),
                ready: true,
                down: false,
                renewed_at: Some(renewed_at),
                renewed_between: Some((renewed_at, renewed_at)),
                came_back: None,
                lease_duration: Span::seconds(40),
                domains: Vec::new(),
                takes_pods: true,
                control_plane: false,
                etcd: None,
            }
        })
        .collect();
    let view = GateView {
        target: "node-0".to_string(),
        nodes,
        in_flight: Vec::new(),
        in_flight_on: Vec::new(),
        vetoes: OperatorVetoes::default(),
        storage: StorageLease::default(),
        incidents: Incidents::Begun,
        heard_at: now,
        not_followed: None,
        held_by: None,
        closed_device: None,
        disputed: None,
        unverified: None,
        device_network: DeviceNetwork::default(),
        last_incident_ended_at: None,
        symptom_since: None,
        never_joined: false,
    };
    (view, now)
}

/// The limits of shares; how many fell silent at once is asked in a file of its own.
fn shares() -> GatePolicy {
    GatePolicy { silent_at_once_max: u32::MAX, ..GatePolicy::default() }
}

fn check((view, now): (GateView, Time), says: &Expect) {
    let verdict = gate(&shares(), &view, now);
    let lines: Vec<String> = verdict.refusals.iter().map(ToString::to_string).collect();
    let next = verdict.next_look.map(|at| format!("look again in {}", at.since(now)));
    let said = lines.into_iter().chain(next).collect::<Vec<_>>().join("\n");
    says.assert_eq(if said.is_empty() { "open" } else { &said });
}

#[test]
fn one_lost_node_opens_once_the_others_were_heard() {
    check(
        cluster(30, 1, 5),
        &expect![[r#"
            too early to tell whether 29 other nodes fell silent too
            look again in 17.0 s"#]],
    );
    check(
        cluster(30, 1, 13),
        &expect![[r#"
            too early to tell whether 26 other nodes fell silent too
            look again in 9.0 s"#]],
    );
    check(cluster(30, 1, 22), &expect!["open"]);
    check(cluster(3, 1, 23), &expect!["open"]);
    check(cluster(1, 1, 23), &expect!["unhealthy 1 of 1 = 100 % ≥ 30 %"]);
}

#[test]
fn a_node_that_fell_silent_after_the_target_counts_once_it_is_overdue() {
    let (mut view, now) = cluster(30, 1, 40);
    for node in view.nodes.iter_mut().skip(1).take(9) {
        node.renewed_at = Some(Time(A).after(Span::seconds(15)));
    }
    check((view, now), &expect!["unhealthy 10 of 30 = 33 % ≥ 30 %"]);
}

#[test]
fn a_dark_rack_is_never_cut() {
    for after_s in 0..12 {
        let (view, now) = cluster(30, 10, after_s);
        assert!(!gate(&shares(), &view, now).is_open(), "{after_s} s");
    }
    check(cluster(30, 10, 23), &expect!["unhealthy 10 of 30 = 33 % ≥ 30 %"]);
    check(cluster(30, 8, 23), &expect!["open"]);
    check(cluster(30, 10, 3_600), &expect!["unhealthy 10 of 30 = 33 % ≥ 30 %"]);
    check(cluster(3, 2, 23), &expect!["unhealthy 2 of 3 = 66 % ≥ 30 %"]);
}

/// Whatever order ten of thirty fall silent in, within twelve seconds: the first one's gate
/// never opens, at any look.
#[test]
fn a_rack_that_falls_silent_one_after_the_other_is_never_cut() {
    for step_ms in [0, 100, 700, 1_200] {
        let (view, _) = cluster(30, 10, 0);
        for look_s in 0..60 {
            let now = Time(A).after(Span::seconds(look_s));
            let nodes = view.nodes.iter().enumerate().map(|(index, node)| {
                let index = u64::try_from(index).expect("few");
                let last = A + (index % 10) * step_ms;
                let renewed_at = if index < 10 { Time(last) } else { now };
                NodeHealth { renewed_at: Some(renewed_at), ..node.clone() }
            });
            let view = GateView { nodes: nodes.collect(), heard_at: now, ..view.clone() };
            let verdict = gate(&shares(), &view, now);
            assert!(!verdict.is_open(), "{step_ms} ms apart, looked at after {look_s} s");
        }
    }
}

/// Its own renewals go on, so they are no measure of the others' silence: since its sign began they
/// were heard, or not.
#[test]
fn a_node_that_is_ill_and_renews_its_lease_is_judged_by_when_its_symptom_began() {
    let living = |silent, symptom_s: u64| {
        let (mut view, now) = cluster(30, silent, 3_600);
        view.nodes[0].renewed_at = Some(Time(now.0 - 4_000));
        view.symptom_since = Some(Time(now.0 - symptom_s * 1_000));
        (view, now)
    };
    check(living(0, 300), &expect!["open"]);
    check(living(9, 300), &expect!["unhealthy 9 of 30 = 30 % ≥ 30 %"]);
    check(
        living(0, 10),
        &expect![[r#"
            too early to tell whether 29 other nodes fell silent too
            look again in 18.0 s"#]],
    );
    // It renewed since its sign began, and is overdue now: it is told from the others as a silent one.
    let (mut view, now) = living(0, 300);
    view.nodes[0].renewed_at = Some(Time(now.0 - 13_000));
    check(
        (view, now),
        &expect![[r#"
            too early to tell whether 27 other nodes fell silent too
            look again in 9.0 s"#]],
    );
}

#[test] // promise: G1
fn a_node_that_never_joined_is_judged_by_the_others_that_did() {
    let absent = |joined: bool, others: usize| {
        let (mut view, now) = cluster(30, 0, 3_600);
        for node in view.nodes.iter_mut().take(1 + others) {
            node.renewed_at = None;
            node.ready = false;
        }
        view.symptom_since = Some(Time(now.0 - 600_000));
        view.never_joined = !joined;
        (view, now)
    };
    check(absent(false, 0), &expect!["open"]);
    check(absent(false, 9), &expect!["unhealthy 10 of 30 = 33 % ≥ 30 %"]);
    check(
        absent(true, 0),
        &expect![
            "the node has no Lease in kube-node-lease, so nobody can tell since when it is silent, and it is not cut; restart its kubelet"
        ],
    );
}

#[test] // promise: G2, G15
fn every_reason_is_told_with_its_numbers() {
    let (mut view, now) = cluster(30, 1, 23);
    view.in_flight = ["node-b-1".to_string()].into();
    let pause = Pause { reason: "new switches".into(), by: "alice".into(), until: None };
    view.vetoes.pauses.push(pause);
    view.heard_at = Time(now.0 - 16_000);
    view.held_by = Some("self-node-remediation".to_string());
    view.closed_device =
        Some(ClosedDevice { device: "bmc-7".to_string(), node: "node-c".to_string() });
    view.device_network = DeviceNetwork {
        answering: 0,
        silent: 12,
        silent_since: Time(now.0 - 300_000),
        example: "bmc-7: no answer".to_string(),
    };
    view.last_incident_ended_at = Some(Time(now.0 - 60_000));
    check(
        (view, now),
        &expect![[r#"
            paused by alice: new switches
            self-node-remediation holds this node's Lease in medik8s-leases
            bmc-7 failed to switch node-c on; see to it, then node-remedy ack node-c
            none of the 12 devices has answered this replica for 5 min: its own network to them may be lost (bmc-7: no answer)
            nothing heard from the API server for 16 s > 15 s: we may be cut off
            the node's last incident ended a short while ago
            in flight 1 ≥ 1: node-b-1
            look again in 10 s"#]],
    );
    let (mut view, now) = cluster(30, 1, 23);
    view.nodes.iter_mut().take(1).for_each(|node| node.renewed_at = None);
    check(
        (view, now),
        &expect![
            "the node has no Lease in kube-node-lease, so nobody can tell since when it is silent, and it is not cut; restart its kubelet"
        ],
    );
    let (mut view, now) = cluster(30, 1, 23);
    view.nodes.iter_mut().skip(1).take(8).for_each(|node| node.down = true);
    let policy = GatePolicy { unhealthy_max: Some(5), ..shares() };
    let refusal = Refusal::UnhealthyCount { unhealthy: 9, max: 5 };
    assert_eq!(gate(&policy, &view, now).refusals, [refusal]);
}

/// One that is silent is a device; all that are asked are the network to them.
#[test] // promise: G17
fn nothing_is_opened_while_no_device_answers() {
    let (view, now) = cluster(30, 1, 23);
    for (answering, silent, is_open) in
        [(0, 0, true), (0, 1, true), (0, 2, false), (0, 12, false), (1, 11, true), (12, 0, true)]
    {
        let silent_since = Time(now.0 - 60_000);
        let device_network =
            DeviceNetwork { answering, silent, silent_since, example: String::new() };
        let view = GateView { device_network, ..view.clone() };
        let verdict = gate(&shares(), &view, now);
        assert_eq!(verdict.is_open(), is_open, "{answering} answer, {silent} do not");
    }
}

/// Forty nodes in four racks of ten, of which `silent` of the first rack fell silent with the target.
fn racks(silent: u64) -> (GateView, Time) {
    let (mut view, now) = cluster(40, silent, 23);
    for (index, node) in view.nodes.iter_mut().enumerate() {
        node.domains = [Some(format!("r{}", index / 10))].into();
    }
    (view, now)
}

fn by_rack(in_flight_max: Option<u32>) -> GatePolicy {
    let key = "rack".to_string();
    let limit = DomainLimit { key, unhealthy_percent_max: 50, in_flight_max };
    GatePolicy { domains: [limit].into(), in_flight_max: 4, ..shares() }
}

fn says(policy: &GatePolicy, (view, now): &(GateView, Time)) -> String {
    let verdict = gate(policy, view, *now);
    verdict.refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_dark_rack_is_told_from_a_node_that_is_lost_elsewhere() {
    let policy = by_rack(None);
    // Ten of forty are a quarter: the cluster's share alone would let the rack be cut.
    assert_eq!(says(&shares(), &racks(10)), "");
    let dark = "rack=r0: unhealthy 10 of 10 = 100 % ≥ 50 %; look at what they share";
    assert_eq!(says(&policy, &racks(10)), dark);
    assert_eq!(says(&policy, &racks(4)), "");
    let (mut view, now) = racks(10);
    view.target = "node-20".to_string();
    view.nodes[20].renewed_at = Some(Time(A));
    assert_eq!(says(&policy, &(view, now)), "", "one more, where there is room");
}

#[test] // promise: G3
fn what_is_of_no_domain_counts_for_each_while_it_is_unhealthy() {
    let policy = by_rack(Some(1));
    let (mut view, now) = racks(4);
    view.nodes[3].domains = [None].into();
    view.nodes[30].domains = [None].into();
    view.nodes[30].renewed_at = Some(Time(A));
    let said = "rack=r0: unhealthy 5 of 11 = 45 % ≥ 40 %; look at what they share";
    let mut strict = policy.clone();
    strict.domains[0].unhealthy_percent_max = 40;
    assert_eq!(says(&strict, &(view.clone(), now)), said);
    view.nodes[0].domains = [None].into();
    let unlabelled = "the node has no label rack, for which topologies sets limits; label it";
    assert_eq!(says(&policy, &(view, now)), unlabelled);
}

#[test] // promise: G3
fn one_node_of_a_domain_at_a_time() {
    let policy = by_rack(Some(1));
    for (other, closed) in [("node-5", true), ("node-15", false), ("node-gone", true)] {
        let (mut view, now) = racks(1);
        view.in_flight = ["other-1".to_string()].into();
        view.in_flight_on = [other.to_string()].into();
        let full = format!("rack=r0: in flight 1 ≥ 1: {other}");
        assert_eq!(says(&policy, &(view, now)), if closed { &*full } else { "" });
    }
}

/// Forty of a hundred behind one switch fall silent within 12 s, in any order of arrival, whichever of
/// them is looked at, at any moment: none is cut; nor in a rack of ten of a large cluster.
#[test] // promise: G1
fn forty_of_a_hundred_falling_silent_in_any_order_are_never_cut() {
    let mut dice = Dice(1);
    let rack = by_rack(None);
    for round in 0..400 {
        let whole = round % 2 == 0;
        let (policy, silent) = if whole { (&shares(), 40) } else { (&rack, 10) };
        let (view, _) = cluster(100, silent, 0);
        let last: Vec<u64> = (0..silent).map(|_| A + dice.throw(12_000)).collect();
        let phases: Vec<u64> = (0..100).map(|_| dice.throw(10_000)).collect();
        let target = usize::try_from(dice.throw(silent)).unwrap();
        for look_ms in (0..90_000).step_by(777) {
            let now = Time(A + 12_000 + look_ms);
            let nodes = view.nodes.iter().enumerate().map(|(index, node)| {
                let alive = Time(now.0 - (now.0 + phases[index]) % 10_000);
                let renewed_at = last.get(index).map_or(alive, |last| Time((*last).min(now.0)));
                let domains = [Some(format!("r{}", index / 10))].into();
                NodeHealth { renewed_at: Some(renewed_at), domains, ..node.clone() }
            });
            let target = format!("node-{target}");
            let view = GateView { target, nodes: nodes.collect(), heard_at: now, ..view.clone() };
            let verdict = gate(policy, &view, now);
            // What a trigger asks for: silent for longer than a renewal may be late.
            let silent_for = now.since(
                view.nodes.iter().find(|n| n.name == view.target).unwrap().renewed_at.unwrap(),
            );
            assert!(
                silent_for < Span::seconds(12) || !verdict.is_open(),
                "round {round}, {look_ms} ms"
            );
        }
    }
}

/// Thirty nodes, the first `members` of them the control plane, `silent` nodes silent.
fn control_plane(members: usize, silent: u64, after_s: u64) -> (GateView, Time) {
    let (mut view, now) = cluster(30, silent, after_s);
    view.nodes.iter_mut().take(members).for_each(|node| node.control_plane = true);
    (view, now)
}

#[test]
fn a_control_plane_node_is_cut_only_while_the_others_are_well_and_a_majority() {
    check(control_plane(3, 1, 23), &expect!["open"]);
    check(
        control_plane(2, 1, 23),
        &expect!["control plane: 1 of 2 nodes well without this one < 2 for etcd's quorum"],
    );
    check(
        control_plane(1, 1, 23),
        &expect!["control plane: 0 of 1 nodes well without this one < 1 for etcd's quorum"],
    );
    // Two of thirty are no storm; two of three members are the end of the cluster.
    check(cluster(30, 2, 23), &expect!["open"]);
    let two = "control plane: 1 of 3 nodes well without this one < 2 for etcd's quorum; \
               first see to node-1";
    assert_eq!(says(&shares(), &control_plane(3, 2, 23)), two);
    // With five a quorum is left, and still it is one at a time.
    let one = "control plane: 3 of 5 nodes well without this one; first see to node-1";
    assert_eq!(says(&shares(), &control_plane(5, 2, 23)), one);
}

/// The pod of a member speaks for it, on a node that is well, and makes a node one of the control plane.
#[test] // promise: G6
fn a_member_of_etcd_that_is_not_ready_counts_as_none() {
    let says_with = |ready: bool| {
        let (mut view, now) = control_plane(3, 1, 23);
        for (number, node) in view.nodes.iter_mut().take(3).enumerate() {
            (node.control_plane, node.etcd) = (false, Some(number < 2 || ready));
        }
        says(&shares(), &(view, now))
    };
    assert_eq!(says_with(true), "");
    let refused = "control plane: 1 of 3 nodes well without this one < 2 for etcd's quorum; \
                   first see to etcd on node-2";
    assert_eq!(says_with(false), refused);
}

/// What would forbid the cut may not have been told.
#[test]
fn nothing_is_cut_while_a_watch_is_broken() {
    let (mut view, now) = cluster(30, 1, 23);
    view.not_followed = Some("pods".to_string());
    assert_eq!(says(&shares(), &(view, now)), "its watch is broken of pods");
}

/// Any kubelet can make a pod that looks like a member's, but none can label its node as one of the control plane.
#[test]
fn a_member_of_etcd_without_the_label_makes_up_no_majority() {
    let says_with = |labelled: usize, unlabelled: usize, ready: bool| {
        let (mut view, now) = control_plane(labelled, 1, 23);
        for node in view.nodes.iter_mut().take(labelled) {
            node.etcd = Some(true);
        }
        for node in view.nodes.iter_mut().skip(labelled).take(unlabelled) {
            node.etcd = Some(ready);
        }
        says(&shares(), &(view, now))
    };
    let two = "control plane: 1 of 2 nodes well without this one < 2 for etcd's quorum";
    let one = "control plane: 0 of 1 nodes well without this one < 1 for etcd's quorum";
    assert_eq!([says_with(2, 1, true), says_with(1, 2, true)], [two, one]);
    assert_eq!([says_with(3, 0, true), says_with(3, 2, true)], ["", ""]);
    let forbids = "control plane: 2 of 4 nodes well without this one < 3 for etcd's quorum; \
                   first see to etcd on node-3";
    assert_eq!(says_with(3, 1, false), forbids);
    // A node without the label that is lost counts beside those with it.
    let (mut view, now) = control_plane(0, 1, 23);
    for (number, node) in view.nodes.iter_mut().take(3).enumerate() {
        (node.control_plane, node.etcd) = (number == 2, Some(true));
    }
    assert_eq!(says(&shares(), &(view, now)), "");
}

/// A new control-plane node that joins has no pod of etcd yet; with an etcd outside none ever has.
#[test] // promise: G6
fn a_control_plane_node_without_a_pod_of_etcd_counts_as_none_where_another_has_one() {
    let says_of = |with_pods: &[usize]| {
        let (mut view, now) = control_plane(3, 1, 23);
        for number in with_pods {
            view.nodes[*number].etcd = Some(true);
        }
        says(&shares(), &(view, now))
    };
    assert_eq!(says_of(&[0, 1, 2]), "");
    assert_eq!(says_of(&[]), "", "etcd runs elsewhere");
    let one = "control plane: 1 of 3 nodes well without this one < 2 for etcd's quorum; \
               first see to etcd on node-2 (it has no pod)";
    assert_eq!(says_of(&[0, 1]), one);
    assert_eq!(says_of(&[1]), one, "the one that is lost has none either");
    let both = "control plane: 0 of 3 nodes well without this one < 2 for etcd's quorum; \
                first see to etcd on node-1 (it has no pod), etcd on node-2 (it has no pod)";
    assert_eq!(says_of(&[0]), both, "the pod of the one that is lost says where etcd runs");
    // Members on nodes of their own say nothing of the others.
    assert_eq!(says_of(&[5, 6, 7]), "");
}

#[test] // promise: G5
fn what_is_not_known_of_another_control_plane_node_closes_the_gate() {
    let breaks: [fn(&mut NodeHealth, Time); 4] = [
        |node, _| node.ready = false,
        |node, _| node.down = true,
        |node, _| node.renewed_at = None,
        |node, now| node.renewed_at = Some(Time(now.0 - 12_001)),
    ];
    for (index, break_it) in breaks.into_iter().enumerate() {
        let (mut view, now) = control_plane(5, 1, 60);
        assert_eq!(says(&shares(), &(view.clone(), now)), "");
        break_it(&mut view.nodes[4], now);
        let said = says(&shares(), &(view.clone(), now));
        assert!(said.ends_with("first see to node-4"), "{index}: {said}");
        // No other node is held up by it.
        view.target = "node-9".to_string();
        view.nodes[9].renewed_at = Some(Time(A));
        assert_eq!(says(&shares(), &(view, now)), "", "{index}");
    }
    let (view, now) = control_plane(3, 1, 13);
    let verdict = gate(&shares(), &view, now);
    let is_closed = |one: &Refusal| matches!(one, Refusal::ControlPlane { .. });
    assert!(verdict.refusals.iter().any(is_closed), "not heard since the target fell silent");
    assert!(verdict.next_look.is_some_and(|at| at > now), "and looked at again");
}

/// The veto, and every way in which what it goes by can be missing.
#[test] // promise: G4
fn a_node_that_uses_its_storage_is_left_alone() {
    let policy = GatePolicy { storage_lease_age_max: Some(Span::seconds(40)), ..shares() };
    let rows = [
        (StorageLease::Absent, 0, ""),
        (StorageLease::Renewed { at: Time(A) }, 0, ""),
        (
            StorageLease::Renewed { at: Time(A) },
            20,
            "the node still used its storage 30 s ago < 40 s: it is alive",
        ),
        (
            StorageLease::Unread { why: "403".to_string() },
            0,
            "failed to read whether the node uses its storage: 403",
        ),
        (
            StorageLease::NotAsked,
            0,
            "failed to read whether the node uses its storage: nobody asked for it",
        ),
    ];
    for (storage, earlier_s, said) in rows {
        let (view, now) = cluster(30, 1, 50);
        let now = Time(now.0 - earlier_s * 1_000);
        let view = GateView { storage: storage.clone(), heard_at: now, ..view };
        let verdict = gate(&policy, &view, now);
        assert_eq!(says(&policy, &(view.clone(), now)), said, "{storage:?}");
        let again = matches!(storage, StorageLease::Renewed { .. }) && !verdict.is_open();
        assert_eq!(verdict.next_look.is_some(), again, "{storage:?}");
        assert!(gate(&shares(), &view, now).is_open(), "only where it is asked for");
    }
}

/// Thirty nodes of which one is lost, asked for 90 %: 27 of the others must be able to take its pods.
#[test] // promise: G7
fn nothing_is_cut_that_the_others_have_no_room_for() {
    let policy = GatePolicy { schedulable_percent_min: Some(90), ..shares() };
    let lost = |breaks: fn(&mut NodeHealth, Time), count: usize| {
        let (mut view, now) = cluster(30, 1, 60);
        view.nodes.iter_mut().skip(1).take(count).for_each(|node| breaks(node, now));
        (view, now)
    };
    let full = "headroom: 26 of 30 = 86 % of the nodes would be left to take its pods < 90 %; uncordon or add some";
    let breaks: [fn(&mut NodeHealth, Time); 5] = [
        |node, _| node.takes_pods = false,
        |node, _| node.ready = false,
        |node, _| node.down = true,
        |node, _| node.renewed_at = None,
        |node, now| node.renewed_at = Some(Time(now.0 - 12_001)),
    ];
    for (index, break_it) in breaks.into_iter().enumerate() {
        assert_eq!(says(&policy, &lost(break_it, 2)), "", "{index}");
        assert_eq!(says(&policy, &lost(break_it, 3)), full, "{index}");
        assert_eq!(says(&shares(), &lost(break_it, 3)), "", "only where it is asked for");
    }
    // One that was not heard since does not count yet, and is looked at again.
    let (view, now) = cluster(30, 1, 13);
    let verdict = gate(&policy, &view, now);
    assert!(verdict.refusals.iter().any(|one| matches!(one, Refusal::Headroom { .. })));
    assert!(verdict.next_look.is_some_and(|at| at > now));
}
