//! From bytes to a plugin that can be called: size, digest, shape, imports, manifest, compile,
//! trial. Each stage is cheaper than the next and rejects before it. Not here: the stages
//! themselves ([`crate::inspect`], [`crate::manifest`], [`crate::compile`]).

use std::path::Path;
use std::sync::Arc;

use wasmtime::Engine;
use wasmtime::component::{Component, HasSelf, Linker};

use crate::about::About;
use crate::bindings::remedy::RemedyPluginPre;
use crate::bindings::watcher::DatagramWatcherPre;
use crate::bindings::{FenceMethod, FenceMethodPre};
use crate::compile::{CompileError, compile_in_child_within};
use crate::digest::Digest;
use crate::engine::engine;
use crate::inspect::{InspectError, World, inspect, world_called};
use crate::manifest::error::{ManifestError, field};
use crate::manifest::{Kind, Manifest};
use crate::plugin::{Plugin, Pre};
use crate::plugin_limits::PluginLimits;
use crate::state::CallState;
use crate::watch::Watcher;
use crate::{precompiled, wasi_stubs};

/// The host of all plugins: one engine, one set of host functions.
pub struct Sandbox {
    engine: Engine,
    linker: Linker<CallState>,
}

/// Why a plugin was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its bytes are not those of a plugin.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// What it says of itself is not acceptable.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The compiling child failed.
    #[error(transparent)]
    Child(#[from] CompileError),
    /// The engine refuses it.
    #[error("failed to compile the plugin: {0}")]
    Compile(String),
    /// It asks for more than it is allowed.
    #[error(
        "failed to accept the plugin: its manifest asks for {asked} bytes of memory, {max} are the most; \
         spec.limits.memoryBytes allows more"
    )]
    Memory {
        /// How many.
        asked: u64,
        /// How many at most.
        max: u64,
    },
    /// It does not fit the contract, or fails while it is set up.
    #[error("failed to instantiate the plugin: {0}")]
    Instantiate(String),
}

impl Sandbox {
    /// A host without plugins.
    pub fn new() -> Result<Self, LoadError> {
        let engine = engine().map_err(|error| compile_error(&error))?;
        let mut linker = Linker::new(&engine);
        let added = wasi_stubs::add_to_linker(&mut linker).and_then(|()| {
            FenceMethod::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)
        });
        added.map_err(|error| LoadError::Instantiate(format!("{error:#}")))?;
        Ok(Self { engine, linker })
    }

    /// Loads a fence method or a remedy, compiling it in this process. For components of our own
    /// making. Blocks for as long as that takes.
    pub fn load(&self, wasm: &[u8]) -> Result<Arc<Plugin>, LoadError> {
        self.load_within(wasm, &PluginLimits::default())
    }

    /// The same within limits of its own.
    pub fn load_within(
        &self,
        wasm: &[u8],
        limits: &PluginLimits,
    ) -> Result<Arc<Plugin>, LoadError> {
        let limits = limits.bounded();
        let manifest = manifest_called(wasm, &limits)?;
        let component =
            Component::from_binary(&self.engine, wasm).map_err(|error| compile_error(&error))?;
        let about = About { manifest, digest: Digest::of(wasm), limits };
        self.plugin_on_trial(&component, about)
    }

    /// Loads a fence method or a remedy from outside, compiling it in a child process made from `exe`
    /// (see [`crate::compile::compile_in_child`]). Blocks for as long as that takes.
    pub fn load_external(&self, exe: &Path, wasm: &[u8]) -> Result<Arc<Plugin>, LoadError> {
        self.load_external_within(exe, wasm, &PluginLimits::default())
    }

    /// The same within limits of its own, which bound the child, too.
    pub fn load_external_within(
        &self,
        exe: &Path,
        wasm: &[u8],
        limits: &PluginLimits,
    ) -> Result<Arc<Plugin>, LoadError> {
        let limits = limits.bounded();
        let manifest = manifest_called(wasm, &limits)?;
        let code = compile_in_child_within(exe, wasm, &limits)?;
        let component = precompiled::from_own_child(&self.engine, &code)
            .map_err(|error| compile_error(&error))?;
        let about = About { manifest, digest: Digest::of(wasm), limits };
        self.plugin_on_trial(&component, about)
    }

    /// Takes a component embedded in this binary, with the code `node-remedy-compile` made of it.
    /// The digest is that of the component.
    pub fn load_builtin(
        &self,
        wasm: &'static [u8],
        code: &'static [u8],
    ) -> Result<Arc<Plugin>, LoadError> {
        let limits = PluginLimits::builtin();
        let manifest = method_manifest(wasm, &limits)?;
        let component = precompiled::from_own_binary(&self.engine, code)
            .map_err(|error| compile_error(&error))?;
        let about = About { manifest, digest: Digest::of(wasm), limits };
        Ok(Arc::new(self.plugin(&component, about)?))
    }

    /// Loads a watcher of datagrams, compiling it in this process. For components of our own making.
    /// Blocks for as long as that takes.
    pub fn load_watcher(&self, wasm: &[u8]) -> Result<Arc<Watcher>, LoadError> {
        let manifest = watcher_manifest(wasm)?;
        let component =
            Component::from_binary(&self.engine, wasm).map_err(|error| compile_error(&error))?;
        self.watcher(&component, manifest, Digest::of(wasm))
    }

    /// Takes a watcher embedded in this binary, with the code `node-remedy-compile` made of it. The
    /// digest is that of the component.
    pub fn load_builtin_watcher(
        &self,
        wasm: &'static [u8],
        code: &'static [u8],
    ) -> Result<Arc<Watcher>, LoadError> {
        let manifest = watcher_manifest(wasm)?;
        let component = precompiled::from_own_binary(&self.engine, code)
            .map_err(|error| compile_error(&error))?;
        self.watcher(&component, manifest, Digest::of(wasm))
    }

    fn watcher(
        &self,
        component: &Component,
        manifest: Manifest,
        digest: Digest,
    ) -> Result<Arc<Watcher>, LoadError> {
        let pre = self.linker.instantiate_pre(component).and_then(DatagramWatcherPre::new);
        let pre = pre.map_err(|error| LoadError::Instantiate(format!("{error:#}")))?;
        Ok(Arc::new(Watcher::new(self.engine.clone(), pre, manifest, digest)))
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    fn plugin_on_trial(
        &self,
        component: &Component,
        about: About,
    ) -> Result<Arc<Plugin>, LoadError> {
        let plugin = self.plugin(component, about)?;
        plugin.try_out().map_err(LoadError::Instantiate)?;
        Ok(Arc::new(plugin))
    }

    fn plugin(&self, component: &Component, about: About) -> Result<Plugin, LoadError> {
        let linked = self.linker.instantiate_pre(component);
        let pre = linked.and_then(|linked| match about.manifest.kind {
            Kind::Remedy => RemedyPluginPre::new(linked).map(Pre::Remedy),
            Kind::Power | Kind::Fabric | Kind::Storage | Kind::Watch => {
                FenceMethodPre::new(linked).map(Pre::Method)
            }
        });
        let pre = pre.map_err(|error| LoadError::Instantiate(format!("{error:#}")))?;
        Ok(Plugin::new(self.engine.clone(), pre, about))
    }
}

