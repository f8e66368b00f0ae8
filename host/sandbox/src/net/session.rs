//! Sessions: the host logs in for a plugin as its manifest describes, sends what proves it with each
//! request, begins anew once where a server has forgotten it, and ends what it began. A session
//! that has an end lives as long as the call, for devices have few of them; one that only expires is
//! kept for further calls. Plugins see neither passwords nor tokens.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderValue, Request, Response, StatusCode, header};
use node_remedy_decide::bug::{Bug, is_seeded};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::auth::Using;
use super::{HttpPeer, auth, headers};
use crate::bindings::node_remedy::fence::net::NetError as Wire;
use crate::grants::{Endpoint, login_path};
use crate::http_target::{HttpMethod, Target};
use crate::limits::LOGINS_MAX;
use crate::manifest::{Auth, Login, LoginRequest, Logout, Place, SendAs, Template};
use crate::net::patience::{Patience, Unanswered};
use crate::net::session_store::{Entered, Session, Shown};
use crate::secret::Secret;
use crate::state::CallState;
use crate::types::LogLevel;

/// Google's tokens last an hour.
const GOOGLE_KEEP_SECONDS: u32 = 3_000;
/// For how long an assertion may be exchanged for a token (RFC 7523 leaves it open; an hour is what
/// Google allows).
const ASSERTION_SECONDS: u64 = 600;

/// What came of a login.
pub(super) enum LoggedIn {
    /// A session; whether it was begun for this very request.
    Session(Entered, bool),
    /// A refusal that says more to the plugin than that there is no session.
    Refused(Response<Vec<u8>>),
}

impl Auth {
    /// The session this scheme is, if it is one.
    pub(super) fn session(&self) -> Option<Arc<Login>> {
        match self {
            Self::Login(login) => Some(Arc::new((**login).clone())),
            Self::GoogleServiceAccount { credential, at, .. } => Some(Arc::new(Login {
                credential: credential.clone(),
                at: Some(at.clone()),
                request: LoginRequest {
                    method: HttpMethod::Post,
                    path: Template::literal("/token"),
                    headers: BTreeMap::new(),
                    basic: false,
                    json: None,
                    form: None,
                },
                token: Place::Json("/access_token".to_owned()),
                csrf: None,
                send: SendAs::Header {
                    header: header::AUTHORIZATION.as_str().to_owned(),
                    prefix: "Bearer ".to_owned(),
                },
                logout: None,
                keep_seconds: GOOGLE_KEEP_SECONDS,
                exposes: Vec::new(),
            })),
            Self::None {}
            | Self::Basic { .. }
            | Self::Bearer { .. }
            | Self::Header { .. }
            | Self::AwsSigv4 { .. } => None,
        }
    }
}

impl CallState {
    /// The session for an endpoint, begun if there is none yet.
    pub(super) async fn enter(
        &mut self,
        endpoint: &str,
        login: &Arc<Login>,
        patience: &mut Patience,
    ) -> Result<LoggedIn, Unanswered> {
        if let Some(entered) = self.entered.get(endpoint) {
            return Ok(LoggedIn::Session(entered.clone(), false));
        }
        let at = login.at.as_deref().unwrap_or(endpoint).to_owned();
        let LoginAsked { peer, request, name } = match self.login_request(endpoint, &at, login) {
            Ok(made) => made,
            Err(reason) => return Err(self.login_refused(&at, &reason).into()),
        };
        let now_ms = self.seams.clock.now_ms();
        if let Some(session) = self.seams.sessions.find(&name, now_ms) {
            let entered = Entered { session, login: Arc::clone(login), at, name };
            return Ok(LoggedIn::Session(self.remember(endpoint, entered), false));
        }
        let line = format!("{} {}", request.method(), request.uri().path());
        if self.spent.logins >= LOGINS_MAX {
            let reason = format!("{line}: {LOGINS_MAX} sessions were begun in this call already");
            return Err(self.login_refused(&at, &reason).into());
        }
        self.spent.logins = self.spent.logins.saturating_add(1);
        let response = self.exchange(&at, peer, request, Shown::FirstLine, patience).await?;
        let status = response.status();
        if may_say_more(status) {
            // Never its body: a page about a login that failed repeats what was sent, in whatever form.
            return Ok(LoggedIn::Refused(response.map(|_| Vec::new())));
        }
        if !status.is_success() {
            let reason = format!("{line}: HTTP {}", status.as_u16());
            return Err(self.login_refused(&at, &reason).into());
        }
        let own = self.grants.endpoints().get(&at);
        let session = match own
            .ok_or("it has no endpoint")
            .and_then(|own| Session::read(login, own, &response))
        {
            Ok(session) => Arc::new(session),
            Err(missing) => {
                return Err(self.login_refused(&at, &format!("{line}: {missing}")).into());
            }
        };
        self.record.login_refusal = None;
        if login.logout.is_none() && login.keep_seconds > 0 {
            let until_ms = now_ms.saturating_add(u64::from(login.keep_seconds) * 1_000);
            self.seams.sessions.keep(name, &session, until_ms);
        }
        let entered = Entered { session, login: Arc::clone(login), at, name };
        Ok(LoggedIn::Session(self.remember(endpoint, entered), true))
    }

