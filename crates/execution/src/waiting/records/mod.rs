//! Clients that wait for records of an index (CLAIM), and how they are served. Knows threads, commits and times;
//! refuses to know what a command does with a record.
//!
//! Each index has a line of waiters in each database ([`lines`]). Waiters that want the same records ([`criteria`]) are
//! one class: a record that one of them has rejected need not be offered to the others. Three things can end a wait:
//!
//! - A write gives a record a score. While there are waiters, every such record is noted ([`note_records`]), and with
//!   the commit of its command, transaction or script it is ready for the classes that may want it.
//! - Time passes, and with `MAX NOW` a record is within the range that was not before. Each class knows the next score.
//! - The databases are emptied or swapped, or writes are possible again: then all classes search again.
//!
//! Waiters are served by a thread that holds no locks, right after the command that made a record ready; one thread
//! serves at a time, so that waiters are served in the order of their arrival. It runs the waiter's command on its
//! behalf; the command checks and changes a record under that record's lock. A client that arrives meanwhile is served
//! later.
//!
//! A client that has found nothing and wants to wait joins the line *first* and searches again: from then on no record
//! is missed, since records that become ready during the search are kept for it.

mod criteria;
mod lines;
pub mod queueing;
pub mod serving;

pub use self::criteria::{Condition, Criteria, TimeBound};
pub use self::lines::OfferedRecord;

use self::lines::{ClassId, Lines, line_id};
use super::waiter::{BlockedCommand, WaitPhase};
use crate::client::{Client, Unfinished};
use crate::error::CommandError;
use crate::notifications::pending::PendingNotifications;
use keyspace::db::Db;
use keyspace::index::{Index, Indexes};
use keyspace::{Effect, Fate, HashRef, Key, Locked, Touch, Touches};
use locks::{Mutex, rank};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::task::Waker;

/// The wait that a command requests when it has found nothing.
pub struct RecordWait {
    /// Unix milliseconds; `None` = for ever.
    pub until_ms: Option<u64>,
    pub criteria: Arc<Criteria>,
    /// Its place in the lines of its indexes; `None` when it was served and found nothing.
    pub place: Option<PlaceInLine>,
    /// How far each index was searched.
    pub searched: SmallVec<[Searched; 2]>,
}

/// How far a search without a result has come.
#[derive(Clone, Copy, Debug)]
pub struct Searched {
    /// No record up to this score qualifies.
    pub up_to: f64,
    /// No record has a score between `up_to` and this one.
    pub next_score: f64,
    /// When a rate allows a take again, in unix milliseconds.
    pub again_ms: Option<u64>,
}

/// A record that got a score in an index with waiters: its database, the index, its name.
pub type Written = (usize, Arc<Index>, Arc<[u8]>);

/// A client that waits for records.
pub struct RecordWaiter {
    blocked: BlockedCommand,
    indexes: SmallVec<[Arc<Index>; 2]>,
    criteria: Arc<Criteria>,
}

impl RecordWaiter {
    /// The position of an index among those that it names.
    fn position_of(&self, index: &Arc<Index>) -> usize {
        self.indexes.iter().position(|one| Arc::ptr_eq(one, index)).unwrap_or(0)
    }

    pub(super) fn blocked(&self) -> &BlockedCommand {
        &self.blocked
    }
}

/// The records that a served command may take.
pub struct RecordOffer {
    pub index: Arc<Index>,
    pub criteria: Arc<Criteria>,
    pub records: Offered,
    has_taken: AtomicBool,
    /// A limit was in the way of a record that qualifies.
    is_limited: AtomicBool,
    /// The bits of the score of the last record taken.
    reached: AtomicU64,
}

impl RecordOffer {
    fn new(index: Arc<Index>, criteria: Arc<Criteria>, records: Offered) -> RecordOffer {
        let reached = AtomicU64::new(f64::NAN.to_bits());
        RecordOffer {
            index,
            criteria,
            records,
            has_taken: AtomicBool::new(false),
            is_limited: AtomicBool::new(false),
            reached,
        }
    }

