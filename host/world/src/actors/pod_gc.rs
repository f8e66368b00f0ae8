//! Pod garbage collection: every 20 s, the pods that no kubelet will ever let go.
//!
//! Terminating pods of nodes that are not Ready and carry the out-of-service taint;
//! pods of nodes that do not exist, after a quarantine; terminating pods bound nowhere.
//! The threshold on finished pods (12,500) is not modelled.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::taints::{OUT_OF_SERVICE, has_key};
use crate::api::object::{Key, condition_status, is_terminating, part, set, text, uid};
use crate::api::{DeleteOptions, Kind, Part};
use crate::rng::Rng;
use crate::stage::Stage;
use crate::time::{Time, after};

const NAME: &str = "pod-garbage-collector";
/// How often it looks.
const ROUND: Duration = Duration::from_secs(20);
/// How long a node must be missing before its pods are orphans.
const QUARANTINE: Duration = Duration::from_secs(40);

/// The garbage collector.
#[derive(Debug)]
pub(crate) struct PodGc {
    next: Time,
    /// Missing nodes, and when their quarantine ends.
    missing: BTreeMap<String, Time>,
}

impl PodGc {
    /// One whose rounds are anywhere in their 20 seconds, as in a real cluster.
    pub(crate) fn new(seed: u64, now: Time) -> Self {
        let phase = Rng::named(seed, NAME).below(crate::time::millis(ROUND));
        Self { next: after(now, Duration::from_millis(phase)), missing: BTreeMap::new() }
    }

    /// One turn; says when the next round is.
    pub(crate) fn run(&mut self, stage: &mut Stage<'_>) -> Time {
        if self.next <= stage.now {
            self.next = after(self.next, ROUND);
            self.look(stage);
        }
        self.next
    }

    fn look(&mut self, stage: &mut Stage<'_>) {
        let mut bound = Vec::new();
        let mut doomed = Vec::new();
        for pod in stage.api.all(Kind::Pod) {
            let name = text(pod, "/spec/nodeName");
            let node = stage.api.peek(&Key::cluster(Kind::Node, name));
            match node {
                None if name.is_empty() => {
                    if is_terminating(pod) {
                        doomed.push(pod.clone());
                    }
                }
                None => {
                    bound.push(name.to_owned());
                    if self.missing.get(name).is_some_and(|until| *until <= stage.now) {
                        doomed.push(pod.clone());
                    }
                }
                Some(node) => {
                    let out =
                        condition_status(node, "Ready") != "True" && has_key(node, OUT_OF_SERVICE);
                    if is_terminating(pod) && out {
                        doomed.push(pod.clone());
                    }
                }
            }
        }
        self.missing.retain(|node, _| bound.contains(node));
        for node in bound {
            self.missing.entry(node).or_insert_with(|| after(stage.now, QUARANTINE));
        }
        for pod in doomed {
            fail_and_delete(stage, &pod);
        }
    }
}

/// Marks the pod Failed, then deletes it by force.
fn fail_and_delete(stage: &mut Stage<'_>, pod: &Value) {
    let mut failed = pod.clone();
    set(part(&mut failed, "status"), "phase", json!("Failed"));
    let key = Key::of(Kind::Pod, pod);
    let mut client = stage.api.client(NAME);
    // What is not there any more needs no collecting; what failed otherwise, the next
    // round finds again.
    drop(client.update(Kind::Pod, failed, Part::Status));
    drop(client.delete(&key, &DeleteOptions::force(uid(pod))));
}
