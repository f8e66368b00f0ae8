//! The sha256 that names things by their content.

use sha2::{Digest as _, Sha256};

/// The sha256 of `bytes`, in hexadecimal, lower case.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
