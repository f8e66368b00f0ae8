//! A crash kernel that writes a dump and says so, as `fence_kdump_send` does: eight bytes every ten
//! seconds, to whoever listens, until the machine boots.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::scenario::DumpSpec;
use crate::sent::Sent;
use crate::time::{Time, after};

/// From the panic to the crash kernel's first message.
const CRASH_KERNEL_BOOTS: Duration = Duration::from_secs(5);
/// Between two messages, where `fence_kdump_args` says nothing.
const MESSAGE_EVERY: Duration = Duration::from_secs(10);
/// The port that they are sent to, and the one they are sent from here.
const PORT: u16 = 7_410;
const OWN_PORT: u16 = 40_000;
/// What a message begins with, and the one version of it.
const MAGIC: u32 = 0x1b30_2a40;
const VERSION: u32 = 1;

/// A dump that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dump {
    controller: Option<u32>,
    from: Option<IpAddr>,
    big_endian: bool,
    says_next: Time,
    pub(super) ends: Time,
}

impl Dump {
    pub(super) fn begin(spec: &DumpSpec, now: Time) -> Self {
        Self {
            controller: spec.controller,
            from: spec.from,
            big_endian: spec.big_endian,
            says_next: after(now, CRASH_KERNEL_BOOTS),
            ends: after(now, spec.lasts),
        }
    }

    /// What is due to be said, and when something is due again.
    pub(super) fn run(&mut self, now: Time, own: &str) -> (Option<Sent>, Time) {
        if now < self.says_next {
            return (None, self.says_next.min(self.ends));
        }
        self.says_next = after(now, MESSAGE_EVERY);
        let from = self.from.or_else(|| own.parse().ok());
        let words = [MAGIC, VERSION];
        let data =
            words.map(|one| if self.big_endian { one.to_be_bytes() } else { one.to_le_bytes() });
        let sent = from.map(|from| Sent {
            controller: self.controller,
            from: SocketAddr::new(from, OWN_PORT),
            port: PORT,
            data: data.concat(),
        });
        (sent, self.says_next.min(self.ends))
    }
}
