//! Address of an executor, as registered by the executor or entered by a user.
//!
//! The grammar is strict on purpose: a form that two programs could parse differently (`127.1`, `..;`, `user@host`)
//! is rejected here, so the guard checks the same address that the socket connects to.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// An executor's address, `http(s)://host[:port][/prefix]`. Parsed once, cheap to clone, compared as text.
///
/// ```
/// use tickwright_server::outbound::Address;
///
/// let address = Address::parse("http://10.0.0.5:9999/job/")?;
/// assert_eq!(address.to_string(), "http://10.0.0.5:9999/job");
/// assert!(Address::parse("http://127.1:9999").is_err());
/// # Ok::<(), tickwright_server::outbound::AddressError>(())
/// ```
#[derive(Clone)]
pub struct Address(Arc<Parts>);

struct Parts {
    /// The registered text without trailing slashes.
    text: String,
    is_tls: bool,
    host: Host,
    port: u16,
    /// Index in `text` where the authority ends and the prefix begins.
    prefix_at: usize,
}

/// Host part of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Ip(IpAddr),
    Name(String),
}

impl Address {
    /// Parses an address. Drops trailing slashes, keeps a prefix; the default port is 80, or 443 for `https`.
    pub fn parse(written: &str) -> Result<Address, AddressError> {
        let refused = |why| AddressError { address: shown(written), why };
        if written.len() > LENGTH_MAX {
            return Err(refused("it is too long"));
        }
        let text = written.trim_end_matches('/');
        let (scheme, rest) = text.split_once("://").ok_or_else(|| refused("it has no `http://`"))?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(refused("only http and https are supported")),
        };
        let (authority, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = split_port(authority).map_err(refused)?;
        let host = parse_host(host).map_err(refused)?;
        let port = match port {
            None if is_tls => 443,
            None => 80,
            Some(digits) => parse_port(digits).ok_or_else(|| refused("its port must be 1 to 65535"))?,
        };
        check_prefix(prefix).map_err(refused)?;
        let prefix_at = text.len() - prefix.len();
        Ok(Address(Arc::new(Parts { text: text.to_owned(), is_tls, host, port, prefix_at })))
    }

    /// Returns the registered text without trailing slashes.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns whether calls use TLS.
    pub fn is_tls(&self) -> bool {
        self.0.is_tls
    }

    pub(super) fn host(&self) -> &Host {
        &self.0.host
    }

    pub(super) fn port(&self) -> u16 {
        self.0.port
    }

    /// Host and port as written: the value of the `Host` header.
    pub(super) fn authority(&self) -> &str {
        let start = self.0.text.find("://").map_or(0, |at| at + 3);
        &self.0.text[start..self.0.prefix_at]
    }

    /// Path prefix of every request; usually empty.
    pub(super) fn prefix(&self) -> &str {
        &self.0.text[self.0.prefix_at..]
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    if authority.contains('@') {
        return Err(
            "it must not contain a user; executors authenticate the scheduling centre by the app's token",
        );
    }
    // The colons inside brackets belong to the host.
    let host_end = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[host_end..].find(':') {
        None => Ok((authority, None)),
        Some(at) => {
            let (host, port) = authority.split_at(host_end + at);
            Ok((host, Some(&port[1..])))
        }
    }
}

fn parse_host(host: &str) -> Result<Host, &'static str> {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or("missing bracket")?;
        let ip: Ipv6Addr = inner.parse().map_err(|_| "the text in brackets is not an IPv6 address")?;
        return Ok(Host::Ip(ip.into()));
    }
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=LABEL_MAX).contains(&label.len()) && label.bytes().all(is_plain) && !label.starts_with('-')
    };
    if host.len() > NAME_MAX || !host.split('.').all(is_label) {
        return Err("its host is neither a name nor an IP address");
    }
    // Some parsers read any host that ends in a number as an IPv4 address; here it must be one, written in full.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
    if is_number {
        let ip: Ipv4Addr = host.parse().map_err(|_| "an IPv4 address has four numbers from 0 to 255")?;
        return Ok(Host::Ip(ip.into()));
    }
    Ok(Host::Name(host.to_ascii_lowercase()))
}

fn parse_port(digits: &str) -> Option<u16> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| is_plain && *port != 0)
}

