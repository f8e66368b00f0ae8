//! The IPMI message: addresses, a number that pairs request and response, a command, checksums.

use super::Malformed;

/// The BMC's address on its own bus.
const BMC: u8 = 0x20;
/// The address of remote console software.
const CONSOLE: u8 = 0x81;
/// Set in the network function of a response.
const RESPONSE: u8 = 1;

/// The numbers that pair requests and responses are six bits wide.
pub const PAIR_MAX: u8 = 0x3f;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Network function, even.
    pub netfn: u8,
    /// Its number there.
    pub number: u8,
}

/// A response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// What was asked for.
    pub command: Command,
    /// The request's number.
    pub pair: u8,
    /// 0 is success.
    pub completion: u8,
    /// What came with it.
    pub data: &'a [u8],
}

/// Encodes a request.
pub fn request(command: Command, pair: u8, data: &[u8]) -> Vec<u8> {
    let mut out = vec![BMC, command.netfn << 2];
    out.push(checksum(&out));
    let tail_at = out.len();
    out.extend([CONSOLE, (pair & PAIR_MAX) << 2, command.number]);
    out.extend(data);
    out.push(checksum(out.get(tail_at..).unwrap_or_default()));
    out
}

/// Decodes a response.
pub fn response(bytes: &[u8]) -> Result<Response<'_>, Malformed> {
    let (head, tail) = bytes.split_at_checked(3).ok_or(Malformed::TooShort)?;
    let ([_to, netfn, _], [_from, pair, number, completion, data @ .., _]) = (head, tail) else {
        return Err(Malformed::TooShort);
    };
    if checksum(head) != 0 || checksum(tail) != 0 {
        return Err(Malformed::Checksum);
    }
    let netfn = netfn >> 2;
    if netfn & RESPONSE == 0 {
        return Err(Malformed::NotAResponse);
    }
    Ok(Response {
        command: Command { netfn: netfn & !RESPONSE, number: *number },
        pair: pair >> 2,
        completion: *completion,
        data,
    })
}

/// What makes the sum of all bytes zero; zero over bytes that end in it.
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)).wrapping_neg()
}
