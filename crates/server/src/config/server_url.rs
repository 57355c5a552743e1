//! The URL of a server, as client libraries write it: `redis://user:password@host:port`, `rediss://` for TLS,
//! `unix:///path`. Knows no connections.

use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;

/// The port where a URL has none.
const PORT_BY_DEFAULT: u16 = 6379;

/// Where a server is, and who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    pub(crate) place: Place,
    pub(crate) is_tls: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A name or an address without brackets, and a port.
    Tcp(String, u16),
    Socket(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Place::Tcp(host, port) => write!(f, "{host}:{port}"),
            Place::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Without the password.
impl std::fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = match (&self.place, self.is_tls) {
            (Place::Socket(_), _) => "unix",
            (Place::Tcp(..), false) => "redis",
            (Place::Tcp(..), true) => "rediss",
        };
        write!(f, "{scheme}://{}", self.place)
    }
}

impl ServerUrl {
    /// Reads the URL of a server all of whose databases are meant: one that names a database is refused.
    pub(crate) fn parse_whole(text: &str) -> Result<ServerUrl> {
        let url = ServerUrl::parse(text)
            .context("give the server as redis://HOST:PORT, as rediss://HOST:PORT for TLS, or as unix:///PATH")??;
        let database = match url.place {
            Place::Tcp(..) => path(text).trim_matches('/'),
            Place::Socket(_) => "",
        };
        ensure!(matches!(database, "" | "0"), "all databases are carried over: leave out /{database}");
        Ok(url)
    }

    /// With this password, if it has none and one is given.
    pub(crate) fn with_password(mut self, password: Option<&str>) -> ServerUrl {
        self.password = self.password.or_else(|| password.map(str::to_owned));
        self
    }

    /// `None`: the text is no URL of a server. Another scheme is none, and so is a path.
    pub(crate) fn parse(text: &str) -> Option<Result<ServerUrl>> {
        let (scheme, rest) = text.split_once("://")?;
        match scheme.to_ascii_lowercase().as_str() {
            "redis" | "valkey" => Some(tcp(rest, false)),
            "rediss" | "valkeys" => Some(tcp(rest, true)),
            "unix" | "redis+unix" | "redis+socket" => Some(socket(rest)),
            _ => None,
        }
        // IMPORTANT: the password in a URL is shown in no error.
        .map(|url| url.with_context(|| format!("the URL {scheme}://… cannot be read")))
    }
}

/// What stands between the authority of a URL and its options.
fn path(text: &str) -> &str {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    rest.find('/').map_or("", |at| &rest[at..])
}

fn tcp(rest: &str, is_tls: bool) -> Result<ServerUrl> {
    // A number of a database may follow: what is asked here is the same in all of them.
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (who, at) = authority.rsplit_once('@').map_or((None, authority), |(who, at)| (Some(who), at));
    let (user, password) = who.map_or(Ok((None, None)), login)?;
    let (host, port) = match at.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').context("the bracket of the address is not closed")?;
            ensure!(port.is_empty() || port.starts_with(':'), "after the address there must be a colon and a port");
            (host, port.trim_start_matches(':'))
        }
        None => at.split_once(':').unwrap_or((at, "")),
    };
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    let port = match port {
        "" => PORT_BY_DEFAULT,
        digits => digits.parse().ok().filter(|port| *port > 0).context("the port must be between 1 and 65535")?,
    };
    Ok(ServerUrl { place: Place::Tcp(unescaped(host)?, port), is_tls, user, password })
}

fn socket(rest: &str) -> Result<ServerUrl> {
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (who, path) = match rest.split_once('@') {
        Some((who, path)) if path.starts_with('/') => (Some(who), path),
        _ => (None, rest),
    };
    ensure!(path.starts_with('/'), "a socket is given by its full path: unix:///run/holdfast.sock");
    let (user, password) = who.map_or(Ok((None, None)), login)?;
    Ok(ServerUrl { place: Place::Socket(unescaped(path)?.into()), is_tls: false, user, password })
}

