//! What fence agents call their parameters, and what each is to us: taken, refused with what to write in
//! its place, or of no effect here, which is said. Which names agents have, their own metadata says; a
//! test holds this table against it. Not here: what our plugins do with their parameters.

/// What a parameter of a fence agent is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A parameter of the plugin, by its own name.
    Parameter(&'static str),
    /// A parameter that is handed on under a name derived from its own.
    HandOn,
    /// The port of the address.
    Port,
    /// The plug.
    Plug,
    /// The path of the one system of a BMC.
    System,
    /// The action.
    Action,
    /// The user name, literally.
    User,
    /// The password, literally.
    Password,
    /// The name of a Secret.
    Secret,
    /// The Secret's key with the user name.
    IdentityKey,
    /// The Secret's key with the password.
    SecretKey,
    /// It must be one of these words, in small letters, because nothing else is done; what is expected.
    Given(&'static [&'static str], &'static str),
    /// It has no effect here: time-outs, paths of programs and the like are the host's.
    Ignored,
    /// It is refused, with what to do in its place.
    Refused(&'static str),
    /// Nobody knows it.
    Unknown,
}

type Table = &'static [(&'static str, Meaning)];

const YES: &[&str] = &["yes", "true", "1", "on"];
const NO: &[&str] = &["no", "false", "0", "off"];

/// Names that fence agents share, old and new.
const COMMON: Table = &[
    ("address", Meaning::Parameter("address")),
    ("ip", Meaning::Parameter("address")),
    ("ipaddr", Meaning::Parameter("address")),
    ("ipaddress", Meaning::Parameter("address")),
    ("ipport", Meaning::Port),
    ("plug", Meaning::Plug),
    ("port", Meaning::Plug),
    ("action", Meaning::Action),
    ("option", Meaning::Action),
    ("login", Meaning::User),
    ("user", Meaning::User),
    ("username", Meaning::User),
    ("passwd", Meaning::Password),
    ("password", Meaning::Password),
    ("secret", Meaning::Secret),
    ("identity_key", Meaning::IdentityKey),
    ("secret_key", Meaning::SecretKey),
    ("passwd_script", NO_SCRIPT),
    ("password_script", NO_SCRIPT),
    ("timeout", Meaning::Ignored),
    ("power_timeout", Meaning::Ignored),
    ("power_wait", Meaning::Ignored),
    ("shell_timeout", Meaning::Ignored),
    ("login_timeout", Meaning::Ignored),
    ("retry_on", Meaning::Ignored),
    ("delay", Meaning::Ignored),
    ("verbose", Meaning::Ignored),
];

/// What every agent has beside them; a plugin from outside may call a parameter of its own so.
const AGENT: Table = &[
    ("port_as_ip", Meaning::Given(NO, "no: the device is ip=, the plug is plug=")),
    ("missing_as_off", Meaning::Given(NO, "no: not found does not mean off")),
    ("method", Meaning::Given(&["onoff"], "onoff: a machine is switched off and on, never cycled")),
    ("stonith_status_sleep", Meaning::Ignored),
    ("disable_timeout", Meaning::Ignored),
    ("quiet", Meaning::Ignored),
    ("verbose_level", Meaning::Ignored),
    ("debug", Meaning::Ignored),
    ("debug_file", Meaning::Ignored),
    ("help", Meaning::Ignored),
    ("version", Meaning::Ignored),
    ("separator", Meaning::Ignored),
    ("plug_separator", Meaning::Ignored),
];

const NO_SCRIPT: Meaning = Meaning::Refused("secret=NAME of a Secret: no script is run");
const NO_COMMUNITY: Meaning =
    Meaning::Refused("a FenceConfiguration with a credential named community");
const NO_PRIVACY: Meaning =
    Meaning::Refused("a FenceConfiguration with a credential named privacy");

/// Of agents that speak TLS.
const TLS: Table = &[
    ("ssl", Meaning::Given(YES, "yes: nothing is sent without TLS")),
    ("ssl_secure", Meaning::Given(YES, "yes; for no check of the certificate a grant's tls")),
    ("ssl_insecure", Meaning::Refused("tls in the grants of a FenceConfiguration")),
    ("notls", Meaning::Given(NO, "no: nothing older than TLS 1.2 is spoken")),
    ("gnutlscli_path", Meaning::Ignored),
];

/// Of agents that log in to a shell.
const SHELL: Table = &[
    ("secure", Meaning::Ignored),
    ("ssh", Meaning::Ignored),
    ("ssh_options", Meaning::Ignored),
    ("ssh_path", Meaning::Ignored),
    ("telnet_path", Meaning::Ignored),
    ("identity_file", Meaning::Ignored),
    ("command_prompt", Meaning::Ignored),
    ("cmd_prompt", Meaning::Ignored),
    ("inet4_only", Meaning::Ignored),
    ("inet6_only", Meaning::Ignored),
    ("sudo", Meaning::Ignored),
    ("use_sudo", Meaning::Ignored),
    ("sudo_path", Meaning::Ignored),
    ("switch", Meaning::Refused("UNIT.OUTLET as the plug")),
];

