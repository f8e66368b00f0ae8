//! The trial of one plug: off, look who falls silent, on again, whatever happened.
//!
//! Plugs that carry the node as well are off first, so that this one alone is left: if the node lives on
//! then and falls silent with it, this plug feeds it. A machine that lost its power comes back with
//! another boot, one that lost its network with the same. Nothing here asks or records.

use std::time::Duration;

use node_remedy_act::node_lock::Lock;
use node_remedy_api::plan::{Method, NodePlan};
use node_remedy_decide::{Action, End, PlugState, Span, Time};
use node_remedy_observe::caches::lease_key;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_runtime::cluster::Cluster;

use crate::output::complain;
use crate::wiring::observe::LeaseFinding;
use crate::wiring::plugs::{Cuts, Plug};
use crate::wiring::preflight::Looked;
use crate::wiring::setup::Bench;
use crate::wiring::{observe, preflight};

/// Nobody is judged for so long: nothing is proven.
const JUDGED_WITHIN: Span = Span::minutes(3);
/// A plug that is not on after so long needs a person.
const ON_WITHIN: Span = Span::minutes(2);
/// Between reads of a plug that is to be on.
const READ_EVERY: Duration = Duration::from_secs(1);
/// A machine that is back for so long with its old boot has not booted.
const SAME_BOOT_AFTER: Span = Span::seconds(60);

/// What a trial found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// The plug feeds the node, and no other.
    Verified,
    /// It, or a plug beside it, feeds these nodes.
    FeedsOthers {
        /// The plug, in words.
        plug: String,
        /// The nodes that fell silent.
        nodes: Vec<String>,
    },
    /// With the plug off, the node lives on.
    FeedsNothing,
    /// With the plug on and the others off, the node fell silent.
    CarriesNothing,
    /// Nothing was found out, and why.
    NotProven(String),
}

/// How a trial ended.
pub(super) struct Ended {
    /// What it found.
    pub(super) finding: Finding,
    /// Plugs that are not known to be on again, and why.
    pub(super) left_off: Vec<String>,
}

/// Whom it is about.
pub(super) struct Trial<'a, C> {
    /// What it works with.
    pub(super) bench: &'a mut Bench<C>,
    /// The node as it was before.
    pub(super) node: &'a PrunedNode,
    /// Its plan.
    pub(super) plan: &'a NodePlan,
    /// The plug.
    pub(super) plug: &'a Plug,
    /// Whether pods may be lost.
    pub(super) allow_pods: bool,
    /// How long the machine may take to come back.
    pub(super) boots_within: Span,
}

/// A plug that was told to go off.
struct Switched<'a> {
    method: &'a Method,
    /// Before this an off of unknown end may still come.
    settled_at: Time,
}

/// Who fell silent.
enum Fell {
    Nobody,
    Target,
    Others(Vec<String>),
}

/// What nobody goes on after: the reason.
type Stopped = String;

/// A plug in words.
pub(super) fn words(method: &Method) -> String {
    format!("{} (plug {} of {})", method.name, method.plug, method.device)
}

impl<'a, C: Cluster> Trial<'a, C> {
    /// Tries the plug. Whatever was switched off is switched on again, also where this is interrupted.
    pub(super) async fn run(&mut self) -> Ended {
        let mut switched = Vec::new();
        let cut = self.cut(&mut switched).await;
        let finding = cut.unwrap_or_else(Finding::NotProven);
        if switched.is_empty() {
            return Ended { finding, left_off: Vec::new() };
        }
        let mut left_off = Vec::new();
        for one in switched.iter().rev() {
            if let Err(why) = self.switch_on(one).await {
                left_off.push(format!("{}: {why}", words(one.method)));
            }
        }
        if !left_off.is_empty() {
            return Ended { finding, left_off };
        }
        let finding = self.come_back(finding).await;
        Ended { finding, left_off }
    }

