//! The words after a command's name.

use anyhow::{Result, bail};

/// For commands that take no arguments.
pub(crate) fn refuse(arguments: &[&str]) -> Result<()> {
    match arguments.first() {
        None => Ok(()),
        Some(unknown) => bail!("unknown argument {unknown:?}; see --help"),
    }
}
