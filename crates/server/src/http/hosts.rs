//! Host names that a node accepts.
//!
//! The owner of another site can make its name resolve to the address of a node (DNS rebinding). A browser then
//! treats the node as that site and lets its page read every response. Such requests carry the other site's name
//! in `Host`.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

/// Accepted names in `Host`. IP addresses and `localhost` are always accepted: no site owns them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Any name.
    Any,
    /// Only these names, in lower case.
    Only(Vec<String>),
}

/// Why a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongHost {
    /// It has two hosts, or one that cannot be parsed.
    Malformed,
    /// It is for this other host.
    Other(String),
}

impl Hosts {
    /// The configured names. Without any, a node that listens only on loopback accepts no names, and one that
    /// listens on other addresses accepts all.
    pub fn new(names: &[String], listens_on: IpAddr) -> Hosts {
        match names.is_empty() && !listens_on.is_loopback() {
            true => Hosts::Any,
            false => Hosts::Only(names.iter().map(|name| plain(name)).collect()),
        }
    }

    /// Rejects a request for another host.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), WrongHost> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (None, _) => None,
            (Some(host), None) => Some(host.to_str().map_err(|_| WrongHost::Malformed)?),
            (Some(_), Some(_)) => return Err(WrongHost::Malformed),
        };
        // The request line may name the host, too.
        let named = uri.authority().map(|authority| authority.as_str());
        for host in host.into_iter().chain(named) {
            let name = plain(without_port(host));
            if !self.accepts(&name) {
                return Err(WrongHost::Other(name));
            }
        }
        Ok(())
    }

    fn accepts(&self, name: &str) -> bool {
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_local = name == "localhost" || name.ends_with(".localhost");
        match self {
            Hosts::Any => true,
            Hosts::Only(names) => {
                is_local || address.parse::<IpAddr>().is_ok() || names.iter().any(|known| known == name)
            }
        }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn plain(name: &str) -> String {
    name.trim().trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hosts: &Hosts, host: &str, is_right: bool) {
        let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
        assert_eq!(hosts.check(&Uri::from_static("/"), &headers).is_ok(), is_right, "{hosts:?} {host}");
    }

    #[test]
    fn a_centre_on_loopback_is_reached_by_no_name_that_a_site_can_own() {
        let hosts = Hosts::new(&[], [127, 0, 0, 1].into());
        for host in
            ["127.0.0.1:8080", "localhost:8080", "LOCALHOST", "app.localhost", "[::1]:8080", "10.0.0.7"]
        {
            check(&hosts, host, true);
        }
        for host in
            ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", ""]
        {
            check(&hosts, host, false);
        }
    }

    #[test]
    fn a_centre_is_reached_by_the_names_that_are_set() {
        let hosts = Hosts::new(&["Centre.Example.com".into()], [0, 0, 0, 0].into());
        check(&hosts, "centre.example.com", true);
        check(&hosts, "CENTRE.example.com.:8443", true);
        check(&hosts, "192.0.2.7:8080", true);
        check(&hosts, "evil.example", false);
        check(&Hosts::new(&[], [0, 0, 0, 0].into()), "centre.example.com", true);
    }

    #[test]
    fn a_request_has_one_host() {
        let hosts = Hosts::new(&[], [127, 0, 0, 1].into());
        let mut headers = HeaderMap::new();
        assert_eq!(hosts.check(&Uri::from_static("/"), &headers), Ok(()));
        let elsewhere = Uri::from_static("http://evil.example/");
        assert_eq!(hosts.check(&elsewhere, &headers), Err(WrongHost::Other("evil.example".into())));
        headers.append(header::HOST, "localhost".parse().unwrap());
        headers.append(header::HOST, "localhost".parse().unwrap());
        assert_eq!(hosts.check(&Uri::from_static("/"), &headers), Err(WrongHost::Malformed));
    }
}
