//! A server of the simulation: a real engine, keeper and role thread over a simulated stream, and a client without a
//! socket. Refuses to know what is asked for and what must hold.

use super::super::keeper::Keeper;
use super::super::load::Indexes;
use super::super::role_thread::{Next, Patience, RoleThread};
use super::super::snapshot_thread;
use super::checks::Asked;
use crate::config::ConfiguredIndexes;
use crate::platform::clock::LogTime;
use crate::test_host::IdleHost;
use engine::persistence::SnapshotReason;
use engine::persistence::journal_state::JournalState;
use engine::{Client, ClientHandle, Engine, Flow, Persistence, Settings, Worker};
use jetstream::simulation::{Crash, SimulatedObjects, SimulatedStream, World};
use jetstream::{LogId, Membership, StreamPlace, Timing};
use resp::OwnedRequest;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// The clock of a machine, within the bounds of the log.
pub(super) struct SimulatedClock {
    world: Arc<World>,
    machine: usize,
    log: LogTime,
    /// Breaks a rule: the time of a new writer is its own.
    ignores_floor: bool,
}

impl SimulatedClock {
    /// The time that the engine sees.
    pub(super) fn unix_ms(&self) -> u64 {
        engine::Clock::unix_us(self) / 1000
    }
}

impl engine::Clock for SimulatedClock {
    fn unix_us(&self) -> u64 {
        self.log.unix_us(self.world.calendar_ms(self.machine) * 1000, self.monotonic_ns())
    }

    fn monotonic_ns(&self) -> u64 {
        self.world.clock_ns(self.machine)
    }
}

impl jetstream::Time for SimulatedClock {
    fn now_ms(&self) -> u64 {
        let unix_us = engine::Clock::unix_us(self);
        self.log.say(unix_us, engine::Clock::monotonic_ns(self));
        unix_us / 1000
    }

    fn own_ms(&self) -> u64 {
        self.world.calendar_ms(self.machine)
    }

    fn follow(&self, time_ms: u64) {
        self.log.follow(time_ms);
    }

    fn begin(&self, floor_ms: u64, ceiling_ms: u64) {
        let floor_ms = if self.ignores_floor { self.own_ms() } else { floor_ms };
        self.log.begin(engine::Clock::monotonic_ns(self), floor_ms, ceiling_ms);
    }

    fn allow(&self, ceiling_ms: u64) {
        self.log.allow(ceiling_ms);
    }
}

/// A reply that waits for the journal.
pub(super) struct Waiting {
    pub(super) asked: Asked,
    pub(super) reply: String,
    pub(super) depends_on: u64,
    /// The epoch in which it was made, by a server that writes.
    pub(super) epoch: Option<u32>,
    /// With `reads confirmed`: the mark that was appended after it was made.
    pub(super) confirmed_by: Option<u64>,
}

/// What the threads of clients use.
pub(super) struct Connected {
    worker: Worker,
    client: Client,
    pub(super) waiting: VecDeque<Waiting>,
}

/// One life of a server.
pub(super) struct Server {
    pub(super) machine: usize,
    pub(super) life: u64,
    pub(super) engine: Arc<Engine>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) clock: Arc<SimulatedClock>,
    pub(super) place: Arc<StreamPlace>,
    thread: RoleThread,
    pub(super) next: RefCell<Option<Next>>,
    /// Its role thread, or the one that takes snapshots, waits for the log.
    pub(super) is_busy: Cell<bool>,
    /// One connection for changes, whose replies wait for the log, and one for reads.
    pub(super) connections: [RefCell<Connected>; 2],
}

/// How a server is made.
pub(super) struct Making<'a> {
    pub(super) world: &'a Arc<World>,
    pub(super) settings: &'a Arc<Settings>,
    pub(super) member: String,
    pub(super) life: u64,
    pub(super) ignores_floor: bool,
}

impl Server {
    pub(super) fn start(machine: usize, making: &Making<'_>) -> Server {
        let Making { world, settings, member, life, ignores_floor } = making;
        let stream = SimulatedStream::begin(world, machine);
        let clock =
            SimulatedClock { world: (*world).clone(), machine, log: LogTime::default(), ignores_floor: *ignores_floor };
        let clock = Arc::new(clock);
        let membership = Membership {
            known: None,
            skip: Default::default(),
            name: "nats://simulated/log".into(),
            log: LogId(1),
            partition: 0,
            member: member.clone(),
            address: "127.0.0.1 6379".into(),
            timing: Timing::DEFAULT,
        };
        let place =
            Arc::new(StreamPlace::new(membership, stream.clone(), SimulatedObjects::of(&stream), clock.clone()));
        let keeper = Arc::new(Keeper::new((*settings).clone(), 1, 0));
        // No thread of its own: the simulation takes its steps, without rests.
        keeper.snapshots.has_thread.store(true, Relaxed);
        keeper.snapshots.is_urgent.store(true, Relaxed);
        let engine = engine::with_all_commands((*settings).clone(), Arc::new(IdleHost), clock.clone(), 4, 3);
        let engine = Arc::new(engine.with_persistence(keeper.clone()));
        engine::begin_serving_scripts(&engine, 2..3);
        let thread = RoleThread {
            place: place.clone(),
            keeper: keeper.clone(),
            engine: engine.clone(),
            indexes: Indexes { configured: ConfiguredIndexes::none(), swept: Vec::new() },
            metrics: 1,
            threads: 1,
            reloaded_at: Default::default(),
            has_dropped_clients: Default::default(),
            promotion: Default::default(),
        };
        engine::begin_following(&engine);
        keeper.roles.set_follows(true);
        keeper.begin_following(Arc::downgrade(&engine));
        let connection = || {
            let (worker, client) = (engine.worker(0), connect(&engine));
            RefCell::new(Connected { worker, client, waiting: VecDeque::new() })
        };
        let connections = [connection(), connection()];
        Server {
            machine,
            life: *life,
            engine,
            keeper,
            clock,
            place,
            thread,
            next: RefCell::new(Some(Next::Reload)),
            is_busy: Cell::new(false),
            connections,
        }
    }

