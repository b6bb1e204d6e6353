//! Origin of a request: client address, and whether the connection is encrypted.

use std::net::{IpAddr, Ipv4Addr};

use axum::http::HeaderMap;
use axum::http::request::Parts;

use crate::outbound::Cidr;

/// Origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// IP address of the client.
    pub ip: IpAddr,
    /// Whether the client's connection is encrypted; behind a proxy, as `X-Forwarded-Proto` reports.
    pub secure: bool,
}

/// Trusted reverse proxies, which forward the client's address. `X-Forwarded-*` headers of other peers are
/// ignored.
#[derive(Clone, Debug, Default)]
pub struct Proxies(pub Vec<Cidr>);

impl Proxies {
    /// Origin of a request from a peer; `None` for a client that must use the proxy but did not.
    pub fn caller(&self, peer: IpAddr, encrypted: bool, headers: &HeaderMap) -> Option<Caller> {
        let direct = Caller { ip: peer, secure: encrypted };
        if self.0.is_empty() {
            return Some(direct);
        }
        if !self.has(peer) {
            return (encrypted || peer.is_loopback()).then_some(direct);
        }
        let secure = text(headers, "x-forwarded-proto").is_some_and(|scheme| scheme == "https");
        Some(Caller { ip: self.client(peer, headers), secure: encrypted || secure })
    }

    /// Last address in the list that is not a proxy; a client can forge all entries before it.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let lists = headers.get_all("x-forwarded-for").iter().filter_map(|list| list.to_str().ok());
        let hops: Vec<&str> = lists.flat_map(|list| list.split(',')).map(str::trim).collect();
        let mut client = peer;
        for hop in hops.iter().rev() {
            let Ok(ip) = hop.parse() else { break };
            client = ip;
            if !self.has(ip) {
                break;
            }
        }
        client
    }

    /// Whether an address belongs to a proxy.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(ip))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Origin of a request, as set by the listener.
pub fn caller(head: &Parts) -> Caller {
    let nobody = Caller { ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED), secure: false };
    head.extensions.get().copied().unwrap_or(nobody)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_proxies_are_believed_and_only_about_those_who_are_none() {
        let proxies = Proxies(vec!["10.0.0.0/8".parse().unwrap()]);
        let check = |peer: &str, headers: &[(&'static str, &str)], expected: Option<(&str, bool)>| {
            let headers: HeaderMap =
                headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            let found = proxies.caller(peer.parse().unwrap(), false, &headers);
            let expected = expected.map(|(ip, secure)| Caller { ip: ip.parse().unwrap(), secure });
            assert_eq!(found, expected, "{peer} {headers:?}");
        };
        let https = ("x-forwarded-proto", "https");
        check("10.0.0.1", &[], Some(("10.0.0.1", false)));
        check("10.0.0.1", &[https, ("x-forwarded-for", "192.0.2.7")], Some(("192.0.2.7", true)));
        check("10.0.0.1", &[("x-forwarded-for", "1.2.3.4, 192.0.2.7, 10.0.0.9")], Some(("192.0.2.7", false)));
        check("10.0.0.1", &[("x-forwarded-for", "nonsense")], Some(("10.0.0.1", false)));
        check("192.0.2.9", &[https, ("x-forwarded-for", "10.0.0.5")], None);
        check("127.0.0.1", &[https, ("x-forwarded-for", "1.1.1.1")], Some(("127.0.0.1", false)));
        let direct = Proxies::default().caller("192.0.2.9".parse().unwrap(), true, &HeaderMap::new());
        assert_eq!(direct, Some(Caller { ip: "192.0.2.9".parse().unwrap(), secure: true }));
    }
}
