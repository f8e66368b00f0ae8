//! Whole processes, weighed: wall time, CPU time and peak memory as wait4(2) tells them.
//!
//! What counts is the process and every descendant that it waited for, so a tool that it shells out
//! to is in. The peak is that of the largest of them, not their sum. Each is started by a small
//! program between, `node-remedy-weigh`: the kernel counts the memory of whoever forks a process as
//! that process's own, and a bench has all of a sandbox. What that leaves is [`floor`].
//!
//! Nothing here knows what the processes do.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use wait4::Wait4 as _;

/// The program between, beside the one that runs.
const BETWEEN: &str = "node-remedy-weigh";
/// No status takes so long, forty at once neither: `timeout` ends the process between and all that it
/// started.
const WITHIN: Duration = Duration::from_mins(5);

/// What to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// The executable; a bare name is looked for in `PATH`.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Beside what this process has.
    pub environment: Vec<(String, String)>,
}

/// How a process ended, and what it took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// From right before its start to its end.
    pub wall: Duration,
    /// User and system time.
    pub cpu: Duration,
    /// The most that it, or one of its descendants, had resident, in bytes.
    pub peak_bytes: u64,
    /// Whether its exit code is 0.
    pub succeeded: bool,
    /// Its standard output.
    pub said: String,
    /// Its standard error.
    pub complained: String,
}

/// Processes that were started at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Weighed {
    /// From right before the first start to the last end.
    pub wall: Duration,
    /// Each, in the order in which they were given.
    pub ended: Vec<Ended>,
}

impl Program {
    /// A program with these arguments.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { path: path.into(), arguments, environment: Vec::new() }
    }

    /// The same with this in its environment.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn start(&self) -> Result<Child> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().with_context(|| format!("failed to start {}", self.path.display()))
    }
}

impl Ended {
    /// Fails unless it succeeded with this as the first line of its standard output.
    pub fn must_say(&self, line: &str) -> Result<()> {
        let Self { succeeded, said, complained, .. } = self;
        let is_said = *succeeded && said.lines().next().unwrap_or_default().trim() == line;
        let complaint = complained.trim();
        ensure!(is_said, "expected {line:?}, it said {:?}: {complaint}", said.trim());
        Ok(())
    }
}

/// Of an even number the lower of the two in the middle: a value that was measured.
pub fn median<T: Ord>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = values.into_iter().collect();
    sorted.sort_unstable();
    let middle = sorted.len().saturating_sub(1) / 2;
    sorted.into_iter().nth(middle)
}

/// Starts these at once and waits for all of them.
pub async fn weigh(programs: Vec<Program>) -> Result<Weighed> {
    tokio::task::spawn_blocking(move || weigh_between(&programs)).await?
}

/// The least that can be told of a process's memory here: that of one that does nothing.
pub async fn floor() -> Result<u64> {
    let weighed = weigh(vec![Program::new("true", &[])]).await?;
    weighed.ended.first().map(|ended| ended.peak_bytes).context("true was not weighed")
}

fn weigh_between(programs: &[Program]) -> Result<Weighed> {
    let mut between = Command::new("timeout");
    between.arg(WITHIN.as_secs().to_string()).arg(comparison()?);
    between.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut between = between.spawn().context("failed to start timeout (coreutils)")?;
    let mut orders = between.stdin.take().context("no standard input")?;
    orders.write_all(&serde_json::to_vec(programs)?)?;
    drop(orders);
    let output = between.wait_with_output()?;
    let complained = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "weighing ended with {}: {complained}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The program between. A test's own program lies one folder deeper than what it tests.
fn comparison() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let mut places = own.ancestors().skip(1).take(2).map(|folder| folder.join(BETWEEN));
    places.find(|place| place.exists()).with_context(|| format!("{BETWEEN} is not built"))
}

/// What the program between does: its orders stand on standard input, what it found goes to standard
/// output.
pub fn weigh_as_ordered() -> Result<()> {
    let programs: Vec<Program> = serde_json::from_reader(std::io::stdin())?;
    serde_json::to_writer(std::io::stdout(), &weigh_here(&programs)?)?;
    Ok(())
}

fn weigh_here(programs: &[Program]) -> Result<Weighed> {
    let began = Instant::now();
    let mut running = Vec::new();
    for program in programs {
        let started = Instant::now();
        let child = program.start()?;
        running.push(thread::spawn(move || await_end(child, started)));
    }
    let ended: Result<Vec<_>> = running
        .into_iter()
        .map(|one| one.join().map_err(|_| anyhow!("a thread that waits panicked"))?)
        .collect();
    Ok(Weighed { ended: ended?, wall: began.elapsed() })
}

fn await_end(mut child: Child, started: Instant) -> Result<Ended> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // One after the other: what is said of one machine fits into a pipe.
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    stdout.context("no standard output")?.read_to_end(&mut said)?;
    stderr.context("no standard error")?.read_to_end(&mut complained)?;
    let used = child.wait4()?;
    Ok(Ended {
        wall: started.elapsed(),
        cpu: used.rusage.utime + used.rusage.stime,
        peak_bytes: used.rusage.maxrss,
        succeeded: used.status.success(),
        said: String::from_utf8_lossy(&said).into_owned(),
        complained: String::from_utf8_lossy(&complained).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(succeeded: bool, said: &str) -> Ended {
        Ended {
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
            peak_bytes: 0,
            succeeded,
            said: said.to_owned(),
            complained: String::new(),
        }
    }

    #[test]
    fn only_success_with_that_very_line_says_it() {
        ended(true, "Status: ON\nmore\n").must_say("Status: ON").unwrap();
        for other in [
            ended(true, "Status: OFF\n"),
            ended(false, "Status: ON\n"),
            ended(true, ""),
            ended(true, "Status: ON but not so sure\n"),
        ] {
            other.must_say("Status: ON").unwrap_err();
        }
    }

    #[test]
    fn a_median_is_a_value_that_was_measured() {
        assert_eq!(median([3, 1, 2]), Some(2));
        assert_eq!(median([4, 1, 3, 2]), Some(2));
        assert_eq!(median(Vec::<u8>::new()), None);
    }

    #[test]
    fn what_a_process_shells_out_to_counts() {
        // A shell is small; dd has its whole block in memory. The shell ends with another code than dd.
        let line = "dd if=/dev/zero of=/dev/null bs=96M count=1; echo done; exit 3";
        let weighed = weigh_here(&[
            Program::new("sh", &["-c", line]),
            Program::new("sh", &["-c", "echo $WORD"]).with("WORD", "small"),
        ]);
        let weighed = weighed.unwrap();
        let [large, small] = weighed.ended.as_slice() else { panic!("{weighed:?}") };
        assert_eq!((large.succeeded, large.said.as_str()), (false, "done\n"));
        assert!(large.peak_bytes >= 96 << 20, "{large:?}");
        assert_eq!((small.succeeded, small.said.as_str()), (true, "small\n"));
        assert!(small.peak_bytes < 96 << 20, "{small:?}");
        assert!(large.cpu > Duration::ZERO, "{large:?}");
        assert!(weigh_here(&[Program::new("/nowhere/at-all", &[])]).is_err());
    }
}
