//! A connection that waits for replies with patience: while nothing comes, it asks the server on another connection to
//! wake whoever is blocked, and gives up when that does not help. Knows RESP and nothing of what requests mean.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

/// Only tells a slow server from one that never answers.
pub(crate) const REPLY_DEADLINE: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(150);

pub(crate) struct Talk {
    socket: BufReader<Patient>,
}

/// Why there is no reply.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection is closed; that may be right.
    Closed,
    /// The run is over.
    Stopped,
    /// The server has done wrong.
    Wrong(String),
}

impl Talk {
    pub(crate) fn open(address: SocketAddr, stop: &Arc<AtomicBool>) -> io::Result<Talk> {
        let socket = TcpStream::connect_timeout(&address, REPLY_DEADLINE)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TICK))?;
        socket.set_write_timeout(Some(TICK))?;
        let patient = Patient { socket, address, client_id: None, deadline: REPLY_DEADLINE, stop: stop.clone() };
        Ok(Talk { socket: BufReader::new(patient) })
    }

    /// Learns its own number, so that it can be unblocked while it waits.
    pub(crate) fn learn_id(&mut self) -> Result<(), Trouble> {
        self.send(&encode(&[&["CLIENT", "ID"]]))?;
        if let Reply::Integer(id) = self.read()? {
            self.socket.get_mut().client_id = Some(id);
        }
        Ok(())
    }

    /// The same for one that may be refused meanwhile, because a script runs long.
    pub(crate) fn must_learn_id(&mut self) -> Result<(), String> {
        self.socket.get_mut().client_id = Some(self.must(&["CLIENT", "ID"])?.integer());
        Ok(())
    }

    /// How long to wait for one reply.
    pub(crate) fn set_deadline(&mut self, deadline: Duration) {
        self.socket.get_mut().deadline = deadline;
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.socket.get_mut().write_all(bytes).map_err(|error| trouble(&error))
    }

    /// Sends in pieces that end anywhere.
    pub(crate) fn send_cut(&mut self, bytes: &[u8], random: &mut Random) -> Result<(), Trouble> {
        let mut rest = bytes;
        for _ in 0..random.below(4) {
            let (piece, after) = rest.split_at(random.below(rest.len() + 1));
            self.send(piece)?;
            rest = after;
            if random.one_in(4) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        self.send(rest)
    }

    pub(crate) fn read(&mut self) -> Result<Reply, Trouble> {
        match Reply::read(&mut self.socket) {
            Ok(Reply::Closed) => Err(Trouble::Closed),
            // The server has caught a panic of its own.
            Ok(Reply::Error(text)) if text.starts_with(b"ERR internal error") => {
                Err(Trouble::Wrong(format!("-{}", String::from_utf8_lossy(&text))))
            }
            Ok(reply) => Ok(reply),
            Err(error) => match trouble(&error) {
                Trouble::Wrong(what) => {
                    Err(Trouble::Wrong(format!("{what} within {:?}", self.socket.get_ref().deadline)))
                }
                other => Err(other),
            },
        }
    }

    /// Whether something is there to be read now.
    pub(crate) fn has_more(&self) -> bool {
        let socket = &self.socket.get_ref().socket;
        !self.socket.buffer().is_empty() || {
            // Both fail only on a socket that is closed, which the next read tells.
            let _ = socket.set_nonblocking(true);
            let waiting = socket.peek(&mut [0]).is_ok();
            let _ = socket.set_nonblocking(false);
            waiting
        }
    }

    /// One request of our own and its reply.
    pub(crate) fn run<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Result<Reply, String> {
        let read = |talk: &mut Talk| {
            talk.send(&encode(&[args]))?;
            loop {
                match talk.read()? {
                    Reply::Push(_) => {}
                    reply => break Ok(reply),
                }
            }
        };
        self.describe(read, args)
    }

    /// Says in words why the request has no reply.
    fn describe<T, A: AsRef<[u8]>>(
        &mut self,
        mut ask: impl FnMut(&mut Talk) -> Result<T, Trouble>,
        args: &[A],
    ) -> Result<T, String> {
        let name = || String::from_utf8_lossy(args[0].as_ref()).into_owned();
        ask(self).map_err(|trouble| match trouble {
            Trouble::Wrong(what) => format!("{what}: {}", name()),
            Trouble::Closed => format!("the server closed the connection of {}", name()),
            Trouble::Stopped => "the run is over".into(),
        })
    }

    /// Requests of our own and their replies, some hundred requests at a time.
    pub(crate) fn run_all<A: AsRef<[u8]>>(&mut self, requests: &[Vec<A>]) -> Result<Vec<Reply>, String> {
        let mut replies = Vec::with_capacity(requests.len());
        for part in requests.chunks(200) {
            let read = |talk: &mut Talk| -> Result<(), Trouble> {
                talk.send(&encode(part))?;
                for _ in part {
                    replies.push(talk.read()?);
                }
                Ok(())
            };
            self.describe(read, &part[0])?;
        }
        Ok(replies)
    }

    /// One request of our own that is answered without an error. A script that runs long is waited for.
    pub(crate) fn must<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Result<Reply, String> {
        let began = Instant::now();
        loop {
            match self.run(args)? {
                Reply::Error(text) if text.starts_with(b"BUSY") && began.elapsed() < REPLY_DEADLINE => {
                    thread::sleep(TICK)
                }
                Reply::Error(text) => {
                    let words: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg.as_ref())).collect();
                    return Err(format!("{} was answered with -{}", words.join(" "), String::from_utf8_lossy(&text)));
                }
                reply => return Ok(reply),
            }
        }
    }
}

