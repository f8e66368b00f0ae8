//! What was said in front of the canaries, and what our children were started with: all of it is searched at
//! a family's end. Not here: what a canary looks like ([`node_remedy_swarm::corpus::canary`]).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
pub(crate) use node_remedy_swarm::corpus::canary::{ACCOUNT, sings_not};

/// Everything that was said since the process began.
static NOTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps words that somebody could read: reports with logs and evidence, errors.
pub(crate) fn note(words: &str) {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner).push(words.to_owned());
}

/// Fails where a canary is in anything that was noted, or in the arguments of this process and its children.
pub(crate) fn nobody_sang() -> Result<usize> {
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    noted.extend(arguments_of_ours()?);
    for words in &noted {
        sings_not(words)?;
    }
    Ok(noted.len())
}

/// What this process was started with, and those that come of it; other tests' programs have passwords of their own.
fn arguments_of_ours() -> Result<Vec<String>> {
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Ok(process) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        // A process may be gone by now.
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        parents.insert(process, parent.unwrap_or(0_u32));
    }
    let own = std::process::id();
    let is_ours = |process: &u32| {
        let line = std::iter::successors(Some(*process), |one| parents.get(one).copied());
        line.take(parents.len()).any(|one| one == own)
    };
    let ours = parents.keys().filter(|process| is_ours(process));
    let arguments = ours.filter_map(|one| std::fs::read(format!("/proc/{one}/cmdline")).ok());
    let all: Vec<_> = arguments.map(|one| String::from_utf8_lossy(&one).into_owned()).collect();
    ensure!(!all.is_empty(), "not even this process was found in /proc");
    Ok(all)
}
