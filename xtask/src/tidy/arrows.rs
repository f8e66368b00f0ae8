//! Which crate may import which. For `host/` the table of ARCHITECTURE.md says so, for the others this file;
//! what is not allowed is forbidden.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A crate of the workspace with its dependencies within it.
pub(super) struct Crate {
    /// Its folder, relative to the root.
    folder: String,
    arrows: Vec<Arrow>,
}

struct Arrow {
    /// The folder of the crate that is depended on.
    to: String,
    /// Only its tests and benches depend on it.
    is_dev: bool,
}

/// The table of ARCHITECTURE.md: crates of `host/` from the ground up.
pub(super) struct Table(Vec<Row>);

struct Row {
    line: usize,
    /// `host/act`
    folder: String,
    /// What it imports, in the same form.
    imports: BTreeSet<String>,
}

impl Table {
    /// Reads the rows under `| crate | is | imports |`.
    pub(super) fn read(architecture: &str) -> Result<Self> {
        let numbered = architecture.lines().zip(1..);
        let mut rows = numbered.skip_while(|(text, _)| *text != HEAD).skip(2).peekable();
        if rows.peek().is_none() {
            bail!("ARCHITECTURE.md: expected a table with the head {HEAD:?}");
        }
        let row = |(text, line): (&str, usize)| {
            let cells: Vec<&str> = text.split('|').collect();
            let [_, name, _, imports, _] = cells.as_slice() else {
                bail!("ARCHITECTURE.md:{line}: expected three cells");
            };
            let names = |cell: &str| -> Vec<String> {
                cell.split('`').skip(1).step_by(2).map(|name| format!("host/{name}")).collect()
            };
            let folder = names(name).pop();
            let folder = folder.with_context(|| format!("ARCHITECTURE.md:{line}: no crate"))?;
            Ok(Row { line, folder, imports: names(imports).into_iter().collect() })
        };
        let rows = rows.take_while(|(text, _)| text.starts_with('|')).map(row);
        Ok(Self(rows.collect::<Result<_>>()?))
    }

    fn place(&self, folder: &str) -> Option<usize> {
        self.0.iter().position(|row| row.folder == folder)
    }

    /// What is wrong with the table itself.
    fn findings(&self, crates: &[Crate]) -> Vec<String> {
        let mut found = Vec::new();
        for (place, row) in self.0.iter().enumerate() {
            let Row { line, folder, imports } = row;
            let Some(known) = crates.iter().find(|one| one.folder == *folder) else {
                found.push(format!("ARCHITECTURE.md:{line}: there is no crate {folder}"));
                continue;
            };
            let normal = known.arrows.iter().filter(|arrow| !arrow.is_dev);
            let has: BTreeSet<&str> = normal.map(|arrow| arrow.to.as_str()).collect();
            for import in imports {
                if !has.contains(import.as_str()) {
                    found
                        .push(format!("ARCHITECTURE.md:{line}: {folder} does not import {import}"));
                }
                if self.place(import).is_none_or(|other| other >= place) {
                    found
                        .push(format!("ARCHITECTURE.md:{line}: {import} is no row above {folder}"));
                }
            }
        }
        found
    }
}

const HEAD: &str = "| crate | is | imports |";

/// Crates of the other folders.
fn is_allowed(folder: &str, arrow: &Arrow) -> bool {
    let to = arrow.to.as_str();
    match folder {
        "tests" => true,
        "xtask" | "xtask/componentize" => false,
        "tests/small-world" => to == "host/decide",
        "tests/swarm" => {
            to.starts_with("host/")
                && (arrow.is_dev || !matches!(to, "host/cli" | "host/device_cli"))
        }
        // Dev-dependencies on itself turn its test features on.
        "plugins/sdk" => arrow.is_dev && matches!(to, "host/devices" | "plugins/sdk"),
        // A library of several plugins.
        "plugins/snmp" => to == "plugins/sdk" || arrow.is_dev && to == "plugins/snmp",
        plugin if plugin.starts_with("plugins/") => {
            matches!(to, "plugins/sdk" | "plugins/snmp") || arrow.is_dev && to == "host/devices"
        }
        // What a stranger has.
        example if example.starts_with("examples/plugins/") => to == "plugins/sdk",
        _ => false,
    }
}

