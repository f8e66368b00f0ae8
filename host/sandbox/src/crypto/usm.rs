//! SNMPv3's keys (User-based Security Model): a password becomes a key, the key is localised to one
//! engine, and where a cipher wants more bytes than the hash gives it is extended.

use sha2::Digest;
use zeroize::Zeroizing;

use super::BadLength;
use crate::bindings::node_remedy::fence::credentials::{Extension, Hash};
use crate::limits::USM_KEY_BYTES_MAX;

/// The password is repeated until it fills this many bytes (RFC 3414, A.2).
const EXPANDED_BYTES: usize = 1 << 20;
/// Engine ids are 5 to 32 bytes (RFC 3411, SnmpEngineID); devices send shorter ones, too.
const ENGINE_ID_BYTES_MAX: usize = 32;

/// The localised key, of exactly `length` bytes.
pub(crate) fn key(
    hash: Hash,
    password: &[u8],
    engine_id: &[u8],
    extension: Extension,
    length: u32,
) -> Result<Zeroizing<Vec<u8>>, BadLength> {
    match hash {
        Hash::Md5 => with::<md5::Md5>(password, engine_id, extension, length),
        Hash::Sha1 => with::<sha1::Sha1>(password, engine_id, extension, length),
        Hash::Sha224 => with::<sha2::Sha224>(password, engine_id, extension, length),
        Hash::Sha256 => with::<sha2::Sha256>(password, engine_id, extension, length),
        Hash::Sha384 => with::<sha2::Sha384>(password, engine_id, extension, length),
        Hash::Sha512 => with::<sha2::Sha512>(password, engine_id, extension, length),
    }
}

fn with<D: Digest>(
    password: &[u8],
    engine_id: &[u8],
    extension: Extension,
    length: u32,
) -> Result<Zeroizing<Vec<u8>>, BadLength> {
    let length = usize::try_from(length).map_err(|_| BadLength)?;
    let is_sound = (1..=USM_KEY_BYTES_MAX).contains(&length)
        && (1..=ENGINE_ID_BYTES_MAX).contains(&engine_id.len())
        && !password.is_empty();
    if !is_sound {
        return Err(BadLength);
    }
    let mut key = localized::<D>(password, engine_id);
    while key.len() < length {
        let more = match extension {
            Extension::None => return Err(BadLength),
            // The hash of all there is so far (draft-blumenthal-aes-usm-04, 3.1.2.1).
            Extension::Blumenthal => Zeroizing::new(D::digest(&*key).to_vec()),
            // The last part is the next one's password (draft-reeder-snmpv3-usm-3desede-00, 2.1).
            Extension::Reeder => {
                let last = key.len().saturating_sub(<D as Digest>::output_size());
                localized::<D>(key.get(last..).unwrap_or_default(), engine_id)
            }
        };
        key.extend_from_slice(&more);
    }
    key.truncate(length);
    Ok(key)
}

/// RFC 3414, A.2: the digest of the repeated password, then of that around the engine id.
fn localized<D: Digest>(password: &[u8], engine_id: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut digest = D::new();
    let mut left = EXPANDED_BYTES;
    // Whole pieces of some size: a short password fed byte by byte takes ten times as long.
    let piece = Zeroizing::new(password.repeat(1 + 1024 / password.len().max(1)));
    while left > 0 {
        let some = piece.get(..left).unwrap_or(&piece);
        digest.update(some);
        left -= some.len();
    }
    let general = Zeroizing::new(digest.finalize().to_vec());
    let around = [general.as_slice(), engine_id, general.as_slice()];
    let digest = around.into_iter().fold(D::new(), Digest::chain_update);
    Zeroizing::new(digest.finalize().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINE: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

    fn made(hash: Hash, extension: Extension, length: u32) -> String {
        hex::encode(key(hash, b"maplesyrup", &ENGINE, extension, length).unwrap())
    }

    /// RFC 3414, A.3.1 and A.3.2.
    #[test]
    fn passwords_become_the_published_keys() {
        assert_eq!(made(Hash::Md5, Extension::None, 16), "526f5eed9fcce26f8964c2930787d82b");
        let sha1 = "6695febc9288e36282235fc7151f128497b38f3f";
        assert_eq!(made(Hash::Sha1, Extension::None, 20), sha1);
        // Cut to the cipher's length, whatever the extension.
        for extension in [Extension::None, Extension::Blumenthal, Extension::Reeder] {
            assert_eq!(made(Hash::Sha1, extension, 16), sha1[..32]);
        }
    }

    /// draft-reeder-snmpv3-usm-3desede-00, B.1 and B.2.
    #[test]
    fn reeder_s_extension_gives_the_published_keys() {
        let md5 = "526f5eed9fcce26f8964c2930787d82b79eff44a90650ee0a3a40abfac5acc12";
        assert_eq!(made(Hash::Md5, Extension::Reeder, 32), md5);
        let sha1 =
            "6695febc9288e36282235fc7151f128497b38f3f9b8b6d78936ba6e7d19dfd9cd2d5065547743fb5";
        assert_eq!(made(Hash::Sha1, Extension::Reeder, 40), sha1);
    }

    #[test]
    fn blumenthal_s_extension_hashes_all_that_there_is() {
        let short = key(Hash::Sha1, b"maplesyrup", &ENGINE, Extension::None, 20).unwrap();
        let second = sha1::Sha1::digest(&*short);
        let third = sha1::Sha1::digest([short.as_slice(), &second].concat());
        let all = hex::encode([short.as_slice(), &second, &third].concat());
        assert_eq!(made(Hash::Sha1, Extension::Blumenthal, 32), all[..64]);
        assert_eq!(made(Hash::Sha1, Extension::Blumenthal, 60), all);
    }

    #[test]
    fn every_hash_gives_a_key_of_its_own_length() {
        for (hash, length) in [
            (Hash::Md5, 16),
            (Hash::Sha1, 20),
            (Hash::Sha224, 28),
            (Hash::Sha256, 32),
            (Hash::Sha384, 48),
            (Hash::Sha512, 64),
        ] {
            assert_eq!(made(hash, Extension::None, length).len(), 2 * length as usize);
            let longer = key(hash, b"maplesyrup", &ENGINE, Extension::None, length + 1);
            assert_eq!(longer.map(|_| ()), Err(BadLength));
        }
    }

    #[test]
    fn what_would_never_end_or_make_no_key_is_refused() {
        let none = Extension::None;
        let refused = |password: &[u8], engine: &[u8], length| {
            key(Hash::Sha1, password, engine, none, length).map(|_| ()) == Err(BadLength)
        };
        assert!(refused(b"", &ENGINE, 16));
        assert!(refused(b"maplesyrup", &[], 16));
        assert!(refused(b"maplesyrup", &[1; 33], 16));
        assert!(refused(b"maplesyrup", &ENGINE, 0));
        assert!(key(Hash::Sha1, b"p", &ENGINE, Extension::Reeder, 65).is_err());
        assert!(key(Hash::Sha1, &[b'p'; 5000], &ENGINE, Extension::Reeder, 64).is_ok());
    }
}
