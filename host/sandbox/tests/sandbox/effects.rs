//! The commit point: what a caller may conclude from a call that ended before it, after it, or
//! that says what cannot be.

use std::sync::atomic::Ordering;

use node_remedy_sandbox::{Action, Effect, Ended, FailureKind, LogLine, PlugState, Verdict};

use crate::guest::World;

#[tokio::test(start_paused = true)]
async fn an_honest_call_has_an_outcome_and_its_evidence() {
    let world = World::new();
    let report = world.call(Action::Status, "honest").await;
    assert!(matches!(report.verdict(), Verdict::Outcome(o) if o.state == PlugState::On));
    assert_eq!((report.ended, report.effect), (Ended::Returned, Effect::NotBegun));
    let exchanged: Vec<_> =
        report.exchanges.iter().map(|e| (e.at_ms, e.bytes.as_slice())).collect();
    assert_eq!(exchanged, [(0, b"status".as_slice()), (5, b"done")]);
    assert_eq!(report.elapsed_ms, 5);
    assert!(report.fuel > 0);
}

#[tokio::test(start_paused = true)]
async fn an_effect_is_begun_under_its_operation_id() {
    let world = World::new();
    let report = world.call(Action::Off, "act").await;
    assert!(matches!(report.verdict(), Verdict::Outcome(o) if o.state == PlugState::Off));
    assert_eq!(report.effect, Effect::Begun);
    assert_eq!(*world.gate.begun.lock().unwrap(), ["op-1"]);
    assert_eq!(report.log[0].message, "effect begins: off");
}

#[tokio::test(start_paused = true)]
async fn a_trap_before_the_effect_failed_before_it() {
    let report = World::new().call(Action::Off, "trap").await;
    let said = |line: &LogLine| line.message.contains("before any effect");
    assert!(report.log.iter().any(said), "the words of its panic: {:?}", report.log);
    assert!(matches!(report.verdict(), Verdict::FailedBeforeEffect(_)));
    assert_eq!(report.ended, Ended::Trapped);
}

#[tokio::test(start_paused = true)]
async fn whatever_ends_after_the_effect_without_outcome_is_indeterminate() {
    let world = World::new();
    let rows = [
        ("trap-after-effect", Ended::Trapped),
        ("spin-after-effect", Ended::Cut),
        ("fail-after-effect", Ended::Returned),
    ];
    for (deed, ended) in rows {
        let report = world.call(Action::Off, deed).await;
        assert_eq!((report.ended, report.effect), (ended, Effect::Begun), "{deed}");
        assert!(matches!(report.verdict(), Verdict::Indeterminate(_)), "{deed}: {report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_effect_begins_without_a_recorded_intent_or_the_lease() {
    let world = World::new();
    world.gate.unrecorded.store(true, Ordering::Relaxed);
    let report = world.call(Action::Off, "act").await;
    assert!(matches!(report.verdict(), Verdict::FailedBeforeEffect(f)
        if f.detail == "the intent is not recorded"));

    world.gate.unrecorded.store(false, Ordering::Relaxed);
    world.gate.lost.store(true, Ordering::Relaxed);
    let report = world.call(Action::Off, "act").await;
    assert!(matches!(report.verdict(), Verdict::FailedBeforeEffect(f)
        if f.detail.contains("does not hold the lease")));
    let refused = world.failure(Action::Status, "honest").await;
    assert!(refused.contains("not-leader"), "{refused}");
    assert_eq!(world.device.heard(), Vec::<String>::new(), "not a byte left");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_begins_an_effect_is_refused_and_not_believed() {
    let world = World::new();
    let report = world.call(Action::Status, "effect-in-status").await;
    assert!(report.lied);
    assert!(matches!(report.verdict(), Verdict::Indeterminate(f)
        if f.kind == FailureKind::Protocol && f.detail.contains("a call that has none")));
    assert!(world.gate.begun.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_true_is_no_outcome() {
    let world = World::new();
    for (action, deed, why) in [
        (Action::Status, "claim-unheard", "without hearing from the device"),
        (Action::Off, "claim-unheard", "without hearing from the device"),
        (Action::Off, "claim-undone", "without beginning an effect"),
        (Action::Reset, "claim-undone", "without beginning an effect"),
    ] {
        let report = world.call(action, deed).await;
        assert!(
            matches!(report.verdict(), Verdict::Indeterminate(f) if f.detail.contains(why)),
            "{action:?} {deed}: {report:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_left_open_is_closed_by_the_host() {
    let world = World::new();
    let report = world.call(Action::Status, "die-with-session").await;
    assert_eq!(report.ended, Ended::Trapped);
    assert_eq!(world.device.heard(), ["login", "logout"]);

    let world = World::new();
    world.call(Action::Status, "close-session").await.result.unwrap();
    assert_eq!(world.device.heard(), ["bye"], "a withdrawn farewell is not sent");
}
