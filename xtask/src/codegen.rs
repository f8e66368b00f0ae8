//! `cargo xtask codegen`: generated files that are kept in the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::progress::run_logged;
use crate::root::{at, cargo, root};
use crate::{plugins, prerequisites};

pub(crate) const HELP: &str = "\
Writes what is generated and kept: deploy/crds, deploy/schemas and docs/defaults.md from the types
of host/api, deploy/rbac.yaml from the permission table, deploy/admission.yaml, docs/metrics.md, and
the README's picture and output from a simulated run; and the copies of the contract and of the
licence that the SDK's package carries. With --check
nothing is written: a file that differs from what would be written, is missing or is one too many
is a failure.

Examples:
  cargo xtask codegen
  cargo xtask codegen --check
";

/// Where the README's output stands.
const OUTPUT: (&str, &str) = ("<!-- output:begin -->\n", "<!-- output:end -->");
/// Folders of what is generated from the types, and where each is kept.
const FOLDERS: [(&str, &str); 2] = [("crds", "deploy/crds"), ("schemas", "deploy/schemas")];
/// What a package carries that is by itself, and its copy there.
const COPIES: [(&str, &str); 3] = [
    ("wit/fence.wit", "plugins/sdk/wit/fence.wit"),
    ("wit/manifest.md", "plugins/sdk/wit/manifest.md"),
    ("LICENSE", "plugins/sdk/LICENSE"),
];
/// The scenario that the README shows.
const SHOWN: &str = "examples/scenarios/lost-node.yaml";
/// Lines of the timeline that the README shows, from the first off on.
const SHOWN_LINES: usize = 12;

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        [] => {
            // First, because plugins are built from them.
            update(copies()?)?;
            let generated = resources()?;
            for (part, kept) in FOLDERS {
                write(&generated.join(part), &at(kept))?;
            }
            update(files(&generated)?)
        }
        ["--check"] => check(),
        [unknown, ..] => bail!("unknown argument {unknown:?}; see --help"),
    }
}

