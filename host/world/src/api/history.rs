//! What happened to the objects, in order: the source of every watch.
//!
//! Bounded, as etcd's is: who falls too far behind is told 410 and lists again.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use super::error::ApiError;
use super::object::Key;
use super::selector::Selector;
use crate::api::kind::Kind;
use crate::time::Time;

/// Changes kept. A real server keeps five minutes; this is more than thirty nodes make
/// in an hour and bounds the memory of a run of any length.
pub const HISTORY_CHANGES: usize = 20_000;

/// What became of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeType {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// One committed write.
#[derive(Debug, Clone)]
pub struct Change {
    /// The resourceVersion that this write made.
    pub version: u64,
    /// When.
    pub at: Time,
    /// Who wrote: the client's name.
    pub by: Arc<str>,
    /// What became of the object.
    pub change: ChangeType,
    /// Which object.
    pub key: Key,
    /// After the write; for a deletion the last state.
    pub object: Arc<Value>,
    /// Before the write; nothing for a new object.
    pub before: Option<Arc<Value>>,
}

/// What a watcher is told.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// ADDED, MODIFIED or DELETED, as seen through the watch's selector.
    pub change: ChangeType,
    /// The object.
    pub object: Arc<Value>,
}

/// Everything since a resourceVersion.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// In the order in which they were committed.
    pub events: Vec<WatchEvent>,
    /// A bookmark: up to here the watcher has seen everything.
    pub bookmark: u64,
}

/// The bounded log of changes.
#[derive(Debug, Default)]
pub(super) struct History {
    changes: VecDeque<Change>,
    /// Changes up to this version are forgotten.
    forgotten: u64,
}

impl History {
    pub(super) fn push(&mut self, change: Change) {
        self.changes.push_back(change);
        if self.changes.len() > HISTORY_CHANGES
            && let Some(oldest) = self.changes.pop_front()
        {
            self.forgotten = oldest.version;
        }
    }

    /// Forgets every change up to `version`.
    pub(super) fn forget(&mut self, version: u64) {
        while self.changes.front().is_some_and(|oldest| oldest.version <= version) {
            self.changes.pop_front();
        }
        self.forgotten = self.forgotten.max(version);
    }

    /// The changes after `version`.
    pub(super) fn since(&self, version: u64) -> Result<impl Iterator<Item = &Change>, ApiError> {
        if version < self.forgotten {
            return Err(ApiError::Expired { wanted: version, oldest: self.forgotten });
        }
        let start = self.changes.partition_point(|change| change.version <= version);
        Ok(self.changes.range(start..))
    }

    /// What a watcher of `kind` with `selector` is told of the changes after `version`.
    /// An object that leaves the selection is DELETED for it, one that enters is ADDED.
    pub(super) fn watch(
        &self,
        kind: Kind,
        selector: &Selector,
        version: u64,
    ) -> Result<Vec<WatchEvent>, ApiError> {
        let of_kind = self.since(version)?.filter(|change| change.key.kind == kind);
        Ok(of_kind.filter_map(|change| through(selector, change)).collect())
    }
}

fn through(selector: &Selector, change: &Change) -> Option<WatchEvent> {
    let is = change.change != ChangeType::Deleted && selector.takes(&change.object);
    let was = change.before.as_ref().is_some_and(|before| selector.takes(before));
    let seen = match (was, is) {
        (false, true) => ChangeType::Added,
        (true, true) => ChangeType::Modified,
        (true, false) => ChangeType::Deleted,
        (false, false) => return None,
    };
    Some(WatchEvent { change: seen, object: Arc::clone(&change.object) })
}
