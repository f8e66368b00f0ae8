//! What a loaded component is.

use crate::digest::Digest;
use crate::manifest::Manifest;
use crate::plugin_limits::PluginLimits;

/// What is known of a plugin beside its code.
pub(crate) struct About {
    pub(crate) manifest: Manifest,
    pub(crate) digest: Digest,
    pub(crate) limits: PluginLimits,
}
