//! The language of the scripts: what is asked, what happens, what is awaited, what is noted.
//!
//! Texts may name `{a}`, `{b}`, … (the script's nodes), `{ns}` (its namespace, and the first part
//! of the names of what lives in none), `{driver}` (the CSI driver), and what was kept.

use std::ops::RangeInclusive;

use node_remedy_world::api::object::set;
use node_remedy_world::api::{Kind, Part};
use serde_json::{Value, json};

/// A timeline to be played on both sides.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Its name; on the real side also its namespace and zone.
    pub(crate) name: &'static str,
    /// How many nodes it has, called a, b, ….
    pub(crate) nodes: usize,
    /// In order.
    pub(crate) steps: Vec<Step>,
}

/// One step of a script.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A request to the API server; its answer is noted.
    Ask(Request),
    /// A watch that ends when it has told what there is.
    Watch(Watch),
    /// Facts count from here. The node on which this pod runs is called a from now on, and its
    /// volume's attachment `{attachment}`.
    Begin { a_runs: Option<&'static str> },
    /// Something happens to the node of that letter.
    Hit(char, Misfortune),
    /// Waits for these facts, each once more than it was awaited before.
    Until(&'static [&'static str]),
    /// So many seconds in which the facts show that something does not happen. Nothing can be
    /// awaited instead.
    Nothing { for_s: u64 },
    /// The seconds between the last facts of these names that were awaited, or between what befell
    /// and a fact.
    Took { from: &'static str, to: &'static str, within_s: RangeInclusive<f64> },
    /// Ends the play if this fact has come. Parts of the controller manager do not wait for each other; where this one was
    /// quicker, the facts cannot be compared, and the script is played again, at most twice.
    Race { lost_by: &'static str },
    /// The server no longer knows how it was at the first versions.
    ForgetHistory,
}

/// What can happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfortune {
    /// Its kubelet stops; the machine runs on.
    KubeletStops,
    /// Its kubelet starts again in the same boot.
    KubeletStarts,
}

impl Misfortune {
    /// What a script calls it where it counts the time from it.
    pub(crate) fn line(self, letter: char) -> String {
        match self {
            Self::KubeletStops => format!("node {letter}: kubelet stops"),
            Self::KubeletStarts => format!("node {letter}: kubelet starts"),
        }
    }
}

/// What is asked of the API server.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) kind: Kind,
    /// Empty for a create.
    pub(crate) name: String,
    pub(crate) part: Part,
    /// Null where there is none.
    pub(crate) body: Value,
    pub(crate) query: &'static str,
    /// JSON pointers into the answered object, whose values are compared.
    pub(crate) notes: Vec<&'static str>,
    /// Names for values of the answered object, by JSON pointer.
    pub(crate) keeps: Vec<(&'static str, &'static str)>,
}

/// How it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Create,
    Replace,
    /// RFC 7386.
    MergePatch,
    /// RFC 6902.
    JsonPatch,
    Delete,
    /// Of a pod; the body is what a delete's would be.
    Evict,
}

/// What is to be told of a kind of object.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) kind: Kind,
    /// A field selector.
    pub(crate) fields: &'static str,
    /// The version from which on; may name what was kept.
    pub(crate) from: &'static str,
    /// Under which name the version of the bookmark at the end is kept.
    pub(crate) keep: &'static str,
}

/// The version of an object, the value most often kept and noted.
pub(crate) const VERSION: &str = "/metadata/resourceVersion";
/// The UID of an object.
pub(crate) const UID: &str = "/metadata/uid";

impl Request {
    fn new(verb: Verb, kind: Kind, name: &str, body: Value) -> Self {
        Self {
            verb,
            kind,
            name: name.to_owned(),
            part: Part::Main,
            body,
            query: "",
            notes: Vec::new(),
            keeps: Vec::new(),
        }
    }

    /// Notes the value at a pointer into the answered object.
    pub(crate) fn note(mut self, pointer: &'static str) -> Self {
        self.notes.push(pointer);
        self
    }

    /// Keeps the value at a pointer into the answered object under a name.
    pub(crate) fn keep(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.keeps.push((name, pointer));
        self
    }

    /// Asks for the status subresource.
    pub(crate) fn of_status(mut self) -> Self {
        self.part = Part::Status;
        self
    }

    /// With this in the query.
    pub(crate) fn query(mut self, query: &'static str) -> Self {
        self.query = query;
        self
    }
}

impl From<Request> for Step {
    fn from(request: Request) -> Self {
        Self::Ask(request)
    }
}

pub(crate) fn get(kind: Kind, name: &str) -> Request {
    Request::new(Verb::Get, kind, name, Value::Null)
}

pub(crate) fn create(kind: Kind, object: Value) -> Request {
    Request::new(Verb::Create, kind, "", object)
}

