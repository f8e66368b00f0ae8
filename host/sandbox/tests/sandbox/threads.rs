//! The plugins' own threads, in real time: a guest that computes without end stalls neither the caller nor its
//! neighbour, and is cut at its deadline.

use std::sync::Arc;
use std::time::Duration;

use node_remedy_sandbox::{Action, Ended, Executor, FailureKind, Verdict, compile, limits};
use tokio::time::Instant;

use crate::guest::{HOSTILE, SANDBOX, TIRELESS, WASM, World, call};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_spinning_guest_stalls_neither_its_neighbour_nor_the_caller() {
    let world = World::new();
    let executor = Executor::threads(&SANDBOX, 1).unwrap();
    let mut spinner = call(Action::Status, "spin");
    spinner.request.deadline = LONG;
    let enough = spinner.cancel.clone();
    let spinning = executor.run(Arc::clone(&TIRELESS), spinner, world.seams.clone());
    // On the very same plugin thread, while the other one spins, with the caller's own event loop turning.
    let neighbour = async {
        let honest = call(Action::Status, "honest");
        let report = executor.run(Arc::clone(&HOSTILE), honest, world.seams.clone()).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        enough.ask();
        report
    };
    let (spun, honest) = tokio::join!(spinning, neighbour);
    assert!(honest.result.is_ok(), "{honest:?}");
    assert_eq!(spun.ended, Ended::Cancelled, "it span until the others were done");
}

#[tokio::test]
async fn a_spinning_guest_is_cut_at_its_deadline() {
    let world = World::new();
    let executor = Executor::threads(&SANDBOX, 1).unwrap();
    let mut spinner = call(Action::Off, "spin-after-effect");
    spinner.request.deadline = Duration::from_secs(2);
    let cut = executor.run(Arc::clone(&TIRELESS), spinner, world.seams.clone()).await;
    assert_eq!(cut.ended, Ended::Deadline, "{cut:?}");
    assert!(matches!(cut.verdict(), Verdict::Indeterminate(f) if f.kind == FailureKind::Timeout));
}

#[tokio::test]
async fn dropping_the_future_asks_the_call_to_stop() {
    let world = World::new();
    let executor = Executor::threads(&SANDBOX, 1).unwrap();
    let mut sleeper = call(Action::Status, "sleep");
    sleeper.request.deadline = LONG;
    let cancel = sleeper.cancel.clone();
    let running = executor.run(Arc::clone(&HOSTILE), sleeper, world.seams.clone());
    assert!(tokio::time::timeout(Duration::from_millis(30), running).await.is_err());
    assert!(cancel.is_asked());
    // Returns only when the thread is done with the call, which sleeps until its deadline otherwise.
    let begun = Instant::now();
    drop(executor);
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_finished_call_leaves_its_cancel_alone() {
    let world = World::new();
    let executor = Executor::threads(&SANDBOX, 1).unwrap();
    let honest = call(Action::Status, "honest");
    let cancel = honest.cancel.clone();
    executor.run(Arc::clone(&HOSTILE), honest, world.seams.clone()).await.result.unwrap();
    assert!(!cancel.is_asked());

    let mut next = call(Action::Status, "honest");
    next.cancel = cancel.clone();
    cancel.ask();
    let report = executor.run(Arc::clone(&HOSTILE), next, world.seams.clone()).await;
    assert_eq!(report.ended, Ended::NotStarted, "cancelled before it began");
    assert_eq!(world.device.heard().len(), 1, "and nothing was sent");
}

#[tokio::test]
async fn both_executors_make_the_same_report() {
    let inline = World::new();
    let threads = World::new();
    let executor = Executor::threads(&SANDBOX, 2).unwrap();
    let mut there =
        executor.run(Arc::clone(&HOSTILE), call(Action::Off, "act"), threads.seams.clone()).await;
    let mut here =
        Executor::Inline.run(Arc::clone(&HOSTILE), call(Action::Off, "act"), inline.seams).await;
    // Real time is the one thing that differs.
    for report in [&mut here, &mut there] {
        report.elapsed_ms = 0;
        report.exchanges.iter_mut().for_each(|exchange| exchange.at_ms = 0);
        report.log.iter_mut().for_each(|line| line.at_ms = 0);
    }
    assert_eq!(here, there);
}

#[tokio::test]
async fn what_does_not_fit_the_queue_is_refused_as_busy_and_nothing_begun() {
    let world = World::new();
    // One that is built in has no turns of its own before the threads'.
    let code: &'static [u8] = compile::pack(&compile::compile(&WASM).unwrap()).unwrap().leak();
    let hostile = SANDBOX.load_builtin(&WASM, code).unwrap();
    let executor = Executor::threads(&SANDBOX, 1).unwrap();
    let room = limits::CALLS_PER_THREAD_MAX + limits::CALLS_QUEUED_MAX;
    let calls = (0..room + 50).map(|_| {
        let mut sleeper = call(Action::Status, "sleep");
        sleeper.request.deadline = Duration::from_millis(1);
        executor.run(Arc::clone(&hostile), sleeper, world.seams.clone())
    });
    let reports = futures::future::join_all(calls).await;
    let (refused, ran): (Vec<_>, Vec<_>) =
        reports.into_iter().partition(|report| report.ended == Ended::NotStarted);
    assert!(!refused.is_empty() && ran.len() >= limits::CALLS_QUEUED_MAX);
    assert!(refused.iter().all(|report| matches!(report.verdict(),
        Verdict::FailedBeforeEffect(failure) if failure.kind == FailureKind::Busy)));
    assert!(ran.iter().all(|report| report.ended == Ended::Deadline));
}