const IPMI: Table = &[
    ("lanplus", Meaning::Given(YES, "IPMI 2.0 (lanplus=1): the older protocol proves nothing")),
    ("cipher", Meaning::Parameter("cipher-suite")),
    ("cipher_suite", Meaning::Parameter("cipher-suite")),
    ("privlvl", Meaning::Parameter("privilege-level")),
    ("privilege_level", Meaning::Parameter("privilege-level")),
    // IPMI 2.0 authenticates by its cipher suite.
    ("auth", Meaning::Ignored),
    ("hexadecimal_kg", Meaning::Refused("a FenceConfiguration with a credential named kg")),
    ("target", Meaning::Refused("the address of that very BMC: no BMC is reached through another")),
    ("ipmitool_path", Meaning::Ignored),
    ("ipmitool_timeout", Meaning::Ignored),
    ("sudo", Meaning::Ignored),
    ("use_sudo", Meaning::Ignored),
    ("sudo_path", Meaning::Ignored),
];

const REDFISH: Table = &[
    ("systems_uri", Meaning::System),
    ("redfish_uri", Meaning::Given(&["/redfish/v1", "/redfish/v1/"], "/redfish/v1")),
];

const SNMP: Table = &[
    ("version", Meaning::Parameter("version")),
    ("snmp_version", Meaning::Parameter("version")),
    ("snmp_sec_level", Meaning::Parameter("security-level")),
    ("snmp_auth_prot", Meaning::Parameter("auth-protocol")),
    ("snmp_priv_prot", Meaning::Parameter("privacy-protocol")),
    ("community", NO_COMMUNITY),
    ("snmp_priv_passwd", NO_PRIVACY),
    ("snmp_priv_passwd_script", NO_SCRIPT),
    ("snmpget_path", Meaning::Ignored),
    ("snmpset_path", Meaning::Ignored),
    ("snmpwalk_path", Meaning::Ignored),
];

/// Its port is one that is listened on.
const KDUMP: Table = &[
    ("nodename", Meaning::Parameter("address")),
    ("port", Meaning::Parameter("port")),
    ("ipport", Meaning::Parameter("port")),
    ("family", Meaning::Ignored),
    ("usage", Meaning::Ignored),
];

const AWS: Table = &[
    ("access_key", Meaning::User),
    ("boto3_debug", Meaning::Ignored),
    ("filter", Meaning::Ignored),
];

const GCE: Table = &[
    ("baremetalsolution", Meaning::Given(NO, "no: only Compute Engine is spoken to")),
    ("serviceaccount", Meaning::Refused("the key of the service account as the password")),
    ("plugzonemap", Meaning::Refused("zone=, in a method for each zone")),
    ("proxyhost", Meaning::Refused("no proxy: none is spoken to")),
    ("proxyport", Meaning::Refused("no proxy: none is spoken to")),
    ("apitimeout", Meaning::Ignored),
    ("earlyexit", Meaning::Ignored),
    ("errortimeout", Meaning::Ignored),
    ("retries", Meaning::Ignored),
    ("retrysleep", Meaning::Ignored),
    ("runonfail", Meaning::Ignored),
    ("runonwarn", Meaning::Ignored),
    ("stackdriver_logging", Meaning::Ignored),
    ("warntimeout", Meaning::Ignored),
];

const AZURE: Table = &[
    ("tenantid", Meaning::Parameter("tenant")),
    ("subscriptionid", Meaning::Parameter("subscription")),
    ("resourcegroup", Meaning::Parameter("resource-group")),
    ("cloud", Meaning::Refused("address=, login-address= and scope= of that cloud")),
    ("msi", Meaning::Given(NO, "no: an application with a secret authenticates")),
    ("network_fencing", Meaning::Given(NO, "no: the power is switched")),
];

const OPENSTACK: Table = &[
    ("auth_url", Meaning::Parameter("auth-url")),
    ("project_name", Meaning::Parameter("project")),
    ("user_domain_name", Meaning::Parameter("user-domain")),
    ("project_domain_name", Meaning::Parameter("project-domain")),
    ("uuid", Meaning::Plug),
    ("cloud", Meaning::Refused("auth-url=, project= and the domains")),
    ("openrc", Meaning::Refused("auth-url=, project= and the domains")),
    ("cacert", Meaning::Refused("tls in the grants of a FenceConfiguration")),
    ("apitimeout", Meaning::Ignored),
];