fn check_prefix(prefix: &str) -> Result<(), &'static str> {
    let is_segment = |segment: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        !segment.is_empty() && segment.bytes().all(is_plain) && segment != "." && segment != ".."
    };
    let is_prefix = prefix.is_empty() || prefix[1..].split('/').all(is_segment);
    is_prefix.then_some(()).ok_or("its path may contain letters, digits and `-._~` between single slashes")
}

/// The registry's column holds 255 characters; lists entered by users may need a little more.
const LENGTH_MAX: usize = 512;
/// Limit of DNS.
const NAME_MAX: usize = 253;
/// Limit of DNS.
const LABEL_MAX: usize = 63;

impl PartialEq for Address {
    fn eq(&self, other: &Address) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Address {}

impl Hash for Address {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// A text that is not a valid executor address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` is not an executor address: {why}; use for example `http://10.0.0.5:9999`")]
pub struct AddressError {
    /// The rejected text, shortened, without the part before an `@`, which may be a password.
    pub address: String,
    /// Reason for the rejection.
    pub why: &'static str,
}

fn shown(written: &str) -> String {
    let (scheme, rest) = written.split_once("://").unwrap_or(("", written));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let separator = if scheme.is_empty() { "" } else { "://" };
    let whole = format!("{scheme}{separator}{host}");
    whole.chars().take(SHOWN_MAX).flat_map(char::escape_default).collect()
}

/// Enough to recognize an address.
const SHOWN_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_executors_register_are_read() {
        let name = |name: &str| Host::Name(name.to_owned());
        check("http://10.0.0.5:9999/", "10.0.0.5:9999", ip("10.0.0.5"), 9999, "");
        check("http://10.0.0.5:9999", "10.0.0.5:9999", ip("10.0.0.5"), 9999, "");
        check("http://pod_1.jobs.svc:9999/job", "pod_1.jobs.svc:9999", name("pod_1.jobs.svc"), 9999, "/job");
        check("HTTP://Host:1//", "Host:1", name("host"), 1, "");
        check(
            "https://executor.example.com/a/b.c/",
            "executor.example.com",
            name("executor.example.com"),
            443,
            "/a/b.c",
        );
        check("http://[fd00::5]:80", "[fd00::5]:80", ip("fd00::5"), 80, "");
        check("http://[fd00::5]/x", "[fd00::5]", ip("fd00::5"), 80, "/x");
        check("http://0x.example", "0x.example", name("0x.example"), 80, "");
    }

    fn ip(text: &str) -> Host {
        Host::Ip(text.parse().unwrap())
    }

    fn check(written: &str, authority: &str, host: Host, port: u16, prefix: &str) {
        let address = Address::parse(written).unwrap();
        assert_eq!(address.to_string(), written.trim_end_matches('/'));
        assert_eq!(
            (address.authority(), address.host(), address.port(), address.prefix()),
            (authority, &host, port, prefix),
            "{written}"
        );
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let refused = [
            "",
            "http://",
            "http:///",
            "10.0.0.5:9999",
            "file:///etc/passwd",
            "gopher://h:1",
            "ftp://h",
            "http://u:p@h/",
            "http://u@h:1",
            "http://h/..",
            "http://h/..;/x",
            "http://h/a/../b",
            "http://h/./b",
            "http://h/%2e%2e",
            "http://h//b",
            "http://h?x=1",
            "http://h/x?y",
            "http://h#f",
            "http://h/x#f",
            "http://0/",
            "http://127.1/",
            "http://127.1:80",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1",
            "http://0177.0.0.1",
            "http://1.2.3.4.5",
            "http://256.1.1.1",
            "http://h.0x7f",
            "http://1.2.3.4.",
            "http://h:0",
            "http://h:65536",
            "http://h:+1",
            "http://h:",
            "http://h:1:2",
            "http://h\r\nX: y",
            "http://h/\r\n",
            "http://h\t",
            "http://h /",
            "http://hé",
            "http://h\\x",
            "http://[::1",
            "http://[::1%25eth0]",
            "http://[::1]x:1",
            "http://[1.2.3.4]",
            "http://-h",
            "http://h..x",
            "http://\u{0}",
        ];
        for address in refused {
            assert!(Address::parse(address).is_err(), "{address:?}");
        }
        assert!(Address::parse(&format!("http://h/{}", "a".repeat(LENGTH_MAX))).is_err());
    }

    #[test]
    fn a_refusal_repeats_no_password() {
        let error = Address::parse("http://admin:hunter2@h:1").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("`http://h:1` is not an executor address: it must not contain a user")
        );
    }
}
