//! What the guards of a run's policies go by, as the judges know it beforehand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Of each guard what it is told; a run without it says nothing of it.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Nodes that carry the control plane.
    pub control_plane: BTreeSet<String>,
    /// Nodes of which nothing is edited but whether they are to be left alone.
    pub excluded: BTreeSet<String>,
    /// The zone of each node that has one; empty where no policy asks for zones.
    pub zones: BTreeMap<String, String>,
    /// From this share of a zone's nodes on, in percent, none of it is switched off.
    pub zone_percent_max: usize,
    /// Nodes of one zone that may be worked on at once.
    pub zone_in_flight_max: Option<usize>,
    /// A node whose storage Lease was renewed within this time is left alone.
    pub storage_age_max: Option<Duration>,
    /// So large a share of all nodes has to be left that can take pods, in percent.
    pub schedulable_percent_min: Option<usize>,
    /// When too many incidents begin.
    pub breaker: Option<Breaker>,
    /// No process dies or stands still all through the run, and each is answered: it sees within seconds what is there.
    pub undisturbed: bool,
    /// So many pods have to serve, by their disruption budget.
    pub available_min: Option<usize>,
    /// So many pods of a node are released a minute, where its policy says so.
    pub pods_per_minute: BTreeMap<String, u64>,
}

/// A breaker whose window no run outlasts.
#[derive(Debug, Clone, Copy)]
pub struct Breaker {
    /// From so many incidents on, 1 or more, nothing is begun,
    pub incidents_max: usize,
    /// for so long.
    pub cool_down: Duration,
}
