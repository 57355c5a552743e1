//! One simulation: what happens next is chosen by random numbers. Knows servers, clients and faults; what may be answered
//! is decided in `checks`.

use super::super::progress::ReplyGate;
use super::super::roles::Order;
use super::checks::{Asked, Checks, LISTS, elements};
use super::server::{Connected, Making, Server};
use engine::Settings;
use fastrand::Rng;
use jetstream::Timing;
use jetstream::simulation::{Faults, Mutation, World, break_rule};
use journal::LogPlace;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;

const SERVERS: usize = 3;
/// So small that a batch of a few elements needs several frames.
const MESSAGE_MAX: usize = 300;
/// More steps than any simulation needs to come to rest.
const REST_STEPS_MAX: usize = 20_000;

/// A rule that is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    Protocol(Mutation),
    /// A reply is sent whether or not there is a lease.
    NoLease,
    /// A frame counts as stored when it is sent.
    AcknowledgedWhenSent,
    /// All attempts to take over have the same nonce.
    FixedNonce,
    /// The time of a new writer is its own.
    TimeIgnoresCeiling,
}

/// What a simulation has more of than of anything else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Focus {
    /// Clocks that err as much as they may, and writers that stop to hear before they are cut off.
    Lease,
    /// Keys that expire, calendars that differ, and changes of the writer.
    Expiry,
}

/// How one simulation differs from the next.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) steps: usize,
    pub(super) broken: Option<Broken>,
    /// Members cannot be told apart by name.
    pub(super) are_alike: bool,
    /// With `reads confirmed` no clock is trusted.
    pub(super) confirms_reads: bool,
    pub(super) faults: Faults,
    pub(super) focus: Option<Focus>,
    /// Prints what happens.
    pub(super) is_traced: bool,
}

impl Plan {
    pub(super) fn of(seed: u64, steps: usize) -> Plan {
        let mut rng = Rng::with_seed(seed ^ 0x9e37_79b9_7f4a_7c15);
        let mut some = |max: u16| if rng.bool() { rng.u16(..max) } else { 0 };
        let faults = Faults {
            lost: some(200),
            delayed: some(200),
            repeated: some(200),
            refused: some(60),
            followed_again: some(200),
        };
        let (are_alike, confirms_reads) = (rng.u8(..4) == 0, rng.u8(..8) == 0);
        let focus = match rng.u8(..6) {
            0 => Some(Focus::Lease),
            1 => Some(Focus::Expiry),
            _ => None,
        };
        Plan { seed, steps, broken: None, are_alike, confirms_reads, faults, focus, is_traced: false }
    }

    /// How much clocks err: a lease is safe up to a twentieth, a confirmed read always.
    fn rate_ppm_max(&self) -> i64 {
        if self.confirms_reads { 400_000 } else { 50_000 }
    }
}

/// How much has happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    pub(super) epochs: usize,
    pub(super) acknowledged: usize,
    pub(super) writer_reads: usize,
    pub(super) snapshots: usize,
    /// Where the stream begins: how much of it was purged.
    pub(super) purged: u64,
    /// The same for the same seed.
    pub(super) fingerprint: u64,
}

struct Simulation {
    rng: RefCell<Rng>,
    plan: Plan,
    settings: Arc<Settings>,
    world: Arc<World>,
    servers: RefCell<Vec<Option<Rc<Server>>>>,
    lives: Cell<u64>,
    checks: RefCell<Checks>,
    steps: Cell<usize>,
    rests: Cell<bool>,
    snapshots: Cell<usize>,
    /// The machine whose network fails, or did last, and until when.
    fails: Cell<Option<usize>>,
    fails_until: Cell<Duration>,
    /// How far any calendar was ever ahead of the time of the simulation.
    ahead_ms: Cell<u64>,
}

thread_local! {
    static RUNNING: RefCell<Option<Rc<Simulation>>> = const { RefCell::new(None) };
}

/// Forgets the simulation of this thread, however it ends.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        break_rule(None);
        RUNNING.take();
    }
}

/// Runs one simulation. Panics if something does not hold.
pub(super) fn simulate(plan: Plan) -> Summary {
    let _ends = Ends;
    let simulation = Rc::new(Simulation::new(plan));
    RUNNING.replace(Some(simulation.clone()));
    simulation.run()
}

