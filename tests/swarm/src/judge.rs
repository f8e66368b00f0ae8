//! Judges a night by what truly happened, and by nothing that the controller says or believes.
//!
//! The promises are those that a cluster's owner cares about. A broken one is a sentence with its
//! time; what a night did is counted besides, for promises that depend on the BMC.

#![expect(clippy::wildcard_enum_match_arm, reason = "most facts concern no promise")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy::simulate::CLIENT;
use node_remedy_world::facts::{Fact, Power, PowerCause, What};
use node_remedy_world::scenario::START;
use node_remedy_world::time::{Time, between};

/// Who does what people do with kubectl.
const PEOPLE: &str = "people";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// A node that was well again for longer than this must not be switched off: what decides over an
/// off is read at most that long before it.
const WELL_FOR: Duration = Duration::from_secs(2);

/// What became of a night.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Broken promises, each with its time.
    pub broken: Vec<String>,
    /// How often each incident's BMC accepted an off.
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

/// What is true of the machines at one moment.
#[derive(Debug, Default)]
struct Truth {
    off: BTreeMap<String, PowerCause>,
    /// Machines that somebody other than us switched on after an off.
    on_behind_our_back: BTreeSet<String>,
    /// Since when a node is well that was lost.
    well_since: BTreeMap<String, Time>,
    lost: BTreeSet<String>,
    out_of_service: BTreeSet<String>,
    /// Nodes whose pods or volumes somebody gave away without proof: what comes of it is theirs.
    released_by_people: BTreeSet<String>,
    /// Processes that write, by pod UID.
    writing: BTreeMap<String, usize>,
    /// Each node's latest incident.
    incident: BTreeMap<String, String>,
}

/// Judges the facts of a night.
pub fn judge(facts: &[Fact]) -> Judgement {
    let mut judgement = Judgement::default();
    let mut truth = Truth::default();
    for Fact { at, what } in facts {
        if let Some(why) = broken(&truth, *at, what) {
            let seconds = between(START, *at).as_secs_f64();
            judgement.broken.push(format!("{seconds:.3} s: {what}: {why}"));
        }
        judgement.count(&truth, *at, what);
        truth.note(*at, what);
    }
    for (node, cause) in &truth.off {
        let state = truth.incident.get(node).and_then(|name| judgement.incidents.get(name));
        let parked = state.is_some_and(|state| state == "Error");
        if *cause == PowerCause::Command && !parked {
            let broken = format!("the end: {node} was left off and nobody is told: {state:?}");
            judgement.broken.push(broken);
        }
    }
    judgement
}

/// The promise that a fact breaks.
fn broken(truth: &Truth, at: Time, what: &What) -> Option<String> {
    match what {
        What::TwoWriters { node, other, .. } => {
            let by_people = &truth.released_by_people;
            let is_theirs = by_people.contains(node) || by_people.contains(other);
            (!is_theirs).then(|| "data is being lost".to_owned())
        }
        What::PodGone { node, uid, by, .. } if by == CLIENT => {
            if truth.writing.contains_key(uid) {
                return Some("its process still writes".to_owned());
            }
            released_while_on(truth, node)
        }
        What::DetachRequested { node, by, .. } if by == CLIENT => released_while_on(truth, node),
        What::TaintAdded { node, key, by, .. } if by == CLIENT && key == OUT_OF_SERVICE => {
            released_while_on(truth, node)
        }
        // The command is what counts: some BMCs carry it out much later.
        What::BmcSaidYes { node, command } if command == "off" => not_to_be_cut(truth, node, at),
        What::PowerChanged { node, power: Power::On, cause: PowerCause::Command } => {
            let kept = truth.out_of_service.contains(node);
            kept.then(|| "it boots into our out-of-service taint".to_owned())
        }
        _ => None,
    }
}

/// A release needs a machine that is off. What comes on by itself or by hand after it was proven
/// off can be seen by nobody in time; its old processes are dead all the same.
fn released_while_on(truth: &Truth, node: &str) -> Option<String> {
    let off = truth.off.contains_key(node) || truth.on_behind_our_back.contains(node);
    (!off).then(|| format!("released while {node} has power"))
}