    /// Switches off what is beside the plug, then the plug itself.
    async fn cut(&mut self, switched: &mut Vec<Switched<'a>>) -> Result<Finding, Stopped> {
        let plug = self.plug;
        for method in plug.others.iter().chain([&plug.method]) {
            match self.bench.read(method, self.plan, None).await {
                Ok(PlugState::On) => {}
                Ok(
                    PlugState::Off
                    | PlugState::Transitioning
                    | PlugState::Unknown
                    | PlugState::Terminated,
                ) => return Err(format!("{} is not on", words(method))),
                Err(why) => return Err(format!("{} cannot be read: {why}", words(method))),
            }
        }
        self.all_heard().await?;
        for method in &plug.others {
            match self.off_and_look(method, switched).await? {
                Fell::Nobody => {}
                Fell::Target => return Ok(Finding::CarriesNothing),
                Fell::Others(nodes) => {
                    return Ok(Finding::FeedsOthers { plug: words(method), nodes });
                }
            }
        }
        Ok(match self.off_and_look(&plug.method, switched).await? {
            Fell::Nobody => Finding::FeedsNothing,
            Fell::Target => Finding::Verified,
            Fell::Others(nodes) => Finding::FeedsOthers { plug: words(&plug.method), nodes },
        })
    }

    /// Every node renews its Lease, or what falls silent later says nothing.
    async fn all_heard(&mut self) -> Result<(), Stopped> {
        complain(format_args!("waiting until every node was heard"));
        let since = self.bench.now();
        match self.look(since).await? {
            Fell::Nobody => Ok(()),
            Fell::Target => Err(format!("{} is not heard", self.node.name)),
            Fell::Others(nodes) => Err(format!("not heard: {}", nodes.join(", "))),
        }
    }

    /// One plug off, and who fell silent by it.
    async fn off_and_look(
        &mut self,
        method: &'a Method,
        switched: &mut Vec<Switched<'a>>,
    ) -> Result<Fell, Stopped> {
        self.still_safe().await?;
        complain(format_args!("{}: off", words(method)));
        let called = self.bench.call(method, self.plan, Action::Off, None).await;
        let now = self.bench.now();
        let late = method.facts.as_ref().map_or(Span::ZERO, |facts| Span(facts.late_effect.ms));
        let settled_at = match &called.end {
            End::NotAttempted(_) => return Err(format!("{}: {}", words(method), called.detail)),
            End::Succeeded { .. } => now,
            End::Failed(_) | End::Indeterminate => now.after(late),
        };
        switched.push(Switched { method, settled_at });
        match self.bench.read(method, self.plan, Some(PlugState::Off)).await {
            Ok(PlugState::Off) => {}
            Ok(
                PlugState::On
                | PlugState::Transitioning
                | PlugState::Unknown
                | PlugState::Terminated,
            ) => return Err(format!("{} does not read off", words(method))),
            Err(why) => return Err(format!("{} cannot be read: {why}", words(method))),
        }
        complain(format_args!("{}: reads off; waiting for who falls silent", words(method)));
        let since = self.bench.now();
        self.look(since).await
    }

    /// What was safe a minute ago may not be.
    async fn still_safe(&mut self) -> Result<(), Stopped> {
        if self.bench.is_stopped() {
            return Err("interrupted".to_owned());
        }
        let looked = self.bench.look(&self.node.name, self.plan, self.allow_pods).await;
        let looked: Looked = looked.map_err(|error| format!("{error:#}"))?;
        let same = |seen: &PrunedNode| (seen.uid.clone(), seen.boot_id.clone());
        if same(&looked.node) != same(self.node) {
            return Err(format!("{} is another node, or has booted", self.node.name));
        }
        let against = preflight::against(&looked);
        if !against.is_empty() {
            return Err(against.join("; "));
        }
        // Others that remedy silent nodes leave this one to us.
        match self.bench.locks.take(&self.node.name).await {
            Ok(Lock::Ours) => Ok(()),
            Ok(Lock::Theirs { holder }) => Err(format!("{holder} works on {}", self.node.name)),
            Err(error) => Err(format!("failed to lock {}: {error}", self.node.name)),
        }
    }

    /// Waits until it can be told who fell silent since then.
    async fn look(&mut self, since: Time) -> Result<Fell, Stopped> {
        loop {
            self.bench.next().await;
            if self.bench.is_stopped() {
                return Err("interrupted".to_owned());
            }
            let now = self.bench.now();
            let told = {
                let mirror = &self.bench.mirror;
                let (nodes, leases) = (mirror.nodes.all(), mirror.leases.all());
                observe::told(
                    &self.node.name,
                    nodes.keys().map(|name| &**name),
                    &leases,
                    since,
                    now,
                )
            };
            match told {
                LeaseFinding::All => return Ok(Fell::Nobody),
                LeaseFinding::AllButTarget => {
                    if self.bench.is_up_to_date(std::slice::from_ref(&self.node.name)).await {
                        return Ok(Fell::Target);
                    }
                }
                LeaseFinding::OthersSilent(nodes) => {
                    if self.bench.is_up_to_date(&nodes).await {
                        return Ok(Fell::Others(nodes));
                    }
                }
                LeaseFinding::NotYet => {}
            }
            if now >= since.after(JUDGED_WITHIN) {
                return Err("nobody could tell who fell silent: the API server says nothing \
                            of it"
                    .to_owned());
            }
        }
    }

