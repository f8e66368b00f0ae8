//! How nodes' conditions changed, as this process saw it: no object keeps that. A process that
//! starts counts from the beginning, and what it says of the time before is "not known".

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

use node_remedy_decide::bug::{Bug, guard, is_seeded};
use node_remedy_decide::{ChangesView, ConditionStatus, Span, Time};

use crate::pruned::PrunedNode;

/// Changes kept of one node; a sign counts to a hundred.
const CHANGES_MAX: usize = 256;
/// Earlier boots kept of one node. An etcd that is set back to before them is not recognised.
const BOOTS_MAX: usize = 8;
/// The longest delay between a write and its watch event.
const TOLD_WITHIN: Span = Span::seconds(10);
/// No sign asks for what is older.
const KEPT_FOR: Span = Span::minutes(24 * 60);

/// The changes of all nodes.
#[derive(Debug, Default)]
pub struct Changes {
    /// Since when this process watches nodes.
    begun_at: Cell<Time>,
    nodes: RefCell<BTreeMap<String, OfNode>>,
}

/// The changes of one node: of its present boot, and what outlives a boot.
#[derive(Debug, Default)]
struct OfNode {
    uid: String,
    boot_id: String,
    /// When it was first seen to have booted so; 0: it had when it was first seen.
    booted_at: Time,
    /// Whether another boot of it was seen before.
    is_another: bool,
    known_since: Time,
    changes: VecDeque<(String, Time)>,
    /// The boots that it was seen to have had before, oldest first.
    earlier: VecDeque<String>,
    /// The status of each condition that was seen to change or to appear, and when that was.
    began: BTreeMap<String, (String, Time)>,
    /// When each condition last left each status.
    left: BTreeMap<String, BTreeMap<String, Time>>,
}

impl Changes {
    /// Nodes are watched from now on.
    pub fn begin(&self, now: Time) {
        self.begun_at.set(now);
    }

    /// Since when this process watches nodes.
    pub fn begun_at(&self) -> Time {
        self.begun_at.get()
    }

    /// Notes what became of a node. A new boot begins anew, and all of it is known.
    pub fn note(&self, before: Option<&PrunedNode>, seen: &PrunedNode, now: Time) {
        let Some(before) = before.filter(|before| before.uid == seen.uid) else { return };
        let is_new_boot = self.boot_of(before) != self.boot_of(seen);
        let was = |kind: &str| before.conditions.get(kind).map(|was| &*was.status);
        let began = seen.conditions.iter().filter(|(kind, one)| was(kind) != Some(&*one.status));
        let began: Vec<(&str, &str)> = began.map(|(kind, one)| (&**kind, &*one.status)).collect();
        if began.is_empty() && !is_new_boot {
            return;
        }
        let changed: Vec<&str> =
            began.iter().map(|(kind, _)| *kind).filter(|kind| was(kind).is_some()).collect();
        let mut nodes = self.nodes.borrow_mut();
        if !nodes.contains_key(&seen.name) {
            nodes.retain(|_, one| one.latest().is_within(KEPT_FOR, now));
        }
        let of_node = nodes.entry(seen.name.clone()).or_insert_with(|| OfNode {
            uid: seen.uid.clone(),
            boot_id: before.boot_id.clone(),
            known_since: self.begun_at.get(),
            ..OfNode::default()
        });
        if of_node.uid != seen.uid {
            // Another Node of this name: nothing of the one before holds, and nothing of it was missed.
            let (uid, boot_id) = (seen.uid.clone(), before.boot_id.clone());
            *of_node = OfNode { uid, boot_id, booted_at: now, ..OfNode::default() };
        }
        if of_node.began.len() > CHANGES_MAX {
            of_node.began.clear();
            of_node.left.clear();
        }
        for kind in &changed {
            let status = was(kind).unwrap_or_default().to_owned();
            of_node.left.entry((*kind).to_owned()).or_default().insert(status, now);
        }
        for (kind, status) in began {
            of_node.began.insert(kind.to_owned(), (status.to_owned(), now));
        }
        if is_new_boot {
            let ended = std::mem::replace(&mut of_node.boot_id, seen.boot_id.clone());
            of_node.is_another = !ended.is_empty();
            of_node.earlier.push_back(ended);
            let surplus = of_node.earlier.len().saturating_sub(BOOTS_MAX);
            of_node.earlier.drain(..surplus);
            of_node.booted_at = now;
            // Nothing of this boot was missed.
            of_node.known_since = Time(0);
            of_node.changes.clear();
        }
        of_node.changes.extend(changed.into_iter().map(|kind| (kind.to_owned(), now)));
        while of_node.changes.len() > CHANGES_MAX
            || of_node.changes.front().is_some_and(|(_, at)| !at.is_within(KEPT_FOR, now))
        {
            let gone = of_node.changes.pop_front();
            of_node.known_since = gone.map_or(now, |(_, at)| at.after(Span(1)));
        }
    }

