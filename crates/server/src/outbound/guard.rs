//! Rules for which IP addresses may be called, so that the server cannot be used to call services that only it can
//! reach (SSRF).
//!
//! An address is checked when it is saved and again at each connect, for every IP address that its name resolves to.
//! The socket connects to the IP address that was checked, so a DNS change in between has no effect.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The operator's rules. Link-local addresses, metadata services, multicast, unspecified and broadcast addresses are
/// always rejected.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// Whether the server listens on loopback only. If so, executors on this machine may be called, and those on
    /// other machines only if `allow` contains their networks. If not, loopback addresses are rejected.
    pub loopback: bool,
    /// If not empty, only addresses in these ranges are called.
    pub allow: Vec<Cidr>,
    /// Addresses this process listens on. Never called, so that the server does not send runs to itself.
    pub own: Vec<SocketAddr>,
}

impl Guard {
    /// Checks whether this address may be called.
    pub fn check(&self, to: SocketAddr) -> Result<(), ForbiddenAddress> {
        let refused = |why| Err(ForbiddenAddress { ip: to.ip(), why });
        for ip in meanings(to.ip()) {
            if let Some(why) = never(ip) {
                return refused(why);
            }
            if ip.is_loopback() && !self.loopback {
                return refused("it is this machine, and the scheduling centre does not listen on loopback");
            }
            if self.own.iter().any(|own| own.port() == to.port() && is_same_host(own.ip(), ip)) {
                return refused("it is the scheduling centre itself");
            }
        }
        if self.loopback && self.allow.is_empty() && !meanings(to.ip()).any(|ip| ip.is_loopback()) {
            return refused(
                "the scheduling centre listens on loopback only, so it calls no other machine; allow the \
                 network with --executor-networks",
            );
        }
        if !self.allow.is_empty() && !self.allow.iter().any(|range| range.contains(to.ip())) {
            return refused("it is outside the networks in --executor-networks");
        }
        Ok(())
    }

    /// Checks whether all of them may be called: one forbidden address in a DNS answer rejects the name.
    pub(super) fn check_all(&self, to: &[SocketAddr]) -> Result<(), ForbiddenAddress> {
        to.iter().try_for_each(|to| self.check(*to))
    }

    /// Returns whether a connection leads back to this process through another address of the machine. A listener on
    /// all interfaces cannot be recognized from the target address alone.
    pub(super) fn is_own(&self, local: SocketAddr, peer: SocketAddr) -> bool {
        local.ip().to_canonical() == peer.ip().to_canonical()
            && self.own.iter().any(|own| own.port() == peer.port() && own.ip().is_unspecified())
    }
}

fn is_same_host(own: IpAddr, ip: IpAddr) -> bool {
    own.to_canonical() == ip || own.is_unspecified() && ip.is_loopback()
}

/// The IP address as written, and the IPv4 address embedded in it if it encodes or tunnels to one.
fn meanings(ip: IpAddr) -> impl Iterator<Item = IpAddr> {
    let embedded = match ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => embedded(v6).map(IpAddr::V4),
    };
    [Some(ip), embedded].into_iter().flatten()
}

fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let joined = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match ip.segments() {
        // `::1` and `::` embed nothing.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // Mapped, compatible, and translated (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(joined(high, low))
        }
        // 6to4.
        [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

fn never(ip: IpAddr) -> Option<&'static str> {
    let is_link_local = match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let is_unspecified = match ip {
        IpAddr::V4(v4) => v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unspecified(),
    };
    if METADATA.contains(&ip) {
        Some("it is a cloud's metadata service")
    } else if is_link_local {
        Some("it is link-local")
    } else if ip.is_multicast() {
        Some("it is multicast")
    } else if is_unspecified {
        Some("it is unspecified")
    } else if ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
        Some("it is broadcast")
    } else {
        None
    }
}

/// Metadata services of clouds, which give credentials to any client inside the cloud.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)),
];

/// An IP address that must not be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{ip} is not allowed: {why}")]
pub struct ForbiddenAddress {
    /// The rejected IP address.
    pub ip: IpAddr,
    /// Reason for the rejection.
    pub why: &'static str,
}

/// A range of IP addresses, for example `10.0.0.0/8` or `fd00::/8`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    ip: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Returns whether the IP address is in the range. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.ip, ip.to_canonical()) {
            (IpAddr::V4(range), IpAddr::V4(ip)) => {
                let apart = u32::from(range) ^ u32::from(ip);
                u32::from(self.bits) <= apart.leading_zeros()
            }
            (IpAddr::V6(range), IpAddr::V6(ip)) => {
                let apart = u128::from(range) ^ u128::from(ip);
                u32::from(self.bits) <= apart.leading_zeros()
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(written: &str) -> Result<Cidr, CidrError> {
        let error = || CidrError(written.to_owned());
        let (ip, bits) = written.split_once('/').map_or((written, None), |(ip, bits)| (ip, Some(bits)));
        let ip: IpAddr = ip.parse().map_err(|_| error())?;
        let bits_max = if ip.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(bits_max), str::parse).map_err(|_| error())?;
        if bits > bits_max {
            return Err(error());
        }
        Ok(Cidr { ip, bits })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.bits)
    }
}

