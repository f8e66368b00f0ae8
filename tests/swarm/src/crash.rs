//! Every crash point: the calls of the scenarios under tests/scenarios, each with each way in which
//! it can go wrong, played to the end and held against the invariants and against the run in
//! which nothing went wrong.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use node_remedy_model_cluster::interceptor::{Interceptor, Request};
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_simulate::{CLIENT, Part, Played, Process, play_behind};
use node_remedy_world::Scenario;
use node_remedy_world::facts::{Fact, What};
use node_remedy_world::scenario::{Event, START};
use node_remedy_world::time::between;

use crate::checks::{Violation, check};
use crate::definitions;
use crate::play::misfits;
use crate::scene::{Scene, Setting};
use crate::setting::setting_of;

/// Where the scenarios lie, seen from the top of the repository.
pub const SCENARIOS: &str = "tests/scenarios";
/// Those with faults at fixed times, which a fault's delay would pass: they are played without.
const SEAMS: &str = "tests/seams";
/// A process that crashed is back after this.
const BACK_AFTER: Duration = Duration::from_secs(1);
/// A leader that is gone for so long is succeeded.
const GONE_FOR: Duration = Duration::from_mins(1);
/// Longer than the leader's Lease lasts.
const SLOWER_THAN_THE_LEASE: Duration = Duration::from_secs(20);
/// What comes so long after the incident is not about it any more.
const A_WHILE: Duration = Duration::from_secs(2);
/// Of calls that are alike, polls and renewals, so many are tried, and then one in so many.
const ALIKE: (usize, usize) = (6, 12);

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process ends before the call leaves it.
    CrashBefore,
    /// The process ends when the call is carried out and not answered yet.
    CrashAfter,
    /// The process ends, and another leads by the time it is back.
    LeaderChange,
    /// It is carried out, and the answer is lost.
    ReplyLost,
    /// 409.
    Conflict,
    /// 404, whatever there is.
    NotFound,
    /// 410.
    Gone,
    /// 429.
    Throttled,
    /// 500 or 503: the controller makes no difference.
    ServerError,
    /// It takes longer than the leader's Lease lasts.
    Slow,
}

impl Fault {
    const ALL: [Self; 10] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::LeaderChange,
        Self::ReplyLost,
        Self::Conflict,
        Self::NotFound,
        Self::Gone,
        Self::Throttled,
        Self::ServerError,
        Self::Slow,
    ];

    /// Whether a server gives such an answer to such a request.
    fn suits(self, call: &Call) -> bool {
        let is_write = !matches!(call.verb.as_str(), "get" | "list" | "watch");
        match self {
            Self::CrashBefore
            | Self::LeaderChange
            | Self::Throttled
            | Self::ServerError
            | Self::Slow => true,
            // A read that was carried out is a read that was not.
            Self::CrashAfter | Self::ReplyLost | Self::Conflict => is_write,
            Self::NotFound => !matches!(call.verb.as_str(), "list" | "watch" | "create"),
            Self::Gone => matches!(call.verb.as_str(), "list" | "watch"),
        }
    }

    /// Whether the server says what is not true, so that the end may be another one.
    fn lies(self) -> bool {
        self == Self::NotFound
    }
}

/// A call of a run in which nothing went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// As audit logs name it.
    pub verb: String,
    /// Resource and name.
    pub what: String,
    /// When, since the start.
    pub at: Duration,
}

/// One way in which a run goes wrong.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The scenario.
    pub reference: Arc<Reference>,
    /// The call's number, from 0.
    pub call: usize,
    /// How it goes wrong.
    pub fault: Fault,
}

/// A scenario, played without any fault.
#[derive(Debug)]
pub struct Reference {
    /// Its file's name without extension.
    pub name: String,
    scenario: Scenario,
    setting: Setting,
    calls: Vec<Call>,
    /// When the last incident came to its last state.
    over_at: Duration,
    end: End,
}

/// What everybody can see at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    ready: BTreeMap<String, String>,
    off: BTreeSet<String>,
    ours: BTreeSet<(String, String, String)>,
    running: BTreeSet<String>,
    parked: BTreeSet<String>,
}

