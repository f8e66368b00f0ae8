//! The random bytes of one call: a stream that its seed decides, so that a simulation repeats
//! itself and production is as good as the system's seed. Both the `op` interface and std's own
//! randomness inside the guest draw from it.

use std::convert::Infallible;

use sha2::{Digest, Sha256};

/// SHA-256 in counter mode over a seed nobody else has.
#[derive(Clone)]
pub(crate) struct Randomness {
    seed: [u8; 32],
    purpose: u8,
    block: u64,
}

impl Randomness {
    /// One stream per purpose: how much std draws must not move what a session draws.
    pub(crate) fn new(seed: [u8; 32], purpose: u8) -> Self {
        Self { seed, purpose, block: 0 }
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            let block = Sha256::new()
                .chain_update(self.seed)
                .chain_update([self.purpose])
                .chain_update(self.block.to_be_bytes())
                .finalize();
            self.block = self.block.wrapping_add(1);
            for (to, from) in chunk.iter_mut().zip(block.iter()) {
                *to = *from;
            }
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}

impl rand_core::TryRng for Randomness {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.array()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(self.array()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.fill(bytes);
        Ok(())
    }
}
