//! Reads a `FencePlugin`: schema first, then its name, digest, source and grants.

use std::sync::LazyLock;

use serde_json::Value as Json;

use super::image::is_digest;
use super::{FencePlugin, Image, Registry};
use crate::document::{Document, Path, Problems, Reading, Severity, Tree, check, schema_of};
use crate::fenceplugin::model::{
    ConfigMapSource, FencePluginSpec, OciSource, PluginSource, RegistryTls,
};
use crate::plan::{Grant, check_grant};
use crate::{GROUP, VERSION};

/// A `FencePlugin` that can be followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Its name, which is the plugin's.
    pub name: String,
    /// What stands in it.
    pub spec: FencePluginSpec,
}

impl Source {
    /// What its plugin is allowed.
    pub fn grants(&self) -> impl Iterator<Item = Grant> + '_ {
        let grants = self.spec.grants.iter();
        grants.map(|allows| Grant { plugin: self.name.clone(), allows: allows.clone() })
    }
}

/// Made once: it follows from the types, and configurations are read often.
static SCHEMA: LazyLock<Json> = LazyLock::new(schema_of::<FencePlugin>);

/// Longest name of a plugin, as its manifest has it.
pub(crate) const NAME_MAX: usize = 40;
const DIGEST_HEX: usize = 64;

/// Reads a `FencePlugin`, from a file or as the API server gave it.
pub fn read(document: &Document) -> Reading<Source> {
    let mut problems = Problems::none();
    let source = source(document, &mut problems);
    problems.with(source)
}

fn source(document: &Document, problems: &mut Problems) -> Option<Source> {
    let root = &document.root;
    let text = |field: &str| root.get(field).and_then(Tree::text).unwrap_or_default();
    let own = format!("{GROUP}/{VERSION}");
    let (version, kind) = (text("apiVersion"), text("kind"));
    let mut tell = |path: &Path, sentence: String| {
        problems.push(document.problem(Severity::Error, path, sentence));
    };
    if version != own || kind != "FencePlugin" {
        let sentence =
            format!("found apiVersion {version:?} and kind {kind:?}, expected {own} FencePlugin");
        tell(&Path::root(), sentence);
        return None;
    }
    let (base, named) = (Path::root().field("spec"), Path::root().field("metadata").field("name"));
    let name = document.metadata().and_then(|metadata| metadata.get("name")?.text());
    let name = name.unwrap_or_default().to_owned();
    if !is_name(&name) {
        tell(&named, format!("found {name:?}, expected 1 to {NAME_MAX} of a-z, 0-9 and -"));
    }
    let Some(spec) = root.get("spec") else {
        tell(&base, "found nothing, expected a map".to_owned());
        return None;
    };
    check(document, spec, &SCHEMA, &base, problems);
    if problems.has_errors() {
        return None;
    }
    let mut tell = |path: &Path, sentence: String| {
        problems.push(document.problem(Severity::Error, path, sentence));
    };
    let spec = match serde_json::from_value::<FencePluginSpec>(spec.to_json()) {
        Ok(spec) => spec,
        Err(error) => {
            tell(&base, format!("found what cannot be read: {error}"));
            return None;
        }
    };
    if !is_digest(&spec.digest) {
        let sentence = format!(
            "found {:?}, expected sha256: and {DIGEST_HEX} hex digits, as `node-remedy plugin inspect` \
             prints them",
            spec.digest
        );
        tell(&base.field("digest"), sentence);
    }
    check_source(&spec.source, &base.field("source"), &mut tell);
    for (index, key) in spec.verify.iter().flat_map(|verify| verify.keys.iter().enumerate()) {
        if !key.trim_start().starts_with("-----BEGIN PUBLIC KEY-----") {
            let sentence =
                "found no public key in PEM, expected -----BEGIN PUBLIC KEY-----, as in cosign.pub";
            tell(&base.field("verify").field("keys").index(index), sentence.to_owned());
        }
    }
    for (index, allows) in spec.grants.iter().enumerate() {
        check_grant(allows, &base.field("grants").index(index), &mut tell);
    }
    Some(Source { name, spec })
}

fn check_source(source: &PluginSource, path: &Path, tell: &mut impl FnMut(&Path, String)) {
    match (&source.config_map, &source.oci) {
        (None, None) => tell(path, "found neither configMap nor oci, expected one".to_owned()),
        (Some(_), Some(_)) => tell(path, "found configMap and oci, expected one".to_owned()),
        (Some(ConfigMapSource { key, .. }), None) => {
            if ![".wasm", ".wasm.gz", ".wasm.zst"].iter().any(|end| key.ends_with(end)) {
                let sentence = format!(
                    "found {key:?}, expected a key that ends in .wasm, .wasm.gz or .wasm.zst"
                );
                tell(&path.field("configMap").field("key"), sentence);
            }
        }
        (None, Some(oci)) => check_oci(oci, &path.field("oci"), tell),
    }
}

fn check_oci(oci: &OciSource, path: &Path, tell: &mut impl FnMut(&Path, String)) {
    if let Err(error) = oci.image.parse::<Image>() {
        tell(&path.field("image"), error.to_string());
    }
    if let Some(Err(error)) = oci.mirror.as_ref().map(|mirror| mirror.parse::<Registry>()) {
        tell(&path.field("mirror"), error.to_string());
    }
    let Some(RegistryTls { ca_bundle }) = &oci.tls else { return };
    if !ca_bundle.trim_start().starts_with("-----BEGIN CERTIFICATE-----") {
        let sentence =
            "found no certificate in PEM, expected -----BEGIN CERTIFICATE-----".to_owned();
        tell(&path.field("tls").field("caBundle"), sentence);
    }
    if oci.plain_http {
        let sentence = "found plainHttp beside tls, expected one".to_owned();
        tell(&path.field("plainHttp"), sentence);
    }
}

/// Whether a plugin may be called so.
pub(crate) fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_letter)
}
