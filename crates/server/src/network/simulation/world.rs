//! The scheduler of a simulation: two workers, clients, a journal in memory, and an operator that disturbs them. Random
//! numbers choose every step, one after the other, on one thread. Refuses to know the contents of replies.

use super::client::{LONG_BYTES, LONG_KEY, Menu, QUEUE, SimulatedClient};
use super::stream::{self, SimulatedClock, SimulatedStream};
use crate::durability::Keeper;
use crate::network::balance::AtWork;
use crate::network::connection::{Connection, Moving};
use crate::network::local::Local;
use crate::network::team::{Handshakes, Member, Team};
use crate::network::worker::{check_connections, give_surplus_away};
use crate::test_host::IdleHost;
use engine::clients::Unblock;
use engine::clients::pause::PauseMode;
use engine::{Client, ClientHandle, Engine, Flow, Settings, Worker};
use fastrand::Rng;
use journal::{Epoch, Failure, MemoryLog};
use parking_lot::Mutex;
use resp::OwnedRequest;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

const WORKERS: usize = 2;
/// Metrics of the workers, the operator, the script thread, and of scripts that have left their workers.
const METRICS: usize = 2 * WORKERS + 2;
/// The longest pause.
const PAUSE_MS_MAX: u64 = 200;
/// More steps than any simulation needs to come to rest.
const SETTLE_STEPS_MAX: usize = 1_000_000;

/// What may happen in a simulation.
#[derive(Default)]
struct Disturbances {
    half_close: bool,
    reset: bool,
    pause: bool,
    kill: bool,
    moves: bool,
    hold: bool,
    journal_fails: bool,
    stop: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Connection(usize),
    Flusher(usize),
    TurnGranter(usize),
}

/// Notes that a task is to run.
struct Bell {
    task: Task,
    woken: Arc<Mutex<BTreeSet<Task>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.lock().insert(self.task);
    }
}

/// A connection as a task of a worker. After a move it is another task.
struct Running {
    worker: usize,
    client: usize,
    connection: Connection<SimulatedStream>,
    waker: Waker,
}

/// A connection between two workers.
struct Underway {
    to: usize,
    client: usize,
    moving: Moving<SimulatedStream>,
}

pub(super) struct World {
    rng: Rng,
    disturbances: Disturbances,
    pub(super) engine: Arc<Engine>,
    pub(super) log: MemoryLog,
    team: Arc<Team>,
    workers: Vec<Local<SimulatedStream>>,
    pub(super) clients: Vec<SimulatedClient>,
    /// The clients' handles in the engine.
    handles: Vec<Option<Arc<ClientHandle>>>,
    /// A task keeps its number when it ends.
    tasks: Vec<Option<Running>>,
    underway: Vec<Underway>,
    woken: Arc<Mutex<BTreeSet<Task>>>,
    /// Workers that are granting turns.
    in_round: [bool; WORKERS],
    operator: (Worker, Client),
    script_worker: Worker,
    /// Clients wait for elements, and run scripts.
    has_waits: bool,
    has_scripts: bool,
    pushed: u64,
    journal_failed: bool,
    is_stopping: bool,
}

