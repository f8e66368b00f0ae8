//! Guards that only some policies set, each drawn from a seed of its own, so that other runs stay as they
//! were.

mod breaker;
mod control_plane;
mod headroom;
mod jobs;
mod left_alone;
mod paced;
mod shadow;
mod storage;
mod zones;

use std::collections::BTreeMap;

use node_remedy_world::rng::Rng;

use super::Draft;
use super::others::Policies;
use crate::guards::Guards as Told;

/// Every class that is drawn here.
pub(super) const CLASSES: [&str; 10] = [
    control_plane::CLASS,
    zones::CLASS,
    left_alone::CLASS,
    storage::CLASS,
    headroom::CLASS,
    breaker::CLASS,
    shadow::CLASS,
    jobs::ILL,
    jobs::DELETED,
    paced::CLASS,
];

/// What keeps a process from seeing what is there.
const DISTURB: [&str; 3] = ["controllerKilled", "controllerPaused", "apiFault"];
/// The classes of that.
const DISTURBANCES: [&str; 4] = ["controller", "leader ", "api ", "a bad way"];

/// What the guards of a run add to it.
#[derive(Debug, Default)]
pub(super) struct Guards {
    /// More labels of nodes, as they are written after others.
    labels: BTreeMap<String, String>,
    /// More objects.
    pub(super) objects: String,
    /// How many pods the StatefulSet has, where a guard is about them.
    pub(super) replicas: Option<u64>,
    /// A lost node may be held back for good.
    pub(super) for_good: bool,
    /// Somebody is ill though its kubelet lives.
    has_ill: bool,
    /// Who that is, where a guard's run says so.
    pub(super) ill: Option<String>,
    /// For the judges.
    pub(super) told: Told,
}

impl Guards {
    /// How many nodes there are, where a guard is about many.
    pub(super) fn nodes(seed: u64) -> Option<u64> {
        let is_drawn = control_plane::is_drawn(seed) || zones::is_drawn(seed);
        is_drawn.then(|| Rng::named(seed, "nodes of guards").within(7, 9))
    }

    /// The labels of a node beside those of every run.
    pub(super) fn labels(&self, node: &str) -> &str {
        self.labels.get(node).map_or("", String::as_str)
    }
}

/// Who is lost, of whom, under which policies.
struct Cast<'a> {
    seed: u64,
    names: &'a [String],
    lost: &'a [String],
}

impl Draft {
    /// The guards of the run.
    pub(super) fn guards(
        &mut self,
        seed: u64,
        policies: &mut Policies,
        names: &[String],
        lost: &[String],
        ill: Option<&String>,
    ) -> Guards {
        let cast = Cast { seed, names, lost };
        let mut guards = Guards { has_ill: ill.is_some(), ..Guards::default() };
        self.control_plane(&cast, &mut guards);
        self.zones(&cast, policies, &mut guards);
        self.left_alone(&cast, &mut guards);
        self.storage(&cast, policies, &mut guards);
        self.headroom(&cast, policies, &mut guards);
        self.breaker(&cast, policies, &mut guards);
        self.shadow(&cast, policies, &mut guards);
        self.paced(&cast, policies, &mut guards);
        self.jobs(&cast, policies, &mut guards);
        guards.told.undisturbed = !DISTURB.iter().any(|what| self.faults.contains(what));
        guards.told.available_min =
            policies.available_min.and_then(|least| usize::try_from(least).ok());
        let paces = names.iter().zip(policies.paces.iter().cycle());
        let paces = paces.filter_map(|(node, pace)| Some((node.clone(), (*pace)?)));
        guards.told.pods_per_minute = paces.collect();
        guards
    }

    /// No process dies or stands still, and each is answered.
    fn leave_undisturbed(&mut self) {
        let disturbs = |line: &&str| DISTURB.iter().any(|what| line.contains(what));
        let kept = self.faults.lines().filter(|line| !disturbs(line));
        self.faults = kept.flat_map(|line| [line, "\n"]).collect();
        let is_one = |class: &String| DISTURBANCES.iter().any(|what| class.starts_with(what));
        self.drawn.retain(|class| !is_one(class));
    }

    /// Every policy says this, too, also where somebody takes it away meanwhile and brings it back.
    fn limit(&mut self, policies: &mut Policies, says: &str) {
        for text in [&mut policies.text, &mut self.faults] {
            *text = text.replace("policies: { ", &format!("policies: {{ {says}, "));
        }
    }
}

/// Whether a class is drawn in the run of a seed, and what it draws from then.
fn drawn(seed: u64, class: &str, percent: u64) -> Option<Rng> {
    let mut rng = Rng::named(seed, class);
    (rng.below(100) < percent).then_some(rng)
}
