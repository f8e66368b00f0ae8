//! Processes of node-remedy as a scenario has them: killed at whatever they wait for, standing
//! still, started again.

use std::future::Future;

use node_remedy_world::Scenario;
use node_remedy_world::scenario::{ControllerEvent, Event};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until, timeout_at};

/// A time, and when it is over.
type Stretch = (Instant, Instant);

/// What befalls one process.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// It does not exist.
    dead: Vec<Stretch>,
    /// It exists and stands still.
    still: Vec<Stretch>,
}

impl Fate {
    /// The fate of the process of this number, from 1, in a story that begins at `origin`.
    pub(super) fn of(scenario: &Scenario, origin: Instant, controller: u32) -> Self {
        let mut fate = Self::default();
        for happening in &scenario.happenings {
            let Event::OfController(befalls) = happening.what else { continue };
            let (stretches, outage) = match befalls {
                ControllerEvent::Killed(outage) => (&mut fate.dead, outage),
                ControllerEvent::Paused(outage) => (&mut fate.still, outage),
                ControllerEvent::ApiFault(_) => continue,
            };
            if outage.controller == controller {
                let from = origin + happening.at;
                stretches.push((from, from + outage.lasts));
            }
        }
        fate
    }
}

/// Lives a process through its fate, for ever: `start` makes its next life.
pub(super) async fn live<L: Future<Output = ()> + 'static>(
    fate: Fate,
    mut start: impl FnMut(usize) -> L,
) {
    for (life, (killed, again)) in fate.dead.iter().enumerate() {
        let tasks = LocalSet::new();
        tasks.spawn_local(start(life));
        // Dropped with all its tasks, each at whatever it waits for.
        drop(timeout_at(*killed, walk(tasks, &fate.still)).await);
        sleep_until(*again).await;
    }
    let tasks = LocalSet::new();
    tasks.spawn_local(start(fate.dead.len()));
    walk(tasks, &fate.still).await;
}

/// Lets tasks go on except where they stand still: then nobody polls them, and time passes.
async fn walk(mut tasks: LocalSet, still: &[Stretch]) {
    for (from, to) in still {
        if timeout_at(*from, &mut tasks).await.is_ok() {
            return;
        }
        sleep_until(*to).await;
    }
    tasks.await;
}

#[cfg(test)]
mod tests {
    use node_remedy_world::facts::{Fact, Power, What};

    use crate::simulate::{Part, Played, play};
    use crate::testing::example;

    /// A lost node, with two processes and what befalls them.
    fn night(happenings: &str) -> Played {
        let change = |text: String| {
            let befalls = format!("controllers: 2\nhappenings:\n{happenings}");
            text.replace("\nhappenings:", &format!("\n{befalls}"))
        };
        play(&example("lost-node.yaml", change), Part::With).unwrap()
    }

    fn switched(facts: &[Fact], to: Power) -> Vec<u64> {
        let is_it =
            |fact: &&Fact| matches!(&fact.what, What::PowerChanged { power, .. } if *power == to);
        facts.iter().filter(is_it).map(|fact| fact.at.0).collect()
    }

    #[test]
    fn whatever_befalls_its_processes_a_lost_node_is_cycled_once() {
        let quiet = night("");
        let cut = switched(&quiet.facts, Power::Off);
        let [cut] = cut.as_slice() else { panic!("one off: {cut:?}") };
        let at = cut - node_remedy_world::scenario::START.0;
        for (what, ms) in
            [("controllerKilled", 2), ("controllerPaused", 2), ("controllerKilled", 40)]
        {
            let befalls = format!(
                "- {{ at: {}ms, {what}: {{ controller: 1, lasts: 40s }} }}\n\
                 - {{ at: {}ms, {what}: {{ controller: 2, lasts: 1s }} }}",
                at + ms,
                at + 300
            );
            let played = night(&befalls);
            let (offs, ons) =
                (switched(&played.facts, Power::Off), switched(&played.facts, Power::On));
            assert_eq!((offs.len(), ons.len()), (1, 1), "{what} {ms} ms after the off");
            let epochs: std::collections::BTreeSet<u64> = played
                .collected
                .journals
                .values()
                .flat_map(|journal| journal.values().map(|operation| operation.epoch))
                .collect();
            assert_eq!(epochs.len(), 2, "another leader ended it: {epochs:?}");
        }
    }

    #[test]
    fn nobody_acts_while_the_api_server_is_away() {
        let played = night("- { at: 50s, apiFault: { fault: unavailable, lasts: 120s } }");
        let offs = switched(&played.facts, Power::Off);
        let away = node_remedy_world::scenario::START.0 + 170_000;
        assert!(offs.len() == 1 && offs[0] >= away, "{offs:?}");
    }
}
