//! Carries out what was decided and recorded.
//!
//! Cluster writes are idempotent and level-triggered: one that failed is logged, the
//! next look sees that it did not take, and it is asked for again. Device calls run as
//! tasks of their own; their ends come back as events.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use node_remedy_act::budget::{Room, Taken, slot_of};
use node_remedy_act::calls::{CallRequest, held_back};
use node_remedy_act::delete::{PodDelete, PodId, delete_attachment, delete_node, delete_pod};
use node_remedy_act::node::{NodeChange, change_node};
use node_remedy_act::node_lock::Lock;
use node_remedy_act::{budget, job, node_lock};
use node_remedy_api::annotations::ABORT;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_decide::bug::{Bug, guard, is_seeded};
use node_remedy_decide::{
    Action, Approval, Effect, End, Method, OpId, Operation, Phase, Record, SlotAnswer, Span,
    VIEW_AGE_MAX,
};
use node_remedy_observe::nodefences::is_approved;
use node_remedy_runtime::clock::timestamp;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow};
use node_remedy_runtime::names::job_name;

use crate::job::refused;
use crate::state::{Incident, Observation};

/// The longest a device call may take; manifests may say less.
const CALL_MAX: Duration = Duration::from_secs(30);
/// Deletes in flight at once.
const DELETES_AT_ONCE: usize = 16;

impl<C: Cluster> Incident<C> {
    /// Carries out effects: what gives something away all at once, for none of it waits for
    /// another, and then the rest in order.
    pub(crate) async fn act(&mut self, effects: &[Effect]) {
        let (releases, rest): (Vec<&Effect>, Vec<&Effect>) =
            effects.iter().partition(|effect| gives_away(effect));
        let releases: Vec<&Effect> = releases.into_iter().filter(|one| self.may(one)).collect();
        let released = join_all(releases.iter().map(|effect| self.release(effect))).await;
        for (effect, result) in releases.iter().zip(released) {
            self.note_failure(effect, result);
        }
        for effect in rest {
            if self.may(effect) {
                let result = self.carry_out(effect).await;
                self.note_failure(effect, result);
            }
        }
        if let Err(error) = self.return_owed_slot().await {
            tracing::warn!(node = self.node(), %error, "failed to give a slot back; trying again");
        }
        if let Err(error) = self.take_words_away().await {
            tracing::debug!(node = self.node(), %error, "failed to take an annotation away");
        }
        if let Err(error) = self.keep_lock().await {
            tracing::warn!(node = self.node(), %error, "failed to keep the node's lock");
        }
    }

    /// Whether an effect may still be carried out; if not, the world is looked at again.
    fn may(&mut self, effect: &Effect) -> bool {
        let Some(why) = self.withheld_now(effect) else { return true };
        tracing::warn!(node = self.node(), ?effect, why, "not carried out; looking again");
        self.look_wanted = true;
        if self.context.lease.remaining_ms() > 0 {
            self.note_late();
        }
        false
    }

