//! `cargo xtask demo`: three nights of a cluster, simulated by the node-remedy that runs in real
//! ones. It needs only Rust.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::plugins;
use crate::progress::{Stopwatch, run_logged};
use crate::root::{at, cargo, root};

pub(crate) const HELP: &str = "\
Builds the plugins and node-remedy, then simulates three nights from examples/: a node is lost; a
BMC says yes and does nothing; a rack of ten goes dark. The clusters and devices are models in
virtual time; the policy, the controller and the plugin are those that run in production. Reports
go to target/demo. About five minutes from a fresh clone on two cores, ten seconds after that.

Examples:
  cargo xtask demo
";

struct Step {
    title: &'static str,
    work: Work,
}

enum Work {
    BuildPlugins,
    BuildBinary,
    /// The name of a scenario in examples/scenarios.
    Simulate(&'static str),
}

const STEPS: [Step; 5] = [
    Step { title: "build the fence plugins", work: Work::BuildPlugins },
    Step { title: "build node-remedy", work: Work::BuildBinary },
    Step { title: "a node is lost", work: Work::Simulate("lost-node") },
    Step { title: "a BMC says yes and does nothing", work: Work::Simulate("bmc-says-yes") },
    Step { title: "a rack of ten goes dark", work: Work::Simulate("dark-rack") },
];

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    crate::refuse_arguments(arguments)?;
    let whole = Stopwatch::start();
    println!(
        "node-remedy demo: three nights of a cluster, in {} steps; {}.",
        STEPS.len(),
        if at("target/debug/node-remedy").exists() {
            "about ten seconds if nothing changed"
        } else {
            "about five minutes this first time, mostly building"
        }
    );
    for (number, step) in STEPS.iter().enumerate() {
        println!("\nstep {} of {}: {}", number + 1, STEPS.len(), step.title);
        let watch = Stopwatch::start();
        step.work.run().with_context(|| format!("step {} failed", number + 1))?;
        println!("  done in {watch}");
    }
    println!("\nall of it took {whole}");
    Ok(())
}

impl Work {
    fn run(&self) -> Result<()> {
        match self {
            Self::BuildPlugins => {
                for line in plugins::build_all()? {
                    println!("  {line}");
                }
                Ok(())
            }
            Self::BuildBinary => {
                let mut build = cargo();
                build.args(["build", "--package", "node-remedy", "--bin", "node-remedy"]);
                run_logged("building", "demo-build", &mut build).map(|_| ())
            }
            Self::Simulate(name) => simulate(name),
        }
    }
}

/// Its output is what the demo is for, so it goes to the terminal and not to a log.
fn simulate(name: &str) -> Result<()> {
    let reports = at("target/demo");
    fs::create_dir_all(&reports)?;
    let scenario = format!("examples/scenarios/{name}.yaml");
    let report = reports.join(format!("{name}.html"));
    let mut command = Command::new(at("target/debug/node-remedy"));
    command.current_dir(root()).args(["simulate", &scenario, "--report"]).arg(&report);
    let status = command.status().context("failed to start node-remedy")?;
    if !status.success() {
        bail!("node-remedy simulate {scenario} ended with {status}");
    }
    println!("  report:   {}", report.display());
    println!("  scenario: {scenario}");
    Ok(())
}
