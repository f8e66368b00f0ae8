//! S21: a Job never runs on the node that it remedies, is not started again once it is gone, has none of
//! its incident beside it, and does not outlive it. Jobs are known by their pods.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_world::facts::What;
use node_remedy_world::time::Time;

use super::Check;
use crate::scene::Scene;

/// A Job's pod is called this, the NodeFence's name, `-job-`, the Job's number, and its own.
const PODS: &str = "node-remedy/";

#[derive(Default)]
pub(super) struct Jobs {
    /// Pods that nobody has asked to end, by UID: their incident and Job.
    running: BTreeMap<String, (String, String)>,
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
    fn see(&mut self, scene: &Scene, _: Time, what: &What) -> Option<String> {
        match what {
            What::Edited { object, .. } => {
                self.deleted.extend(object.strip_prefix("Job ").map(str::to_owned));
                None
            }
            What::PodCreated { pod, uid } => {
                let (incident, job) = job_of(pod)?;
                let of_it = |one: &&(String, String)| one.0 == incident && one.1 != job;
                let other = self.running.values().find(of_it).map(|(_, other)| other.clone());
                self.running.insert(uid.clone(), (incident.to_owned(), job.to_owned()));
                if self.deleted.contains(job) {
                    return Some(format!("{job} was deleted, and is started again"));
                }
                if scene.states.get(incident).is_some_and(|state| state == "Final") {
                    return Some(format!("{incident} is over"));
                }
                other.map(|other| format!("{other} runs, too"))
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
                let (_, job) = self.running.values().find(|(incident, _)| incident == fence)?;
                Some(format!("{job} goes on"))
            }
            _ => None,
        }
    }
}
