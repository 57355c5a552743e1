//! Clients that wait for records of an index (CLAIM), and how they are served. Knows threads, commits and times; refuses to
//! know what a command does with a record.
//!
//! Each index has a line of waiters in each database ([`lines`]). Waiters that want the same records ([`criteria`]) are one
//! class: what one of them has looked at, none of them needs to look at again. Three things can end a wait:
//!
//! - A write gives a record a score. While there are waiters, every such record is noted ([`note_records`]), and with the
//!   commit of its command, transaction or script it is ready for the classes that may want it.
//! - Time passes, and with `MAX NOW` a record is within the range that was not before. Each class knows the next score.
//! - The databases are exchanged, or writes are possible again: then everything is looked at anew.
//!
//! Waiters are served by a thread that holds no locks, right after the command that made a record ready; one thread serves
//! at a time, so that waiters are served in the order in which they came. It runs the waiter's command on its behalf,
//! which judges and changes a record under that record's lock. A client that arrives meanwhile comes after them.
//!
//! A client that has found nothing and wants to wait joins the line *first* and searches again: from then on no record is
//! missed, since whatever becomes ready during the search is kept for it.

mod criteria;
mod lines;

pub(crate) use self::criteria::{Condition, Criteria, TimeBound};
pub(crate) use self::lines::Candidate;

use self::lines::{ClassId, Lines, NOTHING_SEARCHED, Unfinished, line_id};
use super::waiter::{BlockedCommand, WaitPhase};
use super::{Blocked, Event};
use crate::error::CommandError;
use crate::execution::client::Client;
use crate::execution::command::{CommandRow, Handler};
use crate::execution::context::After;
use crate::execution::engine::Engine;
use crate::execution::indexes::SLICE_NS;
use crate::execution::notifications::PendingNotifications;
use crate::execution::worker::Worker;
use keyspace::db::Db;
use keyspace::index::{Index, Indexes};
use keyspace::{Effect, Fate, HashRef, Key, Locked, Touch, Touches, Value};
use locks::{Mutex, rank};
use resp::Request;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::task::Waker;

/// What a command that has found nothing asks for.
pub(crate) struct RecordWait {
    /// Unix milliseconds; `None` = for ever.
    pub(crate) until_ms: Option<u64>,
    pub(crate) criteria: Arc<Criteria>,
    /// Its place in the lines of its indexes; `None` when it is served and found nothing.
    pub(crate) place: Option<PlaceInLine>,
    /// How far each index was searched.
    pub(crate) searched: SmallVec<[Searched; 2]>,
}

/// How far a search has come that found nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Searched {
    /// No record up to this score qualifies.
    pub(crate) up_to: f64,
    /// No record has a score between that one and this.
    pub(crate) next_score: f64,
}

/// A record that has got a score in an index with waiters: its database, the index, its name.
pub(crate) type Written = (usize, Arc<Index>, Arc<[u8]>);

/// A client that waits for records.
pub(crate) struct RecordWaiter {
    blocked: BlockedCommand,
    indexes: SmallVec<[Arc<Index>; 2]>,
    criteria: Arc<Criteria>,
}

impl RecordWaiter {
    /// The place of an index among those that it names.
    fn position_of(&self, index: &Arc<Index>) -> usize {
        self.indexes.iter().position(|one| Arc::ptr_eq(one, index)).unwrap_or(0)
    }

    pub(super) fn blocked(&self) -> &BlockedCommand {
        &self.blocked
    }
}

/// What a command that is served may take.
pub(crate) struct RecordOffer {
    pub(crate) index: Arc<Index>,
    pub(crate) criteria: Arc<Criteria>,
    pub(crate) records: Offered,
}

pub(crate) enum Offered {
    /// Some of these. What it does not take stays for others.
    Candidates(Mutex<Vec<Candidate>, { rank::OFFERED_RECORDS }>),
    /// Those above this score: it has looked at the others before.
    Above(f64),
}

