//! Between the plain types of [`crate::call`] and the generated ones, and the cleaning of every
//! word a plugin hands back. A match per enum, so a new member of the contract does not compile
//! until someone has decided what it means here.

use std::time::Duration;

use node_remedy_decide::bug::{Bug, is_seeded};

use crate::bindings::node_remedy::fence::types as wire;
use crate::call::Request;
use crate::limits::{DETAIL_BYTES_MAX, FIELDS_MAX, PLUGS_MAX};
use crate::state::CallState;
use crate::types::{Action, Failure, FailureKind, Fields, Outcome, PlugInfo, PlugState};
use crate::words::Secrets;

/// The extra field that binds a change to one machine, as the plugins know it.
const EXPECT_SYSTEM_UUID: &str = "expect-system-uuid";

/// Interface `types` only defines; nothing in it can be called.
impl wire::Host for CallState {}

pub(crate) fn request(request: &Request, deadline: Duration) -> wire::Request {
    wire::Request {
        action: match request.action {
            Action::Status => wire::Action::Status,
            Action::Off => wire::Action::Off,
            Action::On => wire::Action::On,
            Action::Reset => wire::Action::Reset,
            // A list of plugs is asked for by a function of its own.
            Action::Monitor | Action::Plugs => wire::Action::Monitor,
        },
        plug: request.plug.clone(),
        parameters: request.parameters.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        operation_id: request.operation_id.clone(),
        attempt: request.attempt,
        deadline_ms: u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX),
        until: request.until.map(|state| match state {
            PlugState::On => wire::PlugState::On,
            PlugState::Off => wire::PlugState::Off,
            PlugState::Transitioning => wire::PlugState::Transitioning,
            PlugState::Unknown => wire::PlugState::Unknown,
        }),
        resume: request.resume.clone(),
        extra: request
            .system_uuid
            .iter()
            .map(|uuid| (EXPECT_SYSTEM_UUID.to_owned(), uuid.clone()))
            .collect(),
    }
}

pub(crate) fn outcome(outcome: wire::Outcome) -> Outcome {
    Outcome {
        state: state(outcome.state),
        identity: outcome.identity,
        detail: outcome.detail,
        extra: outcome.extra,
    }
}

fn state(state: wire::PlugState) -> PlugState {
    match state {
        wire::PlugState::On => PlugState::On,
        wire::PlugState::Off => PlugState::Off,
        wire::PlugState::Transitioning => PlugState::Transitioning,
        wire::PlugState::Unknown => PlugState::Unknown,
    }
}

pub(crate) fn plugs_request(request: &Request, deadline: Duration) -> wire::PlugsRequest {
    let wire::Request { parameters, deadline_ms, extra, .. } = self::request(request, deadline);
    wire::PlugsRequest { parameters, deadline_ms, extra }
}

pub(crate) fn plug(info: wire::PlugInfo) -> PlugInfo {
    let wire::PlugInfo { plug, name, state: read, identity } = info;
    PlugInfo { plug, name, state: state(read), identity }
}

pub(crate) fn failure(failure: wire::Failure) -> Failure {
    Failure {
        kind: match failure.kind {
            wire::FailureKind::Unreachable => FailureKind::Unreachable,
            wire::FailureKind::Timeout => FailureKind::Timeout,
            wire::FailureKind::Unauthenticated => FailureKind::Unauthenticated,
            wire::FailureKind::Denied => FailureKind::Denied,
            wire::FailureKind::Throttled => FailureKind::Throttled,
            wire::FailureKind::Unsupported => FailureKind::Unsupported,
            wire::FailureKind::BadParameters => FailureKind::BadParameters,
            wire::FailureKind::NoSuchPlug => FailureKind::NoSuchPlug,
            wire::FailureKind::Busy => FailureKind::Busy,
            wire::FailureKind::Protocol => FailureKind::Protocol,
            wire::FailureKind::Device => FailureKind::Device,
            wire::FailureKind::Cancelled => FailureKind::Cancelled,
            wire::FailureKind::Other => FailureKind::Other,
        },
        retryable: failure.retryable,
        retry_after: failure.retry_after_ms.map(|ms| Duration::from_millis(ms.into())),
        device_code: failure.device_code,
        detail: failure.detail,
        extra: failure.extra,
    }
}

pub(crate) fn clean_outcome(outcome: &Outcome, secrets: &Secrets) -> Outcome {
    Outcome {
        state: outcome.state,
        identity: clean_fields(&outcome.identity, secrets),
        detail: secrets.clean(&outcome.detail, DETAIL_BYTES_MAX),
        extra: clean_fields(&outcome.extra, secrets),
    }
}

pub(crate) fn clean_failure(failure: &Failure, secrets: &Secrets) -> Failure {
    Failure {
        detail: secrets.clean(&failure.detail, DETAIL_BYTES_MAX),
        extra: clean_fields(&failure.extra, secrets),
        ..failure.clone()
    }
}

pub(crate) fn clean_plugs(plugs: &[PlugInfo], secrets: &Secrets) -> Vec<PlugInfo> {
    let clean = |text: &str| secrets.clean(text, DETAIL_BYTES_MAX);
    let one = |info: &PlugInfo| PlugInfo {
        plug: clean(&info.plug),
        name: clean(&info.name),
        state: info.state,
        identity: clean_fields(&info.identity, secrets),
    };
    plugs.iter().take(PLUGS_MAX).map(one).collect()
}

pub(crate) fn clean_fields(fields: &Fields, secrets: &Secrets) -> Fields {
    let none = Secrets::default();
    let secrets = if is_seeded(Bug::FieldsUnredacted) { &none } else { secrets };
    let clean = |text: &str| secrets.clean(text, DETAIL_BYTES_MAX);
    fields.iter().take(FIELDS_MAX).map(|(key, value)| (clean(key), clean(value))).collect()
}
