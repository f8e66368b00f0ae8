//! One grammar: what the API server takes by our definitions, our types can be read from. Each object is
//! one that somebody could write, right at the edge of what its definition allows, or just beyond.

use std::fmt::Debug;

use anyhow::{Result, ensure};
use kube::api::{DynamicObject, PostParams};
use node_remedy_api::fenceconfiguration::FenceConfiguration;
use node_remedy_api::fenceplugin::FencePlugin;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::remedybudget::RemedyBudget;
use node_remedy_api::remedyconfiguration::RemedyConfiguration;
use node_remedy_api::remedypause::RemedyPause;
use node_remedy_tests::Cluster;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::remedy;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Whether the API server takes it.
const TAKEN: bool = true;
const REFUSED: bool = false;

/// Lengths of time.
const SPANS: [(&str, bool); 26] = [
    ("5s", TAKEN),
    ("0", TAKEN),
    ("0s", TAKEN),
    ("1h30m", TAKEN),
    ("1d2h3m4s5ms", TAKEN),
    ("9999d", TAKEN),
    ("9999d99999h9999999m999999999s9999999999ms", TAKEN),
    ("0001d", TAKEN),
    ("250ms", TAKEN),
    ("30m1h", REFUSED),
    ("1h1h", REFUSED),
    ("1s1s", REFUSED),
    ("1ms1s", REFUSED),
    ("200000d", REFUSED),
    ("10000d", REFUSED),
    ("100000h", REFUSED),
    ("10000000000s", REFUSED),
    ("99999999999999999999s", REFUSED),
    ("", REFUSED),
    ("5", REFUSED),
    ("-5s", REFUSED),
    ("1.5h", REFUSED),
    ("5 s", REFUSED),
    ("5s\n", REFUSED),
    ("٥s", REFUSED),
    ("5S", REFUSED),
];

/// Instants.
const MOMENTS: [(&str, bool); 20] = [
    ("2026-01-31T12:00:00Z", TAKEN),
    ("2026-01-31T12:00:00.123456789Z", TAKEN),
    ("2026-01-31T12:00:00+01:00", TAKEN),
    ("2026-01-31T12:00:00-23:59", TAKEN),
    ("1969-12-31T23:59:59Z", TAKEN),
    ("0000-01-01T00:00:00+23:59", TAKEN),
    ("9999-12-31T23:59:59.999999999-23:59", TAKEN),
    ("2024-02-29T00:00:00Z", TAKEN),
    ("2026-02-29T00:00:00Z", REFUSED),
    ("2026-13-01T00:00:00Z", REFUSED),
    ("2026-01-31T24:00:00Z", REFUSED),
    ("2026-01-31T23:59:60Z", REFUSED),
    ("2026-01-31T12:00:00,5Z", REFUSED),
    ("2026-01-31T12:00:00.1234567890Z", REFUSED),
    ("2026-01-31T12:00:00+99:99", REFUSED),
    ("2026-01-31T12:00:00", REFUSED),
    ("2026-01-31t12:00:00z", REFUSED),
    ("2026-01-31T12:00:00ZTomorrow", REFUSED),
    ("2026-01-31", REFUSED),
    ("tomorrow", REFUSED),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_api_server_takes_can_be_read() -> Result<()> {
    let cluster = Cluster::start("grammar", Settings { nodes: 1, ..Settings::QUICK }).await?;
    remedy::install_resources(&cluster.client()).await?;
    let corpus = Corpus { cluster: &cluster };
    for (period, taken) in SPANS {
        corpus
            .try_one::<RemedyConfiguration>(&policy(&json!({"nodeLeaseAge": period})), taken)
            .await?;
    }
    for (until, taken) in MOMENTS {
        let spec = json!({"reason": "r", "by": "b", "until": until});
        corpus.try_one::<RemedyPause>(&spec, taken).await?;
    }
    for (threshold, taken) in [
        (json!({"nodeConditionType": "Ready", "nodeConditionStatus": false}), TAKEN),
        (json!({"nodeConditionType": "Ready", "nodeConditionStatus": "Unknown"}), TAKEN),
        (json!({"nodeConditionType": "Ready", "nodeConditionStatus": "unheard"}), TAKEN),
        (json!({"nodeConditionType": "Ready", "nodeConditionStatus": 7}), TAKEN),
        (json!({"nodeConditionType": "Ready", "nodeConditionStatus": 1e30}), TAKEN),
        (json!({"nodeConditionType": "Ready", "nodeConditionStatus": {"a": [null]}}), TAKEN),
    ] {
        let mut threshold = threshold;
        json_patch::merge(&mut threshold, &json!({"nodeConditionPeriod": "30s"}));
        corpus.try_any::<RemedyConfiguration>(&policy(&threshold), taken).await?;
    }
    for (policies, taken) in [
        (json!({"maxInFlight": 1}), TAKEN),
        (json!({"maxInFlight": 1.0}), TAKEN),
        (json!({"maxInFlight": null}), TAKEN),
        (json!({"maxInFlight": 1.5}), REFUSED),
        (json!({"maxInFlight": 4_294_967_296_u64}), REFUSED),
        (json!({"podsPerMinute": -1}), REFUSED),
        (json!({"releaseMode": "a-newer-word"}), REFUSED),
        (json!({"coolDown": "30m1h"}), REFUSED),
        (json!({"maxUnhealthyPercent": "30"}), REFUSED),
    ] {
        let mut spec = policy(&json!({"nodeLeaseAge": "40s"}));
        json_patch::merge(&mut spec, &json!({"policies": policies}));
        corpus.try_one::<RemedyConfiguration>(&spec, taken).await?;
    }
    for (selector, taken) in [(json!("a in (b"), TAKEN), (json!(7), REFUSED), (json!(""), REFUSED)]
    {
        let spec = json!({"reason": "r", "by": "b", "nodeSelector": selector});
        corpus.try_one::<RemedyPause>(&spec, taken).await?;
    }
    corpus.fences().await?;
    corpus.records().await
}

/// A policy with this threshold.
fn policy(threshold: &Value) -> Value {
    let mut threshold = threshold.clone();
    json_patch::merge(&mut threshold, &json!({"remedy1": [{"name": "fence"}]}));
    json!({"thresholdConfigs": [threshold]})
}

/// A real API server, of which nothing is kept.
struct Corpus<'a> {
    cluster: &'a Cluster,
}

