//! How the Redfish service is spoken to (DSP0266, sections 7 and 8). Not here: what the resources say.

use node_remedy_sdk::web::Manner;

use crate::limits;

/// The service root (DSP0266, 6.2).
pub(crate) const ROOT: &str = "/redfish/v1/";

/// User name and password with each request.
pub(crate) const BASIC: Manner = Manner {
    endpoint: "bmc",
    device: "the BMC",
    request_ms: limits::REQUEST_MS,
    headers: &[("Accept", "application/json"), ("OData-Version", "4.0")],
    unauthenticated: "check user name and password",
    denied: "check the role of the account: it must be Operator",
    missing: "check that Redfish is enabled on the BMC and that the path is right",
};

/// A session for each call (DSP0266, 13.3.4).
pub(crate) const SESSION: Manner = Manner { endpoint: "bmc-session", ..BASIC };
