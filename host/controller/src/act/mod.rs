//! Act: carries recorded decisions out, each keyed by its operation, each idempotent,
//! each bounded in time. Nothing here decides.

pub mod ask;
pub mod budget;
pub mod calls;
pub mod effects;
pub(crate) mod grant;
pub mod job;
pub mod network_fence;
pub mod node;
pub mod node_lease;
pub mod offline;
pub mod release;
#[cfg(test)]
mod tests;
