//! How many sessions a `bmc17.py` has open, counted from outside: it has eight slots, and refuses an
//! open-session request when none is free.
//!
//! Counting fills every slot, so a BMC that was counted is used up.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use node_remedy_tests::Bmc;
use tokio::net::UdpSocket;

/// The sessions that `bmc17.py` keeps at most.
const SLOTS: u8 = 8;
/// It answers one datagram after the other, late ones with their delay.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The sessions that are open, or that were opened and never became one.
pub(super) async fn taken(bmc: &Bmc) -> Result<u8> {
    bmc.set_faults("")?;
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    socket.connect(bmc.address()).await?;
    let mut granted = 0;
    for tag in 0..SLOTS {
        socket.send(&open_session(tag)).await?;
        let mut answer = [0; 128];
        let length = tokio::time::timeout(ANSWERS_WITHIN, socket.recv(&mut answer)).await??;
        let answer = answer.get(16..length).unwrap_or_default();
        let [answered, status, ..] = answer else { bail!("no open-session answer: {answer:?}") };
        ensure!(*answered == tag, "an answer to another request: {answer:?}");
        granted += u8::from(*status == 0);
    }
    Ok(SLOTS - granted)
}

/// RMCP, the session-less header of payload type 0x10, and a request for suite 3.
fn open_session(tag: u8) -> Vec<u8> {
    let mut packet = vec![6, 0, 0xff, 7, 6, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0];
    packet.extend([tag, 4, 0, 0, tag, 1, 1, 1]);
    for kind in 0..3 {
        packet.extend([kind, 0, 0, 8, 1, 0, 0, 0]);
    }
    packet
}
