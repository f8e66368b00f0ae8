//! Plugins from outside: keeps what is loaded equal to the `FencePlugin`s in force.
//!
//! In the order it happens, for each object, on every replica: its source is read ([`fetch`], [`from_registry`]) and
//! unpacked, the digest is compared and the signature checked ([`signature`]), the component is
//! compiled in a child with limits and tried out, and takes its place in [`node_remedy_store::store::Plugins`]. Whoever leads says what came of it
//! ([`status`]). While a newer component cannot be had, the one that was loaded stays in force; an open
//! incident keeps the very component it began with.
//!
//! Not here: what a plugin may reach (its grants go into plans), and calling it.

pub mod desired;
pub mod fetch;
pub mod from_registry;
pub mod granted;
pub mod in_flight;
pub mod limits;
pub mod signature;
pub mod status;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use node_remedy_api::conditions::{REASON_DIGEST_MISMATCH, REASON_LOADING, REASON_REFUSED};
use node_remedy_api::fenceplugin::{FencePluginSpec, LoadedPlugin, Source};
use node_remedy_api::nodefence::DecidingPlugin;
use node_remedy_context::context::Context;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::text::chain;
use node_remedy_sandbox::manifest::Kind;
use node_remedy_sandbox::{Digest, Plugin};
use node_remedy_store::state::Verified;
use node_remedy_store::store::{Component, Plugins};
use tokio::time::Instant;

use crate::desired::{Fetched, Found};
use crate::fetch::fetch;
use crate::in_flight::UnderWay;

pub use crate::desired::{DesiredPlugin, ToLoad};
pub use crate::limits::limits;
pub use node_remedy_registry::refusal::Refusal;
pub use node_remedy_store::state::{ExternalPlugins, Standing};
/// After a source that could not be read, though it may be there.
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// A registry that goes on refusing is asked less and less often: some count what they are asked.
const TRY_AGAIN_MAX: Duration = Duration::from_mins(5);

/// Keeps the plugins loaded for as long as this process lives.
pub async fn keep<C: Cluster>(context: Rc<Context<C>>) -> Infallible {
    let mut under_way = UnderWay::default();
    let mut errors_are_due = false;
    loop {
        let mut is_passing = settle_all(&context, &mut under_way).await;
        if errors_are_due {
            context.calls.last_errors.are_written();
        }
        if context.leads() {
            let is_told = crate::status::tell_all(&context, errors_are_due).await;
            errors_are_due &= !is_told;
            is_passing |= !is_told;
        } else {
            errors_are_due = false;
        }
        // Whoever is woken, and whoever tries again, does the same.
        tokio::select! {
            biased;
            () = under_way.one_is_done() => {}
            () = context.plugins_configured.notified() => {}
            () = context.calls.last_errors.are_due() => errors_are_due = true,
            () = tokio::time::sleep(TRY_AGAIN), if is_passing => {}
        }
    }
}

/// Looks at every object once; says whether one of them may do better later.
async fn settle_all<C: Cluster>(context: &Rc<Context<C>>, under_way: &mut UnderWay) -> bool {
    let wanted = context.config.borrow().plugins();
    let names: BTreeSet<&str> = wanted.iter().map(|source| source.name.as_str()).collect();
    context.external_plugins.standing.borrow_mut().retain(|name, _| names.contains(name.as_str()));
    let in_use = in_use(context);
    context.calls.plugins.keep(&names, &in_use);
    context.calls.last_errors.keep(&names);
    let mut is_passing = false;
    for component in in_use {
        let Some(earlier) = to_have(context, &component) else { continue };
        if earlier.source.oci.is_none() {
            is_passing |= have(context, &component, &earlier).await.is_err_and(|it| it.may_pass);
            continue;
        }
        let (context, key) =
            (context.clone(), format!("{}@{}", component.plugin, component.digest));
        under_way.begin(key, async move {
            // Said there.
            if have(&context, &component, &earlier).await.is_err() {
                tokio::time::sleep(TRY_AGAIN).await;
            }
        });
    }
    for source in wanted {
        // At once, whatever is under way for it.
        withdraw_untrusted(context, &source);
        if source.spec.source.oci.is_none() {
            is_passing |= settle_and_keep(context, source).await;
            continue;
        }
        if let Some(before) = settled(context, &source) {
            is_passing |= before.may_pass();
            continue;
        }
        let (context, key) = (context.clone(), source.name.clone());
        under_way.begin(key, async move {
            settle_and_keep(&context, source).await;
        });
    }
    is_passing
}

