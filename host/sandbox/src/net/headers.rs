//! Headers of an HTTP exchange: which a plugin may set, and which it sees. Those that frame the
//! message, say who asks, or change what was granted are the host's.

use http::{HeaderMap, HeaderName, HeaderValue};
use node_remedy_decide::bug::{Bug, guard, is_seeded};

use crate::grants::Endpoint;
use crate::limits::{HTTP_HEADER_BYTES_MAX, HTTP_HEADERS_MAX};
use crate::reserved_headers::OF_THE_HOST;

/// Headers of an answer that say where to ask next.
const ADDRESSES: [&str; 4] =
    ["azure-asyncoperation", "content-location", "location", "operation-location"];

/// Headers of an answer that speak with the host: sessions and challenges.
const TO_THE_HOST: [&str; 6] = [
    "authentication-info",
    "proxy-authenticate",
    "proxy-authentication-info",
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
];

/// Takes the headers a plugin wrote; an error names the one that is refused.
pub(super) fn from_plugin(written: &[(String, String)]) -> Result<HeaderMap, String> {
    let bytes: usize = written.iter().map(|(name, value)| name.len() + value.len()).sum();
    if written.len() > HTTP_HEADERS_MAX || bytes > HTTP_HEADER_BYTES_MAX {
        return Err(format!("{} headers of {bytes} bytes are too many", written.len()));
    }
    let mut headers = HeaderMap::with_capacity(written.len());
    for (name, value) in written {
        // Gateways hand both spellings on as one.
        let known = name.to_ascii_lowercase().replace('_', "-");
        if guard(Bug::HeadersUnchecked, OF_THE_HOST.contains(&known.as_str())) {
            return Err(format!("header {known} is the host's"));
        }
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| "a header's name is no token".to_owned())?;
        let plain = value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        match HeaderValue::from_str(value) {
            Ok(value) if plain => headers.append(name, value),
            Ok(_) | Err(_) => return Err(format!("header {name} holds more than visible ASCII")),
        };
    }
    Ok(headers)
}

/// The headers of an answer that a plugin sees.
pub(super) fn for_plugin(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let is_ours = |name: &HeaderName| TO_THE_HOST.contains(&name.as_str());
    headers.iter().filter(move |(name, _)| !is_ours(name) || is_seeded(Bug::SessionsShown))
}

/// Whether it says where to ask next.
pub(super) fn is_address(name: &HeaderName) -> bool {
    ADDRESSES.contains(&name.as_str())
}

/// An address at the endpoint itself without scheme and host, as requests are written; any other as it
/// stands, which is no path.
pub(super) fn own_path<'a>(address: &'a str, own: &Endpoint) -> &'a str {
    let Some((scheme, rest)) = address.split_once("://") else { return address };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    let with_port = format!("{}:{}", own.authority(), own.address.port());
    let is_own = authority.eq_ignore_ascii_case(&own.authority())
        || authority.eq_ignore_ascii_case(&with_port);
    if scheme.eq_ignore_ascii_case(own.protocol.as_str()) && is_own && !path.is_empty() {
        return path;
    }
    address
}

/// The `Host` header: the name that was granted, never one that the plugin writes. The grant read the
/// host strictly, so it fits.
pub(crate) fn host_header(endpoint: &Endpoint) -> Option<HeaderValue> {
    HeaderValue::from_str(&endpoint.authority()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Protocol;

    fn one(name: &str, value: &str) -> Result<HeaderMap, String> {
        from_plugin(&[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn a_plugin_sets_what_is_its_own() {
        assert_eq!(one("Content-Type", "application/json").unwrap()["content-type"].len(), 16);
        for own in OF_THE_HOST {
            for spelling in [own.to_owned(), own.to_uppercase(), own.replace('-', "_")] {
                assert!(one(&spelling, "x").is_err(), "{spelling}");
            }
        }
        for (name, value) in
            [("a b", "x"), ("", "x"), ("a:", "x"), ("a", "x\r\nHost: y"), ("a", "ä"), ("a", "\0")]
        {
            assert!(one(name, value).is_err(), "{name:?} {value:?}");
        }
    }

    #[test]
    fn an_address_at_the_endpoint_itself_becomes_a_path() {
        let own = Endpoint {
            protocol: Protocol::Https,
            host: "api.example.org".to_owned(),
            address: "192.0.2.1:443".parse().unwrap(),
            http: None,
            tls: None,
        };
        for (address, read) in [
            ("https://api.example.org/a/b?c=d", "/a/b?c=d"),
            ("HTTPS://API.example.org:443/a", "/a"),
            ("/a", "/a"),
            ("http://api.example.org/a", "http://api.example.org/a"),
            ("https://api.example.org:8443/a", "https://api.example.org:8443/a"),
            ("https://x@api.example.org/a", "https://x@api.example.org/a"),
            ("https://elsewhere/a", "https://elsewhere/a"),
            ("https://api.example.org", "https://api.example.org"),
        ] {
            assert_eq!(own_path(address, &own), read);
        }
    }

    #[test]
    fn headers_are_bounded_in_number_and_size() {
        let many = |count| vec![("a".to_owned(), "b".to_owned()); count];
        assert!(from_plugin(&many(HTTP_HEADERS_MAX)).is_ok());
        assert!(from_plugin(&many(HTTP_HEADERS_MAX + 1)).is_err());
        assert!(one("a", &"x".repeat(HTTP_HEADER_BYTES_MAX)).is_err());
    }

    #[test]
    fn sessions_and_challenges_are_not_seen() {
        let mut headers = HeaderMap::new();
        for name in TO_THE_HOST.into_iter().chain(["location"]) {
            headers.append(name, HeaderValue::from_static("x"));
        }
        let seen: Vec<_> = for_plugin(&headers).map(|(name, _)| name.as_str()).collect();
        assert_eq!(seen, ["location"]);
    }
}
