//! S16 on a real API server: who may begin an incident, say a word, widen what a plugin is allowed, or write
//! our labels and annotations on a Node. The
//! shipped policies let nothing of it through without its right, and each of their validations is needed:
//! without one, what that one is there for gets through, and this check sees it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::remedy::Installation;
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Cluster, remedy};
use serde_json::{Value, json};

use super::apiserver_words::{as_user, bind, fence_plugin, make_role, nodefence, pause, record};

/// A policy is in force some seconds after it was written.
const IN_FORCE_WITHIN: Duration = Duration::from_mins(1);
/// What is asked for beside the rights to write.
const VERBS: [&str; 7] = ["remediate", "retry", "abort", "approve", "ack", "confirm-off", "grant"];
/// What needs one of them.
const NEEDS_A_RIGHT: [&str; 16] = [
    "begins an incident",
    "writes a record",
    "retry",
    "abort",
    "approve",
    "ack",
    "confirm-off",
    "grants a plugin an address",
    "lets others sign a plugin",
    "gives a plugin more room",
    "fetches a plugin by way of a mirror",
    "fetches a plugin without TLS",
    "fetches a plugin with an account",
    "fetches a plugin by another authority",
    "grants a method an address",
    "trusts what a node says",
];
/// What no kubelet may of its own Node, and everybody else who may write Nodes.
const NO_KUBELET: [&str; 4] =
    ["labels", "annotations", "labels by status", "annotations by status"];
/// What nobody may, whatever their rights.
const FORGES: [&str; 2] = ["confirms off as bob", "pauses as bob"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)] // promise: S16
async fn s16_nothing_is_begun_said_or_granted_without_its_right() -> Result<()> {
    let people = People::new().await?;
    let mut all = BTreeSet::from(NEEDS_A_RIGHT);
    until("who has the rights may", IN_FORCE_WITHIN, || async {
        Ok((people.get_through(&people.holder, &NEEDS_A_RIGHT).await? == all).then_some(()))
    })
    .await?;
    until("who is no kubelet may", IN_FORCE_WITHIN, || async {
        let through = people.get_through(&people.holder, &NO_KUBELET).await?;
        Ok((through == BTreeSet::from(NO_KUBELET)).then_some(()))
    })
    .await?;
    all.extend(FORGES);
    all.extend(NO_KUBELET);
    people.nothing_gets_through("the policies are in force").await?;

    let mut guarded = BTreeSet::new();
    for policy in people.policies().list(&ListParams::default()).await? {
        let name = policy.name_any();
        let count =
            policy.spec.as_ref().and_then(|spec| spec.validations.as_ref()).map_or(0, Vec::len);
        ensure!(count > 0, "{name} validates nothing");
        for at in 0..count {
            let what = format!("{name} without its validation {at}");
            people.replace(&without(&policy, at)).await?;
            until(&what, IN_FORCE_WITHIN, || async {
                Ok((!people.got_through().await?.is_empty()).then_some(()))
            })
            .await?;
            // It may have come into force between two attempts: now all of them are made under it.
            let through = people.got_through().await?;
            println!("{what}: {through:?}");
            ensure!(through.is_disjoint(&guarded), "{what}: {through:?} has another guard");
            guarded.extend(through);
            people.replace(&policy).await?;
            people.nothing_gets_through(&format!("{name} is whole again")).await?;
        }
    }
    assert_eq!(guarded, all, "each has a guard of its own");
    Ok(())
}

/// A bug that is seeded: what this validation asks for is not asked for.
fn without(policy: &ValidatingAdmissionPolicy, at: usize) -> ValidatingAdmissionPolicy {
    let mut weaker = policy.clone();
    let validations = weaker.spec.as_mut().and_then(|spec| spec.validations.as_mut());
    if let Some(validation) = validations.and_then(|validations| validations.get_mut(at)) {
        "true".clone_into(&mut validation.expression);
    }
    weaker
}

