//! Write a fence method for node-remedy: implement [`FenceMethod`], name it in [`fence_plugin!`],
//! build with `cargo build --target wasm32-wasip2 --release`.
//!
//! ```
//! use node_remedy_sdk::{
//!     FailureKind, Failure, FenceMethod, Host, Outcome, PlugState, Request, fence_plugin,
//! };
//!
//! #[derive(Default)]
//! struct Lamp;
//!
//! impl FenceMethod for Lamp {
//!     const MANIFEST: &'static str = r#"{ "manifestVersion": 1, "name": "lamp" }"#;
//!
//!     fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
//!         let answer = host
//!             .udp("lamp")
//!             .map_err(|error| Failure::new(FailureKind::Unreachable, error.to_string()))?;
//!         let _ = (request, answer);
//!         Ok(Outcome::new(PlugState::Unknown))
//!     }
//! }
//!
//! fence_plugin!(Lamp);
//! ```
//!
//! The same code runs natively against the in-memory host of `testing` (feature `testing`), and
//! as a component in node-remedy's sandbox. Three rules make it trustworthy there:
//!
//! * Call [`Host::begin_effect`] right before the first message that may change the device, never
//!   after it. What ends before it is known not to have been attempted.
//! * Report what was *read*. An accepted `off` is not a machine that is off.
//! * A secret is worked with through [`Secret`] and [`Key`]; its bytes never come here.
//!
//! The manifest is JSON; `wit/manifest.md` in this package describes every field, and `wit/fence.wit` is the
//! contract itself.
//!
//! # Features
//!
//! * `web`: [`web`], requests to an HTTP API and what its refusals mean. Brings `serde_json`.
//! * `testing`: [`testing`], the host in memory, in virtual time. Brings hashes and ciphers; for
//!   `dev-dependencies`, where no component is built with it.
//! * `watcher`: the world of [`watcher_plugin!`] in the place of that of [`fence_plugin!`].
//! * `remedy`: the world of [`remedy_plugin!`], likewise. A component has one world, so a crate has one of the three.
//!
//! Devices that speak SNMP: the companion crate `node-remedy-plugin-snmp` is written against [`Host`] alone and
//! has sessions of v1, v2c and v3. It is a crate of its own because its codec brings forty others.
//!
//! What this crate deliberately is not: a runtime. There is no executor, no socket and no clock in
//! it; everything a plugin can do is a method of [`Host`].

mod host;
pub mod power;
mod remedy;
mod types;
mod watcher;

#[cfg(feature = "testing")]
pub mod testing;
#[cfg(all(target_family = "wasm", not(any(feature = "watcher", feature = "remedy"))))]
#[doc(hidden)]
pub mod wasm;
#[cfg(all(target_family = "wasm", feature = "remedy"))]
#[doc(hidden)]
pub mod wasm_remedy;
#[cfg(all(target_family = "wasm", feature = "watcher"))]
#[doc(hidden)]
pub mod wasm_watcher;
#[cfg(feature = "web")]
pub mod web;

pub use host::{
    Cipher, Connection, Datagram, Extension, FenceMethod, Hash, Host, HttpRequest, HttpResponse,
    Key, Level, NetError, Part, Refused, Secret,
};
pub use remedy::{Condition, Decision, Entry, NodeView, RemedyPlugin};
pub use types::{
    Action, Failure, FailureKind, Fields, Outcome, PlugInfo, PlugState, PlugsRequest, Request,
    TERMINATED,
};
pub use watcher::{DatagramWatcher, Sight};

