//! `cargo xtask test`: the levels of tests, each with the parts that it needs.

use std::fmt;
use std::process::Command;
use std::thread;

use anyhow::{Result, bail};

use crate::progress::{Stopwatch, log_path, run_logged, tell_side_by_side};
use crate::root::{cargo, is_ci};
use crate::setup::Part;
use crate::table;

pub(crate) const HELP: &str = "\
Sets up what the levels need, runs them, and prints each one's result. Without a level: all but those marked
long, which `--all` adds.

  unit       every crate's own tests
  exhaustive everything that can happen to two controllers and one machine
  crash      (long) calls of the scenarios in tests/scenarios going wrong in every way, for 2 minutes at most;
             `cargo xtask sim --crash` plays all of them
  bugs       (long) every scenario of tests/scenarios and tests/seams ends as it says; bugs seeded on purpose, each to be
             found by the corpus of attacks, a scenario, or runs drawn from seeds; `cargo xtask sim --bugs`
             seeks each with all of them
  swarm      (long) three minutes of runs drawn from seeds; `cargo xtask sim` plays more
  sim        whole clusters in virtual time
  plugins    the built components against simulated devices
  apiserver  against a real control plane
  e2e        (long) node-remedy on a real control plane, machines with simulated BMCs
  examples   every file of examples/

Levels that wait for real time (plugins, apiserver, e2e) run one after the other beside those that
compute, which leave them the cores.
A level whose part is missing is skipped with the reason; with CI=true that is a failure.
Output of what runs is kept in target/logs.

Examples:
  cargo xtask test              # a quarter of an hour
  cargo xtask test --all        # what continuous integration runs
  cargo xtask test unit sim
";

/// Each runs a control plane of 650 MiB, whatever the number of cores.
const CLUSTERS_AT_ONCE: &str = "--test-threads=2";

/// One level: what it needs, and the cargo commands that run it.
struct Level {
    name: &'static str,
    lane: Lane,
    /// Runs only where it is named, or all are asked for.
    is_long: bool,
    needs: &'static [Part],
    /// Tests of this level that use these say so and pass without.
    likes: &'static [Part],
    runs: &'static [&'static [&'static str]],
}

/// What its levels use. One level of each lane runs at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// All of the processor, at any time: they give way to the others.
    Computing,
    /// Little of the processor, but in time: real parts wait for nobody.
    Waiting,
}

/// The argument that asks for the long levels, too.
const ALL: &str = "--all";
/// The level that ends with tables.
const PLUGINS: &str = "plugins";
const TESTS: &str = "node-remedy-tests";
const SMALL_WORLD: &str = "node-remedy-small-world";
const SWARM: &str = "node-remedy-swarm";

/// How the swarm is run: with optimised code in which bugs can be seeded.
macro_rules! played {
    ($($argument:literal),*) => {
        &[
            "run", "--profile", "sim", "--package", SWARM, "--features", "seeded-bugs", "--",
            $($argument),*
        ]
    };
}

