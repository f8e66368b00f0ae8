//! What clients ask of the API server.

use std::sync::Arc;

use serde_json::Value;

/// What a client asks of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a selection.
    List,
    /// Reads changes.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces an object or its status.
    Update,
    /// Changes an object or its status.
    Patch,
    /// Deletes an object.
    Delete,
}

/// Which part of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything but status.
    Main,
    /// The status subresource.
    Status,
}

/// The answer to a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// By namespace and name.
    pub items: Vec<Arc<Value>>,
    /// The resourceVersion from which to watch on.
    pub version: u64,
}

/// The answer to a delete.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// The object is gone; its last state.
    Gone(Arc<Value>),
    /// The object is marked and waits for its kubelet or for finalizers.
    Waiting(Arc<Value>),
}
