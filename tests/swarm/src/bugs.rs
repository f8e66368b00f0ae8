//! The test of the test: bugs sown on purpose, one at a time, and how soon they are found.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use node_remedy_decide::bug::{Bug, sow};

use crate::checks::Violation;
use crate::corpus;
use crate::crash::{Reference, scenarios};
use crate::play::{Outcome, night};

/// What became of one sown bug.
#[derive(Debug, Clone)]
pub struct Found {
    /// Which.
    pub bug: Bug,
    /// What it broke of the sandbox's own promises, in the corpus of attacks.
    pub corpus: Vec<&'static str>,
    /// The scenarios of tests/scenarios that go otherwise than they say.
    pub scenarios: Vec<String>,
    /// How many nights it took, and the invariants that the last of them broke; `None` if none of
    /// them did.
    pub nights: Option<(u64, Vec<&'static str>)>,
}

/// Nights in which a bug is sought that the corpus or a scenario has found.
const A_FEW: u64 = 60;

/// Sows a bug, plays the corpus, the scenarios, and nights from seed 0 on until one breaks an invariant: a few
/// where corpus or scenario has told already, up to `nights` where none has.
pub fn seek(bug: Bug, nights: u64, lasts: Duration, threads: usize) -> anyhow::Result<Found> {
    sow(Some(bug));
    let (corpus, scenarios) = (corpus::broken(), that_go_wrong());
    let is_found = corpus.as_ref().is_ok_and(|found| !found.is_empty())
        || scenarios.as_ref().is_ok_and(|found| !found.is_empty());
    let nights = if is_found { nights.min(A_FEW) } else { nights };
    let first = first_that_breaks(nights, lasts, threads);
    sow(None);
    let nights = first?.map(|outcome| (outcome.night.seed + 1, invariants(&outcome.broken)));
    Ok(Found { bug, corpus: invariants(&corpus?), scenarios: scenarios?, nights })
}

/// Each once.
fn invariants(broken: &[Violation]) -> Vec<&'static str> {
    let invariants: BTreeSet<&str> = broken.iter().map(|one| one.invariant).collect();
    invariants.into_iter().collect()
}

/// A scenario or an attack that goes wrong by itself would find every bug.
pub fn all_is_well_without() -> anyhow::Result<()> {
    let broken = corpus::broken()?;
    anyhow::ensure!(broken.is_empty(), "without any bug these are broken: {broken:?}");
    let wrong = that_go_wrong()?;
    anyhow::ensure!(wrong.is_empty(), "without any bug these go wrong: {}", wrong.join(", "));
    Ok(())
}

fn that_go_wrong() -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for file in scenarios()? {
        let (reference, wrong) = Reference::judged(&file)?;
        if !wrong.is_empty() {
            found.push(reference.name);
        }
    }
    Ok(found)
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
