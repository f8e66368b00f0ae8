//! Durations as scenarios write them: `250ms`, `5s`, `1m30s`, `2h`.

use std::time::Duration;

/// The longest duration that a scenario may name: a week.
pub(super) const LONGEST: Duration = Duration::from_hours(7 * 24);

/// Units in the order in which they may follow each other.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a duration; none where the text is not one or is longer than a week.
pub fn read(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut ms = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at_checked(digits)?;
        let letters = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(letters)?;
        // Going on through the same iterator is what keeps units descending.
        let (_, factor) = units.find(|(name, _)| *name == unit)?;
        ms = number.parse::<u64>().ok()?.checked_mul(*factor)?.checked_add(ms)?;
        rest = after;
    }
    let duration = Duration::from_millis(ms);
    (!text.is_empty() && duration <= LONGEST).then_some(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_or_refused() {
        let rows = [
            ("0s", Some(0)),
            ("250ms", Some(250)),
            ("60s", Some(60_000)),
            ("1m30s", Some(90_000)),
            ("2h1ms", Some(7_200_001)),
            ("168h", Some(604_800_000)),
            ("", None),
            ("5", None),
            ("s", None),
            ("-5s", None),
            ("5s1m", None),
            ("5s5s", None),
            ("1.5s", None),
            ("5 s", None),
            ("169h", None),
            ("99999999999999999999s", None),
        ];
        for (text, ms) in rows {
            assert_eq!(read(text), ms.map(Duration::from_millis), "{text}");
        }
    }
}
