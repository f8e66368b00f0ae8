//! The real control plane as a side. Scripts share one: each has nodes in a zone of its own, a
//! namespace, and volumes that begin with its name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{AsyncBufReadExt as _, StreamExt as _, pin_mut};
use kube::Client;
use kube::client::Body;
use node_remedy_tests::control_plane::{Kubernetes, NodeMonitoring};
use node_remedy_tests::hardware::Plan;
use node_remedy_tests::remedy::install_resources;
use node_remedy_tests::storage::DRIVER;
use node_remedy_tests::time::{Clock, Task};
use node_remedy_tests::user::User;
use node_remedy_tests::{Attacher, ControlPlane, Machine, Pace, Storage};
use node_remedy_world::api::object::{name, number, text};
use node_remedy_world::api::{ChangeType, Kind, Part};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::facts::{Change, KINDS, Names};
use super::script::{Misfortune, Request, Script, VERSION, Verb, Watch, create};
use super::side::{Answer, Company, Side, Watched};

/// Nodes that are quick to be missed, and yet not when a busy machine lets them wait.
pub(crate) const PACE: Pace =
    Pace { renew_every: Duration::from_secs(2), lease_duration_s: 8, ..Pace::QUICK };
/// How the control plane judges them.
pub(crate) const MONITORING: NodeMonitoring = NodeMonitoring { grace_period_s: 8, period_s: 1 };
/// How long a watch of a script goes on. A server that has nothing to tell sends its bookmark two
/// seconds before the end.
const WATCH_S: u64 = 3;
/// A bookmark is meant to come before the end, and mostly does.
const BOOKMARK_TRIES: usize = 5;
/// What is waited for is looked at so often even without news.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A control plane, its storage, and all that happens to its nodes, pods and attachments.
pub(crate) struct Cluster {
    client: Client,
    kubelets: Client,
    storage: Storage,
    clock: Clock,
    log: Log,
    /// The versions from which the log begins.
    begins: BTreeMap<Kind, u64>,
    _bystander: Option<Machine>,
    _followers: Vec<Task>,
    _attacher: Attacher,
    // Last: everything above talks to it.
    _control_plane: ControlPlane,
}

/// Changes as they are heard of, and their number for who waits for more.
#[derive(Clone)]
struct Log {
    changes: Arc<Mutex<Vec<Change>>>,
    count: watch::Sender<usize>,
}

impl Log {
    fn push(&self, change: Change) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.push(change);
        self.count.send_replace(changes.len());
    }

    fn since(&self, place: usize) -> Vec<Change> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.get(place..).unwrap_or_default().to_vec()
    }
}

impl Cluster {
    /// Starts one that has no nodes of scripts yet.
    pub(crate) async fn start(release: Kubernetes, name: &str, company: Company) -> Result<Self> {
        let control_plane = ControlPlane::start_release(release, name, MONITORING).await?;
        let storage = Storage::create(control_plane.folder().join("volumes"))?;
        let mut config = control_plane.config(User::Admin).await?;
        // An answer is an answer.
        config.default_retry = false;
        let client = Client::try_from(config)?;
        let attacher = control_plane.client(User::Attacher).await?;
        let (kubelets, clock) = (control_plane.client(User::Kubelets).await?, Clock::start());
        let log = Log { changes: Arc::default(), count: watch::Sender::new(0) };
        let (mut followers, mut begins) = (Vec::new(), BTreeMap::new());
        for kind in KINDS {
            let from = current_version(&client, kind).await?;
            begins.insert(kind, from);
            followers.push(Task::spawn(follow(client.clone(), kind, from, clock, log.clone())));
        }
        install_resources(&client).await?;
        let driver = json!({
            "metadata": { "name": DRIVER },
            "spec": { "attachRequired": true, "podInfoOnMount": false },
        });
        ask(&client, &create(Kind::CsiDriver, driver), "").await?;
        let bystander = company.nodes();
        let bystander = bystander.map(|(name, zone)| machine(&name, zone, &kubelets, &storage));
        Ok(Self {
            client,
            kubelets,
            clock,
            _bystander: bystander,
            log,
            begins,
            _followers: followers,
            _attacher: Attacher::start(attacher, storage.clone()),
            storage,
            _control_plane: control_plane,
        })
    }
}