fn not_to_be_cut(truth: &Truth, node: &str, at: Time) -> Option<String> {
    if truth.lost.contains(node) {
        return None;
    }
    let well = truth.well_since.get(node);
    let just_now = well.is_some_and(|since| between(*since, at) <= WELL_FOR);
    (!just_now).then(|| format!("{node} was well when it was told to be off"))
}

impl Truth {
    fn note(&mut self, at: Time, what: &What) {
        match what {
            What::KubeletStopped { node }
            | What::NetworkLost { node }
            | What::MachineHung { node } => {
                self.lost.insert(node.clone());
            }
            What::KubeletStarted { node, .. }
            | What::NetworkBack { node }
            | What::MachineResumed { node } => {
                self.lost.remove(node);
                self.well_since.insert(node.clone(), at);
            }
            What::PowerChanged { node, power: Power::Off, cause } => {
                // Until a kubelet starts again, whoever switches the machine on.
                self.lost.insert(node.clone());
                self.off.insert(node.clone(), *cause);
                self.on_behind_our_back.remove(node);
            }
            What::PowerChanged { node, power: Power::On, cause } => {
                self.off.remove(node);
                if *cause != PowerCause::Command {
                    self.on_behind_our_back.insert(node.clone());
                }
            }
            What::TaintAdded { node, key, by, .. } if by == CLIENT && key == OUT_OF_SERVICE => {
                self.out_of_service.insert(node.clone());
            }
            What::TaintAdded { node, key, by, .. } if by == PEOPLE && key == OUT_OF_SERVICE => {
                self.released_by_people.insert(node.clone());
            }
            What::NodeDeleted { node, by }
            | What::PodGone { node, by, .. }
            | What::DetachRequested { node, by, .. }
                if by == PEOPLE =>
            {
                self.released_by_people.insert(node.clone());
            }
            What::TaintRemoved { node, key, .. } if key == OUT_OF_SERVICE => {
                self.out_of_service.remove(node);
            }
            What::WriterStarted { uid, .. } => {
                *self.writing.entry(uid.clone()).or_default() += 1;
            }
            What::WriterStopped { uid, .. } => {
                let left = self.writing.remove(uid).unwrap_or_default().saturating_sub(1);
                if left > 0 {
                    self.writing.insert(uid.clone(), left);
                }
            }
            What::FenceState { node, fence, .. } => {
                self.incident.insert(node.clone(), fence.clone());
            }
            _ => {}
        }
    }
}

