//! What the judges know beforehand of a scenario that somebody wrote. Runs have settings of their own
//! ([`crate::seed_run`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::Scenario;
use node_remedy_world::api::Kind;
use node_remedy_world::scenario::{
    ControllerEvent, Document, Event, NodeSpec, START, read_duration,
};
use node_remedy_world::time::{Time, after};
use serde_json::Value;

use crate::guards::{Breaker, Guards};
use crate::scene::Setting;
use crate::unhindered::{faulty, is_default, unhindered};

/// The label by which seams keep a node from being fenced.
const EXCLUDES: &str = "node-remedy.io/exclude";

/// `maxUnhealthyPercent` of a topology where nobody says one (docs/defaults.md).
const DOMAIN_PERCENT: usize = 50;

/// What the checks know beforehand of a scenario.
pub fn setting_of(scenario: &Scenario) -> Setting {
    let of_other = scenario.nodes.iter().filter(|node| {
        let uuid: String = node.system_uuid.chars().filter(char::is_ascii_hexdigit).collect();
        node.bmc.as_ref().is_some_and(|bmc| {
            !uuid.eq_ignore_ascii_case(&format!("{:032x}", u128::from_be_bytes(bmc.guid)))
        })
    });
    let switches = scenario.devices.iter().filter(|device| device.is_switch());
    let says_all = |one: &Document| {
        one.object.pointer("/spec/policies/kdumpReleases").is_some_and(|word| word == "all")
    };
    let ill = scenario.faults.iter().filter_map(|one| {
        let (Event::NodeCondition { node, .. } | Event::NodeEvent { node, .. }) = &one.what else {
            return None;
        };
        Some(node.clone())
    });
    let excluded = scenario.faults.iter().filter_map(|one| {
        let Event::Edit { key, merge } = &one.what else { return None };
        let labels = merge.pointer("/metadata/labels")?.as_object()?;
        let excludes = labels.keys().any(|label| label == EXCLUDES);
        (key.kind == Kind::Node && excludes).then(|| key.name.clone())
    });
    let (zones, zone_percent_max) = zone_limit(scenario);
    let of_others = |one: &Event| {
        matches!(one, Event::ServerClock(_) | Event::Etcd(_) | Event::OfController(_))
    };
    let leaves_off = |one: &Document| {
        one.object.pointer("/spec/policies/powerOnIfFoundOff").is_some_and(|word| word == false)
    };
    let tells_old_news =
        |one: &Event| matches!(one, Event::BmcFault { fault, .. } if fault == "stale");
    let restarts =
        |one: &Document| one.object.pointer("/spec/policies/restarts").and_then(Value::as_u64);
    let restarts = scenario.configuration.iter().filter_map(restarts).max().unwrap_or_default();
    Setting {
        cycles_max: usize::try_from(restarts).unwrap_or(usize::MAX).saturating_add(1),
        has_stale_bmc: scenario.faults.iter().any(|one| tells_old_news(&one.what)),
        leaves_off: scenario.configuration.iter().any(leaves_off),
        is_sound: !scenario.faults.iter().any(|one| of_others(&one.what)),
        sound_bmcs: sound_bmcs(scenario),
        ill: ill.collect(),
        impostors: of_other.map(|node| node.name.clone()).collect(),
        miswired: miswired(scenario),
        lost: vec!["node-a".to_owned()],
        unhindered: unhindered(scenario),
        has_faults: !faulty(scenario).is_empty(),
        deleted: deleted(scenario),
        switches: switches.map(|device| device.name.clone()).collect(),
        drivers_check: scenario.timings.checks_at_detach,
        dumps_release_all: scenario.configuration.iter().any(says_all),
        has_people: scenario.faults.iter().any(|one| matches!(one.what, Event::DeleteNode(_))),
        // One answer may take long, and what was decided on it is then old.
        seen_after: Duration::from_secs(26),
        silent_for: silent_for(scenario),
        unready_for: unready_for(scenario),
        skips: skips(scenario),
        guards: Guards {
            excluded: excluded.collect(),
            zones,
            zone_percent_max,
            breaker: breaker(scenario),
            ..Guards::default()
        },
        ..Setting::default()
    }
}

/// Incidents whose NodeFence somebody deletes.
fn deleted(scenario: &Scenario) -> BTreeSet<String> {
    let deleted = scenario.faults.iter().filter_map(|one| {
        let Event::Remove { key } = &one.what else { return None };
        (key.kind == Kind::NodeFence).then(|| key.name.clone())
    });
    deleted.collect()
}