/// The same for one; says whether it may do better later.
async fn settle_and_keep<C: Cluster>(context: &Context<C>, source: Rc<Source>) -> bool {
    let standing = settle(context, source.clone()).await;
    if !is_wanted(context, &source) {
        // It took its time, and the object says something else by now.
        return false;
    }
    let mut standings = context.external_plugins.standing.borrow_mut();
    let before = standings.insert(source.name.clone(), standing.clone());
    if before.is_none_or(|before| before.result != standing.result) {
        log(&source, &standing.result);
    }
    standing.may_pass()
}

/// Whether the object still says so.
fn is_wanted<C: Cluster>(context: &Context<C>, source: &Rc<Source>) -> bool {
    context.config.borrow().plugins().contains(source)
}

/// What none of the keys that are trusted now has signed is called no more. Whether another one signed it, too, a
/// registry may take long to say.
fn withdraw_untrusted<C: Cluster>(context: &Context<C>, wanted: &Source) {
    let before = context.external_plugins.standing(&wanted.name).map(|before| before.in_force);
    if let Some(Verified::By(_)) = &before
        && !before.is_some_and(|before| before.suffices(wanted.spec.verify.as_ref()))
    {
        context.calls.plugins.withdraw(&wanted.name);
    }
}

fn log(source: &Source, result: &Result<Verified, Refusal>) {
    let (plugin, digest) = (&source.name, &source.spec.digest);
    match result {
        Ok(verified) => tracing::info!(plugin, digest, signature = %verified, "loaded"),
        Err(Refusal { reason, why, .. }) => tracing::warn!(plugin, digest, reason, "{why}"),
    }
}

/// What became of it, where looking again would find nothing else, or it is too early to.
fn settled<C: Cluster>(context: &Context<C>, wanted: &Rc<Source>) -> Option<Standing> {
    let before = context.external_plugins.standing(&wanted.name)?;
    let is_same = before.wanted == *wanted
        && (before.result.is_ok()
            || before.seen == seen(context, wanted) && !before.may_pass()
            || before.not_before.is_some_and(|then| Instant::now() < then));
    is_same.then_some(before)
}

/// The version of its ConfigMap that the mirror holds.
fn seen<C: Cluster>(context: &Context<C>, wanted: &Source) -> Option<String> {
    let map = wanted.spec.source.config_map.as_ref()?;
    let map = format!("{}/{}", context.calls.namespace, map.name);
    context.caches.config_maps.all().get(&*map)?.0.resource_version()
}

/// Sees that what one object wants is loaded; nothing that it does not trust is called any more.
async fn settle<C: Cluster>(context: &Context<C>, wanted: Rc<Source>) -> Standing {
    if let Some(before) = settled(context, &wanted) {
        return before;
    }
    let (before, seen) = (context.external_plugins.standing(&wanted.name), seen(context, &wanted));
    let plugins = &context.calls.plugins;
    let mut in_force = before.as_ref().map(|before| before.in_force.clone()).unwrap_or_default();
    withdraw_untrusted(context, &wanted);
    let resolved = resolved(context, &wanted, before.as_ref());
    let result = take(context, &wanted, &resolved).await;
    let (mut manifest, mut refused, mut not_before) = (resolved, 0, None);
    let result = match result {
        Ok((verified, found)) => {
            if manifest.is_empty() {
                manifest = found;
            }
            in_force = verified.clone();
            Ok(verified)
        }
        Err(refusal) => {
            plugins.note_refused(&wanted.name, &refusal.why);
            if !in_force.suffices(wanted.spec.verify.as_ref()) {
                plugins.withdraw(&wanted.name);
            }
            if wanted.spec.source.oci.is_some() {
                let same = before.filter(|before| before.wanted == wanted);
                refused = same.map_or(0, |before| before.refused.saturating_add(1));
                let rest = TRY_AGAIN.saturating_mul(2_u32.saturating_pow(refused));
                // Its turn has come when all are looked at again.
                not_before = Some(Instant::now() + rest.min(TRY_AGAIN_MAX) - TRY_AGAIN / 2);
            }
            Err(refusal)
        }
    };
    Standing { wanted, seen, result, in_force, manifest, refused, not_before }
}

