//! HMAC and block ciphers as the credentials interface offers them. Pure functions over bytes: who
//! may call them, and how often, is [`crate::credentials`]'s. SNMPv3's keys: [`usm`].

pub(crate) mod usm;

use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit};
use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::block_padding::NoPadding;
use des::Des;
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

/// AES in 128-bit cipher feedback; no padding is needed. The key's length chooses the cipher.
pub(crate) fn encrypt_cfb(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, BadLength> {
    let mut out = data.to_vec();
    let wrong = |_| BadLength;
    match key.len() {
        16 => cfb_mode::Encryptor::<Aes128>::new_from_slices(key, iv)
            .map_err(wrong)?
            .encrypt(&mut out),
        24 => cfb_mode::Encryptor::<Aes192>::new_from_slices(key, iv)
            .map_err(wrong)?
            .encrypt(&mut out),
        32 => cfb_mode::Encryptor::<Aes256>::new_from_slices(key, iv)
            .map_err(wrong)?
            .encrypt(&mut out),
        _ => return Err(BadLength),
    }
    Ok(out)
}

/// The inverse of [`encrypt_cfb`].
pub(crate) fn decrypt_cfb(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, BadLength> {
    let mut out = data.to_vec();
    let wrong = |_| BadLength;
    match key.len() {
        16 => cfb_mode::Decryptor::<Aes128>::new_from_slices(key, iv)
            .map_err(wrong)?
            .decrypt(&mut out),
        24 => cfb_mode::Decryptor::<Aes192>::new_from_slices(key, iv)
            .map_err(wrong)?
            .decrypt(&mut out),
        32 => cfb_mode::Decryptor::<Aes256>::new_from_slices(key, iv)
            .map_err(wrong)?
            .decrypt(&mut out),
        _ => return Err(BadLength),
    }
    Ok(out)
}

/// DES-CBC without padding. A key of 16 bytes is an SNMPv3 privacy key: its last 8 are the
/// pre-IV, and what is handed over as IV is the salt (RFC 3414, 8.1.1.1).
pub(crate) fn encrypt_des(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, BadLength> {
    let (key, iv) = des_key_and_iv(key, iv)?;
    let cipher = cbc::Encryptor::<Des>::new_from_slices(key, &iv).map_err(|_| BadLength)?;
    let mut out = data.to_vec();
    cipher.encrypt_padded::<NoPadding>(&mut out, data.len()).map_err(|_| BadLength)?;
    Ok(out)
}

/// The inverse of [`encrypt_des`].
pub(crate) fn decrypt_des(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, BadLength> {
    let (key, iv) = des_key_and_iv(key, iv)?;
    let cipher = cbc::Decryptor::<Des>::new_from_slices(key, &iv).map_err(|_| BadLength)?;
    let mut out = data.to_vec();
    cipher.decrypt_padded::<NoPadding>(&mut out).map_err(|_| BadLength)?;
    Ok(out)
}

fn des_key_and_iv<'k>(key: &'k [u8], iv: &[u8]) -> Result<(&'k [u8], [u8; 8]), BadLength> {
    let mut iv: [u8; 8] = iv.try_into().map_err(|_| BadLength)?;
    let (key, pre_iv) = key.split_at_checked(8).ok_or(BadLength)?;
    match pre_iv.len() {
        0 => {}
        8 => iv.iter_mut().zip(pre_iv).for_each(|(byte, pre)| *byte ^= pre),
        _ => return Err(BadLength),
    }
    Ok((key, iv))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        hex::decode(text).unwrap()
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

    /// NIST SP 800-38A, F.3.13, F.3.15 and F.3.17: four blocks each, and the same cut short, which
    /// feedback takes.
    #[test]
    fn cfb_answers_the_published_vectors() {
        let iv = hex("000102030405060708090a0b0c0d0e0f");
        let plain = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
             30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710");
        let rows = [
            (
                "2b7e151628aed2a6abf7158809cf4f3c",
                "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b\
                 26751f67a3cbb140b1808cf187a4f4dfc04b05357c5d1c0eeac4c66f9ff7f2e6",
            ),
            (
                "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
                "cdc80d6fddf18cab34c25909c99a417467ce7f7f81173621961a2b70171d3d7a\
                 2e1e8a1dd59b88b1c8e60fed1efac4c9c05f9f9ca9834fa042ae8fba584b09ff",
            ),
            (
                "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                "dc7e84bfda79164b7ecd8486985d386039ffed143b28b1c832113c6331e5407b\
                 df10132415e54b92a13ed0a8267ae2f975a385741ab9cef82031623d55b1e471",
            ),
        ];
        for (key, cipher) in rows {
            let (key, cipher) = (hex(key), hex(cipher));
            for length in [plain.len(), 37, 1, 0] {
                assert_eq!(encrypt_cfb(&key, &iv, &plain[..length]), Ok(cipher[..length].to_vec()));
                assert_eq!(decrypt_cfb(&key, &iv, &cipher[..length]), Ok(plain[..length].to_vec()));
            }
        }
        assert_eq!(encrypt_cfb(&[0; 20], &iv, &plain), Err(BadLength));
        assert_eq!(decrypt_cfb(&[0; 16], &iv[1..], &plain), Err(BadLength));
    }

    /// FIPS 81, table C1: CBC over "Now is the time for all ".
    #[test]
    fn des_answers_the_published_vector() {
        let (key, iv) = (hex("0123456789abcdef"), hex("1234567890abcdef"));
        let plain = b"Now is the time for all ";
        let cipher = hex("e5c7cdde872bf27c43e934008c389c0f683788499a7c05f6");
        assert_eq!(encrypt_des(&key, &iv, plain), Ok(cipher.clone()));
        assert_eq!(decrypt_des(&key, &iv, &cipher), Ok(plain.to_vec()));
        // The same as SNMPv3 has it: pre-IV and salt make the IV.
        let snmp = [key.as_slice(), &[0xff; 8]].concat();
        let salt: Vec<u8> = iv.iter().map(|byte| byte ^ 0xff).collect();
        assert_eq!(encrypt_des(&snmp, &salt, plain), Ok(cipher.clone()));
        assert_eq!(decrypt_des(&snmp, &salt, &cipher), Ok(plain.to_vec()));
        for (key, iv, data) in [(7, 8, 8), (12, 8, 8), (16, 7, 8), (8, 8, 9), (24, 8, 8)] {
            let refused = encrypt_des(&vec![0; key], &vec![0; iv], &vec![0; data]);
            assert_eq!(refused, Err(BadLength), "{key} {iv} {data}");
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
