//! The built-in method network-fence on a real API server, with csi-addons' own CustomResourceDefinition.
//! csi-addons itself is played: its controller needs a CSI driver that can fence, and none is here. The test
//! writes what that controller writes, in its order; that storage is really cut is not shown.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use node_remedy_api::plan::network_fence::{FenceSecret, FenceState, NetworkFence, spec_of};
use node_remedy_tests::Controller;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::remedy::{Installation, status};
use node_remedy_tests::storage::DRIVER;
use node_remedy_tests::time::until;
use serde_json::{Value, json};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

const CRD: &str = include_str!("../crds/networkfences.yaml");
const FENCED: &str = "fencing operation successful";
const UNFENCED: &str = "unfencing operation successful";
/// What csi-addons adds, and lifts when the object is deleted.
const FINALIZER: &str = "csiaddons.openshift.io/network-fence";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_fence_is_asked_for_believed_when_answered_and_given_back() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-network-fence", Settings::QUICK).await?;
    let fences = serve(&scenario.cluster.client()).await?;
    one_of_a_class_stays_as_it_was_made(&fences).await?;
    scenario.install(&Installation::default()).await?;
    let ports: Vec<u16> =
        scenario.cluster.bmcs.values().map(node_remedy_tests::Bmc::port).collect();
    let installation = Installation { fence: Some(fence(&ports)), ..Installation::default() };
    node_remedy_tests::remedy::configure(&scenario.cluster, &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;

    let asked = the_one(&fences, "asked for", |_| true).await?;
    assert_eq!(asked.spec.driver, DRIVER);
    let node = Api::<Node>::all(scenario.cluster.client()).get(&scenario.node).await?;
    let addresses = node.status.and_then(|status| status.addresses).unwrap_or_default();
    let internal = addresses.into_iter().find(|one| one.type_ == "InternalIP");
    assert_eq!(asked.spec.cidrs, internal.map(|one| format!("{}/32", one.address)).as_slice());
    assert_eq!(asked.spec.fence_state, FenceState::Fenced);
    let secret = FenceSecret { name: "provisioner".to_owned(), namespace: "storage".to_owned() };
    assert_eq!(asked.spec.secret, secret);
    let pool = BTreeMap::from([("clusterID".to_owned(), "one".to_owned())]);
    assert_eq!(asked.spec.parameters, pool);
    let name = asked.name_any();
    // As its client writes the whole object, with every field that it knows.
    let held = json!({
        "metadata": {"finalizers": [FINALIZER]}, "spec": {"networkFenceClassName": ""},
    });
    let held = fences.patch(&name, &PatchParams::default(), &Patch::Merge(held)).await?;
    assert_eq!(held.metadata.generation, Some(1), "nothing else was asked of it");
    answer(&fences, &name, "Failed", "no such cluster").await?;
    scenario.incident("waiting for the storage", |incident| ops(incident, "off") == 1).await?;
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "its power is cut after its storage");
    scenario.cluster.storage.keep_away(&scenario.node);
    answer(&fences, &name, "Succeeded", FENCED).await?;
    scenario.is_kept_away = true;

    // The answer to Fenced still stands when Unfenced is asked, and is none to that.
    let is_asked = |fence: &NetworkFence| fence.spec.fence_state == FenceState::Unfenced;
    let back = the_one(&fences, "given back", is_asked).await?;
    assert_eq!(back.status.as_ref().map(|status| status.message.as_str()), Some(FENCED));
    assert_eq!(back.uid(), asked.uid(), "the same all the time");
    assert_eq!(back.metadata.deletion_timestamp, None);
    scenario.cluster.storage.let_back(&scenario.node);
    answer(&fences, &name, "Succeeded", UNFENCED).await?;
    the_one(&fences, "deleted", |fence| fence.metadata.deletion_timestamp.is_some()).await?;
    let lifted = json!({"metadata": {"finalizers": null}});
    fences.patch(&name, &PatchParams::default(), &Patch::Merge(lifted)).await?;
    scenario.ends_well().await?;
    assert_eq!(fences.list(&ListParams::default()).await?.items.len(), 0, "nothing is left");
    controller.terminate().await
}

