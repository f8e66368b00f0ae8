//! The WASI context of a call: nothing but the clock and entropy of the seams.

use std::sync::Arc;
use std::time::Duration;

use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx};

use crate::limits::RANDOM_BYTES_MAX;
use crate::randomness::Randomness;
use crate::seams::{Clock, Seams};
use crate::stderr::Stderr;

/// A context with nothing in it but time, numbers, and where the words of a panic go.
pub(crate) fn context(seams: &Seams, seed: [u8; 32], stderr: Stderr) -> WasiCtx {
    let mut insecure = Randomness::new(seed, 1);
    let insecure_seed = u128::from_le_bytes(insecure.array());
    WasiCtx::builder()
        .wall_clock(SeamClock(Arc::clone(&seams.clock)))
        .monotonic_clock(SeamClock(Arc::clone(&seams.clock)))
        .secure_random(Randomness::new(seed, 2))
        .insecure_random(insecure)
        .insecure_random_seed(insecure_seed)
        .max_random_size(RANDOM_BYTES_MAX.into())
        .stderr(stderr)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// The seam's clock in WASI's words. A millisecond is its finest tick: enough for time-outs, too
/// coarse to time the host's secrets.
pub(crate) struct SeamClock(Arc<dyn Clock>);

impl HostWallClock for SeamClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.unix_ms())
    }
}

impl HostMonotonicClock for SeamClock {
    fn resolution(&self) -> u64 {
        NS_PER_MS
    }

    fn now(&self) -> u64 {
        self.0.now_ms().saturating_mul(NS_PER_MS)
    }
}

pub(crate) const NS_PER_MS: u64 = 1_000_000;