    /// Whether a node names a boot that was seen to end: no boot comes back, so etcd was set back.
    fn is_earlier(&self, node: &PrunedNode) -> bool {
        let nodes = self.nodes.borrow();
        let of_node = nodes.get(&node.name).filter(|one| one.uid == node.uid);
        let is_known = of_node.is_some_and(|one| one.earlier.contains(&node.boot_id));
        guard(Bug::BootsForgotten, is_known && !node.boot_id.is_empty())
    }

    /// The boot that a node runs, as far as is known.
    pub fn boot_of(&self, node: &PrunedNode) -> String {
        if !self.is_earlier(node) {
            return node.boot_id.clone();
        }
        let nodes = self.nodes.borrow();
        nodes.get(&node.name).map(|one| one.boot_id.clone()).unwrap_or_default()
    }

    /// Since when a condition says what it says, by our own clock where this process saw it change. `said` is when
    /// its writer says that, whose clock may be wrong: a machine that lives is not cut for that.
    pub fn began(&self, node: &PrunedNode, kind: &str, said: Time, now: Time) -> Time {
        let nodes = self.nodes.borrow();
        let of_node = nodes.get(&node.name).filter(|one| one.uid == node.uid);
        // A stamp that is still to come is of a server's clock that was set back since.
        let created = Some(node.created).filter(|created| *created <= now).unwrap_or_default();
        let status = node.conditions.get(kind).map(|one| &*one.status).unwrap_or_default();
        let told_at = match of_node.and_then(|one| one.began.get(kind)) {
            _ if is_seeded(Bug::AgesBelieved) => return said,
            Some((seen, at)) if seen == status => *at,
            // What no watch has told of yet.
            Some(_) => now,
            // Since this process watches, or the Node is there.
            None if said > now => return self.begun_at.get().max(created),
            None => return said.max(created),
        };
        let least = Time(told_at.0.saturating_sub(TOLD_WITHIN.0));
        said.max(least).max(created).min(told_at)
    }

    /// When a condition was last seen to become another status than each that it had.
    pub fn left(&self, node: &PrunedNode, kind: &str) -> Vec<(ConditionStatus, Time)> {
        let nodes = self.nodes.borrow();
        let of_node = nodes.get(&node.name).filter(|one| one.uid == node.uid);
        let left = of_node.and_then(|one| one.left.get(kind));
        left.into_iter().flatten().map(|(status, at)| (status_of(status), *at)).collect()
    }

    /// When a node's present boot was seen to begin; 0 where this process did not see it.
    pub fn booted_at(&self, node: &PrunedNode) -> Time {
        let boot_id = self.boot_of(node);
        let nodes = self.nodes.borrow();
        let of_boot = nodes.get(&node.name).filter(|one| one.boot_id == boot_id);
        of_boot.map_or(Time(0), |one| one.booted_at)
    }

    /// When a node's present boot was seen to take the place of another; 0 where this process saw no other.
    pub fn rebooted_at(&self, node: &PrunedNode) -> Time {
        let is_another = self.nodes.borrow().get(&node.name).is_some_and(|one| one.is_another);
        if is_another { self.booted_at(node) } else { Time(0) }
    }

    /// When a node was last seen to become Ready, or to be so no more, in its present boot. One that joined while
    /// this process watched has not come back by its first word.
    pub fn last_ready(&self, node: &PrunedNode) -> Option<Time> {
        let boot_id = self.boot_of(node);
        let nodes = self.nodes.borrow();
        let of_boot = nodes.get(&node.name).filter(|one| one.boot_id == boot_id)?;
        let ready = of_boot.changes.iter().rev().filter(|(kind, _)| kind == "Ready");
        let mut times = ready.map(|(_, at)| *at);
        let last = times.next()?;
        let is_new = !of_boot.is_another && node.created > self.begun_at.get();
        let has_joined = is_new && times.next().is_none();
        (!has_joined).then_some(last)
    }

