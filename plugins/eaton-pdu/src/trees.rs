//! Eaton's tables of outlets: EATON-EPDU-MIB (G2, G3), the managed ePDU's, and Pulizzi's.

use node_remedy_plugin_snmp::{Oid, Switch, Tree, join, number};
use node_remedy_sdk::PlugState;

/// All of them. No device has two.
pub(crate) const TREES: &[Tree] = &[
    Tree {
        name: "ePDU",
        status: &[1, 3, 6, 1, 4, 1, 534, 6, 6, 7, 6, 6, 1, 2],
        labels: Some(&[1, 3, 6, 1, 4, 1, 534, 6, 6, 7, 6, 1, 1, 3]),
        states: &[
            (0, PlugState::Off),
            (1, PlugState::On),
            (2, PlugState::Transitioning),
            (3, PlugState::Transitioning),
        ],
        witness: None,
        index_of: outlet_of_a_unit,
        plug_of: outlet_of_a_unit_name,
        command: |index, switch| {
            let column = match switch {
                Switch::Off => 3,
                Switch::On => 4,
                Switch::Reset => 5,
            };
            // What is written is a delay in seconds.
            Some((join(&[1, 3, 6, 1, 4, 1, 534, 6, 6, 7, 6, 6, 1, column], index), 0))
        },
    },
    Tree {
        name: "managed ePDU",
        status: MANAGED,
        labels: Some(&[1, 3, 6, 1, 4, 1, 534, 6, 6, 6, 1, 2, 2, 1, 2]),
        states: &[(0, PlugState::Off), (1, PlugState::On), (2, PlugState::Transitioning)],
        witness: None,
        index_of: outlet_from_zero,
        plug_of: outlet_from_zero_name,
        command: |index, switch| {
            let value = match switch {
                Switch::Off => 0,
                Switch::On => 1,
                Switch::Reset => 2,
            };
            Some((join(MANAGED, index), value))
        },
    },
    Tree {
        name: "switched ePDU",
        status: &[1, 3, 6, 1, 4, 1, 20677, 2, 6, 3],
        labels: None,
        states: &[(1, PlugState::On), (2, PlugState::Off)],
        witness: None,
        index_of: outlet_before_zero,
        plug_of: outlet_before_zero_name,
        command: one_outlets_command,
    },
];

/// Status and command in one.
const MANAGED: &[u32] = &[1, 3, 6, 1, 4, 1, 534, 6, 6, 6, 1, 2, 2, 1, 3];

/// The column of commands of a switched ePDU, in which 1 stands for all outlets together.
const SWITCHED_COMMANDS: &[u32] = &[1, 3, 6, 1, 4, 1, 20677, 2, 6, 2];
const FIRST_OUTLETS_COMMAND: u32 = 2;

/// The command of one outlet stands one further than its status. It is never the one of all.
fn one_outlets_command(index: &[u32], switch: Switch) -> Option<(Oid, i64)> {
    let [outlet, 0] = index else { return None };
    let place = outlet.checked_add(1).filter(|place| *place >= FIRST_OUTLETS_COMMAND)?;
    let value = match switch {
        Switch::On => 1,
        Switch::Off => 2,
        Switch::Reset => 3,
    };
    Some((join(SWITCHED_COMMANDS, &[place, 0]), value))
}

/// `2.5`: outlet 5 of unit 2 of a daisy chain; a number alone is of unit 0, the first.
fn outlet_of_a_unit(plug: &str) -> Option<Oid> {
    let (unit, outlet) = plug.split_once('.').unwrap_or(("0", plug));
    Some(vec![number(unit)?, number(outlet)?])
}

fn outlet_of_a_unit_name(index: &[u32]) -> Option<String> {
    match index {
        [0, outlet] => Some(outlet.to_string()),
        [unit, outlet] => Some(format!("{unit}.{outlet}")),
        _ => None,
    }
}

/// The table counts from 0, and what is printed beside the outlets from 1.
fn outlet_from_zero(plug: &str) -> Option<Oid> {
    number(plug)?.checked_sub(1).map(|row| vec![row])
}

fn outlet_from_zero_name(index: &[u32]) -> Option<String> {
    match index {
        [row] => row.checked_add(1).map(|outlet| outlet.to_string()),
        _ => None,
    }
}

/// Each outlet is an object of its own, with the 0 that such objects end in.
fn outlet_before_zero(plug: &str) -> Option<Oid> {
    number(plug).filter(|outlet| *outlet > 0).map(|outlet| vec![outlet, 0])
}

fn outlet_before_zero_name(index: &[u32]) -> Option<String> {
    match index {
        [outlet, 0] if *outlet > 0 => Some(outlet.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the index: the object that switches all outlets is never written.
    #[test]
    fn all_outlets_together_can_never_be_switched() {
        let all = join(SWITCHED_COMMANDS, &[1, 0]);
        for outlet in [0, 1, 2, 7, u32::MAX - 1, u32::MAX] {
            for switch in [Switch::Off, Switch::On, Switch::Reset] {
                for index in [vec![outlet, 0], vec![outlet], vec![outlet, 1], vec![0, outlet, 0]] {
                    for tree in TREES {
                        let written = (tree.command)(&index, switch);
                        assert_ne!(written.map(|(oid, _)| oid), Some(all.clone()), "{index:?}");
                    }
                }
            }
        }
        assert_eq!(one_outlets_command(&[0, 0], Switch::Off), None);
        assert_eq!(one_outlets_command(&[u32::MAX, 0], Switch::Off), None);
        let first = one_outlets_command(&[1, 0], Switch::Off);
        assert_eq!(first, Some((join(SWITCHED_COMMANDS, &[2, 0]), 2)));
    }

    #[test]
    fn outlets_are_counted_as_they_are_printed() {
        assert_eq!(outlet_from_zero("1"), Some(vec![0]));
        assert_eq!(outlet_from_zero("0"), None);
        assert_eq!(outlet_from_zero_name(&[7]).as_deref(), Some("8"));
        assert_eq!(outlet_before_zero("0"), None);
        assert_eq!(outlet_of_a_unit("3"), Some(vec![0, 3]));
        assert_eq!(outlet_of_a_unit("2.3"), Some(vec![2, 3]));
        for plug in ["+3", "03", "-1", "3.", ".3", "4294967296", ""] {
            assert_eq!(outlet_of_a_unit(plug), None, "{plug}");
        }
    }
}
