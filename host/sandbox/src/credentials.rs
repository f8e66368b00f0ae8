//! The host's side of interface `credentials`: operations with a secret, never its bytes. Each is
//! granted by name and counted. Not here: the algorithms ([`crate::crypto`]).

use std::sync::Arc;

use node_remedy_decide::bug::{Bug, guard};
use wasmtime::component::Resource;
use zeroize::Zeroizing;

use crate::bindings::node_remedy::fence::credentials::{
    Extension, Hash, Host, HostKey, HostSecret, Mode, Refused,
};
use crate::crypto::{self, BadLength, usm};
use crate::handles::{DerivedKey, SecretHandle};
use crate::limits::{CREDENTIAL_DATA_BYTES_MAX, KEY_OPERATIONS_MAX, USM_KEYS_MAX};
use crate::manifest::Operation;
use crate::secret::Secret;
use crate::state::CallState;

type Answer<T> = wasmtime::Result<Result<T, Refused>>;

impl Host for CallState {
    async fn open(&mut self, name: String) -> Answer<Resource<SecretHandle>> {
        self.count_call()?;
        let Some(operations) = self.grants.credentials().get(&name) else {
            return Ok(Err(Refused::NotGranted));
        };
        let Some(secret) = self.credentials.get(&name) else {
            return Ok(Err(Refused::NoSuchCredential));
        };
        let handle = SecretHandle { secret: Arc::clone(secret), operations: operations.clone() };
        Ok(Ok(self.table.push(handle)?))
    }
}

impl HostSecret for CallState {
    async fn identity(
        &mut self,
        secret: Resource<SecretHandle>,
    ) -> wasmtime::Result<Option<String>> {
        self.count_call()?;
        Ok(self.table.get(&secret)?.secret.identity.clone())
    }

    async fn mac(
        &mut self,
        secret: Resource<SecretHandle>,
        hash: Hash,
        data: Vec<u8>,
    ) -> Answer<Vec<u8>> {
        let secret = match self.use_secret(&secret, Operation::Mac, &data)? {
            Ok(secret) => secret,
            Err(refused) => return Ok(Err(refused)),
        };
        let mac = crypto::mac(hash, &secret.bytes, &data);
        Ok(mac.map(|mac| mac.to_vec()).map_err(Refused::from))
    }

    async fn session_key(
        &mut self,
        secret: Resource<SecretHandle>,
        hash: Hash,
        data: Vec<u8>,
    ) -> Answer<Resource<DerivedKey>> {
        let secret = match self.use_secret(&secret, Operation::SessionKey, &data)? {
            Ok(secret) => secret,
            Err(refused) => return Ok(Err(refused)),
        };
        match crypto::mac(hash, &secret.bytes, &data) {
            Ok(key) => Ok(Ok(self.table.push(DerivedKey(key))?)),
            Err(error) => Ok(Err(error.into())),
        }
    }

    async fn usm_key(
        &mut self,
        secret: Resource<SecretHandle>,
        hash: Hash,
        engine_id: Vec<u8>,
        extension: Extension,
        length: u32,
    ) -> Answer<Resource<DerivedKey>> {
        let secret = match self.use_secret(&secret, Operation::UsmKey, &engine_id)? {
            Ok(secret) => secret,
            Err(refused) => return Ok(Err(refused)),
        };
        if self.spent.usm_keys >= USM_KEYS_MAX {
            return Ok(Err(Refused::OverBudget));
        }
        self.spent.usm_keys += 1;
        match usm::key(hash, &secret.bytes, &engine_id, extension, length) {
            Ok(key) => Ok(Ok(self.table.push(DerivedKey(key))?)),
            Err(error) => Ok(Err(error.into())),
        }
    }

    async fn reveal(&mut self, secret: Resource<SecretHandle>) -> Answer<Vec<u8>> {
        let secret = self.use_secret(&secret, Operation::Reveal, &[])?;
        Ok(secret.map(|secret| secret.bytes.to_vec()))
    }

    async fn drop(&mut self, secret: Resource<SecretHandle>) -> wasmtime::Result<()> {
        self.table.delete(secret)?;
        Ok(())
    }
}

impl HostKey for CallState {
    async fn mac(
        &mut self,
        key: Resource<DerivedKey>,
        hash: Hash,
        data: Vec<u8>,
        length: u32,
    ) -> Answer<Vec<u8>> {
        let mac = self.with_key(&key, &data, |key| truncated_mac(hash, key, &data, length))?;
        Ok(mac.map(|mac| mac.to_vec()))
    }

