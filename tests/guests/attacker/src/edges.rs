//! Just so much of something, for the twins of the limits: what passes just below a limit, and the first
//! that does not.

use crate::answers::{AttackRequest, AttackResult, failed, found};
use crate::bindings::node_remedy::fence::credentials::{self, Extension, Hash};
use crate::bindings::node_remedy::fence::net::{self, Part};
use crate::bindings::node_remedy::fence::op;
use crate::bindings::node_remedy::fence::types::{Failure, PlugInfo, PlugState, PlugsRequest};
use crate::{network, resources};

pub fn size(asked: AttackRequest<'_>) -> usize {
    usize::try_from(asked.number()).unwrap_or_default()
}

/// So many sockets, one after the other; by the last one the device is heard.
pub fn sockets_one_by_one(asked: AttackRequest<'_>) -> AttackResult {
    for _ in 1..asked.number() {
        net::udp("bmc").map_err(network::refused)?;
    }
    resources::heard(&format!("{} sockets", asked.number()))
}

/// So many datagrams, of which one is answered.
pub fn datagrams(asked: AttackRequest<'_>) -> AttackResult {
    let device = net::udp("bmc").map_err(network::refused)?;
    for _ in 1..asked.number() {
        device.send(b"status").map_err(network::refused)?;
    }
    network::ask(&device, b"status")?;
    Ok(found(PlugState::On, &format!("{} datagrams", asked.number())))
}

/// One datagram of so many bytes.
pub fn long_datagram(asked: AttackRequest<'_>) -> AttackResult {
    let device = net::udp("bmc").map_err(network::refused)?;
    network::ask(&device, &vec![b'x'; size(asked)])?;
    Ok(found(PlugState::On, &format!("{} bytes", asked.number())))
}

/// A farewell of so many bytes.
pub fn farewell(asked: AttackRequest<'_>) -> AttackResult {
    let device = net::udp("bmc").map_err(network::refused)?;
    device.farewell(&vec![b'x'; size(asked)]);
    network::ask(&device, b"status")?;
    Ok(found(PlugState::On, &format!("{} bytes", asked.number())))
}

/// One write of so many bytes.
pub fn write(asked: AttackRequest<'_>) -> AttackResult {
    let line = net::tcp("line").map_err(network::refused)?;
    line.write(&[Part::Bytes(vec![b'x'; size(asked)])]).map_err(network::refused)?;
    resources::heard(&format!("{} bytes written", asked.number()))
}

/// So many bytes over the whole call, the last piece the shortest.
pub fn write_all(asked: AttackRequest<'_>) -> AttackResult {
    let line = net::tcp("line").map_err(network::refused)?;
    let mut left = size(asked);
    while left > 0 {
        let piece = left.min(60_000);
        line.write(&[Part::Bytes(vec![b'x'; piece])]).map_err(network::refused)?;
        left -= piece;
    }
    resources::heard(&format!("{} bytes written", asked.number()))
}

/// So many operations with one key.
pub fn key_operations(asked: AttackRequest<'_>) -> AttackResult {
    let refused = |refused| failed(&format!("{refused:?}"));
    let account = credentials::open("account").map_err(refused)?;
    let key = account.session_key(Hash::Sha1, b"x").map_err(refused)?;
    for _ in 0..asked.number() {
        key.mac(Hash::Sha1, b"y", 12).map_err(refused)?;
    }
    resources::heard(&format!("{} operations", asked.number()))
}

/// So many keys of SNMPv3.
pub fn usm_keys(asked: AttackRequest<'_>) -> AttackResult {
    let refused = |refused| failed(&format!("{refused:?}"));
    let account = credentials::open("account").map_err(refused)?;
    for engine in 0..size(asked) {
        let engine = [7; 5].map(|byte: u8| byte ^ engine as u8);
        account.usm_key(Hash::Md5, &engine, Extension::None, 16).map_err(refused)?;
    }
    resources::heard(&format!("{} keys", asked.number()))
}

/// One operation over so many bytes.
pub fn credential_data(asked: AttackRequest<'_>) -> AttackResult {
    let refused = |refused| failed(&format!("{refused:?}"));
    let account = credentials::open("account").map_err(refused)?;
    account.mac(Hash::Sha256, &vec![7; size(asked)]).map_err(refused)?;
    resources::heard(&format!("{} bytes", asked.number()))
}

/// Reads until so many bytes have come.
pub fn read_all(asked: AttackRequest<'_>) -> AttackResult {
    let line = net::tcp("line").map_err(network::refused)?;
    line.write(&[Part::Bytes(format!("{}\n", asked.number()).into_bytes())])
        .map_err(network::refused)?;
    let mut come = 0;
    while come < size(asked) {
        match line.read(u32::MAX, 5_000).map_err(network::refused)?.len() {
            0 => return Err(failed(&format!("{come} bytes, and then nothing"))),
            more => come += more,
        }
    }
    resources::heard(&format!("{come} bytes read"))
}

/// So many lines, each as long as a line can be.
pub fn log_lines(asked: AttackRequest<'_>) -> AttackResult {
    for _ in 0..asked.number() {
        op::log(op::Level::Info, &"x".repeat(1 << 10));
    }
    resources::heard(&format!("{} lines", asked.number()))
}

/// So many things that it knows of the machine.
pub fn fields(asked: AttackRequest<'_>) -> AttackResult {
    let mut told = resources::heard("fields")?;
    told.identity = (0..asked.number()).map(|one| (format!("x-{one}"), "y".to_owned())).collect();
    Ok(told)
}

/// A device of so many plugs, for which it is heard.
pub fn plugs(request: &PlugsRequest) -> Result<Vec<PlugInfo>, Failure> {
    let number = request.parameters.iter().find(|(name, _)| name == "number");
    let number: u32 = number.and_then(|(_, text)| text.parse().ok()).unwrap_or_default();
    resources::heard("plugs")?;
    let plug = |one: u32| PlugInfo {
        plug: one.to_string(),
        name: String::new(),
        state: PlugState::On,
        identity: vec![],
    };
    Ok((1..=number).map(plug).collect())
}
