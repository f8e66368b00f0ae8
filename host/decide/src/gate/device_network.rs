//! The detector's own way to the devices: where it asks several and none answers, its own network to
//! them is more likely lost than all of them. Nothing is said here of a single device: a run finds out
//! itself, and waits for it.

use alloc::string::String;

use super::{Refusal, Verdict};
use crate::Time;

/// One device that says nothing is a device; from so many on it is the network to them.
const DEVICES_MIN: u32 = 2;

/// Which devices answered this process when it last asked them; none where nobody asked, or where the
/// target's run is open already.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DeviceNetwork {
    /// Devices that answered a short while ago.
    pub answering: u32,
    /// Devices that did not answer when they were last asked.
    pub silent: u32,
    /// Since when none of those answers.
    pub silent_since: Time,
    /// One of those, and why it did not answer.
    pub example: String,
}

impl DeviceNetwork {
    /// Whether several devices were asked and none answered.
    pub fn is_lost(&self) -> bool {
        self.answering == 0 && self.silent >= DEVICES_MIN
    }
}

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
