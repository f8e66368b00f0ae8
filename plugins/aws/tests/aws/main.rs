//! The aws plugin, natively: against an account in memory, in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_raw_string_hashes,
    reason = "a test fails by panicking, and expect-test writes its own literals"
)]

mod account;
mod faults;
mod group;
mod power;
