//! Requests to one repository of one registry: who asks is proven as the registry wants it, a redirect of a
//! layer is followed to where it may lead, and what proves who asks goes to the registry and nobody else.

use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, LOCATION, USER_AGENT, WWW_AUTHENTICATE,
};
use http::{HeaderName, Method, Request, Response, StatusCode};
use node_remedy_api::fenceplugin::Registry;
use zeroize::Zeroizing;

use crate::credentials::{Account, Challenge, bearer, in_query};
use crate::error::OciError;
use crate::limits::{OTHER_ANSWER_BYTES_MAX, REDIRECTS_MAX, TOKEN_ANSWER_BYTES_MAX};
use crate::transport::{Server, Transport};

const AGENT: &str = concat!("node-remedy/", env!("CARGO_PKG_VERSION"));

/// One repository of one registry.
pub struct Client<'a> {
    way: Transport<'a>,
    server: Server,
    repository: String,
    account: Option<Account>,
    /// What may be done with what is asked for: `pull`, or `pull,push`.
    rights: &'static str,
    /// The value of the header `Authorization`, once it is known which is wanted.
    shown: Option<Zeroizing<String>>,
}

/// One request.
pub(super) struct RegistryRequest<'a> {
    method: Method,
    /// From the root of the server.
    path: String,
    headers: Vec<(HeaderName, &'a str)>,
    body: Vec<u8>,
    /// How long the answer's body may be.
    body_bytes_max: usize,
    is_redirected: bool,
}

impl<'a> RegistryRequest<'a> {
    pub(super) fn get(path: String, accept: &'a str, body_bytes_max: usize) -> Self {
        let headers = if accept.is_empty() { Vec::new() } else { vec![(ACCEPT, accept)] };
        Self {
            method: Method::GET,
            path,
            headers,
            body: Vec::new(),
            body_bytes_max,
            is_redirected: false,
        }
    }

    pub(super) fn head(path: String) -> Self {
        let ask = Self::get(path, "", OTHER_ANSWER_BYTES_MAX);
        Self { method: Method::HEAD, ..ask }
    }

    pub(super) fn send(method: Method, path: String, kind: &'a str, body: Vec<u8>) -> Self {
        let headers = if kind.is_empty() { Vec::new() } else { vec![(CONTENT_TYPE, kind)] };
        let ask = Self::get(path, "", OTHER_ANSWER_BYTES_MAX);
        Self { method, headers, body, ..ask }
    }

    /// The same, where the server may send elsewhere.
    pub(super) fn redirected(self) -> Self {
        Self { is_redirected: true, ..self }
    }
}

impl<'a> Client<'a> {
    /// Of `repository` at `registry`, for reading it.
    pub fn new(
        way: Transport<'a>,
        registry: &Registry,
        repository: &str,
        account: Option<Account>,
    ) -> Self {
        let server = Server::of(registry, way.plain_http);
        let repository = repository.to_owned();
        Self { way, server, repository, account, rights: "pull", shown: None }
    }

    /// The same, for writing to it, too.
    #[must_use]
    pub fn writing(self) -> Self {
        Self { rights: "pull,push", ..self }
    }