/// What is wrong about how a scenario goes.
#[derive(Debug, Default)]
pub struct Wrong {
    /// Invariants that it breaks.
    pub broken: Vec<Violation>,
    /// Its own expectations that it does not meet.
    pub unmet: Vec<String>,
}

impl Wrong {
    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.broken.is_empty() && self.unmet.is_empty()
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = self.broken.iter().map(ToString::to_string);
        let all: Vec<String> = broken.chain(self.unmet.iter().cloned()).collect();
        f.write_str(&all.join("; "))
    }
}

impl Reference {
    /// Reads and plays the scenario of a file; it has to go as it says.
    pub fn of(file: &Path) -> anyhow::Result<Self> {
        let (reference, wrong) = Self::judged(file)?;
        ensure!(wrong.is_empty(), "without any fault: {wrong}");
        Ok(reference)
    }

    /// The same, with what is wrong about it.
    pub fn judged(file: &Path) -> anyhow::Result<(Self, Wrong)> {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut scenario = parse(file)?;
        scenario.admit = Some(definitions::admit);
        let mut setting = setting_of(&scenario);
        if file.starts_with(SEAMS) {
            // Whether anybody is lost for good at the end, they say themselves.
            setting.lost.clear();
        }
        let calls = Rc::new(Calls::default());
        let played = play(&scenario, &calls, None)?;
        // Nothing goes wrong here that an answer would wait for.
        let soon = Setting { seen_after: Setting::default().seen_after, ..setting.clone() };
        // In a plan processes die and change places, and what a device is asked for comes later.
        setting.sound_bmcs.clear();
        let broken = check(&played.facts, &soon, |_, _| ());
        let broken = broken.into_iter().chain(misfits(&played)).collect();
        let unmet = scenario.expect.iter().filter_map(|one| one.judge(&played.facts).err());
        let wrong = Wrong { broken, unmet: unmet.map(|unmet| unmet.to_string()).collect() };
        let calls = calls.seen.take();
        let states = played.facts.iter().filter(|one| matches!(one.what, What::FenceState { .. }));
        let over_at = states.map(|one| between(START, one.at)).max().unwrap_or_default();
        let end = End::of(&played.facts);
        Ok((Self { name, scenario, setting, calls, over_at, end }, wrong))
    }

    /// Every plan for this scenario: each call from shortly before trouble begins on, until a while
    /// after the incident is over.
    pub fn plans(self: &Arc<Self>) -> Vec<Plan> {
        let trouble = self.scenario.faults.iter().filter(|one| one.when.is_none());
        let is_fault = |what: &Event| {
            matches!(
                what,
                Event::BmcFault { .. } | Event::DeviceFault { .. } | Event::CloudFault { .. }
            )
        };
        let trouble = trouble.filter(|one| !is_fault(&one.what));
        let begins = trouble.map(|one| one.at).min().unwrap_or_default();
        let matters = begins..=self.over_at.saturating_add(A_WHILE);
        let calls = self.calls.iter().enumerate().filter(|(_, call)| matters.contains(&call.at));
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut plans = Vec::new();
        for (number, call) in calls {
            let count = seen.entry(format!("{} {}", call.verb, call.what)).or_default();
            *count += 1;
            if *count > ALIKE.0 && !count.is_multiple_of(ALIKE.1) {
                continue;
            }
            let faults = Fault::ALL.into_iter().filter(|fault| fault.suits(call));
            plans.extend(faults.map(|fault| Plan { reference: self.clone(), call: number, fault }));
        }
        plans
    }
}

