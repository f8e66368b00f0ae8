//! A port: found by what people call it, read by both of its states, written by one.

use node_remedy_plugin_snmp::{
    Oid, Plug, Reading, Session, Switch, Value, join, no_such_plug, number,
};
use node_remedy_sdk::{Failure, FailureKind, Fields, Host, PlugInfo, PlugState};

use crate::limits;

/// ifAdminStatus: what the port is told to be (RFC 2863).
const ADMIN: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 7];
/// ifOperStatus: what it is.
const OPER: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 8];
/// ifName, ifAlias, ifDescr, in the order in which a plug is looked for.
const NAMES: [(&str, &[u32]); 3] = [
    ("ifName", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1]),
    ("ifAlias", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 18]),
    ("ifDescr", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2]),
];
/// How an index is written where it must not be taken for a name.
const INDEX: &str = "index:";
/// pethPsePortAdminEnable (RFC 3621): whether the port gives power, 1 or 2.
const POE_ENABLE: &[u32] = &[1, 3, 6, 1, 2, 1, 105, 1, 1, 1, 3];
/// pethPsePortDetectionStatus: whether it does.
const POE_STATUS: &[u32] = &[1, 3, 6, 1, 2, 1, 105, 1, 1, 1, 6];

const UP: i64 = 1;
const DOWN: i64 = 2;

/// One port, which is there.
pub(crate) struct Port {
    index: u32,
    /// What people call it; the index where it has no name.
    name: String,
    alias: Option<String>,
    poe: Option<[u32; 2]>,
}

impl Port {
    /// Finds the port that a plug names: `index:N`, a name, an alias or a description of exactly one
    /// port, or a number that is nothing else.
    pub(crate) fn find<H: Host>(
        session: &Session<'_, H>,
        plug: &str,
        poe: Option<[u32; 2]>,
    ) -> Result<Self, Failure> {
        if plug.is_empty() {
            return Err(no_such_plug("the plug names no port: give its name, or index:N"));
        }
        let index = match plug.strip_prefix(INDEX) {
            Some(written) => number(written).ok_or_else(|| {
                no_such_plug(format!("{plug:?}: expected a number after {INDEX}"))
            })?,
            None => Self::named(session, plug)?,
        };
        if is_nothing(&session.get_one(&join(ADMIN, &[index]))?) {
            return Err(no_such_plug(format!("the switch has no port with index {index}")));
        }
        if let Some(poe) = poe
            && is_nothing(&session.get_one(&join(POE_ENABLE, &poe))?)
        {
            let [group, port] = poe;
            return Err(no_such_plug(format!(
                "poe-port: the switch gives no power on {group}.{port}"
            )));
        }
        let mut port = Self { index, name: format!("{INDEX}{index}"), alias: None, poe };
        for (kind, column) in NAMES {
            let text = text(&session.get_one(&join(column, &[index]))?);
            match (kind, text) {
                ("ifAlias", alias) => port.alias = alias,
                (_, Some(name)) if port.name.starts_with(INDEX) => port.name = name,
                (_, _) => {}
            }
        }
        Ok(port)
    }

    /// The index of the only port that goes by this name, in whichever column.
    fn named<H: Host>(session: &Session<'_, H>, plug: &str) -> Result<u32, Failure> {
        let mut found: Vec<(u32, &str)> = Vec::new();
        for (kind, column) in NAMES {
            for (row, value) in session.walk(column)? {
                let [index] = *row else { continue };
                if text(&value).as_deref() == Some(plug) {
                    found.push((index, kind));
                }
            }
        }
        if let Some(index) = number(plug)
            && !is_nothing(&session.get_one(&join(ADMIN, &[index]))?)
        {
            found.push((index, "index"));
        }
        let Some((first, _)) = found.first().copied() else {
            return Err(no_such_plug(format!(
                "the switch has no port with the name, alias or description {plug:?}"
            )));
        };
        if found.iter().all(|(index, _)| *index == first) {
            return Ok(first);
        }
        let several: Vec<_> = found
            .iter()
            .take(limits::NAMED_MAX)
            .map(|(index, kind)| format!("{INDEX}{index} by its {kind}"))
            .collect();
        Err(no_such_plug(format!("{plug:?} is several ports: {}; write which", several.join(", "))))
    }

    /// Every port of the switch.
    pub(crate) fn all<H: Host>(session: &Session<'_, H>) -> Result<Vec<PlugInfo>, Failure> {
        let column = |wanted: &str| {
            let found = NAMES.iter().find(|(kind, _)| *kind == wanted);
            found.map_or_else(|| Ok(Vec::new()), |(_, column)| session.walk(column))
        };
        let (names, aliases) = (column("ifName")?, column("ifAlias")?);
        let oper = session.walk(OPER)?;
        let of = |rows: &[(Oid, Value)], row: &Oid| {
            rows.iter().find(|(one, _)| one == row).map(|(_, value)| value.clone())
        };
        let mut ports = Vec::new();
        for (row, admin) in session.walk(ADMIN)? {
            let [index] = *row else { continue };
            let name = of(&names, &row).and_then(|value| text(&value));
            let alias = of(&aliases, &row).and_then(|value| text(&value));
            let oper = of(&oper, &row).unwrap_or(Value::Null);
            ports.push(PlugInfo {
                plug: format!("{INDEX}{index}"),
                name: name.unwrap_or_default(),
                state: state(status(&admin)?, status(&oper)?, None),
                identity: label(alias.as_ref()),
            });
        }
        Ok(ports)
    }
}