/// A thread of the process on a machine waits for the log: everything else goes on.
fn go_on(_machine: usize) {
    let running = RUNNING.with_borrow(|running| running.clone());
    running.expect("a simulation runs").step();
}

impl Simulation {
    fn new(plan: Plan) -> Simulation {
        let mut rng = Rng::with_seed(plan.seed);
        let world = World::new(plan.seed, SERVERS, MESSAGE_MAX);
        world.on_pause(go_on);
        world.set_faults(if plan.focus == Some(Focus::Lease) { Faults::default() } else { plan.faults });
        let settings = Arc::new(Settings::new());
        let rate_max = plan.rate_ppm_max();
        if plan.confirms_reads {
            settings.load(b"reads", b"confirmed").expect("it is a setting");
        }
        for machine in 0..SERVERS {
            let rate_ppm = match plan.focus {
                Some(Focus::Lease) if rng.bool() => rate_max,
                Some(Focus::Lease) => -rate_max,
                _ => rng.i64(-rate_max..=rate_max),
            };
            world.set_clock(machine, rate_ppm, rng.i64(-20_000..20_000));
        }
        match plan.broken {
            Some(Broken::Protocol(mutation)) => break_rule(Some(mutation)),
            Some(Broken::AcknowledgedWhenSent) => world.answer_when_sent(),
            Some(Broken::FixedNonce) => world.fix_nonces(),
            Some(Broken::NoLease | Broken::TimeIgnoresCeiling) | None => {}
        }
        Simulation {
            rng: RefCell::new(rng),
            plan,
            settings,
            world,
            servers: RefCell::new((0..SERVERS).map(|_| None).collect()),
            lives: Cell::new(0),
            checks: RefCell::default(),
            steps: Cell::new(0),
            rests: Cell::new(false),
            snapshots: Cell::new(0),
            fails: Cell::new(None),
            fails_until: Cell::new(Duration::ZERO),
            ahead_ms: Cell::new(0),
        }
    }

    fn run(&self) -> Summary {
        (0..SERVERS).for_each(|machine| self.start(machine));
        while self.steps.get() < self.plan.steps {
            self.step();
        }
        self.come_to_rest();
        self.check_end();
        let checks = self.checks.borrow();
        let extent = self.world.extent();
        Summary {
            epochs: checks.epochs(),
            acknowledged: checks.acknowledged,
            writer_reads: checks.writer_reads,
            snapshots: self.snapshots.get(),
            purged: extent.first - 1,
            fingerprint: self.rng.borrow_mut().u64(..) ^ extent.last ^ self.world.now().as_nanos() as u64,
        }
    }

    fn trace(&self, line: impl FnOnce() -> String) {
        if self.plan.is_traced {
            eprintln!("{:>12.6} {}", self.world.now().as_secs_f64(), line());
        }
    }

    fn random(&self, below: u64) -> u64 {
        self.rng.borrow_mut().u64(..below)
    }

    fn server(&self, machine: usize) -> Option<Rc<Server>> {
        self.servers.borrow()[machine].clone()
    }

    fn running(&self) -> Vec<Rc<Server>> {
        self.servers.borrow().iter().flatten().cloned().collect()
    }

    /// Time passes, one thing happens, and servers go on.
    fn step(&self) {
        self.steps.set(self.steps.get() + 1);
        let moment_ms = if self.random(10) == 0 { 500 } else { 50 };
        self.world.advance(Duration::from_micros(self.random(moment_ms * 1000)));
        self.note_time();
        if !self.rests.get() && self.steps.get() < self.plan.steps {
            self.act();
        }
        for server in self.running() {
            if !self.world.is_stopped(server.machine) {
                if !server.is_busy.get() && self.random(3) > 0 && self.is_there(&server) {
                    let before = (server.epoch(), server.follows());
                    server.turn();
                    if before != (server.epoch(), server.follows()) {
                        self.trace(|| {
                            format!("m{} epoch {:?} follows {}", server.machine, server.epoch(), server.follows())
                        });
                    }
                    self.note_writer(&server);
                }
                if self.is_there(&server) && self.random(2) == 0 {
                    self.flush(&server);
                }
            }
        }
    }

    /// False if it was killed meanwhile.
    fn is_there(&self, server: &Rc<Server>) -> bool {
        self.server(server.machine).is_some_and(|now| Rc::ptr_eq(&now, server))
    }

