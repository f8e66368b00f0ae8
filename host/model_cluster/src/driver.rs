//! The world as several tasks of one thread share it, and the task that moves it on.
//!
//! Virtual time is the runtime's paused time: whenever every task waits, tokio jumps to
//! the next timer. [`drive`] keeps one timer at the world's next own event.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use node_remedy_decide::Time;
use node_remedy_devices::ec2;
use node_remedy_devices::ec2::Answer;
use node_remedy_runtime::udp::{Datagram, Listen, UdpSubscription};
use node_remedy_runtime::virtual_clock::VirtualClock;
use node_remedy_sandbox::net::{Conversation, Fabric, HttpPeer, HttpReply, NetError, StreamEvent};
use node_remedy_sandbox::{Names, net};
use node_remedy_world::api::Kind;
use node_remedy_world::scenario::ControllerEvent;
use node_remedy_world::time::after;
use node_remedy_world::{AppliedFault, Peer, Sent, World};
use tokio::sync::{mpsc, watch};

/// When a connection is given up on which nothing comes; whoever asks has less patience.
const SILENCE: Duration = Duration::from_hours(1);

/// A handle on the world; cheap to clone.
#[derive(Clone)]
pub struct Shared {
    world: Arc<Mutex<World>>,
    clock: VirtualClock,
    /// When the world will next do something by itself, for whoever moves it on.
    next: Arc<watch::Sender<Option<Time>>>,
    watched: Arc<Mutex<Watched>>,
    /// Whoever is to hear what happens to node-remedy.
    hearers: Arc<Mutex<Vec<mpsc::UnboundedSender<AppliedFault>>>>,
    /// Whoever listens for datagrams.
    ears: Arc<Mutex<Vec<Listens>>>,
    /// Until when processes, by number or name, reach no device.
    cut_off: Arc<Mutex<Vec<(Who, Time)>>>,
}

/// A process that something befell.
enum Who {
    Number(u32),
    Name(String),
}

/// A port that a process of node-remedy listens on.
struct Listens {
    number: u32,
    port: u16,
    heard: mpsc::Sender<Datagram>,
    /// Gone once nobody listens any more.
    ear: Weak<()>,
}

/// Who watches what.
#[derive(Default)]
struct Watched {
    /// Watchers have been told of changes up to this version.
    told: u64,
    /// The last version that they were told of, by kind and, unless they watch all, namespace.
    watchers: BTreeMap<(Kind, Option<String>), watch::Sender<u64>>,
}

impl Shared {
    /// Shares `world`, whose time is `clock`'s.
    pub fn new(world: World, clock: VirtualClock) -> Self {
        Self {
            world: Arc::new(Mutex::new(world)),
            clock,
            next: Arc::new(watch::Sender::new(None)),
            watched: Arc::default(),
            hearers: Arc::default(),
            ears: Arc::default(),
            cut_off: Arc::default(),
        }
    }

    /// Does something to the world as of now, and lets everyone who waits look again.
    pub fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        // A panic elsewhere already fails the run; the world itself stays usable.
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let before = world.writes();
        world.advance(self.clock.now());
        let out = act(&mut world);
        if world.writes() != before {
            self.tell_watchers(&mut world);
        }
        self.tell_hearers(&mut world);
        self.deliver(world.take_sent());
        let next = world.next_at();
        self.next.send_if_modified(|told| std::mem::replace(told, next) != next);
        out
    }

    fn tell_watchers(&self, world: &mut World) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let told = std::mem::replace(&mut watched.told, world.writes());
        let Ok(changes) = world.api().changes(told) else {
            // What is forgotten may have been anything.
            for watcher in watched.watchers.values() {
                watcher.send_replace(0);
            }
            return;
        };
        for change in changes {
            for ((kind, namespace), watcher) in &watched.watchers {
                let is_theirs = |namespace: &String| *namespace == change.key.namespace;
                if *kind == change.key.kind && namespace.as_ref().is_none_or(is_theirs) {
                    watcher.send_replace(change.version);
                }
            }
        }
    }

    fn tell_hearers(&self, world: &mut World) {
        for applied_fault in world.take_applied_faults() {
            self.apply_fault(&applied_fault);
        }
    }

    fn deliver(&self, all: Vec<Sent>) {
        if all.is_empty() {
            return;
        }
        let mut ears = self.ears.lock().unwrap_or_else(PoisonError::into_inner);
        ears.retain(|one| one.ear.strong_count() > 0);
        for Sent { controller, from, port, data } in all {
            let hears = |one: &&Listens| {
                one.port == port && controller.is_none_or(|number| number == one.number)
            };
            for ear in ears.iter().filter(hears) {
                // A queue that is full loses it, as a socket would.
                let _ = ear.heard.try_send(Datagram { port, from, data: data.clone() });
            }
        }
    }

    /// Tells whoever hears of it what happens to node-remedy.
    pub fn apply_fault(&self, applied_fault: &AppliedFault) {
        if let ControllerEvent::DevicesLost(outage) = applied_fault.what {
            let leader = || Who::Name(applied_fault.leader.clone());
            let who = outage.controller.map_or_else(leader, Who::Number);
            let until = after(applied_fault.at, outage.lasts);
            let mut cut_off = self.cut_off.lock().unwrap_or_else(PoisonError::into_inner);
            cut_off.push((who, until));
        }
        let hearers = self.hearers.lock().unwrap_or_else(PoisonError::into_inner);
        for hearer in &*hearers {
            // Who is gone hears nothing.
            let _ = hearer.send(applied_fault.clone());
        }
    }

    /// Tells from now on what happens to node-remedy.
    pub fn applied_fault(&self) -> mpsc::UnboundedReceiver<AppliedFault> {
        let (hearer, applied_fault) = mpsc::unbounded_channel();
        self.hearers.lock().unwrap_or_else(PoisonError::into_inner).push(hearer);
        applied_fault
    }

    /// Asks the world something that changes nothing anybody waits for.
    pub fn with_quietly<T>(&self, ask: impl FnOnce(&mut World) -> T) -> T {
        ask(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the world as it stands.
    pub fn read<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells whenever an object of `kind` changed, in one namespace or anywhere.
    pub fn changes(&self, kind: Kind, namespace: Option<&str>) -> watch::Receiver<u64> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let of = (kind, namespace.map(str::to_owned));
        watched.watchers.entry(of).or_default().subscribe()
    }

    fn next_at(&self) -> Option<Time> {
        self.read(World::next_at)
    }
}

