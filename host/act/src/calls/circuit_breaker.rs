//! A plugin that breaks down again and again is left alone for a while: at a device where it does, and
//! everywhere once it does at several. What it computes in vain, other plugins wait for; what it leaves open,
//! a device runs out of.
//!
//! Breaking down is the plugin's own doing: it trapped, it was cut at a limit, or it computed until its deadline.
//! A device that refuses, or says nothing, is no breakdown. An `on` is never held back: what is off because of us
//! comes back by a plugin that breaks down, too.

use std::cell::RefCell;
use std::collections::BTreeMap;

use node_remedy_decide::{Span, Time};
use node_remedy_sandbox::{Action, CallReport, Ended};

/// Breakdowns in a row at one device that open its breaker.
const AT_ONE_DEVICE: u32 = 3;
/// Breakdowns in a row at whatever device that open the breaker of the plugin.
const EVERYWHERE: u32 = 9;
/// How long no call is made; then one is.
const RESTS: Span = Span::seconds(60);
/// A row of breakdowns ends where no other one comes for so long: the device may be gone.
const FORGOTTEN_AFTER: Span = Span::minutes(24 * 60);
/// More fuel than this is computing, not waiting.
const COMPUTED_FUEL: u64 = 500_000_000;

/// The breakers of all plugins.
#[derive(Default)]
pub struct Breaker(RefCell<BTreeMap<Key, Broken>>);

/// A plugin by its digest, and a device; none: everywhere.
type Key = (String, Option<String>);

/// What breaks down at present.
#[derive(Default)]
struct Broken {
    in_a_row: u32,
    last_at: Time,
    /// No call before then.
    rests_until: Option<Time>,
}

impl Breaker {
    /// Why this plugin is not called at this device now, if so. Who is let through once it has rested keeps
    /// others waiting until it is known how that went.
    pub(super) fn refuse(
        &self,
        digest: &str,
        device: &str,
        action: Action,
        now: Time,
    ) -> Option<String> {
        if action == Action::On {
            return None;
        }
        let mut broken = self.0.borrow_mut();
        let keys = keys(digest, device);
        for key in &keys {
            let Some(one) = broken.get(key) else { continue };
            if let Some(until) = one.rests_until.filter(|until| now < *until) {
                let seconds = until.since(now).0.div_ceil(1_000);
                let (times, place) = (one.in_a_row, key.1.as_deref().unwrap_or("several devices"));
                return Some(format!(
                    "the plugin {digest} broke down {times} times in a row at {place}; it is called again in \
                     {seconds} s"
                ));
            }
        }
        for key in &keys {
            if let Some(one) = broken.get_mut(key).filter(|one| one.rests_until.is_some()) {
                one.rests_until = Some(now.after(RESTS));
            }
        }
        None
    }

    /// Notes how a call went; one that did not run says nothing of its plugin.
    pub(super) fn note(&self, digest: &str, device: &str, report: &CallReport, now: Time) {
        let Some(is_breakdown) = is_breakdown(report) else { return };
        let mut broken = self.0.borrow_mut();
        broken.retain(|_, one| now < one.last_at.after(FORGOTTEN_AFTER));
        for (key, most) in keys(digest, device).into_iter().zip([AT_ONE_DEVICE, EVERYWHERE]) {
            if !is_breakdown {
                broken.remove(&key);
                continue;
            }
            let one = broken.entry(key).or_default();
            one.in_a_row = one.in_a_row.saturating_add(1);
            one.last_at = now;
            if one.in_a_row >= most {
                one.rests_until = Some(now.after(RESTS));
            }
        }
    }
}

fn keys(digest: &str, device: &str) -> [Key; 2] {
    [(digest.to_owned(), Some(device.to_owned())), (digest.to_owned(), None)]
}

