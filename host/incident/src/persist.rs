//! Writes an incident's record, before anything is done about it.
//!
//! The write is conditional on the resourceVersion that was decided on. A reply that
//! never came is settled by reading: the record either says what we meant, or what it
//! said before, or somebody else's word, and then this task is over. A record that does not stand there
//! as it was meant is none: an older definition of the kind drops new fields without a word.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_decide::bug::{Bug, is_seeded};
use node_remedy_decide::{Notice, OpId, Span, Transition};
use node_remedy_record::called::Called;
use node_remedy_record::reason::word;
use node_remedy_record::sentences::REQUESTS_FAILING;
use node_remedy_record::workload::workload;
use node_remedy_record::{sentences, status};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};
use node_remedy_runtime::events::Note;
use node_remedy_runtime::metrics::ReasonLabel;

use crate::standstill::Standstill;
use crate::state::{Incident, Late};

/// First wait after a failed write.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// Longest wait; the lease runs out soon after.
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// A record that the API server refuses for so long is decided anew: what made it too large, for instance, may be gone
/// by then, and a person's word is heard.
const REFUSED_FOR_MAX: Span = Span::minutes(1);
/// An API server that stays slow is told of this often.
const TELL_LATE_EVERY: Span = Span::minutes(1);

/// The record is not ours to write any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record of {name} is not ours any more: {why}")]
pub struct Lost {
    name: String,
    why: String,
}

impl<C: Cluster> Incident<C> {
    /// Writes what was decided. Nothing is written where nothing changed.
    pub(crate) async fn record(&mut self, decided: &Transition) -> Result<(), Lost> {
        let now = self.context.clock.now();
        self.context.unproven.note(self.node(), &self.plan, &decided.record);
        if decided.record != self.record {
            let status = status::write(
                &decided.record,
                &self.nodefence,
                &self.plan,
                self.facts.as_ref(),
                now,
            );
            let mut meant = self.nodefence.clone();
            meant.status = Some(status);
            self.nodefence = self.put(meant).await?;
        }
        let before = std::mem::replace(&mut self.record, decided.record.clone());
        if before.phase != self.record.phase {
            let seconds = Duration::from_millis(now.since(before.entered_at).0).as_secs_f64();
            self.context.metrics.phases.observe(format!("{:?}", before.phase), seconds);
            self.entered = Some(self.record.phase);
        }
        if before.released.is_none() && self.record.released.is_some() {
            self.count_pods();
        }
        if before.phase.state() != self.record.phase.state() {
            self.context.count_transition(self.record.phase);
        }
        self.next_look = decided.next_look.filter(|_| !is_seeded(Bug::LookForgotten));
        self.context.audit.decided(&self.nodefence, &self.plan, &before, decided, now);
        self.context.metrics.decisions.inc();
        Ok(())
    }

    /// Counts the workloads whose pods are released.
    fn count_pods(&self) {
        let released = self.nodefence.status.as_ref().and_then(|status| status.released.as_ref());
        let pods = released.into_iter().flat_map(|released| &released.pods);
        let workloads: BTreeSet<String> =
            pods.map(|pod| workload(&format!("{}/{}", pod.namespace, pod.name))).collect();
        self.context.metrics.count_pods(workloads);
    }

    async fn put(&self, mut meant: NodeFence) -> Result<NodeFence, Lost> {
        let mut backoff = BACKOFF_MIN;
        // What stands there of what we meant, where that is not all of it.
        let mut pruned = None;
        let mut standstill = Standstill::default();
        let begun_at = self.context.clock.now();
        loop {
            match self.context.cluster.replace_status(&meant).await {
                Ok(written) if written.status == meant.status => return Ok(written),
                Err(_) if is_seeded(Bug::ActsUnrecorded) => return Ok(meant),
                Ok(written) => {
                    self.tell_pruned("").await;
                    meant.metadata = written.metadata;
                    pruned = Some(written.status);
                }
                Err(ClusterError::Invalid(why) | ClusterError::Denied(why)) => {
                    self.tell_pruned(&why).await;
                    if self.context.clock.now() >= begun_at.after(REFUSED_FOR_MAX) {
                        return Err(self.lost("the API server refuses what was decided"));
                    }
                }
                Err(error) => {
                    tracing::debug!(nodefence = self.name(), %error, "failed to write the record");
                    let lasts = standstill.fails(self.context.clock.now());
                    self.tell_standstill("its record cannot be written", lasts, &error).await;
                }
            }
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
            if self.context.lease.remaining_ms() == 0 {
                return Err(self.lost("the leader lease is gone"));
            }
            let found = match self.context.cluster.get::<NodeFence>(At::cluster(&self.name())).await
            {
                Ok(Some(found)) => found,
                Ok(None) => {
                    self.tell_vanished().await;
                    return Err(self.lost("the NodeFence was deleted"));
                }
                Err(_) => continue,
            };
            if found.uid() != meant.uid() {
                self.tell_vanished().await;
                return Err(self.lost("another NodeFence of that name exists"));
            }
            if found.status == meant.status {
                return Ok(found);
            }
            if found.status != self.nodefence.status && pruned.as_ref() != Some(&found.status) {
                return Err(self.lost("somebody else wrote it"));
            }
            // Only metadata changed, an annotation for instance: our decision stands.
            meant.metadata = found.metadata;
        }
    }

