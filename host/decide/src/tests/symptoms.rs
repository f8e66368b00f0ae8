//! Signs: what each finds on a node, and what `all`, `any` and `not` make of that. A table each.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use expect_test::{Expect, expect};

use super::fixtures::lost_view;
use crate::*;

/// Seconds; every time here is a moment of one morning.
const fn at(seconds: u64) -> Time {
    Time(seconds * 1_000)
}

const NOW: Time = at(10_000);

fn node() -> NodeView {
    let mut node = lost_view(NOW).node.expect("a node");
    node.conditions = vec![seen(READY, ConditionStatus::True, 1_000)];
    node.lease_seen_at = Some(at(9_995));
    node
}

/// A condition that changed then and is reported now.
fn seen(kind: &str, status: ConditionStatus, since: u64) -> ConditionView {
    ConditionView {
        kind: kind.to_string(),
        status,
        reason: "Because".to_string(),
        since: at(since),
        reported: Some(NOW),
        left: vec![],
    }
}

fn holds(kind: &str) -> Symptom {
    Symptom::Condition {
        kind: kind.to_string(),
        statuses: [ConditionStatus::True].into(),
        reasons: [].into(),
    }
}

fn not_ready() -> Symptom {
    let statuses = [ConditionStatus::False, ConditionStatus::Unknown].into();
    Symptom::Condition { kind: READY.to_string(), statuses, reasons: [].into() }
}

/// What is found, in seconds.
fn found(node: &NodeView, symptom: Symptom, now: Time) -> String {
    let threshold = Threshold { symptom, period: Span::ZERO, stale_after: STALE_AFTER };
    let next = next_look(node, &threshold, now).map(|at| format!(", look at {}", at.0 / 1_000));
    let word = match crossed(node, &threshold, now) {
        Crossing::Clear { .. } => "absent".to_string(),
        Crossing::Unclear => "unclear".to_string(),
        Crossing::Ripening { since, .. } => format!("coming since {}", since.0 / 1_000),
        Crossing::Crossed { since } => format!("there since {}", since.0 / 1_000),
    };
    word + &next.unwrap_or_default()
}

/// The node controller's word stands until the kubelet reports, which takes it seconds from its first renewal on.
#[test] // promise: A18
fn a_node_that_is_heard_again_is_given_a_minute_to_report() {
    let mut node = node();
    node.conditions = vec![seen(READY, ConditionStatus::Unknown, 1_000)];
    let found = |node: &NodeView, now| found(node, not_ready(), now);
    let there = "there since 1000";
    assert_eq!(found(&node, NOW), there, "heard for long, and it did not report");
    node.heard_since = Some(at(9_990));
    assert_eq!(found(&node, NOW), "coming since 1000");
    let threshold =
        Threshold { symptom: not_ready(), period: Span::ZERO, stale_after: STALE_AFTER };
    let next = crossed(&node, &threshold, NOW).next_look();
    assert_eq!(next, Some(at(10_007)), "when its next renewal is overdue");
    node.lease_seen_at = Some(at(10_049));
    assert_eq!(found(&node, at(10_049)), "coming since 1000");
    assert_eq!(found(&node, at(10_050)), there, "its minute is over");
    node.lease_seen_at = Some(at(10_000));
    assert_eq!(found(&node, at(10_012)), there, "it fell silent again");
    node.conditions = vec![seen(READY, ConditionStatus::False, 1_000)];
    assert_eq!(found(&node, NOW), there, "it has reported");
}

/// Its Lease is overdue, and its kubelet takes connections: its renewal may be on its way.
#[test] // promise: A18
fn a_silent_node_that_answers_is_given_a_minute_to_renew() {
    let mut node = node();
    node.lease_seen_at = Some(at(9_900));
    let found = |node: &NodeView, now| found(node, Symptom::LeaseAge(Span::seconds(60)), now);
    let there = "there since 9900";
    assert_eq!(found(&node, NOW), there);
    node.answers_since = Some(at(9_950));
    assert_eq!(found(&node, NOW), "coming since 9900");
    assert_eq!(found(&node, at(10_010)), there, "its minute is over");
}