impl World {
    /// The world of a random simulation.
    pub(super) fn new(seed: u64, settings: &Arc<Settings>) -> World {
        let mut rng = Rng::with_seed(seed);
        stream::begin_time([0, 1_000, 20_000, 300_000][rng.usize(..4)]);
        let has_limit = rng.u8(..8) == 0;
        let set = |name: &str, value: &str| settings.load(name.as_bytes(), value.as_bytes()).expect("a valid setting");
        set("appendonly", if rng.u8(..4) > 0 { "yes" } else { "no" });
        set("appendfsync", if rng.bool() { "always" } else { "everysec" });
        set("client-output-buffer-limit", if has_limit { "normal 200000 100000 1" } else { "normal 0 0 0" });
        let disturbances = Disturbances {
            half_close: rng.u8(..3) == 0,
            reset: rng.u8(..4) == 0,
            pause: rng.u8(..4) == 0,
            kill: rng.u8(..5) == 0,
            moves: rng.bool(),
            hold: rng.bool(),
            journal_fails: rng.u8(..12) == 0,
            stop: rng.u8(..3) == 0,
        };
        let menu = Menu {
            waits: rng.bool(),
            long: has_limit || rng.u8(..8) == 0,
            messages: rng.u8(..3) == 0,
            scripts: rng.u8(..3) == 0,
            closes: rng.u8(..4) == 0,
        };
        let mut world = World::empty(rng, disturbances, settings);
        (world.has_waits, world.has_scripts) = (menu.waits, menu.scripts);
        if menu.long {
            world.ask(&["SET", LONG_KEY, &"x".repeat(LONG_BYTES)]);
        }
        // Not byte by byte where replies are long: that is slow, and finds no more bugs.
        let windows: &[usize] = if menu.long { &[5_000, 100_000, usize::MAX] } else { &[1, 7, 64, 1_000] };
        for number in 0..world.rng.usize(1..5) {
            let window = windows[world.rng.usize(..windows.len())];
            let mut client = SimulatedClient::random(number, window, &mut world.rng, menu);
            client.trouble.is_cut = has_limit;
            world.connect(client);
        }
        world
    }

    /// A world without random events, with clients that send these requests and get these replies.
    pub(super) fn still(tick_ns: u64, clients: &[&[(&[&str], &str)]]) -> World {
        stream::begin_time(tick_ns);
        let settings = Settings::new();
        settings.load(b"appendfsync", b"always").expect("a valid setting");
        let mut world = World::empty(Rng::with_seed(0), Disturbances::default(), &Arc::new(settings));
        clients.iter().for_each(|requests| world.connect(SimulatedClient::asking(requests)));
        world
    }

    fn empty(rng: Rng, disturbances: Disturbances, settings: &Arc<Settings>) -> World {
        let keeper = Arc::new(Keeper::new(settings.clone(), WORKERS, 0));
        let engine =
            engine::with_all_commands(settings.clone(), Arc::new(IdleHost), Arc::new(SimulatedClock), 4, METRICS);
        let engine = Arc::new(engine.with_persistence(keeper.clone()));
        let log = MemoryLog::new(Epoch(1));
        keeper.open(Arc::downgrade(&engine), log.opened());
        engine::begin_serving_scripts(&engine, WORKERS + 2..METRICS);
        let script_worker = engine.worker(WORKERS + 1);
        let member = || Member {
            arrivals: tokio::sync::mpsc::unbounded_channel().0,
            connections: Arc::default(),
            busy: AtomicUsize::new(0),
        };
        let team = Arc::new(Team {
            members: (0..WORKERS).map(|_| member()).collect(),
            at_work: AtWork::new(),
            handshakes: Handshakes::new().0,
        });
        let handle = ClientHandle::new(0, "operator".into(), String::new(), 0, 0, Box::new(|| {}));
        let operator = (engine.worker(WORKERS), Client::new(Arc::new(handle), true));
        let workers = (0..WORKERS).map(|index| Local::new(&engine, &keeper, &team, index)).collect();
        let woken = (0..WORKERS).flat_map(|worker| [Task::Flusher(worker), Task::TurnGranter(worker)]).collect();
        World {
            rng,
            disturbances,
            engine,
            log,
            team,
            workers,
            clients: Vec::new(),
            handles: Vec::new(),
            tasks: Vec::new(),
            underway: Vec::new(),
            woken: Arc::new(Mutex::new(woken)),
            in_round: [false; WORKERS],
            operator,
            script_worker,
            has_waits: false,
            has_scripts: false,
            pushed: 0,
            journal_failed: false,
            is_stopping: false,
        }
    }

    fn connect(&mut self, client: SimulatedClient) {
        let number = self.clients.len();
        let address = ([127, 0, 0, 1], number as u16 + 1).into();
        let connection = Connection::new(SimulatedStream(client.pipe.clone()), address);
        self.clients.push(client);
        self.handles.push(None);
        let worker = self.rng.usize(..WORKERS);
        self.spawn(worker, number, connection);
    }

