//! The addresses of servers of which one writes: how they are written, and what each server says of its role. Knows no
//! connection.

use std::fmt;
use std::net::IpAddr;

use redis::{ErrorKind, FromRedisValue, RedisError, RedisResult, Value};

use crate::error::Error;
use crate::send::without_reply;

const PORT: u16 = 6379;

/// How many addresses are kept beside those that the program gives.
const NAMED_MAX: usize = 64;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// `host:port`, `[::1]:port`, or a host alone.
    pub(crate) fn parse(text: &str) -> RedisResult<Address> {
        let wrong = || {
            let form = "an address has to be host:port, with brackets around an IPv6 address";
            RedisError::from((ErrorKind::InvalidClientConfig, form, text.to_owned()))
        };
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (text, PORT),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if bare.unwrap_or(host).is_empty() || port == 0 || bare.is_none() && host.contains(':') {
            return Err(wrong());
        }
        Ok(Address { host: bare.unwrap_or(host).to_owned(), port })
    }

    /// An address that the server at this one has named. The server's own loopback is the machine on which it runs.
    fn resolve(&self, host: &str, port: u16) -> Option<Address> {
        if host.is_empty() || host == "?" || port == 0 {
            return None;
        }
        let is_loopback = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        Some(Address { host: if is_loopback { &self.host } else { host }.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A URL whose host can be another one.
#[derive(Clone, Debug)]
pub(crate) struct Url {
    before: String,
    host: String,
    after: String,
}

impl Url {
    /// Reads a URL that may have several hosts. `holdfast://` is `redis://`, and `holdfasts://` is `rediss://`.
    pub(crate) fn parse(url: &str) -> Url {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let scheme = match scheme {
            "" => String::new(),
            "holdfast" => "redis://".to_owned(),
            "holdfasts" => "rediss://".to_owned(),
            other => format!("{other}://"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let begin = rest[..end].rfind('@').map_or(0, |at| at + 1);
        Url { before: scheme + &rest[..begin], host: rest[begin..end].to_owned(), after: rest[end..].to_owned() }
    }

    /// The servers of which one is to be found that writes: those of a list, or the hosts of the URL if it has several.
    pub(crate) fn servers(&self, given: &[String]) -> RedisResult<Vec<Address>> {
        let mut servers: Vec<Address> = Vec::new();
        let hosts =
            if given.is_empty() && self.host.contains(',') { self.host.split(',').collect() } else { Vec::new() };
        for text in given.iter().map(String::as_str).chain(hosts) {
            let address = Address::parse(text)?;
            if !servers.contains(&address) {
                servers.push(address);
            }
        }
        Ok(servers)
    }

    /// The URL with its own host.
    pub(crate) fn own(&self) -> String {
        format!("{}{}{}", self.before, self.host, self.after)
    }

    /// The URL of one of the servers.
    pub(crate) fn of(&self, address: &Address) -> String {
        format!("{}{address}{}", self.before, self.after)
    }
}

/// What the server at an address has said when it was asked for its role.
#[derive(Clone, Debug)]
pub(crate) struct RoleAnswer {
    pub(crate) address: Address,
    /// In words, for an error.
    says: String,
    pub(crate) is_writer: bool,
    /// The other servers that it has named.
    named: Vec<Address>,
    /// It does not let the user ask.
    refusal: Option<RedisError>,
    /// It has said something.
    has_spoken: bool,
    /// It has told its role: one that a long script holds up has not.
    pub(crate) has_role: bool,
}

impl RoleAnswer {
    /// Reads the reply of ROLE.
    pub(crate) fn read(address: Address, reply: RedisResult<Value>) -> RoleAnswer {
        let reply = reply.and_then(Value::extract_error);
        match reply.and_then(|reply| RoleAnswer::read_role(&address, reply)) {
            Ok(answer) => answer,
            Err(error) => RoleAnswer::failed(address, error),
        }
    }

    /// A server that has not told its role.
    pub(crate) fn failed(address: Address, error: RedisError) -> RoleAnswer {
        let is_silent = matches!(without_reply(error.clone()), Error::Unavailable(_));
        let says = format!("{} ({error})", if is_silent { "does not answer" } else { "refuses" });
        let refusal = is_not_let_in(&error).then_some(error);
        let (is_writer, has_role) = (false, false);
        RoleAnswer { address, says, is_writer, named: Vec::new(), refusal, has_spoken: !is_silent, has_role }
    }

    /// True when the server that was the writer is still thought to be it.
    pub(crate) fn is_still_writer(&self) -> bool {
        self.is_writer || self.has_spoken && !self.has_role
    }

    fn read_role(address: &Address, reply: Value) -> RedisResult<RoleAnswer> {
        let Value::Array(mut parts) = reply else {
            return Err((ErrorKind::UnexpectedReturnType, "ROLE has no list as its reply").into());
        };
        parts.resize(3, Value::Nil);
        let [role, first, second] = <[Value; 3]>::try_from(parts).expect("it was made so long");
        let role = String::from_redis_value(role)?;
        let (says, named) = match role.as_str() {
            "master" => {
                let rows = <Vec<(String, u16, Value)>>::from_redis_value(second)?;
                ("writes".to_owned(), rows.iter().filter_map(|(host, port, _)| address.resolve(host, *port)).collect())
            }
            "slave" => {
                let leader = address.resolve(&String::from_redis_value(first)?, u16::from_redis_value(second)?);
                let shown = leader.as_ref().map_or("no server".to_owned(), Address::to_string);
                (format!("follows {shown}"), leader.into_iter().collect())
            }
            other => (format!("is a {other}"), Vec::new()),
        };
        let (address, is_writer) = (address.clone(), role == "master");
        Ok(RoleAnswer { address, says, is_writer, named, refusal: None, has_spoken: true, has_role: true })
    }
}

/// True when the server does not let the user in, or does not let it ask.
pub(crate) fn is_not_let_in(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || error.code().is_some_and(|code| ["NOAUTH", "WRONGPASS", "NOPERM"].contains(&code))
}

/// Why no writer was found.
#[derive(Clone, Debug)]
pub(crate) enum SearchFailure {
    NoWriter(NoWriter),
    /// All servers that answer refuse the user, and will a little later, too.
    Refused(RedisError),
}

impl SearchFailure {
    pub(crate) fn of(answers: &[RoleAnswer]) -> SearchFailure {
        let spoken = || answers.iter().filter(|answer| answer.has_spoken);
        match spoken().next().and_then(|answer| answer.refusal.clone()) {
            Some(refusal) if spoken().all(|answer| answer.refusal.is_some()) => SearchFailure::Refused(refusal),
            _ => {
                let answers = answers.iter().map(|answer| (answer.address.to_string(), answer.says.clone()));
                SearchFailure::NoWriter(NoWriter { answers: answers.collect() })
            }
        }
    }
}

impl From<SearchFailure> for Error {
    fn from(failure: SearchFailure) -> Error {
        match failure {
            SearchFailure::NoWriter(answers) => Error::NoWriter(answers),
            SearchFailure::Refused(error) => error.into(),
        }
    }
}

/// Several servers, none of which is the writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoWriter {
    /// Each address, and what the server there has answered.
    pub answers: Vec<(String, String)>,
}

impl fmt::Display for NoWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (address, says)) in self.answers.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{address} {says}")?;
        }
        Ok(())
    }
}

