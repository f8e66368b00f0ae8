//! What each value of a policy allows and all of them together do not: settings that exclude, undo or never reach one
//! another. An error where nothing sensible can be meant, a warning where something else is done than it says.
//!
//! What is only unusual is neither: docs/configuration.md says what it does. Not here: one value's own form, which
//! the schema and [`read`](super::read) hold.

use std::collections::BTreeSet;

use super::{PauseWindow, Policies, ReleaseMode, Symptom};
use crate::document::{Path, Severity};
use crate::limits;
use crate::nodefence::Grade;
use crate::policy::model::{Policy, Remedy, RemedyStep, Threshold};
use crate::time::{Moment, Span};

/// The longest pause before a retry, whatever `backoff` says.
const BACKOFF_MAX: Span = Span::from_minutes(1);
/// A kubelet renews its Lease this often, where nobody says otherwise.
const RENEWED_EVERY: Span = Span::from_s(10);
/// Kubelets and node-problem-detector repeat themselves this often at least.
const REPORT_EVERY: Span = Span::from_minutes(5);
/// 2024-01-01, from when on windows are looked at; which Monday does not matter to a crontab of weekdays.
const MONDAY_MS: u64 = 1_704_067_200_000;
/// No divisor of an hour or a day, so that every minute of both has its look in time.
const LOOK_EVERY: Span = Span::from_minutes(37);
/// Two of the longest windows.
const LOOKS: u64 = 2 * 7 * 24 * 60 / 37;

/// Where something is wrong below `policies`, how wrong, and the sentence.
type Found = (Severity, Path, String);

/// Everything about these policies that contradicts something else of them; `base` is where they stand.
pub(super) fn of_policies(policy: &Policy, given: &Policies, base: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    lengths(given, base, &mut found);
    releases(policy, given, base, &mut found);
    guards(policy, given, base, &mut found);
    windows(given.pause_windows.as_deref().unwrap_or_default(), base, &mut found);
    found
}

/// What a threshold's symptom says of nodes that are well; `path` is the threshold's.
pub(super) fn of_threshold(threshold: &Threshold, path: &Path) -> Vec<Found> {
    let sentences = by_events_alone(threshold).into_iter().chain(too_early(threshold));
    sentences.map(|sentence| (Severity::Warning, path.clone(), sentence)).collect()
}

/// A Lease that is as old on every node between two renewals.
fn too_early(threshold: &Threshold) -> Option<String> {
    fn youngest(symptom: &Symptom) -> Option<Span> {
        match symptom {
            Symptom::LeaseAge(age) => Some(*age),
            Symptom::All(parts) | Symptom::Any(parts) => parts.iter().filter_map(youngest).min(),
            Symptom::Not(part) => youngest(part),
            Symptom::Condition { .. }
            | Symptom::Events { .. }
            | Symptom::Flaps { .. }
            | Symptom::NeverJoined(_) => None,
        }
    }
    let age = youngest(&threshold.symptom).filter(|age| *age <= RENEWED_EVERY)?;
    Some(format!(
        "found nodeLeaseAge {age}, and a kubelet renews its Lease every {RENEWED_EVERY}: healthy nodes cross that between two \
         renewals; expected 20s or more"
    ))
}

/// A symptom that whoever may write Events makes, and a remedy that cuts: no node needs to be ill for it.
fn by_events_alone(threshold: &Threshold) -> Option<String> {
    fn is_events_alone(symptom: &Symptom) -> bool {
        match symptom {
            Symptom::Events { .. } => true,
            Symptom::All(parts) => !parts.is_empty() && parts.iter().all(is_events_alone),
            Symptom::Any(parts) => parts.iter().any(is_events_alone),
            Symptom::Condition { .. }
            | Symptom::LeaseAge(_)
            | Symptom::Flaps { .. }
            | Symptom::NeverJoined(_)
            | Symptom::Not(_) => false,
        }
    }
    let cuts = |remedy_step: &RemedyStep| match &remedy_step.remedy {
        Remedy::Fence | Remedy::Isolation | Remedy::Method(_) | Remedy::Plugin(_) => true,
        Remedy::Cluster(_) | Remedy::PodTemplate(_) => false,
    };
    if !is_events_alone(&threshold.symptom) || !threshold.ladder.iter().any(cuts) {
        return None;
    }
    let sentence = "found nodeEvent alone: whoever may create Events in the namespace default has any node fenced; ask for \
                    a symptom of the node's own beside it (all)";
    Some(sentence.to_owned())
}

