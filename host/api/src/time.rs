//! The two shapes of time in our objects: a [`Moment`] and a [`Span`], both exact to the
//! millisecond that the core decides with. They read no clock.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// 9999-12-30T22:00:00Z, the last instant RFC 3339 readers agree on. Later ones are written as it.
const LAST_MOMENT_MS: u64 = 253_402_207_200_000;

/// An instant: milliseconds since the Unix epoch, written as RFC 3339 with three decimals.
///
/// Kubernetes' own `Time` drops what is below a second, which would make a journal lie about the
/// order of an off and its proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub ms: u64,
}

/// A length of time in milliseconds, written the way people do: `5s`, `1h30m`, `250ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Milliseconds.
    pub ms: u64,
}

/// Why a text is not a length of time; the sentence says what is expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// Nothing, or a minus sign, or a number without a unit.
    #[error("{0}")]
    Form(&'static str),
    /// The number does not fit.
    #[error("a length of time of at most 9999d, 99999h, 9999999m, 999999999s or 9999999999ms")]
    TooLong,
}

/// The units of a [`Span`], longest first, as they must follow each other: each with its
/// milliseconds, and with how many digits it takes. All of them together are some 65 years: beyond
/// that is a typing error.
const UNITS: [(&str, u64, usize); 5] =
    [("d", 86_400_000, 4), ("h", 3_600_000, 5), ("m", 60_000, 7), ("s", 1_000, 9), ("ms", 1, 10)];

/// What [`Span::parse`] takes, as a definition says it to the API server: [`UNITS`] as a pattern.
pub(crate) const SPAN_PATTERN: &str =
    "^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,10}ms)?$|^0$";

/// What a definition says of a [`Moment`] beside `format: date-time`, by which an API server takes more than
/// RFC 3339.
const MOMENT_PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";

impl Moment {
    /// The instant so many milliseconds after the Unix epoch.
    pub const fn from_ms(ms: u64) -> Self {
        Self { ms }
    }

    /// Reads RFC 3339. Whatever is before 1970 is its first instant, and what is too late the last one:
    /// both have long passed, or never will.
    pub fn parse(text: &str) -> Option<Self> {
        let ms = match text.parse::<jiff::Timestamp>() {
            Ok(timestamp) => u64::try_from(timestamp.as_millisecond()).unwrap_or_default(),
            // An instant of the last two days of the year 9999 is none of jiff's.
            Err(_) if text.starts_with("9999-12-3") => {
                text.get(..19)?.parse::<jiff::civil::DateTime>().ok()?;
                LAST_MOMENT_MS
            }
            Err(_) => return None,
        };
        Some(Self { ms })
    }
}

