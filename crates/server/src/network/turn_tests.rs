//! Turns of connections, on a worker whose clock the test drives: each read of the clock takes [`TICK_NS`]. So a
//! request takes equally long on every machine.

use super::balance::AtWork;
use super::connection::{Connection, ConnectionTask};
use super::local::{self, with_local};
use super::peer::Peer;
use super::stream::Stream;
use super::team::{Handshakes, Member, Team};
use super::turns::{TURN_NS, Turn, grant_turns};
use super::worker::flusher;
use crate::durability::Keeper;
use crate::test_host::IdleHost;
use engine::{Clock, Settings};
use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

const TICK_NS: u64 = 5_000;
/// The most requests of a turn, if each reads the clock at least once, plus those of the pipeline in which it ends.
const REQUESTS_PER_TURN_MAX: u64 = TURN_NS / TICK_NS + 8;
const PIPELINE: usize = 20_000;

#[derive(Default)]
struct TickingClock(AtomicU64);

impl Clock for TickingClock {
    fn unix_us(&self) -> u64 {
        1_700_000_000_000_000 + self.monotonic_ns() / 1000
    }

    fn monotonic_ns(&self) -> u64 {
        self.0.fetch_add(TICK_NS, Relaxed)
    }
}

/// Makes the thread of this test a worker, and runs `test` on it.
fn on_a_worker<T>(test: impl Future<Output = T>) -> T {
    let settings = Arc::new(Settings::new());
    let keeper = Arc::new(Keeper::new(settings.clone(), 1, 0));
    let engine = engine::with_all_commands(settings, Arc::new(IdleHost), Arc::new(TickingClock::default()), 16, 1);
    let engine = Arc::new(engine.with_persistence(keeper.clone()));
    let (arrivals, _) = tokio::sync::mpsc::unbounded_channel();
    let member = Member { arrivals, connections: Arc::default(), busy: AtomicUsize::new(0) };
    let team = Arc::new(Team { members: vec![member], at_work: AtWork::new(), handshakes: Handshakes::new().0 });
    local::begin(&engine, &keeper, &team, 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().event_interval(128).build().unwrap();
    let result = runtime.block_on(test);
    drop(runtime);
    local::end();
    result
}

/// Both ends of a connection: the client's, and the server's with its address.
fn connected() -> (TcpStream, Stream, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, address) = listener.accept().unwrap();
    client.set_nonblocking(true).unwrap();
    server.set_nonblocking(true).unwrap();
    (client, Stream::plain(server).unwrap(), address)
}

fn executed() -> u64 {
    with_local(|local| local.engine.statistics.totals().commands)
}

#[test]
fn a_turn_ends_when_its_time_is_over_and_the_next_one_is_granted() {
    on_a_worker(async {
        let (mut client, server, address) = connected();
        client.write_all(&b"PING\r\n".repeat(PIPELINE)).unwrap();
        let ready = server.socket().readable().await;
        ready.unwrap();
        let mut peer = with_local(|local| Peer::start(local, server, address));
        let mut poll = || with_local(|local| peer.poll(local, &mut Context::from_waker(Waker::noop())));
        assert!(poll().is_pending());
        let first = executed();
        assert!((1..=REQUESTS_PER_TURN_MAX).contains(&first), "{first} requests in one turn");
        assert!(poll().is_pending());
        assert_eq!(executed(), first, "it waits for its turn");
        assert!(!with_local(|local| local.grant_turn()), "the sockets are looked at first");
        with_local(|local| local.turns.begin_round());
        assert!(with_local(|local| local.grant_turn()));
        assert!(poll().is_pending());
        let second = executed() - first;
        assert!((1..=REQUESTS_PER_TURN_MAX).contains(&second), "{second} requests in the second turn");
        with_local(|local| assert!(local.sockets.iter().all(|(_, socket)| socket.turn == Turn::Queued)));
    });
}

/// Sockets are polled between two turns: a request of another client does not wait until a pipeline is done.
#[test]
fn another_client_is_served_between_two_turns() {
    let between = on_a_worker(async {
        let (mut sender, of_sender, sender_address) = connected();
        let (mut other, of_other, other_address) = connected();
        sender.write_all(&b"PING\r\n".repeat(PIPELINE)).unwrap();
        let connections = Arc::new(AtomicUsize::new(2));
        tokio::spawn(flusher());
        tokio::spawn(grant_turns());
        tokio::spawn(ConnectionTask::new(Connection::new(of_other, other_address), connections.clone()));
        tokio::spawn(ConnectionTask::new(Connection::new(of_sender, sender_address), connections.clone()));
        let mut asked_at = None;
        // A task that is always ready, as a busy worker has.
        let observed = tokio::spawn(poll_fn(move |cx| {
            cx.waker().wake_by_ref();
            match asked_at {
                None if executed() > 0 => {
                    other.write_all(b"PING\r\n").unwrap();
                    asked_at = Some(executed());
                    Poll::Pending
                }
                Some(at) if other.read(&mut [0; 16]).is_ok_and(|len| len > 0) => Poll::Ready(executed() - at),
                _ => Poll::Pending,
            }
        }));
        let between = observed.await.unwrap();
        drop(sender);
        between
    });
    // The turn in which it asks, and those of the rounds until its reply is sent. In the runtime's own order, it would
    // be thousands.
    assert!(between <= 8 * REQUESTS_PER_TURN_MAX, "{between} requests of another client were executed first");
}

/// Requests that MULTI queues do not read the clock when they end. Their turns end all the same, and count as long.
#[test]
fn a_turn_of_queued_requests_ends_too() {
    on_a_worker(async {
        let (mut client, server, address) = connected();
        client.write_all(&[b"MULTI\r\n".to_vec(), b"GET a\r\n".repeat(PIPELINE)].concat()).unwrap();
        server.socket().readable().await.unwrap();
        let mut peer = with_local(|local| Peer::start(local, server, address));
        let polled = with_local(|local| peer.poll(local, &mut Context::from_waker(Waker::noop())));
        assert!(polled.is_pending());
        with_local(|local| {
            let (_, socket) = local.sockets.iter().next().unwrap();
            let queued = socket.output.windows(8).filter(|reply| reply == b"+QUEUED\r").count() as u64;
            // One read of the clock for each eight requests.
            assert!((1..=8 * REQUESTS_PER_TURN_MAX).contains(&queued), "{queued} requests in one turn");
            assert!(local.turns.next().is_none(), "the sockets come first");
        });
    });
}
