//! A driver for tests: carries effects out on a view and on plugs, and tells what happened.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::fixtures::{BOOT, liveness, lost_view, not_attempted, opened, succeeded};
use crate::*;

type Device = Box<dyn FnMut(&Operation, &mut [PlugState]) -> End>;

/// One incident and the world around it.
pub(crate) struct Driver {
    pub(crate) plan: Plan,
    pub(crate) policy: IncidentPolicy,
    pub(crate) record: Record,
    pub(crate) view: View,
    pub(crate) now: Time,
    pub(crate) plugs: Vec<PlugState>,
    pub(crate) device: Device,
    /// How long each call takes.
    pub(crate) call_takes: Span,
    /// Effects not carried out yet.
    pub(crate) todo: Vec<Effect>,
    pub(crate) next_look: Option<Time>,
    /// Everything that was carried out, in order.
    pub(crate) done: Vec<Effect>,
    pub(crate) calls: Vec<(MethodIndex, Action)>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) rules: Vec<Rule>,
    /// Whether deleted pods and attachments go.
    pub(crate) holders: bool,
    /// Whether disruption budgets forbid every eviction.
    pub(crate) budget_at_zero: bool,
    /// A finalizer holds the Node.
    pub(crate) node_stays: bool,
    /// What the remedy's plugin answers, one after the other; nothing more: it does not answer.
    pub(crate) answers: Vec<Result<Choice, String>>,
    /// What whoever asks for a slot is told.
    pub(crate) slot: SlotAnswer,
}

/// An incident that goes on for longer goes round in circles.
const STEPS_MAX: usize = 1_000;

impl Driver {
    pub(crate) fn new(plan: Plan, policy: IncidentPolicy) -> Self {
        let now = Time(1_000_000);
        let view = lost_view(now);
        let record = opened(&plan, &policy, &view, now);
        let plugs = vec![PlugState::On; plan.methods.len()];
        Self {
            plan,
            policy,
            record,
            view,
            now,
            plugs,
            device: Box::new(honest),
            call_takes: Span::ZERO,
            todo: vec![Effect::Look],
            next_look: None,
            done: Vec::new(),
            calls: Vec::new(),
            notices: Vec::new(),
            rules: Vec::new(),
            holders: false,
            budget_at_zero: false,
            node_stays: false,
            answers: Vec::new(),
            slot: SlotAnswer::Granted,
        }
    }

    pub(crate) fn event(&mut self, event: Event<'_>) {
        let record = self.record.clone();
        let transition = step(&self.plan, &self.policy, record, event, self.now);
        self.record = transition.record;
        self.next_look = transition.next_look;
        self.notices.extend(transition.notices);
        self.rules.extend(transition.rules);
        for effect in transition.effects {
            if !self.todo.contains(&effect) {
                self.todo.push(effect);
            }
        }
    }

    pub(crate) fn look(&mut self) {
        self.view.taken_at = self.now;
        if let Some(last) = self.record.jobs.last()
            && self.view.job.as_ref().is_none_or(|job| job.number != last.number)
        {
            self.job(last.number, JobState::Absent);
        }
        let view = self.view.clone();
        self.event(Event::Looked(&view));
    }

