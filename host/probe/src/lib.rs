//! Asks devices whether they answer, before anybody needs them, and listens for kernel dumps.

pub mod device_network;
pub mod kdump_listener;
pub mod reached_elsewhere;
pub mod round;
pub mod status;
