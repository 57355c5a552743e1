//! A connection to a server that may die at any moment. Tells a dead server from a wrong one.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use wire::Reply;

use crate::request::{Request, encode};

/// Only tells a slow server from a stuck one.
const REPLY_DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Connection {
    socket: BufReader<TcpStream>,
    /// The database that commands go to once all that was sent has run.
    selected: u32,
}

pub(crate) enum Trouble {
    /// The server is gone, or writes no more. A reply that was cut off counts as none.
    Closed,
    /// The server has refused the request, because another one writes: nothing of it may have happened.
    ReadOnly,
    /// The server is there and does something that it must not do.
    Wrong(String),
}

pub(crate) type Outcome<T> = Result<T, Trouble>;

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Connection> {
        Connection::open_within(address, REPLY_DEADLINE)
    }

    /// Opens a connection to a server that must answer each request within a time.
    pub(crate) fn open_within(address: SocketAddr, within: Duration) -> io::Result<Connection> {
        let socket = TcpStream::connect_timeout(&address, within)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(within))?;
        socket.set_write_timeout(Some(within))?;
        Ok(Connection { socket: BufReader::new(socket), selected: 0 })
    }

    /// True when a reply has begun to arrive, or the connection is closed; false when neither happens within a time.
    pub(crate) fn is_readable(&mut self, within: Duration) -> bool {
        if !self.socket.buffer().is_empty() {
            return true;
        }
        let before = self.socket.get_ref().read_timeout().ok().flatten();
        let _ = self.socket.get_ref().set_read_timeout(Some(within));
        let found = self.socket.fill_buf().map(|_| ());
        let _ = self.socket.get_ref().set_read_timeout(before);
        !matches!(found, Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
    }

    pub(crate) fn run(&mut self, args: &[impl AsRef<[u8]>]) -> Outcome<Reply> {
        self.send_command(args)?;
        self.read()
    }

    pub(crate) fn send_command(&mut self, args: &[impl AsRef<[u8]>]) -> Outcome<()> {
        let mut bytes = Vec::new();
        encode(args, &mut bytes);
        self.send(&bytes)
    }

    /// Runs a command that the server must accept.
    pub(crate) fn must_run(&mut self, args: &[impl AsRef<[u8]>]) -> Outcome<Reply> {
        accepted(self.run(args)?, || {
            let words = args.iter().map(|arg| crate::request::excerpt(arg.as_ref()));
            words.collect::<Vec<_>>().join(" ")
        })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.socket.get_mut().write_all(bytes).map_err(|e| self.explain(e))
    }

    /// Adds a request's bytes, and those of a SELECT if it is for another database. Returns the number of replies that
    /// come before the request's own.
    pub(crate) fn encode(&mut self, request: &Request, into: &mut Vec<u8>) -> usize {
        let mut replies_before = request.replies_before();
        if self.selected != request.db {
            encode(&[b"SELECT".as_slice(), request.db.to_string().as_bytes()], into);
            self.selected = request.db;
            replies_before += 1;
        }
        request.encode(into);
        replies_before
    }

    pub(crate) fn read(&mut self) -> Outcome<Reply> {
        match Reply::read(&mut self.socket) {
            Ok(Reply::Closed) => Err(Trouble::Closed),
            Ok(reply) => Ok(reply),
            Err(e) => Err(self.explain(e)),
        }
    }

    fn explain(&self, e: io::Error) -> Trouble {
        use io::ErrorKind::*;
        match e.kind() {
            ConnectionReset | BrokenPipe | UnexpectedEof | ConnectionAborted | NotConnected => Trouble::Closed,
            WouldBlock | TimedOut => {
                let within = self.socket.get_ref().read_timeout().ok().flatten().unwrap_or(REPLY_DEADLINE);
                Trouble::Wrong(format!("no reply for {within:?}"))
            }
            _ => Trouble::Wrong(e.to_string()),
        }
    }
}

/// Errors of a server that has handed over, or from which another has taken over.
const NO_LONGER_WRITES: &[&[u8]] = &[b"READONLY ", b"FENCED ", b"LOADING ", b"UNBLOCKED ", b"MISCONF ", b"EXECABORT "];

/// The reply, unless it is an error or has one inside.
pub(crate) fn accepted(reply: Reply, what: impl FnOnce() -> String) -> Outcome<Reply> {
    let refused = match &reply {
        Reply::Error(_) => true,
        Reply::Array(items) => items.iter().any(Reply::is_error),
        _ => false,
    };
    if matches!(&reply, Reply::Error(text) if text.starts_with(b"READONLY ")) {
        return Err(Trouble::ReadOnly);
    }
    let has_error = |matches: &dyn Fn(&[u8]) -> bool| match &reply {
        Reply::Error(text) => matches(text),
        Reply::Array(items) => items.iter().any(|item| matches!(item, Reply::Error(text) if matches(text))),
        _ => false,
    };
    if has_error(&|text| NO_LONGER_WRITES.iter().any(|code| text.starts_with(code))) {
        return Err(Trouble::Closed);
    }
    if refused {
        return Err(Trouble::Wrong(format!("{} was answered with {}", what(), reply.excerpt())));
    }
    Ok(reply)
}

impl Trouble {
    /// For where the server has no reason to go away.
    pub(crate) fn describe(self, doing: &str) -> String {
        match self {
            Trouble::Closed => format!("the server closed the connection: {doing}"),
            Trouble::ReadOnly => format!("the server does not write: {doing}"),
            Trouble::Wrong(what) => format!("{what}: {doing}"),
        }
    }
}
