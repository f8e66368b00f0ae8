//! The clock seam: wall time as the API server tells it, and a clock that counts suspend.
//!
//! Sleeping is `tokio::time` everywhere; the simulator pauses it and jumps from event
//! to event. This file only says *what time it is*, in two ways that must not be mixed:
//! [`Clock::now`] stamps records and is comparable with times in objects, [`Clock::boot_ms`]
//! bounds leases and cannot be set back by anyone.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use node_remedy_decide::Time;
use node_remedy_decide::bug::{Bug, is_sown};
use node_remedy_world::scenario::ClockChange;

/// What time it is; cheap to clone.
#[derive(Clone)]
pub struct Clock {
    source: Source,
    anchor: Rc<Cell<Anchor>>,
}

/// One moment on two clocks. What follows is told by the one that nobody can set: a wall clock
/// that jumps would make old evidence look fresh.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    wall_ms: u64,
    boot_ms: u64,
}

#[derive(Clone)]
enum Source {
    System,
    Virtual(VirtualClock),
}

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
    ahead_ms: i64,
    /// What all clocks gain, in thousandths, since it was so long after the origin …
    drift: i32,
    since_ms: u64,
    /// … and they showed this.
    shown_ms: u64,
}

impl Fault {
    fn shown_at(self, true_ms: u64) -> u64 {
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

    /// Makes this machine's clocks wrong.
    pub fn change(&self, change: ClockChange) {
        let true_ms = self.true_ms();
        // A panic elsewhere already fails the run.
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            ClockChange::Jump(by_ms) => fault.ahead_ms = fault.ahead_ms.saturating_add(by_ms),
            ClockChange::Drift(drift) => {
                let shown_ms = fault.shown_at(true_ms);
                *fault = Fault { drift, since_ms: true_ms, shown_ms, ..*fault };
            }
        }
    }

    /// The virtual wall time.
    pub fn now(&self) -> Time {
        let fault = self.fault();
        let shown = fault.shown_at(self.true_ms());
        Time(self.start.0.saturating_add(shown).saturating_add_signed(fault.ahead_ms))
    }

    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn true_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        Self::of(Source::System)
    }

    /// The simulator's clock.
    pub fn simulated(clock: VirtualClock) -> Self {
        Self::of(Source::Virtual(clock))
    }

    fn of(source: Source) -> Self {
        let anchor = Anchor { wall_ms: source.wall_ms(), boot_ms: source.boot_ms() };
        Self { source, anchor: Rc::new(Cell::new(anchor)) }
    }

    /// Wall time in the API server's reckoning, milliseconds since the Unix epoch. Until the
    /// server was heard ([`Self::correct`]) it is what this machine's wall clock said at first.
    pub fn now(&self) -> Time {
        if is_sown(Bug::WallClockTrusted) {
            return Time(self.source.wall_ms());
        }
        let Anchor { wall_ms, boot_ms } = self.anchor.get();
        Time(wall_ms.saturating_add(self.boot_ms().saturating_sub(boot_ms)))
    }

    /// Notes what the server's clock said. Its `Date` header has whole seconds, so a
    /// difference below [`DATE_RESOLUTION_MS`] says nothing.
    pub fn correct(&self, server: Time) {
        if server.0.abs_diff(self.now().0) > DATE_RESOLUTION_MS {
            self.anchor.set(Anchor { wall_ms: server.0, boot_ms: self.boot_ms() });
        }
    }

    /// Milliseconds on a clock that only runs forward and counts suspend.
    pub fn boot_ms(&self) -> u64 {
        self.source.boot_ms()
    }

    /// The forward-running clock alone, for the threads that plugins run on.
    pub fn boot_clock(&self) -> Arc<dyn BootClock> {
        match &self.source {
            Source::System => Arc::new(SystemBootClock),
            Source::Virtual(clock) => Arc::new(clock.clone()),
        }
    }
}

impl Source {
    fn wall_ms(&self) -> u64 {
        match self {
            Self::System => system_ms(),
            Self::Virtual(clock) => clock.now().0,
        }
    }

    fn boot_ms(&self) -> u64 {
        match self {
            Self::System => SystemBootClock.now_ms(),
            Self::Virtual(clock) => clock.now_ms(),
        }
    }
}

/// `Date` is cut to seconds and the answer was under way for a while.
const DATE_RESOLUTION_MS: u64 = 2_000;

/// A clock that only runs forward and counts suspend.
pub trait BootClock: Send + Sync {
    /// Milliseconds since some fixed moment.
    fn now_ms(&self) -> u64;
}

impl BootClock for VirtualClock {
    fn now_ms(&self) -> u64 {
        self.fault().shown_at(self.true_ms())
    }
}

struct SystemBootClock;

impl BootClock for SystemBootClock {
    fn now_ms(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let ms = now.tv_sec.saturating_mul(1_000).saturating_add(now.tv_nsec / 1_000_000);
        u64::try_from(ms).unwrap_or_default()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock seam's real side")]
fn system_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The time of a Kubernetes timestamp.
pub fn time_of(stamp: &jiff::Timestamp) -> Time {
    Time(u64::try_from(stamp.as_millisecond()).unwrap_or_default())
}

/// A Kubernetes timestamp of a time; times beyond year 9999 are cut to it.
pub fn timestamp(time: Time) -> jiff::Timestamp {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const START: Time = Time(1_000_000);

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_is_set_back_makes_nothing_younger() {
        let machine = VirtualClock::start_at(START);
        let clock = Clock::simulated(machine.clone());
        let seen = clock.now();
        tokio::time::advance(Duration::from_secs(30)).await;
        machine.change(ClockChange::Jump(-3_600_000));
        assert_eq!(clock.now().0 - seen.0, 30_000);
        machine.change(ClockChange::Jump(7_200_000));
        assert_eq!(clock.now().0 - seen.0, 30_000);
    }

    #[tokio::test(start_paused = true)]
    async fn the_servers_clock_counts_beyond_what_its_date_header_can_say() {
        let machine = VirtualClock::start_at(START);
        machine.change(ClockChange::Jump(-600_000));
        let clock = Clock::simulated(machine);
        assert_eq!(clock.now(), Time(START.0 - 600_000));
        clock.correct(START);
        assert_eq!(clock.now(), START);
        clock.correct(Time(START.0 - 1_900));
        assert_eq!(clock.now(), START);
    }

    #[tokio::test(start_paused = true)]
    async fn clocks_that_run_wrong_show_so_many_thousandths_more_or_less_from_then_on() {
        let machine = VirtualClock::start_at(START);
        tokio::time::advance(Duration::from_secs(10)).await;
        machine.change(ClockChange::Drift(-100));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(machine.now_ms(), 19_000);
        machine.change(ClockChange::Drift(50));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(machine.now_ms(), 29_500);
        assert_eq!(machine.of_machine().now_ms(), 30_000);
    }
}
