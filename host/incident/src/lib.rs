//! One incident: it is opened, observed, decided on, recorded and acted for.

pub mod effects;
pub mod fence_due;
pub mod finalizer;
pub mod job;
pub mod neighbours;
pub mod open;
pub mod persist;
pub mod reconcile;
pub mod remedy_plugin;
pub mod repeat_alarm;
pub mod standstill;
pub mod state;
pub mod view;
pub mod wait;
