//! Secrets and keys on the host's side, for tests. Only what the methods of today need: HMAC with
//! SHA-1 and SHA-256, AES-CBC; anything else is refused, not faked.

use std::cell::Cell;
use std::rc::Rc;

use aes::Aes128;
use aes::cipher::block_padding::NoPadding;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

use crate::{Cipher, Hash, Key, Refused, Secret};

#[derive(Clone)]
pub(super) struct Stored {
    pub(super) identity: Option<String>,
    pub(super) bytes: Vec<u8>,
}

/// A secret of the in-memory host.
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

    fn reveal(&self) -> Result<Vec<u8>, Refused> {
        Err(Refused::NotGranted)
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
        let (key, iv) = aes_cbc(cipher, &self.bytes, iv, data)?;
        let cipher = cbc::Encryptor::<Aes128>::new((&key).into(), (&iv).into());
        Ok(cipher.encrypt_padded_vec::<NoPadding>(data))
    }

    fn decrypt(&self, cipher: Cipher, iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
        count(&self.uses);
        let (key, iv) = aes_cbc(cipher, &self.bytes, iv, data)?;
        let cipher = cbc::Decryptor::<Aes128>::new((&key).into(), (&iv).into());
        cipher.decrypt_padded_vec::<NoPadding>(data).map_err(|_| Refused::BadLength)
    }
}

fn count(uses: &Cell<u32>) {
    uses.set(uses.get() + 1);
}

fn hmac(hash: Hash, key: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
    match hash {
        Hash::Sha1 => hmac_with::<Hmac<Sha1>>(key, data),
        Hash::Sha256 => hmac_with::<Hmac<Sha256>>(key, data),
        Hash::Md5 | Hash::Sha224 | Hash::Sha384 | Hash::Sha512 => {
            Err(Refused::Other("the in-memory host knows SHA-1 and SHA-256 only".into()))
        }
    }
}

fn hmac_with<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut mac = <M as KeyInit>::new_from_slice(key).map_err(|_| Refused::BadLength)?;
    mac.update(data);
    Ok(mac.finalize().into_bytes().to_vec())
}

type KeyAndIv = ([u8; 16], [u8; 16]);

fn aes_cbc(cipher: Cipher, key: &[u8], iv: &[u8], data: &[u8]) -> Result<KeyAndIv, Refused> {
    match cipher {
        Cipher::AesCbc => {}
        Cipher::AesCfb128 | Cipher::DesCbc => {
            return Err(Refused::Other("the in-memory host knows AES-CBC only".into()));
        }
    }
    if !data.len().is_multiple_of(16) {
        return Err(Refused::BadLength);
    }
    let key = key.try_into().map_err(|_| Refused::BadLength)?;
    let iv = iv.try_into().map_err(|_| Refused::BadLength)?;
    Ok((key, iv))
}
