//! A component that a scenario names as a file: the ConfigMap and the FencePlugin that an admin would make
//! of it, so that the very same bytes go the very same way as in a cluster. Granted it is nothing, which is
//! what a remedy needs.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use node_remedy_sandbox::Digest;

use crate::NAMESPACE;

/// What the file of a component ends in.
const ENDING: &str = ".wasm";

/// The plugin's name in the name of its file; `None` of a file that is no component's.
pub fn name_in(file: &str) -> Option<&str> {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(ENDING).filter(|name| !name.is_empty())
}

/// Both objects, as a file of a configuration has them.
///
/// # Errors
/// Where the bytes cannot be packed.
pub fn documents(name: &str, component: &[u8]) -> std::io::Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(component)?;
    let (data, digest) = (STANDARD.encode(encoder.finish()?), Digest::of(component));
    Ok(format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: {name}, namespace: {NAMESPACE} }}\nimmutable: \
         true\nbinaryData: {{ {name}.wasm.gz: {data} }}\n---\napiVersion: node-remedy.io/v1alpha1\nkind: \
         FencePlugin\nmetadata: {{ name: {name} }}\nspec:\n  source: {{ configMap: {{ name: {name}, key: \
         {name}.wasm.gz }} }}\n  digest: {digest}\n"
    ))
}
