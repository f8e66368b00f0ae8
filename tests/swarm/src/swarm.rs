//! Plays a range of runs on several threads, and tells what they came to.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use node_remedy_swarm::coverage::Coverage;
use node_remedy_swarm::failure::Origin;
use node_remedy_swarm::play::{Outcome, judged};
use node_remedy_swarm::seed_run::SeedRun;

use crate::arguments::{Arguments, Output};
use crate::summary::Summary;
use crate::told::{TELL_EVERY, each_failure, verdict};

/// Plays the runs that were asked for, and tells of those that broke an invariant.
pub(crate) fn swarm(arguments: &Arguments, origin: &Origin) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let (coverage, wrong) = played(arguments, began)?;
    let threads = arguments.threads();
    let summary = Summary {
        coverage: &coverage,
        wrong: &wrong,
        took: began.elapsed(),
        threads,
        commit: &origin.commit,
    };
    let missing = coverage.missing();
    match arguments.output {
        Output::Json => {
            let failures = each_failure(&wrong, origin, threads, |_| {})?;
            println!("{:#}", summary.json(&failures));
        }
        Output::Text => {
            println!("{summary}");
            each_failure(&wrong, origin, threads, |failure| println!("\n{failure}"))?;
            if !wrong.is_empty() {
                let seeds: Vec<_> = wrong.iter().map(|one| one.run.seed.to_string()).collect();
                println!("\nnights that went wrong: {} ({})", wrong.len(), seeds.join(" "));
            }
            for what in &missing {
                println!("not covered: {what}");
            }
        }
    }
    Ok(verdict(wrong.is_empty() && missing.is_empty()))
}

/// What the runs have seen, and those that went wrong, by seed.
fn played(arguments: &Arguments, began: Instant) -> anyhow::Result<(Coverage, Vec<Outcome>)> {
    let end = arguments.seed.saturating_add(arguments.seeds);
    let until = arguments.minutes_real.map(|minutes| began + Duration::from_mins(minutes));
    let next = AtomicU64::new(arguments.seed);
    let sum = Mutex::new((Coverage::default(), Vec::new(), began));
    let play = || -> anyhow::Result<()> {
        while until.is_none_or(|until| Instant::now() < until) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                break;
            }
            let run = SeedRun::with_nodes(seed, arguments.lasts(), arguments.nodes.as_ref());
            let outcome = judged(run)?;
            let Ok(mut sum) = sum.lock() else { break };
            let (coverage, wrong, told) = &mut *sum;
            coverage.merge(outcome.coverage.clone());
            if let Some(broken) = outcome.broken.first() {
                eprintln!("  run {seed} breaks {}; told of at the end", broken.invariant);
                wrong.push(outcome);
            }
            if told.elapsed() >= TELL_EVERY {
                *told = Instant::now();
                let s = began.elapsed().as_secs();
                eprintln!("  {} runs in {s} s, {} went wrong", coverage.runs, wrong.len());
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..arguments.threads()).map(|_| scope.spawn(play)).collect();
        let joined = running.into_iter().map(|one| {
            let panicked = || Err(anyhow!("a run panicked"));
            one.join().unwrap_or_else(|_| panicked())
        });
        joined.collect::<anyhow::Result<()>>()
    })?;
    let (coverage, mut wrong, _) = sum.into_inner().ok().context("a run panicked")?;
    wrong.sort_by_key(|outcome: &Outcome| outcome.run.seed);
    Ok((coverage, wrong))
}
