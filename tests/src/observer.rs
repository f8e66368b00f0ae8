//! The judge outside the controller: did anybody release a pod of a machine that still ran?
//!
//! It joins three records that the program under test does not write: what the pods wrote to their
//! volumes, what the API server's audit log says was deleted by whom, and what the BMCs say their
//! machines' power was and who was told so. On doubt it finds a violation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::Value;

use crate::audit::{self, AuditEvent};
use crate::ipmi::{self, Power, PowerChange, PowerEvent};
use crate::storage::{Storage, Write};

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The power logs of the machines by node name.
pub type PowerLogs = BTreeMap<String, PathBuf>;

/// The judge of one user's deeds in one cluster.
#[derive(Clone, Debug)]
pub struct Observer {
    user: String,
    storage: Storage,
    audit_log: PathBuf,
    power_logs: PowerLogs,
}

/// Something that must never happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A writer went on after another one had begun on the same volume.
    TwoWriters {
        /// The volume.
        volume: String,
        /// Who had it before, and wrote again.
        first: String,
        /// Who began meanwhile.
        second: String,
        /// How long the first wrote after the second began.
        overlap_ms: u64,
    },
    /// Something was released whose machine had power.
    ReleasedWhileOn(Release),
    /// Something was released when the machine was off, but nobody had been told so.
    ReleasedWithoutRead(Release),
    /// Something was deleted, and no record says which machine it was on.
    ReleasedFromNowhere(Release),
}

/// One deed that gives something of a node free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// `pods default/db-0`, `taint out-of-service`, ….
    pub what: String,
    /// The node that it was on, if a record says so.
    pub node: Option<String>,
    /// When the API server took the request in.
    pub at: Timestamp,
}

/// What the observer found.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What the user released, in order.
    pub releases: Vec<Release>,
    /// What must not have happened.
    pub violations: Vec<Violation>,
    /// What the user asked for and the API server refused: it asked wrongly, or lacks a right.
    pub refused: Vec<String>,
    /// How often a disruption budget held an eviction of the user's back.
    pub held_back: usize,
}

impl Observer {
    /// Judges `user`, a name as the audit log has it.
    #[must_use]
    pub fn new(user: &str, storage: Storage, audit_log: PathBuf, power_logs: PowerLogs) -> Self {
        Self { user: user.to_owned(), storage, audit_log, power_logs }
    }

    /// Reads all records as they are now.
    pub fn judge(&self) -> Result<Verdict> {
        let mut violations = Vec::new();
        for volume in self.storage.volumes()? {
            violations.extend(two_writers(&volume, &self.storage.writes(&volume)?));
        }
        let events = audit::read(&self.audit_log)?;
        let releases = releases(&events, &self.user);
        for release in &releases {
            let log = release.node.as_ref().and_then(|node| self.power_logs.get(node));
            let violation = match log {
                Some(log) => violation_of_power(release, &ipmi::read_log(log)?),
                None => Some(Violation::ReleasedFromNowhere(release.clone())),
            };
            violations.extend(violation);
        }
        let is_held_back = |event: &&AuditEvent| {
            event.user.username == self.user
                && event.object_ref.subresource == "eviction"
                && event.response_status.code == 429
        };
        let held_back = events.iter().filter(is_held_back).count();
        Ok(Verdict { releases, violations, refused: refused(&events, &self.user), held_back })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoWriters { volume, first, second, overlap_ms } => write!(
                out,
                "{volume} had two writers: {first} wrote {overlap_ms} ms on after {second} began"
            ),
            Self::ReleasedWhileOn(release) => write!(out, "released while on: {release}"),
            Self::ReleasedWithoutRead(release) => {
                write!(out, "released before a read said off: {release}")
            }
            Self::ReleasedFromNowhere(release) => {
                write!(out, "released from an unknown machine: {release}")
            }
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.node.as_deref().unwrap_or("?");
        write!(out, "{} of {node} at {}", self.what, self.at)
    }
}

/// A writer that comes again after another one is a second writer. The order is the file's own, so
/// no clock can be wrong. One finding per pair.
fn two_writers(volume: &str, writes: &[Write]) -> Vec<Violation> {
    let name_of =
        |write: &Write| format!("{} ({}) in boot {}", write.pod, write.uid, write.boot_id);
    let mut begun: Vec<(String, u64)> = Vec::new();
    let mut overlaps = BTreeMap::<(String, String), u64>::new();
    for write in writes {
        let name = name_of(write);
        let Some(position) = begun.iter().position(|(other, _)| *other == name) else {
            begun.push((name, write.at_ms));
            continue;
        };
        for (later, began_ms) in begun.iter().skip(position + 1) {
            let overlap_ms = write.at_ms.saturating_sub(*began_ms);
            overlaps.insert((name.clone(), later.clone()), overlap_ms);
        }
    }
    overlaps
        .into_iter()
        .map(|((first, second), overlap_ms)| {
            let volume = volume.to_owned();
            Violation::TwoWriters { volume, first, second, overlap_ms }
        })
        .collect()
}

