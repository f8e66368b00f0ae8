//! Components that were fetched from registries, in a folder, so that one that is down costs nothing when this
//! process starts again. What is read is hashed again: a changed file is not used, and goes.
//!
//! Components only, never machine code: what comes from a disk is compiled in a child with limits like
//! everything from outside. The name of a file is the component's digest; beside it stands its manifest with
//! the signatures, which are checked again, too.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use node_remedy_sandbox::limits::COMPONENT_BYTES_MOST;
use serde::{Deserialize, Serialize};

use crate::artifact::{Artefact, Signature};

/// A manifest and sixteen signatures, in base64.
const BESIDE_BYTES_MAX: usize = 1 << 20;
/// Everything in the folder: some three hundred of the usual components, eight of 8 MiB, one of the largest
/// that an admin may allow, with what stands beside it.
const BYTES_MAX: u64 = 65 << 20;
const COMPONENT: &str = "wasm";
const BESIDE: &str = "json";
const WRITTEN: &str = "new";

/// A folder of components.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    bytes_max: u64,
}

/// What was kept of one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedImage {
    /// The image that it was, as the FencePlugin had it.
    pub image: String,
    /// What the registry gave.
    pub artefact: Artefact,
}

/// What stands beside a component.
#[derive(Serialize, Deserialize)]
struct Beside {
    image: String,
    manifest: String,
    signatures: Vec<SignatureBeside>,
}

#[derive(Serialize, Deserialize)]
struct SignatureBeside {
    payload: Option<String>,
    signature: String,
}

impl Cache {
    /// In this folder, which is made where it is not there.
    ///
    /// # Errors
    /// Where it cannot be made, or not be written to.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let cache = Self { folder: folder.to_owned(), bytes_max: BYTES_MAX };
        // What a process that was killed had begun to write.
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is = |ending| path.extension().is_some_and(|one| one == ending);
            if is(WRITTEN) || is(BESIDE) && !path.with_extension(COMPONENT).exists() {
                fs::remove_file(path)?;
            }
        }
        let probe = folder.join("probe");
        cache.write(&probe, b"")?;
        fs::remove_file(probe)?;
        Ok(cache)
    }

    /// The component of this digest, `sha256:…`, if it is there and is what its name says.
    pub fn get(&self, digest: &str, now: SystemTime) -> Option<CachedImage> {
        let path = self.path(digest, COMPONENT)?;
        let component = read(&path, COMPONENT_BYTES_MOST).ok()?;
        let beside = read(&self.path(digest, BESIDE)?, BESIDE_BYTES_MAX).ok();
        let kept = beside.and_then(|beside| kept(&beside, component));
        let checked = kept.and_then(|CachedImage { image, artefact }| {
            let artefact = artefact.checked("the cache", digest).ok()?;
            Some(CachedImage { image, artefact })
        });
        if checked.is_none() {
            tracing::warn!(
                file = %path.display(),
                "a cached component is not what its name says: it is not used, and fetched again"
            );
            self.forget(digest);
        } else {
            touch(&path, now);
        }
        checked
    }

    /// Keeps what a registry gave for an image; older ones go where there is no room.
    ///
    /// # Errors
    /// Where it cannot be written; nothing is kept then.
    pub fn put(&self, digest: &str, kept: &CachedImage, now: SystemTime) -> io::Result<()> {
        let CachedImage { image, artefact } = kept;
        let signatures = artefact.signatures.iter().map(|one| SignatureBeside {
            payload: one.payload.as_ref().map(|payload| STANDARD.encode(payload)),
            signature: one.signature.clone(),
        });
        let beside = Beside {
            image: image.clone(),
            manifest: STANDARD.encode(&artefact.manifest),
            signatures: signatures.collect(),
        };
        let beside = serde_json::to_vec(&beside)?;
        if beside.len() > BESIDE_BYTES_MAX {
            let why = "manifest and signatures take more than 1 MiB";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let paths = (self.path(digest, BESIDE), self.path(digest, COMPONENT));
        let (Some(path), Some(component)) = paths else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no digest"));
        };
        let bytes = beside.len().saturating_add(artefact.component.len());
        self.make_room(u64::try_from(bytes).unwrap_or(u64::MAX), digest)?;
        // The component comes last: it is there when all of it is.
        self.write(&path, &beside)?;
        self.write(&component, &artefact.component)?;
        touch(&component, now);
        Ok(())
    }

    /// Takes away what cannot be used.
    fn forget(&self, digest: &str) {
        for ending in [COMPONENT, BESIDE] {
            if let Some(path) = self.path(digest, ending) {
                // It may be gone already, and what stays is not used either.
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes what was not used for the longest time until `bytes` more have room.
    fn make_room(&self, bytes: u64, except: &str) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let about = entry.metadata()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), name, about.len()));
        }
        let mut used: u64 = entries.iter().map(|(_, _, length)| length).sum();
        entries.sort();
        let except = hex_of(except).unwrap_or_default();
        for (_, name, _) in &entries {
            let is_spared = name.starts_with(except) || !name.ends_with(COMPONENT);
            if used.saturating_add(bytes) <= self.bytes_max || is_spared {
                continue;
            }
            let Some(hex) = name.strip_suffix(&format!(".{COMPONENT}")) else { continue };
            self.forget(&format!("sha256:{hex}"));
            let with_it = [name.clone(), format!("{hex}.{BESIDE}")];
            let gone = entries.iter().filter(|(_, name, _)| with_it.contains(name));
            used = used.saturating_sub(gone.map(|(_, _, length)| length).sum());
        }
        Ok(())
    }

    /// Whole, or not at all.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let under_way = self.folder.join(format!("{}.{WRITTEN}", name.unwrap_or_default()));
        let mut options = File::options();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&under_way)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&under_way, path)
    }

    /// `None` where it is no digest: nothing else names a file.
    fn path(&self, digest: &str, ending: &str) -> Option<PathBuf> {
        Some(self.folder.join(format!("{}.{ending}", hex_of(digest)?)))
    }
}

