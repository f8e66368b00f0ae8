//! Which processes write to which volume: the ground truth about data.
//!
//! A process writes from the moment it runs until it ends, its machine loses power or
//! its kernel stops. Detaching a volume in the API does not stop it: with network
//! storage it would go on, and the world assumes the worse.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Facts, What};
use crate::time::Time;

/// One process that writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Writer {
    /// On which node.
    pub node: String,
    /// During which boot.
    pub boot: String,
    /// Whose process, as `namespace/name`.
    pub pod: String,
    /// The pod's UID.
    pub uid: String,
}

/// Who writes where, now.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    /// By volume, in the order in which they began.
    by_volume: BTreeMap<String, Vec<Writer>>,
    /// Nodes that the storage keeps away, and what would write there: volume and process.
    kept_away: BTreeMap<String, BTreeSet<(String, Writer)>>,
    /// Volumes, each with a node that its driver keeps from writing to it.
    detached: BTreeSet<(String, String)>,
}

impl Writers {
    /// Who writes to `volume` now.
    pub(crate) fn of(&self, volume: &str) -> &[Writer] {
        self.by_volume.get(volume).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn start(&mut self, facts: &mut Facts, now: Time, volume: &str, writer: &Writer) {
        if self.detached.contains(&(volume.to_owned(), writer.node.clone())) {
            return;
        }
        if let Some(waiting) = self.kept_away.get_mut(&writer.node) {
            waiting.insert((volume.to_owned(), writer.clone()));
            return;
        }
        let writers = self.by_volume.entry(volume.to_owned()).or_default();
        if writers.contains(writer) {
            return;
        }
        facts.note(
            now,
            What::WriterStarted {
                volume: volume.to_owned(),
                pod: writer.pod.clone(),
                uid: writer.uid.clone(),
                node: writer.node.clone(),
                boot: writer.boot.clone(),
            },
        );
        for other in &*writers {
            facts.note(
                now,
                What::TwoWriters {
                    volume: volume.to_owned(),
                    pod: writer.pod.clone(),
                    node: writer.node.clone(),
                    other: other.node.clone(),
                },
            );
        }
        writers.push(writer.clone());
    }

    pub(crate) fn stop(&mut self, facts: &mut Facts, now: Time, volume: &str, writer: &Writer) {
        if let Some(waiting) = self.kept_away.get_mut(&writer.node) {
            waiting.remove(&(volume.to_owned(), writer.clone()));
        }
        let Some(writers) = self.by_volume.get_mut(volume) else { return };
        let before = writers.len();
        writers.retain(|one| one != writer);
        if writers.len() < before {
            facts.note(
                now,
                What::WriterStopped {
                    volume: volume.to_owned(),
                    pod: writer.pod.clone(),
                    uid: writer.uid.clone(),
                    node: writer.node.clone(),
                    boot: writer.boot.clone(),
                },
            );
        }
    }

    /// The driver lets a node write to a volume, or keeps it from that whatever its processes try.
    pub(crate) fn allow(&mut self, volume: &str, node: &str, is_attached: bool) {
        let place = (volume.to_owned(), node.to_owned());
        if is_attached {
            self.detached.remove(&place);
        } else {
            self.detached.insert(place);
        }
    }

    /// The storage keeps a node away: nothing of it writes any more, though its processes run on.
    pub(crate) fn cut(&mut self, facts: &mut Facts, now: Time, node: &str) {
        let all = self.by_volume.iter();
        let its: BTreeSet<(String, Writer)> = all
            .flat_map(|(volume, writers)| {
                writers.iter().map(move |one| (volume.clone(), one.clone()))
            })
            .filter(|(_, writer)| writer.node == node)
            .collect();
        for (volume, writer) in &its {
            self.stop(facts, now, volume, writer);
        }
        self.kept_away.entry(node.to_owned()).or_default().extend(its);
        facts.note(now, What::StorageCut { node: node.to_owned() });
    }

    /// The node is let back: what still runs goes on writing.
    pub(crate) fn restore(&mut self, facts: &mut Facts, now: Time, node: &str) {
        let Some(its) = self.kept_away.remove(node) else { return };
        facts.note(now, What::StorageBack { node: node.to_owned() });
        for (volume, writer) in its {
            self.start(facts, now, &volume, &writer);
        }
    }
}
