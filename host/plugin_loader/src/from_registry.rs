//! A component from a registry: the cache first, then the mirror, then the registry itself.

use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::Secret;
use node_remedy_api::conditions::{
    REASON_LOADING, REASON_REFUSED, REASON_SOURCE_MISSING, REASON_SOURCE_UNAVAILABLE,
};
use node_remedy_api::fenceplugin::{Image, OciSource, Registry, Verify};
use node_remedy_context::context::Context;
use node_remedy_registry::artifact::Artefact;
use node_remedy_registry::cache::{Cache, CachedImage};
use node_remedy_registry::client::Client;
use node_remedy_registry::credentials::Account;
use node_remedy_registry::pull::{PullSpec, pull_in_time};
use node_remedy_registry::refusal::Refusal;
use node_remedy_registry::transport::{Initiator, Transport};
use node_remedy_runtime::cluster::{At, Cluster};
use node_remedy_sandbox::signature::PublicKey;
use node_remedy_sandbox::{Authorities, Trust};
use zeroize::Zeroizing;

use crate::signature::read_keys;

/// What an object wants.
#[derive(Debug, Clone, Copy)]
pub struct ImageRequest<'a> {
    pub(crate) source: &'a OciSource,
    /// The component's digest.
    pub(crate) component: &'a str,
    /// The manifest that the image was resolved to before; empty: it was not.
    pub(crate) manifest: &'a str,
    /// Whose signature is wanted.
    pub(crate) verify: Option<&'a Verify>,
    /// How many bytes the component may have.
    pub(crate) component_bytes_max: u64,
}

/// What was had.
#[derive(Debug)]
pub struct Had {
    pub(crate) artefact: Artefact,
    /// The manifest that the image is resolved to; empty where that is not known.
    pub(crate) manifest: String,
    /// Whether it comes from the registry, and the cache has not got it.
    pub(crate) is_new: bool,
}

/// Fetches it, its digests checked.
pub async fn fetch<C: Cluster>(
    context: &Context<C>,
    asked: ImageRequest<'_>,
) -> Result<Had, Refusal> {
    let image = asked.source.image.parse::<Image>();
    let image = image
        .map_err(|error| Refusal::new(REASON_REFUSED, format!("spec.source.oci.image: {error}")))?;
    let image = if asked.manifest.is_empty() { image } else { image.at(asked.manifest) };
    let keys = asked.verify.map(|verify| read_keys(&verify.keys)).transpose()?;
    let cached = cached(context, asked.component).await;
    let had = |CachedImage { image: from, artefact }: CachedImage| {
        let resolved = if from == asked.source.image { artefact.digest() } else { String::new() };
        let known = [asked.manifest, image.digest.as_deref().unwrap_or_default(), &resolved];
        let manifest = known.into_iter().find(|one| !one.is_empty()).unwrap_or_default().to_owned();
        Had { artefact, manifest, is_new: false }
    };
    let is_signed = |kept: &CachedImage| {
        keys.as_ref().is_none_or(|keys| kept.artefact.signer("the cache", keys).is_ok())
    };
    let cached = match cached {
        Some(kept) if is_signed(&kept) => return Ok(had(kept)),
        other => other,
    };
    let fetched = from_registries(context, asked, &image, keys.as_deref()).await;
    match (fetched, cached) {
        (Ok(artefact), _) => Ok(Had { manifest: artefact.digest(), artefact, is_new: true }),
        // Whoever lets unsigned components run lets this one, too.
        (Err(refusal), Some(kept)) if refusal.may_pass && !is_required(asked.verify) => {
            tracing::warn!("{}; the cached component is used, unsigned", refusal.why);
            Ok(had(kept))
        }
        (Err(refusal), _) => Err(refusal),
    }
}

/// Keeps what was fetched and loaded, for the next start.
pub async fn keep<C: Cluster>(context: &Context<C>, component: &str, kept: CachedImage) {
    let Some(cache) = context.external_plugins.cache.clone() else { return };
    let (component, now) = (component.to_owned(), now(context));
    let put = context.calls.executor.block(move || cache.put(&component, &kept, now)).await;
    if let Some(Err(error)) = put {
        tracing::warn!(%error, "failed to keep a component in the cache");
    }
}

/// What the cache holds of a component.
pub async fn cached<C: Cluster>(context: &Context<C>, component: &str) -> Option<CachedImage> {
    let cache: Cache = context.external_plugins.cache.clone()?;
    let (component, now) = (component.to_owned(), now(context));
    context.calls.executor.block(move || cache.get(&component, now)).await.flatten()
}

/// The time, as the cache stamps its files.
pub fn now<C: Cluster>(context: &Context<C>) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(context.clock.now().0)
}

/// The type of a pull secret, and its one key.
const PULL_SECRET: &str = "kubernetes.io/dockerconfigjson";

const ACCOUNTS: &str = ".dockerconfigjson";

fn is_required(verify: Option<&Verify>) -> bool {
    use node_remedy_api::fenceplugin::VerifyPolicy::{Require, Warn};
    verify.is_some_and(|verify| match verify.policy {
        Require => true,
        Warn => false,
    })
}

