//! Reads the files that commands are given, up to a limit, and nothing that may never end.

use std::fs;
use std::fs::File;
use std::io::{IsTerminal as _, Read, stdin};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use crate::output::complain;

/// Where a shell's `<(…)` and what this process was started with are found.
const DESCRIPTORS: [&str; 3] = ["/dev/fd", "/proc/self/fd", "/dev/stdin"];

/// What a file or, for `-`, stdin holds, if that is at most `bytes_max`. Whoever started this process
/// and gave it an open pipe also ends it; a pipe by name may be one that nobody ever writes to, and a
/// device one that never ends: neither is opened.
pub fn read_bytes(file: &Path, bytes_max: usize) -> anyhow::Result<Vec<u8>> {
    if file == Path::new("-") {
        if stdin().is_terminal() {
            complain(format_args!("reading from the terminal; Ctrl-D ends it"));
        }
        return up_to(stdin(), bytes_max);
    }
    if !DESCRIPTORS.iter().any(|folder| file.starts_with(folder)) {
        let kind = fs::metadata(file)?.file_type();
        anyhow::ensure!(
            !kind.is_fifo(),
            "found a named pipe, which may never end, expected a file, or - for stdin"
        );
        anyhow::ensure!(
            !kind.is_char_device() && !kind.is_block_device(),
            "found a device, expected a file, or - for stdin"
        );
    }
    up_to(File::open(file)?, bytes_max)
}

fn up_to(source: impl Read, bytes_max: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than may be, and no more.
    let limit = u64::try_from(bytes_max)?.saturating_add(1);
    source.take(limit).read_to_end(&mut bytes)?;
    anyhow::ensure!(
        bytes.len() <= bytes_max,
        "found more than the {bytes_max} bytes that it may have"
    );
    Ok(bytes)
}

/// The same of a file that must hold text.
pub fn read_text(file: &Path, bytes_max: usize) -> anyhow::Result<String> {
    let bytes = read_bytes(file, bytes_max)?;
    String::from_utf8(bytes).map_err(|error| {
        let text = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = text.split(|byte| *byte == b'\n').count();
        anyhow::anyhow!("line {line}: found bytes that are no text (UTF-8)")
    })
}
