//! The processes of pods on one machine.
//!
//! Processes know nothing of the API: they start, write to their volumes, end when told
//! to, and die with the power.

use std::collections::BTreeMap;

use crate::stage::Stage;
use crate::time::Time;
use crate::volumes::{Sharing, Volume};
use crate::writers::Writer;

/// The processes of one machine, by pod UID.
#[derive(Debug, Default)]
pub(super) struct Processes {
    running: BTreeMap<String, Process>,
    /// How often one of them changed.
    changes: u64,
}

/// What a process belongs to.
#[derive(Debug, Clone)]
pub(super) struct Pod {
    /// `namespace/name`.
    pub(super) name: String,
    pub(super) volumes: Vec<Volume>,
}

#[derive(Debug)]
struct Process {
    pod: Pod,
    stage: Life,
}

/// Where a process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Runs at `until`.
    Starting {
        /// When.
        until: Time,
    },
    /// Runs and writes.
    Runs,
    /// Was told to end, writes until `until`.
    Stopping {
        /// When it is gone.
        until: Time,
    },
}

impl Processes {
    /// Where the process of the pod with this UID is; none where there is none.
    pub(super) fn life(&self, uid: &str) -> Option<Life> {
        self.running.get(uid).map(|process| process.stage)
    }

    /// How often a process was started, stopped, began to run or was gone.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The UIDs of all pods that have a process.
    pub(super) fn uids(&self) -> Vec<String> {
        self.running.keys().cloned().collect()
    }

    /// The volumes that some process has mounted.
    pub(super) fn mounted(&self) -> impl Iterator<Item = &Volume> {
        self.running.values().flat_map(|process| &process.pod.volumes)
    }

    /// Starts a container that will run at `until`.
    pub(super) fn start(&mut self, uid: &str, pod: Pod, until: Time) {
        self.changes += 1;
        self.running.insert(uid.to_owned(), Process { pod, stage: Life::Starting { until } });
    }

    /// Tells a process to be gone at `until`, unless it was told before.
    pub(super) fn stop(&mut self, uid: &str, until: Time) {
        self.changes += 1;
        if let Some(process) = self.running.get_mut(uid) {
            match process.stage {
                // What has not run yet is gone as soon as anybody looks.
                Life::Starting { .. } => process.stage = Life::Stopping { until: Time(0) },
                Life::Runs => process.stage = Life::Stopping { until },
                Life::Stopping { .. } => {}
            }
        }
    }

    /// Carries out what is due; says when the next thing is.
    pub(super) fn run(&mut self, stage: &mut Stage<'_>, node: &str, boot: &str) -> Option<Time> {
        let now = stage.now;
        if self.due().is_none_or(|due| due > now) {
            return self.due();
        }
        self.changes += 1;
        for (uid, process) in &mut self.running {
            if matches!(process.stage, Life::Starting { until } if until <= now) {
                process.stage = Life::Runs;
                process.pod.write(stage, uid, node, boot);
            }
        }
        let over = |process: &Process| match process.stage {
            Life::Stopping { until } => until <= now,
            Life::Starting { .. } | Life::Runs => false,
        };
        for (uid, process) in self.running.iter().filter(|(_, process)| over(process)) {
            process.pod.write_no_more(stage, uid, node, boot);
        }
        self.running.retain(|_, process| !over(process));
        self.due()
    }

    /// When the next process starts to run or is gone.
    pub(super) fn due(&self) -> Option<Time> {
        let due = self.running.values().filter_map(|process| match process.stage {
            Life::Starting { until } | Life::Stopping { until } => Some(until),
            Life::Runs => None,
        });
        due.min()
    }

    /// The kernel stops: nothing writes, nothing is forgotten.
    pub(super) fn pause(&self, stage: &mut Stage<'_>, node: &str, boot: &str) {
        for (uid, process) in &self.running {
            process.pod.write_no_more(stage, uid, node, boot);
        }
    }

    /// The kernel goes on: whoever wrote writes again, from memory that is out of date.
    pub(super) fn resume(&self, stage: &mut Stage<'_>, node: &str, boot: &str) {
        for (uid, process) in &self.running {
            match process.stage {
                Life::Runs | Life::Stopping { .. } => process.pod.write(stage, uid, node, boot),
                Life::Starting { .. } => {}
            }
        }
    }

    /// Every process is gone at once; the disk still remembers them.
    pub(super) fn lose_power(&mut self, stage: &mut Stage<'_>, node: &str, boot: &str) {
        self.pause(stage, node, boot);
        self.changes += 1;
        self.running.clear();
    }
}

impl Pod {
    fn write(&self, stage: &mut Stage<'_>, uid: &str, node: &str, boot: &str) {
        let writer = self.writer(uid, node, boot);
        for volume in self.exclusive() {
            stage.writers.start(stage.facts, stage.now, &volume.name, &writer);
        }
    }

    fn write_no_more(&self, stage: &mut Stage<'_>, uid: &str, node: &str, boot: &str) {
        let writer = self.writer(uid, node, boot);
        for volume in self.exclusive() {
            stage.writers.stop(stage.facts, stage.now, &volume.name, &writer);
        }
    }

    /// Many writers of a shared volume are what it is for, and are not recorded.
    fn exclusive(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.iter().filter(|volume| volume.sharing == Sharing::Exclusive)
    }

    fn writer(&self, uid: &str, node: &str, boot: &str) -> Writer {
        Writer {
            node: node.to_owned(),
            boot: boot.to_owned(),
            pod: self.name.clone(),
            uid: uid.to_owned(),
        }
    }
}
