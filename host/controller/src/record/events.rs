//! Kubernetes Events: best effort, never the record.
//!
//! Reasons are `decide`'s notice names; one Event per notice, on the Node, so that
//! `kubectl describe node` tells the story.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use crate::clock::{Clock, timestamp};
use crate::cluster::Cluster;

/// The API server refuses longer notes.
const NOTE_MAX: usize = 1_000;

/// What an Event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// CamelCase, such as `PowerOffVerified`.
    pub reason: String,
    /// One sentence.
    pub text: String,
    /// Whether a person should look.
    pub warning: bool,
}

/// Which node an Event is about, and whose it is.
#[derive(Debug, Clone)]
pub struct About<'a> {
    /// The node's name.
    pub node: &'a str,
    /// The node's UID.
    pub uid: &'a str,
    /// The process that says it.
    pub identity: &'a str,
    /// Distinguishes Events of one moment.
    pub number: u64,
}

/// Writes one Event; a failure is logged and forgotten.
pub async fn tell<C: Cluster>(cluster: &C, clock: &Clock, about: &About<'_>, note: &Note) {
    let now = clock.now();
    let name = format!("{}.{:x}.{:x}", about.node, now.0, about.number);
    let event = Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some("default".to_owned()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(timestamp(now))),
        action: Some(note.reason.clone()),
        reason: Some(note.reason.clone()),
        note: Some(note.text.chars().take(NOTE_MAX).collect()),
        type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
        reporting_controller: Some("node-remedy.io/controller".to_owned()),
        reporting_instance: Some(about.identity.to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(about.node.to_owned()),
            uid: Some(about.uid.to_owned()),
            ..ObjectReference::default()
        }),
        ..Event::default()
    };
    if let Err(error) = cluster.create(&event).await {
        tracing::debug!(%error, reason = note.reason, "failed to write an Event");
    }
}
