//! `cargo xtask new-method NAME`: the folder of a built-in fence method, made from a template, that builds and
//! passes its tests as it is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::root::root;

pub(crate) const HELP: &str = "\
Makes plugins/NAME from a template: a fence method of the node-remedy binary that builds and passes its
tests as it is. What is left to do it prints; docs/how-to-add/fence-method.md says more. A method that
need not be in the binary is made by `node-remedy plugin new` instead.

  --http  from examples/plugins/template-http (if nothing is said)
  --udp   from examples/plugins/template-udp

Examples:
  cargo xtask new-method acme-pdu
  cargo xtask new-method acme-bmc --udp
";

/// Files of a template that a plugin of this repository does not have: its tool chain is the workspace's.
const LEFT_OUT: [&str; 2] = ["rust-toolchain.toml", "README.md"];

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let (name, template) = match arguments {
        [name] | [name, "--http"] | ["--http", name] => (name, "template-http"),
        [name, "--udp"] | ["--udp", name] => (name, "template-udp"),
        _ => bail!("expected NAME, and --http or --udp; see --help"),
    };
    make(root(), name, template)?;
    println!("plugins/{name}: made from examples/plugins/{template}\n{}", left_to_do(name));
    Ok(())
}

/// What nobody can do for its author.
fn left_to_do(name: &str) -> String {
    format!(
        "\
Try it:           cargo test -p node-remedy-plugin-{name}
Then, in this order:
  plugins/{name}/manifest.json      what it can do, and what it asks for
  plugins/{name}/src/lib.rs         what speaks to the device
  plugins/{name}/tests/native.rs    its tests, in virtual time
  plugins/{name}/README.md          which devices, which rights they need, what was tried
  host/api/src/plan/plugins.rs      its line in KNOWN
  examples/config/fence-{name}.yaml an example, and a link to it in docs/configuration.md
  tests/tests/plugins_{}.rs         the component against a real device or a stand-in
  CHANGELOG.md                      a line
See docs/how-to-add/fence-method.md.",
        name.replace('-', "_")
    )
}

/// Writes the folder below `root`, and names it in the workspace. Changes nothing if anything is wrong.
fn make(root: &Path, name: &str, template: &str) -> Result<()> {
    let is_name = !name.is_empty()
        && name.len() <= 40
        && name.split('-').all(|part| {
            part.starts_with(|first: char| first.is_ascii_lowercase())
                && part.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
        });
    ensure!(
        is_name,
        "{name:?}: expected lower-case words with hyphens between them, such as acme-pdu"
    );
    let (from, to) =
        (root.join("examples/plugins").join(template), root.join("plugins").join(name));
    ensure!(!to.exists(), "{} is there already", to.display());
    let workspace = root.join("Cargo.toml");
    let manifest = fs::read_to_string(&workspace)
        .with_context(|| format!("failed to read {}", workspace.display()))?;
    let manifest = with_member(&manifest, &format!("plugins/{name}"))?;
    let mut files = Vec::new();
    below(&from, &mut files).with_context(|| format!("failed to list {}", from.display()))?;
    for file in files {
        let inside = file.strip_prefix(&from)?;
        if LEFT_OUT.iter().any(|left_out| inside == Path::new(left_out)) {
            continue;
        }
        let text = fs::read_to_string(&file)
            .with_context(|| format!("failed to read {}", file.display()))?;
        let target = to.join(inside);
        fs::create_dir_all(target.parent().unwrap_or(&to))?;
        fs::write(&target, renamed(&text, template, name))
            .with_context(|| format!("failed to write {}", target.display()))?;
    }
    fs::write(to.join("README.md"), readme(name))?;
    fs::write(&workspace, manifest)?;
    Ok(())
}

/// A template's text with the method's name in it.
fn renamed(text: &str, template: &str, name: &str) -> String {
    let package = format!("name = \"{template}\"");
    let own_package = format!("name = \"node-remedy-plugin-{name}\"");
    let own_version = "version.workspace = true";
    text.replace(&package, &own_package)
        .replace("version = \"0.1.0\"\nedition", &format!("{own_version}\nedition"))
        .replace("publish.workspace", "license.workspace = true\npublish.workspace")
        .replace(
            &format!("use {}::", template.replace('-', "_")),
            &format!("use node_remedy_plugin_{}::", name.replace('-', "_")),
        )
        .replace(template, name)
}

fn readme(name: &str) -> String {
    format!(
        "# {name}\n\n\
         Which devices it speaks to, and over which protocol.\n\n\
         ## Parameters\nThose of `manifest.json`: what each is for, and where an admin finds its value.\n\n\
         ## Rights\nWhat the account on the device must be allowed to do, and nothing more.\n\n\
         ## Tried with\nEach device or simulator with its version.\n"
    )
}

/// The workspace with one more member, behind the last plugin.
fn with_member(manifest: &str, member: &str) -> Result<String> {
    let is_plugin = |line: &&str| line.trim_start().starts_with("\"plugins/");
    let last = manifest.lines().rfind(is_plugin);
    let last =
        last.context("Cargo.toml: found no member \"plugins/…\" to write the new one behind")?;
    Ok(manifest.replacen(last, &format!("{last}\n  \"{member}\","), 1))
}

fn below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        } else if !path.ends_with("target") {
            below(&path, files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with the templates and a workspace.
    fn fresh(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("new-method-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for template in ["template-http", "template-udp"] {
            let from = root().join("examples/plugins").join(template);
            let mut files = Vec::new();
            below(&from, &mut files).unwrap();
            for file in files {
                let to = folder.join(file.strip_prefix(root()).unwrap());
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(&file, &to).unwrap();
            }
        }
        let workspace =
            "[workspace]\nmembers = [\n  \"plugins/sdk\",\n  \"plugins/ipmi\",\n  \"tests\",\n]\n";
        fs::write(folder.join("Cargo.toml"), workspace).unwrap();
        folder
    }

    #[test]
    fn a_method_is_made_of_either_template_under_its_own_name() {
        let root = fresh("made");
        for (name, template) in [("acme-pdu", "template-http"), ("acme", "template-udp")] {
            make(&root, name, template).unwrap();
            let read = |file: &str| {
                fs::read_to_string(root.join("plugins").join(name).join(file)).unwrap()
            };
            assert!(read("Cargo.toml").contains(&format!("name = \"node-remedy-plugin-{name}\"")));
            assert!(read("manifest.json").contains(&format!("\"name\": \"{name}\"")));
            let mut files = Vec::new();
            below(&root.join("plugins").join(name), &mut files).unwrap();
            for file in files {
                let text = fs::read_to_string(&file).unwrap();
                let has_template =
                    text.contains(template) || text.contains(&template.replace('-', "_"));
                assert!(!has_template, "{}", file.display());
            }
        }
        let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        assert!(workspace.contains(
            "\"plugins/ipmi\",\n  \"plugins/acme-pdu\",\n  \"plugins/acme\",\n  \"tests\""
        ));
    }

    #[test]
    fn a_wrong_name_or_one_that_is_taken_changes_nothing() {
        let root = fresh("refused");
        make(&root, "acme", "template-udp").unwrap();
        let before = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        for name in ["acme", "", "Acme", "acme_pdu", "-acme", "acme-", "../acme", "7"] {
            assert!(make(&root, name, "template-http").is_err(), "{name:?}");
        }
        assert_eq!(fs::read_to_string(root.join("Cargo.toml")).unwrap(), before);
    }
}
