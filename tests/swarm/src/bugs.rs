//! The test of the test: bugs seeded on purpose, one at a time, and how soon they are found.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use node_remedy_decide::bug::{Bug, seed_bug};

use crate::checks::Violation;
use crate::corpus;
use crate::crash::{Reference, Wrong, scenarios, seams};
use crate::play::{Outcome, run};

/// What became of one seeded bug.
#[derive(Debug, Clone)]
pub struct Found {
    /// Which.
    pub bug: Bug,
    /// What it broke of the sandbox's own promises, in the corpus of attacks.
    pub corpus: Vec<&'static str>,
    /// The scenarios of tests/scenarios and tests/seams in which it breaks invariants, and which.
    pub scenarios: Vec<(String, Vec<&'static str>)>,
    /// How many runs it took, and the invariants that the last of them broke; `None` if none of
    /// them did.
    pub runs: Option<(u64, Vec<&'static str>)>,
    /// Whether what found it before finds it no longer.
    pub is_moved: bool,
}

/// Runs in which a bug is sought that the corpus or a scenario has found.
const A_FEW: u64 = 60;

/// What found bugs before, `BUG SEED` or `BUG SCENARIO` a line. With `--first-only` that run or scenario is played
/// first; where it finds its bug no longer, the bug is sought as ever.
const KNOWN: &str = include_str!("../known-finds.txt");

/// How a bug is sought.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// Runs where neither the corpus nor a scenario tells.
    pub runs: u64,
    /// How long each is, simulated.
    pub lasts: Duration,
    /// How many are played at a time.
    pub threads: usize,
    /// Whether the first that tells is enough: the rest is not played then.
    pub first_only: bool,
}

/// Seeds a bug, plays the corpus, the scenarios, and runs from seed 0 on until one breaks an invariant: a few
/// where corpus or scenario has told already, up to `runs` where none has.
pub fn seek(bug: Bug, search: &Search) -> anyhow::Result<Found> {
    seed_bug(Some(bug));
    let found = found(bug, search);
    seed_bug(None);
    found
}

fn found(bug: Bug, search: &Search) -> anyhow::Result<Found> {
    let mut found =
        Found { bug, corpus: Vec::new(), scenarios: Vec::new(), runs: None, is_moved: false };
    let known = known_place(bug).filter(|_| search.first_only);
    if let Some(place) = known {
        play_known(&mut found, search, place)?;
        if found.is_found() {
            return Ok(found);
        }
    }
    found.is_moved = known.is_some();
    found.corpus = invariants(&corpus::broken()?);
    if search.first_only && found.is_found() {
        return Ok(found);
    }
    play_scenarios(&mut found, search, None)?;
    let runs = match (found.is_found(), search.first_only) {
        (true, true) => return Ok(found),
        (true, false) => search.runs.min(A_FEW),
        (false, _) => search.runs,
    };
    let Some(first) = first_that_breaks(runs, search.lasts, search.threads)? else {
        return Ok(found);
    };
    let seed = first.run.seed;
    anyhow::ensure!(is_sound(bug, seed, search)?, "run {seed} goes wrong without any bug");
    found.runs = Some((seed + 1, invariants(&first.broken)));
    Ok(found)
}

/// Plays the run or the scenario that found a bug before.
fn play_known(found: &mut Found, search: &Search, place: &str) -> anyhow::Result<()> {
    let Ok(seed) = place.parse() else { return play_scenarios(found, search, Some(place)) };
    let broken = invariants(&run(seed, search.lasts)?.broken);
    let is_found = !broken.is_empty() && is_sound(found.bug, seed, search)?;
    found.runs = Some((seed + 1, broken)).filter(|_| is_found);
    Ok(())
}

/// Whether a run goes well without the bug that is seeded: one that does not would find every bug.
fn is_sound(bug: Bug, seed: u64, search: &Search) -> anyhow::Result<bool> {
    seed_bug(None);
    let outcome = run(seed, search.lasts);
    seed_bug(Some(bug));
    Ok(outcome?.broken.is_empty())
}

/// The seed of the run, or the name of the scenario, that found this bug before.
fn known_place(bug: Bug) -> Option<&'static str> {
    let mut lines = KNOWN.lines().filter_map(|line| line.split_once(' '));
    Some(lines.find(|(name, _)| *name == bug.name())?.1)
}

