//! How an artefact in a registry is named: `REGISTRY/REPOSITORY:TAG` or `REGISTRY/REPOSITORY@sha256:…`. Nothing
//! is filled in: a name without registry, or without tag and digest, would mean what somebody else decides.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An artefact in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where.
    pub registry: Registry,
    /// The repository there.
    pub repository: String,
    /// The tag, where one is named.
    pub tag: Option<String>,
    /// The manifest's digest, `sha256:…`, where one is named; a tag beside it says nothing then.
    pub digest: Option<String>,
}

/// `HOST` or `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    /// A name or an address, IPv6 without brackets.
    pub host: String,
    /// The port, where one is named.
    pub port: Option<u16>,
}

/// Why a text names no artefact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, expected {expected}")]
pub struct ImageError {
    found: String,
    expected: &'static str,
}

/// Why a text names no registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected HOST or HOST:PORT of a registry, without https://")]
pub struct RegistryError(String);

/// As the distribution specification has them.
const TAG_CHARACTERS_MAX: usize = 128;
const REPOSITORY_CHARACTERS_MAX: usize = 255;
const HOST_CHARACTERS_MAX: usize = 253;
const LABEL_CHARACTERS_MAX: usize = 63;
const DIGEST_HEX: usize = 64;

impl FromStr for Image {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let error = |expected| ImageError { found: text.to_owned(), expected };
        let named = "REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:…";
        let (registry, rest) = text.split_once('/').ok_or_else(|| error(named))?;
        // Elsewhere a first word without dot and port is a part of the repository.
        if !registry.contains(['.', ':']) && registry != "localhost" {
            return Err(error("a registry, such as registry.example.org, before the first /"));
        }
        let registry = registry
            .parse()
            .map_err(|_| error("HOST or HOST:PORT of a registry before the first /"))?;
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest, None),
        };
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        if !is_repository(repository) {
            return Err(error("a repository of a-z, 0-9, . _ - and / after the registry"));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(error("a tag of at most 128 letters, digits, . _ and -"));
        }
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return Err(error("@sha256: and 64 hex digits"));
        }
        if tag.is_none() && digest.is_none() {
            return Err(error("a tag or a digest at the end: :TAG or @sha256:…"));
        }
        let (tag, digest) = (tag.map(str::to_owned), digest.map(str::to_owned));
        Ok(Self { registry, repository: repository.to_owned(), tag, digest })
    }
}

impl Image {
    /// What a registry is asked for: the digest where there is one, else the tag.
    pub fn reference(&self) -> &str {
        self.digest.as_deref().or(self.tag.as_deref()).unwrap_or_default()
    }

    /// The same artefact by its manifest's digest.
    #[must_use]
    pub fn at(&self, digest: &str) -> Self {
        Self { tag: None, digest: Some(digest.to_owned()), ..self.clone() }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

impl FromStr for Registry {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Self, RegistryError> {
        let error = || RegistryError(text.to_owned());
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(error)?;
            host.parse::<Ipv6Addr>().map_err(|_| error())?;
            let port = rest.strip_prefix(':');
            if port.is_none() && !rest.is_empty() {
                return Err(error());
            }
            (host, port)
        } else {
            let (host, port) = match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            };
            if !is_host(host) {
                return Err(error());
            }
            (host, port)
        };
        let port = port.map(|port| read_port(port).ok_or_else(error)).transpose()?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        self.port.iter().try_for_each(|port| write!(f, ":{port}"))
    }
}

/// Without sign and leading zeros, which others read differently.
fn read_port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain)
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_CHARACTERS_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    // What ends in a number, of whatever base, is an address or nothing.
    let last = text.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let ends_in_number = last.strip_prefix("0x").map_or_else(
        || last.bytes().all(|byte| byte.is_ascii_digit()),
        |hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
    );
    let is_address = text.parse::<Ipv4Addr>().is_ok();
    text.len() <= HOST_CHARACTERS_MAX
        && text.split('.').all(is_label)
        && (is_address || !ends_in_number)
}

fn is_repository(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        part.as_bytes().first().is_some_and(is_edge)
            && part.as_bytes().last().is_some_and(is_edge)
            && part.bytes().all(|byte| is_edge(&byte) || matches!(byte, b'.' | b'_' | b'-'))
            && !part.contains("..")
    };
    text.len() <= REPOSITORY_CHARACTERS_MAX && text.split('/').all(is_part)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=TAG_CHARACTERS_MAX).contains(&text.len())
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

/// Whether it is `sha256:` and 64 hex digits.
pub fn is_digest(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let digits = text.strip_prefix("sha256:");
    digits.is_some_and(|digits| digits.len() == DIGEST_HEX && digits.bytes().all(is_hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn an_image_is_written_as_it_is_read() {
        for (text, reference) in [
            ("registry.example.org/fence/tasmota:0.1.0".to_owned(), "0.1.0"),
            ("registry.example.org:5000/tasmota:latest".to_owned(), "latest"),
            ("127.0.0.1:5000/a/b-c/d__e:v1".to_owned(), "v1"),
            ("[::1]:5000/tasmota:v1".to_owned(), "v1"),
            ("localhost/tasmota:v1".to_owned(), "v1"),
            (format!("ghcr.io/a/b@{DIGEST}"), DIGEST),
            (format!("ghcr.io/a/b:v1@{DIGEST}"), DIGEST),
        ] {
            let image: Image = text.parse().unwrap();
            assert_eq!((image.to_string(), image.reference()), (text.clone(), reference));
        }
        let image: Image = "ghcr.io/a/b:v1".parse().unwrap();
        assert_eq!(image.at(DIGEST).to_string(), format!("ghcr.io/a/b@{DIGEST}"));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for wrong in [
            "",
            "tasmota",
            "tasmota:v1",
            "library/tasmota:v1",
            "ghcr.io/tasmota",
            "https://ghcr.io/a/b:v1",
            "ghcr.io:/a/b:v1",
            "ghcr.io:0/a/b:v1",
            "ghcr.io:065/a/b:v1",
            "ghcr.io:70000/a/b:v1",
            "user@ghcr.io/a/b:v1",
            "127.1:5000/a:v1",
            "0x7f.0.0.1:5000/a:v1",
            "registry.0x7f:5000/a:v1",
            "ghcr.io./a/b:v1",
            "[::1/a:v1",
            "[x]/a:v1",
            "ghcr.io/A/b:v1",
            "ghcr.io/../b:v1",
            "ghcr.io//b:v1",
            "ghcr.io/a/b:",
            "ghcr.io/a/b:-v1",
            "ghcr.io/a/b:v 1",
            "ghcr.io/a/b@sha256:12",
            "ghcr.io/a/b@sha512:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "ghcr.io/a?b:v1",
            "ghcr.io/a#b:v1",
            "ghcr.io/a%2fb:v1",
        ] {
            assert!(wrong.parse::<Image>().is_err(), "{wrong}");
        }
    }
}
