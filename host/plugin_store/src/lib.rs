//! Which plugins may run, what is known of each, and what their grants open.

pub mod authorize;
pub mod describe;
pub mod state;
pub mod store;
