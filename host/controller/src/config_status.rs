//! Tells users whether what they configured is in force: a condition, a log line, an Event.
//!
//! Written only where it changes something, so that reading what we wrote writes nothing. What has no
//! conditions, a ConfigMap, or none that can be read, is remembered for as long as this process leads.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::ResourceExt as _;
use node_remedy_api::conditions::{
    ACCEPTED, Condition, ConditionStatus, REASON_INVALID, REASON_LAST_VALID_IN_FORCE, REASON_VALID,
};
use node_remedy_api::fenceconfiguration::FenceConfiguration;
use node_remedy_api::fenceplugin::FencePlugin;
use node_remedy_api::remedyconfiguration::RemedyConfiguration;
use node_remedy_api::time::Moment;
use node_remedy_context::context::Context;
use node_remedy_observe::caches::Cached;
use node_remedy_observe::config::{InForce, Readout};
use node_remedy_observe::store::Store;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};
use node_remedy_runtime::events::{Note, tell_of};
use serde_json::json;

/// A condition's message is a few lines for people; the whole is what `check` prints.
const MESSAGE_MAX: usize = 4_000;

/// What was said of ConfigMaps, and of what cannot be read.
#[derive(Debug, Default)]
pub struct ReportedReadouts {
    said: RefCell<BTreeMap<(&'static str, String), Readout>>,
}

impl ReportedReadouts {
    /// Says of every object what became of it.
    pub async fn tell<C: Cluster>(&self, context: &Context<C>, readouts: &[Readout]) {
        for readout in readouts {
            let caches = &context.caches;
            let said = match readout.kind {
                "RemedyConfiguration" => {
                    let conditions = conditions_of(&caches.remedies, &readout.name, |one| {
                        one.status.as_ref().map(|status| &status.conditions)
                    });
                    self.say::<C, RemedyConfiguration>(context, readout, conditions).await
                }
                "FenceConfiguration" => {
                    let conditions = conditions_of(&caches.fences, &readout.name, |one| {
                        one.status.as_ref().map(|status| &status.conditions)
                    });
                    self.say::<C, FenceConfiguration>(context, readout, conditions).await
                }
                "FencePlugin" => {
                    let conditions = conditions_of(&caches.plugins, &readout.name, |one| {
                        one.status.as_ref().map(|status| &status.conditions)
                    });
                    self.say::<C, FencePlugin>(context, readout, conditions).await
                }
                "ConfigMap" => {
                    if let Some(note) = self.news_of(readout) {
                        warn(readout);
                        say_of_config_map(context, &readout.name, &note).await;
                    }
                    Ok(())
                }
                _ => {
                    if let Some(note) = self.news_of(readout) {
                        warn(readout);
                        say_of(context, readout, None, &note).await;
                    }
                    Ok(())
                }
            };
            if let Err(error) = said {
                tracing::debug!(%error, name = readout.name, "failed to write a condition");
            }
        }
        let there: BTreeSet<_> = readouts.iter().map(|one| (one.kind, &*one.name)).collect();
        self.said.borrow_mut().retain(|(kind, name), _| there.contains(&(*kind, &**name)));
    }

    /// Writes the condition where it changes something. Where nobody knows what an object carries now, it
    /// is written once.
    async fn say<C: Cluster, K: node_remedy_runtime::cluster::Object>(
        &self,
        context: &Context<C>,
        readout: &Readout,
        conditions: Option<Vec<Condition>>,
    ) -> Result<(), ClusterError> {
        if conditions.is_none() && !self.is_news(readout) {
            return Ok(());
        }
        say::<C, K>(context, readout, &conditions.unwrap_or_default()).await
    }

    fn is_news(&self, readout: &Readout) -> bool {
        let key = (readout.kind, readout.name.clone());
        let before = self.said.borrow_mut().insert(key, readout.clone());
        before.as_ref() != Some(readout)
    }

    /// What is new about an object without conditions. That one is valid from the start is none; what is questionable in it
    /// the log says.
    fn news_of(&self, readout: &Readout) -> Option<Note> {
        let key = (readout.kind, readout.name.clone());
        let before = self.said.borrow_mut().insert(key, readout.clone());
        if before.as_ref() == Some(readout) {
            return None;
        }
        let was_in_force = before.is_none_or(|before| before.in_force == InForce::This);
        let is_in_force = readout.in_force == InForce::This;
        if is_in_force && was_in_force {
            warn(readout);
            return None;
        }
        let text = if is_in_force {
            format!("{} is valid again, and in force", readout.name)
        } else {
            readout.problems.clone()
        };
        let (_, reason) = verdict(readout.in_force);
        Some(Note { reason: reason.to_owned(), text, warning: !is_in_force })
    }
}

/// The conditions that an object carries; none where they cannot be read.
fn conditions_of<K: node_remedy_runtime::cluster::Object>(
    store: &Store<Cached<K>>,
    name: &str,
    of: impl FnOnce(&K) -> Option<&Vec<Condition>>,
) -> Option<Vec<Condition>> {
    if let Some(kept) = store.all().get(name) {
        return Some(of(&kept.0).cloned().unwrap_or_default());
    }
    let unread = store.unread();
    let found = unread.get(name)?.object().pointer("/status/conditions")?.clone();
    serde_json::from_value(found).ok()
}

/// An Event about an object of ours.
async fn say_of<C: Cluster>(
    context: &Context<C>,
    readout: &Readout,
    uid: Option<String>,
    note: &Note,
) {
    let version = format!("{}/{}", node_remedy_api::GROUP, node_remedy_api::VERSION);
    let about = ObjectReference {
        api_version: Some(version),
        kind: Some(readout.kind.to_owned()),
        name: Some(readout.name.clone()),
        // `kubectl describe` finds Events by it.
        uid,
        ..ObjectReference::default()
    };
    tell_of(&context.cluster, &context.clock, &context.process, about, note).await;
}

/// An Event about the ConfigMap of this name, or of `name[key]`.
async fn say_of_config_map<C: Cluster>(context: &Context<C>, name: &str, note: &Note) {
    let object = name.split('[').next().unwrap_or(name);
    let find = |kept: &&Cached<ConfigMap>| kept.0.name_any() == object;
    let found = context.caches.config_maps.all().values().find(find).cloned();
    let Some(Cached(config_map)) = found else { return };
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("ConfigMap".to_owned()),
        name: Some(object.to_owned()),
        namespace: config_map.namespace(),
        uid: config_map.uid(),
        ..ObjectReference::default()
    };
    tell_of(&context.cluster, &context.clock, &context.process, about, note).await;
}

