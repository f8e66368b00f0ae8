//! What is to be fetched, and what it must be.

use node_remedy_api::fenceplugin::{PluginSource, Verify};
use node_remedy_registry::cache::CachedImage;
use node_remedy_sandbox::PluginLimits;

/// What is to be fetched.
#[derive(Debug, Clone, Copy)]
pub struct DesiredPlugin<'a> {
    pub(crate) source: &'a PluginSource,
    /// The component's digest.
    pub(crate) digest: &'a str,
    /// The manifest that its image was resolved to before; empty: none was.
    pub(crate) manifest: &'a str,
    pub(crate) limits: PluginLimits,
    pub(crate) verify: Option<&'a Verify>,
}

/// What a component that was fetched must be, and may use.
pub struct ToLoad<'a> {
    pub(crate) digest: &'a str,
    pub(crate) limits: &'a PluginLimits,
    pub(crate) verify: Option<&'a Verify>,
}

/// What stood at a source.
#[derive(Debug)]
pub struct Fetched {
    /// Where, for people.
    pub(crate) what: String,
    /// The component's own name there, which says how it is packed.
    pub(crate) name: String,
    /// What was there.
    pub(crate) found: Found,
}

/// A component and what was signed of it.
#[derive(Debug)]
pub enum Found {
    /// In a ConfigMap.
    Beside {
        /// The packed component.
        packed: Vec<u8>,
        /// The signature beside it, in base64.
        signature: Option<String>,
    },
    /// In a registry, or in the cache.
    Artefact {
        /// As the FencePlugin had it, and what it was.
        kept: CachedImage,
        /// The manifest that its image is resolved to; empty where that is not known.
        manifest: String,
        /// Whether the cache has not got it.
        is_new: bool,
    },
}

impl Fetched {
    /// The packed component.
    pub(crate) fn packed(&self) -> &[u8] {
        match &self.found {
            Found::Beside { packed, .. } => packed,
            Found::Artefact { kept, .. } => &kept.artefact.component,
        }
    }
}
