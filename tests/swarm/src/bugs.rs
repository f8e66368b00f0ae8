//! The test of the test: bugs sown on purpose, one at a time, and how soon they are found.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use node_remedy_decide::bug::{Bug, sow};

use crate::play::{Outcome, night};

/// What became of one sown bug.
#[derive(Debug, Clone)]
pub struct Found {
    /// Which.
    pub bug: Bug,
    /// How many nights it took, and the invariants that the last of them broke; `None` if none of
    /// `nights` did.
    pub by: Option<(u64, Vec<&'static str>)>,
}

/// Sows a bug and plays nights from seed 0 on until one breaks an invariant.
pub fn seek(bug: Bug, nights: u64, lasts: Duration, threads: usize) -> anyhow::Result<Found> {
    sow(Some(bug));
    let first = first_that_breaks(nights, lasts, threads);
    sow(None);
    let by = first?.map(|outcome| {
        let mut invariants: Vec<&str> = outcome.broken.iter().map(|one| one.invariant).collect();
        invariants.sort_unstable();
        invariants.dedup();
        (outcome.night.seed + 1, invariants)
    });
    Ok(Found { bug, by })
}

/// The first of so many nights, whatever the number of threads.
fn first_that_breaks(
    nights: u64,
    lasts: Duration,
    threads: usize,
) -> anyhow::Result<Option<Outcome>> {
    let (next, end) = (AtomicU64::new(0), AtomicU64::new(nights));
    let first: Mutex<Option<Outcome>> = Mutex::new(None);
    let seek = || -> anyhow::Result<()> {
        loop {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seed >= end.load(Ordering::SeqCst) {
                return Ok(());
            }
            let outcome = night(seed, lasts)?;
            if outcome.broken.is_empty() {
                continue;
            }
            end.fetch_min(seed, Ordering::SeqCst);
            let Ok(mut first) = first.lock() else { return Ok(()) };
            if first.as_ref().is_none_or(|other| seed < other.night.seed) {
                *first = Some(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(seek)).collect();
        let joined = running.into_iter().map(|one| {
            let panicked = || Err(anyhow::anyhow!("a night panicked"));
            one.join().unwrap_or_else(|_| panicked())
        });
        joined.collect::<anyhow::Result<()>>()
    })?;
    Ok(first.into_inner().ok().flatten())
}
