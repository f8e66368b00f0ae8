//! Thresholds: from configuration and from a record to what `decide` judges, and into a record
//! again. Every process that reads one looks for the very same sign.

use std::collections::BTreeSet;

use node_remedy_api::conditions::ConditionStatus as Written;
use node_remedy_api::nodefence::Trigger;
use node_remedy_api::policy;
use node_remedy_api::time::{Moment, Span as SpanWritten};
use node_remedy_decide::{ConditionStatus, Crossing, READY, STALE_AFTER, Sign, Span, Threshold};

/// The condition type that stands for the age of the node's Lease.
pub const LEASE: &str = "Lease";
/// The status of every sign that is not a plain condition or a Lease.
const THERE: &str = "There";
/// The longest condition type that a record takes.
const WORDS_MAX: usize = 316;

/// What is looked for, and for how long, as configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The sign.
    pub sign: policy::Sign,
    /// For how long it must hold.
    pub period: SpanWritten,
    /// A condition that was last reported longer ago is not known.
    pub stale_after: SpanWritten,
}

impl Wanted {
    /// As `decide` judges it.
    pub fn threshold(&self) -> Threshold {
        Threshold {
            sign: sign_of(&self.sign),
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
        let (condition_type, status, period) = match &self.sign {
            policy::Sign::LeaseAge(age) => (LEASE.to_owned(), "Expired", *age),
            policy::Sign::Condition { kind, statuses, reasons } if reasons.is_empty() => {
                (kind.clone(), status_word(statuses), self.period)
            }
            sign @ (policy::Sign::Condition { .. }
            | policy::Sign::Events { .. }
            | policy::Sign::Flaps { .. }
            | policy::Sign::NeverJoined(_)
            | policy::Sign::All(_)
            | policy::Sign::Any(_)
            | policy::Sign::Not(_)) => {
                (sign.to_string().chars().take(WORDS_MAX).collect(), THERE, self.period)
            }
        };
        Trigger {
            condition_type,
            status: status.to_owned(),
            since: Moment::from_ms(since),
            period,
            sign: Some(self.sign.written()),
            condition_stale_after: Some(self.stale_after),
        }
    }
}

/// Whether a sign is a node's silence or readiness and nothing else.
pub fn is_of_silence(sign: &policy::Sign) -> bool {
    match sign {
        policy::Sign::LeaseAge(_) => true,
        policy::Sign::Condition { kind, .. } => kind == READY,
        policy::Sign::Events { .. }
        | policy::Sign::Flaps { .. }
        | policy::Sign::NeverJoined(_)
        | policy::Sign::All(_)
        | policy::Sign::Any(_)
        | policy::Sign::Not(_) => false,
    }
}

/// The threshold of a NodeFence's trigger. A sign that this version does not understand is one that
/// nobody knows of.
pub fn threshold_of(trigger: &Trigger) -> Threshold {
    let stale_after = trigger.condition_stale_after.map_or(STALE_AFTER, |span| Span(span.ms));
    let period = Span(trigger.period.ms);
    let sign = match &trigger.sign {
        Some(written) => policy::Sign::of_record(written)
            .map_or_else(|| Sign::All(Vec::new()), |sign| sign_of(&sign)),
        None if trigger.condition_type == LEASE => Sign::LeaseAge(period),
        None => {
            let (kind, statuses) = (trigger.condition_type.clone(), statuses(&trigger.status));
            Sign::Condition { kind, statuses, reasons: BTreeSet::new() }
        }
    };
    // A Lease's age is in its sign; the record shows it as the period, too.
    let period = if matches!(sign, Sign::LeaseAge(_)) { Span::ZERO } else { period };
    Threshold { sign, period, stale_after }
}

/// A trigger in words: `Ready is False`, `Ready=False,Unknown and not (KernelDeadlock=True) holds`.
pub fn words(trigger: &Trigger) -> String {
    if trigger.status != THERE {
        return format!("{} is {}", trigger.condition_type, trigger.status);
    }
    let whole = trigger.sign.as_ref().and_then(policy::Sign::of_record);
    let words = whole.map_or_else(|| trigger.condition_type.clone(), |sign| sign.to_string());
    format!("{words} holds")
}

fn sign_of(sign: &policy::Sign) -> Sign {
    match sign {
        policy::Sign::Condition { kind, statuses, reasons } => Sign::Condition {
            kind: kind.clone(),
            statuses: statuses.iter().copied().map(status_of).collect(),
            reasons: reasons.clone(),
        },
        policy::Sign::LeaseAge(age) => Sign::LeaseAge(Span(age.ms)),
        policy::Sign::Events { reasons, kind, sources, count, window } => Sign::Events {
            reasons: reasons.clone(),
            kind: kind.map(|kind| kind.word().to_owned()),
            sources: sources.clone(),
            count: *count,
            window: Span(window.ms),
        },
        policy::Sign::Flaps { kind, count, window } => {
            Sign::Flaps { kind: kind.clone(), count: *count, window: Span(window.ms) }
        }
        policy::Sign::NeverJoined(after) => Sign::NeverJoined(Span(after.ms)),
        policy::Sign::All(parts) => Sign::All(parts.iter().map(sign_of).collect()),
        policy::Sign::Any(parts) => Sign::Any(parts.iter().map(sign_of).collect()),
        policy::Sign::Not(part) => Sign::Not(Box::new(sign_of(part))),
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
    use node_remedy_api::remedyconfiguration::SignConfig;
    use node_remedy_decide::Time;
    use serde_json::json;

    use super::*;

    fn wanted(sign: serde_json::Value, period_s: u64) -> Wanted {
        let config: SignConfig = serde_json::from_value(sign).unwrap();
        Wanted {
            sign: policy::Sign::of_record(&config).unwrap(),
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
        for (sign, period_s, kind, status, told) in rows {
            let wanted = wanted(sign, period_s);
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
        assert_eq!(lease.sign, Sign::LeaseAge(Span::seconds(20)));
        assert_eq!((lease.period, lease.stale_after), (Span::ZERO, STALE_AFTER));
        let ready = old("Ready", "False");
        let same = wanted(json!({"nodeConditionType": "Ready", "nodeConditionStatus": false}), 20);
        assert_eq!((ready.sign, ready.period), (same.threshold().sign, Span::seconds(20)));
    }

    #[test]
    fn a_sign_of_a_newer_version_is_not_guessed() {
        let trigger = json!({"conditionType": "moon is full", "status": "There",
            "since": "2026-01-01T00:00:00Z", "period": "20s", "sign": {"moon": "full"}});
        let trigger: Trigger = serde_json::from_value(trigger).unwrap();
        assert_eq!(threshold_of(&trigger).sign, Sign::All(Vec::new()));
        assert_eq!(words(&trigger), "moon is full holds");
    }
}
