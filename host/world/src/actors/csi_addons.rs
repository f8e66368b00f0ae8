//! csi-addons' controller of NetworkFences, and the storage behind it.
//!
//! Read from `internal/controller/csiaddons/networkfence_controller.go` of kubernetes-csi-addons v0.13.0: it
//! answers each generation once, keeps an older answer standing until then, and lets a deleted object go
//! without unfencing anything. What is fenced writes nothing, and goes on writing when it is let back.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::api::object::{Key, is_terminating, list, name, text};
use crate::api::{Kind, Part};
use crate::stage::Stage;
use crate::time::{Time, after};
use crate::timings::Answer::{Failed, Never, Succeeded};

const NAME: &str = "csi-addons";
const FINALIZER: &str = "csiaddons.openshift.io/network-fence";

/// The controller: what it is at, and what it answered.
#[derive(Debug, Default)]
pub(crate) struct CsiAddons {
    /// By name: the generation, and when it is answered.
    work: BTreeMap<String, (u64, Time)>,
    /// By name: the last generation that was answered.
    answered: BTreeMap<String, u64>,
    /// By name: the machines that it keeps away. The storage knows them, whether they have a Node or not.
    kept_away: BTreeMap<String, BTreeSet<String>>,
    /// By name: the pool of storage that it is about.
    pools: BTreeMap<String, String>,
    /// By address: its machine, whether it has a Node or not.
    machines: BTreeMap<String, String>,
}

impl CsiAddons {
    /// One turn; says when the next answer is due.
    pub(crate) fn run(&mut self, stage: &mut Stage<'_>) -> Option<Time> {
        if stage.timings.csi_addons == Never {
            return None;
        }
        let all: Vec<Value> = stage.api.all(Kind::NetworkFence).cloned().collect();
        if !all.is_empty() {
            self.note_addresses(stage);
        }
        let is_there = |wanted: &String| all.iter().any(|fence| name(fence) == wanted);
        self.work.retain(|fence, _| is_there(fence));
        self.answered.retain(|fence, _| is_there(fence));
        for fence in &all {
            let own = name(fence).to_owned();
            if is_terminating(fence) {
                self.work.remove(&own);
                write(stage, &own, &json!({ "metadata": { "finalizers": null } }), Part::Main);
                continue;
            }
            let generation = fence.pointer("/metadata/generation").and_then(Value::as_u64);
            let generation = generation.unwrap_or_default();
            if self.answered.get(&own) == Some(&generation) {
                continue;
            }
            let begun = (generation, after(stage.now, stage.timings.network_fence));
            let (of, due) = *self.work.entry(own.clone()).or_insert(begun);
            if of != generation {
                self.work.insert(own, begun);
            } else if due <= stage.now {
                self.work.remove(&own);
                self.answered.insert(own, generation);
                self.answer(stage, fence);
            }
        }
        self.work.values().map(|(_, due)| *due).min()
    }

    fn note_addresses(&mut self, stage: &Stage<'_>) {
        for node in stage.api.all(Kind::Node) {
            for address in list(node, "/status/addresses") {
                let address = text(address, "/address").to_owned();
                self.machines.insert(address, name(node).to_owned());
            }
        }
    }

    fn answer(&mut self, stage: &mut Stage<'_>, fence: &Value) {
        let own = name(fence);
        let is_fenced = text(fence, "/spec/fenceState") == "Fenced";
        write(stage, own, &json!({ "metadata": { "finalizers": [FINALIZER] } }), Part::Main);
        let (result, message) = match (stage.timings.csi_addons, is_fenced) {
            (Succeeded, true) => ("Succeeded", "fencing operation successful"),
            (Succeeded, false) => ("Succeeded", "unfencing operation successful"),
            (Failed | Never, _) => ("Failed", "the driver does not answer"),
        };
        if result == "Succeeded" {
            self.pools.insert(own.to_owned(), text(fence, "/spec/parameters/pool").to_owned());
            let kept_away = self.kept_away.entry(own.to_owned()).or_default();
            kept_away.extend(meant(fence, &self.machines));
            if is_fenced {
                for node in kept_away.clone() {
                    if self.is_kept_from_all(&stage.timings.storage_pools, &node) {
                        stage.writers.cut(stage.facts, stage.now, &node);
                    }
                }
            } else {
                for node in std::mem::take(kept_away) {
                    stage.writers.restore(stage.facts, stage.now, &node);
                }
            }
        }
        let status = json!({ "status": { "result": result, "message": message } });
        write(stage, own, &status, Part::Status);
    }

    /// Whether a machine reaches none of these pools any more.
    fn is_kept_from_all(&self, pools: &[String], node: &str) -> bool {
        let keeps_away = |fence: &String| {
            self.kept_away.get(fence).is_some_and(|machines| machines.contains(node))
        };
        let is_kept_from =
            |pool: &String| self.pools.iter().any(|(fence, its)| its == pool && keeps_away(fence));
        pools.iter().all(is_kept_from)
    }
}

/// The machines of which an address is fenced; only single addresses are modelled.
fn meant(fence: &Value, machines: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    let cidrs = list(fence, "/spec/cidrs").iter().filter_map(Value::as_str);
    let addresses = cidrs.filter_map(|cidr| cidr.strip_suffix("/32"));
    addresses.filter_map(|address| machines.get(address).cloned())
}

fn write(stage: &mut Stage<'_>, fence: &str, patch: &Value, part: Part) {
    let key = Key::cluster(Kind::NetworkFence, fence);
    // What is gone by now comes up no more.
    drop(stage.api.client(NAME).merge_patch(&key, patch, part));
}