    /// Whom it asks.
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The path of something in the repository.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/v2/{}/{rest}", self.repository)
    }

    /// The artefact of this tag or digest, for people.
    pub(super) fn what(&self, reference: &str) -> String {
        let mark = if reference.starts_with("sha256:") { '@' } else { ':' };
        format!("{}/{}{mark}{reference}", self.server, self.repository)
    }

    /// Asks, and once more where the registry wants to know who does.
    pub(super) async fn ask(
        &mut self,
        ask: &RegistryRequest<'_>,
    ) -> Result<Response<Vec<u8>>, OciError> {
        let response = self.follow(ask).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        self.show(&response).await?;
        let response = self.follow(ask).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(self.denied());
        }
        Ok(response)
    }

    /// What an answer that is no success means.
    pub(super) fn unexpected(&self, status: StatusCode, what: &str) -> OciError {
        let server = self.server.to_string();
        match status {
            StatusCode::NOT_FOUND => OciError::Missing { server, what: what.to_owned() },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.denied(),
            status if status.is_redirection() => {
                let why = format!("found a redirect for {what}, expected an answer");
                OciError::Forbidden { server, why }
            }
            status => {
                OciError::Unavailable { server, why: format!("it answers {status} for {what}") }
            }
        }
    }

    fn denied(&self) -> OciError {
        let why = match &self.account {
            Some(_) => {
                format!("the account that it is shown may not {} {}", self.rights, self.repository)
            }
            None => format!(
                "it wants to know who asks for {}, and no account is named for it",
                self.repository
            ),
        };
        OciError::Denied { server: self.server.to_string(), why }
    }

    /// Asks, and goes where it is sent.
    async fn follow(&self, ask: &RegistryRequest<'_>) -> Result<Response<Vec<u8>>, OciError> {
        let (mut server, mut path) = (self.server.clone(), ask.path.clone());
        for _ in 0..=REDIRECTS_MAX {
            let request = self.request(ask, &server, &path)?;
            // A redirect and an error have a body of their own, however small what is asked for is.
            let max = ask.body_bytes_max.max(OTHER_ANSWER_BYTES_MAX);
            let response = self.way.exchange(&self.server, &server, &request, max).await?;
            if !ask.is_redirected || !response.status().is_redirection() {
                return Ok(response);
            }
            (server, path) = target(&server, &response)?;
        }
        let why = format!("found more than {REDIRECTS_MAX} redirects of {}", ask.path);
        Err(OciError::Forbidden { server: server.to_string(), why })
    }

    fn request(
        &self,
        ask: &RegistryRequest<'_>,
        server: &Server,
        path: &str,
    ) -> Result<Request<Vec<u8>>, OciError> {
        let unusable = |why: &str| OciError::Forbidden {
            server: server.to_string(),
            why: format!("found {why} in {:?}, which no request can have", shortened(path)),
        };
        let mut request = Request::new(ask.body.clone());
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = path.parse().map_err(|_| unusable("characters"))?;
        let headers = request.headers_mut();
        let host = HeaderValue::from_str(&server.authority()).map_err(|_| unusable("a host"))?;
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        for (name, value) in &ask.headers {
            let value = HeaderValue::from_str(value).map_err(|_| unusable("a header"))?;
            headers.insert(name.clone(), value);
        }
        // To the registry itself, and to nobody that it sends to.
        if let Some(shown) = self.shown.as_ref().filter(|_| *server == self.server) {
            let mut value = HeaderValue::from_str(shown).map_err(|_| unusable("an account"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// Gets ready what the registry wants to be shown.
    async fn show(&mut self, refusal: &Response<Vec<u8>>) -> Result<(), OciError> {
        let values = refusal.headers().get_all(WWW_AUTHENTICATE).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        let challenge = Challenge::read(&values);
        let challenge = challenge.ok_or_else(|| OciError::Unavailable {
            server: self.server.to_string(),
            why: "it wants to know who asks by no scheme that is known (Basic, Bearer)".to_owned(),
        })?;
        self.shown = Some(match challenge {
            Challenge::Basic => self.account.as_ref().ok_or_else(|| self.denied())?.basic(),
            Challenge::Bearer { realm, service } => self.token(&realm, service.as_deref()).await?,
        });
        Ok(())
    }

    /// A token for this repository.
    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
    ) -> Result<Zeroizing<String>, OciError> {
        let (server, path) = Server::of_url(realm).ok_or_else(|| OciError::Forbidden {
            server: self.server.to_string(),
            why: format!("found {:?} where tokens are had, expected an URL", shortened(realm)),
        })?;
        let scope = in_query(&format!("repository:{}:{}", self.repository, self.rights));
        let mut path = format!("{path}{}scope={scope}", if path.contains('?') { '&' } else { '?' });
        if let Some(service) = service {
            path = format!("{path}&service={}", in_query(service));
        }
        let ask = RegistryRequest::get(path.clone(), "application/json", TOKEN_ANSWER_BYTES_MAX);
        let mut request = self.request(&ask, &server, &path)?;
        request.headers_mut().remove(AUTHORIZATION);
        if let Some(account) = &self.account {
            let value = HeaderValue::from_str(&account.basic()).map_err(|_| self.denied())?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let max = TOKEN_ANSWER_BYTES_MAX;
        let response = self.way.exchange(&self.server, &server, &request, max).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(self.denied()),
            status => {
                let why = format!("it answers {status} where a token is expected");
                return Err(OciError::Unavailable { server: server.to_string(), why });
            }
        }
        bearer(response.body()).ok_or_else(|| OciError::Unavailable {
            server: server.to_string(),
            why: "it answers no token in JSON".to_owned(),
        })
    }
}

/// Where a redirect leads.
fn target(from: &Server, response: &Response<Vec<u8>>) -> Result<(Server, String), OciError> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let location = location.unwrap_or_default();
    let is_path = location.starts_with('/') && !location.starts_with("//");
    let target =
        if is_path { Some((from.clone(), location.to_owned())) } else { Server::of_url(location) };
    target.ok_or_else(|| {
        let why =
            format!("found a redirect to {:?}, expected an absolute URL", shortened(location));
        OciError::Forbidden { server: from.to_string(), why }
    })
}

/// The beginning of what somebody else wrote.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 200;
    text.chars().take(SHOWN).collect()
}
