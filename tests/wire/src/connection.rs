//! A blocking connection that sends what it is told, byte for byte, and hides nothing of what comes back.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::reply::Reply;
use crate::text::split_args;

/// How long a reply may take before the test fails. Generous: it only has to tell a slow server from a stuck one.
pub(crate) const REPLY_DEADLINE: Duration = Duration::from_secs(60);

pub struct Connection {
    socket: BufReader<TcpStream>,
    unsent: Vec<u8>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(REPLY_DEADLINE))?;
        socket.set_write_timeout(Some(REPLY_DEADLINE))?;
        Ok(Connection { socket: BufReader::new(socket), unsent: Vec::new() })
    }

    /// Runs a command written as a line, `SET greeting "hello world"`, and returns its reply.
    #[track_caller]
    pub fn run(&mut self, line: &str) -> Reply {
        let args = split_args(line).unwrap_or_else(|e| panic!("cannot read the command {line:?}: {e}"));
        self.run_args(&args)
    }

    /// Runs a command given as its arguments.
    #[track_caller]
    pub fn run_args(&mut self, args: &[impl AsRef<[u8]>]) -> Reply {
        self.queue(args);
        self.read()
    }

    /// Runs a command whose last arguments are binary or large: `run_with("SET a", &[&value])`.
    #[track_caller]
    pub fn run_with(&mut self, line: &str, more: &[&[u8]]) -> Reply {
        let mut args = split_args(line).unwrap_or_else(|e| panic!("cannot read the command {line:?}: {e}"));
        args.extend(more.iter().map(|arg| arg.to_vec()));
        self.run_args(&args)
    }

    /// Sends many commands in one write, then reads one reply for each.
    #[track_caller]
    pub fn pipeline(&mut self, lines: &[impl AsRef<str>]) -> Vec<Reply> {
        for line in lines {
            self.queue_line(line.as_ref());
        }
        lines.iter().map(|_| self.read()).collect()
    }

    /// Adds a command to what the next `read` or `flush` sends.
    pub fn queue(&mut self, args: &[impl AsRef<[u8]>]) {
        self.unsent.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
        for arg in args {
            let arg = arg.as_ref();
            self.unsent.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            self.unsent.extend_from_slice(arg);
            self.unsent.extend_from_slice(b"\r\n");
        }
    }

    #[track_caller]
    pub fn queue_line(&mut self, line: &str) {
        let args = split_args(line).unwrap_or_else(|e| panic!("cannot read the command {line:?}: {e}"));
        self.queue(&args);
    }

    /// Adds bytes as they are, for speaking bad RESP on purpose.
    pub fn queue_raw(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Sends all that is queued. A server that has hung up already is no error: its last words can still be read.
    #[track_caller]
    pub fn flush(&mut self) {
        let unsent = std::mem::take(&mut self.unsent);
        match self.socket.get_mut().write_all(&unsent) {
            Err(e) if !is_hang_up(&e) => panic!("cannot send: {e}"),
            _ => {}
        }
    }

    /// Sends all that is queued and reads one reply.
    #[track_caller]
    pub fn read(&mut self) -> Reply {
        self.flush();
        Reply::read(&mut self.socket).unwrap_or_else(|e| panic!("no reply: {}", explain(&e)))
    }

    /// The same against a server that is killed meanwhile: a reply that is cut off is `Closed`, as one that never came is.
    #[track_caller]
    pub fn read_until_killed(&mut self) -> Reply {
        self.flush();
        match Reply::read(&mut self.socket) {
            Err(e) if is_hang_up(&e) || e.kind() == io::ErrorKind::UnexpectedEof => Reply::Closed,
            reply => reply.unwrap_or_else(|e| panic!("no reply: {}", explain(&e))),
        }
    }

    /// Sends all that is queued and reads exactly `len` bytes, fewer if the server closes.
    #[track_caller]
    pub fn read_raw(&mut self, len: usize) -> Vec<u8> {
        self.flush();
        let mut bytes = Vec::new();
        match self.socket.by_ref().take(len as u64).read_to_end(&mut bytes) {
            Err(e) if !is_hang_up(&e) => panic!("cannot read: {}, after {bytes:?}", explain(&e)),
            _ => bytes,
        }
    }

    /// Tells the server that nothing more will come, while still listening.
    pub fn close_sending(&mut self) {
        self.flush();
        self.socket.get_ref().shutdown(std::net::Shutdown::Write).expect("cannot shut down the sending side");
    }

    /// A reply that has arrived and was not read: a transcript must account for every one.
    #[track_caller]
    pub(crate) fn unread(&mut self) -> Option<Reply> {
        self.flush();
        let socket = self.socket.get_ref();
        let waiting = !self.socket.buffer().is_empty() || {
            socket.set_nonblocking(true).expect("cannot set nonblocking");
            let waiting = matches!(socket.peek(&mut [0]), Ok(1));
            socket.set_nonblocking(false).expect("cannot set blocking");
            waiting
        };
        waiting.then(|| self.read())
    }
}

fn is_hang_up(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn explain(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("nothing came for {REPLY_DEADLINE:?}")
        }
        _ => e.to_string(),
    }
}
