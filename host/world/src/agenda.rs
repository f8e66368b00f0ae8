//! Whose turn is when: the world's only queue.
//!
//! Each actor stands in it at most once. Turns at the same moment come in the order of
//! their names, so that a run is a function of the scenario.

use std::collections::{BTreeMap, BTreeSet};

use crate::actors::Role;
use crate::time::Time;

/// Who can have a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Actor {
    /// The scenario's fault of that number.
    Fault(usize),
    /// The machine of that number, with its BMC and kubelet.
    Machine(usize),
    /// The PDU or switch of that number.
    Device(usize),
    /// A part of the control plane.
    Role(Role),
}

/// The queue of turns.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    turns: BTreeSet<(Time, Actor)>,
    due: BTreeMap<Actor, Time>,
}

impl Agenda {
    /// When the next turn is.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.turns.first().map(|(at, _)| *at)
    }

    /// Whether `actor` has a turn.
    pub(crate) fn has(&self, actor: Actor) -> bool {
        self.due.contains_key(&actor)
    }

    /// Takes the next turn out of the queue, if it is due by `to`.
    pub(crate) fn take(&mut self, to: Time) -> Option<(Time, Actor)> {
        let (at, actor) = *self.turns.first().filter(|(at, _)| *at <= to)?;
        self.turns.remove(&(at, actor));
        self.due.remove(&actor);
        Some((at, actor))
    }

    /// Gives `actor` a turn at `at`, or earlier if it has an earlier one.
    pub(crate) fn wake(&mut self, actor: Actor, at: Time) {
        if let Some(due) = self.due.get(&actor) {
            if *due <= at {
                return;
            }
            self.turns.remove(&(*due, actor));
        }
        self.due.insert(actor, at);
        self.turns.insert((at, actor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_has_one_turn_and_it_is_the_earliest_asked_for() {
        let mut agenda = Agenda::default();
        agenda.wake(Actor::Machine(1), Time(50));
        agenda.wake(Actor::Machine(1), Time(30));
        agenda.wake(Actor::Machine(1), Time(40));
        agenda.wake(Actor::Fault(0), Time(30));
        assert_eq!(agenda.next_at(), Some(Time(30)));
        assert_eq!(agenda.take(Time(29)), None);
        assert_eq!(agenda.take(Time(99)), Some((Time(30), Actor::Fault(0))));
        assert_eq!(agenda.take(Time(99)), Some((Time(30), Actor::Machine(1))));
        assert_eq!(agenda.take(Time(99)), None);
    }
}
