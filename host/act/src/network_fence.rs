//! The built-in method `network-fence`: a call whose device is the API server. It asks csi-addons for a
//! NetworkFence and waits for its answer; what it tells of it are the ends that a plugin's call has.
//!
//! One object per incident and method, of a name that follows from both, so that whoever leads next finds
//! it. `status.result` does not say of which `fenceState` it is. So a Fenced object is never made of an
//! Unfenced one: it is created anew, and counts as fenced only while its generation is 1, that is while
//! nobody ever asked anything else of it. An Unfenced one counts as such by csi-addons' own message. What
//! else is found is unknown, and unknown is never off. What an object of somebody else fences is left alone.

use std::time::Duration;

use json_patch::Patch;
use kube::ResourceExt as _;
use node_remedy_api::plan::Method;
use node_remedy_api::plan::network_fence::{
    FenceState, NetworkFence, NetworkFenceSpec, SUCCEEDED, UNFENCED_MESSAGE, spec_of,
};
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_decide::{Action, End, Failure, FailureKind, PlugState};
use node_remedy_record::called::Called;
use node_remedy_runtime::cluster::unread::{Read, Unread};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow, Scope};
use node_remedy_runtime::digest::sha256;
use node_remedy_sandbox::{Cidr, SendGate as _};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use crate::calls::{CallRequest, Calls, held_back, is_out_of_date};

/// Says whose a NetworkFence is: the NodeFence's name.
pub const OF_NODEFENCE: &str = "node-remedy.io/nodefence";
/// How often the answer is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Digits of the hash in a name: enough for no two to meet.
const NAME_DIGITS: usize = 32;

/// What stands in the cluster.
#[derive(Debug)]
struct Found {
    ours: Option<NetworkFence>,
    /// Of others, over one of our networks, at our driver or at one that a class of either names.
    others: Vec<NetworkFence>,
}

/// What our object says.
#[derive(Debug, PartialEq, Eq)]
enum Stands {
    /// There is none.
    Nowhere,
    Fenced,
    Unfenced,
    /// It waits for its finalizer.
    Leaving,
    /// Fenced is asked, and not answered yet.
    Fencing(String),
    /// Unfenced is asked, and not answered yet.
    Unfencing(String),
    /// It is not what we made.
    Changed,
}

/// How one look and what it led to went.
enum Turn {
    Done(PlugState),
    /// Not yet; why.
    Wait(String),
}

/// The object that a call is about.
struct DesiredFence<'a> {
    name: String,
    incident: &'a str,
    /// Fenced.
    spec: NetworkFenceSpec,
}

/// One call under way.
struct Work<'a, C> {
    calls: &'a Calls<C>,
    asked: &'a CallRequest,
    wanted: DesiredFence<'a>,
    /// What is asked may have been done, by this call or before.
    may_have_acted: bool,
    /// The answer to a write of an off was lost, so the API server may create the object later.
    may_fence_later: bool,
}

impl<C: Cluster> Calls<C> {
    /// Does what is asked; `is_withdrawn` says whether its intent still stands.
    pub(super) async fn network_fence(
        &self,
        asked: &CallRequest,
        is_withdrawn: impl Fn() -> bool,
    ) -> Called {
        let until = Instant::now() + asked.deadline;
        let incident = asked.operation.rsplit_once('/').map_or(&*asked.operation, |(name, _)| name);
        let wanted = DesiredFence::of(incident, &asked.method);
        let mut work =
            Work { calls: self, asked, wanted, may_have_acted: false, may_fence_later: false };
        let mut why = "no answer of the API server".to_owned();
        loop {
            match timeout_at(until, work.turn()).await {
                Ok(Ok(Turn::Done(state)))
                    if guard(Bug::UnheardCreateForgotten, work.may_fence_later) =>
                {
                    // A create that is carried out late would fence anew what was given back meanwhile.
                    let detail = format!(
                        "NetworkFence {}: {}; a create whose answer was lost may still be carried out",
                        work.wanted.name,
                        told(state)
                    );
                    return Called { end: End::Indeterminate, detail, report: None };
                }
                Ok(Ok(Turn::Done(state))) => {
                    let detail = format!("NetworkFence {}: {}", work.wanted.name, told(state));
                    let end = End::Succeeded { state, identity: Vec::new() };
                    return Called { end, detail, report: None };
                }
                Ok(Ok(Turn::Wait(waits))) => why = waits,
                Ok(Err(Stop::Late)) if guard(Bug::UnheardCreateHeldBack, work.may_have_acted) => {
                    let detail = format!(
                        "NetworkFence {}: {why}; a write may have been carried out, or may still be",
                        work.wanted.name
                    );
                    return Called { end: End::Indeterminate, detail, report: None };
                }
                Ok(Err(Stop::Late)) => return held_back(),
                Ok(Err(Stop::Failed(mut failure))) => {
                    if is_withdrawn() {
                        failure.kind = FailureKind::Cancelled;
                    }
                    return work.failed(failure);
                }
                Err(_) => {}
            }
            if timeout_at(until, sleep(LOOK_EVERY)).await.is_err() {
                let detail = format!("NetworkFence {}: {why}", work.wanted.name);
                return work.failed(Failure { kind: FailureKind::Timeout, detail });
            }
        }
    }

