//! The tables of each model, as its maker's MIB has them: columns, one row a plug.

use std::collections::BTreeMap;

use super::wire::Oid;
use crate::power::Change;

/// Which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// APC, second generation (PowerNet-MIB, rPDU2); it keeps the older tables beside its own.
    ApcRpdu2,
    /// APC, first generation (rPDU).
    ApcRpdu,
    /// Eaton G2 and G3 (EATON-EPDU-MIB), the first unit of a chain.
    Eaton,
    /// A switch (IF-MIB): ports `Gi1/0/1` and so on, with ifIndex 10001 and so on.
    Switch,
}

/// What the cells of a column hold.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    /// What people call the plug.
    Name(fn(u32) -> String),
    /// What the plug is, in these numbers for on and off.
    State([i64; 2]),
    /// What the plug was told last, in these numbers for on and off; writing one tells it. A third
    /// number is off and on again.
    Told([i64; 2], Option<i64>),
    /// Writing a delay in seconds does this; it reads -1, nothing under way.
    Does(Change),
}

type Column = (&'static [u32], Cell);

/// Where a cell stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) cell: Cell,
    pub(super) plug: u32,
    /// Of the device's several columns of states this is the one that it is asked for first.
    pub(super) is_newest: bool,
}

const RPDU2: [Column; 3] = [
    // rPDU2OutletSwitchedStatusState: off 1, on 2, the other way round than its own commands.
    (&[1, 3, 6, 1, 4, 1, 318, 1, 1, 26, 9, 2, 3, 1, 5], Cell::State([2, 1])),
    (&[1, 3, 6, 1, 4, 1, 318, 1, 1, 26, 9, 2, 3, 1, 3], Cell::Name(outlet)),
    (&[1, 3, 6, 1, 4, 1, 318, 1, 1, 26, 9, 2, 4, 1, 5], Cell::Told([1, 2], Some(3))),
];
const RPDU: [Column; 3] = [
    (&[1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 5, 1, 1, 4], Cell::State([1, 2])),
    (&[1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 5, 1, 1, 2], Cell::Name(outlet)),
    (&[1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 3, 1, 1, 4], Cell::Told([1, 2], Some(3))),
];
const EATON: [Column; 5] = [
    (&[1, 3, 6, 1, 4, 1, 534, 6, 6, 7, 6, 6, 1, 2, 0], Cell::State([1, 0])),
    (&[1, 3, 6, 1, 4, 1, 534, 6, 6, 7, 6, 1, 1, 3, 0], Cell::Name(outlet)),
    (&[1, 3, 6, 1, 4, 1, 534, 6, 6, 7, 6, 6, 1, 3, 0], Cell::Does(Change::Off)),
    (&[1, 3, 6, 1, 4, 1, 534, 6, 6, 7, 6, 6, 1, 4, 0], Cell::Does(Change::On)),
    (&[1, 3, 6, 1, 4, 1, 534, 6, 6, 7, 6, 6, 1, 5, 0], Cell::Does(Change::Reset)),
];
const SWITCH: [Column; 4] = [
    // ifOperStatus, ifAdminStatus, ifName, ifDescr.
    (&[1, 3, 6, 1, 2, 1, 2, 2, 1, 8], Cell::State([1, 2])),
    (&[1, 3, 6, 1, 2, 1, 2, 2, 1, 7], Cell::Told([1, 2], None)),
    (&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1], Cell::Name(port)),
    (&[1, 3, 6, 1, 2, 1, 2, 2, 1, 2], Cell::Name(long_port)),
];

/// The ifIndex before that of the first port.
const BEFORE_FIRST_PORT: u32 = 10_000;

impl Model {
    /// All of them, by the name that scenarios use.
    pub const ALL: [(&'static str, Self); 4] = [
        ("apc", Self::ApcRpdu2),
        ("apc-rpdu", Self::ApcRpdu),
        ("eaton", Self::Eaton),
        ("switch", Self::Switch),
    ];

    /// How the plug is called where a person configures a method: an outlet's number, a port's
    /// name.
    pub fn plug(self, number: u32) -> String {
        match self {
            Self::ApcRpdu2 | Self::ApcRpdu | Self::Eaton => number.to_string(),
            Self::Switch => port(number),
        }
    }

    fn columns(self) -> Vec<Column> {
        match self {
            Self::ApcRpdu2 => [RPDU2, RPDU].concat(),
            Self::ApcRpdu => RPDU.to_vec(),
            Self::Eaton => EATON.to_vec(),
            Self::Switch => SWITCH.to_vec(),
        }
    }

    fn row(self, plug: u32) -> u32 {
        match self {
            Self::ApcRpdu2 | Self::ApcRpdu | Self::Eaton => plug,
            Self::Switch => BEFORE_FIRST_PORT.saturating_add(plug),
        }
    }

    /// Every object of a device with so many plugs.
    pub(super) fn places(self, plugs: u32) -> BTreeMap<Oid, Place> {
        let mut places = BTreeMap::new();
        for (number, (column, cell)) in self.columns().into_iter().enumerate() {
            for plug in 1..=plugs {
                let oid = [column, &[self.row(plug)]].concat();
                places.insert(oid, Place { cell, plug, is_newest: number == 0 });
            }
        }
        places
    }
}

fn outlet(plug: u32) -> String {
    format!("outlet {plug}")
}

fn port(plug: u32) -> String {
    format!("Gi1/0/{plug}")
}

fn long_port(plug: u32) -> String {
    format!("GigabitEthernet1/0/{plug}")
}
