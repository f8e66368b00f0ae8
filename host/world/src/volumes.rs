//! How a pod's claims lead to volumes, and where those are attached. Reads only.

use serde_json::Value;

use crate::api::object::{Key, is_true, list, name, namespace, text};
use crate::api::{ApiServer, Kind};

/// A volume that a pod uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Volume {
    /// The PersistentVolume.
    pub(crate) name: String,
    /// As `status.volumesAttached` and `volumesInUse` call it.
    pub(crate) unique: String,
    pub(crate) sharing: Sharing,
}

/// How many nodes may have a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sharing {
    /// One node at a time.
    Exclusive,
    /// Any number.
    Shared,
}

/// The volumes of `pod` that a driver attaches; claims that are not bound are left out.
pub(crate) fn of_pod(api: &ApiServer, pod: &Value) -> Vec<Volume> {
    let claims = list(pod, "/spec/volumes").iter().filter_map(|volume| {
        let claim = text(volume, "/persistentVolumeClaim/claimName");
        (!claim.is_empty()).then_some(claim)
    });
    let bound = claims.filter_map(|claim| {
        let key = Key::within(Kind::PersistentVolumeClaim, namespace(pod), claim);
        let volume = text(api.peek(&key)?, "/spec/volumeName");
        of_name(api, volume)
    });
    bound.collect()
}

/// Whether every claim of `pod` is bound to a volume.
pub(crate) fn are_bound(api: &ApiServer, pod: &Value) -> bool {
    list(pod, "/spec/volumes").iter().all(|volume| {
        let claim = text(volume, "/persistentVolumeClaim/claimName");
        let key = Key::within(Kind::PersistentVolumeClaim, namespace(pod), claim);
        claim.is_empty()
            || api.peek(&key).is_some_and(|claim| !text(claim, "/spec/volumeName").is_empty())
    })
}

/// The PersistentVolume of that name, if a driver attaches it.
pub(crate) fn of_name(api: &ApiServer, volume: &str) -> Option<Volume> {
    let object = api.peek(&Key::cluster(Kind::PersistentVolume, volume))?;
    let driver = text(object, "/spec/csi/driver");
    if driver.is_empty() {
        return None;
    }
    let shared = list(object, "/spec/accessModes")
        .iter()
        .any(|mode| matches!(mode.as_str(), Some("ReadWriteMany" | "ReadOnlyMany")));
    Some(Volume {
        name: name(object).to_owned(),
        unique: format!("kubernetes.io/csi/{driver}^{}", text(object, "/spec/csi/volumeHandle")),
        sharing: if shared { Sharing::Shared } else { Sharing::Exclusive },
    })
}

/// Whether the driver has really attached `volume` to `node`.
pub(crate) fn is_attached(api: &ApiServer, volume: &str, node: &str) -> bool {
    api.all(Kind::VolumeAttachment).any(|attachment| {
        text(attachment, "/spec/nodeName") == node
            && text(attachment, "/spec/source/persistentVolumeName") == volume
            && is_true(attachment, "/status/attached")
    })
}
