//! Thresholds: from configuration and from a record to what `decide` judges, and into a record
//! again. Every process that reads one looks for the very same sign.

use std::collections::BTreeSet;

use node_remedy_api::conditions::ConditionStatus as Written;
use node_remedy_api::nodefence::Trigger;
use node_remedy_api::policy;
use node_remedy_api::time::{Moment, Span as SpanWritten};
use node_remedy_decide::{ConditionStatus, Crossing, READY, STALE_AFTER, Span, Symptom, Threshold};

/// The condition type that stands for the age of the node's Lease.
pub const LEASE: &str = "Lease";
/// The status of every sign that is not a plain condition or a Lease.
const THERE: &str = "There";
/// The longest condition type that a record takes.
const WORDS_MAX: usize = 316;

/// What is looked for, and for how long, as configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedSymptom {
    /// The sign.
    pub symptom: policy::Symptom,
    /// For how long it must hold.
    pub period: SpanWritten,
    /// A condition that was last reported longer ago is not known.
    pub stale_after: SpanWritten,
}

impl TimedSymptom {
    /// As `decide` judges it.
    pub fn threshold(&self) -> Threshold {
        Threshold {
            symptom: symptom_of(&self.symptom),
            period: Span(self.period.ms),
            stale_after: Span(self.stale_after.ms),
        }
    }

    /// As a record keeps it.
    pub fn trigger(&self, crossing: &Crossing) -> Trigger {
        let since = match crossing {
            Crossing::Crossed { since } | Crossing::Ripening { since, .. } => since.0,
            Crossing::Clear { .. } | Crossing::Unclear => 0,
        };
        let (condition_type, status, period) = match &self.symptom {
            policy::Symptom::LeaseAge(age) => (LEASE.to_owned(), "Expired", *age),
            policy::Symptom::Condition { kind, statuses, reasons } if reasons.is_empty() => {
                (kind.clone(), status_word(statuses), self.period)
            }
            symptom @ (policy::Symptom::Condition { .. }
            | policy::Symptom::Events { .. }
            | policy::Symptom::Flaps { .. }
            | policy::Symptom::NeverJoined(_)
            | policy::Symptom::All(_)
            | policy::Symptom::Any(_)
            | policy::Symptom::Not(_)) => {
                (symptom.to_string().chars().take(WORDS_MAX).collect(), THERE, self.period)
            }
        };
        Trigger {
            condition_type,
            status: status.to_owned(),
            since: Moment::from_ms(since),
            period,
            symptom: Some(self.symptom.written()),
            condition_stale_after: Some(self.stale_after),
        }
    }
}

/// Whether a sign is a node's silence or readiness and nothing else.
pub fn is_of_silence(symptom: &policy::Symptom) -> bool {
    match symptom {
        policy::Symptom::LeaseAge(_) => true,
        policy::Symptom::Condition { kind, .. } => kind == READY,
        policy::Symptom::Events { .. }
        | policy::Symptom::Flaps { .. }
        | policy::Symptom::NeverJoined(_)
        | policy::Symptom::All(_)
        | policy::Symptom::Any(_)
        | policy::Symptom::Not(_) => false,
    }
}

/// The threshold of a NodeFence's trigger. A sign that this version does not understand is one that
/// nobody knows of.
pub fn threshold_of(trigger: &Trigger) -> Threshold {
    let stale_after = trigger.condition_stale_after.map_or(STALE_AFTER, |span| Span(span.ms));
    let period = Span(trigger.period.ms);
    let symptom = match &trigger.symptom {
        Some(written) => policy::Symptom::of_record(written)
            .map_or_else(|| Symptom::All(Vec::new()), |symptom| symptom_of(&symptom)),
        None if trigger.condition_type == LEASE => Symptom::LeaseAge(period),
        None => {
            let (kind, statuses) = (trigger.condition_type.clone(), statuses(&trigger.status));
            Symptom::Condition { kind, statuses, reasons: BTreeSet::new() }
        }
    };
    // A Lease's age is in its sign; the record shows it as the period, too.
    let period = if matches!(symptom, Symptom::LeaseAge(_)) { Span::ZERO } else { period };
    Threshold { symptom, period, stale_after }
}

/// A trigger in words: `Ready is False`, `Ready=False,Unknown and not (KernelDeadlock=True) holds`.
pub fn words(trigger: &Trigger) -> String {
    if trigger.status != THERE {
        return format!("{} is {}", trigger.condition_type, trigger.status);
    }
    let whole = trigger.symptom.as_ref().and_then(policy::Symptom::of_record);
    let words = whole.map_or_else(|| trigger.condition_type.clone(), |symptom| symptom.to_string());
    format!("{words} holds")
}

fn symptom_of(symptom: &policy::Symptom) -> Symptom {
    match symptom {
        policy::Symptom::Condition { kind, statuses, reasons } => Symptom::Condition {
            kind: kind.clone(),
            statuses: statuses.iter().copied().map(status_of).collect(),
            reasons: reasons.clone(),
        },
        policy::Symptom::LeaseAge(age) => Symptom::LeaseAge(Span(age.ms)),
        policy::Symptom::Events { reasons, kind, sources, count, window } => Symptom::Events {
            reasons: reasons.clone(),
            kind: kind.map(|kind| kind.word().to_owned()),
            sources: sources.clone(),
            count: *count,
            window: Span(window.ms),
        },
        policy::Symptom::Flaps { kind, count, window } => {
            Symptom::Flaps { kind: kind.clone(), count: *count, window: Span(window.ms) }
        }
        policy::Symptom::NeverJoined(after) => Symptom::NeverJoined(Span(after.ms)),
        policy::Symptom::All(parts) => Symptom::All(parts.iter().map(symptom_of).collect()),
        policy::Symptom::Any(parts) => Symptom::Any(parts.iter().map(symptom_of).collect()),
        policy::Symptom::Not(part) => Symptom::Not(Box::new(symptom_of(part))),
    }
}