impl Plug for Port {
    fn name(&self) -> String {
        format!("port {}", self.name)
    }

    fn identity(&self) -> Fields {
        label(self.alias.as_ref())
    }

    fn read<H: Host>(&self, session: &Session<'_, H>) -> Result<Reading, Failure> {
        let (admin, oper) = (join(ADMIN, &[self.index]), join(OPER, &[self.index]));
        let mut asked = vec![admin, oper];
        if let Some(poe) = self.poe {
            asked.extend([join(POE_ENABLE, &poe), join(POE_STATUS, &poe)]);
        }
        let values = session.get(&asked)?;
        let numbers = values.iter().map(status).collect::<Result<Vec<_>, _>>()?;
        let (admin, oper, poe) = match *numbers {
            [admin, oper] => (admin, oper, None),
            [admin, oper, enable, power] => (admin, oper, Some((enable, power))),
            _ => return Err(Failure::new(FailureKind::Protocol, "found no state of the port")),
        };
        let words = format!("admin {}, oper {}", word(admin), word(oper));
        let words = match poe {
            None => words,
            Some((enable, power)) => {
                let enabled = if enable == UP { "enabled" } else { "disabled" };
                format!("{words}, power {enabled}, {}", power_word(power))
            }
        };
        Ok(Reading { state: state(admin, oper, poe), words })
    }

    fn objects(&self, switch: Switch) -> Option<Vec<(Oid, i64)>> {
        let value = match switch {
            Switch::Off => DOWN,
            Switch::On => UP,
            Switch::Reset => return None,
        };
        let poe = self.poe.map(|poe| (join(POE_ENABLE, &poe), value));
        Some([(join(ADMIN, &[self.index]), value)].into_iter().chain(poe).collect())
    }
}

/// GROUP.PORT of the parameter; empty is none.
pub(crate) fn poe_index(written: &str) -> Result<Option<[u32; 2]>, Failure> {
    if written.is_empty() {
        return Ok(None);
    }
    let parts = written.split_once('.').and_then(|(group, port)| {
        let index = [number(group)?, number(port)?];
        Some(index)
    });
    let wrong = format!("poe-port: found {written:?}, expected GROUP.PORT, as 1.7");
    parts.map(Some).ok_or_else(|| Failure::new(FailureKind::BadParameters, wrong))
}

/// Off only if the port was told to be down and is no longer up. Told so and still up is on its way,
/// or a switch that does not do what it says.
fn state(admin: i64, oper: i64, poe: Option<(i64, i64)>) -> PlugState {
    // down, notPresent, lowerLayerDown; the others carry traffic, or may.
    let is_quiet = matches!(oper, 2 | 6 | 7);
    // disabled; searching is what a port does that gives power again soon.
    let is_dark = poe.is_none_or(|(enable, power)| enable == DOWN && power != DELIVERING);
    let is_fed = poe.is_none_or(|(enable, _)| enable == UP);
    match admin {
        DOWN if is_quiet && is_dark => PlugState::Off,
        DOWN => PlugState::Transitioning,
        UP if is_fed => PlugState::On,
        // testing: nothing passes, and nobody said for how long.
        UP | 3 => PlugState::Transitioning,
        _ => PlugState::Unknown,
    }
}

/// pethPsePortDetectionStatus: deliveringPower.
const DELIVERING: i64 = 3;

fn word(status: i64) -> String {
    match status {
        1 => "up".to_owned(),
        2 => "down".to_owned(),
        3 => "testing".to_owned(),
        4 => "unknown".to_owned(),
        5 => "dormant".to_owned(),
        6 => "notPresent".to_owned(),
        7 => "lowerLayerDown".to_owned(),
        other => other.to_string(),
    }
}

fn power_word(status: i64) -> String {
    match status {
        1 => "none given".to_owned(),
        2 => "searching".to_owned(),
        DELIVERING => "given".to_owned(),
        4 => "fault".to_owned(),
        5 => "testing".to_owned(),
        6 => "another fault".to_owned(),
        other => other.to_string(),
    }
}

fn label(alias: Option<&String>) -> Fields {
    alias.map(|alias| ("label".to_owned(), alias.clone())).into_iter().collect()
}

fn status(value: &Value) -> Result<i64, Failure> {
    match value {
        Value::Integer(number) => Ok(*number),
        nothing if is_nothing(nothing) => Err(no_such_plug("the port is no longer there")),
        Value::Text(_)
        | Value::Oid(_)
        | Value::Unsigned(_)
        | Value::Other
        | Value::Null
        | Value::NoSuchObject
        | Value::NoSuchInstance
        | Value::EndOfMib => {
            Err(Failure::new(FailureKind::Protocol, "the state of the port is no number"))
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMib)
}

/// The device's own words, made short.
fn text(value: &Value) -> Option<String> {
    let Value::Text(bytes) = value else { return None };
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.trim_matches(['\0', ' ']).chars().take(limits::NAME_MAX).collect();
    (!text.is_empty()).then_some(text)
}
