//! A plugin's words on their way to people: known secrets redacted, control characters
//! escaped, length capped, in that order. Log lines, details, notes and kept exchanges all pass
//! here. A plugin that encodes a secret it was allowed to read can still smuggle it; the encodings
//! that happen by accident, or in which a device repeats what it was sent, are looked through.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem::Finder;
use node_remedy_decide::bug::{Bug, guard};
use zeroize::Zeroizing;

use self::views::{ESCAPE_BYTES_MAX, views};

mod views;

/// Shorter secrets would redact half of every sentence.
pub(crate) const SECRET_BYTES_MIN: usize = 4;
const REDACTED: &str = "[secret]";

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
        self.0.push(Zeroizing::new(secret.to_vec()));
        let forms = in_hex(secret).into_iter().chain(in_base64(secret)).chain(in_utf16(secret));
        for form in forms {
            if form.len() >= SECRET_BYTES_MIN && !self.0.contains(&form) {
                self.0.push(form);
            }
        }
    }

    /// Whether there is none.
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a secret stands in the bytes.
    pub(crate) fn are_in(&self, bytes: &[u8]) -> bool {
        !self.places_in(bytes).is_empty()
    }

    /// The bytes with every secret overwritten by `*`, length kept.
    pub(crate) fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        let mut redacted = bytes.to_vec();
        for place in self.places_in(bytes) {
            redacted.get_mut(place).into_iter().flatten().for_each(|byte| *byte = b'*');
        }
        redacted
    }

    /// Where secrets stand, in order and apart from each other. They may overlap, and whether a byte is in one must not
    /// depend on where the bytes begin.
    fn places_in(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let views: Vec<_> = views(bytes).collect();
        let mut places: Vec<Range<usize>> = Vec::new();
        for secret in &self.0 {
            let finder = Finder::new(secret.as_slice());
            places.extend(all_in(&finder, bytes));
            for view in &views {
                places.extend(all_in(&finder, &view.bytes).filter_map(|found| view.place(&found)));
            }
        }
        places.sort_unstable_by_key(|place| place.start);
        let mut apart: Vec<Range<usize>> = Vec::new();
        for place in places {
            match apart.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                Some(_) | None => apart.push(place),
            }
        }
        apart
    }

    /// The length of the longest secret, however it is written.
    pub(crate) fn longest(&self) -> usize {
        self.0.iter().map(|form| form.len()).max().unwrap_or(0).saturating_mul(ESCAPE_BYTES_MAX)
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
        let mut places = self.places_in(text.as_bytes());
        places.retain(|_| guard(Bug::WordsUnredacted, true));
        let mut known = String::with_capacity(text.len());
        let mut from = 0;
        for place in places {
            let start = text.floor_char_boundary(place.start).max(from);
            known.push_str(text.get(from..start).unwrap_or_default());
            known.push_str(REDACTED);
            from = text.ceil_char_boundary(place.end).max(from);
        }
        known.push_str(text.get(from..).unwrap_or_default());
        let mut clean = String::with_capacity(known.len().min(bytes_max));
        for character in known.chars() {
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

fn in_hex(secret: &[u8]) -> [Zeroizing<Vec<u8>>; 2] {
    let hex = hex::encode(secret);
    [Zeroizing::new(hex.to_uppercase().into_bytes()), Zeroizing::new(hex.into_bytes())]
}

/// As it stands in base64 after none, one or two other bytes (and the same again every three), without the ends that
/// depend on its neighbours.
fn in_base64(secret: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut forms = Vec::new();
    for before in (0..3_usize).filter(|_| guard(Bug::FormsUnredacted, true)) {
        let padded = Zeroizing::new([vec![0; before].as_slice(), secret].concat());
        let own = (before * 8).div_ceil(6)..padded.len() * 8 / 6;
        for code in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let encoded = Zeroizing::new(code.encode(padded.as_slice()).into_bytes());
            let form = encoded.get(own.clone()).unwrap_or_default().to_vec();
            forms.push(Zeroizing::new(form));
        }
    }
    forms
}

/// As Windows writes text, and the other way about.
fn in_utf16(secret: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let Ok(text) = std::str::from_utf8(secret) else { return Vec::new() };
    let both: [fn(u16) -> [u8; 2]; 2] = [u16::to_le_bytes, u16::to_be_bytes];
    both.map(|order| Zeroizing::new(text.encode_utf16().flat_map(order).collect())).into()
}

/// Every place, also where one begins in another.
fn all_in<'a>(finder: &'a Finder<'_>, bytes: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + finder.find(bytes.get(from..)?)?;
        from = start + 1;
        Some(start..start + finder.needle().len())
    })
}

