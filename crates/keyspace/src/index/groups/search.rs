//! A search for the next records that groups may give. Knows turns, scores and limits; refuses to know whether a record
//! qualifies: the caller looks at each, under the record's own lock, and searches on.

use super::names::Slot;
use super::queues::{Gate, GroupQueues, GroupRef, Score, Take, Turn};
use crate::index::item::{Item, by_score};
use crate::storage::NameId;
use crate::storage::ranked::Ranked;
use crate::types::sorted_set::ScoreRange;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// In which order groups give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They take turns, by their weights.
    Fair,
    /// The lowest score of all.
    Score,
}

/// A search, from one record to the next.
pub struct GroupSearch {
    order: Order,
    take: Take,
    pub range: ScoreRange,
    /// The group that is searched, and its last record that was found.
    current: Option<GroupRef>,
    /// Where the search is in each group in which a record did not qualify.
    seen: HashMap<GroupRef, Item>,
    /// Groups in which nothing is left for this search.
    exhausted: HashSet<GroupRef>,
    /// In turns: the last group that was looked at.
    turn: Option<(Turn, Slot)>,
    /// By scores: the last head that was looked at, and the next record of each group that was.
    head: Option<(Score, Slot)>,
    /// The same of groups whose cap is reached, for a claim that holds nothing more.
    capped_head: Option<(Score, Slot)>,
    /// The last head among the records that are held already.
    held_head: Option<(Score, Slot)>,
    nexts: BTreeMap<(Score, GroupRef), Item>,
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    Record {
        group: GroupRef,
        score: f64,
        id: NameId,
    },
    /// There is none.
    Nothing {
        /// No group that may give has a score between the range and this one.
        next_score: f64,
        /// When a rate allows a take again.
        again_ns: Option<u64>,
    },
    /// More steps are needed. The caller gives others the lock.
    Unfinished,
}

/// How many groups one step looks at. Few in tests, so that there are many steps.
const GROUPS_PER_STEP: usize = if cfg!(test) { 2 } else { 64 };

impl GroupSearch {
    pub fn new(order: Order, take: Take, range: ScoreRange) -> GroupSearch {
        GroupSearch {
            order,
            take,
            range,
            current: None,
            seen: HashMap::new(),
            exhausted: HashSet::new(),
            turn: None,
            head: None,
            capped_head: None,
            held_head: None,
            nexts: BTreeMap::new(),
        }
    }

    /// The next record after the last one found, which was taken, or not.
    pub fn next(&mut self, queues: &mut GroupQueues, was_taken: bool, now_ns: u64) -> Found {
        queues.pass_time(now_ns);
        if was_taken {
            // The others come first now.
            self.turn = None;
            if self.order == Order::Fair {
                self.current = None;
            }
        }
        if queues.is_filing() {
            return Found::Unfinished;
        }
        match queues.gate(self.take) {
            Gate::Closed(again_ns) => Found::Nothing { next_score: f64::INFINITY, again_ns },
            Gate::OnlyHeld => self.next_held(queues),
            Gate::Open => match self.order {
                Order::Fair => self.next_in_turn(queues),
                Order::Score => self.next_by_score(queues),
            },
        }
    }

    /// Notes the last record found, so that the search goes on behind it.
    pub fn note_seen(&mut self, group: GroupRef, score: f64, id: NameId) {
        self.seen.insert(group, (score, id));
    }

    fn next_in_turn(&mut self, queues: &mut GroupQueues) -> Found {
        if !self.raise_horizon(queues) {
            return Found::Unfinished;
        }
        for _ in 0..GROUPS_PER_STEP {
            if let Some(group) = self.current {
                if let Some((score, id)) = self.next_of(queues, group) {
                    return Found::Record { group, score, id };
                }
                self.exhausted.insert(group);
                self.current = None;
            }
            let Some((turn, slot)) = self.next_turn(queues) else { return self.nothing(queues) };
            self.turn = Some((turn, slot));
            let group = queues.reference(slot);
            queues.lower_horizon(slot, Score(self.range.max.score));
            if !self.exhausted.contains(&group) {
                self.current = Some(group);
            }
        }
        Found::Unfinished
    }

    /// The next group whose turn it is.
    fn next_turn(&self, queues: &GroupQueues) -> Option<(Turn, Slot)> {
        let from = self.turn.map_or(Unbounded, Excluded);
        let ready = queues.ready.range((from, Unbounded)).next().copied();
        let capped = match self.take.holds {
            true => None,
            false => queues.capped.range((from, Unbounded)).next().copied(),
        };
        ready.into_iter().chain(capped).min()
    }

    /// Groups whose first record is within the range of this search are ready from now on. False while there are more.
    fn raise_horizon(&self, queues: &mut GroupQueues) -> bool {
        let max = (Score(self.range.max.score), Slot::MAX);
        if queues.horizon >= max {
            return true;
        }
        let above = queues.heads.range((Excluded(queues.horizon), Unbounded)).take_while(|head| **head <= max);
        let reached: Vec<(Score, Slot)> = above.take(GROUPS_PER_STEP).copied().collect();
        let more_from = reached.last().copied().filter(|_| reached.len() == GROUPS_PER_STEP);
        queues.horizon = more_from.unwrap_or(max);
        reached.into_iter().for_each(|(_, slot)| queues.file(slot));
        more_from.is_none()
    }

