//! Commands about a component in a file: what it is, and how it gets into a cluster.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use node_remedy_sandbox::Plugin;
use node_remedy_sandbox::limits::COMPONENT_BYTES_MAX;
use serde_json::json;

use super::{describe, document};
use crate::cli::Output;
use crate::cli::file::read_bytes;
use crate::cli::out::{out, outln};
use crate::outside::unpack::unpack;
use crate::plugins::Plugins;

/// What an object's values may be together (`MaxSecretSize` of Kubernetes' API).
const CONFIG_MAP_BYTES_MAX: usize = 1 << 20;
/// Of the digest in a ConfigMap's name.
const NAME_DIGITS: usize = 12;

/// Says what a component is, once it was compiled within the limits of the controller and tried out.
pub(super) fn inspect(plugins: &Plugins, file: &Path, output: Output) -> anyhow::Result<()> {
    let (wasm, plugin) = load(plugins, file)?;
    let (manifest, digest) = (plugin.manifest(), plugin.digest().to_string());
    match output {
        Output::Json => {
            let mut about = document(manifest, &digest);
            if let Some(about) = about.as_object_mut() {
                about.insert("bytes".to_owned(), json!(wasm.len()));
            }
            outln!("{about}");
        }
        Output::Text => {
            describe(manifest, &digest)?;
            outln!("{} bytes, compiled and tried out", wasm.len());
        }
    }
    Ok(())
}

/// Prints a ConfigMap with the component in it, and a FencePlugin where it is wanted.
pub(super) fn config_map(
    plugins: &Plugins,
    file: &Path,
    namespace: &str,
    with_fence_plugin: bool,
) -> anyhow::Result<()> {
    let (wasm, plugin) = load(plugins, file)?;
    let packed = gzipped(&wasm)?;
    anyhow::ensure!(
        packed.len() <= CONFIG_MAP_BYTES_MAX,
        "{}: found {} bytes packed, and a ConfigMap holds {CONFIG_MAP_BYTES_MAX}; strip it, or build it for size",
        file.display(),
        packed.len(),
    );
    let (name, digest) = (&plugin.manifest().name, plugin.digest().to_string());
    let digits = digest.trim_start_matches("sha256:").get(..NAME_DIGITS).unwrap_or_default();
    let (map, key) = (format!("{name}-{digits}"), format!("{name}.wasm.gz"));
    let data = STANDARD.encode(&packed);
    out!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {map}\n  namespace: {namespace}\n\
         immutable: true\nbinaryData:\n  {key}: {data}\n"
    );
    if with_fence_plugin {
        out!(
            "---\napiVersion: node-remedy.io/v1alpha1\nkind: FencePlugin\nmetadata:\n  name: {name}\nspec:\n  \
             source:\n    configMap:\n      name: {map}\n      key: {key}\n  digest: {digest}\n  grants: []\n"
        );
    }
    Ok(())
}

/// The component in a file, and the same loaded.
fn load(plugins: &Plugins, file: &Path) -> anyhow::Result<(Vec<u8>, Arc<Plugin>)> {
    let failed = || format!("failed to load {}", file.display());
    let bytes = read_bytes(file, COMPONENT_BYTES_MAX).with_context(failed)?;
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let wasm = unpack(&name, &bytes, COMPONENT_BYTES_MAX).with_context(failed)?;
    let plugin = plugins.load_outside(&wasm).with_context(failed)?;
    Ok((wasm, plugin))
}

fn gzipped(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
