//! `holdfast handover`: asks the writer to hand its log over to a follower, and waits until another writes. Knows ROLE and
//! FAILOVER.

use super::cluster_status;
use super::link::{Client, Reply, Way, password};
use crate::config::{HandOver, Place, ServerUrl};
use anyhow::{Context, Result, bail, ensure};
use engine::Settings;
use jetstream::Status;
use std::time::{Duration, Instant};

const CONNECTS_WITHIN: Duration = Duration::from_secs(5);
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Followers of followers: none are expected, and a circle is not followed for ever.
const HOPS_MAX: usize = 4;

pub(crate) fn run(asked: &HandOver, settings: &Settings) -> Result<()> {
    let way = Way::of_settings(settings).within(CONNECTS_WITHIN, ANSWERS_WITHIN);
    let (mut writer, at) = find_writer(asked, &way, settings)?;
    let timeout = asked.timeout.as_millis().to_string();
    let mut request: Vec<&[u8]> = vec![b"FAILOVER"];
    if let Some(to) = &asked.to {
        let (host, port) = to.rsplit_once(':').with_context(|| format!("{to}: give the follower as HOST:PORT"))?;
        request.extend([b"TO", host.as_bytes(), port.as_bytes()]);
    }
    request.extend([b"TIMEOUT", timeout.as_bytes()]);
    let began = Instant::now();
    writer.must(&request)?;
    loop {
        ensure!(began.elapsed() < asked.timeout, "{} did not hand over within {} s", at.place, asked.timeout.as_secs());
        std::thread::sleep(LOOK_AGAIN);
        match writer.must(&[b"ROLE"]) {
            Ok(role) => {
                if let Role::Follows { writer: Some(other) } = Role::of(&role)? {
                    println!("{other} writes now, {} follows it: {:.3} s", at.place, began.elapsed().as_secs_f64());
                    return Ok(());
                }
            }
            // It may close its connections when it becomes a follower, or still load.
            Err(_) => {
                if let Ok(again) = Client::connect(&at, &way) {
                    writer = again;
                }
            }
        }
    }
}

/// A connection to the server that writes, and its address.
fn find_writer(asked: &HandOver, way: &Way, settings: &Settings) -> Result<(Client, ServerUrl)> {
    let password = password(asked.password.as_ref(), settings);
    let at = |place| ServerUrl { place, is_tls: asked.tls, user: asked.user.clone(), password: password.clone() };
    let mut url = at(match &asked.host {
        Some(host) => {
            let port = if asked.tls && settings.tls_port() > 0 { settings.tls_port() } else { settings.client_port() };
            Place::Tcp(host.trim_matches(['[', ']']).to_owned(), port)
        }
        None => {
            let (options, url) = cluster_status::nats(settings)?;
            let status = Status::inspect(&options, None)?;
            let writer = status.writer().with_context(|| format!("no server says that it writes {url}"))?;
            Place::Tcp(writer.host.clone(), writer.port)
        }
    });
    for _ in 0..HOPS_MAX {
        let mut client = Client::connect(&url, way)?;
        match Role::of(&client.must(&[b"ROLE"])?)? {
            Role::Writes => return Ok((client, url)),
            Role::Follows { writer: Some(writer) } => url = at(writer),
            Role::Follows { writer: None } => bail!("{} follows, and does not know a writer", url.place),
        }
    }
    bail!("every server that was asked follows another")
}

/// What ROLE says.
#[derive(Debug, PartialEq, Eq)]
enum Role {
    Writes,
    /// The writer, if it is known and answers.
    Follows {
        writer: Option<Place>,
    },
}

impl Role {
    fn of(reply: &Reply) -> Result<Role> {
        let Reply::Array(parts) = reply else { bail!("ROLE was answered with {reply:?}") };
        let text = |at: usize| parts.get(at).and_then(Reply::text);
        match (text(0).as_deref(), text(1), parts.get(2), text(3)) {
            (Some("master"), ..) => Ok(Role::Writes),
            (Some("slave"), Some(host), Some(Reply::Integer(port)), Some(link)) => {
                let port = u16::try_from(*port).ok().filter(|port| link == "connected" && *port > 0);
                Ok(Role::Follows { writer: port.map(|port| Place::Tcp(host, port)) })
            }
            _ => bail!("ROLE was answered with {reply:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(bytes: &str) -> Result<Role> {
        Role::of(&Reply::read(&mut bytes.as_bytes())?)
    }

    #[test]
    fn roles_are_understood() {
        let follows =
            |writer: Option<&str>| Role::Follows { writer: writer.map(|host| Place::Tcp(host.to_owned(), 6379)) };
        assert_eq!(role("*3\r\n$6\r\nmaster\r\n:7\r\n*0\r\n").unwrap(), Role::Writes);
        let slave = |link: &str, port| {
            let length = link.len();
            format!("*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:{port}\r\n${length}\r\n{link}\r\n:9\r\n")
        };
        assert_eq!(role(&slave("connected", 6379)).unwrap(), follows(Some("h")));
        assert_eq!(role(&slave("connect", 6379)).unwrap(), follows(None));
        assert_eq!(role(&slave("connected", 0)).unwrap(), follows(None));
        for nonsense in ["+OK\r\n", "*0\r\n", "*1\r\n:1\r\n", "*2\r\n$5\r\nslave\r\n$1\r\nh\r\n"] {
            assert!(role(nonsense).is_err(), "{nonsense:?}");
        }
    }
}
