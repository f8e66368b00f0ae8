//! `node-remedy-crds DIRECTORY` writes every custom resource definition into a directory, one file
//! each. It is what `cargo xtask codegen` runs.

use std::path::PathBuf;
use std::process::ExitCode;

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
    let files = node_remedy_api::crds::files().map_err(|error| error.to_string())?;
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("failed to create {}: {error}", directory.display()))?;
    for (name, content) in files {
        let path = directory.join(name);
        std::fs::write(&path, content)
            .map_err(|error| format!("failed to write {}: {error}", path.display()))?;
    }
    Ok(())
}
