//! What one method instance may reach: the plugin's ask, the method's parameters and the admin's
//! grant, intersected. A missing grant is an error that names the ask, what was found and what to
//! add, so a method is found not ready when the configuration is read and not at three in the
//! morning. Not here: opening sockets; the host dials exactly the address decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use node_remedy_decide::bug::{Bug, guard, is_seeded};

use crate::address::{Cidr, Hazard, destination, is_disguised};
use crate::host_name::HostPort;
use crate::manifest::{Auth, CredentialAsk, EndpointAsk, Manifest, Operation, Protocol};
use crate::names::Names;
use crate::trust::Trust;

mod budget;
pub(crate) mod error;
mod http;
mod login;

pub use self::budget::Budget;
pub(crate) use self::http::login_path;
pub use self::http::{HttpGrant, HttpPolicy};
pub(crate) use error::GrantError;

/// 192.0.2.0, where nobody is (RFC 5737).
const TEST_NET: u32 = 0xc000_0200;

/// What an admin allows a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdminGrant {
    /// Where it may connect.
    pub cidrs: Vec<Cidr>,
    /// Names, in small letters, whose every address it may connect to.
    pub hosts: BTreeSet<String>,
    /// On which ports.
    pub ports: Vec<RangeInclusive<u16>>,
    /// How it may speak.
    pub protocols: BTreeSet<Protocol>,
    /// What it may ask for over HTTP.
    pub http: HttpGrant,
    /// How the host may authenticate for it, by the schemes of manifests; absent: as it asks. To authenticate
    /// not at all needs no grant.
    pub auth: Option<BTreeSet<String>>,
    /// Whom the other side of TLS must prove to be.
    pub trust: Trust,
    /// What may be done with its credentials, `reveal` excepted.
    pub operations: BTreeSet<Operation>,
    /// The credentials whose bytes it may see, by the plugin's names for them.
    pub reveal: BTreeSet<String>,
    /// What it may see of the answers to logins, as its manifest's `exposes` points to it.
    pub exposes: BTreeSet<String>,
    /// How much of all that one call may use.
    pub budget: Budget,
    /// The pod's own and the API server's addresses, and others that only an exact grant opens.
    pub guarded: Vec<Cidr>,
    /// Endpoints whose address the component's own manifest says: only a granted name or an exact address opens them.
    pub chosen: BTreeSet<String>,
}

/// What one method instance may reach. Made by [`Grants::decide`] only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    endpoints: BTreeMap<String, Endpoint>,
    refused: BTreeMap<String, String>,
    credentials: BTreeMap<String, BTreeSet<Operation>>,
    budget: Budget,
}

/// One place a method instance may connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// How.
    pub protocol: Protocol,
    /// The host as it was written, for names inside protocols.
    pub host: String,
    /// The very address that is dialled.
    pub address: SocketAddr,
    /// Where the protocol is HTTP, what may be asked for.
    pub http: Option<HttpPolicy>,
    /// Where the protocol has TLS, whom the other side must prove to be.
    pub tls: Option<Trust>,
}

impl Grants {
    /// Intersects ask, parameters (with defaults filled in) and grant.
    pub async fn decide(
        manifest: &Manifest,
        parameters: &BTreeMap<String, String>,
        admin: &AdminGrant,
        names: &dyn Names,
    ) -> Result<Self, GrantError> {
        let mut grants = Self { budget: admin.budget.bounded(), ..Self::default() };
        for ask in &manifest.asks.endpoints {
            match admin.endpoint(ask, parameters, names).await {
                Ok(endpoint) => {
                    grants.endpoints.insert(ask.name.clone(), endpoint);
                }
                Err(refusal) if ask.optional => grants.leave_out(ask, &refusal),
                Err(refusal) => return Err(refusal),
            }
        }
        for ask in &manifest.asks.endpoints {
            match grants.check_login(ask, parameters) {
                Err(refusal) if ask.optional => grants.leave_out(ask, &refusal),
                checked => checked?,
            }
        }
        for ask in &manifest.asks.credentials {
            grants.credentials.insert(ask.name.clone(), admin.operations(ask)?);
        }
        Ok(grants)
    }

    /// Keeps why an optional endpoint is none of this method's, for the call that needs it all the same.
    fn leave_out(&mut self, ask: &EndpointAsk, refusal: &GrantError) {
        self.endpoints.remove(&ask.name);
        self.refused.insert(ask.name.clone(), refusal.to_string());
    }