    /// Runs the simulation, and checks the final state.
    pub(super) fn run(mut self) {
        for _ in 0..self.rng.usize(20..800) {
            self.step();
        }
        self.log.set_syncs(true);
        self.settle();
        for index in 0..self.clients.len() {
            self.check_client(index);
        }
        self.check_elements();
        self.check_rest();
        self.clients.iter_mut().for_each(SimulatedClient::half_close);
        self.settle();
        self.check_end();
    }

    /// Executes a request of the operator.
    fn ask(&mut self, words: &[&str]) -> String {
        let request: OwnedRequest = words.iter().map(|word| word.as_bytes()).collect();
        let (worker, client) = &mut self.operator;
        let mut reply = Vec::new();
        self.engine.begin(worker);
        let flow = engine::execute(&self.engine, worker, client, request.as_request(), &mut reply);
        assert!(matches!(flow, Flow::Continue), "the operator does not wait");
        String::from_utf8(reply).expect("a reply is text")
    }

    fn count_of(&mut self, client: usize) -> u64 {
        let reply = self.ask(&["INCRBY", &self.clients[client].counter.clone(), "0"]);
        reply[1..].trim_end().parse().expect("a count")
    }

    fn spawn(&mut self, worker: usize, client: usize, connection: Connection<SimulatedStream>) {
        let task = Task::Connection(self.tasks.len());
        let waker = Waker::from(Arc::new(Bell { task, woken: self.woken.clone() }));
        waker.wake_by_ref();
        self.tasks.push(Some(Running { worker, client, connection, waker }));
        self.team.members[worker].connections.fetch_add(1, Relaxed);
    }

    /// Runs a task.
    fn run_task(&mut self, task: Task) {
        self.woken.lock().remove(&task);
        let waker = |woken: &Arc<Mutex<BTreeSet<Task>>>| Waker::from(Arc::new(Bell { task, woken: woken.clone() }));
        match task {
            Task::Flusher(worker) => self.workers[worker].end_tick(&waker(&self.woken)),
            Task::TurnGranter(worker) if self.in_round[worker] => {
                self.in_round[worker] = self.workers[worker].grant_turn();
                self.woken.lock().insert(task);
            }
            Task::TurnGranter(worker) => {
                let turns = &mut self.workers[worker].turns;
                if turns.poll_wanted(&mut Context::from_waker(&waker(&self.woken))).is_ready() {
                    turns.begin_round();
                    self.in_round[worker] = true;
                    self.woken.lock().insert(task);
                }
            }
            Task::Connection(number) => self.run_connection(number),
        }
    }

    fn run_connection(&mut self, number: usize) {
        let Some(running) = &mut self.tasks[number] else { return };
        let (worker, client) = (running.worker, running.client);
        let local = &mut self.workers[worker];
        // A script that runs on another thread has the client until it ends.
        let may_run_script = running.connection.may_run_script(local);
        let polled = running.connection.poll(local, &mut Context::from_waker(&running.waker));
        if polled.is_ready() {
            running.connection.end(local);
        }
        if self.handles[client].is_none() {
            let address = format!("127.0.0.1:{}", client + 1);
            let mut handles = self.engine.clients.all().into_iter();
            self.handles[client] = handles.find(|handle| *handle.address == *address);
        }
        if let Poll::Ready(moving) = polled {
            self.tasks[number] = None;
            self.team.members[worker].connections.fetch_sub(1, Relaxed);
            match moving {
                Some(moving) => {
                    let to = self.rng.usize(..WORKERS);
                    self.underway.push(Underway { to, client, moving });
                }
                None if may_run_script => {}
                None => self.check_forgotten(client),
            }
        }
    }

    fn arrive(&mut self, index: usize) {
        let Underway { to, client, moving } = self.underway.swap_remove(index);
        let connection = moving.arrive(&mut self.workers[to]).expect("a simulated stream can be moved");
        self.spawn(to, client, connection);
    }

    /// True when a request of the operator is executed at once.
    fn may_ask(&self) -> bool {
        !self.is_paused() && !self.journal_failed && self.engine.scripting.long.kind().is_none()
    }