    /// Asked again before each request of a release: a long list takes long.
    fn withheld_now(&self, effect: &Effect) -> Option<&'static str> {
        let age = self.facts.as_ref().map(|facts| self.context.clock.now().since(facts.taken_at));
        withheld(effect, self.context.lease.remaining_ms(), age)
            .filter(|_| !is_seeded(Bug::NothingWithheld))
    }

    fn note_failure(&self, effect: &Effect, result: Result<(), ClusterError>) {
        if let Err(error @ ClusterError::Throttled { .. }) = &result {
            // A disruption budget says so, too, and may for long.
            tracing::debug!(node = self.node(), ?effect, %error, "asked to wait; will see");
        } else if let Err(error) = result {
            tracing::warn!(node = self.node(), ?effect, %error, "failed to act; will see");
        }
    }

    /// Renews the lock that other remediators honour, and gives it up when the incident is over.
    async fn keep_lock(&mut self) -> Result<(), ClusterError> {
        if matches!(self.record.phase, Phase::Final(_)) {
            return self.context.locks.release(self.node()).await;
        }
        let now = self.context.clock.now();
        let is_doubtful = guard(Bug::DoubtfulLockKept, self.context.clock.is_doubtful());
        let every =
            if is_doubtful { node_lock::RENEW_IN_DOUBT_EVERY } else { node_lock::RENEW_EVERY };
        if self.locked_at.is_some_and(|at| now.since(at) < every) {
            return Ok(());
        }
        let taken = self.context.locks.take(self.node()).await;
        let lost_after = every.times(3).max(node_lock::LOST_AFTER_MIN);
        if taken.is_err() && self.locked_at.is_none_or(|at| now.since(at) >= lost_after) {
            // Whether it is still ours nobody knows: somebody else may have taken it since.
            self.locked_by = Some("somebody unknown, for it cannot be read".to_owned());
        }
        self.locked_by = match taken? {
            Lock::Ours => None,
            Lock::Theirs { holder } => Some(holder),
        };
        self.locked_at = Some(now);
        Ok(())
    }

    /// The record says that the slot is free; the budget has to hear it, or nobody else gets it.
    async fn return_owed_slot(&mut self) -> Result<(), ClusterError> {
        if self.owes_slot {
            let entry = slot_of(&self.nodefence);
            budget::give_back(&self.context.cluster, self.epoch, &entry).await?;
            self.owes_slot = false;
        }
        Ok(())
    }

    async fn carry_out(&mut self, effect: &Effect) -> Result<(), ClusterError> {
        match effect {
            Effect::Look => self.look_wanted = true,
            Effect::TakeSlot => {
                let (context, entry) = (&self.context, slot_of(&self.nodefence));
                let room = Room { limits: &self.nodefence.spec.gate, caches: &context.caches };
                let taken = budget::take(&context.cluster, self.epoch, &entry, room).await;
                // Where no answer came it may be taken: given back, and asked for again.
                self.owes_slot = taken.is_err();
                let answer = match taken? {
                    Taken::Yes => SlotAnswer::Granted,
                    Taken::Full(holders) => {
                        tracing::debug!(nodefence = self.name(), ?holders, "no slot is free");
                        context.slots_refused.set(true);
                        SlotAnswer::Refused
                    }
                    Taken::NewerEpoch(_) => SlotAnswer::Refused,
                };
                self.pending.push_back(Observation::Slot(answer));
            }
            Effect::ReturnSlot => self.owes_slot = true,
            Effect::HandOver => self.context.hand_over.notify_one(),
            Effect::Call(op) => self.call(*op),
            Effect::Withdraw(op) => self.context.calls.gate.withdraw(&self.operation(*op)),
            Effect::Quarantine => self.change(effect, NodeChange::Quarantine).await?,
            Effect::Unquarantine => self.change(effect, NodeChange::Unquarantine).await?,
            Effect::Cordon => {
                self.change(effect, NodeChange::Cordon { nodefence: self.name() }).await?;
            }
            Effect::Uncordon => self.change(effect, NodeChange::Uncordon).await?,
            Effect::LiftOutOfService => self.change(effect, NodeChange::LiftOutOfService).await?,
            Effect::GracefulDelete(uids) => {
                self.delete_pods(effect, uids, PodDelete::Graceful).await?;
            }
            Effect::Evict { pods, at_once: false } => {
                self.delete_pods(effect, pods, PodDelete::Evict).await?;
            }
            Effect::StartJob(number) => {
                let started = self.while_allowed(effect, self.start_job(*number)).await;
                self.job_refused = started.as_ref().err().and_then(refused);
                started?;
            }
            Effect::StopJob(number) => self.while_allowed(effect, self.stop_job(*number)).await?,
            Effect::AskRemedy(number) => self.ask_remedy(*number),
            Effect::AnnotateNode { pod } => self.annotate_node(effect, pod).await?,
            // Released before anything else.
            Effect::OutOfService
            | Effect::DeletePods(_)
            | Effect::Evict { at_once: true, .. }
            | Effect::DeleteAttachments(_)
            | Effect::DeleteNode => {}
        }
        Ok(())
    }

    /// Carries out what gives something away, and nothing else.
    async fn release(&self, effect: &Effect) -> Result<(), ClusterError> {
        match effect {
            Effect::OutOfService => {
                self.change(effect, NodeChange::OutOfService { nodefence: self.name() }).await
            }
            Effect::DeletePods(uids) => self.delete_pods(effect, uids, PodDelete::Force).await,
            Effect::Evict { pods, at_once: true } => {
                self.delete_pods(effect, pods, PodDelete::EvictAtOnce).await
            }
            Effect::DeleteAttachments(uids) => self.delete_attachments(effect, uids).await,
            Effect::DeleteNode => {
                let node = &self.nodefence.spec.node;
                let deleting = delete_node(&self.context.cluster, &node.name, &node.uid);
                self.while_allowed(effect, deleting).await
            }
            Effect::Look
            | Effect::TakeSlot
            | Effect::ReturnSlot
            | Effect::HandOver
            | Effect::Call(_)
            | Effect::Withdraw(_)
            | Effect::Quarantine
            | Effect::Unquarantine
            | Effect::Cordon
            | Effect::Uncordon
            | Effect::LiftOutOfService
            | Effect::GracefulDelete(_)
            | Effect::Evict { at_once: false, .. }
            | Effect::StartJob(_)
            | Effect::StopJob(_)
            | Effect::AskRemedy(_)
            | Effect::AnnotateNode { .. } => Ok(()),
        }
    }

    /// What an operation is called in the cluster.
    pub(crate) fn operation(&self, op: OpId) -> String {
        format!("{}/{}", self.name(), op.0)
    }

    fn call(&mut self, op: OpId) {
        let Some(operation) = self.record.operations.iter().find(|one| one.id == op) else {
            return;
        };
        let Some(method) = self.context.method_of(&self.nodefence, operation.method) else {
            return;
        };
        if operation.cuts() && (self.is_spoken_against() || self.lacks_approval(operation)) {
            self.look_wanted = true;
            self.pending.push_back(Observation::Ended(op, held_back().end));
            return;
        }
        let asked = CallRequest {
            method,
            grants: self.nodefence.spec.plan.grants.clone(),
            action: operation.action,
            operation: self.operation(op),
            attempt: operation.attempt,
            deadline: CALL_MAX,
            until: None,
            allowed_at: self.facts.as_ref().map(|facts| facts.taken_at),
            system_uuid: reported_uuid(&self.record, operation),
        };
        let context = self.context.clone();
        self.calls.spawn_local(async move {
            let cancel = node_remedy_sandbox::Cancel::new();
            (op, context.calls.call(&asked, cancel).await)
        });
    }

    /// A17: whether a person's abort, or a deletion, stands in the very record that the intent was written to, and nobody
    /// decided on it yet. What is cut again behind a release is none of theirs.
    fn is_spoken_against(&self) -> bool {
        let said = self.nodefence.annotations().get(ABORT);
        let is_new = said.is_some_and(|word| self.heard.get(ABORT) != Some(word));
        let is_deleted = self.nodefence.metadata.deletion_timestamp.is_some();
        let is_unheard = is_new || is_deleted && !self.deletion_heard;
        is_unheard && self.record.first_released_at.is_none()
    }

    /// A17: whether this is the first off, its policy needs an approval, and the very record that the intent was written to has
    /// none.
    fn lacks_approval(&self, operation: &Operation) -> bool {
        let cuts_power = |one: &Operation| {
            let method = self.plan.method(one.method);
            one.cuts() && method.is_some_and(Method::switches_power)
        };
        let mut earlier = self.record.operations.iter().filter(|one| one.id < operation.id);
        let is_first =
            cuts_power(operation) && !earlier.any(|one| cuts_power(one) && one.may_have_acted());
        let is_needed = is_first && self.policy.approval == Approval::Needed;
        guard(Bug::ApprovalIgnored, is_needed) && !is_approved(&self.nodefence)
    }

    /// Creates a remedy's Job; one of that name is ours already, or was never to be.
    async fn start_job(&self, number: u32) -> Result<(), ClusterError> {
        let job = self.record.jobs.iter().find(|job| job.number == number);
        let remedy_step = job.and_then(|job| self.nodefence.spec.ladder.get(job.remedy_step));
        let Some((remedy_step, template)) =
            remedy_step.and_then(|remedy_step| Some((remedy_step, remedy_step.job.as_ref()?)))
        else {
            return Err(ClusterError::Invalid(format!("no remedy has Job {number}")));
        };
        let namespace = &self.context.calls.namespace;
        let now = timestamp(self.context.clock.now());
        let job = job::build(&self.nodefence, &remedy_step.name, template, number, namespace, now)?;
        match self.context.cluster.create(&job).await {
            Ok(_) | Err(ClusterError::AlreadyExists(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes a remedy's Job and its pods. Another Job of that name is left alone where it can be read; one that may not be
    /// read is taken for ours, whose name nobody else has a reason to use.
    async fn stop_job(&self, number: u32) -> Result<(), ClusterError> {
        let name = job_name(&self.name(), number);
        let at = At::within(&self.context.calls.namespace, &name);
        let uid = match self.context.cluster.get::<Job>(at).await {
            Ok(Some(job)) if job::is_of(&job, &self.nodefence) => job.metadata.uid,
            Ok(_) => return Ok(()),
            Err(ClusterError::Denied(_)) => None,
            Err(error) => return Err(error),
        };
        let how = DeleteHow { uid, with_dependents: true, ..DeleteHow::default() };
        self.context.cluster.delete::<Job>(at, &how).await.map(|_| ())
    }

    /// Says on the Node which pod remedies it, and since when.
    async fn annotate_node(&self, effect: &Effect, pod: &str) -> Result<(), ClusterError> {
        let since = timestamp(self.context.clock.now()).to_string();
        self.change(effect, NodeChange::RemediationPod { pod: pod.to_owned(), since }).await
    }

    async fn change(&self, effect: &Effect, change: NodeChange) -> Result<(), ClusterError> {
        let node = &self.nodefence.spec.node;
        let changing = change_node(&self.context.cluster, &node.name, &node.uid, &change);
        self.while_allowed(effect, changing).await.map(|_| ())
    }

    /// Asks again whether an effect may be carried out whenever its request goes on: a process may
    /// have stood still at any of its awaits, and what was right before them is so no more.
    async fn while_allowed<T>(
        &self,
        effect: &Effect,
        request: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        let mut request = pin!(request);
        poll_fn(|context| match self.withheld_now(effect) {
            Some(why) => {
                Poll::Ready(Err(ClusterError::Conflict(format!("not carried out: {why}"))))
            }
            None => request.as_mut().poll(context),
        })
        .await
    }

    /// Deletes pods that the last live look saw; one that it did not see is gone already.
    async fn delete_pods(
        &self,
        effect: &Effect,
        uids: &[String],
        delete: PodDelete,
    ) -> Result<(), ClusterError> {
        let Some(facts) = &self.facts else { return Ok(()) };
        let pods = uids.iter().filter_map(|uid| facts.pods.get(uid)).map(|pod| PodId {
            uid: pod.uid.clone(),
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            phase: pod.phase.clone(),
        });
        let cluster = &self.context.cluster;
        let deleted = stream::iter(pods)
            .map(|pod| async move {
                self.while_allowed(effect, delete_pod(cluster, &pod, delete)).await
            })
            .buffer_unordered(DELETES_AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        match delete {
            PodDelete::Force | PodDelete::EvictAtOnce | PodDelete::Graceful => {
                self.count_released(&deleted);
            }
            PodDelete::Evict => {}
        }
        deleted.into_iter().collect()
    }

    async fn delete_attachments(
        &self,
        effect: &Effect,
        uids: &[String],
    ) -> Result<(), ClusterError> {
        let Some(facts) = &self.facts else { return Ok(()) };
        let all = uids.iter().filter_map(|uid| facts.attachments.get(uid));
        let all = all.map(|one| (one.name.clone(), one.uid.clone()));
        let cluster = &self.context.cluster;
        let deleted = stream::iter(all)
            .map(|(name, uid)| async move {
                self.while_allowed(effect, delete_attachment(cluster, &name, &uid)).await
            })
            .buffer_unordered(DELETES_AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        self.count_released(&deleted);
        deleted.into_iter().collect()
    }

    fn count_released(&self, deleted: &[Result<(), ClusterError>]) {
        let done = deleted.iter().filter(|result| result.is_ok()).count();
        let metrics = &self.context.metrics;
        metrics.released.inc_by(u64::try_from(done).unwrap_or_default());
        let took = self.context.clock.now().since(self.record.opened_at);
        metrics.release_seconds.set(Duration::from_millis(took.0).as_secs_f64());
    }

    /// A word that was decided on is taken away, so that it is heard once. One that came since, also
    /// under the same name, stays until it was heard.
    async fn take_words_away(&mut self) -> Result<(), ClusterError> {
        let Some(kept) = self.context.caches.nodefences.find(&self.name()) else { return Ok(()) };
        if version_of(&kept.0) < self.taken_away_at {
            return Ok(());
        }
        let stands =
            |(key, word): &(&&str, &String)| kept.0.annotations().get(**key) == Some(*word);
        let heard: Vec<_> = self.heard.iter().filter(stands).collect();
        if heard.is_empty()
            || self.pending.iter().any(|seen| matches!(seen, Observation::Command(_)))
        {
            return Ok(());
        }
        let edits: Vec<serde_json::Value> = heard
            .into_iter()
            .flat_map(|(key, word)| {
                let path = format!("/metadata/annotations/{}", key.replace('/', "~1"));
                [
                    serde_json::json!({"op": "test", "path": path, "value": word}),
                    serde_json::json!({"op": "remove", "path": path}),
                ]
            })
            .collect();
        let patch: json_patch::Patch = serde_json::from_value(edits.into())
            .map_err(|error| ClusterError::Invalid(error.to_string()))?;
        let name = self.name();
        let written = self.context.cluster.patch::<NodeFence>(At::cluster(&name), &patch).await?;
        self.taken_away_at = version_of(&written);
        // Another leader may have written its record meanwhile: our next write is not to pass for one that knows it.
        if written.status == self.nodefence.status {
            self.nodefence.metadata = written.metadata;
        }
        Ok(())
    }
}

/// P8: what the device called the machine last, for whatever cuts it: between a read and an off a name or an address may be
/// given to another one. What is switched on may not say who it is while it is off.
fn reported_uuid(record: &Record, operation: &Operation) -> Option<String> {
    let cuts = matches!(operation.action, Action::Off | Action::Reset);
    // The session would find out what the read before the pause did not.
    if !guard(Bug::MachineNotNamed, cuts) || is_seeded(Bug::IdentityOfBeforeThePause) {
        return None;
    }
    let is_read = |one: &&Operation| one.method == operation.method && one.action == Action::Status;
    let mut reads = record.operations.iter().rev().filter(is_read);
    reads.find_map(|one| {
        let Some(End::Succeeded { identity, .. }) = &one.end else { return None };
        let uuid = identity.iter().find(|(name, _)| name == "system-uuid");
        uuid.map(|(_, uuid)| uuid.clone())
    })
}

/// Versions of one object grow; `None` where they are no numbers.
fn version_of(nodefence: &NodeFence) -> Option<u64> {
    nodefence.metadata.resource_version.as_deref()?.parse().ok()
}

/// Why an effect must not be carried out now, though it was decided and recorded.
///
/// Time passes between a decision and its act: the process may be paused, the API server
/// slow. What touches the Node or its pods needs the lease still; what gives something
/// away also needs evidence that is still fresh. All of these are asked for again by the
/// next look. Device calls have a gate of their own, and slots an epoch.
fn withheld(effect: &Effect, lease_ms: u64, view_age: Option<Span>) -> Option<&'static str> {
    let is_write = match effect {
        Effect::Look
        | Effect::TakeSlot
        | Effect::ReturnSlot
        | Effect::HandOver
        | Effect::Call(_)
        | Effect::Withdraw(_)
        | Effect::AskRemedy(_) => false,
        Effect::Quarantine
        | Effect::Unquarantine
        | Effect::Cordon
        | Effect::Uncordon
        | Effect::OutOfService
        | Effect::LiftOutOfService
        | Effect::DeletePods(_)
        | Effect::GracefulDelete(_)
        | Effect::Evict { .. }
        | Effect::DeleteAttachments(_)
        | Effect::DeleteNode
        | Effect::StartJob(_)
        | Effect::StopJob(_)
        | Effect::AnnotateNode { .. } => true,
    };
    if is_write && lease_ms == 0 {
        return Some("the leader lease has run out");
    }
    let fresh = view_age.is_some_and(|age| age <= VIEW_AGE_MAX);
    (gives_away(effect) && !fresh).then_some("the evidence has grown old")
}

/// Whether an effect lets somebody else have what the node had.
fn gives_away(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::OutOfService
            | Effect::DeletePods(_)
            | Effect::Evict { at_once: true, .. }
            | Effect::DeleteAttachments(_)
            | Effect::DeleteNode
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_given_away_without_the_lease_or_on_old_evidence() {
        let fresh = Some(Span(0));
        let old = Some(Span(VIEW_AGE_MAX.0 + 1));
        let releases = [
            Effect::OutOfService,
            Effect::DeletePods(vec!["u".to_owned()]),
            Effect::Evict { pods: vec!["u".to_owned()], at_once: true },
            Effect::DeleteAttachments(vec!["u".to_owned()]),
            Effect::DeleteNode,
        ];
        for effect in &releases {
            assert_eq!(withheld(effect, 1, fresh), None, "{effect:?}");
            assert!(withheld(effect, 0, fresh).is_some(), "{effect:?} without the lease");
            assert!(withheld(effect, 1, old).is_some(), "{effect:?} on old evidence");
            assert!(withheld(effect, 1, None).is_some(), "{effect:?} on no evidence");
        }
    }

    #[test]
    fn the_node_is_only_written_with_the_lease_and_undoing_needs_no_fresh_evidence() {
        for effect in [Effect::Quarantine, Effect::LiftOutOfService, Effect::Uncordon] {
            assert_eq!(withheld(&effect, 1, None), None, "{effect:?}");
            assert!(withheld(&effect, 0, None).is_some(), "{effect:?}");
        }
        for effect in [Effect::Look, Effect::TakeSlot, Effect::Call(OpId(1))] {
            assert_eq!(withheld(&effect, 0, None), None, "{effect:?}");
        }
    }
}
