//! Embeds the pages of `docs/runbook`, which `explain --why` prints, and makes the release build smaller.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const INDEX: &str = "README";

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbook");
    println!("cargo::rerun-if-changed={}", folder.display());
    if let Err(error) = embed(&folder) {
        println!("cargo::error=failed to embed {}: {error}", folder.display());
    }
    fold_same_code();
}

/// Functions whose code is the same become one, a tenth of the binary. Nothing compares addresses of functions to tell
/// them apart. Asked of the linker that Rust's own toolchain brings for this target, which `rust-toolchain.toml` pins;
/// GNU's does not know the option: `NODE_REMEDY_FOLD=0` builds with that one.
fn fold_same_code() {
    println!("cargo::rerun-if-env-changed=NODE_REMEDY_FOLD");
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    let is_own_linker = is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is("PROFILE", "release") && is_own_linker && !is("NODE_REMEDY_FOLD", "0") {
        println!("cargo::rustc-link-arg-bin=node-remedy=-Wl,--icf=all");
    }
}

/// Writes a list for the crate to include: each page's name and text, in the order of names.
fn embed(folder: &Path) -> std::io::Result<()> {
    let mut pages: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        pages.push(entry?.path());
    }
    pages.sort();
    let mut list = String::from("&[\n");
    for page in pages.iter().filter(|page| page.extension().is_some_and(|found| found == "md")) {
        let name = page.file_stem().unwrap_or_default().to_string_lossy();
        let path = page.display().to_string();
        println!("cargo::rerun-if-changed={path}");
        if name != INDEX {
            let _ = writeln!(list, "    ({name:?}, include_str!({path:?})),");
        }
    }
    list.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    std::fs::write(Path::new(&out).join("runbook.rs"), list)
}
