//! Lines of Python in the venv that `cargo xtask setup` makes: other clients than ours, for what is
//! true.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::repository;

/// A program of the venv.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    repository().join("target/venv/bin").join(name)
}

/// What these lines of Python print, with these arguments.
pub async fn python(lines: &str, arguments: &[&str]) -> Result<String> {
    run(&["-c", lines], arguments).await
}

/// What this file of Python prints, with these arguments.
pub async fn python_file(file: &Path, arguments: &[&str]) -> Result<String> {
    run(&[&file.display().to_string()], arguments).await
}

async fn run(what: &[&str], arguments: &[&str]) -> Result<String> {
    let python = program("python");
    let mut command = Command::new(&python);
    command.args(what).args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    let output = output.with_context(|| format!("failed to start {}", python.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "python: {}: {said}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
