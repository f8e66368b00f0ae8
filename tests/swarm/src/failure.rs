//! What a person is told of a run that broke an invariant, and the files that go with it.

use std::fmt;
use std::fmt::{Display, Formatter};
use std::path::Path;

use anyhow::Context as _;
use node_remedy_report::html;
use node_remedy_simulate::{Comparison, Source, tell};
use serde_json::Value;

use crate::checks::Violation;
use crate::play::Outcome;
use crate::seed_run::{SeedRun, named_files, path};
use crate::shrink::Shrunk;

/// Of a long log the last lines are told; all of it is in a file.
const LINES_TOLD: usize = 60;
/// Where the table of invariants is.
const GUARANTEES: &str = include_str!("../../../docs/guarantees.md");
/// What `node-remedy simulate --verify` finds a named file by in what a report carries.
const FILE_MARK: &str = "#### file: ";

/// A run that broke an invariant, and the shortest one that does.
pub struct Failure {
    /// Every violation of the whole run.
    pub broken: Vec<Violation>,
    /// The whole run.
    pub run: SeedRun,
    /// The shortest that breaks the first of them.
    pub shrunk: Shrunk,
    /// What was built, and what was asked for.
    pub origin: Origin,
}

/// What it takes to play a run again.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The commit of the checkout, with `-dirty` where it was changed.
    pub commit: String,
    /// The bug that was seeded on purpose.
    pub bug: Option<&'static str>,
    /// The command line, up to the seed.
    pub replay: String,
}

impl Failure {
    /// Where something of this run is written.
    pub fn file(&self, extension: &str) -> String {
        file(self.run.seed, extension)
    }

    /// The command line that plays the run again.
    pub fn again(&self) -> String {
        self.origin.again(self.run.seed)
    }

    /// Writes the whole run, the shortest one, and that one's log and report. A report that cannot
    /// be made is a page that says why. Fails where something cannot be written.
    pub fn write(&self) -> anyhow::Result<()> {
        write_whole(&self.run, &self.origin)?;
        let seed = self.run.seed;
        let short = SeedRun { text: self.short_text(), ..self.shrunk.outcome.run.clone() };
        write(seed, "short.yaml", &short.text)?;
        write(seed, "log", &self.shrunk.outcome.log)?;
        let page = report(&short).unwrap_or_else(|error| {
            let file = self.file("log");
            format!("<!doctype html><title>Run {seed}</title><p>No report: {error:#}. See {file}.")
        });
        write(seed, "html", &page)
    }

    /// The shortest run, which says of itself what it is.
    fn short_text(&self) -> String {
        let Violation { invariant, sentence, .. } = &self.shrunk.violation;
        let Origin { commit, bug, .. } = &self.origin;
        let with_bug = bug.map(|bug| format!(", with the bug {bug} seeded")).unwrap_or_default();
        let seed = self.run.seed;
        // A JSON string is a YAML string, whatever is in it.
        let title = Value::from(format!("Run {seed} breaks {invariant}: {sentence}"));
        let plain = format!("title: Run {seed}\n");
        let text = self.shrunk.outcome.run.text.replacen(&plain, &format!("title: {title}\n"), 1);
        format!(
            "# The shortest that breaks {invariant} at {commit}{with_bug}, made of what\n# {} \
             plays.\n{text}",
            self.again()
        )
    }
}

impl Origin {
    /// The command line that plays the run of a seed again.
    pub fn again(&self, seed: u64) -> String {
        format!("{} {seed}", self.replay)
    }
}

/// Writes a run where `node-remedy simulate` finds it.
pub fn write_whole(run: &SeedRun, origin: &Origin) -> anyhow::Result<()> {
    write(run.seed, "yaml", &format!("# {}\n{}", origin.again(run.seed), run.text))
}

fn file(seed: u64, extension: &str) -> String {
    Path::new(&path(seed)).with_extension(extension).display().to_string()
}

