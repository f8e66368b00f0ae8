//! The text files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::stamp::files_below;

pub(crate) struct Source {
    /// Relative to the root, with slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn all(root: &Path) -> Result<Vec<Self>> {
        let is_text = |path: &PathBuf| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("rs" | "md" | "toml" | "yaml"))
        };
        let mut sources = Vec::new();
        for file in files_below(root)?.iter().filter(|path| is_text(path)) {
            let text = fs::read_to_string(file)
                .with_context(|| format!("failed to read {}", file.display()))?;
            let path = file.strip_prefix(root)?.to_string_lossy().into_owned();
            sources.push(Self { path, text });
        }
        Ok(sources)
    }

    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }
}
