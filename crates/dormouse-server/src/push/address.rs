//! Which addresses may be connected to.
//!
//! The rule allows address space and does not list bad ranges: of IPv6 only what is given out for
//! the internet, of IPv4 everything that no registry has set aside. It is asked for each address
//! just before the connection to that very address, because names change what they stand for.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use dormouse_core::error::Error;

use super::url::Host;

/// A range of addresses, `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// As IPv6; an IPv4 range as the mapped one.
    base: u128,
    mask: u128,
    /// A range of one family has no addresses of the other, though `::/0` has all mapped ones.
    is_ipv4: bool,
}

/// What an operator has opened (`push.allow`): ranges, and names whose addresses may be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// `10.1.0.0/16`, or one address.
    Range(Cidr),
    /// `host:internal.example`: whatever it resolves to.
    Host(String),
}

/// The addresses and ports that may be connected to.
#[derive(Clone, Debug)]
pub struct AddressRules {
    allowed: Vec<Allowed>,
    ports: Vec<RangeInclusive<u16>>,
    /// Where this server listens itself.
    own: Vec<SocketAddr>,
}

/// Why an address is not connected to. It names the range and never the address: the caller must
/// not learn what a name stands for inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A range that is not the internet.
    Range(&'static str),
    /// A port that is not open to pushes.
    Port(u16),
    /// This server itself.
    Own,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Range(range) => {
                write!(f, "the address is in a refused range: {range}; push.allow opens one")
            }
            Refusal::Port(port) => {
                write!(f, "port {port} is not one that is pushed to; push.ports opens one")
            }
            Refusal::Own => f.write_str("it is this server itself, which is never pushed to"),
        }
    }
}

/// Ranges of IPv4 that are not the internet: the special-purpose registry, and what clouds have.
const IPV4_REFUSED: [([u8; 4], u8, &str); 20] = [
    ([0, 0, 0, 0], 8, "this network, 0.0.0.0/8"),
    ([10, 0, 0, 0], 8, "private, 10.0.0.0/8"),
    ([100, 64, 0, 0], 10, "shared by carriers, 100.64.0.0/10"),
    ([127, 0, 0, 0], 8, "loopback, 127.0.0.0/8"),
    ([168, 63, 129, 16], 32, "a cloud's own services, 168.63.129.16/32"),
    ([169, 254, 0, 0], 16, "link-local and metadata, 169.254.0.0/16"),
    ([172, 16, 0, 0], 12, "private, 172.16.0.0/12"),
    ([192, 0, 0, 0], 24, "protocol assignments, 192.0.0.0/24"),
    ([192, 0, 2, 0], 24, "documentation, 192.0.2.0/24"),
    ([192, 31, 196, 0], 24, "AS112, 192.31.196.0/24"),
    ([192, 52, 193, 0], 24, "AMT, 192.52.193.0/24"),
    ([192, 88, 99, 0], 24, "6to4 relays, 192.88.99.0/24"),
    ([192, 168, 0, 0], 16, "private, 192.168.0.0/16"),
    ([192, 175, 48, 0], 24, "AS112, 192.175.48.0/24"),
    ([198, 18, 0, 0], 15, "benchmarks, 198.18.0.0/15"),
    ([198, 51, 100, 0], 24, "documentation, 198.51.100.0/24"),
    ([203, 0, 113, 0], 24, "documentation, 203.0.113.0/24"),
    ([224, 0, 0, 0], 4, "multicast, 224.0.0.0/4"),
    ([255, 255, 255, 255], 32, "broadcast, 255.255.255.255/32"),
    ([240, 0, 0, 0], 4, "reserved, 240.0.0.0/4"),
];

/// Ranges of IPv6 with a name of their own. All outside 2000::/3 are refused, named here or not.
const IPV6_REFUSED: [([u16; 4], u8, &str); 14] = [
    ([0, 0, 0, 0], 64, "loopback, unspecified and IPv4-compatible, ::/64"),
    ([0x64, 0xff9b, 0, 0], 96, "NAT64, 64:ff9b::/96"),
    ([0x64, 0xff9b, 1, 0], 48, "NAT64, 64:ff9b:1::/48"),
    ([0x100, 0, 0, 0], 64, "discard, 100::/64"),
    ([0x2001, 0, 0, 0], 32, "Teredo, 2001::/32"),
    ([0x2001, 0, 0, 0], 23, "protocol assignments, 2001::/23"),
    ([0x2001, 0xdb8, 0, 0], 32, "documentation, 2001:db8::/32"),
    ([0x2002, 0, 0, 0], 16, "6to4, 2002::/16"),
    ([0x2620, 0x4f, 0x8000, 0], 48, "AS112, 2620:4f:8000::/48"),
    ([0x3fff, 0, 0, 0], 20, "documentation, 3fff::/20"),
    ([0xfc00, 0, 0, 0], 7, "private, fc00::/7"),
    ([0xfe80, 0, 0, 0], 10, "link-local, fe80::/10"),
    ([0xfec0, 0, 0, 0], 10, "site-local, fec0::/10"),
    ([0xff00, 0, 0, 0], 8, "multicast, ff00::/8"),
];

