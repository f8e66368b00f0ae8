//! How times, lanes and bytes are spelled, the same everywhere.

use crate::{Lane, Refusal, Weight};

/// A point in time as `m:ss.s`, or `h:mm:ss.s` from an hour on. Cut, never rounded up: what
/// happened at 0:59.97 did not happen in the next minute.
pub fn clock(at_ms: u64) -> String {
    let tenths = at_ms / 100;
    let (hours, minutes) = (tenths / 36_000, tenths / 600 % 60);
    let (seconds, tenth) = (tenths / 10 % 60, tenths % 10);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}.{tenth}")
    } else {
        format!("{minutes}:{seconds:02}.{tenth}")
    }
}

/// A point in time to the millisecond, for journals and datagrams.
pub(crate) fn clock_ms(at_ms: u64) -> String {
    format!("{}{:02}", clock(at_ms), at_ms % 100)
}

/// How long something took, in the unit a person would say it in.
pub(crate) fn span(span_ms: u64) -> String {
    if span_ms < 1_000 {
        format!("{span_ms} ms")
    } else if span_ms < 60_000 {
        format!("{}.{} s", span_ms / 1_000, span_ms % 1_000 / 100)
    } else {
        format!("{} min {} s", span_ms / 60_000, span_ms / 1_000 % 60)
    }
}

/// The lane's name in one word, for columns.
pub(crate) fn lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Controller => "controller",
        Lane::Node => "node",
        Lane::Device => "device",
        Lane::Workload => "workload",
    }
}

/// The lane's name in full, for headings.
pub(crate) fn lane_heading(lane: Lane) -> &'static str {
    match lane {
        Lane::Controller => "controller",
        Lane::Node => "node",
        Lane::Device => "device",
        Lane::Workload => "pod and volume",
    }
}

/// What `count` things of a lane are called together.
pub(crate) fn many(lane: Lane, count: usize) -> String {
    let noun = match lane {
        Lane::Controller | Lane::Node => "nodes",
        Lane::Device => "devices",
        Lane::Workload => "pods, volumes",
    };
    format!("{count} {noun}")
}

/// What a weight says to those who cannot see colour or shape.
pub(crate) fn weight(weight: Weight) -> &'static str {
    match weight {
        Weight::Detail => "detail",
        Weight::Normal => "event",
        Weight::Key => "turning point",
        Weight::Bad => "bad news",
    }
}

/// Hexadecimal digits in pairs, as people read bytes.
pub(crate) fn pairs(hex: &str) -> String {
    let mut pairs = String::with_capacity(hex.len() + hex.len() / 2);
    for (place, digit) in hex.chars().enumerate() {
        if place > 0 && place % 2 == 0 {
            pairs.push(' ');
        }
        pairs.push(digit);
    }
    pairs
}

/// When a refusal stood, and how often it was pronounced.
pub(crate) fn refusal_span(refusal: &Refusal) -> String {
    if refusal.times <= 1 {
        return format!("once, at {}", clock(refusal.first_ms));
    }
    let (first, last) = (clock(refusal.first_ms), clock(refusal.last_ms));
    format!("{} times, {first} to {last}", refusal.times)
}

/// The names of a group: all of a few, both ends of many and how many there are.
pub(crate) fn names(names: &[&str]) -> String {
    if names.len() > NAMES_IN_FULL_MAX {
        return format!("{} ({} in all)", ends(names), names.len());
    }
    names.join(", ")
}

/// The names of a group: all of a few, both ends of many.
pub(crate) fn ends(names: &[&str]) -> String {
    match (names.iter().min(), names.iter().max()) {
        (Some(first), Some(last)) if names.len() > NAMES_IN_FULL_MAX => {
            format!("{first} … {last}")
        }
        _ => names.join(", "),
    }
}

/// More names than this are given by their ends: they would push the facts off the line.
const NAMES_IN_FULL_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_and_grows_hours_only_when_needed() {
        let spelled = [0, 99, 59_970, 60_000, 3_599_999, 3_600_000].map(clock);
        assert_eq!(spelled, ["0:00.0", "0:00.0", "0:59.9", "1:00.0", "59:59.9", "1:00:00.0"]);
        assert_eq!(clock_ms(36_352), "0:36.352");
        assert_eq!(clock_ms(36_305), "0:36.305");
    }

    #[test]
    fn a_span_has_the_unit_a_person_would_use() {
        let spelled = [430, 1_000, 59_999, 343_000].map(span);
        assert_eq!(spelled, ["430 ms", "1.0 s", "59.9 s", "5 min 43 s"]);
    }

    #[test]
    fn many_names_are_given_by_their_ends() {
        assert_eq!(names(&["a"]), "a");
        assert_eq!(names(&["a", "b", "c", "d"]), "a, b, c, d");
        assert_eq!(names(&["a", "b", "c", "d", "e"]), "a … e (5 in all)");
    }
}
