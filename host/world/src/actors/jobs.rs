//! The Job controller, and the end of its pods: one pod at a time, replaced until the backoff limit,
//! ended by the deadline.
//!
//! What a pod of a Job does no cluster knows, so its template says it by annotations:
//! `simulate.node-remedy.io/takes` (a duration, 10s), `/ends` (succeeded or failed) and `/says` (its last
//! words). A pod ends on a node that is Ready; on any other it runs on. Parallelism, suspension and
//! back-off delays are not modelled.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::object::{
    Key, condition_status, is_terminating, list, name, namespace, number, part, set, set_condition,
    text, uid,
};
use crate::api::{DeleteOptions, Kind, Part};
use crate::scenario::duration;
use crate::stage::{REMEDY_NAMESPACE, Stage, sooner};
use crate::time::{Time, after, read_stamp, seconds_stamp};

const NAME: &str = "job-controller";
/// Says on a pod which Job made it.
const OF_JOB: &str = "batch.kubernetes.io/job-name";
/// How long a pod takes that says nothing of it.
const TAKES: Duration = Duration::from_secs(10);

/// Brings every Job one step on; says when time alone brings the next.
pub(crate) fn run(stage: &mut Stage<'_>) -> Option<Time> {
    let jobs: Vec<Value> = stage.api.all(Kind::Job).cloned().collect();
    orphans(stage, &jobs);
    let going_on = jobs.iter().filter(|job| !is_terminating(job) && !is_over(job));
    going_on.fold(None, |next, job| sooner(next, reconcile(stage, job)))
}

/// Whose Job is gone goes too. Jobs are node-remedy's own; the pods of a snapshot's have none.
fn orphans(stage: &mut Stage<'_>, jobs: &[Value]) {
    let is_orphan = |pod: &&Value| {
        namespace(pod) == REMEDY_NAMESPACE
            && text(pod, "/metadata/ownerReferences/0/kind") == "Job"
            && !is_terminating(pod)
            && !jobs.iter().any(|job| uid(job) == text(pod, "/metadata/ownerReferences/0/uid"))
    };
    let pods: Vec<Value> = stage.api.all(Kind::Pod).filter(is_orphan).cloned().collect();
    for pod in pods {
        delete(stage, &pod);
    }
}

fn reconcile(stage: &mut Stage<'_>, job: &Value) -> Option<Time> {
    let Some(began) = read_stamp(text(job, "/status/startTime")) else {
        let mut started = job.clone();
        let stamp = seconds_stamp(stage.now);
        set(part(&mut started, "status"), "startTime", json!(stamp));
        // A Job that changed meanwhile comes up again with that very change.
        drop(stage.api.client(NAME).update(Kind::Job, started, Part::Status));
        return None;
    };
    let pods: Vec<Value> =
        stage.api.all(Kind::Pod).filter(|pod| is_of(pod, job)).cloned().collect();
    let in_phase =
        |phase: &str| pods.iter().filter(|pod| text(pod, "/status/phase") == phase).count();
    if in_phase("Succeeded") > 0 {
        conclude(stage, job, "Complete", "CompletionsReached", "the pod succeeded");
        return None;
    }
    let failed = u64::try_from(in_phase("Failed")).unwrap_or(u64::MAX);
    if failed > number(job, "/spec/backoffLimit").unwrap_or(6) {
        let why = "Job has reached the specified backoff limit";
        conclude(stage, job, "Failed", "BackoffLimitExceeded", why);
        return None;
    }
    let deadline = number(job, "/spec/activeDeadlineSeconds").map(Duration::from_secs);
    let deadline = deadline.map(|deadline| after(began, deadline));
    if deadline.is_some_and(|deadline| deadline <= stage.now) {
        let why = "Job was active longer than specified deadline";
        conclude(stage, job, "Failed", "DeadlineExceeded", why);
        for pod in pods.iter().filter(|pod| !is_ended(pod)) {
            delete(stage, pod);
        }
        return None;
    }
    let active = pods.iter().find(|pod| !is_ended(pod));
    if let Some(pod) = active {
        return sooner(deadline, end_in_time(stage, pod));
    }
    create(stage, job, pods.len());
    deadline
}

