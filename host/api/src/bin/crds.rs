//! `node-remedy-crds DIRECTORY` writes what is generated from the types into a directory: every custom
//! resource definition under `crds`, every schema for editors under `schemas`, and `defaults.md`. It is
//! what `cargo xtask codegen` runs.

use std::path::PathBuf;
use std::process::ExitCode;

use node_remedy_api::{crds, reference};

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: node-remedy-crds DIRECTORY");
        return ExitCode::from(2);
    };
    match write(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn write(directory: &std::path::Path) -> Result<(), String> {
    let definitions = crds::files().map_err(|error| error.to_string())?;
    let schemas = reference::schemas().map_err(|error| error.to_string())?;
    let defaults = reference::defaults().map_err(|error| error.to_string())?;
    for (folder, files) in [
        ("crds", definitions),
        ("schemas", schemas),
        (".", vec![("defaults.md".to_owned(), defaults)]),
    ] {
        let folder = directory.join(folder);
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("failed to create {}: {error}", folder.display()))?;
        for (name, content) in files {
            let path = folder.join(name);
            std::fs::write(&path, content)
                .map_err(|error| format!("failed to write {}: {error}", path.display()))?;
        }
    }
    Ok(())
}
