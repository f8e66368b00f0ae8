//! A pod as the cache holds it. A cluster has ten times as many pods as nodes, and few of them are ever looked at: each
//! is kept as some hundred bytes, a third of what its fields would take.

use crate::pruned::PrunedPod;

/// A pod, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedPod {
    /// A member of etcd: those are looked for among all.
    pub of_etcd: bool,
    /// In postcard's format, which only this process reads.
    bytes: Box<[u8]>,
}

impl PackedPod {
    /// Packs it; `None` never comes, as no field of a pod is one that the format lacks.
    pub fn of(pod: &PrunedPod) -> Option<Self> {
        let bytes = postcard::to_stdvec(pod).ok()?.into_boxed_slice();
        Some(Self { of_etcd: pod.of_etcd, bytes })
    }

    /// The pod.
    #[expect(
        clippy::expect_used,
        reason = "a pod that went missing would be taken for one that is gone"
    )]
    pub fn unpack(&self) -> PrunedPod {
        postcard::from_bytes(&self.bytes).expect("what this process packed")
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_decide::Deletion;

    use super::*;
    use crate::pruned::Mounted;

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
        let packed = PackedPod::of(&pod).unwrap();
        assert!(packed.of_etcd);
        assert!(packed.bytes.len() < 150, "{} bytes", packed.bytes.len());
        assert_eq!(packed.unpack(), pod);
        for deletion in [Deletion::NotAsked, Deletion::AtOnce] {
            let other = PrunedPod { deletion, of_etcd: false, ..pod.clone() };
            let again = PackedPod::of(&other).unwrap();
            assert_ne!(again, packed);
            assert_eq!(again.unpack(), other);
        }
    }
}
