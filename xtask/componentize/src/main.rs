//! What `wit-bindgen c` and `wasm-tools component new` do, with the libraries that those are made of: nearly
//! all of them are compiled for the plugins in Rust anyway, and installing both tools takes nine minutes.
//! For examples/plugins-other/c; authors use the tools.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;
use wit_component::ComponentEncoder;

const USAGE: &str = "usage: node-remedy-componentize bindings WIT WORLD FOLDER
       node-remedy-componentize component CORE.wasm COMPONENT.wasm";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["bindings", wit, world, folder] => bindings(Path::new(wit), world, Path::new(folder)),
        ["component", core, component] => component_of(Path::new(core), Path::new(component)),
        _ => bail!(USAGE),
    }
}

/// Writes a header, a source and an object file that says of which world they are.
fn bindings(wit: &Path, world: &str, folder: &Path) -> Result<()> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit)?;
    let world = resolve.select_world(&[package], Some(world))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default().build().generate(&mut resolve, world, &mut files)?;
    fs::create_dir_all(folder)?;
    for (name, bytes) in files.iter() {
        let file = folder.join(name);
        fs::write(&file, bytes).with_context(|| format!("failed to write {}", file.display()))?;
    }
    Ok(())
}

/// Wraps a core module that says of which world it is. One that imports WASI would need an adapter, and is
/// refused.
fn component_of(core: &Path, component: &Path) -> Result<()> {
    let module = fs::read(core).with_context(|| format!("failed to read {}", core.display()))?;
    let mut encoder = ComponentEncoder::default();
    encoder.validate(true).module(&module)?;
    let bytes = encoder.encode()?;
    fs::write(component, bytes).with_context(|| format!("failed to write {}", component.display()))
}
