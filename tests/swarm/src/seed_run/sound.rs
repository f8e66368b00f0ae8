//! What nothing hits in a run.

use std::collections::BTreeSet;

use super::Draft;

impl Draft {
    /// Nodes whose BMC, or cloud, no fault hits, where every process lives all through the run.
    pub(super) fn sound_bmcs(&self, names: &[String]) -> BTreeSet<String> {
        let text = &self.faults;
        let apply_to_it = ["controllerKilled", "controllerPaused", "devicesLost"];
        if apply_to_it.iter().any(|what| text.contains(what)) {
            return BTreeSet::new();
        }
        let is_sound = |name: &&String| {
            let of_it = format!("Fault: {{ node: {name},");
            !text.lines().any(|line| line.contains(&of_it) && !line.contains("fault: none"))
        };
        names.iter().filter(is_sound).cloned().collect()
    }

    /// Whether nothing is wrong but with machines, their BMCs, and what runs there.
    pub(super) fn is_sound(&self) -> bool {
        let of_others = ["apiFault", "clockFault", "serverClock", "etcd", "controller"];
        !of_others.iter().any(|what| self.faults.contains(what))
    }
}
