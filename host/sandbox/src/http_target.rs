//! HTTP as a plugin may speak it: methods, paths and request targets that can be read in one way
//! only. What could be read in two ways is refused and never normalised, because the device might
//! read it in the third. Not here: what is granted ([`crate::grants`]), how it travels
//! ([`crate::net`]).

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::limits::HTTP_TARGET_BYTES_MAX;

/// An HTTP method that can be granted. Others open tunnels or echo what the host adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Reads.
    Get,
    /// Reads, without the body.
    Head,
    /// Asks for an action.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

impl HttpMethod {
    const ALL: [Self; 6] =
        [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// The word of the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// The method of this word, which is written in capitals.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == word)
    }
}

impl From<HttpMethod> for http::Method {
    fn from(method: HttpMethod) -> Self {
        match method {
            HttpMethod::Get => Self::GET,
            HttpMethod::Head => Self::HEAD,
            HttpMethod::Post => Self::POST,
            HttpMethod::Put => Self::PUT,
            HttpMethod::Patch => Self::PATCH,
            HttpMethod::Delete => Self::DELETE,
        }
    }
}

/// The beginning of a path, by whole segments: `/redfish/v1` holds itself and `/redfish/v1/Systems`,
/// not `/redfish/v10`. `/` holds every path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct PathPrefix {
    /// Without a slash at its end: empty for `/`.
    path: String,
}

/// Why a text is not a path that a request may name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read the path: found {found:?}, expected {expected}")]
pub struct PathError {
    found: String,
    expected: &'static str,
}

impl PathPrefix {
    /// Whether the path lies below it.
    pub(crate) fn holds(&self, path: &str) -> bool {
        path.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// What both hold: the longer of the two, where one holds the other.
    pub(crate) fn intersect<'a>(&'a self, other: &'a Self) -> Option<&'a Self> {
        if self.holds(&other.path) {
            return Some(other);
        }
        other.holds(&self.path).then_some(self)
    }
}

impl FromStr for PathPrefix {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        check_path(text)
            .map_err(|expected| PathError { found: text.to_owned(), expected })
            .map(|()| Self { path: text.strip_suffix('/').unwrap_or(text).to_owned() })
    }
}

impl TryFrom<String> for PathPrefix {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        text.parse()
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.path.is_empty() { "/" } else { &self.path })
    }
}

/// A request target in origin form: path and query, byte for byte as they are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target(String);