fn is_breakdown(report: &CallReport) -> Option<bool> {
    match report.ended {
        Ended::Trapped | Ended::Cut => Some(true),
        Ended::Deadline => Some(report.fuel > COMPUTED_FUEL),
        Ended::Returned => Some(false),
        Ended::NotStarted | Ended::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_sandbox::transcript::Transcript;
    use node_remedy_sandbox::{Effect, Failure, FailureKind};

    use super::*;

    const DIGEST: &str = "sha256:abc";

    fn ended(ended: Ended, fuel: u64) -> CallReport {
        CallReport {
            action: Action::Status,
            result: Err(Failure {
                kind: FailureKind::Other,
                retryable: false,
                retry_after: None,
                device_code: None,
                detail: "it broke down".to_owned(),
                extra: Vec::new(),
            }),
            plugs: Vec::new(),
            effect: Effect::NotBegun,
            ended,
            lied: false,
            checkpoint: None,
            exchanges: Vec::new(),
            exchanges_dropped: 0,
            transcript: Transcript::default(),
            log: Vec::new(),
            log_dropped: 0,
            elapsed_ms: 1,
            fuel,
        }
    }

    fn trapped() -> CallReport {
        ended(Ended::Trapped, 1)
    }

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000)
    }

    #[test]
    fn a_plugin_that_breaks_down_at_a_device_rests_there_and_works_elsewhere() {
        let breaker = Breaker::default();
        for second in 0..2 {
            breaker.note(DIGEST, "a", &trapped(), at(second));
        }
        assert_eq!(breaker.refuse(DIGEST, "a", Action::Status, at(2)), None);
        breaker.note(DIGEST, "a", &trapped(), at(2));
        let says =
            "the plugin sha256:abc broke down 3 times in a row at a; it is called again in 50 s";
        assert_eq!(breaker.refuse(DIGEST, "a", Action::Status, at(12)).as_deref(), Some(says));
        assert_eq!(breaker.refuse(DIGEST, "b", Action::Status, at(12)), None);
        assert_eq!(breaker.refuse("sha256:another", "a", Action::Status, at(12)), None);

        // What was switched off is switched on, whatever happened before.
        assert_eq!(breaker.refuse(DIGEST, "a", Action::On, at(12)), None);
        assert!(breaker.refuse(DIGEST, "a", Action::Off, at(12)).is_some());

        // One is let through, and how it goes decides about the others.
        assert_eq!(breaker.refuse(DIGEST, "a", Action::Status, at(62)), None);
        assert!(breaker.refuse(DIGEST, "a", Action::Status, at(63)).is_some());
        breaker.note(DIGEST, "a", &trapped(), at(64));
        assert!(breaker.refuse(DIGEST, "a", Action::Status, at(123)).is_some());
        assert_eq!(breaker.refuse(DIGEST, "a", Action::Status, at(124)), None);
        breaker.note(DIGEST, "a", &ended(Ended::Returned, 1), at(125));
        assert_eq!(breaker.refuse(DIGEST, "a", Action::Status, at(126)), None);
        breaker.note(DIGEST, "a", &trapped(), at(127));
        assert_eq!(breaker.refuse(DIGEST, "a", Action::Status, at(128)), None, "it counts anew");
    }

    #[test]
    fn a_plugin_that_breaks_down_everywhere_rests_everywhere() {
        let breaker = Breaker::default();
        for device in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            breaker.note(DIGEST, device, &trapped(), at(0));
        }
        assert_eq!(breaker.refuse(DIGEST, "i", Action::Status, at(1)), None);
        breaker.note(DIGEST, "i", &trapped(), at(1));
        let refused = breaker.refuse(DIGEST, "j", Action::Status, at(2)).unwrap();
        assert!(refused.contains("9 times in a row at several devices"), "{refused}");
        assert_eq!(breaker.refuse(DIGEST, "j", Action::Status, at(61)), None);
        breaker.note(DIGEST, "j", &ended(Ended::Returned, 1), at(62));
        assert_eq!(breaker.refuse(DIGEST, "k", Action::Status, at(62)), None);
    }

    #[test]
    fn a_call_that_did_not_run_closes_no_breaker() {
        let breaker = Breaker::default();
        let none = || ended(Ended::NotStarted, 0);
        for report in [trapped(), none(), trapped(), ended(Ended::Cancelled, 9), trapped()] {
            breaker.note(DIGEST, "a", &report, at(0));
        }
        assert!(breaker.refuse(DIGEST, "a", Action::Status, at(1)).is_some());
        // Who is let through and does not run has not shown anything.
        assert_eq!(breaker.refuse(DIGEST, "a", Action::Status, at(61)), None);
        breaker.note(DIGEST, "a", &none(), at(62));
        assert!(breaker.refuse(DIGEST, "a", Action::Status, at(63)).is_some());
        assert_eq!(breaker.refuse(DIGEST, "a", Action::Status, at(121)), None);
    }

    #[test]
    fn what_broke_down_long_ago_is_forgotten() {
        let breaker = Breaker::default();
        for device in ["gone", "gone", "a", "a"] {
            breaker.note(DIGEST, device, &trapped(), at(0));
        }
        let a_day_later = Time(0).after(FORGOTTEN_AFTER);
        breaker.note(DIGEST, "a", &trapped(), a_day_later);
        assert_eq!(breaker.refuse(DIGEST, "a", Action::Status, a_day_later), None);
        let known: Vec<_> = breaker.0.borrow().keys().filter_map(|key| key.1.clone()).collect();
        assert_eq!(known, ["a"]);
    }

    #[test]
    fn a_device_that_says_nothing_is_no_breakdown() {
        let breaker = Breaker::default();
        let silent = ended(Ended::Deadline, 100_000);
        let spinning = ended(Ended::Deadline, COMPUTED_FUEL + 1);
        for (report, opens) in [(silent, false), (spinning, true)] {
            for _ in 0..3 {
                breaker.note(DIGEST, "a", &report, at(0));
            }
            assert_eq!(
                breaker.refuse(DIGEST, "a", Action::Status, at(1)).is_some(),
                opens,
                "{report:?}"
            );
        }
    }
}
