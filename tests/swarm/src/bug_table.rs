//! Seeds known bugs and tables how soon each is found.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use node_remedy_decide::bug::Bug;
use node_remedy_swarm::bugs::{Found, Search};

use crate::arguments::Arguments;
use crate::told::verdict;

/// Seeds bugs, one after the other; one that is not found fails.
pub(crate) fn seek(arguments: &Arguments, bug: Option<Bug>) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let threads = arguments.threads();
    node_remedy_swarm::bugs::all_is_well_without(threads)?;
    let search = Search {
        runs: arguments.seeds,
        lasts: arguments.lasts(),
        threads,
        first_only: arguments.first_only,
    };
    let bugs = bug.map_or_else(|| Bug::ALL.to_vec(), |bug| vec![bug]);
    let mut table =
        String::from("| invariant | bug | found by | runs | scenarios |\n|---|---|---|---|---|\n");
    print!("{table}");
    let (mut unfound, mut moved) = (Vec::new(), Vec::new());
    for bug in bugs {
        let found = node_remedy_swarm::bugs::seek(bug, &search)?;
        let is_found = found.is_found();
        let Found { bug, corpus, scenarios, runs, is_moved } = found;
        if !is_found {
            unfound.push(bug.name());
        }
        if is_moved {
            moved.push(bug.name());
        }
        let (by, runs) = match runs {
            Some((runs, found)) => (found.join(" "), runs.to_string()),
            None if !corpus.is_empty() => {
                (format!("{} in the corpus of attacks", corpus.join(" ")), "–".to_owned())
            }
            None => match scenarios.first() {
                Some((_, broken)) => (broken.join(" "), "–".to_owned()),
                None => ("**nothing**".to_owned(), arguments.seeds.to_string()),
            },
        };
        let scenarios: Vec<String> = scenarios.into_iter().map(|(name, _)| name).collect();
        let scenarios = match scenarios.as_slice() {
            [] => "–".to_owned(),
            [one] => one.clone(),
            [one, rest @ ..] => format!("{one} and {} more", rest.len()),
        };
        let (invariant, name) = (bug.invariant(), bug.name());
        let row = format!("| {invariant} | {name} | {by} | {runs} | {scenarios} |\n");
        print!("{row}");
        table.push_str(&row);
    }
    let (took, count) = (began.elapsed().as_secs(), unfound.len());
    println!("\nin {took} s on {threads} threads; {count} not found {}", unfound.join(" "));
    if !moved.is_empty() {
        let names = moved.join(" ");
        println!(
            "tests/swarm/known-finds.txt is out of date for: {names}. Write there the scenario, or the seed of the run, \
             that found them now: then it is played first"
        );
    }
    if let Some(file) = &arguments.write {
        write_between(file, &table)?;
    }
    Ok(verdict(unfound.is_empty()))
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
