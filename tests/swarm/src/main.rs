//! `cargo xtask sim`: plays nights drawn from seeds and says which promises were broken.

#![expect(clippy::disallowed_methods, reason = "how long nights take to play is real time")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Parser;
use node_remedy_decide::bug::{Bug, sow};
use node_remedy_swarm::bugs::Found;
use node_remedy_swarm::coverage::Coverage;
use node_remedy_swarm::night::path;
use node_remedy_swarm::play::{Outcome, night};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Plays nights drawn from seeds, each with node-remedy, its plugin and every kind of trouble.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask sim",
    after_help = "Examples:
  cargo xtask sim --seeds 1000
  cargo xtask sim --seeds 1000 --seed 5000
  cargo xtask sim --replay 5017
  cargo xtask sim --seeds 1000000 --for 5
  cargo xtask sim --bugs --seeds 500
  cargo xtask sim --crash

Exit code 0: no promise was broken; 1: one was, or nothing could be played."
)]
struct Arguments {
    /// How many nights.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first night's seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Plays as many nights as this many minutes allow, up to --seeds.
    #[arg(long = "for", value_name = "MINUTES")]
    minutes_real: Option<u64>,
    /// Plays one night twice, and prints all that happened.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "seed"])]
    replay: Option<u64>,
    /// Plays the scenarios of tests/scenarios with each of their calls going wrong in each way.
    #[arg(long, conflicts_with_all = ["seeds", "seed", "replay"])]
    crash: bool,
    /// With --crash these scenarios only, by name.
    #[arg(long, value_name = "SCENARIO", requires = "crash")]
    only: Vec<String>,
    /// Sows each known bug on purpose, and says how many nights it takes to find it.
    #[arg(long, conflicts_with_all = ["seed", "replay"])]
    bugs: bool,
    /// With --bugs this bug only; else plays the nights with it.
    #[arg(long, value_name = "BUG")]
    bug: Option<String>,
    /// With --bugs writes their table into this file, between the marks for it.
    #[arg(long, value_name = "FILE", requires = "bugs")]
    write: Option<PathBuf>,
    /// Simulated minutes of a night.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(10..=120))]
    minutes: u64,
    /// Threads; by default as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
}

/// Of several nights that went wrong, how many are told.
const TOLD: usize = 5;
/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let lasts = Duration::from_mins(arguments.minutes);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(cores).max(1);
    let bug = arguments.bug.as_deref().map(bug_named).transpose()?;
    if arguments.bugs {
        return seek(&arguments, bug, lasts, threads);
    }
    sow(bug);
    if arguments.crash {
        return crash(&arguments.only, threads);
    }
    if let Some(seed) = arguments.replay {
        return replay(seed, lasts);
    }
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.seeds);
    let until = arguments.minutes_real.map(|minutes| Instant::now() + Duration::from_mins(minutes));
    swarm(&seeds, lasts, threads, until)
}

/// Plays every crash point; what is wrong is told with its plan.
fn crash(only: &[String], threads: usize) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let last = Mutex::new(began);
    let tell = |done: usize, all: usize, wrong: usize| {
        let Ok(mut last) = last.lock() else { return };
        if last.elapsed() >= TELL_EVERY {
            *last = Instant::now();
            let s = began.elapsed().as_secs();
            eprintln!("  {done} of {all} plans in {s} s, {wrong} went wrong");
        }
    };
    let sum = node_remedy_swarm::crash::every_point(only, threads, tell)?;
    for wrong in sum.wrong.iter().take(TOLD) {
        println!("{}", wrong.join("\n  "));
    }
    println!("\n| scenario | calls | plans |\n|---|---|---|");
    for (name, calls, plans) in &sum.scenarios {
        println!("| {name} | {calls} | {plans} |");
    }
    let (plans, wrong, s) = (sum.plans, sum.wrong.len(), began.elapsed().as_secs());
    println!("\n{plans} plans, {wrong} violations, {s} s on {threads} threads");
    Ok(verdict(wrong == 0))
}

fn bug_named(name: &str) -> anyhow::Result<Bug> {
    let found = Bug::ALL.iter().find(|bug| bug.name() == name).copied();
    let all = || Bug::ALL.iter().map(|bug| bug.name()).collect::<Vec<_>>().join(", ");
    found.with_context(|| format!("found --bug {name:?}, expected one of {}", all()))
}

/// Sows bugs, one after the other; one that is not found fails.
fn seek(
    arguments: &Arguments,
    bug: Option<Bug>,
    lasts: Duration,
    threads: usize,
) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let bugs = bug.map_or_else(|| Bug::ALL.to_vec(), |bug| vec![bug]);
    let mut table = String::from(
        "| invariant | bug | found by | nights | scenarios |\n|---|---|---|---|---|\n",
    );
    print!("{table}");
    let mut unfound = 0_usize;
    for bug in bugs {
        let Found { bug, scenarios, nights } =
            node_remedy_swarm::bugs::seek(bug, arguments.seeds, lasts, threads)?;
        let is_found = nights.is_some() || !scenarios.is_empty();
        unfound += usize::from(!is_found);
        let (by, nights) = match nights {
            Some((nights, found)) => (found.join(" "), nights.to_string()),
            None if is_found => ("what a scenario says".to_owned(), "–".to_owned()),
            None => ("**nothing**".to_owned(), arguments.seeds.to_string()),
        };
        let scenarios = match scenarios.as_slice() {
            [] => "–".to_owned(),
            [one] => one.clone(),
            [one, rest @ ..] => format!("{one} and {} more", rest.len()),
        };
        let (invariant, name) = (bug.invariant(), bug.name());
        let row = format!("| {invariant} | {name} | {by} | {nights} | {scenarios} |\n");
        print!("{row}");
        table.push_str(&row);
    }
    println!("\nin {} s on {threads} threads; {unfound} not found", began.elapsed().as_secs());
    if let Some(file) = &arguments.write {
        write_between(file, &table)?;
    }
    Ok(verdict(unfound == 0))
}