/// Nodes whose BMC, or cloud, no fault hits, where every process lives from beginning to end.
fn sound_bmcs(scenario: &Scenario) -> BTreeSet<String> {
    let mut faults = scenario.faults.iter().map(|one| &one.what);
    if faults.any(|one| matches!(one, Event::OfController(_))) {
        return BTreeSet::new();
    }
    let faults = |name: &str| {
        let of_node = |one: &Event| matches!(one, Event::BmcFault { node, .. } | Event::CloudFault { node, .. } if node == name);
        scenario.faults.iter().any(|one| of_node(&one.what))
    };
    let is_sound = |node: &&NodeSpec| {
        let is_well = node.bmc.as_ref().is_none_or(|bmc| is_default(&bmc.faults))
            && node.cloud.as_ref().is_none_or(|cloud| is_default(&cloud.faults));
        is_well && !faults(&node.name)
    };
    scenario.nodes.iter().filter(is_sound).map(|node| node.name.clone()).collect()
}

/// The breaker that the policies ask for, where they say all of it.
fn breaker(scenario: &Scenario) -> Option<Breaker> {
    let mut configuration = scenario.configuration.iter();
    let said = configuration.find_map(|one| one.object.pointer("/spec/policies/breaker"))?;
    let incidents_max = usize::try_from(said.get("maxIncidents")?.as_u64()?).ok()?;
    let cool_down = read_duration(said.get("coolDown")?.as_str()?)?;
    Some(Breaker { incidents_max, cool_down })
}

/// The shortest `nodeLeaseAge` of all thresholds; none where one goes by something else.
fn silent_for(scenario: &Scenario) -> Option<Duration> {
    let policies = scenario.configuration.iter().filter_map(|one| one.object.get("spec"));
    // Our clock follows a server's that was set by up to an eighth of the time.
    let is_set = scenario.faults.iter().any(|one| matches!(one.what, Event::ServerClock(_)));
    let as_told = |age: Duration| if is_set { age.saturating_sub(age / 8) } else { age };
    let ages: Option<Vec<Duration>> = policies
        .filter_map(|spec| spec.get("thresholdConfigs")?.as_array())
        .flatten()
        .map(|threshold| read_duration(threshold.get("nodeLeaseAge")?.as_str()?))
        .collect();
    ages?.into_iter().min().map(as_told)
}

/// When the server's clock is set ahead, and by how much, where processes of node-remedy start again.
fn skips(scenario: &Scenario) -> Vec<(Time, Duration)> {
    let mut faults = scenario.faults.iter().map(|one| &one.what);
    let is_killed = |one: &Event| matches!(one, Event::OfController(ControllerEvent::Killed(_)));
    if !faults.any(is_killed) {
        return Vec::new();
    }
    let ahead = scenario.faults.iter().filter_map(|one| {
        let Event::ServerClock(by_ms) = one.what else { return None };
        // What waits for something may be after anything.
        let at = if one.when.is_none() { after(START, one.at) } else { Time(u64::MAX) };
        Some((at, Duration::from_millis(u64::try_from(by_ms).ok()?)))
    });
    ahead.collect()
}

/// The shortest `nodeConditionPeriod`, if every threshold watches Ready and no clock is set.
fn unready_for(scenario: &Scenario) -> Option<Duration> {
    let is_set = |one: &Event| matches!(one, Event::ServerClock(_) | Event::Etcd(_));
    if scenario.faults.iter().any(|one| is_set(&one.what)) {
        return None;
    }
    let policies = scenario.configuration.iter().filter_map(|one| one.object.get("spec"));
    let thresholds = policies.filter_map(|spec| spec.get("thresholdConfigs")?.as_array()).flatten();
    let periods: Option<Vec<Duration>> = thresholds
        .map(|threshold| {
            let is_ready = threshold.get("nodeConditionType").is_some_and(|kind| kind == "Ready");
            let period = threshold.get("nodeConditionPeriod").filter(|_| is_ready)?;
            read_duration(period.as_str()?)
        })
        .collect();
    periods?.into_iter().min()
}

