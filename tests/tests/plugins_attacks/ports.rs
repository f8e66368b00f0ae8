//! Attack 70: the controller's own ports, held open by a pod that says nothing. A probe that is not answered has the kubelet
//! end the controller, on every replica at once.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy::admin::{Pages, Readiness, serve};
use node_remedy_tests::time::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::alone::alone;
use super::host::{Host, case};

const IDLE: usize = 300;
/// What a kubelet waits for a probe.
const PROBE: Duration = Duration::from_secs(1);

#[test]
fn silence_on_a_port_keeps_no_probe_out() -> Result<()> {
    alone("ports::silence_on_a_port_keeps_no_probe_out", async || {
        let host = Host::start().await?;
        LocalSet::new().run_until(held_open(&host)).await
    })
}

async fn held_open(host: &Host) -> Result<()> {
    let address: SocketAddr = "127.0.0.1:9465".parse()?;
    let readiness = Readiness::new();
    readiness.set_missing(Vec::new());
    let pages = Pages { metrics: None, readiness };
    tokio::task::spawn_local(async move { serve("--probe-address", address, pages).await });
    until("the port is open", Duration::from_secs(5), || async {
        Ok(TcpStream::connect(address).await.ok())
    })
    .await?;
    let how = "300 connections that say nothing, to the port of the controller's probes";
    host.attack(
        case(70, "probes held up by silence", how),
        async || {
            let mut idle = Vec::new();
            for _ in 0..IDLE {
                idle.push(TcpStream::connect(address).await?);
            }
            let mut answered = 0;
            for _ in 0..12 {
                let answer = timeout(PROBE, probe(address)).await.context("a probe waits")??;
                ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                answered += 1;
            }
            Ok(format!("{answered} of 12 probes answered beside {} idle connections", idle.len()))
        },
        async || {
            let answer = probe(address).await?;
            Ok(answer.lines().next().unwrap_or_default().to_owned())
        },
    )
    .await
}

async fn probe(address: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
