//! The ladder: when the next remedy of a configuration has its turn.
//!
//! Whether a run may be opened for it is another question, which the gate answers.

use crate::{Crossing, Span, Time};

/// What is known of a node's ladder in the present incident.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LadderView {
    /// How many remedies the threshold lists.
    pub rungs: usize,
    /// The threshold's period.
    pub period: Span,
    /// Whether the condition holds.
    pub trigger: Crossing,
    /// The last run, if there was one.
    pub last: Option<LastRun>,
}

/// The last run of an incident.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LastRun {
    /// Which remedy it was, from 0.
    pub rung: usize,
    /// When it ended; `None` while it goes on or is parked.
    pub ended_at: Option<Time>,
    /// When its Job ended; `None` inside while that runs.
    pub job: Option<JobEnd>,
}

/// A run's Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobEnd {
    /// It runs.
    Running,
    /// It ended then, one way or the other.
    Ended(Time),
}

/// What the ladder says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rung {
    /// This remedy has its turn.
    Climb(usize),
    /// Not yet; look again then.
    Wait(Option<Time>),
    /// Nothing to do: the condition does not hold.
    Rest,
    /// The last remedy has had its turn and the condition still holds: a person is needed.
    Exhausted,
}

/// A11: the next remedy has its turn when the previous run and its Job have ended and the
/// condition still holds a period later. Runs never overlap on a node.
pub fn next_rung(view: &LadderView, now: Time) -> Rung {
    let next_look = match &view.trigger {
        Crossing::Clear { .. } => return Rung::Rest,
        Crossing::Unclear => return Rung::Wait(None),
        Crossing::Ripening { crosses_at, .. } => return Rung::Wait(Some(*crosses_at)),
        Crossing::Crossed { .. } => view.last.as_ref().map(|last| {
            let job_ended_at = match last.job {
                None => Some(Time::default()),
                Some(JobEnd::Ended(at)) => Some(at),
                Some(JobEnd::Running) => None,
            };
            let ended_at = last.ended_at.zip(job_ended_at).map(|(run, job)| run.max(job));
            (last.rung, ended_at.map(|at| at.after(view.period)))
        }),
    };
    match next_look {
        None if view.rungs == 0 => Rung::Exhausted,
        None => Rung::Climb(0),
        Some((_, None)) => Rung::Wait(None),
        Some((_, Some(at))) if now < at => Rung::Wait(Some(at)),
        Some((last, Some(_))) if last.saturating_add(1) >= view.rungs => Rung::Exhausted,
        Some((last, Some(_))) => Rung::Climb(last.saturating_add(1)),
    }
}
