//! Judges a run by what truly happened: the invariants that it broke, and besides what it did,
//! for promises that depend on the device.

#![expect(clippy::wildcard_enum_match_arm, reason = "most facts concern no promise")]

use std::collections::BTreeMap;

use node_remedy_simulate::CLIENT;
use node_remedy_world::facts::{Fact, Power, PowerCause, Taken, What};
use node_remedy_world::scenario::START;
use node_remedy_world::time::{Time, between};

use crate::checks::Violation;
use crate::checks::check;
use crate::scene::{Scene, Setting};

/// What became of a run.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Broken invariants.
    pub broken: Vec<Violation>,
    /// How often each incident's device accepted an off.
    pub offs_accepted: BTreeMap<String, usize>,
    /// Every power change by a command: when, where, to what.
    pub commanded: Vec<(Time, String, Power)>,
    /// Somebody else switched a machine on that we had switched off.
    pub interfered: bool,
    /// Pods and attachments that node-remedy took away.
    pub released: usize,
    /// Each incident's last state.
    pub incidents: BTreeMap<String, String>,
    /// Where each pod ran last.
    pub runs_on: BTreeMap<String, String>,
    /// Each node's last `Ready`.
    pub ready: BTreeMap<String, String>,
}

/// Judges the facts of a run.
pub fn judge(facts: &[Fact], setting: &Setting) -> Judgement {
    let mut judgement = Judgement::default();
    judgement.broken = check(facts, setting, |scene, fact| judgement.count(scene, fact));
    judgement
}

impl Judgement {
    fn count(&mut self, scene: &Scene, Fact { at, what }: &Fact) {
        // Two outlets are switched off for one cycle; only machines with one switch are counted.
        if let Some(Taken { node, plug: ("", _), command: "off", .. }) = what.taken() {
            let incident = scene.incident.get(node).cloned().unwrap_or_default();
            *self.offs_accepted.entry(incident).or_default() += 1;
        }
        match what {
            What::PowerChanged { node, power, cause: PowerCause::Command } => {
                self.commanded.push((*at, node.clone(), *power));
            }
            What::PowerChanged { node, power: Power::On, cause: PowerCause::ByHand } => {
                self.interfered |= scene.off.get(node) == Some(&PowerCause::Command);
            }
            What::PodGone { by, .. } | What::DetachRequested { by, .. } if by == CLIENT => {
                self.released += 1;
            }
            What::FenceState { fence, state, .. } => {
                self.incidents.insert(fence.clone(), state.clone());
            }
            What::PodPhase { pod, node, phase, .. } if phase == "Running" => {
                self.runs_on.insert(pod.clone(), node.clone());
            }
            What::NodeReady { node, status, .. } => {
                self.ready.insert(node.clone(), status.clone());
            }
            _ => {}
        }
    }

    /// How often the machines were switched to this by command.
    pub fn times(&self, wanted: Power) -> usize {
        self.commanded.iter().filter(|(.., power)| *power == wanted).count()
    }
}

/// The facts as lines, for whoever looks at a run that went wrong.
pub fn timeline(facts: &[Fact]) -> String {
    let line =
        |fact: &Fact| format!("{:9.3} {}\n", between(START, fact.at).as_secs_f64(), fact.what);
    facts.iter().map(line).collect()
}