    async fn derive(
        &mut self,
        key: Resource<DerivedKey>,
        hash: Hash,
        data: Vec<u8>,
        length: u32,
    ) -> Answer<Resource<DerivedKey>> {
        match self.with_key(&key, &data, |key| truncated_mac(hash, key, &data, length))? {
            Ok(derived) => Ok(Ok(self.table.push(DerivedKey(derived))?)),
            Err(refused) => Ok(Err(refused)),
        }
    }

    async fn encrypt(
        &mut self,
        key: Resource<DerivedKey>,
        mode: Mode,
        iv: Vec<u8>,
        data: Vec<u8>,
    ) -> Answer<Vec<u8>> {
        let answer = self.with_key(&key, &data, |key| match mode {
            Mode::AesCbc => Ok(crypto::encrypt_cbc(key, &iv, &data)?),
            Mode::AesCfb128 => Ok(crypto::encrypt_cfb(key, &iv, &data)?),
            Mode::DesCbc => Ok(crypto::encrypt_des(key, &iv, &data)?),
        })?;
        if let Ok(ciphertext) = &answer {
            self.keep_encrypted(&data, ciphertext);
        }
        Ok(answer)
    }

    async fn decrypt(
        &mut self,
        key: Resource<DerivedKey>,
        mode: Mode,
        iv: Vec<u8>,
        data: Vec<u8>,
    ) -> Answer<Vec<u8>> {
        let answer = self.with_key(&key, &data, |key| match mode {
            Mode::AesCbc => Ok(crypto::decrypt_cbc(key, &iv, &data)?),
            Mode::AesCfb128 => Ok(crypto::decrypt_cfb(key, &iv, &data)?),
            Mode::DesCbc => Ok(crypto::decrypt_des(key, &iv, &data)?),
        })?;
        if let Ok(plaintext) = &answer {
            self.keep_decrypted(&data, plaintext);
        }
        Ok(answer)
    }

    async fn drop(&mut self, key: Resource<DerivedKey>) -> wasmtime::Result<()> {
        self.table.delete(key)?;
        Ok(())
    }
}

impl CallState {
    /// The secret behind a handle, if this operation is granted and the budget not spent.
    pub(crate) fn use_secret(
        &mut self,
        handle: &Resource<SecretHandle>,
        operation: Operation,
        data: &[u8],
    ) -> Result<Result<Arc<Secret>, Refused>, wasmtime::Error> {
        self.count_call()?;
        let handle = self.table.get(handle)?;
        if guard(Bug::OperationUnchecked, !handle.operations.contains(&operation)) {
            return Ok(Err(Refused::NotGranted));
        }
        if data.len() > CREDENTIAL_DATA_BYTES_MAX {
            return Ok(Err(Refused::BadLength));
        }
        let is_spent = self.spent.secret_operations >= self.grants.budget().credential_operations;
        if guard(Bug::OperationsUncounted, is_spent) {
            return Ok(Err(Refused::OverBudget));
        }
        self.spent.secret_operations += 1;
        Ok(Ok(Arc::clone(&handle.secret)))
    }

    /// Works with the key behind a handle, within the budget.
    fn with_key<T>(
        &mut self,
        handle: &Resource<DerivedKey>,
        data: &[u8],
        work: impl FnOnce(&[u8]) -> Result<T, Refused>,
    ) -> Answer<T> {
        self.count_call()?;
        let key = self.table.get(handle)?;
        if data.len() > CREDENTIAL_DATA_BYTES_MAX {
            return Ok(Err(Refused::BadLength));
        }
        if self.spent.key_operations >= KEY_OPERATIONS_MAX {
            return Ok(Err(Refused::OverBudget));
        }
        self.spent.key_operations += 1;
        Ok(work(&key.0))
    }
}

impl From<BadLength> for Refused {
    fn from(_: BadLength) -> Self {
        Self::BadLength
    }
}

/// The first bytes of an HMAC; none of them, or more than there are, is a mistake.
fn truncated_mac(
    hash: Hash,
    key: &[u8],
    data: &[u8],
    length: u32,
) -> Result<Zeroizing<Vec<u8>>, Refused> {
    let mut mac = crypto::mac(hash, key, data)?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length == 0 || length > mac.len() {
        return Err(Refused::BadLength);
    }
    mac.truncate(length);
    Ok(mac)
}
