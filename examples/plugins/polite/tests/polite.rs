//! The example natively: what it decides for which node, after what.

use node_remedy_example_polite::{METHOD, Polite};
use node_remedy_sdk::{Decision, Entry, NodeView, RemedyPlugin};

fn node() -> NodeView {
    NodeView {
        name: "worker-3".to_owned(),
        labels: vec![(METHOD.to_owned(), "bmc".to_owned())],
        ready: true,
        pods: 7,
        peers_total: 9,
        ..NodeView::default()
    }
}

fn tried(action: &str) -> Entry {
    Entry { action: action.to_owned(), succeeded: true, ..Entry::default() }
}

fn drain() -> Decision {
    Decision::Cluster("drain".to_owned())
}

fn method() -> Decision {
    Decision::Method("bmc".to_owned())
}

#[test]
fn it_goes_from_what_harms_least_to_what_helps() {
    let mut history = Vec::new();
    for (expected, action) in
        [(drain(), "cluster drain"), (method(), "method bmc"), (Decision::Fence, "fence")]
    {
        assert_eq!(Polite.next(&node(), &history), expected);
        history.push(tried(action));
    }
    let last = Polite.next(&node(), &history);
    assert_eq!(last, Decision::Fail("the node is as ill after it was fenced".to_owned()));
}

#[test]
fn a_silent_node_is_not_drained_and_without_a_label_no_method_is_asked() {
    let silent = NodeView { ready: false, ..node() };
    assert_eq!(Polite.next(&silent, &[]), method());
    let unlabelled = NodeView { labels: Vec::new(), ..silent };
    assert_eq!(Polite.next(&unlabelled, &[]), Decision::Fence);
}

#[test]
fn while_many_are_ill_it_waits_but_not_for_ever() {
    let many = NodeView { peers_unhealthy: 3, ..node() };
    let mut history = Vec::new();
    for _ in 0..3 {
        assert_eq!(Polite.next(&many, &history), Decision::Wait(120));
        history.push(tried("wait 120"));
    }
    assert_eq!(Polite.next(&many, &history), drain());
}
