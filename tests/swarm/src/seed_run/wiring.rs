//! Runs in which the storage of a node is cut before its only outlet, and the outlet that is written down is mostly another
//! machine's; with people who undo the cut, abort, and boot the machine by hand.

use std::collections::BTreeSet;

use node_remedy_world::rng::Rng;

use super::Draft;
use super::cuts::gives_storage_back;

/// Storage is cut, then the only outlet.
const OUTLET: &str = "one outlet behind a cut";
/// The outlet is another machine's.
pub(super) const WRONG: &str = "outlet of another behind a cut";
/// Somebody stops the incident, or has it tried again.
const OPERATOR_COMMAND: &str = "word behind a cut";
/// Somebody gives the storage back.
const UNDONE: &str = "cut of an outlet's machine undone";
/// Somebody switches the machine on.
const HAND: &str = "booted by hand behind a cut";
/// Every class that is drawn here.
pub(super) const CLASSES: [&str; 5] = [OUTLET, WRONG, OPERATOR_COMMAND, UNDONE, HAND];
/// In so many of a hundred runs.
const PERCENT: u64 = 6;
/// So many that one lost node and its neighbour are no storm.
const NODES: u64 = 8;

/// Moments of such an incident at which people interfere.
const MOMENTS: [(&str, &str); 7] = [
    ("intentRecorded", "method: storage, action: \"off\""),
    ("proofRecorded", "grade: storage-fenced"),
    ("intentRecorded", "method: outlet, action: \"off\""),
    ("plugAccepted", "command: \"off\""),
    ("plugReported", "power: \"off\""),
    ("intentRecorded", "method: storage, action: \"on\""),
    ("fenceState", "state: Error"),
];

pub(super) fn is_drawn(seed: u64) -> bool {
    Rng::named(seed, OUTLET).below(100) < PERCENT
}

/// How many nodes there are where it matters.
pub(super) fn nodes(seed: u64) -> Option<u64> {
    is_drawn(seed).then_some(NODES)
}

impl Draft {
    /// Chooses the outlet that is configured for such a node: its own one, or mostly another's. Answers the miswired outlets. A
    /// node with faults of its own is left out: its silence would hide that its outlet was switched off.
    pub(super) fn choose_outlet(
        &mut self,
        seed: u64,
        lost: &[String],
        names: &[String],
    ) -> BTreeSet<u64> {
        let node = lost.first().filter(|_| self.rack.is_fed());
        let Some(own) = node.and_then(|node| names.iter().position(|name| name == node)) else {
            return BTreeSet::new();
        };
        let mut rng = Rng::named(seed, WRONG);
        let is_wrong = rng.below(100) < 75;
        let further = 1 + rng.below(u64::try_from(names.len().saturating_sub(1)).unwrap_or(1));
        let mut others = (0..names.len()).cycle().skip(own + usize::try_from(further).unwrap_or(1));
        let has_fault = |what: String| self.faults.contains(&what);
        let is_spared = |name: &String| {
            !has_fault(format!(": {name} }}")) && !has_fault(format!("node: {name}, type:"))
        };
        let is_another = |place: &usize| *place != own && names.get(*place).is_some_and(is_spared);
        let another = others.by_ref().take(names.len()).find(is_another);
        let place = another.filter(|_| is_wrong).unwrap_or(own);
        self.rack.name_outlet(place + 1);
        if place == own {
            return BTreeSet::new();
        }
        self.drawn.push(WRONG.to_owned());
        BTreeSet::from([u64::try_from(place + 1).unwrap_or_default()])
    }

    /// What people do while such a node is fenced. Answers whether they do anything behind its cut.
    pub(super) fn people_at_its_machine(&mut self, seed: u64, lost: &[String]) -> bool {
        let Some(node) = lost.first().filter(|_| self.rack.is_fed()) else { return false };
        let mut rng = Rng::named(seed, "hands on an outlet's machine");
        self.drawn.push(OUTLET.to_owned());
        let undo = gives_storage_back(node);
        let boots = [format!("powerOnByHand: {node}"), format!("nodeComesBack: {node}")];
        for _ in 0..rng.within(0, 4) {
            let drawn = rng.below(u64::try_from(MOMENTS.len()).unwrap_or(1));
            let moment = MOMENTS.get(usize::try_from(drawn).unwrap_or_default());
            let Some((fact, fields)) = moment.copied() else { continue };
            let long = if rng.below(2) == 0 { 30_000 } else { 400_000 };
            let after = rng.below(long);
            let (deed, class) = match rng.below(100) {
                0..40 => (undo.clone(), UNDONE),
                40..75 => {
                    let says = ["abort", "abort-leave-off", "retry"];
                    let drawn = usize::try_from(rng.below(3)).unwrap_or_default();
                    let says = says.get(drawn).copied().unwrap_or("retry");
                    (
                        format!("operatorCommand: {{ node: {node}, command: {says} }}"),
                        OPERATOR_COMMAND,
                    )
                }
                _ => {
                    let drawn = usize::try_from(rng.below(2)).unwrap_or_default();
                    (boots.get(drawn).cloned().unwrap_or_default(), HAND)
                }
            };
            self.blow(node, fact, fields, after, &deed);
            self.drawn.push(class.to_owned());
        }
        true
    }
}
