//! `cargo xtask bench`: measurements against real parts, as tables of medians.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::progress::run_logged;
use crate::root::{at, cargo, root};
use crate::setup::Part;

pub(crate) const HELP: &str = "\
  floor       what a real control plane itself needs to move a pod with a volume once its node's
              machine is proven off: five runs, released by hand, without node-remedy
  end-to-end  from a node's last heartbeat to the end of its incident: five runs

Examples:
  cargo xtask bench floor
";

struct Bench {
    name: &'static str,
    needs: &'static [Part],
}

const BENCHES: [Bench; 2] = [
    Bench { name: "floor", needs: &[Part::DebianPackages, Part::ControlPlane] },
    Bench {
        name: "end-to-end",
        needs: &[Part::DebianPackages, Part::ControlPlane, Part::Plugins, Part::Binary],
    },
];

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let [name] = arguments else { bail!("name one bench; see --help") };
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == *name) else {
        bail!("there is no bench {name:?}; see --help");
    };
    for part in bench.needs {
        part.provide().with_context(|| format!("no {}", part.name()))?;
    }
    let mut build = cargo();
    build.args(["build", "--package", "node-remedy-tests", "--bin", "node-remedy-bench"]);
    run_logged("building the benches", "bench-build", &mut build)?;
    let mut measure = Command::new(at("target/debug/node-remedy-bench"));
    let status = measure.current_dir(root()).arg(bench.name).status()?;
    if !status.success() {
        bail!("bench {name} ended with {status}");
    }
    Ok(())
}
