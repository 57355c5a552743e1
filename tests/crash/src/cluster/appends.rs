//! Transactions that append to lists and read them, and whether one order explains all their results. Knows histories;
//! nothing of faults.
//!
//! Each element is appended once, so that a list tells the order of its appends. Which transaction must come before which
//! follows from the lists (an append before the next one; an append before a read that shows it; a read before the append of the
//! next element that it does not show) and from time (one that had ended before another began). A circle means that no order explains the results.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use super::members::Addresses;
use super::pace::Pace;
use crate::connection::{Connection, Outcome, Trouble};
use crate::request::encode;

const LISTS: usize = 4;

#[derive(Default)]
pub(crate) struct Appends {
    round: u64,
    next: AtomicU64,
    /// Counts what begins and ends.
    clock: AtomicU64,
    history: Mutex<Vec<Transaction>>,
}

#[derive(Clone, Debug)]
struct Transaction {
    begun: u64,
    ended: u64,
    steps: Vec<Step>,
    outcome: Ending,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Acknowledged,
    /// Nothing of it may have happened.
    Refused,
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    Append(usize, u64),
    /// A list, and what it was found to have, if that is known.
    Read(usize, Vec<u64>),
}

impl Appends {
    pub(crate) fn new(round: u64) -> Appends {
        Appends { round, ..Appends::default() }
    }

    fn key(&self, list: usize) -> String {
        format!("shared:append:{}:{list}", self.round)
    }

