//! What all processes share: the time, the messages that are stored, the objects, the network. Knows in which order things
//! happen; refuses to know why a process asks.

use super::network::{Event, Faults, Machine, Network, Process, Subscription, TICK_NS, happens};
use crate::frame::{Nonce, Position};
use crate::stream::{Answer, Extent, Unanswered};
use bytes::Bytes;
use fastrand::Rng;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long a request waits for its answer.
const ANSWERS_WITHIN_NS: u64 = 2_000_000_000;
/// When the simulation begins, in unix milliseconds.
const BEGAN_MS: u64 = 1_700_000_000_000;

/// A stream, an object store, a network and the machines that use them.
pub struct World {
    pub(super) inner: Mutex<Inner>,
    message_max: usize,
}

pub(super) struct Inner {
    pub(super) rng: Rng,
    pub(super) now_ns: u64,
    pub(super) network: Network<Inner>,
    pub(super) machines: Vec<Machine>,
    pub(super) stored: Stored,
    pub(super) objects: BTreeMap<String, Vec<u8>>,
    pub(super) on_pause: Option<fn(usize)>,
    last_subscription: u64,
    is_nonce_fixed: bool,
    pub(super) answers_when_sent: bool,
}

/// The messages that are stored.
pub(super) struct Stored {
    pub(super) first: Position,
    pub(super) messages: VecDeque<Bytes>,
    /// What was there and is lost.
    holes: BTreeSet<Position>,
    /// The stream has no leader until then.
    pub(super) leaderless_until_ns: u64,
    epochs: BTreeMap<u32, StoredEpoch>,
}

/// What is stored of an epoch, by the headers of its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredEpoch {
    /// The last batch before it, and its own last one.
    pub before: u64,
    pub last: u64,
}

impl Stored {
    pub(super) fn extent(&self) -> Extent {
        Extent { first: self.first, last: self.first + self.messages.len() as u64 - 1 }
    }

    pub(super) fn at(&self, position: Position) -> Option<&Bytes> {
        if self.holes.contains(&position) {
            return None;
        }
        self.messages.get(usize::try_from(position.checked_sub(self.first)?).ok()?)
    }

    fn push(&mut self, message: Bytes) {
        if message.len() >= 80 {
            let number = |at: usize| u32::from_le_bytes(message[at..at + 4].try_into().unwrap());
            let first = u64::from_le_bytes(message[56..64].try_into().unwrap());
            let (epoch, last) = (number(16), first + u64::from(number(52)) - 1);
            let known = self.epochs.entry(epoch).or_insert(StoredEpoch { before: first - 1, last });
            known.last = known.last.max(last);
        }
        self.messages.push_back(message);
    }
}

impl World {
    /// So many machines, on which nothing runs yet. No message is longer than `message_max`.
    pub fn new(seed: u64, machines: usize, message_max: usize) -> Arc<World> {
        let mut rng = Rng::with_seed(seed);
        let machine = |_| Machine {
            life: 0,
            is_running: false,
            rate_ppm: 0,
            ahead_ns: rng.u64(..1_000_000_000_000),
            calendar_ms: 0,
            stopped_until_ns: 0,
            cut_from_ns: 0,
            cut_until_ns: 0,
            deaf_until_ns: 0,
            without_objects_until_ns: 0,
            ticking: Vec::new(),
            subscriptions: BTreeMap::new(),
        };
        let machines = (0..machines).map(machine).collect();
        let stored = Stored {
            first: 1,
            messages: VecDeque::new(),
            holes: BTreeSet::new(),
            leaderless_until_ns: 0,
            epochs: BTreeMap::new(),
        };
        let inner = Inner {
            rng,
            now_ns: 1_000_000_000,
            network: Network::new(),
            machines,
            stored,
            objects: BTreeMap::new(),
            on_pause: None,
            last_subscription: 0,
            is_nonce_fixed: false,
            answers_when_sent: false,
        };
        Arc::new(World { inner: Mutex::new(inner), message_max })
    }

