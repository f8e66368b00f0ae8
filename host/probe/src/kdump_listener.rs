//! Listens for the messages of crash kernels, and says on the Node what it hears.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use node_remedy_act::node::{NodeChange, change_node};
use node_remedy_context::context::Context;
use node_remedy_decide::{Span, Time};
use node_remedy_observe::config::NodeWatch;
use node_remedy_observe::kdump::{DUMP_TOLD, TELL_EVERY, read};
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_runtime::clock::timestamp;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::metrics::DatagramLabel;
use node_remedy_runtime::udp::{Datagram, Listen, UdpSubscription};
use node_remedy_sandbox::{Cidr, Sight, Unseen, Watch, WatchOutcome, Watcher};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Datagrams that wait to be looked at; one more is dropped.
pub const QUEUE_MAX: usize = 256;

/// Datagrams of known senders that are looked at in one second.
pub const LOOKS_A_SECOND_MAX: u32 = 500;

/// How often it is asked which nodes there are and what addresses they have.
pub const NODES_EVERY: Duration = Duration::from_secs(10);

/// So many messages in a row may be lost before a dump is over.
pub const MESSAGES_LOST_MAX: u64 = 3;

/// Writes to Nodes that are under way at once.
pub const TELLINGS_MAX: usize = 16;

/// Whose address one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    pub(crate) node: String,
    /// How long one message of it counts.
    pub(crate) lasts: Span,
}

/// What is to be listened with on a port, and whose the addresses are.
pub type DesiredListener = (Arc<Watcher>, BTreeMap<IpAddr, Vec<Sender>>);

/// A port that is listened on.
pub struct Post {
    _ear: UdpSubscription,
    pub(crate) watch: Watch,
    pub(crate) senders: BTreeMap<IpAddr, Sender>,
}

/// Everything that listens.
pub struct Listener<C: Cluster> {
    pub(crate) context: Rc<Context<C>>,
    pub(crate) listen: Rc<dyn Listen>,
    /// By port.
    posts: BTreeMap<u16, Post>,
    /// Ports that could not be had, and addresses of several nodes: each is complained of once.
    complained: BTreeSet<String>,
    queue: mpsc::Sender<Datagram>,
    tellings: JoinSet<()>,
    /// The second of the latest look, and how many there were in it.
    pub(crate) looks: (u64, u32),
}

/// Listens where the configuration says so, for as long as the process lives.
pub async fn listen<C: Cluster>(context: Rc<Context<C>>, listen: Rc<dyn Listen>) {
    let (queue, mut heard) = mpsc::channel(QUEUE_MAX);
    let mut listener = Listener {
        context: context.clone(),
        listen,
        posts: BTreeMap::new(),
        complained: BTreeSet::new(),
        queue,
        tellings: JoinSet::new(),
        looks: (0, 0),
    };
    loop {
        listener.read_configuration();
        let listens = context.config.borrow().listens();
        let again = tokio::time::sleep(NODES_EVERY);
        tokio::pin!(again);
        loop {
            tokio::select! {
                biased;
                Some(_) = listener.tellings.join_next(), if !listener.tellings.is_empty() => {}
                Some(datagram) = heard.recv() => listener.hear(&datagram).await,
                () = context.configured.notified() => break,
                () = &mut again, if listens => break,
            }
        }
    }
}

impl<C: Cluster> Listener<C> {
    /// Listens on the ports that are configured now, for the senders that there are now.
    fn read_configuration(&mut self) {
        let watches = {
            let nodes = self.context.caches.nodes.all();
            self.context.config.borrow().watches(nodes.values())
        };
        let mut wanted: BTreeMap<u16, DesiredListener> = BTreeMap::new();
        for watch in &watches {
            // What is wrong with a method is said when its node is to be fenced.
            let Some((port, watcher, sender)) = self.wanted(watch) else { continue };
            let (_, senders) = wanted.entry(port).or_insert_with(|| (watcher, BTreeMap::new()));
            for address in trusted(watch) {
                let owners = senders.entry(address).or_default();
                if !owners.contains(&sender) {
                    owners.push(sender.clone());
                }
            }
        }
        self.posts.retain(|port, _| wanted.contains_key(port));
        for (port, (watcher, senders)) in wanted {
            let senders = self.one_owner_each(senders);
            if let Some(post) = self.posts.get_mut(&port) {
                post.watch.know(senders.keys().copied());
                post.senders = senders;
                continue;
            }
            match self.listen.listen(port, self.queue.clone()) {
                Ok(ear) => {
                    tracing::info!(port, senders = senders.len(), "listening for kernel dumps");
                    let watch = Watch::new(watcher, senders.keys().copied());
                    self.posts.insert(port, Post { _ear: ear, watch, senders });
                }
                Err(error) => self.complain(format!(
                    "failed to listen for kernel dumps on UDP port {port}: {error}"
                )),
            }
        }
    }

    pub(crate) fn wanted(&self, watch: &NodeWatch) -> Option<(u16, Arc<Watcher>, Sender)> {
        let name = watch.method.plugin.as_deref()?;
        let watcher = self.context.calls.plugins.watcher(name).ok()?;
        let filled = watcher.manifest().parameters.fill(&watch.method.parameters).ok()?;
        let port = filled.get("port")?.parse().ok()?;
        let interval: u64 = filled.get("interval")?.parse().ok()?;
        let lasts = Span::seconds(interval.saturating_mul(MESSAGES_LOST_MAX));
        Some((port, watcher, Sender { node: watch.node.clone(), lasts }))
    }

