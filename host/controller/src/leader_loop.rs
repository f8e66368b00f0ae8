//! What a leader does: looks nodes over, opens incidents, keeps each one's task going.
//!
//! Nodes are looked over when something of theirs changed or a time has come, never by
//! going round. It lives as long as one term of leadership; dropping it drops every
//! task, and what they were about is in their records.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use kube::ResourceExt as _;
use node_remedy_act::budget::{Taken, slot_of};
use node_remedy_act::{budget, retention};
use node_remedy_api::nodefence::{NodeFence, Phase};
use node_remedy_context::context::Context;
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_decide::{Crossing, Hold, NodeView, Refusal, Span, Time};
use node_remedy_incident::finalizer;
use node_remedy_incident::open::{Opened, open};
use node_remedy_incident::reconcile::{Incident, Over, WakeUp, is_of_newer_leader};
use node_remedy_incident::standstill::Standstill;
use node_remedy_observe::caches::{Cached, lease_key};
use node_remedy_observe::config::NodeThreshold;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_observe::store::Changed;
use node_remedy_observe::{superseding, unhealthy, unread, view};
use node_remedy_record::reason::Reason;
use node_remedy_record::sentences;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow, Scope};
use node_remedy_runtime::events::Note;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::config_status::ReportedReadouts;
use crate::refusals::Refusals;
use crate::{second_opinion, sweep};

/// After a failed start of the term.
const START_AGAIN: Duration = Duration::from_secs(1);
/// A refusal without a time of its own is looked at again after this.
const LOOK_AGAIN_MS: u64 = 2_000;
/// No timer is set further ahead.
const SLEEP_MAX: Duration = Duration::from_mins(1);
/// Where incidents are refused slots, it is looked who holds them so often at most.
const STAMP_EVERY: Span = Span::seconds(10);

/// One term of leadership.
pub struct LeaderLoop<C: Cluster> {
    context: Rc<Context<C>>,
    epoch: u64,
    /// Open incidents by node, with the names of their NodeFences.
    incidents: BTreeMap<String, (String, mpsc::UnboundedSender<WakeUp>)>,
    tasks: JoinSet<(String, Over)>,
    /// Nodes to look over now.
    dirty: BTreeSet<String>,
    /// Nodes to look over later.
    looks: BTreeMap<String, Time>,
    /// Nodes whose opening failed, and until when it is not tried again.
    not_before: BTreeMap<String, Time>,
    refusals: Refusals,
    told: ReportedReadouts,
    /// When it was last looked who holds the slots.
    stamped_at: Time,
    /// When it was last looked for marks that nobody needs.
    swept_at: Time,
    /// At most one: that goes on beside everything else.
    sweep: JoinSet<()>,
}

impl<C: Cluster> LeaderLoop<C> {
    /// The loop of this epoch, without incidents.
    pub fn new(context: Rc<Context<C>>, epoch: u64) -> Self {
        Self {
            context,
            epoch,
            incidents: BTreeMap::new(),
            tasks: JoinSet::new(),
            dirty: BTreeSet::new(),
            looks: BTreeMap::new(),
            not_before: BTreeMap::new(),
            refusals: Refusals::default(),
            told: ReportedReadouts::default(),
            stamped_at: Time(0),
            swept_at: Time(0),
            sweep: JoinSet::new(),
        }
    }