    /// Notes that a search has taken its last record, of that score: no record before it qualifies, unless it was noted
    /// meanwhile.
    pub fn note_reached(&self, score: f64) {
        self.reached.store(score.to_bits(), Relaxed);
    }

    fn reached(&self) -> Option<f64> {
        Some(f64::from_bits(self.reached.load(Relaxed))).filter(|score| !score.is_nan())
    }

    /// Notes that a limit was in the way of a record that qualifies. The class searches, and learns when to search again.
    pub fn note_limited(&self) {
        self.is_limited.store(true, Relaxed);
    }

    fn is_limited(&self) -> bool {
        self.is_limited.load(Relaxed)
    }

    /// Notes that the command has taken a record and continues in another slice: its wait is over, whatever else it
    /// finds.
    pub fn note_taken(&self) {
        self.has_taken.store(true, Relaxed);
    }
}

pub enum Offered {
    /// Some of these. Those that it does not take stay for others.
    Candidates(Mutex<Vec<OfferedRecord>, { rank::OFFERED_RECORDS }>),
    /// Those above this score: it has rejected the others before.
    Above(f64),
}

/// All clients that wait for records.
#[derive(Default)]
pub struct RecordWaiters {
    /// How many have a place in a line.
    count: AtomicUsize,
    lines: Mutex<Lines, { rank::RECORD_LINES }>,
    /// A record is ready, or a class has to search again.
    has_work: AtomicBool,
    /// A new class has to search: see `serve_due_records`.
    has_to_search: AtomicBool,
    /// A thread is serving waiters.
    is_serving: AtomicBool,
    /// It searches for a new class, and other clients may go first.
    is_searching: AtomicBool,
    /// When the next record becomes due for a class, in unix milliseconds.
    due_ms: AtomicU64,
    /// When waiters were last checked, by the clock at that time, in unix milliseconds.
    looked_ms: AtomicU64,
    /// Wakes the task that calls `serve_due_records` at that time.
    timer: Mutex<Option<Waker>, { rank::WAKER }>,
}

/// A waiter to be served.
struct Work {
    waiter: Arc<RecordWaiter>,
    class: ClassId,
    offer: Arc<RecordOffer>,
    /// An unfinished search of its class, to be continued.
    unfinished: Option<Box<Unfinished>>,
    is_continued: bool,
    /// Its wait is over: it has taken records in an earlier slice.
    is_claimed: bool,
    /// It is the first search of its class.
    is_new: bool,
    /// The class's `begun_anew` when this work was taken.
    begun_anew: u64,
}

/// The place of a client in the lines of some indexes while it searches before it waits.
pub struct PlaceInLine {
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
    pub fn any(&self) -> bool {
        self.count.load(SeqCst) > 0
    }

