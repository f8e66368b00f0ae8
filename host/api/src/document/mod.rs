//! From text or object to typed values, with every problem named by its place.
//!
//! `tree` reads YAML with lines and columns, or takes an object of the API server as it is;
//! `check` holds a tree against the very schema that the custom resource definition carries;
//! `problem` is what a person reads. What the values mean is not decided here.

mod check;
mod problem;
mod suggest;
mod tree;

pub use self::problem::{Path, Problem, Problems, Reading, Severity, Spot};
pub use self::suggest::nearest;
pub use self::tree::{Document, Tree, Value};
pub use problem::Place;

pub(crate) use self::check::{check, schema_of, unknown_field};
