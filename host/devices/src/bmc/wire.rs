//! The packets: RMCP, the session wrappers of IPMI 1.5 and 2.0, and the IPMI message inside.

const RMCP_IPMI: [u8; 4] = [6, 0, 0xff, 7];
const RMCP_ASF: [u8; 4] = [6, 0, 0xff, 6];
const ASF_ENTERPRISE: [u8; 4] = [0, 0, 0x11, 0xbe];
const AUTH_NONE: u8 = 0;
const AUTH_RMCPP: u8 = 6;
const AUTHENTICATED: u8 = 0x40;
const ENCRYPTED: u8 = 0x80;

pub(super) const KIND_IPMI: u8 = 0x00;
pub(super) const KIND_OPEN: u8 = 0x10;
pub(super) const KIND_OPEN_REPLY: u8 = 0x11;
pub(super) const KIND_RAKP_1: u8 = 0x12;
pub(super) const KIND_RAKP_2: u8 = 0x13;
pub(super) const KIND_RAKP_3: u8 = 0x14;
pub(super) const KIND_RAKP_4: u8 = 0x15;

/// What came in.
pub(super) enum Packet<'a> {
    /// Is anybody there?
    Ping { tag: u8 },
    /// A message outside sessions in the old wrapper.
    V15(&'a [u8]),
    /// A payload outside sessions in the new wrapper.
    Plain { kind: u8, body: &'a [u8] },
    /// A packet of a session.
    Sealed(Sealed<'a>),
}

/// A packet of a session, authenticated and encrypted.
pub(super) struct Sealed<'a> {
    pub(super) sid: u32,
    pub(super) seq: u32,
    pub(super) body: &'a [u8],
    /// Everything after the RMCP header: what the code at its end covers, and the code.
    pub(super) whole: &'a [u8],
}

pub(super) fn parse(data: &[u8]) -> Option<Packet<'_>> {
    let (rmcp, rest) = data.split_first_chunk::<4>()?;
    if *rmcp == RMCP_ASF {
        let (enterprise, rest) = rest.split_first_chunk::<4>()?;
        let [0x80, tag, ..] = rest else { return None };
        return (*enterprise == ASF_ENTERPRISE).then_some(Packet::Ping { tag: *tag });
    }
    if *rmcp != RMCP_IPMI {
        return None;
    }
    match rest {
        [AUTH_NONE, 0, 0, 0, 0, 0, 0, 0, 0, length, body @ ..] => {
            body.get(..usize::from(*length)).map(Packet::V15)
        }
        [AUTH_RMCPP, kind, s0, s1, s2, s3, q0, q1, q2, q3, l0, l1, body @ ..] => {
            let body = body.get(..usize::from(u16::from_le_bytes([*l0, *l1])))?;
            let sid = u32::from_le_bytes([*s0, *s1, *s2, *s3]);
            let seq = u32::from_le_bytes([*q0, *q1, *q2, *q3]);
            if sid == 0 {
                return (kind & (AUTHENTICATED | ENCRYPTED) == 0)
                    .then_some(Packet::Plain { kind: kind & 0x3f, body });
            }
            (*kind == KIND_IPMI | AUTHENTICATED | ENCRYPTED).then_some(Packet::Sealed(Sealed {
                sid,
                seq,
                body,
                whole: rest,
            }))
        }
        _ => None,
    }
}

pub(super) fn pong(tag: u8) -> Vec<u8> {
    let mut out = RMCP_ASF.to_vec();
    out.extend(ASF_ENTERPRISE);
    out.extend([0x40, tag, 0, 16]);
    out.extend(ASF_ENTERPRISE);
    out.extend([0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0]);
    out
}

pub(super) fn v15(message: &[u8]) -> Option<Vec<u8>> {
    let mut out = RMCP_IPMI.to_vec();
    out.extend([AUTH_NONE, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.push(u8::try_from(message.len()).ok()?);
    out.extend(message);
    Some(out)
}

pub(super) fn plain(kind: u8, body: &[u8]) -> Option<Vec<u8>> {
    let mut out = RMCP_IPMI.to_vec();
    out.extend(header(kind, 0, 0, body)?);
    Some(out)
}

/// A packet of a session; `code` authenticates everything it is given.
pub(super) fn sealed(
    sid: u32,
    seq: u32,
    encrypted: &[u8],
    code: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Option<Vec<u8>> {
    let mut packet = header(KIND_IPMI | AUTHENTICATED | ENCRYPTED, sid, seq, encrypted)?;
    let pad = (4 - (packet.len() + 2) % 4) % 4;
    packet.extend(std::iter::repeat_n(0xff, pad));
    packet.extend([u8::try_from(pad).ok()?, 7]);
    let code = code(&packet);
    let mut out = RMCP_IPMI.to_vec();
    out.extend(packet);
    out.extend(code);
    Some(out)
}

fn header(kind: u8, sid: u32, seq: u32, body: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![AUTH_RMCPP, kind];
    out.extend(sid.to_le_bytes());
    out.extend(seq.to_le_bytes());
    out.extend(u16::try_from(body.len()).ok()?.to_le_bytes());
    out.extend(body);
    Some(out)
}

/// An IPMI request.
pub(super) struct Message<'a> {
    pub(super) netfn: u8,
    pub(super) command: u8,
    pub(super) data: &'a [u8],
    to: u8,
    to_lun: u8,
    from: u8,
    seq_lun: u8,
}

pub(super) fn message(bytes: &[u8]) -> Option<Message<'_>> {
    let (_, body) = bytes.split_last()?;
    let [to, netfn_lun, _, from, seq_lun, command, data @ ..] = body else { return None };
    let (head, tail) = bytes.split_at_checked(3)?;
    (sum(head) == 0 && sum(tail) == 0).then_some(Message {
        netfn: netfn_lun >> 2,
        command: *command,
        data,
        to: *to,
        to_lun: netfn_lun & 3,
        from: *from,
        seq_lun: *seq_lun,
    })
}

/// The response to a request.
pub(super) fn response(request: &Message<'_>, completion: u8, data: &[u8]) -> Vec<u8> {
    let mut out = vec![request.from, (request.netfn | 1) << 2 | (request.seq_lun & 3)];
    out.push(sum(&out).wrapping_neg());
    let mut tail = vec![request.to, request.seq_lun & 0xfc | request.to_lun, request.command];
    tail.push(completion);
    tail.extend(data);
    tail.push(sum(&tail).wrapping_neg());
    out.extend(tail);
    out
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}
