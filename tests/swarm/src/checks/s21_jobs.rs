//! S21: a Job never runs on the node that it remedies, is not started again once it is gone, has none of
//! its incident beside it, does not outlive it, and is not started for a node that has long been well. Jobs are known by
//! their pods; those of a Job that is deleted are asked to end a moment later, and so are those of a Job that was made
//! late, when its incident was over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::facts::What;
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

/// A Job's pod is called this, the NodeFence's name, `-job-`, the Job's number, and its own.
const PODS: &str = "node-remedy/";
/// The pods of a Job that is gone are asked to end within this time, also where requests are slow.
const ASKED_WITHIN: Duration = Duration::from_secs(15);
/// Whoever started a Job has seen it by then, if nothing hits it. Of one that was deleted before, nobody
/// can tell that it was there, and it is started as one whose request was lost.
const SEEN_WITHIN: Duration = Duration::from_secs(8);

/// A request that its client gave up may be carried out within this time.
const MADE_LATE: Duration = Duration::from_mins(1);

#[derive(Default)]
pub(super) struct Jobs {
    /// Nodes with a condition that holds whatever their kubelet says.
    ill: BTreeSet<String>,
    /// A node counts as well only after so long.
    well_after: Duration,
    /// Pods that nobody has asked to end, by UID: their incident and Job.
    running: BTreeMap<String, (String, String)>,
    /// Pods that have to be asked to end, since when, and why.
    ending: Vec<(String, Time, String)>,
    undisturbed: bool,
    /// When each Job's first pod was made.
    began: BTreeMap<String, Time>,
    /// Jobs that somebody else made.
    foreign: BTreeSet<String>,
    /// Jobs that were seen, and that somebody has deleted.
    deleted: BTreeSet<String>,
}

impl Jobs {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            ill: setting.ill.clone(),
            well_after: setting.well_after + MADE_LATE,
            undisturbed: setting.guards.undisturbed,
            ..Self::default()
        }
    }
}

/// The incident and the Job that a pod is of.
fn job_of(pod: &str) -> Option<(&str, &str)> {
    let (job, _) = pod.strip_prefix(PODS)?.rsplit_once('-')?;
    let (incident, _) = job.rsplit_once("-job-")?;
    Some((incident, job))
}

impl Check for Jobs {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these are about Jobs")]
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let is_late = |one: &mut (String, Time, String)| {
            self.running.contains_key(&one.0) && between(one.1, at) > ASKED_WITHIN
        };
        if let Some((_, _, why)) = self.ending.extract_if(.., is_late).next() {
            return Some(why);
        }
        match what {
            What::Edited { object, .. } => {
                let job = object.strip_prefix("Job ")?;
                let Some(began) = self.began.get(job) else {
                    self.foreign.insert(job.to_owned());
                    return None;
                };
                if self.undisturbed && between(*began, at) > SEEN_WITHIN {
                    self.deleted.insert(job.to_owned());
                }
                None
            }
            What::PodCreated { pod, uid } => {
                let (incident, job) =
                    job_of(pod).filter(|(_, job)| !self.foreign.contains(*job))?;
                let is_first = !self.began.contains_key(job);
                self.began.entry(job.to_owned()).or_insert(at);
                let node = incident.rsplit_once('-').map_or("", |(node, _)| node);
                let well = scene.well_since.get(node).filter(|_| !self.ill.contains(node));
                let is_well = well.is_some_and(|since| between(*since, at) > self.well_after);
                if is_first && is_well && !scene.lost.contains_key(node) {
                    return Some(format!("{job} is started, and {node} has long been well"));
                }
                for (other, (of, its_job)) in &self.running {
                    if of == incident && its_job != job {
                        let why = format!("{its_job} runs while {job} does");
                        self.ending.push((other.clone(), at, why));
                    }
                }
                self.running.insert(uid.clone(), (incident.to_owned(), job.to_owned()));
                if self.deleted.contains(job) {
                    return Some(format!("{job} was deleted, and is started again"));
                }
                if scene.states.get(incident).is_some_and(|state| state == "Final") {
                    let why = format!("{job} was made when {incident} was over, and goes on");
                    self.ending.push((uid.clone(), at, why));
                }
                None
            }
            What::PodScheduled { pod, node, .. } => {
                let (incident, _) = job_of(pod)?;
                let is_own = incident.rsplit_once('-').is_some_and(|(of, _)| of == node);
                is_own.then(|| format!("it runs on {node}, which it is to remedy"))
            }
            What::PodPhase { uid, phase, .. } if phase == "Succeeded" || phase == "Failed" => {
                self.running.remove(uid);
                None
            }
            What::PodTerminating { uid, .. } | What::PodGone { uid, .. } => {
                self.running.remove(uid);
                None
            }
            What::FenceState { fence, state, .. } if state == "Final" => {
                for (uid, (incident, job)) in &self.running {
                    if incident == fence {
                        let why = format!("{job} goes on although {incident} is over");
                        self.ending.push((uid.clone(), at, why));
                    }
                }
                None
            }
            _ => None,
        }
    }
}
