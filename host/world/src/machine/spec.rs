//! What a machine is made with.

use std::time::Duration;

/// What a machine is made with.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) zone: Option<String>,
    pub(crate) provider_id: Option<String>,
    pub(crate) system_uuid: String,
    pub(crate) address: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) annotations: Vec<(String, String)>,
    pub(crate) boot_time: Duration,
    /// How many outlets feed it; none: mains that nobody switches.
    pub(crate) feeds: usize,
}

/// Whether the machine reaches the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    Up,
    Lost,
}