    /// Sends transactions to whichever server writes, until it is over.
    pub(crate) fn load(&self, addresses: &Addresses, mut random: Random, pace: &Pace) -> Result<(), String> {
        while pace.may_write() {
            if let Some(writer) = addresses.writer_for(pace)
                && let Err(Trouble::Wrong(what)) = self.load_writer(addresses, writer, &mut random, pace)
            {
                return Err(what);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn load_writer(&self, addresses: &Addresses, writer: usize, random: &mut Random, pace: &Pace) -> Outcome<()> {
        let mut connection = addresses.connect(writer)?;
        while pace.may_write() {
            let steps: Vec<Step> = (0..1 + random.below(4))
                .map(|_| match random.below(2) {
                    0 => Step::Append(random.below(LISTS), self.next.fetch_add(1, Ordering::SeqCst)),
                    _ => Step::Read(random.below(LISTS), Vec::new()),
                })
                .collect();
            let mut transaction = Transaction { begun: self.tick(), ended: u64::MAX, steps, outcome: Ending::Unknown };
            let result = self.run(&mut connection, &mut transaction, addresses, writer);
            if transaction.outcome == Ending::Acknowledged {
                transaction.ended = self.tick();
            }
            let is_refused = transaction.outcome == Ending::Refused;
            self.history.lock().expect("no thread panicked with it").push(transaction);
            result?;
            if is_refused {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(random.below(8) as u64));
        }
        Ok(())
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn run(
        &self,
        connection: &mut Connection,
        transaction: &mut Transaction,
        addresses: &Addresses,
        writer: usize,
    ) -> Outcome<()> {
        let mut bytes = Vec::new();
        encode(&["MULTI"], &mut bytes);
        for step in &transaction.steps {
            match step {
                Step::Append(list, value) => encode(&["RPUSH", &self.key(*list), &value.to_string()], &mut bytes),
                Step::Read(list, _) => encode(&["LRANGE", &self.key(*list), "0", "-1"], &mut bytes),
            }
        }
        encode(&["EXEC"], &mut bytes);
        connection.send(&bytes)?;
        let began = Instant::now();
        while !connection.is_readable(Duration::from_millis(500)) {
            if addresses.other_writes(writer) || began.elapsed() > Duration::from_secs(150) {
                return Err(Trouble::Closed);
            }
        }
        for _ in 0..=transaction.steps.len() {
            connection.read()?;
        }
        match connection.read()? {
            Reply::Array(results) if results.len() == transaction.steps.len() => {
                if results.iter().any(Reply::is_error) {
                    return Ok(());
                }
                for (step, result) in transaction.steps.iter_mut().zip(results) {
                    if let (Step::Read(_, seen), Reply::Array(elements)) = (step, result) {
                        *seen = elements.iter().filter_map(number).collect();
                    }
                }
                transaction.outcome = Ending::Acknowledged;
            }
            Reply::Error(text)
                if [&b"READONLY"[..], b"LOADING", b"EXECABORT"].iter().any(|code| text.starts_with(code)) =>
            {
                transaction.outcome = Ending::Refused;
            }
            Reply::Error(_) => {}
            other => return Err(Trouble::Wrong(format!("EXEC was answered with {}", other.excerpt()))),
        }
        Ok(())
    }

    /// Compares the history with the lists at the end. Returns how many transactions were acknowledged.
    pub(crate) fn check(&self, connection: &mut Connection) -> Result<usize, String> {
        let mut lists = Vec::new();
        for list in 0..LISTS {
            let reply = connection.must_run(&["LRANGE", &self.key(list), "0", "-1"]);
            match reply.map_err(|trouble| trouble.describe("the lists"))? {
                Reply::Array(elements) => lists.push(elements.iter().filter_map(number).collect()),
                other => return Err(format!("LRANGE was answered with {}", other.excerpt())),
            }
        }
        check(&self.history.lock().expect("no thread panicked with it"), &lists)
    }

    pub(crate) fn remove(&self, connection: &mut Connection) -> Outcome<()> {
        (0..LISTS).try_for_each(|list| connection.must_run(&["DEL", &self.key(list)]).map(drop))
    }
}

fn number(element: &Reply) -> Option<u64> {
    match element {
        Reply::Bulk(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

fn check(history: &[Transaction], lists: &[Vec<u64>]) -> Result<usize, String> {
    let mut writers: HashMap<(usize, u64), usize> = HashMap::new();
    for (number, transaction) in history.iter().enumerate() {
        for step in &transaction.steps {
            if let Step::Append(list, value) = step {
                writers.insert((*list, *value), number);
            }
        }
    }
    let mut places: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    for (list, elements) in lists.iter().enumerate() {
        for (place, value) in elements.iter().enumerate() {
            let Some(writer) = writers.get(&(list, *value)) else {
                return Err(format!("list {list} has {value}, which no client appended"));
            };
            if history[*writer].outcome == Ending::Refused {
                return Err(format!("list {list} has {value}, whose transaction was refused: {:?}", history[*writer]));
            }
            if places.insert((list, *value), place).is_some() {
                return Err(format!("list {list} has {value} twice"));
            }
        }
    }
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); history.len()];
    for (number, transaction) in history.iter().enumerate() {
        let appended: Vec<bool> = transaction
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Append(list, value) => Some(places.contains_key(&(*list, *value))),
                Step::Read(..) => None,
            })
            .collect();
        let is_there = appended.iter().any(|found| *found);
        if (is_there || transaction.outcome == Ending::Acknowledged) && appended.iter().any(|found| !found) {
            return Err(format!("not all of a transaction is there, of its appends {appended:?}: {transaction:?}"));
        }
        if transaction.outcome != Ending::Acknowledged {
            continue;
        }
        let mut own: HashMap<usize, Vec<u64>> = HashMap::new();
        for step in &transaction.steps {
            match step {
                Step::Append(list, value) => own.entry(*list).or_default().push(*value),
                Step::Read(list, seen) => {
                    let all = &lists[*list];
                    if all.get(..seen.len()) != Some(seen.as_slice()) {
                        return Err(format!(
                            "a transaction has read {seen:?} of list {list}, which is {all:?}: {transaction:?}"
                        ));
                    }
                    let own = own.get(list).map_or(&[][..], Vec::as_slice);
                    if !seen.ends_with(own) {
                        return Err(format!("a transaction does not see its own appends: {transaction:?}"));
                    }
                    if let Some(last) = seen.last() {
                        edges[writers[&(*list, *last)]].push(number);
                    }
                    if let Some(next) = all.get(seen.len()) {
                        edges[number].push(writers[&(*list, *next)]);
                    }
                }
            }
        }
    }
    for (list, elements) in lists.iter().enumerate() {
        for pair in elements.windows(2) {
            edges[writers[&(list, pair[0])]].push(writers[&(list, pair[1])]);
        }
    }
    add_time(history, &mut edges);
    match circle(&edges) {
        None => Ok(history.iter().filter(|transaction| transaction.outcome == Ending::Acknowledged).count()),
        Some(circle) => {
            let shown = circle.iter().filter_map(|number| history.get(*number)).map(|one| format!("\n  {one:?}"));
            Err(format!("no order explains these transactions:{}", shown.collect::<String>()))
        }
    }
}

/// One that had ended before another began is before it: each end is a node in a chain, so that there are few edges.
fn add_time(history: &[Transaction], edges: &mut Vec<Vec<usize>>) {
    let mut ends: Vec<(u64, usize)> = history.iter().enumerate().map(|(number, one)| (one.ended, number)).collect();
    ends.retain(|(ended, _)| *ended != u64::MAX);
    ends.sort_unstable();
    let first = edges.len();
    edges.resize(first + ends.len(), Vec::new());
    for (place, (_, number)) in ends.iter().enumerate() {
        edges[*number].push(first + place);
        if place + 1 < ends.len() {
            edges[first + place].push(first + place + 1);
        }
    }
    for (number, one) in history.iter().enumerate() {
        let before = ends.partition_point(|(ended, _)| *ended < one.begun);
        if before > 0 && one.outcome != Ending::Refused {
            edges[first + before - 1].push(number);
        }
    }
}

/// A circle, if there is one. A transaction that comes after itself by its own steps is none.
fn circle(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut waits: Vec<usize> = vec![0; edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        targets.iter().filter(|to| **to != from).for_each(|to| waits[*to] += 1);
    }
    let mut free: Vec<usize> = (0..edges.len()).filter(|node| waits[*node] == 0).collect();
    let mut done = vec![false; edges.len()];
    while let Some(node) = free.pop() {
        done[node] = true;
        for to in edges[node].iter().filter(|to| **to != node) {
            waits[*to] -= 1;
            if waits[*to] == 0 {
                free.push(*to);
            }
        }
    }
    // What is left has a predecessor that is left: going back from one leads into a circle.
    let start = done.iter().position(|done| !done)?;
    let before =
        |node: usize| (0..edges.len()).find(|from| !done[*from] && *from != node && edges[*from].contains(&node));
    let mut path = vec![start];
    loop {
        let previous = before(*path.last().expect("it is not empty"))?;
        if let Some(place) = path.iter().position(|node| *node == previous) {
            return Some(path.split_off(place).into_iter().rev().collect());
        }
        path.push(previous);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(begun: u64, ended: u64, steps: Vec<Step>) -> Transaction {
        Transaction { begun, ended, steps, outcome: Ending::Acknowledged }
    }

    fn lists(first: &[u64], second: &[u64]) -> Vec<Vec<u64>> {
        vec![first.to_vec(), second.to_vec(), vec![], vec![]]
    }

    #[test]
    fn a_history_in_order_is_right() {
        let history = [
            one(0, 1, vec![Step::Append(0, 1)]),
            one(2, 3, vec![Step::Read(0, vec![1]), Step::Append(1, 2)]),
            one(4, 5, vec![Step::Append(0, 3), Step::Read(0, vec![1, 3]), Step::Read(1, vec![2])]),
        ];
        assert_eq!(check(&history, &lists(&[1, 3], &[2])), Ok(3));
    }

    #[test]
    fn a_lost_append_and_a_repeated_one_are_found() {
        let history = [one(0, 1, vec![Step::Append(0, 1), Step::Append(1, 2)])];
        assert!(check(&history, &lists(&[1], &[])).is_err());
        assert!(check(&history, &lists(&[1, 1], &[2])).is_err());
        assert!(check(&history, &lists(&[], &[])).is_err());
        assert!(check(&history, &lists(&[1], &[2, 9])).is_err());
    }

    #[test]
    fn what_was_refused_must_not_be_there_and_what_is_unknown_may_be() {
        let mut history = [one(0, 1, vec![Step::Append(0, 1)])];
        history[0].outcome = Ending::Refused;
        assert!(check(&history, &lists(&[1], &[])).is_err());
        history[0].outcome = Ending::Unknown;
        assert_eq!(check(&history, &lists(&[1], &[])), Ok(0));
        assert_eq!(check(&history, &lists(&[], &[])), Ok(0));
    }

    #[test]
    fn a_stale_read_and_write_skew_are_found() {
        let stale = [one(0, 1, vec![Step::Append(0, 1)]), one(2, 3, vec![Step::Read(0, vec![])])];
        assert!(check(&stale, &lists(&[1], &[])).is_err());
        let skew = [
            one(0, 9, vec![Step::Read(0, vec![]), Step::Append(1, 2)]),
            one(0, 9, vec![Step::Read(1, vec![]), Step::Append(0, 1)]),
        ];
        assert!(check(&skew, &lists(&[1], &[2])).unwrap_err().starts_with("no order"));
        let at_once = [one(0, 9, vec![Step::Append(0, 1)]), one(0, 9, vec![Step::Read(0, vec![])])];
        assert!(check(&at_once, &lists(&[1], &[])).is_ok());
    }

    #[test]
    fn appends_in_the_wrong_order_are_found() {
        let history = [one(0, 1, vec![Step::Append(0, 1)]), one(2, 3, vec![Step::Append(0, 2)])];
        assert!(check(&history, &lists(&[2, 1], &[])).is_err());
    }
}
