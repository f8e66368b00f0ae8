//! A remedy from outside: it goes from what harms least to what certainly helps.
//!
//! A node whose kubelet lives is drained first. Then the one method is asked that the node's label
//! `polite.example.com/method` names, if it names one; then the whole plan is carried out. While a third
//! of the other nodes is ill too it waits: what is ill then is seldom the node. What has been tried it
//! reads in the history, as it remembers nothing itself.

use node_remedy_sdk::{Decision, Entry, NodeView, RemedyPlugin, remedy_plugin};

/// The label that names the method.
pub const METHOD: &str = "polite.example.com/method";
/// How long it waits for the others to be well before it looks again.
const PATIENCE_S: u32 = 120;
/// So often; then the node has waited long enough.
const WAITS: usize = 3;

/// The remedy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Polite;

remedy_plugin!(Polite);

impl RemedyPlugin for Polite {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn next(&self, view: &NodeView, history: &[Entry]) -> Decision {
        let times = |what: &str| history.iter().filter(|one| one.action.starts_with(what)).count();
        let is_widespread = view.peers_unhealthy.saturating_mul(3) >= view.peers_total.max(1);
        if is_widespread && times("wait") < WAITS {
            return Decision::Wait(PATIENCE_S);
        }
        // Nobody on a silent node would stop a pod that is asked to leave.
        if view.ready && view.pods > 0 && times("cluster drain") == 0 {
            return Decision::Cluster("drain".to_owned());
        }
        match view.label(METHOD) {
            Some(method) if times("method") == 0 => return Decision::Method(method.to_owned()),
            Some(_) | None => {}
        }
        if times("fence") == 0 {
            return Decision::Fence;
        }
        let last = history.last().map(|one| one.detail.as_str()).unwrap_or_default();
        let why = if last.is_empty() { "the node is as ill after it was fenced" } else { last };
        Decision::Fail(why.to_owned())
    }
}
