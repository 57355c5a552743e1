//! How long a PING waits beside clients that send requests without pause, and how many requests these get answered. Knows nothing
//! of how a server divides its time.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::data_sets::NOTHING;
use super::workload::{Driver, RowFigures, Workload};
use crate::measure::{Latencies, Metric, Sample, proc_stat};
use crate::servers::{Connection, Persistence, Server, ServerSpec, info, info_field, write_request};

/// So many clients that all do the same.
struct Row {
    about: &'static str,
    clients: usize,
    request: &'static [&'static str],
    replies: Replies,
}

enum Replies {
    Read,
    Unread,
    /// Nobody reads them, and the clients stop sending when all of them together have asked for so much: a server may keep
    /// replies without a limit.
    UnreadBytes {
        in_all: usize,
        each: usize,
    },
}

const PING: &[&str] = &["PING"];
const INCR: &[&str] = &["INCR", "counter"];
const GET: &[&str] = &["GET", LARGE];

const ROWS: &[Row] = &[
    Row { about: "1 client, PING", clients: 1, request: PING, replies: Replies::Read },
    Row { about: "8 clients, PING", clients: 8, request: PING, replies: Replies::Read },
    Row { about: "50 clients, PING", clients: 50, request: PING, replies: Replies::Read },
    Row { about: "1 client, PING, replies not read", clients: 1, request: PING, replies: Replies::Unread },
    Row { about: "8 clients, PING, replies not read", clients: 8, request: PING, replies: Replies::Unread },
    Row { about: "50 clients, PING, replies not read", clients: 50, request: PING, replies: Replies::Unread },
    Row { about: "1 client, INCR", clients: 1, request: INCR, replies: Replies::Read },
    Row { about: "8 clients, INCR", clients: 8, request: INCR, replies: Replies::Read },
    Row { about: "50 clients, INCR", clients: 50, request: INCR, replies: Replies::Read },
    Row { about: "1 client, GET of 64 kB", clients: 1, request: GET, replies: Replies::Read },
    Row { about: "8 clients, GET of 64 kB", clients: 8, request: GET, replies: Replies::Read },
    Row { about: "50 clients, GET of 64 kB", clients: 50, request: GET, replies: Replies::Read },
    Row { about: "1 client, GET of 64 kB, 500 MB not read", clients: 1, request: GET, replies: LARGE_UNREAD },
    Row { about: "8 clients, GET of 64 kB, 500 MB not read", clients: 8, request: GET, replies: LARGE_UNREAD },
    Row { about: "50 clients, GET of 64 kB, 500 MB not read", clients: 50, request: GET, replies: LARGE_UNREAD },
];

const LARGE: &str = "large";
const LARGE_BYTES: usize = 64 * 1024;
const LARGE_UNREAD: Replies = Replies::UnreadBytes { in_all: 500_000_000, each: LARGE_BYTES };

/// Bytes of requests that a client sends in one call.
const PIECE_BYTES: usize = 256 * 1024;
/// When no socket takes or has any bytes.
const PAUSE: Duration = Duration::from_micros(50);

/// Runs each row for so many milliseconds, on a server of its own.
fn saturation(spec: &ServerSpec, row_ms: u64) -> Result<Vec<RowFigures>> {
    let figures = ROWS.iter().map(|row| {
        let sample = measured(spec, row, Duration::from_millis(row_ms)).with_context(|| format!("`{}`", row.about))?;
        Ok((row.about, Some(sample)))
    });
    figures.collect()
}

fn measured(spec: &ServerSpec, row: &'static Row, time: Duration) -> Result<Sample> {
    let server = Server::start(spec, Persistence::EverySecond)?;
    let mut connection = server.connect()?;
    connection.call(&["SET", LARGE, &"x".repeat(LARGE_BYTES)])?;
    let mut pinged = server.connect()?;
    let (before, cpu_before) = (requests(&mut connection)?, proc_stat::cpu_time(server.pid)?);
    let load = Load::start(server.port, row)?;
    let queues = proc_stat::RunQueues::of(server.pid)?;
    let (began, mut waits_us, mut longest_on_core) = (Instant::now(), Vec::new(), Duration::ZERO);
    let mut before_core = queues.waits();
    while waits_us.is_empty() || began.elapsed() < time {
        let asked = Instant::now();
        pinged.call(&["PING"])?;
        let took = asked.elapsed();
        waits_us.push(took.as_micros() as u32);
        let after_core = queues.waits();
        // The longest of them: they may have waited at the same time.
        let for_core = before_core.iter().zip(&after_core).map(|(before, after)| after.saturating_sub(*before)).max();
        longest_on_core = longest_on_core.max(took.saturating_sub(for_core.unwrap_or_default()));
        before_core = after_core;
    }
    let answered = requests(&mut connection)?.saturating_sub(before).max(1) as f64;
    let (took, cpu_s) = (began.elapsed(), (proc_stat::cpu_time(server.pid)? - cpu_before).as_secs_f64());
    load.stop()?;
    let waits = Latencies::from_us(waits_us);
    Ok(Sample::from([
        (Metric::LatencyMax, waits.quantile_us(1.0) / 1e3),
        (Metric::LatencyMaxOnCore, longest_on_core.as_secs_f64() * 1e3),
        (Metric::LatencyP99, waits.quantile_us(0.99) / 1e3),
        (Metric::Throughput, answered / took.as_secs_f64()),
        (Metric::ServerCpu, cpu_s * 1e6 / answered),
    ]))
}

