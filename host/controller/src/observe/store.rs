//! The newest known state of one kind, and who wants to hear of changes.
//!
//! Keys are `namespace/name` (just `name` for cluster-scoped kinds) in order, so
//! whatever is decided from a store does not depend on when things arrived.

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::sync::mpsc;

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
        let objects = RefCell::default();
        let (synced, followed) = (Cell::new(false), Cell::new(false));
        Rc::new(Self { kind, objects, synced, followed, changes })
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

    /// One object.
    pub fn find(&self, key: &str) -> Option<V>
    where
        V: Clone,
    {
        self.objects.borrow().get(key).cloned()
    }

    /// Puts the state of one object.
    pub fn apply(&self, key: String, value: V) {
        let before = self.objects.borrow_mut().insert(key.clone(), value);
        let same = before.is_some_and(|before| self.objects.borrow().get(&key) == Some(&before));
        if !same {
            self.tell(key);
        }
    }

    /// Forgets one object.
    pub fn remove(&self, key: &str) {
        if self.objects.borrow_mut().remove(key).is_some() {
            self.tell(key.to_owned());
        }
    }

    /// Replaces everything after a full list.
    pub fn replace(&self, objects: BTreeMap<String, V>) {
        let before = self.objects.replace(objects);
        self.synced.set(true);
        self.followed.set(true);
        let now = self.objects.borrow();
        let gone = before.keys().filter(|key| !now.contains_key(*key));
        let new = now.iter().filter(|(key, value)| before.get(*key) != Some(*value));
        for key in gone.chain(new.map(|(key, _)| key)) {
            self.tell(key.clone());
        }
    }

    /// Forgets everything, as before the first list.
    pub fn clear(&self) {
        self.replace(BTreeMap::new());
        self.synced.set(false);
    }

    fn tell(&self, key: String) {
        // Nobody listens any more only while the process is shutting down.
        let _ = self.changes.send(Changed { kind: self.kind, key });
    }
}
