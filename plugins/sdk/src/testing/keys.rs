//! Secrets and keys on the host's side, for tests: all that the contract names, made by another
//! hand than the sandbox's.

use std::cell::Cell;
use std::rc::Rc;

use aes::cipher::block_padding::NoPadding;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use aes::{Aes128, Aes192, Aes256};
use des::Des;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::{Cipher, Extension, Hash, Key, Refused, Secret};

#[derive(Clone)]
pub(super) struct Stored {
    pub(super) identity: Option<String>,
    pub(super) bytes: Vec<u8>,
    pub(super) may_reveal: bool,
}

/// A secret of the in-memory host.
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Host, Refused, Secret};
///
/// let host = TestHost::new(30_000).credential("community", None, b"public").revealing("community");
/// assert_eq!(host.open("community")?.reveal()?, b"public", "as an admin's grant allows");
/// # Ok::<(), Refused>(())
/// ```
pub struct TestSecret {
    stored: Stored,
    uses: Rc<Cell<u32>>,
}

impl TestSecret {
    pub(super) fn new(stored: Stored, uses: Rc<Cell<u32>>) -> Self {
        Self { stored, uses }
    }

    /// The bytes, for the host to put on a connection.
    pub(super) fn written(&self) -> &[u8] {
        count(&self.uses);
        &self.stored.bytes
    }
}

/// A key of the in-memory host.
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Hash, Host, Key, Refused, Secret};
///
/// let host = TestHost::new(30_000).credential("account", None, b"secret");
/// let key = host.open("account")?.session_key(Hash::Sha1, b"salt")?;
/// key.mac(Hash::Sha1, b"question", 12)?;
/// assert_eq!(host.secret_uses(), 2, "one for the key, and one with it");
/// # Ok::<(), Refused>(())
/// ```
pub struct TestKey {
    pub(super) bytes: Vec<u8>,
    uses: Rc<Cell<u32>>,
}

impl Secret for TestSecret {
    type Key = TestKey;

    fn identity(&self) -> Option<String> {
        self.stored.identity.clone()
    }

    fn mac(&self, hash: Hash, data: &[u8]) -> Result<Vec<u8>, Refused> {
        count(&self.uses);
        hmac(hash, &self.stored.bytes, data)
    }

    fn session_key(&self, hash: Hash, data: &[u8]) -> Result<TestKey, Refused> {
        Ok(TestKey { bytes: self.mac(hash, data)?, uses: Rc::clone(&self.uses) })
    }

    fn usm_key(
        &self,
        hash: Hash,
        engine_id: &[u8],
        extension: Extension,
        length: u32,
    ) -> Result<TestKey, Refused> {
        count(&self.uses);
        let length = usize::try_from(length).map_err(|_| Refused::BadLength)?;
        if self.stored.bytes.is_empty() || !(1..=64).contains(&length) {
            return Err(Refused::BadLength);
        }
        let mut bytes = localized(hash, &self.stored.bytes, engine_id);
        let one = bytes.len();
        while bytes.len() < length {
            let more = match extension {
                Extension::None => return Err(Refused::BadLength),
                Extension::Blumenthal => digest(hash, &[&bytes]),
                Extension::Reeder => {
                    let (_, last) = bytes.split_at(bytes.len() - one);
                    localized(hash, last, engine_id)
                }
            };
            bytes.extend(more);
        }
        bytes.truncate(length);
        Ok(TestKey { bytes, uses: Rc::clone(&self.uses) })
    }

    fn reveal(&self) -> Result<Vec<u8>, Refused> {
        if self.stored.may_reveal {
            Ok(self.stored.bytes.clone())
        } else {
            Err(Refused::NotGranted)
        }
    }
}

impl Key for TestKey {
    fn mac(&self, hash: Hash, data: &[u8], length: u32) -> Result<Vec<u8>, Refused> {
        count(&self.uses);
        let mut code = hmac(hash, &self.bytes, data)?;
        let length = usize::try_from(length).map_err(|_| Refused::BadLength)?;
        if length > code.len() {
            return Err(Refused::BadLength);
        }
        code.truncate(length);
        Ok(code)
    }

    fn derive(&self, hash: Hash, data: &[u8], length: u32) -> Result<Self, Refused> {
        Ok(Self { bytes: self.mac(hash, data, length)?, uses: Rc::clone(&self.uses) })
    }

    fn encrypt(&self, cipher: Cipher, iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
        count(&self.uses);
        let key = self.bytes.as_slice();
        match (cipher, key.len()) {
            (Cipher::AesCbc, 16) => sealed::<cbc::Encryptor<Aes128>>(key, iv, data),
            (Cipher::AesCbc, 24) => sealed::<cbc::Encryptor<Aes192>>(key, iv, data),
            (Cipher::AesCbc, 32) => sealed::<cbc::Encryptor<Aes256>>(key, iv, data),
            (Cipher::DesCbc, _) => {
                let (key, iv) = des_parts(key, iv)?;
                sealed::<cbc::Encryptor<Des>>(key, &iv, data)
            }
            (Cipher::AesCfb128, _) => feedback(key, iv, data, false),
            (Cipher::AesCbc, _) => Err(Refused::BadLength),
        }
    }

