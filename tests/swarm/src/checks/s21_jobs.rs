//! S21: a Job never runs on the node that it remedies, is not started again once it is gone, has none of
//! its incident beside it, and does not outlive it. Jobs are known by their pods; those of a Job that is
//! deleted are asked to end a moment later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::facts::What;
use node_remedy_world::time::{Time, between};

use super::Check;
use crate::scene::Scene;

/// A Job's pod is called this, the NodeFence's name, `-job-`, the Job's number, and its own.
const PODS: &str = "node-remedy/";
/// The pods of a Job that is gone are asked to end within this time, also where requests are slow.
const ASKED_WITHIN: Duration = Duration::from_secs(15);

#[derive(Default)]
pub(super) struct Jobs {
    /// Pods that nobody has asked to end, by UID: their incident and Job.
    running: BTreeMap<String, (String, String)>,
    /// Pods that have to be asked to end, since when, and why.
    ending: Vec<(String, Time, String)>,
    /// Jobs that somebody has deleted.
    deleted: BTreeSet<String>,
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
                self.deleted.extend(object.strip_prefix("Job ").map(str::to_owned));
                None
            }
            What::PodCreated { pod, uid } => {
                let (incident, job) = job_of(pod)?;
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
                let is_over = scene.states.get(incident).is_some_and(|state| state == "Final");
                is_over.then(|| format!("{incident} is over"))
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
