//! The built-in plugins: embedded bytes, loaded on first use.
//!
//! Compiling one costs a hundred times a call, so the machine code is made ahead by
//! `cargo xtask plugins` and embedded beside the component whose digest names it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use node_remedy_sandbox::{LoadError, Plugin, Sandbox};

/// One embedded plugin.
struct Builtin {
    name: &'static str,
    wasm: &'static [u8],
    cwasm: &'static [u8],
}

const BUILTINS: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

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
}

impl Plugins {
    /// All built-in plugins, none loaded yet.
    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox: Arc::new(sandbox), loaded: Arc::default() }
    }

    /// Names of the built-in plugins.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTINS.iter().map(|builtin| builtin.name)
    }

    /// The plugin, loaded if it was not yet.
    pub fn find(&self, name: &str) -> Result<Arc<Plugin>, PluginError> {
        // A panic while loading leaves the map without the plugin, which is true.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = loaded.get(name) {
            return Ok(plugin.clone());
        }
        let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.name == name) else {
            let known = Self::names().collect::<Vec<_>>().join(", ");
            return Err(PluginError::Unknown { name: name.to_owned(), known });
        };
        let plugin = self
            .sandbox
            .load_builtin(builtin.wasm, builtin.cwasm)
            .map_err(|source| PluginError::Load { name: name.to_owned(), source })?;
        loaded.insert(name.to_owned(), plugin.clone());
        Ok(plugin)
    }
}
