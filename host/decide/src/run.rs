//! One step in the making: the record as it becomes, the view it may trust, what comes out.
//!
//! The phases read like rules because the small questions they ask are answered here. Nothing
//! in this file decides where a run goes.

use alloc::vec::Vec;

use crate::bug::{Bug, guard};
use crate::{
    Action, Builtin, Chore, Crossing, Effect, Freshness, Hold, Kind, MethodIndex, NodeView, Notice,
    Phase, Plan, Record, Remedy, Rule, RunPolicy, Signs, Slot, Span, Time, Transition,
    VIEW_AGE_MAX, View,
};

/// One step in the making.
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) policy: &'a RunPolicy,
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

impl<'a> Run<'a> {
    pub(crate) fn new(plan: &'a Plan, policy: &'a RunPolicy, record: Record, now: Time) -> Self {
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
        self.sent_off() || self.has_released()
    }

    /// Whether anything was released of the boot that the run is about.
    pub(crate) fn has_released(&self) -> bool {
        self.record.first_released_at.or(self.record.partly_released_at).is_some()
    }

    /// The Node that the run is about; another UID is another node.
    pub(crate) fn node<'v>(&self, view: &'v View) -> Option<&'v NodeView> {
        view.node.as_ref().filter(|node| node.uid == self.plan.node.uid)
    }

    /// Well: the trigger is clear and Ready is True, by a report newer than at the opening.
    pub(crate) fn is_well(&self, view: &View) -> bool {
        let Some(node) = self.node(view) else { return false };
        let newer = node.signs.reported > self.record.signs_at_open.reported;
        let is_well = newer && matches!(view.trigger, Crossing::Clear { ready: true, .. });
        !guard(Bug::UnfenceAtOnce, !is_well)
    }

    /// Whether the node runs another boot than the one that was fenced.
    pub(crate) fn is_new_boot(&self, signs: &Signs) -> bool {
        let fenced = self.record.proof.as_ref().map(|proof| &proof.signs);
        signs.boot_id != fenced.unwrap_or(&self.record.signs_at_open).boot_id
    }

    /// Whether the node's Lease has run out.
    pub(crate) fn is_silent(&self, node: &NodeView) -> bool {
        node.lease_seen_at.is_none_or(|at| self.now >= at.after(node.lease_duration))
    }

    /// The remedy that has its turn.
    pub(crate) fn remedy(&self) -> Option<Remedy> {
        self.plan.remedy(self.record.rung)
    }

    /// Whether that remedy isolates the node.
    pub(crate) fn isolates(&self) -> bool {
        matches!(self.remedy(), Some(Remedy::Fence | Remedy::Isolation))
    }

    /// Whether the Node is deleted once everything on it is released.
    pub(crate) fn deletes_node(&self) -> bool {
        match self.remedy() {
            Some(Remedy::Fence | Remedy::Isolation) => {
                let mut methods = self.plan.isolation.iter().flat_map(|stage| &stage.methods);
                methods.any(|index| {
                    let method = self.plan.method(*index);
                    method.is_some_and(|one| one.kind == Kind::Builtin(Builtin::DeleteNode))
                })
            }
            Some(Remedy::Cluster(chore)) => chore == Chore::DeleteNode,
            Some(Remedy::Job { .. }) | None => false,
        }
    }

    /// Whether it goes on to the plan's power step.
    pub(crate) fn switches_power(&self) -> bool {
        self.remedy() == Some(Remedy::Fence) && !self.plan.power.is_empty()
    }

    pub(crate) fn holds_slot(&self) -> bool {
        self.record.slot == Slot::Held
    }
}