    /// What is known of a node's present boot.
    pub fn of(&self, node: &PrunedNode) -> ChangesView {
        let boot_id = self.boot_of(node);
        match self.nodes.borrow().get(&node.name) {
            Some(one) if one.uid == node.uid && one.boot_id == boot_id => ChangesView {
                known_since: one.known_since,
                changes: one.changes.iter().cloned().collect(),
            },
            Some(_) | None => ChangesView { known_since: self.begun_at.get(), changes: Vec::new() },
        }
    }
}

/// A condition's status as decisions see it.
pub fn status_of(text: &str) -> ConditionStatus {
    match text {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
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
    use crate::pruned::Condition;

    fn node(ready: &str, boot: &str) -> PrunedNode {
        let object = serde_json::json!({"metadata": {"name": "n", "uid": "u"}});
        let mut node = PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap();
        node.boot_id = boot.to_owned();
        let ready = Condition {
            status: ready.to_owned().into(),
            reason: "".into(),
            since: Time(0),
            reported: Time(0),
            seen_at: Time(0),
            made_at: None,
        };
        node.conditions.insert("Ready".into(), ready);
        node
    }

    fn seconds(changes: &Changes, node: &PrunedNode) -> (u64, Vec<u64>) {
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
        // No boot comes back: what names the one before is an older copy.
        assert_eq!([&booted, &up].map(|one| changes.booted_at(one)), [Time(140_000); 2]);
        // A node of the same name that is another one.
        let other = PrunedNode { uid: "v".to_owned(), ..node("True", "two") };
        assert_eq!(seconds(&changes, &other), (100, vec![]));
    }

    #[test] // promise: A5
    fn a_boot_that_was_seen_to_end_is_not_the_present_one() {
        let changes = Changes::default();
        let boots = ["one", "two", "three"].map(|boot| node("True", boot));
        for (before, now) in boots.iter().zip(boots.iter().skip(1)) {
            changes.note(Some(before), now, Time(10_000));
        }
        let [first, second, third] = &boots;
        changes.note(Some(third), first, Time(20_000));
        assert_eq!([first, second, third].map(|one| changes.boot_of(one)), ["three"; 3]);
        changes.note(Some(first), third, Time(30_000));
        assert_eq!(changes.booted_at(third), Time(10_000), "no boot of its own");
        assert_eq!(changes.boot_of(&node("True", "four")), "four");
        assert_eq!(changes.boot_of(&node("True", "")), "", "it names none");
        let other = PrunedNode { uid: "v".to_owned(), ..node("True", "one") };
        assert_eq!(changes.boot_of(&other), "one", "another node");
    }

    #[test] // promise: A18
    fn how_long_a_condition_has_lasted_is_not_what_a_clock_says_that_is_wrong() {
        let changes = Changes::default();
        changes.begin(Time(100_000));
        let (up, down) = (node("True", "one"), node("False", "one"));
        let began =
            |node: &PrunedNode, said| changes.began(node, "Ready", Time(said), Time(130_000)).0;
        assert_eq!(began(&up, 5_000), 5_000, "nobody saw it begin");
        assert_eq!(began(&up, 900_000), 100_000, "a clock that is ahead");
        changes.note(Some(&up), &down, Time(120_000));
        assert_eq!(began(&down, 119_000), 119_000);
        assert_eq!(began(&down, 5_000), 110_000, "a clock that is behind");
        assert_eq!(began(&down, 900_000), 120_000, "a clock that is ahead");
        assert_eq!(began(&up, 5_000), 120_000, "what no watch has told of yet");
        // Another Node of this name has no past.
        let anew = |one: &PrunedNode| PrunedNode { uid: "v".to_owned(), ..one.clone() };
        changes.note(Some(&anew(&up)), &anew(&down), Time(900_000));
        assert_eq!(changes.left(&anew(&down), "Ready"), [(ConditionStatus::True, Time(900_000))]);
        let made = PrunedNode { created: Time(90_000), ..up };
        let of_made = |now| Changes::default().began(&made, "Ready", Time(5_000), Time(now)).0;
        assert_eq!(of_made(95_000), 90_000);
        assert_eq!(of_made(80_000), 5_000, "the server's clock was ahead when it was made");
    }

    #[test]
    fn a_node_that_joins_has_not_come_back() {
        let changes = Changes::default();
        changes.begin(Time(100_000));
        let made_at = |created, ready| PrunedNode { created: Time(created), ..node(ready, "one") };
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
            PrunedNode { boot_id: "two".to_owned(), ..made_at(120_000, "True") },
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