/// All clients that wait for records.
#[derive(Default)]
pub(crate) struct RecordWaiters {
    /// How many have a place in a line.
    count: AtomicUsize,
    lines: Mutex<Lines, { rank::RECORD_LINES }>,
    /// A record is ready, or something is to be looked at anew.
    has_work: AtomicBool,
    /// A thread serves waiters.
    is_serving: AtomicBool,
    /// When the next record is due that a class waits for, in unix milliseconds.
    due_ms: AtomicU64,
    /// When waiters were last looked at, by the clock of then, in unix milliseconds.
    looked_ms: AtomicU64,
    /// Wakes what calls [`Engine::serve_due_records`] at that time.
    timer: Mutex<Option<Waker>, { rank::WAKER }>,
}

/// A waiter to be served.
struct Work {
    waiter: Arc<RecordWaiter>,
    class: ClassId,
    offer: Arc<RecordOffer>,
    /// A search of its class that is to be continued.
    unfinished: Option<Unfinished>,
    is_continued: bool,
}

/// A place in the lines of some indexes, of a client that searches before it waits.
pub(crate) struct PlaceInLine {
    waiters: Arc<RecordWaiters>,
    db: usize,
    /// The indexes, and how many records each line had noted before.
    indexes: SmallVec<[(Arc<Index>, usize); 2]>,
}

impl Drop for PlaceInLine {
    fn drop(&mut self) {
        let mut lines = self.waiters.lines.lock();
        self.indexes.iter().for_each(|(index, _)| lines.end_search(line_id(index, self.db)));
        self.waiters.forget(&mut lines, self.db, self.indexes.iter().map(|(index, _)| index));
    }
}

