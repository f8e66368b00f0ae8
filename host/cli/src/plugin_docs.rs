//! Plugins from outside, for commands that have no component of theirs: what a controller that loaded one has
//! written into its FencePlugin.

use node_remedy_api::document::{Document, Tree};
use node_remedy_api::fenceplugin::{FencePlugin, FencePluginStatus};
use node_remedy_sandbox::{Digest, Manifest};
use node_remedy_store::store::Plugins;

/// Those of documents.
pub(super) fn by_documents(plugins: &Plugins, documents: &[Document]) {
    for document in documents {
        if document.root.get("kind").and_then(Tree::text) != Some("FencePlugin") {
            continue;
        }
        let name = document.metadata().and_then(|metadata| metadata.get("name"));
        let said = |field: &str| document.root.get("status")?.get(field)?.text();
        let (manifest, digest) = (said("pluginManifest"), said("digest"));
        if let Some(name) = name.and_then(Tree::text) {
            describe(plugins, name, manifest.unwrap_or_default(), digest.unwrap_or_default());
        }
    }
}

/// Those of objects.
pub(super) fn by_objects<'a>(plugins: &Plugins, objects: impl Iterator<Item = &'a FencePlugin>) {
    let none = FencePluginStatus::default();
    for object in objects {
        let status = object.status.as_ref().unwrap_or(&none);
        let name = object.metadata.name.as_deref().unwrap_or_default();
        describe(plugins, name, &status.plugin_manifest, &status.digest);
    }
}

fn describe(plugins: &Plugins, name: &str, manifest: &str, digest: &str) {
    if manifest.is_empty() {
        let why = "no controller has loaded it, or said what it is; see: kubectl get fenceplugins";
        plugins.note_refused(name, why);
        return;
    }
    match (Manifest::parse(manifest.as_bytes()), Digest::parse(digest)) {
        (Ok(manifest), Some(digest)) => plugins.describe(name, manifest, digest),
        (Err(error), _) => plugins.note_refused(name, &error.to_string()),
        (_, None) => plugins.note_refused(name, "its status names no digest of a component"),
    }
}
