//! Plugins from outside: keeps what is loaded equal to the `FencePlugin`s in force.
//!
//! In the order it happens, for each object, on every replica: its source is read ([`fetch`]) and
//! unpacked ([`unpack`]), the digest is compared and the signature checked ([`signed`]), the component is
//! compiled in a child with limits and tried out, and takes its place in [`crate::plugins::Plugins`]. Whoever leads says what came of it
//! ([`told`]). While a newer component cannot be had, the one that was loaded stays in force; an open
//! incident keeps the very component it began with.
//!
//! Not here: what a plugin may reach (its grants go into plans), and calling it.

mod fetch;
mod limited;
mod signed;
mod told;
pub mod unpack;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use node_remedy_api::conditions::{REASON_DIGEST_MISMATCH, REASON_LOADING, REASON_REFUSED};
use node_remedy_api::fenceplugin::{LoadedPlugin, PluginSource, Source, Verify};
use node_remedy_sandbox::{Digest, Plugin, PluginLimits};

use self::fetch::{Fetched, fetch};
pub use self::limited::limits;
use self::signed::Verified;
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
    /// The version of its ConfigMap that the mirror held then.
    seen: Option<String>,
    /// `Ok`: what is wanted is loaded.
    result: Result<Verified, Refusal>,
    /// What is known of the signature of what is loaded, be it wanted or not.
    in_force: Verified,
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
        let standing = settle(parts, source.clone()).await;
        is_passing |= standing.result.as_ref().is_err_and(|refusal| refusal.may_pass);
        let mut standings = parts.outside.standing.borrow_mut();
        let before = standings.insert(source.name.clone(), standing.clone());
        if before.is_none_or(|before| before.result != standing.result) {
            log(&source, &standing.result);
        }
    }
    is_passing
}

fn log(source: &Source, result: &Result<Verified, Refusal>) {
    let (plugin, digest) = (&source.name, &source.spec.digest);
    match result {
        Ok(verified) => tracing::info!(plugin, digest, signature = %verified, "loaded"),
        Err(Refusal { reason, why, .. }) => tracing::warn!(plugin, digest, reason, "{why}"),
    }
}

/// Sees that what one object wants is loaded; nothing that it does not trust is called any more.
async fn settle<C: Cluster>(parts: &Parts<C>, wanted: Rc<Source>) -> Standing {
    let before = parts.outside.standing(&wanted.name);
    let map = format!("{}/{}", parts.calls.namespace, wanted.spec.source.config_map.name);
    let seen = parts.mirror.config_maps.all().get(&map).and_then(|kept| kept.0.resource_version());
    if let Some(before) = &before
        && before.wanted == wanted
        && (before.result.is_ok() || before.seen == seen && !before.may_pass())
    {
        return before.clone();
    }
    let plugins = &parts.calls.plugins;
    let result = take(parts, &wanted).await;
    let mut in_force = before.map(|before| before.in_force).unwrap_or_default();
    match &result {
        Ok(verified) => in_force = verified.clone(),
        Err(refusal) => {
            plugins.note_refused(&wanted.name, &refusal.why);
            if !in_force.suffices(wanted.spec.verify.as_ref()) {
                plugins.withdraw(&wanted.name);
            }
        }
    }
    Standing { wanted, seen, result, in_force }
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
    let Some(LoadedPlugin { source, limits: written, .. }) =
        loaded.into_iter().rfind(|one| one.digest == *digest)
    else {
        return Ok(());
    };
    // It was verified when the incident began, and its digest stands in the incident.
    let wanted = Wanted { digest, limits: limits(written.as_ref()), verify: None };
    let loaded = fetch_and_load(parts, plugin, &source, wanted).await;
    let (loaded, _) = loaded.inspect_err(|refusal| {
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

/// Has what one object wants called by its name.
async fn take<C: Cluster>(parts: &Parts<C>, source: &Source) -> Result<Verified, Refusal> {
    let (plugins, name, spec) = (&parts.calls.plugins, &source.name, &source.spec);
    let limits = limits(spec.limits.as_ref());
    if spec.verify.is_none() && plugins.take_loaded(name, &spec.digest, &limits) {
        return Ok(Verified::NotAsked);
    }
    let wanted = Wanted { digest: &spec.digest, limits, verify: spec.verify.as_ref() };
    let (plugin, verified) = fetch_and_load(parts, name, &spec.source, wanted).await?;
    plugins.put(name, plugin);
    Ok(verified)
}

/// What a component at a source must be, and may use.
struct Wanted<'a> {
    digest: &'a str,
    limits: PluginLimits,
    verify: Option<&'a Verify>,
}

/// From a source to a component that was tried out.
async fn fetch_and_load<C: Cluster>(
    parts: &Parts<C>,
    name: &str,
    source: &PluginSource,
    wanted: Wanted<'_>,
) -> Result<(Arc<Plugin>, Verified), Refusal> {
    let fetched = fetch(parts, source).await?;
    let plugins = parts.calls.plugins.clone();
    let Wanted { digest, limits, verify } = wanted;
    let (name, digest, verify) = (name.to_owned(), digest.to_owned(), verify.cloned());
    let loading = move || {
        let wanted = Wanted { digest: &digest, limits, verify: verify.as_ref() };
        load(&plugins, &name, &fetched, &wanted)
    };
    let loaded = parts.calls.executor.block(loading).await;
    loaded.unwrap_or_else(|| {
        Err(Refusal::passing(REASON_LOADING, "loading it was broken off; it is tried again"))
    })
}

/// Which of these keys, in PEM, made this signature over a component; for a person who asks beforehand.
///
/// # Errors
/// A sentence where none did.
pub fn signed_by(wasm: &[u8], signature: Option<&str>, keys: &[String]) -> Result<String, String> {
    let key = signed::signer(wasm, signature, keys, "the file", "--signature");
    key.map(|key| key.to_string()).map_err(|refusal| refusal.why)
}

impl Standing {
    fn may_pass(&self) -> bool {
        self.result.as_ref().is_err_and(|refusal| refusal.may_pass)
    }
}

impl Outside {
    /// What became of the object of this name.
    fn standing(&self, name: &str) -> Option<Standing> {
        self.standing.borrow().get(name).cloned()
    }
}

/// From packed bytes to a plugin. Blocks, up to half a minute, or as long as its limits allow.
fn load(
    plugins: &Plugins,
    name: &str,
    fetched: &Fetched,
    wanted: &Wanted<'_>,
) -> Result<(Arc<Plugin>, Verified), Refusal> {
    let Wanted { digest, limits, verify } = wanted;
    let wasm = unpack::unpack(&fetched.name, &fetched.packed, limits.component_len())
        .map_err(|error| Refusal::new(REASON_REFUSED, chain(&error)))?;
    let found = Digest::of(&wasm).to_string();
    if found != *digest {
        let why = format!("found a component of digest {found}, expected {digest}");
        return Err(Refusal::new(REASON_DIGEST_MISMATCH, why));
    }
    let verified = signed::verified(&wasm, fetched, *verify)?;
    if let Ok(loaded) = plugins.find(name, Some(digest))
        && loaded.limits() == limits
    {
        return Ok((loaded, verified));
    }
    let plugin = plugins
        .load_within(&wasm, limits)
        .map_err(|error| Refusal::new(REASON_REFUSED, chain(&error)))?;
    let said = &plugin.manifest().name;
    if said != name {
        let why = format!(
            "its manifest calls it {said:?}, the FencePlugin {name:?}; expected one name, so that it \
             is the same everywhere"
        );
        return Err(Refusal::new(REASON_REFUSED, why));
    }
    Ok((plugin, verified))
}
