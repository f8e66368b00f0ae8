//! The Job of a remedy: the admin's pod template, and around it what a remedy needs to know and must
//! not do.
//!
//! The Job's name follows from the incident and a number, so that whoever creates it a second time
//! is told that it exists. It never runs on the node that it remedies. A Job has no stdin: the node is
//! described by environment variables, and as JSON in a file that the downward API fills.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, DownwardAPIVolumeSource, EnvVar, NodeSelectorRequirement,
    NodeSelectorTerm, ObjectFieldSelector, PodSpec, PodTemplateSpec, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};
use node_remedy_api::nodefence::{JobTemplate, NodeFence};
use node_remedy_decide::bug::{Bug, is_seeded};
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_runtime::names::job_name;
use serde_json::{Value, json};

/// The incident that a Job belongs to, as a label of Job and pod.
pub const OF_INCIDENT: &str = "node-remedy.io/nodefence-uid";
/// On the pod: the node as JSON.
const DESCRIPTION: &str = "node-remedy.io/node";
/// Where that is mounted.
const FOLDER: &str = "/etc/node-remedy/node";
/// The volume's name.
const VOLUME: &str = "node-remedy-node";

/// A Job that ended is kept for a day: long enough for whoever looks into it in the morning.
const KEPT_S: i32 = 24 * 60 * 60;

/// Whether a Job is this incident's.
pub fn is_of(job: &Job, nodefence: &NodeFence) -> bool {
    nodefence.uid().is_some_and(|uid| job.labels().get(OF_INCIDENT) == Some(&uid))
}

/// The service account that a pod template asks for; `None` for one that is no pod template, of which no Job is made.
pub fn account(template: &JobTemplate) -> Option<String> {
    let template: PodTemplateSpec = serde_json::from_str(&template.pod_template).ok()?;
    account_of(&template.spec?)
}

/// As the API server reads it: by its older name where the newer one is empty.
fn account_of(spec: &PodSpec) -> Option<String> {
    let names = [&spec.service_account_name, &spec.service_account];
    names.into_iter().flatten().find(|name| !name.is_empty()).cloned()
}

/// The Job of this number, for the incident's remedy `remedy`.
///
/// # Errors
/// Where the template is no pod template of this Kubernetes.
pub fn build(
    nodefence: &NodeFence,
    remedy: &str,
    template: &JobTemplate,
    number: u32,
    namespace: &str,
    now: Timestamp,
) -> Result<Job, ClusterError> {
    let invalid = |error: serde_json::Error| {
        ClusterError::Invalid(format!("remedy {remedy}: its podTemplate: {error}"))
    };
    let mut pod: PodTemplateSpec = serde_json::from_str(&template.pod_template).map_err(invalid)?;
    let uid = nodefence.uid().unwrap_or_default();
    let label = BTreeMap::from([(OF_INCIDENT.to_owned(), uid.clone())]);
    let description = describe(nodefence, remedy, number, now);
    let metadata = pod.metadata.get_or_insert_default();
    metadata.labels.get_or_insert_default().extend(label.clone());
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(DESCRIPTION.to_owned(), description.to_string());
    let spec = pod.spec.get_or_insert_default();
    // The one that was looked at, by one name only.
    spec.service_account_name = account_of(spec);
    spec.service_account = None;
    if !is_seeded(Bug::JobOnItsNode) {
        keep_away(spec, &nodefence.spec.node.name);
    }
    spec.volumes.get_or_insert_default().push(description_volume());
    let environment = environment(&description);
    let containers = spec.init_containers.iter_mut().flatten().chain(&mut spec.containers);
    for container in containers {
        container.env.get_or_insert_default().extend(environment.iter().cloned());
        container.volume_mounts.get_or_insert_default().push(VolumeMount {
            name: VOLUME.to_owned(),
            mount_path: FOLDER.to_owned(),
            read_only: Some(true),
            ..VolumeMount::default()
        });
        // What a pod that failed wrote last comes with its status.
        let policy = &mut container.termination_message_policy;
        policy.get_or_insert_with(|| "FallbackToLogsOnError".to_owned());
    }
    Ok(Job {
        metadata: ObjectMeta {
            name: Some(job_name(&nodefence.name_any(), number)),
            namespace: Some(namespace.to_owned()),
            labels: Some(label),
            owner_references: nodefence.owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            template: pod,
            backoff_limit: i32::try_from(template.backoff_limit).ok(),
            active_deadline_seconds: i64::try_from(template.deadline.ms.div_ceil(1_000)).ok(),
            ttl_seconds_after_finished: Some(KEPT_S),
            ..JobSpec::default()
        }),
        status: None,
    })
}

