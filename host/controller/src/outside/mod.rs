//! Plugins from outside: keeps what is loaded equal to the `FencePlugin`s in force.
//!
//! In the order it happens, for each object, on every replica: its source is read ([`fetch`]) and
//! unpacked ([`unpack`]), the digest is compared, the component is compiled in a child with limits and
//! tried out, and takes its place in [`crate::plugins::Plugins`]. Whoever leads says what came of it
//! ([`told`]). While a newer component cannot be had, the one that was loaded stays in force; an open
//! incident keeps the very component it began with.
//!
//! Not here: what a plugin may reach (its grants go into plans), and calling it.

mod fetch;
mod told;
pub mod unpack;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use node_remedy_api::conditions::{REASON_DIGEST_MISMATCH, REASON_LOADING, REASON_REFUSED};
use node_remedy_api::fenceplugin::{LoadedPlugin, PluginSource, Source};
use node_remedy_sandbox::limits::COMPONENT_BYTES_MAX;
use node_remedy_sandbox::{Digest, Plugin};

use self::fetch::fetch;
use crate::act::calls::chain;
use crate::cluster::Cluster;
use crate::controller::Parts;
use crate::observe::view;
use crate::plugins::{Component, Plugins};

/// After a source that could not be read, though it may be there.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// Why a plugin is not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One word, a reason of the condition `Ready`.
    pub reason: &'static str,
    /// A sentence for people.
    pub why: String,
    /// Whether trying again may help, though nothing was changed.
    pub may_pass: bool,
}

impl Refusal {
    fn new(reason: &'static str, why: impl Into<String>) -> Self {
        Self { reason, why: why.into(), may_pass: false }
    }

    /// The same, of something that may pass by itself.
    fn passing(reason: &'static str, why: impl Into<String>) -> Self {
        Self { may_pass: true, ..Self::new(reason, why) }
    }
}

/// What became of the `FencePlugin`s, by name.
#[derive(Debug, Default)]
pub struct Outside {
    /// What was wanted when it was last looked at, and what came of it.
    standing: RefCell<BTreeMap<String, Standing>>,
}

/// What became of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    wanted: Rc<Source>,
    /// `Ok`: what is wanted is loaded.
    pub result: Result<(), Refusal>,
}

/// Keeps the plugins loaded for as long as this process lives.
pub async fn keep<C: Cluster>(parts: Rc<Parts<C>>) -> Infallible {
    loop {
        let is_passing = settle_all(&parts).await;
        if parts.leads() {
            told::tell_all(&parts).await;
        }
        let woken = parts.plugins_configured.notified();
        if is_passing {
            // Whoever is woken, and whoever tries again, does the same.
            let _ = tokio::time::timeout(TRY_AGAIN, woken).await;
        } else {
            woken.await;
        }
    }
}

/// Looks at every object once; says whether one of them may do better later.
async fn settle_all<C: Cluster>(parts: &Parts<C>) -> bool {
    let wanted = parts.config.borrow().plugins();
    let names: BTreeSet<&str> = wanted.iter().map(|source| source.name.as_str()).collect();
    parts.outside.standing.borrow_mut().retain(|name, _| names.contains(name.as_str()));
    let in_use = in_use(parts);
    parts.calls.plugins.keep(&names, &in_use);
    let mut is_passing = false;
    for component in &in_use {
        is_passing |= have(parts, component).await.is_err_and(|refusal| refusal.may_pass);
    }
    for source in wanted {
        let result = settle(parts, &source).await;
        is_passing |= result.as_ref().is_err_and(|refusal| refusal.may_pass);
        if let Err(refusal) = &result {
            parts.calls.plugins.note_refused(&source.name, &refusal.why);
        }
        let standing = Standing { wanted: source.clone(), result };
        let before =
            parts.outside.standing.borrow_mut().insert(source.name.clone(), standing.clone());
        if before.as_ref() != Some(&standing) {
            match &standing.result {
                Ok(()) => {
                    tracing::info!(plugin = source.name, digest = source.spec.digest, "loaded");
                }
                Err(refusal) => {
                    tracing::warn!(
                        plugin = source.name,
                        reason = refusal.reason,
                        "{}",
                        refusal.why
                    );
                }
            }
        }
    }
    is_passing
}