    pub fn set_faults(&self, faults: Faults) {
        self.inner.lock().network.faults = faults;
    }

    /// How the clock of a machine errs: in parts per million, and its calendar in milliseconds.
    pub fn set_clock(&self, machine: usize, rate_ppm: i64, calendar_ms: i64) {
        let machine = &mut self.inner.lock().machines[machine];
        (machine.rate_ppm, machine.calendar_ms) = (rate_ppm, calendar_ms);
    }

    /// The calendar of a machine is set, as by an operator.
    pub fn step_calendar(&self, machine: usize, calendar_ms: i64) {
        self.inner.lock().machines[machine].calendar_ms = calendar_ms;
    }

    /// Called with the machine of a process that waits, to let the others go on. Without it, only time passes.
    pub fn on_pause(&self, called: fn(usize)) {
        self.inner.lock().on_pause = Some(called);
    }

    /// Breaks a rule: all attempts have the same nonce.
    pub fn fix_nonces(&self) {
        self.inner.lock().is_nonce_fixed = true;
    }

    /// Breaks a rule: a frame counts as stored when it is sent.
    pub fn answer_when_sent(&self) {
        self.inner.lock().answers_when_sent = true;
    }

    /// A process begins on a machine where none runs.
    pub(super) fn begin_process(&self, number: usize) -> Process {
        let mut inner = self.inner.lock();
        let now_ns = inner.now_ns;
        let machine = &mut inner.machines[number];
        assert!(!machine.is_running, "one process at a time");
        machine.life += 1;
        machine.is_running = true;
        machine.stopped_until_ns = 0;
        let process = Process { machine: number, life: machine.life };
        inner.network.schedule(now_ns + TICK_NS, Event::Tick(process));
        process
    }

    /// The process on a machine is killed. What it has sent still arrives.
    pub fn kill(&self, machine: usize) {
        let mut inner = self.inner.lock();
        let machine = &mut inner.machines[machine];
        machine.is_running = false;
        let (ticking, subscriptions) =
            (std::mem::take(&mut machine.ticking), std::mem::take(&mut machine.subscriptions));
        drop(inner);
        drop((ticking, subscriptions));
    }

    /// The process on a machine is stopped for so long: nothing happens in it, and then all at once.
    pub fn stop(&self, machine: usize, time: Duration) {
        let mut inner = self.inner.lock();
        inner.machines[machine].stopped_until_ns = inner.now_ns + time.as_nanos() as u64;
    }

    pub fn is_stopped(&self, machine: usize) -> bool {
        let inner = self.inner.lock();
        inner.machines[machine].stopped_until_ns > inner.now_ns
    }

    /// A machine reaches neither the stream nor, if so, the objects for so long.
    pub fn cut_off(&self, machine: usize, time: Duration, from_objects: bool) {
        let mut inner = self.inner.lock();
        let now_ns = inner.now_ns;
        let until_ns = now_ns + time.as_nanos() as u64;
        let machine = &mut inner.machines[machine];
        (machine.cut_from_ns, machine.cut_until_ns) = (now_ns, until_ns);
        if from_objects {
            machine.without_objects_until_ns = until_ns;
        }
    }

    /// First nothing comes back from the stream for a while, then everything works for a moment, then the machine is cut off.
    pub fn fail_slowly(&self, machine: usize, deaf: Duration, works: Duration, cut: Duration) {
        let mut inner = self.inner.lock();
        let deaf_until_ns = inner.now_ns + deaf.as_nanos() as u64;
        let cut_from_ns = deaf_until_ns + works.as_nanos() as u64;
        let machine = &mut inner.machines[machine];
        machine.deaf_until_ns = deaf_until_ns;
        (machine.cut_from_ns, machine.cut_until_ns) = (cut_from_ns, cut_from_ns + cut.as_nanos() as u64);
    }

    /// The stream has no leader for so long.
    pub fn lose_leader(&self, time: Duration) {
        let mut inner = self.inner.lock();
        inner.stored.leaderless_until_ns = inner.now_ns + time.as_nanos() as u64;
    }