/// Moves the world from event to event, for ever.
pub async fn drive(shared: Shared) -> Infallible {
    let mut next = shared.next.subscribe();
    loop {
        next.mark_unchanged();
        let wait = shared.next_at().map(|at| at.0.saturating_sub(shared.clock.now().0));
        match wait {
            Some(0) => shared.with(|_| ()),
            Some(ms) => {
                tokio::select! {
                    biased;
                    _ = next.changed() => {}
                    () = tokio::time::sleep(Duration::from_millis(ms)) => shared.with(|_| ()),
                }
            }
            None => {
                // The sender lives in `shared`, so this cannot fail.
                let _ = next.changed().await;
            }
        }
    }
}

/// The network as one process of node-remedy is connected to it.
pub struct Line {
    shared: Shared,
    process: String,
    number: u32,
}

impl Line {
    /// The line of a process; no two processes have one number.
    pub fn new(shared: Shared, process: String, number: u32) -> Self {
        Self { shared, process, number }
    }
}

impl Line {
    /// Whether it leads to no device now.
    fn is_cut_off(&self) -> bool {
        let now = self.shared.clock.now();
        let cut_off = self.shared.cut_off.lock().unwrap_or_else(PoisonError::into_inner);
        cut_off.iter().any(|(who, until)| {
            let is_ours = match who {
                Who::Number(number) => *number == self.number,
                Who::Name(name) => *name == self.process,
            };
            is_ours && now < *until
        })
    }
}

impl Listen for Line {
    fn listen(&self, port: u16, heard: mpsc::Sender<Datagram>) -> io::Result<UdpSubscription> {
        let ear = Arc::new(());
        let mut ears = self.shared.ears.lock().unwrap_or_else(PoisonError::into_inner);
        ears.push(Listens { number: self.number, port, heard, ear: Arc::downgrade(&ear) });
        Ok(UdpSubscription::new(ear))
    }
}

/// Takes a connection, and says nothing.
struct Mute;

impl Conversation for Mute {
    fn hear(&mut self, _: &[u8]) -> Vec<(Duration, StreamEvent)> {
        Vec::new()
    }
}

impl Fabric for Line {
    fn stream(&self, to: &net::Peer) -> Option<Box<dyn Conversation>> {
        let answers = self.shared.with(|world| world.takes_connections(to.address));
        answers.then(|| Box::new(Mute) as Box<dyn Conversation>)
    }

    fn datagram(&self, to: SocketAddr, from_port: u16, data: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        let now = self.shared.clock.now();
        if self.is_cut_off() {
            return Vec::new();
        }
        let line = u64::from(self.number) << u16::BITS | u64::from(from_port);
        let from = Peer { process: &self.process, line };
        self.shared.with(|world| world.datagram(to, from, data, now))
    }

    fn http(&self, to: &HttpPeer, request: &Request<Vec<u8>>) -> Option<HttpReply> {
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers: Vec<(String, String)> =
            request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let asked = ec2::Request {
            method: request.method().as_str(),
            target: request.uri().path_and_query().map_or("", |target| target.as_str()),
            headers: &headers,
            body: request.body(),
        };
        if self.is_cut_off() {
            return Some(HttpReply { after: SILENCE, result: Err(NetError::Timeout) });
        }
        let now = self.shared.clock.now();
        let reply = self.shared.with(|world| world.http(to.address, &self.process, &asked, now))?;
        let after = Duration::from_millis(reply.delay_ms);
        let (after, result) = match reply.answer {
            Answer::Response { status, body } => (after, response(status, body)),
            Answer::Closed => (after, Err(NetError::Closed)),
            Answer::Silence => (SILENCE, Err(NetError::Timeout)),
            Answer::Unreachable => (after, Err(NetError::Unreachable)),
        };
        Some(HttpReply { after, result })
    }
}

fn response(status: u16, body: Vec<u8>) -> Result<Response<Vec<u8>>, NetError> {
    Response::builder().status(status).body(body).map_err(|_| NetError::Other)
}

/// The names that are known in the world.
pub struct WorldNames(pub Shared);

impl Names for WorldNames {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let found = self.0.read(|world| world.resolve(host));
        let none = || io::Error::new(io::ErrorKind::NotFound, "no such name in this world");
        Box::pin(async move { found.map(|address| vec![address]).ok_or_else(none) })
    }
}