impl Found {
    /// Whether an invariant found it. That a scenario goes otherwise than it says does not count: whoever wrote it knew what
    /// to expect.
    pub fn is_found(&self) -> bool {
        self.runs.is_some() || !self.scenarios.is_empty() || !self.corpus.is_empty()
    }
}

/// Each once.
fn invariants(broken: &[Violation]) -> Vec<&'static str> {
    let invariants: BTreeSet<&str> = broken.iter().map(|one| one.invariant).collect();
    invariants.into_iter().collect()
}

/// A scenario or an attack that goes wrong by itself would find every bug.
pub fn all_is_well_without(threads: usize) -> anyhow::Result<()> {
    let broken = corpus::broken()?;
    anyhow::ensure!(broken.is_empty(), "without any bug these are broken: {broken:?}");
    let found = Mutex::new(Vec::new());
    each_scenario(threads, None, |name, wrong| {
        if !wrong.is_empty() {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push(format!("{name}: {wrong}"));
        }
        true
    })?;
    let wrong = found.into_inner().unwrap_or_default();
    anyhow::ensure!(wrong.is_empty(), "without any bug these go wrong: {}", wrong.join(", "));
    Ok(())
}

/// Notes which invariants a bug breaks in all scenarios, or the one of that name; with `first_only` no more are played once
/// one did.
fn play_scenarios(found: &mut Found, search: &Search, only: Option<&str>) -> anyhow::Result<()> {
    let told = Mutex::new(Vec::new());
    each_scenario(search.threads, only, |name, wrong| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if !wrong.broken.is_empty() {
            told.push((name, invariants(&wrong.broken)));
        }
        !search.first_only || told.is_empty()
    })?;
    found.scenarios = told.into_inner().unwrap_or_default();
    found.scenarios.sort();
    Ok(())
}

/// Plays the scenarios of tests/scenarios and tests/seams, or the one of that name, for as long as `see` wants more.
fn each_scenario(
    threads: usize,
    only: Option<&str>,
    see: impl Fn(String, Wrong) -> bool + Sync,
) -> anyhow::Result<()> {
    let (mut files, next) = ([scenarios()?, seams()?].concat(), AtomicUsize::new(0));
    files.retain(|file| only.is_none_or(|only| file.file_stem().is_some_and(|stem| stem == only)));
    side_by_side(threads, || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::SeqCst)) {
            let (reference, wrong) = Reference::judged(file)?;
            if !see(reference.name, wrong) {
                return Ok(());
            }
        }
        Ok(())
    })
}

/// Does the same on so many threads, until each has done it or one has failed.
fn side_by_side(
    threads: usize,
    work: impl Fn() -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        let joined = running.into_iter().map(|one| {
            let panicked = || Err(anyhow::anyhow!("a run panicked"));
            one.join().unwrap_or_else(|_| panicked())
        });
        joined.collect()
    })
}

/// The first of so many runs, whatever the number of threads.
fn first_that_breaks(
    runs: u64,
    lasts: Duration,
    threads: usize,
) -> anyhow::Result<Option<Outcome>> {
    let (next, end) = (AtomicU64::new(0), AtomicU64::new(runs));
    let first: Mutex<Option<Outcome>> = Mutex::new(None);
    side_by_side(threads, || {
        loop {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seed >= end.load(Ordering::SeqCst) {
                return Ok(());
            }
            let outcome = run(seed, lasts)?;
            if outcome.broken.is_empty() {
                continue;
            }
            end.fetch_min(seed, Ordering::SeqCst);
            let Ok(mut first) = first.lock() else { return Ok(()) };
            if first.as_ref().is_none_or(|other| seed < other.run.seed) {
                *first = Some(outcome);
            }
        }
    })?;
    Ok(first.into_inner().ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_find_is_of_a_bug_in_a_run_or_a_scenario_that_is_there() {
        let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        for line in KNOWN.lines() {
            let bug = Bug::ALL.iter().find(|bug| line.starts_with(&format!("{} ", bug.name())));
            let place = bug.and_then(|bug| known_place(*bug)).unwrap_or_default();
            let folders = ["scenarios", "seams"];
            let files = folders.map(|folder| format!("{tests}/{folder}/{place}.yaml"));
            let is_scenario = files.iter().any(|file| std::fs::exists(file).is_ok_and(|is| is));
            assert!(is_scenario || place.parse::<u64>().is_ok(), "{line}");
        }
    }
}
