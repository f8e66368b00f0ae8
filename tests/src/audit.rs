//! The API server's audit log: what it is told to record, and how it is read back.
//!
//! Of everybody only writes that can take a pod, an attachment or a node's taints away are
//! recorded; of node-remedy all that it asks, so that a refusal is found, and its patches with
//! their bodies, so that a race that was lost is told from a refusal.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::user::User;

/// The log's name in a control plane's folder.
pub const LOG_FILE: &str = "audit.jsonl";

/// The audit policy. Deletes are kept with their answers, which name the node that a pod was on.
#[must_use]
pub fn policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {
                "level": "RequestResponse",
                "verbs": ["delete", "deletecollection"],
                "resources": [
                    {"group": "", "resources": ["pods", "nodes"]},
                    {"group": "storage.k8s.io", "resources": ["volumeattachments"]},
                ],
            },
            {
                "level": "RequestResponse",
                "verbs": ["patch", "update", "create"],
                "resources": [{"group": "", "resources": ["nodes", "pods/eviction"]}],
            },
            {
                "level": "RequestResponse",
                "users": [User::NodeRemedy.name(), User::Admin.name()],
                "verbs": ["patch"],
                "resources": [{"group": "", "resources": ["pods/status"]}],
            },
            {"level": "Request", "users": [User::NodeRemedy.name()], "verbs": ["patch"]},
            {"level": "Metadata", "users": [User::NodeRemedy.name()]},
            {"level": "None"},
        ],
    })
}

/// What the API server says of a JSON patch that does not apply. An object that a patch would make
/// invalid is refused with sentences of its own.
const PATCH_DOES_NOT_APPLY: &str = "the server rejected our request due to an error in our request";

/// What it says of a patch with the UID of another object.
const ANOTHER_UID: &str = "is invalid: metadata.uid: Invalid value";

/// One answered request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// delete, patch, …
    pub verb: String,
    /// Who asked.
    pub user: AuditUser,
    /// For what.
    #[serde(default)]
    pub object_ref: ObjectRef,
    /// When the API server took the request in.
    pub request_received_timestamp: jiff::Timestamp,
    /// How it was answered.
    #[serde(default)]
    pub response_status: ResponseStatus,
    /// The body of the request.
    #[serde(default)]
    pub request_object: Value,
    /// The body of the answer.
    #[serde(default)]
    pub response_object: Value,
}

/// Who asked.
#[derive(Clone, Debug, Deserialize)]
pub struct AuditUser {
    /// The user's name.
    pub username: String,
}

/// The object that a request was for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ObjectRef {
    /// pods, nodes, …
    pub resource: String,
    /// status, eviction, … or nothing.
    pub subresource: String,
    /// Its namespace, or nothing.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// How a request was answered.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseStatus {
    /// The HTTP status.
    pub code: u16,
    /// Why, where it was refused.
    pub message: String,
}

impl AuditEvent {
    /// Whether the API server did what was asked.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        (200..300).contains(&self.response_status.code)
    }

    /// Whether the API server would not do what was asked, whenever it is asked: it was denied,
    /// malformed or against the schema. A race that was lost is no refusal.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.response_status.code, 400 | 401 | 403 | 405 | 413 | 415 | 422)
            && !self.is_race()
    }

    /// A patch that names what it was computed from is answered with 422 where somebody else wrote
    /// first: a JSON patch by its `test`, without saying more, a merge patch by the UID of an
    /// object that another one of its name has replaced.
    fn is_race(&self) -> bool {
        let edits = self.request_object.as_array();
        let has_test = edits.is_some_and(|edits| edits.iter().any(|edit| edit["op"] == "test"));
        let message = &self.response_status.message;
        self.verb == "patch"
            && (has_test && message == PATCH_DOES_NOT_APPLY || message.contains(ANOTHER_UID))
    }

    /// `pods default/db-0`, for people.
    #[must_use]
    pub fn object(&self) -> String {
        let ObjectRef { resource, namespace, name, .. } = &self.object_ref;
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{resource} {namespace}{slash}{name}")
    }
}

/// Reads all events that are complete; a line that is being written is left for the next time.
pub fn read(log: &Path) -> Result<Vec<AuditEvent>> {
    let text = match std::fs::read_to_string(log) {
        Ok(text) => text,
        // The API server makes the file with its first event.
        Err(failure) if failure.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(failure) => return Err(failure.into()),
    };
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    complete
        .lines()
        .map(|line| {
            serde_json::from_str(line).with_context(|| format!("failed to read audit line {line}"))
        })
        .collect()
}
