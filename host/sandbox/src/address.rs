//! Addresses as the grant check sees them: where an address leads after every disguise is taken
//! off, which addresses no range may ever open, and ranges themselves. Not here: names, ports
//! and what is granted to whom ([`crate::grants`]).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;

/// A range of addresses, as an admin writes it: `10.9.0.0/16`, `fd00::/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cidr(IpNet);

/// Why a text is not a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read the address range: found {found:?}, expected {expected}")]
pub struct CidrError {
    found: String,
    expected: &'static str,
}

impl Cidr {
    /// The range that holds this address only.
    pub fn exactly(address: IpAddr) -> Self {
        let address = destination(address);
        Self(IpNet::from(address))
    }

    /// Its address, as it was written.
    pub fn first(&self) -> IpAddr {
        self.0.addr()
    }

    /// Whether the address lies in it.
    pub fn holds(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// Whether it is a single address, written by someone who meant that very one.
    pub fn is_exact(&self) -> bool {
        self.0.prefix_len() == self.0.max_prefix_len()
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let error = |expected| CidrError { found: text.to_owned(), expected };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr =
            address.parse().map_err(|_| error("an IP address, optionally with /prefix"))?;
        let range = match prefix {
            None => Some(IpNet::from(address)),
            Some(prefix) => prefix.parse().ok().and_then(|bits| IpNet::new(address, bits).ok()),
        };
        let range = Self(range.ok_or(error("a prefix of 0 to 32 (IPv4) or 128 (IPv6)"))?);
        // A mapped single address means where it leads; any other disguise means nothing that an admin could
        // foresee.
        if destination(address) != address {
            if range.is_exact() && !is_disguised(address) {
                return Ok(Self::exactly(address));
            }
            return Err(error("the IPv4 range itself, not a form of it in IPv6"));
        }
        Ok(range)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a packet to this address ends up: IPv6 forms that carry an IPv4 address (mapped,
/// compatible, NAT64, 6to4, Teredo) are that IPv4 address.
pub fn destination(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let bits = u128::from(v6);
    #[expect(clippy::cast_possible_truncation, reason = "cutting 32 bits out is the point")]
    let v4_at = |shift: u32| IpAddr::V4(Ipv4Addr::from((bits >> shift) as u32));
    match v6.segments() {
        // ::ffff:a.b.c.d
        [0, 0, 0, 0, 0, 0xffff, _, _]
        // ::ffff:0:a.b.c.d (SIIT) and NAT64, well-known and local-use
        | [0, 0, 0, 0, 0xffff, 0, _, _]
        | [0x64, 0xff9b, ..] => v4_at(0),
        // ::a.b.c.d, except :: and ::1, which are themselves
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => v4_at(0),
        // 2002:aabb:ccdd::
        [0x2002, ..] => v4_at(80),
        // Teredo hides the client's address inverted
        [0x2001, 0, ..] => match v4_at(0) {
            IpAddr::V4(hidden) => IpAddr::V4(Ipv4Addr::from(!u32::from(hidden))),
            IpAddr::V6(_) => address,
        },
        [..] => address,
    }
}

/// Whether it is an IPv4 address in a form of IPv6 that is dialled as it is written, wherever that leads: through
/// somebody's relay or tunnel, or nowhere. Mapped ones are dialled as IPv4, and a translator (NAT64), of which whole
/// networks live, leads where it says.
pub(crate) fn is_disguised(address: IpAddr) -> bool {
    let is_translated = match address {
        IpAddr::V6(v6) => matches!(v6.segments(), [0x64, 0xff9b, ..]),
        IpAddr::V4(_) => false,
    };
    !is_translated && destination(address) != address.to_canonical()
}

/// What makes an address one that no range opens, only its own exact grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hazard {
    /// This machine itself.
    Loopback,
    /// The link, where metadata services and neighbours answer.
    LinkLocal,
    /// A cloud's metadata service: credentials for the asking.
    Metadata,
    /// Many machines at once.
    Multicast,
    /// Every machine of the link.
    Broadcast,
    /// No address; many stacks read it as loopback.
    Unspecified,
}

impl Hazard {
    /// The hazard of an address whose disguises are taken off.
    pub fn of(address: IpAddr) -> Option<Self> {
        if METADATA_V4.map(IpAddr::V4).contains(&address)
            || METADATA_V6.map(IpAddr::V6).contains(&address)
        {
            return Some(Self::Metadata);
        }
        match address {
            // All of 0.0.0.0/8 is "this network".
            IpAddr::V4(v4) if v4.octets().first() == Some(&0) => Some(Self::Unspecified),
            IpAddr::V4(v4) if v4.is_loopback() => Some(Self::Loopback),
            IpAddr::V4(v4) if v4.is_link_local() => Some(Self::LinkLocal),
            IpAddr::V4(v4) if v4.is_multicast() => Some(Self::Multicast),
            IpAddr::V4(v4) if v4.is_broadcast() => Some(Self::Broadcast),
            IpAddr::V6(v6) if v6.is_unspecified() => Some(Self::Unspecified),
            IpAddr::V6(v6) if v6.is_loopback() => Some(Self::Loopback),
            IpAddr::V6(v6) if v6.is_unicast_link_local() => Some(Self::LinkLocal),
            IpAddr::V6(v6) if v6.is_multicast() => Some(Self::Multicast),
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        }
    }

    /// How it is called in a refusal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud's metadata service",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "a broadcast address",
            Self::Unspecified => "the unspecified address",
        }
    }
}

/// Most clouds; Azure's wire server; Alibaba; Oracle.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];
/// AWS over IPv6, and its credentials for pods; Google.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disguise_of_the_metadata_service_is_taken_off() {
        for disguised in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "::ffff:a9fe:a9fe",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "2001:0:53aa:64c:0:0:5601:5601",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
        ] {
            let address = destination(disguised.parse().unwrap());
            assert_eq!(Hazard::of(address), Some(Hazard::Metadata), "{disguised} is {address}");
        }
    }

    #[test]
    fn ordinary_addresses_have_no_hazard_and_stay_themselves() {
        for plain in ["10.9.0.7", "192.168.1.1", "203.0.113.9", "fd00::7", "2001:db8::1"] {
            let address: IpAddr = plain.parse().unwrap();
            assert_eq!(destination(address), address);
            assert_eq!(Hazard::of(address), None, "{plain}");
        }
    }

    #[test]
    fn what_is_dialled_as_written_is_no_form_of_an_ipv4_address() {
        for (address, is_so) in [
            ("::10.9.0.7", true),
            ("::ffff:0:10.9.0.7", true),
            ("2002:a09:7::1", true),
            ("2001:0:53aa:64c:0:0:f5f6:fff8", true),
            ("::ffff:10.9.0.7", false),
            ("64:ff9b::10.9.0.7", false),
            ("10.9.0.7", false),
            ("fd00::7", false),
            ("::1", false),
        ] {
            assert_eq!(is_disguised(address.parse().unwrap()), is_so, "{address}");
        }
    }

    #[test]
    fn ranges_hold_what_they_say() {
        let rows = [
            ("10.9.0.0/16", "10.9.255.255", true),
            ("10.9.0.0/16", "10.10.0.0", false),
            ("0.0.0.0/0", "255.1.2.3", true),
            ("0.0.0.0/0", "fd00::1", false),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
            ("::/0", "10.0.0.1", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
        ];
        for (range, address, held) in rows {
            let cidr: Cidr = range.parse().unwrap();
            assert_eq!(cidr.holds(address.parse().unwrap()), held, "{range} {address}");
        }
        assert!("10.0.0.7/32".parse::<Cidr>().unwrap().is_exact());
        assert!(!"10.0.0.7/31".parse::<Cidr>().unwrap().is_exact());
        for wrong in
            ["10.0.0.0/33", "fd00::/129", "10.0.0/8", "x", "10.0.0.0/-1", "::ffff:0.0.0.0/96"]
        {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
    }
}
