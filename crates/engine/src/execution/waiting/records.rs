//! Clients that wait for records of an index (CLAIM): who waits in which order, and when a record may be for one of them.
//! Knows scores, names and times; refuses to know what a command does with a record.
//!
//! Each index has a line of waiters in each database. Waiters that want the same records are one class: what one of them
//! has looked at, none of them needs to look at again. Three things can end a wait:
//!
//! - A write gives a record a score. While there are waiters, every such record is noted ([`note_records`]), and with the
//!   commit of its command, transaction or script it is ready.
//! - Time passes, and with `MAX NOW` a record is within the range that was not before. Each class knows the next score.
//! - The databases are exchanged, or writes are possible again: then everything is looked at anew.
//!
//! Waiters are served by a thread that holds no locks, right after the command that made a record ready; one thread serves
//! at a time, so that waiters are served in the order in which they came. It runs the waiter's command on its behalf,
//! which judges and changes a record under that record's lock. A client that arrives meanwhile comes after them.
//!
//! A client that has found nothing and wants to wait joins the line *first* and searches again: from then on no record is
//! missed, since whatever becomes ready during the search is kept for it.

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
use keyspace::index::{Index, Indexes};
use keyspace::types::sorted_set::{ScoreBound, ScoreRange};
use keyspace::{Effect, Fate, Locked, Touch, Touches, Value};
use locks::{Mutex, rank};
use resp::Request;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::task::Waker;

/// A record that may be for a waiter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) score: f64,
    pub(crate) name: Arc<[u8]>,
    /// Waiters that have set it aside as it is now. It is not for them until it is written again.
    set_aside_by: Vec<Criteria>,
}

/// A bound of scores, which may pass with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TimeBound {
    /// The bits of a score.
    Score { bits: u64, excluded: bool },
    /// The time and so many milliseconds.
    Now { offset_ms: i64, excluded: bool },
}

impl TimeBound {
    pub(crate) fn score(score: f64, excluded: bool) -> TimeBound {
        TimeBound::Score { bits: score.to_bits(), excluded }
    }

    /// The bound at that time.
    pub(crate) fn at(self, now_ms: u64) -> ScoreBound {
        match self {
            TimeBound::Score { bits, excluded } => ScoreBound { score: f64::from_bits(bits), excluded },
            TimeBound::Now { offset_ms, excluded } => {
                ScoreBound { score: (now_ms as i64).saturating_add(offset_ms) as f64, excluded }
            }
        }
    }

    /// When a record of that score is below this bound, in unix milliseconds.
    fn reached_at_ms(self, score: f64) -> Option<u64> {
        match self {
            TimeBound::Score { .. } => None,
            TimeBound::Now { .. } if score == f64::INFINITY => None,
            TimeBound::Now { offset_ms, excluded } => {
                let first = if excluded { score.floor() + 1.0 } else { score.ceil() };
                Some((first - offset_ms as f64).max(0.0) as u64)
            }
        }
    }
}

/// Which records a waiter wants. Waiters with equal criteria want the same records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Criteria {
    pub(crate) min: TimeBound,
    pub(crate) max: TimeBound,
    /// Its other conditions, in a form of its own.
    pub(crate) conditions: Vec<u8>,
}

impl Criteria {
    pub(crate) fn range(&self, now_ms: u64) -> ScoreRange {
        ScoreRange { min: self.min.at(now_ms), max: self.max.at(now_ms) }
    }
}