/// Somebody deleted its Lease, or its kubelet never made one: since when it is silent nobody can tell.
#[test]
fn a_node_without_a_lease_is_never_cut_for_its_age_and_that_is_told_once_it_is_silent() {
    let symptom = Symptom::LeaseAge(Span::seconds(60));
    let of_lease = Threshold { symptom, period: Span::ZERO, stale_after: STALE_AFTER };
    let not_ready =
        Threshold { symptom: not_ready(), period: Span::ZERO, stale_after: STALE_AFTER };
    let mut node = node();
    node.lease_seen_at = None;
    for (status, held) in [
        (ConditionStatus::True, false),
        (ConditionStatus::False, false),
        (ConditionStatus::Unknown, true),
    ] {
        node.conditions = vec![seen(READY, status, 1_000)];
        assert_eq!(crossed(&node, &of_lease, NOW), Crossing::Unclear);
        assert_eq!(is_held_by_missing_lease(&node, &of_lease, NOW), held, "{status:?}");
    }
    assert!(
        !is_held_by_missing_lease(&node, &not_ready, NOW),
        "it needs no Lease: held by nothing"
    );
    node.lease_seen_at = Some(at(9_995));
    assert!(!is_held_by_missing_lease(&node, &of_lease, NOW));
}

/// A compound is not decided for a condition that nobody reports: its name is told once the kubelet is silent.
#[test]
fn a_condition_that_keeps_a_compound_from_being_decided_is_named_once_the_node_is_silent() {
    let kind = |kind: &str| Symptom::Condition {
        kind: kind.to_owned(),
        statuses: [ConditionStatus::True].into(),
        reasons: BTreeSet::new(),
    };
    let age = || Symptom::LeaseAge(Span::seconds(60));
    let not = |symptom| Symptom::Not(Box::new(symptom));
    let mut node = node();
    node.lease_seen_at = Some(at(9_900));
    for (symptom, status, named) in [
        (Symptom::All(vec![age(), not(kind("Worn"))]), ConditionStatus::Unknown, vec!["Worn"]),
        (Symptom::All(vec![age(), not(kind("Worn"))]), ConditionStatus::False, vec![]),
        (Symptom::All(vec![not(age()), kind("Worn")]), ConditionStatus::Unknown, vec![]),
        (Symptom::Any(vec![age(), kind("Worn")]), ConditionStatus::Unknown, vec![]),
        (Symptom::Any(vec![kind("A"), kind("B")]), ConditionStatus::Unknown, vec!["A", "B"]),
        (kind("Worn"), ConditionStatus::Unknown, vec![]),
        (age(), ConditionStatus::Unknown, vec![]),
    ] {
        node.conditions = vec![seen(READY, status, 1_000)];
        let threshold = Threshold { symptom, period: Span::ZERO, stale_after: STALE_AFTER };
        let unknown: Vec<&str> = unknown_conditions(&node, &threshold, NOW).into_iter().collect();
        assert_eq!(unknown, named, "{:?}", threshold.symptom);
    }
}

