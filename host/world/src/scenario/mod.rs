//! A scenario: the cluster, what happens to it, and what must be true in the end.
//!
//! Plain validated data. [`read`](Scenario::read) makes it from a file; everything that a
//! file can get wrong is said there, with its place.

mod cloud;
pub(crate) mod duration;
mod expectation;
mod fault;
mod names;
mod nodes;
mod plugs;
mod raw;
mod read;
mod reader;
mod snapshot;
mod spec;
#[cfg(test)]
mod tests;

pub use self::duration::read as read_duration;
pub use self::expectation::{Expectation, Pattern, Unmet};
pub use self::snapshot::{Loss, LossHow, SNAPSHOT_BYTES_MAX};
pub use crate::time::START;
pub use reader::{ScenarioError, ScenarioErrors};
pub use spec::{
    ApiFault, ApiFaultKind, BmcSpec, ClockChange, ClockFault, CloudSpec, ControllerEvent,
    DeviceSpec, Document, DumpSpec, Etcd, Event, Fault, NodeSpec, OperatorCommand, Order, Outage,
    PlugSpec, Scenario, StatefulSetSpec, Trigger, VolumesSpec,
};
