//! Says in the status of every `FencePlugin` what became of it. Written only where it changes something.

use kube::Resource as _;
use node_remedy_api::conditions::{
    Condition, ConditionStatus, READY, REASON_LOADED, REASON_SIGNED, REASON_SIGNED_ANOTHER,
    REASON_UNSIGNED, REASON_WRONG_KEY, VERIFIED,
};
use node_remedy_api::fenceplugin::{FencePlugin, FencePluginStatus, LoadedPlugin};
use node_remedy_api::limits::EARLIER_PLUGINS_MAX;
use node_remedy_api::time::Moment;
use node_remedy_context::context::Context;
use node_remedy_registry::refusal::Refusal;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};
use node_remedy_sandbox::Plugin;
use node_remedy_store::describe::kind_of_plugin;
use node_remedy_store::state::{Standing, Verified};
use serde_json::json;

use crate::{granted, limits};

/// A condition's message is a few lines for people.
const MESSAGE_MAX: usize = 4_000;

/// Says it of all of them, how their calls failed only where that is due; whether all of it is written.
pub(super) async fn tell_all<C: Cluster>(context: &Context<C>, errors_are_due: bool) -> bool {
    let objects: Vec<FencePlugin> =
        context.caches.plugins.all().values().map(|kept| kept.0.clone()).collect();
    let mut is_told = true;
    for object in objects {
        let name = object.meta().name.clone().unwrap_or_default();
        let Some(standing) = context.external_plugins.standing(&name) else { continue };
        if let Err(error) = tell(context, &object, &standing, errors_are_due).await {
            tracing::debug!(%error, plugin = name, "failed to write a status");
            is_told = false;
        }
    }
    is_told
}

async fn tell<C: Cluster>(
    context: &Context<C>,
    object: &FencePlugin,
    standing: &Standing,
    errors_are_due: bool,
) -> Result<(), ClusterError> {
    let name = object.meta().name.clone().unwrap_or_default();
    let before = object.status.clone().unwrap_or_default();
    let loaded = context.calls.plugins.loaded(&name);
    let digest = loaded.as_ref().map(|plugin| plugin.digest().to_string());
    let told = ConditionInputs {
        generation: object.meta().generation,
        before: &before.conditions,
        now: Moment::from_ms(context.clock.now().0),
    };
    let ours = [READY, VERIFIED];
    let others = before.conditions.iter().filter(|one| !ours.contains(&one.kind.as_str())).cloned();
    let own = [Some(told.ready(standing, digest.as_deref())), told.verified(&standing.result)];
    let digest = digest.unwrap_or_default();
    let grants = match &loaded {
        Some(plugin) => granted::lines(plugin.manifest(), standing.wanted.grants()).await,
        None => Vec::new(),
    };
    let mut last_errors = before.last_errors.clone();
    if errors_are_due {
        last_errors = context.calls.last_errors.beside(&name, &last_errors);
    }
    let said = FencePluginStatus {
        conditions: others.chain(own.into_iter().flatten()).collect(),
        loaded: remembered(&before.loaded, &digest, standing),
        digest,
        verified_by: signer(&standing.in_force),
        grants,
        last_errors,
        ..loaded.map(|plugin| about(&plugin)).unwrap_or_default()
    };
    let said = FencePluginStatus { observed_generation: before.observed_generation, ..said };
    if said == before {
        return Ok(());
    }
    let patch = json!({"status": {
        "conditions": said.conditions, "loaded": said.loaded, "digest": said.digest,
        "verifiedBy": said.verified_by, "version": said.version, "limits": said.limits,
        "description": said.description, "kind": said.kind, "actions": said.actions, "asks": said.asks,
        "grants": said.grants, "lastErrors": said.last_errors,
        "pluginManifest": said.plugin_manifest,
    }});
    context.cluster.merge_status::<FencePlugin>(At::cluster(&name), &patch).await.map(|_| ())
}

/// What was loaded, and what is now, the newest last.
fn remembered(before: &[LoadedPlugin], digest: &str, standing: &Standing) -> Vec<LoadedPlugin> {
    let spec = &standing.wanted.spec;
    let is_new = spec.digest == digest && standing.result.is_ok();
    // What a tag led to is said once: whoever says it later may have asked later.
    let same = before.iter().rfind(|one| one.digest == digest && one.source == spec.source);
    let manifest = same.map(|same| same.manifest.clone()).filter(|manifest| !manifest.is_empty());
    let newest = LoadedPlugin {
        digest: digest.to_owned(),
        source: spec.source.clone(),
        manifest: manifest.unwrap_or_else(|| standing.manifest.clone()),
        verified_by: signer(&standing.in_force),
        limits: spec.limits,
    };
    let earlier = before.iter().filter(|one| !is_new || one.digest != digest).cloned();
    let mut all: Vec<_> = earlier.chain(is_new.then_some(newest)).collect();
    all.drain(..all.len().saturating_sub(EARLIER_PLUGINS_MAX));
    all
}

/// The key that signed what is loaded, if one did.
fn signer(verified: &Verified) -> String {
    match verified {
        Verified::By(key) => key.to_string(),
        Verified::NotAsked | Verified::Not(_) => String::new(),
    }
}

