//! What a node-problem-detector says of its node: conditions, and Events that it counts up. It says
//! each when it happens and does not say it again: one that is still there after 15 minutes is to
//! happen again.

use serde_json::json;

use crate::api::object::{Key, number, set, set_condition};
use crate::api::{ApiServer, Kind, Part};
use crate::time::{Time, seconds_stamp};

/// As a client, and as the source of its Events.
const NAME: &str = "kernel-monitor";
/// Events about nodes are written here.
const EVENTS: &str = "default";

/// Says that a condition has this status, for this reason.
pub(crate) fn report(
    api: &mut ApiServer,
    now: Time,
    node: &str,
    kind: &str,
    (status, reason): (&str, &str),
) {
    let Some(object) = api.peek(&Key::cluster(Kind::Node, node)) else { return };
    let mut new = object.clone();
    let stamp = seconds_stamp(now);
    let more = json!({
        "reason": reason,
        "message": "seen in the kernel's log",
        "lastHeartbeatTime": stamp,
    });
    set_condition(&mut new, kind, status, &stamp, more);
    // Whoever was faster did not write this condition; the next report says it again.
    drop(api.client(NAME).update(Kind::Node, new, Part::Status));
}

/// Tells of something that happened, or counts one more where it was told of before.
pub(crate) fn tell(api: &mut ApiServer, now: Time, node: &str, reason: &str) {
    let name = format!("{node}.{}", reason.to_lowercase());
    let key = Key::within(Kind::CoreEvent, EVENTS, &name);
    let stamp = seconds_stamp(now);
    if let Some(event) = api.peek(&key) {
        let mut new = event.clone();
        let count = number(event, "/count").unwrap_or(1).saturating_add(1);
        set(&mut new, "count", json!(count));
        set(&mut new, "lastTimestamp", json!(stamp));
        drop(api.client(NAME).update(Kind::CoreEvent, new, Part::Main));
        return;
    }
    let event = json!({
        "metadata": { "name": name, "namespace": EVENTS },
        "involvedObject": { "apiVersion": "v1", "kind": "Node", "name": node, "uid": node },
        "reason": reason,
        "message": "seen in the kernel's log",
        "type": "Warning",
        "source": { "component": NAME, "host": node },
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    });
    drop(api.client(NAME).create(Kind::CoreEvent, event));
}
