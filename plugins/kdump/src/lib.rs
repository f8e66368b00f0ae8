//! Machines that are writing a crash dump, seen by what their crash kernel sends: the messages of
//! `fence_kdump_send`, every ten seconds until the machine boots.
//!
//! A message is eight bytes: a magic number and a version, in the sender's own byte order. There is
//! nothing else in it, and nothing proves who sent it: whoever can forge a sender's address can forge a
//! dump. So a sighting is a reason to wait, and never that a machine is off.
//!
//! What this deliberately is not: a listener. The host owns the socket and drops strangers.

use node_remedy_sdk::{DatagramWatcher, Sight, watcher_plugin};

/// The watcher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kdump;

watcher_plugin!(Kdump);

/// What each message begins with.
const MAGIC: u32 = 0x1b30_2a40;
/// The one version there is.
const VERSION: u32 = 1;

impl DatagramWatcher for Kdump {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn on_datagram(&self, _: &str, data: &[u8], state: &[u8]) -> (Sight, Vec<u8>) {
        let Some(order) = Order::of(data) else { return (Sight::Ignore, state.to_vec()) };
        let heard = heard(state).saturating_add(1);
        let fields = [
            ("dump", "in-progress".to_owned()),
            ("messages", heard.to_string()),
            ("byte-order", order.word().to_owned()),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value));
        (Sight::Sighting(fields.to_vec()), heard.to_be_bytes().to_vec())
    }
}

/// How many messages came before; a state that is none of ours counts for nothing.
fn heard(state: &[u8]) -> u32 {
    state.try_into().map(u32::from_be_bytes).unwrap_or_default()
}

/// How the sender writes numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    /// The order in which the bytes are a message of this version; none if in neither.
    fn of(data: &[u8]) -> Option<Self> {
        let (magic, rest) = data.split_first_chunk()?;
        let version: &[u8; 4] = rest.try_into().ok()?;
        let little = (u32::from_le_bytes(*magic), u32::from_le_bytes(*version));
        let big = (u32::from_be_bytes(*magic), u32::from_be_bytes(*version));
        match (little, big) {
            ((MAGIC, VERSION), _) => Some(Self::Little),
            (_, (MAGIC, VERSION)) => Some(Self::Big),
            (_, _) => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Little => "little-endian",
            Self::Big => "big-endian",
        }
    }
}
