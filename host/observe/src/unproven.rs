//! Offs of this process that no proof has followed yet (rule P8): a second plug of a device is not switched until the first is
//! proven. Two that began at once do not wait for each other.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use node_remedy_decide::{Plan, Record, Span, Time};

use crate::offs::{ended_at, is_labelled_outlet, standing_offs};

/// After this time an off that was not proven no longer holds up its neighbours.
const IN_QUESTION: Span = Span::seconds(90);

/// Offs of this process that no proof has followed yet: which devices are busy with one.
#[derive(Debug, Default)]
pub struct UnprovenOffs {
    by_node: RefCell<BTreeMap<String, Switched>>,
}

/// What one incident switched off.
#[derive(Debug)]
struct Switched {
    devices: BTreeSet<String>,
    until: Time,
}

impl UnprovenOffs {
    /// Updates what is known of an incident. Called before its record is written, so that no second off begins meanwhile.
    pub fn note(&self, node: &str, plan: &Plan, record: &Record) {
        let proof = record.proof.as_ref().filter(|proof| proof.voided_at.is_none());
        let proven_at = proof.map(|proof| proof.at).unwrap_or_default();
        let offs = standing_offs(plan, record);
        let offs: Vec<_> = offs.filter(|(method, _)| is_labelled_outlet(method)).collect();
        let last = offs.iter().map(|(_, off)| ended_at(off)).max();
        let last = last.filter(|last| record.parked.is_none() && *last > proven_at);
        let Some(last) = last else { return self.forget(node) };
        let devices = offs.into_iter().map(|(method, _)| method.device.clone()).collect();
        let switched = Switched { devices, until: last.after(IN_QUESTION) };
        self.by_node.borrow_mut().insert(node.to_owned(), switched);
    }

    /// An incident is over.
    pub fn forget(&self, node: &str) {
        self.by_node.borrow_mut().remove(node);
    }

    /// Another node whose unproven off used one of these devices. `None` if this node has one there, too: of two that began
    /// at once neither waits.
    pub fn in_the_way(&self, node: &str, devices: &BTreeSet<&str>, now: Time) -> Option<String> {
        let by_node = self.by_node.borrow();
        let shares = |one: &Switched| {
            now < one.until && one.devices.iter().any(|device| devices.contains(device.as_str()))
        };
        if by_node.get(node).is_some_and(shares) {
            return None;
        }
        by_node.iter().find(|(_, one)| shares(one)).map(|(other, _)| other.clone())
    }
}
