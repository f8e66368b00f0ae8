//! Nodes that fall silent at once, however large the cluster is, and the tail of a storm.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::gates::{A, cluster};
use crate::*;

/// The index of the node that is looked at.
fn target(view: &GateView) -> usize {
    view.nodes.iter().position(|node| node.name == view.target).unwrap()
}

fn renewed(view: &mut GateView, index: usize, at: Time) {
    view.nodes[index].renewed_at = Some(at);
    view.nodes[index].renewed_between = Some((at, at));
}

fn says((view, now): &(GateView, Time)) -> String {
    let verdict = gate(&GatePolicy::default(), view, *now);
    let lines: Vec<String> = verdict.refusals.iter().map(ToString::to_string).collect();
    let next = verdict.next_look.map(|at| at.since(*now).to_string());
    lines.into_iter().chain(next).collect::<Vec<_>>().join("; ")
}

/// So many of seventy-two, so many seconds after their last renewal.
fn of_72(silent: u64, after_s: u64) -> (GateView, Time) {
    cluster(72, silent, after_s)
}

const TWELVE: &str = "silent at once: 12 ≥ 3 nodes, within 12 s of each other (node-0, node-1, node-2, node-3, \
                      node-4, …); look at what they share";

#[test]
fn a_rack_of_a_large_cluster_that_falls_silent_at_once_is_never_cut() {
    for after_s in 12..120 {
        let (view, now) = of_72(12, after_s);
        let verdict = gate(&GatePolicy::default(), &view, now);
        assert!(!verdict.is_open(), "{after_s} s");
    }
    assert_eq!(says(&of_72(12, 23)), TWELVE);
    assert_eq!(says(&of_72(12, 86_400)), TWELVE, "as long as they are silent");
    assert_eq!(says(&of_72(2, 23)), "", "two may die in the same seconds");
    let three = "silent at once: 3 ≥ 3 nodes, within 12 s of each other (node-0, node-1, node-2); \
                 look at what they share";
    assert_eq!(says(&of_72(3, 23)), three);
}

/// What is not known yet may be one more: at the moment at which a share of a large cluster is judged by
/// most of it, two more of those that are still to be heard make a storm.
#[test]
fn the_first_of_them_is_not_cut_before_the_others_are_missed() {
    let (mut view, now) = of_72(1, 21);
    for index in 1..70 {
        renewed(&mut view, index, Time(now.0 - 1_000));
    }
    renewed(&mut view, 70, Time(A + 1_000));
    renewed(&mut view, 71, Time(A + 2_000));
    let said = says(&(view, now));
    assert!(said.starts_with("too early to tell whether 2 other nodes fell silent too"), "{said}");
}

#[test]
fn renewals_that_ended_further_apart_are_no_storm() {
    let (mut view, _) = of_72(1, 0);
    let now = Time(A + 100_000);
    for index in 1..72 {
        renewed(&mut view, index, Time(now.0 - 1_000));
    }
    for (index, later_ms) in [(1, 12_001), (2, 24_002), (3, 36_003)] {
        renewed(&mut view, index, Time(A + later_ms));
    }
    view.heard_at = now;
    assert_eq!(says(&(view.clone(), now)), "");
    // One of them is with each of its neighbours.
    renewed(&mut view, 1, Time(A + 12_000));
    view.target = "node-1".to_string();
    renewed(&mut view, 2, Time(A + 24_000));
    assert!(says(&(view, now)).starts_with("silent at once: 3"), "node-0, node-1 and node-2");
}

/// A watch that was broken tells late when a node was last heard: it may have fallen silent at any time between.
#[test]
fn what_a_broken_watch_told_late_may_have_ended_at_once() {
    let (mut view, now) = of_72(3, 100);
    for index in [1, 2] {
        view.nodes[index].renewed_at = Some(Time(A - 40_000));
        view.nodes[index].renewed_between = Some((Time(A - 40_000), Time(A)));
    }
    assert!(says(&(view, now)).starts_with("silent at once: 3"));
}

/// A node that goes on to renew its Lease fell silent with nobody, and one that is only not Ready neither.
#[test]
fn what_renews_its_lease_is_not_silent() {
    let (mut view, now) = of_72(3, 100);
    for index in [1, 2] {
        renewed(&mut view, index, Time(now.0 - 1_000));
        view.nodes[index].ready = false;
    }
    assert_eq!(says(&(view.clone(), now)), "");
    let (mut view, now) = of_72(4, 100);
    renewed(&mut view, 0, Time(now.0 - 1_000));
    view.symptom_since = Some(Time(now.0 - 60_000));
    assert_eq!(says(&(view, now)), "", "three others are silent; it is ill");
}

/// Three of seventy-two fell silent, and one of them comes back: the other two may follow.
#[test]
fn a_storm_has_a_tail_of_three_renewals() {
    let after = |ms: u64, silent_since: Option<Time>| {
        let (mut view, now) = of_72(3, 100);
        let at = target(&view);
        renewed(&mut view, at + 2, Time(now.0 - 500));
        view.nodes[at + 2].came_back = Some(CameBack { at: Time(now.0 - ms), silent_since });
        (view, now)
    };
    let tail = "too many nodes were unhealthy a moment ago: 1 came back and must renew three times first; ";
    assert_eq!(says(&after(500, Some(Time(A)))), tail.to_string() + "29.5 s");
    assert_eq!(says(&after(29_999, Some(Time(A)))), tail.to_string() + "1 ms");
    assert_eq!(says(&after(30_000, Some(Time(A)))), "");
    assert_eq!(says(&after(500, Some(Time(A - 60_000)))), "", "its silence was another one");
    assert_eq!(says(&after(500, None)), "", "it was not silent");
}

/// Two of three are silent; once the first is well, the share alone would let the other be cut at once.
#[test]
fn the_tail_is_of_the_clusters_share_too() {
    for (back_ms, is_open) in [(600, false), (29_000, false), (30_000, true)] {
        let (mut view, now) = cluster(3, 2, 300);
        renewed(&mut view, 1, Time(now.0 - 600));
        view.nodes[1].came_back = Some(CameBack { at: Time(now.0 - back_ms), silent_since: None });
        let said = says(&(view, now));
        assert_eq!(said.is_empty(), is_open, "{said}");
        assert!(
            is_open || said.starts_with("too many nodes were unhealthy a moment ago: 1"),
            "{said}"
        );
    }
}
