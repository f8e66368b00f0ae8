//! A call that was made by hand, for its plugin's author: what was said, what was logged, and what it took of
//! its limits.

use std::time::Duration;

use node_remedy_sandbox::limits::FUEL_PER_CALL;
use node_remedy_sandbox::transcript::{Answered, Asked, Doing, Event, Happened, Part};
use node_remedy_sandbox::{Effect, Ended, LogLevel, LogLine};
use serde_json::{Value, json};

use crate::cli::fence::hand::Told;
use crate::cli::out::outln;
use crate::hex::hex;

/// Of a body or a datagram that is shown, in bytes.
const SHOWN_MAX: usize = 120;

/// A line for the call, and one for each thing that happened in it.
pub(super) fn print(number: u32, told: &Told, longest_s: u32) -> anyhow::Result<()> {
    let report = &told.report;
    let action = report.action.as_str();
    let deadline = told.request.deadline.min(Duration::from_secs(longest_s.into()));
    let effect = match report.effect {
        Effect::NotBegun => "no effect begun",
        Effect::Begun => "effect begun",
    };
    outln!(
        "call {number}: {action}, {} ms of {}, fuel {} of {FUEL_PER_CALL}; {effect}; {}",
        report.elapsed_ms,
        deadline.as_millis(),
        report.fuel,
        ended(report.ended)
    );
    let said = report.transcript.events.iter().map(|event| (event.at_ms, shown(event)));
    let logged = report.log.iter().map(|line| (line.at_ms, logged(line)));
    let mut lines: Vec<_> = said.chain(logged).collect();
    lines.sort_by_key(|(at_ms, _)| *at_ms);
    for (at_ms, line) in lines {
        outln!("  {at_ms:>7} ms  {line}");
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

/// The same for programs.
pub(super) fn document(told: &Told) -> Value {
    let report = &told.report;
    let said = report.transcript.events.iter();
    let said = said.map(|event| json!({"atMs": event.at_ms, "line": shown(event)}));
    let logged = report.log.iter().map(
        |line| json!({"atMs": line.at_ms, "level": level(line.level), "message": line.message}),
    );
    json!({
        "action": report.action.as_str(), "elapsedMs": report.elapsed_ms, "fuel": report.fuel,
        "fuelMax": FUEL_PER_CALL, "effectBegun": report.effect == Effect::Begun,
        "ended": ended(report.ended), "exchange": said.collect::<Vec<_>>(),
        "log": logged.collect::<Vec<_>>(),
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
    format!("log, {}: {message}", level(*how))
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
    let endpoint = &event.endpoint;
    match &event.what {
        Happened::Sent(parts) => format!("{endpoint} <- {}", datagram(parts)),
        Happened::Received(parts) => format!("{endpoint} -> {}", datagram(parts)),
        Happened::Asked(Asked { method, path, body, .. }) => {
            format!("{endpoint} <- {method} {path}{}", with_body(body))
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
        Part::Bytes(bytes) => cut(&hex(bytes)),
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

fn cut(text: &str) -> String {
    if text.len() <= SHOWN_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(SHOWN_MAX);
    format!("{}…", text.get(..end).unwrap_or_default())
}
