//! `cargo xtask bench`: measurements against real parts, as tables of medians.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::progress::run_logged;
use crate::root::{at, cargo, root, with_node_remedy};
use crate::setup::Part;

pub(crate) const HELP: &str = "\
  floor       what a real control plane itself needs to move a pod with a volume once its node's
              machine is proven off: five runs, released by hand, without node-remedy
  end-to-end  from a node's last heartbeat to the end of its incident: five runs
  memory      what node-remedy needs of memory and CPU while nothing happens, and until it is ready, with 3, 1,000
              and 5,000 simulated nodes of ten pods each, or as many as `--nodes` says. `--against BINARY`
              measures another build in the same clusters. Makes a release build first
  decide      decisions a second on one core, and one pass over 15,000 nodes: time and memory, beside the
              parsing of those nodes' JSON; the gate while one of three zones is dark. Makes a release
              build of the pure part, which takes seconds
  methods     one read of a machine's power: `node-remedy fence … status` and fence agents, ipmitool,
              snmpget as whole processes side by side (wall, CPU, peak memory), the components in their
              sandbox and the same code native, and 40 BMCs at once. Fails where one of them does not
              say that the machine is on; names each that could not run. Makes a release build first,
              which takes minutes
  sandbox     what it costs to load a component, to call it, to have a thousand calls wait at once, and what
              a loop of one thread feels of guests that compute without end; each beside the same
              natively. Makes a release build first, which takes minutes

Examples:
  cargo xtask bench floor
  cargo xtask bench memory --nodes 1000,5000 --against /root/node-remedy-before
  cargo xtask bench methods
";

struct Bench {
    name: &'static str,
    needs: &'static [Part],
    /// What it does without, and says so.
    likes: &'static [Part],
    build: Build,
}

/// How the bench is built, and with it the node-remedy that it measures.
#[derive(Clone, Copy)]
enum Build {
    /// What is measured waits for others most of the time.
    Debug,
    /// What is measured computes.
    Release,
    /// What is measured computes and needs nothing else: an example of this name in `host/decide`.
    Example(&'static str),
}

const BENCHES: [Bench; 6] = [
    Bench {
        name: "floor",
        needs: &[Part::DebianPackages, Part::ControlPlane],
        likes: &[],
        build: Build::Debug,
    },
    Bench {
        name: "end-to-end",
        needs: &[Part::DebianPackages, Part::ControlPlane, Part::Plugins],
        likes: &[],
        build: Build::Debug,
    },
    Bench {
        name: "memory",
        needs: &[Part::DebianPackages, Part::ControlPlane, Part::Plugins],
        likes: &[],
        build: Build::Release,
    },
    Bench { name: "decide", needs: &[], likes: &[], build: Build::Example("decisions") },
    Bench {
        name: "methods",
        needs: &[Part::WasmTarget, Part::DebianPackages, Part::PythonVenv, Part::Plugins],
        likes: &[Part::FenceAgents, Part::AgentsVenv, Part::OpenStackVenv],
        build: Build::Release,
    },
    Bench {
        name: "sandbox",
        needs: &[Part::WasmTarget, Part::Plugins],
        likes: &[],
        build: Build::Release,
    },
];

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let Some((name, more)) = arguments.split_first() else { bail!("name one bench; see --help") };
    if !more.is_empty() && *name != "memory" {
        bail!("found {more:?} after {name}, expected nothing; see --help");
    }
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == *name) else {
        bail!("there is no bench {name:?}; see --help");
    };
    for part in bench.needs {
        part.provide().with_context(|| format!("no {}", part.name()))?;
    }
    for part in bench.likes {
        if let Err(failure) = part.provide() {
            println!("without {}: {failure:#}", part.name());
        }
    }
    run_logged("building the benches", "bench-build", &mut bench.build.command())?;
    let mut measure = Command::new(bench.build.program());
    let status = measure.current_dir(root()).arg(bench.name).args(more).status()?;
    if !status.success() {
        bail!("bench {name} ended with {status}");
    }
    Ok(())
}

impl Build {
    fn command(self) -> Command {
        if let Self::Example(name) = self {
            let mut build = cargo();
            build.args([
                "build",
                "--release",
                "--package",
                "node-remedy-decide",
                "--example",
                name,
            ]);
            return build;
        }
        let mut build = with_node_remedy("node-remedy-bench");
        build.args(["--bin", "node-remedy-weigh"]);
        match self {
            Self::Debug | Self::Example(_) => {}
            Self::Release => {
                build.arg("--release");
            }
        }
        build
    }

    fn program(self) -> PathBuf {
        match self {
            Self::Debug => at("target/debug/node-remedy-bench"),
            Self::Release => at("target/release/node-remedy-bench"),
            Self::Example(name) => at("target/release/examples").join(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bench_stands_in_the_help_and_an_unknown_one_is_refused_by_name() {
        for bench in &BENCHES {
            let mut names = HELP.lines().filter_map(|line| line.split_whitespace().next());
            assert!(names.any(|name| name == bench.name), "{}", bench.name);
        }
        assert!(run(&["plugins"]).unwrap_err().to_string().contains("\"plugins\""));
        assert!(run(&[]).unwrap_err().to_string().contains("--help"));
    }
}