/// The levels of `node-remedy-tests` are the prefixes of its modules' names.
const LEVELS: [Level; 10] = [
    Level {
        name: "unit",
        lane: Lane::Computing,
        is_long: false,
        // The node-remedy crate embeds the plugins.
        needs: &[Part::WasmTarget, Part::Plugins],
        likes: &[Part::DebianPackages, Part::PythonVenv],
        runs: &[
            &[
                "test",
                "--no-fail-fast",
                "--workspace",
                "--exclude",
                TESTS,
                "--exclude",
                SMALL_WORLD,
                // It has none, and would ask dependencies of all the others for more features: these
                // would be built twice.
                "--exclude",
                "node-remedy-componentize",
            ],
            &["test", "--package", TESTS, "--lib"],
        ],
    },
    Level {
        name: "exhaustive",
        lane: Lane::Computing,
        is_long: false,
        needs: &[],
        likes: &[],
        runs: &[
            &["test", "--profile", "sim", "--package", SMALL_WORLD],
            &["run", "--profile", "sim", "--package", SMALL_WORLD],
        ],
    },
    Level {
        name: "crash",
        lane: Lane::Computing,
        is_long: true,
        needs: &[Part::WasmTarget, Part::Plugins],
        likes: &[],
        runs: &[played!("--crash", "--for", "2")],
    },
    Level {
        name: "bugs",
        lane: Lane::Computing,
        is_long: true,
        needs: &[Part::WasmTarget, Part::Plugins],
        likes: &[],
        runs: &[
            &["test", "--profile", "sim", "--package", SWARM, "--features", "seeded-bugs"],
            played!("--bugs", "--first-only", "--seeds", "3000"),
        ],
    },
    Level {
        name: "swarm",
        lane: Lane::Computing,
        is_long: true,
        needs: &[Part::WasmTarget, Part::Plugins],
        likes: &[],
        runs: &[played!("--seeds", "8000", "--for", "3")],
    },
    Level {
        name: "sim",
        lane: Lane::Computing,
        is_long: false,
        needs: &[Part::WasmTarget, Part::Plugins, Part::Binary],
        likes: &[],
        // Device simulators have `sim_` in their names too.
        runs: &[&[
            "test",
            "--package",
            TESTS,
            "--test",
            "levels",
            "--",
            "sim_",
            "--skip=plugins_",
            "--skip=apiserver_",
            "--skip=e2e_",
        ]],
    },
    Level {
        name: PLUGINS,
        lane: Lane::Waiting,
        is_long: false,
        needs: &[
            Part::WasmTarget,
            Part::DebianPackages,
            Part::Namespaces,
            Part::FenceAgents,
            Part::PythonVenv,
            Part::OpenStackVenv,
            Part::Plugins,
            Part::Binary,
        ],
        // With CI=true their tests fail without.
        likes: &[Part::Languages],
        runs: &[
            &["test", "--package", TESTS, "--test", "levels", "--", "plugins_"],
            // Natively, against devices in memory; they leave the table of faults.
            &["test", "--package", "node-remedy-plugin-*", "--tests", "--", "each_fault"],
        ],
    },
    Level {
        name: "apiserver",
        lane: Lane::Waiting,
        is_long: false,
        needs: &[
            Part::DebianPackages,
            Part::PythonVenv,
            Part::ControlPlane,
            Part::OlderControlPlane,
        ],
        likes: &[],
        runs: &[&[
            "test",
            "--package",
            TESTS,
            "--test",
            "levels",
            "--",
            "apiserver_",
            CLUSTERS_AT_ONCE,
        ]],
    },
    Level {
        name: "e2e",
        lane: Lane::Waiting,
        is_long: true,
        needs: &[
            Part::WasmTarget,
            Part::DebianPackages,
            Part::FenceAgents,
            Part::PythonVenv,
            Part::ControlPlane,
            Part::Plugins,
            Part::Binary,
        ],
        likes: &[],
        runs: &[&["test", "--package", TESTS, "--test", "levels", "--", "e2e_", CLUSTERS_AT_ONCE]],
    },
    Level {
        name: "examples",
        lane: Lane::Computing,
        is_long: false,
        needs: &[Part::WasmTarget, Part::Plugins, Part::Binary],
        likes: &[],
        runs: &[&["test", "--package", TESTS, "--test", "levels", "--", "examples_"]],
    },
];

/// A level that ended.
struct Ran {
    name: &'static str,
    outcome: Outcome,
    /// From its start to its end, its parts included.
    took: String,
}