impl RecordWaiters {
    /// True when a client waits for records. Exact for a thread that has just changed a record under its lock: a client
    /// is counted before it searches.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(SeqCst) > 0
    }

    /// True when waiters are to be served.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.has_work.load(SeqCst)
    }

    /// Gives a client a place in the lines of these indexes, before it searches for the last time.
    pub(crate) fn join(self: &Arc<Self>, indexes: &[Arc<Index>], db: usize, shard_count: usize) -> PlaceInLine {
        let mut lines = self.lines.lock();
        self.count.fetch_add(1, SeqCst);
        let places = indexes.iter().map(|index| {
            index.heads(db, shard_count).add_waiting();
            (index.clone(), lines.join(index, db).missed.len())
        });
        PlaceInLine { waiters: self.clone(), db, indexes: places.collect() }
    }

    /// One client has left its lines.
    fn forget<'i>(&self, lines: &mut Lines, db: usize, indexes: impl Iterator<Item = &'i Arc<Index>>) {
        for index in indexes {
            index.remove_waiting(db);
            lines.forget_if_unused(line_id(index, db));
        }
        self.count.fetch_sub(1, SeqCst);
    }

    /// A client waits no longer.
    pub(super) fn leave(&self, waiter: &RecordWaiter) {
        let (mut lines, db) = (self.lines.lock(), waiter.blocked.db);
        for index in &waiter.indexes {
            lines.remove(line_id(index, db), waiter.blocked.number, &waiter.criteria);
        }
        self.forget(&mut lines, db, waiter.indexes.iter());
    }

    /// Whether clients wait for records of these indexes, as a client that asks for the same is concerned.
    pub(crate) fn ahead_of(
        &self,
        indexes: &[Arc<Index>],
        db: usize,
        criteria: impl Fn() -> Arc<Criteria>,
        now_ms: u64,
    ) -> AheadInLine {
        if indexes.iter().all(|index| index.waiting(db) == 0) {
            return AheadInLine::Nobody;
        }
        let criteria = criteria();
        let lines = self.lines.lock();
        let is_served = self.is_serving.load(SeqCst);
        let mut ids = indexes.iter().map(|index| line_id(index, db));
        if ids.clone().any(|id| lines.has_waiters(id) && (is_served || lines.is_to_be_served(id, now_ms))) {
            return AheadInLine::ToBeServed;
        }
        match ids.all(|id| lines.has_class(id, &criteria)) {
            true => AheadInLine::SameCriteria,
            false => AheadInLine::Nobody,
        }
    }

    /// True when clients that wait for records of an index are to be served.
    pub(crate) fn are_ready(&self, index: &Index, db: usize, now_ms: u64) -> bool {
        index.waiting(db) > 0 && self.lines.lock().is_to_be_served((std::ptr::from_ref(index) as usize, db), now_ms)
    }

    /// Waiters of indexes that are no longer there get an error.
    pub(crate) fn keep_only(&self, indexes: &Indexes) {
        if !self.any() {
            return;
        }
        let is_known = |index: &Arc<Index>| indexes.iter().any(|one| Arc::ptr_eq(one, index));
        let dropped = self.lines.lock().dropped(is_known);
        for waiter in dropped {
            let index = waiter.indexes.iter().find(|index| !is_known(index)).expect("one of its indexes is dropped");
            waiter.blocked.fail(was_dropped(&index.name).to_string());
        }
    }

    /// Everything is to be looked at anew: the databases were exchanged, or waiters could not be served for a while.
    pub(crate) fn search_anew(&self, concerns: impl Fn(usize) -> bool) {
        if !self.any() {
            return;
        }
        self.lines.lock().search_anew(concerns);
        self.has_work.store(true, SeqCst);
    }

    /// Notes records that a commit has made ready. They are locked.
    #[cold]
    pub(crate) fn note(&self, records: &[Written], locked: &Locked<'_>, now_ms: u64) {
        let mut lines = self.lines.lock();
        for (db, index, name) in records {
            // As it is in the end: a transaction may have changed it more than once.
            if let Some((score, hash)) = indexed(locked.db(*db, Key::new(name)), index, Key::new(name)) {
                let candidate = Candidate { score, name: name.clone(), set_aside_by: Vec::new() };
                lines.note(line_id(index, *db), &candidate, hash, now_ms);
                self.has_work.store(true, SeqCst);
            }
        }
    }

    /// Which waiters have set a record aside as it is now, as far as one knows that is served.
    pub(crate) fn set_aside_by(&self, offer: &RecordOffer, db: usize, name: &[u8]) -> Vec<Arc<Criteria>> {
        self.lines.lock().set_aside_by(line_id(&offer.index, db), &offer.criteria, name)
    }

    /// A waiter has set a record aside, which may have left it where it was. Without this it would find it again, and
    /// set it aside for ever. `before` are those that had done so. The record's shard is locked.
    pub(crate) fn note_set_aside(&self, offer: &RecordOffer, db: usize, name: &[u8], before: &[Arc<Criteria>]) {
        let by: Vec<_> = before.iter().chain([&offer.criteria]).cloned().collect();
        self.lines.lock().note_set_aside(db, name, &by);
    }

    /// The waiter that is to be served next, if there may be a record for any.
    fn next_work(&self, now_ms: u64) -> Option<Work> {
        let mut lines = self.lines.lock();
        self.looked_ms.store(now_ms, Relaxed);
        let work = lines.next_work(now_ms);
        if work.is_none() {
            self.has_work.store(false, SeqCst);
            let due_ms = lines.next_time().unwrap_or(u64::MAX);
            let was_due_ms = self.due_ms.swap(due_ms, SeqCst);
            drop(lines);
            if due_ms < was_due_ms || was_due_ms == 0 {
                self.wake_timer();
            }
        }
        work
    }

    /// Notes what became of a waiter that was to be served.
    fn note_served(&self, work: &Work, outcome: Outcome<'_>, now_ms: u64) {
        self.lines.lock().note_served(work, work.waiter.blocked.number, outcome, now_ms);
    }

    fn wake_timer(&self) {
        if let Some(waker) = &*self.timer.lock() {
            waker.wake_by_ref();
        }
    }
}

/// What became of a waiter that was to be served.
enum Outcome<'a> {
    /// It has its reply, or it waited no longer.
    Ended,
    /// There was nothing for it, and it has searched so far.
    Nothing(&'a [Searched]),
    /// Its search is not finished.
    Unfinished(Unfinished),
    /// A long script holds the locks.
    Later,
}

/// Who is served before a client that searches an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AheadInLine {
    /// No client, or clients for whom there is nothing.
    Nobody,
    /// Clients wait, and there may be a record for one.
    ToBeServed,
    /// Clients wait for the same records in every one of the lines, and there is none.
    SameCriteria,
}

fn was_dropped(name: &[u8]) -> CommandError {
    CommandError::said(format!("ERR the index '{}' was dropped", name.escape_ascii()))
}

