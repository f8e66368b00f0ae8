//! External data representation (RFC 4506), as much of it as libvirt's messages need. Not here: what
//! the fields mean.

/// Bytes in which everything is a multiple of four.
const UNIT: usize = 4;

/// Writes values one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn number(mut self, number: u32) -> Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    pub(crate) fn string(self, text: &str) -> Self {
        // What is longer than four gigabytes was refused long before.
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.number(length).fixed(text.as_bytes())
    }

    /// Bytes whose number both sides know.
    pub(crate) fn fixed(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len() + padding(bytes.len()), 0);
        self
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Reads values one after the other; nothing where the bytes end before.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*number))
    }

    pub(crate) fn signed(&mut self) -> Option<i32> {
        self.number().map(u32::cast_signed)
    }

    /// Text of at most so many bytes.
    pub(crate) fn string(&mut self, max: usize) -> Option<String> {
        let length = usize::try_from(self.number()?).ok().filter(|length| *length <= max)?;
        let bytes = self.0.get(..length)?;
        self.0 = self.0.get(length + padding(length)..)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Bytes whose number both sides know, a multiple of four.
    pub(crate) fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    /// Whether nothing is left.
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(UNIT) - length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_units_of_four_bytes() {
        let written = Writer::default().number(258).string("hello").fixed(&[9, 9, 9, 9]).done();
        assert_eq!(written, b"\0\0\x01\x02\0\0\0\x05hello\0\0\0\x09\x09\x09\x09");
        let mut reader = Reader::new(&written);
        assert_eq!(reader.number(), Some(258));
        assert_eq!(reader.string(5).as_deref(), Some("hello"));
        assert!(!reader.is_done());
        assert_eq!(reader.fixed(), Some([9; 4]));
        assert!(reader.is_done());
        assert_eq!(reader.number(), None);
    }

    #[test]
    fn lengths_that_are_not_there_are_nothing() {
        for bytes in
            [b"\0\0\0\x05hell".as_slice(), b"\0\0\0\x05hello", b"\xff\xff\xff\xff", b"\0\0"]
        {
            assert_eq!(Reader::new(bytes).string(1_000), None, "{bytes:?}");
        }
        assert_eq!(Reader::new(b"\0\0\0\x05hello\0\0\0").string(4), None);
        assert_eq!(Reader::new(b"\xff\xff\xff\xff").signed(), Some(-1));
    }
}
