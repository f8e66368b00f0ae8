//! The time axis, stretched where much happens.
//!
//! A run is minutes of waiting and one second that matters. On an even axis that second is
//! a hair's breadth, so each gap between two moments gets the fourth root of its length:
//! order and simultaneity stay true, lengths do not, and the page says so.

use std::collections::BTreeSet;

use crate::alike;
use crate::fold::{self, Row};
use crate::{Run, Timeline};

/// More points than this make every gap equally small: then only turning points count.
const KNOTS_MAX: usize = 28;

/// Maps times to places between 0 and 1.
pub(crate) struct Axis {
    /// Times and their places, both growing; the first is 0 at 0, the last is the end at 1.
    knots: Vec<(u64, f64)>,
    /// The times worth a tick, the most telling first.
    telling: Vec<u64>,
}

impl Axis {
    /// One axis for both runs of a scenario, so that they can be compared.
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let runs = || std::iter::once(&timeline.with).chain(&timeline.without);
        let end = runs().map(|run| run.end_ms).max().unwrap_or(0).max(1);
        let turns: BTreeSet<u64> = runs().flat_map(turn_times).collect();
        let bounds: BTreeSet<u64> = runs().flat_map(bound_times).collect();
        let mut times: BTreeSet<u64> = turns.union(&bounds).copied().collect();
        if times.len() > KNOTS_MAX {
            times.clone_from(&turns);
        }
        if times.len() > KNOTS_MAX {
            times.clear();
        }
        times.extend([0, end]);
        times.retain(|&time| time <= end);
        let telling = turns.iter().chain(bounds.difference(&turns)).copied().collect();
        Axis { knots: placed(&times), telling }
    }

    /// Where a time stands, between 0 and 1.
    pub(crate) fn place(&self, at_ms: u64) -> f64 {
        let after = self.knots.partition_point(|&(time, _)| time <= at_ms);
        let before = after.checked_sub(1).and_then(|index| self.knots.get(index));
        match (before, self.knots.get(after)) {
            (Some(&(t0, p0)), Some(&(t1, p1))) => {
                let part = number(at_ms - t0) / number((t1 - t0).max(1));
                p0 + (p1 - p0) * part
            }
            (None, _) => 0.0,
            (Some(_), None) => 1.0,
        }
    }

    /// The times that get a tick, in order, at least `apart` (a part of the axis) from each
    /// other.
    pub(crate) fn ticks(&self, apart: f64) -> Vec<u64> {
        let ends = self.knots.first().into_iter().chain(self.knots.last());
        let candidates = ends.map(|&(time, _)| time).chain(self.telling.iter().copied());
        let mut ticks: Vec<u64> = Vec::new();
        for time in candidates {
            let place = self.place(time);
            if ticks.iter().all(|&other| (self.place(other) - place).abs() >= apart) {
                ticks.push(time);
            }
        }
        ticks.sort_unstable();
        ticks
    }
}

fn turn_times(run: &Run) -> Vec<u64> {
    let proofs = run.incidents.iter().filter_map(|incident| incident.proof.as_ref());
    let turns = alike::turns(run);
    let ends =
        turns.iter().flat_map(|turn| turn.members.first().into_iter().chain(turn.members.last()));
    proofs.map(|proof| proof.read_ms).chain(ends.map(|(_, entry)| entry.at_ms)).collect()
}

/// Where the states of single subjects change; those of bundles differ by node and would
/// stretch the axis thirty times over.
fn bound_times(run: &Run) -> Vec<u64> {
    let lanes = fold::lanes(run);
    let rows = lanes.iter().flat_map(|(_, rows)| rows);
    let singles = rows.filter_map(|row| match row {
        Row::One(subject) => Some(subject),
        Row::Bundle(_) | Row::Quiet(_) => None,
    });
    let intervals = singles.flat_map(|subject| subject.tracks.iter().flatten());
    intervals.flat_map(|interval| [interval.from_ms, interval.to_ms]).collect()
}

fn placed(times: &BTreeSet<u64>) -> Vec<(u64, f64)> {
    let mut sum = 0.0;
    let mut last = 0;
    let mut knots: Vec<(u64, f64)> = times
        .iter()
        .map(|&time| {
            // The fourth root by two square roots, which are exact on every machine.
            sum += number(time - last).sqrt().sqrt();
            last = time;
            (time, sum)
        })
        .collect();
    for (_, place) in &mut knots {
        *place /= sum;
    }
    knots
}

/// A time as a number to draw with; beyond seven weeks all times are one.
fn number(ms: u64) -> f64 {
    f64::from(u32::try_from(ms).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_grow_with_time_and_stay_inside() {
        let axis = Axis {
            knots: placed(&BTreeSet::from([0, 20_000, 20_400, 90_000])),
            telling: vec![20_400, 20_000],
        };
        let places: Vec<f64> =
            [0, 10_000, 20_000, 20_200, 20_400, 90_000, 99_000].map(|t| axis.place(t)).to_vec();
        assert!(places.is_sorted());
        assert_eq!((places[0], places[5], places[6]), (0.0, 1.0, 1.0));
        assert!(places[4] - places[2] > 0.1, "the second that matters has room: {places:?}");
        assert_eq!(axis.ticks(0.2), [0, 20_400, 90_000]);
    }
}
