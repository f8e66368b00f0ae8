//! Record: what was decided and what came of it, each fact by one writer.
//!
//! [`write`] puts the record into NodeFence.status before anything is done; [`status`]
//! is the translation both ways; Events, metrics and the audit line follow from it.
//! [`retention`] removes records that nobody needs any more.

pub mod audit;
pub mod audit_file;
pub mod called;
pub mod hash_chain;
pub mod reason;
pub mod repeat_filter;
pub mod sentences;
pub mod status;
pub mod workload;
