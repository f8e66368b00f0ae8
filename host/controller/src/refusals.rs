//! Every decision not to act, with its numbers, where `explain` finds it.
//!
//! What is refused now stands in `RemedyBudget/default`'s status, at most one line per
//! node; an Event tells of each new reason. Numbers change all the time, so a line is
//! rewritten at most every [`WRITE_EVERY_MS`].

use std::collections::BTreeMap;
use std::rc::Rc;

use node_remedy_api::limits::{REFUSAL_CHARACTERS_MAX, REFUSALS_MAX};
use node_remedy_api::nodefence::FencedNode;
use node_remedy_api::remedybudget::{NAME, Refused, RemedyBudget};
use node_remedy_api::time::Moment;
use node_remedy_context::context::Context;
use node_remedy_decide::Time;
use node_remedy_runtime::cluster::{At, Cluster};
use node_remedy_runtime::events::Note;
use node_remedy_runtime::metrics::{Metrics, ReasonLabel};
use node_remedy_runtime::text::shortened;
use serde_json::json;
use tokio::task::JoinSet;

pub use node_remedy_record::reason::Reason;
/// An unchanged reason with newer numbers is written this often.
const WRITE_EVERY_MS: u64 = 10_000;
/// A new reason, this often: in a storm each of many nodes has one, and another one a moment later.
const NEWS_EVERY_MS: u64 = 1_000;

/// What is refused now. It is written beside the loop that opens incidents and hears people, one write at a time
/// with all that came meanwhile: hundreds of nodes and a slow API server hold nobody up.
#[derive(Debug, Default)]
pub struct Refusals {
    lines: BTreeMap<String, Refused>,
    written_at: u64,
    /// What is written is not what is refused now.
    stale: bool,
    /// Not only by its numbers.
    news: bool,
    /// Of each node the newest reason that no Event tells of yet.
    untold: BTreeMap<String, Note>,
    /// At most one; whether it was taken.
    writing: JoinSet<bool>,
    /// At most one.
    telling: JoinSet<()>,
}

impl Refusals {
    /// Notes that `node` is not acted on.
    pub fn note<C: Cluster>(&mut self, context: &Context<C>, node: &str, reason: &Reason) {
        let (guard, sentence) = (reason.guard(), reason.to_string());
        context.metrics.refusals.get_or_create(&ReasonLabel { reason: guard.to_owned() }).inc();
        let before = self.lines.get(node);
        let line = line(node, reason, before, context.clock.now());
        let is_new = before.is_none_or(|before| before.guard != guard);
        self.stale |= before != Some(&line);
        self.lines.insert(node.to_owned(), line);
        if is_new {
            tracing::info!(node, guard, "{sentence}");
            let note = Note { reason: guard.to_owned(), text: sentence, warning: true };
            self.untold.insert(node.to_owned(), note);
            self.news = true;
        }
    }

    /// How many nodes each guard keeps from being acted on.
    pub fn count(&self, metrics: &Metrics) {
        metrics.refused.clear();
        for line in self.lines.values() {
            metrics.refused.get_or_create(&ReasonLabel { reason: line.guard.clone() }).inc();
        }
    }

    /// Nothing is refused about `node` any more.
    pub fn forget<C: Cluster>(&mut self, context: &Context<C>, node: &str) {
        context.audit.well(node);
        if self.lines.remove(node).is_some() {
            self.stale = true;
            self.news = true;
        }
    }

    /// When to write next; `None` if there is nothing to write, or a write is under way.
    pub fn next_write(&self) -> Option<Time> {
        let every = if self.news { NEWS_EVERY_MS } else { WRITE_EVERY_MS };
        (self.stale && self.writing.is_empty()).then(|| Time(self.written_at.saturating_add(every)))
    }

    /// Begins to write what was not written yet, unless a write is under way.
    pub fn write<C: Cluster>(&mut self, context: &Rc<Context<C>>) {
        let now = context.clock.now().0;
        let is_due = self.next_write().is_some_and(|at| at.0 <= now);
        if is_due {
            (self.stale, self.news, self.written_at) = (false, false, now);
            let lines: Vec<&Refused> = self.lines.values().take(REFUSALS_MAX).collect();
            let patch = json!({"status": {"refusals": lines}});
            let context = context.clone();
            self.writing.spawn_local(async move {
                let written =
                    context.cluster.merge_status::<RemedyBudget>(At::cluster(NAME), &patch);
                let written = written.await;
                if let Err(error) = &written {
                    tracing::warn!(%error, "failed to write refusals; with the next one");
                }
                written.is_ok()
            });
        }
        if !self.untold.is_empty() && self.telling.is_empty() {
            let (untold, context) = (std::mem::take(&mut self.untold), context.clone());
            self.telling.spawn_local(async move {
                for (node, note) in untold {
                    let uid = context.caches.nodes.find(&node).map(|seen| seen.uid);
                    let uid = uid.unwrap_or_default();
                    let about = FencedNode { name: node, uid, ..FencedNode::default() };
                    context.tell(&about, &note).await;
                }
            });
        }
    }

    /// Waits for what is being written, and begins with what came meanwhile.
    pub async fn written<C: Cluster>(&mut self, context: &Rc<Context<C>>) {
        tokio::select! {
            Some(written) = self.writing.join_next(), if !self.writing.is_empty() => {
                self.stale |= !written.unwrap_or_default();
            }
            Some(_) = self.telling.join_next(), if !self.telling.is_empty() => {}
            else => std::future::pending().await,
        }
        self.write(context);
    }
}

/// What is kept of a refusal: one reason is refused by since it was first said.
pub fn line(node: &str, reason: &Reason, before: Option<&Refused>, now: Time) -> Refused {
    let (guard, now) = (reason.guard(), Moment::from_ms(now.0));
    let since = before.filter(|before| before.guard == guard).map_or(now, |before| before.since);
    Refused {
        node: node.to_owned(),
        guard: guard.to_owned(),
        sentence: shortened(&reason.to_string(), REFUSAL_CHARACTERS_MAX),
        since,
        last: now,
    }
}
