//! RemedyConfigurations and FenceConfigurations of which no version was valid since this process began. Nobody
//! knows what they want for the nodes that they select, so these are left alone, and told of: every node, where
//! the selector cannot be read either.

use node_remedy_api::selector::Selector;
use serde_json::Value;

use crate::config::readout::Readout;
use crate::pruned::PrunedNode;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    kind: &'static str,
    name: String,
    selects: Selects,
}

/// The nodes that an invalid object selects.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Selects {
    All,
    These(Selector),
    /// That cannot be read either.
    Unknown,
}

impl Invalid {
    /// By what was read of it; no selector: every node.
    pub(super) fn new(readout: &Readout, selector: Option<&Value>) -> Self {
        let selects = match selector {
            None | Some(Value::Null) => Selects::All,
            Some(text) => {
                let selector = text.as_str().and_then(|text| Selector::parse(text).ok());
                selector.map_or(Selects::Unknown, Selects::These)
            }
        };
        Self { kind: readout.kind, name: readout.name.clone(), selects }
    }

    fn why(&self) -> String {
        let Self { kind, name, selects } = self;
        let which = match selects {
            Selects::All | Selects::These(_) => "which selects this node",
            Selects::Unknown => "which may select this node",
        };
        format!("{kind} {name}, {which}, is not valid and was not since this process began")
    }
}

/// Why a node is left alone that one of this kind selects, or may select.
pub(super) fn that_selects(all: &[Invalid], kind: &str, node: &PrunedNode) -> Option<String> {
    let mut of_kind = all.iter().filter(|one| one.kind == kind);
    let selecting = of_kind.find(|one| match &one.selects {
        Selects::All | Selects::Unknown => true,
        Selects::These(selector) => selector.matches(&node.labels),
    });
    selecting.map(Invalid::why)
}