/// What a remedy step of a ladder asks for in vain; `path` is that of its list.
pub(super) fn of_remedy_step(
    remedy_step: &RemedyStep,
    grades: &[Grade],
    path: &Path,
) -> Option<Found> {
    if !remedy_step.clean_resource {
        return None;
    }
    let sentence = match &remedy_step.remedy {
        Remedy::Cluster(cluster_action) => {
            format!("found clean-resource at {cluster_action}, which releases nothing")
        }
        Remedy::Plugin(plugin) => format!(
            "found clean-resource at the plugin {plugin}, which decides and whose word releases nothing"
        ),
        Remedy::PodTemplate(_) if !grades.contains(&Grade::JobSucceeded) => {
            let grade = "policies.grades leaves out job-succeeded";
            format!("found clean-resource while {grade}: its success releases nothing")
        }
        // What a plan proves releases in any case.
        Remedy::Fence | Remedy::Isolation | Remedy::Method(_) | Remedy::PodTemplate(_) => {
            return None;
        }
    };
    Some((Severity::Warning, path.clone(), sentence))
}

/// Times of nothing in which nothing can be done, and such as nobody lives to see.
fn lengths(given: &Policies, base: &Path, found: &mut Vec<Found>) {
    let longest = Span::from_minutes(limits::PERIOD_DAYS_MAX.saturating_mul(24 * 60));
    let storage = given.storage_leases.as_ref().map(|leases| leases.max_age);
    let mut refuse = |path: Path, span: Span, expected: &str| {
        found.push((
            Severity::Error,
            path,
            format!("found {span}, expected {expected} to {longest}"),
        ));
    };
    for (field, span) in [
        ("backoff", given.backoff),
        ("offTimeout", given.off_timeout),
        ("onTimeout", given.on_timeout),
        ("releaseTimeout", given.release_timeout),
        ("cleanupTimeout", given.cleanup_timeout),
        ("recoverTimeout", given.recover_timeout),
        ("deviceTimeout", given.device_timeout),
        ("kdumpGrace", given.kdump_grace),
    ] {
        if let Some(span) = span.filter(|span| span.ms == 0 || *span > longest) {
            refuse(base.field(field), span, "more than 0s, up");
        }
    }
    if let Some(span) = storage.filter(|span| span.ms == 0 || *span > longest) {
        refuse(base.field("storageLeases").field("maxAge"), span, "more than 0s, up");
    }
    for (field, span) in [
        ("isolateAfter", given.isolate_after),
        ("powerAfter", given.power_after),
        ("gateTimeout", given.gate_timeout),
        ("coolDown", given.cool_down),
        ("pdbPatience", given.pdb_patience),
    ] {
        if let Some(span) = span.filter(|span| *span > longest) {
            refuse(base.field(field), span, "0s");
        }
    }
    if let Some(backoff) = given.backoff.filter(|span| *span > BACKOFF_MAX && *span <= longest) {
        warn(
            found,
            base.field("backoff"),
            format!("found {backoff}, which is read as {BACKOFF_MAX}: no pause is longer"),
        );
    }
}

fn releases(policy: &Policy, given: &Policies, base: &Path, found: &mut Vec<Found>) {
    let grades = &policy.incident.grades;
    let mut seen = BTreeSet::new();
    for (index, grade) in grades.iter().enumerate() {
        if !seen.insert(grade) {
            let sentence = "found it a second time, expected it once".to_owned();
            found.push((Severity::Error, base.field("grades").index(index), sentence));
        }
    }
    let has = |grade| grades.contains(&grade);
    let mut remedy_steps = policy.thresholds.iter().flat_map(|threshold| &threshold.ladder);
    if given.grades.is_some()
        && !has(Grade::PowerOffVerified)
        && remedy_steps.any(|remedy_step| remedy_step.remedy == Remedy::Fence)
    {
        let sentence = "found no power-off-verified: a machine that is proven off releases nothing";
        warn(found, base.field("grades"), sentence.to_owned());
    }
    if has(Grade::KdumpSeen) && policy.incident.kdump_grace.is_none() {
        let sentence =
            "found kdump-seen without kdumpGrace: power is cut in the middle of the dump";
        warn(found, base.field("grades"), sentence.to_owned());
    }
    let checks = !policy.incident.safe_detach_drivers.is_empty();
    if has(Grade::Partition) && !checks {
        let sentence = "found partition, expected safeDetachDrivers beside it".to_owned();
        found.push((Severity::Error, base.field("grades"), sentence));
    }
    if checks && !has(Grade::Partition) {
        let sentence = "found drivers, expected partition among grades, which they are for";
        found.push((Severity::Error, base.field("safeDetachDrivers"), sentence.to_owned()));
    }
    if given.kdump_releases.is_some() && !has(Grade::KdumpSeen) {
        let sentence = "found it while grades leaves out kdump-seen, where it does nothing";
        warn(found, base.field("kdumpReleases"), sentence.to_owned());
    }
    if given.pods_per_minute.is_some() && policy.incident.release_mode == ReleaseMode::Prompt {
        let sentence = "found it without releaseMode: paced, where it does nothing";
        warn(found, base.field("podsPerMinute"), sentence.to_owned());
    }
}