enum Outcome {
    Passed { tests: u64 },
    Failed { reason: String },
    Skipped { reason: String },
}

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let levels = choose(arguments)?;
    let whole = Stopwatch::start();
    if levels.iter().any(|level| level.lane == Lane::Computing)
        && levels.iter().any(|level| level.lane == Lane::Waiting)
    {
        tell_side_by_side();
    }
    let lane =
        |lane| levels.iter().filter(move |level| level.lane == lane).map(|level| run_level(level));
    let mut results: Vec<Ran> = thread::scope(|scope| {
        let computing = scope.spawn(|| lane(Lane::Computing).collect::<Vec<_>>());
        let waiting: Vec<_> = lane(Lane::Waiting).collect();
        // A thread that panicked has said why.
        computing.join().unwrap_or_default().into_iter().chain(waiting).collect()
    });
    if results.len() < levels.len() {
        bail!("some levels did not run to their end");
    }
    results.sort_by_key(|ran| LEVELS.iter().position(|level| level.name == ran.name));
    if results.len() > 1 {
        println!("\nresults, {whole} in all:");
        for ran in &results {
            println!("  {}", ran.to_string().lines().next().unwrap_or_default());
        }
        tell_failures(&results);
    }
    verdict(&results, is_ci())
}

/// What failed once more, at the end, where a reader of a long log looks first.
fn tell_failures(results: &[Ran]) {
    for ran in results {
        if let Outcome::Failed { reason } = &ran.outcome {
            println!("\n── what failed in {}\n{reason}", ran.name);
        }
    }
}

/// The levels that were asked for, in their own order.
fn choose(names: &[&str]) -> Result<Vec<&'static Level>> {
    let are_all = names == [ALL];
    if !are_all && names.contains(&ALL) {
        bail!("found {ALL} beside levels, expected one or the other");
    }
    for name in names.iter().filter(|_| !are_all) {
        if !LEVELS.iter().any(|level| level.name == *name) {
            let known: Vec<_> = LEVELS.iter().map(|level| level.name).collect();
            bail!("there is no level {name:?}; the levels are {}", known.join(", "));
        }
    }
    let is_chosen = |level: &&Level| match names {
        [] => !level.is_long,
        _ => are_all || names.contains(&level.name),
    };
    Ok(LEVELS.iter().filter(is_chosen).collect())
}

fn run_level(level: &'static Level) -> Ran {
    println!("── {}", level.name);
    let watch = Stopwatch::start();
    let outcome = outcome(level);
    let ran = Ran { name: level.name, outcome, took: watch.to_string() };
    println!("{ran}");
    ran
}

fn outcome(level: &Level) -> Outcome {
    for part in level.needs {
        if let Err(failure) = part.provide() {
            let reason = format!("no {}: {failure:#}", part.name());
            // What is built from our own sources must build; what others provide may be missing.
            return match part {
                Part::Plugins | Part::Binary => Outcome::Failed { reason },
                Part::WasmTarget
                | Part::DebianPackages
                | Part::Namespaces
                | Part::FenceAgents
                | Part::PythonVenv
                | Part::OpenStackVenv
                | Part::AgentsVenv
                | Part::ControlPlane
                | Part::OlderControlPlane
                | Part::Languages => Outcome::Skipped { reason },
            };
        }
    }
    for part in level.likes {
        if let Err(failure) = part.provide() {
            println!("  without {}: {failure:#}", part.name());
        }
    }
    if level.name == PLUGINS
        && let Err(failure) = table::clear()
    {
        return Outcome::Failed { reason: failure.to_string() };
    }
    let mut tests = 0;
    for (number, arguments) in level.runs.iter().enumerate() {
        let log = format!("test-{}-{number}", level.name);
        let what = format!("cargo {}", arguments.join(" "));
        match run_logged(&what, &log, level.lane.cargo().args(*arguments)) {
            Ok(output) => {
                tests += passed(&output);
                if arguments.first() == Some(&"run") {
                    tests += 1;
                    println!("{}", figures(&output));
                }
            }
            Err(failure) => return Outcome::Failed { reason: failure.to_string() },
        }
        println!("  {} in {}", what, log_path(&log).display());
    }
    if level.name == PLUGINS
        && let Err(failure) = table::print()
    {
        return Outcome::Failed { reason: failure.to_string() };
    }
    if tests == 0 {
        return Outcome::Skipped { reason: "it has no tests yet".to_owned() };
    }
    Outcome::Passed { tests }
}

