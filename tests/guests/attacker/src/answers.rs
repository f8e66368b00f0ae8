//! How a guest reads what it is asked, and answers.

use crate::bindings::node_remedy::fence::op;
use crate::bindings::node_remedy::fence::types::{Failure, FailureKind, Outcome, PlugState, Request};

/// What an attack comes to, as the guest sees it.
pub(crate) type AttackResult = Result<Outcome, Failure>;

/// What was asked, with its parameters by name.
#[derive(Clone, Copy)]
pub(crate) struct AttackRequest<'a>(pub(crate) &'a Request);

impl<'a> AttackRequest<'a> {
    pub(crate) fn get(self, name: &str) -> &'a str {
        let found = self.0.parameters.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    pub(crate) fn number(self) -> u64 {
        self.get("number").parse().unwrap_or_default()
    }
}

pub(crate) fn found(state: PlugState, detail: &str) -> Outcome {
    Outcome { state, identity: vec![], detail: detail.to_owned(), extra: vec![] }
}

pub(crate) fn failed(detail: &str) -> Failure {
    Failure {
        kind: FailureKind::Device,
        retryable: false,
        retry_after_ms: None,
        device_code: None,
        detail: detail.to_owned(),
        extra: vec![],
    }
}

pub(crate) fn begin() -> Result<(), Failure> {
    op::begin_effect("off").map_err(|reason| failed(&reason))
}
