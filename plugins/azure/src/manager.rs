//! How Azure Resource Manager is spoken to, and what its operations and refusals mean. Not here: what
//! is asked for.

use node_remedy_sdk::power::Reading;
use node_remedy_sdk::web::{Answer, Api, Body, Manner, Meaning};
use node_remedy_sdk::{Failure, FailureKind, Host, Level, NetError, PlugState};
use serde_json::Value;

use crate::plug::Plug;

/// The version of Microsoft.Compute that is spoken, that of azure-mgmt-compute 39.
const VERSION: &str = "api-version=2026-04-01";
/// One request. The first of a call may log in first.
const REQUEST_MS: u32 = 15_000;
/// For how long an operation is watched. What is refused after it was accepted is refused within
/// seconds; what takes longer is read from the machine.
const OPERATION_MS: u64 = 10_000;
/// Between looks at an operation.
const LOOK_MS: u32 = 2_000;

const MANNER: Manner = Manner {
    endpoint: "management",
    device: "Azure",
    request_ms: REQUEST_MS,
    headers: &[("Accept", "application/json")],
    unauthenticated: "check tenant, application id and client secret, which ends one day",
    denied: "check the application's role on the machine: it must allow virtualMachines/read, \
             powerOff (or deallocate), start and restart",
    missing: "check subscription, resource group and name: there is no such machine",
};

/// Azure, for one call.
pub(crate) fn api<H: Host>(host: &H, deadline_ms: u32) -> Api<'_, H> {
    Api::new(host, &MANNER, deadline_ms).with_words(meaning)
}

/// Reads a machine.
pub(crate) fn read<H: Host>(api: &Api<'_, H>, plug: &Plug) -> Result<Reading, Failure> {
    let machine = api.get(&format!("{}?$expand=instanceView&{VERSION}", plug.id)).map_err(login)?;
    let text = |pointer: &str| machine.pointer(pointer).and_then(Value::as_str);
    let id = text("/id").filter(|id| id.eq_ignore_ascii_case(&plug.id)).ok_or_else(|| {
        let sentence = format!("GET {}: found no such machine; is this Azure?", plug.id);
        Failure::new(FailureKind::Protocol, sentence)
    })?;
    let statuses = machine.pointer("/properties/instanceView/statuses").and_then(Value::as_array);
    let codes = statuses.into_iter().flatten();
    let codes = codes.filter_map(|status| status.get("code")?.as_str());
    let (state, words) = power(&codes);
    let mut identity = vec![("instance-id".to_owned(), id.to_owned())];
    let uuid = text("/properties/vmId");
    identity.extend(uuid.map(|uuid| ("system-uuid".to_owned(), uuid.to_owned())));
    Ok(Reading { state, words, identity })
}

/// What the statuses of a machine read. More than one word for its power is none; a machine that
/// hibernates goes on where it stood, and so is not off.
fn power<'a>(codes: &(impl Iterator<Item = &'a str> + Clone)) -> (PlugState, String) {
    let of = |kind: &'static str| codes.clone().filter_map(move |code| code.strip_prefix(kind));
    let hibernates = of("HibernationState/").next().is_some();
    let mut powers = of("PowerState/");
    let (power, more) = (powers.next(), powers.next());
    let state = match power.filter(|_| more.is_none()) {
        Some("running") => PlugState::On,
        Some("stopped" | "deallocated") if !hibernates => PlugState::Off,
        Some("starting" | "stopping" | "deallocating") => PlugState::Transitioning,
        Some(_) | None => PlugState::Unknown,
    };
    let hibernates = if hibernates { ", and it hibernates" } else { "" };
    (state, format!("PowerState is {}{hibernates}", power.unwrap_or("nothing")))
}

