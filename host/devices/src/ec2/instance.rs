//! One instance: its states, what changes them, and what is told of them.
//!
//! ```text
//!  pending ──▶ running ──stop──▶ stopping ──▶ stopped
//!     ▲           │ ╲                            │
//!     └───────────┼──╲─────────start─────────────┘
//!                 └───terminate──▶ shutting-down ──▶ terminated (for good)
//! ```
//!
//! The machine has power from the moment it runs until it has stopped or is terminated: what runs on
//! an instance that is stopping runs still.

use super::{Account, Ec2Request, Faults, wire};
use crate::UnknownFault;
use crate::ec2::exchange::{Answer, Event, LATENCY_MS, Refusal, Reply, Request};
use crate::ec2::model::{Action, Config, State};

pub(super) const NOT_FOUND: Refusal =
    Refusal::new(400, "InvalidInstanceID.NotFound", "The instance ID does not exist.");
const THROTTLED: Refusal = Refusal::new(503, "RequestLimitExceeded", "Request limit exceeded.");
const UNAVAILABLE: Refusal = Refusal::new(503, "Unavailable", "The service is unavailable.");
const DENIED: Refusal =
    Refusal::new(403, "UnauthorizedOperation", "You are not authorized to perform this operation.");
const OTHER_REGION: Refusal =
    Refusal::new(401, "AuthFailure", "Credential should be scoped to a valid region.");
const NO_CAPACITY: Refusal =
    Refusal::new(500, "InsufficientInstanceCapacity", "There is no capacity for the instance now.");
const NOT_IN_THIS_STATE: Refusal = Refusal::new(
    400,
    "IncorrectInstanceState",
    "The instance is not in a state from which it can be changed so.",
);
const FAILED_INSIDE: Refusal =
    Refusal::new(500, "InternalError", "An internal error has occurred.");

/// A terminated instance is told of for an hour.
const FORGOTTEN_AFTER_MS: u64 = 3_600_000;
/// How long one shuts down that is terminated.
const SHUTTING_DOWN_MS: u64 = 5_000;
/// Events kept until drained; a simulation that never does must not grow for ever.
const EVENTS_KEPT: usize = 4096;
/// No read lags so far behind that it needs more of the past.
const STATES_KEPT: usize = 64;

/// What happened to the machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It went off.
    Off,
    /// It came on.
    On,
    /// The machine was reset without losing power.
    Reset,
}

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A request of this account's key.
    Command,
    /// Somebody at the console.
    ByHand,
    /// The cloud.
    Cloud,
}

/// One power change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerEvent {
    /// When.
    pub at_ms: u64,
    /// What.
    pub change: Change,
    /// Who.
    pub cause: Cause,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What is wrong with it, from now on.
    pub faults: Faults,
    config: Config,
    /// Its states and since when, the latest last.
    states: Vec<(u64, State)>,
    /// When the state that passes by itself is over, and who began it.
    passes: Option<(u64, Cause)>,
    power_events: Vec<PowerEvent>,
    events: Vec<Event>,
    now_ms: u64,
}

impl Instance {
    /// One that runs and has run for long.
    pub fn running(config: Config) -> Self {
        Self {
            faults: Faults::default(),
            config,
            states: vec![(0, State::Running)],
            passes: None,
            power_events: Vec::new(),
            events: Vec::new(),
            now_ms: 0,
        }
    }

    /// One that is not there yet: nobody knows it before it is launched.
    pub fn to_come(config: Config) -> Self {
        Self { states: Vec::new(), ..Self::running(config) }
    }

    /// Whether it is still to be launched.
    pub fn is_to_come(&self) -> bool {
        self.states.is_empty()
    }

