//! What all clients write together: counters, groups of keys that change as a whole, accounts whose sum stays zero, and
//! registers and a queue, which have files of their own.
//! No client alone knows their state, so each has a rule that must hold after a crash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use wire::Reply;

use crate::model::{Entry, Value, parse_int};
use crate::request::{Command, Request, Subject, command, excerpt};
use crate::shared_queue::SharedQueue;
use crate::shared_registers::SharedRegisters;

/// Every shared key starts with this, and lives in database 0.
pub(crate) const PREFIX: &str = "shared:";

/// The first are strings, then come fields of one hash, then members of one sorted set.
const STRING_COUNTERS: usize = 3;
const HASH_COUNTERS: usize = 6;
pub(crate) const COUNTERS: usize = 8;
pub(crate) const GROUPS: usize = 2;
const ACCOUNTS: usize = 4;
/// Enough keys that they lie in different shards.
const GROUP_KEYS: usize = 6;

pub(crate) struct Shared {
    counters: [Mutex<Counter>; COUNTERS],
    groups: [Mutex<Group>; GROUPS],
    pub(crate) registers: SharedRegisters,
    pub(crate) queue: SharedQueue,
}

/// All that clients add to it is at least what was acknowledged and at most what was sent.
#[derive(Default)]
struct Counter {
    at_start: i64,
    acknowledged: i64,
    /// The largest sum that any client was told. Sums only grow, so the counter cannot be below it.
    told: i64,
}

/// The history of one group since the last check. Its clock counts the events in it.
#[derive(Default)]
struct Group {
    clock: u64,
    at_start: Option<Vec<u8>>,
    writes: Vec<Write>,
}

struct Write {
    /// The value that all keys were given; `None` deleted them.
    value: Option<Vec<u8>>,
    begun: u64,
    acknowledged: Option<u64>,
}

impl Shared {
    pub(crate) fn new() -> Shared {
        Shared {
            counters: Default::default(),
            groups: Default::default(),
            registers: SharedRegisters::default(),
            queue: SharedQueue::default(),
        }
    }

    /// `INCRBY`, `HINCRBY` or `ZINCRBY` on a counter.
    pub(crate) fn add(&self, number: usize, by: i64) -> Request {
        let amount = by.to_string();
        let command = match number {
            ..STRING_COUNTERS => command(&[&"INCRBY", &counter_key(number), &amount]),
            STRING_COUNTERS..HASH_COUNTERS => command(&[&"HINCRBY", &HASH, &counter_field(number), &amount]),
            _ => command(&[&"ZINCRBY", &SCORES, &amount, &counter_field(number)]),
        };
        Request::new(0, command).about(Subject::Counter { number, by })
    }

    /// `MSET` of all keys of a group to one value, or `DEL` of all.
    pub(crate) fn write_group(&self, number: usize, value: Option<Vec<u8>>) -> Request {
        let keys = (0..GROUP_KEYS).map(|key| group_key(number, key).into_bytes());
        let command: Command = match &value {
            Some(value) => [b"MSET".to_vec()].into_iter().chain(keys.flat_map(|key| [key, value.clone()])).collect(),
            None => [b"DEL".to_vec()].into_iter().chain(keys).collect(),
        };
        let mut group = lock(&self.groups[number]);
        let begun = group.tick();
        group.writes.push(Write { value, begun, acknowledged: None });
        Request::new(0, command).about(Subject::Group { number, write: group.writes.len() - 1 })
    }

    /// `MULTI`, one account down, another up, `EXEC`.
    pub(crate) fn transfer(&self, from: usize, amount: i64) -> Request {
        let (amount, to) = (amount.to_string(), (from + 1) % ACCOUNTS);
        let down = command(&[&"DECRBY", &account_key(from % ACCOUNTS), &amount]);
        let up = command(&[&"INCRBY", &account_key(to), &amount]);
        Request { commands: vec![down, up], ..Request::new(0, Vec::new()) }.about(Subject::Transfer)
    }

    /// Notes that the server acknowledged a request, and what it replied.
    pub(crate) fn acknowledge(&self, subject: Subject, reply: &Reply) -> Result<(), String> {
        match subject {
            Subject::Counter { number, by } => {
                let mut counter = lock(&self.counters[number]);
                counter.acknowledged += by;
                counter.told = counter.told.max(told(reply).unwrap_or(0));
            }
            Subject::Group { number, write } => {
                let mut group = lock(&self.groups[number]);
                let now = group.tick();
                group.writes[write].acknowledged = Some(now);
            }
            Subject::Register { .. } | Subject::Checkpoint | Subject::Merge => {
                return self.registers.acknowledge(subject, reply);
            }
            Subject::Claim | Subject::Groups => return self.queue.acknowledge(subject, reply),
            Subject::Own | Subject::Near | Subject::Transfer | Subject::Job => {}
        }
        Ok(())
    }

