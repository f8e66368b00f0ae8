//! Virtual time: how the world counts it and how Kubernetes writes it down.
//!
//! There is no clock here. Time is whatever the driver of the world says it is.

use std::time::Duration;

pub use node_remedy_decide::Time;

/// `at` plus `by`, at most the end of time.
pub fn after(at: Time, by: Duration) -> Time {
    Time(at.0.saturating_add(millis(by)))
}

/// How much later `later` is than `earlier`; nothing if it is not later.
pub fn between(earlier: Time, later: Time) -> Duration {
    Duration::from_millis(later.0.saturating_sub(earlier.0))
}

/// A duration in whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// As `metav1.Time` is written: whole seconds, cut and not rounded.
pub fn seconds_stamp(at: Time) -> String {
    let whole = Time(at.0 - at.0 % 1_000);
    timestamp(whole).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// As `metav1.MicroTime` is written: always six digits.
pub fn micros_stamp(at: Time) -> String {
    timestamp(at).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// The time that a Kubernetes timestamp names, cut to milliseconds.
pub fn read_stamp(stamp: &str) -> Option<Time> {
    let read: jiff::Timestamp = stamp.parse().ok()?;
    u64::try_from(read.as_millisecond()).ok().map(Time)
}

fn timestamp(at: Time) -> jiff::Timestamp {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX)
}

/// When a scenario begins: the first second of 2026. Any moment would do.
pub const START: Time = Time(1_767_225_600_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_written_as_kubernetes_writes_them_and_read_back() {
        let at = Time(1_767_225_600_987);
        assert_eq!(seconds_stamp(at), "2026-01-01T00:00:00Z");
        assert_eq!(micros_stamp(at), "2026-01-01T00:00:00.987000Z");
        assert_eq!(read_stamp(&micros_stamp(at)), Some(at));
        assert_eq!(read_stamp("2026-01-01T01:00:00.5+01:00"), Some(Time(1_767_225_600_500)));
        assert_eq!(read_stamp("yesterday"), None);
    }
}
