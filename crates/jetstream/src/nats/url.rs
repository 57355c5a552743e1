//! The URL of a log on NATS. Knows its form; connects to nothing.

use std::fmt;

/// `nats://[user:password@]host[:port][,host[:port]…]/name`; `tls://` instead of `nats://` for TLS. A token may be there
/// instead of a user. `%2F` and the like stand for letters that a URL has other uses for.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsUrl {
    /// The servers, each as a URL of its own.
    pub servers: Vec<String>,
    pub(super) login: Option<Login>,
    /// The name of the log.
    pub name: String,
    /// Without the password.
    shown: String,
}

/// What a URL says beside the servers of who connects.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Login {
    User { name: String, password: String },
    Token(String),
}

impl NatsUrl {
    /// `None` if it is of another kind.
    pub fn parse(text: &str) -> Option<Result<NatsUrl, String>> {
        let (scheme, rest) = text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "nats" | "tls"))?;
        // What is wrong is said without the password.
        let shown = rest.rsplit_once('@').map_or(rest, |(_, shown)| shown);
        Some(parse_rest(scheme, rest).map_err(|reason| format!("{scheme}://{shown}: {reason}")))
    }

    pub(super) fn stream(&self) -> String {
        format!("HOLDFAST_{}", self.name)
    }

    /// The subject of the frames. IMPORTANT: with the id. A frame for a log that was deleted must not be taken for one of a log
    /// that was made since under the same name.
    pub(super) fn subject(&self, id: &str) -> String {
        format!("holdfast.{}.log.{id}", self.name)
    }

    pub(super) fn members_subject(&self) -> String {
        format!("holdfast.{}.members", self.name)
    }

    pub(super) fn requests_subject(&self) -> String {
        format!("holdfast.{}.requests", self.name)
    }

    pub(super) fn bucket(&self) -> String {
        format!("HOLDFAST_{}", self.name)
    }

    /// The stream in which NATS keeps the bucket.
    pub(super) fn bucket_stream(&self) -> String {
        format!("OBJ_{}", self.bucket())
    }
}

fn parse_rest(scheme: &str, rest: &str) -> Result<NatsUrl, String> {
    let form = "give it as nats://host:port,host:port,host:port/name";
    let (hosts, name) = rest.split_once('/').ok_or_else(|| format!("it names no log: {form}"))?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
        return Err(format!("the name of a log has letters, digits, - and _, at most 64: {form}"));
    }
    let (login, hosts) = match hosts.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, hosts),
    };
    let login = login.map(|login| match login.split_once(':') {
        Some((name, password)) => Login::User { name: decode(name), password: decode(password) },
        None => Login::Token(decode(login)),
    });
    if hosts.split(',').any(str::is_empty) {
        return Err(format!("it names no server: {form}"));
    }
    let servers = hosts.split(',').map(|host| format!("{scheme}://{host}")).collect();
    Ok(NatsUrl { servers, login, name: name.to_owned(), shown: format!("{scheme}://{hosts}/{name}") })
}

/// Replaces `%2F` and the like.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl fmt::Display for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_servers_and_a_log() {
        let url = NatsUrl::parse("nats://joe:secret@a:4222,b,c:1/orders").unwrap().unwrap();
        assert_eq!(url.servers, ["nats://a:4222", "nats://b", "nats://c:1"]);
        let login = |text: &str| NatsUrl::parse(text).unwrap().unwrap().login;
        let user = |name: &str, password: &str| Some(Login::User { name: name.into(), password: password.into() });
        assert!(url.login == user("joe", "secret") && login("nats://a/b").is_none());
        assert!(login("tls://joe:a%2Fb%4@c%@a/b") == user("joe", "a/b%4@c%"));
        assert!(login("nats://t0ken@a/b") == Some(Login::Token("t0ken".into())));
        assert_eq!((url.name.as_str(), url.to_string().as_str()), ("orders", "nats://a:4222,b,c:1/orders"));
        assert_eq!((url.stream().as_str(), url.subject("12").as_str()), ("HOLDFAST_orders", "holdfast.orders.log.12"));
        assert!(NatsUrl::parse("file:data").is_none());
        for wrong in ["nats://", "nats://a", "nats://a/", "nats:///x", "nats://a,,b/x", "nats://a/b c", "nats://a/b.c"]
        {
            assert!(NatsUrl::parse(wrong).unwrap().is_err(), "{wrong}");
        }
        let wrong = NatsUrl::parse("nats://joe:secret@a").unwrap();
        assert!(wrong.is_err_and(|reason| reason.starts_with("nats://a: ") && !reason.contains("secret")));
    }
}