    /// Checks the shared keys as they were found, and starts a new history from there.
    pub(crate) fn check<'a>(
        &self,
        found: &BTreeMap<Vec<u8>, Arc<Entry>>,
        in_flight: impl Iterator<Item = &'a Request> + Clone,
    ) -> Result<(), String> {
        for (number, counter) in self.counters.iter().enumerate() {
            let unacknowledged = in_flight.clone().map(|request| match request.subject {
                Subject::Counter { number: of, by } if of == number => by,
                _ => 0,
            });
            lock(counter).check(number, found_counter(found, number)?, unacknowledged.sum())?;
        }
        for (number, group) in self.groups.iter().enumerate() {
            lock(group).check(number, found)?;
        }
        self.registers.check(found)?;
        check_accounts(found)
    }

    /// Forgets everything: the server starts with an empty directory, or was flushed.
    pub(crate) fn reset(&self) {
        self.counters.iter().for_each(|counter| *lock(counter) = Counter::default());
        self.groups.iter().for_each(|group| *lock(group) = Group::default());
        self.registers.reset();
    }
}

impl Counter {
    fn check(&mut self, number: usize, found: i64, unacknowledged: i64) -> Result<(), String> {
        let least = (self.at_start + self.acknowledged).max(self.told);
        let most = self.at_start + self.acknowledged + unacknowledged;
        if !(least..=most).contains(&found) {
            return Err(format!(
                "the shared counter {number} is {found}; it was {} at the start of the round, {} more was \
                 acknowledged, {unacknowledged} more was in flight, and a client was told {}",
                self.at_start, self.acknowledged, self.told
            ));
        }
        *self = Counter { at_start: found, acknowledged: 0, told: found };
        Ok(())
    }
}

impl Group {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// All keys hold the value of one write, and no write that was acknowledged came after that one was.
    fn check(&mut self, number: usize, found: &BTreeMap<Vec<u8>, Arc<Entry>>) -> Result<(), String> {
        let keys: Vec<String> = (0..GROUP_KEYS).map(|key| group_key(number, key)).collect();
        let values: Vec<Option<&[u8]>> = keys.iter().map(|key| found_string(found, key)).collect();
        if values.iter().any(|value| value != &values[0]) {
            let shown = keys.iter().zip(&values).map(|(key, value)| format!("\n  {key}: {}", shown(*value)));
            return Err(format!(
                "the keys of group {number} were set together and differ:{}",
                shown.collect::<String>()
            ));
        }
        let newest_acknowledged = self.writes.iter().filter(|w| w.acknowledged.is_some()).max_by_key(|w| w.begun);
        // A write that ended before another began, when that other was acknowledged, has been overwritten for certain.
        let standing = |ended: u64| newest_acknowledged.is_none_or(|newest| newest.begun < ended);
        let by_start = self.at_start.as_deref() == values[0] && standing(0);
        let by_write = || {
            let same = self.writes.iter().filter(|write| write.value.as_deref() == values[0]);
            same.into_iter().any(|write| standing(write.acknowledged.unwrap_or(u64::MAX)))
        };
        if !by_start && !by_write() {
            return Err(format!(
                "group {number} holds {}; later writes were acknowledged, the last of them {}",
                shown(values[0]),
                shown(newest_acknowledged.and_then(|write| write.value.as_deref())),
            ));
        }
        *self = Group { at_start: values[0].map(<[u8]>::to_vec), ..Group::default() };
        Ok(())
    }
}

/// The number that a reply tells.
fn told(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Integer(n) => Some(*n),
        // A score.
        Reply::Bulk(digits) => parse_int(digits),
        _ => None,
    }
}

fn check_accounts(found: &BTreeMap<Vec<u8>, Arc<Entry>>) -> Result<(), String> {
    let balances: Vec<i64> = (0..ACCOUNTS)
        .map(|number| found_string(found, &account_key(number)).and_then(parse_int).unwrap_or(0))
        .collect();
    match balances.iter().sum() {
        0 => Ok(()),
        sum => Err(format!("a transaction was applied in part: the accounts {balances:?} add up to {sum}, not 0")),
    }
}

