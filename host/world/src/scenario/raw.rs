//! A scenario file as it is written. Unknown fields are refused; values that can be
//! wrong in themselves keep their place.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::scenario::spec::Etcd;
use crate::timings::Answer;

pub(super) type Text = Spanned<String>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawScenario {
    pub(super) title: String,
    #[serde(default = "one")]
    pub(super) seed: u64,
    pub(super) duration: Text,
    pub(super) until_calm: Option<Text>,
    #[serde(default)]
    pub(super) shuffle: bool,
    #[serde(default)]
    pub(super) cluster: RawCluster,
    pub(super) nodes: Spanned<Vec<RawNode>>,
    #[serde(default)]
    pub(super) pdus: Vec<RawPdu>,
    #[serde(default)]
    pub(super) switches: Vec<RawSwitch>,
    pub(super) controllers: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) second_installation: bool,
    #[serde(default)]
    pub(super) workloads: RawWorkloads,
    #[serde(default)]
    pub(super) configuration: Vec<Spanned<RawConfiguration>>,
    #[serde(default)]
    pub(super) faults: Vec<Spanned<RawFault>>,
    #[serde(default)]
    pub(super) expect: Vec<RawExpectation>,
    #[serde(default)]
    pub(super) expect_without: Vec<RawExpectation>,
}

