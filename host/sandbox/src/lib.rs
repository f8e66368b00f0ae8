//! The component host. A plugin is a WebAssembly component that speaks to one kind of device; this
//! crate loads it, decides what it may reach, and makes one call at a time in a fresh instance
//! that holds nothing but what that call was granted.
//!
//! In the order data flows: bytes become a [`Plugin`] ([`inspect`], [`manifest`], [`compile`],
//! [`load`]); ask, parameters and the admin's grant become [`Grants`]; a [`Call`] goes through an
//! [`Executor`] to [`Plugin::call`], where the guest sees the host interfaces (`op`,
//! `credentials`, `net`) and the world behind them only through [`Seams`]; a [`CallReport`] comes
//! back, whose [`CallReport::verdict`] is the only thing to conclude from.
//!
//! Not here: deciding, recording, Kubernetes, retrying. A failed call is a value, and a call that
//! may have acted says so.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "module documentation names its neighbours, for readers of the source"
)]

mod address;
mod bindings;
mod call;
mod cancel;
pub mod compile;
mod convert;
mod credentials;
mod crypto;
mod embed;
mod engine;
mod exchange;
mod executor;
mod grants;
mod handles;
mod honesty;
mod host_name;
mod http_target;
mod inspect;
pub mod limits;
mod load;
pub mod manifest;
mod meter;
mod names;
pub mod net;
mod op;
mod parameters;
mod plugin;
mod plugin_limits;
mod precompiled;
mod randomness;
mod remedy;
mod seams;
mod secret;
mod shape;
pub mod signature;

mod about;
mod call_slots;
mod digest;
mod reserved_headers;
mod state;
mod stderr;
mod transcribe;
pub mod transcript;
mod trial;
mod trust;
mod types;
mod wasi_context;
mod wasi_stubs;
mod watch;
mod words;

pub use address::{Cidr, CidrError, Hazard, destination};
pub use call::{Call, CallReport, Ended, Request, Verdict};
pub use cancel::Cancel;
pub use digest::Digest;
pub use embed::{EmbedError, with_manifest};
pub use executor::{Executor, Pool};
pub use grants::error::GrantError;
pub use grants::{AdminGrant, Budget, Endpoint, Grants, HttpGrant, HttpPolicy};
pub use host_name::{HostPort, HostPortError};
pub use http_target::{HttpMethod, PathError, PathPrefix};
pub use inspect::InspectError;
pub use load::{LoadError, Sandbox};
pub use manifest::Manifest;
pub use names::{Names, NoNames, SystemNames};
pub use parameters::{ParameterError, Property, PropertyKind, Schema};
pub use plugin::Plugin;
pub use plugin_limits::PluginLimits;
pub use remedy::{NodeCondition, NodeFacts, Remedied, RemedyDecision, RemedyTried};
pub use seams::{
    Clock, Entropy, NoEntropy, NotLeader, OpenGate, Seams, SeededEntropy, SendGate, SystemEntropy,
    TokioClock,
};
pub use secret::Secret;
pub use shape::{Shape, shape};
pub use trust::{Authorities, SpkiPin, TlsRefusal, Trust, TrustError};
pub use types::{
    Action, Direction, Effect, Exchange, ExchangeRecord, Failure, FailureKind, Fields, LogLevel,
    LogLine, Outcome, PlugInfo, PlugState,
};
pub use watch::{Sight, Unseen, Watch, WatchOutcome, Watcher};
