//! The parameters of the built-in method `network-fence`, and the part of csi-addons' NetworkFence that it
//! writes and reads. Nothing here speaks to an API server.
//!
//! The object is that of `config/crd/bases/csiaddons.openshift.io_networkfences.yaml` in the Go module
//! `github.com/csi-addons/kubernetes-csi-addons` v0.13.0.

use std::collections::BTreeMap;
use std::net::IpAddr;

use kube::CustomResource;
use serde::{Deserialize, Serialize};

use super::expression::NodeFacts;
use super::grants::is_cidr;
use crate::limits;
use crate::plan::device::only;

/// The parameter that names the NetworkFenceClass, which says what the next three do.
pub const CLASS: &str = "networkFenceClass";
/// The parameter that names the CSI driver which is asked.
pub const DRIVER: &str = "driver";
/// The parameter that names the Secret which the driver needs; we never read it.
pub const SECRET_NAME: &str = "secretName";
/// The parameter that says where that Secret stands.
pub const SECRET_NAMESPACE: &str = "secretNamespace";
/// The parameter that lists what is fenced; default: every InternalIP of the node.
pub const CIDRS: &str = "cidrs";
/// What `status.result` says when csi-addons did what `spec.fenceState` asks.
pub const SUCCEEDED: &str = "Succeeded";
/// What `status.message` says when the last success was an unfence.
pub const UNFENCED_MESSAGE: &str = "unfencing operation successful";

/// What a class says, and a method without a class.
const OF_CLASS: [&str; 3] = [DRIVER, SECRET_NAME, SECRET_NAMESPACE];

/// What is asked of a driver.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "csiaddons.openshift.io",
    version = "v1alpha1",
    kind = "NetworkFence",
    plural = "networkfences",
    status = "NetworkFenceStatus",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct NetworkFenceSpec {
    /// The CSI driver; empty where a class names it. It is written all the same, as the next one.
    #[serde(default)]
    pub driver: String,
    /// The class; empty where the driver is named. It is written all the same: csi-addons writes it when
    /// it adds its finalizer, and what it does not change leaves the generation at 1.
    #[serde(default)]
    pub network_fence_class_name: String,
    /// The networks that are kept away.
    #[serde(default)]
    pub cidrs: Vec<String>,
    /// What is wanted.
    #[serde(default)]
    pub fence_state: FenceState,
    /// What the driver needs for it.
    #[serde(default)]
    pub secret: FenceSecret,
    /// What else the driver asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// Whether networks are to be kept away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FenceState {
    /// They are.
    #[default]
    Fenced,
    /// They are let back.
    Unfenced,
}

/// Where the driver's Secret stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceSecret {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkFenceStatus {
    /// `Succeeded` or `Failed`; empty before the first try. It does not say of which `fenceState`.
    #[serde(default)]
    pub result: String,
    /// A sentence.
    #[serde(default)]
    pub message: String,
}

/// What the parameters of a method ask for; its `fenceState` is Fenced.
pub fn spec_of(parameters: &BTreeMap<String, String>) -> NetworkFenceSpec {
    let text = |name: &str| parameters.get(name).cloned().unwrap_or_default();
    let known = [CLASS, DRIVER, SECRET_NAME, SECRET_NAMESPACE, CIDRS];
    let others = parameters.iter().filter(|(name, _)| !known.contains(&name.as_str()));
    NetworkFenceSpec {
        driver: text(DRIVER),
        network_fence_class_name: text(CLASS),
        cidrs: text(CIDRS)
            .split([' ', ','])
            .filter(|one| !one.is_empty())
            .map(str::to_owned)
            .collect(),
        fence_state: FenceState::Fenced,
        secret: FenceSecret { name: text(SECRET_NAME), namespace: text(SECRET_NAMESPACE) },
        parameters: others.map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

/// What speaks against a method with these parameters, one sentence each: it names a class, or what a class
/// would say.
pub(super) fn refusals(has: impl Fn(&str) -> bool) -> Vec<String> {
    let wrong = OF_CLASS.into_iter().filter(|name| has(name) == has(CLASS));
    let say = |name: &str| {
        if has(CLASS) {
            format!("found {name} beside {CLASS}, expected one of them")
        } else {
            format!("found no {name}, expected one for a network-fence")
        }
    };
    wrong.map(say).collect()
}

/// Fills in what is fenced, and says what the device is called: no two nodes share one.
///
/// # Errors
/// What is missing or no network, as a sentence.
pub(super) fn complete(
    parameters: &mut BTreeMap<String, String>,
    node: &NodeFacts,
) -> Result<String, String> {
    if !parameters.contains_key(CIDRS) {
        if node.internal_ips.len() > limits::NODE_ADDRESSES_MAX {
            let max = limits::NODE_ADDRESSES_MAX;
            return Err(format!(
                "found a node with more than {max} InternalIPs, expected at most {max}, or cidrs"
            ));
        }
        let ips = node.internal_ips.iter().map(|text| {
            let ip = text.parse::<IpAddr>();
            ip.map(only).map_err(|_| format!("found InternalIP {text:?}, expected an address"))
        });
        let ips: Vec<String> = ips.collect::<Result<_, _>>()?;
        parameters.insert(CIDRS.to_owned(), ips.join(","));
    }
    let spec = spec_of(parameters);
    let is_empty = |name: &&&str| parameters.get(**name).is_none_or(String::is_empty);
    let has_class = parameters.contains_key(CLASS);
    let needed: &[&str] = if has_class { &[CLASS] } else { &OF_CLASS };
    if let Some(name) = needed.iter().find(is_empty) {
        return Err(format!("found an empty {name}, expected one"));
    }
    if let Some(found) = spec.cidrs.iter().find(|cidr| !is_cidr(cidr)) {
        return Err(format!("found cidrs {found:?}, expected networks such as 10.1.2.3/32"));
    }
    if spec.cidrs.is_empty() {
        return Err("found no cidrs and a node without InternalIP, expected one".to_owned());
    }
    let asked = if has_class { spec.network_fence_class_name } else { spec.driver };
    Ok(format!("network-fence/{asked}/{}", spec.cidrs.join(",")))
}
