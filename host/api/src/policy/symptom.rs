//! Symptoms: read with everything that a schema cannot say, written for a record, and told in words.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value as Json;

use crate::conditions::ConditionStatus;
use crate::document::Path;
use crate::limits;
use crate::remedyconfiguration::{EventType, FlapsConfig, NodeEventConfig, SymptomConfig};
use crate::time::Span;

/// What a threshold looks at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Symptom {
    /// A node condition with one of these statuses.
    Condition {
        /// Its type.
        kind: String,
        /// The statuses that count.
        statuses: BTreeSet<ConditionStatus>,
        /// The reasons that count; empty: any.
        reasons: BTreeSet<String>,
    },
    /// The node's Lease is this old.
    LeaseAge(Span),
    /// Events about the node.
    Events {
        /// The reasons that count.
        reasons: BTreeSet<String>,
        /// Their type; `None`: both.
        kind: Option<EventType>,
        /// The components that count; empty: any.
        sources: BTreeSet<String>,
        /// So many.
        count: u32,
        /// Within this time.
        window: Span,
    },
    /// A condition whose status keeps changing.
    Flaps {
        /// Its type.
        kind: String,
        /// So many changes.
        count: u32,
        /// Within this time.
        window: Span,
    },
    /// The node's object is this old, and no kubelet ever spoke for it.
    NeverJoined(Span),
    /// All of these.
    All(Vec<Self>),
    /// Any of these.
    Any(Vec<Self>),
    /// Not this.
    Not(Box<Self>),
}

/// Every field that makes a symptom, of which each has exactly one.
const FIELDS: &str = "nodeConditionType, nodeLeaseAge, nodeEvent, nodeConditionFlaps, neverJoined, \
                      all, any, not";
/// An API server keeps Events for an hour (`--event-ttl`): more cannot be counted.
const EVENT_WINDOW_MAX: Span = Span::from_minutes(60);
/// What flaps once a day is not what this symptom is for.
const FLAP_WINDOW_MAX: Span = Span::from_minutes(24 * 60);
/// The shortest time that a threshold can ask for.
const TIME_MIN: Span = Span::from_s(1);
/// The longest one.
const TIME_MAX: Span = Span::from_minutes(limits::PERIOD_DAYS_MAX * 24 * 60);

impl Symptom {
    /// Reads a symptom; tells `wrong` of everything that is, by its place. Schemas were checked before.
    pub fn read(
        config: &SymptomConfig,
        path: &Path,
        wrong: &mut dyn FnMut(&Path, String),
    ) -> Option<Self> {
        let symptom = Reader { wrong, is_part: false }.symptom(config, path)?;
        let symptoms = symptom.leaves();
        if symptoms > limits::SYMPTOMS_MAX {
            wrong(
                path,
                format!("found {symptoms} symptoms, expected at most {}", limits::SYMPTOMS_MAX),
            );
            return None;
        }
        Some(symptom)
    }

    /// The symptom of a record; `None` where it says nothing that this version understands.
    pub fn of_record(config: &SymptomConfig) -> Option<Self> {
        let mut is_understood = true;
        let symptom = Reader { wrong: &mut |_, _| is_understood = false, is_part: true }
            .symptom(config, &Path::root());
        symptom.filter(|_| is_understood)
    }

    /// The same as users write it.
    pub fn written(&self) -> SymptomConfig {
        let words = |words: &BTreeSet<String>| words.iter().cloned().collect();
        let empty = SymptomConfig::default();
        match self {
            Self::Condition { kind, statuses, reasons } => SymptomConfig {
                node_condition_type: Some(kind.clone()),
                node_condition_status: Some(status_of(statuses).into()),
                node_condition_reason: words(reasons),
                ..empty
            },
            Self::LeaseAge(age) => SymptomConfig { node_lease_age: Some(*age), ..empty },
            Self::Events { reasons, kind, sources, count, window } => {
                let events = NodeEventConfig {
                    reason: words(reasons),
                    kind: *kind,
                    source: words(sources),
                    count: *count,
                    window: *window,
                };
                SymptomConfig { node_event: Some(events), ..empty }
            }
            Self::Flaps { kind, count, window } => {
                let flaps = FlapsConfig { kind: kind.clone(), count: *count, window: *window };
                SymptomConfig { node_condition_flaps: Some(flaps), ..empty }
            }
            Self::NeverJoined(after) => SymptomConfig { never_joined: Some(*after), ..empty },
            Self::All(parts) => SymptomConfig { all: written(parts), ..empty },
            Self::Any(parts) => SymptomConfig { any: written(parts), ..empty },
            Self::Not(part) => SymptomConfig { not: Some(Box::new(part.written())), ..empty },
        }
    }