/// Requests as they go over the wire.
pub(crate) fn encode<A: AsRef<[u8]>>(requests: &[impl AsRef<[A]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for args in requests {
        bytes.extend_from_slice(format!("*{}\r\n", args.as_ref().len()).as_bytes());
        for arg in args.as_ref() {
            bytes.extend_from_slice(format!("${}\r\n", arg.as_ref().len()).as_bytes());
            bytes.extend_from_slice(arg.as_ref());
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes
}

fn trouble(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Trouble::Closed,
        STOPPED => Trouble::Stopped,
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Trouble::Wrong("no reply".into()),
        _ => Trouble::Wrong(error.to_string()),
    }
}

/// Says that the run is over. Not `Interrupted`, after which the standard library tries again.
const STOPPED: io::ErrorKind = io::ErrorKind::QuotaExceeded;

/// A socket whose reads and writes wait, and meanwhile help.
struct Patient {
    socket: TcpStream,
    address: SocketAddr,
    client_id: Option<i64>,
    deadline: Duration,
    stop: Arc<AtomicBool>,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.patiently(|mut socket| socket.read(buffer))
    }
}

impl Write for Patient {
    /// A server that has much to do for a client may not read on meanwhile.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|mut socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Patient {
    fn patiently(&self, mut step: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            match step(&self.socket) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if began.elapsed() > self.deadline {
                        return Err(error);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(STOPPED.into());
            }
            self.wake();
        }
    }

    /// Ends everything that may rightly keep this connection waiting. What is stuck for another reason stays stuck. A
    /// server that does not answer here is found by others.
    fn wake(&self) {
        let Some(id) = self.client_id else { return };
        let Ok(mut socket) = TcpStream::connect(self.address) else { return };
        let id = id.to_string();
        let requests: [&[&str]; 4] =
            [&["CLIENT", "UNBLOCK", &id], &["SCRIPT", "KILL"], &["FUNCTION", "KILL"], &["CLIENT", "UNPAUSE"]];
        let _ = socket.set_read_timeout(Some(Duration::from_millis(500)));
        if socket.write_all(&encode(&requests)).is_ok() {
            let mut reader = BufReader::new(socket);
            for _ in requests {
                if Reply::read(&mut reader).is_err() {
                    return;
                }
            }
        }
    }
}
