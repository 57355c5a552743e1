//! Connections that send operations in batches and receive a reply to each, from one thread, as redis-benchmark does it.
//! Knows nothing of the commands: a `Traffic` makes the requests and checks the replies.
//!
//! redis-benchmark sends one command, counts errors as replies, and cannot wait for what it did not ask for.

use std::io::{self, Read, Write};
use std::net;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::measure::{Latencies, Metric, Sample, proc_stat};
use crate::servers::Server;

/// Requests and replies on the connections of a run. They are numbered: senders first, then receivers.
pub(crate) trait Traffic {
    /// Adds the next operation of a sender, one request or several, to what it is about to send.
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>);

    /// The length of the reply to one operation, at the beginning of what was received; `None` while it is not all
    /// there. A wrong reply is an error.
    fn check_reply(&mut self, connection: usize, received: &[u8]) -> Result<Option<usize>>;
}

/// Connections to one server, ready to begin.
pub(crate) struct Connections {
    poll: Poll,
    port: u16,
    connections: Vec<Connection>,
}

/// How a run went.
struct Outcome {
    took: Duration,
    /// From sending a batch until its last reply.
    batches: Latencies,
}

impl Connections {
    pub(crate) fn new(server: &Server) -> Result<Self> {
        let poll = Poll::new().context("cannot make a poll")?;
        Ok(Connections { poll, port: server.port, connections: Vec::new() })
    }

    /// Connections that send batches, each as soon as the one before is answered.
    pub(crate) fn senders(mut self, count: usize) -> Result<Self> {
        for _ in 0..count {
            let stream = connect(self.port)?;
            self.add(stream, Role::Sender)?;
        }
        Ok(self)
    }

    /// Connections that send one request now, get this reply, and from then on receive a message for every operation of
    /// every sender.
    pub(crate) fn receivers(mut self, count: usize, request: &[u8], answer: &[u8]) -> Result<Self> {
        for _ in 0..count {
            let mut stream = connect(self.port)?;
            stream.set_read_timeout(Some(SILENCE_MAX))?;
            stream.write_all(request).context("cannot send to the server")?;
            let mut received = vec![0; answer.len()];
            stream.read_exact(&mut received).context("cannot read the server's reply")?;
            ensure!(expect(&received, answer)?, "a receiver got no answer");
            self.add(stream, Role::Receiver)?;
        }
        Ok(self)
    }

    /// One measured run.
    pub(crate) fn run(
        self,
        server: &Server,
        pipeline: u32,
        operations: u64,
        traffic: &mut impl Traffic,
    ) -> Result<Sample> {
        let server_cpu_before = proc_stat::cpu_time(server.pid)?;
        let load_cpu_before = proc_stat::cpu_time(std::process::id())?;
        let Outcome { took, batches } = self.exchange(pipeline, operations, traffic)?;
        let load_cpu = proc_stat::cpu_time(std::process::id())? - load_cpu_before;
        let server_cpu = proc_stat::cpu_time(server.pid)? - server_cpu_before;
        Ok(Sample::from([
            (Metric::Throughput, operations as f64 / took.as_secs_f64()),
            (Metric::LatencyP50, batches.quantile_us(0.5) / 1e3),
            (Metric::LatencyP99, batches.quantile_us(0.99) / 1e3),
            (Metric::ServerCpu, server_cpu.as_secs_f64() * 1e6 / operations as f64),
            (Metric::LoadBusy, load_cpu.as_secs_f64() / took.as_secs_f64()),
        ]))
    }

    fn add(&mut self, stream: net::TcpStream, role: Role) -> Result<()> {
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let token = Token(self.connections.len());
        self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        self.connections.push(Connection::new(stream, role));
        Ok(())
    }

    fn exchange(mut self, pipeline: u32, operations: u64, traffic: &mut impl Traffic) -> Result<Outcome> {
        let mut batches_us = Vec::with_capacity((operations / u64::from(pipeline)) as usize + self.connections.len());
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut events = Events::with_capacity(self.connections.len());
        let mut unasked = operations;
        let mut next_batch = |sender: usize, connection: &mut Connection, traffic: &mut _| -> Result<u64> {
            let batch = u64::from(pipeline).min(unasked);
            unasked -= batch;
            connection.send_batch(sender, batch, traffic)?;
            Ok(batch)
        };

        let started = Instant::now();
        // Replies and messages that are still to come.
        let mut awaited = 0;
        for (number, connection) in self.connections.iter_mut().enumerate() {
            awaited += match connection.role {
                Role::Sender => next_batch(number, connection, traffic)?,
                Role::Receiver => {
                    connection.awaited = operations;
                    operations
                }
            };
        }
        let mut heard = Instant::now();
        while awaited > 0 {
            match self.poll.poll(&mut events, Some(SILENCE_MAX)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled.context("cannot wait for answers")?,
            }
            for event in &events {
                let number = event.token().0;
                let connection = &mut self.connections[number];
                if event.is_writable() {
                    connection.flush()?;
                }
                let answered = connection.receive(number, &mut chunk, traffic)?;
                awaited -= answered;
                if answered > 0 {
                    heard = Instant::now();
                    if connection.role == Role::Sender && connection.awaited == 0 {
                        let took = heard - connection.asked;
                        batches_us.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
                        awaited += next_batch(number, connection, traffic)?;
                    }
                }
            }
            ensure!(heard.elapsed() < SILENCE_MAX, "{awaited} answers are missing, and none came for {SILENCE_MAX:?}");
        }
        Ok(Outcome { took: started.elapsed(), batches: Latencies::from_us(batches_us) })
    }
}