    /// Everything works from now on.
    pub fn mend(&self) {
        let mut inner = self.inner.lock();
        inner.network.faults = Faults::default();
        inner.stored.leaderless_until_ns = 0;
        for machine in &mut inner.machines {
            (machine.stopped_until_ns, machine.without_objects_until_ns) = (0, 0);
            (machine.cut_until_ns, machine.deaf_until_ns) = (0, 0);
        }
    }

    /// Lets so much time pass, with all that happens meanwhile.
    pub fn advance(&self, time: Duration) {
        let until_ns = self.inner.lock().now_ns + time.as_nanos() as u64;
        loop {
            let mut inner = self.inner.lock();
            let Some((at_ns, event)) = inner.network.next(until_ns) else {
                inner.now_ns = inner.now_ns.max(until_ns);
                return;
            };
            inner.now_ns = inner.now_ns.max(at_ns);
            if let Some(process) = event.within() {
                let machine = &inner.machines[process.machine];
                if !machine.is_running || machine.life != process.life {
                    drop(inner);
                    continue;
                }
                if machine.stopped_until_ns > inner.now_ns {
                    let at_ns = machine.stopped_until_ns;
                    inner.network.schedule(at_ns, event);
                    continue;
                }
            }
            match event {
                Event::Request(arrive) => arrive(&mut inner),
                Event::Answer(_, answer) => {
                    drop(inner);
                    answer();
                }
                Event::Deliver(process, subscription) => {
                    let delivered = inner.deliver(process, subscription);
                    drop(inner);
                    if let Some((receiver, position, message)) = delivered
                        && let Some(receiver) = receiver.upgrade()
                    {
                        receiver.receive(position, message);
                    }
                }
                Event::Tick(process) => {
                    let next_ns = inner.now_ns + inner.rng.u64(TICK_NS * 3 / 4..TICK_NS * 5 / 4);
                    inner.network.schedule(next_ns, Event::Tick(process));
                    let ticking = &mut inner.machines[process.machine].ticking;
                    ticking.retain(|ticking| ticking.strong_count() > 0);
                    let ticking = ticking.clone();
                    drop(inner);
                    ticking.iter().filter_map(Weak::upgrade).for_each(|ticking| ticking.tick());
                }
                Event::TickOnce(_, ticking) => {
                    drop(inner);
                    if let Some(ticking) = ticking.upgrade() {
                        ticking.tick();
                    }
                }
            }
        }
    }

    /// The calendar of a machine, in unix milliseconds.
    pub fn calendar_ms(&self, machine: usize) -> u64 {
        let inner = self.inner.lock();
        (BEGAN_MS + inner.clock_ns(machine) / 1_000_000)
            .saturating_add_signed(inner.machines[machine].calendar_ms)
            .saturating_sub(inner.machines[machine].ahead_ns / 1_000_000)
    }

    /// The clock of a machine, in nanoseconds since it began.
    pub fn clock_ns(&self, machine: usize) -> u64 {
        self.inner.lock().clock_ns(machine)
    }