    /// Nothing is done while a request of the incident fails, so somebody has to hear of it.
    pub(crate) async fn tell_standstill(
        &self,
        what: &str,
        lasts: Option<Span>,
        error: &ClusterError,
    ) {
        let Some(lasts) = lasts else { return };
        let reason = ReasonLabel { reason: REQUESTS_FAILING.to_owned() };
        self.context.metrics.refusals.get_or_create(&reason).inc();
        let note = sentences::stands_still(&self.name(), what, lasts, &error.to_string());
        tracing::error!(nodefence = self.name(), "{}", note.text);
        self.context.tell(&self.nodefence.spec.node, &note).await;
    }

    /// Nothing is done until the record stands there, so somebody has to hear of it, once.
    async fn tell_pruned(&self, refusal: &str) {
        if !self.context.refused_records.borrow_mut().insert(self.name()) {
            return;
        }
        let note = sentences::pruned(&self.name(), refusal);
        tracing::error!(nodefence = self.name(), "{}", note.text);
        self.context.tell(&self.nodefence.spec.node, &note).await;
    }

    /// Whoever is to switch on or to open what this incident left hears of it: its record is gone.
    pub(crate) async fn tell_vanished(&self) {
        let left = node_remedy_record::status::write::what_is_left(
            &self.record,
            &self.plan,
            self.context.clock.now(),
        );
        if left.is_empty() {
            return;
        }
        let note = sentences::vanished(&self.name(), &left);
        tracing::error!(nodefence = self.name(), "{}", note.text);
        self.context.tell(&self.nodefence.spec.node, &note).await;
    }

    fn lost(&self, why: &str) -> Lost {
        let lost = Lost { name: self.name(), why: why.to_owned() };
        tracing::warn!(%lost, "leaving the incident to its owner");
        lost
    }

    /// Tells people what was decided, in order and beside the path: an Event that takes long to
    /// write must not let the evidence for a release grow old. No more than one telling waits.
    pub(crate) async fn tell(&mut self, decided: &Transition) {
        let late = self.late.untold.take();
        let now = self.context.clock.now();
        let mut notices = Vec::new();
        for notice in &decided.notices {
            if let Notice::Held { reason } = notice {
                let word = ReasonLabel { reason: word(reason).to_owned() };
                self.context.metrics.refusals.get_or_create(&word).inc();
                if !self.holds.is_news(self.record.phase, reason, now) {
                    continue;
                }
            }
            notices.push(notice);
        }
        let note = |notice: &Notice| {
            let mut note = sentences::note(notice, &self.plan, &self.name(), self.node());
            if let (Notice::Parked(_), Some(parked)) = (notice, &self.record.parked) {
                note.text += &node_remedy_record::status::write::what_stands(
                    parked,
                    self.record.marks,
                    &self.plan,
                );
            }
            note
        };
        let is_telling = self.telling.as_ref().is_some_and(|telling| !telling.is_finished());
        let is_phase_alone = notices.is_empty() && late.is_none();
        let said: Vec<Note> = notices.into_iter().map(note).collect();
        let entered = self.entered.take().and_then(sentences::entered);
        self.untold.extend(said.into_iter().chain(entered).chain(late));
        // No phase waits for an Event that is still being written: the next telling has it.
        if is_phase_alone && is_telling {
            return;
        }
        let notes = std::mem::take(&mut self.untold);
        for note in &notes {
            if note.warning {
                tracing::warn!(node = self.node(), reason = note.reason, "{}", note.text);
            } else {
                tracing::info!(node = self.node(), reason = note.reason, "{}", note.text);
            }
        }
        if notes.is_empty() {
            return;
        }
        self.have_told().await;
        let (context, node) = (self.context.clone(), self.nodefence.spec.node.clone());
        self.telling = Some(tokio::task::spawn_local(async move {
            for note in notes {
                context.tell(&node, &note).await;
            }
        }));
    }

    /// Notes that evidence was too old to act on. Nothing is wrong with that once; an API server
    /// that is slow for long keeps a lost node from being helped, and that has to be heard.
    pub(crate) fn note_late(&mut self) {
        let reason = ReasonLabel { reason: "StaleView".to_owned() };
        self.context.metrics.refusals.get_or_create(&reason).inc();
        let now = self.context.clock.now();
        if self.late.noted_at.is_none_or(|at| now.since(at) >= TELL_LATE_EVERY) {
            self.late = Late { noted_at: Some(now), untold: Some(sentences::late()) };
        }
    }

    /// Waits until everything was told.
    pub(crate) async fn have_told(&mut self) {
        if let Some(telling) = self.telling.take() {
            // It neither panics nor is aborted.
            let _ = telling.await;
        }
    }

    /// Counts and audits a call that ended.
    pub(crate) fn note_call(&self, op: OpId, called: &Called) {
        let Some(operation) = self.record.operations.iter().find(|one| one.id == op) else {
            return;
        };
        let now = self.context.clock.now();
        self.context.audit.called(&self.nodefence, &self.plan, operation, called, now);
        self.context.count_call(&self.plan, operation, &called.end);
        if let Some(method) = self.plan.method(operation.method) {
            self.context.reach.note_call(&method.device, &called.end, now);
        }
    }
}
