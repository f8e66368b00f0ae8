//! The edges of what is loaded: components that have as much of something as may be, and a little more. What
//! they do when they are called, no compiler makes: memory, tables and a stack to their last bytes.

use anyhow::{Context as _, Result, bail, ensure};
use node_remedy_sandbox::Ended;
use node_remedy_sandbox::limits as most;

use super::super::host::{Host, attempt, told};
use super::super::modules::{
    HONEST, Module, attacker, with_components, with_instances, with_manifest_of, with_section,
};
use super::super::resources::grows_table;
use super::count;

/// The constants that this is about.
pub(super) const LIMITS: &[&str] = &[
    "COMPONENT_BYTES_MAX",
    "MANIFEST_BYTES_MAX",
    "FUNCTIONS_MAX",
    "FUNCTION_BYTES_MAX",
    "NESTED_MAX",
    "TRIAL_FUEL",
    "MEMORIES_MAX",
    "INSTANCES_MAX",
    "MEMORY_BYTES_MAX",
    "TABLE_ELEMENTS_MAX",
    "WASM_STACK_BYTES",
];
/// The most that a shell around what is counted has of it, too.
const BESIDE_MAX: usize = 16;
/// A page of linear memory (WebAssembly, section 4.2.8).
const PAGE: usize = 64 << 10;
/// The least that a call leaves on a stack: where to go back to, and the frame before.
const FRAME_BYTES_MIN: usize = 16;

pub(super) async fn all(host: &Host) -> Result<()> {
    counted(host)?;
    set_up(host)?;
    grown(host).await?;
    deep(host).await
}

/// From just beyond a limit downwards, the first that is loaded is the most: it is near the limit, and every
/// one before it was refused because of it.
fn edge(host: &Host, limit: usize, make: impl Fn(usize) -> Result<Vec<u8>>) -> Result<()> {
    let too_many = format!("{limit} are the most");
    for beside in 0..=BESIDE_MAX {
        match host.load(&make(limit + 1 - beside)?) {
            Ok(_) => {
                ensure!(beside > 0, "{} of them are loaded, {limit} are the most", limit + 1);
                return Ok(());
            }
            Err(error) => ensure!(error.to_string().contains(&too_many), "{error}"),
        }
    }
    bail!("not even {} of them are loaded, of {limit}", limit + 1 - BESIDE_MAX)
}

fn counted(host: &Host) -> Result<()> {
    let whole = attacker()?;
    // A section's head has a few bytes of its own.
    let head = with_section(&whole, "padding", &vec![0; 4 << 20]).len() - whole.len() - (4 << 20);
    let padded =
        |bytes: usize| Ok(with_section(&whole, "padding", &vec![0; bytes - whole.len() - head]));
    edge(host, most::COMPONENT_BYTES_MAX, padded).context("limits::COMPONENT_BYTES_MAX")?;
    let manifest = edge(host, most::MANIFEST_BYTES_MAX, with_manifest_of);
    manifest.context("limits::MANIFEST_BYTES_MAX")?;
    let functions = |number: usize| Module { more: &"(func)".repeat(number), ..HONEST }.component();
    edge(host, count(most::FUNCTIONS_MAX), functions).context("limits::FUNCTIONS_MAX")?;
    let large = |bytes: usize| {
        Module { more: &format!("(func {})", "nop ".repeat(bytes)), ..HONEST }.component()
    };
    edge(host, most::FUNCTION_BYTES_MAX, large).context("limits::FUNCTION_BYTES_MAX")?;
    let honest = HONEST.component()?;
    let nested = |number: usize| Ok(with_components(&honest, number));
    edge(host, count(most::NESTED_MAX), nested).context("limits::NESTED_MAX")
}

/// What is set up before anybody calls.
fn set_up(host: &Host) -> Result<()> {
    let honest = HONEST.component()?;
    for (limit, module, number) in [
        ("MEMORIES_MAX", "(module (memory 1))", most::MEMORIES_MAX),
        ("INSTANCES_MAX", "(module)", most::INSTANCES_MAX),
    ] {
        // One is its own.
        let of = |number: usize| with_instances(&honest, module, number - 1);
        host.load(&of(number)?).with_context(|| format!("limits::{limit}"))?;
        host.refused(&of(number + 1)?).with_context(|| format!("limits::{limit}"))?;
    }
    // Five instructions a turn; the rest of its fuel is for what is around the loop.
    let turns = |number: u64| {
        let work = format!(
            "(func $work (local $left i32) (local.set $left (i32.const {number})) \
               (loop $turn (br_if $turn \
                 (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))) \
             (start $work)"
        );
        Module { more: &work, ..HONEST }.component()
    };
    let all = most::TRIAL_FUEL / 5;
    host.load(&turns(all - all / 1_000)?).context("limits::TRIAL_FUEL")?;
    let refusal = host.refused(&turns(all)?).context("limits::TRIAL_FUEL")?;
    ensure!(refusal.contains(&format!("{} units of fuel", most::TRIAL_FUEL)), "{refusal}");
    Ok(())
}

/// What grows while it runs.
async fn grown(host: &Host) -> Result<()> {
    let pages = |all: usize| {
        // Two are its own.
        let run = format!("(drop (memory.grow (i32.const {})))", all - 2);
        Module { run: &run, ..HONEST }.component()
    };
    let all = usize::try_from(most::MEMORY_BYTES_MAX)? / PAGE;
    let elements = most::TABLE_ELEMENTS_MAX;
    for (limit, below, beyond, says) in [
        ("MEMORY_BYTES_MAX", pages(all)?, pages(all + 1)?, "bytes of memory; 67108864 is the most"),
        (
            "TABLE_ELEMENTS_MAX",
            grows_table(elements)?,
            grows_table(elements + 1)?,
            "10000 is the most",
        ),
    ] {
        let within = || format!("limits::{limit}");
        let below = attempt("").of(&host.load(&below)?);
        host.says(&below, Ended::Returned, "outcome on").await.with_context(within)?;
        let beyond = attempt("").of(&host.load(&beyond)?);
        host.says(&beyond, Ended::Cut, says).await.with_context(within)?;
    }
    Ok(())
}

/// It goes as deep as its plug's name is long. How much a call leaves on the stack is the compiler's choice:
/// so the deepest that passes is looked for, and must be what the stack has room for.
async fn deep(host: &Host) -> Result<()> {
    let recursive = Module {
        run: "(call $deep (local.get 2))",
        more: "(func $deep (param i32) (if (local.get 0) (then \
                 (call $deep (i32.sub (local.get 0) (i32.const 1))))))",
        ..HONEST
    };
    let recursive = host.load(&recursive.component()?)?;
    let (mut passes, mut fails) = (1, most::WASM_STACK_BYTES / FRAME_BYTES_MIN + 1);
    while fails - passes > 1 {
        let middle = usize::midpoint(passes, fails);
        let report = host.call(&attempt(&"x".repeat(middle)).of(&recursive)).await?;
        match report.ended {
            Ended::Returned => passes = middle,
            Ended::Trapped => fails = middle,
            Ended::NotStarted | Ended::Cut | Ended::Deadline | Ended::Cancelled => {
                bail!("{middle} deep it {}", told(&report));
            }
        }
    }
    let beyond = host.call(&attempt(&"x".repeat(fails)).of(&recursive)).await?;
    let frames = passes * 4 * FRAME_BYTES_MIN;
    let is_whole = beyond.ended == Ended::Trapped && frames > most::WASM_STACK_BYTES / 2;
    ensure!(is_whole, "{passes} deep is the deepest, and then it {}", told(&beyond));
    Ok(())
}
