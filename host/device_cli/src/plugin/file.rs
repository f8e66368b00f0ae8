//! Commands about a component in a file: what it is, and how it gets into a cluster.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use node_remedy_registry::unpack::unpack;
use node_remedy_sandbox::signature::SigningKey;
use node_remedy_sandbox::{Plugin, PluginLimits};
use node_remedy_store::store::Plugins;
use zeroize::Zeroizing;

use crate::files::{read_bytes, read_text};
use crate::output::{out, outln};

/// What an object's values may be together (`MaxSecretSize` of Kubernetes' API).
pub(super) const CONFIG_MAP_BYTES_MAX: usize = 1 << 20;
/// Of a signature's file, and of a key's.
const SIGNATURE_BYTES_MAX: usize = 4_096;
const KEY_BYTES_MAX: usize = 16_384;
/// Of the digest in a ConfigMap's name.
const NAME_DIGITS: usize = 12;

/// What is printed beside a component.
pub(super) struct Printed<'a> {
    /// Where the ConfigMap goes.
    pub(super) namespace: &'a str,
    /// The file with its signature.
    pub(super) signature: Option<&'a Path>,
    /// Whether its FencePlugin is printed, too.
    pub(super) fence_plugin: bool,
}

/// Prints a ConfigMap with the component in it, and a FencePlugin where it is wanted.
pub(super) fn config_map(
    plugins: &Plugins,
    file: &Path,
    printed: &Printed<'_>,
) -> anyhow::Result<()> {
    let namespace = printed.namespace;
    let signature = printed.signature.map(signature).transpose()?;
    let (wasm, plugin) = load(plugins, file, &PluginLimits::most())?;
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
    if let Some(signature) = signature {
        out!("data:\n  {key}.sig: {signature}\n");
    }
    if printed.fence_plugin {
        out!(
            "---\napiVersion: node-remedy.io/v1alpha1\nkind: FencePlugin\nmetadata:\n  name: {name}\nspec:\n  \
             source:\n    configMap:\n      name: {map}\n      key: {key}\n  digest: {digest}\n  grants: []\n"
        );
    }
    Ok(())
}

/// The signature in a file.
pub(super) fn signature(file: &Path) -> anyhow::Result<String> {
    let text = read_text(file, SIGNATURE_BYTES_MAX);
    let text = text.with_context(|| format!("failed to read {}", file.display()))?;
    let text = text.trim().to_owned();
    anyhow::ensure!(
        STANDARD.decode(&text).is_ok_and(|bytes| !bytes.is_empty()),
        "{}: found no base64, expected a signature from `node-remedy plugin sign`",
        file.display()
    );
    Ok(text)
}

/// Prints a signature over the component in a file.
pub(super) fn sign(file: &Path, key: &Path) -> anyhow::Result<()> {
    let wasm = component(file)?;
    let key = signing_key(key, "cosign sign-blob")?;
    outln!("{}", key.sign(&wasm)?);
    Ok(())
}

/// The private key in a file; `instead` is what signs with one of cosign's.
pub(super) fn signing_key(key: &Path, instead: &str) -> anyhow::Result<SigningKey> {
    let text = read_text(key, KEY_BYTES_MAX).map(Zeroizing::new);
    let text = text.with_context(|| format!("failed to read {}", key.display()))?;
    SigningKey::from_pem(&text).with_context(|| {
        format!(
            "failed to use {}; cosign signs with its own encrypted keys: {instead}",
            key.display()
        )
    })
}

/// What a component asks for beyond what a plugin has where nobody says more, by the names of spec.limits.
pub(super) fn beyond_the_usual(wasm: &[u8], plugin: &Plugin) -> BTreeMap<&'static str, u64> {
    let usual = PluginLimits::default();
    let bytes = u64::try_from(wasm.len()).unwrap_or(u64::MAX);
    let asked = [
        ("componentBytes", bytes, usual.component_bytes),
        ("memoryBytes", plugin.manifest().memory_bytes, usual.memory_bytes),
    ];
    let beyond = asked.into_iter().filter(|(_, asked, usual)| asked > usual);
    beyond.map(|(limit, asked, _)| (limit, asked)).collect()
}

/// The component in a file, and the same loaded within limits.
pub(super) fn load(
    plugins: &Plugins,
    file: &Path,
    limits: &PluginLimits,
) -> anyhow::Result<(Vec<u8>, Arc<Plugin>)> {
    let wasm = component(file)?;
    let plugin = plugins.load_within(&wasm, limits);
    Ok((wasm, plugin.with_context(|| format!("failed to load {}", file.display()))?))
}

/// The component in a file, unpacked.
pub(super) fn component(file: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = || format!("failed to read {}", file.display());
    let max = PluginLimits::most().component_len();
    let bytes = read_bytes(file, max).with_context(failed)?;
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    unpack(&name, &bytes, max).with_context(failed)
}

/// As it is packed for a ConfigMap.
pub(super) fn gzipped(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