const VMWARE: Table = &[
    ("api_path", Meaning::Given(&["/rest"], "/rest; the parameter api says which API is spoken")),
    ("filter", Meaning::Ignored),
    ("exec", Meaning::Ignored),
    ("vmware_type", Meaning::Ignored),
    ("vmware_datacenter", Meaning::Refused("the machine's UUID as the plug")),
];

const OVIRT: Table = &[
    ("api_path", Meaning::Given(&["/ovirt-engine/api"], "/ovirt-engine/api")),
    ("api_version", Meaning::Ignored),
    ("cookie_file", Meaning::Ignored),
    ("use_cookies", Meaning::Ignored),
    ("disable_http_filter", Meaning::Ignored),
];

/// A guest's number is its own in the whole cluster, whichever node it is on and of whichever type it is.
const PROXMOX: Table = &[
    ("pve_node", Meaning::Ignored),
    ("pve_node_auto", Meaning::Ignored),
    ("node_name", Meaning::Ignored),
    ("vmtype", Meaning::Ignored),
];

/// Whether a plugin speaks SNMP.
pub(super) fn speaks_snmp(plugin: &str) -> bool {
    ["apc-pdu", "eaton-pdu", "snmp-switch"].contains(&plugin)
}

/// The tables of a plugin's names, the most particular first.
fn tables(plugin: &str) -> [Table; 5] {
    let [own, connection, other]: [Table; 3] = match plugin {
        "ipmi" => [IPMI, &[], &[]],
        "kdump" => [KDUMP, &[], &[]],
        "redfish" => [REDFISH, TLS, &[]],
        plugin if speaks_snmp(plugin) => [SNMP, SHELL, &[]],
        "brocade" | "libvirt" => [&[], SHELL, &[]],
        "aws" => [AWS, &[], &[]],
        "gce" => [GCE, &[], &[]],
        "azure" => [AZURE, &[], &[]],
        "openstack" => [OPENSTACK, TLS, &[]],
        "vmware" => [VMWARE, TLS, SHELL],
        "ovirt" => [OVIRT, TLS, &[]],
        "proxmox" => [PROXMOX, TLS, &[]],
        _ => return [&[], &[], &[], &[], COMMON],
    };
    [own, connection, other, AGENT, COMMON]
}

/// What `name` means for a plugin.
pub fn meaning(plugin: &str, name: &str) -> Meaning {
    let name = name.replace('-', "_").to_lowercase();
    let found = known(plugin).find(|(known, _)| *known == name);
    match found {
        Some((_, meaning)) => meaning.clone(),
        None if plugin == "ipmi" => Meaning::Unknown,
        None => Meaning::HandOn,
    }
}

/// Every name that a plugin's configuration may use, with what it means.
pub fn known(plugin: &str) -> impl Iterator<Item = &'static (&'static str, Meaning)> + Clone {
    tables(plugin).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plugins;

    #[test]
    fn agents_that_speak_snmp_are_understood() {
        for plugin in ["apc-pdu", "eaton-pdu", "snmp-switch"] {
            assert_eq!(meaning(plugin, "snmp_version"), Meaning::Parameter("version"));
            assert_eq!(meaning(plugin, "snmp-auth-prot"), Meaning::Parameter("auth-protocol"));
            assert_eq!(meaning(plugin, "poe-port"), Meaning::HandOn);
            assert!(matches!(meaning(plugin, "community"), Meaning::Refused(_)));
        }
        assert_eq!(meaning("aws", "community"), Meaning::HandOn);
    }

    #[test]
    fn the_page_names_every_parameter() {
        const PAGE: &str = include_str!("../../../../docs/fence-agents.md");
        let plugins = plugins::agents().map(|(_, plugin)| plugin);
        for (name, meaning) in plugins.flat_map(known) {
            let told = format!("`{name}`");
            assert!(PAGE.contains(&told), "{told} is not on docs/fence-agents.md");
            let (Meaning::Refused(what) | Meaning::Given(_, what)) = meaning else { continue };
            assert!(PAGE.contains(&format!("{told}: {what}")), "{told}: {what}");
        }
    }

    /// Each names another machine than the one that would be switched, or calls it off unread.
    #[test]
    fn what_would_reach_another_machine_is_never_left_out() {
        for (plugin, name) in [
            ("ipmi", "target"),
            ("apc-pdu", "switch"),
            ("vmware", "vmware_datacenter"),
            ("gce", "plugzonemap"),
            ("azure", "cloud"),
        ] {
            assert!(matches!(meaning(plugin, name), Meaning::Refused(_)), "{plugin} {name}");
        }
        for (plugin, name) in [("ipmi", "port_as_ip"), ("libvirt", "missing_as_off")] {
            assert!(matches!(meaning(plugin, name), Meaning::Given(NO, _)), "{plugin} {name}");
        }
    }
}
