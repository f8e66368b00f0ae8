//! `cargo xtask sim`: plays nights drawn from seeds and says which promises were broken.

#![expect(clippy::disallowed_methods, reason = "how long nights take to play is real time")]

mod arguments;
mod bug_table;
mod replay;
mod summary;
mod swarm;
mod told;

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Parser as _;
use node_remedy_decide::bug::sow;

use self::arguments::Arguments;
use self::told::TOLD;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let bug = arguments.bug()?;
    if arguments.bugs {
        return bug_table::seek(&arguments, bug);
    }
    sow(bug);
    if arguments.crash {
        return crash(&arguments.only, arguments.threads());
    }
    let origin = told::origin(&arguments, bug);
    match arguments.replay {
        Some(seed) => replay::replay(&arguments, &origin, seed),
        None => swarm::swarm(&arguments, &origin),
    }
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

fn verdict(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