    fn next_by_score(&mut self, queues: &mut GroupQueues) -> Found {
        if let Some(group) = self.current.take()
            && let Some(item) = self.next_of(queues, group)
        {
            self.nexts.insert((Score(item.0), group), item);
        }
        for _ in 0..GROUPS_PER_STEP {
            let after = |heads: &BTreeSet<(Score, Slot)>, last: Option<(Score, Slot)>| {
                let head = heads.range((last.map_or(Unbounded, Excluded), Unbounded)).next().copied();
                head.filter(|(score, _)| self.range.reaches(score.0))
            };
            let mut head = after(&queues.heads, self.head);
            let capped = if self.take.holds { None } else { after(&queues.capped_heads, self.capped_head) };
            let is_capped = capped.is_some_and(|capped| head.is_none_or(|head| capped < head));
            if is_capped {
                head = capped;
            }
            let next = self.nexts.first_key_value().map(|((score, group), item)| (*score, *group, *item));
            match (head, next) {
                (Some((score, slot)), next) if next.is_none_or(|(other, ..)| score <= other) => {
                    match is_capped {
                        true => self.capped_head = head,
                        false => self.head = head,
                    }
                    let group = queues.reference(slot);
                    if let Some(item) = self.next_of(queues, group) {
                        self.nexts.insert((Score(item.0), group), item);
                    }
                }
                (_, Some((score, group, item))) => {
                    self.nexts.remove(&(score, group));
                    // It may have been taken by another, or its group may not give any more.
                    match self.next_of(queues, group) {
                        Some(now) if now == item => {
                            self.current = Some(group);
                            return Found::Record { group, score: item.0, id: item.1 };
                        }
                        Some(now) => drop(self.nexts.insert((Score(now.0), group), now)),
                        None => {}
                    }
                }
                (None, None) | (Some(_), None) => return self.nothing(queues),
            }
        }
        Found::Unfinished
    }

    /// The next record that is held already, of any group: the cap of all groups together is reached.
    fn next_held(&mut self, queues: &GroupQueues) -> Found {
        let from = self.held_head.map_or(Unbounded, Excluded);
        for (score, slot) in queues.held_heads.range((from, Unbounded)).copied().take(GROUPS_PER_STEP) {
            if !self.range.reaches(score.0) {
                return Found::Nothing { next_score: score.0, again_ns: None };
            }
            let group = queues.reference(slot);
            let there = queues.group(slot);
            if let Some((score, id)) = self.next_in(&there.leased, group) {
                return Found::Record { group, score, id };
            }
            self.held_head = Some((score, slot));
        }
        match self.held_head.is_none_or(|head| queues.held_heads.range((Excluded(head), Unbounded)).next().is_none()) {
            true => Found::Nothing { next_score: f64::INFINITY, again_ns: None },
            false => Found::Unfinished,
        }
    }

    /// The next record of a group that it may give to this search.
    fn next_of(&self, queues: &GroupQueues, group: GroupRef) -> Option<Item> {
        let there = queues.met(group)?;
        if !queues.gives(there) {
            return None;
        }
        let gives_free = !self.take.holds || !queues.is_at_its_cap(there);
        let leased = self.next_in(&there.leased, group);
        let free = if gives_free { self.next_in(&there.free, group) } else { None };
        match (free, leased) {
            (Some(free), Some(leased)) => {
                let is_less = by_score(leased.0, free.0).then_with(|| leased.1.cmp(&free.1)).is_lt();
                Some(if is_less { leased } else { free })
            }
            (one, other) => one.or(other),
        }
    }

    /// The next record of a queue behind what was seen, within the range.
    fn next_in(&self, queue: &Ranked<Item>, group: GroupRef) -> Option<Item> {
        let seen = self.seen.get(&group).copied();
        let is_behind = |item: &Item| match seen {
            Some(seen) if by_score(item.0, seen.0).then_with(|| item.1.cmp(&seen.1)).is_le() => true,
            _ => self.range.is_above(item.0),
        };
        let first = match seen.is_none() && self.range.min.score == f64::NEG_INFINITY {
            true => queue.first(),
            false => queue.find(is_behind),
        };
        first.filter(|item| self.range.reaches(item.0))
    }

    /// No group has anything for this search.
    fn nothing(&self, queues: &GroupQueues) -> Found {
        let max = Score(self.range.max.score);
        // IMPORTANT: not by passing over heads of that very score, of which there may be very many.
        let first = |heads: &BTreeSet<(Score, Slot)>| {
            let from = if self.range.max.excluded { Included((max, 0)) } else { Excluded((max, Slot::MAX)) };
            heads.range((from, Unbounded)).next().map_or(f64::INFINITY, |(score, _)| score.0)
        };
        let head = first(&queues.heads);
        let head = if self.take.holds { head } else { head.min(first(&queues.capped_heads)) };
        // Behind records that did not qualify.
        let behind = self.seen.keys().filter_map(|group| queues.met(*group)).flat_map(|group| {
            let first_above = |queue: &Ranked<Item>| queue.find(|item| self.range.reaches(item.0)).map(|item| item.0);
            [first_above(&group.free), first_above(&group.leased)]
        });
        let next_score = behind.flatten().fold(head, f64::min);
        Found::Nothing { next_score, again_ns: queues.timed.first().map(|(at_ns, _)| *at_ns) }
    }
}
