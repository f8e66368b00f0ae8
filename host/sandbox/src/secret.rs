//! A secret in the host's memory: wiped when dropped, never printed. Not here: what may be done
//! with it ([`crate::credentials`]).

use zeroize::Zeroizing;

/// A credential: who, and the bytes that prove it. It has no `Debug`, so nothing that holds one
/// can print it by accident.
#[derive(Clone)]
pub struct Secret {
    /// The user name, where there is one. Not secret.
    pub identity: Option<String>,
    /// The bytes that are.
    pub bytes: Zeroizing<Vec<u8>>,
}
