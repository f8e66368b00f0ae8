//! What users write and what the cluster stores: the custom resources of `node-remedy.io`, the
//! `Configuration` document, the fence ConfigMaps, and the validated twins they are parsed into.
//!
//! No client, no clock, no decisions.

#![expect(clippy::duplicated_attributes, reason = "columns of a table repeat their types")]
#![expect(unreachable_pub, reason = "KubeSchema repeats each struct inside a function")]

pub mod annotations;
pub mod conditions;
pub mod configuration;
pub mod crds;
pub mod document;
pub mod fenceconfiguration;
pub mod fenceplugin;
pub mod limits;
pub mod nodefence;
pub mod plan;
pub mod policy;
pub mod reference;
pub mod remedybudget;
pub mod remedyconfiguration;
pub mod remedypause;
pub mod selector;
pub mod time;

/// The group of every custom resource here.
pub const GROUP: &str = "node-remedy.io";
/// Its version.
pub const VERSION: &str = "v1alpha1";