/// A server silent for longer than this has hung.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Received at most at once from one connection.
const CHUNK_BYTES: usize = 64 * 1024;

fn connect(port: u16) -> Result<net::TcpStream> {
    let stream = net::TcpStream::connect(("127.0.0.1", port)).context("cannot connect")?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Sender,
    Receiver,
}

struct Connection {
    stream: TcpStream,
    role: Role,
    /// Replies that are still to come.
    awaited: u64,
    /// When the last batch was sent.
    asked: Instant,
    /// Requests, of which the first `sent` bytes are on their way.
    requests: Vec<u8>,
    sent: usize,
    /// The beginning of a reply.
    received: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream, role: Role) -> Self {
        let asked = Instant::now();
        Connection { stream, role, awaited: 0, asked, requests: Vec::new(), sent: 0, received: Vec::new() }
    }

    fn send_batch(&mut self, number: usize, batch: u64, traffic: &mut impl Traffic) -> Result<()> {
        self.requests.clear();
        self.sent = 0;
        for _ in 0..batch {
            traffic.next_request(number, &mut self.requests);
        }
        self.awaited = batch;
        self.asked = Instant::now();
        self.flush()
    }

    /// Sends as much as the socket takes; the poll tells when it takes more.
    fn flush(&mut self) -> Result<()> {
        while self.sent < self.requests.len() {
            match self.stream.write(&self.requests[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot send to the server"),
            }
        }
        Ok(())
    }

    /// How many operations were answered by what has come.
    fn receive(&mut self, number: usize, chunk: &mut [u8], traffic: &mut impl Traffic) -> Result<u64> {
        let awaited_before = self.awaited;
        loop {
            let count = match self.stream.read(chunk) {
                Ok(0) => bail!("the server closed a connection"),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot read the server's reply"),
            };
            self.received.extend_from_slice(&chunk[..count]);
            let mut used = 0;
            while self.awaited > 0
                && let Some(length) = traffic.check_reply(number, &self.received[used..])?
            {
                used += length;
                self.awaited -= 1;
            }
            self.received.drain(..used);
            let rest = &self.received;
            ensure!(
                self.awaited > 0 || rest.is_empty(),
                "a reply without a request: {:?}",
                String::from_utf8_lossy(rest)
            );
            // A chunk that was not filled has emptied the socket; what comes later is a new event.
            if count < chunk.len() {
                break;
            }
        }
        Ok(awaited_before - self.awaited)
    }
}

/// Whether all of these bytes have arrived; an error if others did.
pub(crate) fn expect(received: &[u8], expected: &[u8]) -> Result<bool> {
    let common = received.len().min(expected.len());
    ensure!(
        received[..common] == expected[..common],
        "expected {:?}, the server answered {:?}",
        String::from_utf8_lossy(expected),
        String::from_utf8_lossy(&received[..received.len().min(EXCERPT_BYTES)])
    );
    Ok(common == expected.len())
}

/// How much of an unexpected reply is shown.
const EXCERPT_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn expected_bytes_may_arrive_in_pieces_and_others_are_refused() {
        assert!(!expect(b"", b"+OK\r\n").unwrap());
        assert!(!expect(b"+OK", b"+OK\r\n").unwrap());
        assert!(expect(b"+OK\r\n+OK", b"+OK\r\n").unwrap());
        let error = expect(b"-ERR no\r\n", b"+OK\r\n").unwrap_err().to_string();
        assert_eq!(error, r#"expected "+OK\r\n", the server answered "-ERR no\r\n""#);
    }

    /// Sends `?` and expects `!`.
    struct Shouting {
        asked: usize,
        heard: usize,
    }

    impl Traffic for Shouting {
        fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
            self.asked += 1;
            requests.push(b'?');
        }

        fn check_reply(&mut self, _connection: usize, received: &[u8]) -> Result<Option<usize>> {
            let whole = expect(received, b"!")?;
            self.heard += usize::from(whole);
            Ok(whole.then_some(1))
        }
    }

    /// A server that replies with `answer`, on each of `connections` connections, to every byte it is sent.
    fn answering(connections: usize, answer: &'static [u8]) -> u16 {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for _ in 0..connections {
            let listener = listener.try_clone().unwrap();
            thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut requests = [0; 512];
                // Until the other side hangs up.
                while let Ok(count @ 1..) = stream.read(&mut requests) {
                    let _ = stream.write_all(&answer.repeat(count));
                }
            });
        }
        port
    }

    fn shouted(answer: &'static [u8], traffic: &mut Shouting) -> Result<Outcome> {
        let port = answering(3, answer);
        let connections = Connections { poll: Poll::new()?, port, connections: Vec::new() };
        connections.senders(3)?.exchange(4, 1_001, traffic)
    }

    #[test]
    fn every_operation_is_asked_once_and_answered_once() {
        let mut traffic = Shouting { asked: 0, heard: 0 };
        let outcome = shouted(b"!", &mut traffic).unwrap();
        assert_eq!((traffic.asked, traffic.heard), (1_001, 1_001));
        // The last batch is a single operation.
        assert_eq!(outcome.batches.count(), 251);
    }

    #[test]
    fn an_answer_too_many_or_a_wrong_one_ends_the_run() {
        let refusal = |answer| shouted(answer, &mut Shouting { asked: 0, heard: 0 }).err().unwrap().to_string();
        assert!(refusal(b"!!").starts_with(r#"a reply without a request: "!"#));
        assert!(refusal(b"?").starts_with(r#"expected "!", the server answered "?"#));
    }
}
