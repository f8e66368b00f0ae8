//! Attacks 70 and 71: what others in the cluster can do to the controller itself. Its ports, held open by a pod that says
//! nothing: a probe that is not answered has the kubelet end the controller, on every replica at once. And Events, which
//! whoever may create them in one namespace writes about any node.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Event;
use node_remedy_observe::node_events::PrunedEvent;
use node_remedy_runtime::admin::{Pages, Readiness, serve};
use node_remedy_tests::time::until;
use serde_json::json;
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
fn neither_silence_nor_a_forged_event_reaches_the_controller() -> Result<()> {
    alone("ports::neither_silence_nor_a_forged_event_reaches_the_controller", async || {
        let host = Host::start().await?;
        LocalSet::new().run_until(held_open(&host)).await?;
        forged(&host).await
    })
}

/// What an Event about a node counts; none where it is about another Node object.
fn counted(uid: &str, count: u32) -> Result<Option<u32>> {
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "forged", "namespace": "default", "uid": "e"},
        "involvedObject": {"kind": "Node", "name": "worker-1", "uid": uid},
        "reason": "KernelOops", "type": "Warning", "source": {"component": "kernel-monitor"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": count,
    }))?;
    let seen = PrunedEvent::of(event).context("it is no Event about a node")?;
    Ok(seen.is_about("worker-1", "uid-1").then_some(seen.count))
}

async fn forged(host: &Host) -> Result<()> {
    let how = "one Event with count 100, and one about the Node object of before";
    host.attack(
        case(71, "forged Events", how),
        async || {
            let of_before = counted("uid-0", 100)?;
            ensure!(of_before.is_none(), "{of_before:?} of another Node object");
            let own = counted("uid-1", 100)?.context("it does not count")?;
            ensure!(own == 25, "it counts {own}");
            Ok(format!(
                "counts {own}, as much as a component says at once; NOT prevented: check warns"
            ))
        },
        async || {
            let [own, by_name] = [counted("uid-1", 3)?, counted("worker-1", 3)?];
            ensure!(own == Some(3) && by_name == Some(3), "{own:?}, {by_name:?}");
            Ok("three of a problem detector's count three".to_owned())
        },
    )
    .await
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
