//! PDUs. Makers have several tables of outlets, old and new, and devices of one make have some of
//! them: which ones is asked of the device, not concluded from what it says it is.

use node_remedy_sdk::{Failure, FailureKind, Fields, Host, PlugInfo, PlugState};

use crate::codec::{Oid, Value};
use crate::limits;
use crate::plug::{Plug, Reading, Switch, no_such_plug};
use crate::session::Session;

/// What the numbers of a status column mean.
pub type States = &'static [(i64, PlugState)];

/// Where and what to write for a row; `None` where it cannot be done.
pub type Command = fn(&[u32], Switch) -> Option<(Oid, i64)>;

/// A table of outlets as a maker's MIB has it.
pub struct Tree {
    /// What people call it.
    pub name: &'static str,
    /// The column with the outlets' states.
    pub status: &'static [u32],
    /// The column with the outlets' names, where there is one.
    pub labels: Option<&'static [u32]>,
    /// What the numbers of the status column mean; any other is no state.
    pub states: States,
    /// An older table beside this one, which says the same of the rows that it has: a column and what
    /// its numbers mean. Where the two disagree, the outlet is neither on nor off.
    pub witness: Option<(&'static [u32], States)>,
    /// The row of a plug, where the plug is written as a number.
    pub index_of: fn(&str) -> Option<Oid>,
    /// How that row's plug is written.
    pub plug_of: fn(&[u32]) -> Option<String>,
    /// Where and what to write.
    pub command: Command,
}

impl Tree {
    /// What the older table says, where it has the row.
    fn witnessed(&self, value: &Value) -> Option<PlugState> {
        let (_, states) = self.witness?;
        let Value::Integer(number) = value else { return None };
        Some(state(states, *number))
    }
}

/// One outlet, which is there.
pub struct Outlet {
    tree: &'static Tree,
    index: Oid,
    plug: String,
    label: Option<String>,
}

impl Outlet {
    /// Finds the outlet that a plug names: by its number, or by the name that it has on the device.
    pub fn find<H: Host>(
        session: &Session<'_, H>,
        trees: &'static [Tree],
        plug: &str,
    ) -> Result<Self, Failure> {
        if plug.is_empty() {
            return Err(no_such_plug("the plug names no outlet: give its number or its name"));
        }
        let tree = tree(session, trees)?;
        let Some(index) = (tree.index_of)(plug) else { return Self::named(session, tree, plug) };
        let status = session.get_one(&join(tree.status, &index))?;
        if is_nothing(&status) {
            let there = list(&plugs_of(tree, &session.walk(tree.status)?));
            let name = tree.name;
            return Err(no_such_plug(format!(
                "{name} has no outlet {plug}; expected one of {there}"
            )));
        }
        let label = match tree.labels {
            Some(column) => text(&session.get_one(&join(column, &index))?),
            None => None,
        };
        Ok(Self { tree, index, plug: plug.to_owned(), label })
    }

    fn named<H: Host>(
        session: &Session<'_, H>,
        tree: &'static Tree,
        plug: &str,
    ) -> Result<Self, Failure> {
        let rows = session.walk(tree.status)?;
        let labels = match tree.labels {
            Some(column) => session.walk(column)?,
            None => Vec::new(),
        };
        let mut found = Vec::new();
        for (index, _) in &rows {
            let label = labels.iter().find(|(row, _)| row == index);
            let label = label.and_then(|(_, value)| text(value));
            if label.as_deref() == Some(plug) {
                let number = (tree.plug_of)(index).unwrap_or_default();
                found.push(Self { tree, index: index.clone(), plug: number, label });
            }
        }
        let name = tree.name;
        match (found.pop(), found.len()) {
            (Some(outlet), 0) => Ok(outlet),
            (Some(_), others) => Err(no_such_plug(format!(
                "{} outlets are called {plug:?}: name one by its number",
                others + 1
            ))),
            (None, _) => Err(no_such_plug(format!(
                "{name} has no outlet called {plug:?}; expected a name, or one of {}",
                list(&plugs_of(tree, &rows))
            ))),
        }
    }