impl Plan {
    /// Plays it, and says what is wrong.
    pub fn play(&self) -> anyhow::Result<Vec<String>> {
        let Reference { scenario, setting, end, .. } = &*self.reference;
        let played = play(scenario, &Rc::default(), Some((self.call, self.fault)))?;
        let broken = check(&played.facts, setting, |_, _| ());
        let broken = broken.into_iter().chain(misfits(&played));
        let mut wrong: Vec<String> = broken.map(|one| one.to_string()).collect();
        let found = End::of(&played.facts);
        if found != *end && !self.fault.lies() {
            wrong.push(format!("it ends otherwise: {found:?}, expected {end:?}"));
        }
        Ok(wrong)
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { reference, call, fault } = self;
        write!(f, "{}: {fault:?} at call {call}", reference.name)?;
        match reference.calls.get(*call) {
            Some(Call { verb, what, at }) => {
                write!(f, ", {verb} {what}, {:.3} s", at.as_secs_f64())
            }
            None => Ok(()),
        }
    }
}

impl End {
    fn of(facts: &[Fact]) -> Self {
        let mut scene = Scene::default();
        let mut running = BTreeMap::new();
        for Fact { at, what } in facts {
            scene.note(*at, what);
            if let What::PodPhase { pod, uid, phase, .. } = what {
                running.insert(uid.clone(), (pod.clone(), phase == "Running"));
            } else if let What::PodGone { uid, .. } = what {
                running.remove(uid);
            }
        }
        let is_parked = |node: &&String| scene.state_of(node) == Some("Error");
        Self {
            parked: scene.nodes.iter().filter(is_parked).cloned().collect(),
            off: scene.off.keys().cloned().collect(),
            ours: scene
                .taints
                .iter()
                .filter(|(_, by)| *by == CLIENT)
                .map(|(key, _)| key.clone())
                .collect(),
            running: running.into_values().filter(|(_, runs)| *runs).map(|(pod, _)| pod).collect(),
            ready: scene.ready,
        }
    }
}

/// What became of all plans.
#[derive(Debug, Default)]
pub struct Sum {
    /// How many were played.
    pub plans: usize,
    /// Of so many.
    pub of: usize,
    /// Each scenario's calls and plans.
    pub scenarios: Vec<(String, usize, usize)>,
    /// What went wrong: the plan, and what is wrong with its run.
    pub wrong: Vec<Vec<String>>,
}

/// The files of all scenarios, by name.
pub fn scenarios() -> anyhow::Result<Vec<PathBuf>> {
    files_of(SCENARIOS)
}

/// The same of tests/seams.
pub fn seams() -> anyhow::Result<Vec<PathBuf>> {
    files_of(SEAMS)
}

pub(crate) fn files_of(folder: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("failed to read {folder}"))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// The plans are played in steps of so many, so that those for which there is time are of all scenarios, and
/// of all parts of each. A prime: every plan has its turn.
const STRIDE: usize = 7_919;

/// What is played.
pub struct Points<'a> {
    /// The scenarios of these names; none: all.
    pub only: &'a [String],
    /// On so many threads.
    pub threads: usize,
    /// Whether there is time for another plan.
    pub has_time: &'a (dyn Fn() -> bool + Sync),
}

/// Plays every plan for every scenario, as far as there is time.
pub fn every_point(
    points: &Points<'_>,
    tell: impl Fn(usize, usize, usize) + Sync,
) -> anyhow::Result<Sum> {
    let Points { only, threads, has_time } = *points;
    let (mut plans, mut sum) = (Vec::new(), Sum::default());
    for file in scenarios()? {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        let reference = Arc::new(Reference::of(&file)?);
        let of_it = reference.plans();
        sum.scenarios.push((name, reference.calls.len(), of_it.len()));
        plans.extend(of_it);
    }
    ensure!(!plans.is_empty(), "no scenario of {SCENARIOS} is called {}", only.join(" or "));
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let stride = if plans.len().is_multiple_of(STRIDE) { 1 } else { STRIDE };
    let play = || -> anyhow::Result<()> {
        loop {
            if !has_time() {
                return Ok(());
            }
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plans.len() {
                return Ok(());
            }
            let Some(plan) = plans.get(number * stride % plans.len()) else { return Ok(()) };
            let why = plan.play().with_context(|| plan.to_string())?;
            let Ok(mut wrong) = wrong.lock() else { return Ok(()) };
            if !why.is_empty() {
                wrong.push((number, [vec![plan.to_string()], why].concat()));
            }
            tell(number + 1, plans.len(), wrong.len());
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(play)).collect();
        let panicked = |_| Err(anyhow::anyhow!("a run panicked"));
        running.into_iter().try_for_each(|one| one.join().unwrap_or_else(panicked))
    })?;
    let mut wrong = wrong.into_inner().unwrap_or_default();
    wrong.sort();
    (sum.plans, sum.of) = (next.into_inner().min(plans.len()), plans.len());
    sum.wrong = wrong.into_iter().map(|(_, why)| why).collect();
    Ok(sum)
}

