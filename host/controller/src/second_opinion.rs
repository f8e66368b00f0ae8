//! A second opinion on silent nodes, before anybody holds them for lost.
//!
//! A Lease says only that no renewal came. After a network was away a kubelet's connections wait before they try
//! again, and its renewal comes late. So whoever leads asks the port of each kubelet whose renewal is overdue
//! whether it takes a connection. Nothing is sent, and nothing is proven by it: a node that answers is given a minute
//! (`decide::crossed`). A kubelet that hangs answers, too, and is held for lost after that minute.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use node_remedy_sandbox::net::{NetBackend, Peer};
use tokio::time::{sleep, timeout};

use crate::cluster::Cluster;
use crate::controller::Parts;
use crate::observe::lease_key;
use crate::observe::seen::LeaseSeen;

/// How often silent nodes are asked.
const ASK_EVERY: Duration = Duration::from_secs(3);
/// Who takes longer does not answer.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// So many are asked, all at once. More silent nodes are a storm, and not cut anyway.
const ASKED_MAX: usize = 64;

/// Asks for as long as this process lives, while it leads.
pub async fn ask_silent_nodes<C: Cluster>(parts: Rc<Parts<C>>) {
    loop {
        sleep(ASK_EVERY).await;
        let silent = if parts.leads() { silent(&parts) } else { Vec::new() };
        parts
            .mirror
            .answers
            .keep(&silent.iter().map(|(node, _)| node.as_str()).collect::<BTreeSet<_>>());
        let net = &parts.calls.seams.net;
        let ask = |(node, at)| async move { (node, answers(net.as_ref(), at).await) };
        let asked = silent.into_iter().map(ask);
        let mut heard = stream::iter(asked).buffer_unordered(ASKED_MAX);
        while let Some((node, answers)) = heard.next().await {
            parts.mirror.answers.note(&node, answers, parts.clock.now());
        }
    }
}

/// Nodes whose renewal is overdue, and where their kubelets listen.
fn silent<C>(parts: &Parts<C>) -> Vec<(String, SocketAddr)> {
    let now = parts.clock.now();
    let nodes = parts.mirror.nodes.all();
    let is_silent = |name: &str| {
        let lease: Option<LeaseSeen> = parts.mirror.leases.find(&lease_key(name));
        lease.is_some_and(|lease| !lease.is_renewed(now))
    };
    let silent = nodes.values().filter(|node| is_silent(&node.name));
    let listening = silent.filter_map(|node| {
        let address: IpAddr = node.internal_ips.first()?.parse().ok()?;
        Some((node.name.clone(), SocketAddr::new(address, node.kubelet_port?)))
    });
    listening.take(ASKED_MAX).collect()
}

/// Whether somebody takes a connection there.
async fn answers(net: &dyn NetBackend, address: SocketAddr) -> bool {
    let peer = Peer { address, host: String::new(), tls: None };
    matches!(timeout(CONNECT_MAX, net.tcp(peer)).await, Ok(Ok(_)))
}
