//! What became of each `FencePlugin`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use node_remedy_api::fenceplugin::{Source, Verify, VerifyPolicy};
use node_remedy_registry::cache::Cache;
use node_remedy_registry::refusal::Refusal;
use node_remedy_sandbox::signature::{KeyId, PublicKey};
use tokio::time::Instant;

/// What became of the `FencePlugin`s, by name.
#[derive(Debug)]
pub struct ExternalPlugins {
    /// What was fetched from registries before, where a folder for it was given.
    pub cache: Option<Cache>,
    /// One component is loaded at a time: each takes a child with a GiB of address space.
    pub loading: tokio::sync::Mutex<()>,
    /// What is fetched is held in memory until it is loaded.
    pub fetching: tokio::sync::Semaphore,
    /// What was wanted when it was last looked at, and what came of it.
    pub standing: RefCell<BTreeMap<String, Standing>>,
}

/// What became of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// What its object asks for.
    pub wanted: Rc<Source>,
    /// The version of its ConfigMap that the mirror held then.
    pub seen: Option<String>,
    /// `Ok`: what is wanted is loaded.
    pub result: Result<Verified, Refusal>,
    /// What is known of the signature of what is loaded, be it wanted or not.
    pub in_force: Verified,
    /// The manifest that the wanted image is resolved to; empty: no image, or not known.
    pub manifest: String,
    /// How often a registry refused in a row, and until when it is left alone.
    pub refused: u32,
    /// When its registry is asked again, at the earliest.
    pub not_before: Option<Instant>,
}

impl Standing {
    /// Whether looking again may help though nothing was changed.
    pub fn may_pass(&self) -> bool {
        self.result.as_ref().is_err_and(|refusal| refusal.may_pass)
    }
}

impl Default for ExternalPlugins {
    fn default() -> Self {
        Self {
            cache: None,
            loading: tokio::sync::Mutex::default(),
            fetching: tokio::sync::Semaphore::new(FETCHED_AT_ONCE),
            standing: RefCell::default(),
        }
    }
}

impl ExternalPlugins {
    /// The same, where what is fetched from registries is kept in a folder.
    pub fn caching_in(cache: Option<Cache>) -> Self {
        Self { cache, ..Self::default() }
    }

    /// What became of the object of this name.
    pub fn standing(&self, name: &str) -> Option<Standing> {
        self.standing.borrow().get(name).cloned()
    }
}

/// What is known of a component's signature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Verified {
    /// Nobody wanted one.
    #[default]
    NotAsked,
    /// The owner of this key made it.
    By(KeyId),
    /// None of those that were wanted did, and it is run all the same.
    Not(Refusal),
}

impl Verified {
    /// Whether what is loaded may be called by whoever begins now.
    pub fn suffices(&self, wanted: Option<&Verify>) -> bool {
        let Some(Verify { policy: VerifyPolicy::Require, keys }) = wanted else { return true };
        let Self::By(signer) = self else { return false };
        keys.iter().any(|pem| PublicKey::from_pem(pem).is_ok_and(|key| key.id() == *signer))
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str("not asked for"),
            Self::By(key) => write!(f, "by {key}"),
            Self::Not(refusal) => f.write_str(&refusal.why),
        }
    }
}

/// Components that are fetched from registries at a time.
const FETCHED_AT_ONCE: usize = 2;
