//! The sandbox against real components: what it refuses to load, and what a guest that misbehaves
//! in every way we could think of gets for it. One file per subject; `guest.rs` is what they share.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy.toml allows them in test functions; the helpers here are outside of any"
)]

mod calls;
mod connection;
mod connection_sockets;
mod effects;
mod fetch;
mod fetch_sockets;
mod floods;
mod guest;
mod ipmi;
mod load;
mod login;
mod plugin_limits;
mod remedy;
mod threads;
mod transcript;
mod watch;
