//! Names that a scenario gives.

use crate::scenario::spec::DeviceSpec;

/// A DNS label, which every name here must be.
pub(crate) fn is_object_name(name: &str) -> bool {
    let edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    name.len() <= 63
        && edge(name.chars().next())
        && edge(name.chars().last())
        && name.chars().all(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '-'))
}

/// Whom something can hit.
pub(crate) struct Cast<'a> {
    /// Nodes by name, with their zones.
    pub(crate) nodes: &'a [(&'a str, Option<&'a str>)],
    /// PDUs and switches.
    pub(crate) devices: &'a [DeviceSpec],
    /// Those that are instances of a cloud.
    pub(crate) instances: &'a [&'a str],
    /// Processes of node-remedy.
    pub(crate) controllers: u32,
}
