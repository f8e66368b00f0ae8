//! Who claims one thing, in little room: a large cluster has as many things as Nodes, and more.

use std::collections::btree_map::{BTreeMap, Entry};
use std::rc::Rc;

/// Who claims one thing: the first two by name, of whom one is another Node than the one that is asked for.
#[derive(Debug)]
pub(crate) struct Claimants {
    first: Rc<str>,
    second: Option<Rc<str>>,
}

impl Claimants {
    pub(crate) fn another(&self, node: &str) -> Option<&str> {
        if *self.first == *node { self.second.as_deref() } else { Some(&self.first) }
    }

    fn add(&mut self, node: &Rc<str>) {
        let mut names: Vec<_> = self.second.take().into_iter().collect();
        names.extend([self.first.clone(), node.clone()]);
        names.sort();
        names.dedup();
        let mut names = names.into_iter();
        self.first = names.next().unwrap_or_else(|| node.clone());
        self.second = names.next();
    }
}

/// Notes that a Node claims something.
pub(crate) fn add<K: Ord>(to: &mut BTreeMap<K, Claimants>, claim: K, node: &Rc<str>) {
    match to.entry(claim) {
        Entry::Occupied(mut known) => known.get_mut().add(node),
        Entry::Vacant(new) => drop(new.insert(Claimants { first: node.clone(), second: None })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_claimants_each_is_told_of_the_first_other() {
        let names = ["b", "d", "a", "c", "a"].map(Rc::<str>::from);
        let mut claimants = BTreeMap::new();
        for name in &names {
            add(&mut claimants, (), name);
        }
        let told = ["a", "b", "c", "d"].map(|node| claimants[&()].another(node));
        assert_eq!(told, [Some("b"), Some("a"), Some("a"), Some("a")]);
        let mut alone = BTreeMap::new();
        add(&mut alone, (), &names[0]);
        assert_eq!(alone[&()].another("b"), None);
    }
}