    /// True when waiters are to be served.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.has_work.load(SeqCst)
    }

    /// Adds a client to the lines of these indexes, before its last search.
    pub fn join(self: &Arc<Self>, indexes: &[Arc<Index>], db: usize, shard_count: usize) -> PlaceInLine {
        let mut lines = self.lines.lock();
        self.count.fetch_add(1, SeqCst);
        let places = indexes.iter().map(|index| {
            index.heads(db, shard_count).add_waiting();
            (index.clone(), lines.join(index, db).missed.len())
        });
        PlaceInLine { waiters: self.clone(), db, indexes: places.collect() }
    }

    /// Removes a client from its lines.
    fn forget<'i>(&self, lines: &mut Lines, db: usize, indexes: impl Iterator<Item = &'i Arc<Index>>) {
        for index in indexes {
            index.remove_waiting(db);
            lines.forget_if_unused(line_id(index, db));
        }
        self.count.fetch_sub(1, SeqCst);
    }

    /// Ends a client's wait.
    pub(super) fn leave(&self, waiter: &RecordWaiter) {
        let (mut lines, db) = (self.lines.lock(), waiter.blocked.db);
        for index in &waiter.indexes {
            lines.remove(line_id(index, db), waiter.blocked.number, &waiter.criteria);
        }
        self.forget(&mut lines, db, waiter.indexes.iter());
    }

    /// True while the first search of a client's class is not finished: only after it is it known that there is no
    /// record.
    pub(super) fn is_first_search(&self, waiter: &RecordWaiter) -> bool {
        let lines = self.lines.lock();
        waiter.indexes.iter().any(|index| lines.is_first_search(line_id(index, waiter.blocked.db), &waiter.criteria))
    }

    /// Which clients are served before a client that searches these indexes with these criteria.
    pub fn ahead_of(
        &self,
        indexes: &[Arc<Index>],
        db: usize,
        criteria: impl Fn() -> Arc<Criteria>,
        now_ms: u64,
    ) -> AheadInLine {
        if indexes.iter().all(|index| index.waiting(db) == 0) {
            return AheadInLine::NoWaiter;
        }
        let criteria = criteria();
        let lines = self.lines.lock();
        let is_served = self.is_serving.load(SeqCst) && !self.is_searching.load(SeqCst);
        let mut ids = indexes.iter().map(|index| line_id(index, db));
        if ids.clone().any(|id| lines.has_waiters(id) && (is_served || lines.is_to_be_served(id, now_ms))) {
            return AheadInLine::ToBeServed;
        }
        let searched = ids.try_fold(true, |all, id| Some(all & lines.has_searched(id, &criteria)?));
        searched.map_or(AheadInLine::NoWaiter, |has_searched| AheadInLine::SameCriteria { has_searched })
    }

    /// True when clients that wait for records of an index are to be served.
    pub fn are_ready(&self, index: &Index, db: usize, now_ms: u64) -> bool {
        index.waiting(db) > 0 && self.lines.lock().is_to_be_served((std::ptr::from_ref(index) as usize, db), now_ms)
    }

    /// Ends the waits for records of dropped indexes with an error.
    pub fn keep_only(&self, indexes: &Indexes) {
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

    /// Makes all classes search again: the databases were emptied or swapped, or waiters could not be served for a
    /// while.
    pub fn search_anew(&self, concerns: impl Fn(usize) -> bool) {
        if !self.any() {
            return;
        }
        self.lines.lock().search_anew(concerns);
        self.has_work.store(true, SeqCst);
    }

    /// Makes all classes of one index search again: its limits have changed.
    pub fn search_index_anew(&self, index: &Arc<Index>) {
        if !self.any() {
            return;
        }
        self.lines.lock().search_line_anew(|line| Arc::ptr_eq(&line.index, index));
        self.has_work.store(true, SeqCst);
        self.wake_timer();
    }

    /// Notes records that a commit has made ready. They are locked.
    #[cold]
    pub fn note(&self, records: &[Written], locked: &Locked<'_>, now_ms: u64) {
        let mut lines = self.lines.lock();
        for (db, index, name) in records {
            let id = line_id(index, *db);
            let is_grouped = index.definition.has_queues();
            if is_grouped {
                let news = index.groups.lock(*db).take_news();
                if lines.note_news(id, news) {
                    self.has_work.store(true, SeqCst);
                }
            }
            // In its final state: a transaction may have changed it more than once.
            if let Some((score, hash)) = indexed(locked.db(*db, Key::new(name)), index, Key::new(name)) {
                let candidate = OfferedRecord { score, name: name.clone(), set_aside_by: Vec::new() };
                lines.note(id, &candidate, hash, now_ms, is_grouped);
                self.has_work.store(true, SeqCst);
            }
        }
    }

    /// Which waiters have set a record aside in its current state, as far as the served waiter knows.
    pub fn set_aside_by(&self, offer: &RecordOffer, db: usize, name: &[u8]) -> Vec<Arc<Criteria>> {
        self.lines.lock().set_aside_by(line_id(&offer.index, db), &offer.criteria, name)
    }

    /// Notes that a waiter has set a record aside. The record may still match: without this note the waiter would find
    /// it again and set it aside for ever. `before` are the waiters that had set it aside already. The record's shard
    /// is locked.
    pub fn note_set_aside(&self, offer: &RecordOffer, db: usize, name: &[u8], before: &[Arc<Criteria>]) {
        let by: Vec<_> = before.iter().chain([&offer.criteria]).cloned().collect();
        self.lines.lock().note_set_aside(db, name, &by);
    }

    /// The waiter to serve next, if there may be a record for any.
    fn next_work(&self, now_ms: u64, searches: bool) -> Option<Work> {
        let mut lines = self.lines.lock();
        self.looked_ms.store(now_ms, Relaxed);
        let work = lines.next_work(now_ms, searches);
        self.is_searching.store(work.as_ref().is_some_and(|work| work.is_new), SeqCst);
        if work.is_none() {
            let had_to_search = self.has_to_search.swap(lines.has_to_search(), SeqCst);
            self.has_work.store(false, SeqCst);
            let due_ms = lines.next_time().unwrap_or(u64::MAX);
            let was_due_ms = self.due_ms.swap(due_ms, SeqCst);
            drop(lines);
            let begins_to_search = !had_to_search && self.has_to_search.load(SeqCst);
            if due_ms < was_due_ms || was_due_ms == 0 || begins_to_search {
                self.wake_timer();
            }
        }
        work
    }

    /// Notes the result of serving a waiter.
    fn note_served(&self, work: &Work, outcome: Outcome<'_>, now_ms: u64) {
        self.lines.lock().note_served(work, work.waiter.blocked.number, outcome, now_ms);
    }

    fn wake_timer(&self) {
        if let Some(waker) = &*self.timer.lock() {
            waker.wake_by_ref();
        }
    }
}

