//! What an admin installs: resources, the Secret with the BMCs' password, and the configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::{Namespace, Node, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::Cluster;
use crate::controller::NAMESPACE;
use crate::ipmi::{PASSWORD, USERNAME};
use crate::process::repository;
use crate::time::until;

/// The Secret that `deploy/rbac.yaml` lets node-remedy read.
pub const SECRET: &str = "bmc-credentials";
/// The name of the one FenceConfiguration.
pub const FENCE: &str = "machines";
/// The name of the one RemedyConfiguration.
pub const REMEDY: &str = "lost-nodes";
/// The annotation that names a node's BMC.
pub const BMC_ANNOTATION: &str = "bmc";
/// The API server needs a moment to serve a new kind.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

/// How nodes are remedied.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The BMC's address by node name; not named here, a node's own.
    pub addresses: BTreeMap<String, String>,
    /// The plugin's parameter `cipher-suite`.
    pub cipher_suite: &'static str,
    /// What is watched for; its remedy is the fence, unless it names its own.
    pub threshold: Value,
    /// Remedies under names of their own.
    pub remedies: Value,
    /// The policy's numbers that differ from their defaults.
    pub policies: Value,
    /// `enforce` or `shadow`.
    pub mode: &'static str,
    /// Which nodes are watched.
    pub node_selector: &'static str,
    /// How machines are fenced, the `spec` of the FenceConfiguration; none: by their BMCs' IPMI.
    pub fence: Option<Value>,
    /// Methods beside the one that their BMCs' power is switched by, for remedies to name.
    pub methods: Vec<Value>,
}

impl Default for Installation {
    fn default() -> Self {
        Self {
            addresses: BTreeMap::new(),
            cipher_suite: "3",
            threshold: json!({
                "nodeConditionType": "Ready",
                "nodeConditionStatus": false,
                "nodeConditionPeriod": "1s",
            }),
            remedies: json!([]),
            policies: json!({}),
            mode: "enforce",
            node_selector: "kubernetes.io/os=linux",
            fence: None,
            methods: Vec::new(),
        }
    }
}

/// Installs everything and waits until the API server serves it.
pub async fn install(cluster: &Cluster, installation: &Installation) -> Result<()> {
    let client = cluster.client();
    install_resources(&client).await?;
    grant(&client).await?;
    let password = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET},
        "stringData": {"username": USERNAME, "password": PASSWORD},
    });
    apply(&Api::<Secret>::namespaced(client.clone(), NAMESPACE), password).await?;
    for (name, bmc) in &cluster.bmcs {
        let own = bmc.address();
        let address = installation.addresses.get(name).unwrap_or(&own);
        let patch = json!({"metadata": {"annotations": {BMC_ANNOTATION: address}}});
        let nodes = Api::<Node>::all(client.clone());
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    configure(cluster, installation).await
}

/// Creates one more Secret in the controller's namespace, which node-remedy may read.
pub async fn install_secret(cluster: &Cluster, name: &str, data: &Value) -> Result<()> {
    let client = cluster.client();
    create_namespaces(&client).await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data,
    });
    apply(&Api::<Secret>::namespaced(client.clone(), NAMESPACE), secret).await?;
    let role = format!("read-{name}");
    let rule = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": role},
        "rules": [{
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get"],
        }],
    });
    apply(&Api::<Role>::namespaced(client.clone(), NAMESPACE), rule).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "node-remedy", "namespace": NAMESPACE}],
    });
    apply(&Api::<RoleBinding>::namespaced(client.clone(), NAMESPACE), binding).await?;
    Ok(())
}

/// Writes the configuration, or edits it to what is said now.
pub async fn configure(cluster: &Cluster, installation: &Installation) -> Result<()> {
    let client = cluster.client();
    let ports: Vec<_> = cluster.bmcs.values().map(crate::Bmc::port).collect();
    let by_ipmi = || ipmi(installation, &ports);
    let fence = json!({
        "apiVersion": "node-remedy.io/v1alpha1",
        "kind": "FenceConfiguration",
        "metadata": {"name": FENCE},
        "spec": installation.fence.clone().unwrap_or_else(by_ipmi),
    });
    apply(&custom(&client, "FenceConfiguration"), fence).await?;
    configure_policy(cluster, installation).await
}

/// Writes the policy, and leaves how machines are fenced as it is.
pub async fn configure_policy(cluster: &Cluster, installation: &Installation) -> Result<()> {
    let remedy = remedy_configuration(installation);
    apply(&custom(&cluster.client(), "RemedyConfiguration"), remedy).await?;
    Ok(())
}

/// Deletes the configuration.
pub async fn unconfigure(cluster: &Cluster) -> Result<()> {
    let client = cluster.client();
    for (kind, name) in [("RemedyConfiguration", REMEDY), ("FenceConfiguration", FENCE)] {
        custom(&client, kind).delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

async fn create_namespaces(client: &Client) -> Result<()> {
    for name in [NAMESPACE, "medik8s-leases"] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        apply(&Api::<Namespace>::all(client.clone()), namespace).await?;
    }
    Ok(())
}

/// Gives node-remedy its namespaces and the rights of `deploy/rbac.yaml`, no more and no less, what it is queued as
/// and keeps, and people's words the policies of `deploy/admission.yaml`.
pub async fn grant(client: &Client) -> Result<()> {
    create_namespaces(client).await?;
    for file in ["rbac.yaml", "admission.yaml", "flowcontrol.yaml", "identities.yaml"] {
        let text = std::fs::read_to_string(repository().join("deploy").join(file))?;
        apply_all(client, &text).await.with_context(|| format!("failed to apply {file}"))?;
    }
    Ok(())
}

/// Creates one more Secret of this type in the controller's namespace, and no right to read it.
pub async fn install_secret_of(
    client: &Client,
    name: &str,
    kind: &str,
    data: &Value,
) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind,
        "stringData": data,
    });
    apply(&Api::<Secret>::namespaced(client.clone(), NAMESPACE), secret).await?;
    Ok(())
}

