//! Commands that call one device or one plugin.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod args;
pub mod fence;
pub mod files;
pub mod output;
pub mod plugin;
pub mod unread;
pub mod wiring;
