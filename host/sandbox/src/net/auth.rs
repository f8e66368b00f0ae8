//! The host's own part of a request: the header that proves who asks. Not here: which scheme
//! belongs to an endpoint ([`crate::manifest`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use zeroize::Zeroizing;

use crate::grants::Grants;
use crate::manifest::Auth;
use crate::secret::Secret;

/// The value of the `Authorization` header; none where the scheme has none, or where the
/// credential cannot stand in one.
pub(super) fn authorization(auth: &Auth, secret: &Secret) -> Option<HeaderValue> {
    let (scheme, token) = match auth {
        Auth::None => return None,
        Auth::Basic { .. } => (b"Basic ".as_slice(), basic_token(secret)?),
        Auth::Bearer { .. } => (b"Bearer ".as_slice(), secret.bytes.clone()),
    };
    // More than HTTP asks: a space or a tab would end the token, and begin what a server reads as
    // something else.
    if token.is_empty() || !token.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let mut value = HeaderValue::from_bytes(&[scheme, &token].concat()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The forms in which secrets travel that are not their bytes. They must not be said either.
pub(crate) fn tokens(
    grants: &Grants,
    credentials: &BTreeMap<String, Secret>,
) -> Vec<Zeroizing<Vec<u8>>> {
    let policies = grants.endpoints().values().filter_map(|endpoint| endpoint.http.as_ref());
    let basic = policies.filter_map(|policy| match &policy.auth {
        Auth::Basic { credential } => basic_token(credentials.get(credential)?),
        Auth::Bearer { .. } | Auth::None => None,
    });
    basic.collect()
}

/// User name and password as RFC 7617 joins them; none where the name holds the separator.
fn basic_token(secret: &Secret) -> Option<Zeroizing<Vec<u8>>> {
    let identity = secret.identity.as_deref().unwrap_or_default();
    if identity.contains(':') {
        return None;
    }
    let joined = Zeroizing::new([identity.as_bytes(), b":", &secret.bytes].concat());
    Some(Zeroizing::new(STANDARD.encode(joined.as_slice()).into_bytes()))
}

/// The credential behind an endpoint's scheme, if it is granted for that use and configured.
pub(super) fn credential<'a>(
    auth: &Auth,
    grants: &Grants,
    credentials: &'a BTreeMap<String, Arc<Secret>>,
) -> Option<&'a Secret> {
    use crate::manifest::Operation;
    let name = auth.credential()?;
    let granted = grants.credentials().get(name)?;
    if !granted.contains(&Operation::Write) {
        return None;
    }
    credentials.get(name).map(AsRef::as_ref)
}
