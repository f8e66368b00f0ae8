//! Where the values of a plan were written, for people who ask.

use std::collections::{BTreeMap, BTreeSet};

use super::expression::Expression;
use super::plugins::is_secret;
use super::source::FenceSource;
use crate::document::Spot;

/// How a value was written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// What was written where it takes something from the node or its inventory, such as
    /// `${node.name}`.
    pub expression: Option<String>,
    /// Where: the path tells a template's value from a method's own.
    pub spot: Spot,
}

/// Where the values of one method were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodWritten {
    /// The plug, unless it is empty.
    pub plug: Option<Written>,
    /// By parameter; one that is missing follows from the node.
    pub parameters: BTreeMap<String, Written>,
}

impl FenceSource {
    /// Where the values of each method were written, in the order of a plan's methods.
    pub fn written(&self, named: &BTreeSet<String>) -> Vec<MethodWritten> {
        let methods = self.drafts(named).map(|draft| MethodWritten {
            plug: Some(written(&draft.plug)).filter(|_| !draft.plug.to_string().is_empty()),
            parameters: draft
                .parameters
                .iter()
                .map(|(name, expression)| (name.clone(), written(expression)))
                .collect(),
        });
        methods.collect()
    }
}

/// Whether a parameter's value is nobody's to read.
pub fn is_hidden(parameter: &str) -> bool {
    is_secret(parameter)
}

fn written(expression: &Expression) -> Written {
    let text = expression.takes().then(|| expression.to_string());
    Written { expression: text, spot: expression.spot.clone() }
}
