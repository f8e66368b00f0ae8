//! What the real control plane and the models have in common: a script can be played on them.

use std::time::Duration;

use anyhow::Result;
use node_remedy_world::api::ChangeType;
use serde_json::Value;

use super::facts::Change;
use super::script::{Misfortune, Request, Watch};

/// One of the two, with the nodes of one script. Requests arrive with all names filled in.
pub(crate) trait Side {
    /// What it is called where the two differ.
    const NAME: &'static str;

    /// The CSI driver that its nodes have.
    const DRIVER: &'static str;

    /// Asks the API server.
    async fn ask(&mut self, request: &Request, namespace: &str) -> Result<Answer>;

    /// Watches from a version until everything that happened up to now was told, bookmark included.
    async fn watch(&mut self, watch: &Watch, namespace: &str, from: &str) -> Result<Watched>;

    /// Lets something hit a node.
    async fn apply_fault(&mut self, node: &str, misfortune: Misfortune) -> Result<()>;

    /// The server forgets its history.
    async fn forget_history(&mut self) -> Result<()>;

    /// A version that is not older than any write that was answered.
    async fn version(&mut self) -> Result<u64>;

    /// What changed since the last time this was asked. Changes of one kind come in order.
    async fn news(&mut self) -> Result<Vec<Change>>;

    /// Waits until there may be news.
    async fn wait(&mut self) -> Result<()>;

    /// Waits until the news hold everything up to this moment.
    async fn catch_up(&mut self) -> Result<()>;

    /// Time since its start, real or virtual.
    fn now(&self) -> Duration;
}

/// Whether there is a node beside those of the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// One, in a zone of its own, that is always well.
    Bystander,
    /// None: the script's nodes are all there are.
    Nobody,
}

impl Company {
    /// Name and zone of the node.
    pub(crate) fn nodes(self) -> Option<(String, &'static str)> {
        (self == Self::Bystander).then(|| ("bystander".to_owned(), "elsewhere"))
    }
}

/// An answer of the API server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The object that it answered; null where the two sides cannot be alike.
    Done(Value),
    /// Its refusal.
    Refused { code: u16, reason: String },
}

/// What a watch told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Watched {
    /// What became of which object, by name, and the version of the bookmark at the end.
    Told { events: Vec<(ChangeType, String)>, bookmark: String },
    /// Its refusal.
    Refused { code: u16, reason: String },
}
