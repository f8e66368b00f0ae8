//! Embeds the sources that `plugin new` writes: the SDK and the templates.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What `plugin new` writes, and the file that lists each.
const SOURCES: [(&str, &str); 3] = [
    ("plugins/sdk", "sdk.rs"),
    ("examples/plugins/template-http", "template_http.rs"),
    ("examples/plugins/template-udp", "template_udp.rs"),
];

fn main() {
    for (folder, file) in SOURCES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        if let Err(error) = below(&folder, &mut files) {
            println!("cargo::error=failed to list {}: {error}", folder.display());
            return;
        }
        write_list(&folder, files, file);
    }
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

/// All files below a folder.
fn below(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // What a build made there by hand is none of it.
        if path.is_dir() && !path.ends_with("target") {
            below(&path, files)?;
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Writes a list of these files, each with its path in the folder and its text.
fn write_list(folder: &Path, mut files: Vec<PathBuf>, list: &str) {
    files.sort();
    let mut source = String::from("&[\n");
    for file in files {
        let path = file.display().to_string();
        println!("cargo::rerun-if-changed={path}");
        let inside = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
        let _ = writeln!(source, "    ({inside:?}, include_str!({path:?})),");
    }
    source.push_str("]\n");
    put(list, source);
}
