//! `cargo xtask test exhaustive`: walks through the small world and says what does not hold.

#![expect(clippy::disallowed_methods, reason = "how long a search takes is real time")]

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use node_remedy_small_world::bug::Bug;
use node_remedy_small_world::search::{Found, search};
use node_remedy_small_world::trace::trace;
use node_remedy_small_world::world::Setting;

/// Everything that can happen to one node, its machine and two controllers.
#[derive(Debug, Parser)]
#[command(
    name = "node-remedy-small-world",
    after_help = "Examples:
  cargo xtask test exhaustive
  cargo run --profile sim -p node-remedy-small-world -- --faults 2 --bug no-lease-gate

Exit code 0: everything holds; 1: something does not, and the shortest way to it is printed."
)]
struct Arguments {
    /// How many things go wrong in one order of events.
    #[arg(long, default_value_t = 3)]
    faults: u8,
    /// Further tries of a step.
    #[arg(long, default_value_t = 1)]
    retries: u32,
    /// Flows back to New.
    #[arg(long, default_value_t = 1)]
    restarts: u32,
    /// Breaks this on purpose.
    #[arg(long, value_parser = bug)]
    bug: Option<Bug>,
    /// Gives up beyond this many states.
    #[arg(long, default_value_t = 60_000_000)]
    states_max: usize,
}

fn bug(word: &str) -> Result<Bug, String> {
    let words: Vec<&str> = Bug::ALL.iter().map(|bug| bug.word()).collect();
    let found = Bug::ALL.iter().copied().find(|bug| bug.word() == word);
    found.ok_or_else(|| format!("the bugs are {}", words.join(", ")))
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { faults, retries, restarts, bug, states_max } = Arguments::parse();
    let setting = Setting { faults, retries, restarts, bug, ..Setting::default() };
    let began = Instant::now();
    let found = search(&setting, states_max)?;
    report(&setting, &found, began.elapsed().as_secs_f64());
    Ok(if found.broken.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(setting: &Setting, found: &Found, seconds: f64) {
    let Setting { faults, retries, restarts, bug, .. } = setting;
    println!("faults {faults}, retries {retries}, restarts {restarts}, two controllers");
    if let Some(bug) = bug {
        println!("broken on purpose: {bug}");
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = found.states as f64 / seconds.max(0.001);
    println!("states         {}", found.states);
    println!("transitions    {}", found.transitions);
    println!("deepest path   {} moves", found.deepest);
    println!("seconds        {seconds:.1}");
    println!("states/s       {rate:.0}");
    println!("records        {}", found.records);
    println!("decisions      {}", found.questions);
    println!("by faults      {:?}", found.by_faults);
    println!("violations     {}", u8::from(found.broken.is_some()));
    match &found.broken {
        None => {
            println!("every incident ends within {} moves of its last fault", found.steps_to_end);
        }
        Some((broken, way)) => {
            println!("\n{broken}\nafter {} moves:", way.len());
            for line in trace(setting, way) {
                println!("{line}");
            }
        }
    }
}
