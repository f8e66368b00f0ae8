//! `plugin manifest`: a component with its manifest in it, for tool chains that write no custom sections.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use node_remedy_sandbox::limits::{COMPONENT_BYTES_MOST, MANIFEST_BYTES_MAX};
use node_remedy_sandbox::with_manifest;

use crate::files::read_bytes;

/// Writes it to `out`.
pub(super) fn manifest(component: &Path, manifest: &Path, out: &Path) -> anyhow::Result<()> {
    let read = |file: &Path, max| {
        read_bytes(file, max).with_context(|| format!("failed to read {}", file.display()))
    };
    let (wasm, text) =
        (read(component, COMPONENT_BYTES_MOST)?, read(manifest, MANIFEST_BYTES_MAX)?);
    let whole = with_manifest(&wasm, &text).with_context(|| {
        format!("failed to put {} into {}", manifest.display(), component.display())
    })?;
    fs::write(out, whole).with_context(|| format!("failed to write {}", out.display()))
}