/// Gives node-remedy what `node-remedy rbac` prints with these options, too.
pub async fn grant_more(client: &Client, options: &[&str]) -> Result<()> {
    let secret = format!("--secret={SECRET}");
    let mut command = std::process::Command::new(crate::Controller::binary());
    let printed = command.args(["rbac", &secret]).args(options).output()?;
    ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    apply_all(client, &String::from_utf8(printed.stdout)?).await
}

/// Applies every object of a file.
pub async fn apply_all(client: &Client, text: &str) -> Result<()> {
    for object in serde_saphyr::from_multiple::<DynamicObject>(text)? {
        let types = object.types.clone().context("an object without a kind")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
        let api = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => Api::<DynamicObject>::all_with(client.clone(), &resource),
        };
        apply(&api, serde_json::to_value(object)?).await?;
    }
    Ok(())
}

/// The one NodeFence of a node, once there is one.
pub async fn incident(client: &Client, node: &str) -> Result<Option<DynamicObject>> {
    let mut found = incidents(client, node).await?;
    if found.len() > 1 {
        bail!("{node} has {} incidents: {found:#?}", found.len());
    }
    Ok(found.pop())
}

/// All NodeFences of a node.
pub async fn incidents(client: &Client, node: &str) -> Result<Vec<DynamicObject>> {
    let list = custom(client, "NodeFence").list(&ListParams::default()).await?;
    let of_node = |object: &DynamicObject| {
        object.data.pointer("/spec/node/name").and_then(Value::as_str) == Some(node)
    };
    Ok(list.into_iter().filter(of_node).collect())
}

/// All of our kinds as the API server has them, untyped: the tests read what users read.
pub fn custom(client: &Client, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("node-remedy.io", "v1alpha1", kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// What stands in deploy/crds, as `kubectl apply -f deploy/crds` would; waits until it is served.
pub async fn install_resources(client: &Client) -> Result<()> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(repository().join("deploy/crds"))? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        let resource: Value = serde_saphyr::from_str(&text)
            .with_context(|| format!("failed to read {}", path.display()))?;
        names.push(apply(&api, resource).await?);
    }
    for name in &names {
        until(&format!("{name} is served"), SERVED_WITHIN, || async {
            let status = api.get(name).await?.status.and_then(|status| status.conditions);
            let mut conditions = status.into_iter().flatten();
            let is_served = |kind: &str, status: &str| kind == "Established" && status == "True";
            let found = conditions.any(|condition| is_served(&condition.type_, &condition.status));
            Ok(found.then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// Server-side apply; answers the object's name.
async fn apply<K>(api: &Api<K>, object: Value) -> Result<String>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let name = name.context("an object without a name")?.to_owned();
    let parameters = PatchParams::apply("admin").force();
    let applied = api.patch(&name, &parameters, &Patch::Apply(object)).await;
    applied.with_context(|| format!("failed to apply {name}"))?;
    Ok(name)
}

/// Each machine by its BMC, whose address its node's annotation is.
fn ipmi(installation: &Installation, ports: &[u16]) -> Value {
    let mut methods = vec![json!({"name": "power-cycle", "template": "bmc", "action": "reboot"})];
    methods.extend(installation.methods.iter().cloned());
    json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "trustedNodeFields": [format!("${{node.annotations['{BMC_ANNOTATION}']}}")],
        "templates": [{
            "name": "bmc",
            "plugin": "ipmi",
            "parameters": {
                "address": format!("${{node.annotations['{BMC_ANNOTATION}']}}"),
                "cipher-suite": installation.cipher_suite,
            },
            "credentials": [{"secret": SECRET}],
        }],
        "methods": methods,
        "powerManagement": [{"name": "power", "methods": ["power-cycle"]}],
        "grants": [{"plugin": "ipmi", "cidrs": ["127.0.0.1/32"], "ports": ports}],
    })
}

fn remedy_configuration(installation: &Installation) -> Value {
    let mut threshold = installation.threshold.clone();
    if let Some(fields) = threshold.as_object_mut() {
        fields.entry("remedy1").or_insert_with(|| json!([{"name": "fence"}]));
    }
    json!({
        "apiVersion": "node-remedy.io/v1alpha1",
        "kind": "RemedyConfiguration",
        "metadata": {"name": REMEDY},
        "spec": {
            "mode": installation.mode,
            "nodeSelector": installation.node_selector,
            "thresholdConfigs": [threshold],
            "remedyConfigs": installation.remedies,
            "policies": installation.policies,
        },
    })
}

/// A field of a NodeFence's status, by JSON pointer; null where it has none.
#[must_use]
pub fn status<'a>(incident: &'a DynamicObject, pointer: &str) -> &'a Value {
    incident.data.pointer(&format!("/status{pointer}")).unwrap_or(&Value::Null)
}

/// Whether a NodeFence is in this phase.
#[must_use]
pub fn is_in_phase(incident: &DynamicObject, phase: &str) -> bool {
    status(incident, "/phase") == phase
}

/// An incident in one line, for messages.
#[must_use]
pub fn describe(incident: &DynamicObject) -> String {
    let fields = ["/step", "/status", "/phase", "/finalReason", "/parked"];
    let fields = fields.map(|field| status(incident, field).to_string());
    format!("{}: {}", incident.name_any(), fields.join(" "))
}
