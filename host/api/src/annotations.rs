//! The annotations and labels of `node-remedy.io` on Nodes, NodeFences, Jobs and pods: what people write, and
//! what the controller leaves behind.

/// Asks a parked incident to try again.
pub const RETRY: &str = "node-remedy.io/retry";
/// Stops an incident: `NODEFENCE-UID`, or `NODEFENCE-UID/leave-off`.
pub const ABORT: &str = "node-remedy.io/abort";
/// Allows the first off where policy asks for a person: `NODEFENCE-UID`.
pub const APPROVE: &str = "node-remedy.io/approve";
/// Opens the devices again that failed to switch the machine on: `NODEFENCE-UID/TIME`, with the time in
/// milliseconds of the last failure that it is about. It stays.
pub const ACK: &str = "node-remedy.io/ack";
/// A person's word that the machine is off: `NODEFENCE-UID/BOOT-ID/USER`.
pub const CONFIRM_OFF: &str = "node-remedy.io/confirm-off";

/// Commands that are heeded once and then taken away; an approval stays.
pub const COMMANDS: [&str; 3] = [RETRY, CONFIRM_OFF, ABORT];

/// Says on the Node which incident cordoned it; only such a cordon is ever lifted.
pub const CORDONED_BY: &str = "node-remedy.io/cordoned-by";
/// Says on the Node which incident declared it out of service; a person's word is left standing.
pub const OUT_OF_SERVICE_BY: &str = "node-remedy.io/out-of-service-by";
/// Says on the Node which pod remedied it last.
pub const REMEDIATION_POD: &str = "node-remedy.io/remediation-podname";
/// Says on the Node when that was seen.
pub const REMEDIATION_TIME: &str = "node-remedy.io/remediation-timestamp";