/// The only part of IPv6 that is given out for the internet.
const IPV6_GLOBAL: Cidr = Cidr { base: 0x2000 << 112, mask: 0xe000 << 112, is_ipv4: false };

/// The ports unless an operator names others: those of the web, and those that anybody may open.
const PORTS_DEFAULT: [RangeInclusive<u16>; 3] = [443..=443, 80..=80, 1024..=65535];

impl Default for AddressRules {
    fn default() -> AddressRules {
        AddressRules::new(Vec::new(), PORTS_DEFAULT.to_vec())
    }
}

impl AddressRules {
    /// The internet, and what is allowed besides.
    pub fn new(allowed: Vec<Allowed>, ports: Vec<RangeInclusive<u16>>) -> AddressRules {
        AddressRules { allowed, ports, own: Vec::new() }
    }

    /// The internet and these, at the usual ports.
    pub fn allowing(allowed: Vec<Allowed>) -> AddressRules {
        AddressRules::new(allowed, PORTS_DEFAULT.to_vec())
    }

    /// Names the addresses at which this server listens.
    pub(crate) fn set_own(&mut self, own: Vec<SocketAddr>) {
        self.own = own;
    }

    /// Judges an address that a host stands for. `is_local` tells whether an address is one of this
    /// machine; it is asked only where the server listens on all of them.
    pub fn judge(
        &self,
        host: &Host,
        addr: SocketAddr,
        is_local: impl Fn(IpAddr) -> bool,
    ) -> Result<(), Refusal> {
        let address = addr.ip().to_canonical();
        if self.is_own(address, addr.port(), is_local) {
            return Err(Refusal::Own);
        }
        if !self.ports.iter().any(|ports| ports.contains(&addr.port())) {
            return Err(Refusal::Port(addr.port()));
        }
        let is_allowed = |allowed: &Allowed| match (allowed, host) {
            (Allowed::Range(range), _) => range.contains(address),
            (Allowed::Host(allowed), Host::Name(name)) => **name == **allowed,
            (Allowed::Host(_), Host::Ip(_)) => false,
        };
        if self.allowed.iter().any(is_allowed) {
            return Ok(());
        }
        match refused_range(address) {
            Some(range) => Err(Refusal::Range(range)),
            None => Ok(()),
        }
    }

    fn is_own(&self, address: IpAddr, port: u16, is_local: impl Fn(IpAddr) -> bool) -> bool {
        self.own.iter().filter(|own| own.port() == port).any(|own| {
            let listens_at = own.ip().to_canonical();
            listens_at == address
                || address.is_unspecified()
                || (listens_at.is_unspecified() && (address.is_loopback() || is_local(address)))
        })
    }
}

/// The name of the range that keeps an address from being connected to.
fn refused_range(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let ranges = IPV4_REFUSED.iter();
            let found = ranges.copied().find(|(base, bits, _)| {
                let base = IpAddr::V4(Ipv4Addr::from(*base));
                Cidr::new(base, *bits).contains(IpAddr::V4(address))
            });
            found.map(|(_, _, name)| name)
        }
        IpAddr::V6(address) => {
            let ranges = IPV6_REFUSED.iter();
            let found = ranges.copied().find(|([a, b, c, d], bits, _)| {
                let base = IpAddr::V6(Ipv6Addr::new(*a, *b, *c, *d, 0, 0, 0, 0));
                Cidr::new(base, *bits).contains(IpAddr::V6(address))
            });
            let is_global = IPV6_GLOBAL.contains(IpAddr::V6(address));
            let elsewhere = (!is_global).then_some("not of the internet, outside 2000::/3");
            found.map(|(_, _, name)| name).or(elsewhere)
        }
    }
}

