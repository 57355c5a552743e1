//! The lines of clients that wait for records: who waits, what each has looked at, and whose turn it is. Knows scores, names
//! and times; refuses to know threads and what a waiter does with a record.

use super::criteria::Criteria;
use super::{Offered, Outcome, RecordWaiter, Searched, Work};
use crate::execution::waiting::records::RecordOffer;
use keyspace::HashRef;
use keyspace::index::Index;
use keyspace::types::sorted_set::ScoreRange;
use locks::Mutex;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A record that may be for a waiter.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) score: f64,
    pub(crate) name: Arc<[u8]>,
    /// Waiters that have set it aside as it is now. It is not for them until it is written again.
    pub(crate) set_aside_by: Vec<Arc<Criteria>>,
}

/// An index, by its address, and a database.
pub(super) type LineId = (usize, usize);

pub(super) fn line_id(index: &Arc<Index>, db: usize) -> LineId {
    (Arc::as_ptr(index) as usize, db)
}

/// The number of a class. No two have the same.
pub(super) type ClassId = u64;

/// What a command that works in slices has left for its next slice.
pub(super) type Unfinished = Box<dyn Any + Send>;

/// All lines, their classes, and the order in which they are served.
#[derive(Default)]
pub(super) struct Lines {
    lines: HashMap<LineId, Line>,
    classes: HashMap<ClassId, Class>,
    last_class: ClassId,
    /// Classes that have something to look at: the number of the first waiter of each, and the place of the index among
    /// those of that waiter.
    turns: BTreeSet<(u64, usize, ClassId)>,
    /// The others, by the time at which they will have, in unix milliseconds.
    times: BTreeSet<(u64, ClassId)>,
    /// When waiters were last looked at, by the clock of then, in unix milliseconds.
    looked_ms: u64,
    /// The class that was served last has more to search.
    was_interrupted: bool,
}

/// The waiters of one index in one database.
pub(super) struct Line {
    pub(super) index: Arc<Index>,
    db: usize,
    /// The index was dropped.
    pub(super) is_dropped: bool,
    classes: HashMap<Arc<Criteria>, ClassId>,
    /// Its classes with conditions, by the field and the values of the first: a record is shown only to those that may want
    /// it, however many there are.
    by_value: HashMap<Box<[u8]>, ByValue>,
    without_conditions: Vec<ClassId>,
    /// How many of its classes have something to look at.
    turns: usize,
    /// How many clients search before they wait, and what has become ready since the first of them joined.
    pub(super) searching: usize,
    pub(super) missed: Vec<Candidate>,
    missed_too_many: bool,
}

/// Classes by the values of a field.
type ByValue = HashMap<Box<[u8]>, Vec<ClassId>>;

/// Waiters that want the same records.
struct Class {
    line: LineId,
    criteria: Arc<Criteria>,
    waiters: BTreeMap<u64, Arc<RecordWaiter>>,
    searched: Searched,
    /// The lowest score from which on the index is to be searched again, since the last search began.
    noted: f64,
    /// Records that have got a score within their range, by name.
    ready: HashMap<Arc<[u8]>, Candidate>,
    /// The same for those that others have set aside. They are kept however many there are: found by a search, it would not
    /// be known that the others are not to be shown them again.
    set_aside: HashMap<Arc<[u8]>, Candidate>,
    /// A search that was interrupted.
    unfinished: Option<Unfinished>,
    /// Where it is in `turns` or `times`.
    turn: Option<(u64, usize)>,
    time: Option<u64>,
}

/// The most records that are noted one by one; beyond that, the index is searched.
const NOTED_MAX: usize = 1000;

/// The most turns that are looked through for a class of another line.
const OTHERS_MAX: usize = 64;

pub(super) const NOTHING_SEARCHED: Searched = Searched { up_to: f64::NEG_INFINITY, next_score: f64::NEG_INFINITY };

impl Lines {
    pub(super) fn line(&self, id: LineId) -> Option<&Line> {
        self.lines.get(&id)
    }

