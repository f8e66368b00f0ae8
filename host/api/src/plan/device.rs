//! The device that a method names, and where it is not to stand.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::plan::plugins::is_cloud;

/// The name of the method that is off and on of the node's own cloud instance.
pub(crate) const RESTART_INSTANCE: &str = "restart-instance";

/// The network of one address.
pub(crate) fn only(address: IpAddr) -> String {
    match address {
        IpAddr::V4(ip) => format!("{ip}/32"),
        IpAddr::V6(ip) => format!("{ip}/128"),
    }
}

/// Methods that speak to one address speak to one device. In a cloud, or behind what manages many
/// hypervisors, whatever its address, each machine is its own: they need not wait for each other, and one that does not start again says
/// nothing of the others.
pub(crate) fn device(
    plugin: Option<&str>,
    plug: &str,
    parameters: &BTreeMap<String, String>,
) -> String {
    match (plugin, parameters.get("address")) {
        (Some(plugin), _) if is_cloud(plugin) && !plug.is_empty() => format!("{plugin}/{plug}"),
        (Some(plugin), Some(address)) => format!("{plugin}/{address}"),
        (Some(plugin), None) => plugin.to_owned(),
        (None, _) => String::new(),
    }
}
