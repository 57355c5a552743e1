//! An HTTP client, and a server with a port for operators.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;

use wire::{Connection, Server, free_address};

use crate::exposition::{Metrics, Style};
use crate::support::{Home, eventually};

pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Response {
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.head.lines().find_map(|line| {
            let (header, value) = line.split_once(':')?;
            header.eq_ignore_ascii_case(name).then(|| value.trim())
        });
        found.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }

    pub(crate) fn has_header(&self, name: &str) -> bool {
        let named = |line: &str| line.split_once(':').is_some_and(|(header, _)| header.eq_ignore_ascii_case(name));
        self.head.lines().any(named)
    }

    #[track_caller]
    pub(crate) fn parse(answer: &[u8]) -> Response {
        let answer = std::str::from_utf8(answer).expect("an answer is text");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {answer:?}"));
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest[..3].parse().ok());
        Response {
            status: status.unwrap_or_else(|| panic!("no status in {head}")),
            head: head.into(),
            body: body.into(),
        }
    }
}

/// Sends bytes and reads until the server closes.
pub(crate) fn send(address: SocketAddr, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut socket = TcpStream::connect(address)?;
    socket.write_all(bytes)?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    Ok(answer)
}

/// A request without a body, with these lines in its head.
#[track_caller]
pub(crate) fn request(address: SocketAddr, method: &str, path: &str, lines: &[&str]) -> Response {
    let more: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let text = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n");
    Response::parse(&send(address, text.as_bytes()).expect("the port answers"))
}

#[track_caller]
pub(crate) fn get(address: SocketAddr, path: &str) -> Response {
    request(address, "GET", path, &[])
}

/// A server with a port for operators.
pub(crate) struct Watched {
    server: Server,
    pub(crate) admin: SocketAddr,
    pub(crate) home: Home,
}

impl Watched {
    /// `None` where there is no holdfast to start.
    pub(crate) fn start(args: &[&str]) -> Option<Watched> {
        let (home, admin) = (Home::fresh()?, free_address());
        // Not by a PING, which a server with a password refuses.
        let server = home.launch(free_address(), &with_port(admin, args));
        let probe = b"GET /health/ready HTTP/1.0\r\n\r\n";
        eventually("it is ready", || send(admin, probe).is_ok_and(|answer| answer.starts_with(b"HTTP/1.0 200")));
        Some(Watched { server, admin, home })
    }

    /// The same, with a client.
    pub(crate) fn start_with_client(args: &[&str]) -> Option<(Watched, Connection)> {
        let server = Watched::start(args)?;
        let client = server.connect();
        Some((server, client))
    }

    /// Reads and checks the metrics.
    #[track_caller]
    pub(crate) fn metrics(&self) -> Metrics {
        let response = get(self.admin, "/metrics");
        assert_eq!(response.status, 200, "{}", response.body);
        Metrics::parse(&response.body, Style::Prometheus)
    }
}

impl Deref for Watched {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// Arguments for a server with its port for operators at `admin`.
pub(crate) fn with_port<'a>(admin: SocketAddr, args: &[&'a str]) -> Vec<&'a str> {
    let port: &'static str = admin.port().to_string().leak();
    [&["--admin-port", port], args].concat()
}