impl Corpus<'_> {
    /// It is taken or refused as said, and what is taken can be read.
    async fn try_one<K>(&self, spec: &Value, taken: bool) -> Result<()>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Debug,
    {
        let is_taken = self.is_taken_and_read::<K>(spec).await?;
        ensure!(is_taken == taken, "{} {spec}: taken: {is_taken}", K::kind(&()));
        Ok(())
    }

    /// What is taken can be read; whether it is taken is the API server's affair.
    async fn try_any<K>(&self, spec: &Value, _: bool) -> Result<()>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Debug,
    {
        self.is_taken_and_read::<K>(spec).await.map(|_| ())
    }

    async fn is_taken_and_read<K>(&self, spec: &Value) -> Result<bool>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Debug,
    {
        let kind = K::kind(&()).into_owned();
        let name = if kind == "RemedyBudget" { "default" } else { "one" };
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "node-remedy.io/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        }))?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        match remedy::custom(&self.cluster.client(), &kind).create(&dry, &object).await {
            Ok(taken) => {
                let read = serde_json::from_value::<K>(serde_json::to_value(&taken)?);
                ensure!(read.is_ok(), "{kind} {spec} was taken, and cannot be read: {read:?}");
                Ok(true)
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn fences(&self) -> Result<()> {
        for (method, taken) in [
            (json!({"action": "reboot"}), TAKEN),
            (json!({"action": "cycle"}), REFUSED),
            (json!({"action": {"on": "off"}}), REFUSED),
            (json!({"action": 7}), REFUSED),
            (json!({"action": ["off"]}), REFUSED),
            (json!({"timeout": "30m1h"}), REFUSED),
        ] {
            let mut one = json!({"name": "one", "plugin": "ipmi"});
            json_patch::merge(&mut one, &method);
            let spec = json!({
                "nodeSelector": "a=b",
                "methods": [one],
                "powerManagement": [{"name": "power", "methods": ["one"]}],
            });
            // Some of these the rules of the definition refuse, and not its grammar.
            self.try_any::<FenceConfiguration>(&spec, taken).await?;
        }
        let digest = format!("sha256:{}", "0".repeat(64));
        for (grants, taken) in [
            (json!([{"cidrs": ["192.0.2.0/24"], "ports": [0, 65535]}]), TAKEN),
            (json!([{"cidrs": ["::ffff:10.0.0.0/100"]}]), TAKEN),
            (json!([{"ports": [65536]}]), REFUSED),
            (json!([{"budget": {"datagrams": 2049}}]), REFUSED),
        ] {
            let source = json!({"configMap": {"name": "p", "key": "p.wasm"}});
            let spec = json!({"source": source, "digest": digest, "grants": grants});
            self.try_one::<FencePlugin>(&spec, taken).await?;
        }
        Ok(())
    }

    /// What a leader writes, and whoever has its rights.
    async fn records(&self) -> Result<()> {
        for (epoch, taken) in [
            (json!(0), TAKEN),
            (json!(9_007_199_254_740_991_u64), TAKEN),
            (json!(9_007_199_254_740_992_u64), REFUSED),
            (json!(1e20), REFUSED),
            (json!(-1), REFUSED),
        ] {
            self.try_one::<RemedyBudget>(&json!({"epoch": epoch, "inFlight": []}), taken).await?;
        }
        for (gate, taken) in [
            (json!({}), TAKEN),
            (json!({"maxInFlight": 4_294_967_295_u64}), TAKEN),
            (json!({"maxInFlight": 4_294_967_296_u64}), REFUSED),
            (json!({"minBetweenIncidents": "1h1h"}), REFUSED),
        ] {
            let whole = serde_json::to_value(node_remedy_api::policy::GateLimits::default())?;
            let mut merged = whole;
            json_patch::merge(&mut merged, &gate);
            let spec = json!({
                "node": {"name": "n", "uid": "u"}, "remedy": "fence",
                "trigger": {
                    "conditionType": "Ready", "status": "Unknown",
                    "since": "2026-01-01T00:00:00Z", "period": "5s",
                },
                "plan": node_remedy_api::plan::NodePlan::default(),
                "policy": node_remedy_api::policy::IncidentPolicy::default(),
                "gate": merged,
            });
            self.try_any::<NodeFence>(&spec, taken).await?;
        }
        Ok(())
    }
}
