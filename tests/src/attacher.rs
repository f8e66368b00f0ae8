//! A CSI attacher for a storage system that exists only in [`Storage`].
//!
//! As the real external-attacher: it sets its finalizer before it attaches, reports
//! `status.attached`, and lifts the finalizer only when it has detached. 200 ms each way.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::mirror::Mirror;
use crate::storage::{DRIVER, Storage};
use crate::time::Task;

/// What keeps a VolumeAttachment until it is detached.
pub const FINALIZER: &str = "external-attacher/fake-csi";
/// What a storage system takes to attach or detach.
const EACH_WAY: Duration = Duration::from_millis(200);
/// A failed write is tried again after this long.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// The running attacher; it ends with its owner.
#[derive(Debug)]
pub struct Attacher {
    _run: Task,
}

impl Attacher {
    /// Starts it.
    #[must_use]
    pub fn start(client: Client, storage: Storage) -> Self {
        Self { _run: Task::spawn(run(client, storage)) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Attach,
    Detach,
}

async fn run(client: Client, storage: Storage) {
    let mut attachments = Mirror::<VolumeAttachment>::start(Api::all(client.clone()), "");
    // One task per object and way, so that one volume does not wait for another.
    let mut under_way = BTreeMap::<(String, Way), Task>::new();
    loop {
        let wanted: BTreeMap<_, _> = attachments
            .objects()
            .into_iter()
            .filter(|attachment| attachment.spec.attacher == DRIVER)
            .filter_map(|attachment| Some(((attachment.uid()?, way(&attachment)?), attachment)))
            .collect();
        under_way.retain(|key, _| wanted.contains_key(key));
        for (key, attachment) in wanted {
            let way = key.1;
            under_way.entry(key).or_insert_with(|| {
                let (client, storage) = (client.clone(), storage.clone());
                Task::spawn(async move {
                    while let Err(failure) = carry_out(&client, &storage, &attachment, way).await {
                        eprintln!("attacher: {}: {failure:#}", attachment.name_any());
                        tokio::time::sleep(TRY_AGAIN_AFTER).await;
                    }
                })
            });
        }
        attachments.changed().await;
    }
}

fn way(attachment: &VolumeAttachment) -> Option<Way> {
    let is_attached = attachment.status.as_ref().is_some_and(|status| status.attached);
    if attachment.metadata.deletion_timestamp.is_some() {
        let is_ours = attachment.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
        is_ours.then_some(Way::Detach)
    } else {
        (!is_attached).then_some(Way::Attach)
    }
}

async fn carry_out(
    client: &Client,
    storage: &Storage,
    attachment: &VolumeAttachment,
    way: Way,
) -> Result<()> {
    let (name, node) = (attachment.name_any(), &attachment.spec.node_name);
    let api = Api::<VolumeAttachment>::all(client.clone());
    let volume = volume_handle(client, attachment).await?;
    let parameters = PatchParams::default();
    match way {
        Way::Attach => {
            let finalizer = json!({"metadata": {"finalizers": [FINALIZER]}});
            api.patch(&name, &parameters, &Patch::Merge(finalizer)).await?;
            tokio::time::sleep(EACH_WAY).await;
            storage.attach(&volume, node);
            let attached = json!({"status": {"attached": true}});
            api.patch_status(&name, &parameters, &Patch::Merge(attached)).await?;
        }
        Way::Detach => {
            tokio::time::sleep(EACH_WAY).await;
            storage.detach(&volume, node);
            lift_finalizer(&api, &name).await?;
        }
    }
    Ok(())
}

/// Lifts its own finalizer; others' are theirs to lift. Somebody else's write in between is a
/// conflict, after which it is tried again.
async fn lift_finalizer(api: &Api<VolumeAttachment>, name: &str) -> Result<()> {
    let Some(attachment) = api.get_opt(name).await? else { return Ok(()) };
    let others = attachment.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER);
    let lifted = json!({"metadata": {
        "resourceVersion": attachment.resource_version(),
        "finalizers": others.collect::<Vec<_>>(),
    }});
    api.patch(name, &PatchParams::default(), &Patch::Merge(lifted)).await?;
    Ok(())
}

async fn volume_handle(client: &Client, attachment: &VolumeAttachment) -> Result<String> {
    let source = attachment.spec.source.persistent_volume_name.as_deref();
    let volumes = Api::<PersistentVolume>::all(client.clone());
    let volume = volumes.get(source.context("an attachment without a volume")?).await?;
    let csi = volume.spec.and_then(|spec| spec.csi).context("a volume without CSI source")?;
    Ok(csi.volume_handle)
}
