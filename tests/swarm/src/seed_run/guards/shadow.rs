//! Nobody acts: every policy says shadow from the start.

use super::{Cast, Guards, drawn};
use crate::seed_run::Draft;
use crate::seed_run::others::Policies;

/// The class.
pub(super) const CLASS: &str = "shadow from the start";
const PERCENT: u64 = 2;

impl Draft {
    pub(super) fn shadow(&mut self, cast: &Cast<'_>, policies: &mut Policies, guards: &mut Guards) {
        if drawn(cast.seed, CLASS, PERCENT).is_none() {
            return;
        }
        policies.text = policies.text.replace("mode: enforce", "mode: shadow");
        guards.for_good = true;
        self.drawn.push(CLASS.to_owned());
    }
}
