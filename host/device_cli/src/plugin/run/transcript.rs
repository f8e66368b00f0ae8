//! The file of a transcript: JSON, of a version. `docs/plugins.md` describes each field for people. Not here:
//! what a call keeps ([`node_remedy_sandbox::transcript`]), and how it is played again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use node_remedy_sandbox::{
    Action, CallReport, Effect, PlugState, Plugin, Request, transcript as kept,
};
use serde::{Deserialize, Serialize};

use crate::fence::session::DeviceSession;
use crate::files::read_bytes;

/// The version of what is written here.
const VERSION: u32 = 1;
/// A file with the transcripts of a dozen calls, each near its limit, would be of use to nobody.
const FILE_BYTES_MAX: usize = 16 << 20;

/// A command's calls.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Transcript {
    transcript_version: u32,
    pub(super) plugin: About,
    pub(super) plug: String,
    /// As they were given, without defaults.
    pub(super) parameters: BTreeMap<String, String>,
    /// The credentials that were configured, each with its user name, and no secret.
    pub(super) credentials: BTreeMap<String, Option<String>>,
    pub(super) calls: Vec<Call>,
}

/// Which component was called.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    pub(super) name: String,
    version: String,
    digest: String,
}

/// One call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Call {
    pub(super) action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<String>,
    pub(super) deadline_ms: u64,
    pub(super) started_unix_ms: u64,
    /// What the call's randomness was made from, in hexadecimal.
    pub(super) seed: String,
    pub(super) events: Vec<Event>,
    pub(super) ended: End,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct End {
    pub(super) effect_begun: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) identity: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
    /// For people; it is not compared.
    pub(super) detail: String,
}

