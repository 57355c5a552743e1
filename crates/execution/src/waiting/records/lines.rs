//! The lines of clients that wait for records: which clients wait, which records each has seen, and which is served
//! next. Knows scores, names and times; refuses to know threads and what a waiter does with a record.

use super::criteria::Criteria;
use super::{Offered, Outcome, RecordWaiter, Searched, Work};
use crate::client::Unfinished;
use crate::waiting::records::RecordOffer;
use keyspace::HashRef;
use keyspace::index::Index;
use keyspace::index::groups::News;
use keyspace::types::sorted_set::ScoreRange;
use locks::Mutex;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A record that may be for a waiter.
#[derive(Clone, Debug)]
pub struct OfferedRecord {
    pub score: f64,
    pub name: Arc<[u8]>,
    /// The criteria of waiters that have set it aside in its current state. It is not offered to them until it is
    /// written again.
    pub set_aside_by: Vec<Arc<Criteria>>,
}

/// An index, by its address, and a database.
pub(super) type LineId = (usize, usize);

pub(super) fn line_id(index: &Arc<Index>, db: usize) -> LineId {
    (Arc::as_ptr(index) as usize, db)
}

/// The unique number of a class.
pub(super) type ClassId = u64;

/// All lines, their classes, and the order in which they are served.
#[derive(Default)]
pub(super) struct Lines {
    lines: HashMap<LineId, Line>,
    classes: HashMap<ClassId, Class>,
    last_class: ClassId,
    /// Classes with records to look at: the number of each class's first waiter, and the position of the index among
    /// that waiter's indexes.
    ready_classes: BTreeSet<(u64, usize, ClassId)>,
    /// New classes, which have not searched yet.
    new_classes: BTreeSet<(u64, usize, ClassId)>,
    /// The other classes, by the time at which they will have records to look at, in unix milliseconds.
    times: BTreeSet<(u64, ClassId)>,
    /// When waiters were last checked, by the clock at that time, in unix milliseconds.
    looked_ms: u64,
    /// The search of the class that was served last is not finished.
    was_interrupted: bool,
}

/// The waiters of one index in one database.
pub(super) struct Line {
    pub(super) index: Arc<Index>,
    db: usize,
    /// The index was dropped.
    pub(super) is_dropped: bool,
    classes: HashMap<Arc<Criteria>, ClassId>,
    /// Its classes with conditions, by the field and the values of the first condition: a record is offered only to
    /// classes that may want it, however many there are.
    by_value: HashMap<Box<[u8]>, ByValue>,
    without_conditions: Vec<ClassId>,
    /// How many of its classes have records to look at, without new ones.
    ready_classes: usize,
    /// How many clients search before they wait, and which records have become ready since the first of them joined.
    pub(super) searching: usize,
    pub(super) missed: Vec<OfferedRecord>,
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
    /// The index is to be searched again from this score on: the lowest score noted since the last search began.
    noted: f64,
    /// Records that got a score within the range, by name.
    ready: HashMap<Arc<[u8]>, OfferedRecord>,
    /// Records within the range that other waiters have set aside. All of them are kept, however many: a search would
    /// not know which waiters not to offer them to.
    set_aside: HashMap<Arc<[u8]>, OfferedRecord>,
    interrupted: Option<Interrupted>,
    /// It has not searched the records that existed when it was created. That search is done when there is nothing else
    /// to do.
    is_new: bool,
    /// When it searches again because a rate allows a take, in unix milliseconds.
    again_ms: Option<u64>,
    /// How often a complete new search was requested.
    begun_anew: u64,
    /// Its entry in `ready_classes`, `new_classes` or `times`.
    filed_as: Option<(u64, usize)>,
    time: Option<u64>,
}

/// The state of an unfinished slice of a class.
struct Interrupted {
    unfinished: Box<Unfinished>,
    /// It searches the index.
    searches: bool,
    /// The waiter that has taken records in this search. It is the first of its class, and only its search may
    /// continue.
    waiter: Option<u64>,
}

/// The most records that are noted one by one; beyond that, the index is searched.
const NOTED_MAX: usize = 1000;

/// The most entries of `ready_classes` that are checked to find a class of another line.
const OTHERS_MAX: usize = 64;

pub(super) const NOTHING_SEARCHED: Searched =
    Searched { up_to: f64::NEG_INFINITY, next_score: f64::NEG_INFINITY, again_ms: None };

impl Lines {
    pub(super) fn line(&self, id: LineId) -> Option<&Line> {
        self.lines.get(&id)
    }

    /// Joins the line of an index, for a client that searches before it waits.
    pub(super) fn join(&mut self, index: &Arc<Index>, db: usize) -> &mut Line {
        let line = self.lines.entry(line_id(index, db)).or_insert_with(|| Line::new(index.clone(), db));
        line.searching += 1;
        line
    }

