//! Tests that need the model cluster or a simulated run, by the room they are about.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test's helpers may fail the test"
)]

mod act;
mod controller;
mod incident;
mod observe;
mod record;
mod runtime;