fn one() -> u64 {
    1
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawCluster {
    pub(super) node_monitor_grace: Option<Text>,
    pub(super) node_monitor_period: Option<Text>,
    pub(super) lease_renewal: Option<Text>,
    pub(super) first_status: Option<Text>,
    pub(super) network_back: Option<Text>,
    pub(super) pod_start: Option<Text>,
    pub(super) pod_stop: Option<Text>,
    pub(super) attach: Option<Text>,
    #[serde(default)]
    pub(super) checks_at_detach: bool,
    pub(super) network_fence: Option<Text>,
    #[serde(default)]
    pub(super) csi_addons: Answer,
    #[serde(default)]
    pub(super) storage_pools: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawNode {
    pub(super) name: Text,
    pub(super) count: Option<Spanned<usize>>,
    pub(super) zone: Option<String>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(rename = "providerID")]
    pub(super) provider_id: Option<String>,
    #[serde(rename = "systemUUID")]
    pub(super) system_uuid: Option<Text>,
    pub(super) boot_time: Option<Text>,
    #[serde(default)]
    pub(super) bmc: RawBmc,
    #[serde(default)]
    pub(super) feeds: Vec<Text>,
    pub(super) port: Option<Text>,
    pub(super) cloud: Option<Spanned<RawCloud>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawPdu {
    pub(super) name: Text,
    pub(super) make: Option<Text>,
    pub(super) outlets: Option<Spanned<u32>>,
    pub(super) address: Option<Text>,
    pub(super) community: Option<String>,
    #[serde(default)]
    pub(super) faults: BTreeMap<String, Spanned<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawSwitch {
    pub(super) name: Text,
    pub(super) ports: Option<Spanned<u32>>,
    pub(super) address: Option<Text>,
    pub(super) community: Option<String>,
    #[serde(default)]
    pub(super) faults: BTreeMap<String, Spanned<u32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawCloud {
    pub(super) zone: Option<Text>,
    pub(super) group: Option<Text>,
    pub(super) stop_takes: Option<Text>,
    pub(super) start_takes: Option<Text>,
    pub(super) replaces: Option<Text>,
    #[serde(default)]
    pub(super) faults: BTreeMap<String, Spanned<u32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawBmc {
    pub(super) present: Option<bool>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) guid: Option<Text>,
    pub(super) suites: Option<Vec<Spanned<u8>>>,
    #[serde(default)]
    pub(super) faults: BTreeMap<String, Spanned<u32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawWorkloads {
    #[serde(default)]
    pub(super) stateful_sets: Vec<RawStatefulSet>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawStatefulSet {
    pub(super) name: Text,
    pub(super) namespace: Option<String>,
    pub(super) replicas: Spanned<u64>,
    pub(super) volumes: Option<bool>,
    pub(super) toleration: Option<Text>,
    pub(super) parallel: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawConfiguration {
    pub(super) file: Option<Text>,
    pub(super) object: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawFault {
    pub(super) at: Option<Text>,
    pub(super) when: Option<RawTrigger>,
    pub(super) after: Option<Text>,
    pub(super) within: Option<Text>,
    pub(super) kubelet_stops: Option<Text>,
    pub(super) network_lost: Option<Text>,
    pub(super) machine_hangs: Option<Text>,
    pub(super) kernel_dumps: Option<RawDump>,
    pub(super) power_off_by_hand: Option<Text>,
    pub(super) power_on_by_hand: Option<Text>,
    pub(super) node_comes_back: Option<Text>,
    pub(super) rack_silent: Option<Vec<Text>>,
    pub(super) rack_comes_back: Option<Vec<Text>>,
    pub(super) bmc_fault: Option<RawBmcFault>,
    pub(super) device_fault: Option<RawDeviceFault>,
    pub(super) plug_off_by_hand: Option<Text>,
    pub(super) plug_on_by_hand: Option<Text>,
    pub(super) cloud_fault: Option<RawBmcFault>,
    pub(super) instance_terminated: Option<Text>,
    pub(super) delete_node: Option<Text>,
    pub(super) cordon: Option<Text>,
    pub(super) taint_out_of_service: Option<Text>,
    pub(super) force_delete_pod: Option<Text>,
    pub(super) hold_pod: Option<Text>,
    pub(super) let_pod_go: Option<Text>,
    pub(super) delete_attachments: Option<Text>,
    pub(super) controller_killed: Option<RawOutage>,
    pub(super) controller_paused: Option<RawOutage>,
    pub(super) devices_lost: Option<RawOutage>,
    pub(super) api_fault: Option<RawApiFault>,
    pub(super) clock_fault: Option<RawClockFault>,
    pub(super) edit: Option<Spanned<RawEdit>>,
    pub(super) remove: Option<Spanned<RawEdit>>,
    pub(super) node_condition: Option<RawNodeCondition>,
    pub(super) node_event: Option<RawNodeEvent>,
    pub(super) other_remedy: Option<RawOtherRemedy>,
    pub(super) operator_command: Option<RawOperatorCommand>,
    pub(super) server_clock: Option<Spanned<RawServerClock>>,
    pub(super) etcd: Option<Etcd>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawNodeCondition {
    pub(super) node: Text,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: Text,
    pub(super) reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawNodeEvent {
    pub(super) node: Text,
    pub(super) reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawClockFault {
    pub(super) controller: Spanned<u32>,
    pub(super) ahead: Option<Text>,
    pub(super) back: Option<Text>,
    pub(super) drift: Option<Spanned<i32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawServerClock {
    pub(super) ahead: Option<Text>,
    pub(super) back: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawEdit {
    pub(super) kind: Text,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) merge: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawDump {
    pub(super) node: Text,
    pub(super) lasts: Text,
    pub(super) controller: Option<Spanned<u32>>,
    pub(super) from: Option<Text>,
    #[serde(default)]
    pub(super) big_endian: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawOtherRemedy {
    pub(super) node: Text,
    pub(super) lasts: Text,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawOperatorCommand {
    pub(super) node: Text,
    pub(super) command: Text,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawTrigger {
    pub(super) fact: Text,
    #[serde(default, rename = "where")]
    pub(super) fields: BTreeMap<String, Text>,
    pub(super) time: Option<Spanned<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawOutage {
    pub(super) controller: Option<Spanned<u32>>,
    pub(super) lasts: Text,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawApiFault {
    pub(super) fault: Text,
    pub(super) verb: Option<Text>,
    pub(super) resource: Option<Text>,
    pub(super) percent: Option<Spanned<u32>>,
    pub(super) takes: Option<Text>,
    pub(super) lasts: Text,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawBmcFault {
    pub(super) node: Text,
    pub(super) fault: Text,
    pub(super) value: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawDeviceFault {
    pub(super) device: Text,
    pub(super) fault: Text,
    pub(super) value: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RawExpectation {
    pub(super) fact: Text,
    #[serde(default, rename = "where")]
    pub(super) fields: BTreeMap<String, Text>,
    pub(super) times: Option<usize>,
    pub(super) after: Option<Text>,
    pub(super) by: Option<Text>,
}
