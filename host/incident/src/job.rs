//! The Job of a remedy, as the API server has it now: how it is, which pod runs it, and what that pod
//! wrote last where it failed.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::ResourceExt as _;
use node_remedy_act::job::is_of;
use node_remedy_decide::{JobState, JobView, Time};
use node_remedy_runtime::clock::time_of;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, Scope};
use node_remedy_runtime::names::job_name;

use crate::state::Incident;

/// Says on a pod which Job made it.
const OF_JOB: &str = "batch.kubernetes.io/job-name";

impl<C: Cluster> Incident<C> {
    /// Looks for the record's last Job, unless its end is known.
    pub(crate) async fn look_for_job(&self) -> Result<Option<JobView>, ClusterError> {
        let Some(last) = self.record.jobs.last().filter(|job| job.end.is_none()) else {
            return Ok(None);
        };
        let namespace = &self.context.calls.namespace;
        let job_name = job_name(&self.name(), last.number);
        let at = At::within(namespace, &job_name);
        let number = last.number;
        let view = |state| Ok(Some(JobView { number, pod: None, completed_at: None, state }));
        let job = match self.context.cluster.get::<Job>(at).await {
            Ok(job) => job,
            Err(error) => match refused(&error) {
                Some(why) => return view(JobState::Refused { why }),
                None => return Err(error),
            },
        };
        // Another Job of that name says nothing about ours, and keeps ours from being created.
        if job.as_ref().is_some_and(|job| !is_of(job, &self.nodefence)) {
            let why = format!("there is another Job {job_name}, not of this incident; delete it");
            return view(JobState::NameTaken { why });
        }
        let Some(job) = job else {
            let refused = self.job_refused.clone().map(|why| JobState::Refused { why });
            return view(refused.unwrap_or(JobState::Absent));
        };
        let pod = self.pod_of(namespace, &job_name).await?;
        let mut completed_at = None;
        let state = match ended(&job) {
            Some(End::Complete(at)) => {
                completed_at = at.map(|at| self.context.clock.when(at));
                JobState::Succeeded
            }
            Some(End::Failed(why)) => {
                let words = pod.as_ref().map(words).unwrap_or_default();
                JobState::Failed { detail: join(&why, &words) }
            }
            None => JobState::Running,
        };
        let pod = pod.map(|pod| pod.name_any());
        Ok(Some(JobView { number, pod, completed_at, state }))
    }

    /// The youngest pod of a Job.
    async fn pod_of(&self, namespace: &str, job: &str) -> Result<Option<Pod>, ClusterError> {
        let pods = self.context.cluster.list::<Pod>(&Scope::within(namespace)).await?.items;
        let of_job =
            pods.into_iter().filter(|pod| pod.labels().get(OF_JOB).is_some_and(|name| name == job));
        Ok(of_job.max_by_key(|pod| (pod.creation_timestamp(), pod.name_any())))
    }
}

/// What stays as it is until somebody changes rights or template; anything else passes.
pub(crate) fn refused(error: &ClusterError) -> Option<String> {
    match error {
        ClusterError::Denied(_) | ClusterError::Invalid(_) | ClusterError::NotFound(_) => {
            Some(error.to_string())
        }
        ClusterError::Conflict(_)
        | ClusterError::AlreadyExists(_)
        | ClusterError::Gone
        | ClusterError::Throttled { .. }
        | ClusterError::Unavailable(_)
        | ClusterError::Unreadable(_) => None,
    }
}

enum End {
    Complete(Option<Time>),
    Failed(String),
}

/// Whether a Job is over, one way or the other.
pub fn is_over(job: &Job) -> bool {
    ended(job).is_some()
}

fn ended(job: &Job) -> Option<End> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().filter(|one| one.status == "True").find_map(|one| match one.type_.as_str() {
        "Complete" => {
            Some(End::Complete(one.last_transition_time.as_ref().map(|at| time_of(&at.0))))
        }
        "Failed" => {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            Some(End::Failed(join(&text(&one.reason), &text(&one.message))))
        }
        _ => None,
    })
}

fn words(pod: &Pod) -> String {
    let statuses = pod.status.as_ref().map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    });
    let failed = statuses.into_iter().flatten().filter_map(|status| {
        let end = status.state.as_ref()?.terminated.as_ref()?;
        (end.exit_code != 0).then(|| said(&status.name, end))
    });
    failed.collect::<Vec<_>>().join("\n")
}

fn said(container: &str, end: &ContainerStateTerminated) -> String {
    let message = end.message.as_deref().unwrap_or_default().trim();
    let exit = format!("{container} exited with {}", end.exit_code);
    join(&exit, message)
}

fn join(first: &str, second: &str) -> String {
    match (first.is_empty(), second.is_empty()) {
        (false, false) => format!("{first}: {second}"),
        (true, _) => second.to_owned(),
        (false, true) => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(conditions: &Value) -> Option<End> {
        let job = json!({"metadata": {}, "status": {"conditions": conditions}});
        ended(&serde_json::from_value(job).unwrap())
    }

    #[test]
    fn only_the_last_word_of_the_job_controller_is_an_end() {
        let met = json!([{"type": "SuccessCriteriaMet", "status": "True"}]);
        assert!(state(&met).is_none());
        let soon =
            json!([{"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}]);
        assert!(state(&soon).is_none());
        let not = json!([{"type": "Complete", "status": "False"}]);
        assert!(state(&not).is_none());
        assert!(matches!(
            state(&json!([{"type": "Complete", "status": "True"}])),
            Some(End::Complete(_))
        ));
        let failed = json!([{
            "type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long",
        }]);
        assert!(
            matches!(state(&failed), Some(End::Failed(why)) if why == "DeadlineExceeded: too long")
        );
    }

    #[test]
    fn the_containers_that_failed_are_quoted() {
        let ended = |name: &str, code: i32, message: &str| {
            json!({
                "name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": code, "message": message}},
            })
        };
        let pod = json!({"metadata": {}, "status": {"containerStatuses": [
            ended("ok", 0, "fine"), ended("repair", 3, "fsck: bad superblock\n"),
        ]}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        assert_eq!(words(&pod), "repair exited with 3: fsck: bad superblock");
    }
}
