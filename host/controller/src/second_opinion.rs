//! A second opinion on silent nodes, before anybody holds them for lost.
//!
//! A Lease says only that no renewal came. After a network outage a kubelet's connections wait before they try again, and
//! its renewal comes late. So every process asks the port of each kubelet whose renewal is overdue whether it takes a
//! connection: a new leader has asked already. Nothing is sent, and nothing is proven by it: a node that answers is given a minute
//! (`decide::crossed`). A kubelet that hangs answers, too, and is held for lost after that minute.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use node_remedy_context::context::Context;
use node_remedy_observe::caches::lease_key;
use node_remedy_observe::pruned::{PrunedLease, PrunedNode};
use node_remedy_runtime::cluster::Cluster;
use node_remedy_sandbox::net::{NetBackend, Peer};
use node_remedy_sandbox::{Hazard, destination};
use tokio::time::{sleep, timeout};

/// How often silent nodes are asked.
const ASK_EVERY: Duration = Duration::from_secs(3);
/// Who takes longer does not answer.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// So many nodes are asked at once: those that fell silent last. The others have been asked before.
const ASKED_MAX: usize = 64;

/// Asks for as long as this process lives.
pub async fn ask_silent_nodes<C: Cluster>(context: Rc<Context<C>>) {
    loop {
        sleep(ASK_EVERY).await;
        let silent = silent(&context);
        context
            .caches
            .answers
            .keep(&silent.iter().map(|(node, _)| node.as_str()).collect::<BTreeSet<_>>());
        let net = &context.calls.seams.net;
        let ask = |(node, at)| async move { (node, answers(net.as_ref(), at).await) };
        let asked = silent.into_iter().map(ask);
        let mut heard = stream::iter(asked).buffer_unordered(ASKED_MAX);
        while let Some((node, answers)) = heard.next().await {
            context.caches.answers.note(&node, answers, context.clock.now());
        }
    }
}

/// Nodes whose renewal is overdue, and where their kubelets listen.
fn silent<C>(context: &Context<C>) -> Vec<(String, SocketAddr)> {
    let now = context.clock.now();
    let nodes = context.caches.nodes.all();
    let silent_since = |name: &str| {
        let lease: PrunedLease = context.caches.leases.find(&lease_key(name))?;
        (!lease.is_renewed(now)).then_some(lease.observed)
    };
    let mut silent: Vec<_> = nodes
        .values()
        .filter_map(|node| Some((silent_since(&node.name)?, node.name.clone(), listens(node)?)))
        .collect();
    silent.sort_by_key(|(since, ..)| Reverse(*since));
    silent.truncate(ASKED_MAX);
    silent.into_iter().map(|(_, node, at)| (node, at)).collect()
}

/// Where a kubelet listens, by its own word. What no node has for an address, such as our own loopback or a metadata
/// service, is not connected to.
pub fn listens(node: &PrunedNode) -> Option<SocketAddr> {
    safe(node.internal_ips.first()?, node.kubelet_port?)
}

fn safe(address: &str, port: u16) -> Option<SocketAddr> {
    let address: IpAddr = address.parse().ok()?;
    let is_safe = Hazard::of(destination(address)).is_none();
    is_safe.then_some(SocketAddr::new(address, port))
}

/// Whether somebody takes a connection there.
async fn answers(net: &dyn NetBackend, address: SocketAddr) -> bool {
    let peer = Peer { address, host: String::new(), tls: None };
    matches!(timeout(CONNECT_MAX, net.tcp(peer)).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use crate::second_opinion::safe;

    #[test]
    fn a_kubelet_leads_nobody_to_where_no_node_is() {
        assert!(safe("10.0.0.7", 10_250).is_some());
        for address in ["127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "0.0.0.0", "fe80::1"] {
            assert_eq!(safe(address, 10_250), None, "{address}");
        }
    }
}
