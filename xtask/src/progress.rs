//! Runs other programs quietly: their output goes to a log, and a line on stderr tells that time
//! passes.

use std::fmt;
use std::fs::{self, File};
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::failures::failed_tests;
use crate::root::at;

/// Nobody needs to be told of anything shorter.
const TELL_AFTER: Duration = Duration::from_secs(2);
/// On a terminal the line is rewritten; in a log, lines further apart are enough.
const TELL_EVERY: Duration = Duration::from_secs(1);
const TELL_LOG_EVERY: Duration = Duration::from_secs(15);
/// Of a failed program's log, what usually holds the reason.
const TAIL_LINES: usize = 40;

/// Several programs run at once, and a line that is rewritten would be everyone's.
static SIDE_BY_SIDE: AtomicBool = AtomicBool::new(false);

/// From here on passing time is told in lines of their own, on a terminal too.
pub(crate) fn tell_side_by_side() {
    SIDE_BY_SIDE.store(true, Ordering::Relaxed);
}

/// Time since it was started.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "tells a person how long a program took")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

impl fmt::Display for Stopwatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed = self.elapsed();
        match elapsed.as_secs() {
            0..60 => write!(out, "{:.1} s", elapsed.as_secs_f64()),
            seconds => write!(out, "{} min {} s", seconds / 60, seconds % 60),
        }
    }
}

/// Runs a program to its end with its output in `target/logs/LOG.log`, and answers that output.
pub(crate) fn run_logged(what: &str, log: &str, command: &mut Command) -> Result<String> {
    fs::create_dir_all(at("target/logs"))?;
    let log = at(&format!("target/logs/{log}.log"));
    let out = File::create(&log)?;
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    let watch = Stopwatch::start();
    let mut child = command.spawn().with_context(|| {
        format!("failed to start {} for: {what}", command.get_program().display())
    })?;
    let (ended, status) = mpsc::channel();
    std::thread::spawn(move || {
        // The other side waits for this answer until it gets it.
        let _ = ended.send(child.wait());
    });
    let mut teller = Teller::new(what);
    let status = loop {
        match status.recv_timeout(TELL_EVERY) {
            Ok(status) => break status?,
            Err(RecvTimeoutError::Timeout) => teller.tell(watch),
            Err(RecvTimeoutError::Disconnected) => bail!("failed to wait for: {what}"),
        }
    };
    teller.end(watch);
    let output = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    if !status.success() {
        let told = match failed_tests(&output) {
            tests if tests.is_empty() => tail(&output),
            tests => tests,
        };
        bail!("{what}: ended with {status}\n{told}\nthe whole log: {}", log.display());
    }
    Ok(output)
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines.into_iter().skip(from).map(|line| format!("  | {line}")).collect::<Vec<_>>().join("\n")
}

struct Teller<'a> {
    what: &'a str,
    rewrites: bool,
    told: Option<Duration>,
}

impl<'a> Teller<'a> {
    fn new(what: &'a str) -> Self {
        let is_alone = !SIDE_BY_SIDE.load(Ordering::Relaxed);
        Self { what, rewrites: is_alone && std::io::stderr().is_terminal(), told: None }
    }

    fn tell(&mut self, watch: Stopwatch) {
        let elapsed = watch.elapsed();
        let is_due = match self.told {
            None => elapsed >= TELL_AFTER,
            Some(told) => self.rewrites || elapsed >= told + TELL_LOG_EVERY,
        };
        if !is_due {
            return;
        }
        self.told = Some(elapsed);
        if self.rewrites {
            eprint!("\r  {} … {watch} ", self.what);
            // A terminal that cannot be written to has nobody to miss the line.
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("  {} … {watch}", self.what);
        }
    }

    fn end(&self, watch: Stopwatch) {
        if self.told.is_some() {
            let start = if self.rewrites { "\r" } else { "" };
            eprintln!("{start}  {}: {watch}   ", self.what);
        }
    }
}

/// Where a program's log lies.
pub(crate) fn log_path(log: &str) -> PathBuf {
    at(&format!("target/logs/{log}.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_the_end_of_the_log_and_where_the_rest_is() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 100; echo the reason >&2; exit 3"]);
        let failure = run_logged("counting", "xtask-test-failure", &mut command).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("| the reason") && text.contains("| 100"), "{text}");
        assert!(!text.contains("| 60\n") && text.contains("xtask-test-failure.log"), "{text}");
    }

    #[test]
    fn output_of_both_kinds_is_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2"]);
        assert_eq!(run_logged("both", "xtask-test-both", &mut command).unwrap(), "out\nerr\n");
    }
}