/// The zone of each node that has one, and `maxUnhealthyPercent` of the topology that the policies name.
fn zone_limit(scenario: &Scenario) -> (BTreeMap<String, String>, usize) {
    let mut configuration = scenario.configuration.iter();
    let limit = configuration.find_map(|one| one.object.pointer("/spec/policies/topologies/0"));
    let Some(limit) = limit else { return (BTreeMap::new(), 0) };
    let (key, percent) = (limit.get("key"), limit.get("maxUnhealthyPercent"));
    let zone = |node: &NodeSpec| {
        let of_key = |(name, _): &&(String, String)| key.is_some_and(|key| key == name.as_str());
        Some((node.name.clone(), node.labels.iter().find(of_key)?.1.clone()))
    };
    let percent = percent.and_then(Value::as_u64).and_then(|one| usize::try_from(one).ok());
    (scenario.nodes.iter().filter_map(zone).collect(), percent.unwrap_or(DOMAIN_PERCENT))
}

/// Outlets and ports that a FenceConfiguration names although no node that it selects is plugged into them.
fn miswired(scenario: &Scenario) -> BTreeSet<u64> {
    let is_fence = |one: &&Document| {
        one.object.pointer("/kind").is_some_and(|kind| kind == "FenceConfiguration")
    };
    let of_one = |one: &Document| {
        let selector = one.object.pointer("/spec/nodeSelector").and_then(Value::as_str);
        let selector = selector.unwrap_or_default();
        let label = selector.split_once('=').unwrap_or_default();
        let is_selected = |labels: &[(String, String)]| {
            labels.iter().any(|(key, value)| (key.as_str(), value.as_str()) == label)
        };
        let nodes = scenario.nodes.iter().filter(|node| is_selected(&node.labels));
        let hangs_on = nodes.flat_map(|node| node.feeds.iter().chain(&node.port));
        let wired: BTreeSet<u64> = hangs_on.map(|plug| u64::from(plug.number)).collect();
        let methods = one.object.pointer("/spec/methods").and_then(Value::as_array);
        let named =
            methods.into_iter().flatten().filter_map(|one| number_of(one.get("plug")?.as_str()?));
        named.filter(|plug| !wired.contains(plug)).collect::<Vec<u64>>()
    };
    scenario.configuration.iter().filter(is_fence).flat_map(of_one).collect()
}

/// An outlet is a number, and a port ends with one: `Gi1/0/2`.
fn number_of(plug: &str) -> Option<u64> {
    plug.rsplit('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::{files_of, parse};

    /// S13 knows one topology.
    #[test]
    fn no_scenario_names_two_topologies() {
        for folder in ["scenarios", "seams"] {
            let folder = format!("{}/../{folder}", env!("CARGO_MANIFEST_DIR"));
            for file in files_of(&folder).unwrap() {
                let scenario = parse(&file).unwrap();
                let named = scenario.configuration.iter().filter_map(|one| {
                    one.object.pointer("/spec/policies/topologies")?.as_array().map(Vec::len)
                });
                assert!(named.sum::<usize>() < 2, "{}", file.display());
            }
        }
    }

    /// S5 and S10 skip these plugs, so no other scenario may have one.
    #[test]
    fn few_scenarios_name_a_wrong_outlet() {
        let mut found = BTreeSet::new();
        for folder in ["scenarios", "seams"] {
            let folder = format!("{}/../{folder}", env!("CARGO_MANIFEST_DIR"));
            for file in files_of(&folder).unwrap() {
                if !miswired(&parse(&file).unwrap()).is_empty() {
                    found.insert(file.file_stem().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [
                "bmc-proves-while-the-plug-is-on",
                "bmc-refuses-one-read",
                "bmc-silent-after-the-off",
                "cut-undone-behind-an-outlet-of-another",
                "neighbour-boots-after-an-old-silence",
                "neighbour-boots-behind-stale-reads",
                "neighbour-runs-again",
                "outlet-of-a-neighbour-with-two-feeds",
                "outlet-of-another",
                "outlet-of-another-and-a-deleted-pod",
                "outlet-of-another-behind-a-cut",
                "outlet-of-another-behind-a-cut-and-an-abort",
                "outlet-of-another-behind-a-cut-of-a-deleted-node",
                "outlet-of-another-behind-a-cut-with-a-witness",
                "outlet-of-another-goes-off-late",
                "outlet-of-another-stays-off",
                "outlet-of-another-with-a-witness",
                "outlet-of-nothing",
                "outlet-of-nothing-and-a-bmc",
                "outlet-of-one-with-a-bmc",
                "outlet-off-though-its-machine-is-well",
                "plug-of-another-while-it-waits",
                "wiring-corrected-after-the-off",
                "wiring-corrected-while-it-waits",
                "wrong-port-given-back"
            ]
        );
    }
}
