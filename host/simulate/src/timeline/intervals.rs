//! The bars of the swim-lanes: states that lasted.

use std::collections::BTreeMap;

use node_remedy_report::{Interval, Lane, Refusal, Weight};
use node_remedy_world::Scenario;
use node_remedy_world::facts::{Fact, Power, What};
use node_remedy_world::scenario::NodeSpec;

use crate::timeline::words::{Lanes, ms, plug_of};

/// A state of something that may end later.
struct Open {
    from_ms: u64,
    state: String,
    weight: Weight,
}

/// What the world says.
pub(super) fn of_facts(
    scenario: &Scenario,
    lanes: &Lanes<'_>,
    facts: &[Fact],
    end_ms: u64,
) -> Vec<Interval> {
    // Machines have power when a timeline begins; no fact says so.
    let powered = |subject: String| {
        let on = Open { from_ms: 0, state: "on".to_owned(), weight: Weight::Normal };
        ((Lane::Device, subject), on)
    };
    let is_managed = |node: &&NodeSpec| {
        let is_there = node.cloud.as_ref().is_some_and(|cloud| cloud.replaces.is_none());
        is_there || node.bmc.is_some() || !node.feeds.is_empty()
    };
    let managed = scenario.nodes.iter().filter(is_managed).map(|node| lanes.power_of(&node.name));
    let plugs = scenario.nodes.iter().flat_map(|node| node.feeds.iter().chain(&node.port));
    let plugs = plugs.map(|plug| plug_of(&plug.device, plug.number.into()));
    let mut open: BTreeMap<(Lane, String), Open> = managed.chain(plugs).map(powered).collect();
    let mut done = Vec::new();
    for fact in facts {
        let Some((lane, subject, state)) = state_of(lanes, &fact.what) else { continue };
        let at = ms(fact.at);
        let key = (lane, subject);
        let before = open.get(&key).map(|before| &before.state);
        if before.is_some() && before == state.as_ref().map(|(state, _)| state) {
            continue;
        }
        if let Some(before) = open.remove(&key) {
            done.push(close(&key, before, at));
        }
        if let Some((state, weight)) = state {
            open.insert(key, Open { from_ms: at, state, weight });
        }
    }
    done.extend(open.into_iter().map(|(key, before)| close(&key, before, end_ms)));
    done.retain(|interval| interval.to_ms > interval.from_ms);
    done
}

/// How long the controller held back, and by which guard.
pub(super) fn of_refusals(refusals: &[Refusal]) -> Vec<Interval> {
    let lasting = refusals.iter().filter(|refusal| refusal.last_ms > refusal.first_ms);
    let interval = |refusal: &Refusal| Interval {
        from_ms: refusal.first_ms,
        to_ms: refusal.last_ms,
        lane: Lane::Controller,
        subject: refusal.node.clone(),
        state: format!("not cut: {}", refusal.guard),
        weight: Weight::Normal,
    };
    lasting.map(interval).collect()
}

fn close((lane, subject): &(Lane, String), before: Open, to_ms: u64) -> Interval {
    Interval {
        from_ms: before.from_ms,
        to_ms,
        lane: *lane,
        subject: subject.clone(),
        state: before.state,
        weight: before.weight,
    }
}

/// Whose state a fact changes, and to what; `None` inside: it has none any more.
#[expect(clippy::type_complexity, reason = "a private triple, read in one place")]
#[expect(clippy::wildcard_enum_match_arm, reason = "most facts change no state")]
fn state_of(lanes: &Lanes<'_>, what: &What) -> Option<(Lane, String, Option<(String, Weight)>)> {
    use Weight::{Bad, Key, Normal};
    let powered = |power| match power {
        Power::On => ("on".to_owned(), Normal),
        Power::Off => ("off".to_owned(), Key),
    };
    let some = |state: &str, weight| Some((state.to_owned(), weight));
    Some(match what {
        What::NodeReady { node, status, .. } => {
            let weight = if status == "True" { Normal } else { Bad };
            let word = if status == "True" { "Ready" } else { "not Ready" };
            (Lane::Node, node.clone(), some(word, weight))
        }
        What::PowerChanged { node, power, .. } => {
            (Lane::Device, lanes.power_of(node), Some(powered(*power)))
        }
        What::PlugChanged { device, plug, power, .. } => {
            (Lane::Device, plug_of(device, *plug), Some(powered(*power)))
        }
        What::PodPhase { pod, node, phase, .. } => {
            (Lane::Workload, pod.clone(), some(&format!("{phase} on {node}"), Normal))
        }
        What::PodTerminating { pod, node, .. } => {
            (Lane::Workload, pod.clone(), some(&format!("Terminating on {node}"), Bad))
        }
        What::PodGone { pod, .. } => (Lane::Workload, pod.clone(), None),
        What::WriterStarted { volume, node, .. } => {
            (Lane::Workload, volume.clone(), some(&format!("written on {node}"), Normal))
        }
        What::WriterStopped { volume, .. } => (Lane::Workload, volume.clone(), None),
        What::TwoWriters { volume, .. } => {
            (Lane::Workload, volume.clone(), some("TWO WRITERS", Bad))
        }
        What::FenceState { node, step, state, .. } => {
            let weight = if state == "Error" { Bad } else { Key };
            let ended = state == "Final";
            let state = some(&format!("{step} {state}"), weight).filter(|_| !ended);
            (Lane::Controller, node.clone(), state)
        }
        _ => return None,
    })
}
