//! Whether somebody whom an object trusts has signed its component.

use node_remedy_api::conditions::{REASON_REFUSED, REASON_UNSIGNED, REASON_WRONG_KEY};
use node_remedy_api::fenceplugin::{Verify, VerifyPolicy};
use node_remedy_registry::refusal::Refusal;
use node_remedy_sandbox::signature::{KeyId, PublicKey};
use node_remedy_store::state::Verified;

use crate::desired::{Fetched, Found};

/// Checks the signature that was fetched with a component.
pub(super) fn verified(
    wasm: &[u8],
    fetched: &Fetched,
    wanted: Option<&Verify>,
) -> Result<Verified, Refusal> {
    let Some(Verify { policy, keys }) = wanted else { return Ok(Verified::NotAsked) };
    let signer = match &fetched.found {
        Found::Beside { signature, .. } => {
            let expected = format!("key {}.sig", fetched.name);
            signer(wasm, signature.as_deref(), keys, &fetched.what, &expected)
        }
        Found::Artefact { kept, .. } => {
            read_keys(keys).and_then(|keys| kept.artefact.signer(&fetched.what, &keys))
        }
    };
    match (signer, policy) {
        (Ok(key), _) => Ok(Verified::By(key)),
        (Err(refusal), VerifyPolicy::Require) => Err(refusal),
        (Err(refusal), VerifyPolicy::Warn) => Ok(Verified::Not(refusal)),
    }
}

/// Which key made the signature; `expected` says where it should stand.
pub(super) fn signer(
    wasm: &[u8],
    signature: Option<&str>,
    keys: &[String],
    what: &str,
    expected: &str,
) -> Result<KeyId, Refusal> {
    let keys = read_keys(keys)?;
    let Some(signature) = signature else {
        let why = format!("{what} has no signature, expected {expected}");
        return Err(Refusal::new(REASON_UNSIGNED, why));
    };
    let made_it = keys.iter().find(|key| key.verifies(wasm, signature));
    made_it.map(PublicKey::id).ok_or_else(|| {
        let ids: Vec<_> = keys.iter().map(|key| key.id().to_string()).collect();
        let why = format!("none of the keys made the signature of {what}: {}", ids.join(", "));
        Refusal::new(REASON_WRONG_KEY, why)
    })
}

/// The keys that an object names.
pub(super) fn read_keys(keys: &[String]) -> Result<Vec<PublicKey>, Refusal> {
    let keys = keys.iter().map(|pem| PublicKey::from_pem(pem)).collect::<Result<Vec<_>, _>>();
    keys.map_err(|error| Refusal::new(REASON_REFUSED, format!("spec.verify.keys: {error}")))
}

#[cfg(test)]
mod tests {
    use node_remedy_sandbox::signature::SigningKey;

    use super::*;

    const WASM: &[u8] = b"a component";
    const PUBLIC: [&str; 2] = [
        include_str!("../../sandbox/src/signature/p256.pub"),
        include_str!("../../sandbox/src/signature/ed25519.pub"),
    ];
    const PRIVATE: &str = include_str!("../../sandbox/src/signature/p256.key");

    fn fetched(signature: Option<String>) -> Fetched {
        let (what, name) = ("ConfigMap a/b".to_owned(), "b.wasm".to_owned());
        Fetched { what, name, found: Found::Beside { packed: WASM.to_vec(), signature } }
    }

    fn wanted(policy: VerifyPolicy, keys: &[&str]) -> Verify {
        Verify { policy, keys: keys.iter().map(|key| (*key).to_owned()).collect() }
    }

    #[test]
    fn one_of_the_keys_must_have_signed_or_it_is_said() {
        let key = SigningKey::from_pem(PRIVATE).unwrap();
        let signed = fetched(Some(key.sign(WASM).unwrap()));
        let id = key.public().unwrap().id();
        for policy in [VerifyPolicy::Require, VerifyPolicy::Warn] {
            let both = wanted(policy, &[PUBLIC[1], PUBLIC[0]]);
            assert_eq!(verified(WASM, &signed, Some(&both)), Ok(Verified::By(id)));
        }
        let reason = |fetched: &Fetched, keys: &[&str]| {
            let refused = verified(WASM, fetched, Some(&wanted(VerifyPolicy::Require, keys)));
            let warned = verified(WASM, fetched, Some(&wanted(VerifyPolicy::Warn, keys)));
            assert_eq!(
                warned,
                Ok(Verified::Not(refused.clone().unwrap_err())),
                "it is run all the same"
            );
            refused.unwrap_err().reason
        };
        assert_eq!(reason(&signed, &[PUBLIC[1]]), REASON_WRONG_KEY);
        assert_eq!(reason(&fetched(None), &PUBLIC), REASON_UNSIGNED);
        let of_another = fetched(Some(key.sign(b"another component").unwrap()));
        assert_eq!(reason(&of_another, &PUBLIC), REASON_WRONG_KEY);
        assert_eq!(verified(WASM, &fetched(None), None), Ok(Verified::NotAsked));
    }

    #[test]
    fn what_is_loaded_is_called_while_one_of_the_keys_has_signed_it() {
        let signer = PublicKey::from_pem(PUBLIC[0]).unwrap().id();
        let by = Verified::By(signer);
        let require = |keys: &[&str]| Some(wanted(VerifyPolicy::Require, keys));
        assert!(by.suffices(require(&PUBLIC).as_ref()));
        assert!(!by.suffices(require(&PUBLIC[1..]).as_ref()), "its key was taken away");
        assert!(!Verified::NotAsked.suffices(require(&PUBLIC).as_ref()));
        let warn = Some(wanted(VerifyPolicy::Warn, &PUBLIC[1..]));
        for any in [by, Verified::NotAsked] {
            assert!(any.suffices(warn.as_ref()) && any.suffices(None));
        }
    }
}