/// `user:password`, `:password` and, as redis-cli has it, `password` alone.
fn login(text: &str) -> Result<(Option<String>, Option<String>)> {
    let (user, password) = text.split_once(':').unwrap_or(("", text));
    let some = |text: &str| Ok::<_, anyhow::Error>(Some(unescaped(text)?).filter(|text| !text.is_empty()));
    Ok((some(user)?, some(password)?))
}

/// Replaces `%40` and its kin by their bytes.
fn unescaped(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(escaped) = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            bail!("a % stands before two hexadecimal digits: %25 is a percent sign");
        };
        bytes.push(escaped);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).context("what is escaped with % is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ServerUrl {
        ServerUrl::parse(text).unwrap().unwrap()
    }

    fn tcp(host: &str, port: u16) -> ServerUrl {
        ServerUrl { place: Place::Tcp(host.to_owned(), port), is_tls: false, user: None, password: None }
    }

    #[test]
    fn urls_are_those_of_client_libraries() {
        assert_eq!(parse("redis://"), tcp("127.0.0.1", 6379));
        assert_eq!(parse("redis://db.example/3"), tcp("db.example", 6379));
        assert_eq!(parse("REDIS://db.example:7000?protocol=3"), tcp("db.example", 7000));
        assert_eq!(parse("valkey://[::1]:7000/0"), tcp("::1", 7000));
        assert_eq!(parse("redis://[::1]").place.to_string(), "[::1]:6379");
        assert_eq!(parse("rediss://h"), ServerUrl { is_tls: true, ..tcp("h", 6379) });
        let alone = ServerUrl { password: Some("p@ss".to_owned()), ..tcp("h", 1) };
        assert_eq!(parse("redis://:p%40ss@h:1"), alone);
        assert_eq!(parse("redis://p@ss@h:1"), alone);
        assert_eq!(parse("redis://me:p%40ss@h:1"), ServerUrl { user: Some("me".to_owned()), ..alone });
    }

    #[test]
    fn a_socket_has_a_full_path() {
        let socket = parse("unix:///run/a%20b.sock?db=1");
        assert_eq!(socket.place, Place::Socket("/run/a b.sock".into()));
        assert_eq!(socket.place.to_string(), "/run/a b.sock");
        let with_password = parse("unix://:secret@/run/s");
        assert_eq!(
            (with_password.place, with_password.password),
            (Place::Socket("/run/s".into()), Some("secret".into()))
        );
        assert!(ServerUrl::parse("unix://run/s").unwrap().is_err());
    }

    #[test]
    fn a_url_of_all_databases_names_none() {
        for whole in
            ["redis://old", "redis://old/", "redis://me:p%3ass@old:7000/0", "unix:///run/s", "redis://old?protocol=3"]
        {
            assert!(ServerUrl::parse_whole(whole).is_ok(), "{whole}");
        }
        for bad in ["old:6379", "redis://old/3", "redis://old/0/1", "redis://old:port", "http://old"] {
            assert!(ServerUrl::parse_whole(bad).is_err(), "{bad}");
        }
        for (text, shown) in [
            ("rediss://me:secret@old:7000/0", "rediss://old:7000"),
            ("redis://[::1]", "redis://[::1]:6379"),
            ("unix://:secret@/run/s", "unix:///run/s"),
        ] {
            assert_eq!(ServerUrl::parse_whole(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_wrong_is_told_without_the_password() {
        for text in ["redis://me:hidden@h:0", "redis://me:hidden@h:x", "redis://:hidden@[::1", "redis://:hidden%4@h"] {
            let error = format!("{:#}", ServerUrl::parse(text).unwrap().unwrap_err());
            assert!(!error.contains("hidden"), "{error}");
        }
        assert!(ServerUrl::parse("http://h").is_none());
        assert!(ServerUrl::parse("/var/lib/holdfast").is_none());
    }
}
