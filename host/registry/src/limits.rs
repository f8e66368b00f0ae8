//! Every limit on what a registry can make us hold or wait for, each with its reason. What a component may have
//! stands in the sandbox's limits.

use std::time::Duration;

/// A manifest. One of one layer has some 700 bytes, one with sixteen signatures some 10 kB.
pub(super) const MANIFEST_BYTES_MAX: usize = 100 << 10;
/// What a token server answers: the longest tokens have some 8 kB.
pub(super) const TOKEN_ANSWER_BYTES_MAX: usize = 64 << 10;
/// What is said of an answer that is not wanted: read to its end, and thrown away.
pub(super) const OTHER_ANSWER_BYTES_MAX: usize = 64 << 10;
/// Redirects of one request. A registry sends to where its layers lie, and that may send on once.
pub(super) const REDIRECTS_MAX: usize = 3;
/// Addresses of one name that are tried.
pub(super) const ADDRESSES_MAX: usize = 4;
/// Until a name is an address, and until a connection stands, TLS agreed on.
pub(super) const CONNECT_TIME: Duration = Duration::from_secs(10);
/// One request and its answer: 8 MiB in half a minute are 280 kB a second.
pub(super) const EXCHANGE_TIME: Duration = Duration::from_secs(30);
/// Everything that is asked of one registry for one plugin; other plugins do not wait for it.
pub const PULL_TIME: Duration = Duration::from_mins(1);
/// Signatures of one artefact that are looked at: as many as twice the keys that may be named.
pub(super) const SIGNATURES_MAX: usize = 16;
/// Manifests that a list of referrers names and that are looked at.
pub(super) const REFERRERS_MAX: usize = 8;
/// What a signature is made over: some 300 bytes.
pub(super) const PAYLOAD_BYTES_MAX: usize = 16 << 10;
/// The text of one signature.
pub(super) const SIGNATURE_CHARACTERS_MAX: usize = 1 << 10;
/// A pull secret: an object of the API server has no more.
pub(super) const ACCOUNTS_BYTES_MAX: usize = 1 << 20;
