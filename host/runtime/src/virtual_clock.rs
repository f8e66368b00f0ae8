//! Virtual time, and how it goes wrong on a machine: what the simulator and tests run on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use node_remedy_decide::Time;

/// Virtual time: a fixed start plus what `tokio::time` says has passed, as the clocks of one
/// machine show it.
#[derive(Clone)]
pub struct VirtualClock {
    start: Time,
    origin: tokio::time::Instant,
    fault: Arc<Mutex<Fault>>,
}

/// How wrong a machine's clocks are.
#[derive(Debug, Clone, Copy, Default)]
struct Fault {
    /// What the wall clock is ahead, in milliseconds.
    pub(crate) ahead_ms: i64,
    /// What all clocks gain, in thousandths, since it was so long after the origin …
    drift: i32,
    since_ms: u64,
    /// … and they showed this.
    shown_ms: u64,
}

impl Fault {
    pub(crate) fn shown_at(self, true_ms: u64) -> u64 {
        let passed = true_ms.saturating_sub(self.since_ms);
        let drift = i64::from(self.drift);
        let gained = i64::try_from(passed).unwrap_or(i64::MAX).saturating_mul(drift) / 1_000;
        self.shown_ms.saturating_add(passed).saturating_add_signed(gained)
    }
}

impl VirtualClock {
    /// Starts at `start`; must be called on a runtime whose time is paused.
    pub fn start_at(start: Time) -> Self {
        Self { start, origin: tokio::time::Instant::now(), fault: Arc::default() }
    }

    /// The clocks of another machine, right so far; its clones go wrong with it.
    #[must_use]
    pub fn of_machine(&self) -> Self {
        Self { fault: Arc::default(), ..self.clone() }
    }

    /// Sets this machine's wall clock so much ahead, or back.
    pub fn jump(&self, by_ms: i64) {
        let mut fault = self.lock();
        fault.ahead_ms = fault.ahead_ms.saturating_add(by_ms);
    }

    /// From now on this machine's clocks gain so many thousandths.
    pub fn drift(&self, drift: i32) {
        let true_ms = self.true_ms();
        let mut fault = self.lock();
        let shown_ms = fault.shown_at(true_ms);
        *fault = Fault { drift, since_ms: true_ms, shown_ms, ..*fault };
    }

    /// Milliseconds on the clock that only runs forward.
    pub fn boot_ms(&self) -> u64 {
        self.fault().shown_at(self.true_ms())
    }

    /// The virtual wall time.
    pub fn now(&self) -> Time {
        let fault = self.fault();
        let shown = fault.shown_at(self.true_ms());
        Time(self.start.0.saturating_add(shown).saturating_add_signed(fault.ahead_ms))
    }

    fn fault(&self) -> Fault {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Fault> {
        // A panic elsewhere already fails the run.
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn true_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
