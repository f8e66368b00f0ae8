//! From documents to plans: what the configuration makes of a node.

pub mod enums;
pub mod plan;
pub mod symptoms;
pub mod wiring;