/// Ends a pod whose time is up; says when that will be.
fn end_in_time(stage: &mut Stage<'_>, pod: &Value) -> Option<Time> {
    if text(pod, "/status/phase") != "Running" {
        return None;
    }
    let node = Key::cluster(Kind::Node, text(pod, "/spec/nodeName"));
    let node = stage.api.peek(&node)?;
    if condition_status(node, "Ready") != "True" {
        return None;
    }
    let began = read_stamp(text(pod, "/status/startTime"))?;
    let takes = duration::read(told(pod, "takes")).unwrap_or(TAKES);
    let ends_at = after(began, takes);
    if ends_at > stage.now {
        return Some(ends_at);
    }
    let fails = told(pod, "ends") == "failed";
    let mut ended = pod.clone();
    let status = part(&mut ended, "status");
    set(status, "phase", json!(if fails { "Failed" } else { "Succeeded" }));
    let containers = list(pod, "/spec/containers").iter().map(|container| {
        json!({
            "name": name_of(container), "image": text(container, "/image"), "imageID": "",
            "ready": false, "restartCount": 0,
            "state": { "terminated": {
                "exitCode": i32::from(fails), "message": told(pod, "says"),
            } },
        })
    });
    set(status, "containerStatuses", Value::Array(containers.collect()));
    // A pod that changed meanwhile comes up again with that very change.
    drop(stage.api.client(NAME).update(Kind::Pod, ended, Part::Status));
    None
}

fn create(stage: &mut Stage<'_>, job: &Value, earlier: usize) {
    let template = |field: &str| {
        let pointer = format!("/spec/template/{field}");
        job.pointer(&pointer).cloned().unwrap_or_else(|| json!({}))
    };
    let mut labels = template("metadata/labels");
    set(&mut labels, OF_JOB, json!(name(job)));
    let pod = json!({
        "metadata": {
            "name": format!("{}-{earlier}", name(job)),
            "namespace": namespace(job),
            "labels": labels,
            "annotations": template("metadata/annotations"),
            "ownerReferences": [{
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": name(job),
                "uid": uid(job),
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": template("spec"),
    });
    // If it exists by now, the change that made it brings the next turn.
    drop(stage.api.client(NAME).create(Kind::Pod, pod));
}

fn conclude(stage: &mut Stage<'_>, job: &Value, kind: &str, reason: &str, message: &str) {
    let stamp = seconds_stamp(stage.now);
    let mut over = job.clone();
    let more = json!({ "reason": reason, "message": message });
    set_condition(&mut over, kind, "True", &stamp, more);
    // A Job that changed meanwhile comes up again with that very change.
    drop(stage.api.client(NAME).update(Kind::Job, over, Part::Status));
}

fn delete(stage: &mut Stage<'_>, pod: &Value) {
    let how = DeleteOptions { uid: Some(uid(pod).to_owned()), ..Default::default() };
    // Gone already is what was wanted.
    drop(stage.api.client(NAME).delete(&Key::of(Kind::Pod, pod), &how));
}

fn told<'a>(pod: &'a Value, what: &str) -> &'a str {
    text(pod, &format!("/metadata/annotations/simulate.node-remedy.io~1{what}"))
}

fn name_of(container: &Value) -> &str {
    text(container, "/name")
}

fn is_of(pod: &Value, job: &Value) -> bool {
    text(pod, "/metadata/ownerReferences/0/uid") == uid(job)
}

fn is_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") || is_terminating(pod)
}

fn is_over(job: &Value) -> bool {
    ["Complete", "Failed"].iter().any(|kind| condition_status(job, kind) == "True")
}
