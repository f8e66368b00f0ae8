//! The component side of a watcher: the export over [`DatagramWatcher`]. Nothing but translation happens
//! here. Public only for the macro.

use std::marker::PhantomData;

use bindings::exports::node_remedy::fence::watcher::{Guest, Verdict};

use crate::{DatagramWatcher, Sight};

/// What wit-bindgen makes of the contract.
#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::pedantic,
    clippy::indexing_slicing,
    clippy::allow_attributes_without_reason,
    reason = "generated; the contract itself is documented in wit/fence.wit"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "datagram-watcher",
        pub_export_macro: true,
    });
}

/// The bytes of a manifest, as a section wants them.
#[expect(clippy::indexing_slicing, reason = "runs at compile time, where a panic is a build error")]
pub const fn section<const N: usize>(manifest: &str) -> [u8; N] {
    let bytes = manifest.as_bytes();
    let mut section = [0; N];
    let mut i = 0;
    while i < N {
        section[i] = bytes[i];
        i += 1;
    }
    section
}

/// The export of one watcher.
pub struct Exported<W>(PhantomData<W>);

impl<W: DatagramWatcher> Guest for Exported<W> {
    fn on_datagram(peer: String, data: Vec<u8>, state: Vec<u8>) -> (Verdict, Vec<u8>) {
        let (sight, state) = W::default().on_datagram(&peer, &data, &state);
        let verdict = match sight {
            Sight::Ignore => Verdict::Ignore,
            Sight::Sighting(fields) => Verdict::Sighting(fields),
            Sight::Finished(fields) => Verdict::Finished(fields),
        };
        (verdict, state)
    }
}