/// Makes a component of a [`FenceMethod`]: exports the contract's `method` interface and embeds the
/// manifest as the custom section `node-remedy:manifest`.
///
/// Expands to nothing where the target is not wasm, so that the same crate is tested natively. A
/// crate holds one plugin: two of these in one crate do not link.
///
/// ```
/// use node_remedy_sdk::{Failure, FenceMethod, Host, Outcome, PlugState, Request, fence_plugin};
///
/// #[derive(Default)]
/// struct Lamp;
///
/// impl FenceMethod for Lamp {
///     const MANIFEST: &'static str = r#"{ "manifestVersion": 1, "name": "lamp" }"#;
///
///     fn run(&self, _: &Request, _: &impl Host) -> Result<Outcome, Failure> {
///         Ok(Outcome::new(PlugState::Unknown))
///     }
/// }
///
/// fence_plugin!(Lamp);
/// ```
#[macro_export]
macro_rules! fence_plugin {
    ($method:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[expect(unsafe_code, reason = "the linker puts a section where its name says")]
            #[unsafe(link_section = "node-remedy:manifest")]
            #[used]
            static MANIFEST: [u8; <$method as $crate::FenceMethod>::MANIFEST.len()] =
                $crate::wasm::section(<$method as $crate::FenceMethod>::MANIFEST);

            type Exported = $crate::wasm::Exported<$method>;
    $crate::wasm::bindings::export!(Exported with_types_in $crate::wasm::bindings);
        };
    };
}

/// Makes a component of a [`DatagramWatcher`], as [`fence_plugin!`] does of a method. A crate that uses
/// it depends on this one with the feature `watcher`: the two worlds do not link into one component.
///
/// ```
/// use node_remedy_sdk::{DatagramWatcher, Sight, watcher_plugin};
///
/// #[derive(Default)]
/// struct Deaf;
///
/// impl DatagramWatcher for Deaf {
///     const MANIFEST: &'static str = r#"{ "manifestVersion": 1, "name": "deaf" }"#;
///
///     fn on_datagram(&self, _: &str, _: &[u8], _: &[u8]) -> (Sight, Vec<u8>) {
///         (Sight::Ignore, Vec::new())
///     }
/// }
///
/// watcher_plugin!(Deaf);
/// ```
#[macro_export]
macro_rules! watcher_plugin {
    ($watcher:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[expect(unsafe_code, reason = "the linker puts a section where its name says")]
            #[unsafe(link_section = "node-remedy:manifest")]
            #[used]
            static MANIFEST: [u8; <$watcher as $crate::DatagramWatcher>::MANIFEST.len()] =
                $crate::wasm_watcher::section(<$watcher as $crate::DatagramWatcher>::MANIFEST);

            type Exported = $crate::wasm_watcher::Exported<$watcher>;
            $crate::wasm_watcher::bindings::export!(Exported with_types_in $crate::wasm_watcher::bindings);
        };
    };
}

/// Makes a component of a [`RemedyPlugin`], as [`fence_plugin!`] does of a method. A crate that uses it
/// depends on this one with the feature `remedy`: the worlds do not link into one component.
///
/// ```
/// use node_remedy_sdk::{Decision, Entry, NodeView, RemedyPlugin, remedy_plugin};
///
/// /// Asks the machine's own management to reset it, once.
/// #[derive(Default)]
/// struct Once;
///
/// impl RemedyPlugin for Once {
///     const MANIFEST: &'static str = r#"{ "manifestVersion": 1, "name": "once" }"#;
///
///     fn next(&self, _: &NodeView, history: &[Entry]) -> Decision {
///         if history.is_empty() { Decision::Method("reset".to_owned()) } else { Decision::Done }
///     }
/// }
///
/// remedy_plugin!(Once);
/// assert_eq!(Once.next(&NodeView::default(), &[]), Decision::Method("reset".to_owned()));
/// ```
#[macro_export]
macro_rules! remedy_plugin {
    ($remedy:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[expect(unsafe_code, reason = "the linker puts a section where its name says")]
            #[unsafe(link_section = "node-remedy:manifest")]
            #[used]
            static MANIFEST: [u8; <$remedy as $crate::RemedyPlugin>::MANIFEST.len()] =
                $crate::wasm_remedy::section(<$remedy as $crate::RemedyPlugin>::MANIFEST);

            type Exported = $crate::wasm_remedy::Exported<$remedy>;
            $crate::wasm_remedy::bindings::export!(Exported with_types_in $crate::wasm_remedy::bindings);
        };
    };
}
