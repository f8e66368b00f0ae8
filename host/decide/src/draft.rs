//! The draft of a decision: the record as it becomes, the view it may trust, what comes out.
//!
//! The phases read like rules because the small questions they ask are answered here. Nothing
//! in this file decides where an incident goes.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::bug::{Bug, guard};
use crate::plan::{Progress, Want, next_wanted};
use crate::{
    Action, Builtin, ClusterAction, Crossing, Effect, Freshness, Grade, Hold, IncidentPolicy, Kind,
    Liveness, MethodIndex, NodeView, Notice, Phase, Plan, Proof, Record, Remedy, Rule, Slot, Span,
    Stage, Time, Transition, VIEW_AGE_MAX, View,
};

/// One decision in the making.
pub(crate) struct Draft<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) policy: &'a IncidentPolicy,
    pub(crate) now: Time,
    pub(crate) record: Record,
    view: Option<&'a View>,
    effects: Vec<Effect>,
    next_look: Option<Time>,
    notices: Vec<Notice>,
    rules: Vec<Rule>,
}

/// What a phase comes to.
pub(crate) enum Flow {
    /// Nothing more to do until something happens.
    Stay,
    /// On to another phase, at once.
    Go(Phase),
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        policy: &'a IncidentPolicy,
        record: Record,
        now: Time,
    ) -> Self {
        Self {
            plan,
            policy,
            now,
            record,
            view: None,
            effects: Vec::new(),
            next_look: None,
            notices: Vec::new(),
            rules: Vec::new(),
        }
    }

    pub(crate) fn finish(self) -> Transition {
        let Self { record, effects, next_look, notices, rules, .. } = self;
        Transition { record, effects, next_look, notices, rules }
    }

    /// Trusts a view if it is the API server's own word, fresh, and newer than the journal.
    pub(crate) fn trust(&mut self, view: &'a View) {
        let live = view.freshness == Freshness::Live;
        let fresh = view.taken_at.is_within(VIEW_AGE_MAX, self.now);
        if live && fresh && view.taken_at >= self.record.journal_changed_at() {
            self.view = Some(view);
        }
    }

    /// The view, if there is one to trust; otherwise asks for one.
    pub(crate) fn look(&mut self) -> Option<&'a View> {
        if self.view.is_none() {
            self.effect(Effect::Look);
        }
        self.view
    }

    /// Whether it waits for a fresh view.
    pub(crate) fn asks_to_look(&self) -> bool {
        self.view.is_none() && self.effects.contains(&Effect::Look)
    }

    /// The view, if there is one to trust.
    pub(crate) fn seen(&self) -> Option<&'a View> {
        self.view
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        if !self.effects.contains(&effect) {
            self.effects.push(effect);
        }
    }

    pub(crate) fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    pub(crate) fn rule(&mut self, rule: Rule) {
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// Writes an intent and asks for it to be carried out once it is recorded.
    pub(crate) fn call(&mut self, method: MethodIndex, action: Action) -> Flow {
        let op = self.record.intend(method, action, self.now);
        self.effect(Effect::Call(op));
        Flow::Stay
    }

    /// Looks again at `at`, or before.
    pub(crate) fn look_at(&mut self, at: Time) {
        self.next_look = Some(self.next_look.map_or(at, |earlier| earlier.min(at)));
    }

    /// Looks again after `span`.
    pub(crate) fn look_in(&mut self, span: Span) -> Flow {
        self.look_at(self.now.after(span));
        Flow::Stay
    }

    /// Waits, and says why.
    pub(crate) fn hold(&mut self, reason: Hold) -> Flow {
        self.notice(Notice::Held { reason });
        Flow::Stay
    }

    pub(crate) fn enter(&mut self, phase: Phase) {
        self.record.phase = phase;
        self.record.entered_at = self.now;
        self.record.phase_first = self.record.next_operation;
    }

    pub(crate) fn sent_off(&self) -> bool {
        self.record.sent_off(self.plan)
    }

    /// Whether anything was done that a cleared trigger no longer undoes.
    pub(crate) fn committed(&self) -> bool {
        self.record.is_committed(self.plan)
    }

    /// Whether anything was released of the boot that the incident is about.
    pub(crate) fn has_released(&self) -> bool {
        self.record.first_released_at.or(self.record.partly_released_at).is_some()
    }

    /// The Node that the incident is about; another UID is another node.
    pub(crate) fn node<'v>(&self, view: &'v View) -> Option<&'v NodeView> {
        view.node.as_ref().filter(|node| node.uid == self.plan.node.uid)
    }

    /// Well: the trigger is clear and Ready is True, by a report newer than at the opening and than
    /// the proof. A kubelet that boots renews its Lease before it reports which boot it runs. A boot
    /// has a clock of its own, which may have been set back: what it reports needs only be another stamp.
    pub(crate) fn is_well(&self, view: &View) -> bool {
        let Some(node) = self.node(view) else { return false };
        let (reported, at_open) = (node.liveness.reported, self.record.liveness_at_open.reported);
        let proven = self.record.proof.as_ref().and_then(|proof| proof.liveness.reported);
        let is_another = reported != at_open && reported != proven;
        let is_of_new_boot = is_another && self.is_new_boot(&node.liveness);
        let newer = reported > at_open.max(proven) || guard(Bug::ClocksOrdered, is_of_new_boot);
        let is_well = newer && matches!(view.trigger, Crossing::Clear { ready: true, .. });
        !guard(Bug::UnfenceAtOnce, !is_well)
    }

    /// Whether the node runs another boot than the one that was fenced. A Node that names no boot, as one that
    /// somebody made by hand, says nothing of that.
    pub(crate) fn is_new_boot(&self, liveness: &Liveness) -> bool {
        let fenced = self.record.proof.as_ref().map(|proof| &proof.liveness);
        let is_other = liveness.boot_id != fenced.unwrap_or(&self.record.liveness_at_open).boot_id;
        is_other && !liveness.boot_id.is_empty()
    }

    /// If the Node named no boot when it was fenced, takes the first boot that it names as the fenced one. After a
    /// verified off that still holds that boot is a newer one, so nothing is noted.
    pub(crate) fn learn_boot(&mut self) {
        let machine = self.seen().and_then(View::machine);
        let Some(boot_id) = machine.map(|node| node.liveness.boot_id.clone()) else { return };
        let fenced = match self.record.proof.as_mut() {
            Some(proof) => match proof.grade {
                Grade::PowerOffVerified if proof.voided_at.is_none() => return,
                // A person's word and a Job's may be wrong, and then it is the boot that they spoke of.
                Grade::StorageFenced
                | Grade::Partition
                | Grade::WatchdogDeadline
                | Grade::OperatorConfirmed
                | Grade::JobSucceeded
                | Grade::PowerOffVerified
                | Grade::KdumpSeen => &mut proof.liveness.boot_id,
                Grade::NewBootId => return,
            },
            None => &mut self.record.liveness_at_open.boot_id,
        };
        if guard(Bug::UnnamedBootIsOther, fenced.is_empty()) {
            *fenced = boot_id;
        }
    }

    /// Whether the boot that was proven off reported once more: the proof was wrong.
    pub(crate) fn is_heard_again(&self, node: &NodeView) -> bool {
        let voided = self.record.proof.as_ref().filter(|proof| proof.voided_at.is_some());
        let is_newer = |proof: &Proof| node.liveness.reported > proof.liveness.reported;
        voided.is_some_and(is_newer) && !self.is_new_boot(&node.liveness)
    }

    /// Whether the node's Lease has run out.
    pub(crate) fn is_silent(&self, node: &NodeView) -> bool {
        node.lease_seen_at.is_none_or(|at| self.now >= at.after(node.lease_duration))
    }

    /// The remedy that has its turn; where a plugin decides, the one that it decided on.
    pub(crate) fn remedy(&self) -> Option<Remedy> {
        let remedy = self.plan.remedy(self.record.remedy_step)?;
        if remedy != Remedy::Plugin {
            return Some(remedy);
        }
        let choice = self.record.deciding().and_then(|open| open.choice.as_ref());
        Some(choice.and_then(|choice| self.plan.meant(choice)).unwrap_or(Remedy::Plugin))
    }

    /// Whether that remedy carries out the plan, or a part of it.
    pub(crate) fn isolates(&self) -> bool {
        self.remedy().is_some_and(Remedy::is_of_plan)
    }

    /// What it does of isolation.
    pub(crate) fn isolation(&self) -> Cow<'a, [Stage]> {
        self.remedy().map_or(Cow::Borrowed(&[]), |remedy| self.plan.isolation_of(remedy))
    }

    /// What it does of power-management.
    pub(crate) fn power(&self) -> Cow<'a, [Stage]> {
        self.remedy().map_or(Cow::Borrowed(&[]), |remedy| self.plan.power_of(remedy))
    }

    /// What these stages want next; a remedy that is one method has failed with it.
    pub(crate) fn next_wanted(
        &self,
        stages: &[Stage],
        progress: impl Fn(MethodIndex) -> Progress,
    ) -> Want {
        match (next_wanted(self.plan, stages, progress), self.remedy()) {
            (Want::Nothing, Some(Remedy::Method(index))) if self.record.failed.contains(&index) => {
                Want::Failed(index)
            }
            (want, _) => want,
        }
    }

    /// Whether the Node is deleted once everything on it is released.
    pub(crate) fn deletes_node(&self) -> bool {
        let deletes = |kind: &Kind| *kind == Kind::Builtin(Builtin::DeleteNode);
        self.remedy() == Some(Remedy::Cluster(ClusterAction::DeleteNode))
            || self.plan.names(&self.isolation(), deletes)
    }

    /// Whether it goes on to power-management.
    pub(crate) fn switches_power(&self) -> bool {
        !self.power().is_empty()
    }

    /// Whether it can switch the machine off, and not only reset it.
    pub(crate) fn takes_off(&self) -> bool {
        self.remedy().is_some_and(|remedy| self.plan.takes_off(remedy))
    }

    pub(crate) fn holds_slot(&self) -> bool {
        self.record.slot == Slot::Held
    }
}
