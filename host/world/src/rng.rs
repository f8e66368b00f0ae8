//! The world's only randomness: a small generator whose stream is a function of the seed.
//!
//! Each actor takes a stream of its own, by name, so that one more draw in one actor
//! does not move everything else. Not for secrets.

/// A SplitMix64 stream.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

/// The odd constant that SplitMix64 steps by.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Rng {
    /// The stream that belongs to `seed` and `name`.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a keeps streams of different names apart.
        let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        let mut rng = Self { state: seed ^ hash };
        rng.state = rng.draw();
        rng
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 where the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.draw()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// A number in `low..=high`; `low` where the range is empty.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// A random (version 4) UUID.
    pub fn uuid(&mut self) -> String {
        let high = (self.draw() & !0xF000) | 0x4000;
        let low = (self.draw() & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xFFFF,
            high & 0xFFFF,
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_a_function_of_seed_and_name() {
        let draw = |seed, name| {
            let mut rng = Rng::named(seed, name);
            (rng.draw(), rng.draw())
        };
        assert_eq!(draw(7, "kubelet"), draw(7, "kubelet"));
        assert_ne!(draw(7, "kubelet"), draw(8, "kubelet"));
        assert_ne!(draw(7, "kubelet"), draw(7, "scheduler"));
    }

    #[test]
    fn bounds_are_kept_and_both_ends_are_reached() {
        let mut rng = Rng::named(1, "bounds");
        let mut seen: Vec<u64> = (0..200).map(|_| rng.within(3, 6)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [3, 4, 5, 6]);
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn uuids_are_version_four() {
        let uuid = Rng::named(1, "uuid").uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
    }
}