/// The components that open incidents began with.
fn in_use<C: Cluster>(parts: &Parts<C>) -> BTreeSet<Component> {
    let nodefences = parts.mirror.nodefences.all();
    let open = nodefences.values().map(|kept| &kept.0).filter(|one| view::is_open(one));
    let methods = open.flat_map(|one| &one.spec.plan.methods);
    let methods = methods.filter_map(|method| {
        let (plugin, facts) = (method.plugin.clone()?, method.facts.as_ref()?);
        Some(Component { plugin, digest: facts.digest.clone() })
    });
    methods.filter(|component| !Plugins::is_builtin(&component.plugin)).collect()
}

/// Sees that what an incident began with is loaded, whoever it began with: another process knew where it
/// stood, and said so in the status.
async fn have<C: Cluster>(parts: &Parts<C>, component: &Component) -> Result<(), Refusal> {
    let Component { plugin, digest } = component;
    if parts.calls.plugins.find(plugin, Some(digest)).is_ok() {
        return Ok(());
    }
    let status = parts.mirror.plugins.all().get(plugin).and_then(|object| object.0.status.clone());
    let loaded = status.unwrap_or_default().loaded;
    let Some(LoadedPlugin { source, .. }) = loaded.into_iter().rfind(|one| one.digest == *digest)
    else {
        return Ok(());
    };
    let loaded = fetch_and_load(parts, plugin, digest, &source).await;
    let loaded = loaded.inspect_err(|refusal| {
        tracing::warn!(
            plugin,
            digest,
            reason = refusal.reason,
            "an incident began with it: {}",
            refusal.why
        );
    })?;
    parts.calls.plugins.put_beside(plugin, loaded);
    tracing::info!(plugin, digest, "loaded for an incident that began with it");
    Ok(())
}

/// Sees that what one object wants is loaded.
async fn settle<C: Cluster>(parts: &Parts<C>, source: &Rc<Source>) -> Result<(), Refusal> {
    let (plugins, name) = (&parts.calls.plugins, &source.name);
    if plugins.take_loaded(name, &source.spec.digest) {
        return Ok(());
    }
    if let Some(before) = parts.outside.last(source) {
        return Err(before);
    }
    let plugin = fetch_and_load(parts, name, &source.spec.digest, &source.spec.source).await?;
    plugins.put(name, plugin);
    Ok(())
}

/// From a source to a component that was tried out.
async fn fetch_and_load<C: Cluster>(
    parts: &Parts<C>,
    name: &str,
    digest: &str,
    source: &PluginSource,
) -> Result<Arc<Plugin>, Refusal> {
    let packed = fetch(parts, source).await?;
    let plugins = parts.calls.plugins.clone();
    let (name, digest, key) = (name.to_owned(), digest.to_owned(), source.config_map.key.clone());
    let loading = move || load(&plugins, &name, &digest, &key, &packed);
    let plugin = parts.calls.executor.block(loading).await;
    plugin.unwrap_or_else(|| {
        Err(Refusal::passing(REASON_LOADING, "loading it was broken off; it is tried again"))
    })
}

impl Outside {
    /// What came of exactly this before, where trying again cannot help.
    fn last(&self, source: &Rc<Source>) -> Option<Refusal> {
        let standing = self.standing.borrow();
        let before = standing.get(&source.name).filter(|before| before.wanted == *source)?;
        let refusal = before.result.as_ref().err()?;
        let is_of_bytes = [REASON_DIGEST_MISMATCH, REASON_REFUSED].contains(&refusal.reason);
        (is_of_bytes && !refusal.may_pass).then(|| refusal.clone())
    }

    /// What became of the object of this name.
    pub fn standing(&self, name: &str) -> Option<Standing> {
        self.standing.borrow().get(name).cloned()
    }
}

/// From packed bytes to a plugin. Blocks, up to half a minute.
fn load(
    plugins: &Plugins,
    name: &str,
    wanted: &str,
    key: &str,
    packed: &[u8],
) -> Result<Arc<Plugin>, Refusal> {
    let wasm = unpack::unpack(key, packed, COMPONENT_BYTES_MAX)
        .map_err(|error| Refusal::new(REASON_REFUSED, chain(&error)))?;
    let found = Digest::of(&wasm).to_string();
    if found != wanted {
        let why = format!("found a component of digest {found}, expected {wanted}");
        return Err(Refusal::new(REASON_DIGEST_MISMATCH, why));
    }
    let plugin =
        plugins.load_outside(&wasm).map_err(|error| Refusal::new(REASON_REFUSED, chain(&error)))?;
    let said = &plugin.manifest().name;
    if said != name {
        let why = format!(
            "its manifest calls it {said:?}, the FencePlugin {name:?}; expected one name, so that it \
             is the same everywhere"
        );
        return Err(Refusal::new(REASON_REFUSED, why));
    }
    Ok(plugin)
}