    /// Whether NetworkFences can be had at all.
    pub(super) async fn network_fence_ready(&self) -> Result<(), String> {
        let listed = self.cluster.list_each::<NetworkFence>(&Scope::all(), drop).await;
        listed.map(|_| ()).map_err(|error| failure(&error).detail)
    }
}

impl<'a> DesiredFence<'a> {
    fn of(incident: &'a str, method: &Method) -> Self {
        let name = name(incident, &method.name);
        Self { name, incident, spec: spec_of(&method.parameters) }
    }

    /// Whether another object may change what ours is about.
    fn meets(&self, other: &NetworkFenceSpec) -> bool {
        // Classes are not read: any may name any driver.
        let of_class = |spec: &NetworkFenceSpec| !spec.network_fence_class_name.is_empty();
        let same_driver =
            other.driver == self.spec.driver || of_class(other) || of_class(&self.spec);
        let mut pairs = self
            .spec
            .cidrs
            .iter()
            .flat_map(|own| other.cidrs.iter().map(move |their| (own, their)));
        same_driver && pairs.any(|(own, their)| overlap(own, their))
    }

    fn stands(&self, ours: Option<&NetworkFence>) -> Stands {
        let Some(ours) = ours else { return Stands::Nowhere };
        let fenced = FenceState::Fenced;
        let is_ours = ours.annotations().get(OF_NODEFENCE).is_some_and(|one| one == self.incident)
            && NetworkFenceSpec { fence_state: fenced, ..ours.spec.clone() } == self.spec;
        if !is_ours {
            return Stands::Changed;
        }
        if ours.metadata.deletion_timestamp.is_some() {
            return Stands::Leaving;
        }
        let status = ours.status.clone().unwrap_or_default();
        let succeeded = status.result == SUCCEEDED;
        let says = match (status.result.as_str(), status.message.as_str()) {
            ("", _) => "csi-addons did not answer yet".to_owned(),
            (result, message) => format!("csi-addons says {result}: {message}"),
        };
        match ours.spec.fence_state {
            FenceState::Fenced if ours.metadata.generation != Some(1) => Stands::Changed,
            FenceState::Fenced if succeeded => Stands::Fenced,
            FenceState::Fenced => Stands::Fencing(says),
            FenceState::Unfenced if succeeded && status.message == UNFENCED_MESSAGE => {
                Stands::Unfenced
            }
            FenceState::Unfenced => Stands::Unfencing(says),
        }
    }
}

/// Why a call ends early.
enum Stop {
    /// What it was decided on has grown old.
    Late,
    Failed(Failure),
}