/// The manifest of a fence method or of a remedy, which say which of both they are.
fn manifest_called(wasm: &[u8], limits: &PluginLimits) -> Result<Manifest, LoadError> {
    let manifest = match world_called(wasm) {
        World::Remedy => {
            let manifest = Manifest::parse(inspect(wasm, World::Remedy, limits)?)?;
            check_bare(&manifest, Kind::Remedy, "remedy", "a remedy")?;
            manifest
        }
        World::Method | World::Watcher => method_manifest(wasm, limits)?,
    };
    let (asked, max) = (manifest.memory_bytes, limits.memory_bytes);
    if asked > max {
        return Err(LoadError::Memory { asked, max });
    }
    Ok(manifest)
}

/// The manifest of a fence method. What only sees, or only decides, has nothing to call.
fn method_manifest(wasm: &[u8], limits: &PluginLimits) -> Result<Manifest, LoadError> {
    let manifest = Manifest::parse(inspect(wasm, World::Method, limits)?)?;
    if !manifest.kind.is_of_device() {
        let found = format!("{:?}", manifest.kind).to_lowercase();
        return Err(field("kind", found, "power, fabric or storage for a fence method").into());
    }
    Ok(manifest)
}

fn watcher_manifest(wasm: &[u8]) -> Result<Manifest, LoadError> {
    let manifest = Manifest::parse(inspect(wasm, World::Watcher, &PluginLimits::builtin())?)?;
    check_bare(&manifest, Kind::Watch, "watch", "a watcher")?;
    Ok(manifest)
}

/// A watcher and a remedy act on nothing and reach nothing.
fn check_bare(
    manifest: &Manifest,
    expected: Kind,
    word: &str,
    what: &str,
) -> Result<(), ManifestError> {
    let Manifest { kind, actions, asks, .. } = manifest;
    if *kind != expected {
        let found = format!("{kind:?}").to_lowercase();
        return Err(field("kind", found, format!("{word} for {what}")));
    }
    let counts = [
        ("actions", actions.len()),
        ("asks.endpoints", asks.endpoints.len()),
        ("asks.credentials", asks.credentials.len()),
    ];
    match counts.into_iter().find(|(_, count)| *count > 0) {
        Some((path, count)) => Err(field(path, count, format!("none for {what}"))),
        None => Ok(()),
    }
}

fn compile_error(error: &wasmtime::Error) -> LoadError {
    LoadError::Compile(format!("{error:#}"))
}
