//! HMAC and AES-CBC as the credentials interface offers them. Pure functions over bytes: who may
//! call them, and how often, is [`crate::credentials`]'s.

use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit};
use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::block_padding::NoPadding;
use hmac::{Hmac, Mac};
use zeroize::Zeroizing;

use crate::bindings::node_remedy::fence::credentials::Hash;

/// A length the algorithm cannot work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadLength;

/// The HMAC of the data.
pub(crate) fn mac(hash: Hash, key: &[u8], data: &[u8]) -> Result<Zeroizing<Vec<u8>>, BadLength> {
    fn of<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Result<Zeroizing<Vec<u8>>, BadLength> {
        let mac = <M as KeyInit>::new_from_slice(key).map_err(|_| BadLength)?;
        Ok(Zeroizing::new(mac.chain_update(data).finalize().into_bytes().to_vec()))
    }
    match hash {
        Hash::Md5 => of::<Hmac<md5::Md5>>(key, data),
        Hash::Sha1 => of::<Hmac<sha1::Sha1>>(key, data),
        Hash::Sha224 => of::<Hmac<sha2::Sha224>>(key, data),
        Hash::Sha256 => of::<Hmac<sha2::Sha256>>(key, data),
        Hash::Sha384 => of::<Hmac<sha2::Sha384>>(key, data),
        Hash::Sha512 => of::<Hmac<sha2::Sha512>>(key, data),
    }
}

/// AES-CBC without padding; the protocols bring their own. The key's length chooses the cipher.
pub(crate) fn encrypt_cbc(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, BadLength> {
    fn with<C: BlockModeEncrypt + KeyIvInit>(
        key: &[u8],
        iv: &[u8],
        data: &[u8],
    ) -> Result<Vec<u8>, BadLength> {
        let cipher = C::new_from_slices(key, iv).map_err(|_| BadLength)?;
        let mut out = data.to_vec();
        cipher.encrypt_padded::<NoPadding>(&mut out, data.len()).map_err(|_| BadLength)?;
        Ok(out)
    }
    match key.len() {
        16 => with::<cbc::Encryptor<Aes128>>(key, iv, data),
        24 => with::<cbc::Encryptor<Aes192>>(key, iv, data),
        32 => with::<cbc::Encryptor<Aes256>>(key, iv, data),
        _ => Err(BadLength),
    }
}

/// The inverse of [`encrypt_cbc`].
pub(crate) fn decrypt_cbc(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, BadLength> {
    fn with<C: BlockModeDecrypt + KeyIvInit>(
        key: &[u8],
        iv: &[u8],
        data: &[u8],
    ) -> Result<Vec<u8>, BadLength> {
        let cipher = C::new_from_slices(key, iv).map_err(|_| BadLength)?;
        let mut out = data.to_vec();
        cipher.decrypt_padded::<NoPadding>(&mut out).map_err(|_| BadLength)?;
        Ok(out)
    }
    match key.len() {
        16 => with::<cbc::Decryptor<Aes128>>(key, iv, data),
        24 => with::<cbc::Decryptor<Aes192>>(key, iv, data),
        32 => with::<cbc::Decryptor<Aes256>>(key, iv, data),
        _ => Err(BadLength),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect()
    }

    /// RFC 2202 case 2 and RFC 4231 case 2.
    #[test]
    fn hmac_answers_the_published_vectors() {
        let of = |hash| mac(hash, b"Jefe", b"what do ya want for nothing?").unwrap().to_vec();
        assert_eq!(of(Hash::Md5), hex("750c783e6ab0b503eaa86e310a5db738"));
        assert_eq!(of(Hash::Sha1), hex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"));
        let sha256 = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(of(Hash::Sha256), hex(sha256));
    }

    /// NIST SP 800-38A, F.2.1 and F.2.5, first blocks.
    #[test]
    fn cbc_answers_the_published_vectors() {
        let iv = hex("000102030405060708090a0b0c0d0e0f");
        let plain = hex("6bc1bee22e409f96e93d7e117393172a");
        let rows = [
            ("2b7e151628aed2a6abf7158809cf4f3c", "7649abac8119b246cee98e9b12e9197d"),
            (
                "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                "f58c4c04d6e5f1ba779eabfb5f7bfbd6",
            ),
        ];
        for (key, cipher) in rows {
            assert_eq!(encrypt_cbc(&hex(key), &iv, &plain), Ok(hex(cipher)));
            assert_eq!(decrypt_cbc(&hex(key), &iv, &hex(cipher)), Ok(plain.clone()));
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        assert_eq!(encrypt_cbc(&[0; 20], &[0; 16], &[0; 16]), Err(BadLength));
        assert_eq!(encrypt_cbc(&[0; 16], &[0; 15], &[0; 16]), Err(BadLength));
        assert_eq!(encrypt_cbc(&[0; 16], &[0; 16], &[0; 17]), Err(BadLength));
        assert_eq!(decrypt_cbc(&[0; 16], &[0; 16], &[0; 17]), Err(BadLength));
    }
}