impl Cidr {
    /// So many bits of this address; more than it has are all.
    fn new(address: IpAddr, bits: u8) -> Cidr {
        let bits = match address {
            IpAddr::V4(_) => u32::from(bits.min(32)) + 96,
            IpAddr::V6(_) => u32::from(bits.min(128)),
        };
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        Cidr { base: as_number(address) & mask, mask, is_ipv4: address.is_ipv4() }
    }

    fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4 && as_number(address) & self.mask == self.base
    }
}

fn as_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl FromStr for Cidr {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cidr, Error> {
        let wrong = || {
            Error::invalid(format!(
                "push.allow: `{text}` is neither an address, nor a range like 10.0.0.0/8, nor \
                 host:NAME"
            ))
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        if address != address.to_canonical() {
            let plain = address.to_canonical();
            return Err(Error::invalid(format!("push.allow: `{text}`: write it as {plain}")));
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits: u8 = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most {
            let text = format!("push.allow: `{text}`: a range of it has 0 to {most} bits");
            return Err(Error::invalid(text));
        }
        let range = Cidr::new(address, bits);
        if !range.is_base(address) {
            let text = format!("push.allow: `{text}` has bits beyond its first {bits}; clear them");
            return Err(Error::invalid(text));
        }
        Ok(range)
    }
}

impl Cidr {
    fn is_base(self, address: IpAddr) -> bool {
        as_number(address) == self.base
    }
}

impl FromStr for Allowed {
    type Err = Error;

    fn from_str(text: &str) -> Result<Allowed, Error> {
        let Some(name) = text.strip_prefix("host:") else {
            return Ok(Allowed::Range(text.parse()?));
        };
        match super::url::PushUrl::parse(&format!("https://{name}/")) {
            Ok(url) if matches!(url.host(), Host::Name(host) if **host == *name) => {
                Ok(Allowed::Host(name.to_owned()))
            }
            _ => Err(Error::invalid(format!(
                "push.allow: `{text}`: give a name in lower case behind `host:`; an address stands \
                 alone"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(rules: &AddressRules, host: &str, addr: &str) -> Result<(), Refusal> {
        let host = Host::Name(host.into());
        rules.judge(&host, addr.parse().unwrap(), |address| address.to_string() == "198.18.7.7")
    }

    fn range_of(address: &str) -> Option<&'static str> {
        refused_range(address.parse().unwrap())
    }

    fn check(address: &str, expected: &str) {
        let found = range_of(address);
        assert!(found.is_some_and(|name| name.contains(expected)), "{address}: {found:?}");
    }

    #[test]
    fn of_ipv4_only_the_internet_is_connected_to() {
        for (address, expected) in [
            ("0.0.0.0", "this network"),
            ("0.1.2.3", "this network"),
            ("10.0.0.1", "private"),
            ("10.255.255.255", "private"),
            ("100.64.0.1", "carriers"),
            ("100.100.100.200", "carriers"),
            ("100.127.255.255", "carriers"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("168.63.129.16", "cloud"),
            ("169.254.169.254", "metadata"),
            ("169.254.170.2", "metadata"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.192", "protocol"),
            ("192.0.2.1", "documentation"),
            ("192.31.196.1", "AS112"),
            ("192.52.193.1", "AMT"),
            ("192.88.99.1", "6to4"),
            ("192.168.1.1", "private"),
            ("192.175.48.1", "AS112"),
            ("198.18.0.1", "benchmarks"),
            ("198.19.255.255", "benchmarks"),
            ("198.51.100.1", "documentation"),
            ("203.0.113.1", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
        ] {
            check(address, expected);
        }
    }

    #[test]
    fn of_ipv6_only_the_global_part_is_connected_to() {
        for (address, expected) in [
            ("::", "loopback"),
            ("::1", "loopback"),
            ("::7f00:1", "IPv4-compatible"),
            ("::ffff:127.0.0.1", "loopback, 127"),
            ("::ffff:a9fe:a9fe", "metadata"),
            ("::ffff:10.0.0.1", "private"),
            ("::ffff:0:127.0.0.1", "loopback"),
            ("64:ff9b::7f00:1", "NAT64"),
            ("64:ff9b:1::a00:1", "NAT64"),
            ("100::1", "discard"),
            ("2001::1", "Teredo"),
            ("2001:0:53aa:64c:0:5efe:7f00:1", "Teredo"),
            ("2001:10::1", "protocol"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::1", "6to4"),
            ("2620:4f:8000::1", "AS112"),
            ("3fff::1", "documentation"),
            ("4000::1", "2000::/3"),
            ("5f00::1", "2000::/3"),
            ("fc00::1", "private"),
            ("fd00:ec2::254", "private"),
            ("fe80::1", "link-local"),
            ("fe80::5efe:7f00:1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
        ] {
            check(address, expected);
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "172.15.255.255",
            "172.32.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
            "::ffff:1.1.1.1",
        ] {
            assert_eq!(range_of(address), None, "{address}");
        }
    }

    #[test]
    fn an_operator_opens_ranges_names_and_ports() {
        let allowed = ["10.1.0.0/16", "fd00::/8", "127.0.0.1", "host:inside.example"];
        let allowed = allowed.iter().map(|text| text.parse().unwrap()).collect();
        let rules = AddressRules::allowing(allowed);
        assert_eq!(judge(&rules, "x", "10.1.2.3:443"), Ok(()));
        assert_eq!(judge(&rules, "x", "[::ffff:10.1.2.3]:443"), Ok(()));
        assert_eq!(judge(&rules, "x", "[fd12::1]:443"), Ok(()));
        assert_eq!(judge(&rules, "inside.example", "192.168.0.1:8080"), Ok(()));
        assert_eq!(judge(&rules, "x", "127.0.0.1:2000"), Ok(()));
        for addr in ["10.2.0.0:443", "127.0.0.2:443", "192.168.0.1:443"] {
            assert!(matches!(judge(&rules, "x", addr), Err(Refusal::Range(_))), "{addr}");
        }
        assert_eq!(judge(&rules, "x", "1.1.1.1:22"), Err(Refusal::Port(22)));
        assert_eq!(judge(&rules, "inside.example", "1.1.1.1:25"), Err(Refusal::Port(25)));
        assert_eq!(judge(&AddressRules::default(), "x", "1.1.1.1:80"), Ok(()));
    }

    #[test]
    fn a_range_of_one_family_opens_none_of_the_other() {
        for (allowed, opened, refused) in [
            ("::/0", "[::1]:443", "127.0.0.1:443"),
            ("::/0", "[fd00::1]:443", "[::ffff:169.254.169.254]:443"),
            ("::/64", "[::7f00:1]:443", "127.0.0.1:443"),
            ("0.0.0.0/0", "127.0.0.1:443", "[::1]:443"),
        ] {
            let rules = AddressRules::allowing(vec![allowed.parse().unwrap()]);
            assert_eq!(judge(&rules, "x", opened), Ok(()), "{allowed} {opened}");
            let refusal = judge(&rules, "x", refused);
            assert!(matches!(refusal, Err(Refusal::Range(_))), "{allowed} {refused}");
        }
    }

    #[test]
    fn the_server_never_calls_itself() {
        let all = ["0.0.0.0/0", "::/0"].iter().map(|text| text.parse().unwrap()).collect();
        let mut rules = AddressRules::allowing(all);
        let own = ["127.0.0.1:7788", "0.0.0.0:7789", "[::]:7790"];
        rules.set_own(own.iter().map(|addr| addr.parse().unwrap()).collect());
        for addr in [
            "127.0.0.1:7788",
            "[::ffff:127.0.0.1]:7788",
            "0.0.0.0:7788",
            "127.0.0.1:7789",
            "127.9.9.9:7789",
            "198.18.7.7:7789",
            "[::1]:7790",
            "198.18.7.7:7790",
            "[::]:7790",
        ] {
            assert_eq!(judge(&rules, "x", addr), Err(Refusal::Own), "{addr}");
        }
        for addr in ["127.0.0.2:7788", "198.18.7.8:7789", "127.0.0.1:7791"] {
            assert_eq!(judge(&rules, "x", addr), Ok(()), "{addr}");
        }
    }

    #[test]
    fn what_cannot_be_allowed_is_refused_with_its_fix() {
        for (text, expected) in [
            ("", "neither"),
            ("example.com", "host:NAME"),
            ("10.0.0.1/8", "clear them"),
            ("10.0.0.0/33", "0 to 32"),
            ("10.0.0.0/", "neither"),
            ("10.0.0.0/-1", "neither"),
            ("::ffff:10.0.0.0/104", "10.0.0.0"),
            ("::/129", "0 to 128"),
            ("host:", "behind `host:`"),
            ("host:Inside", "lower case"),
            ("host:10.0.0.1", "stands"),
            ("host:a/b", "behind"),
            ("host:a:80", "behind"),
        ] {
            let error = text.parse::<Allowed>().unwrap_err();
            assert!(error.text.contains(expected), "{text}: {}", error.text);
        }
    }
}
