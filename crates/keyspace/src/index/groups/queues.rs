//! The groups of one index in one database: the records of each in order, how many are held, and which groups may give
//! a record now. Knows scores, ids and limits; refuses to know what a record is, and which thread asks.
//!
//! A group that may not give (its cap is reached, its rate used up, it is paused) is in none of the orders that a
//! search reads, however many records wait in it. A change of one record moves one group between these orders.

use super::limits::{Applied, Limits, Scope, WEIGHT_MAX};
use super::names::{Names, Slot};
use crate::index::item::{Item, by_score};
use crate::storage::NameId;
use crate::storage::ranked::Ranked;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};

/// A score in an order. It is never NaN or minus zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score(pub(super) f64);

impl Score {
    pub(super) const NONE: Score = Score(f64::INFINITY);

    pub(super) fn is_some(self) -> bool {
        self.0 < f64::INFINITY
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> Ordering {
        by_score(self.0, other.0)
    }
}

/// A position in the order of turns: it grows with every take of the group, the slower the more its weight.
pub(super) type Turn = u64;

/// A group that a search has met. Its slot may belong to another group since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupRef {
    pub(super) slot: Slot,
    born: u64,
}

/// Where a record is: its group, its score unless it is not in the index, and whether it is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place<'a> {
    pub group: &'a [u8],
    pub score: Option<f64>,
    pub is_held: bool,
}

/// The groups of an index in one database.
pub struct GroupQueues {
    slots: Vec<Option<Box<Group>>>,
    free_slots: BinaryHeap<Reverse<Slot>>,
    by_name: Names,
    born: u64,
    pub(super) each: Limits,
    pub(super) all: Limits,
    /// Groups that may give, whose first record was within the range of a search, by their turns.
    pub(super) ready: BTreeSet<(Turn, Slot)>,
    /// Groups that may give, by their first record.
    pub(super) heads: BTreeSet<(Score, Slot)>,
    /// Groups whose cap is reached, which may give to a claim that holds nothing more, by their turns.
    pub(super) capped: BTreeSet<(Turn, Slot)>,
    /// The same by their first record that is not held.
    pub(super) capped_heads: BTreeSet<(Score, Slot)>,
    /// Groups by their first record that is held already. Only with a cap for all groups.
    pub(super) held_heads: BTreeSet<(Score, Slot)>,
    /// Groups that may not give before a time, in nanoseconds.
    pub(super) timed: BTreeSet<(u64, Slot)>,
    /// Groups without records. They are kept until the others had their turns, or a tenant that always has one job could
    /// take every second turn.
    idle: BTreeSet<(Turn, Slot)>,
    /// Groups without records whose rate is used up until a time.
    forgotten_at: BTreeSet<(u64, Slot)>,
    /// The first records of ready groups are not above this, nor are those of other groups below it, unless a search
    /// has not met them yet. Of groups whose first records are equal, those up to a slot.
    pub(super) horizon: (Score, Slot),
    /// The turn of the group that gave last.
    turn: Turn,
    held: u64,
    /// Records that a claim is about to hold.
    reserved: Vec<(Slot, NameId)>,
    pub(super) all_until_ns: u64,
    /// The time of the last search.
    pub(super) now_ns: u64,
    /// False while takes may be later than that: those made elsewhere or before a restart.
    is_current: bool,
    /// Where filing all groups anew goes on, after limits for all were changed.
    unfiled: Option<Slot>,
    items: usize,
    /// How many groups have records that limits keep back.
    blocked: usize,
    news: News,
}

pub(super) struct Group {
    pub(super) name: Box<[u8]>,
    born: u64,
    own: Option<Box<Limits>>,
    /// Records that are not held.
    pub(super) free: Ranked<Item>,
    /// Records in the index that are held, such as those whose lease will run out.
    pub(super) leased: Ranked<Item>,
    /// All that are held, in the index or not.
    held: u64,
    reserved: u32,
    /// The state of its rate.
    until_ns: u64,
    filed: Filed,
}

/// In which orders a group is, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Filed {
    turn: Turn,
    head: Score,
    held_head: Score,
    capped_head: Score,
    /// When its rate allows a take again: to give records, or to be forgotten if it has none.
    allowed_ns: u64,
    is_empty: bool,
    is_ready: bool,
    is_idle: bool,
    /// It has records that limits keep back.
    is_blocked: bool,
}

const NEVER: u64 = u64::MAX;

impl Filed {
    /// When it may give records again.
    fn timed_ns(&self) -> u64 {
        if self.is_empty { NEVER } else { self.allowed_ns }
    }

    /// When it may be forgotten.
    fn forgotten_ns(&self) -> u64 {
        if self.is_empty { self.allowed_ns } else { NEVER }
    }

