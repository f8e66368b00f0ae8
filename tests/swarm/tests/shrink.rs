//! Runs that find a seeded bug are made short, and the short ones still find it.
//!
//! One test, in a process of its own: a bug is seeded for the whole process.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers may fail the test")]

use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use node_remedy::{Cli, Command};
use node_remedy_decide::bug::{Bug, seed_bug};
use node_remedy_swarm::checks::Violation;
use node_remedy_swarm::failure::report;
use node_remedy_swarm::play::{Outcome, judged, run};
use node_remedy_swarm::seed_run::{LASTS, SeedRun};
use node_remedy_swarm::shrink::{Shrunk, shrink};

/// Runs in which a bug is sought.
const RUNS: u64 = 400;
/// A run that is made short has no fewer.
const FAULTS_MIN: usize = 12;
const PLAYS_MAX: usize = 100;

#[test]
fn runs_that_find_a_bug_are_made_short_and_still_find_it() {
    // One is found by a fact, one by the end of a run.
    for (bug, is_by_a_fact) in [(Bug::DaemonsReleased, true), (Bug::MarksStay, false)] {
        seed_bug(Some(bug));
        let (whole, wanted) = first_that_finds(bug, is_by_a_fact);
        let mut told = Vec::new();
        let short = shrink(&whole, &wanted, PLAYS_MAX, |left, _| told.push(left)).unwrap();
        is_shorter(&whole, &short, &wanted);
        assert!(told.is_sorted_by(|before, after| before >= after), "{told:?}");

        let stopped = shrink(&whole, &wanted, 2, |_, _| {}).unwrap();
        assert!(stopped.plays <= 2);
        assert!(stopped.faults.len() >= short.faults.len());

        // Without the bug it finds nothing.
        seed_bug(None);
        assert_eq!(judged(short.outcome.run.clone()).unwrap().broken, []);
        its_report_can_be_played_again(&short.outcome.run);
    }
}

/// As `node-remedy simulate --verify` does, which has to find all that the report carries.
fn its_report_can_be_played_again(run: &SeedRun) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(folder).unwrap();
    let file = folder.join(format!("run-{}.html", run.seed));
    std::fs::write(&file, report(run).unwrap()).unwrap();
    let file = file.display().to_string();
    let Cli { command } =
        Cli::try_parse_from(["node-remedy", "simulate", "--verify", &file]).unwrap();
    let Command::Simulate(args) = command else { panic!("{command:?}") };
    let ended = node_remedy::simulate::simulate(&args).unwrap();
    assert_eq!(format!("{ended:?}"), format!("{:?}", ExitCode::SUCCESS));
}

fn first_that_finds(bug: Bug, is_by_a_fact: bool) -> (Outcome, Violation) {
    let runs = (0..RUNS).filter(|seed| {
        let text = SeedRun::of(*seed, LASTS).text;
        let faults = text.lines().filter(|line| line.starts_with("- { at")).count();
        faults >= FAULTS_MIN && text.contains("\ncontrollers: 2\n")
    });
    let mut found = runs.filter_map(|seed| {
        let outcome = run(seed, LASTS).unwrap();
        let is_wanted = |violation: &&Violation| {
            violation.invariant == bug.invariant() && violation.at.is_some() == is_by_a_fact
        };
        let wanted = outcome.broken.iter().find(is_wanted)?.clone();
        Some((outcome, wanted))
    });
    found.next().unwrap()
}

fn is_shorter(whole: &Outcome, short: &Shrunk, wanted: &Violation) {
    let Shrunk { outcome, violation, faults, faults_whole, plays, .. } = short;
    assert!(*plays <= PLAYS_MAX);
    assert!(*faults_whole >= FAULTS_MIN);
    assert_eq!(short.processes, 1);
    // Somebody has to lose a node; what more is needed is little.
    assert!((1..=4).contains(&faults.len()), "{faults:#?}");
    assert!(faults.iter().all(|line| whole.run.text.contains(line)));
    assert!(outcome.log.lines().count() < whole.log.lines().count());
    assert_eq!(violation.invariant, wanted.invariant);
    let again = judged(outcome.run.clone()).unwrap();
    assert_eq!(again.log, outcome.log);
    assert!(again.broken.contains(violation));
}