    fn note_time(&self) {
        let latest_ms = (0..SERVERS).map(|machine| self.world.calendar_ms(machine)).max().unwrap_or(0);
        let now_ms = self.world.now().as_millis() as u64;
        self.ahead_ms.set(self.ahead_ms.get().max(latest_ms.saturating_sub(now_ms)));
    }

    /// No writer judges by a later time: each one begins at most a lease after the one before, and goes on at the rate of
    /// its clock.
    fn latest_ms(&self) -> u64 {
        self.note_time();
        let lease_ms = Timing::DEFAULT.lease.as_millis() as u64;
        let now_ms = self.world.now().as_millis() as u64;
        let drift_ms = now_ms * 2 * self.plan.rate_ppm_max().unsigned_abs() / 1_000_000;
        now_ms + self.ahead_ms.get() + lease_ms * (self.world.epochs() as u64 + 1) + drift_ms
    }

    fn note_writer(&self, server: &Server) {
        if let Some(epoch) = server.epoch() {
            self.checks.borrow_mut().write(epoch, (server.machine, server.life));
            let (now_ms, latest_ms) = (server.clock.unix_ms(), self.latest_ms());
            assert!(now_ms <= latest_ms, "a writer's time is {now_ms}, which is {} ms too late", now_ms - latest_ms);
        }
    }

    /// A machine: often one whose server writes, as it believes.
    fn choose(&self) -> usize {
        let writers: Vec<usize> =
            self.running().iter().filter(|server| !server.follows()).map(|server| server.machine).collect();
        match writers.as_slice() {
            [] => self.random(SERVERS as u64) as usize,
            _ if self.random(3) == 0 => self.random(SERVERS as u64) as usize,
            writers => writers[self.random(writers.len() as u64) as usize],
        }
    }

    fn time(&self, max_ms: u64) -> Duration {
        Duration::from_millis(self.random(max_ms))
    }

    fn act(&self) {
        let machine = self.choose();
        match (self.plan.focus, self.random(100)) {
            (Some(Focus::Lease), 0..4) => self.fail_slowly(machine),
            // What is read on a writer that is cut off must not depend on what it cannot store.
            (Some(Focus::Lease), 4..50) if self.fails.get() != Some(machine) => self.append(machine),
            (Some(Focus::Lease), _) => self.read(machine),
            (Some(Focus::Expiry), 0..4) => self.hand_over(machine),
            (Some(Focus::Expiry), 4..6) => self.act_by(machine, 60),
            (Some(Focus::Expiry), 6..30) => self.set(machine),
            (Some(Focus::Expiry), _) => self.get(self.random(SERVERS as u64) as usize),
            (None, _) => self.act_by(machine, self.random(1000)),
        }
    }

    fn act_by(&self, machine: usize, number: u64) {
        match number {
            0..8 => {
                let (time, from_objects) = (self.time(9000), self.random(2) == 0);
                self.trace(|| format!("m{machine} is cut off for {time:?}"));
                self.world.cut_off(machine, time, from_objects);
            }
            800..808 => self.fail_slowly(machine),
            8..11 => {
                let time = self.time(6000);
                self.trace(|| format!("no leader for {time:?}"));
                self.world.lose_leader(time);
            }
            11..16 => {
                let time = self.time(7000);
                self.trace(|| format!("m{machine} is stopped for {time:?}"));
                self.world.stop(machine, time);
            }
            16..20 => self.kill(machine),
            20..40 => (0..SERVERS).filter(|_| self.random(2) == 0).for_each(|machine| self.start(machine)),
            40..50 => self.hand_over(machine),
            50..60 => self.take_snapshot(machine),
            60..63 => {
                let calendar_ms = self.rng.borrow_mut().i64(-20_000..20_000);
                self.trace(|| format!("m{machine} has its calendar set"));
                self.world.step_calendar(machine, calendar_ms);
            }
            63..330 => self.append(machine),
            330..560 => self.read(machine),
            560..630 => self.set(machine),
            630..740 => self.get(machine),
            _ => {}
        }
    }

    /// The network of a machine fails first in one direction and then in both, unless one fails already.
    fn fail_slowly(&self, machine: usize) {
        if self.world.now() < self.fails_until.get() {
            return;
        }
        let (deaf, works, cut) = (self.time(2900), self.time(400), self.time(9000));
        self.fails_until.set(self.world.now() + deaf + works + cut);
        self.fails.set(Some(machine));
        self.trace(|| format!("m{machine} hears nothing for {deaf:?}, and {works:?} later is cut off for {cut:?}"));
        self.world.fail_slowly(machine, deaf, works, cut);
    }

