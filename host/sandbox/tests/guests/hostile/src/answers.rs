//! How a guest reads what it is asked, and answers.

use crate::bindings::node_remedy::fence::types::{Failure, FailureKind, Outcome, PlugState};

pub(crate) fn found(state: PlugState) -> Outcome {
    Outcome { state, identity: vec![], detail: String::new(), extra: vec![] }
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
