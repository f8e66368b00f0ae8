//! The host's own part of a request: what proves who asks. Not here: which scheme belongs to an
//! endpoint ([`crate::manifest`]), sessions ([`super::session`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings};
use aws_sigv4::sign::v4::SigningParams;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue, Request, header};
use node_remedy_decide::bug::{Bug, guard};
use zeroize::Zeroizing;

use crate::grants::Grants;
use crate::manifest::{Auth, Operation, Template};
use crate::secret::Secret;

/// What a scheme works with.
pub(super) struct Using<'a> {
    pub(super) grants: &'a Grants,
    pub(super) credentials: &'a BTreeMap<String, Arc<Secret>>,
    pub(super) parameters: &'a BTreeMap<String, String>,
    pub(super) unix_ms: u64,
}

impl<'a> Using<'a> {
    /// A credential, if it is granted for use by the host and configured.
    pub(super) fn credential(&self, name: &str) -> Option<&'a Secret> {
        let granted = self.grants.credentials().get(name)?;
        if !granted.contains(&Operation::Write) {
            return None;
        }
        self.credentials.get(name).map(AsRef::as_ref)
    }

    /// The value of a place in a template.
    pub(super) fn place(&self, name: &str, secret: &Secret) -> Option<Zeroizing<String>> {
        match name {
            "identity" => secret.identity.clone().map(Zeroizing::new),
            "secret" => text(secret),
            parameter => self.parameters.get(parameter).cloned().map(Zeroizing::new),
        }
    }
}

/// Adds what proves who asks; none where the credential is not configured, not granted, or cannot
/// stand where the scheme puts it. A session's part is not added here.
pub(super) fn sign(auth: &Auth, request: &mut Request<Vec<u8>>, using: &Using<'_>) -> Option<()> {
    let Some(credential) = auth.credential() else { return Some(()) };
    let secret = using.credential(credential)?;
    let (name, value) = match auth {
        Auth::None {} | Auth::GoogleServiceAccount { .. } | Auth::Login(_) => return Some(()),
        Auth::AwsSigv4 { token, service, region, .. } => {
            let token = token.as_deref().and_then(|token| using.credential(token));
            return sign_v4(request, secret, token, (service, region), using);
        }
        Auth::Basic { .. } => (header::AUTHORIZATION, basic(secret)?),
        Auth::Bearer { .. } => {
            // More than HTTP asks: a space or a tab would end the token, and begin what a server
            // reads as something else.
            let token = Some(&secret.bytes).filter(|bytes| bytes.iter().all(u8::is_ascii_graphic));
            let token = token.filter(|bytes| !bytes.is_empty())?;
            (header::AUTHORIZATION, Zeroizing::new([b"Bearer ", token.as_slice()].concat()))
        }
        Auth::Header { name, value, .. } => {
            let value = value.fill(|place| using.place(place, secret))?;
            (HeaderName::from_bytes(name.as_bytes()).ok()?, Zeroizing::new(value.as_bytes().into()))
        }
    };
    request.headers_mut().insert(name, header_value(&value)?);
    Some(())
}

/// A value that is one, of visible ASCII.
pub(super) fn header_value(bytes: &[u8]) -> Option<HeaderValue> {
    if !bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    let mut value = HeaderValue::from_bytes(bytes).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The value of a header as RFC 7617 has it.
pub(super) fn basic(secret: &Secret) -> Option<Zeroizing<Vec<u8>>> {
    Some(Zeroizing::new([b"Basic ", basic_token(secret)?.as_slice()].concat()))
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

/// A secret that is text.
pub(super) fn text(secret: &Secret) -> Option<Zeroizing<String>> {
    std::str::from_utf8(&secret.bytes).ok().map(|text| Zeroizing::new(text.to_owned()))
}

/// AWS Signature Version 4 in the header `Authorization`.
fn sign_v4(
    request: &mut Request<Vec<u8>>,
    secret: &Secret,
    token: Option<&Secret>,
    (service, region): (&str, &Template),
    using: &Using<'_>,
) -> Option<()> {
    let region = region.fill(|place| using.place(place, secret))?;
    let token = match token {
        Some(token) => Some(text(token)?.to_string()),
        None => None,
    };
    let keys =
        Credentials::new(secret.identity.clone()?, text(secret)?.as_str(), token, None, "Secret");
    let identity = keys.into();
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(&region)
        .name(service)
        .time(UNIX_EPOCH + Duration::from_millis(using.unix_ms))
        .settings(SigningSettings::default())
        .build()
        .ok()?
        .into();
    let host = request.headers().get(header::HOST)?.to_str().ok()?;
    let address = format!("https://{host}{}", request.uri());
    let headers: Option<Vec<_>> = request
        .headers()
        .iter()
        .map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    let signable = SignableRequest::new(
        request.method().as_str(),
        &address,
        headers?.into_iter(),
        SignableBody::Bytes(request.body()),
    );
    let signed = aws_sigv4::http_request::sign(signable.ok()?, &parameters).ok()?;
    let (instructions, _) = signed.into_parts();
    for (name, value) in instructions.headers() {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request.headers_mut().insert(name, header_value(value.as_bytes())?);
    }
    Some(())
}

/// The forms in which secrets travel that are not their bytes. They must not be said either.
pub(crate) fn tokens(
    grants: &Grants,
    credentials: &BTreeMap<String, Secret>,
) -> Vec<Zeroizing<Vec<u8>>> {
    let policies = grants.endpoints().values().filter_map(|endpoint| endpoint.http.as_ref());
    let used = policies.filter_map(|policy| credentials.get(policy.auth.credential()?));
    used.filter_map(basic_token).filter(|_| guard(Bug::FormsUnredacted, true)).collect()
}
