//! Ladders: now and then a Job has its turn before the fence.

use node_remedy_world::rng::Rng;

use super::Policies;
use crate::night::Draft;

/// The class of fault.
pub(super) const REPAIR: &str = "repair first";

/// What a policy says without a ladder.
const FENCE: &str = "remedy1: [{ name: fence }]";

impl Draft {
    /// A Job before the fence. One that should take the machine out of service always fails here: its
    /// success would be a person's word that is not true.
    pub(in crate::night) fn repairs(&mut self, seed: u64, policies: &mut Policies) {
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
        let remedies = format!(
            "remedyConfigs: [{{ name: repair, deadline: {deadline}s, podTemplate: {{ \
             metadata: {{ annotations: {{ simulate.node-remedy.io/takes: {takes}s, \
             simulate.node-remedy.io/ends: {ends} }} }}, \
             spec: {{ containers: [{{ name: repair, image: repair }}] }} }} }}], policies: {{ "
        );
        for text in [&mut policies.text, &mut policies.spec] {
            *text = text.replace(FENCE, &ladder).replace("policies: { ", &remedies);
        }
        self.drawn.push(REPAIR.to_owned());
    }
}
