//! The seams a call reaches the world through: network, clock, entropy, and the gate before every
//! send. Each has a real and a simulated implementation, and nothing else differs between the
//! two. Not here: the network's implementations ([`crate::net`]), the executor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::net::{NetBackend, Sessions};

/// What a call reaches the world through.
#[derive(Clone)]
pub struct Seams {
    /// Where bytes go.
    pub net: Arc<dyn NetBackend>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where randomness comes from.
    pub entropy: Arc<dyn Entropy>,
    /// Whether a device may be sent anything.
    pub gate: Arc<dyn SendGate>,
    /// Sessions that outlive the call they were begun in.
    pub sessions: Arc<Sessions>,
}

/// What time it is.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed moment; never goes back.
    fn now_ms(&self) -> u64;
    /// Milliseconds since 1970, for certificates and signatures.
    fn unix_ms(&self) -> u64;
    /// Waits.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// Tokio's clock: real in production, virtual where the runtime's time is paused. Make it on the
/// runtime whose time it is to show.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    started: Instant,
    started_unix_ms: u64,
}

impl TokioClock {
    /// A clock that starts now, at the given time of day.
    pub fn starting_at(unix_ms: u64) -> Self {
        Self { started: Instant::now(), started_unix_ms: unix_ms }
    }
}

impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn unix_ms(&self) -> u64 {
        self.started_unix_ms.saturating_add(self.now_ms())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Where randomness comes from. A call draws one seed and makes all its random bytes from it.
pub trait Entropy: Send + Sync {
    /// A fresh seed.
    fn seed(&self) -> Result<[u8; 32], NoEntropy>;
}

/// The system has no randomness to give. A session without it would not be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to draw randomness from the system: {0}")]
pub struct NoEntropy(pub String);

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn seed(&self) -> Result<[u8; 32], NoEntropy> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| NoEntropy(error.to_string()))?;
        Ok(seed)
    }
}

/// Randomness that a number decides: the n-th call of a simulation draws the n-th seed.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    drawn: AtomicU64,
}

impl SeededEntropy {
    /// The sequence of this number.
    pub fn new(seed: u64) -> Self {
        Self { seed, drawn: AtomicU64::new(0) }
    }
}

impl Entropy for SeededEntropy {
    fn seed(&self) -> Result<[u8; 32], NoEntropy> {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        Ok(Sha256::new()
            .chain_update(self.seed.to_be_bytes())
            .chain_update(drawn.to_be_bytes())
            .finalize()
            .into())
    }
}

/// Whether a device may be sent anything now: the lease, and the record of what is intended.
pub trait SendGate: Send + Sync {
    /// Asked before every send to a device.
    fn check(&self) -> Result<(), NotLeader>;
    /// Asked at the commit point: whether the intent of this operation is recorded and its lease
    /// holds. An error is the reason, as the plugin will see it.
    fn begin(&self, operation_id: &str) -> Result<(), String>;
}

/// This process may no longer act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failed to pass the gate: this process does not hold the lease")]
pub struct NotLeader;

/// A gate that stands open, where there is no lease to hold: one method called by hand.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl SendGate for OpenGate {
    fn check(&self) -> Result<(), NotLeader> {
        Ok(())
    }

    fn begin(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}
