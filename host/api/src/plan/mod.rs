//! How one node is fenced, with everything resolved: what a `FenceConfiguration` or the ConfigMaps
//! compile to, and what a `NodeFence` keeps as its snapshot. No secrets are in it, only where
//! they stand.

mod address;
mod agents;
mod cloud;
mod config_maps;
mod device;
mod expression;
mod grants;
mod inventory;
mod method_lines;
mod model;
pub mod network_fence;
mod object;
mod plugins;
mod properties;
mod source;
mod trust;
mod written;

pub use self::address::with_port;
pub use self::agents::{Meaning, known, meaning};
pub use self::cloud::default_plan;
pub use self::config_maps::{NodeReading, read_config_maps};
pub use self::expression::NodeFacts;
pub(crate) use self::grants::check as check_grant;
pub use self::grants::{Allows, Budget, Grant, TlsGrant, is_cidr};
pub use self::inventory::{InventoryError, InventoryTable};
pub use self::object::read;
pub use self::plugins::{agents, is_cloud, plugin_of, value_of};
pub use self::source::{FenceSource, FencedTwice, Nodes, for_node};
pub use self::written::{MethodUse, MethodWritten, Written, is_hidden};
pub use model::{
    Binding, Builtin, Credential, Feed, LiteralPlace, Method, MethodFacts, NeededFor, NodePlan,
    PluginKind, Run, SecretPlace, Stage,
};
