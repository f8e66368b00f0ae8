//! One decision of a remedy: it is shown a node and what was tried, in an instance of its own, and says
//! what is tried next. It reaches nothing and remembers nothing. What comes back is bounded and clean, and
//! still only a wish: whether it may be followed is decided elsewhere, as of anything else that is tried.

use wasmtime::Trap;

use crate::bindings::remedy::exports::node_remedy::fence::remedy as wire;
use crate::grants::Grants;
use crate::limits::{
    DETAIL_BYTES_MAX, REMEDY_FUEL, REMEDY_NAME_BYTES_MAX, REMEDY_TIME, REMEDY_WAIT_S_MAX,
};
use crate::plugin::{Pace, Plugin, Pre};
use crate::seams::Seams;
use crate::state::CallState;
use crate::trial;
use crate::types::LogLine;

/// A node as a remedy is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// Its condition Ready is True.
    pub ready: bool,
    /// Its conditions.
    pub conditions: Vec<NodeCondition>,
    /// The boot that it runs, as it says.
    pub boot_id: String,
    /// Pods on it.
    pub pods: u32,
    /// Those of them with volumes that outlive them.
    pub pods_with_volumes: u32,
    /// Other nodes that are unhealthy.
    pub peers_unhealthy: u32,
    /// Other nodes.
    pub peers_total: u32,
}

/// A condition of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCondition {
    /// Its type.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Its reason, one word.
    pub reason: String,
    /// Since when it is so.
    pub age_s: u64,
}

/// Something that was tried because a remedy said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemedyTried {
    /// What, in the words that a decision is written down in: `method NAME`, `cluster NAME`, `fence`,
    /// `wait SECONDS`.
    pub action: String,
    /// Whether it was done. The node may be as ill as before.
    pub succeeded: bool,
    /// Why not.
    pub detail: String,
    /// How long ago it ended.
    pub age_s: u64,
}

/// What a remedy wants to be tried next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemedyDecision {
    /// One method of the node's plan, by name.
    Method(String),
    /// Something in the cluster itself, by name.
    Cluster(String),
    /// The whole plan.
    Fence,
    /// To be asked again after so many seconds.
    Wait(u32),
    /// It has done what it could; the next remedy of the ladder may have its turn.
    Done,
    /// It cannot help, for this reason.
    Fail(String),
}

/// What became of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedied {
    /// The decision, or a sentence that says why there is none.
    pub decision: Result<RemedyDecision, String>,
    /// What it logged.
    pub log: Vec<LogLine>,
    /// Lines that it logged beyond what is kept.
    pub log_dropped: u32,
}

impl Plugin {
    /// Asks it, on this very task. One that computes without end holds the thread until its fuel is spent:
    /// in production, go through [`crate::Executor`].
    pub async fn next(&self, view: &NodeFacts, tried: &[RemedyTried], seams: &Seams) -> Remedied {
        self.next_at(Pace::Fuel, view, tried, seams).await
    }

    pub(crate) async fn next_at(
        &self,
        pace: Pace,
        view: &NodeFacts,
        tried: &[RemedyTried],
        seams: &Seams,
    ) -> Remedied {
        let none = |why| Remedied { decision: Err(why), log: Vec::new(), log_dropped: 0 };
        let Pre::Remedy(pre) = self.pre() else {
            return none(format!("plugin {} is no remedy", self.manifest().name));
        };
        let seed = match seams.entropy.seed() {
            Ok(seed) => seed,
            Err(error) => return none(error.to_string()),
        };
        // It has no endpoints, no credentials, and no effect that it could begin.
        let state = CallState::new(trial::call(Grants::default()), seed, seams.clone());
        let mut store = match self.store(state, REMEDY_FUEL, pace) {
            Ok(store) => store,
            Err(error) => return none(format!("{error:#}")),
        };
        let (view, tried) = (wire_view(view), tried.iter().map(wire_entry).collect::<Vec<_>>());
        let run = async {
            let remedy = pre.instantiate_async(&mut store).await?;
            remedy.node_remedy_fence_remedy().call_next(&mut store, &view, &tried).await
        };
        let ended = tokio::select! {
            biased;
            () = seams.clock.sleep(REMEDY_TIME) => Err("it took too long".to_owned()),
            ended = run => ended.map_err(|error| why(&error)),
        };
        let mut state = store.into_data();
        state.keep_stderr();
        let decision = match (ended, state.record.lie) {
            (Err(why), _) => Err(why),
            (Ok(_), Some(lie)) => Err(lie.to_owned()),
            (Ok(decision), None) => decision_of(decision, &state),
        };
        Remedied { decision, log: state.record.log, log_dropped: state.record.log_dropped }
    }
}

fn wire_view(view: &NodeFacts) -> wire::NodeView {
    let condition = |one: &NodeCondition| wire::Condition {
        kind: one.kind.clone(),
        status: one.status.clone(),
        reason: one.reason.clone(),
        age_s: one.age_s,
    };
    wire::NodeView {
        name: view.name.clone(),
        labels: view.labels.clone(),
        ready: view.ready,
        conditions: view.conditions.iter().map(condition).collect(),
        boot_id: view.boot_id.clone(),
        pods: view.pods,
        pods_with_volumes: view.pods_with_volumes,
        peers_unhealthy: view.peers_unhealthy,
        peers_total: view.peers_total,
    }
}

fn wire_entry(tried: &RemedyTried) -> wire::Entry {
    wire::Entry {
        action: tried.action.clone(),
        succeeded: tried.succeeded,
        detail: tried.detail.clone(),
        age_s: tried.age_s,
    }
}

/// A decision within its bounds.
fn decision_of(decision: wire::Decision, state: &CallState) -> Result<RemedyDecision, String> {
    let name = |name: &str| {
        let is_sound = (1..=REMEDY_NAME_BYTES_MAX).contains(&name.len());
        let found = format!("found a name of {} bytes, expected 1 to", name.len());
        let clean = state.secrets.clean(name, REMEDY_NAME_BYTES_MAX);
        if is_sound { Ok(clean) } else { Err(format!("{found} {REMEDY_NAME_BYTES_MAX}")) }
    };
    Ok(match decision {
        wire::Decision::Method(method) => RemedyDecision::Method(name(&method)?),
        wire::Decision::ClusterMethod(cluster_action) => {
            RemedyDecision::Cluster(name(&cluster_action)?)
        }
        wire::Decision::Fence => RemedyDecision::Fence,
        wire::Decision::Wait(seconds) if (1..=REMEDY_WAIT_S_MAX).contains(&seconds) => {
            RemedyDecision::Wait(seconds)
        }
        wire::Decision::Wait(seconds) => {
            return Err(format!("found a wait of {seconds} s, expected 1 to {REMEDY_WAIT_S_MAX}"));
        }
        wire::Decision::Done => RemedyDecision::Done,
        wire::Decision::Fail(why) => {
            RemedyDecision::Fail(state.secrets.clean(&why, DETAIL_BYTES_MAX))
        }
    })
}

/// The innermost reason; what is around it names addresses in the guest.
fn why(error: &wasmtime::Error) -> String {
    if matches!(error.downcast_ref(), Some(Trap::OutOfFuel)) {
        return format!("it computed more than {REMEDY_FUEL} units of fuel");
    }
    let mut reason = error.root_cause().to_string();
    reason.truncate(reason.floor_char_boundary(DETAIL_BYTES_MAX));
    reason
}