    /// Does the next thing: an effect, or the next look.
    pub(crate) fn go(&mut self) {
        if self.todo.is_empty() {
            let at = self.next_look.unwrap_or_else(|| panic!("{:?} waits", self.record.phase));
            self.now = at.max(self.now);
            return self.look();
        }
        let effect = self.todo.remove(0);
        self.done.push(effect.clone());
        match effect {
            Effect::Look => self.look(),
            Effect::TakeSlot => self.event(Event::Slot(self.slot)),
            Effect::Call(op) => {
                let found = self.record.operations.iter().find(|one| one.id == op);
                let operation = found.expect("an intent for every call").clone();
                self.calls.push((operation.method, operation.action));
                let end = (self.device)(&operation, &mut self.plugs);
                self.agree(operation.method);
                self.now = self.now.after(self.call_takes);
                self.event(Event::Ended { op, end });
            }
            Effect::ReturnSlot | Effect::HandOver | Effect::Withdraw(_) => {}
            Effect::StartJob(number) => {
                self.job(number, JobState::Running);
            }
            Effect::StopJob(number) => self.job(number, JobState::Absent),
            Effect::AskRemedy(number) if !self.answers.is_empty() => {
                let answer = self.answers.remove(0);
                self.event(Event::Decided { number, answer });
            }
            Effect::AskRemedy(_) => {}
            Effect::AnnotateNode { pod } => {
                self.node(|node| node.remediation_pod = Some(pod.clone()));
            }
            Effect::Quarantine => self.node(|node| node.quarantined = true),
            Effect::Unquarantine => self.node(|node| node.quarantined = false),
            Effect::Cordon => self.node(|node| {
                node.cordoned = true;
                node.cordoned_by_us = true;
            }),
            Effect::Uncordon => self.node(|node| {
                node.cordoned = false;
                node.cordoned_by_us = false;
            }),
            Effect::DeleteNode if self.node_stays => {}
            Effect::DeleteNode => self.view.node = None,
            Effect::OutOfService => self.taint(true),
            Effect::LiftOutOfService => self.taint(false),
            Effect::DeletePods(uids) => self.delete_pods(&uids, Deletion::AtOnce),
            Effect::GracefulDelete(uids) => self.delete_pods(&uids, Deletion::Graceful),
            Effect::Evict { .. } if self.budget_at_zero => {}
            Effect::Evict { pods, at_once: true } => self.delete_pods(&pods, Deletion::AtOnce),
            Effect::Evict { pods, at_once: false } => self.delete_pods(&pods, Deletion::Graceful),
            Effect::DeleteAttachments(uids) => {
                let held = self.holders;
                self.view.attachments.retain(|one| held || !uids.contains(&one.uid));
                for one in self.view.attachments.iter_mut().filter(|one| uids.contains(&one.uid)) {
                    one.deleting = true;
                }
            }
        }
    }

    /// What the next look finds of this Job.
    pub(crate) fn job(&mut self, number: u32, state: JobState) {
        let is_there = !matches!(state, JobState::Absent | JobState::Refused { .. });
        let pod = is_there.then(|| alloc::format!("job-{number}"));
        self.view.job = Some(JobView { number, pod, completed_at: None, state });
    }

    fn delete_pods(&mut self, uids: &[String], how: Deletion) {
        let held = self.holders;
        self.view.pods.retain(|pod| held || !uids.contains(&pod.uid));
        for pod in self.view.pods.iter_mut().filter(|pod| uids.contains(&pod.uid)) {
            pod.deletion = pod.deletion.max(how);
        }
    }

    pub(crate) fn node(&mut self, change: impl Fn(&mut NodeView)) {
        self.view.node.iter_mut().for_each(change);
    }

    fn taint(&mut self, stands: bool) {
        self.node(|node| {
            node.out_of_service = stands;
            node.out_of_service_by_us = stands;
        });
    }

    /// Goes on until the incident is in this phase.
    pub(crate) fn until(&mut self, phase: Phase) -> &mut Self {
        for _ in 0..STEPS_MAX {
            if self.record.phase == phase {
                return self;
            }
            self.go();
        }
        panic!("not {phase:?} but {:?}; rules {:?}", self.record.phase, self.rules);
    }

    /// Goes on until this call was made.
    pub(crate) fn until_call(&mut self, action: Action) -> &mut Self {
        for _ in 0..STEPS_MAX {
            let called = self.record.in_flight().is_some_and(|one| one.action == action);
            if called {
                return self;
            }
            self.go();
        }
        panic!("no {action:?} but {:?}", self.record.phase);
    }