    /// The line of an index, for a client that searches before it waits.
    pub(super) fn join(&mut self, index: &Arc<Index>, db: usize) -> &mut Line {
        let line = self.lines.entry(line_id(index, db)).or_insert_with(|| Line::new(index.clone(), db));
        line.searching += 1;
        line
    }

    /// One who searched has a place among the waiters now, or has left.
    pub(super) fn end_search(&mut self, id: LineId) {
        if let Some(line) = self.lines.get_mut(&id) {
            line.searching -= 1;
            if line.searching == 0 {
                line.missed = Vec::new();
                line.missed_too_many = false;
            }
        }
    }

    pub(super) fn forget_if_unused(&mut self, id: LineId) {
        if self.lines.get(&id).is_some_and(|line| line.classes.is_empty() && line.searching == 0) {
            self.lines.remove(&id);
        }
    }

    /// Adds a waiter that has searched so far. `missed_from` tells which records have become ready during its search.
    pub(super) fn add(
        &mut self,
        id: LineId,
        number: u64,
        waiter: &Arc<RecordWaiter>,
        searched: Searched,
        missed_from: usize,
        now_ms: u64,
    ) {
        let line = self.lines.get_mut(&id).expect("it stays as long as a client has a place in it");
        self.looked_ms = self.looked_ms.max(now_ms);
        let class = match line.classes.get(&waiter.criteria) {
            // It has been told of everything.
            Some(class) => *class,
            None => {
                self.last_class += 1;
                line.classes.insert(waiter.criteria.clone(), self.last_class);
                line.show_records_to(&waiter.criteria, self.last_class);
                let mut class = Class::new(id, waiter.criteria.clone(), searched);
                if line.missed_too_many {
                    class.search_anew();
                } else {
                    let range = class.criteria.range(now_ms);
                    let missed = &line.missed[missed_from.min(line.missed.len())..];
                    missed.iter().for_each(|candidate| class.note(&range, candidate));
                }
                self.classes.insert(self.last_class, class);
                self.last_class
            }
        };
        self.classes.get_mut(&class).expect("it is in its line").waiters.insert(number, waiter.clone());
        self.file(class, now_ms);
    }

    /// Removes a waiter, if it is there.
    pub(super) fn remove(&mut self, id: LineId, number: u64, criteria: &Arc<Criteria>) {
        let class = self.lines.get(&id).and_then(|line| line.classes.get(criteria)).copied();
        if let Some((id, class)) = class.and_then(|id| Some((id, self.classes.get_mut(&id)?))) {
            class.waiters.remove(&number);
            self.file(id, self.looked_ms);
        }
    }

    /// Whether clients wait in a line.
    pub(super) fn has_waiters(&self, id: LineId) -> bool {
        self.lines.get(&id).is_some_and(|line| !line.classes.is_empty())
    }

    /// Whether clients with these criteria wait in a line.
    pub(super) fn has_class(&self, id: LineId, criteria: &Arc<Criteria>) -> bool {
        self.lines.get(&id).is_some_and(|line| line.classes.contains_key(criteria))
    }

    /// Whether there may be a record for a client in a line.
    pub(super) fn is_to_be_served(&self, id: LineId, now_ms: u64) -> bool {
        let Some(line) = self.lines.get(&id).filter(|line| !line.is_dropped) else { return false };
        let mut come = self.times.iter().take_while(|(time_ms, _)| *time_ms <= now_ms);
        line.turns > 0 || come.any(|(_, class)| self.classes[class].line == id)
    }

    /// All waiters of lines whose index is not one of these any more.
    pub(super) fn dropped(&mut self, is_known: impl Fn(&Arc<Index>) -> bool) -> Vec<Arc<RecordWaiter>> {
        let mut waiters = Vec::new();
        for line in self.lines.values_mut().filter(|line| !is_known(&line.index)) {
            line.is_dropped = true;
            waiters.extend(line.classes.values().flat_map(|class| self.classes[class].waiters.values().cloned()));
        }
        waiters
    }

