//! `cargo xtask sim`: plays runs drawn from seeds and says which promises were broken.

#![expect(clippy::disallowed_methods, reason = "how long runs take to play is real time")]

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
use node_remedy_decide::bug::seed_bug;
use node_remedy_swarm::crash::{Points, every_point};

use self::arguments::Arguments;
use self::told::TOLD;

use crate::told::{TELL_EVERY, verdict};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let bug = arguments.bug()?;
    if arguments.bugs {
        return bug_table::seek(&arguments, bug);
    }
    seed_bug(bug);
    if arguments.crash {
        return crash(&arguments);
    }
    let origin = told::origin(&arguments, bug);
    match arguments.replay {
        Some(seed) => replay::replay(&arguments, &origin, seed),
        None => swarm::swarm(&arguments, &origin),
    }
}

/// Plays every crash point, as far as there is time; what is wrong is told with its plan.
fn crash(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (began, threads) = (Instant::now(), arguments.threads());
    let until = arguments.minutes_real.map(|minutes| began + Duration::from_mins(minutes));
    let last = Mutex::new(began);
    let tell = |done: usize, all: usize, wrong: usize| {
        let Ok(mut last) = last.lock() else { return };
        if last.elapsed() >= TELL_EVERY {
            *last = Instant::now();
            let s = began.elapsed().as_secs();
            eprintln!("  {done} of {all} plans in {s} s, {wrong} went wrong");
        }
    };
    let has_time = || until.is_none_or(|until| Instant::now() < until);
    let points = Points { only: &arguments.only, threads, has_time: &has_time };
    let sum = every_point(&points, tell)?;
    for wrong in sum.wrong.iter().take(TOLD) {
        println!("{}", wrong.join("\n  "));
    }
    println!("\n| scenario | calls | plans |\n|---|---|---|");
    for (name, calls, plans) in &sum.scenarios {
        println!("| {name} | {calls} | {plans} |");
    }
    let (plans, wrong, s) = (sum.plans, sum.wrong.len(), began.elapsed().as_secs());
    let of = if plans == sum.of { String::new() } else { format!(" of {}", sum.of) };
    println!("\n{plans}{of} plans, {wrong} violations, {s} s on {threads} threads");
    Ok(verdict(wrong == 0))
}
