//! How nodes' conditions changed, as this process saw it: no object keeps that. A process that
//! starts counts from the beginning, and what it says of the time before is "not known".

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

use node_remedy_decide::{ChangesView, Span, Time};

use super::seen::NodeSeen;

/// Changes kept of one node; a sign counts to a hundred.
const CHANGES_MAX: usize = 256;
/// No sign asks for what is older.
const KEPT_FOR: Span = Span::minutes(24 * 60);

/// The changes of all nodes.
#[derive(Debug, Default)]
pub struct Changes {
    /// Since when this process watches nodes.
    begun_at: Cell<Time>,
    nodes: RefCell<BTreeMap<String, OfNode>>,
}

/// The changes of one boot of one node.
#[derive(Debug)]
struct OfNode {
    uid: String,
    boot_id: String,
    /// When it was first seen to have booted so; 0: it had when it was first seen.
    booted_at: Time,
    /// Whether another boot of it was seen before.
    is_another: bool,
    known_since: Time,
    changes: VecDeque<(String, Time)>,
}

impl Changes {
    /// Nodes are watched from now on.
    pub fn begin(&self, now: Time) {
        self.begun_at.set(now);
    }

    /// Notes what became of a node. A new boot begins anew, and all of it is known.
    pub fn note(&self, before: Option<&NodeSeen>, seen: &NodeSeen, now: Time) {
        let Some(before) = before.filter(|before| before.uid == seen.uid) else { return };
        let is_new_boot = before.boot_id != seen.boot_id;
        let changed = seen.conditions.iter().filter(|(kind, condition)| {
            before.conditions.get(*kind).is_some_and(|was| was.status != condition.status)
        });
        let changed: Vec<&String> = changed.map(|(kind, _)| kind).collect();
        if changed.is_empty() && !is_new_boot {
            return;
        }
        let mut nodes = self.nodes.borrow_mut();
        if !nodes.contains_key(&seen.name) {
            nodes.retain(|_, one| one.latest().is_within(KEPT_FOR, now));
        }
        let of_node = nodes.entry(seen.name.clone()).or_insert_with(|| OfNode {
            uid: seen.uid.clone(),
            boot_id: before.boot_id.clone(),
            booted_at: Time(0),
            is_another: false,
            known_since: self.begun_at.get(),
            changes: VecDeque::new(),
        });
        if is_new_boot || of_node.uid != seen.uid {
            let (uid, boot_id) = (seen.uid.clone(), seen.boot_id.clone());
            // Nothing of this boot was missed.
            let known_since = Time(0);
            let (changes, is_another) =
                (VecDeque::new(), is_new_boot && !before.boot_id.is_empty());
            *of_node = OfNode { uid, boot_id, booted_at: now, is_another, known_since, changes };
        }
        of_node.changes.extend(changed.into_iter().map(|kind| (kind.clone(), now)));
        while of_node.changes.len() > CHANGES_MAX
            || of_node.changes.front().is_some_and(|(_, at)| !at.is_within(KEPT_FOR, now))
        {
            let gone = of_node.changes.pop_front();
            of_node.known_since = gone.map_or(now, |(_, at)| at.after(Span(1)));
        }
    }

    /// When a node's present boot was seen to begin; 0 where this process did not see it.
    pub fn booted_at(&self, node: &NodeSeen) -> Time {
        let nodes = self.nodes.borrow();
        let of_boot = nodes.get(&node.name).filter(|one| one.boot_id == node.boot_id);
        of_boot.map_or(Time(0), |one| one.booted_at)
    }

    /// When a node was last seen to become Ready, or to be so no more, in its present boot. One that joined while
    /// this process watched has not come back by its first word.
    pub fn last_ready(&self, node: &NodeSeen) -> Option<Time> {
        let nodes = self.nodes.borrow();
        let of_boot = nodes.get(&node.name).filter(|one| one.boot_id == node.boot_id)?;
        let ready = of_boot.changes.iter().rev().filter(|(kind, _)| kind == "Ready");
        let mut times = ready.map(|(_, at)| *at);
        let last = times.next()?;
        let is_new = !of_boot.is_another && node.created > self.begun_at.get();
        let has_joined = is_new && times.next().is_none();
        (!has_joined).then_some(last)
    }