impl Target {
    /// Takes what a plugin wrote.
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        let error = |expected| PathError { found: text.to_owned(), expected };
        if text.len() > HTTP_TARGET_BYTES_MAX {
            return Err(PathError { found: "a longer one".to_owned(), expected: "at most 4 KiB" });
        }
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        check_path(path).map_err(error)?;
        if !query.bytes().all(|byte| is_path_byte(byte) || byte == b'/' || byte == b'?') {
            return Err(error("a query of the characters that RFC 3986 allows"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The same bytes as the HTTP library takes them.
    pub(crate) fn to_uri(&self) -> Result<http::Uri, PathError> {
        let error = || PathError { found: self.0.clone(), expected: "a request target" };
        let taken = http::uri::PathAndQuery::try_from(self.0.as_str()).map_err(|_| error())?;
        // It is stricter than this in some places and cuts fragments off in others.
        if taken.as_str() != self.0 {
            return Err(error());
        }
        Ok(http::Uri::from(taken))
    }

    /// The part that grants speak of.
    pub(crate) fn path(&self) -> &str {
        self.0.split('?').next().unwrap_or_default()
    }
}

/// Accepts a path that every server reads alike; else says what was expected.
fn check_path(path: &str) -> Result<(), &'static str> {
    let Some(segments) = path.strip_prefix('/') else {
        return Err("a path that begins with /, without scheme and host");
    };
    if !path.bytes().all(|byte| is_path_byte(byte) || byte == b'/') {
        return Err("a path of the characters that RFC 3986 allows");
    }
    let mut rest = segments.split('/').peekable();
    while let Some(segment) = rest.next() {
        // Only the last may be empty, as in `/redfish/v1/`.
        if segment.is_empty() && rest.peek().is_some() {
            return Err("no empty segment");
        }
        check_segment(segment)?;
    }
    Ok(())
}

fn check_segment(segment: &str) -> Result<(), &'static str> {
    let decoded = decode(segment).ok_or("two hexadecimal digits after each %")?;
    // An encoded percent sign is a second layer, which some servers take off as well.
    let hidden = |byte: &u8| matches!(byte, b'/' | b'\\' | b'%' | 0..=0x1f | 0x7f);
    if decoded.iter().any(hidden) {
        return Err("no encoded slash, backslash, percent sign or control character");
    }
    // Some servers cut a segment's parameters off before they resolve dots: `/..;x/`.
    match decoded.split(|byte| *byte == b';').next() {
        Some([b'.'] | [b'.', b'.']) => Err("no segment that is . or .., encoded or not"),
        Some(_) | None => Ok(()),
    }
}

/// A segment without its percent encoding; none if that is broken.
fn decode(segment: &str) -> Option<Vec<u8>> {
    let mut bytes = segment.bytes();
    let mut decoded = Vec::with_capacity(segment.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        decoded.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
    }
    Some(decoded)
}

/// RFC 3986's `pchar`, percent sign included.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_every_server_reads_alike_is_taken_as_it_is() {
        for sound in [
            "/",
            "/redfish/v1/",
            "/redfish/v1/Systems/437XR1138R2/Actions/ComputerSystem.Reset",
            "/v2.1/servers/detail?name=a%2fb&x=/../y?z",
            "/subscriptions/0-0/providers/Microsoft.Compute/virtualMachines/vm%20a/start?api=1",
            "/api/vcenter/vm/vm-12;v=1/power?action=stop",
            "/...",
        ] {
            assert_eq!(Target::parse(sound).unwrap().to_uri().unwrap().to_string(), sound);
        }
        assert_eq!(Target::parse("/a/b?c=/d").unwrap().path(), "/a/b");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for confusing in [
            "",
            "redfish",
            "*",
            "http://elsewhere/x",
            "//elsewhere/x",
            "@elsewhere/x",
            "?x",
            "/a//b",
            "/a/../b",
            "/a/..",
            "/./a",
            "/%2e%2e/b",
            "/.%2E/b",
            "/..;x/b",
            "/..%3bx/b",
            "/a%2fb",
            "/a%5cb",
            "/a\\b",
            "/a%00",
            "/a%0d%0aHost:%20x",
            "/a%252e",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a b",
            "/a\r\nHost: x",
            "/a\tb",
            "/ä",
            "/a#b",
            "/a?b#c",
            "/a?b c",
            "/a?\r\n",
            "/[a]",
        ] {
            assert!(Target::parse(confusing).is_err(), "{confusing:?}");
        }
        assert!(Target::parse(&format!("/{}", "x".repeat(HTTP_TARGET_BYTES_MAX))).is_err());
    }

    #[test]
    fn a_prefix_holds_whole_segments() {
        let rows = [
            ("/", "/", true),
            ("/", "/anything", true),
            ("/redfish/v1", "/redfish/v1", true),
            ("/redfish/v1/", "/redfish/v1", true),
            ("/redfish/v1", "/redfish/v1/", true),
            ("/redfish/v1", "/redfish/v1/Systems/1", true),
            ("/redfish/v1", "/redfish/v10", false),
            ("/redfish/v1", "/redfish", false),
            ("/redfish/v1", "/Redfish/v1", false),
            ("/redfish/v1", "/redfish/%76%31", false),
        ];
        for (prefix, path, held) in rows {
            assert_eq!(prefix.parse::<PathPrefix>().unwrap().holds(path), held, "{prefix} {path}");
        }
        for wrong in ["", "redfish", "/a/../b", "/a?b", "//", "/a//b"] {
            assert!(wrong.parse::<PathPrefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn prefixes_intersect_in_the_longer_one() {
        let rows = [
            ("/redfish/v1", "/redfish", Some("/redfish/v1")),
            ("/redfish", "/redfish/v1", Some("/redfish/v1")),
            ("/", "/", Some("/")),
            ("/redfish/v1", "/redfish/v10", None),
        ];
        for (ask, grant, both) in rows {
            let (ask, grant): (PathPrefix, PathPrefix) =
                (ask.parse().unwrap(), grant.parse().unwrap());
            assert_eq!(ask.intersect(&grant).map(ToString::to_string).as_deref(), both);
        }
    }

    #[test]
    fn a_method_is_its_word_in_capitals() {
        for method in HttpMethod::ALL {
            assert_eq!(HttpMethod::parse(method.as_str()), Some(method));
            assert_eq!(http::Method::from(method).as_str(), method.as_str());
        }
        for other in ["get", "CONNECT", "TRACE", "OPTIONS", "GET ", ""] {
            assert_eq!(HttpMethod::parse(other), None);
        }
    }
}
