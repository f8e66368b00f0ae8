//! The search for secrets: each credential of the corpus holds a canary, and everything that anybody could
//! read afterwards is searched for it: as it is, backwards, in hex and in base64, in runs of eight
//! characters.

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};

/// Put on the wire by the host, shown to nobody.
pub(crate) const ACCOUNT: &str = "Canary-Zq7xKw93Lm-Tweet";
/// Shown to a plugin where `reveal` is granted.
pub(crate) const COMMUNITY: &str = "Canary-Vb2yPd48Rf-Chirp";
/// A run that is in both would be found of one where it is of the other.
const RUN: usize = 8;

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

/// Fails where a run of a canary stands in the words, in one of its forms.
pub(crate) fn sings_not(words: &str) -> Result<()> {
    for form in [ACCOUNT, COMMUNITY].iter().flat_map(|canary| forms(canary)) {
        let place = words.find(&form).or_else(|| words.to_lowercase().find(&form));
        ensure!(place.is_none(), "{form:?}, of a canary, is in: {}", around(words, place));
    }
    Ok(())
}

fn around(words: &str, place: Option<usize>) -> &str {
    let place = place.unwrap_or_default();
    let start = words.floor_char_boundary(place.saturating_sub(80));
    words.get(start..words.floor_char_boundary(place + 80)).unwrap_or_default()
}

/// Everything that shows eight characters of it in a row.
fn forms(canary: &str) -> Vec<String> {
    // "Canary-" stands in both, and in this file's own messages.
    let own: Vec<u8> = canary.trim_start_matches("Canary-").bytes().collect();
    let backwards: Vec<u8> = own.iter().rev().copied().collect();
    let mut forms = Vec::new();
    for bytes in [own, backwards] {
        for run in bytes.windows(RUN) {
            forms.push(String::from_utf8_lossy(run).into_owned());
            forms.push(run.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat());
        }
        // In base64 a run looks otherwise at each of three places.
        for run in bytes.windows(9) {
            forms.push(base64(run));
        }
        // A list of numbers, as Rust prints bytes.
        for run in bytes.windows(RUN) {
            let numbers: Vec<_> = run.iter().map(u8::to_string).collect();
            forms.push(numbers.join(", "));
        }
    }
    forms
}

/// Of three bytes at a time (RFC 4648 §4), so that nothing is filled up.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |value: u32| LETTERS.get(usize::try_from(value & 63).unwrap_or(0)).copied();
    let of_three = |three: &[u8]| {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        [18, 12, 6, 0].into_iter().filter_map(move |shift| letter(bits >> shift)).map(char::from)
    };
    bytes.chunks_exact(3).flat_map(|three| of_three(three).collect::<Vec<_>>()).collect()
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

#[test]
fn plugins_attacks_find_a_canary_in_each_of_its_forms() {
    let own = ACCOUNT.trim_start_matches("Canary-");
    let backwards: String = own.chars().rev().collect();
    let hex = own.bytes().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().concat();
    for sung in [
        format!("the password is {ACCOUNT}."),
        format!("x{}x", own.get(3..11).unwrap_or_default()),
        backwards,
        hex,
        format!("Basic {}", base64(format!("operator:{ACCOUNT}aa").as_bytes())),
        format!("Basic {}", base64(format!("xoperator:{ACCOUNT}a").as_bytes())),
        format!("Basic {}", base64(format!("xyoperator:{ACCOUNT}").as_bytes())),
        format!("{:?}", own.as_bytes()),
    ] {
        assert!(sings_not(&sung).is_err(), "{sung}");
    }
    sings_not("Canary- and Tweet, which are no secrets; operator").unwrap();
    assert_eq!(base64(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVh");
}
