//! The life of servers that share a log, under simulation: several of them write, follow, are promoted, hand over, are
//! stopped, killed and started again, while the log loses, delays and repeats acknowledgements, refuses, and vanishes.
//! Random numbers choose every step, one after the other, on one thread: a seed gives the same simulation each time.
//! `HOLDFAST_TEST_SEED` runs one of them again. Engines, keepers and the steps of the role thread are real; the log is in
//! memory, and clients are not connected by sockets.
//!
//! What must hold: a change that was acknowledged happened, once, whatever came after; one that was refused did not
//! happen; a read of a server that writes sees every change that was acknowledged before; a read of a follower sees a
//! prefix; in the end all servers have the same data.

use super::keeper::Keeper;
use super::load::Indexes;
use super::progress::ReplyGate;
use super::role_thread::{Next, Patience, RoleThread};
use super::roles::Order;
use super::snapshot_thread;
use crate::config::ConfiguredIndexes;
use crate::test_host::IdleHost;
use engine::persistence::journal_state::JournalState;
use engine::persistence::{RoleChange, SnapshotReason};
use engine::{Client, ClientHandle, Clock, Engine, Flow, Persistence, Settings, Worker};
use fastrand::Rng;
use journal::{Claim, Faults, MemoryPlace};
use resp::OwnedRequest;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak, mpsc};

/// So many simulations, each time with other seeds, or `HOLDFAST_TEST_ROUNDS`.
const SIMULATIONS: u64 = 100;
const SERVERS: usize = 3;
const STEPS: usize = 600;
/// The lists that clients append to.
const LISTS: usize = 3;
/// More rounds than any simulation needs to come to rest.
const ROUNDS_MAX: usize = 10_000;

/// A clock that moves when it is read.
struct CountingClock(AtomicU64);

impl Clock for CountingClock {
    fn unix_us(&self) -> u64 {
        1_700_000_000_000_000 + self.monotonic_ns() / 1000
    }

    fn monotonic_ns(&self) -> u64 {
        self.0.fetch_add(1000, Relaxed)
    }
}

/// What a client has asked for, and has no answer to.
enum Asked {
    /// An element that is appended to a list.
    Append(u64),
    /// The elements of a list, with those that it must have.
    Read { list: usize, is_writer: bool, needed: Vec<u64> },
}

/// A reply that waits for the journal.
struct Waiting {
    asked: Asked,
    reply: String,
    depends_on: u64,
    is_strict: bool,
}

/// A server.
struct Server {
    engine: Arc<Engine>,
    keeper: Arc<Keeper>,
    thread: RoleThread,
    next: Option<Next>,
    worker: Worker,
    client: Client,
    waiting: VecDeque<Waiting>,
    /// It is stopped (SIGSTOP), for so many steps.
    stopped_for: usize,
}

impl Server {
    fn new(place: MemoryPlace, settings: &Arc<Settings>) -> Server {
        let keeper = Arc::new(Keeper::new(settings.clone(), 1, 0));
        // No thread of its own: the simulation takes its steps.
        keeper.snapshots.has_thread.store(true, Relaxed);
        let clock = Arc::new(CountingClock(AtomicU64::new(1_000_000_000)));
        let engine = engine::with_all_commands(settings.clone(), Arc::new(IdleHost), clock, 4, 3);
        let engine = Arc::new(engine.with_persistence(keeper.clone()));
        engine::begin_serving_scripts(&engine, 2..3);
        let indexes = Indexes { configured: ConfiguredIndexes::none(), swept: Vec::new() };
        let (keeper_of, engine_of) = (keeper.clone(), engine.clone());
        let thread = RoleThread {
            place: Arc::new(place),
            keeper: keeper_of,
            engine: engine_of,
            indexes,
            metrics: 1,
            threads: 1,
            reloaded_at: Default::default(),
            has_dropped_clients: Default::default(),
            promotion: Default::default(),
        };
        let (worker, client) = (engine.worker(0), connect(&engine));
        Server { engine, keeper, thread, next: None, worker, client, waiting: VecDeque::new(), stopped_for: 0 }
    }

