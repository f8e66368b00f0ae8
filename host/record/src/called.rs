//! A device call and its end.

use node_remedy_decide::End;
use node_remedy_sandbox::CallReport;

/// A call and its end.
#[derive(Debug, Clone)]
pub struct Called {
    /// What is known.
    pub end: End,
    /// A sentence of what happened, for people.
    pub detail: String,
    /// All that the sandbox saw; none where the call was never made.
    pub report: Option<CallReport>,
}

impl Called {
    /// Whether it was never made, because what it was decided on had grown old.
    pub fn is_late(&self) -> bool {
        self.end.is_held_back() && self.report.is_none()
    }
}
