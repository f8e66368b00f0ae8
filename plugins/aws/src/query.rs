//! How Amazon's query APIs are spoken to: forms in, XML out, and what their error codes mean. Not here:
//! what is asked for.

use node_remedy_sdk::web::{Answer, Api, Body, Manner, Meaning, text_of};
use node_remedy_sdk::{Failure, FailureKind, Host};
use roxmltree::{Document, Node};

/// One request. A service answers within a second or two, or it is not well.
pub(crate) const REQUEST_MS: u32 = 10_000;
/// What to check where a key is not known.
pub(crate) const UNAUTHENTICATED: &str =
    "check access key id, secret key and, for temporary keys, the session token";

/// Asks for one thing, and sees that the answer is to just that.
pub(crate) fn ask<H: Host>(
    api: &Api<'_, H>,
    manner: &Manner,
    action: &str,
    form: &str,
) -> Result<Answer, Failure> {
    let form = format!("Action={action}{form}");
    let answer = api.ask("POST", "/", Body::Form(&form)).map_err(|mut failure| {
        // Every request goes to the same path; what it was for says more.
        failure.detail = failure.detail.replacen("POST /", action, 1);
        failure
    })?;
    read(manner, action, &answer)?;
    Ok(answer)
}

/// The answer to an action as XML. DTDs are refused by the reader.
pub(crate) fn read<'a>(
    manner: &Manner,
    action: &str,
    answer: &'a Answer,
) -> Result<Document<'a>, Failure> {
    let text = std::str::from_utf8(answer.body()).ok();
    let document = text.and_then(|text| Document::parse(text).ok());
    let is_answer =
        |document: &Document<'_>| name_of(document.root_element()) == format!("{action}Response");
    document.filter(is_answer).ok_or_else(|| {
        let device = manner.device;
        let sentence =
            format!("{action}: found no {action}Response; is this the address of {device}?");
        Failure::new(FailureKind::Protocol, sentence)
    })
}

fn name_of<'a>(node: Node<'a, '_>) -> &'a str {
    node.tag_name().name()
}

/// The first element of this name in it.
pub(crate) fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| child.is_element() && name_of(*child) == name)
}

/// All elements of this name in it.
pub(crate) fn children<'a, 'input: 'a>(
    name: &'static str,
) -> impl Fn(Node<'a, 'input>) -> Vec<Node<'a, 'input>> {
    move |node| {
        node.children().filter(|child| child.is_element() && name_of(*child) == name).collect()
    }
}

/// The text of the first element of this name in it.
pub(crate) fn text(node: Node<'_, '_>, name: &str) -> Option<String> {
    child(node, name).and_then(|node| node.text()).map(str::to_owned)
}

/// A service's own code for a refusal.
pub(crate) fn code(body: &[u8]) -> Option<&str> {
    text_of(std::str::from_utf8(body).ok()?, "Code").map(str::trim)
}

/// What the codes mean that all services have ("Common Error Types").
pub(crate) fn common(code: &str) -> Option<Meaning> {
    let means = |kind, check| Some(Meaning { kind, is_retryable: false, check });
    match code {
        "AuthFailure" | "InvalidClientTokenId" | "MissingAuthenticationToken" => {
            means(FailureKind::Unauthenticated, UNAUTHENTICATED)
        }
        "SignatureDoesNotMatch" | "IncompleteSignature" => means(
            FailureKind::Unauthenticated,
            "check the secret key, the parameter region and the controller's clock",
        ),
        "RequestExpired" => means(
            FailureKind::Unauthenticated,
            "check the controller's clock: it must agree with Amazon's to five minutes",
        ),
        "ExpiredToken" | "ExpiredTokenException" | "InvalidToken" => {
            means(FailureKind::Unauthenticated, "the session token is over; renew the keys")
        }
        "OptInRequired" | "PendingVerification" | "Blocked" => {
            means(FailureKind::Denied, "check the account: it may not use this region or service")
        }
        _ => None,
    }
}