/// A text that is not a valid range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network; use for example `10.0.0.0/8`")]
pub struct CidrError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_ips_are_never_called() {
        let everywhere = ["0.0.0.0/0", "::/0"].map(|range| range.parse().unwrap());
        let open = Guard { loopback: true, allow: everywhere.to_vec(), own: vec![] };
        for refused in [
            "169.254.169.254",
            "169.254.0.1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.1",
            "239.1.1.1",
            "ff02::1",
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "::ffff:0.0.0.0",
            "255.255.255.255",
        ] {
            assert!(open.check(at(refused, 9999)).is_err(), "{refused}");
        }
        for allowed in ["10.0.0.5", "192.168.1.1", "8.8.8.8", "fd00::5", "2001:db8::1", "127.0.0.1", "::1"] {
            assert_eq!(open.check(at(allowed, 9999)), Ok(()), "{allowed}");
        }
    }

    #[test]
    fn loopback_is_called_only_from_loopback() {
        let closed = Guard::default();
        for refused in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"] {
            assert!(closed.check(at(refused, 9999)).is_err(), "{refused}");
        }
    }

    #[test]
    fn from_loopback_other_machines_are_called_only_if_their_network_is_allowed() {
        let local = Guard { loopback: true, ..Guard::default() };
        for allowed in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(local.check(at(allowed, 9999)), Ok(()), "{allowed}");
        }
        for refused in ["10.0.0.5", "192.168.1.1", "8.8.8.8", "fd00::5", "::ffff:10.0.0.5"] {
            let error = local.check(at(refused, 9999)).unwrap_err();
            assert!(error.to_string().contains("--executor-networks"), "{error}");
        }
        let named = Guard { allow: vec!["10.0.0.0/8".parse().unwrap()], ..local };
        assert_eq!(named.check(at("10.0.0.5", 9999)), Ok(()));
    }

    #[test]
    fn only_allowed_ranges_are_called_if_there_are_any() {
        let allow = ["10.0.0.0/8", "fd00::/8", "192.168.1.7"].map(|range| range.parse().unwrap());
        let guard = Guard { loopback: true, allow: allow.to_vec(), own: vec![] };
        for allowed in ["10.255.0.1", "::ffff:10.0.0.1", "fdff::1", "192.168.1.7"] {
            assert_eq!(guard.check(at(allowed, 1)), Ok(()), "{allowed}");
        }
        for refused in ["11.0.0.1", "192.168.1.8", "fe00::1", "127.0.0.1", "fd00:ec2::254"] {
            assert!(guard.check(at(refused, 1)).is_err(), "{refused}");
        }
    }

    #[test]
    fn the_centre_does_not_call_itself() {
        let own = vec![at("127.0.0.1", 8080), at("0.0.0.0", 8443)];
        let everywhere = ["0.0.0.0/0", "::/0"].map(|range| range.parse().unwrap());
        let guard = Guard { loopback: true, allow: everywhere.to_vec(), own };
        assert!(guard.check(at("127.0.0.1", 8080)).is_err());
        assert!(guard.check(at("::ffff:127.0.0.1", 8080)).is_err());
        assert!(guard.check(at("127.0.0.9", 8443)).is_err());
        assert!(guard.check(at("::1", 8443)).is_err());
        assert_eq!(guard.check(at("127.0.0.1", 9999)), Ok(()));
        // A listener on all interfaces is detected after connecting: both ends are the same machine.
        assert_eq!(guard.check(at("10.0.0.5", 8443)), Ok(()));
        assert!(guard.is_own(at("10.0.0.5", 50_000), at("10.0.0.5", 8443)));
        assert!(!guard.is_own(at("10.0.0.6", 50_000), at("10.0.0.5", 8443)));
        assert!(!guard.is_own(at("10.0.0.5", 50_000), at("10.0.0.5", 9999)));
    }

    #[test]
    fn one_bad_ip_spoils_a_name() {
        let guard = Guard::default();
        assert!(guard.check_all(&[at("10.0.0.5", 1), at("10.0.0.6", 1)]).is_ok());
        let error = guard.check_all(&[at("10.0.0.5", 1), at("169.254.169.254", 1)]).unwrap_err();
        assert_eq!(error.to_string(), "169.254.169.254 is not allowed: it is a cloud's metadata service");
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for wrong in ["", "10", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/", "x/8"] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
        assert_eq!("0.0.0.0/0".parse::<Cidr>().unwrap().to_string(), "0.0.0.0/0");
    }

    fn at(ip: &str, port: u16) -> SocketAddr {
        SocketAddr::new(ip.parse().unwrap(), port)
    }
}
