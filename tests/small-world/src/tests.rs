//! The test of the test: each guard that is left out is found, as the line that it breaks; and with
//! all of them in place, everything that can come of a few faults is met and holds.
//!
//! These search hundreds of thousands of worlds: `cargo xtask test exhaustive` runs them optimised.

use crate::bug::Bug;
use crate::invariants::Line;
use crate::search::{Found, search};
use crate::world::Setting;

const STATES_MAX: usize = 5_000_000;

fn found(setting: Setting) -> Found {
    search(&setting, STATES_MAX).unwrap()
}

/// With one fault fewer the bug does not show; with these it does, as this line.
fn is_found(bug: Bug, faults: u8, line: Line) {
    let setting = Setting { bug: Some(bug), faults, ..Setting::default() };
    let (broken, way) = found(setting).broken.unwrap();
    assert_eq!(broken.line, line, "{broken} after {way:?}");
    if let Some(faults) = faults.checked_sub(1) {
        let without = found(Setting { faults, ..setting });
        assert_eq!(without.broken, None, "fewer faults suffice");
    }
}

macro_rules! bugs {
    ($($name:ident: $bug:ident, $faults:literal, $line:ident;)+) => {
        $(#[test] fn $name() { is_found(Bug::$bug, $faults, Line::$line); })+

        #[test]
        fn every_bug_has_a_test() {
            assert_eq!(Bug::ALL, [$(Bug::$bug),+]);
        }
    };
}

bugs! {
    bug_no_compare_and_swap: NoCompareAndSwap, 1, S4;
    bug_goes_on_after_conflict: GoesOnAfterConflict, 1, S4;
    bug_no_lease_gate: NoLeaseGate, 1, S4;
    bug_early_take_over: EarlyTakeOver, 0, S4;
    bug_acts_before_recording: ActsBeforeRecording, 0, S5;
    bug_forgets_foreign_calls: ForgetsForeignCalls, 1, S5;
    bug_leaves_foreign_records: LeavesForeignRecords, 1, L1;
    bug_takes_up_newer_records: TakesUpNewerRecords, 1, S4;
    bug_forgets_restarts: ForgetsRestarts, 3, L5;
    bug_resumes_own_calls: ResumesOwnCalls, 2, L1;
    bug_no_verifying_read: NoVerifyingRead, 0, S1;
    bug_trusts_cache: TrustsCache, 2, S10;
    bug_no_age_limit: NoAgeLimit, 1, S10;
    bug_silence_is_no: SilenceIsNo, 1, S5;
    bug_later_than_told: LaterThanTold, 1, S6;
    bug_assumes_quarantine: AssumesQuarantine, 1, S9;
    bug_lifts_both_taints: LiftsBothTaints, 0, S9;
}

#[test]
fn two_faults_break_nothing_and_lead_everywhere() {
    let found = found(Setting { faults: 2, ..Setting::default() });
    assert_eq!(found.broken, None);
    let phases: Vec<&str> = found.phases.keys().map(String::as_str).collect();
    for phase in [
        "AwaitingDevice",
        "AwaitingHealthy",
        "Backoff",
        "Final(Recovered)",
        "Final(RecoveredByHand)",
        "Final(Remedied)",
        "Parked",
        "PoweringOff",
        "PoweringOn",
        "ReadingIdentity",
        "Recovering",
        "Releasing",
        "Untainting",
        "VerifyingOff",
        "Waiting",
    ] {
        assert!(phases.contains(&phase), "{phase} is not among {phases:?}");
    }
}

#[test]
fn what_is_left_out_as_held_in_vain_breaks_nothing_if_it_is_kept() {
    let setting = Setting { faults: 1, ..Setting::default() };
    let kept = found(Setting { keeps_vain: true, ..setting });
    assert_eq!(kept.broken, None);
    assert!(kept.states > found(setting).states, "nothing was held in vain");
}
