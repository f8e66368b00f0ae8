//! `check`: validates configuration files as the controller would read them.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use node_remedy_api::document::{Document, Problems};
use node_remedy_api::{plan, policy};
use serde_json::json;

use super::{CheckArgs, Output};

/// etcd refuses larger objects; a file may hold a few of them.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Reads every file and prints every problem.
pub fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let mut problems = Problems::none();
    let mut documents = Vec::new();
    for file in &args.files {
        let read = Document::read_all(&file.display().to_string(), &read_file(file)?);
        problems.append(read.problems);
        documents.extend(read.value.unwrap_or_default());
    }
    let mut known = 0_usize;
    for document in &documents {
        let kind = document.root.get("kind").and_then(|kind| kind.text()).unwrap_or_default();
        let found = match kind {
            "Configuration" | "RemedyConfiguration" => policy::read(document).problems,
            "FenceConfiguration" => plan::read(document).problems,
            _ => continue,
        };
        known += 1;
        problems.append(found);
    }
    let config_maps: Vec<Document> = documents
        .into_iter()
        .filter(|document| {
            document.root.get("kind").and_then(|kind| kind.text()) == Some("ConfigMap")
        })
        .collect();
    known += config_maps.len();
    for reading in plan::read_config_maps(&config_maps) {
        problems.append(reading.problems);
    }
    let (errors, warnings) = (problems.errors().count(), problems.warnings().count());
    match args.output {
        Output::Json => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            println!("{}", json!({"documents": known, "errors": errors, "problems": lines}));
        }
        Output::Text => {
            if problems.iter().next().is_some() {
                eprintln!("{problems}");
            }
            println!("{known} documents, {errors} errors, {warnings} warnings");
        }
    }
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A file's text, if it is one of a size that a person may have written.
pub fn read_file(file: &Path) -> anyhow::Result<String> {
    let size = std::fs::metadata(file)
        .with_context(|| format!("failed to read {}", file.display()))?
        .len();
    anyhow::ensure!(
        size <= FILE_BYTES_MAX,
        "{} has {size} bytes, at most {FILE_BYTES_MAX} are read",
        file.display()
    );
    std::fs::read_to_string(file)
        .with_context(|| format!("failed to read {} as text", file.display()))
}
