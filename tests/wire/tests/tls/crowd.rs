//! A crowd of hostile clients on both ports, and well-behaved ones beside it: the server lives, its memory is bounded, and every
//! request of the well-behaved is answered. `HOLDFAST_TEST_CROWD` is how many there are.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use std::{env, fs, thread};
use wire::Random;

use crate::hostile::client_hello;
use crate::server::TlsServer;
use crate::support::{eventually, info};

/// How many there are in the tests of every change.
const CLIENTS: usize = 1000;
/// Descriptors of this process that are not theirs.
const OTHER_FILES: usize = 100;
/// So often each of them does what it does: once a second.
const ROUNDS: usize = 6;
/// The most memory that one of them may cost, on average: several times what 10,000 of them do.
const BYTES_EACH_MAX: usize = 16 * 1024;
/// What the server may take besides: buffers of its threads, and what the allocator keeps.
const BYTES_MORE_MAX: usize = 32 * 1024 * 1024;
/// The pause between two requests of a well-behaved client.
const PAUSE: Duration = Duration::from_millis(1);

#[test]
fn a_crowd_of_hostile_clients_costs_little_and_others_are_served() {
    let count = count();
    let Some(server) = TlsServer::start(&["--tls-handshake-timeout", "2", "--maxclients", &(count + 100).to_string()])
    else {
        return;
    };
    let mut random = Random::from_env();
    let mut control = server.connect();
    let memory_before: usize = info(&mut control, "used_memory");
    let (mut plain, mut with_tls) = (server.connect(), server.connect_tls());

    let (is_over, memory_most) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut crowd = Crowd::new(count, server.address(), server.tls_address, client_hello(&server));
    thread::scope(|scope| {
        scope.spawn(|| ask_in_turn(&is_over, |number| assert_eq!(plain.run("INCR plain").integer(), number)));
        scope.spawn(|| ask_in_turn(&is_over, |number| assert_eq!(with_tls.run("INCR tls").integer(), number)));
        // Whatever happens here, the others must end.
        let _end = SetAtEnd(&is_over);
        for _ in 0..ROUNDS {
            crowd.act(&mut random);
            memory_most.fetch_max(info(&mut control, "used_memory"), SeqCst);
            // A new client gets in beside them. With TLS it may have to come again: it is one of many.
            assert_eq!(server.connect().run("PING").to_string(), "+PONG");
            thread::sleep(Duration::from_secs(1));
        }
    });
    assert!(crowd.reopened > 0, "those who talk nonsense are closed");
    println!("{count} hostile clients, {} closed by the server and back again", crowd.reopened);
    let memory_max = memory_before + count * BYTES_EACH_MAX + BYTES_MORE_MAX;
    let memory_most = memory_most.into_inner();
    println!("memory: {} kB before, {} kB at most", memory_before / 1024, memory_most / 1024);
    assert!(memory_most <= memory_max, "{memory_most} bytes, not more than {memory_max}");

    drop(crowd);
    eventually("they are gone", || info::<usize>(&mut control, "connected_clients") == 3);
    let left_max = memory_before + BYTES_MORE_MAX;
    eventually("their memory is free", || info::<usize>(&mut control, "used_memory") <= left_max);
    assert_eq!(server.connect_tls().run("PING").to_string(), "+PONG");
}

/// As many as are asked for, if this process may have as many files open.
fn count() -> usize {
    let asked =
        env::var("HOLDFAST_TEST_CROWD").map_or(CLIENTS, |text| text.parse().expect("HOLDFAST_TEST_CROWD is a number"));
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok());
    let possible = soft.unwrap_or(usize::MAX).saturating_sub(OTHER_FILES).min(asked);
    if possible < asked {
        println!("only {possible} hostile clients: ulimit -n allows no more");
    }
    possible
}

struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Has a well-behaved client ask again and again, and count.
fn ask_in_turn(is_over: &AtomicBool, mut ask: impl FnMut(i64)) {
    for number in 1.. {
        ask(number);
        if is_over.load(SeqCst) {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// What a hostile client does.
#[derive(Clone, Copy)]
enum Habit {
    SaysNothing,
    /// A byte in each round, of something that is valid so far.
    Slow {
        sent: usize,
    },
    SendsRandomBytes,
    /// The beginning of a handshake, or of a long request, and no more.
    NeverEnds,
}

struct Hostile {
    address: SocketAddr,
    is_tls: bool,
    habit: Habit,
    socket: Option<TcpStream>,
}

struct Crowd {
    clients: Vec<Hostile>,
    hello: Vec<u8>,
    /// How many were closed by the server, and came back.
    reopened: usize,
}

impl Crowd {
    fn new(count: usize, plain: SocketAddr, with_tls: SocketAddr, hello: Vec<u8>) -> Crowd {
        let habits = [Habit::SaysNothing, Habit::Slow { sent: 0 }, Habit::SendsRandomBytes, Habit::NeverEnds];
        let clients = (0..count).map(|at| {
            let is_tls = at % 2 == 1;
            let address = if is_tls { with_tls } else { plain };
            Hostile { address, is_tls, habit: habits[at / 2 % habits.len()], socket: None }
        });
        Crowd { clients: clients.collect(), hello, reopened: 0 }
    }

    /// Each of them does what it does once, and comes back if the server has closed it.
    fn act(&mut self, random: &mut Random) {
        for client in &mut self.clients {
            let is_closed = client.socket.as_mut().is_some_and(is_closed);
            if is_closed || client.socket.is_none() {
                self.reopened += usize::from(is_closed);
                client.open(&self.hello);
            }
            client.act(&self.hello, random);
        }
    }
}

impl Hostile {
    fn open(&mut self, hello: &[u8]) {
        // The old one first: there may be no descriptor for both.
        self.socket = None;
        let Ok(mut socket) = TcpStream::connect(self.address) else { return };
        socket.set_nonblocking(true).expect("a socket can be");
        match &mut self.habit {
            Habit::NeverEnds if self.is_tls => drop(socket.write(hello)),
            Habit::NeverEnds => drop(socket.write(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$1000000\r\nvalue")),
            Habit::Slow { sent } => *sent = 0,
            Habit::SaysNothing | Habit::SendsRandomBytes => {}
        }
        self.socket = Some(socket);
    }

    fn act(&mut self, hello: &[u8], random: &mut Random) {
        let Some(socket) = &mut self.socket else { return };
        // What the server does not take, or is too late for, is not sent.
        let _ = match &mut self.habit {
            Habit::SaysNothing | Habit::NeverEnds => Ok(0),
            Habit::Slow { sent } => {
                let valid: &[u8] = if self.is_tls { hello } else { b"*2\r\n$4\r\nECHO\r\n$1000\r\n" };
                *sent += 1;
                socket.write(&valid[*sent - 1..*sent])
            }
            Habit::SendsRandomBytes => {
                let bytes: Vec<u8> = (0..=random.below(500)).map(|_| random.below(256) as u8).collect();
                socket.write(&bytes)
            }
        };
    }
}

/// True when the server has closed a connection. What it has sent is read.
fn is_closed(socket: &mut TcpStream) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}
