//! How a session begins: over TLS or not, logged in or not at all, with one driver. It ends by a call
//! that the host sends when the connection goes, however this plugin ends.

use node_remedy_sdk::{Failure, FailureKind, Fields, Host};

use crate::limits;
use crate::refusal::protocol;
use crate::rpc::{Link, Procedure};
use crate::xdr::{Reader, Writer};

const AUTH_LIST: Procedure = reads(66, "ask the libvirt daemon how to log in");
const OPEN: Procedure = reads(1, "open the driver");
const CLOSE: Procedure = reads(2, "close the driver");

const fn reads(number: u32, what: &'static str) -> Procedure {
    Procedure { number, what, time_ms: limits::ANSWER_MS }
}

/// What a daemon says inside TLS once it has checked our certificate, or decided not to.
const LET_IN: u8 = 1;

/// Connects, and opens the driver that the parameters name.
pub(crate) fn begin<'a, H: Host>(
    host: &'a H,
    parameters: &Fields,
    deadline_ms: u32,
) -> Result<Link<'a, H>, Failure> {
    let parameter = |name: &str| {
        let found = parameters.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    };
    let transport = parameter("transport").unwrap_or("tls");
    let link = Link::open(host, transport, deadline_ms)?;
    if transport == "tls" {
        check_greeting(link.greeting()?)?;
    }
    check_login(&link.call(AUTH_LIST, &[])?)?;
    let uri = parameter("uri").unwrap_or("qemu:///system");
    // That there is a URI, the URI, no flags.
    link.call(OPEN, &Writer::default().number(1).string(uri).number(0).done())?;
    link.leave_with(CLOSE);
    Ok(link)
}

fn check_greeting(greeting: Option<u8>) -> Result<(), Failure> {
    match greeting {
        Some(LET_IN) => Ok(()),
        Some(other) => Err(protocol("be let in", &format!("a first byte of {other}"))),
        None => Err(Failure::new(
            FailureKind::Unauthenticated,
            "failed to be let in: the libvirt daemon closed the connection after TLS was agreed on; \
             it asks for a certificate of ours (tls_no_verify_certificate = 0), which this plugin \
             has none of",
        )),
    }
}

/// Whether nothing more is asked for.
fn check_login(answer: &[u8]) -> Result<(), Failure> {
    let mut reader = Reader::new(answer);
    let count = reader.number().filter(|count| *count <= 8);
    let offered: Option<Vec<u32>> =
        count.and_then(|count| (0..count).map(|_| reader.number()).collect());
    let Some(offered) = offered else {
        return Err(protocol(AUTH_LIST.what, "an answer of another shape"));
    };
    if offered.contains(&0) {
        return Ok(());
    }
    let names: Vec<_> = offered
        .iter()
        .map(|number| match number {
            1 => "sasl".to_owned(),
            2 => "polkit".to_owned(),
            other => format!("number {other}"),
        })
        .collect();
    Err(Failure::new(
        FailureKind::Unsupported,
        format!(
            "the libvirt daemon wants a login by {}, which this plugin does not do; set auth_tls or \
             auth_tcp = \"none\" and let in whom TLS or the network lets in",
            names.join(" or ")
        ),
    ))
}