pub(crate) fn parse(file: &Path) -> anyhow::Result<Scenario> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let read = |file: &Path| {
        std::fs::read_to_string(file)
            .map_err(|error| format!("failed to read {}: {error}", file.display()))
    };
    let text = read(file).map_err(anyhow::Error::msg)?;
    let load = |named: &str| read(&folder.join(named));
    Ok(Scenario::parse(&file.display().to_string(), &text, &load)?)
}

fn play(
    scenario: &Scenario,
    calls: &Rc<Calls>,
    fault: Option<(usize, Fault)>,
) -> anyhow::Result<Played> {
    let interceptor = |process| {
        Rc::new(OneFault { process, calls: calls.clone(), fault, met: RefCell::default() })
    };
    play_behind(scenario, Part::With, interceptor).context("a run that cannot be played")
}

/// The calls of all processes, in their order.
#[derive(Debug, Default)]
struct Calls {
    count: Cell<usize>,
    seen: RefCell<Vec<Call>>,
}

/// Counts calls, and lets one of them go wrong.
struct OneFault {
    process: Process,
    calls: Rc<Calls>,
    fault: Option<(usize, Fault)>,
    /// The call that goes wrong after it was carried out.
    met: RefCell<Option<(String, Fault)>>,
}

impl OneFault {
    async fn die(&self, lasts: Duration) -> Result<(), ClusterError> {
        self.process.kill(lasts);
        std::future::pending().await
    }
}

fn word(request: &Request<'_>) -> String {
    format!("{} {}", request.resource, request.name.unwrap_or_default())
}

impl Interceptor for OneFault {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let number = self.calls.count.get();
        self.calls.count.set(number + 1);
        let (verb, what) = (request.verb.to_owned(), word(request));
        let Some((_, fault)) = self.fault.filter(|(call, _)| *call == number) else {
            if self.fault.is_none() {
                let at = self.process.elapsed();
                self.calls.seen.borrow_mut().push(Call { verb, what, at });
            }
            return Ok(());
        };
        match fault {
            Fault::CrashBefore => self.die(BACK_AFTER).await,
            Fault::LeaderChange => self.die(GONE_FOR).await,
            Fault::Conflict if request.verb == "create" => {
                Err(ClusterError::AlreadyExists("on purpose".to_owned()))
            }
            Fault::Conflict => Err(ClusterError::Conflict("on purpose".to_owned())),
            Fault::NotFound => Err(ClusterError::NotFound("on purpose".to_owned())),
            Fault::Gone => Err(ClusterError::Gone),
            Fault::Throttled => Err(ClusterError::Throttled { after: Duration::from_secs(1) }),
            Fault::ServerError => Err(ClusterError::Unavailable("on purpose".to_owned())),
            Fault::Slow => {
                tokio::time::sleep(SLOWER_THAN_THE_LEASE).await;
                Ok(())
            }
            Fault::CrashAfter | Fault::ReplyLost => {
                self.met.replace(Some((format!("{verb} {what}"), fault)));
                Ok(())
            }
        }
    }

    async fn answer(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let this = format!("{} {}", request.verb, word(request));
        let is_it = self.met.borrow().as_ref().is_some_and(|(call, _)| *call == this);
        let met = if is_it { self.met.take() } else { None };
        match met {
            Some((_, Fault::CrashAfter)) => self.die(BACK_AFTER).await,
            Some(_) => Err(ClusterError::Unavailable("the answer is lost".to_owned())),
            None => Ok(()),
        }
    }
}