    fn start(&self, machine: usize) {
        if self.server(machine).is_some() {
            return;
        }
        self.lives.set(self.lives.get() + 1);
        let member = if self.plan.are_alike { "alike".to_owned() } else { format!("m{machine}") };
        let making = Making {
            world: &self.world,
            settings: &self.settings,
            member,
            life: self.lives.get(),
            ignores_floor: self.plan.broken == Some(Broken::TimeIgnoresCeiling),
        };
        let server = Server::start(machine, &making);
        self.servers.borrow_mut()[machine] = Some(Rc::new(server));
    }

    /// kill -9: what was not sent is lost, and so are its connections.
    fn kill(&self, machine: usize) {
        let killed = self.servers.borrow_mut()[machine].take();
        if killed.is_some() {
            self.trace(|| format!("m{machine} is killed"));
            self.world.kill(machine);
        }
    }

    fn hand_over(&self, machine: usize) {
        let Some(server) = self.server(machine).filter(|server| self.is_free(server)) else { return };
        let successor = match self.random(3) {
            0 => String::new(),
            1 if self.plan.are_alike => "alike".into(),
            _ => format!("m{}", self.random(SERVERS as u64)),
        };
        self.trace(|| format!("m{machine} hands over to {successor:?}"));
        server.place.name_successor(&successor);
        server.keeper.roles.give(Order::HandOver { answer: mpsc::channel().0 });
        server.turn();
    }

    fn take_snapshot(&self, machine: usize) {
        if let Some(server) = self.server(machine).filter(|server| self.is_free(server)) {
            self.snapshots.set(self.snapshots.get() + 1);
            self.trace(|| format!("m{machine} takes a snapshot"));
            server.take_snapshot();
        }
    }

    fn is_free(&self, server: &Server) -> bool {
        !server.is_busy.get() && !self.world.is_stopped(server.machine)
    }

    /// The server of a machine, if clients reach it.
    fn reached(&self, machine: usize) -> Option<Rc<Server>> {
        self.server(machine).filter(|_| !self.world.is_stopped(machine))
    }

    fn append(&self, machine: usize) {
        let Some(server) = self.reached(machine) else { return };
        let list = self.random(LISTS as u64) as usize;
        let count = if self.random(5) == 0 { self.random(60) + 1 } else { 1 };
        let asked = self.checks.borrow_mut().append(list, count);
        let Asked::Append { elements, .. } = &asked else { unreachable!("it was just made") };
        let words: Vec<String> = ["RPUSH".into(), format!("list:{list}")]
            .into_iter()
            .chain(elements.clone().map(|element| element.to_string()))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.ask(&server, asked, &words);
    }

    fn read(&self, machine: usize) {
        let Some(server) = self.reached(machine) else { return };
        let list = self.random(LISTS as u64) as usize;
        let asked = self.checks.borrow().read(list, !server.follows());
        self.ask(&server, asked, &["LRANGE", &format!("list:{list}"), "0", "-1"]);
    }

    fn set(&self, machine: usize) {
        let Some(server) = self.reached(machine) else { return };
        let within_ms = if self.plan.focus == Some(Focus::Expiry) { 2000 } else { 8000 };
        let deadline_ms = server.clock.unix_ms() + self.random(within_ms) + 1;
        let asked = self.checks.borrow_mut().set(deadline_ms);
        let Asked::Set { key } = &asked else { unreachable!("it was just made") };
        let name = format!("key:{key}");
        self.ask(&server, asked, &["SET", &name, "value", "PXAT", &deadline_ms.to_string()]);
    }

    fn get(&self, machine: usize) {
        let keys = self.checks.borrow().keys() as u64;
        let Some(server) = self.reached(machine).filter(|_| keys > 0) else { return };
        // Mostly one of the last.
        let key = keys - 1 - self.random(keys.min(12));
        let applied = server.follows().then(|| server.keeper.roles.applied());
        let asked = self.checks.borrow().get(key, applied);
        self.ask(&server, asked, &["GET", &format!("key:{key}")]);
    }

