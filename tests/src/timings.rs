//! Durations of several runs, and their medians as a table.

use std::fmt;

/// Measured phases of runs, in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub struct Timings {
    phases: Vec<Phase>,
}

#[derive(Clone, Debug)]
struct Phase {
    name: String,
    runs_ms: Vec<u64>,
}

impl Timings {
    /// Adds one run's duration of a phase.
    pub fn add(&mut self, phase: &str, took_ms: u64) {
        match self.phases.iter_mut().find(|known| known.name == phase) {
            Some(known) => known.runs_ms.push(took_ms),
            None => self.phases.push(Phase { name: phase.to_owned(), runs_ms: vec![took_ms] }),
        }
    }

    /// The median of a phase, if it was measured.
    #[must_use]
    pub fn median_ms(&self, phase: &str) -> Option<u64> {
        self.phases.iter().find(|known| known.name == phase)?.median_ms()
    }
}

impl Phase {
    /// Of an even number the lower of the two in the middle: a time that was measured.
    fn median_ms(&self) -> Option<u64> {
        let mut sorted = self.runs_ms.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }
}

impl fmt::Display for Timings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.phases.iter().map(|phase| phase.name.chars().count()).max().unwrap_or(0);
        writeln!(out, "{:width$}  {:>8}  {:>8}  {:>8}  runs", "phase", "median", "least", "most")?;
        for phase in &self.phases {
            let seconds = |time_ms: Option<u64>| {
                time_ms.map_or("-".to_owned(), |ms| format!("{}.{:03}", ms / 1_000, ms % 1_000))
            };
            let median = seconds(phase.median_ms());
            let least = seconds(phase.runs_ms.iter().min().copied());
            let most = seconds(phase.runs_ms.iter().max().copied());
            let (name, runs) = (&phase.name, phase.runs_ms.len());
            writeln!(out, "{name:width$}  {median:>8}  {least:>8}  {most:>8}  {runs}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_medians() {
        let mut timings = Timings::default();
        for took_ms in [400, 90, 12_345] {
            timings.add("proof to release", took_ms);
        }
        timings.add("boot", 5_000);
        assert_eq!(timings.median_ms("proof to release"), Some(400));
        assert_eq!(timings.median_ms("never measured"), None);
        let lines: Vec<_> = timings.to_string().lines().map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "phase               median     least      most  runs",
                "proof to release     0.400     0.090    12.345  3",
                "boot                 5.000     5.000     5.000  1",
            ]
        );
    }
}