impl<C: Cluster> Work<'_, C> {
    async fn turn(&mut self) -> Result<Turn, Stop> {
        let found = match self.find().await {
            Ok(found) => found,
            Err(error) => return Self::after(&error),
        };
        let stands = self.wanted.stands(found.ours.as_ref());
        match self.asked.action {
            Action::Status => Ok(Turn::Done(state(&stands, &found))),
            Action::Off => self.off(&stands, found).await,
            Action::On => self.on(&stands, found).await,
            Action::Reset | Action::Monitor => Err(Stop::Failed(Failure {
                kind: FailureKind::Unsupported,
                detail: "a NetworkFence can be switched off, on, and read".to_owned(),
            })),
        }
    }

    async fn find(&self) -> Result<Found, ClusterError> {
        let mut all = Vec::new();
        let each =
            |read: Read<NetworkFence>| all.push(read.unwrap_or_else(|unread| guess(&unread)));
        self.calls.cluster.list_each(&Scope::all(), each).await?;
        let (ours, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| one.name_any() == self.wanted.name);
        let others = others.into_iter().filter(|one| self.wanted.meets(&one.spec)).collect();
        Ok(Found { ours: ours.into_iter().next(), others })
    }

    async fn off(&mut self, stands: &Stands, found: Found) -> Result<Turn, Stop> {
        self.may_have_acted |= match stands {
            Stands::Nowhere | Stands::Unfenced | Stands::Unfencing(_) => false,
            Stands::Fenced | Stands::Fencing(_) | Stands::Leaving | Stands::Changed => true,
        };
        if let Some(other) = found.others.first() {
            return Err(self.taken(other));
        }
        match (stands, found.ours) {
            (Stands::Fenced, _) => Ok(Turn::Done(PlugState::Off)),
            (Stands::Fencing(why), _) => Ok(Turn::Wait(why.clone())),
            (Stands::Leaving, _) => Ok(Turn::Wait("it waits for its finalizers".to_owned())),
            (Stands::Unfenced | Stands::Unfencing(_), Some(ours)) => self.remove(&ours).await,
            (Stands::Changed, _) => Err(self.changed()),
            (Stands::Nowhere | Stands::Unfenced | Stands::Unfencing(_), None)
            | (Stands::Nowhere, Some(_)) => {
                if is_out_of_date(self.asked, self.calls.clock.now()) {
                    return Err(Stop::Late);
                }
                let mut fence = NetworkFence::new(&self.wanted.name, self.wanted.spec.clone());
                let incident = self.wanted.incident.to_owned();
                fence.annotations_mut().insert(OF_NODEFENCE.to_owned(), incident);
                let create = self.calls.cluster.create(&fence);
                self.write(create).await
            }
        }
    }

    async fn on(&mut self, stands: &Stands, found: Found) -> Result<Turn, Stop> {
        let is_fenced = |other: &&NetworkFence| other.spec.fence_state == FenceState::Fenced;
        let Some(ours) = found.ours else { return Ok(Turn::Done(PlugState::On)) };
        match stands {
            Stands::Nowhere => Ok(Turn::Done(PlugState::On)),
            Stands::Leaving => Ok(Turn::Wait("it waits for its finalizers".to_owned())),
            Stands::Changed => Err(self.changed()),
            Stands::Unfenced => self.remove(&ours).await,
            Stands::Unfencing(why) => {
                self.may_have_acted = true;
                Ok(Turn::Wait(why.clone()))
            }
            Stands::Fenced | Stands::Fencing(_) => {
                if let Some(other) = found.others.iter().find(is_fenced) {
                    return Err(self.taken(other));
                }
                let patch = json!([
                    { "op": "test", "path": "/metadata/uid", "value": ours.metadata.uid },
                    { "op": "replace", "path": "/spec/fenceState", "value": FenceState::Unfenced },
                ]);
                let patch: Patch = serde_json::from_value(patch).map_err(|error| {
                    let detail = error.to_string();
                    Stop::Failed(Failure { kind: FailureKind::Other, detail })
                })?;
                let name = self.wanted.name.clone();
                let patched = self.calls.cluster.patch::<NetworkFence>(At::cluster(&name), &patch);
                self.write(patched).await
            }
        }
    }

    /// Takes away an object that keeps nobody from anything.
    async fn remove(&mut self, ours: &NetworkFence) -> Result<Turn, Stop> {
        let name = self.wanted.name.clone();
        let how = DeleteHow { uid: ours.metadata.uid.clone(), ..DeleteHow::default() };
        let deleted = self.calls.cluster.delete::<NetworkFence>(At::cluster(&name), &how);
        self.write(deleted).await
    }

    /// Sends a write, if one may still be sent. What the next look sees is the answer, whatever this one was;
    /// but what the API server refused, it did not do.
    async fn write<T>(
        &mut self,
        write: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<Turn, Stop> {
        self.calls
            .gate
            .begin(&self.asked.operation)
            .map_err(|detail| Stop::Failed(Failure { kind: FailureKind::Other, detail }))?;
        let before = std::mem::replace(&mut self.may_have_acted, true);
        match write.await {
            Ok(_) => Ok(Turn::Wait("csi-addons did not answer yet".to_owned())),
            Err(ClusterError::AlreadyExists(why) | ClusterError::Conflict(why)) => {
                Ok(Turn::Wait(why))
            }
            Err(error) => {
                if matches!(error, ClusterError::Denied(_) | ClusterError::Invalid(_)) {
                    self.may_have_acted = before;
                }
                // Others go by the object's UID: carried out late they change nothing.
                self.may_fence_later |=
                    self.asked.action == Action::Off && error.may_have_been_done();
                Self::after(&error)
            }
        }
    }

    fn after(error: &ClusterError) -> Result<Turn, Stop> {
        if error.is_passing() {
            return Ok(Turn::Wait(error.to_string()));
        }
        Err(Stop::Failed(failure(error)))
    }

    fn taken(&self, other: &NetworkFence) -> Stop {
        let name = other.name_any();
        let is_ours =
            other.annotations().get(OF_NODEFENCE).is_some_and(|of| of == self.wanted.incident);
        let detail = if is_ours {
            format!(
                "NetworkFence {name} of another method is about the same addresses; one address can have only one NetworkFence per driver, and only one at all if either names a NetworkFenceClass"
            )
        } else {
            format!(
                "NetworkFence {name} of somebody else is about the same addresses; it is not taken over"
            )
        };
        Stop::Failed(Failure { kind: FailureKind::Busy, detail })
    }

    fn changed(&self) -> Stop {
        let detail = format!(
            "NetworkFence {} is not as node-remedy made it; somebody changed it, and has to set \
             it to Unfenced and delete it",
            self.wanted.name
        );
        Stop::Failed(Failure { kind: FailureKind::Device, detail })
    }

    fn failed(&self, failure: Failure) -> Called {
        let detail = failure.detail.clone();
        let end = if self.may_have_acted { End::Indeterminate } else { End::NotAttempted(failure) };
        Called { end, detail, report: None }
    }
}

