//! What was said in front of the canaries, and what our children were started with: all of it is searched at
//! a family's end. Not here: what a canary looks like ([`node_remedy_swarm::corpus::canary`]).

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
pub(crate) use node_remedy_swarm::corpus::canary::{ACCOUNT, sings_not};

/// Everything that was said since the process began.
static NOTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps words that somebody could read: reports with logs and evidence, errors.
pub(crate) fn note(words: &str) {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner).push(words.to_owned());
}

/// Fails where a canary is in anything that was noted, or in the arguments of our children.
pub(crate) fn nobody_sang() -> Result<usize> {
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    noted.extend(arguments_of_all()?);
    for words in &noted {
        sings_not(words)?;
    }
    Ok(noted.len())
}

/// What every process that we may look at was started with.
fn arguments_of_all() -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        // A process may be gone by now.
        if let Ok(arguments) = std::fs::read(entry?.path().join("cmdline")) {
            all.push(String::from_utf8_lossy(&arguments).into_owned());
        }
    }
    Ok(all)
}
