//! What a datagram of a known protocol is, as far as its clear part says it.
//!
//! For readers of a report; nothing is decided by it. Inside a session IPMI encrypts its
//! messages with keys that nobody keeps, so what those say stands in the journal's own
//! words and not here.

/// The port of RMCP+ (IPMI 2.0, section 13.1.2).
const RMCP_CLASS_IPMI: u8 = 7;
/// Where the session wrapper begins: after the RMCP header.
const WRAPPER: usize = 4;

/// A few words, or nothing for what is not known.
pub fn words(bytes: &[u8]) -> Option<String> {
    if bytes.first() != Some(&6) || bytes.get(3).copied()? & 0x1f != RMCP_CLASS_IPMI {
        return None;
    }
    match bytes.get(WRAPPER).copied()? {
        // IPMI 1.5 without a session: wrapper of 10 bytes, then the message.
        0 => Some(format!("IPMI 1.5, {}", message(bytes.get(WRAPPER + 10..)?)?)),
        6 => payload(bytes.get(WRAPPER + 1).copied()?, bytes.get(WRAPPER + 12..)?),
        _ => None,
    }
}

/// A payload of the RMCP+ wrapper (IPMI 2.0, table 13-16).
fn payload(kind: u8, body: &[u8]) -> Option<String> {
    let what = match kind & 0x3f {
        0x00 if kind & 0x80 != 0 => "IPMI message, encrypted and authenticated".to_owned(),
        0x00 => format!("IPMI message, {}", message(body)?),
        0x10 => "open session request".to_owned(),
        0x11 => format!("open session response, {}", status(body)?),
        0x12 => "RAKP message 1: who I am".to_owned(),
        0x13 => format!("RAKP message 2: which machine this is, {}", status(body)?),
        0x14 => "RAKP message 3: proof of the password".to_owned(),
        0x15 => format!("RAKP message 4: the session stands, {}", status(body)?),
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

/// An IPMI message in the clear: network function and command (IPMI 2.0, appendix G).
fn message(body: &[u8]) -> Option<String> {
    let (function, command) = (body.get(1).copied()? >> 2, body.get(5).copied()?);
    let name = match (function & !1, command) {
        (0x06, 0x38) => "Get Channel Authentication Capabilities".to_owned(),
        (0x06, 0x54) => "Get Channel Cipher Suites".to_owned(),
        (function, command) => format!("function {function:02x} command {command:02x}"),
    };
    match function & 1 {
        0 => Some(name),
        _ => Some(format!("answer to {name}, completion code {:02x}", body.get(6).copied()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn clear_parts_are_named_and_everything_else_is_not() {
        let hex = |text: &str| -> Vec<u8> {
            text.as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect()
        };
        let ask = hex("0600ff07000000000000000000092018c88100388e04b5");
        assert_eq!(words(&ask).unwrap(), "IPMI 1.5, Get Channel Authentication Capabilities");
        let open = hex("0600ff0706100000000000000000200000000000");
        assert_eq!(words(&open).unwrap(), "open session request");
        let inside = hex("0600ff0706c0a4a3a2a0030000002000aabb");
        assert_eq!(words(&inside).unwrap(), "IPMI message, encrypted and authenticated");
        assert_eq!(words(&hex("0600ff06000011be80000000")), None);
        assert_eq!(words(b"not IPMI at all"), None);
        assert_eq!(words(&[]), None);
    }
}