    pub(super) fn follows(&self) -> bool {
        self.keeper.roles.follows()
    }

    /// The epoch in which it writes.
    pub(super) fn epoch(&self) -> Option<u32> {
        self.keeper.journal().map(|journal| journal.epoch().0)
    }

    /// One step of the thread that changes roles. It may wait, and be killed while it does.
    pub(super) fn turn(&self) {
        self.run(|| {
            // A change of role waits for the thread that takes snapshots.
            while self.keeper.snapshots.is_running() {
                snapshot_thread::step(&self.keeper, &self.engine);
            }
            let next = self.next.borrow_mut().take().expect("it has a role");
            let next = self.thread.turn(next, Patience::None);
            *self.next.borrow_mut() = Some(next);
        });
    }

    pub(super) fn take_snapshot(&self) {
        self.run(|| {
            if self.keeper.begin_snapshot(SnapshotReason::Save).is_ok() {
                snapshot_thread::step(&self.keeper, &self.engine);
            }
        });
    }

    fn run(&self, step: impl FnOnce()) {
        self.is_busy.set(true);
        match catch_unwind(AssertUnwindSafe(step)) {
            // It stays busy: it was killed.
            Err(payload) if payload.is::<Crash>() => {}
            Err(payload) => resume_unwind(payload),
            Ok(()) => self.is_busy.set(false),
        }
    }

    fn ask_now(&self, connected: &mut Connected, words: &[&str]) -> String {
        if connected.client.handle.is_killed() {
            // Its connection was closed, with what was still to be sent.
            connected.waiting.clear();
            connected.client = connect(&self.engine);
        }
        let request: OwnedRequest = words.iter().map(|word| word.as_bytes()).collect();
        let mut reply = Vec::new();
        self.engine.begin(&mut connected.worker);
        let Connected { worker, client, .. } = connected;
        let flow = engine::execute(&self.engine, worker, client, request.as_request(), &mut reply);
        let reply = String::from_utf8(reply).expect("a reply is text");
        match flow {
            Flow::Continue | Flow::Close => reply,
            // While data is loaded, or the time stands still. The client gives up: it was not executed.
            Flow::Paused(_) => "-not executed\r\n".into(),
            _ => panic!("no request waits here: {words:?} {reply}"),
        }
    }

    /// Asks for something, and ignores whether the reply may be sent, and whether the time goes on.
    pub(super) fn look(&self, words: &[&str]) -> String {
        // It is noted again with the next step of the log.
        engine::set_standing(&self.engine, false);
        self.ask_now(&mut self.connections[0].borrow_mut(), words)
    }

    /// Executes a request. An error if it was refused.
    pub(super) fn ask(&self, asked: Asked, words: &[&str]) -> Result<(), Asked> {
        let mut connected = self.connections[usize::from(!asked.is_change())].borrow_mut();
        let reply = self.ask_now(&mut connected, words);
        if reply.starts_with('-') {
            return Err(asked);
        }
        let (depends_on, epoch) = (connected.client.depends_on, self.epoch());
        connected.waiting.push_back(Waiting { asked, reply, depends_on, epoch, confirmed_by: None });
        Ok(())
    }

    /// Closes the connection.
    pub(super) fn disconnect(&self, connected: &mut Connected) {
        connected.waiting.clear();
        self.engine.clients.kill(&connected.client.handle.clone());
        connected.client = connect(&self.engine);
    }

    pub(super) fn is_killed(connected: &Connected) -> bool {
        connected.client.handle.is_killed()
    }

    /// The last batch that it has, if it is sound.
    pub(super) fn reached(&self) -> Option<u64> {
        match &*self.next.borrow() {
            Some(Next::Write) => (self.keeper.state() == JournalState::Sound).then(|| self.keeper.tail()),
            Some(Next::Follow(follower)) => Some(follower.reached().0),
            Some(Next::Reload) | None => None,
        }
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
