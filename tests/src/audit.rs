//! The API server's audit log: what it is told to record, and how it is read back.
//!
//! Of everybody only writes that can take a pod, an attachment or a node's taints away are
//! recorded; of node-remedy all that it asks, so that a refusal is found.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::control_plane::User;

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
            {"level": "Metadata", "users": [User::NodeRemedy.name()]},
            {"level": "None"},
        ],
    })
}

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
        // A failed `test` of a JSON patch is answered with 422: somebody else wrote first.
        let is_race = self.verb == "patch" && self.response_status.message.contains("testing ");
        matches!(self.response_status.code, 400 | 401 | 403 | 405 | 413 | 415 | 422) && !is_race
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
