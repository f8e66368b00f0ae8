//! Requests over HTTP as the parameters spell them, and all that the guest saw of the answer.

use crate::answers::{failed, found};
use crate::bindings::node_remedy::fence::net::{HttpRequest, HttpResponse, NetError};
use crate::bindings::node_remedy::fence::types::{Failure, Outcome, PlugState};
use crate::bindings::node_remedy::fence::{net, op};

type Parameters = [(String, String)];

/// Says in its failure what came back, and whether `look-for` stood anywhere in it.
pub fn once(parameters: &Parameters) -> Result<Outcome, Failure> {
    let HttpResponse { status, headers, body } = fetch(parameters).map_err(refusal)?;
    let sought = parameter(parameters, "look-for").unwrap_or("?");
    let mut seen: Vec<&[u8]> = vec![&body];
    seen.extend(headers.iter().map(|(_, value)| value.as_bytes()));
    let found = seen
        .iter()
        .any(|bytes| bytes.windows(sought.len()).any(|window| window == sought.as_bytes()));
    let names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let body = match body.len() {
        0..=200 => String::from_utf8_lossy(&body).into_owned(),
        long => format!("{long} bytes"),
    };
    Err(failed(&format!("{status} {} [{body}] found: {found}", names.join(","))))
}

/// Acts over HTTP and reports what it read.
pub fn act(parameters: &Parameters) -> Result<Outcome, Failure> {
    op::begin_effect("off").map_err(|reason| failed(&reason))?;
    fetch(parameters).map_err(refusal)?;
    Ok(found(PlugState::Off))
}

/// Never has enough.
pub fn flood(parameters: &Parameters) -> Result<Outcome, Failure> {
    loop {
        fetch(parameters).map_err(refusal)?;
    }
}

fn fetch(parameters: &Parameters) -> Result<HttpResponse, NetError> {
    let parameter = |name| parameter(parameters, name);
    let headers = parameter("header").and_then(|header| header.split_once('='));
    let request = HttpRequest {
        method: parameter("method").unwrap_or("GET").to_owned(),
        path: parameter("path").unwrap_or("/").to_owned(),
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
        body: parameter("body").unwrap_or_default().as_bytes().to_vec(),
        timeout_ms: parameter("timeout-ms").map_or(5_000, |ms| ms.parse().unwrap()),
    };
    net::fetch("device", &request)
}

fn parameter<'a>(parameters: &'a Parameters, name: &str) -> Option<&'a str> {
    parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn refusal(error: NetError) -> Failure {
    failed(&format!("refused: {}", error.name()))
}