/// Who tries.
struct People {
    cluster: Cluster,
    /// Of the NodeFence that stands.
    uid: String,
    /// The node.
    node: String,
    /// May write everything, and has none of the rights beside.
    writer: Person,
    /// Has all of them.
    holder: Person,
    /// The kubelet of a node.
    kubelet: Person,
}

struct Person {
    name: &'static str,
    client: Client,
}

impl People {
    async fn new() -> Result<Self> {
        let cluster = Cluster::start("rights", Settings { nodes: 1, ..Settings::QUICK }).await?;
        remedy::install(&cluster, &Installation::default()).await?;
        let admin = cluster.client();
        let created = remedy::custom(&admin, "NodeFence");
        let uid = created.create(&PostParams::default(), &nodefence()?).await?.uid();
        let plugins = remedy::custom(&admin, "FencePlugin");
        plugins.create(&PostParams::default(), &fence_plugin("lamp", json!({}))?).await?;
        let person = async |name: &'static str, more: &[&str]| -> Result<Person> {
            let verbs = [&["create", "update", "patch"], more].concat();
            let resources = [
                "nodefences",
                "nodefences/status",
                "remedypauses",
                "fenceplugins",
                "fenceconfigurations",
            ];
            let rule = json!({
                "apiGroups": ["node-remedy.io"], "resources": resources, "verbs": verbs,
            });
            let nodes = json!({"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["patch"]});
            make_role(&cluster, name, json!([rule, nodes])).await?;
            bind(&cluster, name, name).await?;
            Ok(Person { name, client: as_user(&cluster, name).await? })
        };
        let (writer, holder) = (person("writer", &[]).await?, person("holder", &VERBS).await?);
        let mut config = cluster.control_plane().config(User::Admin).await?;
        let node = cluster.bmcs.keys().next().context("a node")?.clone();
        config.auth_info.impersonate = Some(format!("system:node:{node}"));
        config.auth_info.impersonate_groups = Some(vec!["system:nodes".to_owned()]);
        let kubelet = Person { name: "the kubelet", client: Client::try_from(config)? };
        Ok(Self { uid: uid.context("a UID")?, node, writer, holder, kubelet, cluster })
    }

    fn policies(&self) -> Api<ValidatingAdmissionPolicy> {
        Api::all(self.cluster.client())
    }

    async fn replace(&self, policy: &ValidatingAdmissionPolicy) -> Result<()> {
        let mut policy = policy.clone();
        // Whatever stands there now.
        policy.metadata.resource_version = None;
        policy.metadata.managed_fields = None;
        let now = self.policies().get(&policy.name_any()).await?;
        policy.metadata.resource_version = now.metadata.resource_version;
        self.policies().replace(&policy.name_any(), &PostParams::default(), &policy).await?;
        Ok(())
    }

    /// What gets through of all that should not.
    async fn got_through(&self) -> Result<BTreeSet<&'static str>> {
        let mut through = self.get_through(&self.writer, &NEEDS_A_RIGHT).await?;
        through.extend(self.get_through(&self.holder, &FORGES).await?);
        through.extend(self.get_through(&self.kubelet, &NO_KUBELET).await?);
        Ok(through)
    }

    async fn nothing_gets_through(&self, what: &str) -> Result<()> {
        until(what, IN_FORCE_WITHIN, || async {
            Ok(self.got_through().await?.is_empty().then_some(()))
        })
        .await
    }

    /// What of this somebody gets through with. Nothing of it is stored.
    async fn get_through(
        &self,
        who: &Person,
        attempts: &[&'static str],
    ) -> Result<BTreeSet<&'static str>> {
        let mut through = BTreeSet::new();
        for &attempt in attempts {
            match self.attempt(who, attempt).await? {
                Ok(_) => through.insert(attempt),
                // What is malformed would be refused of everybody.
                Err(kube::Error::Api(refusal)) if matches!(refusal.code, 403 | 422) => continue,
                Err(error) => bail!("{} {attempt}: {error}", who.name),
            };
        }
        Ok(through)
    }

