//! `cargo xtask check`: everything that a machine can say about the sources without running them.

use anyhow::{Result, bail};

use crate::progress::{Stopwatch, run_logged};
use crate::root::{cargo, root};
use crate::{codegen, plugins, tidy};

pub(crate) const HELP: &str = "\
  format     cargo fmt --all --check
  lints      cargo clippy --workspace --all-targets -- -D warnings
  tidy       dependency arrows, lints in every crate, module heads, links, named tests, plugins'
             shape, the SDK's examples, file sizes
  generated  cargo xtask codegen --check
  packages   cargo publish --dry-run of the SDK and of what speaks SNMP beside it

All of them run, whatever the first one says. With names, only those.

Examples:
  cargo xtask check
  cargo xtask check tidy
";

type Check = (&'static str, fn() -> Result<()>);

const CHECKS: [Check; 5] = [
    ("format", format),
    ("tidy", tidy),
    ("lints", lints),
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
