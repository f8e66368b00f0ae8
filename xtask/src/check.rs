//! `cargo xtask check`: everything that a machine can say about the sources without running them.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::progress::{Stopwatch, run_logged};
use crate::root::{at, cargo, root};
use crate::source::Source;
use crate::{codegen, plugins, prerequisites, tidy};

pub(crate) const HELP: &str = "\
  format     cargo fmt --all --check
  lints      cargo clippy --workspace --all-targets -- -D warnings
  tidy       dependency arrows, circles of files, lints in every crate, module heads, links, named tests,
             promises, words not to use, plugins' shape, the SDK's examples, file sizes
  prose      vale on the pages, by the rules in .vale/styles; the first time it is built with Go, a minute
  generated  cargo xtask codegen --check
  packages   cargo publish --dry-run of the SDK and of what speaks SNMP beside it

All of them run, whatever the first one says. With names, only those.

Examples:
  cargo xtask check
  cargo xtask check tidy
";

type Check = (&'static str, fn() -> Result<()>);

const CHECKS: [Check; 6] = [
    ("format", format),
    ("tidy", tidy),
    ("lints", lints),
    ("prose", prose),
    ("generated", codegen::check),
    ("packages", packages),
];

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    if let Some(unknown) =
        arguments.iter().find(|name| !CHECKS.iter().any(|(known, _)| known == *name))
    {
        bail!("there is no check {unknown:?}; see --help");
    }
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        if !arguments.is_empty() && !arguments.contains(&name) {
            continue;
        }
        let watch = Stopwatch::start();
        match check() {
            Ok(()) => println!("{name:<10} ok ({watch})"),
            Err(failure) => {
                println!("{name:<10} FAILED ({watch}): {failure:#}");
                failed.push(name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn format() -> Result<()> {
    let mut fmt = cargo();
    fmt.args(["fmt", "--all", "--check"]);
    run_logged("checking the format", "check-format", &mut fmt)?;
    Ok(())
}

fn lints() -> Result<()> {
    // The node-remedy crate embeds them.
    plugins::build_all()?;
    let mut clippy = cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    run_logged("linting", "check-lints", &mut clippy)?;
    Ok(())
}

/// Pages of our own words: not what others said, what was, or what is generated.
fn prose() -> Result<()> {
    const NOT_OURS: &[&str] =
        &["docs/proposals.md", "tests/runs.md", "tests/fixtures/", "CHANGELOG.md"];
    prerequisites::vale()?;
    let pages = Source::all(root())?;
    let pages = pages.iter().filter(|page| page.has_extension("md"));
    let pages = pages.filter(|page| !NOT_OURS.iter().any(|path| page.path.starts_with(path)));
    let mut vale = Command::new(at(prerequisites::VALE));
    vale.current_dir(root()).args(["--output", "line"]).args(pages.map(|page| &page.path));
    let output = vale.output().context("failed to start vale")?;
    let findings = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        bail!("{} findings\n{findings}{told}", findings.lines().count());
    }
    Ok(())
}

/// That authors of plugins can be given these crates as they are; built they are by every other check.
fn packages() -> Result<()> {
    let mut publish = cargo();
    publish.args(["publish", "--dry-run", "--no-verify", "--allow-dirty"]);
    publish.args(["--package", "node-remedy-sdk", "--package", "node-remedy-plugin-snmp"]);
    run_logged("packaging", "check-packages", &mut publish)?;
    Ok(())
}

fn tidy() -> Result<()> {
    let findings = tidy::findings(root())?;
    if findings.is_empty() {
        return Ok(());
    }
    bail!("{} findings\n  {}", findings.len(), findings.join("\n  "))
}
