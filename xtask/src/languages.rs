//! Plugins in other languages: every folder of `examples/plugins-other/` becomes a component in `target/outside`,
//! by the tools that its language has for it. Each tool chain is a version that stands in the folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::progress::run_logged;
use crate::root::{at, cargo, find_program};
use crate::{prerequisites, stamp};

const WORLD: &str = "fence-method";
/// Where tool chains and half-made components lie.
const FOLDER: &str = "target/languages";

/// A language that a plugin is written in.
struct Language {
    /// The folder of examples/plugins-other.
    folder: &'static str,
    /// The plugin's name in its manifest.
    plugin: &'static str,
    /// From its folder to a component without manifest.
    build: fn(&Path, &Path) -> Result<()>,
}

const LANGUAGES: [Language; 3] = [
    Language { folder: "javascript", plugin: "tasmota-js", build: javascript },
    Language { folder: "python", plugin: "tasmota-py", build: python },
    Language { folder: "c", plugin: "tasmota-c", build: c },
];

/// Builds what is not up to date; one line for each. All are tried before one that cannot be had is named.
pub(crate) fn build_all() -> Result<Vec<String>> {
    for folder in [FOLDER, "target/outside"] {
        fs::create_dir_all(at(folder))?;
    }
    let (mut lines, mut missing) = (Vec::new(), Vec::new());
    for language in &LANGUAGES {
        match language.make() {
            Ok(line) => lines.push(line),
            Err(failure) => missing.push(format!("{}: {failure:#}", language.folder)),
        }
    }
    if !missing.is_empty() {
        bail!("{}", missing.join("; "));
    }
    Ok(lines)
}

impl Language {
    fn make(&self) -> Result<String> {
        let folder = at("examples/plugins-other").join(self.folder);
        let component = at("target/outside").join(format!("{}.wasm", self.plugin));
        let sources = ["wit", "xtask/src/languages.rs", "xtask/componentize"].map(at);
        let hash = stamp::hash_of(&[sources.as_slice(), std::slice::from_ref(&folder)].concat())?;
        let is_fresh = stamp::is_fresh(&component, &hash);
        if !is_fresh {
            let bare = at(FOLDER).join(format!("{}.wasm", self.folder));
            (self.build)(&folder, &bare)?;
            // The tool chains write no custom sections.
            prerequisites::binary()?;
            let mut embed = Command::new(at("target/debug/node-remedy"));
            embed.args(["plugin", "manifest"]).arg(&bare).arg(folder.join("manifest.json"));
            embed.arg("--out").arg(&component);
            run(self, "manifest", &mut embed)?;
            stamp::put(&component, &hash)?;
        }
        let kilobytes = fs::metadata(&component)?.len() / 1_000;
        let done = if is_fresh { "up to date" } else { "built" };
        Ok(format!("{:<12} {kilobytes:>5} kB component, an example  {done}", self.plugin))
    }
}

fn run(language: &Language, what: &str, command: &mut Command) -> Result<()> {
    let log = format!("plugin-{}-{what}", language.plugin);
    run_logged(&format!("building plugin {}", language.plugin), &log, command)?;
    Ok(())
}

/// QuickJS with the script in it: `package-lock.json` says which.
fn javascript(folder: &Path, component: &Path) -> Result<()> {
    let (node, npm) = (program("node", "nodejs")?, program("npm", "npm")?);
    let tools = at(FOLDER).join("node");
    fs::create_dir_all(&tools)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(folder.join(file), tools.join(file))?;
    }
    let mut install = Command::new(npm);
    install.current_dir(&tools).args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
    run_logged("installing componentize-qjs", "setup-node", &mut install)?;
    let mut build = Command::new(node);
    build.arg(tools.join("node_modules/componentize-qjs/bin/componentize-qjs"));
    build.arg("--wit").arg(at("wit")).args(["--world", WORLD]);
    build.arg("--js").arg(folder.join("relay.js")).arg("--output").arg(component);
    // Without the asynchronous part of the component model, and without WASI: it would find no file, no
    // environment and no terminal anyway. The runtime of --opt-size is compiled with tail calls, which this host
    // does not run.
    build.args(["--minify", "--sync", "--stub-wasi"]);
    run_logged("building plugin tasmota-js", "plugin-tasmota-js", &mut build)?;
    Ok(())
}

/// CPython with the module in it: `requirements.txt` says which.
fn python(folder: &Path, component: &Path) -> Result<()> {
    prerequisites::python_venv("languages-venv", "examples/plugins-other/python/requirements.txt")?;
    // A copy: Python leaves what it compiled beside a module.
    let copy = at(FOLDER).join("python-app");
    fs::create_dir_all(&copy)?;
    fs::copy(folder.join("relay.py"), copy.join("relay.py"))?;
    let mut build = Command::new(at("target/languages-venv/bin/componentize-py"));
    build.arg("--wit-path").arg(at("wit")).args(["--world", WORLD, "componentize"]);
    // Without WASI it would find the same: nothing. Python's own sockets are no import of a plugin.
    build.arg("--stub-wasi").arg("--python-path").arg(copy).arg("--output").arg(component);
    build.arg("relay");
    run_logged("building plugin tasmota-py", "plugin-tasmota-py", &mut build)?;
    Ok(())
}

/// Bindings, clang, and a component around what it makes.
fn c(folder: &Path, component: &Path) -> Result<()> {
    let wasi_libc = "/usr/include/wasm32-wasi/stdlib.h";
    let wanted = [
        ("clang", find_program("clang").is_some()),
        ("lld", find_program("wasm-ld").is_some()),
        ("wasi-libc", Path::new(wasi_libc).is_file()),
    ];
    let missing: Vec<_> =
        wanted.iter().filter(|(_, is_there)| !is_there).map(|(package, _)| *package).collect();
    prerequisites::install(&missing)?;
    let mut tool = cargo();
    tool.args(["build", "--package", "node-remedy-componentize"]);
    run_logged("building what makes components", "plugin-componentize", &mut tool)?;
    let tool = at("target/debug/node-remedy-componentize");
    let (bindings, core) = (at(FOLDER).join("c-bindings"), at(FOLDER).join("c-core.wasm"));
    let mut bind = Command::new(&tool);
    bind.arg("bindings").arg(at("wit")).arg(WORLD).arg(&bindings);
    run_logged("building plugin tasmota-c", "plugin-tasmota-c-bindings", &mut bind)?;
    let mut compile = Command::new("clang");
    compile.args([
        "--target=wasm32-wasi",
        "-mexec-model=reactor",
        "-Os",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]);
    compile.args(["-nodefaultlibs", "-Wl,--gc-sections,--strip-debug", "-I"]).arg(&bindings);
    compile.arg("-o").arg(&core).arg(folder.join("relay.c"));
    compile
        .arg(bindings.join("fence_method.c"))
        .arg(bindings.join("fence_method_component_type.o"));
    compile.arg("-lc");
    run_logged("building plugin tasmota-c", "plugin-tasmota-c", &mut compile)?;
    let mut wrap = Command::new(&tool);
    wrap.arg("component").arg(&core).arg(component);
    run_logged("building plugin tasmota-c", "plugin-tasmota-c-component", &mut wrap)?;
    Ok(())
}

fn program(name: &str, package: &str) -> Result<PathBuf> {
    find_program(name)
        .with_context(|| format!("{name} is not installed (Debian package {package})"))
}
