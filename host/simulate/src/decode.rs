//! What a datagram of a known protocol says, in words.
//!
//! For readers of a report; nothing is decided by it, so it is not the plugin's own codec. What
//! stands inside of an IPMI session is told from the plaintext that the sandbox kept, as nobody
//! keeps the session's keys.

pub mod ipmi;

/// The class of IPMI messages in the header of RMCP (IPMI 2.0, section 13.1.3).
const RMCP_CLASS_IPMI: u8 = 7;
/// Where the session wrapper begins: after the RMCP header.
const WRAPPER: usize = 4;
/// Set in the payload type of what is encrypted.
const ENCRYPTED: u8 = 0x80;

/// A few words, or nothing for what is not known. `plaintext` is what was encrypted for the
/// datagram or decrypted from it, its padding included.
pub fn words(bytes: &[u8], plaintext: Option<&[u8]>) -> Option<String> {
    if bytes.first() != Some(&6) || bytes.get(3).copied()? & 0x1f != RMCP_CLASS_IPMI {
        return None;
    }
    match bytes.get(WRAPPER).copied()? {
        // IPMI 1.5 without a session: wrapper of 10 bytes, then the message.
        0 => crate::decode::ipmi::words(bytes.get(WRAPPER + 10..)?),
        6 => payload(bytes.get(WRAPPER + 1).copied()?, bytes.get(WRAPPER + 12..)?, plaintext),
        _ => None,
    }
}

/// What was encrypted, without its padding: 1, 2, 3 … and their number (IPMI 2.0, 13.29).
pub fn unpadded(plaintext: &[u8]) -> &[u8] {
    let Some((&length, padded)) = plaintext.split_last() else { return plaintext };
    let Some(kept) = padded.len().checked_sub(length.into()) else { return plaintext };
    let (message, padding) = padded.split_at(kept);
    if padding.iter().copied().eq(1..=length) { message } else { plaintext }
}

/// A payload of the RMCP+ wrapper (IPMI 2.0, table 13-16).
fn payload(kind: u8, body: &[u8], plaintext: Option<&[u8]>) -> Option<String> {
    let what = match (kind & 0x3f, plaintext) {
        (0x00, Some(plaintext)) if kind & ENCRYPTED != 0 => {
            crate::decode::ipmi::words(unpadded(plaintext))?
        }
        (0x00, None) if kind & ENCRYPTED != 0 => {
            "IPMI message, encrypted and authenticated".to_owned()
        }
        (0x00, _) => crate::decode::ipmi::words(body)?,
        (0x10, _) => "open session request".to_owned(),
        (0x11, _) => format!("open session response, {}", status(body)?),
        (0x12, _) => "RAKP message 1: who I am".to_owned(),
        (0x13, _) => format!("RAKP message 2: which machine this is, {}", status(body)?),
        (0x14, _) => "RAKP message 3: proof of the password".to_owned(),
        (0x15, _) => format!("RAKP message 4: the session stands, {}", status(body)?),
        _ => return None,
    };
    Some(what)
}

fn status(body: &[u8]) -> Option<String> {
    match body.get(1).copied()? {
        0 => Some("no error".to_owned()),
        code => Some(format!("status {code:02x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.map(byte).collect()
    }

    #[test]
    fn clear_parts_are_named_and_everything_else_is_not() {
        let rows = [
            (
                "0600ff07000000000000000000092018c88100388e04b5",
                Some("asks for the channel's ways to authenticate · netfn 06 cmd 38"),
            ),
            ("0600ff0706100000000000000000200000000000", Some("open session request")),
            (
                "0600ff0706c0a4a3a2a0030000002000aabb",
                Some("IPMI message, encrypted and authenticated"),
            ),
            ("0600ff06000011be80000000", None),
            ("", None),
        ];
        for (bytes, expected) in rows {
            assert_eq!(words(&hex(bytes), None).as_deref(), expected, "{bytes}");
        }
        assert_eq!(words(b"not IPMI at all", Some(b"whatever was said")), None);
    }

    #[test]
    fn a_sealed_message_is_told_from_its_plaintext() {
        let sealed = hex("0600ff0706c0a4a3a2a0030000002000aabb");
        let answer = hex("8104 7b20 0401 0000 0040 9b01 0203 03".replace(' ', "").as_str());
        let expected = "chassis status: power off, fault none · netfn 01 cmd 01 completion code 00";
        assert_eq!(words(&sealed, Some(&answer)).as_deref(), Some(expected));
        assert_eq!(words(&sealed, Some(&[])), None);
    }

    #[test]
    fn padding_is_taken_off_only_where_it_is_padding() {
        let rows: [(&[u8], &[u8]); 5] = [
            (&[7, 8, 1, 2, 2], &[7, 8]),
            (&[7, 8, 0], &[7, 8]),
            (&[7, 8, 9, 2], &[7, 8, 9, 2]),
            (&[9], &[9]),
            (&[], &[]),
        ];
        for (plaintext, message) in rows {
            assert_eq!(unpadded(plaintext), message);
        }
    }
}
