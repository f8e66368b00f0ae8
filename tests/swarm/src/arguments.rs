//! What is typed after `cargo xtask sim`, and what of it a run has to be played again with.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use node_remedy_decide::bug::Bug;

/// How many nodes a run may be asked to have: two are no majority, and beyond nine a run only
/// takes longer.
const NODES: RangeInclusive<u64> = 3..=9;
/// Simulated minutes, where nobody says.
const MINUTES: u64 = 25;

/// Plays runs drawn from seeds, each with node-remedy, its plugin and every kind of trouble.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask sim",
    after_help = "Examples:
  cargo xtask sim --seeds 1000
  cargo xtask sim --seeds 1000 --seed 5000
  cargo xtask sim --replay 5017
  cargo xtask sim --seeds 1000000 --for 5
  cargo xtask sim --seeds 1000 --nodes 3
  cargo xtask sim --seeds 1000 --nodes 5..9
  cargo xtask sim --seeds 1000 --output json > runs.json
  cargo xtask sim --bugs --seeds 500
  cargo xtask sim --crash

Of the first runs that break a promise the shortest are sought that still do; these, their logs
and reports are in target/runs.

Exit code 0: no promise was broken; 1: one was, or nothing could be played."
)]
pub(crate) struct Arguments {
    /// How many runs.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) seeds: u64,
    /// The first run's seed.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Plays as many runs as this many minutes allow, up to --seeds; with --crash, as many plans, of all
    /// scenarios alike.
    #[arg(long = "for", value_name = "MINUTES")]
    pub(crate) minutes_real: Option<u64>,
    /// Plays one run twice, the second time while other threads play others, and prints all that
    /// happened.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "seed"])]
    pub(crate) replay: Option<u64>,
    /// Plays the scenarios of tests/scenarios with each of their calls going wrong in each way.
    #[arg(long, conflicts_with_all = ["seeds", "seed", "replay"])]
    pub(crate) crash: bool,
    /// With --crash these scenarios only, by name.
    #[arg(long, value_name = "SCENARIO", requires = "crash")]
    pub(crate) only: Vec<String>,
    /// Seeds each known bug on purpose, and says how many runs it takes to find it.
    #[arg(long, conflicts_with_all = ["seed", "replay"])]
    pub(crate) bugs: bool,
    /// With --bugs stops at the first that tells of a bug: the corpus of attacks, a scenario, a run.
    #[arg(long, requires = "bugs")]
    pub(crate) first_only: bool,
    /// With --bugs this bug only; else plays the runs with it.
    #[arg(long, value_name = "BUG")]
    pub(crate) bug: Option<String>,
    /// With --bugs writes their table into this file, between the marks for it.
    #[arg(long, value_name = "FILE", requires = "bugs")]
    pub(crate) write: Option<PathBuf>,
    /// Simulated minutes of a run.
    #[arg(long, default_value_t = MINUTES, value_parser = clap::value_parser!(u64).range(10..=120))]
    pub(crate) minutes: u64,
    /// Nodes of a run: so many, or drawn from LOW to HIGH, both of 3 to 9. Without it mostly 3
    /// to 5, sometimes 7.
    #[arg(
        long,
        value_name = "N|LOW..HIGH",
        value_parser = nodes,
        conflicts_with_all = ["bugs", "crash"]
    )]
    pub(crate) nodes: Option<RangeInclusive<u64>>,
    /// Threads; by default as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
    /// How the summary is printed.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["bugs", "crash", "replay"])]
    pub(crate) output: Output,
}

/// How a summary is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs: one object.
    Json,
}

impl Arguments {
    /// How long a run lasts, in simulated time.
    pub(crate) fn lasts(&self) -> Duration {
        Duration::from_mins(self.minutes)
    }

    /// How many threads play, 1 or more.
    pub(crate) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores).max(1)
    }

    /// The bug that was named. Fails if there is none of that name.
    pub(crate) fn bug(&self) -> anyhow::Result<Option<Bug>> {
        let named = |name: &String| {
            let found = Bug::ALL.iter().find(|bug| bug.name() == name).copied();
            let all = || Bug::ALL.iter().map(|bug| bug.name()).collect::<Vec<_>>().join(", ");
            found.with_context(|| format!("found --bug {name:?}, expected one of {}", all()))
        };
        self.bug.as_ref().map(named).transpose()
    }

    /// The command that plays one of these runs again, up to its seed.
    pub(crate) fn replay_command(&self) -> String {
        let mut command = "cargo xtask sim".to_owned();
        let mut say = |flag: &str, value: &str| {
            for word in [" --", flag, " ", value] {
                command.push_str(word);
            }
        };
        if self.minutes != MINUTES {
            say("minutes", &self.minutes.to_string());
        }
        if let Some(nodes) = &self.nodes {
            say("nodes", &format!("{}..{}", nodes.start(), nodes.end()));
        }
        if let Some(bug) = &self.bug {
            say("bug", bug);
        }
        command.push_str(" --replay");
        command
    }
}

/// Reads `N` or `LOW..HIGH`, both included.
fn nodes(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| NODES.contains(number));
    match (number(low), number(high)) {
        (Some(low), Some(high)) if low <= high => Ok(low..=high),
        _ => Err(format!(
            "found {text:?}, expected N or LOW..HIGH, numbers from {} to {}, the lower one first",
            NODES.start(),
            NODES.end()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Arguments {
        Arguments::try_parse_from(line.split(' ')).unwrap()
    }

    #[test]
    fn nodes_are_a_number_or_a_range() {
        assert_eq!(nodes("3"), Ok(3..=3));
        assert_eq!(nodes("4..9"), Ok(4..=9));
        for wrong in ["2", "10", "3..10", "5..4", "3..", "..5", "3...5", "3-5", "three", ""] {
            let said = nodes(wrong).unwrap_err();
            assert!(said.contains(&format!("found {wrong:?}")), "{said}");
            assert!(said.contains("expected N or LOW..HIGH, numbers from 3 to 9"), "{said}");
        }
    }

    #[test]
    fn a_run_is_played_again_with_what_it_was_drawn_with() {
        assert_eq!(parsed("sim --seeds 5").replay_command(), "cargo xtask sim --replay");
        let all = parsed("sim --bug old-leave --nodes 5 --minutes 30 --seeds 7");
        let again = all.replay_command();
        assert_eq!(again, "cargo xtask sim --minutes 30 --nodes 5..5 --bug old-leave --replay");
        let again = parsed(&format!("{} 7", again.strip_prefix("cargo xtask ").unwrap()));
        assert_eq!((again.minutes, &again.nodes, &again.bug), (30, &all.nodes, &all.bug));
        assert_eq!(again.replay, Some(7));
    }
}