/// Every arrow that nobody allowed, and every row that says of an arrow what is not so.
pub(super) fn findings(crates: &[Crate], table: &Table) -> Vec<String> {
    let mut found = table.findings(crates);
    for from in crates {
        let folder = from.folder.as_str();
        let row = table.place(folder).and_then(|place| Some((place, table.0.get(place)?)));
        for arrow in &from.arrows {
            let is_allowed = match row {
                Some((place, row)) if arrow.is_dev => {
                    row.imports.contains(&arrow.to)
                        || table.place(&arrow.to).is_some_and(|other| other < place)
                }
                Some((_, row)) => row.imports.contains(&arrow.to),
                None => is_allowed(folder, arrow),
            };
            if !is_allowed {
                let kind = if arrow.is_dev { "dev-depend" } else { "depend" };
                found.push(format!(
                    "{folder}/Cargo.toml: must not {kind} on {}; see ARCHITECTURE.md",
                    arrow.to
                ));
            }
        }
        if folder.starts_with("host/") && row.is_none() {
            found.push(format!("{folder}/Cargo.toml: ARCHITECTURE.md has no row for this crate"));
        }
    }
    found
}

/// The crates as cargo sees them.
pub(super) fn crates(root: &Path) -> Result<Vec<Crate>> {
    let mut metadata = Command::new("cargo");
    metadata.current_dir(root).args(["metadata", "--no-deps", "--format-version=1", "--offline"]);
    let output = metadata.output().context("failed to start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    parse(root, &serde_json::from_slice(&output.stdout)?)
}

fn parse(root: &Path, metadata: &Value) -> Result<Vec<Crate>> {
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned();
    let relative = |path: &str| -> Option<String> {
        Some(Path::new(path).strip_prefix(root).ok()?.to_string_lossy().into_owned())
    };
    let packages = list(metadata, "packages").context("cargo metadata without packages")?;
    packages
        .iter()
        .map(|package| {
            let manifest = package.get("manifest_path").and_then(Value::as_str);
            let manifest = manifest.context("a package without manifest")?;
            let folder = manifest.strip_suffix("/Cargo.toml").and_then(relative);
            let arrows = list(package, "dependencies")
                .context("a package without dependencies")?
                .iter()
                .filter_map(|dependency| {
                    let to = relative(dependency.get("path")?.as_str()?)?;
                    let is_dev = dependency.get("kind").and_then(Value::as_str) == Some("dev");
                    Some(Arrow { to, is_dev })
                })
                .collect();
            Ok(Crate { folder: folder.context("a package outside the repository")?, arrows })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &str = "# Text\n\n| crate | is | imports |\n|---|---|---|\n| `decide` | pure | – |\n\
        | `devices` | models | – |\n| `world` | a model | `decide`, `devices` |\n\n| other | table |\n";

    fn crate_of(folder: &str, arrows: &[(&str, bool)]) -> Crate {
        let arrow = |(to, is_dev): &(&str, bool)| Arrow { to: (*to).to_owned(), is_dev: *is_dev };
        Crate { folder: folder.to_owned(), arrows: arrows.iter().map(arrow).collect() }
    }

    /// The findings for the crates of the table, where one of `host/` is as given.
    fn check(one: Crate) -> Vec<String> {
        let mut crates = vec![
            crate_of("host/decide", &[]),
            crate_of("host/devices", &[]),
            crate_of("host/world", &[("host/decide", false), ("host/devices", false)]),
        ];
        crates.retain(|other| other.folder != one.folder);
        crates.push(one);
        findings(&crates, &Table::read(TABLE).unwrap())
    }

    #[test]
    fn the_table_says_what_a_crate_of_the_host_imports() {
        let world = |arrows: &[(&str, bool)]| check(crate_of("host/world", arrows));
        let both = [("host/decide", false), ("host/devices", false)];
        assert_eq!(world(&both), Vec::<String>::new());
        assert_eq!(
            world(&both[..1]),
            ["ARCHITECTURE.md:7: host/world does not import host/devices"]
        );
        let upwards = check(crate_of("host/decide", &[("host/world", true)]));
        assert_eq!(
            upwards,
            ["host/decide/Cargo.toml: must not dev-depend on host/world; see ARCHITECTURE.md"]
        );
        let unlisted = check(crate_of("host/devices", &[("host/decide", false)]));
        assert_eq!(unlisted.len(), 1, "{unlisted:?}");
        let for_tests = check(crate_of("host/devices", &[("host/decide", true)]));
        assert_eq!(for_tests, Vec::<String>::new());
        assert_eq!(
            check(crate_of("host/new", &[])),
            ["host/new/Cargo.toml: ARCHITECTURE.md has no row for this crate"]
        );
    }

    #[test]
    fn a_table_that_turns_back_is_refused() {
        let text = "| crate | is | imports |\n|---|---|---|\n| `a` | | `b` |\n| `b` | | – |\n| `c` | | – |\n";
        let crates = [crate_of("host/a", &[("host/b", false)]), crate_of("host/b", &[])];
        assert_eq!(
            findings(&crates, &Table::read(text).unwrap()),
            [
                "ARCHITECTURE.md:3: host/b is no row above host/a",
                "ARCHITECTURE.md:5: there is no crate host/c",
            ]
        );
        assert!(Table::read("no table").is_err());
    }

    #[test]
    fn the_arrows_of_the_other_folders() {
        for (from, to, is_dev, is_allowed) in [
            ("plugins/ipmi", "plugins/sdk", false, true),
            ("plugins/ipmi", "host/devices", true, true),
            ("plugins/ipmi", "host/devices", false, false),
            ("plugins/apc", "plugins/ipmi", false, false),
            ("plugins/apc-pdu", "plugins/snmp", false, true),
            ("plugins/snmp", "plugins/snmp", true, true),
            ("plugins/snmp", "host/devices", true, false),
            ("examples/plugins/lamp", "plugins/sdk", false, true),
            ("examples/plugins/lamp", "plugins/snmp", false, false),
            ("examples/plugins/lamp", "host/devices", true, false),
            ("tests", "plugins/ipmi", false, true),
            ("tests/small-world", "host/decide", false, true),
            ("tests/small-world", "host/controller", false, false),
            ("tests/swarm", "host/cli", false, false),
            ("tests/swarm", "host/cli", true, true),
            ("xtask", "host/api", false, false),
        ] {
            let found = check(crate_of(from, &[(to, is_dev)]));
            assert_eq!(found.is_empty(), is_allowed, "{from} → {to}");
        }
    }

    #[test]
    fn arrows_are_read_from_cargo() {
        let metadata = json!({"packages": [{
            "manifest_path": "/r/host/world/Cargo.toml",
            "dependencies": [
                {"name": "node-remedy-sandbox", "path": "/r/host/sandbox", "kind": null},
                {"name": "serde", "kind": null},
                {"name": "node-remedy-devices", "path": "/r/host/devices", "kind": "dev"},
            ],
        }]});
        let crates = parse(Path::new("/r"), &metadata).unwrap();
        let arrows: Vec<(&str, bool)> =
            crates[0].arrows.iter().map(|arrow| (arrow.to.as_str(), arrow.is_dev)).collect();
        assert_eq!(arrows, [("host/sandbox", false), ("host/devices", true)]);
    }
}
