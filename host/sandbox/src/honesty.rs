//! Whether an answer can be true, given what the host itself saw the plugin do. It catches the
//! careless and the lazy; a plugin that speaks with its device and then lies is caught only by
//! the separate `status` that every proof needs.

use node_remedy_decide::bug::{Bug, guard};

use crate::types::{Action, Effect, Outcome, PlugState};

/// What the host saw.
pub(crate) struct Seen {
    pub(crate) action: Action,
    pub(crate) effect: Effect,
    /// Messages that came from a device.
    pub(crate) heard: u32,
    /// Whether the plugin has a device to speak with at all.
    pub(crate) has_endpoints: bool,
}

/// Why the outcome cannot be true, if it cannot.
pub(crate) fn contradiction(seen: &Seen, outcome: &Outcome) -> Option<&'static str> {
    if guard(Bug::UnheardBelieved, seen.has_endpoints && seen.heard == 0) {
        return Some("it reported a state without hearing from the device");
    }
    let done_before = match (seen.action, outcome.state) {
        (Action::Status | Action::Monitor | Action::Plugs, _)
        | (Action::Off, PlugState::Off)
        | (Action::On, PlugState::On) => true,
        (Action::Off, PlugState::On | PlugState::Transitioning | PlugState::Unknown)
        | (Action::On, PlugState::Off | PlugState::Transitioning | PlugState::Unknown)
        | (Action::Reset, _) => false,
    };
    if seen.effect == Effect::NotBegun && !done_before {
        return Some("it reported success without beginning an effect");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_true_is_a_contradiction() {
        use {Action as A, Effect as E, PlugState as S};
        let rows = [
            (A::Status, E::NotBegun, 1, S::Off, true),
            (A::Status, E::NotBegun, 0, S::Off, false),
            (A::Monitor, E::NotBegun, 1, S::Unknown, true),
            (A::Off, E::NotBegun, 1, S::Off, true),
            (A::Off, E::NotBegun, 1, S::On, false),
            (A::Off, E::NotBegun, 1, S::Unknown, false),
            (A::Off, E::Begun, 1, S::Unknown, true),
            (A::Off, E::Begun, 0, S::Off, false),
            (A::On, E::NotBegun, 1, S::On, true),
            (A::On, E::NotBegun, 1, S::Off, false),
            (A::Reset, E::NotBegun, 1, S::On, false),
            (A::Reset, E::Begun, 1, S::On, true),
        ];
        for (action, effect, heard, state, honest) in rows {
            let seen = Seen { action, effect, heard, has_endpoints: true };
            let outcome = Outcome { state, identity: vec![], detail: String::new(), extra: vec![] };
            let row = format!("{action:?} {effect:?} heard {heard} {state:?}");
            assert_eq!(contradiction(&seen, &outcome).is_none(), honest, "{row}");
        }
    }
}
