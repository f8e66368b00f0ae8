//! Pause windows: times, by the calendar of a place, at which nothing is cut.

use cronexpr::Crontab;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::time::{Moment, Span};

/// The time zone of a window that names none.
const UTC: &str = "UTC";
/// Minute, hour, day of month, month, day of week.
const FIELDS: usize = 5;
/// A window that begins again before it has ended is followed so often to find its end.
const OVERLAPS_MAX: usize = 64;

/// When a window begins, and for how long nothing is cut then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseWindow {
    /// When it begins: minute, hour, day of month, month, day of week, as in a crontab.
    #[schemars(length(min = 1, max = 128))]
    pub cron: String,
    /// For how long, 1m to 7d.
    pub duration: Span,
    /// Whose calendar, such as Europe/Berlin. Default UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: Option<String>,
    /// Why, for those who wonder later.
    #[schemars(length(min = 1, max = 256))]
    pub reason: String,
}

/// What is wrong with a window: the field, and what was found and expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {sentence}")]
pub struct WindowError {
    /// The field of the window.
    pub field: &'static str,
    /// What was found, what is expected.
    pub sentence: String,
}

impl PauseWindow {
    /// Every mistake that no schema finds.
    pub fn mistakes(&self) -> Vec<WindowError> {
        let mut found = Vec::new();
        let mut wrong = |field, sentence| found.push(WindowError { field, sentence });
        let zone = self.zone();
        let is_zone = jiff::tz::TimeZone::get(zone).is_ok();
        if !is_zone {
            let expected = "a time zone's name such as Europe/Berlin or UTC";
            wrong("timeZone", format!("found {zone:?}, expected {expected}"));
        }
        if let Err(why) = crontab(&self.cron, if is_zone { zone } else { UTC }) {
            let expected = "minute, hour, day of month, month, day of week, such as 0 8 * * 1-5";
            wrong("cron", format!("found {:?}, expected {expected}: {why}", self.cron));
        }
        let longest = Span::from_minutes(limits::PAUSE_WINDOW_DAYS_MAX.saturating_mul(24 * 60));
        if self.duration < Span::from_minutes(1) || self.duration > longest {
            let duration = self.duration;
            wrong("duration", format!("found {duration}, expected 1m to {longest}"));
        }
        found
    }

    /// Until when it lasts if it is open at `now`.
    ///
    /// # Errors
    /// Where it has a mistake, or its calendar does not go on.
    pub fn open_until(&self, now: Moment) -> Result<Option<Moment>, String> {
        let crontab = crontab(&self.cron, self.zone())?;
        // The first beginning that a window open now can have had.
        let mut after = now.ms.saturating_sub(self.duration.ms);
        let mut until = None;
        for _ in 0..OVERLAPS_MAX {
            let Some(begins) = next(&crontab, after)?.filter(|begins| *begins <= now.ms) else {
                break;
            };
            until = Some(Moment::from_ms(begins.saturating_add(self.duration.ms)));
            after = begins;
        }
        Ok(until)
    }

    fn zone(&self) -> &str {
        self.time_zone.as_deref().unwrap_or(UTC)
    }
}

/// The beginning after this instant, in milliseconds; `None` where there is none for years.
fn next(crontab: &Crontab, after_ms: u64) -> Result<Option<u64>, String> {
    let after = i64::try_from(after_ms).map_err(|error| error.to_string())?;
    let after = Timestamp::from_millisecond(after).map_err(|error| error.to_string())?;
    let Ok(begins) = crontab.find_next(after) else { return Ok(None) };
    let begins = begins.timestamp().as_millisecond();
    u64::try_from(begins).map(Some).map_err(|error| error.to_string())
}

fn crontab(cron: &str, zone: &str) -> Result<Crontab, String> {
    let fields = cron.split_whitespace().count();
    if fields != FIELDS || !cron.is_ascii() {
        return Err(format!("{fields} fields, and {FIELDS} make a crontab"));
    }
    let text = cron.split_whitespace().chain([zone]).collect::<Vec<_>>().join(" ");
    let crontab = cronexpr::parse_crontab(&text).map_err(|error| one_line(&error.to_string()))?;
    // The 30th of February is a crontab, and never comes.
    match crontab.find_next(Timestamp::UNIX_EPOCH) {
        Ok(_) => Ok(crontab),
        Err(_) => Err("no day of any calendar is meant by it".to_owned()),
    }
}

/// The last line of a parser's drawing says what is wrong.
fn one_line(error: &str) -> String {
    error.lines().last().unwrap_or_default().trim_matches([' ', '^', '|']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Moment {
        serde_json::from_value(text.into()).unwrap()
    }

    fn window(cron: &str, duration: &str, zone: Option<&str>) -> PauseWindow {
        PauseWindow {
            cron: cron.to_owned(),
            duration: Span::parse(duration).unwrap(),
            time_zone: zone.map(str::to_owned),
            reason: "month's end".to_owned(),
        }
    }

    #[test]
    fn a_window_is_open_from_its_beginning_until_its_end_by_the_calendar_of_its_place() {
        let berlin = Some("Europe/Berlin");
        let rows = [
            (window("0 8 * * 1-5", "2h", None), "2026-11-23T07:59:59.999Z", None),
            (window("0 8 * * 1-5", "2h", None), "2026-11-23T08:00:00Z", Some("10:00:00Z")),
            (window("0 8 * * 1-5", "2h", None), "2026-11-23T09:59:59Z", Some("10:00:00Z")),
            (window("0 8 * * 1-5", "2h", None), "2026-11-23T10:00:00Z", None),
            (window("0 8 * * 1-5", "2h", None), "2026-11-22T09:00:00Z", None),
            // In winter Berlin is an hour ahead, in summer two.
            (window("0 8 * * *", "2h", berlin), "2026-11-23T07:00:00Z", Some("09:00:00Z")),
            (window("0 8 * * *", "2h", berlin), "2026-07-23T06:00:00Z", Some("08:00:00Z")),
            // Begun again before it ended: the later end counts.
            (window("*/30 * * * *", "1h", None), "2026-11-23T09:40:00Z", Some("10:30:00Z")),
        ];
        for (window, now, until) in rows {
            let day = now.split_once('T').unwrap().0;
            let until = until.map(|time| at(&format!("{day}T{time}")));
            assert_eq!(window.open_until(at(now)), Ok(until), "{} at {now}", window.cron);
        }
    }

    #[test]
    fn mistakes_name_their_field() {
        let rows = [
            (window("0 8 * * 1-5", "2h", None), ""),
            (window("0 8 * *", "2h", None), "cron"),
            (window("0 8 * * 1-5 UTC", "2h", None), "cron"),
            (window("61 8 * * *", "2h", None), "cron"),
            (window("0 0 30 2 *", "2h", None), "cron"),
            (window("0 8 * * *", "2h", Some("Europe/Bärlin")), "timeZone"),
            (window("0 8 * * *", "30s", None), "duration"),
            (window("0 8 * * *", "8d", None), "duration"),
        ];
        for (window, field) in rows {
            let found: Vec<&str> = window.mistakes().iter().map(|mistake| mistake.field).collect();
            assert_eq!(found.join(" "), field, "{}", window.cron);
        }
    }
}