    fn remember(&mut self, endpoint: &str, entered: Entered) -> Entered {
        let Session { token, csrf, .. } = &*entered.session;
        if !is_seeded(Bug::TokensUnredacted) {
            self.secrets.add(token.as_bytes());
        }
        if let Some(csrf) = csrf {
            self.secrets.add(csrf.as_bytes());
        }
        self.entered.insert(endpoint.to_owned(), entered.clone());
        entered
    }

    /// The server has forgotten it.
    pub(super) fn forget(&mut self, endpoint: &str) {
        if let Some(entered) = self.entered.remove(endpoint) {
            self.seams.sessions.forget(&entered.name, &entered.session);
        }
    }

    /// What the plugin may see of the answer to the login.
    pub(super) async fn login_data_of(&mut self, endpoint: &str) -> Result<String, Unanswered> {
        let granted = self.grants.endpoints().get(endpoint).and_then(|one| one.http.as_ref());
        let policy = granted.filter(|policy| !policy.is_host_only);
        let Some(login) = policy.and_then(|policy| policy.auth.session()) else {
            self.note_refusal(endpoint);
            return Err(Wire::Denied.into());
        };
        let mut patience = Patience::whole_call(&self.cancel);
        match self.enter(endpoint, &login, &mut patience).await? {
            LoggedIn::Session(entered, _) => {
                let exposed = self.secrets.redact(entered.session.exposed.as_bytes());
                Ok(String::from_utf8_lossy(&exposed).into_owned())
            }
            LoggedIn::Refused(response) => {
                let said = format!("HTTP {}", response.status().as_u16());
                Err(self.login_refused(endpoint, &said).into())
            }
        }
    }

    fn login_refused(&mut self, at: &str, reason: &str) -> Wire {
        let sentence = format!("login at {at}: {reason}");
        self.keep_log(LogLevel::Debug, &sentence);
        self.record.login_refusal = Some(sentence);
        Wire::Login
    }