    /// The reasons of Events that it asks for.
    pub fn event_reasons(&self) -> BTreeSet<String> {
        match self {
            Self::Events { reasons, .. } => reasons.clone(),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().flat_map(Self::event_reasons).collect()
            }
            Self::Not(part) => part.event_reasons(),
            Self::Condition { .. }
            | Self::LeaseAge(_)
            | Self::Flaps { .. }
            | Self::NeverJoined(_) => BTreeSet::new(),
        }
    }

    /// Whether one and the same status of a node's condition, or its Lease, makes both.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::LeaseAge(_), Self::LeaseAge(_)) => true,
            (
                Self::Condition { kind, statuses, reasons },
                Self::Condition { kind: of, statuses: also, reasons: words },
            ) => {
                let any_reason = reasons.is_empty() || words.is_empty();
                kind == of
                    && !statuses.is_disjoint(also)
                    && (any_reason || !reasons.is_disjoint(words))
            }
            (
                Self::Condition { .. }
                | Self::LeaseAge(_)
                | Self::Events { .. }
                | Self::Flaps { .. }
                | Self::NeverJoined(_)
                | Self::All(_)
                | Self::Any(_)
                | Self::Not(_),
                _,
            ) => self == other,
        }
    }

    fn leaves(&self) -> usize {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().map(Self::leaves).sum(),
            Self::Not(part) => part.leaves(),
            Self::Condition { .. }
            | Self::LeaseAge(_)
            | Self::Events { .. }
            | Self::Flaps { .. }
            | Self::NeverJoined(_) => 1,
        }
    }
}

fn written(parts: &[Symptom]) -> Vec<SymptomConfig> {
    parts.iter().map(Symptom::written).collect()
}

/// The word by which exactly these statuses are read again.
fn status_of(statuses: &BTreeSet<ConditionStatus>) -> &'static str {
    if statuses.contains(&ConditionStatus::True) {
        "True"
    } else if statuses.contains(&ConditionStatus::False) {
        "False"
    } else {
        "Unknown"
    }
}

struct Reader<'a> {
    wrong: &'a mut dyn FnMut(&Path, String),
    /// Below `all`, `any` or `not`.
    is_part: bool,
}

