//! Secrets that are known when they are seen again, and the search for them: as they are, backwards, in hex,
//! in base64 and as a list of numbers, in runs of eight characters.

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Put on the wire by the host, shown to nobody.
pub const ACCOUNT: &str = "Canary-Zq7xKw93Lm-Tweet";
/// Shown to a plugin where `reveal` is granted.
pub const COMMUNITY: &str = "Canary-Vb2yPd48Rf-Chirp";
/// The token in the answer to a login: kept by the host, shown to nobody.
pub const TOKEN: &str = "Canary-Hn5sJt71Qb-Warble";
/// No run of this length stands in two canaries.
const RUN: usize = 8;

/// Fails where a run of a canary stands in the words, in one of its forms.
pub fn sings_not(words: &str) -> anyhow::Result<()> {
    is_not_in(words, &[ACCOUNT, COMMUNITY, TOKEN])
}

/// The same of other secrets.
pub fn is_not_in(words: &str, canaries: &[&str]) -> anyhow::Result<()> {
    let small = words.to_lowercase();
    for form in canaries.iter().flat_map(|canary| forms(canary)) {
        let place = words.find(&form).or_else(|| small.find(&form));
        ensure!(place.is_none(), "{form:?}, of a canary, is in: {}", around(words, place));
    }
    Ok(())
}

/// The same where what was kept is bytes.
pub fn sings_not_in(bytes: &[u8]) -> anyhow::Result<()> {
    sings_not(&String::from_utf8_lossy(bytes))
}

fn around(words: &str, place: Option<usize>) -> &str {
    let place = place.unwrap_or_default();
    let start = words.floor_char_boundary(place.saturating_sub(80));
    words.get(start..words.floor_char_boundary(place + 80)).unwrap_or_default()
}

/// Everything that shows eight characters of it in a row.
fn forms(canary: &str) -> Vec<String> {
    // "Canary-" stands in each, and in this file's own messages.
    let own: Vec<u8> = canary.trim_start_matches("Canary-").bytes().collect();
    let backwards: Vec<u8> = own.iter().rev().copied().collect();
    let mut forms = Vec::new();
    for bytes in [own, backwards] {
        for run in bytes.windows(RUN) {
            forms.push(String::from_utf8_lossy(run).into_owned());
            forms.push(run.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat());
            // As Rust prints bytes.
            forms.push(run.iter().map(u8::to_string).collect::<Vec<_>>().join(", "));
        }
        // A run looks otherwise at each of three places; of nine bytes nothing is filled up.
        forms.extend(bytes.windows(9).map(|run| STANDARD.encode(run)));
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_found_in_each_of_its_forms() {
        let own = ACCOUNT.trim_start_matches("Canary-");
        let backwards: String = own.chars().rev().collect();
        let hex = own.bytes().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().concat();
        for sung in [
            format!("the password is {ACCOUNT}."),
            format!("x{}x", own.get(3..11).unwrap_or_default()),
            backwards,
            hex,
            format!("Basic {}", STANDARD.encode(format!("operator:{ACCOUNT}"))),
            format!("Basic {}", STANDARD.encode(format!("xoperator:{ACCOUNT}"))),
            format!("Basic {}", STANDARD.encode(format!("xyoperator:{ACCOUNT}"))),
            format!("{:?}", own.as_bytes()),
        ] {
            assert!(sings_not(&sung).is_err(), "{sung}");
        }
        sings_not("Canary- and Tweet, which are no secrets; operator").unwrap();
    }
}