    fn decrypt(&self, cipher: Cipher, iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
        count(&self.uses);
        let key = self.bytes.as_slice();
        match (cipher, key.len()) {
            (Cipher::AesCbc, 16) => opened::<cbc::Decryptor<Aes128>>(key, iv, data),
            (Cipher::AesCbc, 24) => opened::<cbc::Decryptor<Aes192>>(key, iv, data),
            (Cipher::AesCbc, 32) => opened::<cbc::Decryptor<Aes256>>(key, iv, data),
            (Cipher::DesCbc, _) => {
                let (key, iv) = des_parts(key, iv)?;
                opened::<cbc::Decryptor<Des>>(key, &iv, data)
            }
            (Cipher::AesCfb128, _) => feedback(key, iv, data, true),
            (Cipher::AesCbc, _) => Err(Refused::BadLength),
        }
    }
}

fn count(uses: &Cell<u32>) {
    uses.set(uses.get() + 1);
}

fn hmac(hash: Hash, key: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
    match hash {
        Hash::Md5 => hmac_with::<Hmac<Md5>>(key, data),
        Hash::Sha1 => hmac_with::<Hmac<Sha1>>(key, data),
        Hash::Sha224 => hmac_with::<Hmac<Sha224>>(key, data),
        Hash::Sha256 => hmac_with::<Hmac<Sha256>>(key, data),
        Hash::Sha384 => hmac_with::<Hmac<Sha384>>(key, data),
        Hash::Sha512 => hmac_with::<Hmac<Sha512>>(key, data),
    }
}

fn hmac_with<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut mac = <M as KeyInit>::new_from_slice(key).map_err(|_| Refused::BadLength)?;
    mac.update(data);
    Ok(mac.finalize().into_bytes().to_vec())
}

fn digest(hash: Hash, parts: &[&[u8]]) -> Vec<u8> {
    fn of<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
        parts.iter().fold(D::new(), Digest::chain_update).finalize().to_vec()
    }
    match hash {
        Hash::Md5 => of::<Md5>(parts),
        Hash::Sha1 => of::<Sha1>(parts),
        Hash::Sha224 => of::<Sha224>(parts),
        Hash::Sha256 => of::<Sha256>(parts),
        Hash::Sha384 => of::<Sha384>(parts),
        Hash::Sha512 => of::<Sha512>(parts),
    }
}

/// RFC 3414, A.2, as it is written there.
fn localized(hash: Hash, password: &[u8], engine_id: &[u8]) -> Vec<u8> {
    let expanded: Vec<u8> = password.iter().copied().cycle().take(1 << 20).collect();
    let key = digest(hash, &[&expanded]);
    digest(hash, &[&key, engine_id, &key])
}

fn sealed<C: BlockModeEncrypt + KeyIvInit>(
    key: &[u8],
    iv: &[u8],
    data: &[u8],
) -> Result<Vec<u8>, Refused> {
    let cipher = C::new_from_slices(key, iv).map_err(|_| Refused::BadLength)?;
    let mut out = data.to_vec();
    cipher.encrypt_padded::<NoPadding>(&mut out, data.len()).map_err(|_| Refused::BadLength)?;
    Ok(out)
}

fn opened<C: BlockModeDecrypt + KeyIvInit>(
    key: &[u8],
    iv: &[u8],
    data: &[u8],
) -> Result<Vec<u8>, Refused> {
    let cipher = C::new_from_slices(key, iv).map_err(|_| Refused::BadLength)?;
    cipher.decrypt_padded_vec::<NoPadding>(data).map_err(|_| Refused::BadLength)
}

/// An SNMPv3 key holds key and pre-IV; the pre-IV and the salt make the IV.
fn des_parts<'k>(key: &'k [u8], iv: &[u8]) -> Result<(&'k [u8], Vec<u8>), Refused> {
    let (key, pre_iv) = key.split_at_checked(8).ok_or(Refused::BadLength)?;
    match (pre_iv.len(), iv.len()) {
        (0, _) => Ok((key, iv.to_vec())),
        (8, 8) => Ok((key, iv.iter().zip(pre_iv).map(|(salt, pre)| salt ^ pre).collect())),
        _ => Err(Refused::BadLength),
    }
}

/// AES in cipher feedback, out of single blocks: the cipher's stream of one block is the block
/// before it, encrypted.
fn feedback(key: &[u8], iv: &[u8], data: &[u8], decrypts: bool) -> Result<Vec<u8>, Refused> {
    let stream = |block: &[u8]| {
        let zeros = [0; 16];
        match key.len() {
            16 => sealed::<cbc::Encryptor<Aes128>>(key, block, &zeros),
            24 => sealed::<cbc::Encryptor<Aes192>>(key, block, &zeros),
            32 => sealed::<cbc::Encryptor<Aes256>>(key, block, &zeros),
            _ => Err(Refused::BadLength),
        }
    };
    let (mut out, mut before) = (Vec::with_capacity(data.len()), iv.to_vec());
    for block in data.chunks(16) {
        let mixed: Vec<u8> = block.iter().zip(stream(&before)?).map(|(a, b)| a ^ b).collect();
        before = if decrypts { block.to_vec() } else { mixed.clone() };
        out.extend(mixed);
    }
    Ok(out)
}