    /// Continues a script that has left its worker, or starts one on the script thread. False when there is none.
    fn run_script(&mut self) -> bool {
        if engine::try_serve_detached(&self.engine) {
            return true;
        }
        // The script thread would wait for the end of the pause.
        !self.is_paused() && engine::try_serve_script(&self.engine, &mut self.script_worker)
    }

    fn is_paused(&self) -> bool {
        self.engine.pause.is_on(self.engine.clock.monotonic_ms())
    }

    /// Makes one random event happen.
    fn step(&mut self) {
        stream::pass_time(0);
        let client = self.rng.usize(..self.clients.len());
        let worker = self.rng.usize(..WORKERS);
        match self.rng.u8(..100) {
            0..=44 => self.run_some_task(),
            45..=59 => {
                let left = self.clients[client].left();
                let len = self.some_of(left);
                self.clients[client].send(len);
            }
            60..=74 => {
                let waiting = self.clients[client].pipe.borrow().to_client.len();
                let len = self.some_of(waiting);
                self.clients[client].read(len);
            }
            75 | 76 => {
                self.run_script();
            }
            77..=79 if !self.underway.is_empty() => {
                let index = self.rng.usize(..self.underway.len());
                self.arrive(index);
            }
            80..=82 if self.disturbances.moves => {
                self.team.at_work.set(self.rng.usize(1..=WORKERS));
                give_surplus_away(&mut self.workers[worker]);
            }
            83 if self.disturbances.half_close && self.rng.u8(..4) == 0 => self.clients[client].half_close(),
            84 if self.disturbances.reset && self.rng.u8(..8) == 0 => self.clients[client].reset(),
            85 if self.disturbances.pause => self.pause(),
            86 if self.disturbances.pause => self.engine.pause.end(),
            87 if self.disturbances.kill && self.rng.u8(..6) == 0 => self.kill(client),
            88 => {
                let how = if self.rng.bool() { Unblock::Timeout } else { Unblock::Error };
                self.handles[client].as_ref().map(|handle| handle.unblock(how));
            }
            89 | 90 if self.disturbances.hold => self.log.set_syncs(self.rng.bool()),
            91 if self.disturbances.journal_fails && self.rng.u8(..8) == 0 => self.fail_journal(),
            92 => check_connections(&mut self.workers[worker]),
            93 | 94 => stream::pass_time(self.rng.u64(..50_000_000)),
            95 => {
                stream::pass_time_to_next_timer();
            }
            96 if self.may_ask() => {
                self.pushed += 1;
                let element = format!("operator.{}", self.pushed);
                self.ask(&["RPUSH", QUEUE, &element]);
            }
            97 if self.disturbances.stop && self.rng.u8(..8) == 0 => self.stop(),
            _ => {}
        }
    }

    /// A random part of `len`, often all.
    fn some_of(&mut self, len: usize) -> usize {
        match self.rng.u8(..3) {
            0 => len,
            1 => self.rng.usize(..=len),
            _ => self.rng.usize(..=len.min(20)),
        }
    }

    /// Runs one of the tasks that were woken.
    fn run_some_task(&mut self) {
        let woken = self.woken.lock();
        if woken.is_empty() {
            return;
        }
        let task = *woken.iter().nth(self.rng.usize(..woken.len())).expect("there are so many");
        drop(woken);
        self.run_task(task);
    }

    fn pause(&mut self) {
        let (now_ms, mode) =
            (self.engine.clock.monotonic_ms(), [PauseMode::All, PauseMode::Writes][self.rng.usize(..2)]);
        self.engine.pause.begin(now_ms, now_ms + self.rng.u64(1..PAUSE_MS_MAX), mode);
        self.clients.iter_mut().for_each(|client| client.trouble.was_paused = true);
    }

    pub(super) fn kill(&mut self, client: usize) {
        let Some(handle) = self.handles[client].clone() else { return };
        self.engine.clients.kill(&handle);
        if self.may_ask() && self.clients[client].trouble.counted_at_kill.is_none() {
            self.clients[client].trouble.counted_at_kill = Some(self.count_of(client));
        }
        self.clients[client].trouble.is_cut = true;
    }

