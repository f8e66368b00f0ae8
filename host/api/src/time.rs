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
    #[error("a length of time below 100 years")]
    TooLong,
}

/// The units of a [`Span`], longest first, as they must follow each other.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A bound for every length of time in a configuration: beyond it is a typing error.
const LONGEST_MS: u64 = 100 * 365 * 86_400_000;

impl Moment {
    /// The instant so many milliseconds after the Unix epoch.
    pub const fn from_ms(ms: u64) -> Self {
        Self { ms }
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
            let Some((_, unit_ms)) = units.find(|(name, _)| *name == unit) else {
                return form;
            };
            let number: u64 = number.parse().map_err(|_| SpanError::TooLong)?;
            total = number
                .checked_mul(*unit_ms)
                .and_then(|part| part.checked_add(total))
                .filter(|sum| *sum <= LONGEST_MS)
                .ok_or(SpanError::TooLong)?;
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
        for (unit, unit_ms) in UNITS {
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
        let timestamp = jiff::Timestamp::deserialize(deserializer)?;
        u64::try_from(timestamp.as_millisecond())
            .map(Self::from_ms)
            .map_err(|_| D::Error::custom("an instant after 1970 is expected"))
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
        json_schema!({ "type": "string", "format": "date-time" })
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
            "pattern": crate::document::SPAN_PATTERN,
            "maxLength": 40,
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
        for text in ["99999999999999999999s", "18446744073709551615d", "200000d"] {
            assert_eq!(Span::parse(text), Err(SpanError::TooLong), "{text:?}");
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