    /// Starts as the writer if there is none, else as a follower.
    fn start(place: MemoryPlace, settings: &Arc<Settings>) -> Server {
        let mut server = Server::new(place, settings);
        let writes = server.thread.place.acquire(Claim::IfFree).is_ok() && server.thread.load_as_writer().is_ok();
        server.next = Some(match writes {
            true => Next::Write,
            false => {
                // What was loaded so far is of no use.
                server.thread.place.release();
                engine::begin_following(&server.engine);
                server.keeper.roles.set_follows(true);
                server.keeper.begin_following(Arc::downgrade(&server.engine));
                Next::Reload
            }
        });
        server
    }

    fn writes(&self) -> bool {
        matches!(self.next, Some(Next::Write)) && !self.keeper.roles.follows()
    }

    /// One step of the thread that changes roles.
    fn turn(&mut self) {
        // A change of role waits for the thread that takes snapshots.
        while self.keeper.snapshots.is_running() {
            snapshot_thread::step(&self.keeper, &self.engine);
        }
        let next = self.next.take().expect("it has a role");
        self.next = Some(self.thread.turn(next, Patience::None));
        if self.client.handle.is_killed() {
            // Its connection was closed, with whatever was still to be sent.
            self.waiting.clear();
            self.client = connect(&self.engine);
        }
    }

    fn ask(&mut self, words: &[&str]) -> String {
        let request: OwnedRequest = words.iter().map(|word| word.as_bytes()).collect();
        let mut reply = Vec::new();
        self.engine.begin(&mut self.worker);
        let flow = engine::execute(&self.engine, &mut self.worker, &mut self.client, request.as_request(), &mut reply);
        let reply = String::from_utf8(reply).expect("a reply is text");
        match flow {
            Flow::Continue | Flow::Close => reply,
            // While data is loaded. The client gives up: it was not executed.
            Flow::Paused(_) => "-not executed\r\n".into(),
            _ => panic!("no request waits here: {words:?} {reply}"),
        }
    }

    /// Asks for a list, without a connection.
    fn list(&mut self, list: usize) -> Vec<u64> {
        elements(&self.ask(&["LRANGE", &name(list), "0", "-1"]))
    }
}

fn connect(engine: &Arc<Engine>) -> Client {
    let (weak, id): (Weak<Engine>, u64) = (Arc::downgrade(engine), engine.clients.next_id());
    // A connection that is to be closed ends at once.
    let wake = move || {
        if let Some(engine) = weak.upgrade()
            && let Some(handle) = engine.clients.get(id).filter(|handle| handle.is_killed())
        {
            engine.clients.remove(&handle);
        }
    };
    let handle = Arc::new(ClientHandle::new(id, "simulated".into(), String::new(), 0, 0, Box::new(wake)));
    engine.clients.add(handle.clone());
    Client::new(handle, true)
}

fn name(list: usize) -> String {
    format!("list:{list}")
}

fn elements(reply: &str) -> Vec<u64> {
    let lines = reply.split("\r\n").filter(|line| !line.starts_with(['*', '$']) && !line.is_empty());
    lines.map(|line| line.parse().unwrap_or_else(|_| panic!("not a list: {reply}"))).collect()
}

struct World {
    rng: Rng,
    settings: Arc<Settings>,
    place: MemoryPlace,
    servers: Vec<Option<Server>>,
    last_element: u64,
    /// The list of each element.
    list_of: BTreeMap<u64, usize>,
    acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    /// What followers were seen to have.
    seen_prefixes: Vec<(usize, Vec<u64>)>,
    promotions: usize,
}

impl World {
    fn new(seed: u64, settings: &Arc<Settings>) -> World {
        let mut rng = Rng::with_seed(seed);
        let place = MemoryPlace::new();
        let mut some = |max: u16| if rng.bool() { rng.u16(..max) } else { 0 };
        let faults = Faults {
            lost_acknowledgements: some(300),
            delayed_acknowledgements: some(300),
            repeated_acknowledgements: some(200),
            refusals: some(20),
            refused_snapshots: some(300),
        };
        place.set_faults(seed, faults);
        let servers = (0..SERVERS).map(|_| Some(Server::start(place.join(), settings))).collect();
        World {
            rng,
            settings: settings.clone(),
            place,
            servers,
            last_element: 0,
            list_of: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            refused: BTreeSet::new(),
            seen_prefixes: Vec::new(),
            promotions: 0,
        }
    }

    fn run(mut self) -> usize {
        for _ in 0..STEPS {
            self.step();
        }
        self.come_to_rest();
        self.check();
        self.promotions
    }