    /// Switches a plug on, until a read that began when nothing could come any more says on.
    async fn switch_on(&mut self, one: &Switched<'_>) -> Result<(), String> {
        complain(format_args!("{}: on", words(one.method)));
        let end = self.bench.now().max(one.settled_at).after(ON_WITHIN);
        loop {
            let begun = self.bench.now();
            let read = self.bench.read(one.method, self.plan, None).await;
            if read == Ok(PlugState::On) {
                if begun >= one.settled_at {
                    return Ok(());
                }
            } else {
                self.bench.call(one.method, self.plan, Action::On, None).await;
            }
            if self.bench.now() >= end {
                return Err(match read {
                    Ok(_) => "it does not read on".to_owned(),
                    Err(why) => format!("it cannot be read: {why}"),
                });
            }
            tokio::time::sleep(READ_EVERY).await;
        }
    }

    /// Waits until all that was cut is back, and holds the boot against what was found.
    async fn come_back(&mut self, finding: Finding) -> Finding {
        let on_at = self.bench.now();
        let name = self.node.name.clone();
        let awaited: Vec<String> = match &finding {
            Finding::FeedsOthers { nodes, .. } => nodes.iter().chain([&name]).cloned().collect(),
            Finding::Verified
            | Finding::FeedsNothing
            | Finding::CarriesNothing
            | Finding::NotProven(_) => vec![name.clone()],
        };
        complain(format_args!("all on again; waiting for {}", awaited.join(", ")));
        let mut back_at = None;
        loop {
            let now = self.bench.now();
            if awaited.iter().all(|node| self.is_back(node, on_at)) {
                let back_at = *back_at.get_or_insert(now);
                let waited = now.since(back_at) >= SAME_BOOT_AFTER;
                if let Some(finding) = self.judge_boot(&finding, waited) {
                    return finding;
                }
            }
            // It is on; whoever does not want to wait need not.
            let is_late = now >= on_at.after(self.boots_within);
            if is_late || self.bench.is_stopped() {
                let why = if self.bench.is_stopped() {
                    "interrupted".to_owned()
                } else {
                    format!("{} did not come back in time: look at it", awaited.join(", "))
                };
                if finding == Finding::Verified {
                    return Finding::NotProven(why);
                }
                complain(format_args!("{why}"));
                return finding;
            }
            self.bench.next().await;
        }
    }

    /// Whether a node is heard again, and Ready: until then it might be fenced, were nothing paused.
    fn is_back(&self, node: &str, on_at: Time) -> bool {
        let mirror = &self.bench.mirror;
        let seen = mirror.nodes.find(node);
        let is_ready = seen.is_some_and(|seen| preflight::is_ready(&seen));
        is_ready && observe::is_heard(mirror.leases.find(&lease_key(node)).as_ref(), on_at)
    }

    /// What is left of a finding once the node is back; `None`: not to be told yet.
    fn judge_boot(&self, finding: &Finding, waited: bool) -> Option<Finding> {
        if *finding != Finding::Verified {
            return Some(finding.clone());
        }
        let not = |why: &str| Some(Finding::NotProven(format!("{} {why}", self.node.name)));
        let Some(seen) = self.bench.mirror.nodes.find(&self.node.name) else {
            return not("is gone");
        };
        if seen.uid != self.node.uid {
            return not("was made anew meanwhile");
        }
        match (self.plug.cuts, seen.boot_id != self.node.boot_id) {
            (Cuts::Power, true) => Some(Finding::Verified),
            (Cuts::Power, false) if waited => {
                not("was silent and never booted: the plug feeds what is on its way to it")
            }
            (Cuts::Power, false) => None,
            (Cuts::Network, false) if waited => Some(Finding::Verified),
            (Cuts::Network, false) => None,
            (Cuts::Network, true) => not("booted, though only its network was cut"),
        }
    }
}
