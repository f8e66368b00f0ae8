//! How the Compute API is spoken to, and what its operations and refusals mean. Not here: what is asked
//! for.

use node_remedy_sdk::web::{Api, Body, Manner, Meaning};
use node_remedy_sdk::{Failure, FailureKind, Fields, Host, Level, NetError};
use serde_json::Value;

use crate::plug::Plug;

/// One request. The first of a call may take a token first.
const REQUEST_MS: u32 = 15_000;
/// For how long an operation is watched. What is refused after it was accepted is refused within
/// seconds; what takes longer is read from the instance.
const OPERATION_MS: u64 = 10_000;
/// Between looks at an operation.
const LOOK_MS: u32 = 1_000;

const MANNER: Manner = Manner {
    endpoint: "compute",
    device: "Google",
    request_ms: REQUEST_MS,
    headers: &[("Accept", "application/json")],
    unauthenticated: "check that the service account and its key are enabled",
    denied: "check the account's roles: it needs compute.instances.get, stop, start and reset, and \
             compute.zoneOperations.get",
    missing: "check project, zone and name: there is no such instance",
};

/// An instance, as it was read.
pub(crate) struct Read {
    /// Its status.
    pub(crate) status: String,
    /// What Google calls it.
    pub(crate) identity: Fields,
}

/// Google, for one call.
pub(crate) fn api<H: Host>(host: &H, deadline_ms: u32) -> Api<'_, H> {
    Api::new(host, &MANNER, deadline_ms).with_words(meaning)
}

/// Reads an instance.
pub(crate) fn read<H: Host>(api: &Api<'_, H>, plug: &Plug) -> Result<Read, Failure> {
    let instance = api.get(&plug.path()).map_err(login)?;
    let text = |name: &str| instance.get(name).and_then(Value::as_str);
    // Links are in front of either host, old and new; what counts is how they end.
    let place = format!("/projects/{}/zones/{}/instances/{}", plug.project, plug.zone, plug.name);
    let is_it = text("name") == Some(&plug.name)
        && text("selfLink").is_some_and(|link| link.ends_with(&place));
    let (Some(status), true) = (text("status"), is_it) else {
        let sentence =
            format!("GET {}: found no instance {}; is this Google?", plug.path(), plug.id());
        return Err(Failure::new(FailureKind::Protocol, sentence));
    };
    let mut identity = vec![("instance-id".to_owned(), plug.id())];
    identity.extend(text("id").map(|id| ("numeric-id".to_owned(), id.to_owned())));
    Ok(Read { status: status.to_owned(), identity })
}

/// Asks for a change, and watches its operation.
pub(crate) fn change<H: Host>(api: &Api<'_, H>, plug: &Plug, what: &str) -> Result<(), Failure> {
    let path = format!("{}/{what}", plug.path());
    let mut operation = api.ask("POST", &path, Body::Empty).map_err(login)?.object()?;
    let begun_ms = api.host().elapsed_ms();
    loop {
        if let Some(failure) = failed(&path, &operation) {
            return Err(failure);
        }
        let is_over = api.host().elapsed_ms() >= begun_ms + OPERATION_MS;
        if operation.get("status").and_then(Value::as_str) == Some("DONE") || is_over {
            return Ok(());
        }
        let Some(name) = operation.get("name").and_then(Value::as_str).filter(|name| is_name(name))
        else {
            let sentence = format!("POST {path}: found no operation; is this Google?");
            return Err(Failure::new(FailureKind::Protocol, sentence));
        };
        let at = format!("{}/operations/{name}", plug.zone_path());
        if !api.has_time_for(LOOK_MS) || !api.host().sleep(LOOK_MS) {
            return Ok(());
        }
        operation = match api.get(&at) {
            Ok(operation) => operation,
            Err(failure) => {
                // It was accepted: what came of it the instance says.
                api.host().log(Level::Warn, &failure.detail);
                return Ok(());
            }
        };
    }
}

/// A name that stands in a path as it is.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=200).contains(&name.len()) && name.bytes().all(is_plain)
}

/// What an operation says that failed after it was accepted.
fn failed(path: &str, operation: &Value) -> Option<Failure> {
    let error = operation.pointer("/error/errors/0")?;
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let code = text("code").unwrap_or("no code");
    let said: String = text("message").unwrap_or(code).chars().take(200).collect();
    let meaning = of_word(code).unwrap_or(Meaning {
        kind: FailureKind::Device,
        is_retryable: true,
        check: "Google took it on and could not do it",
    });
    let sentence =
        format!("POST {path}: {code}: {}; {}", said.trim_end_matches('.'), meaning.check);
    let mut failure = Failure::new(meaning.kind, sentence);
    failure.retryable = meaning.is_retryable;
    failure.device_code = operation.get("httpErrorStatusCode").and_then(Value::as_i64);
    Some(failure)
}

/// A login that fails says nothing of why to a plugin; most often it is one of these.
fn login(mut failure: Failure) -> Failure {
    if failure.detail.ends_with(&NetError::Login.to_string()) {
        failure.detail.push_str(
            "; check that the credential is the service account's key file, that Google still knows \
             the key, and the controller's clock",
        );
    }
    failure
}

/// What Google's own word for a refusal means; several come with status 403, or 400.
fn meaning(status: u16, body: &[u8]) -> Option<Meaning> {
    let document: Value = serde_json::from_slice(body).ok()?;
    let word = document.pointer("/error/errors/0/reason").and_then(Value::as_str);
    if status == 404 && word == Some("notFound") {
        return Some(Meaning {
            kind: FailureKind::NoSuchPlug,
            is_retryable: false,
            check: MANNER.missing,
        });
    }
    of_word(word?)
}

fn of_word(word: &str) -> Option<Meaning> {
    let means = |kind, check| Some(Meaning { kind, is_retryable: false, check });
    let later = |kind, check| Some(Meaning { kind, is_retryable: true, check });
    match word {
        "rateLimitExceeded" | "userRateLimitExceeded" | "RATE_LIMIT_EXCEEDED" => {
            later(FailureKind::Throttled, "Google is asked too often")
        }
        "accessNotConfigured" | "SERVICE_DISABLED" => {
            means(FailureKind::Denied, "enable the Compute Engine API in the project")
        }
        "resourceNotReady" | "RESOURCE_NOT_READY" | "resourceInUseByAnotherResource" => {
            later(FailureKind::Busy, "the instance is in a state in which that cannot be done")
        }
        "ZONE_RESOURCE_POOL_EXHAUSTED" | "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" => {
            later(FailureKind::Device, "the zone has no room for it now")
        }
        "QUOTA_EXCEEDED" | "quotaExceeded" => {
            means(FailureKind::Device, "the project's quota is used up")
        }
        _ => None,
    }
}
