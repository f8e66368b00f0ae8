//! `kdump.wasm` as it is built, behind a real socket, against the real `fence_kdump_send` of Debian's
//! fence-agents.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{
    OpenGate, Sandbox, Seams, Sight, SystemEntropy, TokioClock, Unseen, Watch, WatchOutcome,
};
use node_remedy_tests::process::repository;
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// The sender says something every second.
const SOON: Duration = Duration::from_secs(20);

/// A socket with a watch behind it.
struct Listener {
    socket: UdpSocket,
    watch: Watch,
    seams: Seams,
}

impl Listener {
    async fn start(known: &[[u8; 4]]) -> Result<Self> {
        let file = repository().join("target/watchers/kdump.wasm");
        let wasm = std::fs::read(&file)
            .with_context(|| format!("no {}: cargo xtask plugins", file.display()))?;
        let watcher = Sandbox::new()?.load_watcher(&wasm)?;
        let known = known.iter().map(|octets| IpAddr::from(*octets));
        let seams = Seams {
            net: Arc::new(Sockets),
            clock: Arc::new(TokioClock::starting_at(0)),
            entropy: Arc::new(SystemEntropy),
            gate: Arc::new(OpenGate),
            sessions: Arc::default(),
        };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self { socket, watch: Watch::new(watcher, known), seams })
    }

    /// The next datagram, and what became of it.
    async fn next(&mut self) -> Result<(SocketAddr, Vec<u8>, WatchOutcome)> {
        let mut buffer = [0; 2_048];
        let (length, from) = timeout(SOON, self.socket.recv_from(&mut buffer)).await??;
        let data = buffer.get(..length).unwrap_or_default().to_vec();
        let heard = self.watch.hear(from, &data, &self.seams).await;
        Ok((from, data, heard))
    }

    /// Has the real sender send so many messages, and gives what became of each.
    async fn hear_the_sender(&mut self, count: u32) -> Result<Vec<(Vec<u8>, WatchOutcome)>> {
        let mut command = Command::new(sender()?);
        let port = self.socket.local_addr()?.port();
        command.args(["-f", "ipv4", "-i", "1"]);
        command.args(["-c", &count.to_string(), "-p", &port.to_string(), "127.0.0.1"]);
        let sends = tokio::task::spawn_blocking(move || command.output());
        let mut all = Vec::new();
        for _ in 0..count {
            let (_, data, heard) = self.next().await?;
            all.push((data, heard));
        }
        let sent = sends.await??;
        ensure!(sent.status.success(), "fence_kdump_send: {}", sent.status);
        Ok(all)
    }
}

/// Where the real sender lies.
pub(crate) fn sender() -> Result<PathBuf> {
    let path = "usr/libexec/fence-agents/fence_kdump_send";
    let places =
        [PathBuf::from("/").join(path), repository().join("target/fence-agents").join(path)];
    places
        .into_iter()
        .find(|place| place.is_file())
        .context("no fence_kdump_send: cargo xtask setup")
}

fn field<'a>(heard: &'a WatchOutcome, name: &str) -> Option<&'a str> {
    let WatchOutcome::Seen(Sight::Sighting(fields)) = heard else { return None };
    let found = fields.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_dumps_is_seen_as_the_real_sender_says_it() -> Result<()> {
    let mut listener = Listener::start(&[[127, 0, 0, 1]]).await?;
    let heard = listener.hear_the_sender(2).await?;
    for ((data, heard), count) in heard.iter().zip(["1", "2"]) {
        assert_eq!(field(heard, "dump"), Some("in-progress"), "{data:02x?}: {heard:?}");
        assert_eq!(field(heard, "messages"), Some(count));
        assert_eq!(field(heard, "byte-order"), Some("little-endian"), "of this machine");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_dumps_unseen() -> Result<()> {
    let mut listener = Listener::start(&[[127, 0, 0, 9]]).await?;
    for (_, heard) in listener.hear_the_sender(2).await? {
        assert_eq!(heard, WatchOutcome::Unseen(Unseen::UnknownSender));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_the_other_byte_order_is_seen_and_other_versions_are_not() -> Result<()> {
    let mut listener = Listener::start(&[[127, 0, 0, 2], [127, 0, 0, 3]]).await?;
    let to = listener.socket.local_addr()?;
    for (from, data, order) in [
        ([127, 0, 0, 2], [0x1b, 0x30, 0x2a, 0x40, 0, 0, 0, 1], Some("big-endian")),
        ([127, 0, 0, 3], [0x40, 0x2a, 0x30, 0x1b, 2, 0, 0, 0], None),
    ] {
        let machine = UdpSocket::bind((Ipv4Addr::from(from), 0)).await?;
        machine.send_to(&data, to).await?;
        let (peer, _, heard) = listener.next().await?;
        assert_eq!(peer, machine.local_addr()?);
        assert_eq!(field(&heard, "byte-order"), order, "{heard:?}");
        assert!(matches!(heard, WatchOutcome::Seen(_)), "{heard:?}");
    }
    Ok(())
}
