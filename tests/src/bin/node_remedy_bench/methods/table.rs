//! What the ways at one device took, as a table of medians with the ratios that matter.

use std::fmt;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use node_remedy_tests::weigh::median;

use super::cases::Case;
use super::ways::{Sample, Way};

/// USER_HZ on Linux (proc_pid_stat(5), sysconf(3)).
const TICK: Duration = Duration::from_millis(10);

/// CPU time of everything that was started and still runs, the devices, over a number of reads.
pub(super) struct DeviceShare {
    before: Duration,
    reads: u32,
}

impl DeviceShare {
    pub(super) fn start() -> Result<Self> {
        Ok(Self { before: devices_cpu()?, reads: 0 })
    }

    /// One more read came to its end.
    pub(super) fn count(&mut self) {
        self.reads += 1;
    }

    /// What the device needed for each.
    pub(super) fn each(&self) -> Result<Duration> {
        Ok(devices_cpu()?.saturating_sub(self.before) / self.reads.max(1))
    }
}

/// Of all children of this process that run, and of theirs, with what these waited for.
fn devices_cpu() -> Result<Duration> {
    let mut ticks = 0;
    let mut found = children(std::process::id());
    while let Some(pid) = found.pop() {
        // One may have ended since.
        if let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) {
            ticks += ticks_of(&stat)?;
            found.extend(children(pid));
        }
    }
    Ok(TICK * ticks)
}

/// Without those of a process that has ended.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<_> = lists.collect();
    lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// User and system time, its own and that of children it waited for (proc_pid_stat(5), fields 14 to 17).
fn ticks_of(stat: &str) -> Result<u32> {
    // The second field is a name in parentheses that may contain blanks.
    let (_, rest) = stat.rsplit_once(')').context("no process name")?;
    let fields = rest.split_whitespace().skip(11).take(4);
    fields.map(|field| Ok(field.parse::<u32>()?)).sum()
}

/// The ways at one device.
pub(super) struct Table<'a> {
    pub(super) case: &'a Case,
    /// CPU time of the device for each read.
    pub(super) device: Duration,
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{}; the device itself: {} CPU a read, over all ways",
            self.case.title,
            millis(self.device)
        )?;
        writeln!(
            out,
            "  {:<40}{:>11}  {:<21}{:>11}{:>12}",
            "", "wall", "[least, most]", "CPU", "peak"
        )?;
        for way in self.case.ways.iter().filter(|way| !way.samples.is_empty()) {
            let walls = || way.samples.iter().map(|sample| sample.wall);
            let [least, most] = [walls().min(), walls().max()].map(Option::unwrap_or_default);
            let range = format!("[{}, {}]", bare_millis(least), bare_millis(most));
            let peak = peak(way).map_or_else(|| "–".to_owned(), mebibytes);
            let (wall, cpu) = (millis(wall(way)), millis(cpu(way)));
            writeln!(out, "  {:<40}{wall:>11}  {range:<21}{cpu:>11}{peak:>12}", way.name)?;
        }
        for absent in &self.case.absent {
            writeln!(out, "  {:<40}could not run: {}", absent.name, absent.reason)?;
        }
        self.ratios(out)
    }
}

impl Table<'_> {
    /// The agent over ours, where both came to something.
    fn ratios(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let find = |words: &str| {
            let mut ways = self.case.ways.iter().filter(|way| !way.samples.is_empty());
            ways.find(|way| way.name.starts_with(words))
        };
        let (inside, native) = (find("inside"), find("native"));
        let (process, agent) = (find("node-remedy fence"), find("fence_"));
        if let (Some(inside), Some(native)) = (inside, native) {
            writeln!(
                out,
                "  inside : native     wall {:.2} × (aim: at most 1.3)",
                times(inside, native, wall)
            )?;
        }
        if let (Some(agent), Some(inside)) = (agent, inside) {
            let (name, wall) = (&agent.name, times(agent, inside, wall));
            writeln!(out, "  {name} : inside     wall {wall:.1} × (aim: at least 20)")?;
        }
        if let (Some(agent), Some(process)) = (agent, process) {
            let [wall, cpu] = [wall, cpu].map(|of| times(agent, process, of));
            // As if bytes were nanoseconds: only their ratio is told.
            let peak = |way: &Way| Duration::from_nanos(peak(way).unwrap_or_default());
            let (name, peak) = (&agent.name, times(agent, process, peak));
            write!(out, "  {name} : node-remedy fence     wall {wall:.1} × (aim: at least 5), ")?;
            writeln!(out, "CPU {cpu:.1} ×, peak {peak:.1} ×")?;
        }
        Ok(())
    }
}

fn wall(way: &Way) -> Duration {
    of(way, |sample| sample.wall)
}

fn cpu(way: &Way) -> Duration {
    of(way, |sample| sample.cpu)
}

fn of(way: &Way, part: impl Fn(&Sample) -> Duration) -> Duration {
    median(way.samples.iter().map(part)).unwrap_or_default()
}

fn peak(way: &Way) -> Option<u64> {
    median(way.samples.iter().filter_map(|sample| sample.peak_bytes))
}

fn times(one: &Way, other: &Way, part: impl Fn(&Way) -> Duration) -> f64 {
    part(one).as_secs_f64() / part(other).as_secs_f64()
}

pub(super) fn millis(duration: Duration) -> String {
    format!("{} ms", bare_millis(duration))
}

fn bare_millis(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}
