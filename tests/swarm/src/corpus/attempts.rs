//! What is tried: each attack, and a twin that is granted what it does and succeeds.

use std::collections::BTreeSet;

use node_remedy_sandbox::{Action, AdminGrant, HttpGrant};

use super::asked::{fleet, wide};
use super::canary;

/// One call of the attacker.
pub(super) struct Attempt {
    pub(super) name: &'static str,
    /// What the attacker is to do.
    pub(super) deed: &'static str,
    pub(super) action: Action,
    pub(super) parameters: Vec<(&'static str, String)>,
    pub(super) admin: AdminGrant,
    /// All whom it may reach, as [`super::network::Network::reached`] says it.
    pub(super) may_reach: &'static [&'static str],
    /// What an honest deed says in the end.
    pub(super) says: Option<&'static str>,
}

const DEVICE: &str = "10.9.0.7:623";
const REACHED: &str = "udp 10.9.0.7:623";
const WEB: &str = "http://10.9.0.7/";

pub(super) fn all() -> Vec<Attempt> {
    vec![
        datagram("its own device", DEVICE, fleet()).reaches(&[REACHED]).succeeds("on"),
        datagram("another network's device", "10.8.0.7:623", fleet()),
        datagram("another port of its device", "10.9.0.7:10250", fleet()),
        datagram(
            "the metadata service, under a range that holds it",
            "169.254.169.254:623",
            wide(),
        ),
        datagram(
            "the metadata service, granted by its exact address",
            "169.254.169.254:623",
            exact(),
        )
        .reaches(&["udp 169.254.169.254:623"])
        .succeeds("on"),
        attempt("a path that is granted", "fetch")
            .with("url", WEB)
            .with("path", "/power/1")
            .under(of_path("/power"))
            .reaches(&["GET 10.9.0.7:80 /power/1"])
            .succeeds("200"),
        attempt("a path that is not granted", "fetch")
            .with("url", WEB)
            .with("path", "/admin")
            .under(of_path("/power")),
        attempt("a secret that it may only have used", "steal-bytes")
            .with("address", DEVICE)
            .with("url", WEB)
            .with("sought", &turned_over(canary::ACCOUNT))
            .reaches(&["GET 10.9.0.7:80 /echo", REACHED])
            .succeeds("mac Ok(32), keyed Ok(true), sent 200"),
        attempt("an echo of what proves who asks", "fetch")
            .with("url", WEB)
            .with("path", "/echo")
            .reaches(&["GET 10.9.0.7:80 /echo"])
            .succeeds("200"),
        attempt("every way out for a secret that it was shown", "exfiltrate")
            .with("address", DEVICE)
            .under(AdminGrant { reveal: BTreeSet::from(["community".to_owned()]), ..fleet() })
            .reaches(&[REACHED])
            .succeeds("kept true, by name 0"),
        attempt("guesses at a secret as checkpoints", "guess-by-checkpoint")
            .with("address", DEVICE)
            .with("number", "100")
            .with("sought", &turned_over(canary::ACCOUNT))
            .reaches(&[REACHED])
            .succeeds("0 of 100 guesses told apart"),
        Attempt { action: Action::Off, ..attempt("an off that nobody was asked for", "claim-off") }
            .with("address", DEVICE),
        Attempt { action: Action::Off, ..attempt("an off that was read", "off") }
            .with("address", DEVICE)
            .reaches(&[REACHED])
            .succeeds("on"),
    ]
}

fn attempt(name: &'static str, deed: &'static str) -> Attempt {
    Attempt {
        name,
        deed,
        action: Action::Status,
        parameters: Vec::new(),
        admin: fleet(),
        may_reach: &[],
        says: None,
    }
}

fn datagram(name: &'static str, address: &str, admin: AdminGrant) -> Attempt {
    attempt(name, "datagram").with("address", address).under(admin)
}

impl Attempt {
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.parameters.push((name, value.to_owned()));
        self
    }

    fn under(self, admin: AdminGrant) -> Self {
        Self { admin, ..self }
    }

    fn reaches(self, may_reach: &'static [&'static str]) -> Self {
        Self { may_reach, ..self }
    }

    fn succeeds(self, says: &'static str) -> Self {
        Self { says: Some(says), ..self }
    }
}

fn exact() -> AdminGrant {
    AdminGrant { cidrs: "169.254.169.254/32".parse().into_iter().collect(), ..fleet() }
}

fn of_path(path: &str) -> AdminGrant {
    let paths = path.parse().into_iter().collect();
    AdminGrant { http: HttpGrant { paths, ..fleet().http }, ..fleet() }
}

/// A secret as the attacker is told it, so that being told leaves no copy in its memory.
fn turned_over(secret: &str) -> String {
    let turned = secret.bytes().map(|byte| format!("{:02x}", byte ^ 0xff));
    turned.collect::<Vec<_>>().concat()
}
