//! Sessions: the host logs in for a plugin as its manifest describes, sends what proves it with each
//! request, begins anew once where a server has forgotten it, and ends what it began. A session
//! that has an end lives as long as the call, for devices have few of them; one that only expires is
//! kept for further calls. Plugins see neither passwords nor tokens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use node_remedy_decide::bug::{Bug, is_sown};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::auth::{self, Using};
use super::fetch::{Patience, Unanswered};
use super::{HttpPeer, headers};
use crate::bindings::node_remedy::fence::net::NetError as Wire;
use crate::call::{Direction, LogLevel};
use crate::grants::{Endpoint, login_path};
use crate::http_target::{HttpMethod, Target};
use crate::limits::{LOGINS_MAX, SESSIONS_KEPT_MAX, TOKEN_BYTES_MAX};
use crate::manifest::{Auth, Login, LoginRequest, Logout, Place, SendAs, Template};
use crate::secret::Secret;
use crate::state::CallState;

/// Google's tokens last an hour.
const GOOGLE_KEEP_SECONDS: u32 = 3_000;
/// For how long an assertion may be exchanged for a token (RFC 7523 leaves it open; an hour is what
/// Google allows).
const ASSERTION_SECONDS: u64 = 600;

/// What proves a session.
pub(crate) struct Session {
    token: Zeroizing<String>,
    csrf: Option<Zeroizing<String>>,
    /// Where the session itself is, on the endpoint it was begun at.
    location: Option<String>,
    /// What the plugin may see of the answer to the login, as JSON.
    exposed: String,
}

/// A session of a call.
#[derive(Clone)]
pub(crate) struct Entered {
    session: Arc<Session>,
    login: Arc<Login>,
    /// The endpoint it was begun at.
    at: String,
    /// Its name among those that are kept.
    name: [u8; 32],
}

/// Sessions that outlive the call they were begun in. They end by expiring.
#[derive(Default)]
pub struct Sessions(Mutex<BTreeMap<[u8; 32], Kept>>);

struct Kept {
    session: Arc<Session>,
    until_ms: u64,
}

impl Sessions {
    fn find(&self, name: &[u8; 32], now_ms: u64) -> Option<Arc<Session>> {
        // A panic elsewhere leaves a map that is whole.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, one| one.until_ms > now_ms);
        kept.get(name).map(|one| Arc::clone(&one.session))
    }

    fn keep(&self, name: [u8; 32], session: &Arc<Session>, until_ms: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < SESSIONS_KEPT_MAX {
            kept.insert(name, Kept { session: Arc::clone(session), until_ms });
        }
    }

    /// Drops this very session; one that was begun meanwhile stays.
    fn forget(&self, name: &[u8; 32], session: &Arc<Session>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.get(name).is_some_and(|one| Arc::ptr_eq(&one.session, session)) {
            kept.remove(name);
        }
    }
}

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
        if !is_sown(Bug::TokensUnblotted) {
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
                let exposed = self.secrets.blot(entered.session.exposed.as_bytes());
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
        let host = super::fetch::host_header(place).ok_or("its host fits in no header")?;
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
        request.headers_mut().insert(header::HOST, super::fetch::host_header(place)?);
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

/// How much of an exchange is kept as evidence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// First line and body.
    Whole,
    /// The first line: bodies of logins hold passwords and tokens.
    FirstLine,
    /// The first line, as the host's own farewell.
    Farewell,
}

impl Shown {
    pub(super) fn sent_as(self) -> Direction {
        match self {
            Self::Whole | Self::FirstLine => Direction::Sent,
            Self::Farewell => Direction::Farewell,
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

impl Entered {
    /// Adds what proves the session.
    pub(super) fn put_on(&self, request: &mut Request<Vec<u8>>) -> Option<()> {
        let Session { token, csrf, .. } = &*self.session;
        let (name, value) = match &self.login.send {
            SendAs::Header { header, prefix } => {
                (header.as_str(), Zeroizing::new(format!("{prefix}{}", token.as_str())))
            }
            SendAs::Cookie { cookie } => {
                let value = Zeroizing::new(format!("{cookie}={}", token.as_str()));
                (header::COOKIE.as_str(), value)
            }
        };
        insert(request, name, &value)?;
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if let (Some(asked), Some(csrf), false) = (&self.login.csrf, csrf, reads) {
            insert(request, &asked.header, csrf)?;
        }
        Some(())
    }
}

fn insert(request: &mut Request<Vec<u8>>, name: &str, value: &str) -> Option<()> {
    let name = header::HeaderName::from_bytes(name.as_bytes()).ok()?;
    request.headers_mut().insert(name, auth::header_value(value.as_bytes())?);
    Some(())
}

impl Session {
    /// Reads the answer to a login; the error says what is missing in it.
    fn read(
        login: &Login,
        at: &Endpoint,
        response: &Response<Vec<u8>>,
    ) -> Result<Self, &'static str> {
        let body: Option<Value> = serde_json::from_slice(response.body()).ok();
        let read = |place: &Place| {
            let text = match place {
                Place::Header(name) => response.headers().get(name.as_str())?.to_str().ok()?,
                Place::Json(pointer) => body.as_ref()?.pointer(pointer)?.as_str()?,
            };
            let is_token = (1..=TOKEN_BYTES_MAX).contains(&text.len())
                && text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b';');
            is_token.then(|| Zeroizing::new(text.to_owned()))
        };
        let token = read(&login.token).ok_or("the answer holds no token")?;
        let csrf = match &login.csrf {
            Some(csrf) => Some(read(&csrf.from).ok_or("the answer holds no CSRF value")?),
            None => None,
        };
        let pointers = login.exposes.iter().filter_map(|pointer| {
            Some((pointer.clone(), body.as_ref()?.pointer(pointer)?.clone()))
        });
        let location = response.headers().get(header::LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        Ok(Self {
            token,
            csrf,
            location: location.map(|location| headers::own_path(location, at).to_owned()),
            exposed: Value::Object(pointers.collect()).to_string(),
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> [u8; 32] {
        Sha256::digest(number.to_be_bytes()).into()
    }

    #[test]
    fn as_many_sessions_are_kept_as_may_be_and_the_next_lives_for_its_call() {
        let (sessions, until_ms) = (Sessions::default(), 1_000);
        let session = Arc::new(Session {
            token: Zeroizing::new("token".to_owned()),
            csrf: None,
            location: None,
            exposed: String::new(),
        });
        for number in 0..=SESSIONS_KEPT_MAX {
            sessions.keep(name(number), &session, until_ms);
        }
        assert!(sessions.find(&name(SESSIONS_KEPT_MAX - 1), 999).is_some());
        assert!(sessions.find(&name(SESSIONS_KEPT_MAX), 999).is_none());
        // One that ended leaves room.
        sessions.forget(&name(0), &session);
        sessions.keep(name(SESSIONS_KEPT_MAX), &session, until_ms);
        assert!(sessions.find(&name(SESSIONS_KEPT_MAX), 999).is_some());
        assert!(sessions.find(&name(1), until_ms).is_none(), "it has expired");
    }
}
