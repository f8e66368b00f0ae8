//! The detector's own way to the devices: where it asks several and none answers, its own network to
//! them is more likely lost than all of them. Nothing is said here of a single device: an incident finds out
//! itself, and waits for it.

use crate::Time;
use crate::gate::refusal::{Refusal, Verdict};
use crate::gate::view::DeviceNetwork;

/// Refuses while no device answers.
pub(super) fn refuse_device_network(network: &DeviceNetwork, now: Time, verdict: &mut Verdict) {
    if network.is_lost() {
        verdict.refusals.push(Refusal::DeviceNetworkLost {
            devices: network.silent,
            silent: now.since(network.silent_since),
            example: network.example.clone(),
        });
    }
}
