//! Sessions with devices that outlive a call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request, Response, header};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::grants::Endpoint;
use crate::limits::{SESSIONS_KEPT_MAX, TOKEN_BYTES_MAX};
use crate::manifest::{Login, Place, SendAs};
use crate::net::{auth, headers};
use crate::types::Direction;

/// What proves a session.
pub(crate) struct Session {
    pub(crate) token: Zeroizing<String>,
    pub(crate) csrf: Option<Zeroizing<String>>,
    /// Where the session itself is, on the endpoint it was begun at.
    pub(crate) location: Option<String>,
    /// What the plugin may see of the answer to the login, as JSON.
    pub(crate) exposed: String,
}

/// A session of a call.
#[derive(Clone)]
pub(crate) struct Entered {
    pub(crate) session: Arc<Session>,
    pub(crate) login: Arc<Login>,
    /// The endpoint it was begun at.
    pub(crate) at: String,
    /// Its name among those that are kept.
    pub(crate) name: [u8; 32],
}

/// Sessions that outlive the call they were begun in. They end by expiring.
#[derive(Default)]
pub struct Sessions(Mutex<BTreeMap<[u8; 32], StoredSession>>);

pub(crate) struct StoredSession {
    pub(crate) session: Arc<Session>,
    until_ms: u64,
}

impl Sessions {
    pub(crate) fn find(&self, name: &[u8; 32], now_ms: u64) -> Option<Arc<Session>> {
        // A panic elsewhere leaves a map that is whole.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, one| one.until_ms > now_ms);
        kept.get(name).map(|one| Arc::clone(&one.session))
    }

    pub(crate) fn keep(&self, name: [u8; 32], session: &Arc<Session>, until_ms: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < SESSIONS_KEPT_MAX {
            kept.insert(name, StoredSession { session: Arc::clone(session), until_ms });
        }
    }

    /// Drops this very session; one that was begun meanwhile stays.
    pub(crate) fn forget(&self, name: &[u8; 32], session: &Arc<Session>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.get(name).is_some_and(|one| Arc::ptr_eq(&one.session, session)) {
            kept.remove(name);
        }
    }
}

/// How much of an exchange is kept as evidence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// First line and body.
    Whole,
    /// The first line: bodies of logins hold passwords and tokens.
    FirstLine,
    /// The first line, as the host's own farewell.
    Farewell,
}

impl Shown {
    pub(crate) fn sent_as(self) -> Direction {
        match self {
            Self::Whole | Self::FirstLine => Direction::Sent,
            Self::Farewell => Direction::Farewell,
        }
    }
}

impl Entered {
    /// Adds what proves the session.
    pub(crate) fn put_on(&self, request: &mut Request<Vec<u8>>) -> Option<()> {
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

pub(crate) fn insert(request: &mut Request<Vec<u8>>, name: &str, value: &str) -> Option<()> {
    let name = header::HeaderName::from_bytes(name.as_bytes()).ok()?;
    request.headers_mut().insert(name, auth::header_value(value.as_bytes())?);
    Some(())
}

impl Session {
    /// Reads the answer to a login; the error says what is missing in it.
    pub(crate) fn read(
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

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

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
