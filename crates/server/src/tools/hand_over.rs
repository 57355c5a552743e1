//! `holdfast handover`: asks the writer to hand its log over to a follower, and waits until another writes. Knows as much of
//! the Redis protocol as that takes.

use super::cluster_status;
use crate::config::HandOver;
use anyhow::{Context, Result, anyhow, bail, ensure};
use engine::Settings;
use engine::settings::row;
use jetstream::Status;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use tls::ClientOptions;

const CONNECTS_WITHIN: Duration = Duration::from_secs(5);
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A longer reply is not one to ROLE or FAILOVER.
const REPLY_BYTES_MAX: usize = 1 << 20;
/// Followers of followers: none are expected, and a circle is not followed for ever.
const HOPS_MAX: usize = 4;

pub(crate) fn run(asked: &HandOver, settings: &Settings) -> Result<()> {
    let way = Way::new(asked, settings);
    let (mut writer, at) = find_writer(asked, &way, settings)?;
    let mut request = vec!["FAILOVER".to_owned()];
    if let Some(to) = &asked.to {
        let (host, port) = to.rsplit_once(':').with_context(|| format!("{to}: give the follower as HOST:PORT"))?;
        request.extend(["TO".to_owned(), host.to_owned(), port.to_owned()]);
    }
    request.extend(["TIMEOUT".to_owned(), asked.timeout.as_millis().to_string()]);
    let began = Instant::now();
    writer.ask(&request)?;
    loop {
        ensure!(began.elapsed() < asked.timeout, "{at} did not hand over within {} s", asked.timeout.as_secs());
        std::thread::sleep(LOOK_AGAIN);
        match writer.ask(&["ROLE".to_owned()]) {
            Ok(role) => {
                if let Role::Follows { writer: Some(other) } = Role::of(&role)? {
                    println!("{other} writes now, {at} follows it: {:.3} s", began.elapsed().as_secs_f64());
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

/// How servers are reached.
struct Way {
    user: Option<String>,
    password: Option<String>,
    tls: Option<ClientOptions>,
}

impl Way {
    /// The command line, then REDISCLI_AUTH, then the settings.
    fn new(asked: &HandOver, settings: &Settings) -> Way {
        let of_settings = || Some(settings.requirepass().to_string()).filter(|password| !password.is_empty());
        let text = |row| settings.text(row).to_string();
        Way {
            user: asked.user.clone(),
            password: asked.password.clone().or_else(|| std::env::var("REDISCLI_AUTH").ok()).or_else(of_settings),
            tls: asked.tls.then(|| ClientOptions {
                ca_cert_file: text(row::TLS_CA_CERT_FILE),
                ca_cert_dir: text(row::TLS_CA_CERT_DIR),
                cert_file: text(row::TLS_CERT_FILE),
                key_file: text(row::TLS_KEY_FILE),
                key_file_pass: text(row::TLS_KEY_FILE_PASS),
            }),
        }
    }
}

/// A connection to the server that writes, and its address.
fn find_writer(asked: &HandOver, way: &Way, settings: &Settings) -> Result<(Client, String)> {
    let mut at = match &asked.host {
        Some(host) => {
            let port = if asked.tls && settings.tls_port() > 0 { settings.tls_port() } else { settings.client_port() };
            format!("{host}:{port}")
        }
        None => {
            let (options, url) = cluster_status::nats(settings)?;
            let status = Status::inspect(&options, None)?;
            let writer = status.writer().with_context(|| format!("no server says that it writes {url}"))?;
            format!("{}:{}", writer.host, writer.port)
        }
    };
    for _ in 0..HOPS_MAX {
        let mut client = Client::connect(&at, way)?;
        match Role::of(&client.ask(&["ROLE".to_owned()])?)? {
            Role::Writes => return Ok((client, at)),
            Role::Follows { writer: Some(writer) } => at = writer,
            Role::Follows { writer: None } => bail!("{at} follows, and does not know a writer"),
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
        writer: Option<String>,
    },
}

impl Role {
    fn of(reply: &Reply) -> Result<Role> {
        let Reply::Array(parts) = reply else { bail!("ROLE was answered with {reply:?}") };
        match parts.as_slice() {
            [Reply::Text(role), ..] if role == "master" => Ok(Role::Writes),
            [Reply::Text(role), Reply::Text(host), Reply::Number(port), Reply::Text(link), ..] if role == "slave" => {
                let is_known = link == "connected" && *port > 0;
                Ok(Role::Follows { writer: is_known.then(|| format!("{host}:{port}")) })
            }
            _ => bail!("ROLE was answered with {reply:?}"),
        }
    }
}

trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

struct Client {
    stream: BufReader<Box<dyn Duplex>>,
    address: String,
}

impl Client {
    fn connect(address: &str, way: &Way) -> Result<Client> {
        let failed = || format!("{address} cannot be reached");
        let mut connected = Err(anyhow!("{address} is no address"));
        // A name may have several addresses.
        for one in address.to_socket_addrs().with_context(failed)? {
            connected = TcpStream::connect_timeout(&one, CONNECTS_WITHIN).with_context(failed);
            if connected.is_ok() {
                break;
            }
        }
        let socket = connected?;
        socket.set_read_timeout(Some(ANSWERS_WITHIN))?;
        socket.set_write_timeout(Some(ANSWERS_WITHIN))?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let stream: Box<dyn Duplex> = match &way.tls {
            None => Box::new(socket),
            Some(options) => Box::new(tls::connect(options, host.trim_matches(['[', ']']), socket)?),
        };
        let mut client = Client { stream: BufReader::new(stream), address: address.to_owned() };
        if let Some(password) = &way.password {
            let user = way.user.iter().cloned();
            let login: Vec<String> = std::iter::once("AUTH".to_owned()).chain(user).chain([password.clone()]).collect();
            client.ask(&login)?;
        }
        Ok(client)
    }

    /// Asks, and fails if the reply is an error.
    fn ask(&mut self, words: &[String]) -> Result<Reply> {
        let mut request = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| request.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        let said = self.stream.get_mut().write_all(request.as_bytes());
        said.and_then(|()| self.stream.get_mut().flush()).with_context(|| self.address.clone())?;
        match read(&mut self.stream).with_context(|| self.address.clone())? {
            Reply::Error(text) => bail!("{}: {text}", self.address),
            reply => Ok(reply),
        }
    }
}

/// A reply, as far as ROLE, AUTH and FAILOVER need it.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Text(String),
    Error(String),
    Number(i64),
    Array(Vec<Reply>),
}

fn read(from: &mut impl BufRead) -> Result<Reply> {
    let mut line = Vec::new();
    from.by_ref().take(REPLY_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line).into_owned();
    ensure!(line.ends_with("\r\n"), "the connection was closed");
    let (kind, rest) = line.trim_end().split_at(1.min(line.trim_end().len()));
    let number = || rest.parse::<i64>().map_err(|_| anyhow!("{line:?} is no reply"));
    Ok(match kind {
        "+" => Reply::Text(rest.to_owned()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Number(number()?),
        "$" => {
            let length = usize::try_from(number()?).unwrap_or(0);
            ensure!(length <= REPLY_BYTES_MAX, "a reply is too long");
            let mut bytes = vec![0; length + 2];
            from.read_exact(&mut bytes)?;
            Reply::Text(String::from_utf8_lossy(&bytes[..length]).into_owned())
        }
        "*" => {
            let count = usize::try_from(number()?).unwrap_or(0);
            ensure!(count <= REPLY_BYTES_MAX, "a reply is too long");
            Reply::Array((0..count).map(|_| read(from)).collect::<Result<_>>()?)
        }
        _ => bail!("{line:?} is no reply"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(bytes: &str) -> Result<Role> {
        Role::of(&read(&mut bytes.as_bytes())?)
    }

    #[test]
    fn roles_are_understood() {
        let follows = |writer: Option<&str>| Role::Follows { writer: writer.map(str::to_owned) };
        assert_eq!(role("*3\r\n$6\r\nmaster\r\n:7\r\n*0\r\n").unwrap(), Role::Writes);
        let slave = |link: &str, port| {
            let length = link.len();
            format!("*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:{port}\r\n${length}\r\n{link}\r\n:9\r\n")
        };
        assert_eq!(role(&slave("connected", 6379)).unwrap(), follows(Some("h:6379")));
        assert_eq!(role(&slave("connect", 6379)).unwrap(), follows(None));
        assert_eq!(role(&slave("connected", 0)).unwrap(), follows(None));
        for nonsense in ["", "+OK\r\n", "*1\r\n:1\r\n", "$5\r\nab", "*9999999999\r\n", "!\r\n", "\r\n"] {
            assert!(role(nonsense).is_err(), "{nonsense:?}");
        }
    }
}
