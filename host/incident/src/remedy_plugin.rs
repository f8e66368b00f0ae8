//! Asks a remedy's plugin what to try next: shows it the node as it was last looked at and what was tried,
//! in the very component that the incident began with.
//!
//! Nothing follows from an answer here. It goes into the record, and what it leads to is decided there.

use std::sync::Arc;

use node_remedy_api::nodefence::DecidingPlugin;
use node_remedy_decide::{Choice, Decided, Span, Time};
use node_remedy_observe::caches::Caches;
use node_remedy_observe::live::Facts;
use node_remedy_observe::view;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::text::chain;
use node_remedy_sandbox::manifest::Kind;
use node_remedy_sandbox::{
    LogLevel, NodeCondition, NodeFacts, Plugin, Remedied, RemedyDecision, RemedyTried,
};
use node_remedy_store::store::Plugins;

use crate::state::Incident;

/// A plugin that is a remedy; a sentence where there is none to be had, which may pass.
///
/// # Errors
/// Where it is not loaded, or is no remedy.
pub fn remedy_of(
    plugins: &Plugins,
    name: &str,
    digest: Option<&str>,
) -> Result<Arc<Plugin>, String> {
    let plugin = plugins.find(name, digest).map_err(|error| chain(&error))?;
    match plugin.manifest().kind {
        Kind::Remedy => Ok(plugin),
        kind @ (Kind::Power | Kind::Fabric | Kind::Storage | Kind::Watch) => Err(format!(
            "plugin {name:?} is of kind {}, expected one of kind remedy, which decides what is tried",
            format!("{kind:?}").to_lowercase()
        )),
    }
}

impl<C: Cluster> Incident<C> {
    /// Asks for the decision of this number, unless that is being done already.
    pub(crate) fn ask_remedy(&mut self, number: u32) {
        let remedy_step = self.nodefence.spec.ladder.get(self.record.remedy_step);
        let Some(asked) = remedy_step.and_then(|remedy_step| remedy_step.plugin.clone()) else {
            return;
        };
        let Some(facts) = self.facts.as_ref().filter(|_| self.asks.is_empty()) else { return };
        let now = self.context.clock.now();
        let shown = shown(facts, &self.context.caches, now, |at| self.context.clock.when(at));
        let Some(shown) = shown else { return };
        let tried = tried(self.record.decided(), now);
        let (context, node) = (self.context.clone(), self.node().to_owned());
        self.asks.spawn_local(async move {
            // The incident began before there was one.
            let digest = Some(asked.digest.as_str()).filter(|digest| !digest.is_empty());
            let remedy = remedy_of(&context.calls.plugins, &asked.name, digest);
            let answer = match remedy {
                Ok(remedy) => {
                    let (calls, seams) = (&context.calls, context.calls.seams.clone());
                    let remedied = calls.executor.ask(remedy, shown, tried, seams).await;
                    if let Err(why) = &remedied.decision {
                        let (name, digest, now) = (&asked.name, &asked.digest, calls.clock.now());
                        calls.last_errors.note_remedy(name, digest, why, now);
                    }
                    Ok(choice_of(&asked, &node, remedied))
                }
                Err(why) => Err(why),
            };
            (number, answer)
        });
    }
}

/// What it decided. One that failed over it would fail again: it sees the same, and remembers nothing.
fn choice_of(asked: &DecidingPlugin, node: &str, remedied: Remedied) -> Choice {
    let plugin = &asked.name;
    for line in &remedied.log {
        match line.level {
            LogLevel::Debug => tracing::debug!(plugin, node, "{}", line.message),
            LogLevel::Info | LogLevel::Warn => tracing::info!(plugin, node, "{}", line.message),
        }
    }
    match remedied.decision {
        Ok(RemedyDecision::Method(name)) => Choice::Method(name),
        Ok(RemedyDecision::Cluster(name)) => Choice::Cluster(name),
        Ok(RemedyDecision::Fence) => Choice::Fence,
        Ok(RemedyDecision::Wait(seconds)) => Choice::Wait(Span::seconds(u64::from(seconds))),
        Ok(RemedyDecision::Done) => Choice::Done,
        Ok(RemedyDecision::Fail(why)) => Choice::Fail(why),
        Err(why) => Choice::Fail(format!("plugin {plugin} decided nothing: {why}")),
    }
}

/// The node as a remedy is shown it; `when` tells a time of the node's own clock by ours.
fn shown(
    facts: &Facts,
    caches: &Caches,
    now: Time,
    when: impl Fn(Time) -> Time,
) -> Option<NodeFacts> {
    let node = facts.node.as_ref()?;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let conditions = node.conditions.iter().map(|(kind, condition)| NodeCondition {
        kind: kind.to_string(),
        status: condition.status.clone().into_owned(),
        reason: condition.reason.clone().into_owned(),
        age_s: now.since(when(condition.since)).0 / 1_000,
    });
    let with_volumes = facts.pods.values().filter(|pod| !pod.volumes.is_empty());
    let (unhealthy, peers) = view::peers_of(caches, &node.name);
    Some(NodeFacts {
        name: node.name.clone(),
        labels: node.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        ready: node.conditions.get("Ready").is_some_and(|ready| ready.status == "True"),
        conditions: conditions.collect(),
        boot_id: node.boot_id.clone(),
        pods: count(facts.pods.len()),
        pods_with_volumes: count(with_volumes.count()),
        peers_unhealthy: count(unhealthy),
        peers_total: count(peers),
    })
}

/// What was tried, as a remedy is told it.
fn tried(decided: &[Decided], now: Time) -> Vec<RemedyTried> {
    let ended = decided.iter().filter_map(|one| {
        Some(RemedyTried {
            action: one.choice.as_ref()?.to_string(),
            succeeded: one.failed.is_none(),
            detail: one.failed.clone().unwrap_or_default(),
            age_s: now.since(one.ended_at?).0 / 1_000,
        })
    });
    ended.collect()
}
