//! The newest known state of one kind, and who wants to hear of changes.
//!
//! Keys are `namespace/name` (just `name` for cluster-scoped kinds) in order, so
//! whatever is decided from a store does not depend on when things arrived.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tokio::sync::mpsc;

use crate::cluster::Unread;

/// A change in a store: which kind, which object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The store's kind.
    pub kind: &'static str,
    /// The object's key.
    pub key: String,
}

impl Changed {
    /// Whether it may change the configuration.
    pub fn configures(&self) -> bool {
        matches!(
            self.kind,
            "RemedyConfiguration" | "FenceConfiguration" | "FencePlugin" | "ConfigMap"
        )
    }
}

/// Objects of one kind, pruned to `V`.
pub struct Store<V> {
    kind: &'static str,
    objects: RefCell<BTreeMap<String, V>>,
    unread: RefCell<BTreeMap<String, Unread>>,
    synced: Cell<bool>,
    followed: Cell<bool>,
    changes: mpsc::UnboundedSender<Changed>,
}

impl<V: PartialEq> Store<V> {
    /// An empty store that reports changes to `changes`.
    ///
    /// The channel needs no bound of its own: its reader folds changes into a set of
    /// names, so what waits there is no more than what changed since its last turn.
    pub fn new(kind: &'static str, changes: mpsc::UnboundedSender<Changed>) -> Rc<Self> {
        let (objects, unread) = (RefCell::default(), RefCell::default());
        let (synced, followed) = (Cell::new(false), Cell::new(false));
        Rc::new(Self { kind, objects, unread, synced, followed, changes })
    }

    /// Whether a first full list has been read.
    pub fn is_synced(&self) -> bool {
        self.synced.get()
    }

    /// Whether what is told of the objects comes here, as far as is known: not between a list or watch that
    /// failed and the next one that does not.
    pub fn is_followed(&self) -> bool {
        self.followed.get()
    }

    /// Notes whether it is.
    pub fn set_followed(&self, is_followed: bool) {
        self.followed.set(is_followed);
    }

    /// The objects, in key order.
    pub fn all(&self) -> Ref<'_, BTreeMap<String, V>> {
        self.objects.borrow()
    }

    /// Those that are there and cannot be read, in key order; none of them is among [`Self::all`].
    pub fn unread(&self) -> Ref<'_, BTreeMap<String, Unread>> {
        self.unread.borrow()
    }

    /// One object.
    pub fn find(&self, key: &str) -> Option<V>
    where
        V: Clone,
    {
        self.objects.borrow().get(key).cloned()
    }

    /// Puts the state of one object.
    pub fn apply(&self, key: String, value: V) {
        self.unread.borrow_mut().remove(&key);
        let before = self.objects.borrow_mut().insert(key.clone(), value);
        let same = before.is_some_and(|before| self.objects.borrow().get(&key) == Some(&before));
        if !same {
            self.tell(key);
        }
    }

    /// Notes that an object is there and cannot be read.
    pub fn apply_unread(&self, key: String, unread: Unread) {
        self.objects.borrow_mut().remove(&key);
        self.unread.borrow_mut().insert(key.clone(), unread);
        self.tell(key);
    }

    /// Forgets one object.
    pub fn remove(&self, key: &str) {
        let was_unread = self.unread.borrow_mut().remove(key).is_some();
        if self.objects.borrow_mut().remove(key).is_some() || was_unread {
            self.tell(key.to_owned());
        }
    }

    /// Replaces everything after a full list.
    pub fn replace(&self, objects: BTreeMap<String, V>, unread: BTreeMap<String, Unread>) {
        let before = self.objects.replace(objects);
        let before_unread = self.unread.replace(unread);
        self.synced.set(true);
        self.followed.set(true);
        let changed: BTreeSet<String> = {
            let (now, now_unread) = (self.objects.borrow(), self.unread.borrow());
            let is_same = |key: &String| {
                before.get(key) == now.get(key) && before_unread.get(key) == now_unread.get(key)
            };
            let read = before.keys().chain(now.keys());
            let all = read.chain(before_unread.keys()).chain(now_unread.keys());
            all.filter(|key| !is_same(key)).cloned().collect()
        };
        changed.into_iter().for_each(|key| self.tell(key));
    }

    /// Forgets everything, as before the first list.
    pub fn clear(&self) {
        self.replace(BTreeMap::new(), BTreeMap::new());
        self.synced.set(false);
    }

    fn tell(&self, key: String) {
        // Nobody listens any more only while the process is shutting down.
        let _ = self.changes.send(Changed { kind: self.kind, key });
    }
}
