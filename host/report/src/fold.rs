//! Folds the rows of the swim-lanes, so that thirty nodes stay readable: those that went through
//! the same, and those to which nothing happened.
//!
//! Deliberately lossless in what it counts: a row keeps all of its subjects.

use crate::alike::is_loud;
use crate::{Interval, Lane, Run, Weight};

/// Intervals of one subject that do not overlap: one line of bars.
pub(crate) type Track<'a> = Vec<&'a Interval>;

/// One subject of a lane.
pub(crate) struct Subject<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its bars; more than one line where states overlap.
    pub(crate) tracks: Vec<Track<'a>>,
    /// Whether a turning point is about it.
    pub(crate) is_marked: bool,
}

/// One row of the swim-lanes.
pub(crate) enum Row<'a> {
    /// A subject with a timeline of its own.
    One(Subject<'a>),
    /// Several subjects that went through the same states, each as a thin line.
    Bundle(Vec<Subject<'a>>),
    /// Subjects to which nothing happened, each in one state throughout.
    Quiet(Quiet<'a>),
}

/// Subjects to which nothing happened.
pub(crate) struct Quiet<'a> {
    /// Their names, in order.
    pub(crate) names: Vec<&'a str>,
    /// The state they share, or that each kept its own.
    pub(crate) state: &'a str,
    /// One of their stretches.
    pub(crate) interval: &'a Interval,
}

/// From this many subjects with the same states on, they share a row.
const BUNDLE_MIN: usize = 4;

/// From this many different lasting states on, a lane says only that nothing changed.
const QUIET_ROWS_MAX: usize = 2;

/// All lanes of a run that have rows, in order.
pub(crate) fn lanes(run: &Run) -> Vec<(Lane, Vec<Row<'_>>)> {
    [Lane::Controller, Lane::Node, Lane::Device, Lane::Workload]
        .into_iter()
        .map(|lane| (lane, rows(subjects(run, lane))))
        .filter(|(_, rows)| !rows.is_empty())
        .collect()
}

fn subjects(run: &Run, lane: Lane) -> Vec<Subject<'_>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for interval in run.intervals.iter().filter(|interval| interval.lane == lane) {
        let subject = find_or_add(&mut subjects, &interval.subject);
        let free =
            |track: &&mut Track<'_>| track.last().is_none_or(|last| last.to_ms <= interval.from_ms);
        if let Some(subject) = subject {
            match subject.tracks.iter_mut().find(free) {
                Some(track) => track.push(interval),
                None => subject.tracks.push(vec![interval]),
            }
        }
    }
    for entry in run.entries.iter().filter(|e| e.lane == lane && is_loud(e.weight)) {
        if let Some(subject) = find_or_add(&mut subjects, &entry.subject) {
            subject.is_marked = true;
        }
    }
    subjects
}

fn find_or_add<'s, 'a>(
    subjects: &'s mut Vec<Subject<'a>>,
    name: &'a str,
) -> Option<&'s mut Subject<'a>> {
    if !subjects.iter().any(|subject| subject.name == name) {
        subjects.push(Subject { name, tracks: Vec::new(), is_marked: false });
    }
    subjects.iter_mut().find(|subject| subject.name == name)
}

fn rows(subjects: Vec<Subject<'_>>) -> Vec<Row<'_>> {
    let mut bundles: Vec<Vec<Subject<'_>>> = Vec::new();
    let mut quiet: Vec<Quiet<'_>> = Vec::new();
    for subject in subjects {
        if let Some(interval) = lasting(&subject) {
            match quiet.iter_mut().find(|quiet| quiet.state == interval.state) {
                Some(quiet) => quiet.names.push(subject.name),
                None => {
                    quiet.push(Quiet {
                        names: vec![subject.name],
                        state: &interval.state,
                        interval,
                    });
                }
            }
            continue;
        }
        let same = |bundle: &&mut Vec<Subject<'_>>| {
            bundle.first().is_some_and(|first| {
                first.is_marked == subject.is_marked && states(first) == states(&subject)
            })
        };
        match bundles.iter_mut().find(same) {
            Some(bundle) => bundle.push(subject),
            None => bundles.push(vec![subject]),
        }
    }
    let told = bundles.into_iter().flat_map(|bundle| {
        if bundle.len() >= BUNDLE_MIN {
            vec![Row::Bundle(bundle)]
        } else {
            bundle.into_iter().map(Row::One).collect()
        }
    });
    told.chain(unchanged(quiet).into_iter().map(Row::Quiet)).collect()
}

/// Many different lasting states are one row: that they lasted is all there is to say.
fn unchanged(quiet: Vec<Quiet<'_>>) -> Vec<Quiet<'_>> {
    match quiet.as_slice() {
        [first, ..] if quiet.len() > QUIET_ROWS_MAX => {
            let interval = first.interval;
            let names = quiet.into_iter().flat_map(|quiet| quiet.names).collect();
            vec![Quiet { names, state: "unchanged throughout", interval }]
        }
        _ => quiet,
    }
}

/// The one state of a subject to which nothing happened.
fn lasting<'a>(subject: &Subject<'a>) -> Option<&'a Interval> {
    match (subject.is_marked, subject.tracks.as_slice()) {
        (false, [track]) => match track.as_slice() {
            [only] if only.weight != Weight::Bad => Some(only),
            _ => None,
        },
        _ => None,
    }
}

fn states<'a>(subject: &Subject<'a>) -> Vec<Vec<&'a str>> {
    let of_track = |track: &Track<'a>| track.iter().map(|s| s.state.as_str()).collect();
    subject.tracks.iter().map(of_track).collect()
}
