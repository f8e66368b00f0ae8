//! The newest known state of one kind, and who wants to hear of changes.
//!
//! Keys are `namespace/name` (just `name` for cluster-scoped kinds) in order, so
//! whatever is decided from a store does not depend on when things arrived.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use node_remedy_runtime::cluster::unread::Unread;
use tokio::sync::mpsc;

/// A change in a store: which kind, which object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The store's kind.
    pub kind: &'static str,
    /// The object's key.
    pub key: Rc<str>,
    /// The node that it is about, where its store knows; of what is gone too.
    pub node: Option<Rc<str>>,
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

/// Objects by key.
pub type Objects<V> = BTreeMap<Rc<str>, V>;

/// Objects of one kind, pruned to `V`.
pub struct Store<V> {
    kind: &'static str,
    objects: RefCell<Objects<V>>,
    /// The node that an object is about.
    node_of: fn(&V) -> Option<String>,
    /// Keys by node.
    by_node: RefCell<BTreeMap<Rc<str>, BTreeSet<Rc<str>>>>,
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
        Self::by_node(kind, changes, |_| None)
    }

    /// The same, of objects that are about nodes.
    pub fn by_node(
        kind: &'static str,
        changes: mpsc::UnboundedSender<Changed>,
        node_of: fn(&V) -> Option<String>,
    ) -> Rc<Self> {
        let (objects, unread, by_node) = <_>::default();
        let (synced, followed) = (Cell::new(false), Cell::new(false));
        Rc::new(Self { kind, objects, node_of, by_node, unread, synced, followed, changes })
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
    pub fn all(&self) -> Ref<'_, Objects<V>> {
        self.objects.borrow()
    }

    /// The keys of the objects, in order.
    pub fn keys(&self) -> Vec<String> {
        self.objects.borrow().keys().map(ToString::to_string).collect()
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

    /// The objects about one node, in key order.
    pub fn of_node(&self, node: &str) -> Vec<V>
    where
        V: Clone,
    {
        self.map_of_node(node, |_, value| value.clone())
    }

    /// Something of each of them, from its key and itself.
    pub fn map_of_node<T>(&self, node: &str, of: impl Fn(&str, &V) -> T) -> Vec<T> {
        let (objects, by_node) = (self.objects.borrow(), self.by_node.borrow());
        let keys = by_node.get(node).into_iter().flatten();
        keys.filter_map(|key| Some(of(key, objects.get(key)?))).collect()
    }

    /// Puts the state of one object.
    pub fn apply(&self, key: String, value: V) {
        self.unread.borrow_mut().remove(&key);
        let node: Option<Rc<str>> = (self.node_of)(&value).map(Rc::from);
        let before = self.take(&key);
        let same = before.as_ref() == Some(&value);
        let key: Rc<str> = key.into();
        if let Some(node) = node.clone() {
            self.by_node.borrow_mut().entry(node).or_default().insert(key.clone());
        }
        self.objects.borrow_mut().insert(key.clone(), value);
        if !same {
            self.tell(key, node);
        }
    }

    /// Takes an object out, and out of the index.
    fn take(&self, key: &str) -> Option<V> {
        let before = self.objects.borrow_mut().remove(key)?;
        if let Some(node) = (self.node_of)(&before) {
            let mut by_node = self.by_node.borrow_mut();
            let is_last = by_node.get_mut(&*node).is_some_and(|keys| {
                keys.remove(key);
                keys.is_empty()
            });
            if is_last {
                by_node.remove(&*node);
            }
        }
        Some(before)
    }

    /// Notes that an object is there and cannot be read.
    pub fn apply_unread(&self, key: String, unread: Unread) {
        let node = self.take(&key).and_then(|before| (self.node_of)(&before));
        self.unread.borrow_mut().insert(key.clone(), unread);
        self.tell(key.into(), node.map(Rc::from));
    }

    /// Forgets one object.
    pub fn remove(&self, key: &str) {
        let was_unread = self.unread.borrow_mut().remove(key).is_some();
        let before = self.take(key);
        if before.is_some() || was_unread {
            let node = before.and_then(|before| (self.node_of)(&before));
            self.tell(key.into(), node.map(Rc::from));
        }
    }

    /// Replaces everything after a full list. Of two with the same key the last counts.
    pub fn replace(&self, objects: Vec<(Rc<str>, V)>, unread: BTreeMap<String, Unread>) {
        // Built at once, a tree has no room left over.
        let objects: Objects<V> = objects.into_iter().collect();
        let mut keys: BTreeMap<Rc<str>, Vec<Rc<str>>> = BTreeMap::new();
        for (key, value) in &objects {
            let Some(node) = (self.node_of)(value) else { continue };
            match keys.get_mut(&*node) {
                Some(keys) => keys.push(key.clone()),
                None => drop(keys.insert(node.into(), vec![key.clone()])),
            }
        }
        let by_node = keys.into_iter().map(|(node, keys)| (node, keys.into_iter().collect()));
        self.by_node.replace(by_node.collect());
        let before = self.objects.replace(objects);
        let before_unread = self.unread.replace(unread);
        self.synced.set(true);
        self.followed.set(true);
        let (now, now_unread) = (self.objects.borrow(), self.unread.borrow());
        let is_same = |key: &str| {
            before.get(key) == now.get(key) && before_unread.get(key) == now_unread.get(key)
        };
        let read = before.keys().chain(now.keys()).cloned();
        let unread = before_unread.keys().chain(now_unread.keys()).map(|key| key.as_str().into());
        let changed: BTreeSet<Rc<str>> = read.chain(unread).filter(|key| !is_same(key)).collect();
        for key in changed {
            let node = now.get(&key).or(before.get(&key)).and_then(self.node_of);
            self.tell(key, node.map(|node| self.known_node(node)));
        }
    }

    /// Forgets everything, as before the first list.
    pub fn clear(&self) {
        self.replace(Vec::new(), BTreeMap::new());
        self.synced.set(false);
    }

    /// The name of a node, shared with the index where it is known there.
    fn known_node(&self, node: String) -> Rc<str> {
        let by_node = self.by_node.borrow();
        by_node.get_key_value(&*node).map_or_else(|| node.into(), |(known, _)| known.clone())
    }

    fn tell(&self, key: Rc<str>, node: Option<Rc<str>>) {
        // Nobody listens any more only while the process is shutting down.
        let _ = self.changes.send(Changed { kind: self.kind, key, node });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod that is gone names its node, so that nobody else looks for what it was.
    #[test]
    fn what_is_about_a_node_is_found_by_it_and_told_with_it() {
        let (changes, mut changed) = mpsc::unbounded_channel();
        let store = Store::by_node("Pod", changes, |pod: &(&str, u32)| Some(pod.0.to_owned()));
        let mut told = || {
            let mut told = Vec::new();
            while let Ok(one) = changed.try_recv() {
                told.push(format!("{} {}", one.key, one.node.as_deref().unwrap_or_default()));
            }
            told
        };
        store.replace(vec![("a".into(), ("n", 1))], BTreeMap::new());
        store.apply("b".to_owned(), ("n", 2));
        store.apply("c".to_owned(), ("m", 3));
        store.apply("c".to_owned(), ("m", 3));
        assert_eq!(told(), ["a n", "b n", "c m"]);
        assert_eq!(
            (store.of_node("n"), store.of_node("m")),
            (vec![("n", 1), ("n", 2)], vec![("m", 3)])
        );
        store.remove("b");
        store.apply("a".to_owned(), ("m", 1));
        assert_eq!(told(), ["b n", "a m"]);
        assert_eq!((store.of_node("n"), store.of_node("m").len()), (Vec::new(), 2));
        store.replace(vec![("c".into(), ("m", 4))], BTreeMap::new());
        assert_eq!(
            (told(), store.of_node("m")),
            (vec!["a m".to_owned(), "c m".to_owned()], vec![("m", 4)])
        );
    }
}
