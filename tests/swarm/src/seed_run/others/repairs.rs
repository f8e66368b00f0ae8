//! Ladders: now and then a Job, or one method alone, has its turn before the fence.

use node_remedy_world::rng::Rng;

use super::{Policies, in_place};
use crate::seed_run::{Draft, FENCE as IPMI, Machines};

/// The class of fault.
pub(in crate::seed_run) const REPAIR: &str = "repair first";

/// The class of fault.
pub(in crate::seed_run) const ONE_METHOD: &str = "one method first";

/// A method that no stage names.
const RESET: &str = "  - name: reset
    template: bmc
    action: reset
";

/// What a policy says without a ladder.
const FENCE: &str = "remedy1: [{ name: fence }]";

impl Policies {
    /// A machine has no longer than that, in seconds, to be well.
    fn recover_within(&mut self, most_s: u64) {
        for text in [&mut self.text, &mut self.spec] {
            let mut parts = text.split("recoverTimeout: ");
            let before = parts.next().unwrap_or_default().to_owned();
            *text = parts.fold(before, |text, part| {
                let (seconds, rest) = part.split_once('s').unwrap_or((part, ""));
                let seconds = seconds.parse().unwrap_or(most_s).min(most_s);
                format!("{text}recoverTimeout: {seconds}s{rest}")
            });
        }
    }

    /// The fence has its turn after something else.
    fn climb(&mut self, ladder: &str) {
        for text in [&mut self.text, &mut self.spec] {
            *text = text.replace(FENCE, ladder);
        }
    }
}

impl Draft {
    /// A Job before the fence. One that should take the machine out of service always fails here: its
    /// success would be a person's word that is not true.
    pub(in crate::seed_run) fn repairs(&mut self, seed: u64, policies: &mut Policies) {
        let mut rng = Rng::named(seed, REPAIR);
        if rng.below(100) >= 10 {
            return;
        }
        let (takes, period) = (rng.within(2, 60), rng.within(5, 60));
        let cleans = rng.below(100) < 40;
        let ends = if cleans || rng.below(100) < 50 { "failed" } else { "succeeded" };
        let clean = if cleans { ", { clean-resource: true }" } else { "" };
        let deadline = if rng.below(100) < 20 { takes.div_ceil(2) } else { 120 };
        let ladder = format!(
            "remedy1: [{{ name: repair }}, {{ period: {period}s }}{clean}], remedy2: [{{ name: fence }}]"
        );
        let remedy = format!(
            "{{ name: repair, deadline: {deadline}s, podTemplate: {{ \
             metadata: {{ annotations: {{ simulate.node-remedy.io/takes: {takes}s, \
             simulate.node-remedy.io/ends: {ends} }} }}, \
             spec: {{ containers: [{{ name: repair, image: repair }}] }} }} }}"
        );
        policies.climb(&ladder);
        policies.define(&remedy);
        self.drawn.push(REPAIR.to_owned());
    }
    /// One method before the fence: the one that the fence has itself, or a reset that only the remedy
    /// names. Answers the run's fence configuration.
    pub(in crate::seed_run) fn one_method(
        &mut self,
        seed: u64,
        policies: &mut Policies,
        fence: String,
    ) -> String {
        let mut rng = Rng::named(seed, ONE_METHOD);
        let is_plain = self.machines == Machines::Bmcs && self.rack.configuration().is_empty();
        if rng.below(100) >= 10 || !is_plain || !policies.text.contains(FENCE) {
            return fence;
        }
        let period = rng.within(5, 60);
        // Whoever puts the configuration back knows of no reset.
        let resets = rng.below(100) < 60 && !self.drawn.iter().any(|one| one == "edit fence gone");
        let method = if resets { "reset" } else { "power" };
        let ladder = format!(
            "remedy1: [{{ name: gently }}, {{ period: {period}s }}], remedy2: [{{ name: fence }}]"
        );
        policies.climb(&ladder);
        policies.define(&format!("{{ name: gently, method: {method} }}"));
        // Twice the time for a boot, and the run goes on after it.
        policies.recover_within(rng.within(100, 300));
        policies.cycles_max = policies.cycles_max.saturating_mul(2);
        self.drawn.push(ONE_METHOD.to_owned());
        if resets {
            in_place(&fence, IPMI, "  isolation:\n", &format!("{RESET}  isolation:\n"))
        } else {
            fence
        }
    }
}
