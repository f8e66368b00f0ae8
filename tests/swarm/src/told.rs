//! Makes runs that went wrong short, writes their files and says so.

use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use node_remedy_decide::bug::Bug;
use node_remedy_swarm::failure::{Failure, Origin};
use node_remedy_swarm::play::Outcome;
use node_remedy_swarm::shrink::{PLAYS_MAX, shrink};

use crate::arguments::Arguments;

/// Of several runs that went wrong, how many are told.
pub(crate) const TOLD: usize = 5;

/// What the runs of this call follow from besides their seeds.
pub(crate) fn origin(arguments: &Arguments, bug: Option<Bug>) -> Origin {
    Origin { commit: commit(), bug: bug.map(Bug::name), replay: arguments.replay_command() }
}

/// The commit of the checkout that this runs in; `unknown` without git or outside of one.
fn commit() -> String {
    let describe = ["describe", "--always", "--dirty", "--exclude=*"];
    let said = Command::new("git").args(describe).output().ok();
    let said = said.filter(|said| said.status.success());
    said.map_or("unknown".to_owned(), |said| {
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    })
}

/// Makes the first few runs that went wrong short, some at a time, and hands each to `tell` with
/// its files written. Fails if one cannot be played or written.
pub(crate) fn each_failure(
    wrong: &[Outcome],
    origin: &Origin,
    threads: usize,
    mut tell: impl FnMut(&Failure),
) -> anyhow::Result<Vec<Failure>> {
    let mut failures = Vec::new();
    let told = wrong.get(..TOLD).unwrap_or(wrong);
    for some in told.chunks(threads.max(1)) {
        let some: Vec<anyhow::Result<Failure>> = std::thread::scope(|scope| {
            let running: Vec<_> =
                some.iter().map(|whole| scope.spawn(|| failure(whole, origin))).collect();
            let joined = running.into_iter().map(|one| {
                let panicked = || Err(anyhow!("a run panicked while it was made short"));
                one.join().unwrap_or_else(|_| panicked())
            });
            joined.collect()
        });
        for failure in some {
            let failure = failure?;
            let written = failure.write();
            tell(&failure);
            written?;
            failures.push(failure);
        }
    }
    Ok(failures)
}

fn failure(whole: &Outcome, origin: &Origin) -> anyhow::Result<Failure> {
    let first = whole.broken.first().context("nothing was broken")?;
    let (seed, invariant) = (whole.run.seed, first.invariant);
    eprintln!("  run {seed} breaks {first}; seeking the shortest that breaks {invariant} …");
    let mut fewest = usize::MAX;
    let tell = |left, plays| {
        if left < fewest {
            fewest = left;
            eprintln!("  run {seed}: {left} faults break {invariant} (play {plays})");
        }
    };
    let shrunk = shrink(whole, first, PLAYS_MAX, tell)?;
    let (broken, run) = (whole.broken.clone(), whole.run.clone());
    Ok(Failure { broken, run, shrunk, origin: origin.clone() })
}

/// How often progress is told.
pub(crate) const TELL_EVERY: Duration = Duration::from_secs(10);

pub(crate) fn verdict(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