/// What a command that has found nothing asks for.
pub(crate) struct RecordWait {
    /// Unix milliseconds; `None` = for ever.
    pub(crate) until_ms: Option<u64>,
    pub(crate) criteria: Criteria,
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

/// A client that waits for records.
pub(crate) struct RecordWaiter {
    blocked: BlockedCommand,
    indexes: SmallVec<[Arc<Index>; 2]>,
    criteria: Criteria,
}

impl RecordWaiter {
    pub(super) fn blocked(&self) -> &BlockedCommand {
        &self.blocked
    }
}

/// What a command that is served may take.
pub(crate) struct RecordOffer {
    pub(crate) index: Arc<Index>,
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
    lines: Mutex<HashMap<LineId, Line>, { rank::RECORD_LINES }>,
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

/// An index, by its address, and a database.
type LineId = (usize, usize);

fn line_id(index: &Arc<Index>, db: usize) -> LineId {
    (Arc::as_ptr(index) as usize, db)
}

/// The waiters of one index in one database.
struct Line {
    index: Arc<Index>,
    db: usize,
    /// The index was dropped.
    is_dropped: bool,
    classes: HashMap<Criteria, Class>,
    /// How many clients search before they wait, and what has become ready since the first of them joined.
    searching: usize,
    missed: Vec<Candidate>,
    missed_too_many: bool,
}

/// Waiters that want the same records.
struct Class {
    waiters: BTreeMap<u64, Arc<RecordWaiter>>,
    searched: Searched,
    /// The lowest score from which on the index is to be searched again, since the last search began.
    noted: f64,
    /// Where its range began when it was last looked at.
    min_score: f64,
    /// Records that have got a score within their range.
    ready: Vec<Candidate>,
    /// A search that was interrupted.
    unfinished: Option<Unfinished>,
}

/// What a command that works in slices has left for its next slice.
type Unfinished = Box<dyn Any + Send>;

/// The most records that are noted one by one; beyond that, the index is searched.
const NOTED_MAX: usize = 1000;

const NOTHING_SEARCHED: Searched = Searched { up_to: f64::NEG_INFINITY, next_score: f64::NEG_INFINITY };

impl Line {
    fn new(index: Arc<Index>, db: usize) -> Line {
        Line {
            index,
            db,
            is_dropped: false,
            classes: HashMap::new(),
            searching: 0,
            missed: Vec::new(),
            missed_too_many: false,
        }
    }

    fn is_unused(&self) -> bool {
        self.classes.is_empty() && self.searching == 0
    }

    fn note(&mut self, candidate: &Candidate, now_ms: u64) {
        if self.searching > 0 {
            match self.missed.len() < NOTED_MAX {
                true => self.missed.push(candidate.clone()),
                false => self.missed_too_many = true,
            }
        }
        self.classes.iter_mut().for_each(|(criteria, class)| class.note(&criteria.range(now_ms), candidate));
    }

    /// One who searched has a place among the waiters now, or has left.
    fn end_search(&mut self) {
        self.searching -= 1;
        if self.searching == 0 {
            self.missed = Vec::new();
            self.missed_too_many = false;
        }
    }

    /// When the first of its classes has something to look at, in unix milliseconds.
    fn due_ms(&self) -> Option<u64> {
        self.classes.iter().filter_map(|(criteria, class)| criteria.max.reached_at_ms(class.next_score())).min()
    }

    fn is_to_be_served(&self, now_ms: u64) -> bool {
        !self.is_dropped && self.classes.iter().any(|(criteria, class)| class.has_work(&criteria.range(now_ms)))
    }
}

impl Class {
    fn new(searched: Searched) -> Class {
        Class {
            waiters: BTreeMap::new(),
            searched,
            noted: f64::INFINITY,
            min_score: f64::NEG_INFINITY,
            ready: Vec::new(),
            unfinished: None,
        }
    }

    /// Notes a record that has got a score.
    fn note(&mut self, range: &ScoreRange, candidate: &Candidate) {
        if !range.reaches(candidate.score) {
            self.search_from(candidate.score);
        } else if range.has(candidate.score) {
            self.ready.push(candidate.clone());
            if self.ready.len() > NOTED_MAX {
                self.search_ready();
            }
        }
    }

    /// Records of this score and above are to be looked at once they are within the range.
    fn search_from(&mut self, score: f64) {
        self.noted = self.noted.min(score);
    }

    /// No record below this score is to be looked at.
    fn next_score(&self) -> f64 {
        self.searched.next_score.min(self.noted)
    }

    /// What is ready is to be found by a search.
    fn search_ready(&mut self) {
        let lowest = self.ready.iter().map(|candidate| candidate.score).fold(f64::INFINITY, f64::min);
        self.ready = Vec::new();
        self.search_from(lowest);
    }

    /// Notes where its range begins now.
    fn note_min(&mut self, range: &ScoreRange) {
        if range.min.score < self.min_score {
            // The clock was set back, and what was too old for it may not be any more.
            self.search_anew();
        }
        self.min_score = range.min.score;
    }

    fn search_anew(&mut self) {
        self.ready = Vec::new();
        self.unfinished = None;
        self.searched = NOTHING_SEARCHED;
    }

    fn is_due(&self, range: &ScoreRange) -> bool {
        self.next_score() < f64::INFINITY && range.reaches(self.next_score())
    }

    fn has_work(&self, range: &ScoreRange) -> bool {
        !self.ready.is_empty() || self.unfinished.is_some() || self.is_due(range)
    }

