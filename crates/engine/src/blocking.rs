//! Commands that wait until a key has something for them: who stands in whose line, and how they are served. Knows
//! lines, turns and outcomes; refuses to know what a command takes and how time passes.
//!
//! A handler that finds nothing writes the reply of one whose time is up and asks to wait ([`Client::wait`]). While
//! the locks under which it has looked are still held, its client is put in the lines of its keys
//! (`keyspace::interest::waiters`), so that no value can slip in between. Inside a transaction or a script nobody asks: the
//! reply stands.
//!
//! Whatever gives a value to a key that somebody waits for notes it ([`note_ready`]). When the command, or the whole
//! transaction or script, is done and told of, with its locks still held, those who wait are served in their order:
//! each one's command is run on its behalf, as its own batch of the journal, and what it replies is put where its
//! connection finds it. It is offered that key alone ([`Client::is_offered`]): others of its keys may lie in shards
//! that are not locked here, and had they got something, whoever gave it to them would have served it.
//!
//! A command that writes to a second key, whose shard may not be locked here, cannot be run on somebody's behalf. Its
//! place is [`Engine::serve`]: let such a client leave its lines and wake it with an outcome that has its connection
//! execute the request once more.
//!
//! Of those who end a wait (who serves, the time, CLIENT UNBLOCK, CLIENT KILL, the end of the connection) exactly one
//! wins: see `waiting::WaitState`. Places in lines of other shards are left behind by who is served, and given up by
//! its own connection.

use crate::client::Client;
use crate::clients::ClientHandle;
use crate::command::CommandRow;
use crate::engine::{Engine, Worker};
use crate::news::PendingNotifications;
use crate::waiting::{Blocked, Event, Ticket};
use keyspace::db::Db;
use keyspace::{Effect, Fate, Key, Locked, Touch, Touches, Value};
use locks::{Mutex, rank};
use resp::{OwnedRequest, Protocol, Reply, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What is known of all who wait for keys.
#[derive(Default)]
pub(crate) struct Blocking {
    /// How many stand in a line, even if they have stopped waiting.
    count: AtomicUsize,
    last_number: AtomicU64,
    /// How many keys they wait for.
    keys: AtomicUsize,
    /// Those that could not leave their lines yet.
    left: Mutex<Vec<Arc<Waiter>>, { rank::LEFT_WAITERS }>,
}

impl Blocking {
    /// True when somebody waits for a key. Exact for whoever holds the lock of that key's shard: one who stands in its line
    /// was counted before that lock was released, and is until it has left every line.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// How many keys somebody waits for.
    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }

    /// Puts a client in a key's line.
    fn line_up(&self, locked: &mut Locked<'_>, key: Key<'_>, waiter: &Arc<Waiter>) {
        let awaited = locked.awaited_mut(key);
        let before = awaited.len();
        let is_new = awaited.line_up(waiter.db, key.name, waiter.number, waiter.clone());
        waiter.places.fetch_add(usize::from(is_new), Relaxed);
        self.keys.fetch_add(awaited.len() - before, Relaxed);
    }

    /// Takes a client out of a key's line, if it stands there.
    fn leave(&self, locked: &mut Locked<'_>, key: Key<'_>, waiter: &Waiter) {
        let awaited = locked.awaited_mut(key);
        let before = awaited.len();
        let stood = awaited.leave(waiter.db, key.name, waiter.number);
        waiter.places.fetch_sub(usize::from(stood), Relaxed);
        self.keys.fetch_sub(before - awaited.len(), Relaxed);
    }
}

/// A client that waits for keys, with all that is needed to run its command on its behalf.
pub(crate) struct Waiter {
    /// Its place in every line: who came later has a higher one.
    number: u64,
    handle: Arc<ClientHandle>,
    command: &'static CommandRow,
    request: OwnedRequest,
    db: usize,
    protocol: Protocol,
    no_touch: bool,
    output_bytes_max: usize,
    wants: fn(&Value<'_>) -> bool,
    /// The reply when its time is up.
    nothing: Vec<u8>,
    /// In how many lines it stands.
    places: AtomicUsize,
    ticket: Ticket,
}

/// What a handler asks for that has found nothing.
pub(crate) struct Wait {
    /// Unix milliseconds; `None` = for ever.
    pub(crate) until_ms: Option<u64>,
    /// True for a value that may have something for it.
    pub(crate) wants: fn(&Value<'_>) -> bool,
}

/// How a client stands with what it may wait for.
#[derive(Default)]
pub(crate) enum Turn {
    #[default]
    None,
    /// Its command has found nothing and asks to wait.
    Asks(Wait),
    /// It stands in line.
    InLine(Arc<Waiter>),
    /// Its command is run because the key of this name has got something.
    Called(Box<[u8]>),
}

impl Client {
    /// Asks to wait until one of the command's keys has something for it. What has been replied is what it hears when its
    /// time is up, or at once where nobody can wait.
    pub(crate) fn wait(&mut self, wait: Wait) {
        self.turn = Turn::Asks(wait);
    }