/// The result of serving a waiter.
enum Outcome<'a> {
    /// It has its reply, or it no longer waits.
    Ended,
    /// There was nothing for it, and it has searched so far.
    Nothing(&'a [Searched]),
    /// Its search is not finished.
    Unfinished { unfinished: Box<Unfinished>, has_taken: bool },
    /// A long script holds the locks.
    Later,
}

/// Which clients are served before a client that searches an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AheadInLine {
    /// No client, or only clients without a possible record.
    NoWaiter,
    /// Clients wait, and there may be a record for one of them.
    ToBeServed,
    /// Clients wait for the same records in all of the lines. If they have searched everything, there is none.
    SameCriteria { has_searched: bool },
}

fn was_dropped(name: &[u8]) -> CommandError {
    CommandError::said(format!("ERR the index '{}' was dropped", name.escape_ascii()))
}

/// Notes the records of indexes with waiters to which an effect has just given a score.
#[inline(never)]
pub fn note_records(pending: &PendingNotifications, locked: &Locked<'_>, db: usize, effect: &Effect<'_>) {
    match effect.touches(db) {
        Touches::Keys(touches) => {
            for Touch { db, key, .. } in touches.into_iter().filter(|touch| touch.fate != Fate::Read) {
                let within = locked.db(db, key);
                for index in within.indexes().iter().filter(|index| index.waiting(db) > 0) {
                    // One that has left may have made room in its group.
                    let may_make_room = index.definition.has_queues() && index.definition.covers(key.name);
                    if may_make_room || indexed(within, index, key).is_some() {
                        pending.record(db, index.clone(), key.name.into());
                    }
                }
            }
        }
        Touches::Swapped(a, b) => pending.replaced([a, b].into_iter()),
        Touches::Emptied(dbs) => pending.replaced(dbs),
        Touches::Definition(_) => {}
    }
}

/// A record of an index and its score; expired fields that are not removed yet count.
fn indexed<'d>(db: &'d Db, index: &Index, key: Key<'_>) -> Option<(f64, HashRef<'d>)> {
    let entry = db.entry(key).filter(|_| index.definition.covers(key.name))?;
    let hash = db.typed::<HashRef>(entry, 0)?;
    Some((index.definition.score(hash)?, hash))
}

impl Client {
    /// Requests to wait for a record. The reply that the handler has written is the timeout reply.
    pub fn wait_for_record(&mut self, wait: RecordWait) {
        self.wait_phase = WaitPhase::RecordsRequested(wait);
    }

    /// The records that its command may take while it is served.
    pub fn record_offer(&self) -> Option<Arc<RecordOffer>> {
        match &self.wait_phase {
            WaitPhase::RecordsServing(offer) => Some(offer.clone()),
            _ => None,
        }
    }
}