    fn step(&mut self) {
        let chosen = self.rng.usize(..SERVERS);
        let kind = self.rng.u8(..100);
        match kind {
            0..=7 => self.place.tick(),
            8 if self.rng.bool() => self.place.vanish(),
            8..=11 => self.place.come_back(),
            12 => return self.kill(chosen),
            13..=15 => return self.start(chosen),
            _ => {}
        }
        let Some(server) = &mut self.servers[chosen] else { return };
        if let Some(left) = server.stopped_for.checked_sub(1) {
            server.stopped_for = left;
            return;
        }
        match kind {
            16..=45 => self.append(chosen),
            46..=52 => self.read(chosen),
            53..=69 => self.flush(chosen),
            70..=86 => server.turn(),
            87..=89 => {
                self.promotions += 1;
                server.keeper.roles.request(RoleChange::Promote).expect("it can be asked for");
            }
            90..=91 => self.hand_over(chosen),
            92..=94 => {
                let _ = server.keeper.begin_snapshot(SnapshotReason::Save);
                snapshot_thread::step(&server.keeper, &server.engine);
            }
            // An operator mends a journal that has failed.
            95..=96 => server.keeper.follow_appendonly(),
            97..=98 => server.stopped_for = self.rng.usize(..40),
            _ => {}
        }
    }

    fn append(&mut self, chosen: usize) {
        let Some(server) = &mut self.servers[chosen] else { return };
        self.last_element += 1;
        let (element, list) = (self.last_element, self.rng.usize(..LISTS));
        self.list_of.insert(element, list);
        let reply = server.ask(&["RPUSH", &name(list), &element.to_string()]);
        if reply.starts_with('-') {
            self.refused.insert(element);
        }
        let (asked, is_strict) = (Asked::Append(element), self.rng.bool());
        server.waiting.push_back(Waiting { asked, reply, depends_on: server.client.depends_on, is_strict });
    }

    fn read(&mut self, chosen: usize) {
        let list = self.rng.usize(..LISTS);
        let needed = self.acknowledged.iter().copied().filter(|element| self.list_of[element] == list).collect();
        let Some(server) = &mut self.servers[chosen] else { return };
        let reply = server.ask(&["LRANGE", &name(list), "0", "-1"]);
        let asked = Asked::Read { list, is_writer: !server.keeper.roles.follows(), needed };
        server.waiting.push_back(Waiting {
            asked,
            reply,
            depends_on: server.client.depends_on,
            is_strict: self.rng.bool(),
        });
    }

    /// Sends the replies that may be sent.
    fn flush(&mut self, chosen: usize) {
        let Some(server) = &mut self.servers[chosen] else { return };
        if server.waiting.iter().any(|waiting| waiting.is_strict) {
            server.keeper.request_sync();
        }
        while let Some(first) = server.waiting.front() {
            let progress = server.keeper.write_up_to(first.depends_on);
            match progress.gate(first.depends_on, first.is_strict) {
                ReplyGate::Hold => return,
                ReplyGate::Drop => {
                    server.waiting.clear();
                    server.engine.clients.kill(&server.client.handle.clone());
                    server.client = connect(&server.engine);
                }
                ReplyGate::Send => {
                    let Waiting { asked, reply, .. } = server.waiting.pop_front().expect("it is there");
                    match asked {
                        Asked::Append(element) if reply.starts_with(':') => {
                            self.acknowledged.insert(element);
                        }
                        Asked::Append(_) => {}
                        Asked::Read { .. } if reply.starts_with('-') => {}
                        Asked::Read { list, is_writer, needed } => {
                            let found = elements(&reply);
                            if is_writer {
                                let missing = needed.iter().find(|element| !found.contains(element));
                                assert_eq!(
                                    missing, None,
                                    "server {chosen} reads {found:?} and not what was acknowledged"
                                );
                            }
                            self.seen_prefixes.push((list, found));
                        }
                    }
                }
            }
        }
    }

    /// kill -9: what was not sent to the log is lost, and so are its connections.
    fn kill(&mut self, chosen: usize) {
        self.servers[chosen] = None;
    }

    fn start(&mut self, chosen: usize) {
        if self.servers[chosen].is_none() {
            self.servers[chosen] = Some(Server::start(self.place.join(), &self.settings));
        }
    }