    /// Notes that a client has ended its search: it is either queued as a waiter or disconnected.
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

    /// Adds a waiter that has searched so far. `missed_from` says which records have become ready during its search.
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
            // The class has been offered all records.
            Some(class) => *class,
            None => {
                self.last_class += 1;
                line.classes.insert(waiter.criteria.clone(), self.last_class);
                line.show_records_to(&waiter.criteria, self.last_class);
                let mut class = Class::new(id, waiter.criteria.clone(), searched);
                class.is_new = searched.up_to == f64::NEG_INFINITY;
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

    /// Removes a waiter from a line, if it is there.
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

    /// Whether clients with these criteria wait in a line, and if so, whether they have searched everything.
    pub(super) fn has_searched(&self, id: LineId, criteria: &Arc<Criteria>) -> Option<bool> {
        let class = self.lines.get(&id).and_then(|line| line.classes.get(criteria))?;
        Some(!self.classes[class].is_new)
    }

    /// Whether the first search of a client's class is not finished.
    pub(super) fn is_first_search(&self, id: LineId, criteria: &Arc<Criteria>) -> bool {
        self.has_searched(id, criteria) == Some(false)
    }

    /// Whether there may be a record for a client in a line.
    pub(super) fn is_to_be_served(&self, id: LineId, now_ms: u64) -> bool {
        let Some(line) = self.lines.get(&id).filter(|line| !line.is_dropped) else { return false };
        let mut come = self.times.iter().take_while(|(time_ms, _)| *time_ms <= now_ms);
        line.ready_classes > 0 || come.any(|(_, class)| self.classes[class].line == id && !self.classes[class].is_new)
    }

    /// Removes the lines of dropped indexes, and returns their waiters.
    pub(super) fn dropped(&mut self, is_known: impl Fn(&Arc<Index>) -> bool) -> Vec<Arc<RecordWaiter>> {
        let mut waiters = Vec::new();
        for line in self.lines.values_mut().filter(|line| !is_known(&line.index)) {
            line.is_dropped = true;
            waiters.extend(line.classes.values().flat_map(|class| self.classes[class].waiters.values().cloned()));
        }
        waiters
    }

    /// Makes all classes in these databases search again from the beginning.
    pub(super) fn search_anew(&mut self, concerns: impl Fn(usize) -> bool) {
        self.search_line_anew(|line| concerns(line.db));
    }

    /// Makes all classes in these lines search again from the beginning.
    pub(super) fn search_line_anew(&mut self, concerns: impl Fn(&Line) -> bool) {
        let mut classes = Vec::new();
        for line in self.lines.values_mut().filter(|line| concerns(line)) {
            line.missed_too_many |= line.searching > 0;
            classes.extend(line.classes.values().copied());
        }
        for id in classes {
            self.classes.get_mut(&id).expect("it is in its line").search_anew();
            self.file(id, self.looked_ms);
        }
    }

    /// Notes what the groups of an index may give since. Classes without conditions search again, which takes few steps;
    /// those with conditions have rejected records that they should not look at again for every new one. True when a
    /// class has to search.
    pub(super) fn note_news(&mut self, id: LineId, news: News) -> bool {
        if news == News::default() {
            return false;
        }
        let Some(line) = self.lines.get_mut(&id) else { return false };
        line.missed_too_many |= line.searching > 0;
        let classes: SmallVec<[ClassId; 8]> = match news.has_room {
            true => line.classes.values().copied().collect(),
            false => line.without_conditions.iter().copied().collect(),
        };
        for id in &classes {
            self.classes.get_mut(id).expect("it is in its line").search_anew();
            self.file(*id, self.looked_ms);
        }
        true
    }

    /// Notes a record that got a score. In an index with groups it is for classes with conditions: the others search.
    pub(super) fn note(
        &mut self,
        id: LineId,
        candidate: &OfferedRecord,
        hash: HashRef<'_>,
        now_ms: u64,
        is_grouped: bool,
    ) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        if line.searching > 0 {
            match line.missed.len() < NOTED_MAX {
                true => line.missed.push(candidate.clone()),
                false => line.missed_too_many = true,
            }
        }
        for id in line.classes_that_may_want(hash) {
            let class = self.classes.get_mut(&id).expect("it is in its line");
            if class.criteria.may_want(hash) && !(is_grouped && class.criteria.first_condition().is_none()) {
                class.note(&class.criteria.clone().range(now_ms), candidate);
                self.file(id, now_ms);
            }
        }
    }

