//! The clock seam: wall time as the API server told it, and a clock that counts suspend.
//!
//! Sleeping is `tokio::time` everywhere; the simulator pauses it and jumps from event
//! to event. This file only says *what time it is*, in ways that must not be mixed:
//! [`Clock::now`] stamps what we see and do, and never jumps; [`Clock::server_now`] is what the
//! API server's clock shows now, for what others wrote and read; [`Clock::boot_ms`] bounds
//! leases and cannot be set by anyone.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use node_remedy_decide::Time;
use node_remedy_decide::bug::{Bug, is_seeded};
use node_remedy_sandbox as sandbox;
use node_remedy_sandbox::TokioClock;

use crate::virtual_clock::VirtualClock;

/// What time it is; cheap to clone.
#[derive(Clone)]
pub struct Clock {
    source: Source,
    anchor: Rc<Cell<Anchor>>,
    /// What [`Self::now`] is ahead of [`Self::boot_ms`], for other threads.
    ahead_ms: Arc<AtomicI64>,
}

/// One moment on two clocks. What follows is told by the one that nobody can set: a wall clock
/// that jumps, ours or the server's, would make old evidence look fresh, or nodes look silent.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    wall_ms: u64,
    boot_ms: u64,
    /// What the server's clock is ahead of that; `None` until it was heard.
    server_ahead_ms: Option<i64>,
    /// Whether the machine's own clock and the server's disagreed when it was heard last.
    is_disputed: bool,
}

#[derive(Clone)]
enum Source {
    System,
    Virtual(VirtualClock),
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
        let (wall_ms, boot_ms) = (source.wall_ms(), source.boot_ms());
        let anchor = Anchor { wall_ms, boot_ms, server_ahead_ms: None, is_disputed: false };
        let ahead_ms = Arc::new(AtomicI64::new(anchor.ahead_ms()));
        Self { source, anchor: Rc::new(Cell::new(anchor)), ahead_ms }
    }

    /// Wall time, milliseconds since the Unix epoch: what the API server's clock showed when it was
    /// first heard ([`Self::correct`]), and what has passed since. It runs forward evenly.
    pub fn now(&self) -> Time {
        if is_seeded(Bug::WallClockTrusted) {
            return Time(self.source.wall_ms());
        }
        let Anchor { wall_ms, boot_ms, .. } = self.anchor.get();
        Time(wall_ms.saturating_add(self.boot_ms().saturating_sub(boot_ms)))
    }

    /// What the API server's clock shows now. It may have been set since it was first heard.
    pub fn server_now(&self) -> Time {
        Time(self.now().0.saturating_add_signed(self.server_ahead_ms()))
    }

    /// When it was by [`Self::now`] that the server's clock showed `stamp`. Whether that was before
    /// the clock was set nobody can tell: it is the later time that is not still to come, for what
    /// has gone on for long is cut.
    pub fn when(&self, stamp: Time) -> Time {
        let since = Time(stamp.0.saturating_add_signed(self.server_ahead_ms().saturating_neg()));
        let until = Time(self.now().0.saturating_add(DATE_RESOLUTION_MS));
        [stamp, since].into_iter().filter(|time| *time <= until).max().unwrap_or(since)
    }

    /// Whether a stamp of somebody else's may be wrong by more than clocks that agree are apart: the
    /// server's clock was set and ours has not followed yet, or the machine's own disagrees with it.
    pub fn is_doubtful(&self) -> bool {
        self.anchor.get().is_disputed || self.server_ahead_ms() != 0
    }

    fn server_ahead_ms(&self) -> i64 {
        self.anchor.get().server_ahead_ms.unwrap_or_default()
    }

    /// Notes what the server's clock said, where it differs by more than [`DATE_RESOLUTION_MS`]. At
    /// first that is the time. Later ours follows by no more than [`STEP_MS`]: the server's clock may
    /// have been set, or another server answered, and what was seen is as old as it was.
    pub fn correct(&self, server: Time) {
        let (now, boot_ms) = (self.now(), self.boot_ms());
        let ahead = i64::try_from(i128::from(server.0) - i128::from(now.0)).unwrap_or(i64::MAX);
        let (step, left) = match self.anchor.get().server_ahead_ms {
            _ if ahead.unsigned_abs() <= DATE_RESOLUTION_MS => (0, 0),
            None => (ahead, 0),
            Some(_) => {
                let step = ahead.clamp(-STEP_MS, STEP_MS);
                (step, ahead.saturating_sub(step))
            }
        };
        let wall_ms = now.0.saturating_add_signed(step);
        let is_disputed = server.0.abs_diff(self.source.wall_ms()) > DATE_RESOLUTION_MS;
        let anchor = Anchor { wall_ms, boot_ms, server_ahead_ms: Some(left), is_disputed };
        self.ahead_ms.store(anchor.ahead_ms(), Ordering::Relaxed);
        self.anchor.set(anchor);
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

    /// The clock of plugins' calls. Its time of day is [`Self::now`]: a request that is signed by a wall
    /// clock that is wrong is refused.
    pub fn call_clock(&self) -> Arc<dyn sandbox::Clock> {
        let (boot, ahead_ms) = (self.boot_clock(), self.ahead_ms.clone());
        Arc::new(CallClock { tokio: TokioClock::starting_at(0), boot, ahead_ms })
    }
}

