//! Components that no compiler makes: a core module written by hand, made a component of our world by the
//! tool chain's own encoder, with the attacker's manifest; and sections put behind a component's end.

use anyhow::{Context as _, Result};
use node_remedy_tests::process::repository;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use node_remedy_swarm::corpus::attacker_file;

/// A module that answers `on` to everything, and what makes it an attack.
#[derive(Clone, Copy)]
pub(crate) struct Module<'a> {
    /// Imports.
    pub(crate) imports: &'a str,
    /// What `run` does before it answers.
    pub(crate) run: &'a str,
    /// More fields of the module.
    pub(crate) more: &'a str,
    /// The bytes of its answer that say which state it read, in WAT; `\00` is on.
    pub(crate) state: &'a str,
    pub(crate) encoding: StringEncoding,
}

/// One that does nothing.
pub(crate) const HONEST: Module<'static> =
    Module { imports: "", run: "", more: "", state: "\\00", encoding: StringEncoding::UTF8 };

/// The functions of our world, as the encoder names them (wit-component, "legacy" names).
const METHOD: &str = "node-remedy:fence/method@0.1.0";
const MANIFEST: &str = "node-remedy:manifest";

impl Module<'_> {
    /// The component.
    pub(crate) fn component(&self) -> Result<Vec<u8>> {
        self.component_with(&std::fs::read(manifest_file())?)
    }

    fn component_with(&self, manifest: &[u8]) -> Result<Vec<u8>> {
        let Self { imports, run, more, state, encoding } = self;
        let sixteen = "i32 ".repeat(16);
        // The answer lies at 1024: `ok`, at 8 the state, then three empty lists.
        let text = format!(
            "(module {imports} \
               (memory (export \"memory\") 2) \
               (global $next (mut i32) (i32.const 65536)) \
               (data (i32.const 1024) \"\\00\\00\\00\\00\\00\\00\\00\\00{state}\") \
               (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) \
                 global.get $next \
                 (global.set $next (i32.add (global.get $next) \
                   (i32.and (i32.add (local.get 3) (i32.const 15)) (i32.const -8))))) \
               (func (export \"{METHOD}#run\") (param {sixteen}) (result i32) \
                 {run} (i32.const 1024)) \
               (func (export \"{METHOD}#plugs\") (param i32 i32 i32 i32 i32) (result i32) \
                 unreachable) \
               {more})"
        );
        let mut module = wat::parse_str(&text)?;
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_path(repository().join("wit"))?;
        let world = resolve.select_world(&[package], Some("fence-method"))?;
        embed_component_metadata(&mut module, &resolve, world, *encoding)?;
        let component = ComponentEncoder::default().module(&module)?.encode()?;
        Ok(with_section(&component, MANIFEST, manifest))
    }
}

/// One whose manifest has so many bytes, most of them blank.
pub(crate) fn with_manifest_of(bytes: usize) -> Result<Vec<u8>> {
    let mut manifest = std::fs::read(manifest_file())?;
    manifest.resize(bytes, b' ');
    HONEST.component_with(&manifest)
}

fn manifest_file() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/attacker/manifest.json")
}

/// The attacker as its author built it.
pub(crate) fn attacker() -> Result<Vec<u8>> {
    let file = attacker_file();
    std::fs::read(&file).with_context(|| format!("no {}", file.display()))
}

/// A component of this text that looks like a plugin from a distance: it exports the method's name and
/// holds a manifest.
pub(crate) fn lookalike(fields: &str) -> Result<Vec<u8>> {
    let shell = format!("(component {fields} (instance $m) (export \"{METHOD}\" (instance $m)))");
    Ok(with_section(&wat::parse_str(shell)?, MANIFEST, &std::fs::read(manifest_file())?))
}

/// A component with one more custom section at its end.
pub(crate) fn with_section(component: &[u8], name: &str, data: &[u8]) -> Vec<u8> {
    let body = [&leb(name.len()), name.as_bytes(), data].concat();
    with_raw_section(component, 0, &body)
}

/// A component with so many instances of one more core module at its end.
pub(crate) fn with_instances(component: &[u8], module: &str, count: usize) -> Result<Vec<u8>> {
    let modules = wasmparser::Parser::new(0).parse_all(component);
    // Those of the component itself; the encoder puts none any deeper.
    let before = modules
        .filter(|part| matches!(part, Ok(wasmparser::Payload::ModuleSection { .. })))
        .count();
    let with_module = with_raw_section(component, 1, &wat::parse_str(module)?);
    // Each: instantiate, the module, no arguments (component model, Binary.md, core:instance).
    let one = [&[0], leb(before).as_slice(), &[0]].concat();
    Ok(with_raw_section(&with_module, 2, &[leb(count), one.repeat(count)].concat()))
}

/// A component with so many empty components at its end.
pub(crate) fn with_components(component: &[u8], count: usize) -> Vec<u8> {
    let empty = with_raw_section(&[], 4, b"\0asm\x0d\0\x01\0");
    [component, &empty.repeat(count)].concat()
}

fn with_raw_section(component: &[u8], id: u8, body: &[u8]) -> Vec<u8> {
    [component, &[id], &leb(body.len()), body].concat()
}

/// A number as WebAssembly writes it (unsigned LEB128).
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