/// Nobody proved the machine off, and what was released behind its cut writes elsewhere by now: that its Node is
/// gone gives nothing back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_stays_when_the_node_behind_it_is_deleted() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-network-fence-deleted", Settings::QUICK).await?;
    let client = scenario.cluster.client();
    let fences = serve(&client).await?;
    let policies = json!({"grades": ["storage-fenced"]});
    let installation = Installation { policies, ..Installation::default() };
    scenario.install(&installation).await?;
    let mut alone = fence(&[623]);
    alone["methods"].as_array_mut().context("no methods")?.truncate(1);
    for field in ["powerManagement", "grants", "trustedNodeFields"] {
        alone.as_object_mut().context("no fields")?.remove(field);
    }
    let installation = Installation { fence: Some(alone), ..installation };
    node_remedy_tests::remedy::configure(&scenario.cluster, &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let name = the_one(&fences, "asked for", |_| true).await?.name_any();
    scenario.cluster.storage.keep_away(&scenario.node);
    answer(&fences, &name, "Succeeded", FENCED).await?;
    scenario.cluster.database_runs(Some(&scenario.node)).await?;

    Api::<Node>::all(client).delete(&scenario.node, &DeleteParams::default()).await?;
    let is_parked = |incident: &DynamicObject| status(incident, "/parked/reason") == "StillCut";
    scenario.incident("parked with its cut", is_parked).await?;
    let fence = fences.get(&name).await?;
    assert_eq!(fence.spec.fence_state, FenceState::Fenced);
    assert_eq!(fence.metadata.deletion_timestamp, None);
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "its power is nobody's here");
    controller.terminate().await
}

/// The API server takes one that names a class, and csi-addons changes nothing of it by its finalizer.
async fn one_of_a_class_stays_as_it_was_made(fences: &Api<NetworkFence>) -> Result<()> {
    let parameters = [("networkFenceClass", "ceph"), ("cidrs", "192.0.2.9/32")];
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let made = NetworkFence::new("of-a-class", spec_of(&BTreeMap::from(parameters.map(own))));
    let made = fences.create(&PostParams::default(), &made).await?;
    // As its client writes the whole object, with every field that it knows.
    let held = json!({
        "metadata": {"finalizers": [FINALIZER]},
        "spec": {"networkFenceClassName": "ceph", "driver": "", "secret": {}},
    });
    let held = fences.patch("of-a-class", &PatchParams::default(), &Patch::Merge(held)).await?;
    assert_eq!((held.metadata.generation, held.spec), (Some(1), made.spec));
    let lifted = json!({"metadata": {"finalizers": null}});
    fences.patch("of-a-class", &PatchParams::default(), &Patch::Merge(lifted)).await?;
    fences.delete("of-a-class", &DeleteParams::default()).await?;
    Ok(())
}

/// The tests' own way to fence, and the storage before it.
fn fence(ports: &[u16]) -> Value {
    json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "trustedNodeFields": ["${node.annotations['bmc']}"],
        "methods": [
            {
                "name": "storage", "builtin": "network-fence", "storageDrivers": [DRIVER],
                "parameters": {
                    "driver": DRIVER, "secretName": "provisioner", "secretNamespace": "storage",
                    "clusterID": "one",
                },
            },
            {
                "name": "power", "plugin": "ipmi", "action": "reboot",
                "parameters": {
                    "address": "${node.annotations['bmc']}", "cipher-suite": "3",
                },
                "credentials": [{"secret": node_remedy_tests::remedy::SECRET}],
            },
        ],
        "isolation": [{"name": "storage", "methods": ["storage"], "mustSuccess": true}],
        "powerManagement": [{"name": "power", "methods": ["power"]}],
        "recovery": [{"name": "storage", "methods": ["storage"]}],
        "grants": [{"plugin": "ipmi", "cidrs": ["127.0.0.1/32"], "ports": ports}],
    })
}

/// How many calls of this action the journal has.
fn ops(incident: &DynamicObject, action: &str) -> usize {
    let all = status(incident, "/operations").as_array();
    all.map_or(0, |all| all.iter().filter(|one| one["action"] == action).count())
}

/// What csi-addons writes about what it did.
async fn answer(fences: &Api<NetworkFence>, name: &str, result: &str, message: &str) -> Result<()> {
    let said = json!({"status": {"result": result, "message": message}});
    fences.patch_status(name, &PatchParams::default(), &Patch::Merge(said)).await?;
    Ok(())
}

/// The only NetworkFence, once it is so.
async fn the_one(
    fences: &Api<NetworkFence>,
    what: &str,
    is_so: impl Fn(&NetworkFence) -> bool,
) -> Result<NetworkFence> {
    until(&format!("a NetworkFence is {what}"), INCIDENT_WITHIN, || async {
        let mut all = fences.list(&ListParams::default()).await?.items;
        assert!(all.len() < 2, "one incident made {} of them", all.len());
        Ok(all.pop().filter(&is_so))
    })
    .await
}

/// Serves csi-addons' kind.
async fn serve(client: &Client) -> Result<Api<NetworkFence>> {
    let crd: CustomResourceDefinition = serde_saphyr::from_str(CRD)?;
    Api::all(client.clone()).create(&PostParams::default(), &crd).await?;
    let fences = Api::<NetworkFence>::all(client.clone());
    until("NetworkFences are served", INCIDENT_WITHIN, || async {
        Ok(fences.list(&ListParams::default()).await.ok().map(|_| ()))
    })
    .await
    .context("the kind is not served")?;
    Ok(fences)
}
