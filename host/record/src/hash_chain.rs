//! A file of JSON lines of which each carries the hash of the one before: what was changed, taken
//! out or put in later is found by whoever reads it.
//!
//! A file begins with a line that says after which line it goes on, or that it is the first. A
//! process that died within a line leaves it; the next one says so and goes on after it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use node_remedy_api::time::Moment;
use node_remedy_runtime::digest::sha256;
use serde::{Deserialize, Serialize};

/// A file that is larger is put aside.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// So many files put aside are kept, `.1` the latest.
const FILES_MAX: u32 = 8;
/// A line of ours is shorter; a longer one is none.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The file that is written.
#[derive(Debug)]
pub struct Chain {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
    /// The hash of the last line.
    last: Option<String>,
}

/// What stands in every line.
#[derive(Debug, Serialize)]
struct Line<'a, T> {
    previous: Option<&'a str>,
    at: Moment,
    #[serde(flatten)]
    what: &'a T,
}

/// The first line of a file, and of what a process adds to it.
#[derive(Debug, Serialize)]
struct Begin {
    kind: &'static str,
    /// The line before was never finished.
    torn: bool,
}

/// What of a line its place in the chain is checked by.
#[derive(Debug, Deserialize)]
struct Link {
    previous: Option<String>,
    kind: String,
    #[serde(default)]
    torn: bool,
}

impl Chain {
    /// Goes on with the file, or begins it.
    ///
    /// # Errors
    /// Where it cannot be read or written.
    pub fn open(path: &Path, now: Moment) -> Result<Self> {
        Self::open_of(path, FILE_BYTES_MAX, now)
    }

    fn open_of(path: &Path, bytes_max: u64, now: Moment) -> Result<Self> {
        let told = path.display();
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .with_context(|| format!("failed to open the audit log {told}"))?;
        let (last, torn) =
            last_line(&mut file).with_context(|| format!("failed to read {told}"))?;
        if torn {
            file.write_all(b"\n").with_context(|| format!("failed to write {told}"))?;
        }
        let bytes = file.metadata().with_context(|| format!("failed to read {told}"))?.len();
        let mut chain = Self { path: path.to_owned(), file, bytes, bytes_max, last };
        chain.write(&Begin { kind: "begin", torn }, now)?;
        Ok(chain)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Where it cannot be written; a part of it may stand in the file then.
    pub fn add<T: Serialize>(&mut self, what: &T, now: Moment) -> Result<()> {
        if self.bytes >= self.bytes_max {
            self.put_aside()?;
            self.write(&Begin { kind: "begin", torn: false }, now)?;
        }
        self.write(what, now)
    }

    fn write<T: Serialize>(&mut self, what: &T, now: Moment) -> Result<()> {
        let line = Line { previous: self.last.as_deref(), at: now, what };
        let mut line = serde_json::to_string(&line)?;
        let hash = sha256(line.as_bytes());
        line.push('\n');
        let written = self.file.write_all(line.as_bytes());
        written.with_context(|| format!("failed to write {}", self.path.display()))?;
        self.bytes = self.bytes.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
        self.last = Some(hash);
        Ok(())
    }

    /// Begins a new file; the ones before move one number up, and the oldest goes.
    fn put_aside(&mut self) -> Result<()> {
        let numbered = |number: u32| PathBuf::from(format!("{}.{number}", self.path.display()));
        for number in (1..FILES_MAX).rev() {
            let from = numbered(number);
            if from.exists() {
                std::fs::rename(&from, numbered(number.saturating_add(1)))?;
            }
        }
        std::fs::rename(&self.path, numbered(1))?;
        self.file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

/// The hash of the last line, and whether the line was never finished.
fn last_line(file: &mut File) -> Result<(Option<String>, bool)> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LINE_BYTES_MAX)))?;
    let mut tail = Vec::new();
    file.take(LINE_BYTES_MAX).read_to_end(&mut tail)?;
    if tail.is_empty() {
        return Ok((None, false));
    }
    let torn = tail.last() != Some(&b'\n');
    let end = if torn { tail.as_slice() } else { tail.strip_suffix(b"\n").unwrap_or(&tail) };
    let last = end.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok((Some(sha256(last)), torn))
}

/// What was found in files that are whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    /// Lines in all.
    pub lines: u64,
    /// Lines that a process died within, as the line after each says.
    pub torn: u64,
    /// Whether the first file goes on after one that was not given.
    pub goes_on: bool,
    /// The hash of the last line: whoever keeps it elsewhere knows that nothing is missing.
    pub last: String,
}