    /// What its first waiter may take.
    fn take_offer(&mut self, range: &ScoreRange, is_continued: bool) -> Offered {
        // In the range when they were noted: the clock may have been set since.
        let left = std::mem::take(&mut self.ready);
        let (reached, not_yet): (Vec<_>, Vec<_>) = left.into_iter().partition(|one| range.reaches(one.score));
        not_yet.iter().for_each(|candidate| self.search_from(candidate.score));
        self.ready = reached;
        // One search finds the lowest of both.
        if self.is_due(range) && !self.ready.is_empty() {
            self.search_ready();
        }
        if !self.is_due(range) && !is_continued {
            return Offered::Candidates(Mutex::new(std::mem::take(&mut self.ready)));
        }
        let up_to = self.searched.up_to.min(self.noted.next_down());
        if !is_continued {
            // The search will find it.
            self.noted = f64::INFINITY;
        }
        Offered::Above(up_to)
    }
}

/// A waiter to be served.
struct Work {
    waiter: Arc<RecordWaiter>,
    line: LineId,
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
        for (index, _) in &self.indexes {
            if let Some(line) = lines.get_mut(&line_id(index, self.db)) {
                line.end_search();
            }
        }
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
            let line = lines.entry(line_id(index, db)).or_insert_with(|| Line::new(index.clone(), db));
            line.searching += 1;
            index.heads(db, shard_count).add_waiting();
            (index.clone(), line.missed.len())
        });
        PlaceInLine { waiters: self.clone(), db, indexes: places.collect() }
    }

    /// One client has left its lines.
    fn forget<'i>(&self, lines: &mut HashMap<LineId, Line>, db: usize, indexes: impl Iterator<Item = &'i Arc<Index>>) {
        for index in indexes {
            index.remove_waiting(db);
            if lines.get(&line_id(index, db)).is_some_and(Line::is_unused) {
                lines.remove(&line_id(index, db));
            }
        }
        self.count.fetch_sub(1, SeqCst);
    }

    /// A client waits no longer.
    pub(super) fn leave(&self, waiter: &RecordWaiter) {
        let (mut lines, db) = (self.lines.lock(), waiter.blocked.db);
        for index in &waiter.indexes {
            let Some(line) = lines.get_mut(&line_id(index, db)) else { continue };
            if let Some(class) = line.classes.get_mut(&waiter.criteria) {
                class.waiters.remove(&waiter.blocked.number);
                if class.waiters.is_empty() {
                    line.classes.remove(&waiter.criteria);
                }
            }
        }
        self.forget(&mut lines, db, waiter.indexes.iter());
    }

    /// Whether clients wait for records of these indexes, as a client that asks for the same is concerned.
    pub(crate) fn ahead_of(&self, indexes: &[Arc<Index>], db: usize, criteria: &Criteria, now_ms: u64) -> AheadInLine {
        if indexes.iter().all(|index| index.waiting(db) == 0) {
            return AheadInLine::Nobody;
        }
        let lines = self.lines.lock();
        let of = || indexes.iter().map(|index| lines.get(&line_id(index, db)));
        let is_served = self.is_serving.load(SeqCst);
        let has_waiters = |line: &Line| !line.classes.is_empty();
        if of().flatten().any(|line| has_waiters(line) && (is_served || line.is_to_be_served(now_ms))) {
            return AheadInLine::ToBeServed;
        }
        match of().all(|line| line.is_some_and(|line| line.classes.contains_key(criteria))) {
            true => AheadInLine::SameCriteria,
            false => AheadInLine::Nobody,
        }
    }

    /// True when clients that wait for records of an index are to be served.
    pub(crate) fn are_ready(&self, index: &Index, db: usize, now_ms: u64) -> bool {
        index.waiting(db) > 0
            && self
                .lines
                .lock()
                .get(&(std::ptr::from_ref(index) as usize, db))
                .is_some_and(|line| line.is_to_be_served(now_ms))
    }

    /// Waiters of indexes that are no longer there get an error.
    pub(crate) fn keep_only(&self, indexes: &Indexes) {
        if !self.any() {
            return;
        }
        let mut lines = self.lines.lock();
        let dropped = lines.values_mut().filter(|line| !indexes.iter().any(|index| Arc::ptr_eq(index, &line.index)));
        for line in dropped {
            line.is_dropped = true;
            for waiter in line.classes.values().flat_map(|class| class.waiters.values()) {
                waiter.blocked.fail(&was_dropped(&line.index.name).to_string());
            }
        }
    }

    /// Everything is to be looked at anew: the databases were exchanged, or waiters could not be served for a while.
    pub(crate) fn search_anew(&self, concerns: impl Fn(usize) -> bool) {
        if !self.any() {
            return;
        }
        let mut lines = self.lines.lock();
        for line in lines.values_mut().filter(|line| concerns(line.db)) {
            line.classes.values_mut().for_each(Class::search_anew);
            line.missed_too_many |= line.searching > 0;
        }
        self.has_work.store(true, SeqCst);
    }

    /// Notes records that a commit has made ready.
    #[cold]
    pub(crate) fn note(&self, records: &[(usize, Arc<Index>, Candidate)], now_ms: u64) {
        let mut lines = self.lines.lock();
        for (db, index, candidate) in records {
            if let Some(line) = lines.get_mut(&line_id(index, *db)) {
                line.note(candidate, now_ms);
                self.has_work.store(true, SeqCst);
            }
        }
    }

    /// A waiter has set a record aside, which may have left it where it was. Without this it would find it again, and
    /// set it aside for ever. `before` is as it was offered. The record's shard is locked.
    pub(crate) fn note_set_aside(&self, db: usize, name: &[u8], criteria: &Criteria, before: Option<&Candidate>) {
        let mut set_aside_by = before.map_or(Vec::new(), |before| before.set_aside_by.clone());
        set_aside_by.push(criteria.clone());
        let mut lines = self.lines.lock();
        for (criteria, class) in lines.values_mut().filter(|line| line.db == db).flat_map(|line| &mut line.classes) {
            class.ready.retain_mut(|candidate| {
                if *candidate.name != *name {
                    return true;
                }
                candidate.set_aside_by.extend_from_slice(&set_aside_by);
                !candidate.set_aside_by.contains(criteria)
            });
        }
    }

    /// The waiter that is to be served next: of those for whom there may be a record, the one that came first, from the
    /// first of its indexes.
    fn next_work(&self, now_ms: u64) -> Option<Work> {
        let mut lines = self.lines.lock();
        self.looked_ms.store(now_ms, Relaxed);
        let mut first: Option<(u64, usize, Arc<RecordWaiter>, LineId)> = None;
        for (id, line) in lines.iter_mut().filter(|(_, line)| !line.is_dropped) {
            for (criteria, class) in &mut line.classes {
                class.note_min(&criteria.range(now_ms));
                let Some((number, waiter)) = class.waiters.first_key_value() else { continue };
                let position = waiter.indexes.iter().position(|one| Arc::ptr_eq(one, &line.index)).unwrap_or(0);
                let comes_first = first.as_ref().is_none_or(|first| (*number, position) < (first.0, first.1));
                if comes_first && class.has_work(&criteria.range(now_ms)) {
                    first = Some((*number, position, waiter.clone(), *id));
                }
            }
        }
        let Some((_, _, waiter, id)) = first else {
            self.has_work.store(false, SeqCst);
            let due_ms = lines.values().filter_map(Line::due_ms).min().unwrap_or(u64::MAX);
            let was_due_ms = self.due_ms.swap(due_ms, SeqCst);
            drop(lines);
            if due_ms < was_due_ms || was_due_ms == 0 {
                self.wake_timer();
            }
            return None;
        };
        let line = lines.get_mut(&id).expect("it was just found");
        let class = line.classes.get_mut(&waiter.criteria).expect("it was just found");
        let unfinished = class.unfinished.take();
        let records = class.take_offer(&waiter.criteria.range(now_ms), unfinished.is_some());
        let offer = Arc::new(RecordOffer { index: line.index.clone(), records });
        let is_continued = unfinished.is_some();
        Some(Work { line: id, offer, waiter, unfinished, is_continued })
    }

    /// Notes what became of a waiter that was to be served.
    fn note_served(&self, work: &Work, outcome: Outcome<'_>) {
        let mut lines = self.lines.lock();
        let Some(line) = lines.get_mut(&work.line) else { return };
        let Some(class) = line.classes.get_mut(&work.waiter.criteria) else { return };
        match (&work.offer.records, &outcome) {
            (Offered::Candidates(left), _) => class.ready.append(&mut left.lock()),
            // It has found something, or has not looked at all: there may be more.
            (Offered::Above(_), Outcome::Ended | Outcome::Later) if work.is_continued => class.search_anew(),
            (Offered::Above(up_to), Outcome::Ended | Outcome::Later) => class.search_from(up_to.next_up()),
            (Offered::Above(_), Outcome::Nothing(_) | Outcome::Unfinished(_)) => {}
        }
        match outcome {
            Outcome::Later => {}
            Outcome::Unfinished(unfinished) => class.unfinished = Some(unfinished),
            Outcome::Nothing(searched) => {
                if let ([searched], Offered::Above(_)) = (searched, &work.offer.records) {
                    class.searched = *searched;
                }
            }
            Outcome::Ended => {
                // Its connection removes it from its other lines, too.
                class.waiters.remove(&work.waiter.blocked.number);
                if class.waiters.is_empty() {
                    line.classes.remove(&work.waiter.criteria);
                }
            }
        }
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
                    let Some(entry) = within.entry(key).filter(|_| index.definition.covers(key.name)) else { continue };
                    // As the index has it, with expired fields that are not removed yet.
                    let Value::Hash(hash) = within.value(entry, 0) else { continue };
                    if let Some(score) = index.definition.score(hash) {
                        pending.record(
                            db,
                            index.clone(),
                            Candidate { score, name: key.name.into(), set_aside_by: Vec::new() },
                        );
                    }
                }
            }
        }
        Touches::Swapped(a, b) => pending.exchanged([a, b]),
        Touches::Emptied(_) | Touches::Definition => {}
    }
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
            lines[&line_of(joined)].is_dropped || !known.iter().any(|index| Arc::ptr_eq(index, &joined.0))
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
            let line = lines.get_mut(&line_of(joined)).expect("it stays as long as a client has a place in it");
            let searched = wait.searched.get(at).copied().unwrap_or(NOTHING_SEARCHED);
            let is_new = !line.classes.contains_key(&waiter.criteria);
            let class = line.classes.entry(waiter.criteria.clone()).or_insert_with(|| Class::new(searched));
            class.waiters.insert(waiter.blocked.number, waiter.clone());
            // A class that was there has been told of everything.
            if is_new && line.missed_too_many {
                class.search_anew();
            } else if is_new {
                let (missed, range) = (&line.missed[joined.1.min(line.missed.len())..], waiter.criteria.range(now_ms));
                missed.iter().for_each(|candidate| class.note(&range, candidate));
            }
            line.end_search();
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
    /// no locks.
    pub(crate) fn serve_record_waiters(&self, worker: &mut Worker) {
        let waiters = &self.record_waiters;
        let began_ns = self.clock.monotonic_ns();
        while waiters.has_work() && self.may_expire() {
            if waiters.is_serving.swap(true, SeqCst) {
                // That thread sees what has become ready since.
                break;
            }
            let mut is_over = false;
            while !is_over && let Some(mut work) = waiters.next_work(worker.now_ms) {
                is_over = !self.serve_record_waiter(worker, &mut work);
                is_over |= self.clock.monotonic_ns().saturating_sub(began_ns) > SLICE_NS;
            }
            waiters.is_serving.store(false, SeqCst);
            if is_over {
                waiters.wake_timer();
                break;
            }
        }
        // This time does not count for the command that has changed the records.
        worker.last_ns += self.clock.monotonic_ns().saturating_sub(began_ns);
    }

    /// Runs a client's command on its behalf, now that there may be a record for it. False when that is to be tried again
    /// later.
    fn serve_record_waiter(&self, worker: &mut Worker, work: &mut Work) -> bool {
        let (waiters, blocked) = (&self.record_waiters, &work.waiter.blocked);
        if !blocked.claim() {
            // It waits no longer, and its connection is about to leave the lines.
            waiters.note_served(work, Outcome::Ended);
            return true;
        }
        let began_ns = self.clock.monotonic_ns();
        let mut client = blocked.stand_in(WaitPhase::RecordsServing(work.offer.clone()));
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
            waiters.note_served(work, Outcome::Unfinished(unfinished));
            blocked.give_back();
            return false;
        }
        if let WaitPhase::RecordsRequested(wait) = &client.wait_phase {
            waiters.note_served(work, Outcome::Nothing(&wait.searched));
            blocked.give_back();
            return true;
        }
        if matches!(result, Err(CommandError::Busy | CommandError::BusyFunction)) {
            waiters.note_served(work, Outcome::Later);
            blocked.give_back();
            return false;
        }
        waiters.note_served(work, Outcome::Ended);
        let took_ns = self.clock.monotonic_ns().saturating_sub(began_ns);
        blocked.deliver(worker, &client, result, out, took_ns);
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

    /// Serves clients that wait for records whose time has come by now.
    pub fn serve_due_records(&self, worker: &mut Worker) {
        let waiters = &self.record_waiters;
        let is_due = || waiters.due_ms.load(Relaxed) <= worker.now_ms;
        let was_set_back = || worker.now_ms < waiters.looked_ms.load(Relaxed);
        if waiters.any() && (is_due() || was_set_back()) {
            waiters.has_work.store(true, SeqCst);
        }
        if waiters.has_work() {
            self.serve_record_waiters(worker);
        }
    }
}
