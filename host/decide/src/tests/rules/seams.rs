//! The seams between the rules: what happens when one policy changes its mind while another one is at
//! work. Neither a rule by itself nor the devices' faults.

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::vec;

use super::{cutting_plan, story};
use crate::tests::fixtures::{bmc_plan, failed, paused_by_alice};
use crate::tests::story::{Story, honest};
use crate::*;

fn refusals() -> [Refusal; 4] {
    [
        Refusal::StorageLeaseUnread { why: "leases is forbidden".to_string() },
        Refusal::HeldByOther { holder: "node-healthcheck".to_string() },
        Refusal::NoDomain { key: "rack".to_string() },
        paused_by_alice(),
    ]
}

fn goes(story: &mut Story, steps: usize) {
    for _ in 0..steps {
        story.go();
    }
}

/// What keeps this one node from being cut keeps no other one: its run waits without the slot, and
/// takes one again.
#[test]
fn a_run_that_is_kept_from_its_first_cut_keeps_no_other_node_waiting() {
    for refusal in refusals() {
        let mut kept = story();
        kept.view.gate.refusals.push(refusal.clone());
        goes(&mut kept, 5);
        assert_eq!(
            (kept.record.phase, kept.record.slot),
            (Phase::Waiting, Slot::Free),
            "{refusal}"
        );
        kept.view.gate.refusals.clear();
        kept.until_call(Action::Off);
        assert_eq!(kept.record.slot, Slot::Held);
    }
    let mut unclear = story();
    unclear.view.trigger = Crossing::Unclear;
    goes(&mut unclear, 5);
    assert_eq!(unclear.record.slot, Slot::Free);

    let mut own = story();
    own.view.hosts_us = true;
    goes(&mut own, 5);
    assert_eq!(own.record.slot, Slot::Free);
}

/// Reading a machine's identity takes seconds; a pause that comes meanwhile is heeded before the off.
#[test]
fn a_pause_that_comes_while_identity_is_read_waits_without_a_slot() {
    for plan in [bmc_plan(), cutting_plan(Kind::Fabric(Path::Other))] {
        for action in [Action::Status, Action::Off] {
            let mut kept = Story::new(plan.clone(), RunPolicy::default());
            kept.until_call(action);
            kept.device =
                Box::new(|_, _| crate::tests::fixtures::not_attempted(FailureKind::Cancelled));
            kept.view.gate.refusals.push(paused_by_alice());
            kept.go();
            kept.device = Box::new(honest);
            goes(&mut kept, 20);
            let phase = kept.record.phase;
            assert_eq!((kept.record.slot, kept.plugs[0]), (Slot::Free, PlugState::On), "{phase:?}");
        }
    }
}
