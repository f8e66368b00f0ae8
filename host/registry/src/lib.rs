//! Plugins from OCI registries: the folder of what was fetched before is looked at first, then the mirror, then
//! the registry itself.
//!
//! A tag leads to a manifest once; from then on that manifest is asked for by its digest, by every replica, until
//! the FencePlugin changes. What is asked, and where a redirect may lead: [`transport`]. Pushing is for people
//! ([`push()`]). Why no library does this: `docs/adr/0001-dependencies.md`.

pub mod artifact;
pub mod cache;
pub mod client;
pub mod credentials;
pub mod error;
pub mod limits;
pub mod manifest;
pub mod pull;
pub mod push;
pub mod refusal;
pub mod transport;
pub mod unpack;

pub use crate::artifact::{Artefact, Signature};
pub use crate::client::Client;
pub use crate::credentials::Account;
pub use crate::error::OciError;
pub use crate::pull::{PullSpec, Pulled, pull};
pub use crate::push::{Component, PushError, Signing, push, sign};
pub use crate::transport::{Initiator, Transport};

#[cfg(test)]
mod tests;
