//! Pods as they are seen, and packed as the cache holds them. A cluster has ten times as many pods as nodes, and few of
//! them are ever looked at: each is kept as some hundred bytes, a third of what its fields would take.

use k8s_openapi::api::core::v1::{Pod, PodCondition, Volume};
use kube::ResourceExt as _;
use node_remedy_api::conditions::NODE_FENCED;
use node_remedy_decide::{Deletion, Exempt};
use serde::{Deserialize, Serialize};

use crate::pruned::{OUT_OF_SERVICE, OUT_OF_SERVICE_VALUE};

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedPod {
    /// `metadata.uid`.
    #[serde(with = "packed_uid")]
    pub uid: String,
    /// `metadata.namespace`.
    #[serde(skip)]
    pub namespace: String,
    /// `metadata.name`.
    #[serde(skip)]
    pub name: String,
    /// `spec.nodeName`; empty while unscheduled.
    pub node: String,
    /// `status.phase`.
    pub phase: String,
    /// Its Ready condition is True.
    pub ready: bool,
    /// Somebody disrupted it (condition DisruptionTarget), or a release of ours marked it.
    pub disrupted: bool,
    /// Whether a deletion is under way.
    #[serde(with = "PackedDeletion")]
    pub deletion: Deletion,
    /// Owned by a DaemonSet.
    pub of_daemon_set: bool,
    /// A mirror of a static pod.
    pub mirror: bool,
    /// A member of etcd.
    pub of_etcd: bool,
    /// Tolerates the out-of-service taint.
    pub tolerates_out_of_service: bool,
    /// What it mounts that is not the node's own.
    pub volumes: Vec<Mounted>,
    /// Who holds it when it is deleted.
    pub finalizers: Vec<String>,
}

/// How a deletion is packed; `host/decide` depends on nothing.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Deletion")]
enum PackedDeletion {
    NotAsked,
    Graceful,
    AtOnce,
}

/// The 36 characters of a UID (RFC 9562) are packed as its 16 bytes; a text that is no such UID stays as it is.
mod packed_uid {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    enum Packed {
        Uuid([u8; 16]),
        Other(String),
    }

    pub(super) fn serialize<S: Serializer>(uid: &str, to: S) -> Result<S::Ok, S::Error> {
        let uuid = uuid::Uuid::try_parse(uid).ok().filter(|uuid| uuid.to_string() == uid);
        let packed =
            uuid.map_or_else(|| Packed::Other(uid.into()), |one| Packed::Uuid(*one.as_bytes()));
        packed.serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<String, D::Error> {
        Ok(match Packed::deserialize(from)? {
            Packed::Uuid(bytes) => uuid::Uuid::from_bytes(bytes).to_string(),
            Packed::Other(uid) => uid,
        })
    }
}

impl PrunedPod {
    /// Reads what matters of a pod; `None` for an object without name or UID.
    pub fn of(pod: Pod) -> Option<Self> {
        let grace_s = pod.metadata.deletion_grace_period_seconds;
        let deletion = match (&pod.metadata.deletion_timestamp, grace_s) {
            (None, _) => Deletion::NotAsked,
            (Some(_), Some(0)) => Deletion::AtOnce,
            (Some(_), _) => Deletion::Graceful,
        };
        let of_daemon_set = pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet");
        let mirror = pod.annotations().contains_key("kubernetes.io/config.mirror");
        let of_etcd = ETCD_PODS.iter().any(|(namespace, key, value)| {
            pod.namespace().as_deref() == Some(*namespace)
                && pod.labels().get(*key).is_some_and(|label| label == value)
        });
        let spec = pod.spec.unwrap_or_default();
        let tolerates_out_of_service = spec.tolerations.unwrap_or_default().iter().any(|one| {
            one.key.as_deref().is_none_or(|key| key == OUT_OF_SERVICE)
                && one.effect.as_deref().is_none_or(|effect| effect == "NoExecute")
                && (one.operator.as_deref() == Some("Exists")
                    || one.value.as_deref() == Some(OUT_OF_SERVICE_VALUE))
        });
        let name = pod.metadata.name?;
        let volumes = spec.volumes.unwrap_or_default();
        let status = pod.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let is_true = |kind: &str| {
            conditions.iter().any(|one: &PodCondition| one.type_ == kind && one.status == "True")
        };
        Some(Self {
            uid: pod.metadata.uid?,
            namespace: pod.metadata.namespace?,
            volumes: volumes.iter().filter_map(|one| Mounted::of(one, &name)).collect(),
            name,
            node: spec.node_name.unwrap_or_default(),
            phase: status.phase.unwrap_or_default(),
            ready: is_true("Ready"),
            disrupted: is_true("DisruptionTarget") || status.reason.as_deref() == Some(NODE_FENCED),
            deletion,
            of_daemon_set,
            mirror,
            of_etcd,
            tolerates_out_of_service,
            finalizers: pod.metadata.finalizers.unwrap_or_default(),
        })
    }
}

impl PrunedPod {
    /// Whether its kubelet said that all its containers have ended, for good. Whoever disrupts a pod, and so a release of
    /// ours, calls it failed right before it deletes it, whatever still runs.
    fn has_ended(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed") && !self.disrupted
    }

