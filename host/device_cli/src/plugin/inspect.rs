//! `plugin inspect`: what a component says of itself, what it is made of, and whether it fits into a
//! ConfigMap. Of one that is refused the same, as far as it can be read, and why.

use std::path::Path;

use anyhow::Context as _;
use node_remedy_sandbox::{PluginLimits, Shape, shape};
use node_remedy_store::store::Plugins;
use serde_json::{Value, json};

use crate::args::Output;
use crate::output::outln;
use crate::plugin::describe::{describe, document};
use crate::plugin::file::{CONFIG_MAP_BYTES_MAX, beyond_the_usual, component, gzipped};

/// Sections that are shown, of the largest.
const SECTIONS_SHOWN: usize = 8;

/// Says what a component is, once it was compiled within the most that a FencePlugin may allow, and tried out.
pub(super) fn inspect(plugins: &Plugins, file: &Path, output: Output) -> anyhow::Result<()> {
    let wasm = component(file)?;
    let packed = gzipped(&wasm)?.len();
    let shape = shape(&wasm).ok();
    let loaded = plugins.load_within(&wasm, &PluginLimits::most());
    let beyond = loaded.as_ref().map(|plugin| beyond_the_usual(&wasm, plugin)).unwrap_or_default();
    match output {
        Output::Json => {
            let mut about = match &loaded {
                Ok(plugin) => document(plugin.manifest(), &plugin.digest().to_string()),
                Err(_) => json!({}),
            };
            if let Some(about) = about.as_object_mut() {
                about.insert("bytes".to_owned(), json!(wasm.len()));
                about.insert("gzippedBytes".to_owned(), json!(packed));
                let fits = packed <= CONFIG_MAP_BYTES_MAX;
                about.insert("fitsConfigMap".to_owned(), json!(fits));
                about.insert("limits".to_owned(), json!(beyond));
                about.insert("madeOf".to_owned(), shape.as_ref().map_or(Value::Null, made_of));
            }
            outln!("{about}");
        }
        Output::Text => {
            if let Ok(plugin) = &loaded {
                describe(plugin.manifest(), &plugin.digest().to_string())?;
            }
            if let Some(shape) = &shape {
                print(shape)?;
            }
            if loaded.is_ok() {
                outln!("{} bytes, compiled and tried out", wasm.len());
                for (limit, needed) in &beyond {
                    outln!("  needs spec.limits.{limit}: {needed}");
                }
            }
            let fits = if packed <= CONFIG_MAP_BYTES_MAX { "fits" } else { "does not fit" };
            outln!(
                "{packed} bytes gzipped: {fits} into a ConfigMap, which holds {CONFIG_MAP_BYTES_MAX}"
            );
        }
    }
    loaded.with_context(|| format!("failed to load {}", file.display()))?;
    Ok(())
}

fn print(shape: &Shape) -> anyhow::Result<()> {
    outln!("imports");
    for (name, is_offered) in &shape.imports {
        let refused = if *is_offered { "" } else { "  ✗ this host does not offer it" };
        outln!("  {name}{refused}");
    }
    outln!("exports");
    for name in &shape.exports {
        outln!("  {name}");
    }
    outln!("sections");
    for (name, bytes) in shape.sections.iter().take(SECTIONS_SHOWN) {
        let functions = match name.as_str() {
            "code" => format!("  {} functions", shape.functions),
            _ => String::new(),
        };
        outln!("  {name:<28} {bytes:>9}{functions}");
    }
    let rest = shape.sections.iter().skip(SECTIONS_SHOWN);
    let (count, bytes) = rest.fold((0_u32, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes));
    if count > 0 {
        outln!("  {:<28} {bytes:>9}", format!("{count} more"));
    }
    Ok(())
}

fn made_of(shape: &Shape) -> Value {
    let imports =
        shape.imports.iter().map(|(name, is_offered)| json!({"name": name, "offered": is_offered}));
    let sections = shape.sections.iter().map(|(name, bytes)| json!({"name": name, "bytes": bytes}));
    json!({
        "imports": imports.collect::<Vec<_>>(), "exports": shape.exports,
        "sections": sections.collect::<Vec<_>>(), "functions": shape.functions,
    })
}