    /// An address of several nodes says nothing of any.
    fn one_owner_each(
        &mut self,
        senders: BTreeMap<IpAddr, Vec<Sender>>,
    ) -> BTreeMap<IpAddr, Sender> {
        let mut own = BTreeMap::new();
        for (address, owners) in senders {
            match <[Sender; 1]>::try_from(owners) {
                Ok([sender]) => {
                    own.insert(address, sender);
                }
                Err(owners) => {
                    let nodes: Vec<&str> = owners.iter().map(|one| one.node.as_str()).collect();
                    let nodes = nodes.join(", ");
                    self.complain(format!("{address} is the address of {nodes}: it is not heard"));
                }
            }
        }
        own
    }

    pub(crate) fn complain(&mut self, text: String) {
        if !self.complained.contains(&text) {
            tracing::warn!("{text}");
            self.complained.insert(text);
        }
    }

    pub(crate) async fn hear(&mut self, datagram: &Datagram) {
        let result = self.look(datagram).await;
        self.context.metrics.datagrams.get_or_create(&DatagramLabel { result }).inc();
    }

    /// What becomes of a datagram, in a word.
    pub(crate) async fn look(&mut self, datagram: &Datagram) -> &'static str {
        let now = self.context.clock.now();
        let Some(post) = self.posts.get_mut(&datagram.port) else { return "stranger" };
        let address = datagram.from.ip().to_canonical();
        let Some(sender) = post.senders.get(&address).cloned() else {
            tracing::debug!(%address, "a datagram of a stranger");
            return "stranger";
        };
        let second = now.0 / 1_000;
        let looks = if self.looks.0 == second { self.looks.1 } else { 0 };
        if looks >= LOOKS_A_SECOND_MAX {
            return "too-many";
        }
        self.looks = (second, looks.saturating_add(1));
        match post.watch.hear(datagram.from, &datagram.data, &self.context.calls.seams).await {
            WatchOutcome::Seen(Sight::Sighting(_)) => {
                self.sighted(&sender, address, now);
                "sighting"
            }
            WatchOutcome::Seen(Sight::Finished(_)) => {
                self.context.dumps.forget(&sender.node);
                "sighting"
            }
            WatchOutcome::Seen(Sight::Ignore) => "ignored",
            WatchOutcome::Unseen(Unseen::UnknownSender) => "stranger",
            WatchOutcome::Unseen(Unseen::TooLarge(_)) => "too-large",
            WatchOutcome::Unseen(Unseen::TooSoon) => "too-soon",
            WatchOutcome::Unseen(Unseen::Failed(why)) => {
                tracing::warn!(node = sender.node, why, "failed to look at a datagram");
                "failed"
            }
        }
    }

    fn sighted(&mut self, sender: &Sender, address: IpAddr, now: Time) {
        let Sender { node, lasts } = sender;
        if self.context.dumps.note(node, now, *lasts) {
            tracing::info!(node, %address, "the node writes a kernel dump");
        }
        if self.tellings.len() >= TELLINGS_MAX {
            return;
        }
        let Some(seen) = self.context.caches.nodes.find(node) else { return };
        if self.is_told(&seen, now.after(*lasts)) {
            return;
        }
        let Some(sighting) = self.context.dumps.to_tell(node, now) else { return };
        let ago = now.since(sighting.at);
        let at = Time(self.context.clock.server_now().0.saturating_sub(ago.0));
        let (from, to) = (timestamp(at), timestamp(at.after(*lasts)));
        let value = format!("{from:.3}/{to:.3} from {address}, heard by {}", self.context.process);
        let change = NodeChange::Annotate { key: DUMP_TOLD.to_owned(), value: Some(value) };
        let cluster = self.context.cluster.clone();
        self.tellings.spawn_local(async move {
            if let Err(error) = change_node(&cluster, &seen.name, &seen.uid, &change).await {
                tracing::warn!(node = seen.name, %error, "failed to tell of a kernel dump");
            }
        });
    }
}

impl<C: Cluster> Listener<C> {
    /// Whether somebody has just said on the Node what is to be said now.
    pub(crate) fn is_told(&self, node: &PrunedNode, until: Time) -> bool {
        let told = node.annotations.get(DUMP_TOLD).and_then(|text| read(text));
        told.is_some_and(|(_, told)| self.context.clock.when(told).after(TELL_EVERY) > until)
    }
}

/// The senders of a watch inside the networks that it is granted.
pub fn trusted(watch: &NodeWatch) -> impl Iterator<Item = IpAddr> {
    let plugin = watch.method.plugin.as_deref();
    let grants = watch.grants.iter().filter(move |grant| Some(grant.plugin.as_str()) == plugin);
    let networks =
        grants.flat_map(|grant| &grant.allows.cidrs).filter_map(|cidr| cidr.parse().ok());
    let networks: Vec<Cidr> = networks.collect();
    let senders = watch.senders.iter().map(IpAddr::to_canonical);
    senders.filter(move |sender| networks.iter().any(|network| network.holds(*sender)))
}