    fn login_request(&self, endpoint: &str, at: &str, login: &Login) -> Result<LoginAsked, String> {
        let using = self.using();
        let unusable =
            || format!("credential '{}' is not configured or not granted", login.credential);
        let secret = using.credential(&login.credential).ok_or_else(unusable)?;
        let place = self.grants.endpoints().get(at).ok_or("there is no such endpoint")?;
        let path = login_path(&login.request.path, using.parameters);
        let path = path.ok_or("a parameter that its path needs is not set")?;
        let target = Target::parse(&path).map_err(|error| error.to_string())?;
        let mut request = Request::new(Vec::new());
        *request.method_mut() = login.request.method.into();
        *request.uri_mut() = target.to_uri().map_err(|error| error.to_string())?;
        let written: Vec<_> =
            login.request.headers.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        *request.headers_mut() = headers::from_plugin(&written)?;
        let host = crate::net::headers::host_header(place).ok_or("its host fits in no header")?;
        request.headers_mut().insert(header::HOST, host);
        let unfit = || format!("credential '{}' does not fit the login", login.credential);
        if login.request.basic {
            let value = auth::basic(secret).ok_or_else(unfit)?;
            let value = auth::header_value(&value).ok_or_else(unfit)?;
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        let body = self.login_body(endpoint, place, login, secret)?;
        // Another component has a session of its own: one might end it, or its token might be where only this one shows
        // it to nobody.
        let name = Sha256::new()
            .chain_update(&self.component)
            .chain_update([0])
            .chain_update(place.address.to_string())
            .chain_update([0])
            .chain_update(&place.host)
            .chain_update([0])
            .chain_update(path.as_bytes())
            .chain_update([0])
            .chain_update(secret.identity.as_deref().unwrap_or_default())
            .chain_update([0])
            .chain_update(&secret.bytes)
            .chain_update([0])
            .chain_update(&body.name);
        if let Some((kind, bytes)) = body.content {
            request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            *request.body_mut() = bytes;
        }
        Ok(LoginAsked { peer: HttpPeer::of(place), request, name: name.finalize().into() })
    }

    fn login_body(
        &self,
        endpoint: &str,
        place: &Endpoint,
        login: &Login,
        secret: &Secret,
    ) -> Result<LoginBody, String> {
        let using = self.using();
        let policy = self.grants.endpoints().get(endpoint).and_then(|one| one.http.as_ref());
        if let Some(Auth::GoogleServiceAccount { scope, .. }) = policy.map(|policy| &policy.auth) {
            let assertion = assertion(secret, place, scope, using.unix_ms / 1_000)?;
            let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
            let form = form([("grant_type", grant), ("assertion", &assertion)]);
            return Ok(LoginBody { content: Some((FORM, form)), name: scope.as_bytes().to_vec() });
        }
        let unset = || "a parameter that its body needs is not set".to_owned();
        let value = |name: &str| using.place(name, secret);
        let content = match (&login.request.json, &login.request.form) {
            (Some(document), _) => {
                let filled = fill(document, &value).ok_or_else(unset)?;
                Some(("application/json", filled.to_string().into_bytes()))
            }
            (None, Some(fields)) => {
                let filled: Option<Vec<_>> = fields
                    .iter()
                    .map(|(name, template)| Some((name.as_str(), template.fill(value)?)))
                    .collect();
                let filled = filled.ok_or_else(unset)?;
                Some((FORM, form(filled.iter().map(|(name, value)| (*name, value.as_str())))))
            }
            (None, None) => None,
        };
        let name = content.as_ref().map(|(_, bytes)| bytes.clone()).unwrap_or_default();
        Ok(LoginBody { content, name })
    }

    /// Ends what has an end, through the gate like every send. Nobody is left to tell if this fails;
    /// the session then expires on the device.
    pub(crate) async fn log_out(&mut self) {
        for entered in std::mem::take(&mut self.entered).into_values() {
            let Some(logout) = &entered.login.logout else { continue };
            let Some((peer, request)) = self.logout_request(&entered, logout) else {
                continue;
            };
            let mut patience = Patience::for_a_farewell(&*self.seams.clock, &self.cancel);
            let Entered { at, .. } = &entered;
            let left = self.exchange(at, peer, request, Shown::Farewell, &mut patience).await;
            if !left.is_ok_and(|answer| answer.status().is_success()) {
                self.keep_log(LogLevel::Debug, &format!("the session at {at} was not ended"));
            }
        }
    }

    fn logout_request(
        &self,
        entered: &Entered,
        logout: &Logout,
    ) -> Option<(HttpPeer, Request<Vec<u8>>)> {
        let place = self.grants.endpoints().get(&entered.at)?;
        let is_located = logout.path.places().any(|name| name == "location");
        let path = match (&entered.session.location, is_located) {
            (location, true) => logout.path.fill(|_| location.clone().map(Zeroizing::new))?,
            (_, false) => login_path(&logout.path, &self.parameters)?,
        };
        let target = Target::parse(&path).ok()?;
        if !place.http.as_ref()?.holds(target.path()) {
            return None;
        }
        let mut request = Request::new(Vec::new());
        *request.method_mut() = logout.method.into();
        *request.uri_mut() = target.to_uri().ok()?;
        request.headers_mut().insert(header::HOST, crate::net::headers::host_header(place)?);
        entered.put_on(&mut request)?;
        Some((HttpPeer::of(place), request))
    }

    pub(super) fn using(&self) -> Using<'_> {
        Using {
            grants: &self.grants,
            credentials: &self.credentials,
            parameters: &self.parameters,
            unix_ms: self.seams.clock.unix_ms(),
        }
    }
}

