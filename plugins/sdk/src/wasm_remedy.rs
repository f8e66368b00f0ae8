//! The component side of a remedy: the export over [`RemedyPlugin`]. Nothing but translation happens here.
//! Public only for the macro.

use std::marker::PhantomData;

use bindings::exports::node_remedy::fence::remedy as wire;

use crate::{Condition, Decision, Entry, NodeView, RemedyPlugin};

/// What wit-bindgen makes of the contract.
#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::pedantic,
    clippy::indexing_slicing,
    clippy::allow_attributes_without_reason,
    reason = "generated; the contract itself is documented in wit/fence.wit"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "remedy-plugin",
        pub_export_macro: true,
    });
}

/// The bytes of a manifest, as a section wants them.
#[expect(clippy::indexing_slicing, reason = "runs at compile time, where a panic is a build error")]
pub const fn section<const N: usize>(manifest: &str) -> [u8; N] {
    let bytes = manifest.as_bytes();
    let mut section = [0; N];
    let mut i = 0;
    while i < N {
        section[i] = bytes[i];
        i += 1;
    }
    section
}

/// The export of one remedy.
pub struct Exported<R>(PhantomData<R>);

impl<R: RemedyPlugin> wire::Guest for Exported<R> {
    fn next(view: wire::NodeView, history: Vec<wire::Entry>) -> wire::Decision {
        let history: Vec<Entry> = history.into_iter().map(entry).collect();
        match R::default().next(&node(view), &history) {
            Decision::Method(name) => wire::Decision::Method(name),
            Decision::Cluster(name) => wire::Decision::ClusterMethod(name),
            Decision::Fence => wire::Decision::Fence,
            Decision::Wait(seconds) => wire::Decision::Wait(seconds),
            Decision::Done => wire::Decision::Done,
            Decision::Fail(why) => wire::Decision::Fail(why),
        }
    }
}

fn node(view: wire::NodeView) -> NodeView {
    let condition = |one: wire::Condition| Condition {
        kind: one.kind,
        status: one.status,
        reason: one.reason,
        age_s: one.age_s,
    };
    NodeView {
        name: view.name,
        labels: view.labels,
        ready: view.ready,
        conditions: view.conditions.into_iter().map(condition).collect(),
        boot_id: view.boot_id,
        pods: view.pods,
        pods_with_volumes: view.pods_with_volumes,
        peers_unhealthy: view.peers_unhealthy,
        peers_total: view.peers_total,
    }
}

fn entry(one: wire::Entry) -> Entry {
    Entry { action: one.action, succeeded: one.succeeded, detail: one.detail, age_s: one.age_s }
}