impl Lane {
    fn cargo(self) -> Command {
        match self {
            Self::Computing => politely(&cargo()),
            Self::Waiting => cargo(),
        }
    }
}

/// The same command, for a processor that nobody else wants.
fn politely(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    nice
}

/// What a program of ours printed, without what cargo did.
fn figures(output: &str) -> String {
    let lines = output.lines().skip_while(|line| !line.trim_start().starts_with("Running `"));
    let lines: Vec<&str> = lines.skip(1).collect();
    format!("  {}", lines.join("\n  "))
}

/// The sum over all test binaries of a cargo run.
fn passed(output: &str) -> u64 {
    output
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok())
        .fold(0, |sum: u64, tests: u64| sum.saturating_add(tests))
}

fn verdict(results: &[Ran], is_ci: bool) -> Result<()> {
    let bad: Vec<_> = results
        .iter()
        .filter(|ran| match ran.outcome {
            Outcome::Passed { .. } => false,
            Outcome::Failed { .. } => true,
            Outcome::Skipped { .. } => is_ci,
        })
        .map(|ran| ran.name)
        .collect();
    if !bad.is_empty() {
        bail!("not passed: {}", bad.join(", "));
    }
    Ok(())
}

impl fmt::Display for Ran {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:<10} {:>12}  {}", self.name, self.took, self.outcome)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed { tests } => write!(out, "passed: {tests} tests"),
            Self::Failed { reason } => write!(out, "FAILED: {reason}"),
            Self::Skipped { reason } => write!(out, "SKIPPED: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_run_in_their_own_order_and_unknown_ones_are_refused() {
        let names = |arguments: &[&str]| -> Vec<_> {
            choose(arguments).unwrap().iter().map(|level| level.name).collect()
        };
        assert_eq!(names(&["e2e", "unit"]), ["unit", "e2e"]);
        let long = ["crash", "bugs", "swarm", "e2e"];
        assert!(names(&[]).iter().all(|name| !long.contains(name)));
        assert_eq!(names(&[]).len() + long.len(), LEVELS.len());
        assert_eq!(names(&["--all"]).len(), LEVELS.len());
        assert!(choose(&["--all", "unit"]).is_err(), "it stands alone");
        assert!(choose(&["units"]).err().unwrap().to_string().contains("units"));
    }

    #[test]
    fn who_computes_gives_way_and_is_called_alike() {
        let polite = Lane::Computing.cargo();
        let words: Vec<_> = polite.get_args().collect();
        assert_eq!(
            (polite.get_program(), words.as_slice()),
            ("nice".as_ref(), ["-n", "19", "cargo"].map(AsRef::as_ref).as_slice())
        );
        assert_eq!(polite.get_current_dir(), cargo().get_current_dir());
        assert!(polite.get_envs().eq(cargo().get_envs()));
    }

    #[test]
    fn the_tests_of_all_binaries_count_and_failures_do_not() {
        let output = "test result: ok. 12 passed; 0 failed\nnoise\ntest result: ok. 3 passed; 0\n";
        assert_eq!(passed(output), 15);
        assert_eq!(passed("test result: FAILED. 12 passed; 1 failed\n"), 0);
    }

    #[test]
    fn what_a_program_prints_is_shown_without_what_cargo_says() {
        let output = "   Compiling x\n     Running `target/sim/x`\nstates 7\nseconds 1\n";
        assert_eq!(figures(output), "  states 7\n  seconds 1");
    }

    #[test]
    fn a_skip_is_a_failure_for_a_build_system_only() {
        let ran = |outcome| [Ran { name: "e2e", outcome, took: "1 s".into() }];
        let skipped = ran(Outcome::Skipped { reason: "no Go".into() });
        assert!(verdict(&skipped, false).is_ok());
        assert!(verdict(&skipped, true).unwrap_err().to_string().contains("e2e"));
        assert!(verdict(&ran(Outcome::Failed { reason: "x".into() }), false).is_err());
        assert!(verdict(&ran(Outcome::Passed { tests: 1 }), true).is_ok());
    }
}
