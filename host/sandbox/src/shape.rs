//! What a component is made of, for its author: imports, exports, and the size of each sort of section over all
//! that is nested in it. Reads and judges nothing, but says of each import whether this host offers it. Not
//! here: what is accepted ([`mod@crate::inspect`]).

use std::collections::BTreeMap;

use wasmparser::{Parser, Payload};

use crate::inspect::{InspectError, World, is_offered};
use crate::limits::COMPONENT_BYTES_MOST;

/// What a component is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// What it imports, and whether this host offers it to a fence method.
    pub imports: Vec<(String, bool)>,
    /// What it exports.
    pub exports: Vec<String>,
    /// Bytes by sort of section, the largest first; custom sections by their names.
    pub sections: Vec<(String, usize)>,
    /// Functions with code.
    pub functions: u32,
}

/// Looks at a component. What cannot be read ends it.
pub fn shape(bytes: &[u8]) -> Result<Shape, InspectError> {
    if bytes.len() > COMPONENT_BYTES_MOST {
        return Err(InspectError::TooLarge { bytes: bytes.len(), max: COMPONENT_BYTES_MOST });
    }
    let invalid = |error: wasmparser::BinaryReaderError| InspectError::Invalid(error.to_string());
    let (mut shape, mut depth) = (Shape::default(), 0_u32);
    let mut sizes = BTreeMap::<String, usize>::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let mut add = |name: &str, size: usize| {
            let sum = sizes.entry(name.escape_debug().collect()).or_default();
            *sum = sum.saturating_add(size);
        };
        #[expect(clippy::wildcard_enum_match_arm, reason = "wasmparser's enum is non-exhaustive")]
        match payload.map_err(invalid)? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CodeSectionStart { count, size, .. } => {
                shape.functions = shape.functions.saturating_add(count);
                add("code", usize::try_from(size).unwrap_or(usize::MAX));
            }
            Payload::DataSection(section) => add("data", section.range().len()),
            Payload::CustomSection(section) => add(section.name(), section.data().len()),
            Payload::ComponentImportSection(imports) if depth == 1 => {
                for import in imports {
                    let name = import.map_err(invalid)?.name.name;
                    let is_offered = is_offered(World::Method, name);
                    shape.imports.push((name.escape_debug().collect(), is_offered));
                }
            }
            Payload::ComponentExportSection(exports) if depth == 1 => {
                for export in exports {
                    let name = export.map_err(invalid)?.name.name;
                    shape.exports.push(name.escape_debug().collect());
                }
            }
            _ => {}
        }
    }
    let named: usize = sizes.values().sum();
    sizes.insert("types and glue".to_owned(), bytes.len().saturating_sub(named));
    shape.sections = sizes.into_iter().collect();
    shape.sections.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    Ok(shape)
}
