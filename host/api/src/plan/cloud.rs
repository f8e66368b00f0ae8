//! What a node of a cloud needs of which nobody said anything: its plan by `spec.providerID`, a Secret by its usual
//! name, and the hosts of the provider's own API, as the plugin asks for them.

use std::collections::BTreeMap;

use super::expression::NodeFacts;
use super::plugins::{plugin_of_provider, told_by_plug};
use super::{Allows, Grant};
use crate::plan::device::{RESTART_INSTANCE, device};
use crate::plan::model::{
    Builtin, Credential, Method, NeededFor, NodePlan, Run, SecretPlace, Stage,
};

/// What stands for a plugin where nothing is said.
struct Usual {
    plugin: &'static str,
    /// In the controller's own namespace, as the examples have it.
    secret: &'static str,
    identity_key: &'static str,
    secret_key: &'static str,
    /// The defaults of its manifest's endpoints.
    hosts: &'static [&'static str],
}

const USUAL: [Usual; 3] = [
    Usual {
        plugin: "aws",
        secret: "aws-credentials",
        identity_key: "username",
        secret_key: "password",
        hosts: &["ec2.{region}.amazonaws.com", "autoscaling.{region}.amazonaws.com"],
    },
    Usual {
        plugin: "azure",
        secret: "azure-credentials",
        identity_key: "username",
        secret_key: "password",
        hosts: &["management.azure.com", "login.microsoftonline.com"],
    },
    Usual {
        plugin: "gce",
        secret: "gce-credentials",
        identity_key: "",
        secret_key: "key.json",
        hosts: &["compute.googleapis.com", "oauth2.googleapis.com"],
    },
];

fn usual(plugin: &str) -> Option<&'static Usual> {
    USUAL.iter().find(|usual| usual.plugin == plugin)
}

/// The plan of a cloud node for which nobody configured anything: cordon, restart the instance,
/// uncordon. `None` for a node whose provider has no plugin.
pub fn default_plan(node: &NodeFacts) -> Option<NodePlan> {
    let plugin = plugin_of_provider(&node.provider_id)?;
    let builtin = |name: &str, builtin| Method { builtin: Some(builtin), ..Method::named(name) };
    let stage = |name: &str, method| Stage {
        name: name.to_owned(),
        run: Run::All,
        needed_for: NeededFor::NextStep,
        methods: vec![method],
    };
    let parameters: BTreeMap<String, String> = told_by_plug(plugin, &node.provider_id)
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect();
    let restart = Method {
        plugin: Some(plugin.to_owned()),
        plug: node.provider_id.clone(),
        parameters,
        credentials: credentials(plugin),
        device: device(Some(plugin), &node.provider_id, &BTreeMap::new()),
        ..Method::named(RESTART_INSTANCE)
    };
    Some(NodePlan {
        sources: vec!["default for cloud nodes".to_owned()],
        grants: grant(&restart).into_iter().collect(),
        methods: vec![
            builtin("mark-unschedulable", Builtin::MarkUnschedulable),
            restart,
            builtin("mark-schedulable", Builtin::MarkSchedulable),
        ],
        isolation: vec![stage("isolation", 0)],
        power_management: vec![stage("power-management", 1)],
        recovery: vec![stage("recovery", 2)],
    })
}

/// Where the credential of a cloud usually stands; nowhere for a plugin that is none of a public cloud.
pub(super) fn credentials(plugin: &str) -> BTreeMap<String, Credential> {
    let place = |usual: &Usual| SecretPlace {
        namespace: String::new(),
        name: usual.secret.to_owned(),
        identity_key: usual.identity_key.to_owned(),
        secret_key: usual.secret_key.to_owned(),
    };
    let credential =
        |usual| ("default".to_owned(), Credential { secret: Some(place(usual)), config_map: None });
    usual(plugin).map(credential).into_iter().collect()
}

/// The provider's own API, for a method that names no other place; nothing where it lacks a parameter for it.
pub(super) fn grant(method: &Method) -> Option<Grant> {
    let plugin = method.plugin.as_deref()?;
    // A providerID is what a kubelet says of itself: what is no name of a region makes no host.
    let is_label = |text: &&str| {
        text.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-')
    };
    let region = method.parameters.get("region").map(String::as_str).filter(is_label);
    let host = |host: &&str| match region {
        Some(region) => Some(host.replace("{region}", region)),
        None => (!host.contains('{')).then(|| (*host).to_owned()),
    };
    let hosts: Option<Vec<String>> = usual(plugin)?.hosts.iter().map(host).collect();
    let allows = Allows { hosts: hosts?, ports: vec![443], ..Allows::default() };
    Some(Grant { plugin: plugin.to_owned(), allows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_id_names_no_host_of_its_own() {
        let grants_of = |provider_id: &str| {
            let node = NodeFacts { provider_id: provider_id.to_owned(), ..NodeFacts::default() };
            default_plan(&node).unwrap().grants
        };
        let hosts = &grants_of("aws:///eu-west-1a/i-1")[0].allows.hosts;
        assert_eq!(hosts[0], "ec2.eu-west-1.amazonaws.com");
        for zone in ["a.example.org:443", "a@b-1a", "a#-1a", "EU-1a", "ü-1a", "no-number"] {
            assert_eq!(grants_of(&format!("aws:///{zone}/i-1")), [], "{zone}");
        }
    }
}
