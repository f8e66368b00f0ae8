//! The last errors of each plugin from outside, for `status.lastErrors` of its `FencePlugin`.
//!
//! Kept by whoever calls, written by whoever leads ([`node_remedy_loader`]). They are news for people:
//! nothing is decided by them, and a restart loses those that were not written yet.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_api::fenceplugin::LastError;
use node_remedy_api::limits::{LAST_ERROR_CHARACTERS_MAX, LAST_ERRORS_MAX};
use node_remedy_api::time::Moment;
use node_remedy_decide::Time;
use node_remedy_sandbox::{Action, CallReport, Ended, FailureKind, Verdict};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A plugin that fails each second has its status written so often.
const WRITTEN_EVERY: Duration = Duration::from_secs(10);

/// Of all plugins from outside, by name.
#[derive(Debug, Default)]
pub struct LastErrors {
    kept: RefCell<BTreeMap<String, Vec<LastError>>>,
    /// Since when something is to be written.
    unwritten: Cell<Option<Instant>>,
    news: Notify,
}

impl LastErrors {
    /// Notes a call that failed; one that we ended, or did not begin, says nothing of its plugin.
    pub(super) fn note(
        &self,
        plugin: &str,
        digest: &str,
        device: &str,
        report: &CallReport,
        now: Time,
    ) {
        let failure = match report.verdict() {
            Verdict::Outcome(_) => return,
            Verdict::FailedBeforeEffect(failure) | Verdict::Indeterminate(failure) => failure,
        };
        let is_ours = matches!(report.ended, Ended::NotStarted | Ended::Cancelled);
        if is_ours || failure.kind == FailureKind::Cancelled {
            return;
        }
        let error = LastError {
            at: Moment::from_ms(now.0),
            digest: digest.to_owned(),
            device: device.to_owned(),
            action: report.action.as_str().to_owned(),
            kind: failure.kind.as_str().to_owned(),
            message: failure.detail.clone(),
        };
        self.add(plugin, error);
    }

    /// Notes a remedy that decided nothing.
    pub fn note_remedy(&self, plugin: &str, digest: &str, why: &str, now: Time) {
        let error = LastError {
            at: Moment::from_ms(now.0),
            digest: digest.to_owned(),
            device: String::new(),
            action: "next".to_owned(),
            kind: FailureKind::Other.as_str().to_owned(),
            message: why.to_owned(),
        };
        self.add(plugin, error);
    }

    fn add(&self, plugin: &str, mut error: LastError) {
        for text in [&mut error.device, &mut error.message] {
            *text = text.chars().take(LAST_ERROR_CHARACTERS_MAX).collect();
        }
        let mut kept = self.kept.borrow_mut();
        let of_plugin = kept.entry(plugin.to_owned()).or_default();
        *of_plugin = newest(of_plugin.drain(..).chain([error]));
        if self.unwritten.get().is_none() {
            self.unwritten.set(Some(Instant::now()));
            self.news.notify_one();
        }
    }

    /// Forgets what is said of others than these.
    pub fn keep(&self, plugins: &BTreeSet<&str>) {
        self.kept.borrow_mut().retain(|plugin, _| plugins.contains(plugin.as_str()));
    }

    /// Waits until something is to be written, and it is time to.
    pub async fn are_due(&self) {
        loop {
            match self.unwritten.get() {
                Some(since) => return tokio::time::sleep_until(since + WRITTEN_EVERY).await,
                None => self.news.notified().await,
            }
        }
    }

    /// All that is known now is being written, or another process writes.
    pub fn are_written(&self) {
        self.unwritten.set(None);
    }

    /// What a status that said `before` is to say.
    pub fn beside(&self, plugin: &str, before: &[LastError]) -> Vec<LastError> {
        let ours = self.kept.borrow().get(plugin).cloned().unwrap_or_default();
        newest(before.iter().cloned().chain(ours))
    }
}