/// The addresses at which a writer may be: those of the program, and those that its servers have named.
pub(crate) struct Known {
    given: Vec<Address>,
    named: Vec<Address>,
}

impl Known {
    pub(crate) fn new(given: Vec<Address>) -> Known {
        Known { given, named: Vec::new() }
    }

    pub(crate) fn all(&self) -> Vec<Address> {
        let mut all = self.given.clone();
        all.extend(self.named.iter().filter(|address| !self.given.contains(address)).cloned());
        all
    }

    /// A writer names all its followers, so what was named before is not needed any more.
    pub(crate) fn learn(&mut self, answer: &RoleAnswer) {
        if answer.is_writer {
            self.named.clear();
        }
        for address in [&answer.address].into_iter().chain(&answer.named) {
            if !self.named.contains(address) && self.named.len() < NAMED_MAX {
                self.named.push(address.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str, port: u16) -> Address {
        Address { host: host.into(), port }
    }

    fn role(reply: &[u8]) -> RoleAnswer {
        RoleAnswer::read(address("db.example", 1), redis::parse_redis_value(reply))
    }

    fn servers(url: &str, given: &[&str]) -> RedisResult<Vec<Address>> {
        Url::parse(url).servers(&given.iter().map(|each| each.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn a_url_may_have_several_hosts() {
        assert_eq!(servers("redis://a:1", &[]).unwrap(), []);
        let (a, b) = (address("a", 1), address("::1", 6379));
        let url = "holdfast://u:p%2C@a:1,[::1],a:1/3?protocol=resp2";
        assert_eq!(servers(url, &[]).unwrap(), [a.clone(), b.clone()]);
        assert_eq!(Url::parse(url).of(&b), "redis://u:p%2C@[::1]:6379/3?protocol=resp2");
        assert_eq!(servers("rediss://u@c:7/3", &["a:1", "[::1]:6379"]).unwrap(), [a.clone(), b]);
        assert_eq!(Url::parse("holdfasts://u@c:7/3").of(&a), "rediss://u@a:1/3");
        assert_eq!(Url::parse("holdfasts://u@c:7/3").own(), "rediss://u@c:7/3");
        assert_eq!(Url::parse("redis+unix:///a@b,c").own(), "redis+unix:///a@b,c");
        for wrong in ["a:1,", "::1,a", "a:0,b", "a:x,b", "a:70000,b"] {
            assert!(servers(&format!("redis://{wrong}"), &[]).is_err(), "{wrong}");
        }
    }

    /// The loopback of a server is its machine, and not that of the client.
    #[test]
    fn servers_name_others() {
        let writer = role(
            b"*3\r\n$6\r\nmaster\r\n:7\r\n*3\r\n*3\r\n$8\r\n10.0.0.2\r\n$1\r\n2\r\n$1\r\n7\r\n\
              *3\r\n$9\r\n127.0.0.1\r\n$1\r\n3\r\n$1\r\n7\r\n*3\r\n$1\r\n?\r\n$1\r\n0\r\n$1\r\n0\r\n",
        );
        assert!(writer.is_writer && writer.is_still_writer(), "{writer:?}");
        assert_eq!(writer.named, [address("10.0.0.2", 2), address("db.example", 3)]);
        let follower = role(b"*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.9\r\n:9\r\n$9\r\nconnected\r\n:7\r\n");
        assert_eq!((follower.is_writer, &follower.named[..]), (false, &[address("10.0.0.9", 9)][..]));
        assert!(!follower.is_still_writer());
        assert!(!role(b"*2\r\n$8\r\nsentinel\r\n*0\r\n").is_still_writer());

        let mut known = Known::new(vec![address("db.example", 1)]);
        known.learn(&follower);
        assert_eq!(known.all(), [address("db.example", 1), address("10.0.0.9", 9)]);
        known.learn(&writer);
        assert_eq!(known.all(), [address("db.example", 1), address("10.0.0.2", 2), address("db.example", 3)]);
    }

    #[test]
    fn only_if_all_refuse_is_it_the_refusal() {
        let refused = role(b"-NOPERM this user may not\r\n");
        let away = RoleAnswer::failed(address("b", 2), std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
        let follows = role(b"*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.9\r\n:9\r\n$9\r\nconnected\r\n:7\r\n");
        assert!(matches!(SearchFailure::of(&[refused.clone(), away.clone()]), SearchFailure::Refused(_)));
        let SearchFailure::NoWriter(answers) = SearchFailure::of(&[refused, away, follows]) else {
            panic!("one answers")
        };
        let shown = answers.to_string();
        assert!(
            shown.contains("b:2 does not answer (") && shown.contains("db.example:1 follows 10.0.0.9:9"),
            "{shown}"
        );
        assert!(role(b"-BUSY a script runs\r\n").is_still_writer());
    }
}
