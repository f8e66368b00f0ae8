//! What commands print. All of it goes through here, so that a reader who has seen enough, such as
//! `head -1`, ends a command quietly.

use std::fmt;
use std::io::{ErrorKind, Write as _};

use anyhow::Context as _;

/// Nobody reads what is printed any more.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads what is printed")]
pub struct Unread;

impl Unread {
    /// How a shell reports a program that a broken pipe ended (128 + SIGPIPE).
    pub const EXIT: u8 = 141;
}

/// Prints, at once. Fails with [`Unread`] where nobody reads.
pub fn print(words: fmt::Arguments<'_>) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let printed = stdout.write_fmt(words).and_then(|()| stdout.flush());
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Unread.into()),
        printed => printed.context("failed to print"),
    }
}

/// Prints a line to stderr. Where nobody reads, there is nobody to tell that nobody reads.
pub fn complain(words: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Prints, or ends the function that prints.
#[macro_export]
macro_rules! out {
    ($($words:tt)*) => { $crate::output::print(format_args!($($words)*))? };
}

/// Prints a line, or ends the function that prints.
#[macro_export]
macro_rules! outln {
    ($($words:tt)*) => {
        $crate::output::print(format_args!("{}\n", format_args!($($words)*)))?
    };
}

pub use {out, outln};
