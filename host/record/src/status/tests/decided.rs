//! Decisions of plugins, made by dice, for the records that are written and read back.

use node_remedy_decide::{Choice, Decided, Span, Time};

use crate::status::tests::Dice;

impl Dice {
    pub(super) fn decisions(&mut self) -> Vec<Decided> {
        let choices = [
            Choice::Method(self.text()),
            Choice::Cluster(self.text()),
            Choice::Fence,
            Choice::Wait(Span::seconds(u64::from(self.number()))),
            Choice::Done,
            Choice::Fail(self.text()),
        ];
        let mut number = 0;
        self.list(4, |dice| {
            number += 1 + u32::try_from(dice.roll(3)).unwrap();
            Decided {
                number,
                remedy_step: 0,
                asked_at: dice.time(),
                choice: dice.maybe(|dice| dice.of(&choices)),
                chosen_at: dice.maybe(Self::time),
                followed_at: dice.maybe(Self::time),
                failed: dice.maybe(Self::text),
                ended_at: dice.maybe(Self::time),
            }
        })
    }
}

/// A decision that has ended.
pub(super) fn gave_up(number: u32) -> Decided {
    Decided {
        number,
        remedy_step: 0,
        asked_at: Time(1),
        choice: Some(Choice::Fail("no idea".into())),
        chosen_at: Some(Time(2)),
        followed_at: None,
        failed: None,
        ended_at: Some(Time(3)),
    }
}
