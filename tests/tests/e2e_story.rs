//! The story that all end-to-end tests tell: a database's node is lost and comes back.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Taint;
use kube::api::DynamicObject;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::control_plane::User;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::remedy::{self, Installation, is_in_phase};
use node_remedy_tests::time::until;
use node_remedy_tests::{Cluster, remedy::describe};

const TOLERATION_S: u32 = 2;
/// The taints of node-remedy. Kubernetes takes its own away in its own time after a node is Ready.
const OURS: [&str; 2] = ["node-remedy.io/quarantine", "node.kubernetes.io/out-of-service"];
/// A whole incident: noticing, off, release, boot, recovery; on a busy machine.
pub(crate) const INCIDENT_WITHIN: Duration = Duration::from_mins(2);

/// A cluster with node-remedy installed, not yet started, and a database that runs.
pub(crate) struct Story {
    pub(crate) cluster: Cluster,
    pub(crate) node: String,
    pub(crate) old_boot_id: Option<String>,
}

impl Story {
    pub(crate) async fn begin(name: &str, installation: &Installation) -> Result<Self> {
        let cluster = Cluster::start(name, Settings::QUICK).await?;
        remedy::install(&cluster, installation).await?;
        cluster.create_database(TOLERATION_S).await?;
        let node = cluster.database_runs(None).await?;
        let old_boot_id = cluster.machine(&node)?.boot_id();
        Ok(Self { cluster, node, old_boot_id })
    }

    /// The kubelet dies; the machine and its writers run on.
    pub(crate) fn lose_node(&self) -> Result<()> {
        self.cluster.machine(&self.node)?.stop_kubelet();
        Ok(())
    }

    /// Waits until the lost node's incident satisfies `is_so`.
    pub(crate) async fn incident(
        &self,
        what: &str,
        is_so: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        let client = self.cluster.client();
        let seen = std::sync::Mutex::new(String::from("none"));
        let found = until(&format!("the incident is {what}"), INCIDENT_WITHIN, || async {
            let incident = remedy::incident(&client, &self.node).await?;
            if let (Some(incident), Ok(mut seen)) = (&incident, seen.lock()) {
                *seen = describe(incident);
            }
            Ok(incident.filter(&is_so))
        })
        .await;
        found.with_context(|| {
            format!("last seen: {}", seen.lock().map(|s| s.clone()).unwrap_or_default())
        })
    }

    /// Everything that must be true at the end, whatever happened to the controller.
    pub(crate) async fn ends_well(&self) -> Result<()> {
        let Self { cluster, node, old_boot_id } = self;
        cluster.database_runs(Some(node)).await?;
        let is_final = |incident: &DynamicObject| is_in_phase(incident, "Final");
        let incident = self.incident("Final", is_final).await?;
        assert!(
            remedy::status(&incident, "/operations")
                .as_array()
                .is_some_and(|list| !list.is_empty()),
            "the journal is kept: {}",
            describe(&incident)
        );

        cluster.until_power(node, Power::On).await?;
        cluster.until_ready(node, "True").await?;
        let object = cluster.node(node).await?;
        let boot_id = object.status.and_then(|status| status.node_info).map(|info| info.boot_id);
        assert!(boot_id.is_some() && boot_id != *old_boot_id, "a new boot");
        let taints = object.spec.clone().and_then(|spec| spec.taints).unwrap_or_default();
        let is_ours = |taint: &&Taint| OURS.contains(&taint.key.as_str());
        assert_eq!(taints.iter().find(is_ours), None, "nothing of ours is left on the node");
        assert_ne!(object.spec.and_then(|spec| spec.unschedulable), Some(true), "not cordoned");

        let verdict = cluster.observer(User::NodeRemedy).judge()?;
        assert_eq!(verdict.violations, []);
        assert_eq!(verdict.refused, [""; 0], "node-remedy asked for nothing it may not have");
        assert!(!verdict.releases.is_empty(), "node-remedy released the database");
        let bmc = cluster.bmc(node)?;
        assert_eq!((bmc.offs()?, bmc.ons()?), (1, 1), "one off and one on");
        self.others_were_left_alone()
    }

    /// No other machine's power was touched.
    pub(crate) fn others_were_left_alone(&self) -> Result<()> {
        for (name, bmc) in self.cluster.bmcs.iter().filter(|(name, _)| **name != self.node) {
            assert_eq!((bmc.offs()?, bmc.ons()?), (0, 0), "{name} was left alone");
        }
        Ok(())
    }
}
