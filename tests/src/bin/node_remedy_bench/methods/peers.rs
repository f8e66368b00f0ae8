//! Programs that people read a machine's power with today: fence agents and the tools below them.
//!
//! The agents are those of Debian's package, with a Python that has what they import, both from `cargo
//! xtask setup`'s parts. One that is not there is a reason, which the bench prints.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use node_remedy_tests::process::repository;

use super::ways::Way;
use node_remedy_tests::weigh::{Program, weigh};

/// What every agent says of a machine that is on.
const ON: &str = "Status: ON";

/// What could be had, or why not.
pub(super) struct Peers {
    agents: Result<Agents, String>,
}

struct Agents {
    /// What the package's files lie below.
    root: PathBuf,
    python: PathBuf,
}

impl Peers {
    /// Looks for them.
    pub(super) fn find() -> Self {
        Self { agents: Agents::find().map_err(|failure| format!("{failure:#}")) }
    }

    /// An agent with these options, which ask for a status.
    pub(super) fn agent(&self, name: &str, options: &[&str]) -> Result<Way, Absent> {
        let absent = |reason: String| Absent { name: name.to_owned(), reason };
        let agents = self.agents.as_ref().map_err(|reason| absent(reason.clone()))?;
        let program =
            agents.program(name, options).map_err(|failure| absent(failure.to_string()))?;
        Ok(Way::process(name, program, ON))
    }

    /// One line for each peer and what it runs on.
    pub(super) async fn versions(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match &self.agents {
            Ok(agents) => {
                let version = agents.program("fence_ipmilan", &["--version"]);
                let python = Program::new(&agents.python, &["--version"]);
                let (agents, python) = (first_line(version.ok()), first_line(Some(python)));
                lines.push(format!("fence-agents {} on {}", agents.await, python.await));
                let requirements = repository().join(REQUIREMENTS);
                let text = fs::read_to_string(requirements).unwrap_or_default();
                let libraries = text.lines().filter(|line| line.contains("=="));
                lines.push(format!("with {}", libraries.collect::<Vec<_>>().join(", ")));
            }
            Err(reason) => lines.push(format!("no fence agent could run: {reason}")),
        }
        lines.push(first_line(Some(Program::new("ipmitool", &["-V"]))).await);
        lines.push(first_line(Some(Program::new("snmpget", &["-V"]))).await);
        lines
    }
}

/// What the agents import, as `cargo xtask setup` installs it.
const REQUIREMENTS: &str = "tests/sims/agents/requirements.txt";

/// A peer that could not be asked.
pub(super) struct Absent {
    pub(super) name: String,
    pub(super) reason: String,
}

impl Agents {
    fn find() -> Result<Self> {
        let python = repository().join("target/agents-venv/bin/python");
        if !python.exists() {
            bail!("{} is not there: cargo xtask bench methods makes it", python.display());
        }
        let roots = [repository().join("target/fence-agents"), PathBuf::from("/")];
        let root = roots.into_iter().find(|root| root.join(library()).is_dir());
        let root = root.context("fence-agents is neither unpacked nor installed")?;
        Ok(Self { root, python })
    }

    fn program(&self, name: &str, options: &[&str]) -> Result<Program> {
        let script = self.root.join("usr/sbin").join(name);
        if !script.is_file() {
            bail!("{} is not there", script.display());
        }
        let script = script.display().to_string();
        // As the first line of each says: no mixed tabs.
        let words = [&["-tt", &*script], options].concat();
        let library = self.root.join(library()).display().to_string();
        Ok(Program::new(&self.python, &words).with("PYTHONPATH", &library))
    }
}

fn library() -> &'static Path {
    Path::new("usr/share/fence")
}

async fn first_line(program: Option<Program>) -> String {
    let Some(program) = program else { return "unknown".to_owned() };
    let name = program.path.display().to_string();
    match weigh(vec![program]).await {
        Ok(weighed) => {
            let said = weighed.ended.iter().flat_map(|one| [&one.said, &one.complained]);
            let mut lines = said.flat_map(|text| text.lines()).map(str::trim);
            lines.find(|line| !line.is_empty()).unwrap_or("unknown").to_owned()
        }
        Err(failure) => format!("{name}: {failure:#}"),
    }
}