fn status_of(status: Written) -> ConditionStatus {
    match status {
        Written::True => ConditionStatus::True,
        Written::False => ConditionStatus::False,
        Written::Unknown => ConditionStatus::Unknown,
    }
}

/// `false` of a condition matches Unknown too: nobody vouches for it (rule A18).
fn statuses(status: &str) -> BTreeSet<ConditionStatus> {
    match status {
        "True" => [ConditionStatus::True].into(),
        "Unknown" => [ConditionStatus::Unknown].into(),
        _ => [ConditionStatus::False, ConditionStatus::Unknown].into(),
    }
}

/// The word that a trigger writes for a set of statuses.
fn status_word(statuses: &BTreeSet<Written>) -> &'static str {
    if statuses.contains(&Written::True) {
        "True"
    } else if statuses.contains(&Written::False) {
        "False"
    } else {
        "Unknown"
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_api::remedyconfiguration::SymptomConfig;
    use node_remedy_decide::Time;
    use serde_json::json;

    use super::*;

    fn wanted(symptom: serde_json::Value, period_s: u64) -> TimedSymptom {
        let config: SymptomConfig = serde_json::from_value(symptom).unwrap();
        TimedSymptom {
            symptom: policy::Symptom::of_record(&config).unwrap(),
            period: SpanWritten::from_s(period_s),
            stale_after: SpanWritten::from_minutes(7),
        }
    }

    /// Each sign, its period, and what a person reads of it in the NodeFence and in `explain`.
    #[test]
    fn every_process_reads_the_same_threshold_out_of_a_record() {
        let ready = || json!({"nodeConditionType": "Ready", "nodeConditionStatus": false});
        let events = json!({"reason": ["KernelOops"], "type": "Warning", "source": ["kernel-monitor"],
            "count": 3, "window": "10m"});
        let rows = [
            (ready(), 5, "Ready", "False", "Ready is False"),
            (json!({"nodeLeaseAge": "20s"}), 0, "Lease", "Expired", "Lease is Expired"),
            (
                json!({"nodeConditionType": "DiskPressure", "nodeConditionStatus": false}),
                5,
                "DiskPressure",
                "False",
                "DiskPressure is False",
            ),
            (
                json!({"all": [ready(), {"not": {"nodeConditionType": "KernelDeadlock",
                    "nodeConditionStatus": true, "nodeConditionReason": ["DockerHung"]}}]}),
                60,
                "Ready=False,Unknown and not (KernelDeadlock=True (DockerHung))",
                "There",
                "Ready=False,Unknown and not (KernelDeadlock=True (DockerHung)) holds",
            ),
            (
                json!({"any": [{"nodeEvent": events}, {"neverJoined": "10m"}]}),
                0,
                "3 Warning Events KernelOops of kernel-monitor in 10m or never joined in 10m",
                "There",
                "3 Warning Events KernelOops of kernel-monitor in 10m or never joined in 10m holds",
            ),
            (
                json!({"nodeConditionFlaps": {"type": "Ready", "count": 6, "window": "30m"}}),
                0,
                "Ready changed 6 times in 30m",
                "There",
                "Ready changed 6 times in 30m holds",
            ),
        ];
        for (symptom, period_s, kind, status, told) in rows {
            let wanted = wanted(symptom, period_s);
            let written = wanted.trigger(&Crossing::Crossed { since: Time(7) });
            let json = serde_json::to_string(&written).unwrap();
            let read: Trigger = serde_json::from_str(&json).unwrap();
            assert_eq!((read.condition_type.as_str(), read.status.as_str()), (kind, status));
            assert_eq!((words(&read).as_str(), read.since.ms), (told, 7));
            assert_eq!(threshold_of(&read), wanted.threshold(), "{json}");
        }
    }

    #[test]
    fn a_record_of_an_older_version_is_still_read() {
        let old = |kind: &str, status: &str| {
            let trigger = json!({"conditionType": kind, "status": status,
                "since": "2026-01-01T00:00:00Z", "period": "20s"});
            threshold_of(&serde_json::from_value(trigger).unwrap())
        };
        let lease = old("Lease", "Expired");
        assert_eq!(lease.symptom, Symptom::LeaseAge(Span::seconds(20)));
        assert_eq!((lease.period, lease.stale_after), (Span::ZERO, STALE_AFTER));
        let ready = old("Ready", "False");
        let same = wanted(json!({"nodeConditionType": "Ready", "nodeConditionStatus": false}), 20);
        assert_eq!((ready.symptom, ready.period), (same.threshold().symptom, Span::seconds(20)));
    }

    #[test]
    fn a_symptom_of_a_newer_version_is_not_guessed() {
        let trigger = json!({"conditionType": "moon is full", "status": "There",
            "since": "2026-01-01T00:00:00Z", "period": "20s", "symptom": {"moon": "full"}});
        let trigger: Trigger = serde_json::from_value(trigger).unwrap();
        assert_eq!(threshold_of(&trigger).symptom, Symptom::All(Vec::new()));
        assert_eq!(words(&trigger), "moon is full holds");
    }
}
