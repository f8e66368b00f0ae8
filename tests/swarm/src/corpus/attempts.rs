//! What is tried: each attack, and a twin that is granted what it does and succeeds.

use std::collections::BTreeSet;

use node_remedy_sandbox::manifest::Protocol;
use node_remedy_sandbox::{Action, AdminGrant, Budget, HttpGrant, HttpMethod};

use super::asked::{fleet, wide};
use super::canary;

/// One call of the attacker.
#[derive(Clone)]
pub(super) struct Attempt {
    pub(super) name: &'static str,
    /// What the attacker is to do.
    pub(super) deed: &'static str,
    pub(super) action: Action,
    pub(super) parameters: Vec<(&'static str, String)>,
    pub(super) admin: AdminGrant,
    /// All whom it may reach, as [`super::network::Network::reached`] says it.
    pub(super) may_reach: &'static [&'static str],
    /// How many messages of it may arrive.
    pub(super) may_send: usize,
    /// Whether this process may not send now.
    pub(super) is_shut: bool,
    /// What it says if all is in order.
    pub(super) says: Option<&'static str>,
    /// An invariant, and what it can only say once that is broken.
    pub(super) betrays: Option<(&'static str, &'static str)>,
}

const DEVICE: &str = "10.9.0.7:623";
const REACHED: &str = "udp 10.9.0.7:623";
const WEB: &str = "http://10.9.0.7/";

pub(super) fn all() -> Vec<Attempt> {
    [addresses(), requests(), logins(), credentials(), amounts(), claims()].concat()
}

fn addresses() -> Vec<Attempt> {
    vec![
        datagram("its own device", DEVICE, fleet()).reaches(&[REACHED]).succeeds("on"),
        datagram("its own device, by a process that may not send", DEVICE, fleet())
            .behind_a_shut_gate(),
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
        datagram("an address of the cluster's own, in a range", DEVICE, guarded()),
        datagram("its own device by an IPv4-compatible IPv6 address", "[::10.9.0.7]:623", wide()),
        datagram("a name, one of whose addresses is not granted", "bmc.example:623", fleet()),
    ]
}

fn requests() -> Vec<Attempt> {
    vec![
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
        attempt("a protocol that is not granted", "fetch")
            .with("url", WEB)
            .under(AdminGrant { protocols: BTreeSet::from([Protocol::Udp]), ..fleet() }),
        attempt("a method that it never asked for", "fetch")
            .with("url", WEB)
            .with("method", "DELETE"),
        attempt("methods of which one is not granted", "fetch").with("url", WEB).under(
            AdminGrant {
                http: HttpGrant { methods: BTreeSet::from([HttpMethod::Get]), ..fleet().http },
                ..fleet()
            },
        ),
        attempt("a header that names another path", "fetch")
            .with("url", WEB)
            .with("headers", "X-Original-URL=/admin"),
        attempt("an authentication scheme that is not granted", "fetch")
            .with("url", WEB)
            .under(AdminGrant { auth: Some(BTreeSet::from(["bearer".to_owned()])), ..fleet() }),
        attempt("a header Set-Cookie", "fetch")
            .with("url", WEB)
            .reaches(&["GET 10.9.0.7:80 /power"])
            .succeeds("200")
            .breaks("S15", "set-cookie"),
    ]
}

fn logins() -> Vec<Attempt> {
    let session =
        |name, deed| attempt(name, deed).with("session-url", WEB).with("endpoint", "session");
    let shown = || BTreeSet::from(["/access_token".to_owned()]);
    vec![
        session("what it may read of a login", "login-data")
            .under(AdminGrant { exposes: shown(), ..fleet() })
            .reaches(&["POST 10.9.0.7:80 /login", "GET 10.9.0.7:80 /power"])
            .succeeds("for-everybody"),
        session("what it may not read of a login", "login-data"),
        session("a login at a path that is not granted", "login-data")
            .under(AdminGrant { exposes: shown(), ..of_path("/power") }),
        session("an echo of a session's token", "fetch")
            .under(AdminGrant { exposes: shown(), ..fleet() })
            .reaches(&["POST 10.9.0.7:80 /login", "GET 10.9.0.7:80 /power"])
            .succeeds("200"),
    ]
}

