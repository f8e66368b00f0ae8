//! Every plugin that can be called: those built in, loaded on first use, and those from outside, put here
//! once they are loaded ([`node_remedy_loader`]).
//!
//! Compiling one costs a hundred times a call, so the machine code of those built in is made ahead by
//! `cargo xtask plugins` and embedded beside the component whose digest names it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use node_remedy_sandbox::{
    Digest, Executor, LoadError, Manifest, Plugin, PluginLimits, Sandbox, Watcher,
};

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
    /// A `FencePlugin` of that name is there, and nothing of it is loaded.
    #[error("FencePlugin {name} is not loaded: {why}")]
    NotLoaded {
        /// Which.
        name: String,
        /// Why not.
        why: String,
    },
    /// An incident began with a component that is here no more.
    #[error(
        "the incident began with {digest} of FencePlugin {name}, which is loaded no more, and no other is \
         called in its place; let spec.digest and spec.source name it again"
    )]
    Gone {
        /// The plugin.
        name: String,
        /// The component.
        digest: String,
    },
}

/// Plugins by name; cheap to clone, and clones share what is loaded.
#[derive(Clone)]
pub struct Plugins {
    sandbox: Arc<Sandbox>,
    loaded: Arc<Mutex<BTreeMap<String, Arc<Plugin>>>>,
    watchers: Arc<Mutex<BTreeMap<String, Arc<Watcher>>>>,
    /// What compiles components from outside; `None`: this process, which trusts them.
    compiler: Option<PathBuf>,
    outside: Arc<Mutex<BTreeMap<String, ExternalPlugin>>>,
}

/// One component of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Component {
    /// The plugin's name.
    pub plugin: String,
    /// Its digest, as configurations write it.
    pub digest: String,
}

/// A plugin from outside.
#[derive(Default)]
struct ExternalPlugin {
    /// What is called by whoever begins now.
    current: Option<Arc<Plugin>>,
    /// Why what is wanted is not loaded.
    refusal: Option<String>,
    /// What it says of itself, where another process has it loaded and this one does not.
    described: Option<(Manifest, Digest)>,
    /// Everything of this name that is loaded, by digest.
    loaded: BTreeMap<String, Arc<Plugin>>,
}

impl Plugins {
    /// All built-in plugins, none loaded yet.
    pub fn new(sandbox: Sandbox) -> Self {
        Self {
            sandbox: Arc::new(sandbox),
            loaded: Arc::default(),
            watchers: Arc::default(),
            compiler: None,
            outside: Arc::default(),
        }
    }

    /// The same, where components from outside are compiled in a child made from `exe`, which must end in
    /// [`node_remedy_sandbox::compile::child_main`].
    #[must_use]
    pub fn compiled_by(mut self, exe: PathBuf) -> Self {
        self.compiler = Some(exe);
        self
    }

    /// The built-in plugins as they are loaded, and none from outside: for another process of a run.
    #[must_use]
    pub fn of_another_process(&self) -> Self {
        Self { outside: Arc::default(), ..self.clone() }
    }

