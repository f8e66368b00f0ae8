//! What the historical configurations call our plugins and their parameters. It knows names, not
//! what plugins do: a manifest says that, and the host checks parameters against it.

use super::agents::speaks_snmp;
use crate::nodefence::Action;

/// A plugin under the names that configurations use for it.
struct Known {
    plugin: &'static str,
    /// Whether it switches power, so that a stage with it belongs to power management.
    power: bool,
    agents: &'static [&'static str],
}

const KNOWN: &[Known] = &[
    Known {
        plugin: "ipmi",
        power: true,
        agents: &[
            "fence_ipmilan",
            "fence_ipmilanplus",
            "fence_idrac",
            "fence_ilo3",
            "fence_ilo4",
            "fence_ilo5",
            "fence_imm",
        ],
    },
    Known { plugin: "redfish", power: true, agents: &["fence_redfish"] },
    Known { plugin: "apc-pdu", power: true, agents: &["fence_apc_snmp", "fence_apc"] },
    Known { plugin: "eaton-pdu", power: true, agents: &["fence_eaton_snmp"] },
    Known { plugin: "aws", power: true, agents: &["fence_aws"] },
    Known { plugin: "gce", power: true, agents: &["fence_gce"] },
    Known { plugin: "azure", power: true, agents: &["fence_azure_arm"] },
    Known { plugin: "openstack", power: true, agents: &["fence_openstack"] },
    Known {
        plugin: "vmware",
        power: true,
        agents: &["fence_vmware_rest", "fence_vmware_soap", "fence_vmware"],
    },
    Known { plugin: "ovirt", power: true, agents: &["fence_rhevm"] },
    Known { plugin: "proxmox", power: true, agents: &["fence_pve"] },
    Known { plugin: "libvirt", power: true, agents: &["fence_virsh"] },
    Known { plugin: "webhook", power: true, agents: &[] },
    Known { plugin: "brocade", power: false, agents: &["fence_brocade"] },
    // No agent speaks REST; by its own name, in a stage that isolates.
    Known { plugin: "brocade-rest", power: false, agents: &[] },
    Known { plugin: "snmp-switch", power: false, agents: &["fence_ifmib"] },
    Known { plugin: "kdump", power: false, agents: &["fence_kdump"] },
];

/// The plugin behind a name: a fence agent's, or the plugin's own. `None`: a fence agent for which
/// there is no plugin.
pub fn plugin_of(name: &str) -> Option<String> {
    let agent = name.replace('-', "_").to_lowercase();
    match KNOWN.iter().find(|known| known.plugin == name || known.agents.contains(&agent.as_str()))
    {
        Some(known) => Some(known.plugin.to_owned()),
        // Whatever else is named is a plugin that the admin brings along.
        None if !agent.starts_with("fence_") => Some(name.to_owned()),
        None => None,
    }
}

/// The agents that our plugins stand for, each with its plugin.
pub fn agents() -> impl Iterator<Item = (&'static str, &'static str)> {
    KNOWN.iter().flat_map(|known| known.agents.iter().map(|agent| (*agent, known.plugin)))
}

/// Whether a plugin switches power; `None` for one that only its manifest knows.
pub(super) fn switches_power(plugin: &str) -> Option<bool> {
    KNOWN.iter().find(|known| known.plugin == plugin).map(|known| known.power)
}

/// The plugin for the instance behind a `spec.providerID`.
pub(super) fn plugin_of_provider(provider_id: &str) -> Option<&'static str> {
    match provider_id.split_once("://")?.0 {
        "aws" => Some("aws"),
        "gce" => Some("gce"),
        "azure" => Some("azure"),
        "openstack" => Some("openstack"),
        "vsphere" => Some("vmware"),
        "libvirt" => Some("libvirt"),
        "proxmox" => Some("proxmox"),
        _ => None,
    }
}

/// Whether a plugin is one that comes with node-remedy.
pub(super) fn is_built_in(plugin: &str) -> bool {
    // An agent's plugin that the admin has to bring along.
    plugin != "brocade" && KNOWN.iter().any(|known| known.plugin == plugin)
}

/// Whether a plugin only sees: it is asked for no action, and is no step of its own.
pub(super) fn only_watches(plugin: &str) -> bool {
    plugin == "kdump"
}

