//! The methods that must read a machine as off beside the one that switched it off, and where that
//! was written.

use node_remedy_api::document::{Document, Path, Tree, Value};
use node_remedy_api::plan;
use node_remedy_api::plan::{FenceSource, NodePlan};

use crate::config::shown::{Shown, Sourced, place};

impl Shown {
    /// Adds its witness to each method that has one. `source` is what the plan was made of.
    pub(super) fn take_witnesses(
        &mut self,
        plan: &NodePlan,
        source: Option<&FenceSource>,
        documents: &[Document],
    ) {
        let document = source.and_then(|source| documents.iter().find(|one| is_of(one, source)));
        let shown = self.plan.iter_mut().flat_map(|shown| &mut shown.methods);
        for (shown, method) in shown.zip(&plan.methods) {
            let index = method.witness.and_then(|index| usize::try_from(index).ok());
            let Some(witness) = index.and_then(|index| plan.methods.get(index)) else { continue };
            let from = document.and_then(|one| written(one, &method.name, &witness.name));
            shown.witness = Some(Sourced {
                value: witness.name.as_str().into(),
                from: from.unwrap_or_else(|| plan.sources.join(", ")),
            });
        }
    }
}

/// Of several documents in one file, those nodes tell which one it is.
fn is_of(document: &Document, source: &FenceSource) -> bool {
    document.root.get("kind").and_then(Tree::text) == Some("FenceConfiguration")
        && plan::read(document)
            .value
            .is_some_and(|read| read.origin == source.origin && read.nodes == source.nodes)
}

fn written(document: &Document, method: &str, witness: &str) -> Option<String> {
    let path = Path::root().field("spec").field("methods");
    let Some(Value::List(entries)) = document.at(&path).map(|list| &list.value) else {
        return None;
    };
    let mut naming: Vec<(usize, &Tree)> = entries.iter().enumerate().collect();
    naming.retain(|(_, entry)| text(entry, "witness") == Some(witness));
    // Two that are joined as one go by what their names share, and either may name the witness.
    let is_it = |entry: &Tree| {
        text(entry, "name").is_some_and(|name| {
            name == method
                || ["-off", "-on"].iter().any(|end| name.strip_suffix(end) == Some(method))
        })
    };
    let found = naming.iter().find(|(_, entry)| is_it(entry)).or_else(|| naming.first());
    found.map(|(index, _)| place(&document.spot(&path.index(*index).field("witness"))))
}

fn text<'a>(entry: &'a Tree, field: &str) -> Option<&'a str> {
    entry.get(field).and_then(Tree::text)
}