    /// The time of the simulation.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.inner.lock().now_ns)
    }

    /// What is stored of an epoch.
    pub fn epoch(&self, epoch: u32) -> Option<StoredEpoch> {
        self.inner.lock().stored.epochs.get(&epoch).copied()
    }

    /// How many epochs there were.
    pub fn epochs(&self) -> usize {
        self.inner.lock().stored.epochs.len()
    }

    /// The last batch that is stored.
    pub fn last_batch(&self) -> u64 {
        self.inner.lock().stored.epochs.last_key_value().map_or(0, |(_, epoch)| epoch.last)
    }

    /// Where the stream begins and ends.
    pub fn extent(&self) -> Extent {
        self.inner.lock().stored.extent()
    }

    /// Removes messages of the end: what must never happen, and be noticed.
    pub fn lose_end(&self, count: usize) {
        let messages = &mut self.inner.lock().stored.messages;
        messages.truncate(messages.len().saturating_sub(count));
    }

    /// Removes one message from between others: what must never happen, and be noticed.
    pub fn lose_message(&self, position: Position) {
        self.inner.lock().stored.holes.insert(position);
    }

    /// Another program puts a message at the end.
    pub fn publish(&self, message: Bytes) {
        self.inner.lock().store(message);
    }

    /// The message at a position.
    pub fn message(&self, position: Position) -> Bytes {
        self.inner.lock().stored.at(position).expect("it is stored").clone()
    }

    /// The names of all objects.
    pub fn objects(&self) -> Vec<String> {
        self.inner.lock().objects.keys().cloned().collect()
    }

    /// Flips a bit of an object.
    pub fn damage_object(&self, name: &str) {
        if let Some(byte) = self.inner.lock().objects.get_mut(name).and_then(|object| object.last_mut()) {
            *byte ^= 1;
        }
    }

    /// Removes an object.
    pub fn lose_object(&self, name: &str) {
        self.inner.lock().objects.remove(name);
    }

    pub(super) fn message_max(&self) -> usize {
        self.message_max
    }

    pub(super) fn nonce(&self) -> Nonce {
        let mut inner = self.inner.lock();
        Nonce(if inner.is_nonce_fixed { 1 } else { inner.rng.u128(..) })
    }
}

impl Inner {
    pub(super) fn clock_ns(&self, machine: usize) -> u64 {
        let machine = &self.machines[machine];
        machine.ahead_ns + (u128::from(self.now_ns) * (1_000_000 + machine.rate_ppm) as u128 / 1_000_000) as u64
    }

    pub(super) fn is_alive(&self, process: Process) -> bool {
        let machine = &self.machines[process.machine];
        machine.is_running && machine.life == process.life
    }

