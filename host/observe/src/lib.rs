//! Observe: informer caches, live reads, and what is made of them for the core.

pub mod answers;
pub mod caches;
pub mod claims;
pub mod condition_history;
pub mod config;
pub mod device_quarantine;
pub mod incident_rate;
pub mod kdump;
pub mod live;
pub mod node_events;
pub mod nodefences;
pub mod off_sightings;
pub mod offs;
pub mod pins;
pub mod pruned;
pub mod reflector;
pub mod storage_leases;
pub mod store;
pub mod superseding;
pub mod unhealthy;
pub mod unhealthy_nodes;
pub mod unproven;
pub mod unread;
pub mod vetoes;
pub mod view;
pub mod volumes;