impl Reader<'_> {
    fn symptom(&mut self, config: &SymptomConfig, path: &Path) -> Option<Symptom> {
        let present: Vec<&str> = [
            ("nodeConditionType", config.node_condition_type.is_some()),
            ("nodeLeaseAge", config.node_lease_age.is_some()),
            ("nodeEvent", config.node_event.is_some()),
            ("nodeConditionFlaps", config.node_condition_flaps.is_some()),
            ("neverJoined", config.never_joined.is_some()),
            ("all", !config.all.is_empty()),
            ("any", !config.any.is_empty()),
            ("not", config.not.is_some()),
        ]
        .into_iter()
        .filter_map(|(field, is_there)| is_there.then_some(field))
        .collect();
        let [field] = present.as_slice() else {
            let sentence = if present.is_empty() {
                format!("found no symptom, expected one of {FIELDS}")
            } else {
                format!("found {}, expected one of them", present.join(" and "))
            };
            (self.wrong)(path, sentence);
            return None;
        };
        if let Some(kind) = &config.node_condition_type {
            return self.condition(kind, config, path);
        }
        for (extra, given) in [
            ("nodeConditionStatus", config.node_condition_status.is_some()),
            ("nodeConditionReason", !config.node_condition_reason.is_empty()),
        ] {
            if given {
                let sentence = format!("found it beside {field}, expected {field} alone");
                (self.wrong)(&path.field(extra), sentence);
            }
        }
        let path = path.field(field);
        if let Some(age) = config.node_lease_age {
            return self.time(age, TIME_MAX, &path).map(Symptom::LeaseAge);
        }
        if let Some(after) = config.never_joined {
            return self.time(after, TIME_MAX, &path).map(Symptom::NeverJoined);
        }
        if let Some(events) = &config.node_event {
            let words = |words: &[String]| words.iter().cloned().collect();
            return Some(Symptom::Events {
                reasons: words(&events.reason),
                kind: events.kind,
                sources: words(&events.source),
                count: events.count,
                window: self.time(events.window, EVENT_WINDOW_MAX, &path.field("window"))?,
            });
        }
        if let Some(flaps) = &config.node_condition_flaps {
            return Some(Symptom::Flaps {
                kind: flaps.kind.clone(),
                count: flaps.count,
                window: self.time(flaps.window, FLAP_WINDOW_MAX, &path.field("window"))?,
            });
        }
        self.is_part = true;
        if let Some(part) = &config.not {
            return Some(Symptom::Not(Box::new(self.symptom(part, &path)?)));
        }
        let all = self.parts(&config.all, &path);
        let any = self.parts(&config.any, &path);
        if config.any.is_empty() { Some(Symptom::All(all?)) } else { Some(Symptom::Any(any?)) }
    }

    /// All parts, or none: what is wrong in each of them is told.
    fn parts(&mut self, configs: &[SymptomConfig], path: &Path) -> Option<Vec<Symptom>> {
        let parts: Vec<Option<Symptom>> = (0..)
            .zip(configs)
            .map(|(index, config)| self.symptom(config, &path.index(index)))
            .collect();
        parts.into_iter().collect()
    }

    fn condition(&mut self, kind: &str, config: &SymptomConfig, path: &Path) -> Option<Symptom> {
        let statuses = self.statuses(kind, config.node_condition_status.as_ref(), path)?;
        let reasons = config.node_condition_reason.iter().cloned().collect();
        Some(Symptom::Condition { kind: kind.to_owned(), statuses, reasons })
    }

    /// The statuses that count. For Ready, false means that nobody says it is: False and Unknown.
    fn statuses(
        &mut self,
        kind: &str,
        status: Option<&Json>,
        path: &Path,
    ) -> Option<BTreeSet<ConditionStatus>> {
        let path = path.field("nodeConditionStatus");
        let ready = kind == "Ready";
        match status.map(|status| (status, status.as_str())) {
            Some((Json::Bool(false), _) | (_, Some("False"))) if ready => {
                Some([ConditionStatus::False, ConditionStatus::Unknown].into())
            }
            Some((Json::Bool(true), _) | (_, Some("True"))) if ready && !self.is_part => {
                let sentence =
                    "found true, expected false or Unknown: a node that is Ready is well";
                (self.wrong)(&path, sentence.to_owned());
                None
            }
            Some((Json::Bool(false), _) | (_, Some("False"))) => {
                Some([ConditionStatus::False].into())
            }
            Some((Json::Bool(true), _) | (_, Some("True"))) => Some([ConditionStatus::True].into()),
            Some((_, Some("Unknown"))) => Some([ConditionStatus::Unknown].into()),
            Some(_) | None => {
                (self.wrong)(&path, "found nothing, expected true, false or Unknown".to_owned());
                None
            }
        }
    }

    /// A length of time that is neither nothing nor absurd.
    fn time(&mut self, time: Span, longest: Span, path: &Path) -> Option<Span> {
        if (TIME_MIN..=longest).contains(&time) {
            return Some(time);
        }
        (self.wrong)(path, format!("found {time}, expected {TIME_MIN} to {longest}"));
        None
    }
}

impl fmt::Display for Symptom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition { kind, statuses, reasons } => {
                let statuses: Vec<&str> = statuses.iter().copied().map(word).collect();
                write!(f, "{kind}={}", statuses.join(","))?;
                if reasons.is_empty() { Ok(()) } else { write!(f, " ({})", listed(reasons)) }
            }
            Self::LeaseAge(age) => write!(f, "Lease older than {age}"),
            Self::Events { reasons, kind, sources, count, window } => {
                let kind = kind.map_or(String::new(), |kind| format!("{} ", kind.word()));
                write!(f, "{count} {kind}Events {}", listed(reasons))?;
                if !sources.is_empty() {
                    write!(f, " of {}", listed(sources))?;
                }
                write!(f, " in {window}")
            }
            Self::Flaps { kind, count, window } => {
                write!(f, "{kind} changed {count} times in {window}")
            }
            Self::NeverJoined(after) => write!(f, "never joined in {after}"),
            Self::All(parts) => f.write_str(&joined(parts, " and ")),
            Self::Any(parts) => f.write_str(&joined(parts, " or ")),
            Self::Not(part) => write!(f, "not ({part})"),
        }
    }
}

fn listed(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

const fn word(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

/// A compound inside another one stands in brackets.
fn joined(parts: &[Symptom], by: &str) -> String {
    let bracketed = |part: &Symptom| match part {
        Symptom::All(_) | Symptom::Any(_) => format!("({part})"),
        Symptom::Condition { .. }
        | Symptom::LeaseAge(_)
        | Symptom::Events { .. }
        | Symptom::Flaps { .. }
        | Symptom::NeverJoined(_)
        | Symptom::Not(_) => part.to_string(),
    };
    parts.iter().map(bracketed).collect::<Vec<_>>().join(by)
}
