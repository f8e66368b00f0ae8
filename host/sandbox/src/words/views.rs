//! What bytes mean where some of them are escaped: a page of HTML, a string of JSON, a form. An echo comes back in
//! the encoding of whoever answers, so a secret is looked for in each. Not here: what is looked for
//! ([`super::Secrets`]).

use std::ops::Range;

use zeroize::Zeroizing;

/// No escape that is read takes more bytes for one that is meant.
pub(super) const ESCAPE_BYTES_MAX: usize = 8;

/// Bytes without their escapes, and where each of them stood.
pub(super) struct View {
    pub(super) bytes: Zeroizing<Vec<u8>>,
    stood: Vec<Range<usize>>,
}

impl View {
    /// Where these bytes of it stood.
    pub(super) fn place(&self, found: &Range<usize>) -> Option<Range<usize>> {
        let first = self.stood.get(found.start)?;
        let last = self.stood.get(found.end.checked_sub(1)?)?;
        Some(first.start..last.end)
    }
}

/// How one kind of text escapes: by what an escape begins, and what an escape that the bytes begin with takes and
/// means.
type Escapes = (&'static [u8], fn(&[u8]) -> Option<(usize, Vec<u8>)>);

/// Each way in which the bytes mean something else than they are.
pub(super) fn views(bytes: &[u8]) -> impl Iterator<Item = View> + '_ {
    let kinds: [Escapes; 3] = [(b"%+", in_forms), (b"&", in_html), (b"\\", in_json)];
    kinds.into_iter().filter_map(|kind| read(bytes, kind))
}

fn read(bytes: &[u8], (begin, escape): Escapes) -> Option<View> {
    if !bytes.iter().any(|byte| begin.contains(byte)) {
        return None;
    }
    let mut view = View { bytes: Zeroizing::default(), stood: Vec::new() };
    let mut at = 0;
    while let Some((byte, _)) = bytes.get(at..).and_then(<[u8]>::split_first) {
        let escaped = if begin.contains(byte) { bytes.get(at..).and_then(escape) } else { None };
        let (taken, meant) = escaped.unwrap_or_else(|| (1, vec![*byte]));
        view.stood.extend(meant.iter().map(|_| at..at + taken));
        view.bytes.extend_from_slice(&meant);
        at += taken;
    }
    Some(view)
}

/// `%26`, and `+` for a space.
fn in_forms(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    match bytes {
        [b'+', ..] => Some((1, vec![b' '])),
        [b'%', digits @ ..] => {
            let byte = u8::try_from(number(digits.get(..2)?, 16)?).ok()?;
            Some((3, vec![byte]))
        }
        [..] => None,
    }
}

/// `&amp;`, `&#38;`, `&#x26;`.
fn in_html(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let end = bytes.iter().take(ESCAPE_BYTES_MAX).position(|byte| *byte == b';')?;
    let meant = match bytes.get(1..end)? {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
        [..] => return None,
    };
    Some((end + 1, meant.to_string().into_bytes()))
}

/// `\u0026`, `\"`, `\/`; two of the first kind may be one character. `\x26`, which JavaScript has besides.
fn in_json(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let unit = |at: usize| -> Option<u16> {
        let is_one = bytes.get(at..at + 2)? == b"\\u";
        let digits = bytes.get(at + 2..at + 6).filter(|_| is_one)?;
        u16::try_from(number(digits, 16)?).ok()
    };
    let plain = |meant: u8| Some((2, vec![meant]));
    match bytes.get(1)? {
        b'u' => {
            let units = [unit(0)?, unit(6).unwrap_or_default()];
            let meant = char::decode_utf16(units).next()?.ok()?;
            Some((6 * meant.len_utf16(), meant.to_string().into_bytes()))
        }
        b'x' => Some((4, vec![u8::try_from(number(bytes.get(2..4)?, 16)?).ok()?])),
        b'n' => plain(b'\n'),
        b't' => plain(b'\t'),
        b'r' => plain(b'\r'),
        b'b' => plain(8),
        b'f' => plain(12),
        meant @ (b'"' | b'\\' | b'/' | b'\'') => plain(*meant),
        _ => None,
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    // A sign is none.
    let digits = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(text: &str) -> Vec<String> {
        views(text.as_bytes())
            .map(|view| String::from_utf8_lossy(&view.bytes).into_owned())
            .collect()
    }

    #[test]
    fn each_escape_is_read_and_what_is_none_stays() {
        for (text, read) in [
            ("a%26b+c%e4%zz%2", "a&b c\u{fffd}%zz%2"),
            ("a&amp;b&#38;&#x26;&lt;&quot;&nope;& &#x110000;&#xe4;", "a&b&&<\"&nope;& &#x110000;ä"),
            (r#"a\u0026b\/\"\\\x26\q\u00"#, r#"a&b/"\&\q\u00"#),
            (r"\ud83d\ude00 \ud83d \u00e4", "😀 \\ud83d ä"),
        ] {
            assert_eq!(meant(text), [read], "{text}");
        }
        assert!(meant("plain").is_empty());
    }

    #[test]
    fn what_is_found_has_the_place_where_it_stood() {
        let text = b"x%26%41y";
        let view = views(text).next().unwrap();
        assert_eq!(view.bytes.as_slice(), b"x&Ay");
        assert_eq!(view.place(&(1..3)), Some(1..7));
        assert_eq!(view.place(&(0..4)), Some(0..8));
        assert_eq!(view.place(&(3..5)), None);
    }
}