    /// True when a command that may wait may look at this key.
    pub(crate) fn is_offered(&self, key: Key<'_>) -> bool {
        match &self.turn {
            Turn::Called(name) => **name == *key.name,
            _ => true,
        }
    }
}

/// Notes which keys an effect has just given a value to, as far as somebody waits for them.
#[inline(never)]
pub(crate) fn note_ready(news: &PendingNotifications, locked: &Locked<'_>, db: usize, effect: &Effect<'_>) {
    match effect.touches(db) {
        Touches::Keys(touches) => {
            for Touch { db, key, fate } in touches {
                match fate {
                    Fate::Gains { .. } if locked.shard(key).awaited.has(db, key.name) => news.ready(db, key.name),
                    Fate::Gains { .. } | Fate::Loses(_) | Fate::Deadline | Fate::Gone(_) | Fate::Read => {}
                }
            }
        }
        Touches::Swapped(a, b) => {
            for (_, shard) in locked.shards() {
                for db in [a, b] {
                    let there = |name: &&[u8]| shard.db(db).entry(Key::new(name)).is_some();
                    shard.awaited.names(db).filter(there).for_each(|name| news.ready(db, name));
                }
            }
        }
        Touches::Emptied(_) | Touches::Definition => {}
    }
}

impl Engine {
    /// Lets a client wait if its command, which has just run, asks for it. What was replied is what it gets when its time is
    /// up. IMPORTANT: under the locks under which it has found nothing.
    pub(crate) fn begin_wait(
        &self,
        client: &mut Client,
        registered: &'static CommandRow,
        request: Request<'_>,
        out: &mut Vec<u8>,
        reply_at: usize,
        locked: &mut Locked<'_>,
    ) -> Option<Blocked> {
        let Turn::Asks(wait) = std::mem::take(&mut client.turn) else { return None };
        let nothing = out.split_off(reply_at);
        Some(self.line_up(client, registered, request, wait, nothing, locked))
    }

    /// Puts a client in the lines of its command's keys. IMPORTANT: under the locks under which it has found nothing.
    fn line_up(
        &self,
        client: &mut Client,
        command: &'static CommandRow,
        request: Request<'_>,
        wait: Wait,
        nothing: Vec<u8>,
        locked: &mut Locked<'_>,
    ) -> Blocked {
        let waiter = Arc::new(Waiter {
            // Taken under the locks: in every line, who came later has a higher one.
            number: self.blocking.last_number.fetch_add(1, Relaxed) + 1,
            handle: client.handle.clone(),
            command,
            request: request.iter().collect(),
            db: client.db,
            protocol: client.protocol,
            no_touch: client.no_touch,
            output_bytes_max: client.output_bytes_max,
            wants: wait.wants,
            nothing,
            places: AtomicUsize::new(0),
            ticket: Ticket::default(),
        });
        for key in command.keys(request) {
            self.blocking.line_up(locked, key, &waiter);
        }
        self.blocking.count.fetch_add(1, Relaxed);
        client.handle.wait_state.begin(waiter.number);
        client.turn = Turn::InLine(waiter);
        Blocked { until_ms: wait.until_ms, event: Event::Value, silent: false }
    }

    /// Serves those who wait for keys that have got a value, the keys in the order in which they did. Called when all that
    /// a command, a transaction or a script has changed is told, with its locks still held.
    #[inline]
    pub(crate) fn serve_ready(&self, worker: &mut Worker, locked: &mut Locked<'_>) {
        if worker.batch.notifications.has_ready() {
            self.serve_all(worker, locked);
        }
    }

    #[inline(never)]
    fn serve_all(&self, worker: &mut Worker, locked: &mut Locked<'_>) {
        let began_ns = self.clock.monotonic_ns();
        worker.batch.is_serving = true;
        loop {
            // Serving one may make another key ready.
            let ready = worker.batch.notifications.take_ready();
            if ready.is_empty() {
                break;
            }
            for (db, name) in ready {
                let key = Key::new(&name);
                debug_assert!(locked.holds(key), "whoever makes keys ready serves them under the same locks");
                if locked.holds(key) {
                    self.serve_key(worker, locked, db, key);
                }
            }
        }
        worker.batch.is_serving = false;
        // It is not the time of the command that has made the keys ready.
        worker.last_ns += self.clock.monotonic_ns().saturating_sub(began_ns);
    }

