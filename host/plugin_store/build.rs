//! Embeds the built-in plugins that `cargo xtask plugins` made: fence methods, and watchers, which lie
//! in the folder `watchers` beside theirs.
//!
//! Each is embedded twice: the component itself, whose digest names it, and the machine
//! code compiled ahead from it by the same engine settings.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=NODE_REMEDY_PLUGINS");
    let folder = std::env::var_os("NODE_REMEDY_PLUGINS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins"),
        PathBuf::from,
    );
    for (folder, file) in
        [(folder.clone(), "builtin.rs"), (folder.join("../watchers"), "watchers.rs")]
    {
        println!("cargo::rerun-if-changed={}", folder.display());
        let Some(names) = plugins(&folder) else {
            println!(
                "cargo::error=no compiled plugins in {}: run `cargo xtask plugins` first",
                folder.display()
            );
            return;
        };
        embed(&folder, names, file);
    }
}

/// Writes a list of these plugins, for the crate to include.
fn embed(folder: &Path, names: Vec<String>, file: &str) {
    let mut source = String::from("&[\n");
    for name in names {
        let path =
            |extension: &str| folder.join(format!("{name}.{extension}")).display().to_string();
        let (wasm, cwasm) = (path("wasm"), path("cwasm"));
        println!("cargo::rerun-if-changed={wasm}");
        println!("cargo::rerun-if-changed={cwasm}");
        let _ = writeln!(
            source,
            "    Builtin {{ name: {name:?}, wasm: include_bytes!({wasm:?}), \
             cwasm: include_bytes!({cwasm:?}) }},"
        );
    }
    source.push_str("]\n");
    put(file, source);
}

/// Writes a file for the crate to include.
fn put(file: &str, source: String) {
    let Some(out) = std::env::var_os("OUT_DIR") else {
        println!("cargo::error=cargo gave no OUT_DIR");
        return;
    };
    let out = Path::new(&out).join(file);
    if let Err(error) = std::fs::write(&out, source) {
        println!("cargo::error=failed to write {}: {error}", out.display());
    }
}

/// Names of the plugins in `folder`, in order; `None` where there is none.
fn plugins(folder: &Path) -> Option<Vec<String>> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "cwasm"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    (!names.is_empty()).then_some(names)
}