    const NOWHERE: Filed = Filed {
        turn: 0,
        head: Score::NONE,
        held_head: Score::NONE,
        capped_head: Score::NONE,
        allowed_ns: NEVER,
        is_empty: true,
        is_ready: false,
        is_idle: false,
        is_blocked: false,
    };
}

/// A group as IDX.GROUPS shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupState<'a> {
    pub name: &'a [u8],
    pub records: usize,
    pub held: u64,
    pub first_score: Option<f64>,
    /// When it may give: 0 for now, `None` if time alone does not change that.
    pub allowed_ns: Option<u64>,
    pub limits: Applied,
}

/// How many groups have records that a limit keeps back, due or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    pub by_cap: usize,
    pub by_rate: usize,
    pub by_pause: usize,
}

/// The state of the rates after a take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub group_until_ns: Option<u64>,
    pub all_until_ns: Option<u64>,
}

/// What waiting clients have to know of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// A group that limits have kept back may give.
    pub has_room: bool,
    /// The first record of a group is an earlier one than before, or is waited for until a rate allows a take.
    pub has_earlier: bool,
}

/// What the limits for all groups together allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// Only records that are held already.
    OnlyHeld,
    /// Nothing, until this time if time alone opens it.
    Closed(Option<u64>),
}

/// What a claim does with a record, as far as limits ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// The record is not held, and will be.
    pub holds: bool,
    /// It counts for rates.
    pub counts: bool,
}

/// How many groups are filed anew, or forgotten, with one change or search. Few in tests, so that there are many steps.
const FILED_AT_ONCE: usize = if cfg!(test) { 2 } else { 64 };
const FORGOTTEN_AT_ONCE: usize = 4;
const FORGOTTEN_BY_WORK: usize = 512;
/// How many groups without records are remembered for the sake of the others' turns, however few others there are.
pub(super) const REMEMBERED: usize = 1024;
/// From here on the clock was set back.
const STEP_BACK_NS: u64 = 1_000_000_000;
/// Tables keep at most this many times the memory that they need.
const SPARE: usize = 4;

/// The first record that is not held, the first that is, and how many are held and reserved.
type Front = (Option<Item>, Option<Item>, u64, u32);

/// There may be very many groups.
const _: () = assert!(size_of::<Group>() <= 152);

#[inline]
fn comes_before(one: &Item, other: &Item) -> bool {
    // Most scores differ; their order is computed without a branch.
    if one.0 == other.0 { one.1 < other.1 } else { one.0 < other.0 }
}

impl Group {
    fn queue(&mut self, is_held: bool) -> &mut Ranked<Item> {
        if is_held { &mut self.leased } else { &mut self.free }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.is_empty() && self.leased.is_empty()
    }

    fn size(&self) -> u64 {
        self.held.max((self.free.len() + self.leased.len()) as u64)
    }

    /// All on which its place in the orders depends.
    #[inline]
    fn front(&self) -> Front {
        (self.free.first(), self.leased.first(), self.held, self.reserved)
    }

    fn has_own_limits(&self) -> bool {
        self.own.is_some()
    }
}