/// The manifest that what is wanted was resolved to before, by whichever replica: empty where it is no image,
/// or none was.
fn resolved<C: Cluster>(
    context: &Context<C>,
    wanted: &Source,
    before: Option<&Standing>,
) -> String {
    let spec = &wanted.spec;
    let told = context.caches.plugins.all().get(wanted.name.as_str()).and_then(|object| {
        let loaded = &object.0.status.as_ref()?.loaded;
        let same =
            loaded.iter().rfind(|one| one.digest == spec.digest && one.source == spec.source);
        Some(same?.manifest.clone()).filter(|manifest| !manifest.is_empty())
    });
    let own = before.filter(|before| {
        let before = &before.wanted.spec;
        before.digest == spec.digest && before.source == spec.source
    });
    told.or_else(|| Some(own?.manifest.clone())).unwrap_or_default()
}

/// The components that open incidents began with.
fn in_use<C: Cluster>(context: &Context<C>) -> BTreeSet<Component> {
    let nodefences = context.caches.nodefences.all();
    let open = nodefences
        .values()
        .map(|kept| &kept.0)
        .filter(|one| node_remedy_observe::nodefences::is_open(one));
    let components = open.flat_map(|one| {
        let methods = one.spec.plan.methods.iter().filter_map(|method| {
            let (plugin, facts) = (method.plugin.clone()?, method.facts.as_ref()?);
            Some(Component { plugin, digest: facts.digest.clone() })
        });
        let remedies = one.spec.ladder.iter().filter_map(|remedy_step| {
            let DecidingPlugin { name, digest } = remedy_step.plugin.clone()?;
            Some(Component { plugin: name, digest })
        });
        methods.chain(remedies)
    });
    components.filter(|component| !Plugins::is_builtin(&component.plugin)).collect()
}

/// Where what an incident began with stood, if it is not loaded: another process may have known, and said so in
/// the status.
fn to_have<C: Cluster>(context: &Context<C>, component: &Component) -> Option<LoadedPlugin> {
    let Component { plugin, digest } = component;
    if context.calls.plugins.find(plugin, Some(digest)).is_ok() {
        return None;
    }
    let status = context
        .caches
        .plugins
        .all()
        .get(plugin.as_str())
        .and_then(|object| object.0.status.clone());
    status.unwrap_or_default().loaded.into_iter().rfind(|one| one.digest == *digest)
}

/// Sees that what an incident began with is loaded, whoever it began with.
async fn have<C: Cluster>(
    context: &Context<C>,
    component: &Component,
    LoadedPlugin { source, manifest, limits: written, .. }: &LoadedPlugin,
) -> Result<(), Refusal> {
    let Component { plugin, digest } = component;
    // It was verified when the incident began, and its digest stands in the incident.
    let wanted =
        DesiredPlugin { source, digest, manifest, limits: limits(written.as_ref()), verify: None };
    let loaded = fetch_and_load(context, plugin, wanted).await;
    let Loaded { plugin: loaded, .. } = loaded.inspect_err(|refusal| {
        tracing::warn!(
            plugin,
            digest,
            reason = refusal.reason,
            "an incident began with it: {}",
            refusal.why
        );
    })?;
    context.calls.plugins.put_beside(plugin, loaded);
    tracing::info!(plugin, digest, "loaded for an incident that began with it");
    Ok(())
}

