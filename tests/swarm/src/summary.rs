//! What many runs came to: for people, and for programs.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use node_remedy_swarm::coverage::Coverage;
use node_remedy_swarm::failure::Failure;
use node_remedy_swarm::play::Outcome;
use serde_json::{Value, json};

/// What many runs came to.
pub(crate) struct Summary<'a> {
    /// What they have seen.
    pub(crate) coverage: &'a Coverage,
    /// Those that broke an invariant.
    pub(crate) wrong: &'a [Outcome],
    /// How long they took.
    pub(crate) took: Duration,
    /// How many threads played.
    pub(crate) threads: usize,
    /// Of which commit.
    pub(crate) commit: &'a str,
}

impl Summary<'_> {
    fn per_s_and_thread(&self, count: u64) -> f64 {
        let as_float = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let threads = as_float(u64::try_from(self.threads).unwrap_or(1));
        let rate = as_float(count) / self.took.as_secs_f64().max(0.001) / threads;
        (rate * 10.0).round() / 10.0
    }

    fn hours(&self) -> u64 {
        self.coverage.simulated_s / 3_600
    }

    /// One object. Rates are of one thread.
    pub(crate) fn json(&self, failures: &[Failure]) -> Value {
        let violations = self.wrong.iter().flat_map(|outcome| {
            outcome.broken.iter().map(|broken| {
                json!({
                    "seed": outcome.run.seed,
                    "invariant": broken.invariant,
                    "sentence": broken.sentence,
                })
            })
        });
        json!({
            "commit": self.commit,
            "runs": self.coverage.runs,
            "seconds": (self.took.as_secs_f64() * 10.0).round() / 10.0,
            "threads": self.threads,
            "runs_per_s_and_thread": self.per_s_and_thread(self.coverage.runs),
            "facts_per_s_and_thread": self.per_s_and_thread(self.coverage.facts),
            "simulated_hours": self.hours(),
            "violations": violations.collect::<Vec<_>>(),
            "shortest": failures.iter().map(shortest).collect::<Vec<_>>(),
            "coverage": {
                "runs_with_off": self.coverage.with_off,
                "faults": self.coverage.faults,
                "rules": self.coverage.rules,
                "transitions": self.coverage.transitions,
                "missing": self.coverage.missing(),
            },
        })
    }
}

/// The shortest run that breaks what a whole run broke, and where its files are.
fn shortest(failure: &Failure) -> Value {
    let shrunk = &failure.shrunk;
    json!({
        "seed": failure.run.seed,
        "invariant": shrunk.violation.invariant,
        "sentence": shrunk.violation.sentence,
        "faults": shrunk.faults,
        "faults_whole": shrunk.faults_whole,
        "plays": shrunk.plays,
        "run": failure.file("short.yaml"),
        "whole_run": failure.file("yaml"),
        "log": failure.file("log"),
        "report": failure.file("html"),
        "again": failure.again(),
    })
}

impl Display for Summary<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Coverage { runs, facts, .. } = *self.coverage;
        writeln!(
            f,
            "{runs} runs in {} s on {} threads: {:.1} runs/s and {:.1} facts/s a thread, {} \
             hours of simulated time",
            self.took.as_secs(),
            self.threads,
            self.per_s_and_thread(runs),
            self.per_s_and_thread(facts),
            self.hours(),
        )?;
        write!(f, "{}", self.coverage)
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_swarm::checks::Violation;
    use node_remedy_swarm::seed_run::{LASTS, SeedRun};

    use super::*;

    #[test]
    fn a_summary_is_told_to_people_and_to_programs() {
        let broken =
            vec![Violation { invariant: "L3", at: None, sentence: "the end: nobody leads".into() }];
        let wrong = [Outcome {
            run: SeedRun::of(7, LASTS),
            broken,
            coverage: Coverage::default(),
            log: String::new(),
            digest: String::new(),
        }];
        let summary = Summary {
            coverage: &Coverage {
                runs: 120,
                with_off: 60,
                facts: 6_600,
                simulated_s: 180_000,
                ..Coverage::default()
            },
            wrong: &wrong,
            took: Duration::from_secs(30),
            threads: 2,
            commit: "abc",
        };
        let text = summary.to_string();
        let first = "120 runs in 30 s on 2 threads: 2.0 runs/s and 110.0 facts/s a thread, 50 \
                     hours of simulated time";
        assert_eq!(text.lines().next(), Some(first));
        assert_eq!(
            summary.json(&[]),
            json!({
                "commit": "abc",
                "runs": 120,
                "seconds": 30.0,
                "threads": 2,
                "runs_per_s_and_thread": 2.0,
                "facts_per_s_and_thread": 110.0,
                "simulated_hours": 50,
                "violations": [
                    {"seed": 7, "invariant": "L3", "sentence": "the end: nobody leads"},
                ],
                "shortest": [],
                "coverage": {
                    "runs_with_off": 60,
                    "faults": {},
                    "rules": {},
                    "transitions": {},
                    "missing": [],
                },
            })
        );
    }
}
