//! What a DELETE does to an object: gone at once, marked and waiting, or nothing new.
//!
//! Pods wait for their kubelet, objects with finalizers for whoever set them. Cascading
//! to owned objects is the garbage collector's, which is not modelled.

use std::time::Duration;

use serde_json::{Value, json};

use super::admission::DEFAULT_GRACE_S;
use super::error::ApiError;
use super::kind::Kind;
use super::object::{Key, count_generation, is_terminating, list, number, part, set, text, uid};
use crate::time::{Time, after, read_stamp, seconds_stamp};

/// What a DELETE says in its body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// `gracePeriodSeconds`; without it a pod's own applies.
    pub grace_s: Option<u64>,
    /// `preconditions.uid`.
    pub uid: Option<String>,
    /// `preconditions.resourceVersion`.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// What a request asks for. A body is all that counts where there is one: what the query says
    /// is then ignored.
    pub fn of_request(body: Option<&Value>, query: &str) -> Self {
        let Some(body) = body else {
            let mut said = query.split('&').filter_map(|one| one.split_once('='));
            let grace = said.find(|(name, _)| *name == "gracePeriodSeconds");
            let grace_s = grace.and_then(|(_, seconds)| seconds.parse().ok());
            return Self { grace_s, ..Self::default() };
        };
        let owned = |pointer| Some(text(body, pointer).to_owned()).filter(|text| !text.is_empty());
        Self {
            grace_s: number(body, "/gracePeriodSeconds"),
            uid: owned("/preconditions/uid"),
            resource_version: owned("/preconditions/resourceVersion"),
        }
    }

    /// A force delete of the object with this UID and no other.
    pub fn force(uid: &str) -> Self {
        Self { grace_s: Some(0), uid: Some(uid.to_owned()), resource_version: None }
    }
}

/// What a delete comes to.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// The object goes now.
    Gone,
    /// A pod that goes now: watchers are told first that it is being deleted.
    MarkedThenGone(Value),
    /// The object stays, marked as given.
    Marked(Value),
}

/// Whether `object` is the one that the caller means.
pub(super) fn check(key: &Key, object: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let version = text(object, "/metadata/resourceVersion");
    let differs = |wanted: &Option<String>, found: &str| {
        wanted.as_deref().is_some_and(|wanted| wanted != found)
    };
    if differs(&options.uid, uid(object)) {
        return Err(ApiError::Conflict(format!("{key}: precondition failed: UID differs")));
    }
    if differs(&options.resource_version, version) {
        return Err(ApiError::Conflict(format!(
            "{key}: precondition failed: resourceVersion differs"
        )));
    }
    Ok(())
}

/// What a delete of `object` at `now` comes to.
pub(super) fn judge(kind: Kind, object: &Value, options: &DeleteOptions, now: Time) -> Verdict {
    let granted =
        number(object, "/metadata/deletionGracePeriodSeconds").filter(|_| is_terminating(object));
    let grace = match granted {
        // A delete that is under way is hurried by one that says by how much, and by no other.
        Some(granted) => options.grace_s.map_or(granted, |wanted| wanted.min(granted)),
        None => grace_s(kind, object, options),
    };
    let goes_now = grace == 0 && list(object, "/metadata/finalizers").is_empty();
    if goes_now && (kind != Kind::Pod || granted == Some(0)) {
        return Verdict::Gone;
    }
    let due = match granted {
        None => Some(after(now, Duration::from_secs(grace))),
        // A grace period may be shortened by a later delete, never lengthened.
        Some(granted) if grace < granted => {
            let due = read_stamp(text(object, "/metadata/deletionTimestamp")).unwrap_or(now);
            Some(Time(due.0.saturating_sub((granted - grace).saturating_mul(1_000))))
        }
        Some(_) => None,
    };
    let mut marked = object.clone();
    if let Some(due) = due {
        let metadata = part(&mut marked, "metadata");
        set(metadata, "deletionTimestamp", json!(seconds_stamp(due)));
        set(metadata, "deletionGracePeriodSeconds", json!(grace));
    }
    if granted.is_none() {
        // That it shall go is a change of what is wanted.
        count_generation(&mut marked);
    }
    if goes_now { Verdict::MarkedThenGone(marked) } else { Verdict::Marked(marked) }
}

/// Whether a marked object has nothing left to wait for.
pub(super) fn is_finished(kind: Kind, object: &Value) -> bool {
    is_terminating(object)
        && list(object, "/metadata/finalizers").is_empty()
        && (kind != Kind::Pod || number(object, "/metadata/deletionGracePeriodSeconds") == Some(0))
}

/// Only pods have a grace period, and only while a kubelet has something to end.
fn grace_s(kind: Kind, object: &Value, options: &DeleteOptions) -> u64 {
    let runs_nowhere = text(object, "/spec/nodeName").is_empty()
        || matches!(text(object, "/status/phase"), "Failed" | "Succeeded");
    if kind != Kind::Pod || runs_nowhere {
        return 0;
    }
    let own = number(object, "/spec/terminationGracePeriodSeconds").unwrap_or(DEFAULT_GRACE_S);
    options.grace_s.unwrap_or(own)
}
