//! Measurements against real parts: `cargo xtask bench NAME`.
//!
//! They assert no figure; what must hold is tested elsewhere.

mod end_to_end;
mod floor;
mod memory;
mod methods;
mod sandbox;
mod sandboxed;

use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, ListParams};
use node_remedy_tests::Cluster;
use node_remedy_tests::time::until;

/// Five runs tell a median from luck.
const RUNS: usize = 5;
/// Any phase of a run; the longest is a node that is noticed by its Lease.
const WITHIN: Duration = Duration::from_mins(2);

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let more = arguments.get(1..).unwrap_or_default();
    match arguments.first().map(String::as_str) {
        Some("floor") => floor::measure().await,
        Some("end-to-end") => end_to_end::measure().await,
        Some("memory") => memory::measure(more).await,
        Some("methods") => methods::measure().await,
        Some("sandbox") => sandbox::measure().await,
        other => bail!(
            "there is no bench {other:?}; there are: floor, end-to-end, memory, methods, sandbox"
        ),
    }
}

/// Waits until a volume is attached to a node other than this one.
async fn attached_elsewhere(cluster: &Cluster, node: &str) -> Result<()> {
    let attachments = Api::<VolumeAttachment>::all(cluster.client());
    until("the volume is attached elsewhere", WITHIN, || async {
        let found = attachments.list(&ListParams::default()).await?;
        let is_attached = found.iter().any(|attachment| {
            let is_attached = attachment.status.as_ref().is_some_and(|status| status.attached);
            attachment.spec.node_name != node && is_attached
        });
        Ok(is_attached.then_some(()))
    })
    .await
}