    /// Works until dropped, or until a newer leader shows.
    pub async fn work(mut self, changes: &mut mpsc::UnboundedReceiver<Changed>) {
        while let Err(error) = self.take_over().await {
            tracing::warn!(%error, "failed to take over what is open; trying again");
            tokio::time::sleep(START_AGAIN).await;
        }
        let mut standstill = Standstill::default();
        while let Err(error) = self.begin().await {
            tracing::warn!(%error, "failed to begin the term; trying again");
            let lasts = standstill.fails(self.context.clock.now());
            self.tell_standstill(lasts, &error).await;
            tokio::time::sleep(START_AGAIN).await;
        }
        loop {
            self.look_over().await;
            self.refusals.write(&self.context);
            self.count();
            let wait = self.until_next_look();
            tokio::select! {
                biased;
                Some(over) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.close(over.ok()).await;
                }
                Some(change) = changes.recv() => {
                    self.note(&change);
                    while let Ok(change) = changes.try_recv() {
                        self.note(&change);
                    }
                }
                () = self.refusals.written(&self.context) => {}
                Some(_) = self.sweep.join_next(), if !self.sweep.is_empty() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Takes up what others left. A machine that is off waits for no budget.
    async fn take_over(&mut self) -> Result<(), ClusterError> {
        self.reconfigure().await;
        // What goes on from its record asks the gate at once, which counts who is not well.
        self.look_for_unhealthy(&self.context.caches.nodes.keys().into_iter().collect());
        let mut nodefences: Vec<NodeFence> = Vec::new();
        // One that cannot be read is told of with the configuration, and its node is left alone.
        let keep = |read: Read<NodeFence>| nodefences.extend(read);
        self.context.cluster.list_each(&Scope::all(), keep).await?;
        for nodefence in nodefences.into_iter().filter(node_remedy_observe::nodefences::is_open) {
            let (name, node) = (nodefence.name_any(), nodefence.spec.node.name.clone());
            let taken = if nodefence.status.is_none() {
                self.drop_unbegun(&nodefence).await
            } else {
                self.take_up(nodefence).await
            };
            // One that is refused keeps no other waiting; it is tried again when its node is looked over.
            if let Err(error) = taken {
                tracing::warn!(nodefence = name, %error, "failed to take an incident up; trying again");
                self.looks
                    .insert(node, Time(self.context.clock.now().0.saturating_add(LOOK_AGAIN_MS)));
            }
        }
        Ok(())
    }

    /// Stamps the epoch, and means to look at every node. Nothing is opened before.
    async fn begin(&mut self) -> Result<(), ClusterError> {
        if let Taken::NewerEpoch(epoch) = budget::stamp(&self.context.cluster, self.epoch).await? {
            return Err(ClusterError::Conflict(format!("epoch {epoch} leads already")));
        }
        self.tidy().await;
        self.dirty.extend(self.context.caches.nodes.keys());
        Ok(())
    }

    /// While the term cannot begin, those whose incidents are open are told.
    async fn tell_standstill(&self, lasts: Option<Span>, error: &ClusterError) {
        let Some(lasts) = lasts else { return };
        let what = "the RemedyBudget cannot be written, so that nothing new is cut";
        for (name, _) in self.incidents.values() {
            let Some(kept) = self.context.caches.nodefences.find(name) else { continue };
            let note = sentences::stands_still(name, what, lasts, &error.to_string());
            self.context.tell(&kept.0.spec.node, &note).await;
        }
        let seconds = lasts.0 / 1_000;
        tracing::error!(%error, "{what}, for {seconds} s: look at webhooks that fail closed, and at the rights");
    }

    /// A NodeFence without a record: its opener died before anything was decided.
    async fn drop_unbegun(&self, nodefence: &NodeFence) -> Result<(), ClusterError> {
        // A newer leader may be beginning it at this very moment.
        let how = DeleteHow {
            uid: nodefence.uid(),
            resource_version: nodefence.resource_version(),
            ..DeleteHow::default()
        };
        let name = nodefence.name_any();
        self.context.cluster.delete::<NodeFence>(At::cluster(&name), &how).await?;
        finalizer::let_go(&self.context.cluster, nodefence).await?;
        budget::give_back(&self.context.cluster, self.epoch, &slot_of(nodefence)).await?;
        Ok(())
    }

    /// Starts an incident's task. One whose record cannot be read is parked: its node stays
    /// closed, as nothing is opened while a NodeFence of it is open.
    async fn take_up(&mut self, nodefence: NodeFence) -> Result<(), ClusterError> {
        let node = nodefence.spec.node.name.clone();
        if self.incidents.contains_key(&node) || is_of_newer_leader(&nodefence, self.epoch) {
            return Ok(());
        }
        let (sender, mail) = mpsc::unbounded_channel();
        match Incident::take_up(self.context.clone(), self.epoch, nodefence.clone(), mail) {
            Ok(incident) => {
                self.incidents.insert(node.clone(), (nodefence.name_any(), sender));
                self.tasks.spawn_local(async move { (node, incident.run().await) });
                Ok(())
            }
            Err(why) => self.park(nodefence, &why).await,
        }
    }

    async fn park(&self, mut nodefence: NodeFence, why: &str) -> Result<(), ClusterError> {
        if nodefence.metadata.deletion_timestamp.is_some() {
            // Nobody can go on with it, and a person has seen to it.
            return finalizer::let_go(&self.context.cluster, &nodefence).await;
        }
        let Some(broken) = nodefence.status.take() else { return Ok(()) };
        let parked = node_remedy_record::status::write::park(
            &broken,
            &nodefence.name_any(),
            &why,
            self.context.clock.now(),
        );
        if parked == broken {
            return Ok(());
        }
        tracing::error!(nodefence = nodefence.name_any(), why, "failed to read the record; parked");
        // First: who dies in between leaves a record that says more than the budget, and is parked again.
        budget::give_back(&self.context.cluster, self.epoch, &slot_of(&nodefence)).await?;
        let sentence = parked.parked.as_ref().map(|parked| parked.sentence.clone());
        nodefence.status = Some(parked);
        self.context.cluster.replace_status(&nodefence).await?;
        let note =
            Note { reason: "Parked".to_owned(), text: sentence.unwrap_or_default(), warning: true };
        self.context.tell(&nodefence.spec.node, &note).await;
        Ok(())
    }

    async fn close(&mut self, over: Option<(String, Over)>) {
        if let Some((node, over)) = over {
            tracing::info!(node, ?over, "incident over");
            let ended = self.incidents.remove(&node);
            self.context.unproven.forget(&node);
            if let (Over::Final | Over::Gone, Some((name, _))) = (&over, ended) {
                self.context.refused_records.borrow_mut().remove(&name);
            }
            self.dirty.insert(node);
            match over {
                Over::Final => self.tidy().await,
                Over::Gone => self.stamp().await,
                Over::Lost => {}
            }
        }
    }

    /// Drops slots that nobody holds.
    async fn stamp(&self) {
        if let Err(error) = budget::stamp(&self.context.cluster, self.epoch).await {
            tracing::warn!(%error, "failed to look who holds the slots");
        }
    }

    async fn tidy(&self) {
        let context = &self.context;
        retention::tidy(&context.cluster, &context.caches, context.clock.now()).await;
    }

    fn note(&mut self, change: &Changed) {
        let node = match change.kind {
            "Node" => Some(change.key.to_string()),
            "Event" => self.context.caches.events.node_of(&change.key),
            "Lease" => change.key.split_once('/').map(|(_, node)| node.to_owned()),
            "Pod" | "VolumeAttachment" => change.node.as_deref().map(str::to_owned),
            "NodeFence" => {
                let found = self.context.caches.nodefences.find(&change.key);
                if found.is_none() {
                    // It is gone, or cannot be read.
                    self.dirty.extend(self.context.caches.nodes.keys());
                }
                if !self.context.caches.nodefences.unread().is_empty() {
                    self.dirty.insert(CONFIGURATION.to_owned());
                }
                // Of one that is gone its task has to hear, also where its Node is gone.
                let open = || self.incidents.iter().find(|(_, (name, _))| **name == *change.key);
                found.map(|kept| kept.0.spec.node.name).or_else(|| Some(open()?.0.clone()))
            }
            "RemedyPause" => {
                self.dirty.extend(self.context.caches.nodes.keys());
                if !self.context.caches.pauses.unread().is_empty() {
                    self.dirty.insert(CONFIGURATION.to_owned());
                }
                None
            }
            _ => {
                self.dirty.extend(self.context.caches.nodes.keys());
                self.dirty.insert(CONFIGURATION.to_owned());
                None
            }
        };
        self.dirty.extend(node);
    }

    async fn look_over(&mut self) {
        let now = self.context.clock.now();
        let due: Vec<String> =
            self.looks.iter().filter(|(_, at)| **at <= now).map(|(node, _)| node.clone()).collect();
        self.dirty.extend(due);
        if self.dirty.remove(CONFIGURATION) {
            self.reconfigure().await;
        }
        // Not by the incident itself: here nobody is between taking a slot and creating its NodeFence.
        if now >= self.stamped_at.after(STAMP_EVERY) && self.context.slots_refused.take() {
            self.stamped_at = now;
            self.stamp().await;
        }
        if now >= self.swept_at.after(sweep::EVERY) {
            self.swept_at = now;
            if self.sweep.is_empty() {
                let context = self.context.clone();
                let busy: BTreeSet<String> = self.incidents.keys().cloned().collect();
                self.sweep.spawn_local(async move { sweep::sweep(&context, &busy).await });
            }
        }
        let dirty = std::mem::take(&mut self.dirty);
        self.look_for_unhealthy(&dirty);
        for node in dirty {
            self.looks.remove(&node);
            if let Some((nodefence, mail)) = self.incidents.get(&node) {
                // A closed mailbox is an incident that just ended; it is joined next.
                let _ = mail.send(WakeUp::Wake);
                let nodefence = nodefence.clone();
                self.tell_of_successor(&node, &nodefence);
            } else if let Some(at) = self.consider(&node).await {
                self.looks.insert(node, at);
            }
        }
    }

    /// Notes which of these nodes are not well by signs that a policy names.
    fn look_for_unhealthy(&self, nodes: &BTreeSet<String>) {
        let (caches, clock) = (&self.context.caches, &self.context.clock);
        unhealthy::look_over(nodes.iter(), &self.context.config.borrow(), caches, clock);
    }

    /// Looks one node over; says when to look again by itself.
    async fn consider(&mut self, name: &str) -> Option<Time> {
        let now = self.context.clock.now();
        // Also of a node that is gone.
        if self.left_open(name).await {
            return Some(Time(now.0.saturating_add(LOOK_AGAIN_MS)));
        }
        let Some(seen) = &self.context.caches.nodes.find(name) else {
            self.not_before.remove(name);
            match unread::node(&self.context.caches, name) {
                Some(why) => self.refuse(name, &Reason::NotReady(why)),
                None => self.refusals.forget(&self.context, name),
            }
            return None;
        };
        let policy = self.context.config.borrow().policy_for(seen);
        let policy = match policy {
            Ok(Some(policy)) => policy,
            // Of a node that is well there is nothing to be done, whoever selects it.
            Err(why) if !seen.is_ready() => {
                self.refuse(name, &Reason::NotReady(why));
                return None;
            }
            Ok(None) | Err(_) => {
                self.refusals.forget(&self.context, name);
                return None;
            }
        };
        if let Some(why) = unread::about(&self.context.caches, seen) {
            if seen.is_ready() {
                self.refusals.forget(&self.context, name);
            } else {
                self.refuse(name, &Reason::NotReady(why));
            }
            return Some(Time(now.0.saturating_add(LOOK_AGAIN_MS)));
        }
        if let Some(at) = self.waits_until(name, now) {
            return Some(at);
        }
        let lease = self.context.caches.leases.find(&lease_key(name));
        let (caches, clock) = (&self.context.caches, &self.context.clock);
        let events = caches.events.of(name);
        let node = view::node_view(seen, lease.as_ref(), events.as_deref(), caches, clock);
        let mut next: Option<Time> = None;
        let mut refused: Option<Reason> = None;
        // Why a threshold is not crossed; told only if no crossed threshold was refused.
        let mut held: Option<Reason> = None;
        let made_way = node_remedy_observe::nodefences::last_superseded(caches, seen).is_some();
        let mut thresholds = superseding::fences_first(&policy).peekable();
        while let Some((number, threshold)) = thresholds.next() {
            match node_remedy_decide::crossed(&node, &threshold.threshold, now) {
                soon @ (Crossing::Clear { .. } | Crossing::Unclear | Crossing::Ripening { .. }) => {
                    let looks = node_remedy_decide::next_look(&node, &threshold.threshold, now);
                    next = next.into_iter().chain(soon.next_look()).chain(looks).min();
                    held = held.or_else(|| held_by(seen, &node, threshold, now));
                }
                symptom @ Crossing::Crossed { .. } => {
                    let of = (&policy, threshold);
                    let verdict = node_remedy_incident::fence_due::gate_of(
                        &self.context,
                        seen,
                        &node,
                        of,
                        &symptom,
                        None,
                    );
                    let again = Time(now.0.saturating_add(LOOK_AGAIN_MS));
                    let (reason, at) = if verdict.refusals.is_empty() {
                        match open(&self.context, self.epoch, &policy, number, seen).await {
                            Ok(Opened::Yes(nodefence)) => {
                                self.refusals.forget(&self.context, name);
                                return self.take_up(*nodefence).await.err().map(|_| again);
                            }
                            Ok(Opened::Held(reason, at)) => (reason, at),
                            Err(error) => {
                                self.not_before.insert(name.to_owned(), again);
                                (Reason::ApiFailed(error.to_string()), None)
                            }
                        }
                    } else {
                        (Reason::Hold(Hold::Gate(verdict.refusals)), verdict.next_look)
                    };
                    let at = at.unwrap_or(again).max(Time(now.0.saturating_add(100)));
                    next = next.into_iter().chain([at]).min();
                    let is_of_remedy = reason.is_of_remedy();
                    refused.get_or_insert(reason);
                    // Another may help; but a milder one that made way has had its turn.
                    let is_milder =
                        thresholds.peek().is_some_and(|(_, one)| !superseding::may_fence(one));
                    if !is_of_remedy || made_way && is_milder {
                        break;
                    }
                }
            }
        }
        if let Some(reason) = refused.or(held) {
            self.refuse(name, &reason);
            return next;
        }
        self.refusals.forget(&self.context, name);
        next
    }

    /// Until when nothing is opened on a node because the API server failed: what was created meanwhile, and is taken
    /// away again, has its own watch events, which would have it tried anew at once.
    fn waits_until(&mut self, node: &str, now: Time) -> Option<Time> {
        let at = *self.not_before.get(node)?;
        // No longer than that, whatever our clock was set to.
        let waits = now < at && at.0.saturating_sub(now.0) <= LOOK_AGAIN_MS;
        if !guard(Bug::OpenedAtOnce, waits) {
            self.not_before.remove(node);
            return None;
        }
        Some(at)
    }

    /// Whether a NodeFence of this node is open that no task works on; then one soon does.
    async fn left_open(&mut self, node: &str) -> bool {
        let found = {
            let nodefences = self.context.caches.nodefences.all();
            let mut open = nodefences
                .values()
                .map(|kept| &kept.0)
                .filter(|one| node_remedy_observe::nodefences::is_open(one));
            open.find(|one| one.spec.node.name == node).cloned()
        };
        let Some(stale) = found else { return false };
        match self.context.cluster.get::<NodeFence>(At::cluster(&stale.name_any())).await {
            Ok(Some(nodefence)) if nodefence.status.is_none() => {
                if let Err(error) = self.drop_unbegun(&nodefence).await {
                    tracing::warn!(node, %error, "failed to drop a NodeFence without record");
                }
            }
            Ok(Some(nodefence)) if node_remedy_observe::nodefences::is_open(&nodefence) => {
                if let Err(error) = self.take_up(nodefence).await {
                    tracing::warn!(node, %error, "failed to park a broken record");
                }
            }
            // The cache is behind: it ended, or is gone.
            Ok(_) => {}
            Err(error) => tracing::warn!(node, %error, "failed to read a NodeFence"),
        }
        true
    }

    /// A Node that took the name of one whose incident waits has none of its own: that is told once it is not ready.
    fn tell_of_successor(&mut self, node: &str, nodefence: &str) {
        let caches = &self.context.caches;
        let Some(Cached(earlier)) = caches.nodefences.find(nodefence) else { return };
        let Some(record) = &earlier.status else { return };
        let waits = matches!(record.phase, Phase::Parked | Phase::AwaitingDevice);
        let Some(seen) = caches.nodes.find(node) else {
            return self.refusals.forget(&self.context, node);
        };
        if seen.uid == earlier.spec.node.uid {
            return;
        }
        if seen.is_ready() || !waits {
            return self.refusals.forget(&self.context, node);
        }
        let why = format!(
            "{nodefence}, of an earlier Node of this name, is still open, so this one has no incident; if that machine was \
             scrapped: node-remedy abort --leave-off {nodefence}, and first node-remedy confirm-off {nodefence} if a port or \
             storage of it is still cut"
        );
        self.refuse(node, &Reason::NotReady(why));
    }

    fn refuse(&mut self, node: &str, reason: &Reason) {
        self.context.audit.refused(node, reason, self.context.clock.now());
        self.refusals.note(&self.context, node, reason);
    }

    async fn reconfigure(&self) {
        let mut readouts = self.context.reconfigure();
        readouts.extend(unread::readouts(&self.context.caches));
        self.told.tell(&self.context, &readouts).await;
    }

    fn until_next_look(&self) -> Duration {
        let now = self.context.clock.now().0;
        let writes = self.refusals.next_write();
        let next = self.looks.values().copied().chain(writes).min();
        next.map_or(SLEEP_MAX, |at| Duration::from_millis(at.0.saturating_sub(now))).min(SLEEP_MAX)
    }

    fn count(&self) {
        let metrics = &self.context.metrics;
        metrics.open.set(i64::try_from(self.incidents.len()).unwrap_or(i64::MAX));
        let nodes = self.context.caches.nodes.all().len();
        metrics.nodes.set(i64::try_from(nodes).unwrap_or(i64::MAX));
        let nodefences = self.context.caches.nodefences.all();
        let open = || {
            nodefences
                .values()
                .map(|kept| &kept.0)
                .filter(|one| node_remedy_observe::nodefences::is_open(one))
        };
        let statuses = || open().filter_map(|one| one.status.as_ref());
        let parked = statuses().filter(|status| status.parked.is_some());
        metrics.parked.set(i64::try_from(parked.count()).unwrap_or(i64::MAX));
        let waiting = statuses().filter(|status| status.phase == Phase::AwaitingDevice);
        metrics.waiting.set(i64::try_from(waiting.count()).unwrap_or(i64::MAX));
        self.refusals.count(metrics);
    }
}

/// What alone keeps a threshold from being crossed, where an administrator should hear of it.
fn held_by(seen: &PrunedNode, node: &NodeView, rule: &NodeThreshold, now: Time) -> Option<Reason> {
    if node_remedy_decide::is_held_by_answers(node, &rule.threshold, now) {
        let at = second_opinion::listens(seen)?.to_string();
        return Some(Reason::StillAnswers { at });
    }
    if node_remedy_decide::is_held_by_missing_lease(node, &rule.threshold, now) {
        return Some(Reason::Hold(Hold::Gate(vec![Refusal::NoLease])));
    }
    let unknown = node_remedy_decide::unknown_conditions(node, &rule.threshold, now);
    let conditions = unknown.into_iter().collect::<Vec<_>>().join(", ");
    (!conditions.is_empty()).then_some(Reason::ConditionUnknown { conditions })
}

/// Stands in the dirty set for the configuration; no node is named so.
const CONFIGURATION: &str = "/configuration";