impl GroupQueues {
    pub fn new(each: Limits, all: Limits) -> GroupQueues {
        GroupQueues {
            slots: Vec::new(),
            free_slots: BinaryHeap::new(),
            by_name: Names::default(),
            born: 0,
            each,
            all,
            ready: BTreeSet::new(),
            heads: BTreeSet::new(),
            capped: BTreeSet::new(),
            capped_heads: BTreeSet::new(),
            held_heads: BTreeSet::new(),
            timed: BTreeSet::new(),
            idle: BTreeSet::new(),
            forgotten_at: BTreeSet::new(),
            horizon: (Score(f64::NEG_INFINITY), 0),
            // Above that of a group that never gave.
            turn: 1,
            held: 0,
            reserved: Vec::new(),
            all_until_ns: 0,
            now_ns: 0,
            is_current: false,
            unfiled: None,
            items: 0,
            blocked: 0,
            news: News::default(),
        }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many records are held in all groups.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// How many records are in the queues.
    pub fn items(&self) -> usize {
        self.items
    }

    /// The groups with records that their limits keep back.
    pub fn blocked(&self) -> Blocked {
        let (by_cap, by_rate) = (self.capped.len(), self.timed.len());
        Blocked { by_cap, by_rate, by_pause: self.blocked - by_cap - by_rate }
    }

    /// About how many bytes all of it takes.
    pub fn heap_bytes(&self) -> usize {
        const ENTRY_BYTES: usize = 24;
        self.len() * (size_of::<Group>() + 3 * ENTRY_BYTES) + self.items * ENTRY_BYTES
    }

    /// What can be given since the last call that could not before.
    pub fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// True when the work after a change of limits is not finished, or groups are to be forgotten.
    pub fn has_work(&self) -> bool {
        self.unfiled.is_some() || !self.idle.is_empty() && self.ready.is_empty()
    }

    /// Does some of that work: at most about a tenth of a millisecond.
    pub fn work(&mut self) {
        self.file_some();
        self.forget_used_up(FORGOTTEN_BY_WORK);
        self.forget_some(FORGOTTEN_BY_WORK);
    }

    /// True when groups are still to be filed before a search finds what they may give.
    pub(super) fn is_filing(&self) -> bool {
        self.unfiled.is_some() || self.allowed_again().is_some()
    }

    /// A group whose rate allows a take again, and that is not filed so.
    fn allowed_again(&self) -> Option<Slot> {
        self.timed.first().filter(|(at_ns, _)| *at_ns <= self.now_ns).map(|(_, slot)| *slot)
    }

    pub(super) fn group(&self, slot: Slot) -> &Group {
        self.slots[slot as usize].as_ref().expect("a slot in an order has a group")
    }

    fn group_mut(&mut self, slot: Slot) -> &mut Group {
        self.slots[slot as usize].as_mut().expect("a slot in an order has a group")
    }

    pub(super) fn reference(&self, slot: Slot) -> GroupRef {
        GroupRef { slot, born: self.group(slot).born }
    }

    /// The group that a search has met, if it is still there.
    pub(super) fn met(&self, group: GroupRef) -> Option<&Group> {
        let there = self.slots.get(group.slot as usize)?.as_deref()?;
        (there.born == group.born).then_some(there)
    }

    /// The name of a group that a search has met.
    pub fn name(&self, group: GroupRef) -> Option<&[u8]> {
        self.met(group).map(|there| &*there.name)
    }

    fn find(&self, name: &[u8]) -> Option<Slot> {
        self.by_name.find(name, |slot| *self.group(slot).name == *name)
    }

    /// The group of that name, a new one if there is none.
    fn find_or_add(&mut self, name: &[u8], own: impl FnOnce(&[u8]) -> Limits) -> Slot {
        if let Some(slot) = self.find(name) {
            return slot;
        }
        let limits = own(name);
        let slot = loop {
            match self.free_slots.pop() {
                // The list was cut behind it.
                Some(Reverse(slot)) if slot as usize >= self.slots.len() => {}
                Some(Reverse(slot)) => break slot,
                None => {
                    self.slots.push(None);
                    break u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 groups");
                }
            }
        };
        self.born += 1;
        let group = Group {
            name: name.into(),
            born: self.born,
            own: (!limits.is_empty()).then(|| Box::new(limits)),
            free: Ranked::default(),
            leased: Ranked::default(),
            held: 0,
            reserved: 0,
            until_ns: 0,
            filed: Filed::NOWHERE,
        };
        self.slots[slot as usize] = Some(Box::new(group));
        let slots = &self.slots;
        self.by_name
            .add(name, slot, |slot| &slots[slot as usize].as_ref().expect("a slot with a name has a group").name);
        slot
    }

    /// Moves a record. A place without a score in which nothing is held is no place.
    pub fn change(
        &mut self,
        id: NameId,
        before: Option<Place<'_>>,
        after: Option<Place<'_>>,
        own: impl Fn(&[u8]) -> Limits,
    ) {
        let counts = |place: &Place<'_>| place.score.is_some() || place.is_held;
        let (before, after) = (before.filter(counts), after.filter(counts));
        if before == after {
            return;
        }
        match (before, after) {
            (Some(from), Some(to)) if from.group == to.group => {
                let slot = self.find(from.group).expect("a group has the records that are in it");
                let front = self.group(slot).front();
                self.take_out(slot, id, from);
                self.put_in(slot, id, to);
                self.file_if_changed(slot, front);
            }
            _ => {
                if let Some(from) = before {
                    let slot = self.find(from.group).expect("a group has the records that are in it");
                    let front = self.group(slot).front();
                    self.take_out(slot, id, from);
                    self.file_if_changed(slot, front);
                }
                if let Some(to) = after {
                    let slot = self.find_or_add(to.group, &own);
                    let front = self.group(slot).front();
                    self.put_in(slot, id, to);
                    self.file_if_changed(slot, front);
                }
            }
        }
        self.forget_some(FORGOTTEN_AT_ONCE);
    }

    fn take_out(&mut self, slot: Slot, id: NameId, place: Place<'_>) {
        let group = self.group_mut(slot);
        if let Some(score) = place.score {
            let queue = group.queue(place.is_held);
            let removed = queue.remove_if(|item| comes_before(item, &(score, id)), |item| *item == (score, id));
            debug_assert!(removed.is_some(), "a record is where its fields say");
            if queue.is_empty() {
                *queue = Ranked::default();
            }
        }
        group.held -= u64::from(place.is_held);
        self.held -= u64::from(place.is_held);
        self.items -= usize::from(place.score.is_some());
        self.news.has_room |= place.is_held && self.all != Limits::default();
    }

    fn put_in(&mut self, slot: Slot, id: NameId, place: Place<'_>) {
        let group = self.group_mut(slot);
        if let Some(score) = place.score {
            group.queue(place.is_held).insert((score, id), |item| comes_before(item, &(score, id)));
        }
        group.held += u64::from(place.is_held);
        self.held += u64::from(place.is_held);
        self.items += usize::from(place.score.is_some());
        if place.is_held && !self.reserved.is_empty() {
            self.release(slot, id);
        }
    }

    /// Ends a reservation: the record is held now, or will not be.
    fn release(&mut self, slot: Slot, id: NameId) {
        if let Some(at) = self.reserved.iter().position(|reserved| *reserved == (slot, id)) {
            self.reserved.swap_remove(at);
            self.group_mut(slot).reserved -= 1;
        }
    }

    pub(super) fn applied(&self, group: &Group) -> Applied {
        group.own.as_deref().copied().unwrap_or_default().applied(&self.each)
    }

    /// False while a group is paused, or its rate is used up.
    pub(super) fn gives(&self, group: &Group) -> bool {
        let limits = self.applied(group);
        !limits.is_paused && limits.rate.is_none_or(|rate| rate.allowed_at(group.until_ns, self.now_ns) <= self.now_ns)
    }

    /// True when a group may hold no more.
    pub(super) fn is_at_its_cap(&self, group: &Group) -> bool {
        is_full(&self.applied(group), group)
    }

    /// A ready group has nothing before a score: it is not ready for searches up to there.
    pub(super) fn lower_horizon(&mut self, slot: Slot, to: Score) {
        if self.group(slot).filed.is_ready && self.group(slot).filed.head > to {
            self.horizon = self.horizon.min((to, Slot::MAX));
            self.file(slot);
        }
    }

    /// Where a group belongs whose turn is this.
    fn place_of(&self, slot: Slot, group: &Group, turn: Turn) -> Filed {
        let limits = self.applied(group);
        let head = |queue: &Ranked<Item>| queue.first().map_or(Score::NONE, |item| Score(item.0));
        let (free, leased) = (head(&group.free), head(&group.leased));
        let is_full = is_full(&limits, group);
        let is_empty = group.is_empty();
        let allowed_ns = limits.rate.map_or(0, |rate| rate.allowed_at(group.until_ns, self.now_ns));
        let is_used_up = allowed_ns > self.now_ns;
        let gives = !limits.is_paused && !is_used_up;
        let head = match (gives, is_full) {
            (false, _) => Score::NONE,
            (true, true) => leased,
            (true, false) => free.min(leased),
        };
        let may_be_forgotten = is_empty && group.held == 0 && group.reserved == 0 && !group.has_own_limits();
        let is_waited_for = may_be_forgotten && group.until_ns > self.now_ns;
        let is_ready = head.is_some() && (head, slot) <= self.horizon;
        // A group whose turn has passed, or that never had one, comes at the end of this round: at the beginning, groups that
        // are always new would keep the others from their turns.
        let is_late = is_ready && !group.filed.is_ready && turn < self.turn;
        // It waits at most one round, also after it was lighter, and after takes by claims that only it could serve.
        let turn = match is_late {
            true => self.turn + stride(limits.weight) - 1,
            false => turn.min(self.turn + stride(limits.weight)),
        };
        Filed {
            turn,
            head,
            held_head: if gives && self.all.applied(&Limits::default()).held.is_some() { leased } else { Score::NONE },
            allowed_ns: match is_empty {
                true if is_waited_for => group.until_ns,
                false if is_used_up && !limits.is_paused => allowed_ns,
                _ => NEVER,
            },
            is_empty,
            is_ready,
            capped_head: if gives && is_full { free } else { Score::NONE },
            is_blocked: !is_empty && (!gives || is_full && free.is_some()),
            is_idle: may_be_forgotten && !is_waited_for,
        }
    }

    /// Files a group whose records have changed. Most changes are behind its first record.
    #[inline]
    fn file_if_changed(&mut self, slot: Slot, front: Front) {
        if self.group(slot).front() != front {
            self.file(slot);
        }
    }

    /// Moves a group to the orders to which it belongs. It is forgotten if it has nothing left to remember.
    pub(super) fn file(&mut self, slot: Slot) {
        self.file_at(slot, self.group(slot).filed.turn);
    }

    /// The same for a group that has another turn now.
    fn file_at(&mut self, slot: Slot, turn: Turn) {
        self.cut_state(slot);
        let group = self.group(slot);
        let (before, after) = (group.filed, self.place_of(slot, group, turn));
        if after.is_idle && (after.turn <= self.turn || self.ready.is_empty()) {
            self.unfile(slot, before);
            return self.forget(slot);
        }
        if before != after {
            self.unfile_changed(slot, before, after);
            // IMPORTANT: also when a rate is in the way of the first record of a group: claims that wait have to learn when it
            // allows a take.
            self.news.has_earlier |= after.head < before.head
                || after.timed_ns() < before.timed_ns()
                || after.capped_head < before.capped_head;
            self.news.has_room |= before.is_blocked && after.head < before.head;
            self.group_mut(slot).filed = after;
        }
    }

    /// Cuts the state of the rate for all groups together, as [`cut_state`](GroupQueues::cut_state) does.
    fn cut_state_of_all(&mut self) {
        if self.is_current {
            let rate = self.all.applied(&Limits::default()).rate;
            self.all_until_ns = rate.map_or(0, |rate| rate.used_up_to(self.all_until_ns, self.now_ns));
        }
    }

    /// Cuts the state of a group's rate, which is too far ahead after another rate was set, or none, or the clock was set
    /// back.
    ///
    /// IMPORTANT: it is kept so. A cut that is made anew with every look moves on with the clock, and nothing is allowed
    /// before the time that was cut off.
    fn cut_state(&mut self, slot: Slot) {
        let group = self.group(slot);
        if !self.is_current || group.until_ns <= self.now_ns {
            return;
        }
        // Without a rate nothing is used up.
        let rate = self.applied(group).rate;
        let until_ns = rate.map_or(0, |rate| rate.used_up_to(group.until_ns, self.now_ns));
        self.group_mut(slot).until_ns = until_ns;
    }

    /// Removes a group from all orders.
    fn unfile(&mut self, slot: Slot, filed: Filed) {
        self.unfile_changed(slot, filed, Filed { turn: filed.turn, ..Filed::NOWHERE });
    }

    fn unfile_changed(&mut self, slot: Slot, before: Filed, after: Filed) {
        self.blocked = self.blocked + usize::from(after.is_blocked) - usize::from(before.is_blocked);
        let by_turn = |order: &mut BTreeSet<(Turn, Slot)>, was: bool, is: bool| {
            if (was, before.turn) == (is, after.turn) || !was && !is {
                return;
            }
            if was {
                order.remove(&(before.turn, slot));
            }
            if is {
                order.insert((after.turn, slot));
            }
        };
        by_turn(&mut self.ready, before.is_ready, after.is_ready);
        by_turn(&mut self.capped, before.capped_head.is_some(), after.capped_head.is_some());
        by_turn(&mut self.idle, before.is_idle, after.is_idle);
        let by_score = |order: &mut BTreeSet<(Score, Slot)>, was: Score, is: Score| {
            if was == is {
                return;
            }
            if was.is_some() {
                order.remove(&(was, slot));
            }
            if is.is_some() {
                order.insert((is, slot));
            }
        };
        by_score(&mut self.heads, before.head, after.head);
        by_score(&mut self.held_heads, before.held_head, after.held_head);
        by_score(&mut self.capped_heads, before.capped_head, after.capped_head);
        let by_time = |order: &mut BTreeSet<(u64, Slot)>, was: u64, is: u64| {
            if was == is {
                return;
            }
            if was != NEVER {
                order.remove(&(was, slot));
            }
            if is != NEVER {
                order.insert((is, slot));
            }
        };
        by_time(&mut self.timed, before.timed_ns(), after.timed_ns());
        by_time(&mut self.forgotten_at, before.forgotten_ns(), after.forgotten_ns());
    }

    /// Removes a group that is in no order.
    fn forget(&mut self, slot: Slot) {
        let group = self.slots[slot as usize].take().expect("it was just filed");
        let slots = &self.slots;
        let name_of = |slot: Slot| &*slots[slot as usize].as_ref().expect("a slot with a name has a group").name;
        self.by_name.remove(&group.name, slot, name_of);
        self.free_slots.push(Reverse(slot));
        while self.slots.last().is_some_and(Option::is_none) {
            self.slots.pop();
        }
        if self.by_name.is_empty() {
            self.free_slots = BinaryHeap::new();
        }
        if self.slots.len() * SPARE < self.slots.capacity() {
            self.slots.shrink_to(self.slots.len() * 2);
            let len = self.slots.len();
            self.free_slots.retain(|Reverse(slot)| (*slot as usize) < len);
            self.free_slots.shrink_to_fit();
        }
    }

    /// Forgets groups that are not needed any more. Those that are remembered until the others had their turns are not many
    /// more than the others: some of these may have nothing that any claim takes, and keep their turn for ever.
    fn forget_some(&mut self, max: usize) {
        for _ in 0..max {
            let Some((turn, slot)) = self.idle.first().copied() else { return };
            let are_too_many = self.idle.len() > REMEMBERED + self.len() / 2;
            if turn > self.turn && !self.ready.is_empty() && !are_too_many {
                return;
            }
            let group = self.group(slot);
            match self.place_of(slot, group, turn).is_idle {
                true => {
                    self.unfile(slot, group.filed);
                    self.forget(slot);
                }
                false => self.file(slot),
            }
        }
    }

    fn file_some(&mut self) {
        let Some(from) = self.unfiled else { return };
        let end = (from as usize + FILED_AT_ONCE).min(self.slots.len());
        for slot in from as usize..end {
            if self.slots[slot].is_some() {
                self.file(slot as Slot);
            }
        }
        // Forgetting the last groups may have made the list shorter.
        self.unfiled = (end < self.slots.len()).then_some(end as Slot);
    }

    /// Sets the limits of one group, or those that apply to all.
    pub fn set_limits(&mut self, scope: Scope<'_>, limits: Limits) {
        match scope {
            Scope::All => {
                self.news.has_room = true;
                self.all = limits;
                self.cut_state_of_all();
                self.unfiled = Some(0);
            }
            Scope::Each => {
                self.each = limits;
                self.unfiled = Some(0);
            }
            Scope::Group(name) => {
                let Some(slot) = self.find(name) else { return };
                self.group_mut(slot).own = (!limits.is_empty()).then(|| Box::new(limits));
                self.file(slot);
            }
        }
    }

    /// Raises the state of a rate, after a take that was made elsewhere or before a restart.
    pub fn raise_rate(&mut self, scope: Scope<'_>, until_ns: u64, own: impl FnOnce(&[u8]) -> Limits) {
        match scope {
            Scope::All | Scope::Each if until_ns > self.all_until_ns => {
                self.all_until_ns = until_ns;
                self.is_current = false;
            }
            Scope::Group(name) if until_ns > self.now_ns => {
                let slot = self.find_or_add(name, own);
                let group = self.group_mut(slot);
                if until_ns > group.until_ns {
                    group.until_ns = until_ns;
                    self.is_current = false;
                }
                self.file(slot);
            }
            _ => {}
        }
    }

    /// Notes the time. Threads look at the clock at slightly different moments: a little earlier is no step back.
    fn note_time(&mut self, now_ns: u64) {
        if now_ns.saturating_add(STEP_BACK_NS) < self.now_ns {
            self.unfiled = Some(0);
            self.now_ns = now_ns;
        }
        self.now_ns = self.now_ns.max(now_ns);
        self.is_current = true;
        self.cut_state_of_all();
    }

    /// Notes the time, and files some of the groups whose rates allow a take again.
    pub fn pass_time(&mut self, now_ns: u64) {
        self.note_time(now_ns);
        for _ in 0..FILED_AT_ONCE {
            let Some(slot) = self.allowed_again() else { break };
            self.file(slot);
        }
        self.forget_used_up(FORGOTTEN_AT_ONCE);
        self.file_some();
    }

    /// Forgets groups without records whose rates are not used up any more.
    fn forget_used_up(&mut self, max: usize) {
        for _ in 0..max {
            let first = self.forgotten_at.first().copied();
            let Some((_, slot)) = first.filter(|(at_ns, _)| *at_ns <= self.now_ns) else { break };
            self.file(slot);
        }
    }

    /// What the limits for all groups together allow now.
    pub(super) fn gate(&self, take: Take) -> Gate {
        let limits = self.all.applied(&Limits::default());
        if limits.is_paused {
            return Gate::Closed(None);
        }
        let allowed_ns = limits.rate.map_or(0, |rate| rate.allowed_at(self.all_until_ns, self.now_ns));
        if take.counts && allowed_ns > self.now_ns {
            return Gate::Closed(Some(allowed_ns));
        }
        let is_full = limits.held.is_some_and(|max| self.held + self.reserved.len() as u64 >= max);
        if take.holds && is_full { Gate::OnlyHeld } else { Gate::Open }
    }

    /// When a take is allowed again, if the limits for all allow none now: `Some(None)` if time alone does not change that.
    pub fn closed(&self) -> Option<Option<u64>> {
        match self.gate(Take { holds: false, counts: true }) {
            Gate::Closed(again_ns) => Some(again_ns),
            Gate::Open | Gate::OnlyHeld => None,
        }
    }

    /// Like [`reserve`](GroupQueues::reserve), for an index without groups.
    pub fn reserve_of_all(&mut self, take: Take, now_ns: u64) -> Option<Taken> {
        self.note_time(now_ns);
        if self.gate(take) != Gate::Open {
            return None;
        }
        let rate = self.all.applied(&Limits::default()).rate.filter(|_| take.counts);
        let all_until_ns = rate.map(|rate| rate.after_take(self.all_until_ns, self.now_ns));
        self.all_until_ns = all_until_ns.unwrap_or(self.all_until_ns);
        Some(Taken { group_until_ns: None, all_until_ns })
    }

    /// Reserves room for a take, moves the rates on, and gives the turn to the next group. `None` when a limit is in the
    /// way. The record's shard is locked until it is changed.
    pub fn reserve(&mut self, name: &[u8], id: NameId, take: Take, now_ns: u64) -> Option<Taken> {
        self.note_time(now_ns);
        let now_ns = self.now_ns;
        match self.gate(take) {
            Gate::Open => {}
            Gate::OnlyHeld | Gate::Closed(_) => return None,
        }
        let slot = self.find(name)?;
        let limits = self.applied(self.group(slot));
        let group = self.group(slot);
        let is_full = is_full(&limits, group);
        let allowed_ns = limits.rate.map_or(0, |rate| rate.allowed_at(group.until_ns, now_ns));
        if limits.is_paused || take.holds && is_full || take.counts && allowed_ns > now_ns {
            return None;
        }
        let mut taken = Taken::default();
        if take.counts {
            taken.group_until_ns = limits.rate.map(|rate| rate.after_take(group.until_ns, now_ns));
            let rate = self.all.applied(&Limits::default()).rate;
            taken.all_until_ns = rate.map(|rate| rate.after_take(self.all_until_ns, now_ns));
            self.all_until_ns = taken.all_until_ns.unwrap_or(self.all_until_ns);
        }
        let turn = self.turn;
        let group = self.group_mut(slot);
        if let Some(until_ns) = taken.group_until_ns {
            group.until_ns = until_ns;
        }
        let own_turn = group.filed.turn;
        let served = own_turn.max(turn);
        let next_turn = if take.counts { served + stride(limits.weight) } else { own_turn };
        if take.holds {
            group.reserved += 1;
            self.reserved.push((slot, id));
        }
        self.turn = turn.max(served.min(self.lowest_turn().unwrap_or(served)));
        self.file_at(slot, next_turn);
        Some(taken)
    }

    /// The lowest turn of all ready groups.
    fn lowest_turn(&self) -> Option<Turn> {
        self.ready.first().map(|(turn, _)| *turn)
    }

    /// True when a record that a search has found is held already.
    pub fn is_held_at(&self, group: GroupRef, score: f64, id: NameId) -> bool {
        let item = (score, id);
        let there = self.met(group);
        there.is_some_and(|group| group.leased.find(|other| comes_before(other, &item)) == Some(item))
    }

    /// Ends a take: what was reserved and not used is free again.
    pub fn end_take(&mut self, name: &[u8], id: NameId) {
        if self.reserved.is_empty() {
            return;
        }
        if let Some(slot) = self.find(name) {
            self.release(slot, id);
            self.file(slot);
        }
    }

    /// The groups from a position on, at most `count`. Returns where to continue.
    pub fn list(&self, from: u32, count: usize, mut visit: impl FnMut(GroupState<'_>)) -> Option<u32> {
        self.each_from(from, count, |group| visit(self.state_of(group)))
    }

    /// The names and sizes of groups, listed in the same way: it costs less than all of their states.
    pub fn sizes(&self, from: u32, count: usize, mut visit: impl FnMut(&[u8], u64)) -> Option<u32> {
        self.each_from(from, count, |group| visit(&group.name, group.size()))
    }

    /// The size of one group: how many records it has, or how many are held, whichever is more.
    pub fn size(&self, name: &[u8]) -> Option<u64> {
        self.find(name).map(|slot| self.group(slot).size())
    }

    /// The lowest score of a group that is not below `min`.
    pub fn first_score_from(&self, name: &[u8], min: f64) -> Option<f64> {
        let group = self.group(self.find(name)?);
        let first = |queue: &Ranked<Item>| queue.find(|item| item.0 < min).map(|item| item.0);
        first(&group.free).into_iter().chain(first(&group.leased)).min_by(f64::total_cmp)
    }

    fn each_from(&self, from: u32, count: usize, mut visit: impl FnMut(&Group)) -> Option<u32> {
        let mut slots = self.slots.iter().enumerate().skip(from as usize);
        let mut left = count;
        for (slot, group) in &mut slots {
            let Some(group) = group else { continue };
            if left == 0 {
                return Some(slot as u32);
            }
            left -= 1;
            visit(group);
        }
        None
    }

    /// A group as it is now.
    pub fn state(&self, name: &[u8]) -> Option<GroupState<'_>> {
        self.find(name).map(|slot| self.state_of(self.group(slot)))
    }

    fn state_of<'g>(&self, group: &'g Group) -> GroupState<'g> {
        let limits = self.applied(group);
        let first = |queue: &Ranked<Item>| queue.first().map_or(f64::INFINITY, |item| item.0);
        let first_score = Some(first(&group.free).min(first(&group.leased))).filter(|score| *score < f64::INFINITY);
        let allowed_ns = limits.rate.map_or(0, |rate| rate.allowed_at(group.until_ns, self.now_ns));
        let is_allowed = allowed_ns <= self.now_ns;
        let any = Take { holds: true, counts: true };
        let allowed_ns = match (limits.is_paused || is_full(&limits, group), self.gate(any)) {
            (true, _) | (false, Gate::OnlyHeld | Gate::Closed(None)) => None,
            (false, Gate::Closed(Some(all_ns))) => Some(all_ns.max(if is_allowed { 0 } else { allowed_ns })),
            (false, Gate::Open) => Some(if is_allowed { 0 } else { allowed_ns }),
        };
        GroupState {
            name: &group.name,
            records: group.free.len() + group.leased.len(),
            held: group.held,
            first_score,
            allowed_ns,
            limits,
        }
    }

    /// Empties all queues. Rates that are used up stay so. Returns what was there, to be freed.
    pub fn clear(&mut self, has_rates: bool, own: impl Fn(&[u8]) -> Limits) -> GroupQueues {
        let empty = GroupQueues {
            all_until_ns: self.all_until_ns,
            now_ns: self.now_ns,
            horizon: self.horizon,
            born: self.born,
            ..GroupQueues::new(self.each, self.all)
        };
        let before = std::mem::replace(self, empty);
        let slots = if has_rates { &before.slots[..] } else { &[] };
        for group in slots.iter().flatten().filter(|group| group.until_ns > before.now_ns) {
            self.raise_rate(Scope::Group(&group.name), group.until_ns, &own);
        }
        before
    }
}