    /// The same for a call that reaches nothing ([`crate::net::Replay`]): each endpoint at an address of its
    /// own, and nobody there to be told who asks.
    #[must_use]
    pub fn for_replay(mut self) -> Self {
        for (place, endpoint) in (1..).zip(self.endpoints.values_mut()) {
            endpoint.address.set_ip(Ipv4Addr::from_bits(TEST_NET + place).into());
            if let Some(policy) = &mut endpoint.http {
                policy.auth = Auth::None {};
            }
        }
        self
    }

    /// The endpoints, by the plugin's names for them.
    pub fn endpoints(&self) -> &BTreeMap<String, Endpoint> {
        &self.endpoints
    }

    /// Why an optional endpoint was left out, if it was.
    pub fn refused(&self, endpoint: &str) -> Option<&str> {
        self.refused.get(endpoint).map(String::as_str)
    }

    /// The operations on each credential, by the plugin's names for them.
    pub fn credentials(&self) -> &BTreeMap<String, BTreeSet<Operation>> {
        &self.credentials
    }

    /// How much of all that one call may use.
    pub fn budget(&self) -> Budget {
        self.budget
    }
}

impl Endpoint {
    /// Host and port as URLs of its protocol write them.
    pub(crate) fn authority(&self) -> String {
        let Self { host, address, protocol, .. } = self;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        match address.port() {
            port if protocol.usual_port() == Some(port) => host,
            port => format!("{host}:{port}"),
        }
    }
}

impl AdminGrant {
    async fn endpoint(
        &self,
        ask: &EndpointAsk,
        parameters: &BTreeMap<String, String>,
        names: &dyn Names,
    ) -> Result<Endpoint, GrantError> {
        let (name, parameter) = (ask.name.clone(), ask.from.clone());
        let Some(written) = ask.written(parameters) else {
            return Err(GrantError::NoAddress { ask: name, parameter });
        };
        let place = HostPort::parse(&written, ask.protocol)
            .map_err(|source| GrantError::Address { ask: ask.name.clone(), parameter, source })?;
        let Some(port) = place.port.or(ask.port).or(ask.protocol.usual_port()) else {
            let (parameter, found) = (ask.from.clone(), written);
            return Err(GrantError::NoPort { ask: name, parameter, found });
        };
        self.check_protocol(ask, port)?;
        let addresses = match place.host.parse() {
            Ok(address) => vec![address],
            // Whoever grants names only means this one too, or nothing of it: it is not looked up.
            Err(_) if ask.optional && self.is_foreign(&place.host) => {
                return Err(GrantError::NotGranted {
                    ask: format!("endpoint '{name}'"),
                    add: format!("{} to grants.hosts", place.host),
                    found: place.host,
                    reason: "which is not granted".to_owned(),
                });
            }
            Err(_) => resolve(&name, &place.host, names).await?,
        };
        // Every address of a name must be granted: of a mixed answer the resolver, not the
        // admin, would choose.
        let is_named = self.hosts.contains(&place.host);
        let checked = if is_seeded(Bug::OneAddressIsAll) { 1 } else { addresses.len() };
        for address in addresses.iter().take(checked) {
            self.check_address(ask, *address, port, is_named)?;
        }
        let Some(first) = addresses.first() else {
            let source = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            return Err(GrantError::Name { ask: name, host: place.host, source });
        };
        Ok(Endpoint {
            protocol: ask.protocol,
            host: place.host,
            address: SocketAddr::new(first.to_canonical(), port),
            http: ask.protocol.speaks_http().then(|| self.http.policy(ask)).transpose()?,
            tls: ask.protocol.has_tls().then(|| self.trust.clone()),
        })
    }

    /// Whether a granted range holds this address.
    fn holds(&self, address: IpAddr) -> bool {
        self.cidrs.iter().any(|cidr| cidr.holds(address))
    }

    /// Whether no grant can hold this name, wherever it leads.
    fn is_foreign(&self, name: &str) -> bool {
        self.cidrs.is_empty() && !self.hosts.contains(name)
    }

