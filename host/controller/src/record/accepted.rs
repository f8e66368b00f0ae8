//! Tells users whether what they configured is in force: a condition, a log line, an Event.
//!
//! Written only where it changes something, so that reading what we wrote writes nothing.

use k8s_openapi::api::core::v1::ObjectReference;
use node_remedy_api::conditions::{
    ACCEPTED, Condition, ConditionStatus, REASON_INVALID, REASON_LAST_VALID_IN_FORCE, REASON_VALID,
};
use node_remedy_api::fenceconfiguration::FenceConfiguration;
use node_remedy_api::remedyconfiguration::RemedyConfiguration;
use node_remedy_api::time::Moment;
use serde_json::json;

use super::events::{Note, tell_of};
use crate::cluster::{At, Cluster, ClusterError};
use crate::controller::Parts;
use crate::observe::config::{InForce, Readout};

/// A condition's message is a few lines for people; the whole is what `check` prints.
const MESSAGE_MAX: usize = 4_000;

/// Says of every object what became of it.
pub async fn tell<C: Cluster>(parts: &Parts<C>, readouts: &[Readout]) {
    for readout in readouts {
        let said = match readout.kind {
            "RemedyConfiguration" => {
                let kept = parts.mirror.remedies.find(&readout.name);
                let status = kept.and_then(|kept| kept.0.status).unwrap_or_default();
                say::<C, RemedyConfiguration>(parts, readout, &status.conditions).await
            }
            "FenceConfiguration" => {
                let kept = parts.mirror.fences.find(&readout.name);
                let status = kept.and_then(|kept| kept.0.status).unwrap_or_default();
                say::<C, FenceConfiguration>(parts, readout, &status.conditions).await
            }
            _ => {
                warn(readout);
                Ok(())
            }
        };
        if let Err(error) = said {
            tracing::debug!(%error, name = readout.name, "failed to write a condition");
        }
    }
}

fn warn(readout: &Readout) {
    if !readout.problems.is_empty() {
        tracing::warn!(kind = readout.kind, name = readout.name, "{}", readout.problems);
    }
}

async fn say<C: Cluster, K: crate::cluster::Object>(
    parts: &Parts<C>,
    readout: &Readout,
    conditions: &[Condition],
) -> Result<(), ClusterError> {
    let before = conditions.iter().find(|condition| condition.kind == ACCEPTED);
    let condition = accepted(readout, before, Moment::from_ms(parts.clock.now().0));
    if before == Some(&condition) {
        return Ok(());
    }
    warn(readout);
    let mut all: Vec<&Condition> = conditions.iter().filter(|one| one.kind != ACCEPTED).collect();
    all.push(&condition);
    let patch = json!({
        "status": {"conditions": all, "observedGeneration": readout.generation},
    });
    parts.cluster.merge_status::<K>(At::cluster(&readout.name), &patch).await?;
    if readout.in_force != InForce::This {
        let note =
            Note { reason: condition.reason.clone(), text: condition.message, warning: true };
        let about = ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(readout.kind.to_owned()),
            name: Some(readout.name.clone()),
            ..ObjectReference::default()
        };
        tell_of(&parts.cluster, &parts.clock, &parts.process, about, &note).await;
    }
    Ok(())
}

/// The condition that an object should carry now.
fn accepted(readout: &Readout, before: Option<&Condition>, now: Moment) -> Condition {
    let (status, reason) = match readout.in_force {
        InForce::This => (ConditionStatus::True, REASON_VALID),
        InForce::LastValid => (ConditionStatus::False, REASON_LAST_VALID_IN_FORCE),
        InForce::Nothing => (ConditionStatus::False, REASON_INVALID),
    };
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
}
