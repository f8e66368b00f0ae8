//! Record: what was decided and what came of it, each fact by one writer.
//!
//! [`status`] is the translation both ways between a record and `NodeFence.status`; [`sentences`] are the words of
//! Events; [`audit`] is told everything. Who writes a record: `host/incident/src/persist.rs`.

pub mod audit;
pub mod audit_file;
pub mod called;
pub mod hash_chain;
pub mod reason;
pub mod repeat_filter;
pub mod sentences;
pub mod status;
pub mod workload;