/// Checks files in the order in which they were written, the oldest first.
///
/// # Errors
/// Names the first line that does not follow from the one before, as `FILE:LINE`.
pub fn verify(files: &[PathBuf]) -> Result<Whole> {
    let mut whole = Whole { lines: 0, torn: 0, goes_on: false, last: String::new() };
    let mut before: Option<String> = None;
    // A line that is no JSON is forgiven by the line after it alone.
    let mut unread: Option<String> = None;
    for path in files {
        let told = path.display();
        let file = File::open(path).with_context(|| format!("failed to open {told}"))?;
        let mut reader = BufReader::new(file);
        for number in 1_u64.. {
            let mut line = Vec::new();
            let limit = LINE_BYTES_MAX.saturating_add(1);
            let read = reader.by_ref().take(limit).read_until(b'\n', &mut line);
            if read.with_context(|| format!("failed to read {told}"))? == 0 {
                break;
            }
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let place = format!("{told}:{number}");
            let link = serde_json::from_slice::<Link>(line).ok();
            if let Some(broken) = unread.take() {
                if !link.as_ref().is_some_and(|link| link.kind == "begin" && link.torn) {
                    bail!("{broken}: found what is no line of an audit log");
                }
                whole.torn = whole.torn.saturating_add(1);
            }
            match &link {
                None => unread = Some(place.clone()),
                Some(link) if whole.lines == 0 && link.kind == "begin" => {
                    whole.goes_on = link.previous.is_some();
                }
                Some(link) if link.previous == before && before.is_some() => {}
                Some(_) => bail!(
                    "{place}: found a line that does not follow from the one before: one of the \
                     two was changed, or something between them was taken out"
                ),
            }
            before = Some(sha256(line));
            whole.lines = whole.lines.saturating_add(1);
        }
    }
    if let Some(broken) = unread {
        bail!("{broken}: found what is no line of an audit log");
    }
    let Some(last) = before else { bail!("found nothing to verify, expected an audit log") };
    whole.last = last;
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A folder of its own for each test; it goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("node-remedy-chain-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn log(&self) -> PathBuf {
            self.0.join("audit.jsonl")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn write(path: &Path, lines: u64) {
        let mut chain = Chain::open(path, Moment::from_ms(0)).unwrap();
        for number in 0..lines {
            chain.add(&json!({"kind": "call", "number": number}), Moment::from_ms(number)).unwrap();
        }
    }

    fn check(path: &Path) -> Result<Whole, String> {
        verify(&[path.to_owned()]).map_err(|error| error.to_string())
    }

    #[test]
    fn what_was_written_is_whole_and_goes_on_after_a_restart() {
        let folder = Folder::new("whole");
        write(&folder.log(), 3);
        assert_eq!(check(&folder.log()).unwrap().lines, 4);
        write(&folder.log(), 2);
        let whole = check(&folder.log()).unwrap();
        assert_eq!((whole.lines, whole.torn, whole.goes_on), (7, 0, false));
    }

    #[test]
    fn the_first_line_that_does_not_follow_is_named() {
        let folder = Folder::new("broken");
        write(&folder.log(), 5);
        let kept = std::fs::read_to_string(folder.log()).unwrap();
        let lines: Vec<&str> = kept.lines().collect();
        let changed = kept.replace("\"number\":2", "\"number\":9");
        let removed: Vec<&str> = lines
            .iter()
            .enumerate()
            .filter(|(place, _)| *place != 2)
            .map(|(_, line)| *line)
            .collect();
        let mut swapped = lines.clone();
        swapped.swap(2, 3);
        let mut added = lines.clone();
        added.insert(2, r#"{"previous":null,"at":"1970-01-01T00:00:00.000Z","kind":"call"}"#);
        let mut noise = lines.clone();
        noise.insert(2, "noise");
        for (what, text, line) in [
            ("changed", changed, 5),
            ("removed", removed.join("\n"), 3),
            ("swapped", swapped.join("\n"), 3),
            ("added", added.join("\n"), 3),
            ("noise", noise.join("\n"), 3),
        ] {
            std::fs::write(folder.log(), text).unwrap();
            let refused = check(&folder.log()).unwrap_err();
            assert!(refused.contains(&format!("audit.jsonl:{line}: ")), "{what}: {refused}");
        }
        std::fs::write(folder.log(), "").unwrap();
        assert!(check(&folder.log()).unwrap_err().contains("nothing to verify"));
    }

    #[test]
    fn a_line_that_a_process_died_within_is_told_of_and_no_break() {
        let folder = Folder::new("torn");
        write(&folder.log(), 3);
        let kept = std::fs::read(folder.log()).unwrap();
        std::fs::write(folder.log(), &kept[..kept.len() - 20]).unwrap();
        write(&folder.log(), 1);
        let whole = check(&folder.log()).unwrap();
        assert_eq!((whole.lines, whole.torn), (6, 1));
    }

    #[test]
    fn a_full_file_is_put_aside_and_the_next_goes_on_after_it() {
        let folder = Folder::new("full");
        let mut chain = Chain::open_of(&folder.log(), 500, Moment::from_ms(0)).unwrap();
        for number in 0..9 {
            chain.add(&json!({"kind": "call", "number": number}), Moment::from_ms(0)).unwrap();
        }
        let files: Vec<PathBuf> =
            ["audit.jsonl.3", "audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]
                .into_iter()
                .map(|name| folder.0.join(name))
                .filter(|path| path.exists())
                .collect();
        assert!(files.len() > 2, "{files:?}");
        assert!(!verify(&files).unwrap().goes_on);
        assert!(verify(&files[1..]).unwrap().goes_on, "and says that one is missing before");
        let gap = verify(&[files[0].clone(), files[2].clone()]).unwrap_err().to_string();
        assert!(gap.contains(":1: "), "{gap}");
    }
}