    /// Goes on for this long.
    pub(crate) fn until_now(&mut self, later: Span) -> &mut Self {
        let until = self.now.after(later);
        while self.now < until {
            self.go();
        }
        self
    }

    /// Goes on until this holds, with the last Job in this state whatever is asked of it.
    pub(crate) fn go_with_job(&mut self, state: &JobState, is_reached: impl Fn(&Self) -> bool) {
        for _ in 0..STEPS_MAX {
            if is_reached(self) {
                return;
            }
            if let Some(number) = self.record.jobs.last().map(|job| job.number) {
                self.job(number, state.clone());
            }
            self.go();
        }
        panic!("not reached but {:?}", self.record.phase);
    }

    /// Goes on until something was given away.
    pub(crate) fn until_released(&mut self) -> &mut Self {
        for _ in 0..STEPS_MAX {
            if self.released() {
                return self;
            }
            self.go();
        }
        panic!("nothing is released but {:?}", self.record.phase);
    }

    /// The node boots: another boot id, Ready, well.
    pub(crate) fn boots(&mut self) -> &mut Self {
        self.live("boot-2", 9)
    }

    /// The node is well again with the boot that was fenced.
    pub(crate) fn wakes(&mut self) -> &mut Self {
        self.live(BOOT, 9)
    }

    /// The node is well, with this boot and this sign of life.
    pub(crate) fn live(&mut self, boot: &str, life: u64) -> &mut Self {
        self.node(|node| node.liveness = liveness(boot, life));
        self.view.trigger = Crossing::Clear { ready: true, next_look: None };
        self
    }

    /// What names the machine and switches all of its power tells the same by whichever method.
    fn agree(&mut self, method: MethodIndex) {
        let plan = &self.plan;
        let names = |index: &MethodIndex| {
            plan.method(*index).is_some_and(|one| matches!(one.binding, Binding::Reported { .. }))
        };
        let state = self.plugs[method];
        for other in plan.of_one_power(method).filter(names).filter(|_| names(&method)) {
            self.plugs[other] = state;
        }
    }

    pub(crate) fn count(&self, action: Action) -> usize {
        self.calls.iter().filter(|(_, one)| *one == action).count()
    }

    pub(crate) fn hit(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    pub(crate) fn did(&self, wanted: impl Fn(&Effect) -> bool) -> Option<usize> {
        self.done.iter().position(wanted)
    }

    pub(crate) fn is_proven_off(&self) -> bool {
        let proof = self.record.proof.as_ref();
        proof.is_some_and(|proof| proof.grade == Grade::PowerOffVerified)
    }

    pub(crate) fn released(&self) -> bool {
        self.did(|effect| {
            matches!(
                effect,
                Effect::OutOfService | Effect::DeletePods(_) | Effect::DeleteAttachments(_)
            )
        })
        .is_some()
    }

    pub(crate) fn parked(&self) -> Option<&ParkReason> {
        self.record.parked.as_ref().map(|parked| &parked.reason)
    }
}

/// A device that does what it is asked.
pub(crate) fn honest(operation: &Operation, plugs: &mut [PlugState]) -> End {
    let plug = &mut plugs[operation.method];
    match operation.action {
        Action::Off => *plug = PlugState::Off,
        Action::On | Action::Reset => *plug = PlugState::On,
        Action::Status | Action::Monitor => {}
    }
    succeeded(*plug)
}

/// A device that says yes and does nothing.
pub(crate) fn lying(operation: &Operation, plugs: &mut [PlugState]) -> End {
    match operation.action {
        Action::Off => succeeded(PlugState::Off),
        Action::On | Action::Reset | Action::Status | Action::Monitor => {
            succeeded(plugs[operation.method])
        }
    }
}

/// A device that does not answer.
pub(crate) fn silent(_: &Operation, _: &mut [PlugState]) -> End {
    not_attempted(FailureKind::Unreachable)
}
