//! The scenario that all end-to-end tests tell: a database's node is lost and comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::observer::Violation;
use node_remedy_tests::remedy::{Installation, describe, is_in_phase, status};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Bmc, Cluster, remedy};
use serde_json::{Value, json};

const TOLERATION_S: u32 = 2;
/// The taints of node-remedy. Kubernetes takes its own away in its own time after a node is Ready.
const OURS: [&str; 2] = ["node-remedy.io/quarantine", "node.kubernetes.io/out-of-service"];
/// A whole incident: noticing, off, release, boot, recovery; on a busy machine.
pub(crate) const INCIDENT_WITHIN: Duration = Duration::from_mins(2);

/// A cluster with node-remedy installed, not yet started, and a database that runs.
pub(crate) struct Scenario {
    pub(crate) cluster: Cluster,
    pub(crate) node: String,
    pub(crate) old_boot_id: Option<String>,
    /// Its storage is cut before anything is released, so that its power need not be.
    pub(crate) is_kept_away: bool,
    before: Before,
}

/// What had happened in the cluster when a scenario began.
#[derive(Default)]
struct Before {
    incidents: BTreeSet<String>,
    releases: usize,
    /// How often each machine had been asked off and on.
    asked: BTreeMap<String, (usize, usize)>,
}

impl Scenario {
    pub(crate) async fn begin(name: &str, installation: &Installation) -> Result<Self> {
        Self::begin_with(name, Settings::QUICK, installation).await
    }

    pub(crate) async fn begin_with(
        name: &str,
        settings: Settings,
        installation: &Installation,
    ) -> Result<Self> {
        let mut scenario = Self::prepare(name, settings).await?;
        scenario.install(installation).await?;
        Ok(scenario)
    }

    /// A cluster alone.
    pub(crate) async fn prepare(name: &str, settings: Settings) -> Result<Self> {
        Self::prepare_in_cloud(name, settings, &[]).await
    }

    /// The same, of nodes that are these instances of a cloud.
    pub(crate) async fn prepare_in_cloud(
        name: &str,
        settings: Settings,
        provider_ids: &[String],
    ) -> Result<Self> {
        let cluster = Cluster::start_in_cloud(name, settings, provider_ids).await?;
        let (node, before) = (String::new(), Before::default());
        Ok(Self { cluster, node, old_boot_id: None, is_kept_away: false, before })
    }

    /// Writes a label of a node.
    pub(crate) async fn label(&self, node: &str, key: &str, value: &str) -> Result<()> {
        let patch = json!({"metadata": {"labels": {key: value}}});
        let nodes = Api::<Node>::all(self.cluster.client());
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Node-remedy and a database that runs.
    pub(crate) async fn install(&mut self, installation: &Installation) -> Result<()> {
        remedy::install(&self.cluster, installation).await?;
        self.cluster.create_database(TOLERATION_S).await?;
        self.node = self.cluster.database_runs(None).await?;
        self.old_boot_id = self.cluster.machine(&self.node)?.boot_id();
        Ok(())
    }

    /// Another scenario in the same cluster, about the node that the database runs on now.
    pub(crate) async fn again(&mut self) -> Result<()> {
        let cluster = &self.cluster;
        self.node = cluster.database_runs(None).await?;
        self.old_boot_id = cluster.machine(&self.node)?.boot_id();
        let incidents = remedy::custom(&cluster.client(), "NodeFence");
        let incidents = incidents.list(&ListParams::default()).await?;
        let asked = |(name, bmc): (&String, &Bmc)| Ok((name.clone(), (bmc.offs()?, bmc.ons()?)));
        self.before = Before {
            incidents: incidents.iter().map(ResourceExt::name_any).collect(),
            releases: cluster.observer(User::NodeRemedy).judge()?.releases.len(),
            asked: cluster.bmcs.iter().map(asked).collect::<Result<_>>()?,
        };
        Ok(())
    }

    /// The lost node's BMC.
    pub(crate) fn bmc(&mut self) -> Result<&mut Bmc> {
        self.cluster.bmcs.get_mut(&self.node).context("a node without BMC")
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
            let mut found = remedy::incidents(&client, &self.node).await?;
            found.retain(|incident| !self.before.incidents.contains(&incident.name_any()));
            ensure!(found.len() < 2, "one loss made {} incidents: {found:#?}", found.len());
            let incident = found.pop();
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
        let Self { cluster, node, old_boot_id, is_kept_away, before } = self;
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
        let left = object.annotations().keys().find(|key| key.contains("scale-down-disabled"));
        assert_eq!(left, None, "an autoscaler may take it away again");
        let boot_id = object.status.and_then(|status| status.node_info).map(|info| info.boot_id);
        assert!(boot_id.is_some() && boot_id != *old_boot_id, "a new boot");
        let taints = object.spec.clone().and_then(|spec| spec.taints).unwrap_or_default();
        let is_ours = |taint: &&Taint| OURS.contains(&taint.key.as_str());
        assert_eq!(taints.iter().find(is_ours), None, "nothing of ours is left on the node");
        assert_ne!(object.spec.and_then(|spec| spec.unschedulable), Some(true), "not cordoned");

        let mut verdict = cluster.observer(User::NodeRemedy).judge()?;
        let is_excused = |one: &Violation| matches!(one, Violation::ReleasedWhileOn(_));
        verdict.violations.retain(|one| !(*is_kept_away && is_excused(one)));
        assert_eq!(verdict.violations, []);
        assert_eq!(verdict.refused, [""; 0], "node-remedy asked for nothing it may not have");
        assert!(verdict.releases.len() > before.releases, "node-remedy released the database");
        assert_eq!(self.asked(node)?, (1, 1), "one off and one on");
        for other in cluster.bmcs.keys().filter(|name| *name != node) {
            assert_eq!(self.asked(other)?, (0, 0), "{other} was left alone");
        }
        Ok(())
    }

    /// How often a machine was asked off and on in this scenario.
    pub(crate) fn asked(&self, node: &str) -> Result<(usize, usize)> {
        let bmc = self.cluster.bmc(node)?;
        let (offs, ons) = self.before.asked.get(node).copied().unwrap_or_default();
        Ok((bmc.offs()?.saturating_sub(offs), bmc.ons()?.saturating_sub(ons)))
    }
}

/// The journal says that an off was begun, and nothing proves yet that it came.
pub(crate) fn is_being_switched_off(incident: &DynamicObject) -> bool {
    let is_off = |one: &Value| one["action"] == "off";
    let is_begun =
        status(incident, "/operations").as_array().is_some_and(|all| all.iter().any(is_off));
    is_begun && status(incident, "/proof").is_null()
}
