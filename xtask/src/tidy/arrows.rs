//! Which crate may depend on which. What is not allowed here is forbidden.

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

/// What a crate may depend on, by its folder.
struct Allowed {
    normal: &'static [&'static str],
    /// Beside those, for its tests.
    dev: &'static [&'static str],
}

const NOTHING: Allowed = Allowed { normal: &[], dev: &[] };

fn allowed(folder: &str) -> Option<Allowed> {
    Some(match folder {
        "host/decide" | "host/api" | "host/devices" | "host/report" | "xtask"
        | "xtask/componentize" => NOTHING,
        // Of decide its sown bugs, and nothing else.
        "host/sandbox" => Allowed { normal: &["host/decide"], dev: &["host/devices"] },
        "host/world" => Allowed { normal: &["host/api", "host/decide", "host/devices"], dev: &[] },
        "host/controller" => Allowed {
            normal: &[
                "host/api",
                "host/decide",
                "host/devices",
                "host/report",
                "host/sandbox",
                "host/world",
            ],
            dev: &[],
        },
        "tests/small-world" => Allowed { normal: &["host/decide"], dev: &[] },
        "tests/swarm" => Allowed {
            normal: &[
                "host/controller",
                "host/decide",
                "host/report",
                "host/sandbox",
                "host/world",
            ],
            dev: &[],
        },
        // Dev-dependencies on itself turn its test features on.
        "plugins/sdk" => Allowed { normal: &[], dev: &["host/devices", "plugins/sdk"] },
        // A library of several plugins.
        "plugins/snmp" => Allowed { normal: &["plugins/sdk"], dev: &["plugins/snmp"] },
        plugin if plugin.starts_with("plugins/") => {
            Allowed { normal: &["plugins/sdk", "plugins/snmp"], dev: &["host/devices"] }
        }
        // What a stranger has.
        example if example.starts_with("examples/plugins/") => {
            Allowed { normal: &["plugins/sdk"], dev: &[] }
        }
        _ => return None,
    })
}

/// Every arrow that nobody allowed.
pub(super) fn findings(crates: &[Crate]) -> Vec<String> {
    let mut found = Vec::new();
    for from in crates.iter().filter(|from| from.folder != "tests") {
        let folder = &from.folder;
        let Some(allowed) = allowed(folder) else {
            found.push(format!("{folder}/Cargo.toml: xtask's tidy knows no arrows for this crate"));
            continue;
        };
        for arrow in &from.arrows {
            let to = arrow.to.as_str();
            let is_allowed =
                allowed.normal.contains(&to) || (arrow.is_dev && allowed.dev.contains(&to));
            if !is_allowed {
                let kind = if arrow.is_dev { "dev-depend" } else { "depend" };
                found.push(format!("{folder}/Cargo.toml: must not {kind} on {to}"));
            }
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

    fn check(folder: &str, to: &str, is_dev: bool) -> Vec<String> {
        let arrows = vec![Arrow { to: to.to_owned(), is_dev }];
        findings(&[Crate { folder: folder.to_owned(), arrows }])
    }

    #[test]
    fn the_arrows() {
        for (from, to, is_dev, is_allowed) in [
            ("host/decide", "host/api", false, false),
            ("host/decide", "host/world", true, false),
            ("host/world", "host/decide", false, true),
            ("host/world", "host/sandbox", false, false),
            ("host/controller", "host/sandbox", false, true),
            ("host/controller", "plugins/ipmi", false, false),
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
            ("host/new", "host/api", false, false),
        ] {
            assert_eq!(check(from, to, is_dev).is_empty(), is_allowed, "{from} → {to}");
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
        assert_eq!(findings(&crates), ["host/world/Cargo.toml: must not depend on host/sandbox"]);
    }
}
