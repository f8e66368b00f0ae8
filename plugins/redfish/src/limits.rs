//! Every bound of this method, with its reason.

/// One request. BMCs that collect what they answer take several seconds, and some twenty.
pub(crate) const REQUEST_MS: u32 = 25_000;

/// Pages of a collection that are read, and members of all of them: the largest chassis have a few
/// dozen systems.
pub(crate) const PAGES_MAX: usize = 16;
/// See [`PAGES_MAX`].
pub(crate) const MEMBERS_MAX: usize = 128;
