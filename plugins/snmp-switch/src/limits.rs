//! Every bound of this method, with its reason.

/// Ports that a sentence names.
pub(crate) const NAMED_MAX: usize = 4;

/// A name on the device is cut here, in characters: ifAlias has at most 64.
pub(crate) const NAME_MAX: usize = 64;
