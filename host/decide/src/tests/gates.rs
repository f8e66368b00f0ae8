//! The gate: rows of clusters, and what it says about each.
#![expect(clippy::needless_raw_string_hashes, reason = "as expect-test writes them")]

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use expect_test::{Expect, expect};

use crate::*;

const A: u64 = 1_000_000;

/// A cluster in which `silent` nodes fell silent with the target, seen `after` seconds later;
/// the others renew every ten seconds, spread evenly.
fn cluster(total: u64, silent: u64, after_s: u64) -> (GateView, Time) {
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
                lease_duration: Span::seconds(40),
            }
        })
        .collect();
    let view = GateView {
        target: "node-0".to_string(),
        nodes,
        in_flight: Vec::new(),
        words: Words::default(),
        heard_at: now,
        held_by: None,
        closed_device: None,
        last_incident_ended_at: None,
        sign_since: None,
        never_joined: false,
    };
    (view, now)
}

fn check((view, now): (GateView, Time), says: &Expect) {
    let verdict = gate(&GatePolicy::default(), &view, now);
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
    check(cluster(1, 1, 23), &expect!["silent 1 of 1 = 100 % ≥ 30 %"]);
}

#[test]
fn a_node_that_fell_silent_after_the_target_counts_once_it_is_overdue() {
    let (mut view, now) = cluster(30, 1, 40);
    for node in view.nodes.iter_mut().skip(1).take(9) {
        node.renewed_at = Some(Time(A).after(Span::seconds(15)));
    }
    check((view, now), &expect!["silent 10 of 30 = 33 % ≥ 30 %"]);
}

#[test]
fn a_dark_rack_is_never_cut() {
    for after_s in 0..12 {
        let (view, now) = cluster(30, 10, after_s);
        assert!(!gate(&GatePolicy::default(), &view, now).is_open(), "{after_s} s");
    }
    check(cluster(30, 10, 23), &expect!["silent 10 of 30 = 33 % ≥ 30 %"]);
    check(cluster(30, 8, 23), &expect!["open"]);
    check(cluster(30, 10, 3_600), &expect!["silent 10 of 30 = 33 % ≥ 30 %"]);
    check(cluster(3, 2, 23), &expect!["silent 2 of 3 = 66 % ≥ 30 %"]);
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
            let verdict = gate(&GatePolicy::default(), &view, now);
            assert!(!verdict.is_open(), "{step_ms} ms apart, looked at after {look_s} s");
        }
    }
}

