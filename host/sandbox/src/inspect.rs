//! A look at a component's bytes before anything is compiled: is it a component at all, small and
//! simple enough, valid within a narrow set of proposals, and does it import only what this host
//! offers. Reads, never runs. Not here: what its manifest says ([`crate::manifest`]).

use wasmparser::{Encoding, Parser, Payload, Validator, WasmFeatures};

use crate::limits::{FUNCTION_BYTES_MAX, MANIFEST_BYTES_MAX, NESTED_MAX};
use crate::plugin_limits::PluginLimits;
use crate::wasi_stubs;

/// The section that holds a plugin's manifest.
pub(crate) const MANIFEST_SECTION: &str = "node-remedy:manifest";

/// The contract's package, and the one version of it that this host speaks.
const PACKAGE: &str = "node-remedy:fence";
const VERSION: &str = "0.1.0";
/// Of another one, in messages.
const VERSION_CHARS_MAX: usize = 40;

/// What a component is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// A fence method.
    Method,
    /// A watcher of datagrams. It reaches nothing: the host owns the socket.
    Watcher,
    /// A remedy. It reaches nothing: it only decides.
    Remedy,
}

impl World {
    /// What every component of it exports.
    fn export(self) -> &'static str {
        match self {
            Self::Method => "node-remedy:fence/method@0.1.0",
            Self::Watcher => "node-remedy:fence/watcher@0.1.0",
            Self::Remedy => "node-remedy:fence/remedy@0.1.0",
        }
    }

    /// Our own interfaces that it may import. `types` only defines; it has no functions.
    fn ours(self) -> &'static [&'static str] {
        match self {
            Self::Method => &[
                "node-remedy:fence/types@0.1.0",
                "node-remedy:fence/credentials@0.1.0",
                "node-remedy:fence/net@0.1.0",
                "node-remedy:fence/op@0.1.0",
            ],
            Self::Watcher | Self::Remedy => {
                &["node-remedy:fence/types@0.1.0", "node-remedy:fence/op@0.1.0"]
            }
        }
    }
}

/// Why bytes are not a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// They are too many.
    #[error("failed to accept the plugin: found {bytes} bytes, {max} are the most")]
    TooLarge {
        /// How many.
        bytes: usize,
        /// How many at most.
        max: usize,
    },
    /// They are something else.
    #[error("failed to accept the plugin: found {0}, expected a WebAssembly component")]
    NotAComponent(&'static str),
    /// They are broken, or use a proposal this host does not run.
    #[error("failed to validate the plugin: {0}")]
    Invalid(String),
    /// They hold more of something than this host compiles.
    #[error("failed to accept the plugin: found {found} {what}, {max} are the most")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many at most.
        max: usize,
    },
    /// They import what this host does not offer.
    #[error("failed to accept the plugin: it imports {0}, which this host does not offer")]
    Import(String),
    /// They are made for another version of the contract.
    #[error(
        "failed to accept the plugin: it is made for {PACKAGE}@{found}, and this host speaks \
         {PACKAGE}@{VERSION}; build it for that, or run a node-remedy that speaks {found}"
    )]
    Version {
        /// Which one.
        found: String,
    },
    /// They do not export what they are to be.
    #[error("failed to accept the plugin: it does not export {0}")]
    NoExport(&'static str),
    /// They describe themselves not at all or more than once.
    #[error(
        "failed to find the plugin's manifest: {0} sections '{MANIFEST_SECTION}', expected one"
    )]
    Manifests(usize),
}

/// Checks the bytes and gives the manifest section in them.
pub(crate) fn inspect<'a>(
    bytes: &'a [u8],
    world: World,
    limits: &PluginLimits,
) -> Result<&'a [u8], InspectError> {
    let max = limits.component_len();
    if bytes.len() > max {
        return Err(InspectError::TooLarge { bytes: bytes.len(), max });
    }
    check_encoding(bytes)?;
    let mut seen = Seen::of(world, limits.functions());
    for payload in Parser::new(0).parse_all(bytes) {
        seen.look_at(payload.map_err(|error| invalid(&error))?)?;
    }
    if !seen.exports_it {
        return Err(InspectError::NoExport(world.export()));
    }
    let manifest = match seen.manifests.as_slice() {
        [one] => *one,
        found => return Err(InspectError::Manifests(found.len())),
    };
    if manifest.len() > MANIFEST_BYTES_MAX {
        let (what, found) = ("bytes of manifest", manifest.len());
        return Err(InspectError::TooMany { what, found, max: MANIFEST_BYTES_MAX });
    }
    // Last, because it costs most: by now the bytes are known to be small and simple.
    Validator::new_with_features(features())
        .validate_all(bytes)
        .map_err(|error| invalid(&error))?;
    Ok(manifest)
}

/// The world of what is called by name, a method's or a remedy's, by what it exports. Of bytes that are
/// no component [`inspect`] says so.
pub(crate) fn world_called(bytes: &[u8]) -> World {
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(bytes).map_while(Result::ok) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "wasmparser's enum is non-exhaustive")]
        match payload {
            Payload::Version { .. } => depth = depth.saturating_add(1),
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentExportSection(exports) if depth == 1 => {
                let mut names = exports.into_iter().map_while(Result::ok);
                if names.any(|export| export.name.name == World::Remedy.export()) {
                    return World::Remedy;
                }
            }
            _ => {}
        }
    }
    World::Method
}

