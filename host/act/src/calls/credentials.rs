//! What a call's credentials are read from: Secrets by name, or the literal that a ConfigMap of the historical
//! form holds. Read anew for each call, and kept nowhere.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret as SecretObject};
use node_remedy_api::plan::{Credential, LiteralPlace, SecretPlace};
use node_remedy_runtime::cluster::{At, Cluster};
use node_remedy_sandbox::{Manifest, Secret};
use node_remedy_store::describe;

use crate::calls::Calls;

impl<C: Cluster> Calls<C> {
    pub(super) async fn secrets(
        &self,
        manifest: &Manifest,
        places: &BTreeMap<String, Credential>,
    ) -> Result<BTreeMap<String, Secret>, String> {
        let mut secrets = BTreeMap::new();
        for (name, place) in places {
            let name = describe::credential_of(manifest, name);
            let secret = match (&place.secret, &place.config_map) {
                (Some(place), _) => self.read_secret(place).await?,
                (None, Some(place)) => self.read_config_map(place).await?,
                (None, None) => return Err(format!("credential {name:?} names no place")),
            };
            secrets.insert(name, secret);
        }
        describe::all_credentials(manifest, |name| secrets.contains_key(name))?;
        Ok(secrets)
    }

    async fn read_secret(&self, place: &SecretPlace) -> Result<Secret, String> {
        let namespace = self.namespace_of(&place.namespace);
        let what = format!("Secret {namespace}/{}", place.name);
        let object = self
            .cluster
            .get::<SecretObject>(At::within(namespace, &place.name))
            .await
            .map_err(|error| format!("failed to read {what}: {error}"))?
            .ok_or_else(|| {
                format!("{what} does not exist; create it with key {:?}", place.secret_key)
            })?;
        let mut data = object.data.unwrap_or_default();
        let Some(bytes) = data.remove(&place.secret_key) else {
            return Err(format!("{what} has no key {:?}", place.secret_key));
        };
        let identity = match place.identity_key.as_str() {
            "" => None,
            key => {
                let name = data.remove(key).ok_or_else(|| format!("{what} has no key {key:?}"))?;
                let name = String::from_utf8(name.0)
                    .map_err(|_| format!("{what}: key {key:?} is not text"))?;
                Some(name.trim_end_matches('\n').to_owned())
            }
        };
        Ok(Secret { identity, bytes: zeroize::Zeroizing::new(without_newline(bytes.0)) })
    }

    async fn read_config_map(&self, place: &LiteralPlace) -> Result<Secret, String> {
        let namespace = self.namespace_of(&place.namespace);
        let what = format!("ConfigMap {namespace}/{}", place.name);
        let object = self
            .cluster
            .get::<ConfigMap>(At::within(namespace, &place.name))
            .await
            .map_err(|error| format!("failed to read {what}: {error}"))?
            .ok_or_else(|| format!("{what} does not exist"))?;
        let data = object.data.unwrap_or_default();
        let find = |key: &str| match place.entry.as_str() {
            "" => data.get(key).cloned(),
            entry => data.get(entry)?.lines().find_map(|line| {
                let (name, value) = line.split_once('=')?;
                (name.trim() == key).then(|| value.trim().to_owned())
            }),
        };
        let secret = find(&place.secret_key)
            .ok_or_else(|| format!("{what} has no {:?}", place.secret_key))?;
        let identity = match place.identity_key.as_str() {
            "" => None,
            key => Some(find(key).ok_or_else(|| format!("{what} has no {key:?}"))?),
        };
        Ok(Secret { identity, bytes: zeroize::Zeroizing::new(secret.into_bytes()) })
    }

    fn namespace_of<'a>(&'a self, written: &'a str) -> &'a str {
        if written.is_empty() { &self.namespace } else { written }
    }
}

fn without_newline(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    bytes
}
