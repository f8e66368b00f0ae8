//! `FencePlugin`: a plugin from outside, where its component stands, and what it is allowed. Types, and
//! reading them; fetching and loading are the controller's work.

mod bounds;
mod image;
mod model;
mod read;

pub use self::bounds::PluginLimits;
pub use self::image::{Image, ImageError, Registry, RegistryError, is_digest};
pub(crate) use self::read::{NAME_MAX, is_name};
pub use self::read::{Source, read};
pub use model::{
    ConfigMapSource, FencePlugin, FencePluginSpec, FencePluginStatus, LastError, LoadedPlugin,
    OciSource, PluginSource, RegistryTls, Verify, VerifyPolicy,
};
