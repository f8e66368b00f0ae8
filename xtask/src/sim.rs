//! `cargo xtask sim`: runs drawn from seeds, played with optimised code.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::progress::run_logged;
use crate::root::{at, cargo, root};
use crate::setup::Part;

pub(crate) const HELP: &str = "\
Plays runs drawn from seeds: who is lost and how, what BMCs do wrong, node-remedy's processes
killed and paused, a bad way to the API server, people who act behind its back. Each is judged by
what truly happened. Of the first runs that break a promise the shortest are sought that still do,
and told with seed, commit and log; they are in target/runs with their logs and reports, and
`node-remedy simulate` plays them. The first build takes minutes.

  --seeds N      how many runs; 1,000 if nothing is said
  --seed S       the first one's seed
  --replay SEED  plays one run twice, the second time while other threads play others, and prints
                 all that happened
  --minutes M    simulated minutes of a run; 25 if nothing is said
  --nodes N      nodes of a run, 3 to 9; also LOW..HIGH, from which it is drawn, both included
  --threads T    as many as there are cores if nothing is said
  --for MINUTES  as many runs as this allows, up to --seeds; with --crash, as many plans
  --output json  the summary as one object: rates, violations, the shortest runs, coverage
  --crash        plays the scenarios of tests/scenarios with each of their calls going wrong in each
                 way; with --only NAME those of one scenario
  --bugs         seeds each of the known bugs, one at a time, and says how many runs find it
  --bug BUG      seeds this one
  --first-only   of each bug only what finds it first
  --write FILE   writes the table of bugs into FILE; it belongs into tests/swarm/bugs.md

Examples:
  cargo xtask sim --seeds 10000
  cargo xtask sim --seeds 1000 --nodes 5..9
  cargo xtask sim --seeds 1000 --output json > runs.json
  cargo xtask sim --replay 5017
  cargo xtask sim --bugs --seeds 500
";

const PARTS: [Part; 2] = [Part::WasmTarget, Part::Plugins];
const PROGRAM: &str = "node-remedy-swarm";

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    for part in PARTS {
        part.provide().with_context(|| format!("no {}", part.name()))?;
    }
    let mut build = cargo();
    build.args(["build", "--profile", "sim", "--package", PROGRAM, "--features", "seeded-bugs"]);
    run_logged("building the swarm", "sim-build", &mut build)?;
    let mut swarm = Command::new(at("target/sim").join(PROGRAM));
    let status = swarm.current_dir(root()).args(arguments).status()?;
    if !status.success() {
        bail!("the swarm ended with {status}");
    }
    Ok(())
}