/// Has what one object wants called by its name; gives the manifest that its image is, too, where it is known.
async fn take<C: Cluster>(
    context: &Context<C>,
    source: &Rc<Source>,
    manifest: &str,
) -> Result<(Verified, String), Refusal> {
    let (plugins, name, spec) = (&context.calls.plugins, &source.name, &source.spec);
    let limits = limits(spec.limits.as_ref());
    if spec.verify.is_none()
        && let Ok(loaded) = plugins.find(name, Some(&spec.digest))
    {
        refuse_grants(spec, &loaded)?;
        if plugins.take_loaded(name, &spec.digest, &limits) {
            return Ok((Verified::NotAsked, String::new()));
        }
    }
    let wanted = DesiredPlugin {
        source: &spec.source,
        digest: &spec.digest,
        manifest,
        limits,
        verify: spec.verify.as_ref(),
    };
    let Loaded { plugin, verified, manifest } = fetch_and_load(context, name, wanted).await?;
    refuse_grants(spec, &plugin)?;
    if !is_wanted(context, source) {
        return Err(Refusal::passing(REASON_LOADING, "its object says something else by now"));
    }
    plugins.put(name, plugin);
    Ok((verified, manifest))
}

/// A component that was fetched and tried out.
struct Loaded {
    plugin: Arc<Plugin>,
    verified: Verified,
    manifest: String,
}

/// A remedy reaches nothing, so that whoever grants it something means another plugin.
fn refuse_grants(spec: &FencePluginSpec, plugin: &Plugin) -> Result<(), Refusal> {
    let granted = spec.grants.len();
    if plugin.manifest().kind != Kind::Remedy || granted == 0 {
        return Ok(());
    }
    let why = format!(
        "found {granted} grants, expected none: a plugin of kind remedy decides, and reaches nothing"
    );
    Err(Refusal::new(REASON_REFUSED, why))
}

/// From a source to a component that was tried out.
async fn fetch_and_load<C: Cluster>(
    context: &Context<C>,
    name: &str,
    wanted: DesiredPlugin<'_>,
) -> Result<Loaded, Refusal> {
    let _room = match wanted.source.oci {
        // Never closed.
        Some(_) => context.external_plugins.fetching.acquire().await.ok(),
        None => None,
    };
    let fetched = Arc::new(fetch(context, wanted).await?);
    let one_at_a_time = context.external_plugins.loading.lock().await;
    let (plugins, to_load) = (context.calls.plugins.clone(), fetched.clone());
    let (name, digest, verify) =
        (name.to_owned(), wanted.digest.to_owned(), wanted.verify.cloned());
    let limits = wanted.limits;
    let loading = move || {
        let wanted = ToLoad { digest: &digest, limits: &limits, verify: verify.as_ref() };
        load(&plugins, &name, &to_load, &wanted)
    };
    let loaded = context.calls.executor.block(loading).await;
    drop(one_at_a_time);
    let (plugin, verified) = loaded.unwrap_or_else(|| {
        Err(Refusal::passing(REASON_LOADING, "loading it was broken off; it is tried again"))
    })?;
    // What could not be loaded is not worth its room.
    let manifest = match &fetched.found {
        Found::Beside { .. } => String::new(),
        Found::Artefact { kept, manifest, is_new } => {
            if *is_new {
                crate::from_registry::keep(context, wanted.digest, kept.clone()).await;
            }
            manifest.clone()
        }
    };
    Ok(Loaded { plugin, verified, manifest })
}

/// Which of these keys, in PEM, made this signature over a component; for a person who asks beforehand.
///
/// # Errors
/// A sentence where none did.
pub fn signed_by(wasm: &[u8], signature: Option<&str>, keys: &[String]) -> Result<String, String> {
    let key = crate::signature::signer(wasm, signature, keys, "the file", "--signature");
    key.map(|key| key.to_string()).map_err(|refusal| refusal.why)
}

/// From packed bytes to a plugin. Blocks, up to half a minute.
fn load(
    plugins: &Plugins,
    name: &str,
    fetched: &Fetched,
    wanted: &ToLoad<'_>,
) -> Result<(Arc<Plugin>, Verified), Refusal> {
    let ToLoad { digest, limits, verify } = *wanted;
    let wasm = node_remedy_registry::unpack::unpack(
        &fetched.name,
        fetched.packed(),
        limits.component_len(),
    )
    .map_err(|error| Refusal::new(REASON_REFUSED, chain(&error)))?;
    let found = Digest::of(&wasm).to_string();
    if found != digest {
        let why = format!("found a component of digest {found}, expected {digest}");
        return Err(Refusal::new(REASON_DIGEST_MISMATCH, why));
    }
    let verified = crate::signature::verified(&wasm, fetched, verify)?;
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
