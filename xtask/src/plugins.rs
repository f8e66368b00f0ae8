//! `cargo xtask plugins`: every folder of `plugins/` that is no library becomes a component, compiled
//! ahead by the sandbox's own engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};

use crate::progress::run_logged;
use crate::root::{at, cargo};
use crate::{arguments, languages, prerequisites, stamp};

pub(crate) const HELP: &str = "\
Builds plugins/* for wasm32-wasip2 with the profile `plugin`, copies each to
target/plugins/NAME.wasm and compiles it ahead to target/plugins/NAME.cwasm, which the node-remedy
binary embeds. A watcher goes to target/watchers instead. examples/plugins/* go to target/outside: they
are not embedded, nor compiled ahead. What is up to date by content is skipped.

--languages builds examples/plugins-other/* in their place, and brings the tool chains that they need.

Examples:
  cargo xtask plugins
  cargo xtask plugins --languages
";

/// Without it the linker leaves each number that it fills in at five bytes; most need one or two.
const COMPRESS: &str = "link-arg=--compress-relocations";

/// Whether the compiler was built by this process: once is enough for all plugins.
static COMPILER: OnceLock<()> = OnceLock::new();

/// A plugin as it was built.
struct Plugin {
    name: String,
    folder: PathBuf,
    package: String,
    /// The libraries beside the SDK that it is built on.
    libraries: Vec<PathBuf>,
    component: PathBuf,
    /// Its machine code, where it is built in.
    ahead: Option<PathBuf>,
}

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let lines = if arguments == ["--languages"] {
        languages::build_all()?
    } else {
        arguments::refuse(arguments)?;
        build_all()?
    };
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

/// Builds what is not up to date; one line for each plugin.
pub(crate) fn build_all() -> Result<Vec<String>> {
    for folder in ["target/plugins", "target/watchers", "target/outside"] {
        fs::create_dir_all(at(folder))?;
    }
    let plugins = all()?;
    // All of them before any is compiled ahead: the compiler is built beside the node-remedy crate, which
    // embeds them and so is built anew for each that changed.
    let built = plugins.iter().map(build).collect::<Result<Vec<_>>>()?;
    let mut lines = Vec::new();
    for (plugin, was_built) in plugins.iter().zip(built) {
        let kilobytes = |path: &PathBuf| -> Result<u64> { Ok(fs::metadata(path)?.len() / 1_000) };
        let component = kilobytes(&plugin.component)?;
        let Some(ahead) = &plugin.ahead else {
            let done = if was_built { "built" } else { "up to date" };
            lines.push(format!(
                "{:<12} {component:>5} kB component, an example  {done}",
                plugin.name
            ));
            continue;
        };
        let was_compiled = compile_ahead(plugin, ahead)?;
        let done = match (was_built, was_compiled) {
            (true, _) => "built",
            (false, true) => "compiled ahead",
            (false, false) => "up to date",
        };
        let ahead = kilobytes(ahead)?;
        lines.push(format!(
            "{:<12} {component:>5} kB component, {ahead:>5} kB compiled ahead  {done}",
            plugin.name
        ));
    }
    Ok(lines)
}

fn all() -> Result<Vec<Plugin>> {
    let mut crates = Vec::new();
    let folders = ["plugins", "examples/plugins"].map(|parent| fs::read_dir(at(parent)));
    for entry in folders.into_iter().collect::<std::io::Result<Vec<_>>>()?.into_iter().flatten() {
        let folder = entry?.path();
        let manifest = folder.join("Cargo.toml");
        if !manifest.exists() {
            continue;
        }
        let text = fs::read_to_string(&manifest)?;
        let package = package_name(&text)
            .with_context(|| format!("{} names no package", manifest.display()))?;
        crates.push((folder, package.to_owned(), text));
    }
    let libraries = |text: &str| {
        let used = crates
            .iter()
            .filter(|(_, package, own)| !is_component(own) && depends_on(text, package));
        used.map(|(folder, _, _)| folder.clone()).collect::<Vec<_>>()
    };
    let mut plugins = Vec::new();
    for (folder, package, text) in crates.iter().filter(|(_, _, text)| is_component(text)) {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_watcher = is_watcher(&fs::read_to_string(folder.join("manifest.json"))?);
        let is_built_in = folder.starts_with(at("plugins"));
        let kind = match (is_built_in, is_watcher) {
            (false, _) => "outside",
            (true, false) => "plugins",
            (true, true) => "watchers",
        };
        let ahead = is_built_in.then(|| at(&format!("target/{kind}/{name}.cwasm")));
        plugins.push(Plugin {
            name: name.to_owned(),
            folder: folder.clone(),
            package: package.clone(),
            libraries: libraries(text),
            component: at(&format!("target/{kind}/{name}.wasm")),
            ahead,
        });
    }
    plugins.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(plugins)
}

/// The first `name = "…"`: the package table comes first in each of our manifests.
fn package_name(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find(|line| line.starts_with("name"))?;
    line.split('"').nth(1)
}

/// A crate that is linked into one, and not only into others.
fn is_component(manifest: &str) -> bool {
    manifest.lines().any(|line| line.starts_with("crate-type") && line.contains("\"cdylib\""))
}

fn depends_on(manifest: &str, package: &str) -> bool {
    let rest = manifest.lines().filter_map(|line| line.strip_prefix(package));
    rest.into_iter().any(|rest| rest.starts_with(['.', ' ', '=']))
}

/// Whether a plugin's own manifest says that it only sees. What is no JSON the sandbox refuses.
fn is_watcher(manifest: &str) -> bool {
    let manifest = serde_json::from_str::<serde_json::Value>(manifest).unwrap_or_default();
    manifest.get("kind").and_then(serde_json::Value::as_str) == Some("watch")
}

fn build(plugin: &Plugin) -> Result<bool> {
    let mut sources = vec![plugin.folder.clone(), at("plugins/sdk"), at("wit")];
    sources.extend(plugin.libraries.iter().filter(|folder| !folder.ends_with("sdk")).cloned());
    // How it is built is here.
    sources.extend(["xtask/src/plugins.rs", "Cargo.toml", "Cargo.lock"].map(at));
    sources.push(at("rust-toolchain.toml"));
    let hash = stamp::hash_of(&sources)?;
    if stamp::is_fresh(&plugin.component, &hash) {
        return Ok(false);
    }
    prerequisites::wasm_target()?;
    let mut compile = cargo();
    compile.args(["rustc", "--package", &plugin.package, "--lib", "--target", "wasm32-wasip2"]);
    compile.args(["--profile", "plugin", "--", "-C", COMPRESS]);
    let what = format!("building plugin {}", plugin.name);
    run_logged(&what, &format!("plugin-{}", plugin.name), &mut compile)?;
    let library = plugin.package.replace('-', "_");
    let built = at(&format!("target/wasm32-wasip2/plugin/{library}.wasm"));
    fs::copy(&built, &plugin.component)
        .with_context(|| format!("failed to copy {}", built.display()))?;
    stamp::put(&plugin.component, &hash)?;
    Ok(true)
}

fn compile_ahead(plugin: &Plugin, ahead: &Path) -> Result<bool> {
    // The engine's settings and version are part of the result.
    let mut sources =
        ["host/sandbox/src", "host/sandbox/Cargo.toml", "Cargo.lock"].map(at).to_vec();
    sources.push(plugin.component.clone());
    let hash = stamp::hash_of(&sources)?;
    if stamp::is_fresh(ahead, &hash) {
        return Ok(false);
    }
    if COMPILER.get().is_none() {
        // With node-remedy selected, too, the engine is built with the features that it has there, and
        // so once for both.
        let mut build = cargo();
        build.args(["build", "--package", "node-remedy-sandbox", "--bin", "node-remedy-compile"]);
        build.args(["--package", "node-remedy"]);
        run_logged("building the sandbox's compiler", "plugin-compiler", &mut build)?;
        let _ = COMPILER.set(());
    }
    let mut compile = Command::new(at("target/debug/node-remedy-compile"));
    compile.arg(&plugin.component).arg(ahead);
    let what = format!("compiling plugin {} ahead", plugin.name);
    run_logged(&what, &format!("plugin-{}-ahead", plugin.name), &mut compile)?;
    stamp::put(ahead, &hash)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_name_is_read_from_a_manifest() {
        let manifest = "[package]\nname = \"node-remedy-plugin-ipmi\"\n[lib]\nname = \"other\"\n";
        assert_eq!(package_name(manifest), Some("node-remedy-plugin-ipmi"));
        assert_eq!(package_name("[package]\n"), None);
    }

    #[test]
    fn a_plugin_is_told_from_the_libraries_that_it_is_built_on() {
        let manifest = "[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n\n[dependencies]\n\
                        node-remedy-plugin-snmp.workspace = true\n";
        assert!(is_component(manifest));
        assert!(!is_component("[lib]\nname = \"a\"\n"));
        assert!(depends_on(manifest, "node-remedy-plugin-snmp"));
        assert!(!depends_on(manifest, "node-remedy-plugin"), "another one");
        assert!(!depends_on(manifest, "node-remedy-sdk"));
    }

    #[test]
    fn a_watcher_is_told_by_its_manifest() {
        assert!(is_watcher(r#"{ "name": "kdump", "kind": "watch" }"#));
        for other in [r#"{ "kind": "power", "watch": 1 }"#, "kind: watch", ""] {
            assert!(!is_watcher(other), "{other}");
        }
    }
}
