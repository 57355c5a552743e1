//! What clients were told, and whether it can be true of one history. Knows no servers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The lists that clients append to.
pub(super) const LISTS: usize = 3;

/// What a client has asked for, with what its answer has to agree with.
pub(super) enum Asked {
    /// Elements that are appended to a list, all or none.
    Append { list: usize, elements: Range<u64> },
    /// The elements of a list.
    Read { list: usize, is_writer: bool, needed: BTreeSet<u64>, length: usize },
    /// A key that expires.
    Set { key: u64 },
    /// `is_set`: the server that is asked has it, or has seen it expire.
    Get { key: u64, is_writer: bool, is_set: bool, is_gone: bool },
}

impl Asked {
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Asked::Append { .. } | Asked::Set { .. })
    }

    /// A server answers that does not write any more.
    pub(super) fn leave_to_follower(&mut self) {
        if let Asked::Read { is_writer, .. } | Asked::Get { is_writer, .. } = self {
            *is_writer = false;
        }
    }
}

/// What clients know.
#[derive(Default)]
pub(super) struct Checks {
    last_element: u64,
    /// The last element of each group that is appended.
    group_ends: BTreeSet<u64>,
    lists: [List; LISTS],
    keys: BTreeMap<u64, Key>,
    /// Which process has written in an epoch.
    writers: BTreeMap<u32, (usize, u64)>,
    pub(super) acknowledged: usize,
    pub(super) writer_reads: usize,
}

#[derive(Default)]
struct List {
    acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    /// The longest that was read.
    longest: Vec<u64>,
}

/// A key that is set once.
struct Key {
    deadline_ms: u64,
    /// The batch that sets it, once that is acknowledged.
    batch: Option<u64>,
    is_refused: bool,
    /// A server that had it has answered that it does not exist any more.
    is_gone: bool,
}

pub(super) fn elements(reply: &str) -> Vec<u64> {
    let lines = reply.split("\r\n").filter(|line| !line.starts_with(['*', '$']) && !line.is_empty());
    lines.map(|line| line.parse().unwrap_or_else(|_| panic!("not a list: {reply}"))).collect()
}

impl Checks {
    pub(super) fn append(&mut self, list: usize, count: u64) -> Asked {
        let elements = self.last_element + 1..self.last_element + 1 + count;
        self.last_element += count;
        self.group_ends.insert(self.last_element);
        Asked::Append { list, elements }
    }

    pub(super) fn read(&self, list: usize, is_writer: bool) -> Asked {
        let List { acknowledged, longest, .. } = &self.lists[list];
        Asked::Read { list, is_writer, needed: acknowledged.clone(), length: longest.len() }
    }

    pub(super) fn set(&mut self, deadline_ms: u64) -> Asked {
        let key = self.keys.len() as u64;
        self.keys.insert(key, Key { deadline_ms, batch: None, is_refused: false, is_gone: false });
        Asked::Set { key }
    }

    /// `applied` is the last batch that a follower has; a writer has all.
    pub(super) fn get(&self, key: u64, applied: Option<u64>) -> Asked {
        let Key { batch, is_gone, .. } = self.keys[&key];
        let is_set = batch.is_some_and(|batch| applied.is_none_or(|applied| batch <= applied));
        Asked::Get { key, is_writer: applied.is_none(), is_set, is_gone }
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn last_deadline_ms(&self) -> u64 {
        self.keys.values().map(|key| key.deadline_ms).max().unwrap_or(0)
    }

    /// A request was refused when it was made.
    pub(super) fn refuse(&mut self, asked: &Asked) {
        match asked {
            Asked::Append { list, elements } => self.lists[*list].refused.extend(elements.clone()),
            Asked::Set { key } => self.keys.get_mut(key).expect("it is known").is_refused = true,
            Asked::Read { .. } | Asked::Get { .. } => {}
        }
    }

    /// A client gets an answer, which depends on this batch. No server judges by a later time than `latest_ms`.
    pub(super) fn answer(&mut self, asked: &Asked, reply: &str, batch: u64, latest_ms: u64) {
        if reply.starts_with('-') {
            return;
        }
        match asked {
            Asked::Append { list, elements } => {
                self.lists[*list].acknowledged.extend(elements.clone());
                self.acknowledged += 1;
            }
            Asked::Read { list, is_writer, needed, length } => {
                let found = elements(reply);
                if *is_writer {
                    self.writer_reads += 1;
                    let missing: Vec<_> = needed.iter().filter(|element| !found.contains(element)).collect();
                    assert!(
                        missing.is_empty(),
                        "a writer reads {found:?}, without {missing:?}: it was acknowledged before"
                    );
                    assert!(found.len() >= *length, "a writer reads {found:?}, and {length} elements were read before");
                }
                self.observe(*list, found);
            }
            Asked::Set { key } => {
                self.keys.get_mut(key).expect("it is known").batch = Some(batch);
                self.acknowledged += 1;
            }
            Asked::Get { key, is_writer, is_set, is_gone } => {
                let known = self.keys.get_mut(key).expect("it is known");
                match reply.starts_with("$-1") {
                    // A follower may be behind.
                    false => assert!(!is_gone || !is_writer, "key {key} had expired and has come back"),
                    true if *is_set => {
                        let deadline_ms = known.deadline_ms;
                        assert!(deadline_ms <= latest_ms, "key {key} has expired at {latest_ms}, before {deadline_ms}");
                        known.is_gone = true;
                    }
                    true => {}
                }
                assert!(!known.is_refused || reply.starts_with("$-1"), "key {key} was refused and is there");
            }
        }
    }

    /// All that is ever read of a list are beginnings of the same.
    fn observe(&mut self, list: usize, found: Vec<u64>) {
        let is_whole = found.last().is_none_or(|last| self.group_ends.contains(last));
        assert!(is_whole, "a part of a change is seen: {found:?}");
        let longest = &mut self.lists[list].longest;
        let shared = found.len().min(longest.len());
        assert_eq!(found[..shared], longest[..shared], "two reads of list {list} are of different histories");
        if found.len() > longest.len() {
            *longest = found;
        }
    }

    /// A process writes in an epoch.
    pub(super) fn write(&mut self, epoch: u32, process: (usize, u64)) {
        let known = *self.writers.entry(epoch).or_insert(process);
        assert_eq!(known, process, "two processes write in epoch {epoch}");
    }

    pub(super) fn epochs(&self) -> usize {
        self.writers.len()
    }

    /// The lists in the end.
    pub(super) fn end(&mut self, found: &[Vec<u64>]) {
        for (number, elements) in found.iter().enumerate() {
            self.observe(number, elements.clone());
            let List { acknowledged, refused, longest } = &self.lists[number];
            assert_eq!(longest, elements, "more was read of list {number} than there is");
            let distinct: BTreeSet<u64> = elements.iter().copied().collect();
            assert_eq!(distinct.len(), elements.len(), "an element is twice in list {number}: {elements:?}");
            let lost: Vec<_> = acknowledged.difference(&distinct).collect();
            assert!(lost.is_empty(), "{lost:?} were acknowledged and are not in list {number}");
            let there: Vec<_> = refused.intersection(&distinct).collect();
            assert!(there.is_empty(), "{there:?} were refused and are in list {number}");
        }
    }
}
