//! The storage system behind the pods' volumes: one file per volume, and who has it attached.
//!
//! It is as unkind as network block devices are: attachment is checked when a pod mounts, not at
//! every write. A machine that had the volume when its attachment was taken away writes on for as
//! long as it has power. So two writers on one volume are a fact in its file, not an inference.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};

/// The CSI driver's name, in CSIDriver, CSINode and PersistentVolumes.
pub const DRIVER: &str = "fake.csi";

/// The volumes of one cluster.
#[derive(Clone, Debug)]
pub struct Storage {
    folder: PathBuf,
    attached: Arc<Mutex<BTreeSet<Attachment>>>,
    kept_away: Arc<Mutex<BTreeSet<String>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Attachment {
    volume: String,
    node: String,
}

/// One line of a volume's file: this pod, in this boot of its machine, wrote at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The pod's name.
    pub pod: String,
    /// The boot id of the machine that it ran on.
    pub boot_id: String,
    /// Milliseconds of the cluster's clock.
    pub at_ms: u64,
    /// The pod's UID.
    pub uid: String,
}

impl Storage {
    /// Volumes whose files lie in `folder`.
    pub fn create(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, attached: Arc::default(), kept_away: Arc::default() })
    }

    /// The volume becomes reachable from the node.
    pub fn attach(&self, volume: &str, node: &str) {
        let attachment = Attachment { volume: volume.to_owned(), node: node.to_owned() };
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).insert(attachment);
    }

    /// The volume can no longer be mounted on the node.
    pub fn detach(&self, volume: &str, node: &str) {
        let attachment = Attachment { volume: volume.to_owned(), node: node.to_owned() };
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).remove(&attachment);
    }

    /// Whether the node may mount the volume.
    #[must_use]
    pub fn is_attached(&self, volume: &str, node: &str) -> bool {
        let attachment = Attachment { volume: volume.to_owned(), node: node.to_owned() };
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).contains(&attachment)
    }

    /// Refuses what the node writes, whatever is attached to it: its network is fenced.
    pub fn keep_away(&self, node: &str) {
        self.kept_away.lock().unwrap_or_else(PoisonError::into_inner).insert(node.to_owned());
    }

    /// Takes what the node writes again.
    pub fn let_back(&self, node: &str) {
        self.kept_away.lock().unwrap_or_else(PoisonError::into_inner).remove(node);
    }

    /// Whether the node is kept away.
    #[must_use]
    pub fn is_kept_away(&self, node: &str) -> bool {
        self.kept_away.lock().unwrap_or_else(PoisonError::into_inner).contains(node)
    }

    /// Appends one write. One `write` call, so that lines of two writers do not mix.
    pub fn append(&self, volume: &str, write: &Write) -> Result<()> {
        let Write { pod, boot_id, at_ms, uid } = write;
        let mut file = fs::File::options().create(true).append(true).open(self.file(volume))?;
        file.write_all(format!("{pod} {boot_id} {at_ms} {uid}\n").as_bytes())?;
        Ok(())
    }

    /// All writes to a volume, in the order in which the storage took them.
    pub fn writes(&self, volume: &str) -> Result<Vec<Write>> {
        read_writes(&self.file(volume))
    }

    /// The names of volumes that were ever written.
    pub fn volumes(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn file(&self, volume: &str) -> PathBuf {
        self.folder.join(volume)
    }
}

fn read_writes(path: &Path) -> Result<Vec<Write>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(failure) if failure.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(failure) => return Err(failure.into()),
    };
    text.lines()
        .map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let [pod, boot_id, at_ms, uid] = words.as_slice() else {
                return Err(anyhow!("failed to read the write {line:?}"));
            };
            Ok(Write {
                pod: (*pod).to_owned(),
                boot_id: (*boot_id).to_owned(),
                at_ms: at_ms.parse().with_context(|| format!("no time in {line:?}"))?,
                uid: (*uid).to_owned(),
            })
        })
        .collect()
}