    /// Which waiters have set a record aside in its current state, as far as the class knows that was offered it.
    pub(super) fn set_aside_by(&self, id: LineId, criteria: &Arc<Criteria>, name: &[u8]) -> Vec<Arc<Criteria>> {
        let class = self.lines.get(&id).and_then(|line| self.classes.get(line.classes.get(criteria)?));
        class.and_then(|class| class.set_aside.get(name)).map_or(Vec::new(), |candidate| candidate.set_aside_by.clone())
    }

    /// Notes that these waiters have set a record aside in its current state.
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

    /// The waiter to serve next: of those with possible records, the one that came first, with the first of its
    /// indexes. While a search takes several slices, waiters of other lines are served in between. New classes are
    /// served only if the caller `searches`, and after the others.
    pub(super) fn next_work(&mut self, now_ms: u64, searches: bool) -> Option<Work> {
        if now_ms < self.looked_ms {
            // The clock was set back: a record that was in a range may not be any more, and one that was too old may be
            // in it.
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
        // Each class once: with scores and offsets of sixteen digits and more, a record may still be above its range
        // when its time has come.
        let come = self.times.iter().take_while(|(time_ms, _)| *time_ms <= now_ms);
        let come: Vec<ClassId> = come.map(|(_, id)| *id).collect();
        come.into_iter().for_each(|id| self.file(id, now_ms));
        let id = self.next_class(searches)?;
        let class = self.classes.get_mut(&id).expect("a class that has gone is not filed");
        let waiter = class.waiters.values().next().expect("a class without waiters is not filed").clone();
        let line = &self.lines[&class.line];
        let mut interrupted = class.interrupted.take();
        if interrupted.as_ref().is_some_and(|left| left.waiter.is_some_and(|number| number != waiter.blocked.number)) {
            // The client that had taken records has disconnected.
            class.search_anew();
            interrupted = None;
        }
        let is_continued = interrupted.as_ref().is_some_and(|left| left.searches);
        let is_claimed = interrupted.as_ref().is_some_and(|left| left.waiter.is_some());
        let unfinished = interrupted.map(|left| left.unfinished);
        let records = class.take_offer(&class.criteria.clone().range(now_ms), is_continued);
        let offer = RecordOffer::new(line.index.clone(), class.criteria.clone(), records);
        let (begun_anew, is_new) = (class.begun_anew, class.is_new);
        Some(Work {
            class: id,
            offer: Arc::new(offer),
            waiter,
            unfinished,
            is_continued,
            is_claimed,
            is_new,
            begun_anew,
        })
    }

    fn next_class(&self, searches: bool) -> Option<ClassId> {
        let class = |filed: &(u64, usize, ClassId)| &self.classes[&filed.2];
        let Some(first) = self.ready_classes.first() else {
            return self.new_classes.first().filter(|_| searches).map(|filed| filed.2);
        };
        if self.was_interrupted && class(first).interrupted.is_some() {
            let busy = class(first).line;
            if let Some(other) = self.ready_classes.iter().take(OTHERS_MAX).find(|filed| class(filed).line != busy) {
                return Some(other.2);
            }
        }
        Some(first.2)
    }

    /// True when a new class has not searched yet.
    pub(super) fn has_to_search(&self) -> bool {
        !self.new_classes.is_empty()
    }

    /// When the next class will have records to look at, in unix milliseconds, if none has now.
    pub(super) fn next_time(&self) -> Option<u64> {
        self.times.first().map(|(time_ms, _)| *time_ms)
    }

    /// Notes the result of serving a waiter.
    pub(super) fn note_served(&mut self, work: &Work, number: u64, outcome: Outcome<'_>, now_ms: u64) {
        self.was_interrupted = matches!(outcome, Outcome::Unfinished { .. });
        // The class may be gone, and another with the same criteria may exist: the result does not concern that one.
        let Some(class) = self.classes.get_mut(&work.class) else { return };
        // A complete new search was requested meanwhile: the result of this one is worthless.
        let is_stale = class.begun_anew != work.begun_anew;
        match (&work.offer.records, &outcome) {
            (Offered::Candidates(left), _) => {
                left.lock().drain(..).for_each(|candidate| class.keep(candidate));
            }
            // The search has found a record: there may be more from its score on.
            (Offered::Above(_), Outcome::Ended) if !is_stale && work.offer.reached().is_some() => {
                let reached = work.offer.reached().expect("just looked");
                class.searched.up_to = class.searched.up_to.max(reached.next_down());
                class.search_from(reached);
            }
            (Offered::Above(_), Outcome::Ended | Outcome::Later) if work.is_continued => class.search_anew(),
            (Offered::Above(up_to), Outcome::Ended | Outcome::Later) => class.search_from(up_to.next_up()),
            (Offered::Above(_), Outcome::Nothing(_) | Outcome::Unfinished { .. }) => {}
        }
        if work.offer.is_limited() {
            class.search_anew();
        }
        match outcome {
            Outcome::Later => {}
            Outcome::Unfinished { has_taken: false, .. } | Outcome::Nothing(_) if is_stale => {}
            Outcome::Unfinished { unfinished, has_taken } => {
                let searches = matches!(work.offer.records, Offered::Above(_));
                class.interrupted = Some(Interrupted { unfinished, searches, waiter: has_taken.then_some(number) });
            }
            Outcome::Nothing(searched) => {
                if let ([searched], Offered::Above(_)) = (searched, &work.offer.records) {
                    class.searched = *searched;
                    class.again_ms = searched.again_ms;
                    class.end_first_search();
                }
            }
            // Its connection removes it from its other lines, too.
            Outcome::Ended => drop(class.waiters.remove(&number)),
        }
        self.file(work.class, now_ms);
    }

    /// Files a class after a change: among those with records to look at, among those that will have some, or nowhere.
    /// Removes a class without waiters.
    fn file(&mut self, id: ClassId, now_ms: u64) {
        let class = self.classes.get_mut(&id).expect("only classes that are there are filed");
        let line = self.lines.get_mut(&class.line).expect("a class is in a line");
        if let Some((number, position)) = class.filed_as.take() {
            match self.ready_classes.remove(&(number, position, id)) {
                true => line.ready_classes -= 1,
                false => drop(self.new_classes.remove(&(number, position, id))),
            }
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
        if class.again_ms.is_some_and(|again_ms| again_ms <= now_ms) {
            class.search_anew();
        }
        let range = class.criteria.range(now_ms);
        if class.has_work(&range) {
            class.filed_as = Some((number, position));
            match class.is_new {
                true => drop(self.new_classes.insert((number, position, id))),
                false => {
                    self.ready_classes.insert((number, position, id));
                    line.ready_classes += 1;
                }
            }
        } else if let Some(time_ms) =
            class.criteria.reached_at_ms(class.next_score()).into_iter().chain(class.again_ms).min()
        {
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
            ready_classes: 0,
            searching: 0,
            missed: Vec::new(),
            missed_too_many: false,
        }
    }

    /// Registers a class for records that it may want.
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
            interrupted: None,
            is_new: false,
            again_ms: searched.again_ms,
            begun_anew: 0,
            filed_as: None,

            time: None,
        }
    }

