//! What the parameters make of a request: everything that may be sent, written out and checked before
//! the first of it is. Not here: sending it.

use node_remedy_sdk::{Action, Failure, FailureKind, PlugState, Request};
use serde_json::Value;

use crate::limits;
use crate::template::{self, Content, Values, bad};

/// All that one call may send and what it will make of the answer.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The endpoint in the manifest.
    pub(crate) endpoint: String,
    pub(crate) content_type: String,
    pub(crate) status: PlannedRequest,
    /// What the action asks for, where it changes anything.
    pub(crate) change: Option<PlannedRequest>,
    pub(crate) words: StateField,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct PlannedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
    /// Whether the path names the plug, so that who does not find the path may not know the plug.
    pub(crate) names_plug: bool,
}

/// Where the state stands in an answer and what it means.
#[derive(Debug)]
pub(crate) struct StateField {
    pointer: String,
    on: Vec<String>,
    off: Vec<String>,
}

/// What an answer says of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) state: PlugState,
    /// The same for people.
    pub(crate) words: String,
}

impl Plan {
    pub(crate) fn of(request: &Request) -> Result<Self, Failure> {
        if request.plug.len() > limits::PLUG_BYTES_MAX {
            return Err(bad(format!("the plug has {} bytes", request.plug.len())));
        }
        let scheme = chosen(request, "scheme", &["https", "http"])?;
        let endpoint = match chosen(request, "authentication", &["none", "basic", "bearer"])? {
            "none" => scheme.to_owned(),
            auth => format!("{scheme}-{auth}"),
        };
        let content_type = request.parameter("content-type").unwrap_or("application/json");
        let content = Content::of(content_type)?;
        let ask = |action: &str| PlannedRequest::of(request, action, content);
        let change = match request.action {
            Action::Status => None,
            // Whatever power will need is looked at beforehand.
            Action::Monitor => {
                for action in ["off", "on"] {
                    ask(action)?;
                }
                None
            }
            Action::Off => Some(ask("off")?),
            Action::On => Some(ask("on")?),
            Action::Reset => Some(ask("reset")?),
        };
        Ok(Self {
            endpoint,
            content_type: content_type.to_owned(),
            status: ask("status")?,
            change,
            words: StateField::of(request)?,
        })
    }
}

impl PlannedRequest {
    fn of(request: &Request, action: &str, content: Content) -> Result<Self, Failure> {
        let named = |what: &str| format!("{action}-{what}");
        let values = Values { plug: &request.plug, action };
        let Some(template) = request.parameter(&named("path")) else {
            return Err(bad(format!("{} is not set: there is no way to {action}", named("path"))));
        };
        let usual = if action == "status" { "GET" } else { "POST" };
        let method = request.parameter(&named("method")).unwrap_or(usual);
        let body = request.parameter(&named("body")).unwrap_or_default();
        // Without a name in its place, some devices take all outlets to be meant.
        if request.plug.is_empty() && [template, body].iter().any(|it| it.contains("{plug}")) {
            let detail = format!("the plug is empty, and {action} has a place for it");
            return Err(Failure::new(FailureKind::NoSuchPlug, detail));
        }
        if method == "GET" && !body.is_empty() {
            return Err(bad(format!("{}: a GET has no body", named("body"))));
        }
        Ok(Self {
            method: method.to_owned(),
            path: template::path(&named("path"), template, values)?,
            body: template::body(&named("body"), body, content, values)?,
            names_plug: template.contains("{plug}"),
        })
    }
}

impl StateField {
    fn of(request: &Request) -> Result<Self, Failure> {
        let pointer = request.parameter("state-pointer").unwrap_or_default();
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let expected = "expected a JSON pointer such as /output, or nothing";
            return Err(bad(format!("state-pointer: found {pointer:?}, {expected}")));
        }
        let words = |name: &str| {
            let listed = request.parameter(name).unwrap_or_default().split(',').map(str::trim);
            let listed: Vec<_> = listed.map(str::to_owned).collect();
            if listed.iter().any(String::is_empty) {
                return Err(bad(format!("{name}: expected words with commas between them")));
            }
            Ok(listed)
        };
        let (on, off) = (words("on-words")?, words("off-words")?);
        if let Some(both) = on.iter().find(|word| off.contains(word)) {
            return Err(bad(format!(
                "{both:?} is in on-words and in off-words; it cannot mean both"
            )));
        }
        Ok(Self { pointer: pointer.to_owned(), on, off })
    }

    /// What an answer says. Nothing but the words that were listed is a state.
    pub(crate) fn read(&self, body: &[u8]) -> Read {
        let unknown = |words: String| Read { state: PlugState::Unknown, words };
        let place = if self.pointer.is_empty() { "the answer" } else { self.pointer.as_str() };
        let word = match serde_json::from_slice::<Value>(body) {
            Ok(document) => match document.pointer(&self.pointer).map(word_of) {
                Some(Some(word)) => word,
                Some(None) => return unknown(format!("{place} is no text, number, true or false")),
                None => return unknown(format!("the answer has no {place}")),
            },
            // Simple devices answer with a word.
            Err(_) if self.pointer.is_empty() => match std::str::from_utf8(body) {
                Ok(text) => text.trim().to_owned(),
                Err(_) => return unknown("the answer is no text".to_owned()),
            },
            Err(_) => return unknown("the answer is no JSON".to_owned()),
        };
        let state = match (self.on.contains(&word), self.off.contains(&word)) {
            (true, _) => PlugState::On,
            (false, true) => PlugState::Off,
            (false, false) => {
                let shown: String = word.chars().take(limits::WORD_MAX).collect();
                let why = format!("{place} says {shown:?}, which is in neither list of words");
                return unknown(why);
            }
        };
        Read { state, words: format!("{place} says {word:?}") }
    }
}

/// A word as it is written in JSON, text without its quotes.
fn word_of(value: &Value) -> Option<String> {
    match value {
        Value::Bool(word) => Some(word.to_string()),
        Value::Number(word) => Some(word.to_string()),
        Value::String(word) => Some(word.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A parameter's value, which is the first of these where nothing is set.
fn chosen<'a>(
    request: &'a Request,
    name: &str,
    known: &[&'static str],
) -> Result<&'a str, Failure> {
    let usual = known.first().copied().unwrap_or_default();
    let found = request.parameter(name).unwrap_or(usual);
    if known.contains(&found) {
        return Ok(found);
    }
    Err(bad(format!("{name}: found {found:?}, expected one of {}", known.join(", "))))
}
