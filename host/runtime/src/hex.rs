//! Bytes for people: hexadecimal, and the sha256 that names things by their content.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// In hexadecimal, lower case.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        // Writing into a String does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// The sha256 of `bytes`, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