fn hex_of(digest: &str) -> Option<&str> {
    node_remedy_api::fenceplugin::is_digest(digest).then(|| digest.strip_prefix("sha256:"))?
}

/// What a file holds, if it is one and holds no more.
fn read(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    // A pipe in its place would keep us waiting.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "found no file"));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "found too many bytes"));
    }
    Ok(bytes)
}

/// Used now: what was not used for the longest time goes first. Where that cannot be written it goes sooner.
fn touch(path: &Path, now: SystemTime) {
    if let Ok(file) = File::options().append(true).open(path) {
        let _ = file.set_modified(now);
    }
}

fn kept(beside: &[u8], component: Vec<u8>) -> Option<CachedImage> {
    let Beside { image, manifest, signatures } = serde_json::from_slice(beside).ok()?;
    let signatures = signatures.into_iter().map(|SignatureBeside { payload, signature }| {
        let payload = match payload {
            Some(payload) => Some(STANDARD.decode(payload).ok()?),
            None => None,
        };
        Some(Signature { payload, signature })
    });
    let signatures = signatures.collect::<Option<Vec<_>>>()?;
    let manifest = STANDARD.decode(manifest).ok()?;
    Some(CachedImage { image, artefact: Artefact { manifest, component, signatures } })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use node_remedy_sandbox::Digest;
    use serde_json::json;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("node-remedy-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn at(s: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(s)
    }

    /// An artefact with these bytes as its component, and their digest.
    fn kept(component: &[u8]) -> (String, CachedImage) {
        let digest = Digest::of(component).to_string();
        let config = "application/vnd.wasm.config.v0+json";
        let manifest = json!({
            "schemaVersion": 2, "config": {"mediaType": config, "digest": digest, "size": 2},
            "layers": [{"mediaType": "application/wasm", "digest": digest, "size": component.len()}],
        });
        let payload = Some(b"payload".to_vec());
        let artefact = Artefact {
            manifest: manifest.to_string().into_bytes(),
            component: component.to_vec(),
            signatures: vec![Signature { payload, signature: "c2ln".to_owned() }],
        };
        (digest, CachedImage { image: "r.example.org/a:v1".to_owned(), artefact })
    }

    #[test]
    fn what_was_put_is_there_for_another_process() {
        let folder = folder("cache-put");
        let (digest, kept) = kept(b"one");
        Cache::open(&folder).unwrap().put(&digest, &kept, at(1)).unwrap();
        fs::write(folder.join("half.wasm.new"), b"half").unwrap();
        fs::write(folder.join("half.json"), b"half").unwrap();
        let cache = Cache::open(&folder).unwrap();
        assert_eq!(cache.get(&digest, at(2)), Some(kept));
        assert_eq!(cache.get(&Digest::of(b"other").to_string(), at(2)), None);
        assert_eq!(cache.get("../etc/passwd", at(2)), None);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing half written is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_changed_file_is_not_used_and_goes() {
        let folder = folder("cache-changed");
        let cache = Cache::open(&folder).unwrap();
        let (digest, kept) = kept(b"a component");
        let hex = digest.strip_prefix("sha256:").unwrap();
        let (wasm, beside) =
            (folder.join(format!("{hex}.wasm")), folder.join(format!("{hex}.json")));
        let change = |path: &Path| {
            let mut bytes = fs::read(path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(path, bytes).unwrap();
        };
        for number in 0..4 {
            cache.put(&digest, &kept, at(1)).unwrap();
            assert!(cache.get(&digest, at(1)).is_some());
            match number {
                0 => change(&wasm),
                1 => change(&beside),
                2 => fs::remove_file(&beside).unwrap(),
                _ => {
                    // Somebody's link to something else is not followed.
                    fs::rename(&wasm, folder.join("elsewhere")).unwrap();
                    std::os::unix::fs::symlink(folder.join("elsewhere"), &wasm).unwrap();
                }
            }
            assert_eq!(cache.get(&digest, at(1)), None, "{number}");
        }
        cache.put(&digest, &kept, at(1)).unwrap();
        assert_eq!(cache.get(&digest, at(1)), Some(kept), "it is replaced");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let folder = folder("cache-full");
        let cache = Cache { bytes_max: 9_000, ..Cache::open(&folder).unwrap() };
        let all: Vec<_> = (1..=4).map(|byte| kept(&[byte; 2_000])).collect();
        for (index, (digest, kept)) in all.iter().take(3).enumerate() {
            cache.put(digest, kept, at(u64::try_from(index).unwrap())).unwrap();
        }
        assert!(cache.get(&all[0].0, at(10)).is_some(), "the oldest is used");
        cache.put(&all[3].0, &all[3].1, at(11)).unwrap();
        let there = all.iter().map(|(digest, _)| cache.get(digest, at(12)).is_some());
        assert_eq!(there.collect::<Vec<_>>(), [true, false, true, true]);
        fs::remove_dir_all(folder).unwrap();
    }

    fn used(folder: &Path) -> u64 {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }

    #[test]
    fn the_folder_may_be_full_and_a_byte_more_costs_the_oldest() {
        let [old, new] = [b"old", b"new"].map(|component| kept(component));
        let filler = Digest::of(b"filler").to_string();
        for (more, is_there) in [(0, true), (1, false)] {
            let folder = folder("cache-edge");
            let cache = Cache::open(&folder).unwrap();
            cache.put(&old.0, &old.1, at(1)).unwrap();
            let each = used(&folder);
            // It takes no room on the disk.
            let path = cache.path(&filler, COMPONENT).unwrap();
            File::create(&path).unwrap().set_len(BYTES_MAX - 2 * each + more).unwrap();
            touch(&path, at(2));
            cache.put(&new.0, &new.1, at(3)).unwrap();
            assert_eq!(cache.get(&old.0, at(4)).is_some(), is_there);
            assert!(cache.get(&new.0, at(4)).is_some());
            let left = if is_there { BYTES_MAX } else { BYTES_MAX - each + 1 };
            assert_eq!(used(&folder), left);
            fs::remove_dir_all(folder).unwrap();
        }
        assert_eq!(BYTES_MAX, 68_157_440);
        let largest = COMPONENT_BYTES_MOST + BESIDE_BYTES_MAX;
        assert_eq!(BYTES_MAX, u64::try_from(largest).unwrap(), "one that may be loaded has room");
    }

    /// What stands beside a component goes with it, and makes room, too.
    #[test]
    fn no_more_goes_than_makes_room() {
        let folder = folder("cache-room");
        let cache = Cache::open(&folder).unwrap();
        let all: Vec<_> = (1..=4).map(|byte| kept(&[byte; 10])).collect();
        for ((digest, kept), s) in all.iter().take(3).zip(1..) {
            cache.put(digest, kept, at(s)).unwrap();
        }
        let full = used(&folder);
        let cache = Cache { bytes_max: full, ..cache };
        cache.put(&all[3].0, &all[3].1, at(4)).unwrap();
        assert_eq!(used(&folder), full);
        let there = all.iter().map(|(digest, _)| cache.get(digest, at(5)).is_some());
        assert_eq!(there.collect::<Vec<_>>(), [false, true, true, true]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_stands_beside_a_component_has_a_mib_and_no_byte_more() {
        let folder = folder("cache-beside");
        let cache = Cache::open(&folder).unwrap();
        let (digest, kept) = kept(b"a component");
        let beside = cache.path(&digest, BESIDE).unwrap();
        for (length, is_there) in [(BESIDE_BYTES_MAX, true), (BESIDE_BYTES_MAX + 1, false)] {
            cache.put(&digest, &kept, at(1)).unwrap();
            let mut bytes = fs::read(&beside).unwrap();
            bytes.resize(length, b' ');
            fs::write(&beside, bytes).unwrap();
            assert_eq!(cache.get(&digest, at(1)).is_some(), is_there, "{length}");
        }
        assert_eq!(BESIDE_BYTES_MAX, 1_048_576);

        let mut too_long = kept.clone();
        too_long.artefact.manifest.resize(BESIDE_BYTES_MAX, b' ');
        let refused = cache.put(&digest, &too_long, at(1)).unwrap_err().to_string();
        assert_eq!(refused, "manifest and signatures take more than 1 MiB");
        fs::remove_dir_all(folder).unwrap();
    }
}