struct CallClock {
    tokio: TokioClock,
    boot: Arc<dyn BootClock>,
    ahead_ms: Arc<AtomicI64>,
}

impl sandbox::Clock for CallClock {
    fn now_ms(&self) -> u64 {
        self.tokio.now_ms()
    }

    fn unix_ms(&self) -> u64 {
        self.boot.now_ms().saturating_add_signed(self.ahead_ms.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.tokio.sleep(duration)
    }
}

impl Anchor {
    fn ahead_ms(self) -> i64 {
        let ahead = i128::from(self.wall_ms) - i128::from(self.boot_ms);
        i64::try_from(ahead).unwrap_or(i64::MAX)
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
            Self::Virtual(clock) => clock.boot_ms(),
        }
    }
}

/// `Date` is cut to seconds and the answer was under way for a while.
const DATE_RESOLUTION_MS: u64 = 2_000;

/// How far our clock follows the server's at once. The server is asked every five seconds, so a
/// clock of ours that runs a tenth too fast or too slow is kept right, and no age is told more than
/// an eighth too large or too small.
const STEP_MS: i64 = 625;

/// A clock that only runs forward and counts suspend.
pub trait BootClock: Send + Sync {
    /// Milliseconds since some fixed moment.
    fn now_ms(&self) -> u64;
}

impl BootClock for VirtualClock {
    fn now_ms(&self) -> u64 {
        self.boot_ms()
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
        machine.jump(-3_600_000);
        assert_eq!(clock.now().0 - seen.0, 30_000);
        machine.jump(7_200_000);
        assert_eq!(clock.now().0 - seen.0, 30_000);
    }

    #[tokio::test(start_paused = true)]
    async fn the_servers_clock_counts_beyond_what_its_date_header_can_say() {
        let machine = VirtualClock::start_at(START);
        machine.jump(-600_000);
        let clock = Clock::simulated(machine);
        assert_eq!(clock.now(), Time(START.0 - 600_000));
        let call_clock = clock.call_clock();
        clock.correct(START);
        assert_eq!(clock.now(), START);
        assert_eq!(call_clock.unix_ms(), START.0, "what is signed by it was signed today");
        clock.correct(Time(START.0 - 1_900));
        assert_eq!((clock.now(), clock.server_now()), (START, START));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_seen_is_as_old_as_it_was_when_the_servers_clock_is_set() {
        for set_ms in [-120_000_i64, 120_000] {
            let clock = Clock::simulated(VirtualClock::start_at(START));
            clock.correct(START);
            let server = |passed: u64| Time((START.0 + passed).saturating_add_signed(set_ms));
            for passed in (5_000..60_000).step_by(5_000) {
                tokio::time::advance(Duration::from_secs(5)).await;
                let before = clock.now();
                clock.correct(server(passed));
                assert_eq!(clock.now().0.abs_diff(before.0), 625, "it follows a little");
                assert_eq!(clock.server_now(), server(passed));
                assert_eq!(clock.when(server(passed)), clock.now());
                assert_eq!(clock.when(START), START, "from before it was set");
            }
            // Two minutes are followed in a quarter of an hour.
            for passed in (60_000..1_000_000).step_by(5_000) {
                tokio::time::advance(Duration::from_secs(5)).await;
                clock.correct(server(passed));
            }
            assert!(clock.now().0.abs_diff(server(995_000).0) <= 2_000);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_runs_a_tenth_wrong_is_kept_right() {
        for drift in [-100, 100] {
            let machine = VirtualClock::start_at(START);
            let clock = Clock::simulated(machine.clone());
            clock.correct(START);
            machine.drift(drift);
            for passed in (5_000..600_000).step_by(5_000) {
                tokio::time::advance(Duration::from_secs(5)).await;
                let server = Time(START.0 + passed);
                clock.correct(server);
                assert!(clock.now().0.abs_diff(server.0) <= 2_500, "{drift}: {passed} ms");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn clocks_that_run_wrong_show_so_many_thousandths_more_or_less_from_then_on() {
        let machine = VirtualClock::start_at(START);
        tokio::time::advance(Duration::from_secs(10)).await;
        machine.drift(-100);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(machine.now_ms(), 19_000);
        machine.drift(50);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(machine.now_ms(), 29_500);
        assert_eq!(machine.of_machine().now_ms(), 30_000);
    }
}