/// Puts a table between its two marks in a file.
fn write_between(file: &Path, table: &str) -> anyhow::Result<()> {
    let (begins, ends) =
        ("<!-- bugs: cargo xtask sim --bugs --write -->\n", "<!-- end of bugs -->");
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("failed to read {}", file.display()))?;
    let parts = text.split_once(begins).zip(text.split_once(ends));
    let Some(((before, _), (_, after))) = parts else {
        anyhow::bail!("{}: found no place for the table, expected {begins:?}", file.display());
    };
    std::fs::write(file, format!("{before}{begins}{table}{ends}{after}"))
        .with_context(|| format!("failed to write {}", file.display()))
}

/// Plays a night twice: the same log, byte for byte, or it is no function of its seed.
fn replay(seed: u64, lasts: Duration) -> anyhow::Result<ExitCode> {
    let (first, second) = (night(seed, lasts)?, night(seed, lasts)?);
    print!("{}", first.log);
    println!("log {}", first.digest);
    ensure!(first.log == second.log, "the second playing differs: log {}", second.digest);
    write(&first)?;
    println!("report: node-remedy simulate {} --only-with --report night.html", path(seed));
    tell(&first);
    Ok(verdict(first.broken.is_empty()))
}

fn swarm(
    seeds: &Range<u64>,
    lasts: Duration,
    threads: usize,
    until: Option<Instant>,
) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let sum = Mutex::new((Coverage::default(), Vec::new(), began));
    let played: Vec<anyhow::Result<()>> = std::thread::scope(|scope| {
        let play = || {
            loop {
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(());
                }
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return Ok(());
                }
                let outcome = night(seed, lasts)?;
                // A thread that panics fails the run by itself.
                let Ok(mut sum) = sum.lock() else { return Ok(()) };
                let (coverage, wrong, told) = &mut *sum;
                coverage.merge(outcome.coverage.clone());
                if !outcome.broken.is_empty() {
                    wrong.push(outcome);
                }
                if told.elapsed() >= TELL_EVERY {
                    *told = Instant::now();
                    let s = began.elapsed().as_secs();
                    eprintln!("  {} nights in {s} s, {} went wrong", coverage.nights, wrong.len());
                }
            }
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(play)).collect();
        let joined = running.into_iter().map(|one| one.join().unwrap_or(Ok(())));
        joined.collect()
    });
    played.into_iter().collect::<anyhow::Result<()>>()?;
    let (coverage, mut wrong, _) = sum.into_inner().ok().context("a night panicked")?;
    wrong.sort_by_key(|outcome| outcome.night.seed);
    report(&coverage, began.elapsed(), threads);
    for outcome in wrong.iter().take(TOLD) {
        write(outcome)?;
        tell(outcome);
    }
    if !wrong.is_empty() {
        let seeds: Vec<String> = wrong.iter().map(|one| one.night.seed.to_string()).collect();
        println!("{} nights went wrong: {}", wrong.len(), seeds.join(" "));
    }
    let missing = coverage.missing();
    for what in &missing {
        println!("not covered: {what}");
    }
    Ok(verdict(wrong.is_empty() && missing.is_empty()))
}

fn report(coverage: &Coverage, took: Duration, threads: usize) {
    let per_core = |count: u64| {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        let cores = u64::try_from(threads).unwrap_or(1);
        // In tenths, so that slow ones are told apart.
        let tenths = count.saturating_mul(10_000) / ms / cores;
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    let hours = coverage.simulated_s / 3_600;
    println!(
        "{} nights in {} s on {threads} threads: {} nights/s and {} facts/s a core, {hours} hours \
         of simulated time",
        coverage.nights,
        took.as_secs(),
        per_core(coverage.nights),
        per_core(coverage.facts),
    );
    println!("{coverage}");
}

fn tell(outcome: &Outcome) {
    let seed = outcome.night.seed;
    for broken in &outcome.broken {
        println!("night {seed}: {broken}\n  again: cargo xtask sim --replay {seed}");
    }
}

/// Writes a night where `node-remedy simulate` finds it.
fn write(outcome: &Outcome) -> anyhow::Result<()> {
    let file = path(outcome.night.seed);
    let folder = Path::new(&file).parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .with_context(|| format!("failed to make {}", folder.display()))?;
    std::fs::write(&file, &outcome.night.text).with_context(|| format!("failed to write {file}"))
}

fn verdict(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
