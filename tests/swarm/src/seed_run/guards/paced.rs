//! Several pods on every node, and policies that release so many a minute.

use super::{Cast, Guards, drawn};
use crate::seed_run::Draft;
use crate::seed_run::others::Policies;

/// The class.
pub(super) const CLASS: &str = "paced release";
const PERCENT: u64 = 3;

impl Draft {
    pub(super) fn paced(&mut self, cast: &Cast<'_>, policies: &mut Policies, guards: &mut Guards) {
        let Some(mut rng) = drawn(cast.seed, CLASS, PERCENT) else { return };
        let pace = rng.within(2, 20);
        let paced = format!("releaseMode: paced, podsPerMinute: {pace}");
        for text in [&mut policies.text, &mut self.faults] {
            *text = text.replace("releaseMode: prompt", &paced);
        }
        for unpaced in policies.paces.iter_mut().filter(|pace| pace.is_none()) {
            *unpaced = Some(pace);
        }
        guards.replicas = Some(cast.names.len() as u64 * 2);
        self.drawn.push(CLASS.to_owned());
    }
}
