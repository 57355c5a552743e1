//! Connections that each ask for one random job record after another, and how long the replies took. Knows nothing of
//! what else the server does meanwhile.
//!
//! redis-benchmark reports on whole runs; these can be asked for any stretch of time. Like it, they are one thread that
//! waits on all connections at once: a thread for each would measure the scheduler.

use std::io::{self, Read, Write};
use std::net;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

use crate::load::{CLIENTS, Random};
use crate::measure::Latencies;
use crate::workloads::job_records::job_key;

pub(crate) struct Readers {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<()>>,
}

impl Readers {
    /// Reads records `0..records` from now on.
    pub(crate) fn start(port: u16, records: u64) -> Result<Self> {
        let poll = Poll::new().context("cannot make a poll")?;
        let clients = (0..CLIENTS).map(|number| Client::connect(port, &poll, Token(number as usize)));
        let clients = clients.collect::<io::Result<Vec<_>>>().context("cannot connect the readers")?;
        let shared = Arc::new(Shared { answered_us: Mutex::new(room()), stopped: AtomicBool::new(false) });
        let of_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || keep_reading(poll, clients, records, &of_thread));
        Ok(Readers { shared, thread })
    }

    /// What was answered since the last time this was called.
    pub(crate) fn take(&self) -> Latencies {
        let room = room();
        let mut answered = self.shared.answered_us.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::replace(&mut *answered, room);
        drop(answered);
        Latencies::from_us(taken)
    }

    /// Ends them, and says so if one had failed.
    pub(crate) fn stop(self) -> Result<()> {
        self.shared.stopped.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(done) => done,
            Err(_) => bail!("the readers panicked"),
        }
    }
}

struct Shared {
    answered_us: Mutex<Vec<u32>>,
    stopped: AtomicBool,
}

/// Room for half a minute of replies: growing would copy megabytes between a request and its reply.
fn room() -> Vec<u32> {
    Vec::with_capacity(4_000_000)
}

/// A server silent for longer than this has hung.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// How soon a silent server's readers notice that they are to stop.
const LOOK_UP: Duration = Duration::from_millis(100);

fn keep_reading(mut poll: Poll, mut clients: Vec<Client>, records: u64, shared: &Shared) -> Result<()> {
    let mut random = Random(0);
    let mut next_key = || job_key(random.below(records));
    let mut events = Events::with_capacity(clients.len());
    for client in &mut clients {
        client.ask(&next_key())?;
    }
    let mut heard = Instant::now();
    while !shared.stopped.load(Ordering::Relaxed) {
        match poll.poll(&mut events, Some(LOOK_UP)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            polled => polled.context("cannot wait for answers")?,
        }
        let mut answered = shared.answered_us.lock().unwrap_or_else(PoisonError::into_inner);
        for event in &events {
            let client = &mut clients[event.token().0];
            if let Some(took) = client.answer()? {
                answered.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
                client.ask(&next_key())?;
            }
        }
        drop(answered);
        if !events.is_empty() {
            heard = Instant::now();
        }
        ensure!(heard.elapsed() < SILENCE_MAX, "no reader has been answered for {SILENCE_MAX:?}");
    }
    Ok(())
}

struct Client {
    stream: TcpStream,
    asked: Instant,
    request: Vec<u8>,
    /// What has come of the reply.
    received: Vec<u8>,
}

impl Client {
    fn connect(port: u16, poll: &Poll, token: Token) -> io::Result<Self> {
        let stream = net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, token, Interest::READABLE)?;
        Ok(Client { stream, asked: Instant::now(), request: Vec::new(), received: Vec::new() })
    }

    fn ask(&mut self, key: &str) -> Result<()> {
        self.request.clear();
        // Writing to a Vec cannot fail.
        let _ = write!(self.request, "*3\r\n$4\r\nHGET\r\n${}\r\n{key}\r\n${}\r\n{FIELD}\r\n", key.len(), FIELD.len());
        self.asked = Instant::now();
        // One small request at a time always fits the socket's buffer.
        self.stream.write_all(&self.request).context("cannot send to the server")
    }

    /// How long the reply took, once all of it is there.
    fn answer(&mut self) -> Result<Option<Duration>> {
        let mut chunk = [0; 512];
        // IMPORTANT: until it would block; the poll tells of news, not of what is still unread.
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => bail!("the server closed a reader's connection"),
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot read the server's reply"),
            }
            if is_whole_value(&self.received)? {
                self.received.clear();
                return Ok(Some(self.asked.elapsed()));
            }
        }
    }
}

/// Every record has it, and it is never empty.
const FIELD: &str = "updated_at";

/// Whether a value has arrived in full; an error if anything else did, such as nil for a record that must exist.
fn is_whole_value(received: &[u8]) -> Result<bool> {
    match decode_range(received) {
        Ok(None) => Ok(false),
        Ok(Some((RangeFrame::BulkString(_), length))) if length == received.len() => Ok(true),
        _ => bail!("HGET answered {:?}", String::from_utf8_lossy(received)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_arrive_in_pieces() {
        let whole = b"$5\r\na\r\nbc\r\n";
        for end in 0..whole.len() {
            assert!(!is_whole_value(&whole[..end]).unwrap(), "{end}");
        }
        assert!(is_whole_value(whole).unwrap());
    }

    #[test]
    fn anything_but_one_value_is_refused() {
        for answer in ["$-1\r\n", "-LOADING wait\r\n", ":1\r\n", "\r\n", "$1\r\na\r\n$1\r\n"] {
            let error = is_whole_value(answer.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, format!("HGET answered {answer:?}"));
        }
    }

    #[test]
    fn readers_are_answered_until_they_stop() {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for _ in 0..CLIENTS {
            let listener = listener.try_clone().unwrap();
            thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                // Until the reader hangs up.
                while let Ok(count @ 1..) = stream.read(&mut request) {
                    let request = &request[..count];
                    assert!(request.starts_with(b"*3\r\n$4\r\nHGET\r\n$37\r\ngbe:state:tasks:email-send:job_"));
                    let _ = stream.write_all(b"$2\r\nok\r\n");
                }
            });
        }
        let readers = Readers::start(port, 1_000).unwrap();
        let mut answered = 0;
        while answered < 1_000 {
            answered += readers.take().count();
        }
        readers.stop().unwrap();
    }
}
