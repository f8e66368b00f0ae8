//! The attack corpus (SAFETY.md §2.1, and what was found since): each of the 71 attacks made for real, by a component, a document or
//! an answer, on the sandbox as production runs it: loaded through the compiling child, called on the
//! plugins' own threads, over real sockets. Each has the verdict that it must come to, an end, a bound on
//! what the host's memory grows by, and a twin that succeeds. While it runs, and after it, another
//! plugin's call for another node goes through. What came of it goes into the table that
//! `cargo xtask test plugins` prints.
//!
//! In the order of the corpus: `addresses` and `answers` (the network), `resources`, `semantics`,
//! `artefact`, `registry`, `oracles`, `sessions`, `ports`; beside them `edges`, just below and just above each limit. `alone` gives each family a
//! process and a network of its own, `victims` what lives in that network, `host` the sandbox under
//! attack, `modules` components that no compiler makes, `canary` the search for secrets.

mod addresses;
mod alone;
mod answers;
mod artefact;
mod canary;
mod edges;
mod host;
mod modules;
mod oracles;
mod ports;
mod registry;
mod resources;
mod semantics;
mod sessions;
mod victims;