/// Of each component, device, action and kind the last one, the newest last. Every device is asked whether it
/// answers: of those that do not one of each kind, or they would leave no room for anything else.
fn newest(errors: impl Iterator<Item = LastError>) -> Vec<LastError> {
    let mut by_place = BTreeMap::new();
    for error in errors {
        let is_probe = error.action == Action::Monitor.as_str();
        let device = if is_probe { String::new() } else { error.device.clone() };
        let place = [error.digest.clone(), device, error.action.clone(), error.kind.clone()];
        let last = by_place.entry(place).or_insert_with(|| error.clone());
        if last.at <= error.at {
            *last = error;
        }
    }
    let mut all: Vec<LastError> = by_place.into_values().collect();
    all.sort_by_key(|error| error.at);
    all.drain(..all.len().saturating_sub(LAST_ERRORS_MAX));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An `off` that was not answered.
    fn at(device: &str, at: u64) -> LastError {
        LastError {
            at: Moment::from_ms(at),
            device: device.to_owned(),
            action: "off".to_owned(),
            kind: "timeout".to_owned(),
            message: "no answer".to_owned(),
            ..LastError::default()
        }
    }

    fn places(errors: &[LastError]) -> Vec<(u64, &str)> {
        errors.iter().map(|one| (one.at.ms, one.device.as_str())).collect()
    }

    #[test]
    fn of_each_device_the_last_error_is_kept_and_so_many_in_all() {
        let errors = LastErrors::default();
        let add = |device: &str, ms| errors.add("door", at(device, ms));
        add("a", 1);
        add("b", 2);
        add("a", 3);
        assert_eq!(places(&errors.beside("door", &[])), [(2, "b"), (3, "a")]);
        assert!(errors.beside("window", &[]).is_empty());
        for number in 0..u64::try_from(LAST_ERRORS_MAX).unwrap() {
            add(&number.to_string(), 10 + number);
        }
        let kept = errors.beside("door", &[]);
        assert_eq!((kept.len(), places(&kept)[0]), (LAST_ERRORS_MAX, (10, "0")));

        let probe = |device: &str, ms| LastError { action: "monitor".to_owned(), ..at(device, ms) };
        for number in 0..100 {
            errors.add("door", probe(&number.to_string(), 100 + number));
        }
        let kept = errors.beside("door", &[]);
        assert_eq!((kept.len(), places(&kept)[7]), (LAST_ERRORS_MAX, (199, "99")));
        assert_eq!(kept.iter().filter(|one| one.action == "off").count(), 7);

        errors.keep(&["window"].into());
        assert!(errors.beside("door", &[]).is_empty());
    }

    #[test]
    fn what_another_process_wrote_stays_until_newer_ones_come() {
        let (before, errors) = (LastErrors::default(), LastErrors::default());
        before.add("door", at("a", 1));
        before.add("door", at("b", 2));
        let written = before.beside("door", &[]);
        errors.add("door", at("a", 3));
        let now = errors.beside("door", &written);
        assert_eq!(places(&now), [(2, "b"), (3, "a")]);
        assert_eq!(errors.beside("door", &now), now, "written twice is written once");
    }

    #[test]
    fn a_message_of_1024_characters_is_kept_whole_and_a_longer_one_is_cut() {
        let errors = LastErrors::default();
        let longest = "ä".repeat(LAST_ERROR_CHARACTERS_MAX);
        errors.note_remedy("door", "sha256:abc", &longest, Time(1));
        assert_eq!(errors.beside("door", &[])[0].message, longest);
        errors.note_remedy("door", "sha256:abc", &format!("{longest}!"), Time(2));
        assert_eq!(errors.beside("door", &[])[0].message, longest);
    }

    #[tokio::test(start_paused = true)]
    async fn they_are_written_at_most_so_often() {
        let errors = LastErrors::default();
        let begin = Instant::now();
        let add = || errors.note_remedy("door", "sha256:abc", "it trapped", Time(1));
        let fails = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                add();
            }
        };
        let writes = async {
            for written in 1..=3 {
                errors.are_due().await;
                errors.are_written();
                assert!(begin.elapsed() >= written * WRITTEN_EVERY);
            }
        };
        tokio::select! {
            () = writes => {}
            () = fails => {}
        }
        assert!(begin.elapsed() <= 3 * WRITTEN_EVERY + Duration::from_secs(3));
    }
}
