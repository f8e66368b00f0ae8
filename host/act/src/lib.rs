//! Act: carries recorded decisions out, each keyed by its operation, each idempotent,
//! each bounded in time. Nothing here decides.

pub mod budget;
pub mod calls;
pub mod delete;
pub mod job;
pub mod network_fence;
pub mod node;
pub mod node_lock;
pub mod retention;
