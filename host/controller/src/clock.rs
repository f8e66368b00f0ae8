//! The clock seam: wall time as the API server tells it, and a clock that counts suspend.
//!
//! Sleeping is `tokio::time` everywhere; the simulator pauses it and jumps from event
//! to event. This file only says *what time it is*, in two ways that must not be mixed:
//! [`Clock::now`] stamps records and is comparable with times in objects, [`Clock::boot_ms`]
//! bounds leases and cannot be set back by anyone.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use node_remedy_decide::Time;

/// What time it is; cheap to clone.
#[derive(Clone)]
pub struct Clock {
    source: Source,
    /// Server time minus local time, milliseconds.
    offset_ms: Rc<Cell<i64>>,
}

#[derive(Clone)]
enum Source {
    System,
    Virtual(VirtualClock),
}

/// Virtual time: a fixed start plus what `tokio::time` says has passed.
#[derive(Clone)]
pub struct VirtualClock {
    start: Time,
    origin: tokio::time::Instant,
}

impl VirtualClock {
    /// Starts at `start`; must be called on a runtime whose time is paused.
    pub fn start_at(start: Time) -> Self {
        Self { start, origin: tokio::time::Instant::now() }
    }

    /// The virtual wall time.
    pub fn now(&self) -> Time {
        Time(self.start.0.saturating_add(self.elapsed_ms()))
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        Self { source: Source::System, offset_ms: Rc::default() }
    }

    /// The simulator's clock.
    pub fn simulated(clock: VirtualClock) -> Self {
        Self { source: Source::Virtual(clock), offset_ms: Rc::default() }
    }

    /// Wall time in the API server's reckoning, milliseconds since the Unix epoch.
    pub fn now(&self) -> Time {
        Time(self.local_ms().saturating_add_signed(self.offset_ms.get()))
    }

    /// Notes what the server's clock said. Its `Date` header has whole seconds, so a
    /// difference below [`DATE_RESOLUTION_MS`] says nothing.
    pub fn correct(&self, server: Time) {
        let difference = i128::from(server.0) - i128::from(self.local_ms());
        let difference = i64::try_from(difference).unwrap_or_default();
        if difference.abs() > DATE_RESOLUTION_MS {
            self.offset_ms.set(difference);
        } else {
            self.offset_ms.set(0);
        }
    }

    /// Milliseconds on a clock that only runs forward and counts suspend.
    pub fn boot_ms(&self) -> u64 {
        self.boot_clock().now_ms()
    }

    /// The forward-running clock alone, for the threads that plugins run on.
    pub fn boot_clock(&self) -> Arc<dyn BootClock> {
        match &self.source {
            Source::System => Arc::new(SystemBootClock),
            Source::Virtual(clock) => Arc::new(clock.clone()),
        }
    }

    fn local_ms(&self) -> u64 {
        match &self.source {
            Source::System => system_ms(),
            Source::Virtual(clock) => clock.now().0,
        }
    }
}

/// `Date` is cut to seconds and the answer was under way for a while.
const DATE_RESOLUTION_MS: i64 = 2_000;

/// A clock that only runs forward and counts suspend.
pub trait BootClock: Send + Sync {
    /// Milliseconds since some fixed moment.
    fn now_ms(&self) -> u64;
}

impl BootClock for VirtualClock {
    fn now_ms(&self) -> u64 {
        self.elapsed_ms()
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