fn write(seed: u64, extension: &str, text: &str) -> anyhow::Result<()> {
    let file = file(seed, extension);
    if let Some(folder) = Path::new(&file).parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("failed to make {}", folder.display()))?;
    }
    std::fs::write(&file, text).with_context(|| format!("failed to write {file}"))
}

/// The report of a run, as `node-remedy simulate --no-baseline --report` draws it.
pub fn report(run: &SeedRun) -> anyhow::Result<String> {
    let mut files = named_files().into_iter();
    let named = files.find(|(name, _)| run.text.contains(name.as_str()));
    let (name, named) = named.context("the run names no configuration")?;
    let source = Source {
        name: format!("run-{}", run.seed),
        text: format!("{}\n{FILE_MARK}{name}\n{named}", run.text),
    };
    let timeline = tell(&run.scenario()?, &source, Comparison::Nothing)?;
    html::page(&timeline).context("failed to make the report")
}

/// What an invariant says, from the tables of docs/guarantees.md.
fn promise(invariant: &str) -> Option<&'static str> {
    let rows = GUARANTEES
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.filter(|(name, _)| *name == invariant).map(|(_, says)| says).next()
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { broken, run, shrunk, origin } = self;
        let Violation { invariant, sentence, .. } = &shrunk.violation;
        let seed = run.seed;
        writeln!(f, "── run {seed} breaks {invariant}: {}", promise(invariant).unwrap_or("?"))?;
        writeln!(f, "{sentence}")?;
        write!(f, "\nseed {seed}, commit {}", origin.commit)?;
        match origin.bug {
            Some(bug) => writeln!(f, ", with the bug {bug} seeded on purpose")?,
            None => writeln!(f)?,
        }
        let Shrunk { faults, faults_whole, nodes, processes, plays, .. } = shrunk;
        writeln!(
            f,
            "faults that it takes: {} of {faults_whole} (nodes {nodes}, processes of \
             node-remedy {processes}, plays {plays})",
            faults.len()
        )?;
        for line in faults {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "\nwhat truly happened in the shortest run, in seconds:")?;
        write_log(f, &shrunk.outcome, &shrunk.violation, &self.file("log"))?;
        if broken.len() > 1 {
            writeln!(f, "\nthe whole run breaks:")?;
            for violation in broken {
                writeln!(f, "  {violation}")?;
            }
        }
        writeln!(f, "\nreport          {}", self.file("html"))?;
        writeln!(f, "shortest run  {}", self.file("short.yaml"))?;
        writeln!(f, "whole run     {}", self.file("yaml"))?;
        write!(f, "again           {}", self.again())?;
        if origin.bug.is_none() {
            let short = self.file("short.yaml");
            write!(f, "\n                node-remedy simulate {short} --no-baseline")?;
        }
        Ok(())
    }
}

/// The end of a log, with a mark where the invariant is broken.
fn write_log(
    f: &mut Formatter<'_>,
    outcome: &Outcome,
    violation: &Violation,
    file: &str,
) -> fmt::Result {
    let lines: Vec<&str> = outcome.log.lines().collect();
    let before = lines.len().saturating_sub(LINES_TOLD);
    if before > 0 {
        writeln!(f, "  … {before} lines before, all {} in {file}", lines.len())?;
    }
    for line in lines.iter().skip(before) {
        let (time, what) = line.trim_start().split_once(' ').unwrap_or_default();
        let breaks = violation.sentence.starts_with(&format!("{time} s: {what}: "));
        writeln!(f, "{}{line}", if breaks { "▶ " } else { "  " })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::ALL;

    #[test]
    fn every_invariant_is_told_in_words() {
        for (invariant, _) in ALL {
            assert!(promise(invariant).is_some(), "{invariant}");
        }
        let says = promise("S3");
        assert_eq!(
            says,
            Some("A control-plane node is cut only while all others are well and a majority.")
        );
        assert_eq!(promise("L3"), Some("Somebody leads."));
        assert_eq!(promise("S99"), None);
    }
}
