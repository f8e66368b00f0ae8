//! `cargo xtask demo`: three runs of a cluster, simulated by the node-remedy that runs in real
//! ones. It needs only Rust.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::progress::{Stopwatch, log_path, run_logged};
use crate::root::{at, cargo, root, with_node_remedy};
use crate::setup::Part;
use crate::{arguments, plugins};

pub(crate) const HELP: &str = "\
Builds the plugins and node-remedy, then simulates three runs from examples/: a node is lost; a
BMC says yes and does nothing; a rack of ten goes dark. The clusters and devices are models in
virtual time; the policy, the controller and the plugin are those that run in production. Reports
go to target/demo, the build's output to target/logs. Five to twelve minutes from a fresh clone on two
cores, ten seconds after that.

With --cluster the first scenario happens on a real control plane, with simulated machines behind
OpenIPMI's simulator. It sets up what that needs (Go, Debian packages): five to ten minutes the
first time, one and a half after that. With --cluster --keep the cluster stays until Ctrl-C.

Examples:
  cargo xtask demo
  cargo xtask demo --cluster
  cargo xtask demo --cluster --keep
";

/// What the scenario on a real control plane is made of.
const CLUSTER_PARTS: [Part; 3] = [Part::DebianPackages, Part::ControlPlane, Part::Plugins];

/// Below the root.
const REPORTS: &str = "target/demo";
const BUILD_LOG: &str = "demo-build";

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
    match arguments {
        ["--cluster"] | ["--cluster", "--keep"] => {
            return on_a_cluster(arguments.contains(&"--keep"));
        }
        ["--cluster", unknown @ ..] => arguments::refuse(unknown)?,
        _ => arguments::refuse(arguments)?,
    }
    let whole = Stopwatch::start();
    println!("{}", opening(at("target/debug/node-remedy").exists()));
    for (number, step) in STEPS.iter().enumerate() {
        println!("\nstep {} of {}: {}", number + 1, STEPS.len(), step.title);
        let watch = Stopwatch::start();
        step.work.run().with_context(|| format!("step {} failed", number + 1))?;
        println!("  step {} of {} took {watch}", number + 1, STEPS.len());
    }
    println!("\nall of it took {whole}");
    println!("  program  target/debug/node-remedy, called node-remedy in the lines to try");
    println!("  reports  {REPORTS}/*.html");
    println!("  build    {}", log_path(BUILD_LOG).display());
    Ok(())
}

/// The first scenario on a real control plane; what happens there is told by a program of its own,
/// which is built with the fixtures of the tests.
fn on_a_cluster(is_kept: bool) -> Result<()> {
    println!("node-remedy demo: a lost node on a real control plane, in 5 steps after setting up.");
    let whole = Stopwatch::start();
    for part in CLUSTER_PARTS {
        part.provide().with_context(|| format!("no {}", part.name()))?;
    }
    run_logged("building the demo", BUILD_LOG, &mut with_node_remedy("node-remedy-demo"))?;
    println!("set up in {whole}; the scenario takes about a minute");
    let mut scenario = Command::new(at("target/debug/node-remedy-demo"));
    let keep = is_kept.then_some("--keep");
    let status = scenario.current_dir(root()).args(keep).status()?;
    if !status.success() {
        bail!("the scenario ended with {status}");
    }
    println!("all of it took {whole}");
    Ok(())
}

/// The first line: what will be shown, in how many steps, how long it takes.
fn opening(was_built: bool) -> String {
    let scenarios: Vec<&str> = STEPS.iter().filter_map(Step::scenario).collect();
    let long = if was_built {
        "ten seconds if nothing changed"
    } else {
        "five to twelve minutes this first time, mostly building"
    };
    format!(
        "node-remedy demo: three simulated runs ({}), in {} steps; about {long}.",
        scenarios.join("; "),
        STEPS.len(),
    )
}

impl Step {
    /// What is told, where it tells something.
    fn scenario(&self) -> Option<&'static str> {
        match self.work {
            Work::Simulate(_) => Some(self.title),
            Work::BuildPlugins | Work::BuildBinary => None,
        }
    }
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
                run_logged("building", BUILD_LOG, &mut build).map(|_| ())
            }
            Self::Simulate(name) => simulate(name),
        }
    }
}

/// Its output is what the demo is for, so it goes to the terminal and not to a log.
fn simulate(name: &str) -> Result<()> {
    fs::create_dir_all(at(REPORTS))?;
    let scenario = format!("examples/scenarios/{name}.yaml");
    let report = format!("{REPORTS}/{name}.html");
    let mut command = Command::new(at("target/debug/node-remedy"));
    command.current_dir(root()).args(["simulate", &scenario, "--report", &report]);
    let status = command.status().context("failed to start node-remedy")?;
    if !status.success() {
        bail!("node-remedy simulate {scenario} ended with {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_every_scenario_and_the_number_of_steps() {
        for was_built in [true, false] {
            let line = opening(was_built);
            assert!(line.contains("5 steps") && line.lines().count() == 1, "{line}");
            assert_eq!(STEPS.iter().filter_map(Step::scenario).count(), 3);
            assert!(
                STEPS.iter().filter_map(Step::scenario).all(|scenario| line.contains(scenario))
            );
        }
        assert!(opening(false).contains("minutes"));
    }

    #[test]
    fn every_step_has_its_scenario() {
        for step in &STEPS {
            if let Work::Simulate(name) = step.work {
                assert!(at(&format!("examples/scenarios/{name}.yaml")).is_file(), "{name}");
            }
        }
    }

    #[test]
    fn what_is_not_an_argument_is_refused_by_name() {
        assert!(run(&["--clusters"]).unwrap_err().to_string().contains("--clusters"));
        assert!(run(&["--cluster", "--kep"]).unwrap_err().to_string().contains("--kep"));
    }
}
