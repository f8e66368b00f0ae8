//! What every task of the process shares.

pub mod context;
pub mod device_health;