/// What the user did that gives something of a node free: grace-0 deletes and evictions of pods, deletes
/// of attachments and nodes, and the out-of-service taint. A pod that is marked Failed is free already:
/// whoever owns it may delete it before the user does. A graceful delete is none: the pod stays until its
/// kubelet lets it go.
fn releases(events: &[AuditEvent], user: &str) -> Vec<Release> {
    let mut tainted = BTreeMap::<&str, bool>::new();
    let mut unanswered = BTreeMap::<&str, Timestamp>::new();
    let mut marked = BTreeSet::<&str>::new();
    let mut found = Vec::new();
    for event in events {
        let is_users = event.user.username == user;
        let at = event.request_received_timestamp;
        if is_users && is_unanswered_write(event) {
            unanswered.entry(&event.object_ref.name).or_insert(at);
        }
        if !event.is_accepted() {
            continue;
        }
        match (event.verb.as_str(), event.object_ref.resource.as_str()) {
            ("delete" | "deletecollection", "pods" | "volumeattachments") if is_users => {
                let objects = match event.response_object.get("items").and_then(Value::as_array) {
                    Some(items) => items.as_slice(),
                    None => std::slice::from_ref(&event.response_object),
                };
                let forced = objects.iter().filter(|object| is_forced(object));
                for object in forced.filter(|object| !marked.contains(uid(object))) {
                    let node = object.pointer("/spec/nodeName").and_then(Value::as_str);
                    let node = node.map(str::to_owned);
                    found.push(Release { what: event.object(), node, at });
                }
            }
            ("patch", "pods") if is_users && event.object_ref.subresource == "status" => {
                let object = &event.response_object;
                let is_failed = object.pointer("/status/phase") == Some(&"Failed".into());
                if is_failed && marked.insert(uid(object)) {
                    let node = object.pointer("/spec/nodeName").and_then(Value::as_str);
                    let node = node.map(str::to_owned);
                    found.push(Release { what: event.object(), node, at });
                }
            }
            ("create", "pods") if is_users && event.object_ref.subresource == "eviction" => {
                let grace_s = event.request_object.pointer("/deleteOptions/gracePeriodSeconds");
                if grace_s.and_then(Value::as_u64) == Some(0) {
                    found.push(Release { what: event.object(), node: None, at });
                }
            }
            ("delete", "nodes") if is_users => {
                let node = Some(event.object_ref.name.clone());
                found.push(Release { what: event.object(), node, at });
            }
            (_, "nodes")
                if event.object_ref.subresource.is_empty() && !event.response_object.is_null() =>
            {
                let node = event.object_ref.name.as_str();
                let has_taint = has_out_of_service(&event.response_object);
                let was_tainted = tainted.insert(node, has_taint).unwrap_or(false);
                let unanswered_at = unanswered.remove(node);
                if !has_taint || was_tainted {
                    continue;
                }
                if let Some(at) = unanswered_at.or(is_users.then_some(at)) {
                    let what = "taint out-of-service".to_owned();
                    found.push(Release { what, node: Some(node.to_owned()), at });
                }
            }
            _ => {}
        }
    }
    found
}

/// A write of a Node of which the log does not say what came of it: the server failed (5xx), or the writer was gone before
/// the answer (499, or no object).
fn is_unanswered_write(event: &AuditEvent) -> bool {
    let is_write = matches!(event.verb.as_str(), "patch" | "update");
    let object = &event.object_ref;
    let is_of_node = object.resource == "nodes" && object.subresource.is_empty();
    let code = event.response_status.code;
    let is_done = event.is_accepted() && !event.response_object.is_null();
    let is_refused = (400..499).contains(&code);
    is_write && is_of_node && !is_done && !is_refused
}

fn uid(object: &Value) -> &str {
    object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default()
}

fn refused(events: &[AuditEvent], user: &str) -> Vec<String> {
    let of_user = events.iter().filter(|event| event.user.username == user);
    of_user
        .filter(|event| event.is_refused())
        .map(|event| {
            let (verb, status) = (&event.verb, &event.response_status);
            format!("{verb} {}: {} {}", event.object(), status.code, status.message)
        })
        .collect()
}

/// A pod that was never bound ran nowhere. Anything else counts, unless it is a pod that got time.
fn is_forced(object: &Value) -> bool {
    let kind = object.get("kind").and_then(Value::as_str);
    let is_pod = kind == Some("Pod");
    let is_bound = object.pointer("/spec/nodeName").is_some();
    let grace_s = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64);
    !is_pod || (is_bound && grace_s.unwrap_or(0) == 0)
}