/// An object of another version, as far as it can be read. What cannot be read may be any driver and any network, and
/// keeps them away; with nobody's annotation it is nobody's.
fn guess(unread: &Unread) -> NetworkFence {
    let any = || "unreadable".to_owned();
    let driver = unread.text("/spec/driver").unwrap_or_default();
    // A class may name any driver.
    let class = unread.object().pointer("/spec/networkFenceClassName");
    let class = class.map_or_else(String::new, |one| one.as_str().map_or_else(any, str::to_owned));
    let is_known = !driver.is_empty() || !class.is_empty();
    let cidrs: Option<Vec<String>> = unread
        .object()
        .pointer("/spec/cidrs")
        .and_then(|cidrs| serde_json::from_value(cidrs.clone()).ok());
    let spec = NetworkFenceSpec {
        driver: driver.to_owned(),
        network_fence_class_name: if is_known { class } else { any() },
        cidrs: cidrs.unwrap_or_else(|| vec![any()]),
        fence_state: FenceState::Fenced,
        ..NetworkFenceSpec::default()
    };
    NetworkFence::new(unread.name(), spec)
}

/// What a separate read tells. That somebody else may have undone it makes it unknown.
fn state(stands: &Stands, found: &Found) -> PlugState {
    match stands {
        Stands::Nowhere | Stands::Unfenced => PlugState::On,
        Stands::Fenced if found.others.is_empty() => PlugState::Off,
        Stands::Fencing(_) | Stands::Unfencing(_) => PlugState::Transitioning,
        Stands::Fenced | Stands::Leaving | Stands::Changed => PlugState::Unknown,
    }
}

fn told(state: PlugState) -> &'static str {
    match state {
        PlugState::Off => "fenced, says csi-addons",
        PlugState::On => "nothing of ours is fenced",
        PlugState::Transitioning => "csi-addons did not do it yet",
        PlugState::Unknown | PlugState::Terminated => "what it says is not to be relied on",
    }
}

fn failure(error: &ClusterError) -> Failure {
    let kind = match error {
        ClusterError::Denied(_) => FailureKind::Denied,
        ClusterError::Invalid(_) => FailureKind::BadParameters,
        ClusterError::NotFound(_) => FailureKind::Unsupported,
        ClusterError::Throttled { .. } => FailureKind::Throttled,
        ClusterError::Unavailable(_) => FailureKind::Unreachable,
        ClusterError::Conflict(_)
        | ClusterError::AlreadyExists(_)
        | ClusterError::Gone
        | ClusterError::Unreadable(_) => FailureKind::Protocol,
    };
    let detail = match error {
        ClusterError::NotFound(_) => {
            "the API server knows no NetworkFence; install csi-addons".to_owned()
        }
        ClusterError::Denied(_)
        | ClusterError::Invalid(_)
        | ClusterError::Throttled { .. }
        | ClusterError::Unavailable(_)
        | ClusterError::Conflict(_)
        | ClusterError::AlreadyExists(_)
        | ClusterError::Gone
        | ClusterError::Unreadable(_) => format!("NetworkFence: {error}"),
    };
    Failure { kind, detail }
}

/// Whether two networks have an address in common; what is none may be anything.
fn overlap(one: &str, other: &str) -> bool {
    let first = |text: &str| text.split('/').next()?.parse().ok();
    match (one.parse::<Cidr>(), other.parse::<Cidr>(), first(one), first(other)) {
        (Ok(one), Ok(other), Some(of_one), Some(of_other)) => {
            one.holds(of_other) || other.holds(of_one)
        }
        (Ok(_) | Err(_), Ok(_) | Err(_), Some(_) | None, Some(_) | None) => true,
    }
}

fn name(incident: &str, method: &str) -> String {
    let hash = sha256(format!("{incident}/{method}").as_bytes());
    format!("node-remedy-{}", hash.get(..NAME_DIGITS).unwrap_or(&hash))
}

#[cfg(test)]
mod tests;