    /// Why it is left alone, if it is.
    pub fn exempt(&self) -> Option<Exempt> {
        if self.of_daemon_set {
            Some(Exempt::DaemonSet)
        } else if self.mirror {
            Some(Exempt::Mirror)
        } else if self.tolerates_out_of_service {
            Some(Exempt::Tolerates)
        } else if self.has_ended() && self.deletion == Deletion::NotAsked {
            Some(Exempt::Ended)
        } else {
            None
        }
    }
}

/// A volume of a pod that is not its node's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mounted {
    /// By a claim of this name, in the pod's namespace.
    Claim(String),
    /// The pod names the storage itself.
    Inline,
}

impl Mounted {
    /// `None` for what is made of the API or lies on the node. What this version does not know may be anybody's.
    fn of(volume: &Volume, pod: &str) -> Option<Self> {
        if let Some(claim) = &volume.persistent_volume_claim {
            return Some(Self::Claim(claim.claim_name.clone()));
        }
        if volume.ephemeral.is_some() {
            // So is the claim called that Kubernetes makes of it (pkg/volume/util, `VolumeClaimName`).
            return Some(Self::Claim(format!("{pod}-{}", volume.name)));
        }
        let is_the_nodes = volume.empty_dir.is_some()
            || volume.host_path.is_some()
            || volume.config_map.is_some()
            || volume.secret.is_some()
            || volume.projected.is_some()
            || volume.downward_api.is_some()
            || volume.git_repo.is_some()
            || volume.image.is_some();
        (!is_the_nodes).then_some(Self::Inline)
    }
}

/// Namespace and label of the pods that etcd runs in: as kubeadm writes them
/// (`cmd/kubeadm/app/phases/etcd/local.go`), and the etcd operator of OpenShift.
const ETCD_PODS: [(&str, &str, &str); 2] =
    [("kube-system", "component", "etcd"), ("openshift-etcd", "app", "etcd")];

/// A pod, packed, without its name: that is its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedPod {
    /// A member of etcd: those are looked for among all.
    pub of_etcd: bool,
    /// In postcard's format, which only this process reads.
    bytes: Box<[u8]>,
}

