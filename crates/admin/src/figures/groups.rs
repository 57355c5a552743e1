//! A look at the groups of indexes: totals of each, and its largest groups. Holds the lock of the groups for a few of them at a
//! time, and looks at a bounded number in one scrape: of more, the next one goes on. Refuses to know how figures are shown.

use super::keys::{IndexAt, TIME_MS_MIN};
use engine::Engine;
use keyspace::DATABASES;
use keyspace::index::Index;
use keyspace::index::groups::{Applied, Blocked, GroupQueues, Groups, Limits, Scope};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The most indexes, in one database each, whose groups are looked at one by one: those with the most records in groups.
const LOOKED_AT_MAX: usize = 16;
/// The most groups of each that have figures of their own.
const LARGEST_MAX: usize = 32;
/// The most groups that one scrape looks at.
const VISITED_MAX: usize = 1 << 17;
/// The groups that are visited under one lock: about ten microseconds.
const VISITED_AT_ONCE: usize = 64;

/// Figures of one group.
#[derive(Clone, Debug)]
pub(super) struct GroupFigures {
    pub(super) name: Vec<u8>,
    pub(super) records: u64,
    pub(super) held: u64,
    /// The earliest due score that is a time.
    pub(super) oldest_due_ms: Option<u64>,
    pub(super) may_give: bool,
    pub(super) limits: Applied,
}

/// Figures of all groups of an index in one database.
#[derive(Clone, Debug)]
pub(super) struct GroupsFigures {
    pub(super) groups: u64,
    pub(super) records: u64,
    pub(super) held: u64,
    pub(super) blocked: Blocked,
    /// Those for all groups together.
    pub(super) limits: Applied,
    pub(super) is_grouped: bool,
    /// Its largest groups, largest first.
    pub(super) largest: Vec<GroupFigures>,
}

/// What is kept between two scrapes.
#[derive(Default)]
pub(super) struct GroupsLook {
    pub(super) indexes: BTreeMap<IndexAt, GroupsFigures>,
    walks: BTreeMap<IndexAt, Walk>,
}

impl GroupsLook {
    pub(super) fn look(&mut self, engine: &Engine) {
        if engine.restrictions.is_loading() {
            return;
        }
        let now_ms = engine.clock.unix_us() / 1000;
        self.indexes.clear();
        let indexes = engine.indexes.list();
        let mut walked: Vec<(u64, IndexAt, &Index)> = Vec::new();
        for index in indexes.iter() {
            for db in 0..DATABASES {
                let Some(figures) = totals(index, db) else { continue };
                let at = (index.name.clone(), db);
                if figures.is_grouped && figures.groups > 0 {
                    walked.push((figures.records.max(figures.held), at.clone(), &**index));
                }
                self.indexes.insert(at, figures);
            }
        }
        walked.sort_by_key(|(size, ..)| Reverse(*size));
        walked.truncate(LOOKED_AT_MAX);
        self.walks.retain(|at, _| walked.iter().any(|(_, walked, _)| walked == at));
        let each = VISITED_MAX / walked.len().max(1);
        for (_, at, index) in walked {
            let walk = self.walks.entry(at.clone()).or_default();
            walk.go_on(&index.groups, at.1, each);
            if let Some(figures) = self.indexes.get_mut(&at) {
                figures.largest = walk.figures(&index.groups, at.1, now_ms);
            }
        }
    }
}

/// The totals of an index in a database; `None` if there is nothing to tell.
fn totals(index: &Index, db: usize) -> Option<GroupsFigures> {
    let (definition, groups) = (&index.definition, &index.groups);
    if !definition.has_queues() && !groups.limits_all() {
        return None;
    }
    let limits = groups.with_limits(|table| table.get(Scope::All)).applied(&Limits::default());
    let queues = groups.lock_if_used(db);
    // The first database has all indexes, so that none is missing when it has no record.
    if db > 0 && queues.as_ref().is_none_or(|queues| queues.is_empty()) {
        return None;
    }
    let of = |count: fn(&GroupQueues) -> u64| queues.as_deref().map_or(0, count);
    Some(GroupsFigures {
        groups: of(|queues| queues.len() as u64),
        records: of(|queues| queues.items() as u64),
        held: of(GroupQueues::held),
        blocked: queues.as_deref().map_or_else(Blocked::default, GroupQueues::blocked),
        limits,
        is_grouped: definition.group.is_some(),
        largest: Vec::new(),
    })
}

/// A walk through the groups of an index in one database, from scrape to scrape.
#[derive(Default)]
struct Walk {
    /// Where it goes on.
    next: u32,
    /// The largest groups that it has met.
    largest: BTreeSet<(u64, Vec<u8>)>,
}

