//! The validated twin of a `Configuration` document or a `RemedyConfiguration`: read once, at the
//! edge, and never half valid. Whoever has a [`Policy`] need not ask whether it makes sense.

mod contradictions;
mod model;
mod numbers;
mod pod_template;
mod read;
mod symptom;
mod windows;

pub use self::numbers::*;
pub use self::read::read;
pub use self::symptom::Symptom;
pub use self::windows::{PauseWindow, WindowError};

pub use crate::nodefence::{ClusterAction, JobTemplate};
pub use crate::remedyconfiguration::Mode;
pub use model::{Policy, Remedy, RemedyStep, SelectedTwice, Threshold, for_node};