    /// Its autoscaling group launches it.
    pub fn launch(&mut self, now_ms: u64) {
        self.tick(now_ms);
        if self.is_to_come() {
            self.enter(self.now_ms, State::Pending, Cause::Cloud);
            self.pass(self.config.start_ms, Cause::Cloud);
        }
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The truth, whatever is told of it.
    pub fn state(&self) -> State {
        // One that is still to come is in the state that it will begin with.
        self.states.last().map_or(State::Pending, |(_, state)| *state)
    }

    /// When its state will next change by itself.
    pub fn next_change(&self) -> Option<u64> {
        self.passes.filter(|_| !self.is_stuck()).map(|(at_ms, _)| at_ms)
    }

    /// Lets time pass: a state that is over is followed by the next.
    pub fn tick(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        let Some((due_ms, cause)) = self.passes.filter(|(due_ms, _)| *due_ms <= self.now_ms) else {
            return;
        };
        if self.is_stuck() {
            // It goes on when it is no longer stuck, and not in the past.
            self.passes = Some((self.now_ms, cause));
            return;
        }
        self.passes = None;
        let next = match self.state() {
            State::Pending => State::Running,
            State::Stopping => State::Stopped,
            State::ShuttingDown => State::Terminated,
            same @ (State::Running | State::Stopped | State::Terminated) => same,
        };
        self.enter(due_ms, next, cause);
    }

    /// Begins or, with the value 0, ends a fault.
    pub fn set_fault(&mut self, now_ms: u64, name: &str, value: u32) -> Result<(), UnknownFault> {
        self.tick(now_ms);
        self.faults.set(name, value)
    }

    /// Somebody at the console stops or starts it.
    pub fn switch_by_hand(&mut self, now_ms: u64, powered: bool) {
        self.tick(now_ms);
        if self.is_to_come() {
            return;
        }
        let action = if powered { Action::Start } else { Action::Stop };
        if self.refuses(action).is_none() {
            self.change(action, Cause::ByHand);
        }
    }

    /// The cloud takes it away for good.
    pub fn terminate(&mut self, now_ms: u64) {
        self.tick(now_ms);
        if self.is_to_come() {
            return;
        }
        self.end(Cause::Cloud);
    }

    fn end(&mut self, cause: Cause) {
        match self.state() {
            State::Terminated | State::ShuttingDown => {}
            State::Running | State::Stopping => {
                self.enter(self.now_ms, State::ShuttingDown, cause);
                self.pass(SHUTTING_DOWN_MS, cause);
            }
            State::Pending | State::Stopped => {
                self.passes = None;
                self.enter(self.now_ms, State::Terminated, cause);
            }
        }
    }

    /// The power changes since the last call.
    pub fn drain_power_events(&mut self) -> Vec<PowerEvent> {
        std::mem::take(&mut self.power_events)
    }

    /// The requests carried out or refused since the last call.
    pub fn drain_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Carries out a request that speaks of it.
    pub fn answer(&mut self, now_ms: u64, asked: &Ec2Request) -> Reply {
        self.tick(now_ms);
        let delay_ms = LATENCY_MS.saturating_add(self.faults.delay_ms);
        let answer = if self.faults.silent {
            Answer::Silence
        } else if self.faults.unreachable {
            Answer::Unreachable
        } else {
            self.respond(asked)
        };
        Reply { delay_ms, answer }
    }

    /// Reads a request and carries it out, where there is no other instance.
    pub fn request(&mut self, now_ms: u64, account: &Account, request: &Request<'_>) -> Reply {
        match account.read(now_ms, request) {
            Ok(asked) if asked.instance == self.config.id => self.answer(now_ms, &asked),
            Ok(_) => NOT_FOUND.reply(),
            Err(reply) => reply,
        }
    }

    fn respond(&mut self, asked: &Ec2Request) -> Answer {
        let action = asked.action;
        let refusal = self.refusal(asked);
        let told = self.told();
        let outcome = match refusal {
            Some(refusal) => Err(refusal.code),
            None => Ok((action == Action::Describe).then_some(told)),
        };
        if self.events.len() < EVENTS_KEPT {
            self.events.push(Event { at_ms: self.now_ms, action, outcome });
        }
        if let Some(refusal) = refusal {
            let body = wire::refusal(refusal.code, refusal.says);
            return self.send(refusal.status, body);
        }
        if action == Action::Describe {
            let body = wire::described(&self.config, told, self.hibernates());
            return self.send(200, body);
        }
        let before = self.shown();
        let now = match (action, before) {
            (Action::Stop, State::Running) if self.faults.forgets => State::Stopping,
            (Action::Start, State::Stopped) if self.faults.forgets => State::Pending,
            (
                Action::Describe
                | Action::Stop
                | Action::Start
                | Action::Reboot
                | Action::Terminate,
                _,
            ) => {
                if !self.faults.forgets {
                    self.change(action, Cause::Command);
                }
                self.shown()
            }
        };
        let body = wire::accepted(action, &self.config.id, before, now);
        if self.faults.reply_lost {
            return Answer::Closed;
        }
        if self.faults.fails_inside {
            let body = wire::refusal(FAILED_INSIDE.code, FAILED_INSIDE.says);
            return self.send(FAILED_INSIDE.status, body);
        }
        self.send(200, body)
    }

    fn refusal(&self, asked: &Ec2Request) -> Option<Refusal> {
        let reads = asked.action == Action::Describe;
        let is_here =
            asked.region.as_ref().is_none_or(|region| self.config.zone.starts_with(region));
        let ended_ms = self.states.last().map_or(0, |(at_ms, _)| *at_ms);
        let is_forgotten = self.state() == State::Terminated
            && self.now_ms.saturating_sub(ended_ms) > FORGOTTEN_AFTER_MS;
        let rows = [
            (self.faults.unavailable, UNAVAILABLE),
            (self.faults.throttled, THROTTLED),
            (!is_here, OTHER_REGION),
        ];
        let found = rows.into_iter().find(|(is_so, _)| *is_so).map(|(_, refusal)| refusal);
        let more = [
            (if reads { self.faults.blind } else { self.faults.denied }, DENIED),
            (self.faults.unknown || is_forgotten || self.is_to_come(), NOT_FOUND),
        ];
        let more = || more.into_iter().find(|(is_so, _)| *is_so).map(|(_, refusal)| refusal);
        found.or(asked.refusal).or_else(more).or_else(|| self.refuses(asked.action))
    }

    /// Why its state, or want of capacity, does not allow a change.
    fn refuses(&self, action: Action) -> Option<Refusal> {
        let is_allowed = match (action, self.shown()) {
            // What is ended is ended, however often.
            (Action::Describe | Action::Terminate, _)
            | (_, State::Running)
            | (Action::Stop, State::Stopping | State::Stopped)
            | (Action::Start, State::Pending) => true,
            (Action::Start, State::Stopped) if self.faults.no_capacity => return Some(NO_CAPACITY),
            (Action::Start, State::Stopped) => true,
            (Action::Start, State::Stopping | State::ShuttingDown | State::Terminated)
            | (Action::Stop, State::Pending | State::ShuttingDown | State::Terminated)
            | (
                Action::Reboot,
                State::Pending
                | State::Stopping
                | State::Stopped
                | State::ShuttingDown
                | State::Terminated,
            ) => false,
        };
        (!is_allowed).then_some(NOT_IN_THIS_STATE)
    }

    /// Carries out what its state allows.
    fn change(&mut self, action: Action, cause: Cause) {
        if self.hibernates() {
            // A stop drops no memory. A start brings it back, and only an end loses it.
            self.faults.hibernated = !matches!(action, Action::Start | Action::Terminate);
            if action != Action::Terminate {
                return;
            }
        }
        match (action, self.state()) {
            (Action::Stop, State::Running) => {
                self.enter(self.now_ms, State::Stopping, cause);
                self.pass(self.faults.slow_stop_ms.unwrap_or(self.config.stop_ms), cause);
            }
            (Action::Start, State::Stopped) => {
                self.enter(self.now_ms, State::Pending, cause);
                self.pass(self.faults.slow_start_ms.unwrap_or(self.config.start_ms), cause);
            }
            (Action::Reboot, State::Running) => self.power(self.now_ms, Change::Reset, cause),
            (Action::Terminate, _) => self.end(cause),
            // It is so already, or about to be, or cannot be so.
            (Action::Describe | Action::Stop | Action::Start | Action::Reboot, _) => {}
        }
    }

    fn pass(&mut self, after_ms: u64, cause: Cause) {
        self.passes = Some((self.now_ms.saturating_add(after_ms), cause));
    }

    fn is_stuck(&self) -> bool {
        self.faults.stuck && matches!(self.state(), State::Stopping | State::Pending)
    }

    fn enter(&mut self, at_ms: u64, state: State, cause: Cause) {
        let before = self.state();
        if self.states.len() == STATES_KEPT {
            self.states.remove(0);
        }
        self.states.push((at_ms, state));
        match (before.has_power(), state.has_power()) {
            (true, false) => self.power(at_ms, Change::Off, cause),
            (false, true) => self.power(at_ms, Change::On, cause),
            (true, true) | (false, false) => {}
        }
    }

    fn power(&mut self, at_ms: u64, change: Change, cause: Cause) {
        if self.power_events.len() < EVENTS_KEPT {
            self.power_events.push(PowerEvent { at_ms, change, cause });
        }
    }

    /// Whether its memory is kept on disk: its machine stands still and has lost nothing, so it counts as having power.
    fn hibernates(&self) -> bool {
        self.faults.hibernated && self.state() == State::Running
    }

    /// What it passes for.
    fn shown(&self) -> State {
        if self.hibernates() { State::Stopped } else { self.state() }
    }

    /// What a read tells: the state of a while ago, where reads lag.
    fn told(&self) -> State {
        if self.hibernates() {
            return State::Stopped;
        }
        let as_of = self.now_ms.saturating_sub(self.faults.stale_ms);
        let mut past = self.states.iter().rev();
        let then = past.find(|(at_ms, _)| *at_ms <= as_of).or(self.states.first());
        then.map_or(State::Pending, |(_, state)| *state)
    }

    fn send(&self, status: u16, body: Vec<u8>) -> Answer {
        let mut body = body;
        let status = if self.faults.garbled { 200 } else { status };
        if self.faults.garbled {
            body = b"<html><body>Please log in</body></html>".to_vec();
        }
        if let Some(length) = self.faults.truncate {
            body.truncate(length);
        }
        Answer::Response { status, body }
    }
}