pub(crate) fn replace(kind: Kind, name: &str, object: Value) -> Request {
    Request::new(Verb::Replace, kind, name, object)
}

pub(crate) fn merge(kind: Kind, name: &str, patch: Value) -> Request {
    Request::new(Verb::MergePatch, kind, name, patch)
}

pub(crate) fn json_patch(kind: Kind, name: &str, patch: Value) -> Request {
    Request::new(Verb::JsonPatch, kind, name, patch)
}

/// A delete with these options in its body; null for no body.
pub(crate) fn delete(kind: Kind, name: &str, options: Value) -> Request {
    Request::new(Verb::Delete, kind, name, options)
}

/// An eviction with these options of a delete; null for none.
pub(crate) fn evict(pod: &str, options: Value) -> Request {
    Request::new(Verb::Evict, Kind::Pod, pod, options)
}

/// A delete by force.
pub(crate) fn force(kind: Kind, name: &str) -> Request {
    delete(kind, name, json!({ "gracePeriodSeconds": 0 }))
}

/// Puts a finalizer of a stranger on an object that has none.
pub(crate) fn hold(kind: Kind, name: &str) -> Request {
    merge(kind, name, json!({ "metadata": { "finalizers": ["example.com/hold"] } }))
}

/// Lifts all finalizers of an object.
pub(crate) fn let_go(kind: Kind, name: &str) -> Request {
    merge(kind, name, json!({ "metadata": { "finalizers": null } }))
}

/// A pod bound to a node, whether that exists or not.
pub(crate) fn pod(name: &str, node: &str, tolerations: &Value) -> Request {
    let spec = json!({
        "nodeName": node,
        "containers": [{ "name": "main", "image": "none" }],
        "tolerations": tolerations,
    });
    create(Kind::Pod, json!({ "metadata": { "name": name, "namespace": "{ns}" }, "spec": spec }))
}

/// A pod on a node that does not exist: nobody answers what is asked of it.
pub(crate) fn pod_nowhere(name: &str) -> Request {
    pod(name, "{ns}-nowhere", &json!([]))
}

/// An attachment that nobody but the script has to do with.
pub(crate) fn attachment(name: &str) -> Request {
    let metadata = json!({ "name": name });
    create(Kind::VolumeAttachment, json!({ "metadata": metadata, "spec": attached_nowhere() }))
}

/// What it wants.
pub(crate) fn attached_nowhere() -> Value {
    json!({
        "attacher": "nobody", "nodeName": "{ns}-nowhere",
        "source": { "persistentVolumeName": "{ns}-none" },
    })
}

/// Tolerations of a lost node for so many seconds.
pub(crate) fn patience(seconds: u64) -> Value {
    let of = |key: &str| {
        json!({
            "key": format!("node.kubernetes.io/{key}"), "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": seconds,
        })
    };
    json!([of("unreachable"), of("not-ready")])
}

/// The StatefulSet `db` with one pod, `db-0`, and its volume; it runs when these steps are done.
pub(crate) fn database(patience_s: u64) -> Vec<Step> {
    let storage = json!({ "storage": "1Gi" });
    let volume = json!({
        "metadata": { "name": "{ns}-data" },
        "spec": {
            "capacity": storage, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "claimRef": { "namespace": "{ns}", "name": "data-db-0" },
            "csi": { "driver": "{driver}", "volumeHandle": "{ns}-data" },
        },
    });
    let claimed = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "resources": { "requests": storage },
    });
    let mut bound = claimed.clone();
    set(&mut bound, "volumeName", json!("{ns}-data"));
    let claim = json!({ "metadata": { "name": "data-db-0", "namespace": "{ns}" }, "spec": bound });
    let set = json!({
        "metadata": { "name": "db", "namespace": "{ns}" },
        "spec": {
            "serviceName": "db", "replicas": 1,
            "selector": { "matchLabels": { "app": "db" } },
            "template": {
                "metadata": { "labels": { "app": "db" } },
                "spec": {
                    // Many scripts share one real cluster; a model has one of its own.
                    "nodeSelector": { "topology.kubernetes.io/zone": "{ns}" },
                    "tolerations": patience(patience_s),
                    "containers": [{ "name": "db", "image": "none" }],
                },
            },
            "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": claimed }],
        },
    });
    vec![
        create(Kind::PersistentVolume, volume).into(),
        create(Kind::PersistentVolumeClaim, claim).into(),
        create(Kind::StatefulSet, set).into(),
        Step::Until(&["pod db-0#1: Running"]),
    ]
}

/// The taint of whoever knows that a node is off, beside those that are there.
pub(crate) fn out_of_service(node: &str) -> Request {
    let taint = json!({
        "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute",
    });
    json_patch(Kind::Node, node, json!([{ "op": "add", "path": "/spec/taints/-", "value": taint }]))
}