/// Writes what is not as it should be.
fn update(files: Vec<(&'static str, Vec<u8>)>) -> Result<()> {
    for (path, fresh) in files {
        if fs::read(at(path)).ok().as_ref() != Some(&fresh) {
            println!("{path} is stale");
            fs::write(at(path), fresh).with_context(|| format!("failed to write {path}"))?;
        }
    }
    Ok(())
}

/// Fails when the kept files are not those that would be written.
pub(crate) fn check() -> Result<()> {
    let generated = resources()?;
    let mut found = Vec::new();
    for (part, kept) in FOLDERS {
        found.extend(differences(&files_of(&at(kept))?, &files_of(&generated.join(part))?));
    }
    for (path, fresh) in copies()?.into_iter().chain(files(&generated)?) {
        if fs::read(at(path)).ok().as_ref() != Some(&fresh) {
            found.push(format!("{path} is stale"));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!("run `cargo xtask codegen`: {}", found.join(", "))
}

/// Single files, each with what it should be.
fn files(generated: &Path) -> Result<Vec<(&'static str, Vec<u8>)>> {
    plugins::build_all()?;
    // Built by itself, so that nothing that the compiler says is taken for what the program says.
    prerequisites::binary()?;
    let picture = at("target/codegen/lost-node.svg");
    let mut rbac = program();
    rbac.args(["rbac", "--secret", "bmc-credentials"]);
    let rbac = run_logged("generating permissions", "codegen-rbac", &mut rbac)?;
    let mut admission = program();
    admission.arg("admission");
    let admission = run_logged("generating policies", "codegen-admission", &mut admission)?;
    let mut metrics = program();
    metrics.arg("metrics");
    let metrics = run_logged("generating the metrics' reference", "codegen-metrics", &mut metrics)?;
    let mut run = program();
    run.args(["simulate", SHOWN, "--svg"]).arg(&picture);
    let run = run_logged("playing the README's run", "codegen-run", &mut run)?;
    let readme = fs::read_to_string(at("README.md")).context("failed to read README.md")?;
    Ok(vec![
        ("deploy/rbac.yaml", rbac.into_bytes()),
        ("deploy/admission.yaml", admission.into_bytes()),
        ("docs/metrics.md", metrics.into_bytes()),
        ("docs/defaults.md", fs::read(generated.join("defaults.md")).context("no defaults.md")?),
        ("docs/lost-node.svg", fs::read(&picture).context("the simulator drew no picture")?),
        ("README.md", with_output(&readme, &excerpt(&run)?)?.into_bytes()),
    ])
}

/// What the SDK's package carries of the repository around it, each with where it is kept.
fn copies() -> Result<Vec<(&'static str, Vec<u8>)>> {
    let copy = |(from, to): (&str, &'static str)| {
        let bytes = fs::read(at(from)).with_context(|| format!("failed to read {from}"))?;
        Ok((to, bytes))
    };
    COPIES.into_iter().map(copy).collect()
}

fn program() -> Command {
    let mut program = Command::new(at("target/debug/node-remedy"));
    program.current_dir(root());
    program
}

/// The heart of a run: from the first off on, and how it ended.
fn excerpt(run: &str) -> Result<String> {
    let lines: Vec<&str> = run.lines().collect();
    let first = lines.iter().position(|line| line.contains("switching off"));
    let last = lines.iter().position(|line| line.starts_with('✓'));
    let (Some(first), Some(last)) = (first, last) else {
        bail!("{SHOWN} did not end as the README promises")
    };
    let ending = lines.iter().skip(last).take_while(|line| !line.is_empty());
    let shown = lines.iter().skip(first).take(SHOWN_LINES).chain([&"…"]).chain(ending);
    let mut text: String = shown.copied().collect::<Vec<_>>().join("\n");
    text.push('\n');
    Ok(text)
}

/// The README with `output` in its place.
fn with_output(readme: &str, output: &str) -> Result<String> {
    let split = readme.split_once(OUTPUT.0).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(OUTPUT.1)?;
        Some((before, after))
    });
    let Some((before, after)) = split else {
        bail!("README.md has no place for output: {} {}", OUTPUT.0.trim(), OUTPUT.1)
    };
    let (begin, end) = OUTPUT;
    Ok(format!("{before}{begin}```\n{output}```\n{end}{after}"))
}

/// Generates from the types into a folder of its own and answers it.
fn resources() -> Result<PathBuf> {
    let folder = at("target/codegen/types");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    // With node-remedy selected, too, dependencies are built with the features that they have there, and
    // so once for both.
    let mut build = cargo();
    build.args(["build", "--package", "node-remedy-api", "--bin", "node-remedy-crds"]);
    build.args(["--package", "node-remedy"]);
    run_logged("building what generates the custom resources", "codegen-build", &mut build)?;
    let mut generator = Command::new(at("target/debug/node-remedy-crds"));
    generator.arg(&folder).current_dir(root());
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
    fn the_output_stands_between_its_marks() {
        let readme = "a\n<!-- output:begin -->\nold\n<!-- output:end -->\nb\n";
        let wanted = "a\n<!-- output:begin -->\n```\nnew\n```\n<!-- output:end -->\nb\n";
        assert_eq!(with_output(readme, "new\n").unwrap(), wanted);
        assert_eq!(with_output(wanted, "new\n").unwrap(), wanted);
        assert!(with_output("no marks", "new\n").is_err());
    }

    /// Cheap enough for every run of the tests; `--check` does it once more.
    #[test]
    fn what_a_package_carries_is_what_it_is_a_copy_of() {
        for (path, fresh) in copies().unwrap() {
            assert!(fs::read(at(path)).is_ok_and(|kept| kept == fresh), "{path} is stale");
        }
    }

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