    /// Everything in these databases is to be looked at anew.
    pub(super) fn search_anew(&mut self, concerns: impl Fn(usize) -> bool) {
        let mut classes = Vec::new();
        for line in self.lines.values_mut().filter(|line| concerns(line.db)) {
            line.missed_too_many |= line.searching > 0;
            classes.extend(line.classes.values().copied());
        }
        for id in classes {
            self.classes.get_mut(&id).expect("it is in its line").search_anew();
            self.file(id, self.looked_ms);
        }
    }

    /// Notes a record that has got a score.
    pub(super) fn note(&mut self, id: LineId, candidate: &Candidate, hash: HashRef<'_>, now_ms: u64) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        if line.searching > 0 {
            match line.missed.len() < NOTED_MAX {
                true => line.missed.push(candidate.clone()),
                false => line.missed_too_many = true,
            }
        }
        for id in line.classes_that_may_want(hash) {
            let class = self.classes.get_mut(&id).expect("it is in its line");
            if class.criteria.may_want(hash) {
                class.note(&class.criteria.clone().range(now_ms), candidate);
                self.file(id, now_ms);
            }
        }
    }

    /// Which waiters have set a record aside as it is now, as far as a class knows that was offered it.
    pub(super) fn set_aside_by(&self, id: LineId, criteria: &Arc<Criteria>, name: &[u8]) -> Vec<Arc<Criteria>> {
        let class = self.lines.get(&id).and_then(|line| self.classes.get(line.classes.get(criteria)?));
        class.and_then(|class| class.set_aside.get(name)).map_or(Vec::new(), |candidate| candidate.set_aside_by.clone())
    }

    /// These have set a record aside as it is now.
    pub(super) fn note_set_aside(&mut self, db: usize, name: &[u8], by: &[Arc<Criteria>]) {
        let lines = self.lines.values().filter(|line| line.db == db);
        let classes: SmallVec<[ClassId; 8]> = lines.flat_map(|line| line.classes.values().copied()).collect();
        for id in classes {
            let class = self.classes.get_mut(&id).expect("it is in its line");
            let Some(mut candidate) = class.ready.remove(name) else { continue };
            candidate.set_aside_by.extend_from_slice(by);
            if !candidate.set_aside_by.contains(&class.criteria) {
                class.set_aside.insert(candidate.name.clone(), candidate);
            }
            self.file(id, self.looked_ms);
        }
    }

    /// The waiter that is to be served next: of those for whom there may be a record, the one that came first, from the
    /// first of its indexes. While one needs several slices for a search, those of other lines are served in between.
    pub(super) fn next_work(&mut self, now_ms: u64) -> Option<Work> {
        if now_ms < self.looked_ms {
            // The clock was set back: what was in a range may not be, and what was too old for one may be in it.
            let all: Vec<ClassId> = self.classes.keys().copied().collect();
            for id in all {
                let class = self.classes.get_mut(&id).expect("it was just there");
                let min_score = |now_ms| class.criteria.range(now_ms).min.score;
                if min_score(now_ms) < min_score(self.looked_ms) {
                    class.search_anew();
                }
                self.file(id, now_ms);
            }
        }
        self.looked_ms = now_ms;
        // Each once: with scores and offsets of sixteen digits and more, one whose time has come may still be above its range.
        let come = self.times.iter().take_while(|(time_ms, _)| *time_ms <= now_ms);
        let come: Vec<ClassId> = come.map(|(_, id)| *id).collect();
        come.into_iter().for_each(|id| self.file(id, now_ms));
        let id = self.next_turn()?;
        let class = self.classes.get_mut(&id).expect("a class that has gone has no turn");
        let waiter = class.waiters.values().next().expect("a class without waiters has no turn").clone();
        let line = &self.lines[&class.line];
        let unfinished = class.unfinished.take();
        let is_continued = unfinished.is_some();
        let records = class.take_offer(&class.criteria.clone().range(now_ms), is_continued);
        let offer = RecordOffer { index: line.index.clone(), criteria: class.criteria.clone(), records };
        Some(Work { class: id, offer: Arc::new(offer), waiter, unfinished, is_continued })
    }

    fn next_turn(&self) -> Option<ClassId> {
        let class = |turn: &(u64, usize, ClassId)| &self.classes[&turn.2];
        let first = self.turns.first()?;
        if self.was_interrupted && class(first).unfinished.is_some() {
            let busy = class(first).line;
            if let Some(other) = self.turns.iter().take(OTHERS_MAX).find(|turn| class(turn).line != busy) {
                return Some(other.2);
            }
        }
        Some(first.2)
    }

    /// When the next class will have something to look at, in unix milliseconds, if none has now.
    pub(super) fn next_time(&self) -> Option<u64> {
        self.times.first().map(|(time_ms, _)| *time_ms)
    }

    /// Notes what became of a waiter that was to be served.
    pub(super) fn note_served(&mut self, work: &Work, number: u64, outcome: Outcome<'_>, now_ms: u64) {
        self.was_interrupted = matches!(outcome, Outcome::Unfinished(_));
        // It may have gone, and another with the same criteria may have come, which this is no news of.
        let Some(class) = self.classes.get_mut(&work.class) else { return };
        match (&work.offer.records, &outcome) {
            (Offered::Candidates(left), _) => {
                left.lock().drain(..).for_each(|candidate| class.keep(candidate));
            }
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
            // Its connection removes it from its other lines, too.
            Outcome::Ended => drop(class.waiters.remove(&number)),
        }
        self.file(work.class, now_ms);
    }

    /// Puts a class where it belongs after a change: among those that have something to look at, among those that will, or
    /// nowhere. One without waiters is removed.
    fn file(&mut self, id: ClassId, now_ms: u64) {
        let class = self.classes.get_mut(&id).expect("only classes that are there are filed");
        let line = self.lines.get_mut(&class.line).expect("a class is in a line");
        if let Some((number, position)) = class.turn.take() {
            self.turns.remove(&(number, position, id));
            line.turns -= 1;
        }
        if let Some(time_ms) = class.time.take() {
            self.times.remove(&(time_ms, id));
        }
        let Some((number, first)) = class.waiters.first_key_value() else {
            line.classes.remove(&class.criteria);
            line.hide_records_from(&class.criteria.clone(), id);
            self.classes.remove(&id);
            return;
        };
        if line.is_dropped {
            return;
        }
        let (number, position) = (*number, first.position_of(&line.index));
        let range = class.criteria.range(now_ms);
        if class.has_work(&range) {
            class.turn = Some((number, position));
            self.turns.insert((number, position, id));
            line.turns += 1;
        } else if let Some(time_ms) = class.criteria.reached_at_ms(class.next_score()) {
            class.time = Some(time_ms);
            self.times.insert((time_ms, id));
        }
    }
}