/// What a remedy is told of its node.
fn describe(nodefence: &NodeFence, remedy: &str, number: u32, now: Timestamp) -> Value {
    let spec = &nodefence.spec;
    json!({
        "node": spec.node.name,
        "uid": spec.node.uid,
        "providerID": spec.node.provider_id,
        "systemUUID": spec.node.system_uuid,
        "bootID": spec.node.boot_id,
        "condition": spec.trigger.condition_type,
        "status": spec.trigger.status,
        "since": spec.trigger.since.to_string(),
        "nodefence": nodefence.name_any(),
        "remedy": remedy,
        "job": number,
        "timestamp": now.to_string(),
    })
}

/// The same as environment variables: `providerID` is `NODE_REMEDY_PROVIDER_ID`.
fn environment(description: &Value) -> Vec<EnvVar> {
    let fields = description.as_object().into_iter().flatten();
    let variable = |(field, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        EnvVar {
            name: variable_name(field),
            // A kubelet reads $(NAME) as another variable of the container, which may be a password; a node writes
            // its own providerID.
            value: Some(value.replace('$', "$$")),
            value_from: None,
        }
    };
    fields.map(variable).collect()
}

fn variable_name(field: &str) -> String {
    let mut name = "NODE_REMEDY_".to_owned();
    let mut before = '_';
    for letter in field.chars() {
        if letter.is_ascii_uppercase() && before.is_ascii_lowercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
        before = letter;
    }
    name
}

/// The node's description as a file.
fn description_volume() -> Volume {
    let field = ObjectFieldSelector {
        field_path: format!("metadata.annotations['{DESCRIPTION}']"),
        api_version: None,
    };
    let file = DownwardAPIVolumeFile {
        path: "node.json".to_owned(),
        field_ref: Some(field),
        ..DownwardAPIVolumeFile::default()
    };
    Volume {
        name: VOLUME.to_owned(),
        downward_api: Some(DownwardAPIVolumeSource { items: Some(vec![file]), default_mode: None }),
        ..Volume::default()
    }
}