fn machine(name: &str, zone: &str, kubelets: &Client, storage: &Storage) -> Machine {
    let zone = ("topology.kubernetes.io/zone".to_owned(), zone.to_owned());
    let plan = Plan::without_bmc(name, PACE, BTreeMap::from([zone]));
    // Its clock stamps what it writes to its volumes, which nobody reads here.
    Machine::start(plan, kubelets.clone(), storage.clone(), Clock::start())
}

/// Writes down every change of a kind. A watch that ends is continued where it ended.
async fn follow(client: Client, kind: Kind, mut from: u64, clock: Clock, log: Log) {
    loop {
        if let Err(failure) = follow_once(&client, kind, &mut from, clock, &log).await {
            eprintln!("watch of {kind:?}: {failure:#}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

async fn follow_once(
    client: &Client,
    kind: Kind,
    from: &mut u64,
    clock: Clock,
    log: &Log,
) -> Result<()> {
    let query = format!("watch=true&allowWatchBookmarks=true&resourceVersion={from}");
    let request = http::Request::get(format!("{}?{query}", path(kind, "", ""))).body(Vec::new())?;
    let lines = client.request_stream(request).await?.lines();
    pin_mut!(lines);
    while let Some(line) = lines.next().await {
        match told(kind, &line?, Duration::from_millis(clock.now_ms()))? {
            Told::Change(change) => {
                *from = change.version;
                log.push(change);
            }
            Told::Bookmark(version) => *from = version.parse()?,
            Told::Refused { code, reason } => bail!("{code} {reason}"),
        }
    }
    Ok(())
}

/// One line of a watch.
enum Told {
    Change(Change),
    /// Everything up to this version was told.
    Bookmark(String),
    Refused {
        code: u16,
        reason: String,
    },
}

fn told(kind: Kind, line: &str, at: Duration) -> Result<Told> {
    let mut event: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
    let object = event.get_mut("object").map(Value::take);
    let object = object.with_context(|| format!("an event without object: {line}"))?;
    let change = match text(&event, "/type") {
        "ADDED" => ChangeType::Added,
        "MODIFIED" => ChangeType::Modified,
        "DELETED" => ChangeType::Deleted,
        "BOOKMARK" => return Ok(Told::Bookmark(text(&object, VERSION).to_owned())),
        _ => {
            let code = number(&object, "/code").unwrap_or_default();
            let reason = text(&object, "/reason").to_owned();
            return Ok(Told::Refused { code: u16::try_from(code)?, reason });
        }
    };
    let version = text(&object, VERSION).parse()?;
    Ok(Told::Change(Change { kind, change, object, version, at }))
}

/// The nodes of one script on the shared control plane.
pub(crate) struct Real<'a> {
    cluster: &'a Cluster,
    machines: BTreeMap<String, Machine>,
    /// How much of the log was read.
    read: usize,
    count: watch::Receiver<usize>,
    /// The last version of each kind that was heard of.
    heard: BTreeMap<Kind, u64>,
    /// What was heard and not told yet.
    news: Vec<Change>,
}

impl<'a> Real<'a> {
    /// Starts the machines of a script.
    pub(crate) fn new(cluster: &'a Cluster, script: &Script) -> Self {
        let machines = Names::new(script.name, script.nodes).nodes.into_iter().map(|name| {
            let machine = machine(&name, script.name, &cluster.kubelets, &cluster.storage);
            (name, machine)
        });
        Self {
            cluster,
            machines: machines.collect(),
            read: 0,
            count: cluster.log.count.subscribe(),
            heard: cluster.begins.clone(),
            news: Vec::new(),
        }
    }

    /// None where the watch ended before its bookmark came.
    async fn watch_once(
        &self,
        watch: &Watch,
        namespace: &str,
        from: &str,
    ) -> Result<Option<Watched>> {
        let mut path = path(watch.kind, namespace, "");
        path = format!("{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_S}");
        path = format!("{path}&resourceVersion={from}&fieldSelector={}", watch.fields);
        let answer = open(&self.cluster.client, Verb::Get, &path, &Value::Null).await?;
        make_news(&self.cluster.client).await?;
        if answer.status() == http::StatusCode::TOO_MANY_REQUESTS {
            // The server fills its cache of a kind when it is first asked for it.
            tokio::time::sleep(LOOK_EVERY).await;
            return Ok(None);
        }
        let (mut events, mut bookmark) = (Vec::new(), None);
        for line in text_of(answer).await?.lines() {
            match told(watch.kind, line, Duration::ZERO)? {
                Told::Change(change) => {
                    events.push((change.change, name(&change.object).to_owned()));
                }
                Told::Bookmark(version) => bookmark = Some(version),
                Told::Refused { code, reason } => {
                    return Ok(Some(Watched::Refused { code, reason }));
                }
            }
        }
        Ok(bookmark.map(|bookmark| Watched::Told { events, bookmark }))
    }

    fn read_log(&mut self) {
        let changes = self.cluster.log.since(self.read);
        self.read += changes.len();
        for change in changes {
            self.take(change);
        }
    }

    /// Changes of one kind come in order, some of them twice.
    fn take(&mut self, change: Change) {
        let heard = self.heard.entry(change.kind).or_default();
        if *heard < change.version {
            *heard = change.version;
            self.news.push(change);
        }
    }
}

fn path(kind: Kind, namespace: &str, name: &str) -> String {
    let root = if kind.group().is_empty() { "/api" } else { "/apis" };
    let mut path = format!("{root}/{}", kind.api_version());
    if kind.is_namespaced() && !namespace.is_empty() {
        path = format!("{path}/namespaces/{namespace}");
    }
    path = format!("{path}/{}", kind.plural());
    if name.is_empty() { path } else { format!("{path}/{name}") }
}

/// The version of a list, which waits until the server's own copy of the kind is current.
async fn current_version(client: &Client, kind: Kind) -> Result<u64> {
    let request = http::Request::get(path(kind, "", "")).body(Vec::new())?;
    let list: Value = client.request(request).await?;
    Ok(text(&list, VERSION).parse()?)
}

/// Sends a request as it is and answers status and text.
async fn send(client: &Client, verb: Verb, path: &str, body: &Value) -> Result<(u16, String)> {
    let answer = open(client, verb, path, body).await?;
    let code = answer.status().as_u16();
    Ok((code, text_of(answer).await?))
}

/// Sends a request; the answer has begun when this is done.
async fn open(
    client: &Client,
    verb: Verb,
    path: &str,
    body: &Value,
) -> Result<http::Response<Body>> {
    let (method, content) = match verb {
        Verb::Get => ("GET", "application/json"),
        Verb::Create | Verb::Evict => ("POST", "application/json"),
        Verb::Replace => ("PUT", "application/json"),
        Verb::MergePatch => ("PATCH", "application/merge-patch+json"),
        Verb::JsonPatch => ("PATCH", "application/json-patch+json"),
        Verb::Delete => ("DELETE", "application/json"),
    };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content);
    Ok(client.send(request.body(Body::from(body))?).await?)
}

async fn text_of(answer: http::Response<Body>) -> Result<String> {
    Ok(String::from_utf8(answer.into_body().collect_bytes().await?.to_vec())?)
}

/// Makes a pod in a namespace of no script. A server sends a bookmark only when something happened
/// that the watch was not told of.
async fn make_news(client: &Client) -> Result<()> {
    let news = json!({
        "metadata": { "generateName": "news-", "namespace": "default" },
        "spec": {
            "nodeSelector": { "no": "node" },
            "containers": [{ "name": "main", "image": "none" }],
        },
    });
    ask(client, &create(Kind::Pod, news), "default").await?;
    Ok(())
}

async fn ask(client: &Client, request: &Request, namespace: &str) -> Result<Answer> {
    let mut path = path(request.kind, namespace, &request.name);
    if request.part == Part::Status {
        path.push_str("/status");
    }
    if request.verb == Verb::Evict {
        path.push_str("/eviction");
    }
    if !request.query.is_empty() {
        path = format!("{path}?{}", request.query);
    }
    let mut body = request.body.clone();
    if let (Verb::Create | Verb::Replace, Some(object)) = (request.verb, body.as_object_mut()) {
        object.insert("apiVersion".to_owned(), json!(request.kind.api_version()));
        object.insert("kind".to_owned(), json!(request.kind.name()));
    }
    if request.verb == Verb::Evict {
        let (api_version, metadata) = ("policy/v1", json!({ "name": request.name }));
        body = json!({
            "apiVersion": api_version, "kind": "Eviction", "metadata": metadata,
            "deleteOptions": body,
        });
    }
    let (code, answer) = send(client, request.verb, &path, &body).await?;
    let answer: Value = serde_json::from_str(&answer).with_context(|| answer.clone())?;
    Ok(if (200..300).contains(&code) {
        Answer::Done(answer)
    } else {
        Answer::Refused { code, reason: text(&answer, "/reason").to_owned() }
    })
}

impl Side for Real<'_> {
    const NAME: &'static str = "the real control plane";
    const DRIVER: &'static str = DRIVER;

    async fn ask(&mut self, request: &Request, namespace: &str) -> Result<Answer> {
        ask(&self.cluster.client, request, namespace).await
    }

    async fn watch(&mut self, watch: &Watch, namespace: &str, from: &str) -> Result<Watched> {
        for _ in 0..BOOKMARK_TRIES {
            if let Some(watched) = self.watch_once(watch, namespace, from).await? {
                return Ok(watched);
            }
        }
        bail!("no watch of {} had a bookmark", watch.kind.plural())
    }

    async fn apply_fault(&mut self, node: &str, misfortune: Misfortune) -> Result<()> {
        let machine = self.machines.get(node).context("no such machine")?;
        match misfortune {
            Misfortune::KubeletStops => machine.stop_kubelet(),
            Misfortune::KubeletStarts => machine.start_kubelet(),
        }
        Ok(())
    }

    async fn forget_history(&mut self) -> Result<()> {
        // What was made later than the server, as our own kinds were, it never knew from its start.
        Ok(())
    }

    async fn version(&mut self) -> Result<u64> {
        current_version(&self.cluster.client, Kind::Namespace).await
    }

    async fn news(&mut self) -> Result<Vec<Change>> {
        self.read_log();
        Ok(std::mem::take(&mut self.news))
    }

    async fn wait(&mut self) -> Result<()> {
        // Without news the time is what may have come.
        let _ = tokio::time::timeout(LOOK_EVERY, self.count.changed()).await;
        Ok(())
    }

    async fn catch_up(&mut self) -> Result<()> {
        self.read_log();
        for kind in KINDS {
            current_version(&self.cluster.client, kind).await?;
            let from = self.heard.get(&kind).copied().unwrap_or_default();
            let query = format!("watch=true&timeoutSeconds=1&resourceVersion={from}");
            let path = format!("{}?{query}", path(kind, "", ""));
            let (_, answer) = send(&self.cluster.client, Verb::Get, &path, &Value::Null).await?;
            for line in answer.lines() {
                if let Told::Change(change) = told(kind, line, self.now())? {
                    self.take(change);
                }
            }
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.cluster.clock.now_ms())
    }
}
