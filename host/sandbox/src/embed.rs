//! Puts a manifest into a component that a tool chain made without one. Not here: finding it again
//! ([`crate::inspect`]).

use wasmparser::{Encoding, Parser, Payload};

use crate::inspect::MANIFEST_SECTION;
use crate::limits::{COMPONENT_BYTES_MOST, MANIFEST_BYTES_MAX};
use crate::manifest::Manifest;
use crate::manifest::error::ManifestError;

/// Why a component was not given its manifest.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The manifest would be refused wherever it stands.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// One of the two is too large.
    #[error("found {bytes} bytes of {what}, {max} are the most")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// How many.
        bytes: usize,
        /// How many at most.
        max: usize,
    },
    /// The bytes are something else.
    #[error("found no WebAssembly component: {0}")]
    NotAComponent(String),
    /// It describes itself already.
    #[error("found a section '{MANIFEST_SECTION}' already, expected a component without one")]
    Manifests,
}

/// The component with this manifest as a custom section at its own level.
pub fn with_manifest(wasm: &[u8], manifest: &[u8]) -> Result<Vec<u8>, EmbedError> {
    at_most("component", wasm.len(), COMPONENT_BYTES_MOST)?;
    at_most("manifest", manifest.len(), MANIFEST_BYTES_MAX)?;
    Manifest::parse(manifest)?;
    let broken = |why: String| EmbedError::NotAComponent(why);
    let mut is_component = false;
    for payload in Parser::new(0).parse_all(wasm) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "wasmparser's enum is non-exhaustive")]
        match payload.map_err(|error| broken(error.to_string()))? {
            Payload::Version { encoding, .. } => {
                // The first one is the outermost.
                if !is_component && encoding != Encoding::Component {
                    return Err(broken("it is a core module".to_owned()));
                }
                is_component = true;
            }
            Payload::CustomSection(section) if section.name() == MANIFEST_SECTION => {
                return Err(EmbedError::Manifests);
            }
            _ => {}
        }
    }
    let name = [leb(MANIFEST_SECTION.len()).as_slice(), MANIFEST_SECTION.as_bytes()].concat();
    let size = leb(name.len().saturating_add(manifest.len()));
    // A custom section is number 0, its size, its name and whatever it holds; it may stand last.
    Ok([wasm, &[0], &size, &name, manifest].concat())
}

fn at_most(what: &'static str, bytes: usize, max: usize) -> Result<(), EmbedError> {
    if bytes > max { Err(EmbedError::TooLarge { what, bytes, max }) } else { Ok(()) }
}

/// A number as WebAssembly writes it: seven bits a byte, the lowest first.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0x7f);
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::{InspectError, World, inspect};
    use crate::plugin_limits::PluginLimits;

    const MANIFEST: &[u8] = include_bytes!("../../../examples/plugins/tasmota/manifest.json");

    fn shell() -> Vec<u8> {
        let shell = "(component (core module) (instance $m) \
                     (export \"node-remedy:fence/method@0.1.0\" (instance $m)))";
        wat::parse_str(shell).unwrap()
    }

    #[test]
    fn what_was_put_in_is_found_once_and_is_the_manifest() {
        let bare = shell();
        let look = |wasm: &[u8]| {
            inspect(wasm, World::Method, &PluginLimits::default()).map(<[u8]>::to_vec)
        };
        assert!(matches!(look(&bare), Err(InspectError::Manifests(0))));
        let wasm = with_manifest(&bare, MANIFEST).unwrap();
        assert_eq!(look(&wasm).unwrap(), MANIFEST);
        assert!(wasm.starts_with(&bare), "the component itself is as it was");
        assert!(matches!(with_manifest(&wasm, MANIFEST), Err(EmbedError::Manifests)));
    }

    #[test]
    fn what_could_never_be_loaded_is_not_made() {
        let refusal =
            |wasm: &[u8], manifest: &[u8]| with_manifest(wasm, manifest).unwrap_err().to_string();
        assert!(refusal(&shell(), b"{}").contains("missing field"));
        assert!(refusal(b"\0asm\x01\0\0\0", MANIFEST).contains("it is a core module"));
        assert!(refusal(b"text", MANIFEST).contains("found no WebAssembly component"));
        let long = vec![b' '; MANIFEST_BYTES_MAX + 1];
        assert!(refusal(&shell(), &long).contains("65536 are the most"));
    }
}
