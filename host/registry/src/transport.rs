//! The way to a registry and to where it sends: which servers are asked, at which addresses, and nowhere else.
//!
//! A name is resolved here, every address of it is judged, and the very address that was judged is dialled.
//! What an admin wrote as an address is meant; every other server that is this machine, its link, a cloud's
//! metadata service, the API server or this process is not asked, whoever names it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use http::{Request, Response, Uri};
use node_remedy_api::fenceplugin::Registry;
use node_remedy_sandbox::net::{HttpPeer, NetBackend, NetError};
use node_remedy_sandbox::{Cidr, Hazard, Names, Trust, destination};
use tokio::time::timeout;

use crate::error::OciError;
use crate::limits::{ADDRESSES_MAX, CONNECT_TIME, EXCHANGE_TIME};

/// Where `docker.io` answers.
const DOCKER: (&str, &str) = ("docker.io", "registry-1.docker.io");
const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;

/// Somebody who speaks HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// A name or an address.
    pub(super) host: String,
    /// The port.
    pub(super) port: u16,
    /// Whether TLS is spoken.
    pub(super) tls: bool,
}

impl Server {
    /// The one of a registry.
    pub(super) fn of(registry: &Registry, plain_http: bool) -> Self {
        let host = registry.host.to_ascii_lowercase();
        let host = if host == DOCKER.0 { DOCKER.1.to_owned() } else { host };
        let tls = !plain_http;
        Self { host, port: registry.port.unwrap_or(usual_port(tls)), tls }
    }

    /// The one of an absolute URL, and the rest of it; none where it could be read in two ways.
    pub(super) fn of_url(url: &str) -> Option<(Self, String)> {
        let url: Uri = url.parse().ok()?;
        let tls = match url.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        // Read as strictly as what people write.
        let Registry { host, port } = url.authority()?.as_str().parse().ok()?;
        let rest = url.path_and_query().map_or("/", |rest| rest.as_str()).to_owned();
        let host = host.to_ascii_lowercase();
        Some((Self { host, port: port.unwrap_or(usual_port(tls)), tls }, rest))
    }

    fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// As the header `Host` has it.
    pub(super) fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == usual_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.authority())
    }
}

fn usual_port(tls: bool) -> u16 {
    if tls { HTTPS_PORT } else { HTTP_PORT }
}

/// Whose word it is that a registry may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initiator {
    /// A FencePlugin's: only an address is meant as one.
    Object,
    /// A person's who runs a command: what was typed is meant, whatever it leads to.
    Person,
}

/// How a registry is reached.
pub struct Transport<'a> {
    /// The network.
    pub net: &'a dyn NetBackend,
    /// The names.
    pub names: &'a dyn Names,
    /// Addresses that nothing is fetched from: the API server's, and this process's own.
    pub guarded: &'a [Cidr],
    /// Whom its servers must prove to be.
    pub trust: Trust,
    /// Whether the registry itself may be asked without TLS; whom it sends to never is.
    pub plain_http: bool,
    /// Whose word it is.
    pub initiator: Initiator,
}

impl Transport<'_> {
    /// One request to `to`; `own` is the registry that was named.
    pub(super) async fn exchange(
        &self,
        own: &Server,
        to: &Server,
        request: &Request<Vec<u8>>,
        body_bytes_max: usize,
    ) -> Result<Response<Vec<u8>>, OciError> {
        let unavailable = |why: String| OciError::Unavailable { server: to.to_string(), why };
        let may_be_plain = self.plain_http && own == to;
        if !(to.tls || may_be_plain) {
            let why = if own == to {
                "found http://, expected https://; plainHttp: true would allow it".to_owned()
            } else {
                "found http://, expected https://: plainHttp is for the registry itself".to_owned()
            };
            return Err(OciError::Forbidden { server: to.to_string(), why });
        }
        let mut refused = unavailable("its name has no address".to_owned());
        for address in self.addresses(own, to).await?.into_iter().take(ADDRESSES_MAX) {
            let peer = HttpPeer {
                address,
                host: to.host.clone(),
                tls: to.tls.then(|| self.trust.clone()),
            };
            let connected = timeout(CONNECT_TIME, self.net.http(peer)).await;
            match connected.unwrap_or(Err(NetError::Timeout)) {
                Ok(connection) => {
                    let answer = connection.exchange_up_to(request.clone(), body_bytes_max);
                    let answer = timeout(EXCHANGE_TIME, answer).await;
                    return match answer.unwrap_or(Err(NetError::Timeout)) {
                        Ok(response) => Ok(response),
                        Err(NetError::TooLarge) => {
                            let why = format!(
                                "it answers more than the {body_bytes_max} bytes that are expected"
                            );
                            Err(OciError::Artefact { what: to.to_string(), why })
                        }
                        Err(error) => Err(unavailable(error.to_string())),
                    };
                }
                Err(error) => refused = unavailable(error.to_string()),
            }
        }
        Err(refused)
    }

    /// Every address of a server, each of them one that may be asked.
    async fn addresses(&self, own: &Server, to: &Server) -> Result<Vec<SocketAddr>, OciError> {
        let written = to.address();
        let addresses = match written {
            Some(address) => vec![address],
            None => self.resolved(to).await?,
        };
        let is_meant = own == to && (written.is_some() || self.initiator == Initiator::Person);
        for address in &addresses {
            let leads_to = destination(*address);
            let why = match Hazard::of(leads_to) {
                Some(hazard) => hazard.as_str(),
                None if self.guarded.iter().any(|own| own.holds(leads_to)) => {
                    "an address of the API server or of this process"
                }
                None => continue,
            };
            if !is_meant {
                let why = format!(
                    "it is at {address}, {why}, which only a registry is asked at that is written as that address"
                );
                return Err(OciError::Forbidden { server: to.to_string(), why });
            }
        }
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, to.port)).collect())
    }

    async fn resolved(&self, to: &Server) -> Result<Vec<IpAddr>, OciError> {
        let found = timeout(CONNECT_TIME, self.names.resolve(&to.host)).await;
        let found = found.map_err(|_| "it took too long".to_owned());
        let found = found.and_then(|found| found.map_err(|error| error.to_string()));
        found.map_err(|why| OciError::Unavailable {
            server: to.to_string(),
            why: format!("failed to resolve its name: {why}"),
        })
    }
}