/// Whether what a plugin speaks to manages many machines at once, and so is no device that can be busy or
/// broken as one: a cloud, or what stands before many hypervisors.
pub fn is_cloud(plugin: &str) -> bool {
    matches!(plugin, "aws" | "gce" | "azure" | "openstack" | "vmware" | "ovirt" | "proxmox")
}

/// A parameter that a plugin needs before it can read a plug, where the plug is a `spec.providerID`
/// that tells it: requests to Amazon are signed for a region.
pub(super) fn told_by_plug(plugin: &str, plug: &str) -> Option<(&'static str, String)> {
    let path = plug.strip_prefix("aws://").filter(|_| plugin == "aws")?;
    let (zone, _instance) = path.trim_start_matches('/').rsplit_once('/')?;
    Some(("region", region_of(zone)?.to_owned()))
}

/// The region of an Amazon zone: all up to its first number. `eu-west-1a`, `us-west-2-lax-1a`.
fn region_of(zone: &str) -> Option<&str> {
    let number = zone.find(|letter: char| letter.is_ascii_digit())?;
    let rest = zone.get(number..)?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
    zone.get(..number + digits)
}

/// A value of a fence agent as the plugin's parameter of this name writes it.
pub fn value_of(plugin: &str, parameter: &str, value: &str) -> String {
    if plugin == "ipmi" && parameter == "privilege-level" {
        return value.to_lowercase();
    }
    if speaks_snmp(plugin) && SNMP_WORDS.contains(&parameter) {
        return snmp_value(value);
    }
    value.to_owned()
}

/// Parameters whose values agents that speak SNMP write otherwise.
const SNMP_WORDS: [&str; 3] = ["security-level", "auth-protocol", "privacy-protocol"];

/// A value of the agents that speak SNMP as our methods write it.
fn snmp_value(value: &str) -> String {
    match value.to_lowercase().as_str() {
        "sha" => "sha1".to_owned(),
        "aes" => "aes128".to_owned(),
        "noauthnopriv" => "no-auth-no-priv".to_owned(),
        "authnopriv" => "auth-no-priv".to_owned(),
        "authpriv" => "auth-priv".to_owned(),
        // What is taken from the node is written as it must be.
        _ if value.contains("${") => value.to_owned(),
        other => other.to_owned(),
    }
}

/// Whether what stands behind a name is not to be repeated.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.replace('-', "_").to_lowercase();
    ["passwd", "password", "community", "snmp_priv_passwd"].contains(&name.as_str())
}

/// The two actions that a method of a plan can have been written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ActionSet {
    pub(super) off: bool,
    pub(super) on: bool,
    pub(super) reset: bool,
}

impl ActionSet {
    pub(super) fn of(action: Action) -> Self {
        Self {
            off: action == Action::Off,
            on: action == Action::On,
            reset: action == Action::Reset,
        }
    }

    pub(super) const REBOOT: Self = Self { off: true, on: true, reset: false };

    pub(super) fn or(self, other: Self) -> Self {
        Self {
            off: self.off || other.off,
            on: self.on || other.on,
            reset: self.reset || other.reset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_agents_that_speak_snmp_are_understood() {
        let values = ["MD5", "SHA", "AES", "DES", "authPriv", "noAuthNoPriv", "2c"].map(snmp_value);
        assert_eq!(values, ["md5", "sha1", "aes128", "des", "auth-priv", "no-auth-no-priv", "2c"]);
        assert_eq!(snmp_value("${inventory['Auth']}"), "${inventory['Auth']}");
        assert!(is_secret("community") && is_secret("snmp_priv_passwd") && !is_secret("plug"));
    }

    #[test]
    fn the_region_is_told_by_the_zone() {
        for (plug, region) in [
            ("aws:///eu-west-1a/i-0abc", Some("eu-west-1")),
            ("aws://eu-west-1a/i-0abc", Some("eu-west-1")),
            ("aws:///us-gov-east-1c/i-0abc", Some("us-gov-east-1")),
            ("aws:///us-west-2-lax-1a/i-0abc", Some("us-west-2")),
            ("aws:///eu-west-1/i-0abc", None),
            ("aws:///i-0abc", None),
            ("i-0abc", None),
            ("gce://p/europe-west1-b/n", None),
        ] {
            let told = region.map(|region| ("region", region.to_owned()));
            assert_eq!(told_by_plug("aws", plug), told, "{plug}");
        }
        assert_eq!(told_by_plug("mine", "aws:///eu-west-1a/i-0abc"), None);
    }
}