    fn check_protocol(&self, ask: &EndpointAsk, port: u16) -> Result<(), GrantError> {
        let missing = |found: String, reason: &str, add: String| GrantError::NotGranted {
            ask: format!("endpoint '{}'", ask.name),
            found,
            reason: reason.to_owned(),
            add,
        };
        if guard(Bug::ProtocolUnchecked, !self.protocols.contains(&ask.protocol)) {
            let protocol = ask.protocol.as_str();
            let add = format!("{protocol} to grants.protocols");
            return Err(missing(protocol.to_owned(), "a protocol that is not granted", add));
        }
        let is_granted = port > 0 && self.ports.iter().any(|range| range.contains(&port));
        if guard(Bug::PortUnchecked, !is_granted) {
            let add = format!("{port} to grants.ports");
            return Err(missing(format!("port {port}"), "which is not granted", add));
        }
        let scheme = ask.auth.scheme();
        let is_granted = self.auth.as_ref().is_none_or(|granted| granted.contains(scheme));
        if guard(Bug::SchemeUnchecked, ask.auth != Auth::NONE && !is_granted) {
            let add = format!("{scheme} to grants.auth");
            return Err(missing(format!("authentication {scheme}"), "which is not granted", add));
        }
        let Auth::Login(login) = &ask.auth else { return Ok(()) };
        if is_seeded(Bug::ExposesUnchecked) {
            return Ok(());
        }
        if let Some(shown) = login.exposes.iter().find(|shown| !self.exposes.contains(*shown)) {
            let reason = "which is not granted and may be a token";
            let add = format!("{shown:?} to grants.exposes, if the plugin may read it");
            return Err(missing(format!("{shown:?} of the answer to a login"), reason, add));
        }
        Ok(())
    }

    fn check_address(
        &self,
        ask: &EndpointAsk,
        address: IpAddr,
        port: u16,
        is_named: bool,
    ) -> Result<(), GrantError> {
        let target = destination(address);
        let exact = self.cidrs.iter().any(|cidr| cidr.is_exact() && cidr.holds(target));
        let hazard = Hazard::of(target).filter(|_| guard(Bug::HazardsOpen, !exact));
        let guarded = self.guarded.iter().find(|cidr| !exact && cidr.holds(target));
        let guarded = guarded.filter(|_| !is_seeded(Bug::GuardedOpen));
        let reason = if let Some(hazard) = hazard {
            format!("{}, which only its exact address opens", hazard.as_str())
        } else if let Some(guarded) = guarded {
            format!("in {guarded}, which is this cluster's own and only an exact address opens")
        } else if guard(Bug::DisguiseOpen, is_disguised(address)) {
            let ask = format!("endpoint '{}' (parameter '{}')", ask.name, ask.from);
            let reason = format!("a form of {target} in IPv6 that may lead elsewhere");
            let (found, add) = (address.to_string(), format!("{target} in its place"));
            return Err(GrantError::NotGranted { ask, found, reason, add });
        } else if exact {
            return Ok(());
        } else if guard(Bug::RangeUnchecked, !is_named && !self.holds(target)) {
            "which no granted range holds".to_owned()
        } else if !is_named && self.chosen.contains(&ask.name) {
            "which the plugin's manifest says itself, so that no range opens it".to_owned()
        } else {
            return Ok(());
        };
        let address = SocketAddr::new(address, port);
        let found = match SocketAddr::new(target, port) {
            same if same == address => format!("{address}"),
            leads => format!("{address}, which leads to {leads}"),
        };
        let ask = format!("endpoint '{}' (parameter '{}')", ask.name, ask.from);
        let add = format!("{} to grants.cidrs", Cidr::exactly(target));
        Err(GrantError::NotGranted { ask, found, reason, add })
    }

    fn operations(&self, ask: &CredentialAsk) -> Result<BTreeSet<Operation>, GrantError> {
        let granted = |operation: &Operation| match operation {
            Operation::Reveal => self.reveal.contains(&ask.name),
            Operation::Mac | Operation::SessionKey | Operation::UsmKey | Operation::Write => {
                self.operations.contains(operation)
            }
        };
        let Some(missing) = ask.operations.iter().find(|operation| !granted(operation)) else {
            return Ok(ask.operations.clone());
        };
        // What is optional is left out quietly. Whoever configures such a credential all the same
        // looks whether it was granted.
        if ask.optional {
            return Ok(ask.operations.iter().copied().filter(granted).collect());
        }
        Err(GrantError::NotGranted {
            ask: format!("credential '{}'", ask.name),
            found: format!("operation {}", missing.as_str()),
            reason: "which is not granted".to_owned(),
            add: match missing {
                Operation::Reveal => {
                    format!("{} to grants.reveal, if the plugin may read it", ask.name)
                }
                Operation::Mac | Operation::SessionKey | Operation::UsmKey | Operation::Write => {
                    format!("{} to grants.operations", missing.as_str())
                }
            },
        })
    }
}