/// Notes the records of indexes with waiters to which an effect has just given a score.
#[inline(never)]
pub(crate) fn note_records(pending: &PendingNotifications, locked: &Locked<'_>, db: usize, effect: &Effect<'_>) {
    match effect.touches(db) {
        Touches::Keys(touches) => {
            for Touch { db, key, .. } in touches.into_iter().filter(|touch| touch.fate != Fate::Read) {
                let within = locked.db(db, key);
                for index in within.indexes().iter().filter(|index| index.waiting(db) > 0) {
                    if indexed(within, index, key).is_some() {
                        pending.record(db, index.clone(), key.name.into());
                    }
                }
            }
        }
        Touches::Swapped(a, b) => pending.exchanged([a, b]),
        Touches::Emptied(_) | Touches::Definition => {}
    }
}

/// A record that an index has, and its score: with expired fields that are not removed yet.
fn indexed<'d>(db: &'d Db, index: &Index, key: Key<'_>) -> Option<(f64, HashRef<'d>)> {
    let entry = db.entry(key).filter(|_| index.definition.covers(key.name))?;
    let Value::Hash(hash) = db.value(entry, 0) else { return None };
    Some((index.definition.score(hash)?, hash))
}

impl Client {
    /// Asks to wait for a record. What the handler has replied is the timeout reply.
    pub(crate) fn wait_for_record(&mut self, wait: RecordWait) {
        self.wait_phase = WaitPhase::RecordsRequested(wait);
    }

    /// The records that its command may take, if it is served.
    pub(crate) fn record_offer(&self) -> Option<Arc<RecordOffer>> {
        match &self.wait_phase {
            WaitPhase::RecordsServing(offer) => Some(offer.clone()),
            _ => None,
        }
    }
}

impl Engine {
    /// Queues a client whose command, which has just run, asks to wait for records. What was replied becomes the timeout
    /// reply.
    pub(crate) fn begin_record_wait(
        &self,
        client: &mut Client,
        command: &'static CommandRow,
        request: Request<'_>,
        (out, reply_at): (&mut Vec<u8>, usize),
        now_ms: u64,
    ) -> Result<Option<Blocked>, CommandError> {
        let wait = match std::mem::take(&mut client.wait_phase) {
            WaitPhase::RecordsRequested(wait) => wait,
            other => {
                client.wait_phase = other;
                return Ok(None);
            }
        };
        let Some(mut place) = wait.place else { return Ok(None) };
        let known = self.indexes.read();
        let mut lines = self.record_waiters.lines.lock();
        let line_of = |(index, _): &(Arc<Index>, usize)| line_id(index, place.db);
        // IMPORTANT: under the lock of the indexes. One that is dropped later finds this waiter in its line.
        let is_dropped = |joined: &&(Arc<Index>, usize)| {
            lines.line(line_of(joined)).is_none_or(|line| line.is_dropped)
                || !known.iter().any(|index| Arc::ptr_eq(index, &joined.0))
        };
        if let Some((index, _)) = place.indexes.iter().find(is_dropped) {
            let error = was_dropped(&index.name);
            drop((lines, known));
            return Err(error);
        }
        // The number is assigned under the lock, so that later waiters have higher numbers in every line.
        let blocked = BlockedCommand::new(self.next_wait_number(), client, command, request, out.split_off(reply_at));
        client.handle.wait_state.begin(blocked.number);
        let indexes = place.indexes.iter().map(|(index, _)| index.clone()).collect();
        let waiter = Arc::new(RecordWaiter { blocked, indexes, criteria: wait.criteria });
        for (at, joined) in place.indexes.iter().enumerate() {
            let searched = wait.searched.get(at).copied().unwrap_or(NOTHING_SEARCHED);
            lines.add(line_of(joined), waiter.blocked.number, &waiter, searched, joined.1, now_ms);
            lines.end_search(line_of(joined));
        }
        // IMPORTANT: also when nothing is ready: it may be the first that waits for a time.
        self.record_waiters.has_work.store(true, SeqCst);
        drop((lines, known));
        // Its place is the waiter's from now on.
        place.indexes.clear();
        self.record_waiters.count.fetch_add(1, SeqCst);
        client.wait_phase = WaitPhase::RecordsQueued(waiter);
        Ok(Some(Blocked { until_ms: wait.until_ms, event: Event::Value, silent: false }))
    }

