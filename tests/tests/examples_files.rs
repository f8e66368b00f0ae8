//! Every file in `examples/` does what it is there for, with the program that people run.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;

use node_remedy_tests::Controller;

use crate::sim_run::examples;

/// Every file below a folder, in order.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn in_folder(name: &str) -> Vec<PathBuf> {
    files_below(&examples()).into_iter().filter(|path| is_in(path, name)).collect()
}

fn is_in(path: &Path, folder: &str) -> bool {
    path.parent().is_some_and(|parent| parent.ends_with(folder))
}

/// The example plugin that a file belongs to.
fn plugin_of(path: &Path) -> Option<&str> {
    path.strip_prefix(examples().join("plugins")).ok()?.iter().next()?.to_str()
}

#[test]
fn every_file_is_of_a_kind_that_is_exercised() {
    let workspace = std::fs::read_to_string(examples().join("../Cargo.toml")).expect("a workspace");
    let languages = examples().join("../xtask/src/languages.rs");
    let languages = std::fs::read_to_string(languages).expect("the languages");
    let is_known = |path: &PathBuf| {
        let yaml = path.extension().is_some_and(|extension| extension == "yaml");
        yaml && (is_in(path, "config") || is_in(path, "scenarios"))
            || plugin_of(path).is_some_and(|name| {
                // A member is linted, and its tests run in the level unit.
                workspace.contains(&format!("\"examples/plugins/{name}\""))
            })
            || path.strip_prefix(examples().join("plugins-other")).is_ok_and(|inside| {
                // Built by `cargo xtask plugins --languages`, and called in the level plugins.
                let folder = inside.iter().next().and_then(|folder| folder.to_str());
                let is_built = |name| languages.contains(&format!("folder: \"{name}\""));
                folder.is_some_and(|name| name == "README.md" || is_built(name))
            })
    };
    let unknown: Vec<PathBuf> =
        files_below(&examples()).into_iter().filter(|path| !is_known(path)).collect();
    assert!(unknown.is_empty(), "no test uses {unknown:?}");
}

#[test]
fn the_configurations_are_valid_alone_and_together() {
    let files = in_folder("config");
    assert!(!files.is_empty());
    let check = |files: &[PathBuf]| {
        let checked = Command::new(Controller::binary()).arg("check").args(files).output();
        let checked = checked.expect("node-remedy was built");
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success() && said.is_empty(), "{files:?}: {said}");
        String::from_utf8_lossy(&checked.stdout).into_owned()
    };
    let valid = |documents: usize| format!("{documents} documents, 0 errors, 0 warnings\n");
    let mut all = 0;
    for file in &files {
        let text = std::fs::read_to_string(file).expect("an example");
        let documents = 1 + text.lines().filter(|line| *line == "---").count();
        assert_eq!(check(std::slice::from_ref(file)), valid(documents), "{}", file.display());
        all += documents;
    }
    assert_eq!(check(&files), valid(all));
}

#[test]
fn the_scenarios_end_as_they_say() {
    let files = in_folder("scenarios");
    assert!(!files.is_empty());
    for file in files {
        let played = Command::new(Controller::binary()).arg("simulate").arg(&file).output();
        let played = played.expect("node-remedy was built");
        let said = String::from_utf8_lossy(&played.stdout).into_owned();
        assert_eq!(played.status.code(), Some(0), "{}:\n{said}", file.display());
    }
}

/// A comment in an example that tells what to type is right.
#[test]
fn the_commands_in_the_comments_name_files_that_exist() {
    let root = examples().join("..");
    let mut found = 0;
    for file in files_below(&examples()) {
        let text = std::fs::read_to_string(&file).expect("text");
        for line in text.lines().filter_map(|line| line.strip_prefix("#   node-remedy ")) {
            let named = line.split(' ').find(|word| word.starts_with("examples/"));
            let named = named.expect("a file of the examples");
            assert!(root.join(named).is_file(), "{}: no {named}", file.display());
            found += 1;
        }
    }
    assert!(found > 0, "no comment names a command");
}

/// Whoever has seen enough goes away, as `head -1` does: no command makes a noise about it.
#[test]
fn a_reader_who_goes_away_ends_a_command_quietly() {
    let lost = examples().join("scenarios/lost-node.yaml");
    let remedy = examples().join("config/remedy.yaml");
    let [lost, remedy] = [&lost, &remedy].map(|path| path.to_str().expect("a path"));
    let rows: [(&[&str], i32); 6] = [
        (&["simulate", lost, "--no-baseline"], 141),
        (&["simulate", lost, "--no-baseline", "--output", "json"], 141),
        (&["check", remedy], 141),
        (&["rbac"], 141),
        (&["completion", "bash"], 141),
        (&["--help"], 0),
    ];
    for (arguments, code) in rows {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(Controller::binary());
        let ran = command.args(arguments).stdout(writer).output().expect("node-remedy was built");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!((ran.status.code(), said.as_str()), (Some(code), ""), "{arguments:?}");
    }
}

/// Nor does it where nobody hears its complaints.
#[test]
fn a_complaint_that_nobody_hears_is_no_fault() {
    for (command, file) in [("check", "no such file"), ("simulate", "no such file")] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut complains = Command::new(Controller::binary());
        let ran = complains.args([command, file]).stderr(writer).output();
        assert_eq!(ran.expect("node-remedy was built").status.code(), Some(1), "{command}");
    }
}
