//! Packets: the RMCP header, the wrappers of IPMI 1.5 (before a session only) and 2.0, and the
//! paddings that integrity and encryption need.
//!
//! ```text
//!  06 00 ff 07 │ 06 kind sid₄ seq₄ length₂ body │ ff… pad 07 │ code
//!   RMCP       └──────── covered by the code ───────────────┘
//! ```

use super::{Malformed, take};

const RMCP: [u8; 4] = [0x06, 0x00, 0xff, 0x07];
const AUTH_NONE: u8 = 0x00;
const AUTH_RMCPP: u8 = 0x06;
const AUTHENTICATED: u8 = 0x40;
const ENCRYPTED: u8 = 0x80;
const NEXT_HEADER: u8 = 0x07;

/// The block of AES, and the length of an initialisation vector.
pub const BLOCK: usize = 16;

/// What a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An IPMI message.
    Ipmi,
    /// RMCP+ open session request.
    OpenRequest,
    /// Its response.
    OpenResponse,
    /// RAKP message 1, console to BMC.
    Rakp1,
    /// RAKP message 2, BMC to console.
    Rakp2,
    /// RAKP message 3, console to BMC.
    Rakp3,
    /// RAKP message 4, BMC to console.
    Rakp4,
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Self::Ipmi => 0x00,
            Self::OpenRequest => 0x10,
            Self::OpenResponse => 0x11,
            Self::Rakp1 => 0x12,
            Self::Rakp2 => 0x13,
            Self::Rakp3 => 0x14,
            Self::Rakp4 => 0x15,
        }
    }

    fn from_number(number: u8) -> Result<Self, Malformed> {
        match number {
            0x00 => Ok(Self::Ipmi),
            0x10 => Ok(Self::OpenRequest),
            0x11 => Ok(Self::OpenResponse),
            0x12 => Ok(Self::Rakp1),
            0x13 => Ok(Self::Rakp2),
            0x14 => Ok(Self::Rakp3),
            0x15 => Ok(Self::Rakp4),
            _ => Err(Malformed::PayloadKind),
        }
    }
}

/// A packet as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Outside a session, in either wrapper.
    Plain {
        /// What it is.
        kind: Kind,
        /// The payload.
        body: &'a [u8],
    },
    /// Inside a session: authenticated and encrypted, not checked yet.
    Sealed(Sealed<'a>),
}

/// A packet of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The receiver's session.
    pub sid: u32,
    /// Counts up.
    pub seq: u32,
    /// Initialisation vector and whole blocks.
    pub body: &'a [u8],
    /// From the authentication type to the end of the packet, its code included.
    tail: &'a [u8],
}

impl<'a> Sealed<'a> {
    /// What the code covers, and the code, if codes are `length` bytes long.
    pub fn covered_and_code(&self, length: usize) -> Result<(&'a [u8], &'a [u8]), Malformed> {
        let at = self.tail.len().checked_sub(length).ok_or(Malformed::TooShort)?;
        let (covered, code) = self.tail.split_at_checked(at).ok_or(Malformed::TooShort)?;
        // Header, body, 0 to 3 bytes of padding, pad length and next header: nothing else.
        let trailer = covered.get(HEADER + self.body.len()..).ok_or(Malformed::TooShort)?;
        match trailer {
            [padding @ .., pad, NEXT_HEADER]
                if padding.len() == usize::from(*pad)
                    && padding.len() < 4
                    && covered.len().is_multiple_of(4) =>
            {
                Ok((covered, code))
            }
            _ => Err(Malformed::Padding),
        }
    }
}

/// Bytes of the 2.0 wrapper before the body.
const HEADER: usize = 12;

/// Takes a datagram apart.
pub fn parse(datagram: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (rmcp, wrapped) = take::<4>(datagram)?;
    // The version and class must match; the sequence byte of a BMC that sends one is its own.
    let [RMCP_VERSION, _, _, RMCP_CLASS] = *rmcp else { return Err(Malformed::NotIpmi) };
    match wrapped.first() {
        Some(&AUTH_NONE) => parse_v15(wrapped),
        Some(&AUTH_RMCPP) => parse_v20(wrapped),
        Some(_) => Err(Malformed::NotIpmi),
        None => Err(Malformed::TooShort),
    }
}