fn warn(readout: &Readout) {
    if !readout.problems.is_empty() {
        tracing::warn!(kind = readout.kind, name = readout.name, "{}", readout.problems);
    }
}

async fn say<C: Cluster, K: node_remedy_runtime::cluster::Object>(
    context: &Context<C>,
    readout: &Readout,
    conditions: &[Condition],
) -> Result<(), ClusterError> {
    let before = conditions.iter().find(|condition| condition.kind == ACCEPTED);
    let condition = accepted(readout, before, Moment::from_ms(context.clock.now().0));
    if before == Some(&condition) {
        return Ok(());
    }
    warn(readout);
    let mut all: Vec<&Condition> = conditions.iter().filter(|one| one.kind != ACCEPTED).collect();
    all.push(&condition);
    let patch = json!({
        "status": {"conditions": all, "observedGeneration": readout.generation},
    });
    let uid = match context.cluster.merge_status::<K>(At::cluster(&readout.name), &patch).await {
        Ok(written) => written.meta().uid.clone(),
        // It is written; what it is written to still cannot be read.
        Err(ClusterError::Unreadable(_)) => None,
        Err(error) => return Err(error),
    };
    if readout.in_force != InForce::This {
        let note =
            Note { reason: condition.reason.clone(), text: condition.message, warning: true };
        say_of(context, readout, uid, &note).await;
    }
    Ok(())
}

/// The condition that an object should carry now.
fn accepted(readout: &Readout, before: Option<&Condition>, now: Moment) -> Condition {
    let (status, reason) = verdict(readout.in_force);
    let same = before.filter(|before| before.status == status);
    Condition {
        kind: ACCEPTED.to_owned(),
        status,
        reason: reason.to_owned(),
        message: readout.problems.chars().take(MESSAGE_MAX).collect(),
        last_transition_time: same.map_or(now, |before| before.last_transition_time),
        observed_generation: Some(readout.generation),
    }
}

fn verdict(in_force: InForce) -> (ConditionStatus, &'static str) {
    match in_force {
        InForce::This => (ConditionStatus::True, REASON_VALID),
        InForce::LastValid => (ConditionStatus::False, REASON_LAST_VALID_IN_FORCE),
        InForce::Nothing => (ConditionStatus::False, REASON_INVALID),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_while_its_status_holds() {
        let readout = |in_force, generation| Readout {
            kind: "RemedyConfiguration",
            name: "all".to_owned(),
            generation,
            in_force,
            problems: String::new(),
        };
        let (early, late) = (Moment::from_ms(1), Moment::from_ms(2));
        let first = accepted(&readout(InForce::This, 1), None, early);
        assert_eq!((first.status, first.reason.as_str()), (ConditionStatus::True, "Valid"));
        let again = accepted(&readout(InForce::This, 2), Some(&first), late);
        assert_eq!(again.last_transition_time, early);
        assert_eq!(again.observed_generation, Some(2));
        let broken = accepted(&readout(InForce::LastValid, 3), Some(&again), late);
        assert_eq!(broken.reason, "LastValidInForce");
        assert_eq!(broken.last_transition_time, late);
        let gone = accepted(&readout(InForce::Nothing, 4), Some(&broken), early);
        assert_eq!((gone.reason.as_str(), gone.last_transition_time), ("Invalid", late));
    }

    #[test]
    fn of_a_config_map_only_news_are_told() {
        let told = ReportedReadouts::default();
        let news = |name: &str, in_force, problems: &str| {
            let readout = Readout {
                kind: "ConfigMap",
                name: name.to_owned(),
                generation: 0,
                in_force,
                problems: problems.to_owned(),
            };
            let note = told.news_of(&readout)?;
            Some((note.reason, note.text, note.warning))
        };
        let note =
            |reason: &str, text: &str, warning| Some((reason.to_owned(), text.to_owned(), warning));
        assert_eq!(news("a[k]", InForce::This, "warning: x"), None, "the log is enough");
        let broken = note("LastValidInForce", "found x", true);
        assert_eq!(news("a[k]", InForce::LastValid, "found x"), broken);
        assert_eq!(news("a[k]", InForce::LastValid, "found x"), None, "said already");
        let other = note("LastValidInForce", "found y", true);
        assert_eq!(news("a[k]", InForce::LastValid, "found y"), other);
        let again = note("Valid", "a[k] is valid again, and in force", false);
        assert_eq!(news("a[k]", InForce::This, ""), again);
        assert_eq!(news("b[k]", InForce::Nothing, "found x"), note("Invalid", "found x", true));
    }
}