/// Each way to satisfy the template's own node affinity also says: not this node.
fn keep_away(spec: &mut PodSpec, node: &str) {
    let elsewhere = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    let required =
        affinity.required_during_scheduling_ignored_during_execution.get_or_insert_default();
    if required.node_selector_terms.is_empty() {
        required.node_selector_terms.push(NodeSelectorTerm::default());
    }
    for term in &mut required.node_selector_terms {
        term.match_fields.get_or_insert_default().push(elsewhere.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodefence(name: &str) -> NodeFence {
        serde_json::from_value(json!({
            "apiVersion": "node-remedy.io/v1alpha1", "kind": "NodeFence",
            "metadata": {"name": name, "uid": "uid-1"},
            "spec": {
                "node": {"name": "worker-3", "uid": "n", "providerID": "aws:///z/i-1"},
                "trigger": {
                    "conditionType": "Ready", "status": "False",
                    "since": "2026-11-21T03:00:00Z", "period": "5s",
                },
                "remedy": "repair",
                "plan": node_remedy_api::plan::NodePlan::default(),
                "policy": node_remedy_api::policy::IncidentPolicy::default(),
                "gate": node_remedy_api::policy::GateLimits::default(),
            },
        }))
        .unwrap()
    }

    fn built(template: &Value) -> Value {
        built_with(template, 0)
    }

    fn built_with(template: &Value, backoff_limit: u32) -> Value {
        let template = JobTemplate {
            pod_template: template.to_string(),
            deadline: node_remedy_api::time::Span::from_minutes(30),
            backoff_limit,
        };
        let now = "2026-11-21T03:01:00Z".parse().unwrap();
        let job = build(&nodefence("worker-3-1"), "repair", &template, 1, "ours", now).unwrap();
        serde_json::to_value(job).unwrap()
    }

    #[test]
    fn a_job_knows_its_node_and_never_runs_there() {
        let zones = json!({"key": "zone", "operator": "In", "values": ["a"]});
        let racks = json!({"key": "rack", "operator": "In", "values": ["b"]});
        let job = built(&json!({"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "repair", "image": "i", "env": [{"name": "A", "value": "b"}]}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [zones]}, {"matchExpressions": [racks]}],
            }}},
        }}));
        assert_eq!(job["metadata"]["name"], "worker-3-1-job-1");
        assert_eq!(job["metadata"]["ownerReferences"][0]["uid"], "uid-1");
        assert_eq!(job["spec"]["activeDeadlineSeconds"], 1800);
        assert_eq!(job["spec"]["backoffLimit"], 0);
        let pod = &job["spec"]["template"];
        let affinity = &pod["spec"]["affinity"]["nodeAffinity"];
        let terms =
            &affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
        let elsewhere =
            json!([{"key": "metadata.name", "operator": "NotIn", "values": ["worker-3"]}]);
        assert_eq!(terms[0]["matchFields"], elsewhere);
        assert_eq!(terms[1]["matchFields"], elsewhere);
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["terminationMessagePolicy"], "FallbackToLogsOnError");
        let environment = container["env"].as_array().unwrap();
        for (name, value) in [
            ("A", "b"),
            ("NODE_REMEDY_NODE", "worker-3"),
            ("NODE_REMEDY_PROVIDER_ID", "aws:///z/i-1"),
            ("NODE_REMEDY_CONDITION", "Ready"),
            ("NODE_REMEDY_JOB", "1"),
        ] {
            let wanted = json!({"name": name, "value": value});
            assert!(environment.contains(&wanted), "{wanted} in {environment:?}");
        }
        let described = pod["metadata"]["annotations"][DESCRIPTION].as_str().unwrap();
        let described: Value = serde_json::from_str(described).unwrap();
        assert_eq!(described["nodefence"], "worker-3-1");
    }

    /// A node's own words name no variable of the container.
    #[test]
    fn what_a_node_says_of_itself_is_text_to_its_job() {
        let description = json!({"providerID": "aws:///$(PASSWORD)/$x"});
        let [variable] = environment(&description).try_into().unwrap();
        assert_eq!(variable.name, "NODE_REMEDY_PROVIDER_ID");
        assert_eq!(variable.value.as_deref(), Some("aws:///$$(PASSWORD)/$$x"));
    }

    /// Every container finds the annotation that describes the node as a file, beside its own mounts.
    #[test]
    fn the_node_is_described_in_a_file_of_every_container() {
        let own = json!({"name": "own", "mountPath": "/own"});
        let job = built(&json!({"spec": {
            "initContainers": [{"name": "first", "image": "i"}],
            "containers": [{"name": "repair", "image": "i", "volumeMounts": [own]}],
            "volumes": [{"name": "own", "emptyDir": {}}],
        }}));
        let pod = &job["spec"]["template"]["spec"];
        let mounted =
            json!({"name": VOLUME, "mountPath": "/etc/node-remedy/node", "readOnly": true});
        assert_eq!(pod["initContainers"][0]["volumeMounts"], json!([mounted]));
        assert_eq!(pod["containers"][0]["volumeMounts"], json!([own, mounted]));
        assert_eq!(pod["volumes"][0]["name"], "own");
        let field = json!({"fieldPath": "metadata.annotations['node-remedy.io/node']"});
        let file = json!({"path": "node.json", "fieldRef": field});
        let described = json!({"name": VOLUME, "downwardAPI": {"items": [file]}});
        assert_eq!(pod["volumes"][1], described);
    }

    #[test]
    fn a_job_names_its_account_once() {
        for (spec, account) in [
            (json!({"serviceAccount": "old"}), json!("old")),
            (json!({"serviceAccountName": null, "serviceAccount": "old"}), json!("old")),
            (json!({"serviceAccountName": "new", "serviceAccount": "old"}), json!("new")),
            (json!({}), Value::Null),
        ] {
            let mut spec = spec;
            spec["containers"] = json!([]);
            let job = built(&json!({"spec": spec}));
            let pod = &job["spec"]["template"]["spec"];
            assert_eq!(
                (&pod["serviceAccountName"], &pod["serviceAccount"]),
                (&account, &Value::Null)
            );
        }
    }

    #[test]
    fn a_job_tries_its_pod_again_as_often_as_the_remedy_says() {
        let template = json!({"spec": {"containers": [{"name": "a", "image": "b"}]}});
        for limit in [0, 4] {
            assert_eq!(built_with(&template, limit)["spec"]["backoffLimit"], limit);
        }
    }

    #[test]
    fn a_template_without_affinity_gets_one() {
        let job = built(&json!({"spec": {"containers": [{"name": "a", "image": "b"}]}}));
        let affinity = &job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
        let terms =
            &affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
        assert_eq!(terms[0]["matchFields"][0]["values"], json!(["worker-3"]));
    }

    #[test]
    fn a_jobs_name_is_a_label_too() {
        assert_eq!(job_name("worker-3-1", 2), "worker-3-1-job-2");
        let long = job_name(&"a".repeat(100), 64);
        assert!(long.len() <= node_remedy_runtime::names::JOB_NAME_MAX, "{long}");
        assert_ne!(long, job_name(&"a".repeat(101), 64));
    }

    #[test]
    fn the_account_is_read_under_both_its_names() {
        let template = |pod: &Value| JobTemplate {
            pod_template: pod.to_string(),
            deadline: node_remedy_api::time::Span::default(),
            backoff_limit: 0,
        };
        let named = |field: &str| account(&template(&json!({"spec": {field: "mover"}})));
        assert_eq!(named("serviceAccountName").as_deref(), Some("mover"));
        assert_eq!(named("serviceAccount").as_deref(), Some("mover"));
        assert_eq!(named("other"), None);
    }
}
