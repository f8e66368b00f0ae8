//! Plays one run twice, the second time among others: the same log, byte for byte, or a run is
//! no function of its seed.

use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{anyhow, ensure};
use node_remedy_swarm::failure::{Origin, write_whole};
use node_remedy_swarm::play::{Outcome, judged};
use node_remedy_swarm::seed_run::{SeedRun, path};

use crate::arguments::Arguments;
use crate::told::{each_failure, verdict};

/// Fewer would leave nobody to play other runs.
const THREADS_MIN: usize = 2;

/// Prints all that happened in a run, what is wrong with it, and that another playing was alike.
/// Fails if it was not.
pub(crate) fn replay(
    arguments: &Arguments,
    origin: &Origin,
    seed: u64,
) -> anyhow::Result<ExitCode> {
    let play =
        |seed| judged(SeedRun::with_nodes(seed, arguments.lasts(), arguments.nodes.as_ref()));
    let first = play(seed)?;
    print!("{}", first.log);
    let threads = arguments.threads().max(THREADS_MIN);
    let (second, others) = among_others(seed, threads, &play)?;
    let (one, other) = (&first.digest, &second.digest);
    ensure!(first.log == second.log, "the second playing differs: log {one}, then {other}");
    let is_well = first.broken.is_empty();
    if is_well {
        write_whole(&first.run, origin)?;
        println!("report: node-remedy simulate {} --no-baseline --report run.html", path(seed));
    } else {
        each_failure(&[first], origin, threads, |failure| println!("\n{failure}\n"))?;
    }
    println!(
        "log {other}: the same alone and as one of {threads} threads, while the others played \
         {others} other runs"
    );
    Ok(verdict(is_well))
}

/// Plays the run of a seed on a thread of its own while others play other runs, and says how
/// many those were.
fn among_others(
    seed: u64,
    threads: usize,
    play: &(impl Fn(u64) -> anyhow::Result<Outcome> + Sync),
) -> anyhow::Result<(Outcome, u64)> {
    let (is_over, next) = (AtomicBool::new(false), AtomicU64::new(seed.wrapping_add(1)));
    let together = Barrier::new(threads);
    let panicked = || anyhow!("a run panicked");
    std::thread::scope(|scope| {
        let play_others = || -> anyhow::Result<u64> {
            together.wait();
            let mut played = 0;
            while !is_over.load(Ordering::SeqCst) {
                play(next.fetch_add(1, Ordering::SeqCst))?;
                played += 1;
            }
            Ok(played)
        };
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(play_others)).collect();
        let second = scope.spawn(|| {
            together.wait();
            play(seed)
        });
        let second = second.join();
        is_over.store(true, Ordering::SeqCst);
        let others = others.into_iter().map(|one| one.join().unwrap_or_else(|_| Err(panicked())));
        let others = others.sum::<anyhow::Result<u64>>()?;
        Ok((second.map_err(|_| panicked())??, others))
    })
}
