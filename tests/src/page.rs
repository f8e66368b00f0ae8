//! The page of plugin authors (`docs/plugin-authors.md`) as a program: its blocks of shell, section by
//! section, in one shell and in order. A block that is not shell is an error: nobody would run it.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::Controller;
use crate::control_plane::Kubernetes;
use crate::process::repository;

/// Where the page is.
const PAGE: &str = "docs/plugin-authors.md";
/// Every section that has a block, in the page's order. The first is before any heading.
pub const SECTIONS: [&str; 7] = [
    VARIABLES,
    "Begin",
    "Try it on a device",
    "Ship it",
    "By a registry",
    "Into a cluster",
    "A node is lost",
];
/// The section that sets the variables.
const VARIABLES: &str = "";
/// Two cold builds on a busy machine.
const WITHIN_S: &str = "1200";
/// What is said after each block.
const RAN: &str = "::ran line ";
/// How much is told of a walk that failed.
const TOLD_LINES: usize = 60;

/// The page.
pub struct Page {
    blocks: Vec<Block>,
}

struct Block {
    section: String,
    line: usize,
    text: String,
}

/// One walk along a part of the page.
pub struct Walk<'a> {
    /// Where it begins.
    pub folder: &'a Path,
    /// Along which sections.
    pub sections: &'a [&'a str],
    /// Variables of the page with another value.
    pub variables: &'a [(&'a str, String)],
    /// Who `kubectl` and `node-remedy` are to the cluster, where there is one.
    pub kubeconfig: Option<&'a Path>,
}

impl Page {
    /// Reads it.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(repository().join(PAGE))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let (mut blocks, mut section) = (Vec::<Block>::new(), String::new());
        let mut open = false;
        for (number, line) in (1..).zip(text.lines()) {
            match (line.strip_prefix("```"), open) {
                (Some("sh"), false) => {
                    let (section, text) = (section.clone(), String::new());
                    blocks.push(Block { section, line: number, text });
                    open = true;
                }
                (Some(""), true) => open = false,
                (Some(other), _) => {
                    bail!("{PAGE}:{number}: a block of {other:?}, which nobody runs")
                }
                (None, true) => {
                    let block = blocks.last_mut().context("a line of no block")?;
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, false) => {
                    if let Some(heading) = line.strip_prefix("## ") {
                        heading.clone_into(&mut section);
                    }
                }
            }
        }
        ensure!(!open, "{PAGE}: the last block has no end");
        Ok(Self { blocks })
    }

    /// Its sections with a block, in order.
    #[must_use]
    pub fn sections(&self) -> Vec<&str> {
        let mut sections: Vec<_> = self.blocks.iter().map(|one| one.section.as_str()).collect();
        sections.dedup();
        sections
    }

    /// Runs the blocks of some sections, each to its end, and gives all that was printed. A command that
    /// fails ends the walk.
    pub fn walk(&self, walk: &Walk<'_>) -> Result<String> {
        let sections = [&[VARIABLES], walk.sections].concat();
        let blocks = self.blocks.iter().filter(|one| sections.contains(&one.section.as_str()));
        let blocks: Vec<_> = blocks.collect();
        let script = script(&blocks, walk)?;
        let programs = programs(walk.folder)?;
        // From a file: it has passwords, and whoever looks sees what a process is started with.
        let file = walk.folder.with_extension("sh");
        fs::write(&file, script).with_context(|| format!("failed to write {}", file.display()))?;
        let mut bash = Command::new("timeout");
        bash.args([WITHIN_S, "bash"]).arg(&file).current_dir(walk.folder).stdin(Stdio::null());
        bash.env("PROGRAMS", programs);
        bash.env("CARGO_TARGET_DIR", build_folder()).env("CARGO_NET_OFFLINE", "true");
        if let Some(kubeconfig) = walk.kubeconfig {
            bash.env("KUBECONFIG", kubeconfig);
        }
        let output = bash.output().context("failed to start bash")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<_> = said.lines().collect();
        let told = lines.get(lines.len().saturating_sub(TOLD_LINES)..).unwrap_or_default();
        for block in &blocks {
            let ran = format!("{RAN}{}", block.line);
            ensure!(
                lines.contains(&ran.as_str()),
                "{PAGE}:{}: the block did not run to its end ({}):\n{}",
                block.line,
                output.status,
                told.join("\n"),
            );
        }
        ensure!(output.status.success(), "{}:\n{}", output.status, told.join("\n"));
        Ok(said)
    }
}

/// Where the components of the page are built: shared by all walks, so that the second is quick.
#[must_use]
pub fn build_folder() -> PathBuf {
    repository().join("target/authors")
}

/// The blocks as one script, with what a person does between them: who starts a device waits until it
/// listens.
fn script(blocks: &[&Block], walk: &Walk<'_>) -> Result<String> {
    let mut script = String::from(
        "exec 2>&1; set -euo pipefail; PATH=\"$PROGRAMS:$PATH\"; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n\
         device_listens() { for job in $(jobs -p); do\n\
         until (exec 3<>\"/dev/tcp/$HOST/$PORT\") 2>/dev/null; do kill -0 $job; sleep 0.05; done\n\
         done; }\n",
    );
    for block in blocks {
        script.push_str(&block.text);
        if block.section == VARIABLES {
            for (name, value) in walk.variables {
                ensure!(
                    block.text.lines().any(|line| line.starts_with(&format!("{name}="))),
                    "{PAGE}:{}: sets no variable {name}",
                    block.line
                );
                writeln!(script, "{name}='{value}'")?;
            }
            // A walk that goes on where another one ended begins in the plugin's folder.
            script.push_str("if [ -d \"$NAME\" ]; then cd \"$NAME\"; fi\n");
        }
        writeln!(script, "echo '{RAN}{}'\ndevice_listens", block.line)?;
    }
    Ok(script)
}

/// A folder with the programs of the page: ours, kubectl of the tests' control plane, and a cargo that
/// resolves to the versions that our own lock file has, for those are here without a network.
fn programs(folder: &Path) -> Result<PathBuf> {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs)?;
    let lock = repository().join("Cargo.lock");
    // By its path, for its name leads back here.
    let cargo = format!(
        "[ -e Cargo.lock ] || cp '{}' Cargo.lock\nexec '{}' \"$@\"\n",
        lock.display(),
        env!("CARGO")
    );
    let ours = format!("exec '{}' \"$@\"\n", Controller::binary().display());
    let kubectl = format!("exec '{}' kubectl \"$@\"\n", Kubernetes::V1_37.binary().display());
    for (name, text) in [("cargo", cargo), ("node-remedy", ours), ("kubectl", kubectl)] {
        let file = programs.join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}"))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_nobody_runs_is_an_error() {
        let page = Page::parse("```sh\nA=1\n```\n## One\n```sh\ntrue\n```\ntext\n").unwrap();
        assert_eq!(page.sections(), ["", "One"]);
        for (text, says) in [
            ("```rust\nfn a() {}\n```\n", ":1: a block of \"rust\""),
            ("## One\n```\ntrue\n```\n", ":2: a block of \"\""),
            ("```sh\ntrue\n", "has no end"),
        ] {
            let error = Page::parse(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