impl Span {
    /// So many milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self { ms }
    }

    /// So many seconds.
    pub const fn from_s(seconds: u64) -> Self {
        Self { ms: seconds.saturating_mul(1_000) }
    }

    /// So many minutes.
    pub const fn from_minutes(minutes: u64) -> Self {
        Self::from_s(minutes.saturating_mul(60))
    }

    /// Reads `5s`, `3m`, `1h30m`, `2d`, `250ms`; units descend and none repeats.
    pub fn parse(text: &str) -> Result<Self, SpanError> {
        const EXPECTED: &str = "a length of time such as 5s, 3m or 1h30m";
        let form = Err(SpanError::Form(EXPECTED));
        if text.starts_with('-') {
            return Err(SpanError::Form("a length of time that is not negative, such as 5s"));
        }
        if text == "0" {
            return Ok(Self::default());
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(SpanError::Form("a length of time with its unit, such as 5s or 3m"));
        }
        let mut rest = text;
        let mut units = UNITS.iter();
        let mut total: u64 = 0;
        if rest.is_empty() {
            return form;
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = rest.split_at(digits);
            let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, after) = after.split_at(letters);
            if number.is_empty() {
                return form;
            }
            // `find` on the shared iterator: a unit can only be followed by a smaller one.
            let Some((_, unit_ms, digits_max)) = units.find(|(name, ..)| *name == unit) else {
                return form;
            };
            let number: Option<u64> = number.parse().ok().filter(|_| digits <= *digits_max);
            let part = number.and_then(|number| number.checked_mul(*unit_ms));
            let sum = part.and_then(|part| part.checked_add(total));
            total = sum.ok_or(SpanError::TooLong)?;
            rest = after;
        }
        Ok(Self { ms: total })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ms == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.ms;
        for (unit, unit_ms, _) in UNITS {
            let number = rest / unit_ms;
            rest %= unit_ms;
            if number > 0 {
                write!(f, "{number}{unit}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = i64::try_from(self.ms.min(LAST_MOMENT_MS)).unwrap_or(i64::MAX);
        let timestamp = jiff::Timestamp::from_millisecond(ms).map_err(|_| fmt::Error)?;
        write!(f, "{timestamp:.3}")
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(format!(
                "found {text:?}, expected an instant such as 2026-01-31T12:00:00Z"
            ))
        })
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "pattern": MOMENT_PATTERN,
            "maxLength": 40,
        })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(|expected| D::Error::custom(format!("expected {expected}")))
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": SPAN_PATTERN,
            "minLength": 1,
            "maxLength": 45,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written() {
        for (text, ms, canonical) in [
            ("5s", 5_000, "5s"),
            ("3m", 180_000, "3m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("90m", 5_400_000, "1h30m"),
            ("250ms", 250, "250ms"),
            ("1m500ms", 60_500, "1m500ms"),
            ("2d", 172_800_000, "2d"),
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
        ] {
            let span = Span::parse(text).unwrap();
            assert_eq!((span.ms, span.to_string().as_str()), (ms, canonical), "{text}");
            assert_eq!(Span::parse(&span.to_string()), Ok(span), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in
            ["", "5", "-5s", "5 s", "s", "5x", "30m1h", "1h1h", "1.5h", "5S", "5s ", "٥s", "1h30"]
        {
            assert!(matches!(Span::parse(text), Err(SpanError::Form(_))), "{text:?}");
        }
        for text in ["99999999999999999999s", "18446744073709551615d", "200000d", "00001d"] {
            assert_eq!(Span::parse(text), Err(SpanError::TooLong), "{text:?}");
        }
    }

    /// Of each unit's number as many digits as it takes, and one more.
    #[test]
    fn what_the_pattern_takes_the_parser_takes() {
        let parts: String =
            UNITS.iter().map(|(unit, _, digits)| format!("([0-9]{{1,{digits}}}{unit})?")).collect();
        assert_eq!(SPAN_PATTERN, format!("^{parts}$|^0$"));
        let full: String =
            UNITS.iter().map(|(unit, _, digits)| "9".repeat(*digits) + unit).collect();
        assert!(Span::parse(&full).is_ok() && full.len() <= 45, "{full}");
        for (unit, _, digits) in UNITS {
            assert!(Span::parse(&("9".repeat(digits) + unit)).is_ok(), "{unit}");
            let longer = "0".repeat(digits) + "1" + unit;
            assert_eq!(Span::parse(&longer), Err(SpanError::TooLong), "{longer}");
        }
    }

    #[test]
    fn an_instant_that_rfc_3339_can_say_is_read_however_far_away() {
        for (text, ms) in [
            ("1969-12-31T23:59:59Z", 0),
            ("0000-01-01T00:00:00+23:59", 0),
            ("1970-01-01T01:00:00.123456789+01:00", 123),
            ("9999-12-31T23:59:59.999999999-23:59", LAST_MOMENT_MS),
            ("9999-12-30T22:00:00Z", LAST_MOMENT_MS),
        ] {
            assert_eq!(Moment::parse(text), Some(Moment { ms }), "{text}");
        }
        for text in ["", "soon", "2026-02-30T00:00:00Z", "2026-01-01", "9999-12-32T00:00:00Z"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn moments_keep_their_milliseconds() {
        for ms in [0, 1, 1_700_000_000_123, LAST_MOMENT_MS] {
            let text = serde_json::to_string(&Moment { ms }).unwrap();
            assert_eq!(serde_json::from_str::<Moment>(&text).unwrap(), Moment { ms }, "{text}");
        }
        assert_eq!(Moment::from_ms(1_700_000_000_120).to_string(), "2023-11-14T22:13:20.120Z");
        assert_eq!(Moment { ms: u64::MAX }.to_string(), Moment { ms: LAST_MOMENT_MS }.to_string());
    }
}