/// One thing that happened.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Event {
    at_ms: u64,
    endpoint: String,
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum What {
    Sent(Vec<Part>),
    Received(Vec<Part>),
    Asked { method: String, path: String, headers: Vec<(String, String)>, body: Body },
    Answered { status: u16, headers: Vec<(String, String)>, body: Body },
    Failed { doing: Doing, error: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Part {
    Hex(String),
    Secret { secret: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Body {
    Text(String),
    Hex { hex: String },
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Doing {
    Open,
    Send,
    Receive,
    Fetch,
}

impl Transcript {
    /// What was kept of a command's calls.
    pub(super) fn of(
        plugin: &Plugin,
        plug: &str,
        hand: &DeviceSession,
        seeds: &[[u8; 32]],
    ) -> anyhow::Result<Self> {
        let manifest = plugin.manifest();
        let mut seeds = seeds.iter();
        let mut calls = Vec::new();
        for told in hand.told() {
            let (report, Request { deadline, until, .. }) = (&told.report, &told.request);
            let dropped = report.transcript.dropped;
            ensure!(
                dropped == 0,
                "--record: found {dropped} exchanges more than a transcript holds; record an action that asks less"
            );
            calls.push(Call {
                action: report.action.as_str().to_owned(),
                until: until.map(|state| state.as_str().to_owned()),
                deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
                started_unix_ms: told.started_unix_ms,
                // A call that was refused before it began drew none.
                seed: hex::encode(seeds.next().unwrap_or(&[0; 32])),
                events: report.transcript.events.iter().map(Event::of).collect(),
                ended: End::of(report),
            });
        }
        Ok(Self {
            transcript_version: VERSION,
            plugin: About {
                name: manifest.name.clone(),
                version: manifest.version.clone(),
                digest: plugin.digest().to_string(),
            },
            plug: plug.to_owned(),
            parameters: hand.parameters().clone(),
            credentials: hand
                .credentials()
                .iter()
                .map(|(name, secret)| (name.clone(), secret.identity.clone()))
                .collect(),
            calls,
        })
    }

    /// Writes it.
    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        std::fs::write(file, text).with_context(|| format!("failed to write {}", file.display()))
    }

    /// Reads one.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let failed = || format!("failed to read {}", file.display());
        let bytes = read_bytes(file, FILE_BYTES_MAX).with_context(failed)?;
        let value: serde_json::Value = serde_json::from_slice(&bytes).with_context(failed)?;
        let version = value.get("transcriptVersion").and_then(serde_json::Value::as_u64);
        if version != Some(VERSION.into()) {
            let found = version.map_or("none".to_owned(), |version| version.to_string());
            bail!(
                "{}: found transcriptVersion {found}, expected {VERSION}; `plugin run --record` writes such a file",
                file.display()
            );
        }
        serde_json::from_value(value).with_context(failed)
    }
}

impl Call {
    /// The request that was made.
    pub(super) fn request(&self, transcript: &Transcript) -> anyhow::Result<Request> {
        let actions = [
            Action::Status,
            Action::Off,
            Action::On,
            Action::Reset,
            Action::Monitor,
            Action::Plugs,
        ];
        let action = actions.into_iter().find(|action| action.as_str() == self.action);
        let states = [PlugState::On, PlugState::Off, PlugState::Transitioning, PlugState::Unknown];
        let until = self.until.as_ref().map(|word| {
            let found = states.into_iter().find(|state| state.as_str() == word);
            found.with_context(|| format!("found until {word:?}, expected a state"))
        });
        Ok(Request {
            action: action
                .with_context(|| format!("found action {:?}, expected one", self.action))?,
            plug: transcript.plug.clone(),
            parameters: transcript.parameters.clone(),
            operation_id: "by-hand/replay".to_owned(),
            attempt: 1,
            deadline: Duration::from_millis(self.deadline_ms),
            until: until.transpose()?,
            resume: None,
            system_uuid: None,
        })
    }

    /// What its randomness was made from.
    pub(super) fn seed(&self) -> anyhow::Result<[u8; 32]> {
        let found = hex::decode(&self.seed).ok().and_then(|bytes| bytes.try_into().ok());
        found.with_context(|| format!("found seed {:?}, expected 64 hexadecimal digits", self.seed))
    }

    /// What happened in it.
    pub(super) fn events(&self) -> anyhow::Result<Vec<kept::Event>> {
        let events = (1..).zip(&self.events);
        let kept =
            events.map(|(number, event)| event.kept().with_context(|| format!("event {number}")));
        kept.collect()
    }
}

impl End {
    /// How a call ended.
    pub(super) fn of(report: &CallReport) -> Self {
        let effect_begun = report.effect == Effect::Begun;
        match &report.result {
            Ok(outcome) => Self {
                effect_begun,
                state: Some(outcome.state.as_str().to_owned()),
                identity: outcome.identity.iter().cloned().collect(),
                failure: None,
                detail: outcome.detail.clone(),
            },
            Err(failure) => Self {
                effect_begun,
                state: None,
                identity: BTreeMap::new(),
                failure: Some(failure.kind.as_str().to_owned()),
                detail: failure.detail.clone(),
            },
        }
    }

    /// Whether both say the same; each sentence may have other words.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let bare = |end: &Self| Self { detail: String::new(), ..end.clone() };
        bare(self) == bare(other)
    }

    /// In one line.
    pub(super) fn shown(&self) -> String {
        let said = match (&self.state, &self.failure) {
            (Some(state), _) => format!("reads {state}"),
            (None, Some(failure)) => format!("fails: {failure}"),
            (None, None) => "says nothing".to_owned(),
        };
        let begun = if self.effect_begun { ", effect begun" } else { ", no effect begun" };
        let identity = self.identity.iter().map(|(name, value)| format!(", {name} {value}"));
        let identity: String = identity.collect();
        format!("{said}{begun}{identity} ({})", self.detail)
    }
}

impl Event {
    fn of(event: &kept::Event) -> Self {
        let what = match event.what.clone() {
            kept::Happened::Sent(parts) => What::Sent(parts.iter().map(Part::of).collect()),
            kept::Happened::Received(parts) => What::Received(parts.iter().map(Part::of).collect()),
            kept::Happened::Asked(kept::RecordedRequest { method, path, headers, body }) => {
                What::Asked { method, path, headers, body: Body::of(body) }
            }
            kept::Happened::Answered(kept::Answered { status, headers, body }) => {
                What::Answered { status, headers, body: Body::of(body) }
            }
            kept::Happened::Failed(doing, error) => {
                What::Failed { doing: doing.into(), error: error.as_str().to_owned() }
            }
        };
        Self { at_ms: event.at_ms, endpoint: event.endpoint.clone(), what }
    }

    fn kept(&self) -> anyhow::Result<kept::Event> {
        let parts = |parts: &[Part]| parts.iter().map(Part::kept).collect::<Result<_, _>>();
        let what = match &self.what {
            What::Sent(sent) => kept::Happened::Sent(parts(sent)?),
            What::Received(received) => kept::Happened::Received(parts(received)?),
            What::Asked { method, path, headers, body } => {
                kept::Happened::Asked(kept::RecordedRequest {
                    method: method.clone(),
                    path: path.clone(),
                    headers: headers.clone(),
                    body: body.kept()?,
                })
            }
            What::Answered { status, headers, body } => kept::Happened::Answered(kept::Answered {
                status: *status,
                headers: headers.clone(),
                body: body.kept()?,
            }),
            What::Failed { doing, error } => {
                let refusal = kept::Refusal::parse(error)
                    .with_context(|| format!("found error {error:?}, expected a net-error"))?;
                ensure!(
                    error != "login",
                    "found a login that failed; logins are the host's, and cannot be played again"
                );
                kept::Happened::Failed((*doing).into(), refusal)
            }
        };
        Ok(kept::Event { at_ms: self.at_ms, endpoint: self.endpoint.clone(), what })
    }
}

impl Part {
    fn of(part: &kept::Part) -> Self {
        match part {
            kept::Part::Bytes(bytes) => Self::Hex(hex::encode(bytes)),
            kept::Part::Secret(name) => Self::Secret { secret: name.clone() },
        }
    }

    fn kept(&self) -> anyhow::Result<kept::Part> {
        match self {
            Self::Hex(digits) => Ok(kept::Part::Bytes(bytes(digits)?)),
            Self::Secret { secret } => Ok(kept::Part::Secret(secret.clone())),
        }
    }
}

impl Body {
    fn of(body: Vec<u8>) -> Self {
        match String::from_utf8(body) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Hex { hex: hex::encode(error.as_bytes()) },
        }
    }

    fn kept(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Hex { hex } => bytes(hex),
        }
    }
}

impl From<kept::Doing> for Doing {
    fn from(doing: kept::Doing) -> Self {
        match doing {
            kept::Doing::Open => Self::Open,
            kept::Doing::Send => Self::Send,
            kept::Doing::Receive => Self::Receive,
            kept::Doing::Fetch => Self::Fetch,
        }
    }
}

impl From<Doing> for kept::Doing {
    fn from(doing: Doing) -> Self {
        match doing {
            Doing::Open => Self::Open,
            Doing::Send => Self::Send,
            Doing::Receive => Self::Receive,
            Doing::Fetch => Self::Fetch,
        }
    }
}

/// A piece of a datagram as the file has it.
pub(super) fn shown(part: &kept::Part) -> String {
    match part {
        kept::Part::Bytes(bytes) => hex::encode(bytes),
        kept::Part::Secret(name) => format!("[{name}]"),
    }
}

fn bytes(digits: &str) -> anyhow::Result<Vec<u8>> {
    hex::decode(digits).with_context(|| format!("found {digits:?}, expected hexadecimal digits"))
}