impl Line {
    fn new(index: Arc<Index>, db: usize) -> Line {
        Line {
            index,
            db,
            is_dropped: false,
            classes: HashMap::new(),
            by_value: HashMap::new(),
            without_conditions: Vec::new(),
            turns: 0,
            searching: 0,
            missed: Vec::new(),
            missed_too_many: false,
        }
    }

    /// From now on, a class is shown records that it may want.
    fn show_records_to(&mut self, criteria: &Criteria, id: ClassId) {
        let Some(condition) = criteria.first_condition() else { return self.without_conditions.push(id) };
        let by_value = self.by_value.entry(condition.field.clone()).or_default();
        for value in &condition.values {
            by_value.entry(value.clone()).or_default().push(id);
        }
    }

    fn hide_records_from(&mut self, criteria: &Criteria, id: ClassId) {
        let Some(condition) = criteria.first_condition() else {
            return self.without_conditions.retain(|one| *one != id);
        };
        let Some(by_value) = self.by_value.get_mut(&condition.field) else { return };
        for value in &condition.values {
            if let Some(classes) = by_value.get_mut(value) {
                classes.retain(|one| *one != id);
                if classes.is_empty() {
                    by_value.remove(value);
                }
            }
        }
        if by_value.is_empty() {
            self.by_value.remove(&condition.field);
        }
    }

