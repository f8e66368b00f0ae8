//! APC's tables of outlets (PowerNet-MIB), the newest first: a PDU keeps the older ones beside its
//! own, and the newest knows most of its outlets.

use node_remedy_plugin_snmp::{Oid, States, Switch, Tree, join, number};
use node_remedy_sdk::PlugState;

/// All of them.
pub(crate) const TREES: &[Tree] = &[
    Tree {
        name: "rPDU2",
        status: &[1, 3, 6, 1, 4, 1, 318, 1, 1, 26, 9, 2, 3, 1, 5],
        labels: Some(&[1, 3, 6, 1, 4, 1, 318, 1, 1, 26, 9, 2, 3, 1, 3]),
        // The other way round than in every other table, and than its own commands. Sources disagree,
        // so where the PDU has the older table too, both must say the same.
        states: &[(1, PlugState::Off), (2, PlugState::On)],
        witness: Some((RPDU, ON_IS_1)),
        index_of: outlet,
        plug_of: outlet_name,
        command: |index, switch| {
            let column = [1, 3, 6, 1, 4, 1, 318, 1, 1, 26, 9, 2, 4, 1, 5];
            Some((join(&column, index), plain_command(switch)))
        },
    },
    Tree {
        name: "rPDU",
        status: RPDU,
        labels: Some(&[1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 5, 1, 1, 2]),
        states: ON_IS_1,
        witness: None,
        index_of: outlet,
        plug_of: outlet_name,
        command: |index, switch| {
            let column = [1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 3, 1, 1, 4];
            Some((join(&column, index), plain_command(switch)))
        },
    },
    Tree {
        name: "MasterSwitch plus",
        status: &[1, 3, 6, 1, 4, 1, 318, 1, 1, 6, 7, 1, 1, 5],
        labels: Some(&[1, 3, 6, 1, 4, 1, 318, 1, 1, 6, 7, 1, 1, 4]),
        states: ON_IS_1,
        witness: None,
        index_of: outlet_of_a_switch,
        plug_of: outlet_of_a_switch_name,
        command: |index, switch| {
            // 2 is on with a delay, so off is 3.
            let value = match switch {
                Switch::On => 1,
                Switch::Off => 3,
                Switch::Reset => return None,
            };
            Some((join(&[1, 3, 6, 1, 4, 1, 318, 1, 1, 6, 5, 1, 1, 5], index), value))
        },
    },
    Tree {
        name: "MasterSwitch",
        status: MASTER_SWITCH,
        labels: Some(&[1, 3, 6, 1, 4, 1, 318, 1, 1, 4, 4, 2, 1, 4]),
        states: ON_IS_1,
        witness: None,
        index_of: outlet,
        plug_of: outlet_name,
        command: |index, switch| Some((join(MASTER_SWITCH, index), plain_command(switch))),
    },
];

const RPDU: &[u32] = &[1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 5, 1, 1, 4];
/// Status and command in one.
const MASTER_SWITCH: &[u32] = &[1, 3, 6, 1, 4, 1, 318, 1, 1, 4, 4, 2, 1, 3];
const ON_IS_1: States = &[(1, PlugState::On), (2, PlugState::Off)];

/// immediateOn, immediateOff, immediateReboot.
fn plain_command(switch: Switch) -> i64 {
    match switch {
        Switch::On => 1,
        Switch::Off => 2,
        Switch::Reset => 3,
    }
}

fn outlet(plug: &str) -> Option<Oid> {
    number(plug).map(|outlet| vec![outlet])
}

fn outlet_name(index: &[u32]) -> Option<String> {
    match index {
        [outlet] => Some(outlet.to_string()),
        _ => None,
    }
}

/// `2.5`: outlet 5 of the second unit; a number alone is of the first. Between them stands an
/// index that is always 1.
fn outlet_of_a_switch(plug: &str) -> Option<Oid> {
    let (unit, outlet) = plug.split_once('.').unwrap_or(("1", plug));
    Some(vec![number(unit)?, 1, number(outlet)?])
}

fn outlet_of_a_switch_name(index: &[u32]) -> Option<String> {
    match index {
        [1, 1, outlet] => Some(outlet.to_string()),
        [unit, 1, outlet] => Some(format!("{unit}.{outlet}")),
        _ => None,
    }
}