    /// Every outlet of the device.
    pub fn all<H: Host>(
        session: &Session<'_, H>,
        trees: &'static [Tree],
    ) -> Result<Vec<PlugInfo>, Failure> {
        let tree = tree(session, trees)?;
        let labels = match tree.labels {
            Some(column) => session.walk(column)?,
            None => Vec::new(),
        };
        let witnesses = match tree.witness {
            Some((column, _)) => session.walk(column)?,
            None => Vec::new(),
        };
        let mut outlets = Vec::new();
        for (index, status) in session.walk(tree.status)? {
            let Some(plug) = (tree.plug_of)(&index) else { continue };
            let label = labels.iter().find(|(row, _)| *row == index);
            let label = label.and_then(|(_, value)| text(value));
            let witness = witnesses.iter().find(|(row, _)| *row == index);
            let witness = witness.and_then(|(_, value)| tree.witnessed(value));
            let outlet = Self { tree, index, plug, label };
            outlets.push(PlugInfo {
                state: outlet.reading(&status, witness)?.state,
                identity: outlet.identity(),
                name: outlet.label.unwrap_or_default(),
                plug: outlet.plug,
            });
        }
        Ok(outlets)
    }

    fn reading(&self, status: &Value, witness: Option<PlugState>) -> Result<Reading, Failure> {
        match status {
            Value::Integer(number) => {
                let state = state(self.tree.states, *number);
                let words = format!("{} ({number})", state.word());
                Ok(
                    match witness.filter(|witness| *witness != state && state != PlugState::Unknown)
                    {
                        None => Reading { state, words },
                        Some(other) => Reading {
                            state: PlugState::Transitioning,
                            words: format!("{words}, and its older table {}", other.word()),
                        },
                    },
                )
            }
            gone if is_nothing(gone) => {
                Err(no_such_plug(format!("{} is no longer there", self.name())))
            }
            Value::Text(_)
            | Value::Oid(_)
            | Value::Unsigned(_)
            | Value::Other
            | Value::Null
            | Value::NoSuchObject
            | Value::NoSuchInstance
            | Value::EndOfMib => Err(Failure::new(
                FailureKind::Protocol,
                format!("{}: its state is no number", self.name()),
            )),
        }
    }
}

impl Plug for Outlet {
    fn name(&self) -> String {
        format!("{} outlet {}", self.tree.name, self.plug)
    }

    fn identity(&self) -> Fields {
        self.label.iter().map(|label| ("label".to_owned(), label.clone())).collect()
    }

    fn read<H: Host>(&self, session: &Session<'_, H>) -> Result<Reading, Failure> {
        let own = join(self.tree.status, &self.index);
        let Some((column, _)) = self.tree.witness else {
            return self.reading(&session.get_one(&own)?, None);
        };
        let both = session.get(&[own, join(column, &self.index)])?;
        let witness = both.get(1).and_then(|value| self.tree.witnessed(value));
        self.reading(both.first().unwrap_or(&Value::Null), witness)
    }

    fn objects(&self, switch: Switch) -> Option<Vec<(Oid, i64)>> {
        (self.tree.command)(&self.index, switch).map(|object| vec![object])
    }
}

fn state(states: States, number: i64) -> PlugState {
    let known = states.iter().find(|(known, _)| *known == number);
    known.map_or(PlugState::Unknown, |(_, state)| *state)
}

/// The first of these tables that the device has.
fn tree<H: Host>(
    session: &Session<'_, H>,
    trees: &'static [Tree],
) -> Result<&'static Tree, Failure> {
    for tree in trees {
        let next = session.get_next(tree.status)?;
        if next.is_some_and(|(oid, _)| oid.starts_with(tree.status)) {
            return Ok(tree);
        }
    }
    let names: Vec<_> = trees.iter().map(|tree| tree.name).collect();
    Err(Failure::new(
        FailureKind::Unsupported,
        format!(
            "the device has none of the tables of outlets that this method knows ({}): is it of this \
             make, switched by outlet, and may the user see them?",
            names.join(", ")
        ),
    ))
}

/// A column or a row, and what is below it.
pub fn join(column: &[u32], index: &[u32]) -> Oid {
    [column, index].concat()
}

/// A number as people write it: digits, no sign, no zero in front.
pub fn number(text: &str) -> Option<u32> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = text.len() > 1 && text.starts_with('0');
    if is_plain && !is_padded { text.parse().ok() } else { None }
}

/// Nothing stands there.
pub(crate) fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMib)
}

/// A device's own words, made short.
fn text(value: &Value) -> Option<String> {
    let Value::Text(bytes) = value else { return None };
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.trim_matches(['\0', ' ']).chars().take(limits::WORDS_MAX).collect();
    (!text.is_empty()).then_some(text)
}

fn plugs_of(tree: &Tree, rows: &[(Oid, Value)]) -> Vec<String> {
    rows.iter().filter_map(|(index, _)| (tree.plug_of)(index)).collect()
}

/// A few of them, for a sentence.
fn list(plugs: &[String]) -> String {
    let some = plugs.iter().take(limits::LISTED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if plugs.len() > limits::LISTED_MAX { format!("{some}, …") } else { some }
}
