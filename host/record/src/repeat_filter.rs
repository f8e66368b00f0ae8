//! What an incident waits for is told once: one that is held back looks again every few seconds,
//! and an Event each time would bury the others.

use node_remedy_decide::{Hold, Phase, Span, Time};

use crate::reason::hold_words;

/// A hold that goes on is told again after this: the API server keeps Events for an hour.
pub const TELL_AGAIN: Span = Span::minutes(30);
/// Different holds that are remembered; past it the oldest is told again too early.
const HOLDS_MAX: usize = 32;

/// The holds that were told, each with when.
#[derive(Debug, Default)]
pub struct Holds {
    told: Vec<(Phase, String, Time)>,
}

impl Holds {
    /// Whether people have yet to be told of this hold in this phase. Numbers in a hold change all
    /// the time and make it no other one.
    pub fn is_news(&mut self, phase: Phase, hold: &Hold, now: Time) -> bool {
        let words = hold_words(hold);
        let same = |one: &&mut (Phase, String, Time)| one.0 == phase && one.1 == words;
        if let Some((.., told_at)) = self.told.iter_mut().find(same) {
            let is_news = now.since(*told_at) >= TELL_AGAIN;
            if is_news {
                *told_at = now;
            }
            return is_news;
        }
        if self.told.len() >= HOLDS_MAX {
            self.told.remove(0);
        }
        self.told.push((phase, words, now));
        true
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_decide::Refusal;

    use super::*;

    #[test]
    fn a_hold_is_told_once_whatever_its_numbers_and_again_after_a_while() {
        let silent =
            |unheard| Hold::Gate(vec![Refusal::SilenceNotJudged { until: Time(0), unheard }]);
        let later = Time(0).after(TELL_AGAIN);
        let mut holds = Holds::default();
        for (phase, hold, now, is_news) in [
            (Phase::Waiting, silent(3), Time(0), true),
            (Phase::Waiting, silent(2), Time(2_000), false),
            (Phase::Waiting, Hold::NoSlot, Time(4_000), true),
            (Phase::Waiting, silent(2), Time(6_000), false),
            (Phase::AwaitingPower, silent(2), Time(8_000), true),
            (Phase::Waiting, silent(2), later, true),
            (Phase::Waiting, silent(2), later, false),
        ] {
            assert_eq!(holds.is_news(phase, &hold, now), is_news, "{phase:?} {hold:?} {now:?}");
        }
    }

    #[test]
    fn no_more_than_so_many_are_remembered() {
        let mut holds = Holds::default();
        for number in 0..100 {
            let holders = Refusal::InFlight { holders: vec![], max: 1 };
            let phase = if number % 2 == 0 { Phase::Waiting } else { Phase::Isolating };
            let hold = Hold::Gate(vec![holders; number]);
            assert!(holds.is_news(phase, &hold, Time(0)));
        }
        assert_eq!(holds.told.len(), HOLDS_MAX);
    }
}
