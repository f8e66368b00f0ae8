//! Where a parameter says a device is: `host`, `host:port`, `[IPv6]:port`, and for HTTP an URL.
//! Strict on purpose: what could be read in two ways (other bases, user info, zones, trailing
//! dots) is refused, because the resolver might read it in the third.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::manifest::Protocol;

/// A host, as an address or a name, and the port if one is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The address, without brackets, or the name in small letters.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
}

/// Why a parameter is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, expected {expected}")]
pub struct HostPortError {
    found: String,
    expected: &'static str,
}

const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

impl HostPort {
    /// Reads a parameter; where the protocol is HTTP, scheme and path may stand around the host.
    pub fn parse(written: &str, protocol: Protocol) -> Result<Self, HostPortError> {
        let error = |expected| HostPortError { found: written.to_owned(), expected };
        let authority = match written.split_once("://") {
            None if protocol.speaks_http() => before_path(written),
            Some((scheme, rest)) if protocol.speaks_http() && scheme == protocol.as_str() => {
                before_path(rest)
            }
            // An URL of the other scheme asks for TLS where there is none, or for none where
            // there is.
            Some(_) if protocol.speaks_http() => return Err(error("the endpoint's own scheme")),
            Some(_) | None => written,
        };
        if let Ok(address) = authority.parse::<Ipv6Addr>() {
            return Ok(Self { host: address.to_string(), port: None });
        }
        if let Some(bracketed) = authority.strip_prefix('[') {
            let (address, rest) =
                bracketed.split_once(']').ok_or_else(|| error("a closing bracket"))?;
            let address: Ipv6Addr =
                address.parse().map_err(|_| error("an IPv6 address in brackets, without zone"))?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(read_port(port).ok_or_else(|| error("a port of 1 to 65535"))?),
                None if rest.is_empty() => None,
                None => return Err(error("nothing or a port after the bracket")),
            };
            return Ok(Self { host: address.to_string(), port });
        }
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => {
                let port = read_port(port).ok_or_else(|| error("a port of 1 to 65535"))?;
                (host, Some(port))
            }
            None => (authority, None),
        };
        if host.parse::<Ipv4Addr>().is_ok() || is_name(host) {
            return Ok(Self { host: host.to_ascii_lowercase(), port });
        }
        Err(error("an IPv4 address with four decimal parts, an IPv6 address or a host name"))
    }
}

fn before_path(text: &str) -> &str {
    text.split_once('/').map_or(text, |(authority, _)| authority)
}

fn read_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return None;
    }
    text.parse().ok().filter(|port| *port != 0)
}

/// A host name that no resolver can take for a number.
fn is_name(host: &str) -> bool {
    let label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit()) || {
        let lower = last.to_ascii_lowercase();
        lower.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    host.len() <= NAME_BYTES_MAX && host.split('.').all(label) && !numeric
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_url_is_reduced_to_its_authority() {
        let parse =
            |text| HostPort::parse(text, Protocol::Https).map(|place| (place.host, place.port));
        assert_eq!(
            parse("https://bmc-7.example:8443/redfish"),
            Ok(("bmc-7.example".into(), Some(8443)))
        );
        assert_eq!(parse("https://[fd00::7]/"), Ok(("fd00::7".into(), None)));
        assert_eq!(parse("BMC.Example"), Ok(("bmc.example".into(), None)));
        for wrong in [
            "https://user@bmc/",
            "ftp://bmc/",
            "http://bmc/",
            "https:///x",
            "https://0x7f000001/",
            "https://bmc?x",
            "https://bmc\\x",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(HostPort::parse("http://bmc/", Protocol::Http).is_ok());
        assert!(HostPort::parse("https://bmc/", Protocol::Http).is_err());
    }

    #[test]
    fn an_url_is_no_address_of_a_datagram_endpoint() {
        assert!(HostPort::parse("https://bmc/", Protocol::Udp).is_err());
    }
}
