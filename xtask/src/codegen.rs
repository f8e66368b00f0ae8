//! `cargo xtask codegen`: generated files that are kept in the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::progress::run_logged;
use crate::root::{at, cargo};

pub(crate) const HELP: &str = "\
Writes deploy/crds from the types of host/api. With --check nothing is written: a file that differs
from what would be written, is missing or is one too many is a failure.

Examples:
  cargo xtask codegen
  cargo xtask codegen --check
";

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        [] => {
            let fresh = generate()?;
            write(&fresh, &at("deploy/crds"))
        }
        ["--check"] => check(),
        [unknown, ..] => bail!("unknown argument {unknown:?}; see --help"),
    }
}

/// Fails when the kept files are not those that would be written.
pub(crate) fn check() -> Result<()> {
    let differences = differences(&files_of(&at("deploy/crds"))?, &files_of(&generate()?)?);
    if differences.is_empty() {
        return Ok(());
    }
    bail!("run `cargo xtask codegen`: {}", differences.join(", "))
}

/// Generates into a folder of its own and answers it.
fn generate() -> Result<PathBuf> {
    let folder = at("target/codegen/crds");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut generator = cargo();
    generator.args(["run", "--quiet", "--package", "node-remedy-api", "--bin", "node-remedy-crds"]);
    generator.arg("--").arg(&folder);
    run_logged("generating the custom resources", "codegen-crds", &mut generator)?;
    Ok(folder)
}

type Files = BTreeMap<String, Vec<u8>>;

fn files_of(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    if folder.exists() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            files.insert(entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?);
        }
    }
    Ok(files)
}

fn write(from: &Path, to: &Path) -> Result<()> {
    let (kept, fresh) = (files_of(to)?, files_of(from)?);
    fs::create_dir_all(to)?;
    for name in kept.keys().filter(|name| !fresh.contains_key(*name)) {
        fs::remove_file(to.join(name))?;
    }
    for (name, bytes) in &fresh {
        fs::write(to.join(name), bytes)?;
    }
    for difference in differences(&kept, &fresh) {
        println!("{difference}");
    }
    Ok(())
}

fn differences(kept: &Files, fresh: &Files) -> Vec<String> {
    let mut found = Vec::new();
    for (name, bytes) in fresh {
        match kept.get(name) {
            None => found.push(format!("{name} is missing")),
            Some(kept) if kept != bytes => found.push(format!("{name} is stale")),
            Some(_) => {}
        }
    }
    let left_over = kept.keys().filter(|name| !fresh.contains_key(*name));
    found.extend(left_over.map(|name| format!("{name} is generated no more")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_stale_and_left_over_files_are_told() {
        let files = |list: &[(&str, &str)]| -> Files {
            list.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().into())).collect()
        };
        let fresh = files(&[("a", "1"), ("b", "1"), ("c", "1")]);
        assert_eq!(differences(&fresh, &fresh), [""; 0]);
        assert_eq!(
            differences(&files(&[("a", "1"), ("b", "2"), ("d", "1")]), &fresh),
            ["b is stale", "c is missing", "d is generated no more"]
        );
    }
}
