//! The built-in plugins: embedded bytes, loaded on first use.
//!
//! Compiling one costs a hundred times a call, so the machine code is made ahead by
//! `cargo xtask plugins` and embedded beside the component whose digest names it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use node_remedy_sandbox::{Digest, LoadError, Manifest, Plugin, Sandbox, Watcher};

/// One embedded plugin.
struct Builtin {
    name: &'static str,
    wasm: &'static [u8],
    cwasm: &'static [u8],
}

/// Fence methods.
const BUILTINS: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/builtin.rs"));
/// What only sees.
const WATCHERS: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/watchers.rs"));

/// Why a plugin cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// No such name.
    #[error("no plugin named {name:?}; built in are: {known}")]
    Unknown {
        /// As asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// It is there and cannot be used.
    #[error("failed to load plugin {name:?}")]
    Load {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: LoadError,
    },
}

/// Plugins by name; cheap to clone, and clones share what is loaded.
#[derive(Clone)]
pub struct Plugins {
    sandbox: Arc<Sandbox>,
    loaded: Arc<Mutex<BTreeMap<String, Arc<Plugin>>>>,
    watchers: Arc<Mutex<BTreeMap<String, Arc<Watcher>>>>,
}

impl Plugins {
    /// All built-in plugins, none loaded yet.
    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox: Arc::new(sandbox), loaded: Arc::default(), watchers: Arc::default() }
    }

    /// Names of the built-in plugins: fence methods, then watchers.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTINS.iter().chain(WATCHERS).map(|builtin| builtin.name)
    }

    /// Whether a built-in plugin only sees.
    pub fn is_watcher(name: &str) -> bool {
        WATCHERS.iter().any(|builtin| builtin.name == name)
    }

    /// What a fence method or a watcher says of itself, and the digest of its component.
    ///
    /// # Errors
    /// Where there is none of that name, or it cannot be loaded.
    pub fn about(&self, name: &str) -> Result<(Manifest, Digest), PluginError> {
        if Self::is_watcher(name) {
            let watcher = self.watcher(name)?;
            return Ok((watcher.manifest().clone(), watcher.digest()));
        }
        let plugin = self.find(name)?;
        Ok((plugin.manifest().clone(), plugin.digest()))
    }

    /// The watcher, loaded if it was not yet.
    ///
    /// # Errors
    /// Where there is none of that name, or it cannot be loaded.
    pub fn watcher(&self, name: &str) -> Result<Arc<Watcher>, PluginError> {
        let mut loaded = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = loaded.get(name) {
            return Ok(watcher.clone());
        }
        let builtin = built_in(WATCHERS, name)?;
        let watcher = self
            .sandbox
            .load_builtin_watcher(builtin.wasm, builtin.cwasm)
            .map_err(|source| PluginError::Load { name: name.to_owned(), source })?;
        loaded.insert(name.to_owned(), watcher.clone());
        Ok(watcher)
    }

    /// The fence method, loaded if it was not yet.
    pub fn find(&self, name: &str) -> Result<Arc<Plugin>, PluginError> {
        // A panic while loading leaves the map without the plugin, which is true.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = loaded.get(name) {
            return Ok(plugin.clone());
        }
        let builtin = built_in(BUILTINS, name)?;
        let plugin = self
            .sandbox
            .load_builtin(builtin.wasm, builtin.cwasm)
            .map_err(|source| PluginError::Load { name: name.to_owned(), source })?;
        loaded.insert(name.to_owned(), plugin.clone());
        Ok(plugin)
    }
}

fn built_in(all: &'static [Builtin], name: &str) -> Result<&'static Builtin, PluginError> {
    all.iter().find(|builtin| builtin.name == name).ok_or_else(|| {
        let known = all.iter().map(|builtin| builtin.name).collect::<Vec<_>>().join(", ");
        PluginError::Unknown { name: name.to_owned(), known }
    })
}