/// Kleene's tables. What is there is `T`, what is absent `F`, what nobody knows `U`.
#[test]
fn what_nobody_knows_neither_crosses_nor_clears() {
    let mut node = node();
    node.conditions = vec![
        seen("T", ConditionStatus::True, 100),
        seen("F", ConditionStatus::False, 200),
        seen("U", ConditionStatus::Unknown, 300),
    ];
    let letter = |symptom| match found(&node, symptom, NOW).as_str() {
        "absent" => 'F',
        "unclear" => 'U',
        word if word.starts_with("there") => 'T',
        word => panic!("{word}"),
    };
    let mut table = vec!["a b  all any not-a".to_string()];
    for a in ["T", "U", "F"] {
        for b in ["T", "U", "F"] {
            let both = || vec![holds(a), holds(b)];
            let all = letter(Symptom::All(both()));
            let any = letter(Symptom::Any(both()));
            let not = letter(Symptom::Not(Box::new(holds(a))));
            table.push(format!("{a} {b}  {all}   {any}   {not}"));
        }
    }
    expect![[r"
        a b  all any not-a
        T T  T   T   F
        T U  U   T   F
        T F  F   T   F
        U T  U   T   U
        U U  U   U   U
        U F  F   U   U
        F T  F   T   T
        F U  F   U   T
        F F  F   F   T"]]
    .assert_eq(&table.join("\n"));
    assert_eq!(letter(Symptom::All(Vec::new())), 'U');
    assert_eq!(letter(Symptom::Any(Vec::new())), 'U');
    assert_eq!(letter(holds("NeverHeardOf")), 'U');
}

#[test]
fn a_compound_is_there_since_its_parts_made_it_so() {
    let mut node = node();
    node.conditions.push(seen("Early", ConditionStatus::True, 200));
    node.conditions.push(seen("Late", ConditionStatus::True, 300));
    node.conditions.push(seen("Off", ConditionStatus::False, 400));
    let both = || vec![holds("Early"), holds("Late")];
    let not = |symptom| Symptom::Not(Box::new(symptom));
    let rows = [
        (Symptom::All(both()), "there since 300"),
        (Symptom::Any(both()), "there since 200"),
        (not(holds("Off")), "there since 400"),
        (not(Symptom::All(vec![holds("Off"), holds("Early")])), "there since 400"),
        (not(Symptom::Any(vec![holds("Off"), not(holds("Late"))])), "there since 400"),
        (Symptom::All(vec![holds("Early"), not(holds("Off"))]), "there since 400"),
        (Symptom::All(vec![holds("Early"), holds("Off")]), "absent"),
    ];
    for (symptom, expected) in rows {
        assert_eq!(found(&node, symptom.clone(), NOW), expected, "{symptom:?}");
    }
    let symptom = Symptom::All(both());
    let threshold = Threshold { symptom, period: Span::seconds(60), stale_after: STALE_AFTER };
    let (since, crosses_at) = (at(300), at(360));
    let ripening = Crossing::Ripening { since, crosses_at };
    for condition in &mut node.conditions {
        condition.reported = Some(at(300));
    }
    assert_eq!(crossed(&node, &threshold, at(359)), ripening);
    assert_eq!(crossed(&node, &threshold, at(360)), Crossing::Crossed { since });
}

#[test]
fn a_reason_counts_word_for_word() {
    let mut node = node();
    node.conditions.push(seen("KernelDeadlock", ConditionStatus::True, 100));
    let with = |reasons: &[&str]| Symptom::Condition {
        kind: "KernelDeadlock".to_string(),
        statuses: [ConditionStatus::True].into(),
        reasons: reasons.iter().map(|reason| (*reason).to_string()).collect(),
    };
    for (reasons, expected) in [
        (&[][..], "there since 100"),
        (&["Because"][..], "there since 100"),
        (&["DockerHung", "Because"][..], "there since 100"),
        (&["because"][..], "absent"),
        (&["DockerHung"][..], "absent"),
    ] {
        assert_eq!(found(&node, with(reasons), NOW), expected, "{reasons:?}");
    }
}

/// Reported 16 minutes ago, and 14: what stays as it was said, and what nobody vouches for.
#[test] // promise: G19
fn a_condition_that_nobody_reports_any_more_is_not_known() {
    use ConditionStatus::{False, True, Unknown};
    let rows = [
        ("KernelDeadlock", True, "unclear", "there since 100"),
        ("KernelDeadlock", False, "unclear", "absent"),
        ("KernelDeadlock", Unknown, "unclear", "unclear"),
        ("NetworkUnavailable", True, "there since 100", "there since 100"),
        (READY, True, "unclear", "absent"),
        (READY, False, "there since 100", "there since 100"),
        (READY, Unknown, "there since 100", "there since 100"),
    ];
    for (kind, status, stale, fresh) in rows {
        for (minutes, expected) in [(16, stale), (14, fresh)] {
            let mut node = node();
            let mut condition = seen(kind, status, 100);
            condition.reported = Some(Time(NOW.0 - minutes * 60_000));
            node.conditions = vec![condition];
            let symptom = if kind == READY { not_ready() } else { holds(kind) };
            assert_eq!(found(&node, symptom, NOW), expected, "{kind}={status:?} {minutes} min ago");
        }
    }
    // Whose writer names no report: it is what it is.
    let mut node = node();
    node.conditions = vec![ConditionView { reported: None, ..seen("Mine", True, 100) }];
    assert_eq!(found(&node, holds("Mine"), NOW), "there since 100");
}

/// A part that nobody knows does not hide when another one is due.
#[test]
fn a_lease_that_grows_old_in_a_compound_is_looked_at_in_time() {
    let lease = || Symptom::LeaseAge(Span::seconds(40));
    let node = node();
    assert_eq!(found(&node, lease(), NOW), "absent, look at 10035");
    assert_eq!(found(&node, lease(), at(10_020)), "coming since 9995, look at 10035");
    let any = || Symptom::Any(vec![holds("NeverHeardOf"), lease()]);
    assert_eq!(found(&node, any(), NOW), "unclear, look at 10035");
    // As a part it is there or not: one that is overdue is not that old yet.
    assert_eq!(
        found(&node, Symptom::Not(Box::new(lease())), at(10_020)),
        "there since 9995, look at 10035"
    );
    assert_eq!(found(&node, any(), at(10_035)), "there since 9995");
}

fn oopses(count: u32, first: u64, last: u64) -> EventView {
    EventView {
        reason: "KernelOops".to_string(),
        kind: "Warning".to_string(),
        source: "kernel-monitor".to_string(),
        count,
        first: at(first),
        last: at(last),
    }
}

/// Three oopses within ten minutes, now being second 10000.
fn three_oopses() -> Symptom {
    Symptom::Events {
        reasons: ["KernelOops".to_string(), "TaskHung".to_string()].into(),
        kind: Some("Warning".to_string()),
        sources: [].into(),
        count: 3,
        window: Span::minutes(10),
    }
}

#[test]
fn events_count_as_often_as_they_say_within_the_window() {
    let check = |events: Vec<EventView>, expected: &Expect| {
        let node = NodeView { events: Some(events), ..node() };
        expected.assert_eq(&found(&node, three_oopses(), NOW));
    };
    check(vec![], &expect!["absent"]);
    check(vec![oopses(2, 9_500, 9_900)], &expect!["absent, look at 10100"]);
    check(vec![oopses(3, 9_500, 9_900)], &expect!["there since 9900, look at 10100"]);
    check(vec![oopses(1, 9_500, 9_500); 3], &expect!["there since 9500, look at 10100"]);
    // Evenly from the first to the last: of five the window has 9450 and 9900, of nine one more.
    check(vec![oopses(5, 8_100, 9_900)], &expect!["absent, look at 10050"]);
    check(vec![oopses(9, 8_100, 9_900)], &expect!["there since 9900, look at 10050"]);
    check(vec![oopses(u32::MAX, 0, 9_999)], &expect!["there since 9400, look at 10000"]);
    // One comes just as another leaves: the number has been full since the third.
    check(vec![oopses(7, 8_800, 10_000)], &expect!["there since 9200, look at 10000"]);
    check(
        vec![oopses(2, 8_800, 9_000), oopses(5, 9_200, 10_000)],
        &expect!["there since 9200, look at 10000"],
    );
    // Between 9310 and 9500 two of them were left.
    check(
        vec![oopses(3, 8_700, 9_000), oopses(3, 9_500, 9_900)],
        &expect!["there since 9900, look at 10100"],
    );
    // Long over.
    check(vec![oopses(100, 0, 9_000)], &expect!["absent"]);
    // Others' words.
    let other = |change: &dyn Fn(&mut EventView)| {
        let mut event = oopses(9, 9_500, 9_900);
        change(&mut event);
        vec![event]
    };
    check(other(&|event| event.reason = "OOMKilling".into()), &expect!["absent"]);
    check(other(&|event| event.kind = "Normal".into()), &expect!["absent"]);
    // While they are not known, nobody knows.
    assert_eq!(found(&node(), three_oopses(), NOW), "unclear");
}

#[test]
fn events_of_before_the_node_was_ready_again_are_over() {
    let mut node = node();
    node.events = Some(vec![oopses(3, 9_500, 9_900)]);
    node.conditions = vec![seen(READY, ConditionStatus::True, 9_950)];
    assert_eq!(found(&node, three_oopses(), NOW), "absent");
    node.conditions = vec![seen(READY, ConditionStatus::False, 9_950)];
    assert_eq!(found(&node, three_oopses(), NOW), "there since 9900, look at 10100");
    // A boot that was so quick that nobody took it for lost.
    node.boot_heard_at = at(9_950);
    assert_eq!(found(&node, three_oopses(), NOW), "absent");
}

#[test]
fn a_condition_that_flaps_is_a_symptom() {
    let flapping =
        || Symptom::Flaps { kind: READY.to_string(), count: 4, window: Span::minutes(10) };
    let changes = |known_since: u64, times: &[u64]| {
        let changes = times.iter().map(|time| (READY.to_string(), at(*time))).collect();
        let changes = Some(ChangesView { known_since: at(known_since), changes });
        NodeView { changes, ..node() }
    };
    let rows: [(u64, &[u64], &str); 5] = [
        (0, &[9_500, 9_600, 9_700, 9_800], "there since 9800, look at 10100"),
        (0, &[9_300, 9_600, 9_700, 9_800], "absent, look at 10200"),
        (0, &[], "absent"),
        // Watched for 200 s of the 600: three are not known to be all, and four are four.
        (9_800, &[9_850, 9_900, 9_950], "unclear, look at 10400"),
        (9_800, &[9_850, 9_900, 9_950, 9_960], "there since 9960, look at 10400"),
    ];
    for (known_since, times, expected) in rows {
        let node = changes(known_since, times);
        assert_eq!(found(&node, flapping(), NOW), expected, "{known_since} {times:?}");
    }
    let mut other = changes(0, &[9_500, 9_600, 9_700, 9_800]);
    for (kind, _) in &mut other.changes.as_mut().expect("watched").changes {
        *kind = "DiskPressure".to_string();
    }
    assert_eq!(found(&other, flapping(), NOW), "absent");
    assert_eq!(found(&node(), flapping(), NOW), "unclear");
}

#[test]
fn a_node_for_which_no_kubelet_ever_spoke_has_not_joined() {
    let symptom = || Symptom::NeverJoined(Span::minutes(10));
    let bare = || {
        let mut node = node();
        node.created_at = at(9_000);
        node.lease_seen_at = None;
        node.liveness.boot_id = String::new();
        node.conditions = Vec::new();
        node
    };
    let ready = |status, reason: &str| {
        let mut node = bare();
        let ready = seen(READY, status, 9_040);
        node.conditions = vec![ConditionView { reason: reason.to_string(), ..ready }];
        node
    };
    assert_eq!(found(&bare(), symptom(), NOW), "there since 9000");
    let never = ready(ConditionStatus::Unknown, "NodeStatusNeverUpdated");
    assert_eq!(found(&never, symptom(), NOW), "there since 9000");
    assert_eq!(found(&never, symptom(), at(9_599)), "coming since 9000, look at 9600");
    let lost = ready(ConditionStatus::Unknown, "NodeStatusUnknown");
    assert_eq!(found(&lost, symptom(), NOW), "absent");
    assert_eq!(found(&ready(ConditionStatus::False, "KubeletNotReady"), symptom(), NOW), "absent");
    let leased = NodeView { lease_seen_at: Some(NOW), ..bare() };
    assert_eq!(found(&leased, symptom(), NOW), "absent");
    let mut booted = bare();
    booted.liveness.boot_id = "boot-1".to_string();
    assert_eq!(found(&booted, symptom(), NOW), "absent");
}
