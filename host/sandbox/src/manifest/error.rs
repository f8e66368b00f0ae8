//! Why a manifest is refused.

/// Why a manifest was refused.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not the JSON the contract describes.
    #[error("failed to read the manifest: {0}")]
    Json(String),
    /// It is, and says something that cannot hold.
    #[error("failed to accept the manifest: {path}: found {found}, expected {expected}")]
    Field {
        /// Where in the manifest.
        path: String,
        /// What stands there.
        found: String,
        /// What could stand there.
        expected: String,
    },
}

/// A manifest error at a place.
pub(crate) fn field(
    path: &str,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> ManifestError {
    ManifestError::Field {
        path: path.to_owned(),
        found: found.to_string(),
        expected: expected.to_string(),
    }
}