impl Walk {
    /// Visits groups from where the last scrape has stopped, to the last one or as many as are allowed.
    fn go_on(&mut self, groups: &Groups, db: usize, visited_max: usize) {
        let Some(queues) = groups.lock_if_used(db) else { return };
        let known = std::mem::take(&mut self.largest);
        self.largest = known.into_iter().filter_map(|(_, name)| Some((queues.size(&name)?, name))).collect();
        drop(queues);
        let mut left = visited_max;
        while left > 0 {
            let Some(queues) = groups.lock_if_used(db) else { return };
            let count = left.min(VISITED_AT_ONCE);
            let next = queues.sizes(self.next, count, |name, size| self.note(name, size));
            queues.unlock_fair();
            left -= count;
            self.next = next.unwrap_or(0);
            if next.is_none() {
                return;
            }
        }
    }

    fn note(&mut self, name: &[u8], size: u64) {
        let is_full = self.largest.len() >= LARGEST_MAX;
        if is_full && self.largest.first().is_some_and(|(smallest, _)| *smallest >= size) {
            return;
        }
        let known = self.largest.iter().find(|(_, known)| known == name).cloned();
        match known {
            Some(known) => drop(self.largest.remove(&known)),
            None if is_full => drop(self.largest.pop_first()),
            None => {}
        }
        self.largest.insert((size, name.to_vec()));
    }

    /// The figures of the largest groups, largest first.
    fn figures(&self, groups: &Groups, db: usize, now_ms: u64) -> Vec<GroupFigures> {
        let Some(queues) = groups.lock_if_used(db) else { return Vec::new() };
        let found = self.largest.iter().rev().filter_map(|(_, name)| {
            let state = queues.state(name)?;
            let is_due = |score: &f64| *score <= now_ms as f64;
            let oldest = queues.first_score_from(name, TIME_MS_MIN).filter(is_due);
            Some(GroupFigures {
                name: name.clone(),
                records: state.records as u64,
                held: state.held,
                oldest_due_ms: oldest.map(|score| score as u64),
                may_give: state.allowed_ns == Some(0),
                limits: state.limits,
            })
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyspace::index::groups::Place;

    /// Adds records to a group, or removes them.
    fn change(groups: &Groups, name: &str, ids: std::ops::Range<u64>, is_there: bool) {
        for id in ids {
            let place = Some(Place { group: name.as_bytes(), score: Some(1.0), is_held: false });
            let (before, after) = if is_there { (None, place) } else { (place, None) };
            groups.lock(0).change(id, before, after, |_| Limits::default());
        }
    }

    fn names(walk: &Walk, groups: &Groups) -> Vec<(String, u64)> {
        let figures = walk.figures(groups, 0, 0);
        figures.into_iter().map(|group| (String::from_utf8(group.name).unwrap(), group.records)).collect()
    }

    #[test]
    fn the_largest_groups_are_found_in_several_scrapes() {
        let groups = Groups::default();
        (0..1000).for_each(|id| change(&groups, &format!("small:{id}"), id..id + 1, true));
        for number in 0..LARGEST_MAX as u64 {
            let first = 10_000 + number * 100;
            change(&groups, &format!("large:{number}"), first..first + 2 + number, true);
        }
        let mut walk = Walk::default();
        walk.go_on(&groups, 0, 100);
        assert_eq!(walk.largest.len(), LARGEST_MAX);
        assert!(names(&walk, &groups).iter().all(|(name, _)| name.starts_with("small:")), "the large ones come later");
        (0..11).for_each(|_| walk.go_on(&groups, 0, 100));
        let largest = |count: usize| {
            let newest = (0..LARGEST_MAX as u64).rev().take(count);
            newest.map(|number| (format!("large:{number}"), 2 + number)).collect::<Vec<_>>()
        };
        assert_eq!(names(&walk, &groups), largest(LARGEST_MAX));
        // What is shown is as it is now, and those that have become small make room.
        change(&groups, "large:0", 10_000..10_001, false);
        change(&groups, "large:1", 10_100..10_103, false);
        change(&groups, "small:7", 50_000..50_500, true);
        (0..12).for_each(|_| walk.go_on(&groups, 0, 100));
        let found = names(&walk, &groups);
        assert_eq!(found[0], ("small:7".to_owned(), 501));
        assert_eq!(found[1..LARGEST_MAX - 1], largest(LARGEST_MAX - 2));
        assert_eq!((found.len(), found[LARGEST_MAX - 1].1), (LARGEST_MAX, 1));
        // One scrape is enough where there are few.
        let mut walk = Walk::default();
        walk.go_on(&groups, 0, VISITED_MAX);
        assert_eq!(names(&walk, &groups)[..LARGEST_MAX - 1], found[..LARGEST_MAX - 1]);
    }

    #[test]
    fn groups_that_are_gone_are_not_shown() {
        let groups = Groups::default();
        let mut walk = Walk::default();
        walk.go_on(&groups, 0, VISITED_MAX);
        change(&groups, "a", 0..10, true);
        walk.go_on(&groups, 0, VISITED_MAX);
        assert_eq!(names(&walk, &groups), [("a".to_owned(), 10)]);
        change(&groups, "a", 0..10, false);
        walk.go_on(&groups, 0, VISITED_MAX);
        assert!(names(&walk, &groups).is_empty() && walk.largest.is_empty());
    }
}