/// What conditions are made from.
struct ConditionInputs<'a> {
    generation: Option<i64>,
    before: &'a [Condition],
    now: Moment,
}

impl ConditionInputs<'_> {
    fn ready(&self, standing: &Standing, loaded: Option<&str>) -> Condition {
        match (&standing.result, loaded) {
            (Ok(_), _) => self.condition(READY, ConditionStatus::True, REASON_LOADED, ""),
            (Err(refusal), None) => {
                self.condition(READY, ConditionStatus::False, refusal.reason, &refusal.why)
            }
            (Err(refusal), Some(digest)) => {
                let stays = format!("; {digest} stays in force");
                let room = MESSAGE_MAX.saturating_sub(stays.chars().count());
                let message: String = refusal.why.chars().take(room).chain(stays.chars()).collect();
                self.condition(READY, ConditionStatus::False, refusal.reason, &message)
            }
        }
    }

    /// None where nobody wanted it, or nobody knows.
    fn verified(&self, result: &Result<Verified, Refusal>) -> Option<Condition> {
        let of_signatures = [REASON_UNSIGNED, REASON_WRONG_KEY, REASON_SIGNED_ANOTHER];
        let is_of_signatures = |refusal: &&Refusal| of_signatures.contains(&refusal.reason);
        let refusal = match result {
            Ok(Verified::NotAsked) => return None,
            Ok(Verified::By(key)) => {
                let message = format!("by {key}");
                let condition =
                    self.condition(VERIFIED, ConditionStatus::True, REASON_SIGNED, &message);
                return Some(condition);
            }
            Ok(Verified::Not(refusal)) => refusal,
            Err(refusal) => Some(refusal).filter(is_of_signatures)?,
        };
        Some(self.condition(VERIFIED, ConditionStatus::False, refusal.reason, &refusal.why))
    }

    fn condition(
        &self,
        kind: &str,
        status: ConditionStatus,
        reason: &str,
        message: &str,
    ) -> Condition {
        let same = self.before.iter().find(|before| before.kind == kind && before.status == status);
        Condition {
            kind: kind.to_owned(),
            status,
            reason: reason.to_owned(),
            message: message.chars().take(MESSAGE_MAX).collect(),
            last_transition_time: same.map_or(self.now, |before| before.last_transition_time),
            observed_generation: self.generation,
        }
    }
}

/// What a plugin says of itself, as a status has it.
fn about(plugin: &Plugin) -> FencePluginStatus {
    let manifest = plugin.manifest();
    let endpoints = manifest.asks.endpoints.iter().map(|ask| {
        let port = ask.port.or(ask.protocol.usual_port());
        let port = port.map(|port| format!(", port {port}")).unwrap_or_default();
        let optional = if ask.optional { ", optional" } else { "" };
        format!(
            "endpoint {}: {} from {}{port}{optional}",
            ask.name,
            ask.protocol.as_str(),
            ask.from
        )
    });
    let credentials = manifest.asks.credentials.iter().map(|ask| {
        let operations: Vec<&str> = ask.operations.iter().map(|one| one.as_str()).collect();
        let optional = if ask.optional { ", optional" } else { "" };
        format!("credential {}: {}{optional}", ask.name, operations.join(" "))
    });
    FencePluginStatus {
        limits: Some(limits::in_force(plugin)),
        version: manifest.version.clone(),
        description: manifest.description.clone(),
        kind: Some(kind_of_plugin(manifest.kind)),
        actions: manifest.actions.iter().map(|one| format!("{one:?}").to_lowercase()).collect(),
        asks: endpoints.chain(credentials).collect(),
        plugin_manifest: manifest.text().to_owned(),
        ..FencePluginStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use node_remedy_api::conditions::REASON_REFUSED;
    use node_remedy_api::fenceplugin::{FencePluginSpec, Source};

    use super::*;

    #[test]
    fn a_message_of_4000_characters_is_told_whole_and_a_longer_one_is_cut() {
        let told = ConditionInputs { generation: None, before: &[], now: Moment::from_ms(0) };
        let message =
            |why: &str| told.condition(READY, ConditionStatus::False, REASON_REFUSED, why).message;
        let longest = format!("{}.", "ä".repeat(3_999));
        assert_eq!(message(&longest), longest);
        assert_eq!(message(&format!("{longest}!")), longest);
    }

    #[test]
    fn what_stays_in_force_is_told_however_long_the_refusal_is() {
        let told = ConditionInputs { generation: None, before: &[], now: Moment::from_ms(0) };
        let why = "ä".repeat(MESSAGE_MAX);
        let standing = Standing {
            wanted: Rc::new(Source { name: "door".to_owned(), spec: FencePluginSpec::default() }),
            seen: None,
            result: Err(Refusal::new(REASON_REFUSED, why)),
            in_force: Verified::NotAsked,
            manifest: String::new(),
            refused: 0,
            not_before: None,
        };
        let message = told.ready(&standing, Some("sha256:abc")).message;
        assert!(message.ends_with("ää; sha256:abc stays in force"), "{message}");
        assert_eq!(message.chars().count(), MESSAGE_MAX);
    }
}