    /// Serves clients that wait for records, as long as there may be one for any, or for a slice of time. The caller holds
    /// no locks. False when that is to be tried again later: another thread serves, or a long script holds the locks.
    pub(crate) fn serve_record_waiters(&self, worker: &mut Worker) -> bool {
        let waiters = &self.record_waiters;
        let began_ns = self.clock.monotonic_ns();
        let mut is_served = false;
        while waiters.has_work() && self.may_expire() {
            if waiters.is_serving.swap(true, SeqCst) {
                // That thread sees what has become ready since.
                is_served = false;
                break;
            }
            let mut is_over = false;
            while !is_over && let Some(mut work) = waiters.next_work(worker.now_ms) {
                is_served = self.serve_record_waiter(worker, &mut work);
                is_over = !is_served || self.clock.monotonic_ns().saturating_sub(began_ns) > SLICE_NS;
            }
            waiters.is_serving.store(false, SeqCst);
            if is_over {
                waiters.wake_timer();
                break;
            }
        }
        // This time does not count for the command that has changed the records.
        worker.last_ns += self.clock.monotonic_ns().saturating_sub(began_ns);
        is_served
    }

    /// Runs a client's command on its behalf, now that there may be a record for it. False when a long script holds the
    /// locks, and it is to be tried again later.
    fn serve_record_waiter(&self, worker: &mut Worker, work: &mut Work) -> bool {
        let (waiters, blocked) = (&self.record_waiters, &work.waiter.blocked);
        if !blocked.claim() {
            // It waits no longer, and its connection is about to leave the lines.
            waiters.note_served(work, Outcome::Ended, worker.now_ms);
            return true;
        }
        let began_ns = self.clock.monotonic_ns();
        let mut client = blocked.stand_in(self, WaitPhase::RecordsServing(work.offer.clone()));
        let Handler::Script(handler) = blocked.command.command.handler else {
            panic!("only commands that take their locks themselves wait for records");
        };
        let mut out = Vec::new();
        let request = blocked.request.as_request();
        client.unfinished = work.unfinished.take();
        let (reply, mut after) = (blocked.reply_to(&mut out), After::Continue);
        let result =
            self.run_scripting(worker, &mut client, blocked.command, request, reply, &mut after, handler, None);
        if let (After::Again, Some(unfinished)) = (after, client.unfinished.take()) {
            waiters.note_served(work, Outcome::Unfinished(unfinished), worker.now_ms);
            blocked.give_back();
            return true;
        }
        if let WaitPhase::RecordsRequested(wait) = &client.wait_phase {
            waiters.note_served(work, Outcome::Nothing(&wait.searched), worker.now_ms);
            blocked.give_back();
            return true;
        }
        if matches!(result, Err(CommandError::Busy | CommandError::BusyFunction)) {
            waiters.note_served(work, Outcome::Later, worker.now_ms);
            blocked.give_back();
            return false;
        }
        waiters.note_served(work, Outcome::Ended, worker.now_ms);
        let took_ns = self.clock.monotonic_ns().saturating_sub(began_ns);
        blocked.deliver(self, worker, &client, result, out, took_ns);
        true
    }

    /// When [`Engine::serve_due_records`] is to be called next, in unix milliseconds; `None` when no client waits for a
    /// time. `waker` is woken when that changes.
    pub fn next_due_record(&self, waker: &Waker) -> Option<u64> {
        let waiters = &self.record_waiters;
        let mut timer = waiters.timer.lock();
        if !timer.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *timer = Some(waker.clone());
        }
        drop(timer);
        match waiters.has_work() {
            // While nothing may be written, the regular work tries again.
            true => self.may_expire().then_some(0),
            false => Some(waiters.due_ms.load(SeqCst)).filter(|due_ms| waiters.any() && *due_ms != u64::MAX),
        }
    }

    /// Serves clients that wait for records whose time has come by now. False when there was nothing to do, or that is to be
    /// tried again later.
    pub fn serve_due_records(&self, worker: &mut Worker) -> bool {
        let waiters = &self.record_waiters;
        let is_due = || waiters.due_ms.load(Relaxed) <= worker.now_ms;
        let was_set_back = || worker.now_ms < waiters.looked_ms.load(Relaxed);
        if waiters.any() && (is_due() || was_set_back()) {
            waiters.has_work.store(true, SeqCst);
        }
        waiters.has_work() && self.serve_record_waiters(worker)
    }
}