    /// Serves those who wait for a key, as long as it has something for them.
    fn serve_key(&self, worker: &mut Worker, locked: &mut Locked<'_>, db: usize, key: Key<'_>) {
        let mut passed_over = 0;
        loop {
            let Some(waiter) = next_in_line(locked, db, key, passed_over, worker.now_ms) else { return };
            if waiter.handle.claim(waiter.number) && !self.serve(worker, locked, &waiter, key) {
                passed_over = waiter.number;
                waiter.handle.wait_state.give_back(waiter.number);
                // Its time may have come meanwhile.
                waiter.handle.wake();
                continue;
            }
            self.blocking.leave(locked, key, &waiter);
        }
    }

    /// Runs a client's command on its behalf, now that a key has got something. False when there is nothing for it.
    fn serve(&self, worker: &mut Worker, locked: &mut Locked<'_>, waiter: &Waiter, key: Key<'_>) -> bool {
        let began_ns = self.clock.monotonic_ns();
        let mut client = Client::new(waiter.handle.clone(), true);
        client.db = waiter.db;
        client.protocol = waiter.protocol;
        client.no_touch = waiter.no_touch;
        client.turn = Turn::Called(key.name.into());
        let mut out = Vec::new();
        let reply = Reply::new(&mut out, waiter.protocol).limited(waiter.output_bytes_max);
        let request = waiter.request.as_request();
        let mut lent = locked.lend_key(key);
        let result = self.run_under(worker, &mut client, waiter.command, request, reply, &mut lent, None, false);
        drop(lent);
        if matches!(client.turn, Turn::Asks(_)) {
            return false;
        }
        let stats = &worker.books.stats;
        let counters = &stats.commands[waiter.command.index];
        // It was counted as a call when it began to wait.
        counters.ns.add(self.clock.monotonic_ns().saturating_sub(began_ns));
        if let Err(error) = result {
            let text = error.to_string();
            counters.failed.add(1);
            stats.count_error(&text);
            out.clear();
            Reply::new(&mut out, waiter.protocol).error(&text);
        }
        waiter.handle.note_active(worker.last_ns);
        waiter.ticket.put(out, &client);
        waiter.handle.wake();
        true
    }

    /// The reply to a client that stands in line: what it was served with, or what it hears when its time is up.
    pub(crate) fn value_outcome(&self, client: &mut Client, time_is_up: bool) -> Option<Vec<u8>> {
        let Turn::InLine(waiter) = &client.turn else { panic!("who waits for a value stands in line") };
        let waiter = waiter.clone();
        match waiter.ticket.take(client) {
            // Whoever has the claim is about to write the reply, and wakes the client then.
            None => (time_is_up && client.handle.wait_state.end()).then(|| waiter.nothing.clone()),
            reply => reply,
        }
    }

    /// A client waits no longer: it has its reply, or its connection ends.
    pub fn stop_waiting(&self, client: &mut Client) {
        client.handle.wait_state.end();
        if let Turn::InLine(waiter) = std::mem::take(&mut client.turn) {
            self.leave_lines(&waiter);
        }
    }

    /// Has those leave their lines that could not while a script held the locks.
    pub(crate) fn leave_left_lines(&self) {
        let left = std::mem::take(&mut *self.blocking.left.lock());
        left.iter().for_each(|waiter| self.leave_lines(waiter));
    }

    /// Takes a client out of its lines; later, when that would take long. IMPORTANT: nobody waits here: whoever could stop
    /// the script that is in the way may be served by this very thread.
    fn leave_lines(&self, waiter: &Arc<Waiter>) {
        for key in waiter.command.keys(waiter.request.as_request()) {
            if waiter.places.load(Relaxed) == 0 {
                break;
            }
            let Some(mut locked) = self.keyspace.lock_key_unless_busy(key) else {
                return self.blocking.left.lock().push(waiter.clone());
            };
            self.blocking.leave(&mut locked, key, waiter);
        }
        // IMPORTANT: not before. A command that finds nobody counted does not serve what it makes ready.
        self.blocking.count.fetch_sub(1, Relaxed);
    }
}

/// The first in a key's line, behind the one of that number, for whom the key's value may have something.
fn next_in_line(locked: &Locked<'_>, db: usize, key: Key<'_>, behind: u64, now_ms: u64) -> Option<Arc<Waiter>> {
    let within = locked.db(db, key);
    let entry = within.entry(key).filter(|entry| !Db::is_overdue(entry, now_ms))?;
    let value = within.value(entry, now_ms);
    let line = locked.shard(key).awaited.after(db, key.name, behind);
    line.cloned().filter_map(|waiting| waiting.downcast::<Waiter>().ok()).find(|waiter| (waiter.wants)(&value))
}