    fn fail_journal(&mut self) {
        self.log.fail(Failure::Closed);
        self.journal_failed = true;
        self.clients.iter_mut().for_each(|client| client.trouble.journal_failed = true);
    }

    pub(super) fn stop(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            let has_scripts = self.has_scripts && self.clients.len() > 1;
            self.clients.iter_mut().for_each(|client| client.trouble.stopped_with_scripts = has_scripts);
            self.workers.iter_mut().for_each(Local::begin_stopping);
            self.clients.iter_mut().for_each(SimulatedClient::note_stop);
        }
    }

    /// Runs connections, and grants them turns, until none is woken. Nothing is sent, and no time passes.
    pub(super) fn run_connections(&mut self) {
        loop {
            let is_flusher = |task: &&Task| matches!(task, Task::Flusher(_));
            let Some(task) = self.woken.lock().iter().find(|task| !is_flusher(task)).copied() else { return };
            self.run_task(task);
        }
    }

    /// Ends the tick of all workers.
    pub(super) fn end_tick(&mut self) {
        (0..WORKERS).for_each(|worker| self.run_task(Task::Flusher(worker)));
    }

    /// Runs tasks until none is woken. No time passes.
    pub(super) fn run_woken(&mut self) {
        while !self.woken.lock().is_empty() {
            self.run_some_task();
        }
    }

    /// Continues until nothing more happens, while clients send and read everything.
    pub(super) fn settle(&mut self) {
        for _ in 0..SETTLE_STEPS_MAX {
            stream::pass_time(0);
            if !self.woken.lock().is_empty() {
                self.run_some_task();
            } else if !self.underway.is_empty() {
                self.arrive(0);
            } else if !self.run_script() && !self.exchange() && !stream::pass_time_to_next_timer() {
                if !self.is_paused() {
                    return;
                }
                stream::pass_time(PAUSE_MS_MAX * 1_000_000);
            }
        }
        panic!("it never comes to rest");
    }

    /// Lets clients send and read everything. False when there is nothing.
    fn exchange(&mut self) -> bool {
        let mut any = false;
        for client in &mut self.clients {
            let (left, waiting) = (client.left(), client.pipe.borrow().to_client.len());
            any |= left > 0 || waiting > 0;
            client.send_all();
            client.read(waiting);
        }
        any
    }

    fn check_client(&mut self, index: usize) {
        // After a failure the count is unknown: it may not be stored.
        let count = (!self.journal_failed).then(|| self.count_of(index));
        self.clients[index].check_end(count, self.is_stopping);
    }

    /// Checks that every element was taken at most once, and is removed.
    fn check_elements(&mut self) {
        let left = self.ask(&["LRANGE", QUEUE, "0", "-1"]);
        let mut seen: BTreeSet<&str> = left.split("\r\n").filter(|line| line.contains('.')).collect();
        for element in self.clients.iter().flat_map(|client| &client.elements) {
            assert!(seen.insert(element), "{element} was taken twice, or is still there");
        }
    }

    /// Checks that nothing else refers to a client whose connection has ended. A client that disconnected before it was
    /// served has no handle.
    fn check_forgotten(&self, client: usize) {
        // A client that cannot leave its queue because a script holds the lock leaves it later.
        engine::tick(&self.engine);
        if self.has_waits && self.engine.scripting.long.kind().is_some() {
            return;
        }
        let holders = self.handles[client].as_ref().map_or(1, Arc::strong_count);
        assert_eq!(holders, 1, "client {client} is not forgotten");
    }

    /// Checks that idle connections have no buffers.
    fn check_rest(&self) {
        for (_, socket) in self.workers.iter().flat_map(|worker| &worker.sockets) {
            assert!(socket.is_at_rest(), "client {} has buffers", socket.handle.id);
        }
    }

    /// Checks that no state of any connection is left.
    fn check_end(self) {
        for worker in &self.workers {
            assert!(worker.is_at_rest(), "a worker has something left of a connection");
        }
        assert_eq!(self.engine.clients.len(), 0);
        (0..self.clients.len()).for_each(|client| self.check_forgotten(client));
        assert!(self.clients.iter().all(|client| client.pipe.borrow().is_closed));
    }
}
