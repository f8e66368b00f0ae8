//! A plugin's words on their way to people: known secrets blotted out, control characters
//! escaped, length capped, in that order. Log lines, details, notes and kept exchanges all pass
//! here. A plugin that encodes a secret it was allowed to read can still smuggle it; hex, the
//! encoding that happens by accident, is looked for too.

use std::fmt::Write as _;

use node_remedy_decide::bug::{Bug, guard};
use zeroize::Zeroizing;

/// Shorter secrets would blot out half of every sentence.
pub(crate) const SECRET_BYTES_MIN: usize = 4;
const BLOT: &str = "[secret]";

/// What must not be said.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<Zeroizing<Vec<u8>>>);

impl Secrets {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut known = Self::default();
        secrets.into_iter().for_each(|secret| known.add(secret));
        known
    }

    /// One more, which became known later.
    pub(crate) fn add(&mut self, secret: &[u8]) {
        if secret.len() < SECRET_BYTES_MIN || self.0.iter().any(|form| form.as_slice() == secret) {
            return;
        }
        let hex = secret.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        self.0.extend(in_forms_and_json(secret));
        self.0.push(Zeroizing::new(hex.to_uppercase().into_bytes()));
        self.0.push(Zeroizing::new(hex.into_bytes()));
        self.0.push(Zeroizing::new(secret.to_vec()));
        // Longest first, or a secret that begins another would leave the other's end standing.
        self.0.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }

    /// Whether there is none.
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a secret stands in the bytes.
    pub(crate) fn are_in(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|secret| find(bytes, secret).is_some())
    }

    /// The bytes with every secret overwritten by `*`, length kept.
    pub(crate) fn blot(&self, bytes: &[u8]) -> Vec<u8> {
        let mut blotted = bytes.to_vec();
        for secret in &self.0 {
            let mut from = 0;
            while let Some(at) = bytes.get(from..).and_then(|rest| find(rest, secret)) {
                let start = from + at;
                blotted.iter_mut().skip(start).take(secret.len()).for_each(|byte| *byte = b'*');
                // Secrets may overlap, and whether a byte is hidden must not depend on where the bytes begin.
                from = start + 1;
            }
        }
        blotted
    }

    /// The length of the longest secret, in any of its forms.
    pub(crate) fn longest(&self) -> usize {
        self.0.first().map_or(0, |secret| secret.len())
    }

    /// How many bytes at the end may be the beginning of a secret.
    pub(crate) fn begun_in(&self, bytes: &[u8]) -> usize {
        let begun = |secret: &Zeroizing<Vec<u8>>| {
            let mut shorter = (1..secret.len()).rev();
            shorter.find(|length| secret.get(..*length).is_some_and(|part| bytes.ends_with(part)))
        };
        self.0.iter().filter_map(begun).max().unwrap_or(0)
    }

    /// Text as it may be shown and stored.
    pub(crate) fn clean(&self, text: &str, bytes_max: usize) -> String {
        let mut text = text.to_owned();
        for secret in self.0.iter().filter(|_| guard(Bug::WordsUnblotted, true)) {
            if let Ok(secret) = std::str::from_utf8(secret) {
                text = text.replace(secret, BLOT);
            }
        }
        let mut clean = String::with_capacity(text.len().min(bytes_max));
        for character in text.chars() {
            let room = bytes_max.saturating_sub(clean.len());
            let escaped = if is_unseen(character) {
                character.escape_default().to_string()
            } else {
                character.to_string()
            };
            if escaped.len() > room {
                clean.push('…');
                break;
            }
            clean.push_str(&escaped);
        }
        clean
    }
}

/// As it stands in a form and in a string of JSON, where that is otherwise: an error page may repeat a login.
fn in_forms_and_json(secret: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let Ok(text) = std::str::from_utf8(secret) else { return Vec::new() };
    let form = percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC);
    let json = serde_json::to_string(text).unwrap_or_default();
    let json = json.trim_start_matches('"').trim_end_matches('"');
    let forms = [form.to_string(), json.to_owned()].into_iter().filter(|form| form != text);
    forms.map(|form| Zeroizing::new(form.into_bytes())).collect()
}

/// Characters that move the cursor, forge a line or reorder what is read.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Where `secret` begins in `bytes`.
pub(crate) fn find(bytes: &[u8], secret: &[u8]) -> Option<usize> {
    bytes.windows(secret.len()).position(|window| window == secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        Secrets::new([b"hunter2!".as_slice(), b"hunter2!more", b"abc"])
    }

    #[test]
    fn secrets_are_blotted_in_plain_and_in_hex() {
        let clean = secrets().clean("a hunter2! b hunter2!more c 68756e7465723221 d abc", 100);
        assert_eq!(clean, "a [secret] b [secret] c [secret] d abc");
        assert_eq!(secrets().blot(b"x hunter2! y"), b"x ******** y");
        assert_eq!(Secrets::new([b"****".as_slice()]).blot(b"*****"), b"*****");
        assert!(secrets().are_in(b"..hunter2!.."));
        assert!(!secrets().are_in(b"..hunter3!.."));
    }

    #[test]
    fn forged_lines_and_escapes_are_shown_as_text() {
        let clean = Secrets::default().clean("ok\n2026 ERROR \u{1b}[31mred\u{202e}", 100);
        assert_eq!(clean, "ok\\n2026 ERROR \\u{1b}[31mred\\u{202e}");
    }

    #[test]
    fn long_words_are_cut_at_a_character() {
        assert_eq!(Secrets::default().clean("ääää", 5), "ää…");
    }
}
