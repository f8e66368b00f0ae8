//! The crate from outside: what the proposals print is read, what is wrong is named by its place,
//! and the generated definitions are the ones that are shipped.

#![recursion_limit = "256"]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
#![expect(clippy::needless_pass_by_value, reason = "a row reads better with its expectation in it")]
#![expect(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "test helpers may panic")]
#![expect(clippy::format_push_string, clippy::format_collect, reason = "tests build small texts")]

mod bad_input;
mod crds;
mod fenceplugins;
mod fences;
mod nodefence;
mod policies;
mod proposals;
mod reference;

use node_remedy_api::configuration::Configuration;
use node_remedy_api::document::Problems;

/// All files at once, as `node-remedy check` reads them.
pub(crate) fn read(files: &[(&str, &str)]) -> Configuration {
    Configuration::from_files(files.iter().copied())
}

/// The problems, one a line.
pub(crate) fn lines(problems: &Problems) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}
