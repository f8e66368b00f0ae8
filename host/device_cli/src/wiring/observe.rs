//! Who is heard after a plug was switched: what Leases say, as plain values. It waits for nothing.
//!
//! A node is heard by a renewal that is clearly later than the switching. It is silent when two
//! renewals are overdue, and what was on its way had time to arrive.

use node_remedy_decide::{Span, Time};
use node_remedy_observe::caches::lease_key;
use node_remedy_observe::pruned::PrunedLease;
use node_remedy_observe::store::Objects;

/// A renewal that was on its way when the plug was switched may arrive so much later.
pub(super) const ON_ITS_WAY: Span = Span::seconds(5);
/// What a Lease lasts that does not say.
const LEASE_S: u64 = 40;

/// What the nodes' Leases say since a plug was switched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LeaseFinding {
    /// Some node neither was heard nor is silent yet.
    NotYet,
    /// Every node was heard.
    All,
    /// Every node was heard but the target, which is silent.
    AllButTarget,
    /// These fell silent, and they are not the target.
    OthersSilent(Vec<String>),
}

/// What of one node's Lease is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Heard,
    Awaited,
    Silent,
}

/// What is told of `nodes` since a plug was switched at `since`.
pub(super) fn told<'a>(
    target: &str,
    nodes: impl Iterator<Item = &'a str>,
    leases: &Objects<PrunedLease>,
    since: Time,
    now: Time,
) -> LeaseFinding {
    let (mut silent, mut is_awaited, mut of_target) = (Vec::new(), false, Sign::Awaited);
    for node in nodes {
        let lease = leases.get(&*lease_key(node));
        if node == target {
            of_target = sign(lease, since, since, now);
            continue;
        }
        // A neighbour that is cut is missed from its last renewal on: it is dark by mistake.
        let missed_from = lease.map_or(since, |lease| lease.observed);
        match sign(lease, since, missed_from, now) {
            Sign::Heard => {}
            Sign::Awaited => is_awaited = true,
            Sign::Silent => silent.push(node.to_owned()),
        }
    }
    if !silent.is_empty() {
        return LeaseFinding::OthersSilent(silent);
    }
    match of_target {
        Sign::Heard if !is_awaited => LeaseFinding::All,
        Sign::Silent if !is_awaited => LeaseFinding::AllButTarget,
        Sign::Heard | Sign::Silent | Sign::Awaited => LeaseFinding::NotYet,
    }
}

/// Whether a node was heard after `since`.
pub(super) fn is_heard(lease: Option<&PrunedLease>, since: Time) -> bool {
    lease.is_some_and(|lease| lease.was_renewed() && lease.renewed_at() > since)
}

fn sign(lease: Option<&PrunedLease>, since: Time, missed_from: Time, now: Time) -> Sign {
    if is_heard(lease, since.after(ON_ITS_WAY)) {
        return Sign::Heard;
    }
    let duration_s = lease.map_or(LEASE_S, |lease| lease.duration_s);
    // Kubelets renew four times in the duration of the Lease.
    let two_renewals = Span(duration_s.saturating_mul(1_000) / 2);
    let last = lease.map_or(missed_from, |lease| lease.observed.max(missed_from));
    let overdue_at = last.after(two_renewals).after(ON_ITS_WAY);
    if now >= overdue_at { Sign::Silent } else { Sign::Awaited }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::Lease;
    use serde_json::json;

    use super::*;
    use node_remedy_runtime::clock::timestamp;

    const CUT: Time = Time(1_000_000_000_000);

    fn at(seconds: i64) -> Time {
        Time(CUT.0.saturating_add_signed(seconds * 1_000))
    }

    /// Renewed at these seconds after the cut, as it was told at once.
    fn lease(name: &str, renewed: &[i64]) -> PrunedLease {
        let found = |seconds: i64| {
            let stamp = format!("{:.6}", timestamp(at(seconds)));
            let object = json!({
                "metadata": {"name": name},
                "spec": {"renewTime": stamp, "leaseDurationSeconds": 40},
            });
            let lease: Lease = serde_json::from_value(object).unwrap();
            PrunedLease::of(lease, at(seconds)).unwrap()
        };
        let mut all = renewed.iter().map(|seconds| found(*seconds));
        let first = all.next().unwrap();
        all.fold(first, |before, next| next.after(&before))
    }

    fn say(a: &[i64], b: &[i64], c: Option<&[i64]>, now: i64) -> LeaseFinding {
        let nodes = ["a", "b", "c"];
        let mut leases = Objects::new();
        for (name, renewed) in [("a", Some(a)), ("b", Some(b)), ("c", c)] {
            if let Some(renewed) = renewed {
                leases.insert(lease_key(name).into(), lease(name, renewed));
            }
        }
        told("a", nodes.into_iter(), &leases, CUT, at(now))
    }

    #[test]
    fn a_plug_is_judged_when_the_target_is_and_every_other_node_was_heard() {
        let heard: &[i64] = &[-2, 8];
        let c = Some(heard);
        assert_eq!(say(&[-12, -2], heard, c, 24), LeaseFinding::NotYet, "two intervals, and 5 s");
        assert_eq!(say(&[-12, -2], heard, c, 25), LeaseFinding::AllButTarget);
        assert_eq!(say(&[-6, 4], heard, c, 25), LeaseFinding::NotYet, "one was on its way");
        assert_eq!(say(&[-6, 4], heard, c, 29), LeaseFinding::AllButTarget);
        assert_eq!(say(&[-4, 6], heard, c, 9), LeaseFinding::All, "the target lives on");
        assert_eq!(say(&[-12, -2], &[-15, -5, 5], c, 24), LeaseFinding::NotYet, "b is awaited");
        assert_eq!(say(&[8], heard, c, 9), LeaseFinding::NotYet, "what is only found may be old");
    }

    #[test]
    fn another_node_that_falls_silent_is_named_whatever_the_target_does() {
        let heard: &[i64] = &[-2, 8];
        for target in [heard, &[-12, -2]] {
            assert_eq!(say(target, &[-19, -9], Some(heard), 15), LeaseFinding::NotYet);
            let silent = LeaseFinding::OthersSilent(vec!["b".to_owned()]);
            assert_eq!(say(target, &[-19, -9], Some(heard), 16), silent);
        }
        let silent = LeaseFinding::OthersSilent(vec!["c".to_owned()]);
        assert_eq!(say(&[-2, 8], heard, None, 25), silent, "one without a Lease is not heard");
    }
}