impl PackedPod {
    /// Packs it.
    #[expect(
        clippy::expect_used,
        reason = "a pod that went missing would be taken for one that is gone"
    )]
    pub fn of(pod: &PrunedPod) -> Self {
        let bytes = postcard::to_stdvec(pod).expect("strings, lists and flags are packed");
        Self { of_etcd: pod.of_etcd, bytes: bytes.into_boxed_slice() }
    }

    /// The pod whose key, `namespace/name`, this is.
    pub fn unpack(&self, key: &str) -> PrunedPod {
        let (namespace, name) = key.split_once('/').unwrap_or_default();
        PrunedPod { namespace: namespace.to_owned(), name: name.to_owned(), ..self.nameless() }
    }

    /// The node that it is bound to; empty while unscheduled.
    pub fn node(&self) -> String {
        self.nameless().node
    }

    #[expect(
        clippy::expect_used,
        reason = "a pod that went missing would be taken for one that is gone"
    )]
    fn nameless(&self) -> PrunedPod {
        postcard::from_bytes(&self.bytes).expect("what this process packed")
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_decide::Deletion;

    use super::*;

    #[test]
    fn a_pod_comes_back_as_it_was_and_small() {
        let pod = PrunedPod {
            uid: "3f2504e0-4f89-11d3-9a0c-0305e82c3301".to_owned(),
            namespace: "shop".to_owned(),
            name: "database-0".to_owned(),
            node: "worker-17".to_owned(),
            phase: "Running".to_owned(),
            ready: true,
            disrupted: false,
            deletion: Deletion::Graceful,
            of_daemon_set: false,
            mirror: false,
            of_etcd: true,
            tolerates_out_of_service: false,
            volumes: vec![Mounted::Claim("data-database-0".to_owned()), Mounted::Inline],
            finalizers: vec!["example.org/hold".to_owned()],
        };
        let packed = PackedPod::of(&pod);
        assert!(packed.of_etcd);
        assert!(packed.bytes.len() < 100, "{} bytes", packed.bytes.len());
        assert_eq!(
            (packed.unpack("shop/database-0"), packed.node()),
            (pod.clone(), pod.node.clone())
        );
        for deletion in [Deletion::NotAsked, Deletion::AtOnce] {
            let other = PrunedPod { deletion, of_etcd: false, ..pod.clone() };
            let again = PackedPod::of(&other);
            assert_ne!(again, packed);
            assert_eq!(again.unpack("shop/database-0"), other);
        }
        // What is no UID as the API server makes them stays as it is written.
        for uid in
            ["", "u", "3F2504E0-4F89-11D3-9A0C-0305E82C3301", "3f2504e04f8911d39a0c0305e82c3301"]
        {
            let other = PrunedPod { uid: uid.to_owned(), ..pod.clone() };
            assert_eq!(PackedPod::of(&other).unpack("shop/database-0").uid, uid);
        }
    }

    #[test] // promise: G6
    fn a_pod_of_etcd_is_known_by_where_it_is_and_what_it_is_called() {
        let pod = |namespace: &str, label: &str, ready: &str| {
            let (key, value) = label.split_once('=').unwrap();
            let pod = serde_json::json!({
                "metadata": {
                    "name": "etcd-a", "uid": "u", "namespace": namespace, "labels": {key: value},
                },
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            });
            let seen = PrunedPod::of(serde_json::from_value(pod).unwrap()).unwrap();
            (seen.of_etcd, seen.ready)
        };
        assert_eq!(pod("kube-system", "component=etcd", "True"), (true, true));
        assert_eq!(pod("openshift-etcd", "app=etcd", "False"), (true, false));
        assert!(!pod("default", "component=etcd", "True").0, "anybody's");
        assert!(!pod("kube-system", "component=kube-apiserver", "True").0);
    }

    #[test]
    fn a_pod_has_ended_once_its_phase_says_so_and_nobody_asks_for_its_deletion() {
        let exempt = |phase: &str, deleted: serde_json::Value| {
            let pod = serde_json::json!({
                "metadata": {
                    "name": "job-1", "uid": "u", "namespace": "default", "deletionTimestamp": deleted,
                },
                "status": {"phase": phase},
            });
            PrunedPod::of(serde_json::from_value(pod).unwrap()).unwrap().exempt()
        };
        let nobody = serde_json::Value::Null;
        assert_eq!(exempt("Succeeded", nobody.clone()), Some(Exempt::Ended));
        assert_eq!(exempt("Failed", nobody.clone()), Some(Exempt::Ended));
        // Pod GC calls a pod failed before it deletes it, whatever still runs.
        assert_eq!(exempt("Failed", "2026-11-28T03:00:00Z".into()), None);
        let marked = serde_json::json!({
            "metadata": {"name": "db-0", "uid": "u", "namespace": "default"},
            "status": {"phase": "Failed", "reason": NODE_FENCED},
        });
        assert_eq!(PrunedPod::of(serde_json::from_value(marked).unwrap()).unwrap().exempt(), None);
        assert_eq!(exempt("Running", nobody.clone()), None);
        assert_eq!(exempt("Pending", nobody), None);
    }
}