const RMCP_VERSION: u8 = RMCP[0];
const RMCP_CLASS: u8 = RMCP[3];

fn parse_v15(wrapped: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (header, rest) = take::<10>(wrapped)?;
    let [_, _, _, _, _, s0, s1, s2, s3, length] = *header;
    if u32::from_le_bytes([s0, s1, s2, s3]) != 0 {
        return Err(Malformed::NotIpmi);
    }
    let body = rest.get(..usize::from(length)).ok_or(Malformed::Length)?;
    Ok(Packet::Plain { kind: Kind::Ipmi, body })
}

fn parse_v20(wrapped: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (header, rest) = take::<HEADER>(wrapped)?;
    let [_, kind, s0, s1, s2, s3, q0, q1, q2, q3, l0, l1] = *header;
    let length = usize::from(u16::from_le_bytes([l0, l1]));
    let body = rest.get(..length).ok_or(Malformed::Length)?;
    let sid = u32::from_le_bytes([s0, s1, s2, s3]);
    let seq = u32::from_le_bytes([q0, q1, q2, q3]);
    let protection = kind & (AUTHENTICATED | ENCRYPTED);
    let kind = Kind::from_number(kind & 0x3f)?;
    if sid == 0 && protection == 0 {
        return Ok(Packet::Plain { kind, body });
    }
    if protection != AUTHENTICATED | ENCRYPTED {
        return Err(Malformed::Unprotected);
    }
    if kind != Kind::Ipmi {
        return Err(Malformed::PayloadKind);
    }
    Ok(Packet::Sealed(Sealed { sid, seq, body, tail: wrapped }))
}

/// An IPMI message outside a session, in the 1.5 wrapper.
pub fn v15(message: &[u8]) -> Vec<u8> {
    let mut out = RMCP.to_vec();
    out.extend([AUTH_NONE, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.push(u8::try_from(message.len()).unwrap_or(u8::MAX));
    out.extend(message);
    out
}

/// A payload outside a session, in the 2.0 wrapper.
pub fn plain(kind: Kind, body: &[u8]) -> Vec<u8> {
    let mut out = RMCP.to_vec();
    wrap(&mut out, kind.number(), 0, 0, body);
    out
}

/// What the code of a sealed packet covers: everything but the RMCP header and the code. `body` is
/// the initialisation vector and the encrypted blocks.
pub fn covered(sid: u32, seq: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + body.len() + 5);
    wrap(&mut out, Kind::Ipmi.number() | AUTHENTICATED | ENCRYPTED, sid, seq, body);
    let pad = (4 - (out.len() + 2) % 4) % 4;
    out.extend([0xff; 3].iter().take(pad));
    out.push(u8::try_from(pad).unwrap_or(0));
    out.push(NEXT_HEADER);
    out
}

/// The datagram of a sealed packet.
pub fn sealed(covered: &[u8], code: &[u8]) -> Vec<u8> {
    [&RMCP, covered, code].concat()
}

fn wrap(out: &mut Vec<u8>, kind: u8, sid: u32, seq: u32, body: &[u8]) {
    // The longest body this method makes is a RAKP message of some 60 bytes.
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX);
    out.extend([AUTH_RMCPP, kind]);
    out.extend(sid.to_le_bytes());
    out.extend(seq.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(body);
}

/// A message with the padding that encryption needs: 1, 2, 3 … and how many.
pub fn pad(message: &[u8]) -> Vec<u8> {
    let mut out = message.to_vec();
    let mut pad = 0;
    while !(out.len() + 1).is_multiple_of(BLOCK) {
        pad += 1;
        out.push(pad);
    }
    out.push(pad);
    out
}

/// The reverse of [`pad`].
pub fn unpad(plain: &[u8]) -> Result<&[u8], Malformed> {
    let (pad, rest) = plain.split_last().ok_or(Malformed::TooShort)?;
    let at = rest.len().checked_sub(usize::from(*pad)).ok_or(Malformed::Padding)?;
    let (message, padding) = rest.split_at_checked(at).ok_or(Malformed::Padding)?;
    let counts = padding.iter().zip(1_u8..).all(|(found, wanted)| *found == wanted);
    if counts && usize::from(*pad) < BLOCK { Ok(message) } else { Err(Malformed::Padding) }
}