/// The proposals compilers use by default and nothing else; wasmtime is configured alike.
pub(crate) fn features() -> WasmFeatures {
    WasmFeatures::MUTABLE_GLOBAL
        | WasmFeatures::SATURATING_FLOAT_TO_INT
        | WasmFeatures::SIGN_EXTENSION
        | WasmFeatures::REFERENCE_TYPES
        | WasmFeatures::MULTI_VALUE
        | WasmFeatures::BULK_MEMORY
        | WasmFeatures::SIMD
        | WasmFeatures::FLOATS
        | WasmFeatures::EXTENDED_CONST
        // Reference types are spelled through it inside the validator; no GC object can be made.
        | WasmFeatures::GC_TYPES
        | WasmFeatures::COMPONENT_MODEL
}

/// Names what else the bytes could be, because "invalid" helps nobody who attached a wrong file.
fn check_encoding(bytes: &[u8]) -> Result<(), InspectError> {
    let what = match bytes {
        [0x7f, b'E', b'L', b'F', ..] => {
            "machine code (ELF); precompiled plugins are never accepted"
        }
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => "a core module",
        [0, b'a', b's', b'm', ..] => return Ok(()),
        [] => "nothing",
        [0x1f, 0x8b, ..] => "a gzip archive",
        text if text.trim_ascii_start().starts_with(b"(") => "WebAssembly text",
        _ => "something else",
    };
    Err(InspectError::NotAComponent(what))
}

struct Seen<'a> {
    world: World,
    /// How deep inside the component: 1 is its own level.
    depth: u32,
    nested: u32,
    functions: u32,
    functions_max: u32,
    exports_it: bool,
    manifests: Vec<&'a [u8]>,
}

impl<'a> Seen<'a> {
    fn of(world: World, functions_max: u32) -> Self {
        let (depth, nested, functions) = (0, 0, 0);
        let (exports_it, manifests) = (false, Vec::new());
        Self { world, depth, nested, functions, functions_max, exports_it, manifests }
    }

    fn look_at(&mut self, payload: Payload<'a>) -> Result<(), InspectError> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "wasmparser's enum is non-exhaustive")]
        match payload {
            Payload::Version { encoding, .. } => {
                if self.depth == 0 && encoding != Encoding::Component {
                    return Err(InspectError::NotAComponent("a core module"));
                }
                self.depth += 1;
            }
            Payload::End(_) => self.depth = self.depth.saturating_sub(1),
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                self.nested += 1;
                at_most("nested modules and components", self.nested, NESTED_MAX)?;
            }
            Payload::CodeSectionStart { count, .. } => {
                self.functions = self.functions.saturating_add(count);
                at_most("functions", self.functions, self.functions_max)?;
            }
            Payload::CodeSectionEntry(body) => {
                let (found, max) = (body.range().len(), FUNCTION_BYTES_MAX);
                if found > max {
                    return Err(InspectError::TooMany { what: "bytes in a function", found, max });
                }
            }
            Payload::CustomSection(section) if section.name() == MANIFEST_SECTION => {
                self.manifests.push(section.data());
            }
            Payload::ComponentImportSection(imports) if self.depth == 1 => {
                for import in imports {
                    check_import(self.world, import.map_err(|error| invalid(&error))?.name.name)?;
                }
            }
            Payload::ComponentExportSection(exports) if self.depth == 1 => {
                for export in exports {
                    let export = export.map_err(|error| invalid(&error))?;
                    check_version(export.name.name)?;
                    self.exports_it |= export.name.name == self.world.export();
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether a name of the contract's package is of the version that this host speaks.
fn check_version(name: &str) -> Result<(), InspectError> {
    let ours = name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('/'));
    match ours.and_then(|rest| rest.split_once('@')) {
        Some((_, found)) if found != VERSION => {
            let found = found.escape_debug().take(VERSION_CHARS_MAX).collect();
            Err(InspectError::Version { found })
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether this host offers what a component imports by this name.
pub(crate) fn is_offered(world: World, name: &str) -> bool {
    let wasi =
        name.split_once("@0.2.").is_some_and(|(name, _)| wasi_stubs::ALLOWED.contains(&name));
    wasi || world.ours().contains(&name)
}

fn check_import(world: World, name: &str) -> Result<(), InspectError> {
    check_version(name)?;
    if is_offered(world, name) {
        return Ok(());
    }
    // A name from outside: it goes into messages.
    Err(InspectError::Import(name.escape_debug().take(200).collect()))
}

fn at_most(what: &'static str, found: u32, max: u32) -> Result<(), InspectError> {
    if found <= max {
        return Ok(());
    }
    let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
    Err(InspectError::TooMany { what, found: size(found), max: size(max) })
}

fn invalid(error: &wasmparser::BinaryReaderError) -> InspectError {
    InspectError::Invalid(error.to_string())
}
