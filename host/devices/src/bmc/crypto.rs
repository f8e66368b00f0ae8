//! The few primitives IPMI needs, and the seeded generator that stands in for a BMC's randomness.

use aes::Aes128;
use aes::cipher::block_padding::NoPadding;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

use crate::bmc::config::Suite;

pub(super) const BLOCK: usize = 16;

/// The HMAC of a suite, at its full length.
pub(super) fn mac(suite: Suite, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    match suite {
        Suite::Sha1 => mac_with::<Hmac<Sha1>>(key, parts),
        Suite::Sha256 => mac_with::<Hmac<Sha256>>(key, parts),
    }
}

fn mac_with<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    // HMAC takes keys of any length, so this never falls through to the empty code.
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(key) else { return Vec::new() };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

/// AES-CBC over whole blocks, with the IV in front.
pub(super) fn encrypt(key: &[u8; BLOCK], iv: &[u8; BLOCK], plain: &[u8]) -> Vec<u8> {
    let cipher = cbc::Encryptor::<Aes128>::new(key.into(), iv.into());
    let mut out = iv.to_vec();
    out.extend(cipher.encrypt_padded_vec::<NoPadding>(plain));
    out
}

/// The reverse; `None` for anything but an IV and whole blocks.
pub(super) fn decrypt(key: &[u8; BLOCK], data: &[u8]) -> Option<Vec<u8>> {
    let (iv, blocks) = data.split_first_chunk::<BLOCK>()?;
    let cipher = cbc::Decryptor::<Aes128>::new(key.into(), iv.into());
    cipher.decrypt_padded_vec::<NoPadding>(blocks).ok()
}

/// SplitMix64: small, and good enough for numbers that only have to differ.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn bytes(&mut self) -> [u8; BLOCK] {
        let mut out = [0; BLOCK];
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes());
        }
        out
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
