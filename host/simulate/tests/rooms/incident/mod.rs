//! Of `host/incident`.

mod effects;
mod finalizer;
mod open;
mod reconcile;
mod repeat_alarm;
