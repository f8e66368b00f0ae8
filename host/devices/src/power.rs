//! Power as a device switches it, a machine's or an outlet's: now, later, and back again.

/// What happened to the power.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A command of this user.
    Command {
        /// The user's name; empty where commands come from nobody in particular.
        user: String,
    },
    /// The device by itself: a change flipped back, or what feeds it went or came.
    FlipBack,
    /// A person or a simulation, not the device.
    Outside,
}

/// One power change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerEvent {
    /// When.
    pub at_ms: u64,
    /// What.
    pub change: Change,
    /// Who.
    pub cause: Cause,
}

/// Power events kept until drained, for the same reason as commands.
const EVENTS_KEPT: usize = 4096;

#[derive(Clone, Debug)]
struct Pending {
    at_ms: u64,
    change: Change,
    cause: Cause,
}

/// The power supply.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    powered: bool,
    changed_ms: u64,
    before: bool,
    pending: Vec<Pending>,
    events: Vec<PowerEvent>,
}

impl Supply {
    pub(crate) fn new(powered: bool) -> Self {
        Self { powered, changed_ms: 0, before: powered, pending: Vec::new(), events: Vec::new() }
    }

    pub(crate) fn powered(&self) -> bool {
        self.powered
    }

    /// What a status that lags by `stale_ms` tells at `now_ms`.
    pub(crate) fn seen(&self, now_ms: u64, stale_ms: u64) -> bool {
        if now_ms.saturating_sub(self.changed_ms) < stale_ms { self.before } else { self.powered }
    }

    pub(crate) fn next_change(&self) -> Option<u64> {
        self.pending.iter().map(|pending| pending.at_ms).min()
    }

    pub(crate) fn forget(&mut self) {
        self.pending.clear();
    }

    pub(crate) fn drain(&mut self) -> Vec<PowerEvent> {
        std::mem::take(&mut self.events)
    }

    pub(crate) fn schedule(&mut self, at_ms: u64, change: Change, cause: Cause) {
        self.pending.push(Pending { at_ms, change, cause });
    }

    /// Carries out what is due, in order of time.
    pub(crate) fn tick(&mut self, now_ms: u64, flip_back_ms: Option<u64>) {
        while let Some(due) = self.take_due(now_ms) {
            let was = self.powered;
            let commanded = matches!(due.cause, Cause::Command { .. });
            self.apply(due.at_ms, due.change, due.cause);
            if let (Some(after_ms), true) = (flip_back_ms, commanded && was != self.powered) {
                let back = if was { Change::On } else { Change::Off };
                self.schedule(due.at_ms.saturating_add(after_ms), back, Cause::FlipBack);
            }
        }
    }

    pub(crate) fn set(&mut self, now_ms: u64, powered: bool, cause: Cause) {
        self.apply(now_ms, if powered { Change::On } else { Change::Off }, cause);
    }

    fn take_due(&mut self, now_ms: u64) -> Option<Pending> {
        let first = self
            .pending
            .iter()
            .enumerate()
            .filter(|(_, pending)| pending.at_ms <= now_ms)
            .min_by_key(|(index, pending)| (pending.at_ms, *index))
            .map(|(index, _)| index)?;
        Some(self.pending.remove(first))
    }

    fn apply(&mut self, at_ms: u64, change: Change, cause: Cause) {
        let powered = match change {
            Change::Off => false,
            Change::On => true,
            Change::Reset => self.powered,
        };
        let happened = powered != self.powered || (change == Change::Reset && self.powered);
        if !happened {
            return;
        }
        if powered != self.powered {
            self.before = self.powered;
            self.changed_ms = at_ms;
            self.powered = powered;
        }
        if self.events.len() < EVENTS_KEPT {
            self.events.push(PowerEvent { at_ms, change, cause });
        }
    }
}
