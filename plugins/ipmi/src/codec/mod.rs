//! The bytes of RMCP+, without I/O and without keys: what is authenticated or encrypted is handed
//! out and taken back by the caller. Parsing borrows and never panics, whatever it is given.
//!
//! * [`packet`]: RMCP header, session wrappers, padding
//! * [`message`]: the IPMI message inside
//! * [`setup`]: open session and RAKP 1 to 4
//! * [`suites`]: cipher suites and the list of them

pub mod message;
pub mod packet;
pub mod setup;
pub mod suites;

use std::fmt;

pub use suites::Suite;

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Cut short.
    TooShort,
    /// Not RMCP with IPMI inside, or a wrapper that is not used here.
    NotIpmi,
    /// A length field that does not fit the bytes.
    Length,
    /// A payload type that does not belong here.
    PayloadKind,
    /// A packet of a session that is not both authenticated and encrypted.
    Unprotected,
    /// A checksum.
    Checksum,
    /// The padding of an encrypted payload.
    Padding,
    /// A request where a response should be.
    NotAResponse,
    /// Algorithms other than the proposed ones.
    Algorithms,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooShort => "it is cut short",
            Self::NotIpmi => "it is not IPMI",
            Self::Length => "its length field does not fit",
            Self::PayloadKind => "its payload type does not belong here",
            Self::Unprotected => "it is not both authenticated and encrypted",
            Self::Checksum => "its checksum is wrong",
            Self::Padding => "its padding is wrong",
            Self::NotAResponse => "it is not a response",
            Self::Algorithms => "its algorithms are not the proposed ones",
        })
    }
}

/// The first `N` bytes and the rest.
fn take<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), Malformed> {
    bytes.split_first_chunk().ok_or(Malformed::TooShort)
}
