//! Whether a request comes from a page of this console. Knows the headers Host, Origin and Sec-Fetch-Site; refuses to know
//! sessions.

use std::net::IpAddr;

/// What the browser says about where a request comes from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source<'a> {
    pub host: Option<&'a [u8]>,
    pub origin: Option<&'a [u8]>,
    pub fetch_site: Option<&'a [u8]>,
}

/// True if a form was sent by a page of this console. `address` is that of `console-origin`, such as `https://ops.example`;
/// without it, the page must be of the host that the request was sent to. A request that does not say where it comes from is
/// refused: every browser says so of a form.
pub fn is_own_form(source: &Source<'_>, address: &str) -> bool {
    let Some(origin) = source.origin else { return false };
    let is_own = match (address, source.host) {
        ("", Some(host)) => origin.strip_prefix(b"http://").is_some_and(|named| named.eq_ignore_ascii_case(host)),
        ("", None) => false,
        (address, _) => origin.eq_ignore_ascii_case(address.as_bytes()),
    };
    is_own && source.fetch_site.is_none_or(|site| site == b"same-origin")
}

/// True if a page may be shown: not inside of a page of another site, and not for a script of one.
pub fn may_show(source: &Source<'_>) -> bool {
    // `none`: the person has typed the address. A link of another site leads to the page as well.
    source.origin.is_none() || source.fetch_site.is_none_or(|site| site != b"cross-site")
}

/// True if a host is an address or this machine's own name. Where no password is needed nothing else is believed: a name could be
/// that of an attacker's page which has changed its address to this one (DNS rebinding).
pub fn is_numeric(host: Option<&[u8]>) -> bool {
    let Some(host) = host.and_then(|host| std::str::from_utf8(host).ok()) else { return false };
    let (name, rest) = match host.strip_prefix('[') {
        Some(inner) => inner.split_once(']').unwrap_or_default(),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !rest.is_empty() && !rest.strip_prefix(':').is_some_and(is_port) {
        return false;
    }
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source<'a>(host: &'a str, origin: &'a str, site: &'a str) -> Source<'a> {
        let some = |text: &'a str| (!text.is_empty()).then_some(text.as_bytes());
        Source { host: some(host), origin: some(origin), fetch_site: some(site) }
    }

    #[test]
    fn forms_of_other_sites_are_refused() {
        for (host, origin, site, is_own) in [
            ("127.0.0.1:8379", "http://127.0.0.1:8379", "same-origin", true),
            ("127.0.0.1:8379", "http://127.0.0.1:8379", "", true),
            ("127.0.0.1:8379", "", "", false),
            ("127.0.0.1:8379", "", "same-origin", false),
            ("127.0.0.1:8379", "null", "same-origin", false),
            ("127.0.0.1:8379", "http://127.0.0.1:8380", "same-site", false),
            ("127.0.0.1:8379", "http://127.0.0.1", "same-origin", false),
            ("127.0.0.1:8379", "http://evil.example", "cross-site", false),
            ("127.0.0.1:8379", "http://127.0.0.1:8379", "cross-site", false),
            ("127.0.0.1:8379", "http://127.0.0.1:8379.evil.example", "", false),
            ("127.0.0.1:8379", "https://127.0.0.1:8379", "same-origin", false),
            ("", "http://", "same-origin", false),
            ("localhost:8379", "http://LOCALHOST:8379", "same-origin", true),
        ] {
            assert_eq!(is_own_form(&source(host, origin, site), ""), is_own, "{host} {origin} {site}");
        }
    }

    #[test]
    fn behind_a_proxy_the_address_is_a_setting() {
        let address = "https://ops.example";
        assert!(is_own_form(&source("127.0.0.1:8379", "https://ops.example", "same-origin"), address));
        assert!(!is_own_form(&source("127.0.0.1:8379", "http://127.0.0.1:8379", "same-origin"), address));
        assert!(!is_own_form(&source("ops.example", "http://ops.example", ""), address));
    }

    #[test]
    fn scripts_of_other_sites_read_nothing() {
        assert!(may_show(&source("a", "", "none")) && may_show(&source("a", "", "cross-site")));
        assert!(may_show(&source("a", "http://a", "same-origin")));
        assert!(!may_show(&source("a", "http://b", "cross-site")));
    }

    #[test]
    fn hosts_that_are_no_names() {
        for host in ["127.0.0.1", "127.0.0.1:8379", "[::1]:8379", "[::1]", "localhost", "LocalHost:1", "192.0.2.1:80"] {
            assert!(is_numeric(Some(host.as_bytes())), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8379",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[",
            "\u{e9}",
            "localhost:7891.evil",
            "127.0.0.1:7891@evil",
            "localhost:",
            "[::1]evil",
            "[::1]:1@evil",
            "[::1",
            "127.0.0.1:1:2",
        ] {
            assert!(!is_numeric(Some(host.as_bytes())), "{host}");
        }
        assert!(!is_numeric(None) && !is_numeric(Some(b"\xff")));
    }
}
