//! Taint eviction: deletes pods from nodes whose NoExecute taints they do not, or no
//! longer, tolerate.
//!
//! The delete is a graceful one. On a node whose kubelet is gone nobody answers it, and
//! the pod stays Terminating. It goes by name, a moment after the decision (a get and a patch of the
//! status come before it in `pkg/controller/tainteviction`): what has that name by then is deleted,
//! also on another node.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::taints::{Patience, patience};
use crate::api::object::{Key, is_terminating, list, text, uid};
use crate::api::{DeleteOptions, Kind};
use crate::stage::Stage;
use crate::time::{Time, after};

const NAME: &str = "taint-eviction-controller";

/// From the decision to the delete: two calls of the API.
const CALLS: Duration = Duration::from_millis(200);

/// The controller: which pods it waits for, and since when.
#[derive(Debug, Default)]
pub(crate) struct TaintEviction {
    /// By pod UID: when their wait began.
    since: BTreeMap<String, Time>,
    /// Pods whose eviction is decided, and when they are deleted.
    at_work: BTreeMap<Key, Time>,
}

impl TaintEviction {
    /// One turn; says when the next patience ends.
    pub(crate) fn run(&mut self, stage: &mut Stage<'_>) -> Option<Time> {
        let mut since = BTreeMap::new();
        let mut next: Option<Time> = None;
        let tainted: BTreeMap<&str, Vec<&Value>> = stage
            .api
            .all(Kind::Node)
            .map(|node| (text(node, "/metadata/name"), no_execute(node)))
            .filter(|(_, taints)| !taints.is_empty())
            .collect();
        for pod in stage.api.all(Kind::Pod).filter(|pod| !is_terminating(pod)) {
            let Some(taints) = tainted.get(text(pod, "/spec/nodeName")) else { continue };
            let shortest = taints.iter().map(|taint| patience(pod, taint)).min();
            let Some(wait) = shortest.and_then(limited) else { continue };
            let began = self.since.get(uid(pod)).copied().unwrap_or(stage.now);
            let due = after(began, wait);
            since.insert(uid(pod).to_owned(), began);
            if due <= stage.now {
                let deleted_at = after(stage.now, CALLS);
                self.at_work.entry(Key::of(Kind::Pod, pod)).or_insert(deleted_at);
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        self.since = since;
        let now = stage.now;
        for (key, _) in self.at_work.extract_if(.., |_, deleted_at| *deleted_at <= now) {
            // A pod that is gone by now is what was wanted.
            drop(stage.api.client(NAME).delete(&key, &DeleteOptions::default()));
        }
        next.into_iter().chain(self.at_work.values().copied()).min()
    }
}

fn no_execute(node: &Value) -> Vec<&Value> {
    let taints = list(node, "/spec/taints").iter();
    taints.filter(|taint| text(taint, "/effect") == "NoExecute").collect()
}

fn limited(patience: Patience) -> Option<Duration> {
    match patience {
        Patience::None => Some(Duration::ZERO),
        Patience::For(span) => Some(span),
        Patience::Endless => None,
    }
}