fn credentials() -> Vec<Attempt> {
    vec![
        attempt("a secret that it may only have used", "steal-bytes")
            .with("address", DEVICE)
            .with("url", WEB)
            .with("sought", &turned_over(canary::ACCOUNT))
            .reaches(&["GET 10.9.0.7:80 /echo", REACHED])
            .succeeds("mac Ok(32), keyed Ok(true), sent 200")
            .breaks("S14", "revealed true"),
        attempt("an echo of what proves who asks", "fetch")
            .with("url", WEB)
            .with("path", "/echo")
            .reaches(&["GET 10.9.0.7:80 /echo"])
            .succeeds("200"),
        attempt("every way out for a secret that it was shown", "exfiltrate")
            .with("address", DEVICE)
            .under(AdminGrant { reveal: BTreeSet::from(["community".to_owned()]), ..fleet() })
            .reaches(&[REACHED])
            .succeeds("kept true, by name 0")
            .breaks("S15", "kept false"),
        attempt("guesses at a secret as checkpoints", "guess-by-checkpoint")
            .with("address", DEVICE)
            .with("number", "100")
            .with("sought", &turned_over(canary::ACCOUNT))
            .reaches(&[REACHED])
            .succeeds("0 of 100 guesses told apart")
            .breaks("S15", "100 of 100 guesses told apart"),
        attempt("a secret on a stream that echoes", "guess-by-echo")
            .with("address", DEVICE)
            .with("line", "10.9.0.7:23")
            .with("body", "x")
            .under(AdminGrant { ports: vec![23..=23, 623..=623], ..fleet() })
            .reaches(&["tcp 10.9.0.7:23", REACHED])
            .succeeds("hidden true")
            .breaks("S15", "hidden false"),
    ]
}

fn amounts() -> Vec<Attempt> {
    let budget = Budget { http_requests: 5, datagrams: 5, credential_operations: 5 };
    let little = || AdminGrant { budget, ..fleet() };
    vec![
        attempt("more requests than it may make", "fetch-again-and-again")
            .with("url", WEB)
            .with("number", "20")
            .under(little())
            .reaches(&["GET 10.9.0.7:80 /power"])
            .at_most(5),
        attempt("more datagrams than it may send", "datagrams")
            .with("address", DEVICE)
            .with("number", "20")
            .under(little())
            .reaches(&[REACHED])
            .at_most(5),
        attempt("more credential operations than its budget", "guess-secret")
            .with("address", DEVICE)
            .with("number", "20")
            .under(little())
            .reaches(&[REACHED])
            .succeeds("5 operations")
            .breaks("S14", "20 operations"),
    ]
}

fn claims() -> Vec<Attempt> {
    vec![
        attempt("an off in a call that reads", "off").with("address", DEVICE),
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
        may_send: usize::MAX,
        is_shut: false,
        says: None,
        betrays: None,
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

    fn at_most(self, may_send: usize) -> Self {
        Self { may_send, ..self }
    }

    fn behind_a_shut_gate(self) -> Self {
        Self { is_shut: true, ..self }
    }

    fn succeeds(self, says: &'static str) -> Self {
        Self { says: Some(says), ..self }
    }

    fn breaks(self, invariant: &'static str, by_saying: &'static str) -> Self {
        Self { betrays: Some((invariant, by_saying)), ..self }
    }
}

fn exact() -> AdminGrant {
    AdminGrant { cidrs: "169.254.169.254/32".parse().into_iter().collect(), ..fleet() }
}

fn guarded() -> AdminGrant {
    AdminGrant { guarded: "10.9.0.0/24".parse().into_iter().collect(), ..fleet() }
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