    /// Notes a record that got a score.
    fn note(&mut self, range: &ScoreRange, candidate: &OfferedRecord) {
        // It was written again: what other waiters have seen is outdated.
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

    /// Requests a search of records from this score on, once they are within the range.
    fn search_from(&mut self, score: f64) {
        self.noted = self.noted.min(score);
    }

    /// The lowest score to look at.
    fn next_score(&self) -> f64 {
        self.searched.next_score.min(self.noted)
    }

    /// Replaces the list of ready records by a search.
    fn search_ready(&mut self) {
        let lowest = self.ready.values().map(|candidate| candidate.score).fold(f64::INFINITY, f64::min);
        self.ready = HashMap::new();
        self.search_from(lowest);
    }

    /// Keeps a record that was offered and not taken, unless it was written again meanwhile.
    fn keep(&mut self, candidate: OfferedRecord) {
        if self.ready.contains_key(&candidate.name) || self.set_aside.contains_key(&candidate.name) {
            return;
        }
        let kept = if candidate.set_aside_by.is_empty() { &mut self.ready } else { &mut self.set_aside };
        kept.insert(candidate.name.clone(), candidate);
    }

    fn search_anew(&mut self) {
        self.ready = HashMap::new();
        self.set_aside = HashMap::new();
        // The records that a waiter has taken are sent to it.
        self.interrupted.take_if(|left| left.waiter.is_none());
        self.searched = NOTHING_SEARCHED;
        self.again_ms = None;
        self.begun_anew += 1;
    }

    /// Notes that the first search is finished: waiters that have timed out need not wait any longer.
    fn end_first_search(&mut self) {
        if std::mem::take(&mut self.is_new) {
            self.waiters.values().for_each(|waiter| waiter.blocked.wake());
        }
    }

    fn is_due(&self, range: &ScoreRange) -> bool {
        self.next_score() < f64::INFINITY && range.reaches(self.next_score())
    }

    fn has_work(&self, range: &ScoreRange) -> bool {
        !self.ready.is_empty() || !self.set_aside.is_empty() || self.interrupted.is_some() || self.is_due(range)
    }

    /// The records that its first waiter may take.
    fn take_offer(&mut self, range: &ScoreRange, is_continued: bool) -> Offered {
        // They were in the range when they were noted; the clock may have been set back since.
        let is_above = |_: &Arc<[u8]>, candidate: &mut OfferedRecord| !range.reaches(candidate.score);
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
