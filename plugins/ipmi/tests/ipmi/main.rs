//! The ipmi plugin, natively: against the BMC model in virtual time, against bytes captured from
//! ipmitool, and against ipmi_sim.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::needless_raw_string_hashes,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, and expect-test writes its own literals"
)]

mod bmc;
mod captured;
mod faults;
mod ipmi_sim;
mod manifest;
mod path;
mod properties;