/// Characters that move the cursor, forge a line or reorder what is read.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Where `secret` begins in `bytes`.
pub(crate) fn find(bytes: &[u8], secret: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        Secrets::new([b"hunter2!".as_slice(), b"hunter2!more", b"abc"])
    }

    #[test]
    fn secrets_are_redacted_in_plain_and_in_hex() {
        let clean = secrets().clean("a hunter2! b hunter2!more c 68756e7465723221 d abc", 100);
        assert_eq!(clean, "a [secret] b [secret] c [secret] d abc");
        assert_eq!(secrets().redact(b"x hunter2! y"), b"x ******** y");
        assert_eq!(Secrets::new([b"****".as_slice()]).redact(b"*****"), b"*****");
        assert!(secrets().are_in(b"..hunter2!.."));
        assert!(!secrets().are_in(b"..hunter3!.."));
    }

    #[test]
    fn secrets_are_found_in_the_encodings_of_whoever_repeats_them() {
        // With a character of each kind that is escaped, and one that base64 writes in two alphabets.
        let secret = "p&q <\"ä/+?>~ü'";
        let secrets = Secrets::new([secret.as_bytes()]);
        let json = serde_json::to_string(secret).unwrap();
        let json = json.trim_matches('"');
        let percent =
            percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC);
        for whole in [
            secret.to_owned(),
            json.to_owned(),
            json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003E"),
            json.replace('ä', "\\u00e4").replace('/', "\\/"),
            percent.to_string(),
            percent.to_string().to_lowercase().replace("%20", "+"),
            secret.replace('%', "%25").replace('+', "%2B").replace('&', "%26"),
            secret.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"),
            secret.replace('&', "&#38;").replace('<', "&#x3C;").replace('ä', "&#228;"),
        ] {
            let said = format!("you sent {whole}.");
            assert_eq!(secrets.clean(&said, 200), "you sent [secret].", "{said}");
            let redacted = secrets.redact(said.as_bytes());
            let stars = [b"you sent ".as_slice(), &vec![b'*'; whole.len()], b"."].concat();
            assert_eq!(redacted, stars, "{said}");
        }
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let wide: Vec<u8> = secret.encode_utf16().flat_map(order).collect();
            assert_eq!(secrets.redact(&wide), vec![b'*'; wide.len()]);
        }
        for before in ["", "u", "us", "use", "user"] {
            for after in ["", "!", "!!"] {
                for code in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                    let encoded = code.encode(format!("{before}{secret}{after}"));
                    let redacted = secrets.redact(encoded.as_bytes());
                    // A character of base64 at each end holds bits of a neighbour, too.
                    let left = redacted.iter().filter(|byte| **byte != b'*').count();
                    let neighbours = (before.len() + after.len()) * 8;
                    assert!(left * 6 <= neighbours + 2 * 6 + 4, "{encoded}: {left} left");
                }
            }
        }
    }

    #[test]
    fn secrets_that_overlap_are_hidden_whole() {
        let secrets = Secrets::new([b"abab".as_slice(), b"baba"]);
        assert_eq!(secrets.redact(b"xababax"), b"x*****x");
        assert_eq!(secrets.clean("xababax ababab", 99), "x[secret]x [secret]");
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
