//! Reports a process that sends the same write again and again without a pause: a loop that runs as fast as the API server
//! answers costs it more than the lost node.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use node_remedy_decide::Time;
use node_remedy_world::time::between;

use crate::interceptor::Request;

/// Writes are counted over this window.
const WITHIN: Duration = Duration::from_secs(10);
/// One incident writes its record twice for each operation, and has no more than some sixty in that time.
const TIMES_MAX: usize = 150;
/// Written by many at once, or by all of a large cluster: Leases, Events, the ConfigMap of the budget.
const SHARED: [&str; 3] = ["leases", "events", "configmaps"];

/// The writes of one process.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    sent: RefCell<BTreeMap<String, VecDeque<Time>>>,
}

impl Repeats {
    /// Notes a write; says what was written and how often, once it is too often.
    pub(super) fn note(&self, request: &Request<'_>, now: Time) -> Option<(String, usize)> {
        if !request.is_write() || SHARED.contains(&request.resource.as_str()) {
            return None;
        }
        let name = request.name.unwrap_or_default();
        let what = format!("{} {} {name}", request.verb, request.resource);
        let what = what.trim_end().to_owned();
        let mut all = self.sent.borrow_mut();
        all.retain(|_, sent| sent.back().is_some_and(|last| between(*last, now) <= WITHIN));
        let sent = all.entry(what.clone()).or_default();
        while sent.front().is_some_and(|first| between(*first, now) > WITHIN) {
            sent.pop_front();
        }
        sent.push_back(now);
        if sent.len() <= TIMES_MAX {
            return None;
        }
        let times = sent.len();
        all.remove(&what);
        Some((what, times))
    }
}