fn guards(policy: &Policy, given: &Policies, base: &Path, found: &mut Vec<Found>) {
    if given.max_unhealthy_percent == Some(100) {
        let sentence = "found 100: nothing but the loss of all nodes at once is taken for a storm";
        warn(found, base.field("maxUnhealthyPercent"), sentence.to_owned());
    }
    if given.max_unhealthy_count == Some(1) {
        let sentence = "found 1, which is read as 2: one lost node alone is never a storm";
        warn(found, base.field("maxUnhealthyCount"), sentence.to_owned());
    }
    if let Some(stale) = given.condition_stale_after.filter(|span| *span < REPORT_EVERY) {
        let sentence = format!(
            "found {stale}, and conditions that do not change are reported every {REPORT_EVERY}: between \
             two reports they are not known"
        );
        warn(found, base.field("conditionStaleAfter"), sentence);
    }
    if let Some(alarm) = policy.repeat_alarm {
        let between =
            policy.gate.cool_down.ms.saturating_mul(u64::from(alarm.count).saturating_sub(1));
        if between > alarm.window.ms {
            let sentence = format!(
                "found {}, in which no node has {} incidents: coolDown keeps them {} apart",
                alarm.window, alarm.count, policy.gate.cool_down
            );
            warn(found, base.field("repeatAlarm").field("window"), sentence);
        }
    }
    let mut keys = BTreeSet::new();
    for (index, limit) in policy.gate.topologies.iter().enumerate() {
        let path = base.field("topologies").index(index);
        if !keys.insert(&limit.key) {
            let sentence = format!("found {:?} a second time, expected another label", limit.key);
            found.push((Severity::Error, path.field("key"), sentence));
        }
        let most = policy.gate.max_in_flight;
        if let Some(of_domain) = limit.max_in_flight.filter(|of_domain| *of_domain > most) {
            let sentence =
                format!("found {of_domain}, which is never reached: maxInFlight is {most}");
            warn(found, path.field("maxInFlight"), sentence);
        }
    }
    if let Some(leases) = &policy.gate.storage_leases
        && !is_namespace(&leases.namespace)
    {
        let sentence = format!("found {:?}, expected a namespace's name", leases.namespace);
        found.push((Severity::Error, base.field("storageLeases").field("namespace"), sentence));
    }
}

/// A node that is never cut needs no policy: who writes this forgot a field of the crontab.
fn windows(windows: &[PauseWindow], base: &Path, found: &mut Vec<Found>) {
    let is_open = |at: Moment| windows.iter().any(|one| matches!(one.open_until(at), Ok(Some(_))));
    let at =
        |look: u64| Moment::from_ms(MONDAY_MS.saturating_add(LOOK_EVERY.ms.saturating_mul(look)));
    if !windows.is_empty() && (0..LOOKS).map(at).all(is_open) {
        let sentence = "found windows of which one is always open: nothing is ever cut";
        warn(found, base.field("pauseWindows"), sentence.to_owned());
    }
}

/// A label of DNS, as the API server takes it for a namespace.
fn is_namespace(name: &str) -> bool {
    let of_label = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let ends = !name.starts_with('-') && !name.ends_with('-');
    !name.is_empty() && name.len() <= 63 && ends && name.bytes().all(of_label)
}

fn warn(found: &mut Vec<Found>, path: Path, sentence: String) {
    found.push((Severity::Warning, path, sentence));
}