/// How many requests the server has executed.
fn requests(connection: &mut Connection) -> Result<u64> {
    let stats = info(connection, "stats")?;
    let count = info_field(&stats, "total_commands_processed").and_then(|count| count.parse().ok());
    count.context("INFO has no total_commands_processed")
}

/// Clients that send without pause, all on one thread: many threads would take turns with the server for the cores.
struct Load {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Load {
    fn start(port: u16, row: &'static Row) -> Result<Load> {
        let mut request = Vec::new();
        write_request(&mut request, row.request);
        let requests = request.repeat(PIECE_BYTES.div_ceil(request.len()));
        let bytes_max = match row.replies {
            Replies::UnreadBytes { in_all, each } => in_all / each * request.len() / row.clients,
            _ => usize::MAX,
        };
        let mut clients = Vec::new();
        for _ in 0..row.clients {
            let stream = TcpStream::connect(("127.0.0.1", port)).context("cannot connect")?;
            stream.set_nonblocking(true)?;
            clients.push(Sender { stream, sent: 0, bytes_max });
        }
        let reads = matches!(row.replies, Replies::Read);
        let stopped = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&stopped);
        let thread = thread::spawn(move || {
            let mut received = vec![0; PIECE_BYTES];
            while !of_thread.load(Ordering::Relaxed) {
                let mut is_idle = true;
                for client in &mut clients {
                    is_idle &= client.send(&requests)? == 0;
                    is_idle &= !reads || client.receive(&mut received)? == 0;
                }
                if is_idle {
                    thread::sleep(PAUSE);
                }
            }
            Ok(())
        });
        Ok(Load { stopped, thread })
    }

    fn stop(self) -> Result<()> {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| bail!("the thread that sends panicked"))
    }
}

/// One of the clients.
struct Sender {
    stream: TcpStream,
    /// Bytes in all.
    sent: usize,
    bytes_max: usize,
}

impl Sender {
    /// Sends what the socket takes of a piece, from where the last call ended. Returns how much that was.
    fn send(&mut self, requests: &[u8]) -> Result<usize> {
        let rest = &requests[self.sent % requests.len()..];
        let rest = &rest[..rest.len().min(self.bytes_max - self.sent)];
        if rest.is_empty() {
            return Ok(0);
        }
        let sent = unless_blocked(self.stream.write(rest))?;
        self.sent += sent;
        Ok(sent)
    }

    /// Reads once what has arrived.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self.stream.read(buffer) {
            Ok(0) => bail!("the server has closed a connection"),
            received => unless_blocked(received),
        }
    }
}

fn unless_blocked(done: std::io::Result<usize>) -> Result<usize> {
    match done {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        done => done.context("a connection has failed"),
    }
}

pub(crate) const WORKLOADS: &[Workload] = &[Workload {
    name: "stalls-saturation",
    about: "PING beside clients that send without pause",
    persistence: Persistence::EverySecond,
    setup: &NOTHING,
    driver: Driver::Rows { run: saturation, amount: 5_000, amount_quick: 1_000 },
    targets: &[],
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_name_of_its_own() {
        for (i, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..i].iter().all(|other| other.about != row.about), "{}", row.about);
        }
    }

    /// A client's next call goes on in the middle of a request, if need be.
    #[test]
    fn a_client_sends_whole_requests_however_much_the_socket_takes() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut client = Sender { stream, sent: 0, bytes_max: 10 };
        let mut sent = 0;
        for _ in 0..10 {
            sent += client.send(b"abcd").unwrap();
        }
        assert_eq!(sent, 10);
        drop(client);
        let mut received = String::new();
        server.read_to_string(&mut received).unwrap();
        assert_eq!(received, "abcdabcdab");
    }
}
