//! A node's machine: its power, its boots, the containers that run on it, and its kubelet.
//!
//! ```text
//!   power on ──▶ boots (new boot id, at least 5 s) ──▶ old pods start ──▶ kubelet syncs ──▶ runs
//!      ▲                                                                                    │
//!      └───────────────────────────── power off: everything stops ◀─────────────────────────┘
//! ```
//! Containers belong to the machine, not to the kubelet: they write on when the kubelet dies. Only
//! power, read from the BMC's file, ends them for sure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;

use crate::hardware::{Hardware, Plan};
use crate::ipmi::Power;
use crate::kubelet;
use crate::storage::Storage;
use crate::time::{Clock, Task};

/// A machine; dropped, it vanishes without a trace in the cluster's state.
pub struct Machine {
    hardware: Arc<Hardware>,
    _power: Task,
}

impl Machine {
    /// A machine that is up already and joins the cluster as a node.
    #[must_use]
    pub fn start(plan: Plan, client: Client, storage: Storage, clock: Clock) -> Self {
        let (kubelet_is_wanted, _) = watch::channel(true);
        let state = Mutex::default();
        let hardware =
            Arc::new(Hardware { plan, client, storage, clock, state, kubelet_is_wanted });
        let power = Task::spawn(run(hardware.clone()));
        Self { hardware, _power: power }
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.hardware.plan.name
    }

    /// The id of the boot that runs, if power is on.
    #[must_use]
    pub fn boot_id(&self) -> Option<String> {
        self.hardware.state().boot_id.clone()
    }

    /// The kubelet dies (or the network does); the machine and its containers run on. A reboot
    /// starts it again.
    pub fn stop_kubelet(&self) {
        self.hardware.kubelet_is_wanted.send_replace(false);
    }

    /// The kubelet comes back in the same boot.
    pub fn start_kubelet(&self) {
        self.hardware.kubelet_is_wanted.send_replace(true);
    }
}

async fn run(hardware: Arc<Hardware>) {
    let mut is_up_already = true;
    loop {
        hardware.power_is(Power::On).await;
        let boot_id = hardware.begin_boot();
        let boot_time = if is_up_already { Duration::ZERO } else { hardware.plan.pace.boot };
        is_up_already = false;
        tokio::select! {
            () = hardware.power_is(Power::Off) => {}
            () = live_through_boot(&hardware, &boot_id, boot_time) => {}
        }
        hardware.lose_power();
    }
}

async fn live_through_boot(hardware: &Hardware, boot_id: &str, boot_time: Duration) {
    tokio::time::sleep(boot_time).await;
    hardware.start_remembered();
    let mut wanted = hardware.kubelet_is_wanted.subscribe();
    if !boot_time.is_zero() {
        tokio::time::sleep(hardware.plan.pace.first_sync).await;
    }
    loop {
        // The sender lives in `hardware`, so waiting ends only with a change.
        let _ = wanted.wait_for(|wanted| *wanted).await;
        tokio::select! {
            () = kubelet::run(hardware, boot_id) => {}
            _ = wanted.wait_for(|wanted| !*wanted) => {}
        }
    }
}
