//! The process: reflectors, leadership, and the loop of the leader.

pub mod config_status;
pub mod controller;
pub mod leader_loop;
pub mod pinning;
pub mod refusals;
pub mod second_opinion;
pub mod sweep;