    async fn attempt(&self, who: &Person, attempt: &str) -> Result<kube::Result<DynamicObject>> {
        let api = |kind: &str| remedy::custom(&who.client, kind);
        let (create, merge) = (
            PostParams { dry_run: true, ..PostParams::default() },
            PatchParams::default().dry_run(),
        );
        let plugin = async |spec: Value| {
            let spec = Patch::Merge(json!({"spec": spec}));
            api("FencePlugin").patch("lamp", &merge, &spec).await
        };
        let fetches = async |more: Value| {
            let mut oci = json!({"image": "registry.example.org/fence/lamp:1.0"});
            if let (Some(oci), Value::Object(more)) = (oci.as_object_mut(), more) {
                oci.extend(more);
            }
            plugin(json!({"source": {"configMap": null, "oci": oci}})).await
        };
        let confirmed = |name: &str| format!("{}/boot/{name}", self.uid);
        let says = async |word: &str, value: &str| {
            let key = format!("node-remedy.io/{word}");
            let word = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
            api("NodeFence").patch("w1-1", &merge, &word).await
        };
        Ok(match attempt {
            "begins an incident" => {
                let mut another = nodefence()?;
                another.metadata.name = Some("w1-2".to_owned());
                api("NodeFence").create(&create, &another).await
            }
            "writes a record" => {
                let record = Patch::Merge(json!({"status": record("boot")}));
                api("NodeFence").patch_status("w1-1", &merge, &record).await
            }
            "retry" | "abort" | "approve" | "ack" => says(attempt, &self.uid).await,
            "confirm-off" => says(attempt, &confirmed(who.name)).await,
            "confirms off as bob" => says("confirm-off", &confirmed("bob")).await,
            "pauses as bob" => api("RemedyPause").create(&create, &pause("bob")?).await,
            "grants a plugin an address" => {
                plugin(json!({"grants": [{"cidrs": ["192.0.2.0/24"]}]})).await
            }
            "lets others sign a plugin" => {
                let keys = ["-----BEGIN PUBLIC KEY-----"];
                plugin(json!({"verify": {"policy": "require", "keys": keys}})).await
            }
            "gives a plugin more room" => {
                plugin(json!({"limits": {"componentBytes": 25_165_824}})).await
            }
            "fetches a plugin by way of a mirror" => {
                fetches(json!({"mirror": "10.0.0.1:5000"})).await
            }
            "fetches a plugin without TLS" => fetches(json!({"plainHttp": true})).await,
            "fetches a plugin with an account" => fetches(json!({"pullSecret": "account"})).await,
            "fetches a plugin by another authority" => {
                fetches(json!({"tls": {"caBundle": "-----BEGIN CERTIFICATE-----"}})).await
            }
            "grants a method an address" => {
                let spec = Patch::Merge(json!({"spec": {"grants": []}}));
                api("FenceConfiguration").patch(remedy::FENCE, &merge, &spec).await
            }
            "trusts what a node says" => {
                let fields = json!(["${node.annotations['other']}"]);
                let spec = Patch::Merge(json!({"spec": {"trustedNodeFields": fields}}));
                api("FenceConfiguration").patch(remedy::FENCE, &merge, &spec).await
            }
            "labels" | "annotations" | "labels by status" | "annotations by status" => {
                let (field, by_status) =
                    attempt.split_once(' ').map_or((attempt, false), |(field, _)| (field, true));
                let ours = Patch::Merge(json!({"metadata": {field: {"node-remedy.io/ours": "x"}}}));
                let nodes = ApiResource::erase::<Node>(&());
                let nodes = Api::<DynamicObject>::all_with(who.client.clone(), &nodes);
                if by_status {
                    nodes.patch_status(&self.node, &merge, &ours).await
                } else {
                    nodes.patch(&self.node, &merge, &ours).await
                }
            }
            other => bail!("no attempt {other:?}"),
        })
    }
}
