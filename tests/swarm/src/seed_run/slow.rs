//! Incidents that take their time: devices that are slow, offs that come late, pods that do not go.

use super::{ANOTHER_LOST, Draft};

impl Draft {
    /// An incident that takes its time, because its BMC does, so that much can happen in it: the
    /// node comes back, another is lost, what the cluster tells comes late.
    pub(super) fn slow_incident(&mut self, names: &[String], lost: &[String]) {
        let Some(node) = lost.first().filter(|_| self.chance(20)) else { return };
        let (fault, value) = match self.rng.below(3) {
            0 => ("silent", 1),
            1 => ("delay", self.rng.within(200, 2_000)),
            _ => (self.machines.lets_nobody_in(), 1),
        };
        let (begins, class) = self.fault(node, fault, value);
        let at = self.rng.below(50_000);
        self.happens(at, &begins, &class);
        let then = |draft: &mut Self, percent: u64, low: u64, high: u64, what: &str| {
            if draft.chance(percent) {
                let after = draft.rng.within(low, high);
                let fields = "step: Power-Management, state: Running";
                draft.blow(node, "fenceState", fields, after, what);
            }
        };
        let (over, _) = self.fault(node, fault, 0);
        then(self, 100, 4_000, 40_000, &over);
        then(self, 50, 100, 30_000, &format!("nodeComesBack: {node}"));
        let other = names.iter().find(|name| *name != node).unwrap_or(node);
        then(self, 30, 10, 8_000, &format!("kubeletStops: {other}"));
        let bad_way = self.bad_way(8_000);
        then(self, 40, 0, 20_000, &bad_way);
        let lags = "apiFault: { fault: watchesLag, takes: 4s, lasts: 60s }";
        then(self, 30, 0, 2_000, lags);
        self.drawn.push(ANOTHER_LOST.to_owned());
    }

    /// An off that comes late, and that nobody hears the end of.
    pub(super) fn late_off(&mut self, lost: &[String]) {
        let Some(node) = lost.first().filter(|_| self.chance(8)) else { return };
        let (at, value) = (self.rng.below(50_000), self.rng.within(3_000, 28_000));
        let (fault, value) = self.machines.late_off(value);
        let (begins, class) = self.fault(node, fault, value);
        self.happens(at, &begins, &class);
        let (after, lasts) = (self.rng.below(10), self.rng.within(100, 5_000));
        let killed = format!("controllerKilled: {{ lasts: {lasts}ms }}");
        self.blow(node, self.machines.said_yes(), "command: \"off\"", after, &killed);
        self.drawn.push("leader killed".to_owned());
    }

    /// Somebody's finalizer keeps pods from going for a while; meanwhile the machine may be
    /// switched on.
    pub(super) fn held_pods(&mut self, replicas: u64, lost: &[String]) {
        let Some(node) = lost.first().filter(|_| self.chance(15)) else { return };
        let (fact, fields) = ("proofRecorded", "grade: power-off-verified");
        for ordinal in 0..replicas {
            let at = self.rng.within(10_000, 55_000);
            self.happens(at, &format!("holdPod: default/db-{ordinal}"), "pod held");
            let after = self.rng.within(10_000, 100_000);
            self.blow(node, fact, fields, after, &format!("letPodGo: default/db-{ordinal}"));
        }
        if self.chance(60) {
            let after = self.rng.within(100, 30_000);
            self.blow(node, fact, fields, after, &format!("powerOnByHand: {node}"));
            self.drawn.push("switched on meanwhile".to_owned());
        }
        if self.chance(40) {
            let (at, value) = (self.rng.below(50_000), self.rng.within(30_000, 90_000));
            let (begins, class) = self.fault(node, "stale", value);
            self.happens(at, &begins, &class);
        }
    }
}