    /// Sends a request. `execute` is what it does when it arrives; `answer` gets the first answer that comes back.
    pub(super) fn send<T: Send + 'static>(
        &mut self,
        process: Process,
        answer: Answer<T>,
        execute: impl Fn(&mut Inner) -> T + Send + Sync + 'static,
    ) {
        let slot = Arc::new(Mutex::new(Some(answer)));
        let waiting = slot.clone();
        let give_up = move || {
            let answer = waiting.lock().take();
            if let Some(answer) = answer {
                answer(Err(Unanswered::new("no answer")));
            }
        };
        self.network.schedule(self.now_ns + ANSWERS_WITHIN_NS, Event::Answer(process, Box::new(give_up)));
        let execute = Arc::new(execute);
        let copies = if happens(&mut self.rng, self.network.faults.repeated) { 2 } else { 1 };
        for _ in 0..copies {
            if let Some(delay_ns) = self.network.delay_ns(&mut self.rng) {
                let (execute, slot) = (execute.clone(), slot.clone());
                let arrive = move |inner: &mut Inner| inner.arrive(process, &execute, slot);
                self.network.schedule(self.now_ns + delay_ns, Event::Request(Box::new(arrive)));
            }
        }
    }

    fn arrive<T: Send + 'static>(
        &mut self,
        process: Process,
        execute: &Arc<impl Fn(&mut Inner) -> T + Send + Sync + 'static>,
        slot: Arc<Mutex<Option<Answer<T>>>>,
    ) {
        if let Some(cut_until_ns) = self.machines[process.machine].cut_until_ns(self.now_ns) {
            // It is lost, or sent again by the system when the network is back.
            if self.rng.bool() {
                let at_ns = cut_until_ns + self.rng.u64(..50_000_000);
                let execute = execute.clone();
                let arrive = move |inner: &mut Inner| inner.arrive(process, &execute, slot);
                self.network.schedule(at_ns, Event::Request(Box::new(arrive)));
            }
            return;
        }
        let result = if self.stored.leaderless_until_ns > self.now_ns {
            if self.rng.bool() {
                return;
            }
            Err(Unanswered::new("the stream has no leader"))
        } else {
            let is_refused = happens(&mut self.rng, self.network.faults.refused);
            match is_refused && self.rng.bool() {
                true => Err(Unanswered::new("not done")),
                false => Ok(execute(self)).and_then(|done| match is_refused {
                    true => Err(Unanswered::new("an error, though it is done")),
                    false => Ok(done),
                }),
            }
        };
        let Some(delay_ns) = self.network.delay_ns(&mut self.rng) else { return };
        self.send_back(process, delay_ns, move || {
            let answer = slot.lock().take();
            if let Some(answer) = answer {
                answer(result);
            }
        });
    }

    fn send_back(&mut self, process: Process, delay_ns: u64, answer: impl FnOnce() + Send + 'static) {
        let at_ns = self.now_ns + delay_ns;
        // An answer that would arrive while the machine is cut off is lost, or late.
        let at_ns = match self.machines[process.machine].deaf_until_ns(at_ns) {
            Some(_) if self.rng.bool() => return,
            Some(until_ns) => until_ns + delay_ns,
            None => at_ns,
        };
        self.network.schedule(at_ns, Event::Answer(process, Box::new(answer)));
    }

    /// Stores a message, and wakes those to whom it is delivered.
    pub(super) fn store(&mut self, message: Bytes) {
        self.stored.push(message);
        let mut woken = Vec::new();
        for (number, machine) in self.machines.iter_mut().enumerate() {
            let process = Process { machine: number, life: machine.life };
            for (id, subscription) in machine.subscriptions.iter_mut().filter(|(_, known)| known.is_idle) {
                subscription.is_idle = false;
                woken.push((process, *id));
            }
        }
        for (process, id) in woken {
            let delay_ns = self.delivery_ns();
            self.network.schedule(self.now_ns + delay_ns, Event::Deliver(process, id));
        }
    }

    /// How long until the next message is delivered. None is lost: delivery begins again.
    fn delivery_ns(&mut self) -> u64 {
        let again_ns = self.rng.u64(50_000_000..400_000_000);
        self.network.delay_ns(&mut self.rng).unwrap_or(again_ns)
    }

    pub(super) fn subscribe(
        &mut self,
        process: Process,
        from: Position,
        receiver: Weak<dyn crate::stream::Receive>,
    ) -> u64 {
        self.last_subscription += 1;
        let id = self.last_subscription;
        let subscription = Subscription { next: from, receiver, is_idle: false };
        self.machines[process.machine].subscriptions.insert(id, subscription);
        let delay_ns = self.delivery_ns();
        self.network.schedule(self.now_ns + delay_ns, Event::Deliver(process, id));
        id
    }

    fn deliver(&mut self, process: Process, id: u64) -> Option<(Weak<dyn crate::stream::Receive>, Position, Bytes)> {
        let Extent { first, last } = self.stored.extent();
        let is_silent = self.machines[process.machine].deaf_until_ns(self.now_ns).is_some()
            || self.stored.leaderless_until_ns > self.now_ns;
        let goes_back = happens(&mut self.rng, self.network.faults.followed_again).then(|| self.rng.u64(1..4));
        let machine = &mut self.machines[process.machine];
        let subscription = machine.subscriptions.get_mut(&id)?;
        let Some(receiver) = subscription.receiver.upgrade() else {
            machine.subscriptions.remove(&id);
            return None;
        };
        let mut delivered = None;
        if !is_silent && receiver.has_room() {
            if let Some(back) = goes_back {
                subscription.next = subscription.next.saturating_sub(back).max(1);
            }
            subscription.next = subscription.next.max(first);
            while self.stored.holes.contains(&subscription.next) {
                subscription.next += 1;
            }
            if subscription.next > last {
                subscription.is_idle = true;
                return None;
            }
            let message = self.stored.at(subscription.next).expect("it is stored").clone();
            delivered = Some((subscription.receiver.clone(), subscription.next, message));
            subscription.next += 1;
        }
        let delay_ns = if is_silent { 20_000_000 } else { self.delivery_ns() };
        self.network.schedule(self.now_ns + delay_ns, Event::Deliver(process, id));
        delivered
    }
}
