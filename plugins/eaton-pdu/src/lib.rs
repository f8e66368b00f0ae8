//! The power of a machine through outlets of an Eaton ePDU, over SNMP: G2 and G3, and the older
//! managed and switched (Pulizzi) ones.
//!
//! One call: see which of the tables the PDU has, find the outlet that the plug names, do one thing,
//! read back. What every PDU does the same is in the library `plugins/snmp`; here are the tables
//! (`trees`).
//!
//! What this deliberately is not: outlet groups, delays, or the command that switches all outlets.

mod trees;

use node_remedy_plugin_snmp::{Outlet, Session, carry_out};
use node_remedy_sdk::{
    Failure, FenceMethod, Host, Outcome, PlugInfo, PlugsRequest, Request, fence_plugin,
};

use trees::TREES;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct EatonPdu;

fence_plugin!(EatonPdu);

impl FenceMethod for EatonPdu {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let session = Session::open(host, &request.parameters, request.deadline_ms)?;
        let outlet = Outlet::find(&session, TREES, &request.plug)?;
        carry_out(request, &session, &outlet)
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let session = Session::open(host, &request.parameters, request.deadline_ms)?;
        Outlet::all(&session, TREES)
    }
}
