//! When this process first saw each off that an incident's record tells of. The record's own times may be another process's, by
//! a clock that was set since.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::{Action, NodeFence, Operation};
use node_remedy_api::time::Moment;
use node_remedy_decide::{OpId, Span, Time};

/// An incident whose record did not change for so long is forgotten.
const KEPT_FOR: Span = Span::minutes(24 * 60);

/// The offs of all incidents that go on, by NodeFence.
#[derive(Debug, Default)]
pub struct OffSightings {
    by_nodefence: RefCell<BTreeMap<String, Sightings>>,
}

/// When the record of one incident was seen to tell of its offs.
#[derive(Debug, Default, Clone)]
pub struct Sightings {
    changed_at: Time,
    offs: BTreeMap<u32, Off>,
    baseline: Option<(Moment, Time)>,
}

/// When an off was seen to be intended, and to have ended.
#[derive(Debug, Clone, Copy)]
struct Off {
    intended: Time,
    ended: Option<Time>,
}

impl OffSightings {
    /// A NodeFence was seen.
    pub fn note(&self, nodefence: &NodeFence, now: Time) {
        let name = nodefence.name_any();
        let mut by_nodefence = self.by_nodefence.borrow_mut();
        let status = nodefence.status.as_ref().filter(|status| status.final_reason.is_none());
        let Some(status) = status else {
            by_nodefence.remove(&name);
            return;
        };
        if !by_nodefence.contains_key(&name) {
            by_nodefence.retain(|_, one| one.changed_at.is_within(KEPT_FOR, now));
        }
        let before = by_nodefence.remove(&name).unwrap_or_default();
        let baseline = status.baseline.as_ref().map(|one| one.at);
        by_nodefence.insert(name, before.after(&status.operations, baseline, now));
    }

    /// What is known of an incident; nothing before its record was seen.
    pub fn of(&self, nodefence: &str) -> Sightings {
        self.by_nodefence.borrow().get(nodefence).cloned().unwrap_or_default()
    }
}

impl Sightings {
    /// Keeps the first sighting of what was seen before.
    fn after(&self, operations: &[Operation], baseline: Option<Moment>, now: Time) -> Self {
        let is_off = |one: &&Operation| matches!(one.action, Action::Off | Action::Reset);
        let offs = operations.iter().filter(is_off).map(|one| {
            let was = self.offs.get(&one.id);
            let ended = was.and_then(|was| was.ended).or(one.ended_at.map(|_| now));
            (one.id, Off { intended: was.map_or(now, |was| was.intended), ended })
        });
        let was = |at: Moment| self.baseline.filter(|(was, _)| *was == at);
        let baseline = baseline.map(|at| was(at).unwrap_or((at, now)));
        Self { changed_at: now, offs: offs.collect(), baseline }
    }

    /// When its intent was first seen: the off was intended no later.
    pub fn intent_seen_at(&self, off: OpId) -> Option<Time> {
        self.offs.get(&off.0).map(|off| off.intended)
    }

    /// When its end was first seen, or else its intent.
    pub fn last_seen_at(&self, off: OpId) -> Option<Time> {
        self.offs.get(&off.0).map(|off| off.ended.unwrap_or(off.intended))
    }

    /// When the present baseline was first seen.
    pub fn baseline_seen_at(&self) -> Option<Time> {
        self.baseline.map(|(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_record_tells_is_as_old_as_it_was_seen_first() {
        let operation = |id: u32, action: &str, ended: bool| -> Operation {
            let mut operation = json!({
                "id": id, "method": 0, "action": action, "attempt": 1, "epoch": 1, "process": "another",
                "intendedAt": "2026-11-21T03:00:00Z", "stateBefore": "on",
            });
            if ended {
                operation["endedAt"] = json!("2026-11-21T03:00:01Z");
            }
            serde_json::from_value(operation).unwrap()
        };
        let baseline = |second: u64| Some(Moment::from_ms(second * 1_000));
        let begun = [operation(1, "status", true), operation(2, "off", false)];
        let intended = Sightings::default().after(&begun, None, Time(5_000));
        assert_eq!(intended.intent_seen_at(OpId(1)), None, "a read");
        assert_eq!(intended.intent_seen_at(OpId(2)), Some(Time(5_000)));
        assert_eq!(intended.last_seen_at(OpId(2)), Some(Time(5_000)));
        let done = [operation(2, "off", true)];
        let ended = intended.after(&done, baseline(1), Time(6_000));
        let later = ended.after(&done, baseline(1), Time(7_000));
        for told in [&ended, &later] {
            assert_eq!(told.intent_seen_at(OpId(2)), Some(Time(5_000)));
            assert_eq!(told.last_seen_at(OpId(2)), Some(Time(6_000)));
            assert_eq!(told.baseline_seen_at(), Some(Time(6_000)));
        }
        let anew = later.after(&done, baseline(2), Time(8_000));
        assert_eq!(anew.baseline_seen_at(), Some(Time(8_000)), "another baseline");
    }
}
