//! The URL of a log on NATS. Knows its form; connects to nothing.

use std::fmt;

/// `nats://[user:password@]host[:port][,host[:port]…]/name`; `tls://` instead of `nats://` for TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsUrl {
    /// The servers, each as a URL of its own.
    pub servers: Vec<String>,
    /// The name of the log.
    pub name: String,
    /// Without the password.
    shown: String,
}

impl NatsUrl {
    /// `None` if it is of another kind.
    pub fn parse(text: &str) -> Option<Result<NatsUrl, String>> {
        let (scheme, rest) = text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "nats" | "tls"))?;
        Some(parse_rest(scheme, rest).map_err(|reason| format!("{text}: {reason}")))
    }

    pub(super) fn stream(&self) -> String {
        format!("HOLDFAST_{}", self.name)
    }

    pub(super) fn subject(&self) -> String {
        format!("holdfast.{}.log", self.name)
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
}

fn parse_rest(scheme: &str, rest: &str) -> Result<NatsUrl, String> {
    let form = "give it as nats://host:port,host:port,host:port/name";
    let (hosts, name) = rest.split_once('/').ok_or_else(|| format!("it names no log: {form}"))?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
        return Err(format!("the name of a log has letters, digits, - and _, at most 64: {form}"));
    }
    let (user, hosts) = match hosts.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), hosts),
    };
    if hosts.split(',').any(str::is_empty) {
        return Err(format!("it names no server: {form}"));
    }
    let servers = hosts.split(',').map(|host| format!("{scheme}://{user}{host}")).collect();
    Ok(NatsUrl { servers, name: name.to_owned(), shown: format!("{scheme}://{hosts}/{name}") })
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
        assert_eq!(url.servers, ["nats://joe:secret@a:4222", "nats://joe:secret@b", "nats://joe:secret@c:1"]);
        assert_eq!((url.name.as_str(), url.to_string().as_str()), ("orders", "nats://a:4222,b,c:1/orders"));
        assert_eq!((url.stream().as_str(), url.subject().as_str()), ("HOLDFAST_orders", "holdfast.orders.log"));
        assert!(NatsUrl::parse("file:data").is_none());
        for wrong in ["nats://", "nats://a", "nats://a/", "nats:///x", "nats://a,,b/x", "nats://a/b c", "nats://a/b.c"]
        {
            assert!(NatsUrl::parse(wrong).unwrap().is_err(), "{wrong}");
        }
    }
}
