//! What truly happened, in order: the world's own knowledge, not what anybody believes.
//!
//! Reports are drawn from these and safety is judged by them. Two writers of one volume
//! are a fact here, whatever the API server says at the time.

mod devices;
mod sentence;
mod vocabulary;
mod what;

pub use self::devices::Taken;
pub use self::vocabulary::VOCABULARY;
use crate::time::Time;
pub use what::{Power, PowerCause, What};

/// What [`What::Edited`] calls the data of the whole cluster, which somebody set back.
pub const ETCD: &str = "etcd";

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// When.
    pub at: Time,
    /// What.
    pub what: What,
}

/// The facts so far.
#[derive(Debug, Default)]
pub struct Facts {
    facts: Vec<Fact>,
}

impl Facts {
    /// Adds what happened; facts come in order of time.
    pub(crate) fn note(&mut self, at: Time, what: What) {
        self.facts.push(Fact { at, what });
    }

    /// All of them, in order.
    pub fn all(&self) -> &[Fact] {
        &self.facts
    }
}
