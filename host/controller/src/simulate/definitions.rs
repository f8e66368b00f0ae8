//! What the controller writes is held against the definitions that are shipped with it, as a real API server
//! holds it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use node_remedy_api::document::Definition;
use node_remedy_api::fenceconfiguration::FenceConfiguration;
use node_remedy_api::fenceplugin::FencePlugin;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::remedybudget::RemedyBudget;
use node_remedy_api::remedyconfiguration::RemedyConfiguration;
use node_remedy_api::remedypause::RemedyPause;
use node_remedy_world::api::Kind;
use serde_json::Value;

static DEFINITIONS: LazyLock<BTreeMap<Kind, Definition>> = LazyLock::new(|| {
    BTreeMap::from([
        (Kind::FenceConfiguration, Definition::of::<FenceConfiguration>()),
        (Kind::FencePlugin, Definition::of::<FencePlugin>()),
        (Kind::NodeFence, Definition::of::<NodeFence>()),
        (Kind::RemedyBudget, Definition::of::<RemedyBudget>()),
        (Kind::RemedyConfiguration, Definition::of::<RemedyConfiguration>()),
        (Kind::RemedyPause, Definition::of::<RemedyPause>()),
    ])
});

/// Drops what its definition does not name of a part, and says where that was; refuses what it does not allow.
pub(super) fn admit(kind: Kind, part: &str, object: &mut Value) -> Result<Vec<String>, String> {
    let definition = DEFINITIONS.get(&kind);
    definition.map_or_else(|| Ok(Vec::new()), |definition| definition.admit(part, object))
}
