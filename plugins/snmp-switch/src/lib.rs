//! The network of a machine through a port of its switch: IF-MIB over SNMP, and with it the port's
//! power where that is wanted (POWER-ETHERNET-MIB).
//!
//! One call: find the port that the plug names, do one thing, read back.
//!
//! * `port`: which port it is, by name, alias, description or index, and never by guess; what it
//!   reads, and what is written
//! * here: what is asked for
//!
//! Cut is what was read afterwards: `ifAdminStatus` down *and* `ifOperStatus` no longer up. What was
//! asked for is not what is.
//!
//! What this deliberately is not: VLANs, access lists, or link aggregation. A port of a bundle is one
//! port; a machine on several needs several methods.

mod limits;
mod port;

use node_remedy_plugin_snmp::{Session, carry_out};
use node_remedy_sdk::{
    Failure, FenceMethod, Host, Outcome, PlugInfo, PlugsRequest, Request, fence_plugin,
};

use port::Port;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct SnmpSwitch;

fence_plugin!(SnmpSwitch);

impl FenceMethod for SnmpSwitch {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let poe = port::poe_index(request.parameter("poe-port").unwrap_or_default())?;
        let session = Session::open(host, &request.parameters, request.deadline_ms)?;
        let port = Port::find(&session, &request.plug, poe)?;
        carry_out(request, &session, &port)
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let session = Session::open(host, &request.parameters, request.deadline_ms)?;
        Port::all(&session)
    }
}
