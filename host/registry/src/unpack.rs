//! From the bytes of a source to a component: unpacked as its name says, never to more than a component
//! may have.

use std::ffi::OsStr;
use std::io;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// Why what stands at a source is no component's bytes.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// It cannot be unpacked.
    #[error("{name} is no {packed}: {why}")]
    Broken {
        /// The key or file.
        name: String,
        /// `gzip` or `zstd`.
        packed: &'static str,
        /// What the decoder says.
        why: String,
    },
    /// It is larger than may be.
    #[error("{name} holds more than {max} bytes, which is the most that a component may have")]
    TooLarge {
        /// The key or file.
        name: String,
        /// In bytes.
        max: usize,
    },
}

/// The component in `bytes`, which stand under `name`: `.gz` and `.zst` are unpacked, up to `max` bytes.
///
/// # Errors
/// Where it cannot be unpacked, or is larger.
pub fn unpack(name: &str, bytes: &[u8], max: usize) -> Result<Vec<u8>, UnpackError> {
    let too_large = || UnpackError::TooLarge { name: name.to_owned(), max };
    let broken = |packed, why: String| UnpackError::Broken { name: name.to_owned(), packed, why };
    let ending = Path::new(name).extension().and_then(OsStr::to_str);
    let unpacked = if ending == Some("gz") {
        up_to(max, GzDecoder::new(bytes)).map_err(|error| broken("gzip", error.to_string()))?
    } else if ending == Some("zst") {
        let decoder = StreamingDecoder::new(bytes);
        let decoder = decoder.map_err(|error| broken("zstd", error.to_string()))?;
        up_to(max, decoder).map_err(|error| broken("zstd", error.to_string()))?
    } else {
        (bytes.len() <= max).then(|| bytes.to_vec())
    };
    unpacked.ok_or_else(too_large)
}

/// Everything, or `None` where it is more than `max` bytes, of which no more than one is then read.
fn up_to(max: usize, source: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    source.take(limit).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= max).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_is_packed_is_unpacked_up_to_the_limit_and_no_further() {
        let component = [b"\0asm".as_slice(), &[7; 5_000]].concat();
        let zstd = compress_to_vec(component.as_slice(), CompressionLevel::Fastest);
        for (name, packed) in [
            ("p.wasm", component.clone()),
            ("p.wasm.gz", gzipped(&component)),
            ("p.wasm.zst", zstd),
        ] {
            assert_eq!(unpack(name, &packed, component.len()).unwrap(), component, "{name}");
            let refusal = unpack(name, &packed, component.len() - 1).unwrap_err().to_string();
            assert_eq!(
                refusal,
                format!(
                    "{name} holds more than 5003 bytes, which is the most that a component may have"
                )
            );
        }
    }

    /// A bomb: ten gibibytes of zeros would be ten megabytes of gzip.
    #[test]
    fn a_bomb_is_unpacked_no_further_than_the_limit() {
        let bomb = gzipped(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000);
        assert!(matches!(unpack("p.wasm.gz", &bomb, 1 << 20), Err(UnpackError::TooLarge { .. })));
    }

    #[test]
    fn what_is_not_packed_as_its_name_says_is_told() {
        for name in ["p.wasm.gz", "p.wasm.zst"] {
            let refusal = unpack(name, b"\0asm", 100).unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("{name} is no ")), "{refusal}");
        }
        let cut = gzipped(&[7; 1000]);
        let cut = cut.get(..cut.len() - 9).unwrap();
        assert!(matches!(unpack("p.wasm.gz", cut, 2000), Err(UnpackError::Broken { .. })));
    }
}