impl Judgement {
    fn count(&mut self, truth: &Truth, at: Time, what: &What) {
        match what {
            What::PowerChanged { node, power, cause: PowerCause::Command } => {
                self.commanded.push((at, node.clone(), *power));
            }
            What::PowerChanged { node, power: Power::On, cause: PowerCause::ByHand } => {
                self.interfered |= truth.off.get(node) == Some(&PowerCause::Command);
            }
            What::BmcSaidYes { node, command } if command == "off" => {
                let incident = truth.incident.get(node).cloned().unwrap_or_default();
                *self.offs_accepted.entry(incident).or_default() += 1;
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

/// The facts as lines, for whoever looks at a night that went wrong.
pub fn timeline(facts: &[Fact]) -> String {
    let line =
        |fact: &Fact| format!("{:9.3} {}\n", between(START, fact.at).as_secs_f64(), fact.what);
    facts.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use node_remedy_world::time::after;

    use super::*;

    fn happened(all: Vec<(u64, What)>) -> Vec<Fact> {
        let fact = |(seconds, what)| Fact { at: after(START, Duration::from_secs(seconds)), what };
        all.into_iter().map(fact).collect()
    }

    fn power(power: Power, cause: PowerCause) -> What {
        What::PowerChanged { node: "n".into(), power, cause }
    }

    fn off() -> What {
        What::BmcSaidYes { node: "n".into(), command: "off".into() }
    }

    fn lost() -> What {
        What::NetworkLost { node: "n".into() }
    }

    fn pod_gone() -> What {
        let (pod, uid) = ("default/db-0".into(), "u".into());
        What::PodGone { pod, uid, node: "n".into(), by: CLIENT.into() }
    }

    fn taint() -> What {
        let (key, effect) = (OUT_OF_SERVICE.into(), "NoExecute".into());
        What::TaintAdded { node: "n".into(), key, effect, by: CLIENT.into() }
    }

    fn detach() -> What {
        What::DetachRequested { volume: "pv".into(), node: "n".into(), by: CLIENT.into() }
    }

    fn writes() -> What {
        let (volume, pod, uid) = ("pv".into(), "default/db-0".into(), "u".into());
        What::WriterStarted { volume, pod, uid, node: "n".into(), boot: "1".into() }
    }

    fn check(all: Vec<(u64, What)>, broken: &[&str]) {
        let found = judge(&happened(all)).broken;
        assert_eq!(found.len(), broken.len(), "{found:?}");
        for (found, broken) in found.iter().zip(broken) {
            assert!(found.contains(broken), "{found}, expected {broken}");
        }
    }

    /// A judge that finds nothing proves nothing: each broken promise is found, and only those.
    #[test]
    fn the_judge_finds_every_broken_promise() {
        use PowerCause::{ByHand, Command, Device};
        let cut = |at: u64| [(at, lost()), (at, off()), (at, power(Power::Off, Command))];
        let on = || power(Power::On, Command);
        let with = |at, then: Vec<(u64, What)>| cut(at).into_iter().chain(then).collect::<Vec<_>>();
        check(with(1, vec![(2, taint()), (2, pod_gone()), (2, detach()), (9, on())]), &["taint"]);
        check(with(1, vec![(2, pod_gone()), (2, detach()), (3, on())]), &[]);
        check(with(1, vec![(2, on()), (3, pod_gone())]), &["while n has power"]);
        check(with(1, vec![(2, on()), (3, detach())]), &["while n has power"]);
        check(with(1, vec![(2, on()), (3, taint())]), &["while n has power"]);
        check(with(1, vec![(2, power(Power::On, Device)), (3, detach())]), &[]);
        check(with(1, vec![(2, power(Power::On, ByHand)), (3, detach())]), &[]);
        check(with(1, vec![]), &["left off"]);
        check(vec![(1, power(Power::Off, ByHand)), (2, pod_gone())], &[]);
        check(
            vec![(1, writes()), (2, power(Power::Off, ByHand)), (2, pod_gone())],
            &["still writes"],
        );
        check(vec![(1, lost()), (2, pod_gone())], &["while n has power"]);
        check(vec![(1, off())], &["was well"]);
        let by_hand =
            |at| vec![(at, power(Power::Off, ByHand)), (at + 1, power(Power::On, ByHand))];
        check([by_hand(1), vec![(3, off())]].concat(), &[]);
        let (node, boot) = ("n".into(), "2".into());
        let started = What::KubeletStarted { node, boot };
        check([by_hand(1), vec![(9, started), (12, off())]].concat(), &["was well"]);
        let back = || What::NetworkBack { node: "n".into() };
        check(vec![(1, lost()), (5, back()), (6, off())], &[]);
        check(vec![(1, lost()), (5, back()), (9, off())], &["was well"]);
        let (volume, pod, other) = ("pv".into(), "default/db-0".into(), "m".into());
        let two = What::TwoWriters { volume, pod, node: "n".into(), other };
        check(vec![(1, two.clone())], &["data is being lost"]);
        for node in ["n", "m"] {
            let deleted = What::NodeDeleted { node: node.into(), by: PEOPLE.into() };
            check(vec![(1, deleted), (2, two.clone())], &[]);
        }
    }

    #[test]
    fn a_machine_left_off_is_forgiven_where_a_person_is_told() {
        let parked = |state: &str| What::FenceState {
            fence: "n-1".into(),
            node: "n".into(),
            step: "Power-Management".into(),
            state: state.into(),
        };
        let night = |state| {
            let off = power(Power::Off, PowerCause::Command);
            vec![(1, lost()), (2, parked("Running")), (3, off), (4, parked(state))]
        };
        check(night("Error"), &[]);
        check(night("Running"), &["left off"]);
        check(night("Final"), &["left off"]);
    }
}
