//! A call that was made by hand, for its plugin's author: what was said, what was logged, and what it took of
//! its limits.

use std::time::Duration;

use node_remedy_sandbox::transcript::{Answered, Doing, Event, Happened, Part, RecordedRequest};
use node_remedy_sandbox::{CallReport, Effect, Ended, LogLevel, LogLine, Plugin};
use serde_json::{Value, json};

use crate::fence::session::CallRecord;
use crate::output::outln;

/// How the host logs the commit point.
const EFFECT_BEGINS: &str = "effect begins: ";
/// Of a body or a datagram that is shown, in bytes.
const SHOWN_MAX: usize = 120;

/// A line for the call, and one for each thing that happened in it.
pub(super) fn print(number: u32, told: &CallRecord, plugin: &Plugin) -> anyhow::Result<()> {
    let report = &told.report;
    let action = report.action.as_str();
    let longest = Duration::from_secs(plugin.manifest().deadline_seconds.into());
    let limits = plugin.limits();
    let deadline = told.request.deadline.min(longest).min(limits.deadline);
    let effect = match report.effect {
        Effect::NotBegun => "no effect begun",
        Effect::Begun => "effect begun",
    };
    outln!(
        "call {number}: {action}, {} ms of {}, fuel {} of {}; {effect}; {}",
        report.elapsed_ms,
        deadline.as_millis(),
        report.fuel,
        limits.fuel,
        ended(report.ended)
    );
    for (at_ms, line) in in_order(report) {
        outln!("  {at_ms:>7} ms  {line}");
    }
    for line in too_early(report) {
        outln!("  ! {line}");
    }
    for (count, what) in
        [(report.transcript.dropped, "things said"), (report.log_dropped, "log lines")]
    {
        if count > 0 {
            outln!("  {count} more {what} than are kept");
        }
    }
    Ok(())
}

/// What was said and logged, as it happened: a millisecond holds many of both.
fn in_order(report: &CallReport) -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    let mut log = report.log.iter().peekable();
    for (place, event) in report.transcript.events.iter().enumerate() {
        while let Some(line) = log.next_if(|line| line.after <= place) {
            lines.push((line.at_ms, logged(line)));
        }
        lines.push((event.at_ms, shown(event)));
    }
    lines.extend(log.map(|line| (line.at_ms, logged(line))));
    lines
}

/// Requests that may change something and were sent before the effect began: a crash between the two leaves
/// a change that nobody recorded.
fn too_early(report: &CallReport) -> Vec<String> {
    let begun = report.log.iter().find(|line| line.message.starts_with(EFFECT_BEGINS));
    let before = begun.map_or(usize::MAX, |line| line.after);
    let asked =
        report.transcript.events.iter().take(before).filter_map(|event| match &event.what {
            Happened::Asked(RecordedRequest { method, path, .. }) if may_change(method) => {
                Some(format!("{} {}", plain(method), plain(path)))
            }
            Happened::Asked(_)
            | Happened::Sent(_)
            | Happened::Received(_)
            | Happened::Answered(_)
            | Happened::Failed(..) => None,
        });
    let told = asked.map(|line| {
        format!("{line} was sent before the effect began; whatever changes something comes after begin-effect")
    });
    told.collect()
}

fn may_change(method: &str) -> bool {
    !matches!(method, "GET" | "HEAD" | "OPTIONS")
}

/// The same for programs.
pub(super) fn document(told: &CallRecord, fuel_max: u64) -> Value {
    let report = &told.report;
    let said = report.transcript.events.iter();
    let said = said.map(|event| json!({"atMs": event.at_ms, "line": shown(event)}));
    let logged = report.log.iter().map(
        |line| json!({"atMs": line.at_ms, "level": level(line.level), "message": line.message}),
    );
    json!({
        "action": report.action.as_str(), "elapsedMs": report.elapsed_ms, "fuel": report.fuel,
        "fuelMax": fuel_max, "effectBegun": report.effect == Effect::Begun,
        "ended": ended(report.ended), "exchange": said.collect::<Vec<_>>(),
        "log": logged.collect::<Vec<_>>(), "beforeEffect": too_early(report),
    })
}

fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::NotStarted => "not started",
        Ended::Returned => "returned",
        Ended::Trapped => "trapped",
        Ended::Cut => "cut at a limit",
        Ended::Deadline => "cut at its deadline",
        Ended::Cancelled => "cancelled",
    }
}

fn logged(LogLine { level: how, message, .. }: &LogLine) -> String {
    format!("log, {}: {}", level(*how), plain(message))
}

fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
    }
}

/// What happened, in one line.
pub(super) fn shown(event: &Event) -> String {
    let endpoint = plain(&event.endpoint);
    match &event.what {
        Happened::Sent(parts) => format!("{endpoint} <- {}", datagram(parts)),
        Happened::Received(parts) => format!("{endpoint} -> {}", datagram(parts)),
        Happened::Asked(RecordedRequest { method, path, body, .. }) => {
            format!("{endpoint} <- {} {}{}", plain(method), plain(path), with_body(body))
        }
        Happened::Answered(Answered { status, body, .. }) => {
            format!("{endpoint} -> HTTP {status}{}", with_body(body))
        }
        Happened::Failed(doing, refusal) => {
            let doing = match doing {
                Doing::Open => "to open",
                Doing::Send => "to send",
                Doing::Receive => "to receive",
                Doing::Fetch => "to be answered",
            };
            format!("{endpoint} failed {doing}: {}", refusal.as_str())
        }
    }
}

fn datagram(parts: &[Part]) -> String {
    let shown = parts.iter().map(|part| match part {
        Part::Bytes(bytes) => cut(&hex::encode(bytes)),
        Part::Secret(name) => format!("[{name}]"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn with_body(body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok("") => String::new(),
        Ok(text) => format!("  {}", cut(&text.escape_debug().to_string().replace("\\\"", "\""))),
        Err(_) => format!("  {} bytes that are no text", body.len()),
    }
}

/// A plugin's words, without what a terminal would obey.
fn plain(text: &str) -> String {
    let one = |letter: char| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    };
    text.chars().map(one).collect()
}

fn cut(text: &str) -> String {
    if text.len() <= SHOWN_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(SHOWN_MAX);
    format!("{}…", text.get(..end).unwrap_or_default())
}
