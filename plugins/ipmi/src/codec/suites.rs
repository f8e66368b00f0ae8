//! Cipher suites: the two this method uses, and the list a BMC gives of its own.

use node_remedy_sdk::Hash;

/// A suite that authenticates, protects and encrypts. No other can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// 3: RAKP-HMAC-SHA1, HMAC-SHA1-96, AES-CBC-128.
    Sha1,
    /// 17: RAKP-HMAC-SHA256, HMAC-SHA256-128, AES-CBC-128.
    Sha256,
}

impl Suite {
    /// In the order of preference.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha1];

    /// Its number.
    pub fn number(self) -> u8 {
        match self {
            Self::Sha1 => 3,
            Self::Sha256 => 17,
        }
    }

    /// The numbers of its algorithms: authentication, integrity, confidentiality.
    pub fn algorithms(self) -> [u8; 3] {
        match self {
            Self::Sha1 => [1, 1, 1],
            Self::Sha256 => [3, 4, 1],
        }
    }

    /// The hash of all its codes.
    pub fn hash(self) -> Hash {
        match self {
            Self::Sha1 => Hash::Sha1,
            Self::Sha256 => Hash::Sha256,
        }
    }

    /// Bytes of the codes in RAKP 2 and 3: the whole hash.
    pub fn exchange_code_length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// Bytes of the code in RAKP 4 and on each packet: cut.
    pub fn packet_code_length(self) -> usize {
        match self {
            Self::Sha1 => 12,
            Self::Sha256 => 16,
        }
    }
}

const STANDARD: u8 = 0xc0;
const OEM: u8 = 0xc1;
/// The two high bits of a byte in a record: 00 authentication, 01 integrity, 10 confidentiality,
/// 11 the start of a record.
const TAG: u8 = 0xc0;

/// One record of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The suite's number.
    pub number: u8,
    /// Every algorithm the record names, tags included.
    pub algorithms: Vec<u8>,
}

impl Listed {
    /// Is it this suite, with its very algorithms?
    pub fn is(&self, suite: Suite) -> bool {
        let [authentication, integrity, confidentiality] = suite.algorithms();
        let tagged = [authentication, 0x40 | integrity, 0x80 | confidentiality];
        self.number == suite.number() && tagged.iter().all(|a| self.algorithms.contains(a))
    }
}

/// Reads a list, page after page joined. A record that is cut off at the end is left out, as is
/// what stands before the first one. Records of manufacturers' own suites are skipped.
pub fn parse_list(mut bytes: &[u8]) -> Vec<Listed> {
    let mut listed = Vec::new();
    while let Some((start, rest)) = bytes.split_first() {
        bytes = rest;
        let skipped = match *start {
            STANDARD => 0,
            OEM => 3,
            _ => continue,
        };
        let Some((number, rest)) = rest.split_first() else { break };
        let rest = rest.get(skipped..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| **byte & TAG != TAG).count();
        let (algorithms, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        bytes = rest;
        if *start == STANDARD && !algorithms.is_empty() {
            listed.push(Listed { number: *number, algorithms: algorithms.to_vec() });
        }
    }
    listed
}