fn found_counter(found: &BTreeMap<Vec<u8>, Arc<Entry>>, number: usize) -> Result<i64, String> {
    let text = match number {
        ..STRING_COUNTERS => found_string(found, &counter_key(number)),
        HASH_COUNTERS.. => match found.get(SCORES.as_bytes()).map(|entry| &entry.value) {
            Some(Value::Scores(scores)) => {
                let score = scores.get(counter_field(number).as_bytes());
                return Ok(score.map_or(0, |score| *score as i64));
            }
            _ => None,
        },
        _ => match found.get(HASH.as_bytes()).map(|entry| &entry.value) {
            Some(Value::Hash(fields)) => fields.get(counter_field(number).as_bytes()).map(|f| f.value.as_slice()),
            _ => None,
        },
    };
    match text {
        None => Ok(0),
        Some(text) => parse_int(text).ok_or_else(|| format!("the shared counter {number} is {}", excerpt(text))),
    }
}

fn found_string<'a>(found: &'a BTreeMap<Vec<u8>, Arc<Entry>>, key: &str) -> Option<&'a [u8]> {
    match &found.get(key.as_bytes())?.value {
        Value::String(bytes) => Some(bytes),
        _ => None,
    }
}

fn shown(value: Option<&[u8]>) -> String {
    value.map_or("nothing".into(), excerpt)
}

const HASH: &str = "shared:hash";
const SCORES: &str = "shared:scores";

fn counter_key(number: usize) -> String {
    format!("{PREFIX}counter:{number}")
}

fn counter_field(number: usize) -> String {
    format!("field{number}")
}

fn group_key(number: usize, key: usize) -> String {
    format!("{PREFIX}group:{number}:{key}")
}

fn account_key(number: usize) -> String {
    format!("{PREFIX}account:{number}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panicked with it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_below_what_was_acknowledged_is_found() {
        let mut counter = Counter { at_start: 10, acknowledged: 5, told: 15 };
        assert!(counter.check(0, 14, 3).is_err());
        assert!(counter.check(0, 19, 3).is_err());
        assert!(counter.check(0, 18, 3).is_ok());
    }

    #[test]
    fn a_counter_below_what_a_client_was_told_is_found() {
        let mut counter = Counter { at_start: 10, acknowledged: 1, told: 12 };
        assert!(counter.check(0, 11, 1).is_err());
        assert!(counter.check(0, 12, 1).is_ok());
    }

    #[test]
    fn a_group_set_in_part_is_found() {
        let shared = Shared::new();
        shared.write_group(0, Some(b"new".to_vec()));
        let mut found = group_of("new");
        found.remove(group_key(0, 3).as_bytes());
        let failure = shared.check(&found, [].iter()).unwrap_err();
        assert!(failure.contains("set together and differ"), "{failure}");
    }

    #[test]
    fn a_group_with_an_overwritten_value_is_found() {
        let shared = Shared::new();
        for value in ["old", "new"] {
            let request = shared.write_group(0, Some(value.into()));
            acknowledge(&shared, &request);
        }
        assert!(shared.check(&group_of("old"), [].iter()).is_err());
        assert!(shared.check(&group_of("new"), [].iter()).is_ok());
    }

    #[test]
    fn of_two_writes_at_once_either_may_stand() {
        let shared = Shared::new();
        let requests = ["one", "two"].map(|value| shared.write_group(0, Some(value.into())));
        requests.iter().for_each(|request| acknowledge(&shared, request));
        assert!(shared.check(&group_of("one"), [].iter()).is_ok());
    }

    #[test]
    fn a_group_that_was_deleted_and_came_back_is_found() {
        let shared = Shared::new();
        for value in [Some(b"old".to_vec()), None] {
            let request = shared.write_group(0, value);
            acknowledge(&shared, &request);
        }
        assert!(shared.check(&group_of("old"), [].iter()).is_err());
        assert!(shared.check(&BTreeMap::new(), [].iter()).is_ok());
    }

    #[test]
    fn half_a_transfer_is_found() {
        let amount = Entry { value: Value::String(b"-3".to_vec()), deadline: None };
        let found = BTreeMap::from([(account_key(0).into_bytes(), Arc::new(amount))]);
        assert!(check_accounts(&found).is_err());
    }

    fn acknowledge(shared: &Shared, request: &Request) {
        shared.acknowledge(request.subject, &Reply::Simple(b"OK".to_vec())).expect("it may be said");
    }

    fn group_of(value: &str) -> BTreeMap<Vec<u8>, Arc<Entry>> {
        let entry = Arc::new(Entry { value: Value::String(value.into()), deadline: None });
        (0..GROUP_KEYS).map(|key| (group_key(0, key).into_bytes(), entry.clone())).collect()
    }
}
