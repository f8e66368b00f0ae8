//! The kinds of object that the model of the API server serves.
//!
//! A closed list: what the controller and the modelled parts of Kubernetes read and
//! write, and no general resource discovery.

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1` Node.
    Node,
    /// `v1` Pod.
    Pod,
    /// `v1` Namespace.
    Namespace,
    /// `v1` ConfigMap.
    ConfigMap,
    /// `v1` Secret.
    Secret,
    /// `v1` Event, the old API.
    CoreEvent,
    /// `events.k8s.io/v1` Event.
    Event,
    /// `v1` PersistentVolume.
    PersistentVolume,
    /// `v1` PersistentVolumeClaim.
    PersistentVolumeClaim,
    /// `coordination.k8s.io/v1` Lease.
    Lease,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `batch/v1` Job.
    Job,
    /// `policy/v1` PodDisruptionBudget.
    PodDisruptionBudget,
    /// `storage.k8s.io/v1` VolumeAttachment.
    VolumeAttachment,
    /// `storage.k8s.io/v1` CSINode.
    CsiNode,
    /// `storage.k8s.io/v1` CSIDriver.
    CsiDriver,
    /// `node-remedy.io/v1alpha1` RemedyConfiguration.
    RemedyConfiguration,
    /// `node-remedy.io/v1alpha1` FenceConfiguration.
    FenceConfiguration,
    /// `node-remedy.io/v1alpha1` FencePlugin.
    FencePlugin,
    /// `node-remedy.io/v1alpha1` NodeFence.
    NodeFence,
    /// `node-remedy.io/v1alpha1` RemedyBudget.
    RemedyBudget,
    /// `node-remedy.io/v1alpha1` RemedyPause.
    RemedyPause,
    /// `nodemaintenance.medik8s.io/v1beta1` NodeMaintenance, of another operator.
    NodeMaintenance,
    /// `csiaddons.openshift.io/v1alpha1` NetworkFence, of csi-addons.
    NetworkFence,
}

/// What the API server knows of a kind.
struct Shape {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    name: &'static str,
    scope: Scope,
    /// Whether status is a subresource, written apart from the rest.
    status: Status,
}

#[derive(PartialEq)]
enum Scope {
    Cluster,
    Namespaced,
}

#[derive(PartialEq)]
enum Status {
    Subresource,
    None,
}

/// The API group of node-remedy's own kinds.
pub const NODE_REMEDY: &str = "node-remedy.io";

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 25] = [
        Self::Node,
        Self::Pod,
        Self::Namespace,
        Self::ConfigMap,
        Self::Secret,
        Self::CoreEvent,
        Self::Event,
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::Lease,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Job,
        Self::PodDisruptionBudget,
        Self::VolumeAttachment,
        Self::CsiNode,
        Self::CsiDriver,
        Self::RemedyConfiguration,
        Self::FenceConfiguration,
        Self::FencePlugin,
        Self::NodeFence,
        Self::RemedyBudget,
        Self::RemedyPause,
        Self::NodeMaintenance,
        Self::NetworkFence,
    ];

    /// The kind that a path `/apis/GROUP/…/PLURAL` addresses; the core group is empty.
    pub fn of_plural(group: &str, plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| {
            let shape = kind.shape();
            shape.group == group && shape.plural == plural
        })
    }

    /// The kind of that name, as objects carry it.
    pub fn of_name(name: &str) -> Option<Self> {
        // Of the two APIs for Events the new one counts.
        Self::ALL
            .into_iter()
            .filter(|kind| *kind != Self::CoreEvent)
            .find(|kind| kind.name() == name)
    }

    /// The kind that an object says it is.
    pub fn of_object(api_version: &str, name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name && kind.api_version() == api_version)
    }

    /// `apiVersion` as objects carry it.
    pub fn api_version(self) -> String {
        let shape = self.shape();
        if shape.group.is_empty() {
            shape.version.to_owned()
        } else {
            format!("{}/{}", shape.group, shape.version)
        }
    }

    /// `kind` as objects carry it.
    pub fn name(self) -> &'static str {
        self.shape().name
    }

    /// The API group; empty for the core group.
    pub fn group(self) -> &'static str {
        self.shape().group
    }

    /// The name in paths.
    pub fn plural(self) -> &'static str {
        self.shape().plural
    }

    /// Whether objects of this kind live in a namespace.
    pub fn is_namespaced(self) -> bool {
        self.shape().scope == Scope::Namespaced
    }

    /// Whether `status` is written through a subresource of its own.
    pub fn has_status(self) -> bool {
        self.shape().status == Status::Subresource
    }

    /// Whether `metadata.generation` counts the changes of what is wanted; other kinds have none.
    pub fn counts_generations(self) -> bool {
        self.group() == NODE_REMEDY
            || matches!(
                self,
                Self::Pod
                    | Self::StatefulSet
                    | Self::DaemonSet
                    | Self::Job
                    | Self::PodDisruptionBudget
                    | Self::NetworkFence
            )
    }

    /// Whether an object may be replaced without saying which version of it is meant.
    pub fn is_replaced_blindly(self) -> bool {
        self.group() != NODE_REMEDY
            && !matches!(
                self,
                Self::Lease | Self::VolumeAttachment | Self::CsiNode | Self::CsiDriver
            )
    }

    fn shape(self) -> Shape {
        use Scope::{Cluster, Namespaced};
        use Status::Subresource;
        let shape = |group, version, plural, name, scope, status| Shape {
            group,
            version,
            plural,
            name,
            scope,
            status,
        };
        let core = |plural, name, scope, status| shape("", "v1", plural, name, scope, status);
        let storage =
            |plural, name, status| shape("storage.k8s.io", "v1", plural, name, Cluster, status);
        let ours =
            |plural, name, status| shape(NODE_REMEDY, "v1alpha1", plural, name, Cluster, status);
        match self {
            Self::Node => core("nodes", "Node", Cluster, Subresource),
            Self::Pod => core("pods", "Pod", Namespaced, Subresource),
            Self::Namespace => core("namespaces", "Namespace", Cluster, Subresource),
            Self::ConfigMap => core("configmaps", "ConfigMap", Namespaced, Status::None),
            Self::Secret => core("secrets", "Secret", Namespaced, Status::None),
            Self::CoreEvent => core("events", "Event", Namespaced, Status::None),
            Self::Event => {
                shape("events.k8s.io", "v1", "events", "Event", Namespaced, Status::None)
            }
            Self::PersistentVolume => {
                core("persistentvolumes", "PersistentVolume", Cluster, Subresource)
            }
            Self::PersistentVolumeClaim => {
                core("persistentvolumeclaims", "PersistentVolumeClaim", Namespaced, Subresource)
            }
            Self::Lease => {
                shape("coordination.k8s.io", "v1", "leases", "Lease", Namespaced, Status::None)
            }
            Self::StatefulSet => {
                shape("apps", "v1", "statefulsets", "StatefulSet", Namespaced, Subresource)
            }
            Self::DaemonSet => {
                shape("apps", "v1", "daemonsets", "DaemonSet", Namespaced, Subresource)
            }
            Self::Job => shape("batch", "v1", "jobs", "Job", Namespaced, Subresource),
            Self::PodDisruptionBudget => shape(
                "policy",
                "v1",
                "poddisruptionbudgets",
                "PodDisruptionBudget",
                Namespaced,
                Subresource,
            ),
            Self::VolumeAttachment => storage("volumeattachments", "VolumeAttachment", Subresource),
            Self::CsiNode => storage("csinodes", "CSINode", Status::None),
            Self::CsiDriver => storage("csidrivers", "CSIDriver", Status::None),
            Self::RemedyConfiguration => {
                ours("remedyconfigurations", "RemedyConfiguration", Subresource)
            }
            Self::FenceConfiguration => {
                ours("fenceconfigurations", "FenceConfiguration", Subresource)
            }
            Self::FencePlugin => ours("fenceplugins", "FencePlugin", Subresource),
            Self::NodeFence => ours("nodefences", "NodeFence", Subresource),
            Self::RemedyBudget => ours("remedybudgets", "RemedyBudget", Subresource),
            Self::RemedyPause => ours("remedypauses", "RemedyPause", Status::None),
            Self::NodeMaintenance => shape(
                "nodemaintenance.medik8s.io",
                "v1beta1",
                "nodemaintenances",
                "NodeMaintenance",
                Cluster,
                Subresource,
            ),
            Self::NetworkFence => shape(
                "csiaddons.openshift.io",
                "v1alpha1",
                "networkfences",
                "NetworkFence",
                Cluster,
                Subresource,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_path_and_by_what_objects_say() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_plural(kind.group(), kind.plural()), Some(kind));
            assert_eq!(Kind::of_object(&kind.api_version(), kind.name()), Some(kind));
        }
        assert_eq!(Kind::of_plural("apps", "nodes"), None);
        assert_eq!(Kind::of_object("apps/v1", "Node"), None);
    }
}