async fn resolve(ask: &str, host: &str, names: &dyn Names) -> Result<Vec<IpAddr>, GrantError> {
    let mut addresses = names.resolve(host).await.map_err(|source| {
        let (ask, host) = (ask.to_owned(), host.to_owned());
        GrantError::Name { ask, host, source }
    })?;
    // A resolver rotates its answers; which one is dialled must not depend on that.
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;

    use super::*;
    use crate::names::NoNames;

    /// Answers every name with the same addresses.
    struct Fixed(&'static [&'static str]);

    impl Names for Fixed {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let addresses = self.0.iter().map(|a| a.parse().unwrap()).collect();
            Box::pin(async move { Ok(addresses) })
        }
    }

    fn manifest() -> Manifest {
        Manifest::parse(include_bytes!("../../../plugins/ipmi/manifest.json")).unwrap()
    }

    fn admin(cidrs: &[&str]) -> AdminGrant {
        AdminGrant {
            cidrs: cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect(),
            ports: vec![623..=623, 6_230..=6_239],
            protocols: BTreeSet::from([Protocol::Udp]),
            operations: BTreeSet::from([Operation::Mac, Operation::SessionKey]),
            guarded: vec!["10.96.0.0/12".parse().unwrap()],
            ..AdminGrant::default()
        }
    }

    fn decide(address: &str, admin: &AdminGrant, names: &dyn Names) -> Result<SocketAddr, String> {
        let parameters = BTreeMap::from([("address".to_owned(), address.to_owned())]);
        let manifest = manifest();
        let decided = Grants::decide(&manifest, &parameters, admin, names);
        let grants = futures::executor::block_on(decided).map_err(|error| error.to_string())?;
        Ok(grants.endpoints()["bmc"].address)
    }

    /// An admin who opens everything that a range can open.
    fn wide() -> AdminGrant {
        admin(&["0.0.0.0/0", "::/0"])
    }

    #[test]
    fn what_is_granted_is_dialled_exactly() {
        let fleet = admin(&["10.9.0.0/16", "fd00:9::/32"]);
        let rows = [
            ("10.9.1.2", "10.9.1.2:623"),
            ("10.9.1.2:6231", "10.9.1.2:6231"),
            ("[fd00:9::7]:623", "[fd00:9::7]:623"),
            ("fd00:9::7", "[fd00:9::7]:623"),
            ("::ffff:10.9.1.2", "10.9.1.2:623"),
        ];
        for (address, dialled) in rows {
            assert_eq!(
                decide(address, &fleet, &NoNames),
                Ok(dialled.parse().unwrap()),
                "{address}"
            );
        }
    }

    #[test]
    fn no_range_opens_an_address_of_the_attack_corpus() {
        let rows = [
            ("169.254.169.254", "metadata"),
            ("fd00:ec2::254", "metadata"),
            ("127.0.0.1", "loopback"),
            ("127.8.8.8", "loopback"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:169.254.169.254", "metadata"),
            ("64:ff9b::a9fe:a9fe", "metadata"),
            ("2002:7f00:1::", "loopback"),
            ("::127.0.0.1", "loopback"),
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("::", "unspecified"),
            ("169.254.1.1", "link-local"),
            ("fe80::1", "link-local"),
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("10.96.0.1", "this cluster's own"),
        ];
        for (address, reason) in rows {
            let refusal = decide(address, &wide(), &NoNames).unwrap_err();
            assert!(refusal.contains(reason), "{address}: {refusal}");
        }
    }

    #[test]
    fn an_ipv4_grant_opens_no_form_of_ipv6_that_is_dialled_as_written() {
        for grant in ["10.9.0.0/16", "10.9.0.7/32"] {
            for form in ["::10.9.0.7", "2002:a09:7::1", "2001:0:53aa:64c:0:0:f5f6:fff8"] {
                let refusal = decide(form, &admin(&[grant]), &NoNames).unwrap_err();
                let says =
                    "a form of 10.9.0.7 in IPv6 that may lead elsewhere; add 10.9.0.7 in its place";
                assert!(refusal.ends_with(says), "{refusal}");
            }
            let translated = decide("64:ff9b::10.9.0.7", &admin(&[grant]), &NoNames);
            assert_eq!(translated, Ok("[64:ff9b::a09:7]:623".parse().unwrap()));
        }
    }

    #[test]
    fn literals_in_other_bases_never_reach_a_resolver() {
        let inward = Fixed(&["10.9.0.1"]);
        for address in ["0x7f.0.0.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.1", "1.2.3.4."]
        {
            let refusal = decide(address, &wide(), &inward).unwrap_err();
            assert!(refusal.contains("parameter 'address'"), "{address}: {refusal}");
        }
    }

    #[test]
    fn confusing_authorities_are_refused() {
        let inward = Fixed(&["10.9.0.1"]);
        for address in [
            "a@10.9.0.1",
            "10.9.0.1\\@b",
            "10.9.0.1/x",
            "b c",
            "bmc:0",
            "bmc:99999",
            "bmc:",
            "ä.example",
            "[10.9.0.1]",
            "[::1",
            "fd00::1%eth0",
            "bmc\r\nHost: x",
            "",
        ] {
            assert!(decide(address, &wide(), &inward).is_err(), "{address:?}");
        }
    }

    #[test]
    fn an_exact_grant_opens_its_address_and_no_other() {
        let lab = admin(&["127.0.0.1/32"]);
        assert!(decide("127.0.0.1:6231", &lab, &NoNames).is_ok());
        assert!(decide("::ffff:127.0.0.1", &lab, &NoNames).is_ok());
        assert!(decide("::127.0.0.1", &lab, &NoNames).is_err());
        assert!(decide("127.0.0.2", &lab, &NoNames).is_err());
        assert!(decide("::1", &lab, &NoNames).is_err());
    }

    #[test]
    fn all_addresses_of_a_name_must_be_granted() {
        let fleet = admin(&["10.9.0.0/16"]);
        assert!(decide("bmc.example", &fleet, &Fixed(&["10.9.0.2", "10.9.0.1"])).is_ok());
        let mixed = Fixed(&["10.9.0.1", "169.254.169.254"]);
        assert!(decide("bmc.example", &fleet, &mixed).unwrap_err().contains("metadata"));
        assert!(decide("bmc.example", &fleet, &Fixed(&[])).unwrap_err().contains("no address"));
        assert!(decide("kubernetes.default.svc", &fleet, &Fixed(&["10.96.0.1"])).is_err());
    }

    #[test]
    fn a_refusal_says_what_to_add() {
        let refusal = decide("10.8.0.1", &admin(&["10.9.0.0/16"]), &NoNames).unwrap_err();
        assert_eq!(
            refusal,
            "failed to grant endpoint 'bmc' (parameter 'address'): found 10.8.0.1:623, \
             which no granted range holds; add 10.8.0.1/32 to grants.cidrs"
        );
        let refusal = decide("10.9.0.1:22", &admin(&["10.9.0.0/16"]), &NoNames).unwrap_err();
        assert!(refusal.ends_with("found port 22, which is not granted; add 22 to grants.ports"));
        let mut silent = admin(&["10.9.0.0/16"]);
        silent.protocols.clear();
        let refusal = decide("10.9.0.1", &silent, &NoNames).unwrap_err();
        assert!(refusal.ends_with("add udp to grants.protocols"), "{refusal}");
    }

    #[test]
    fn credential_operations_are_ask_and_grant() {
        let mut ungranted = admin(&["10.9.0.0/16"]);
        ungranted.operations.remove(&Operation::Mac);
        let refusal = decide("10.9.0.1", &ungranted, &NoNames).unwrap_err();
        assert!(refusal.contains("credential 'account': found operation mac"), "{refusal}");

        let mut curious = manifest();
        curious.asks.credentials[0].operations.insert(Operation::Reveal);
        let ask = &curious.asks.credentials[0];
        let refusal = wide().operations(ask).unwrap_err().to_string();
        assert!(refusal.contains("account to grants.reveal"), "{refusal}");
        let another = AdminGrant { reveal: BTreeSet::from(["community".to_owned()]), ..wide() };
        assert!(another.operations(ask).is_err(), "of another credential");
        let open = AdminGrant { reveal: BTreeSet::from(["account".to_owned()]), ..wide() };
        assert!(open.operations(ask).unwrap().contains(&Operation::Reveal));
        // A method that can do without a community needs no grant for it.
        curious.asks.credentials[0].optional = true;
        let operations = wide().operations(&curious.asks.credentials[0]).unwrap();
        assert!(!operations.contains(&Operation::Reveal) && operations.contains(&Operation::Mac));
    }
}
