//! Times in a record whose writer's clock was ahead of ours.

use crate::{Record, Time};

impl Record {
    /// Reckons the times of the last writer by our clock: where any of them lies ahead of `now`, all
    /// are set back alike, so that the latest is `now`. What is waited for is waited for from now on
    /// at the latest, and nothing new is older than what stands in the record.
    ///
    /// Times that no decision reads stay as they were written: when it was opened, proven, parked.
    /// Signs of life are the node's own words, and [`crate::OnFailure`]s are held against what
    /// people said.
    pub(crate) fn reckon_from(&mut self, now: Time) {
        let ahead = self.times().map(|time| *time).max().unwrap_or_default().since(now);
        for time in self.times() {
            *time = Time(time.0.saturating_sub(ahead.0));
        }
    }

    fn times(&mut self) -> impl Iterator<Item = &mut Time> {
        let operations = self.operations.iter_mut();
        let operations =
            operations.flat_map(|one| [&mut one.intended_at].into_iter().chain(&mut one.ended_at));
        let released = self.released.iter_mut().flat_map(|one| {
            [&mut one.at, &mut one.progress_at].into_iter().chain(&mut one.sent_at)
        });
        let jobs = self.jobs.iter_mut();
        let jobs =
            jobs.flat_map(|one| [&mut one.intended_at].into_iter().chain(&mut one.stopping_at));
        let decided = self.decisions.iter_mut();
        let decided =
            decided.flat_map(|one| [&mut one.asked_at].into_iter().chain(&mut one.chosen_at));
        [&mut self.entered_at]
            .into_iter()
            .chain(jobs)
            .chain(decided)
            .chain(&mut self.handed_over_at)
            .chain(&mut self.gate_closed_at)
            .chain(&mut self.dump_held_at)
            .chain(&mut self.unreachable_at)
            .chain(self.baseline.iter_mut().map(|one| &mut one.at))
            .chain(operations)
            .chain(released)
    }
}