/// A login, ready to be sent.
struct LoginAsked {
    peer: HttpPeer,
    request: Request<Vec<u8>>,
    /// The session's name among those that are kept.
    name: [u8; 32],
}

struct LoginBody {
    content: Option<(&'static str, Vec<u8>)>,
    /// What tells this body from others, where the body itself is never the same twice.
    name: Vec<u8>,
}

const FORM: &str = "application/x-www-form-urlencoded";

/// Refusals that a plugin reads better itself: who asks is not known or not allowed, or not now.
fn may_say_more(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 429 | 500..=599)
}

/// A document with the places in its strings filled.
fn fill(document: &Value, value: &impl Fn(&str) -> Option<Zeroizing<String>>) -> Option<Value> {
    Some(match document {
        Value::Null | Value::Bool(_) | Value::Number(_) => document.clone(),
        Value::String(text) => {
            Value::String(Template::parse(text).ok()?.fill(value)?.as_str().to_owned())
        }
        Value::Array(members) => {
            members.iter().map(|member| fill(member, value)).collect::<Option<_>>()?
        }
        Value::Object(members) => {
            let filled =
                members.iter().map(|(key, member)| Some((key.clone(), fill(member, value)?)));
            Value::Object(filled.collect::<Option<_>>()?)
        }
    })
}

fn form<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let fields =
        fields.into_iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    fields.collect::<Vec<_>>().join("&").into_bytes()
}

/// What a key file of a Google service account holds, as far as it is needed.
#[derive(Deserialize)]
struct KeyFile {
    client_email: String,
    private_key: Zeroizing<String>,
    private_key_id: Option<String>,
    token_uri: String,
}

/// A signed statement of who asks, to be exchanged for a token (RFC 7523, RS256 of RFC 7518).
fn assertion(secret: &Secret, at: &Endpoint, scope: &str, now_s: u64) -> Result<String, String> {
    let file: KeyFile = serde_json::from_slice(&secret.bytes)
        .map_err(|_| "the credential is no key file of a Google service account".to_owned())?;
    // A key file could send the statement, and with it the account, to another server.
    if headers::own_path(&file.token_uri, at) != "/token" {
        let host = at.authority();
        return Err(format!(
            "the key file's token_uri is not https://{host}/token, which is granted"
        ));
    }
    let unusable = || "the key file holds no RSA key that can be used".to_owned();
    let key = PrivatePkcs8KeyDer::from_pem_slice(file.private_key.as_bytes());
    let key = RsaKeyPair::from_pkcs8(key.map_err(|_| unusable())?.secret_pkcs8_der());
    let key = key.map_err(|_| unusable())?;
    let encode = |part: Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let head = encode(json!({"alg": "RS256", "typ": "JWT", "kid": file.private_key_id}));
    let claims = encode(json!({
        "iss": file.client_email, "scope": scope, "aud": file.token_uri,
        "iat": now_s, "exp": now_s.saturating_add(ASSERTION_SECONDS),
    }));
    let statement = format!("{head}.{claims}");
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), statement.as_bytes(), &mut signature)
        .map_err(|_| unusable())?;
    Ok(format!("{statement}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
