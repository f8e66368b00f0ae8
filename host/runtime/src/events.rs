//! Kubernetes Events: best effort, never the record.
//!
//! Reasons are `decide`'s notice names; one Event per notice, on the Node, so that
//! `kubectl describe node` tells the timeline.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use crate::clock::{Clock, timestamp};
use crate::cluster::Cluster;

/// Where Events about nodes stand, as kubelets write them.
pub const NAMESPACE: &str = "default";
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

/// Writes one Event about a node; a failure is logged and forgotten.
pub async fn tell<C: Cluster>(cluster: &C, clock: &Clock, about: &About<'_>, note: &Note) {
    let name = format!("{}.{:x}.{:x}", about.node, clock.now().0, about.number);
    let node = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(about.node.to_owned()),
        uid: Some(about.uid.to_owned()),
        ..ObjectReference::default()
    };
    write(cluster, clock, event(name, about.identity, node, note)).await;
}

/// Writes one Event about an object of ours.
pub async fn tell_of<C: Cluster>(
    cluster: &C,
    clock: &Clock,
    identity: &str,
    about: ObjectReference,
    note: &Note,
) {
    let name = about.name.clone().unwrap_or_default();
    let kind = about.kind.clone().unwrap_or_default().to_lowercase();
    let name = format!("{name}.{kind}.{:x}", clock.now().0);
    write(cluster, clock, event(name, identity, about, note)).await;
}

fn event(name: String, identity: &str, regarding: ObjectReference, note: &Note) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            // An Event stands beside what it is about, or in [`NAMESPACE`].
            namespace: Some(regarding.namespace.clone().unwrap_or(NAMESPACE.to_owned())),
            ..ObjectMeta::default()
        },
        action: Some(note.reason.clone()),
        reason: Some(note.reason.clone()),
        note: Some(note.text.chars().take(NOTE_MAX).collect()),
        type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
        reporting_controller: Some("node-remedy.io/controller".to_owned()),
        reporting_instance: Some(identity.to_owned()),
        regarding: Some(regarding),
        ..Event::default()
    }
}

async fn write<C: Cluster>(cluster: &C, clock: &Clock, event: Event) {
    let event = Event { event_time: Some(MicroTime(timestamp(clock.now()))), ..event };
    if let Err(error) = cluster.create(&event).await {
        tracing::debug!(%error, reason = event.reason, "failed to write an Event");
    }
}
