//! Processes of node-remedy as a scenario has them: killed at whatever they wait for, standing
//! still, started again.

use std::future::{Future, pending};

use node_remedy_runtime::virtual_clock::VirtualClock;
use node_remedy_world::AppliedFault;
use node_remedy_world::scenario::{ClockChange, ClockFault, ControllerEvent, Outage};
use node_remedy_world::time::{Time, between};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};

/// What is told of everything that hits node-remedy, and takes what happens to one process.
pub(super) struct Fate {
    number: u32,
    /// When the timeline begins, on both clocks.
    origin: (Time, Instant),
    /// The clocks of its machine.
    clock: VirtualClock,
    applied_fault: UnboundedReceiver<AppliedFault>,
}

/// What hits a process, and when it is over.
enum Blow {
    Killed(Instant),
    Paused(Instant),
}

impl Fate {
    /// The fate of the process of this number, from 1.
    pub(super) fn new(
        number: u32,
        origin: (Time, Instant),
        clock: VirtualClock,
        applied_fault: UnboundedReceiver<AppliedFault>,
    ) -> Self {
        Self { number, origin, clock, applied_fault }
    }

    fn go_wrong(&self, fault: ClockFault) {
        if fault.controller == self.number {
            match fault.change {
                ClockChange::Jump(by_ms) => self.clock.jump(by_ms),
                ClockChange::Drift(drift) => self.clock.drift(drift),
            }
        }
    }

    /// The next thing that hits the process of this name.
    async fn next(&mut self, name: &str) -> Blow {
        loop {
            let Some(applied_fault) = self.applied_fault.recv().await else {
                return pending().await;
            };
            let (outage, blow): (Outage, fn(Instant) -> Blow) = match applied_fault.what {
                ControllerEvent::Killed(outage) => (outage, Blow::Killed),
                ControllerEvent::Paused(outage) => (outage, Blow::Paused),
                // Both hit its ways, not the process.
                ControllerEvent::ApiFault(_) | ControllerEvent::DevicesLost(_) => continue,
                ControllerEvent::ClockFault(fault) => {
                    self.go_wrong(fault);
                    continue;
                }
            };
            let leads =
                applied_fault.leader == name || applied_fault.leader.is_empty() && self.number == 1;
            if outage.controller.map_or(leads, |number| number == self.number) {
                let (start, origin) = self.origin;
                return blow(origin + between(start, applied_fault.at) + outage.lasts);
            }
        }
    }

    /// Drives tasks until they are killed; says when they are started again. Whatever they wait for
    /// then is dropped with them; while they stand still nobody polls them, and time passes.
    async fn drive(&mut self, name: &str, mut tasks: LocalSet) -> Instant {
        loop {
            let blow = tokio::select! {
                biased;
                blow = self.next(name) => blow,
                () = &mut tasks => pending().await,
            };
            let mut until = match blow {
                Blow::Killed(until) => return until,
                Blow::Paused(until) => until,
            };
            while Instant::now() < until {
                tokio::select! {
                    biased;
                    blow = self.next(name) => match blow {
                        Blow::Killed(until) => return until,
                        Blow::Paused(longer) => until = until.max(longer),
                    },
                    () = sleep_until(until) => {}
                }
            }
        }
    }
}

/// Lives a process through its fate, for ever: `start` makes its next life, and says its name.
pub(super) async fn live<L: Future<Output = ()> + 'static>(
    mut fate: Fate,
    mut start: impl FnMut(usize) -> (String, L),
) {
    for number in 0.. {
        let (name, life) = start(number);
        let tasks = LocalSet::new();
        tasks.spawn_local(life);
        let again = fate.drive(&name, tasks).await;
        sleep_until(again).await;
        // What befell it while it was dead befell nobody, but its machine lived.
        while let Ok(applied_fault) = fate.applied_fault.try_recv() {
            if let ControllerEvent::ClockFault(fault) = applied_fault.what {
                fate.go_wrong(fault);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_world::facts::{Fact, Power, What};

    use crate::testing::example;
    use crate::{Part, Played, play};

    /// A lost node, with two processes and what happens to them.
    fn run(faults: &str) -> Played {
        let change = |text: String| {
            let faults = format!("controllers: 2\nfaults:\n{faults}");
            text.replace("\nfaults:", &format!("\n{faults}"))
        };
        play(&example("lost-node.yaml", change), Part::With).unwrap()
    }

    fn switched(facts: &[Fact], to: Power) -> Vec<u64> {
        let is_it =
            |fact: &&Fact| matches!(&fact.what, What::PowerChanged { power, .. } if *power == to);
        facts.iter().filter(is_it).map(|fact| fact.at.0).collect()
    }

    #[test]
    fn whatever_happens_to_its_processes_a_lost_node_is_cycled_once() {
        let quiet = run("");
        let cut = switched(&quiet.facts, Power::Off);
        let [cut] = cut.as_slice() else { panic!("one off: {cut:?}") };
        let at = cut - node_remedy_world::scenario::START.0;
        for (what, ms) in
            [("controllerKilled", 2), ("controllerPaused", 2), ("controllerKilled", 40)]
        {
            let faults = format!(
                "- {{ at: {}ms, {what}: {{ controller: 1, lasts: 40s }} }}\n\
                 - {{ at: {}ms, {what}: {{ controller: 2, lasts: 1s }} }}",
                at + ms,
                at + 300
            );
            let played = run(&faults);
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
    fn a_timeline_that_ends_when_all_is_calm_has_told_everything() {
        let with = |fields: &str, happens: &str| {
            let change = |text: String| {
                let text = text.replace("\nduration:", &format!("\n{fields}duration:"));
                text.replace("\nfaults:", &format!("\nfaults:\n{happens}"))
            };
            play(&example("lost-node.yaml", change), Part::With).unwrap()
        };
        let (whole, short) = (with("", ""), with("untilCalm: 90s\n", ""));
        // Devices are probed for as long as a timeline lasts.
        let is_probe =
            |what: &What| matches!(what, What::BmcReported { .. } | What::BmcSessions { .. });
        let facts = |played: &Played| -> Vec<Fact> {
            played.facts.iter().filter(|fact| !is_probe(&fact.what)).cloned().collect()
        };
        assert_eq!(facts(&whole), facts(&short));
        assert!(short.lasted < whole.lasted, "{:?} {:?}", short.lasted, whole.lasted);
        let late = with("untilCalm: 90s\n", "- { at: 9m, kubeletStops: node-a }\n");
        assert!(late.lasted > short.lasted && late.facts.len() > short.facts.len());
    }

    #[test]
    fn nobody_acts_while_the_api_server_is_away() {
        let played = run("- { at: 50s, apiFault: { fault: unavailable, lasts: 120s } }");
        let offs = switched(&played.facts, Power::Off);
        let away = node_remedy_world::scenario::START.0 + 170_000;
        assert!(offs.len() == 1 && offs[0] >= away, "{offs:?}");
    }
}
