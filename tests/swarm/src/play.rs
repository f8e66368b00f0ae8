//! Plays a run and judges it.

use std::time::Duration;

use anyhow::Context as _;
use node_remedy_simulate::{Part, Played, play};
use node_remedy_world::facts::{Fact, Power, PowerCause, What};

use crate::checks::Violation;
use crate::coverage::Coverage;
use crate::definitions;
use crate::judge::{judge, timeline};
use crate::seed_run::SeedRun;

/// What became of a run.
pub struct Outcome {
    /// The run.
    pub run: SeedRun,
    /// Broken invariants.
    pub broken: Vec<Violation>,
    /// What it has seen.
    pub coverage: Coverage,
    /// Everything that truly happened, one line each.
    pub log: String,
    /// sha256 of that log, in hexadecimal digits.
    pub digest: String,
}

/// Plays the run of a seed.
pub fn run(seed: u64, lasts: Duration) -> anyhow::Result<Outcome> {
    judged(SeedRun::of(seed, lasts))
}

/// Invariants that hold whatever became of the API server's objects. Who leads is one of these: a Lease that was set back
/// names who held it then, and who may be dead.
const OF_DEVICES: [&str; 3] = ["S1", "S3", "S7"];

/// Plays a run.
pub fn judged(run: SeedRun) -> anyhow::Result<Outcome> {
    let seed = run.seed;
    let mut scenario = run.scenario().with_context(|| format!("run {seed}"))?;
    let is_older = run.has_older_definitions();
    scenario.admit = Some(if is_older { definitions::admit_by_older } else { definitions::admit });
    let played = play(&scenario, Part::With).with_context(|| format!("run {seed}"))?;
    let mut broken = judge(&played.facts, &run.setting).broken;
    if run.is_set_back() {
        // What was written, said and counted is forgotten, by whoever it was. That nobody writes twice, and no wrong
        // machine is touched, goes by what devices and machines say.
        broken.retain(|violation| OF_DEVICES.contains(&violation.invariant));
        // Nobody remembers an `on` that the BMC does not tell of yet.
        broken.retain(|violation| violation.invariant != "S1" || !run.setting.has_stale_bmc);
    } else if is_older {
        // What it cannot record it does not do, and says so: nothing wrong is done, and nothing has to come of it, not
        // even an `on`.
        broken.retain(|violation| {
            violation.invariant.starts_with('S') && violation.invariant != "S6"
        });
    } else {
        broken.extend(misfits(&played));
    }
    let log = timeline(&played.facts);
    let digest = node_remedy_runtime::digest::sha256(log.as_bytes());
    let coverage = coverage(&run, &played);
    Ok(Outcome { run, broken, coverage, log, digest })
}

/// S22: what the controller writes of our kinds is taken as it is.
pub(crate) fn misfits(played: &Played) -> impl Iterator<Item = Violation> {
    let misfit =
        |sentence: &String| Violation { invariant: "S22", at: None, sentence: sentence.clone() };
    played.misfits.iter().map(misfit)
}

fn coverage(run: &SeedRun, played: &Played) -> Coverage {
    let is_off = |fact: &Fact| {
        matches!(
            fact.what,
            What::PowerChanged { power: Power::Off, cause: PowerCause::Command, .. }
        )
    };
    let mut coverage = Coverage {
        runs: 1,
        with_off: u64::from(played.facts.iter().any(is_off)),
        facts: u64::try_from(played.facts.len()).unwrap_or_default(),
        simulated_s: played.lasted.as_secs(),
        ..Coverage::default()
    };
    let mut drawn = run.drawn.clone();
    drawn.sort_unstable();
    drawn.dedup();
    coverage.faults.extend(drawn.into_iter().map(|class| (class, 1)));
    for rule in played.collected.decided.iter().flat_map(|decided| &decided.rules) {
        *coverage.rules.entry(format!("{rule:?}")).or_default() += 1;
    }
    for (before, after) in played.collected.decided.iter().map(|decided| decided.phases) {
        if before != after {
            *coverage.transitions.entry(format!("{before:?} -> {after:?}")).or_default() += 1;
        }
    }
    coverage
}