    /// The writer hands over to another server, which may come too late, or not at all.
    fn hand_over(&mut self, to: usize) {
        let Some(from) = self.servers.iter_mut().flatten().find(|server| server.writes() && server.stopped_for == 0)
        else {
            return;
        };
        let (answer, answered) = mpsc::channel();
        from.keeper.roles.give(Order::HandOver { answer });
        from.turn();
        if matches!(answered.try_recv(), Ok(Ok(_)))
            && let Some(server) = &self.servers[to]
        {
            server.keeper.roles.give(Order::TakeBack);
        }
    }

    /// Everything works again, and one server writes.
    fn come_to_rest(&mut self) {
        self.place.set_faults(0, Faults::default());
        self.place.come_back();
        (0..SERVERS).for_each(|number| self.start(number));
        self.servers.iter_mut().flatten().for_each(|server| server.stopped_for = 0);
        for round in 0..ROUNDS_MAX {
            self.place.tick();
            for number in 0..SERVERS {
                self.flush(number);
                let server = self.servers[number].as_mut().expect("all run");
                if server.writes() && server.keeper.state() != JournalState::Sound {
                    server.keeper.follow_appendonly();
                    snapshot_thread::step(&server.keeper, &server.engine);
                }
                server.turn();
            }
            let writers = self.servers.iter().flatten().filter(|server| server.writes()).count();
            if writers == 0 && round % 50 == 49 {
                let first = self.servers[0].as_ref().expect("all run");
                first.keeper.roles.request(RoleChange::Promote).expect("it can be asked for");
            }
            if self.is_at_rest() {
                return;
            }
        }
        panic!("the servers do not come to rest");
    }

    fn is_at_rest(&self) -> bool {
        let mut servers = self.servers.iter().flatten();
        let Some(writer) = servers.clone().find(|server| server.writes()) else { return false };
        let tail = writer.keeper.tail();
        let has_all = |server: &Server| match &server.next {
            Some(Next::Write) => std::ptr::eq(server, writer) && server.keeper.state() == JournalState::Sound,
            Some(Next::Follow(follower)) => follower.reached().0 == tail,
            Some(Next::Reload) | None => false,
        };
        self.place.reached().0 == tail && servers.all(|server| has_all(server) && server.waiting.is_empty())
    }

    fn check(&mut self) {
        let lists = |server: &mut Server| (0..LISTS).map(|list| server.list(list)).collect::<Vec<_>>();
        let all: Vec<Vec<Vec<u64>>> = self.servers.iter_mut().flatten().map(lists).collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "the servers differ: {all:?}");
        let found = &all[0];
        for element in &self.acknowledged {
            let list = self.list_of[element];
            let times = found[list].iter().filter(|known| *known == element).count();
            assert_eq!(times, 1, "{element} was acknowledged and is {times} times in list {list}: {:?}", found[list]);
        }
        for element in &self.refused {
            assert!(!found[self.list_of[element]].contains(element), "{element} was refused and is there");
        }
        for (list, elements) in found.iter().enumerate() {
            let distinct: BTreeSet<&u64> = elements.iter().collect();
            assert_eq!(distinct.len(), elements.len(), "an element is twice in list {list}: {elements:?}");
        }
        for (list, prefix) in &self.seen_prefixes {
            assert!(found[*list].starts_with(prefix), "list {list} was {prefix:?} and is {:?}", found[*list]);
        }
    }
}

struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("run it again with HOLDFAST_TEST_SEED={}", self.0);
        }
    }
}

fn simulate(seed: u64, settings: &Arc<Settings>) -> usize {
    let _named = SeedOnPanic(seed);
    World::new(seed, settings).run()
}

#[test]
fn servers_that_share_a_log_keep_their_promises_whatever_happens() {
    let settings = Arc::new(Settings::new());
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("it is a number"));
    if let Some(seed) = number("HOLDFAST_TEST_SEED") {
        simulate(seed, &settings);
        return;
    }
    let (first, count) = (fastrand::u64(..1 << 32), number("HOLDFAST_TEST_ROUNDS").unwrap_or(SIMULATIONS));
    let promotions: usize = (first..first + count).map(|seed| simulate(seed, &settings)).sum();
    println!("{promotions} promotions in {count} simulations");
    assert!(promotions as u64 > 2 * count, "it shows nothing: {promotions}");
}