    /// Names of the built-in plugins: fence methods, then watchers.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTINS.iter().chain(WATCHERS).map(|builtin| builtin.name)
    }

    /// Whether a plugin of this name is built in.
    pub fn is_builtin(name: &str) -> bool {
        Self::names().any(|known| known == name)
    }

    /// Whether a built-in plugin only sees.
    pub fn is_watcher(name: &str) -> bool {
        WATCHERS.iter().any(|builtin| builtin.name == name)
    }

    /// Knows what a plugin from outside says of itself, without its component: enough to judge a
    /// configuration by, and nothing that could be called.
    pub fn describe(&self, name: &str, manifest: Manifest, digest: Digest) {
        let mut outside = self.outside();
        outside.entry(name.to_owned()).or_default().described = Some((manifest, digest));
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
        let described = || self.outside().get(name).and_then(|one| one.described.clone());
        if !Self::is_builtin(name)
            && let Some(described) = described()
        {
            return Ok(described);
        }
        let plugin = self.find(name, None)?;
        Ok((plugin.manifest().clone(), plugin.digest()))
    }

    /// So many threads for calls of these plugins: what they compute is cut at deadlines by their own sandbox's
    /// clock and no other's.
    ///
    /// # Errors
    /// Where a thread cannot be started.
    pub fn threads(&self, count: usize) -> std::io::Result<Executor> {
        Executor::threads(&self.sandbox, count)
    }

    /// Loads a component from outside within the usual limits. Blocks, up to half a minute.
    ///
    /// # Errors
    /// Where it is no plugin, or cannot be compiled within the limits.
    pub fn load_outside(&self, wasm: &[u8]) -> Result<Arc<Plugin>, LoadError> {
        self.load_within(wasm, &PluginLimits::default())
    }

    /// The same within limits of its own. Blocks for as long as these allow.
    ///
    /// # Errors
    /// Where it is no plugin, or cannot be compiled within the limits.
    pub fn load_within(
        &self,
        wasm: &[u8],
        limits: &PluginLimits,
    ) -> Result<Arc<Plugin>, LoadError> {
        match &self.compiler {
            Some(exe) => self.sandbox.load_external_within(exe, wasm, limits),
            None => self.sandbox.load_within(wasm, limits),
        }
    }

    /// Calls `plugin` by this name from now on; calls under way, and incidents that are open, go on with
    /// what they began with.
    pub fn put(&self, name: &str, plugin: Arc<Plugin>) {
        self.put_beside(name, plugin.clone());
        let mut outside = self.outside();
        let one = outside.entry(name.to_owned()).or_default();
        (one.current, one.refusal) = (Some(plugin), None);
    }

    /// Has `plugin` for incidents that began with it; whoever begins now calls another one.
    pub fn put_beside(&self, name: &str, plugin: Arc<Plugin>) {
        let mut outside = self.outside();
        let one = outside.entry(name.to_owned()).or_default();
        one.loaded.insert(plugin.digest().to_string(), plugin);
    }

    /// The same with a component that is loaded already, within these limits; `false` where it is not.
    pub fn take_loaded(&self, name: &str, digest: &str, limits: &PluginLimits) -> bool {
        let loaded = self.outside().get(name).and_then(|one| one.loaded.get(digest).cloned());
        let loaded = loaded.filter(|plugin| plugin.limits() == limits);
        loaded.map(|plugin| self.put(name, plugin)).is_some()
    }

    /// Has nobody call what is loaded by this name, but incidents that began with it.
    pub fn withdraw(&self, name: &str) {
        if let Some(one) = self.outside().get_mut(name) {
            one.current = None;
        }
    }

    /// Keeps why what is wanted of a plugin is not loaded, for whoever calls it.
    pub fn note_refused(&self, name: &str, why: &str) {
        self.outside().entry(name.to_owned()).or_default().refusal = Some(why.to_owned());
    }

    /// Keeps the plugins of these names as they are called now, and of all plugins these components.
    pub fn keep(&self, names: &BTreeSet<&str>, in_use: &BTreeSet<Component>) {
        self.outside().retain(|name, one| {
            if !names.contains(name.as_str()) {
                one.current = None;
            }
            let current = one.current.as_ref().map(|plugin| plugin.digest().to_string());
            let is_in_use = |digest: &String| {
                in_use.contains(&Component { plugin: name.clone(), digest: digest.clone() })
            };
            one.loaded.retain(|digest, _| current.as_ref() == Some(digest) || is_in_use(digest));
            names.contains(name.as_str()) || !one.loaded.is_empty()
        });
    }

    /// What is called by the name of a plugin from outside.
    pub fn loaded(&self, name: &str) -> Option<Arc<Plugin>> {
        self.outside().get(name)?.current.clone()
    }

    fn outside(&self) -> MutexGuard<'_, BTreeMap<String, ExternalPlugin>> {
        self.outside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_outside(
        &self,
        name: &str,
        digest: Option<&str>,
    ) -> Option<Result<Arc<Plugin>, PluginError>> {
        let outside = self.outside();
        let one = outside.get(name)?;
        let name = name.to_owned();
        Some(match digest {
            Some(digest) => one
                .loaded
                .get(digest)
                .cloned()
                .ok_or_else(|| PluginError::Gone { name, digest: digest.to_owned() }),
            None => one.current.clone().ok_or_else(|| PluginError::NotLoaded {
                name,
                why: one.refusal.clone().unwrap_or_else(|| "it is being loaded".to_owned()),
            }),
        })
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

    /// The fence method, if it is built in loaded now. Of one from outside the component of this digest,
    /// where an incident began with one; of one that is built in there is only this binary's.
    ///
    /// # Errors
    /// Where there is none of that name, or it cannot be loaded, or that component is gone.
    pub fn find(&self, name: &str, digest: Option<&str>) -> Result<Arc<Plugin>, PluginError> {
        if !Self::is_builtin(name)
            && let Some(found) = self.find_outside(name, digest)
        {
            return found;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Components that differ in their version, which is all that makes a digest another one.
    fn components() -> [Vec<u8>; 2] {
        let one = built_in(BUILTINS, "webhook").unwrap().wasm;
        let (from, to) = (b"\"0.1.0\"", b"\"0.2.0\"");
        let mut other = one.to_vec();
        for place in 0..other.len() - from.len() {
            let bytes = &mut other[place..place + from.len()];
            if bytes == from {
                bytes.copy_from_slice(to);
            }
        }
        [one.to_vec(), other]
    }

    #[test]
    fn an_incident_calls_the_component_that_it_began_with() {
        let plugins = Plugins::new(Sandbox::new().unwrap());
        let [one, other] = components().map(|wasm| plugins.load_outside(&wasm).unwrap());
        let component = |plugin: &Arc<Plugin>| Component {
            plugin: "lamp".to_owned(),
            digest: plugin.digest().to_string(),
        };
        let (first, second) = (component(&one), component(&other));
        let version = |digest: Option<&Component>| {
            let found = plugins.find("lamp", digest.map(|one| one.digest.as_str()));
            found.map(|plugin| plugin.manifest().version.clone()).map_err(|error| error.to_string())
        };
        assert!(version(None).unwrap_err().contains("no plugin named \"lamp\""));
        plugins.note_refused("lamp", "its ConfigMap does not exist");
        let refusal = "FencePlugin lamp is not loaded: its ConfigMap does not exist";
        assert_eq!(version(None).unwrap_err(), refusal);

        plugins.put("lamp", one);
        plugins.put("lamp", other);
        assert_eq!(version(None).unwrap(), "0.2.0");
        assert_eq!(version(Some(&first)).unwrap(), "0.1.0");
        let (names, in_use) = (BTreeSet::from(["lamp"]), BTreeSet::from([first.clone()]));
        plugins.keep(&names, &in_use);
        assert_eq!(version(Some(&first)).unwrap(), "0.1.0", "an incident runs on");
        // The FencePlugin is deleted: nothing begins with it, and what runs ends with it.
        plugins.keep(&BTreeSet::new(), &in_use);
        assert!(version(None).is_err());
        assert_eq!(version(Some(&first)).unwrap(), "0.1.0");
        assert!(version(Some(&second)).unwrap_err().contains("no other is called in its place"));
        plugins.keep(&BTreeSet::new(), &BTreeSet::new());
        assert!(version(Some(&first)).is_err());
    }
}