/// Asks for a change, and watches its operation.
pub(crate) fn change<H: Host>(
    api: &Api<'_, H>,
    plug: &Plug,
    action: &str,
    how: &str,
) -> Result<(), Failure> {
    let what = format!("{}/{action}", plug.id);
    let answer = api.ask("POST", &format!("{what}?{how}{VERSION}"), Body::Empty).map_err(login)?;
    let Some(operation) = operation(&answer, plug) else {
        if answer.status() == 202 {
            let sentence = "Azure names no operation that may be asked for what became of it";
            api.host().log(Level::Info, sentence);
        }
        return Ok(());
    };
    let begun_ms = api.host().elapsed_ms();
    while api.host().elapsed_ms() < begun_ms + OPERATION_MS {
        if !api.has_time_for(LOOK_MS) || !api.host().sleep(LOOK_MS) {
            return Ok(());
        }
        let read = match api.get(&operation) {
            Ok(read) => read,
            Err(failure) => {
                // It was accepted: what came of it the machine says.
                api.host().log(Level::Warn, &failure.detail);
                return Ok(());
            }
        };
        match read.get("status").and_then(Value::as_str) {
            Some("Succeeded") => return Ok(()),
            Some("Failed" | "Canceled") => return Err(failed(&what, &read)),
            // In progress, in whatever word.
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// Where the answer says that its operation can be asked about, within this very subscription. The
/// host hands over addresses of Azure itself as paths, and others as they stand.
fn operation(answer: &Answer, plug: &Plug) -> Option<String> {
    let address = answer.header("Azure-AsyncOperation")?;
    let own = format!("/subscriptions/{}/", plug.subscription);
    let begin = address.get(..own.len())?;
    begin.eq_ignore_ascii_case(&own).then(|| address.to_owned())
}

/// What an operation says that failed after it was accepted.
fn failed(what: &str, operation: &Value) -> Failure {
    let text = |name: &str| operation.pointer(name).and_then(Value::as_str);
    let code = text("/error/code").or_else(|| text("/status")).unwrap_or("Failed");
    let said: String = text("/error/message").unwrap_or(code).chars().take(200).collect();
    let meaning = of_word(code).unwrap_or(Meaning {
        kind: FailureKind::Device,
        is_retryable: true,
        check: "Azure took it on and could not do it",
    });
    let said = said.trim_end_matches('.');
    let sentence = format!("POST {what}: {code}: {said}; {}", meaning.check);
    let mut failure = Failure::new(meaning.kind, sentence);
    failure.retryable = meaning.is_retryable;
    failure
}

/// A login that fails says nothing of why to a plugin; most often it is one of these.
fn login(mut failure: Failure) -> Failure {
    if failure.detail.ends_with(&NetError::Login.to_string()) {
        failure.detail = format!("{}; {}", failure.detail, MANNER.unauthenticated);
    }
    failure
}

/// What Azure's own word for a refusal means.
fn meaning(_status: u16, body: &[u8]) -> Option<Meaning> {
    let document: Value = serde_json::from_slice(body).ok()?;
    of_word(document.pointer("/error/code")?.as_str()?)
}

fn of_word(word: &str) -> Option<Meaning> {
    let means = |kind, check| Some(Meaning { kind, is_retryable: false, check });
    let later = |kind, check| Some(Meaning { kind, is_retryable: true, check });
    match word {
        "ResourceNotFound"
        | "ResourceGroupNotFound"
        | "SubscriptionNotFound"
        | "NotFound"
        | "ParentResourceNotFound"
        | "InvalidSubscriptionId" => means(FailureKind::NoSuchPlug, MANNER.missing),
        "ScopeLocked" => {
            means(FailureKind::Denied, "a lock on the machine or its group forbids it")
        }
        "RequestDisallowedByPolicy" => {
            means(FailureKind::Denied, "a policy of the subscription forbids it")
        }
        "InvalidAuthenticationTokenTenant" => {
            means(FailureKind::Unauthenticated, "the subscription belongs to another tenant")
        }
        "TooManyRequests" | "OperationNotAllowedDueToThrottling" => {
            later(FailureKind::Throttled, "Azure is asked too often")
        }
        "AllocationFailed"
        | "ZonalAllocationFailed"
        | "OverconstrainedAllocationRequest"
        | "SkuNotAvailable" => later(FailureKind::Device, "Azure has no room for it now"),
        "OperationNotAllowed" | "QuotaExceeded" => means(
            FailureKind::Device,
            "Azure does not allow it: check quota and the machine's state",
        ),
        "NoRegisteredProviderFound" | "InvalidApiVersionParameter" => means(
            FailureKind::Unsupported,
            "this cloud does not know the version 2026-04-01 of Microsoft.Compute",
        ),
        _ => None,
    }
}