#[cfg(test)]
impl GroupQueues {
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity() + self.by_name.capacity() + self.free_slots.capacity()
    }

    /// Checks that every group is where it belongs.
    pub(super) fn check(&mut self) {
        while self.is_filing() {
            self.pass_time(self.now_ns);
        }
        let groups: Vec<Slot> =
            (0..self.slots.len() as Slot).filter(|slot| self.slots[*slot as usize].is_some()).collect();
        let count = |is: &dyn Fn(&Filed) -> bool| groups.iter().filter(|slot| is(&self.group(**slot).filed)).count();
        assert_eq!(self.by_name.len(), groups.len());
        assert_eq!(self.ready.len(), count(&|filed| filed.is_ready));
        assert_eq!(self.heads.len(), count(&|filed| filed.head.is_some()));
        assert_eq!(self.capped.len(), count(&|filed| filed.capped_head.is_some()));
        assert_eq!(self.capped_heads.len(), self.capped.len());
        assert_eq!(self.held_heads.len(), count(&|filed| filed.held_head.is_some()));
        assert_eq!(self.timed.len(), count(&|filed| filed.timed_ns() != NEVER));
        assert_eq!(self.idle.len(), count(&|filed| filed.is_idle));
        assert_eq!(self.blocked, count(&|filed| filed.is_blocked));
        assert!(self.reserved.is_empty());
        let mut blocked = Blocked::default();
        for slot in groups {
            let group = self.group(slot);
            let (is, filed) = (self.place_of(slot, group, group.filed.turn), group.filed);
            let is_capped = filed.capped_head.is_some();
            if filed.is_blocked {
                match (is_capped, filed.timed_ns() != NEVER) {
                    (true, _) => blocked.by_cap += 1,
                    (false, true) => blocked.by_rate += 1,
                    (false, false) => blocked.by_pause += 1,
                }
                let is_paused = self.applied(group).is_paused;
                assert_eq!(is_paused, !is_capped && filed.timed_ns() == NEVER, "{:?}: {filed:?}", group.name);
            }
            assert!(is == filed, "{:?}: {filed:?}, not {is:?}", group.name);
        }
        assert_eq!(self.blocked(), blocked);
    }
}

fn is_full(limits: &Applied, group: &Group) -> bool {
    limits.held.is_some_and(|max| group.held + u64::from(group.reserved) >= max)
}

/// How far a take moves a group of that weight. A heavier group moves less, and so has more turns.
fn stride(weight: u32) -> Turn {
    Turn::from(WEIGHT_MAX) * 1000 / Turn::from(weight)
}
