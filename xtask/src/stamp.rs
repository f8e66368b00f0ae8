//! Says whether a result still belongs to the files that it was made from.
//!
//! By content, not by time: a checkout changes every file's time.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A hash of files and folders with all that is in them. Not for anything an enemy could choose.
pub(crate) fn hash_of(paths: &[PathBuf]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for path in paths {
        for file in files_below(path)? {
            hasher.write(file.as_os_str().as_encoded_bytes());
            let bytes =
                fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?;
            hasher.write_usize(bytes.len());
            hasher.write(&bytes);
        }
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// All files below a folder, sorted; a file is its own only one. Build results and histories are
/// not looked into.
pub(crate) fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries =
        fs::read_dir(path).with_context(|| format!("failed to list {}", path.display()))?;
    let mut entries: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if matches!(name, "target" | ".git" | "node_modules" | "__pycache__") {
            continue;
        }
        files.extend(files_below(&entry)?);
    }
    Ok(files)
}

/// Whether `result` exists and was stamped with this hash.
pub(crate) fn is_fresh(result: &Path, hash: &str) -> bool {
    result.exists() && fs::read_to_string(stamp_of(result)).is_ok_and(|stamp| stamp == hash)
}

/// Stamps a result that was just made.
pub(crate) fn put(result: &Path, hash: &str) -> Result<()> {
    Ok(fs::write(stamp_of(result), hash)?)
}

fn stamp_of(result: &Path) -> PathBuf {
    let mut name = result.as_os_str().to_owned();
    name.push(".stamp");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_stale_when_a_source_or_the_result_changes_or_goes() {
        let folder = std::env::temp_dir().join(format!("xtask-stamp-{}", std::process::id()));
        let (sources, result) = (folder.join("src"), folder.join("result"));
        fs::create_dir_all(&sources).unwrap();
        fs::write(sources.join("a"), "1").unwrap();
        let hash = hash_of(std::slice::from_ref(&sources)).unwrap();
        assert!(!is_fresh(&result, &hash), "never made");
        fs::write(&result, "made").unwrap();
        assert!(!is_fresh(&result, &hash), "never stamped");
        put(&result, &hash).unwrap();
        assert!(is_fresh(&result, &hash_of(std::slice::from_ref(&sources)).unwrap()));
        fs::write(sources.join("a"), "2").unwrap();
        assert!(
            !is_fresh(&result, &hash_of(std::slice::from_ref(&sources)).unwrap()),
            "a source changed"
        );
        fs::write(sources.join("a"), "1").unwrap();
        fs::write(sources.join("b"), "").unwrap();
        assert!(!is_fresh(&result, &hash_of(&[sources]).unwrap()), "a source came");
        fs::remove_file(&result).unwrap();
        assert!(!is_fresh(&result, &hash), "the result is gone");
        fs::remove_dir_all(&folder).unwrap();
    }
}
