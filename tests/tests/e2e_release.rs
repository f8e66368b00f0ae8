//! How many pods of a lost node are given back a minute, on a real control plane.

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use node_remedy_tests::Controller;
use node_remedy_tests::remedy::Installation;
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use serde_json::json;

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

/// Pods on the lost node, beside the database's.
const PODS: usize = 4;
/// One every five seconds.
const A_MINUTE: u32 = 12;
/// So far apart at least: a busy API server gets one request late and the next one on time.
const APART: SignedDuration = SignedDuration::from_millis(2_500);
/// From the first of five to the last there are four times five seconds; both requests may be late.
const ALL_TAKE: SignedDuration = SignedDuration::from_secs(18);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_a_lost_node_are_deleted_at_the_rate_that_is_asked_for() -> Result<()> {
    let policies = json!({"releaseMode": "paced", "podsPerMinute": A_MINUTE});
    let installation = Installation { policies, ..Installation::default() };
    let scenario = Scenario::begin("e2e-paced", &installation).await?;
    for number in 0..PODS {
        create_pod(&scenario, &format!("web-{number}")).await?;
    }
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
    let releases = scenario.cluster.observer(User::NodeRemedy).judge()?.releases;
    let of_pods = releases.iter().filter(|one| one.what.starts_with("pods "));
    let mut first = std::collections::BTreeMap::<&str, Timestamp>::new();
    for release in of_pods {
        first.entry(&release.what).or_insert(release.at);
    }
    let mut times: Vec<Timestamp> = first.values().copied().collect();
    times.sort();
    assert_eq!(times.len(), PODS + 1, "every pod, and the database's: {releases:#?}");
    for pair in times.windows(2) {
        if let [one, next] = pair {
            assert!(next.duration_since(*one) >= APART, "too fast: {first:?}");
        }
    }
    let span = times.last().zip(times.first()).map(|(last, first)| last.duration_since(*first));
    assert!(span >= Some(ALL_TAKE), "too fast in all: {first:?}");
    controller.terminate().await
}

/// A pod of nobody on the lost node that stays when it is not Ready.
async fn create_pod(scenario: &Scenario, name: &str) -> Result<()> {
    let pods = Api::<Pod>::namespaced(scenario.cluster.client(), "default");
    let stays = |taint: &str| json!({"key": taint, "operator": "Exists", "effect": "NoExecute"});
    let lost = ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"];
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "nodeName": scenario.node,
            "tolerations": lost.map(stays),
            "containers": [{"name": "web", "image": "none"}],
        },
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    until(&format!("{name} runs"), INCIDENT_WITHIN, || async {
        let phase = pods.get(name).await?.status.and_then(|status| status.phase);
        Ok((phase.as_deref() == Some("Running")).then_some(()))
    })
    .await
}