    /// What is known of a node's present boot.
    pub fn of(&self, node: &NodeSeen) -> ChangesView {
        match self.nodes.borrow().get(&node.name) {
            Some(one) if one.uid == node.uid && one.boot_id == node.boot_id => ChangesView {
                known_since: one.known_since,
                changes: one.changes.iter().cloned().collect(),
            },
            Some(_) | None => ChangesView { known_since: self.begun_at.get(), changes: Vec::new() },
        }
    }
}

impl OfNode {
    fn latest(&self) -> Time {
        self.changes.back().map_or(self.booted_at, |(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::seen::Condition;

    fn node(ready: &str, boot: &str) -> NodeSeen {
        let object = serde_json::json!({"metadata": {"name": "n", "uid": "u"}});
        let mut node = NodeSeen::of(serde_json::from_value(object).unwrap()).unwrap();
        node.boot_id = boot.to_owned();
        let ready = Condition {
            status: ready.to_owned(),
            reason: "".into(),
            since: Time(0),
            reported: Time(0),
        };
        node.conditions.insert("Ready".to_owned(), ready);
        node
    }

    fn seconds(changes: &Changes, node: &NodeSeen) -> (u64, Vec<u64>) {
        let view = changes.of(node);
        let times = view.changes.iter().map(|(_, at)| at.0 / 1_000).collect();
        (view.known_since.0 / 1_000, times)
    }

    #[test]
    fn changes_are_counted_from_the_start_of_the_process_and_anew_with_each_boot() {
        let changes = Changes::default();
        changes.begin(Time(100_000));
        let (up, down) = (node("True", "one"), node("Unknown", "one"));
        changes.note(None, &up, Time(100_000));
        changes.note(Some(&up), &up, Time(110_000));
        assert_eq!(seconds(&changes, &up), (100, vec![]));
        changes.note(Some(&up), &down, Time(120_000));
        changes.note(Some(&down), &up, Time(130_000));
        assert_eq!(seconds(&changes, &up), (100, vec![120, 130]));
        // Another boot: nothing is left of the one before, and nothing of it was missed.
        let booted = node("False", "two");
        changes.note(Some(&up), &booted, Time(140_000));
        changes.note(Some(&booted), &node("True", "two"), Time(150_000));
        assert_eq!(seconds(&changes, &booted), (0, vec![140, 150]));
        assert_eq!((changes.booted_at(&booted), changes.booted_at(&up)), (Time(140_000), Time(0)));
        // A node of the same name that is another one.
        let other = NodeSeen { uid: "v".to_owned(), ..node("True", "two") };
        assert_eq!(seconds(&changes, &other), (100, vec![]));
    }

    #[test]
    fn a_node_that_joins_has_not_come_back() {
        let changes = Changes::default();
        changes.begin(Time(100_000));
        let made_at = |created, ready| NodeSeen { created: Time(created), ..node(ready, "one") };
        let joins = |created| {
            changes.note(
                Some(&made_at(created, "False")),
                &made_at(created, "True"),
                Time(130_000),
            );
            changes.last_ready(&made_at(created, "True"))
        };
        assert_eq!(joins(120_000), None);
        // It was Ready before.
        assert_eq!(joins(120_000), Some(Time(130_000)));
        let changes = Changes::default();
        changes.begin(Time(100_000));
        // Nobody saw how it was when this process did not watch yet.
        let (down, up) = (made_at(90_000, "False"), made_at(90_000, "True"));
        changes.note(Some(&down), &up, Time(130_000));
        assert_eq!(changes.last_ready(&up), Some(Time(130_000)));
        let (down, up) = (
            made_at(120_000, "Unknown"),
            NodeSeen { boot_id: "two".to_owned(), ..made_at(120_000, "True") },
        );
        changes.note(Some(&down), &up, Time(140_000));
        assert_eq!(changes.last_ready(&up), Some(Time(140_000)), "it booted");
    }

    #[test]
    fn what_was_forgotten_is_not_known() {
        let changes = Changes::default();
        let (up, down) = (node("True", "one"), node("Unknown", "one"));
        for number in 0..(u64::try_from(CHANGES_MAX).unwrap() + 2) {
            let (before, now) = if number % 2 == 0 { (&up, &down) } else { (&down, &up) };
            changes.note(Some(before), now, Time(1_000 + number * 1_000));
        }
        let view = changes.of(&up);
        assert_eq!((view.known_since, view.changes.len()), (Time(2_001), CHANGES_MAX));
    }
}