fn has_out_of_service(node: &Value) -> bool {
    let taints = node.pointer("/spec/taints").and_then(Value::as_array);
    let mut keys = taints.into_iter().flatten().filter_map(|taint| taint.get("key")?.as_str());
    keys.any(|key| key == OUT_OF_SERVICE)
}

fn violation_of_power(release: &Release, log: &[PowerEvent]) -> Option<Violation> {
    let before: Vec<_> = log.iter().take_while(|event| event.at <= release.at).collect();
    let became = before.iter().rposition(|event| event.what == PowerChange::Became);
    let off = became
        .filter(|position| before.get(*position).is_some_and(|event| event.power == Power::Off));
    let Some(off) = off else { return Some(Violation::ReleasedWhileOn(release.clone())) };
    let was_told = before
        .iter()
        .skip(off)
        .any(|event| event.what == PowerChange::Read && event.power == Power::Off);
    (!was_told).then(|| Violation::ReleasedWithoutRead(release.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(uid: &str, at_ms: u64) -> Write {
        Write { pod: "db-0".into(), boot_id: format!("boot-{uid}"), at_ms, uid: uid.into() }
    }

    #[test]
    fn writers_one_after_the_other_are_fine() {
        assert_eq!(two_writers("v", &[write("a", 0), write("a", 50), write("b", 90)]), []);
    }

    #[test]
    fn a_writer_that_comes_again_is_a_second_writer() {
        let writes =
            [write("a", 0), write("b", 40), write("a", 50), write("b", 90), write("a", 100)];
        let found = two_writers("v", &writes);
        let overlaps: Vec<_> = found
            .iter()
            .filter_map(|violation| match violation {
                Violation::TwoWriters { overlap_ms, .. } => Some(*overlap_ms),
                Violation::ReleasedWhileOn(_)
                | Violation::ReleasedWithoutRead(_)
                | Violation::ReleasedFromNowhere(_) => None,
            })
            .collect();
        assert_eq!(overlaps, [60]);
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn power(second: i64, what: PowerChange, power: Power) -> PowerEvent {
        PowerEvent { at: at(second), what, power }
    }

    fn release() -> Release {
        Release { what: "pods default/db-0".into(), node: Some("node-0".into()), at: at(10) }
    }

    #[test]
    fn a_release_needs_an_off_and_a_read_of_it_and_no_on_since() {
        use Power::{Off, On};
        use PowerChange::{Asked, Became, Read};
        let (asked, became) = (power(5, Asked, Off), power(6, Became, Off));
        let read = power(7, Read, Off);
        let while_on = Some(Violation::ReleasedWhileOn(release()));
        let unread = Some(Violation::ReleasedWithoutRead(release()));
        for (log, expected) in [
            (vec![], while_on.clone()),
            (vec![asked], while_on.clone()),
            (vec![asked, power(5, Read, Off)], while_on.clone()),
            (vec![asked, became], unread.clone()),
            (vec![asked, power(5, Read, Off), became], unread.clone()),
            (vec![asked, became, power(7, Read, On)], unread.clone()),
            (vec![asked, became, power(11, Read, Off)], unread),
            (vec![asked, became, read], None),
            (vec![asked, became, read, power(8, Became, On)], while_on.clone()),
            (vec![asked, became, read, power(12, Became, On)], None),
            (vec![asked, power(11, Became, Off), power(12, Read, Off)], while_on),
        ] {
            assert_eq!(violation_of_power(&release(), &log), expected, "{log:?}");
        }
    }

    fn event(user: &str, verb: &str, resource: &str, response: &Value) -> AuditEvent {
        serde_json::from_value(json!({
            "verb": verb,
            "user": {"username": user},
            "objectRef": {"resource": resource, "name": "node-0"},
            "requestReceivedTimestamp": "2027-01-15T08:00:10.000000Z",
            "responseStatus": {"code": 200},
            "responseObject": response,
        }))
        .unwrap()
    }

    #[test]
    fn what_counts_as_a_release() {
        let pod = |grace_s: u64| {
            json!({
                "kind": "Pod", "spec": {"nodeName": "node-0"},
                "metadata": {"deletionGracePeriodSeconds": grace_s},
            })
        };
        let unbound = json!({"kind": "Pod", "spec": {}, "metadata": {}});
        let attachment = json!({"kind": "VolumeAttachment", "spec": {"nodeName": "node-0"}});
        let status = json!({"kind": "Status"});
        let tainted = json!({"spec": {"taints": [{"key": OUT_OF_SERVICE}]}});
        let clean = json!({"spec": {}});
        let node_0 = Some("node-0");
        for (verb, resource, response, expected) in [
            ("delete", "pods", &pod(0), vec![node_0]),
            ("delete", "pods", &pod(30), vec![]),
            ("delete", "pods", &unbound, vec![]),
            ("delete", "pods", &status, vec![None]),
            ("deletecollection", "pods", &json!({"items": [pod(0), pod(0)]}), vec![node_0, node_0]),
            ("delete", "volumeattachments", &attachment, vec![node_0]),
            ("delete", "nodes", &status, vec![node_0]),
            ("patch", "nodes", &tainted, vec![node_0]),
            ("patch", "nodes", &clean, vec![]),
        ] {
            let found = releases(&[event("node-remedy", verb, resource, response)], "node-remedy");
            let nodes: Vec<_> = found.iter().map(|release| release.node.as_deref()).collect();
            assert_eq!(nodes, expected, "{verb} {resource} {response}");
            assert_eq!(releases(&[event("admin", verb, resource, response)], "node-remedy"), []);
        }
    }

    #[test]
    fn a_pod_that_is_marked_failed_or_evicted_at_once_is_released_once() {
        let pod = json!({
            "kind": "Pod", "spec": {"nodeName": "node-0"}, "status": {"phase": "Failed"},
            "metadata": {"uid": "a", "deletionGracePeriodSeconds": 0},
        });
        let mut mark = event("node-remedy", "patch", "pods", &pod);
        mark.object_ref.subresource = "status".to_owned();
        let delete = event("node-remedy", "delete", "pods", &pod);
        let once = [mark.clone(), mark.clone(), delete.clone()];
        assert_eq!(releases(&once, "node-remedy").len(), 1);
        let mut runs = mark;
        runs.response_object["status"]["phase"] = "Running".into();
        assert_eq!(releases(&[runs], "node-remedy").len(), 0);
        for (grace_s, expected) in [(json!(0), 1), (json!(30), 0), (Value::Null, 0)] {
            let mut evict = event("node-remedy", "create", "pods", &Value::Null);
            evict.object_ref.subresource = "eviction".to_owned();
            evict.request_object = json!({"deleteOptions": {"gracePeriodSeconds": grace_s}});
            assert_eq!(releases(&[evict], "node-remedy").len(), expected);
        }
    }

    #[test]
    fn refusals_are_told_and_lost_races_are_not() {
        let mut denied = event("node-remedy", "delete", "pods", &json!({"kind": "Status"}));
        denied.response_status.code = 403;
        denied.response_status.message = "may not".to_owned();
        let mut lost = event("node-remedy", "patch", "nodes", &json!({"kind": "Status"}));
        lost.response_status.code = 422;
        lost.response_status.message =
            "the server rejected our request due to an error in our request".to_owned();
        lost.request_object = json!([{"op": "test", "path": "/spec/taints", "value": []}]);
        let mut invalid = lost.clone();
        invalid.response_status.message = "Node is invalid".to_owned();
        let mut blind = lost.clone();
        blind.request_object = json!([{"op": "remove", "path": "/spec/taints"}]);
        let mut replaced = event("node-remedy", "patch", "pods", &Value::Null);
        replaced.response_status.code = 422;
        replaced.response_status.message =
            "Pod \"db-0\" is invalid: metadata.uid: Invalid value: \"a\": field is immutable"
                .into();
        let events = [denied, lost, replaced, event("node-remedy", "get", "pods", &Value::Null)];
        assert_eq!(refused(&events, "node-remedy"), ["delete pods node-0: 403 may not"]);
        assert_eq!(refused(&[invalid, blind], "node-remedy").len(), 2);
        assert_eq!(refused(&events, "admin"), [""; 0]);
    }

    #[test]
    fn the_taint_counts_for_whoever_set_it() {
        let tainted = json!({"spec": {"taints": [{"key": OUT_OF_SERVICE}]}});
        let by_admin = event("admin", "patch", "nodes", &tainted);
        let by_us = event("node-remedy", "patch", "nodes", &tainted);
        assert_eq!(releases(&[by_admin.clone(), by_us.clone()], "node-remedy"), []);
        assert_eq!(releases(&[by_us, by_admin.clone()], "node-remedy").len(), 1);

        // Of a process that was killed before it had its answer the next write shows what came of it.
        for (code, object) in [(499, Value::Null), (200, Value::Null), (504, tainted.clone())] {
            let mut unanswered = event("node-remedy", "patch", "nodes", &object);
            unanswered.response_status.code = code;
            assert_eq!(releases(&[unanswered, by_admin.clone()], "node-remedy").len(), 1, "{code}");
        }
        let mut refused = event("node-remedy", "patch", "nodes", &Value::Null);
        refused.response_status.code = 409;
        assert_eq!(releases(&[refused, by_admin], "node-remedy"), []);
    }
}