    fn ask(&self, server: &Server, asked: Asked, words: &[&str]) {
        if self.plan.broken == Some(Broken::NoLease) {
            // Without it, nothing would be executed that must not be answered.
            engine::set_standing(&server.engine, false);
        }
        let asked = server.ask(asked, words);
        self.trace(|| {
            let words: Vec<&str> = words.iter().take(5).copied().collect();
            let refused = if asked.is_ok() { "" } else { "refused" };
            format!("m{} at {} {words:?} {refused}", server.machine, server.clock.unix_ms())
        });
        if let Err(refused) = asked {
            self.checks.borrow_mut().refuse(&refused);
        }
    }

    /// Sends the replies that may be sent, as `network::local` does.
    fn flush(&self, server: &Server) {
        server.connections.iter().for_each(|connection| self.flush_one(server, &mut connection.borrow_mut()));
    }

    fn flush_one(&self, server: &Server, connected: &mut Connected) {
        if Server::is_killed(connected) {
            return server.disconnect(connected);
        }
        if connected.waiting.iter().any(|waiting| waiting.confirmed_by.is_none())
            && let Some(mark) = server.keeper.confirmation()
        {
            connected.waiting.iter_mut().for_each(|waiting| {
                waiting.confirmed_by.get_or_insert(mark);
            });
        }
        while let Some(first) = connected.waiting.front() {
            let depends_on = first.depends_on.max(first.confirmed_by.unwrap_or(0));
            let mut progress = server.keeper.write_up_to(depends_on);
            if self.plan.broken == Some(Broken::NoLease) {
                progress.waits = false;
            }
            match progress.gate(depends_on, false) {
                ReplyGate::Hold => return,
                ReplyGate::Drop => server.disconnect(connected),
                ReplyGate::Send => {
                    let mut sent = connected.waiting.pop_front().expect("it is there");
                    if server.follows() {
                        // It has handed the log over meanwhile: what it answers now is a follower's answer.
                        sent.asked.leave_to_follower();
                    }
                    if let Some(epoch) = sent.epoch.filter(|_| sent.asked.is_change()) {
                        let stored = self.world.epoch(epoch).expect("its first frame is stored");
                        let (last, number) = (stored.last, sent.depends_on);
                        assert!(number <= last, "batch {number} is acknowledged, and epoch {epoch} ends with {last}");
                    }
                    self.trace(|| format!("m{} answers {:?} of epoch {:?}", server.machine, sent.reply, sent.epoch));
                    self.checks.borrow_mut().answer(&sent.asked, &sent.reply, sent.depends_on, self.latest_ms());
                }
            }
        }
    }

    /// Everything works again, and one server writes.
    fn come_to_rest(&self) {
        self.rests.set(true);
        self.world.mend();
        (0..SERVERS).for_each(|machine| self.start(machine));
        let end = self.steps.get() + REST_STEPS_MAX;
        while self.steps.get() < end {
            self.step();
            if self.is_at_rest() {
                return;
            }
        }
        panic!("the servers do not come to rest");
    }

    fn is_at_rest(&self) -> bool {
        let (running, last) = (self.running(), self.world.last_batch());
        let has_ended = |server: &Rc<Server>| {
            !server.is_busy.get()
                && server.reached() == Some(last)
                && server.connections.iter().all(|connection| connection.borrow().waiting.is_empty())
        };
        running.iter().filter(|server| !server.follows()).count() == 1 && running.iter().all(has_ended)
    }

    fn check_end(&self) {
        let lists = |server: &Rc<Server>| {
            let list = |list| elements(&server.look(&["LRANGE", &format!("list:{list}"), "0", "-1"]));
            (0..LISTS).map(list).collect::<Vec<_>>()
        };
        let all: Vec<Vec<Vec<u64>>> = self.running().iter().map(lists).collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "the servers differ: {all:?}");
        self.checks.borrow_mut().end(&all[0]);
        // All keys expire, everywhere.
        let last_ms = self.checks.borrow().last_deadline_ms();
        let is_over = || self.running().iter().all(|server| server.clock.unix_ms() > last_ms);
        for _ in 0..REST_STEPS_MAX {
            if is_over() {
                break;
            }
            self.step();
        }
        for server in self.running() {
            for key in 0..self.checks.borrow().keys() {
                let reply = server.look(&["GET", &format!("key:{key}")]);
                assert!(reply.starts_with("$-1"), "key {key} is still on server {}: {reply}", server.machine);
            }
        }
    }
}