    /// The classes that may want a record, as far as their first condition tells.
    fn classes_that_may_want(&self, hash: HashRef<'_>) -> SmallVec<[ClassId; 8]> {
        let mut found: SmallVec<[ClassId; 8]> = self.without_conditions.iter().copied().collect();
        for (field, by_value) in &self.by_value {
            let Some(value) = hash.get(field) else { continue };
            if let Some(classes) = value.with_bytes(|value| by_value.get(value)) {
                found.extend_from_slice(classes);
            }
        }
        found
    }
}

impl Class {
    fn new(line: LineId, criteria: Arc<Criteria>, searched: Searched) -> Class {
        Class {
            line,
            criteria,
            waiters: BTreeMap::new(),
            searched,
            noted: f64::INFINITY,
            ready: HashMap::new(),
            set_aside: HashMap::new(),
            unfinished: None,
            turn: None,
            time: None,
        }
    }

    /// Notes a record that has got a score.
    fn note(&mut self, range: &ScoreRange, candidate: &Candidate) {
        // It was written again, and is no longer as others have seen it.
        self.ready.remove(&candidate.name);
        self.set_aside.remove(&candidate.name);
        if !range.reaches(candidate.score) {
            self.search_from(candidate.score);
        } else if range.has(candidate.score) {
            if self.ready.len() >= NOTED_MAX {
                self.search_ready();
            }
            self.ready.insert(candidate.name.clone(), candidate.clone());
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
        let lowest = self.ready.values().map(|candidate| candidate.score).fold(f64::INFINITY, f64::min);
        self.ready = HashMap::new();
        self.search_from(lowest);
    }

    /// Keeps a record that was offered and not taken, unless it was written again meanwhile.
    fn keep(&mut self, candidate: Candidate) {
        if self.ready.contains_key(&candidate.name) || self.set_aside.contains_key(&candidate.name) {
            return;
        }
        let kept = if candidate.set_aside_by.is_empty() { &mut self.ready } else { &mut self.set_aside };
        kept.insert(candidate.name.clone(), candidate);
    }

    fn search_anew(&mut self) {
        self.ready = HashMap::new();
        self.set_aside = HashMap::new();
        self.unfinished = None;
        self.searched = NOTHING_SEARCHED;
    }

    fn is_due(&self, range: &ScoreRange) -> bool {
        self.next_score() < f64::INFINITY && range.reaches(self.next_score())
    }

    fn has_work(&self, range: &ScoreRange) -> bool {
        !self.ready.is_empty() || !self.set_aside.is_empty() || self.unfinished.is_some() || self.is_due(range)
    }

    /// What its first waiter may take.
    fn take_offer(&mut self, range: &ScoreRange, is_continued: bool) -> Offered {
        // In the range when they were noted: the clock may have been set since.
        let is_above = |_: &Arc<[u8]>, candidate: &mut Candidate| !range.reaches(candidate.score);
        let not_yet = self.ready.extract_if(is_above).chain(self.set_aside.extract_if(is_above));
        let not_yet = not_yet.map(|(_, candidate)| candidate.score).fold(f64::INFINITY, f64::min);
        self.search_from(not_yet);
        // One search finds the lowest of both.
        if self.is_due(range) && !self.ready.is_empty() {
            self.search_ready();
        }
        if !self.is_due(range) && !is_continued {
            let all = self.ready.drain().chain(self.set_aside.drain());
            return Offered::Candidates(Mutex::new(all.map(|(_, candidate)| candidate).collect()));
        }
        let up_to = self.searched.up_to.min(self.noted.next_down());
        if !is_continued {
            // The search will find it.
            self.noted = f64::INFINITY;
        }
        Offered::Above(up_to)
    }
}