/// Its own renewals go on, so they are no measure of the others' silence: since its sign began they
/// were heard, or not.
#[test]
fn a_node_that_is_ill_and_renews_its_lease_is_judged_by_when_its_sign_began() {
    let living = |silent, sign_s: u64| {
        let (mut view, now) = cluster(30, silent, 3_600);
        view.nodes[0].renewed_at = Some(Time(now.0 - 4_000));
        view.sign_since = Some(Time(now.0 - sign_s * 1_000));
        (view, now)
    };
    check(living(0, 300), &expect!["open"]);
    check(living(9, 300), &expect!["silent 9 of 30 = 30 % ≥ 30 %"]);
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

#[test]
fn a_node_that_never_joined_is_judged_by_the_others_that_did() {
    let absent = |joined: bool, others: usize| {
        let (mut view, now) = cluster(30, 0, 3_600);
        for node in view.nodes.iter_mut().take(1 + others) {
            node.renewed_at = None;
            node.ready = false;
        }
        view.sign_since = Some(Time(now.0 - 600_000));
        view.never_joined = !joined;
        (view, now)
    };
    check(absent(false, 0), &expect!["open"]);
    check(absent(false, 9), &expect!["silent 10 of 30 = 33 % ≥ 30 %"]);
    check(absent(true, 0), &expect!["the node has no Lease to tell its silence from others'"]);
}

#[test]
fn every_reason_is_told_with_its_numbers() {
    let (mut view, now) = cluster(30, 1, 23);
    view.in_flight = ["node-b-1".to_string()].into();
    let pause = Pause { reason: "new switches".into(), by: "alice".into(), until: None };
    view.words.pauses.push(pause);
    view.heard_at = Time(now.0 - 16_000);
    view.held_by = Some("self-node-remediation".to_string());
    view.closed_device =
        Some(ClosedDevice { device: "bmc-7".to_string(), node: "node-c".to_string() });
    view.last_incident_ended_at = Some(Time(now.0 - 60_000));
    check(
        (view, now),
        &expect![[r#"
            paused by alice: new switches
            self-node-remediation holds this node's Lease in medik8s-leases
            bmc-7 failed to switch node-c on; see to it, then node-remedy ack node-c
            nothing heard from the API server for 16 s > 15 s: we may be cut off
            the node's last incident ended a short while ago
            in flight 1 ≥ 1: node-b-1
            look again in 10 s"#]],
    );
    let (mut view, now) = cluster(30, 1, 23);
    view.nodes.iter_mut().take(1).for_each(|node| node.renewed_at = None);
    check((view, now), &expect!["the node has no Lease to tell its silence from others'"]);
    let (mut view, now) = cluster(30, 1, 23);
    view.nodes.iter_mut().skip(1).take(8).for_each(|node| node.down = true);
    let policy = GatePolicy { unhealthy_max: Some(5), ..GatePolicy::default() };
    let refusal = Refusal::UnhealthyCount { unhealthy: 9, max: 5 };
    assert_eq!(gate(&policy, &view, now).refusals, [refusal]);
}

#[test]
fn what_people_said_closes_the_gate_and_says_so() {
    let words = |words: Words| {
        let (view, now) = cluster(30, 1, 23);
        (GateView { words, ..view }, now)
    };
    let now = words(Words::default()).1;
    let pause = |until| Pause { reason: "new switches".into(), by: "alice".into(), until };
    let rows = [
        (
            Words { pauses: [pause(None)].into(), ..Words::default() },
            expect![[r#"
            paused by alice: new switches
            look again in 10 s"#]],
        ),
        (
            Words { pauses: [pause(Some(now.after(Span::seconds(4))))].into(), ..Words::default() },
            expect![[r#"
                paused by alice: new switches
                look again in 4 s"#]],
        ),
        (Words { pauses: [pause(Some(now))].into(), ..Words::default() }, expect!["open"]),
        (
            Words { excluded_by: Some("node-remedy.io/exclude".into()), ..Words::default() },
            expect![[r#"
                excluded by node-remedy.io/exclude; remove it to have it acted on
                look again in 10 s"#]],
        ),
        (
            Words {
                maintenance: Some("NodeMaintenance fans: new fans".into()),
                ..Words::default()
            },
            expect![[r#"
                in maintenance: NodeMaintenance fans: new fans
                look again in 10 s"#]],
        ),
        (
            Words { cordoned_by_other: true, ..Words::default() },
            expect![[r#"
            cordoned by somebody else, which counts as maintenance; uncordon it, or set cordonedByOthers: ignore
            look again in 10 s"#]],
        ),
        (
            Words { removed_by: Some("ToBeDeletedByClusterAutoscaler".into()), ..Words::default() },
            expect![[r#"
                an autoscaler removes this node (taint ToBeDeletedByClusterAutoscaler)
                look again in 10 s"#]],
        ),
        (
            Words { unread: ["RemedyPauses: denied".into()].into(), ..Words::default() },
            expect![[r#"
                failed to read whether somebody wants it left alone: RemedyPauses: denied
                look again in 10 s"#]],
        ),
    ];
    for (said, expected) in rows {
        check(words(said), &expected);
    }
    let (view, now) = words(Words { cordoned_by_other: true, ..Words::default() });
    let policy = GatePolicy { foreign_cordon: ForeignCordon::Ignore, ..GatePolicy::default() };
    assert!(gate(&policy, &view, now).is_open());
}
