//! Address and port of a device, joined: the one place where that is done. An IPv6 address goes into
//! brackets, because without them the port would be its last part: another machine's address.
//! Not here: whether the result is an address; the host reads it strictly, and refuses what is none.

use std::borrow::Cow;

/// An address with a port. One that names a port keeps its own.
pub fn with_port(address: &str, port: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if names_port(host) {
        return address.to_owned();
    }
    format!("{scheme}{}:{port}{path}", bracketed(host))
}

/// A host as it stands before a port. What has several colons is an IPv6 address or nothing.
pub(super) fn bracketed(host: &str) -> Cow<'_, str> {
    let is_bare = host.matches(':').count() > 1 && !host.starts_with('[');
    if is_bare { format!("[{host}]").into() } else { host.into() }
}

fn names_port(host: &str) -> bool {
    match host.strip_prefix('[') {
        Some(inside) => !inside.ends_with(']'),
        None => host.matches(':').count() == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_stands_behind_the_host_and_nowhere_else() {
        for (address, joined) in [
            ("192.0.2.7", "192.0.2.7:623"),
            ("bmc-7.example", "bmc-7.example:623"),
            ("fd00:dead::5", "[fd00:dead::5]:623"),
            ("fd00:1:2:3:4:5:6:7", "[fd00:1:2:3:4:5:6:7]:623"),
            ("::ffff:192.0.2.7", "[::ffff:192.0.2.7]:623"),
            ("[fd00::5]", "[fd00::5]:623"),
            ("https://bmc/redfish/v1", "https://bmc:623/redfish/v1"),
            ("https://[fd00::5]/", "https://[fd00::5]:623/"),
            // A part is missing: no address, with or without a port.
            ("fd00:1:2:3:4:5:6", "[fd00:1:2:3:4:5:6]:623"),
        ] {
            assert_eq!(with_port(address, "623"), joined);
        }
        for own in ["192.0.2.7:7951", "bmc:7951", "[fd00::5]:7951", "https://bmc:7951/", "[fd00::5"]
        {
            assert_eq!(with_port(own, "623"), own);
        }
    }
}
