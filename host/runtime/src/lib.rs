//! What every crate above stands on: the API client, the clock, leader election, metrics, Events, and the HTTP endpoints.

pub mod admin;
pub mod clock;
pub mod cluster;
pub mod digest;
pub mod events;
pub mod leader_election;
pub mod metrics;
pub mod names;
pub mod protected_addresses;
pub mod text;
pub mod udp;
pub mod virtual_clock;