/// The mirror first, and whatever is wrong with it, the registry itself.
async fn from_registries<C: Cluster>(
    context: &Context<C>,
    asked: ImageRequest<'_>,
    image: &Image,
    keys: Option<&[PublicKey]>,
) -> Result<Artefact, Refusal> {
    let accounts = accounts(context, asked.source).await?;
    let accounts = accounts.as_ref().map(|accounts| accounts.as_slice());
    let mirror = asked.source.mirror.as_deref().map(str::parse::<Registry>).transpose();
    let mirror = mirror.map_err(|error| {
        Refusal::new(REASON_REFUSED, format!("spec.source.oci.mirror: {error}"))
    })?;
    let mut mirrored = None;
    if let Some(mirror) = &mirror {
        let had = from_registry(context, asked, image, mirror, accounts);
        let had = had.await.and_then(|artefact| {
            // A mirror may have the component and not its signatures.
            let signer = keys.map(|keys| artefact.signer("it", keys)).transpose();
            signer.map(|_| artefact)
        });
        match had {
            Ok(artefact) => return Ok(artefact),
            Err(refusal) => mirrored = Some(refusal.why),
        }
    }
    let had = from_registry(context, asked, image, &image.registry, accounts).await;
    let refusal = |refusal: Refusal| {
        let because = mirrored.map(|why| format!("; the mirror before it: {why}"));
        let why = format!("{}{}", refusal.why, because.unwrap_or_default());
        Refusal { why, ..refusal }
    };
    let artefact = had.map_err(refusal)?;
    match keys.map(|keys| artefact.signer(&image.to_string(), keys)) {
        Some(Err(refusal)) if is_required(asked.verify) => Err(refusal),
        Some(Err(_) | Ok(_)) | None => Ok(artefact),
    }
}

async fn from_registry<C: Cluster>(
    context: &Context<C>,
    asked: ImageRequest<'_>,
    image: &Image,
    registry: &Registry,
    accounts: Option<&[u8]>,
) -> Result<Artefact, Refusal> {
    let account = match accounts {
        Some(accounts) => Account::of(accounts, registry).map_err(|why| {
            let secret = asked.source.pull_secret.as_deref().unwrap_or_default();
            Refusal::passing(REASON_SOURCE_UNAVAILABLE, format!("pull secret {secret}: {why}"))
        })?,
        None => None,
    };
    let trust = match &asked.source.tls {
        Some(tls) => Trust::Authorities(Authorities::from_pem(tls.ca_bundle.as_bytes()).map_err(
            |error| Refusal::new(REASON_REFUSED, format!("spec.source.oci.tls.caBundle: {error}")),
        )?),
        None => Trust::SystemAuthorities,
    };
    let way = Transport {
        net: &*context.calls.seams.net,
        names: &*context.calls.names,
        guarded: &context.calls.guarded,
        trust,
        plain_http: asked.source.plain_http,
        initiator: Initiator::Object,
    };
    let mut client = Client::new(way, registry, &image.repository, account);
    let wanted = PullSpec {
        reference: image.reference(),
        component: asked.component,
        component_bytes_max: asked.component_bytes_max,
        signatures: asked.verify.is_some(),
    };
    let pulled = pull_in_time(&mut client, wanted).await?;
    let component = asked.component.to_owned();
    let checked = context.calls.executor.block(move || pulled.checked(&component)).await;
    let checked = checked.ok_or_else(|| {
        Refusal::passing(REASON_LOADING, "checking it was broken off; it is tried again")
    })?;
    Ok(checked?)
}

/// The pull secret, where one is named.
async fn accounts<C: Cluster>(
    context: &Context<C>,
    source: &OciSource,
) -> Result<Option<Zeroizing<Vec<u8>>>, Refusal> {
    let Some(name) = &source.pull_secret else { return Ok(None) };
    let namespace = &context.calls.namespace;
    let what = format!("Secret {namespace}/{name}");
    let object = context.cluster.get::<Secret>(At::within(namespace, name)).await;
    let object = object.map_err(|error| {
        let why = format!(
            "failed to read {what}: {error}; the right to: node-remedy rbac --secret {name}"
        );
        Refusal::passing(REASON_SOURCE_UNAVAILABLE, why)
    })?;
    // Its coming wakes nobody: Secrets are never watched.
    let missing = |why| Refusal::passing(REASON_SOURCE_MISSING, why);
    let Some(object) = object else {
        return Err(missing(format!("{what} does not exist; create it with type {PULL_SECRET}")));
    };
    let kind = object.type_.unwrap_or_default();
    if kind != PULL_SECRET {
        return Err(missing(format!("{what} is of type {kind:?}, expected {PULL_SECRET}")));
    }
    let accounts = object.data.and_then(|mut data| data.remove(ACCOUNTS));
    let accounts = accounts.ok_or_else(|| missing(format!("{what} has no key {ACCOUNTS:?}")))?;
    Ok(Some(Zeroizing::new(accounts.0)))
}
