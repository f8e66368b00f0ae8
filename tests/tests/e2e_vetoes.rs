//! Who else may keep a lost node from being fenced, on a real control plane: whoever sees it use its
//! storage, and another remediator that has it already.

use std::time::Duration;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use node_remedy_tests::remedy::{self, Installation};
use node_remedy_tests::{Controller, controller};
use serde_json::json;

use crate::e2e_scenario::Scenario;
use crate::e2e_words::until_refused;

const STORAGE: &str = "storage";
/// Where other remediators say which node they have.
const REMEDIATORS: &str = "medik8s-leases";

/// Its kubelet is silent and its storage is in use: it is alive. Once nobody sees it write any more, it
/// is fenced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_still_uses_its_storage_is_left_alone() -> Result<()> {
    let policies = json!({"storageLeases": {"namespace": STORAGE, "maxAge": "5s"}});
    let installation = Installation { policies, ..Installation::default() };
    let scenario = Scenario::begin("e2e-storage-lease", &installation).await?;
    let leases = leases(&scenario, STORAGE).await?;
    remedy::grant_more(&scenario.cluster.client(), &["--storage-lease-namespace", STORAGE]).await?;
    leases.create(&PostParams::default(), &lease(&scenario.node, "storage-watch", 5)).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let renewing = tokio::spawn(renew(leases, scenario.node.clone()));
    scenario.lose_node()?;
    until_refused(&scenario, "StorageLease").await?;
    let said = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
    assert!(said.contains("storage"), "{said}");
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "it is alive");
    renewing.abort();
    scenario.ends_well().await?;
    controller.terminate().await
}

/// The Node Healthcheck Operator has the node; when it gives it back, it is fenced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_another_remediator_has_is_left_to_it() -> Result<()> {
    let scenario = Scenario::begin("e2e-medik8s", &Installation::default()).await?;
    let leases = leases(&scenario, REMEDIATORS).await?;
    let name = format!("node-{}", scenario.node);
    leases.create(&PostParams::default(), &lease(&name, "node-healthcheck", 3_600)).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    until_refused(&scenario, "HeldByOther").await?;
    let said = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
    assert!(said.contains("node-healthcheck holds this node's Lease"), "{said}");
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "it is another's");
    leases.delete(&name, &DeleteParams::default()).await?;
    scenario.ends_well().await?;
    controller.terminate().await
}

/// The Leases of a namespace, which may have to be made.
async fn leases(scenario: &Scenario, namespace: &str) -> Result<Api<Lease>> {
    let client = scenario.cluster.client();
    let object: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
    let namespaces = Api::<Namespace>::all(client.clone());
    let apply = PatchParams::apply("test").force();
    namespaces.patch(namespace, &apply, &Patch::Apply(&object)).await?;
    Ok(Api::namespaced(client, namespace))
}

fn lease(name: &str, holder: &str, lasts_s: i32) -> Lease {
    Lease {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: Some(LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(lasts_s),
            acquire_time: Some(MicroTime(Timestamp::now())),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    }
}

/// Renews a Lease every second, as whoever sees the node write does.
async fn renew(leases: Api<Lease>, name: String) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        // Stamps are another's clock.
        let stamp = Timestamp::now().saturating_add(SignedDuration::from_hours(1));
        let Ok(stamp) = stamp else { return };
        let merge = json!({"spec": {"renewTime": MicroTime(stamp)}});
        // A renewal that fails is made up for by the next one.
        let _ = leases.patch(&name, &PatchParams::default(), &Patch::Merge(merge)).await;
    }
}
