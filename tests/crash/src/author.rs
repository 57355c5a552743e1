//! Writes commands over the keys that one client owns. Looks at the model, so that every command is one the server must
//! accept. Knows nothing of sockets, crashes and other clients.

use wire::Random;

use crate::grouped;
use crate::indexes;
use crate::model::{DEFINITIONS, Entry, Place, State, Value, parse_int};
use crate::registers::{Operation, Register, show_version};
use crate::request::{Command, command, now_ms};
use crate::scripts;
use crate::streams::{self, GROUP};

pub(crate) struct Author {
    pub(crate) owner: Owner,
    pub(crate) random: Random,
    pub(crate) features: Features,
    /// Makes every value one of a kind, so that a failure shows which write it came from.
    pub(crate) sequence: u64,
}

/// Who may write what: keys with a prefix in database 0, and two databases altogether as long as there are any left.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) number: usize,
}

/// Commands that not every server has.
#[derive(Clone, Copy)]
pub(crate) struct Features {
    /// HPEXPIREAT and its kin: Redis 7.4.
    pub(crate) field_deadlines: bool,
    /// HSETEX, HGETDEL: Redis 8.
    pub(crate) field_options: bool,
    pub(crate) transactions: bool,
    /// FUNCTION and FCALL: Redis 7.
    pub(crate) functions: bool,
    /// CLIENT DURABILITY, HCAS, IDX.CREATE, CLAIM, cells, runs, sessions and transactions that answer at once: Holdfast.
    pub(crate) own_commands: bool,
    /// CELL.FORK and CELL.DROP: Holdfast.
    pub(crate) forks: bool,
    /// REG.PUT and its kin: Holdfast.
    pub(crate) registers: bool,
}

/// As many as every server has.
pub(crate) const DATABASES: u32 = 16;
/// Few keys, so that commands meet each other's results.
const KEYS: usize = 20;
/// Keys that are written and deleted by the dozen.
const SMALL_KEYS: usize = 400;
const SMALL_AT_ONCE: usize = 40;
/// Keys that are written once stay until so many more values were written.
const TRAIL_VALUES: u64 = 20_000;
/// Libraries and indexes of one client.
const DEFINITIONS_OF_EACH_KIND: usize = 2;
/// Registers and checkpoints of one client in each database, beside the registers under any key.
const REGISTERS: usize = 8;
const CHECKPOINTS: usize = 2;
/// Sessions of one client, and how many requests to the client each has.
const SESSIONS: usize = 3;
const PENDING_MAX: usize = 200;
/// Runs stop growing here.
const EVENTS_MAX: usize = 1_500;
/// Strings that grow stop growing here.
const GROWN_BYTES_MAX: usize = 100_000;
const DAY_MS: usize = 24 * 60 * 60 * 1000;

type Make = fn(&mut Author, &State, u32) -> Option<Command>;

/// Kinds of commands, with their weights. Each may decline when the state gives it nothing to do.
const OWN: &[(usize, Make)] = &[
    (30, Author::write_string),
    (30, Author::write_hash),
    (25, Author::write_scores),
    (25, Author::write_list),
    (8, Author::compare_and_swap),
    (16, Author::claim),
    (8, Author::write_job),
    (25, Author::write_cell),
    (25, Author::append_event),
    (25, Author::write_register),
    (40, Author::write_stream),
    (4, Author::checkpoint),
    (6, Author::write_field_deadlines),
    (10, Author::delete),
    (10, Author::write_deadline),
    (8, Author::relocate),
    (4, Author::write_small_ones),
    (15, Author::write_trail),
    (1, Author::write_database),
    (6, Author::read),
];

impl Owner {
    pub(crate) fn of(db: u32, key: &[u8]) -> Option<usize> {
        if (1..DATABASES).contains(&db) {
            return Some((db as usize - 1) / 2);
        }
        let digits = key.strip_prefix(b"c")?.split(|byte| !byte.is_ascii_digit()).next()?;
        parse_int(digits).map(|number| number as usize)
    }

    pub(crate) fn key(self, kind: &str, number: usize) -> String {
        format!("c{}:{kind}:{number}", self.number)
    }

    pub(crate) fn databases_of_its_own(self) -> Option<[u32; 2]> {
        let first = 1 + 2 * self.number as u32;
        (first + 1 < DATABASES).then_some([first, first + 1])
    }
}

impl Author {
    /// A command on a database that this client owns, or on its keys in database 0.
    pub(crate) fn own(&mut self, ahead: &State, db: u32) -> Command {
        let total: usize = OWN.iter().map(|(weight, _)| weight).sum();
        loop {
            let mut at = self.random.below(total);
            let row = OWN.iter().find(|(weight, _)| {
                let found = at < *weight;
                at = at.saturating_sub(*weight);
                found
            });
            let (_, make) = row.expect("below the sum of weights");
            if let Some(command) = make(self, ahead, db) {
                return command;
            }
        }
    }

    fn write_string(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let key = self.any_key();
        let entry = ahead.get(db, key.as_bytes());
        let value = self.value();
        let number = self.random.below(1000).to_string();
        let old = match entry.map(|entry| &entry.value) {
            Some(Value::String(bytes)) => Some(bytes),
            // Now and then a string takes the place of another type.
            Some(_) => {
                let replaces = may_replace(ahead, db, &key) && self.random.one_in(10);
                return replaces.then(|| command(&[&"SET", &key, &value]));
            }
            None => None,
        };
        let is_number = old.is_none_or(|old| parse_int(old).is_some_and(|n| n.abs() < 1 << 40));
        let may_grow = old.is_none_or(|old| old.len() < GROWN_BYTES_MAX);
        Some(match self.random.below(20) {
            0..2 => command(&[&"SET", &key, &value]),
            2 => command(&[&"SET", &key, &value, &"PXAT", &self.far_ms()]),
            3 => command(&[&"SET", &key, &value, &"EX", &self.far_seconds()]),
            4 => command(&[&"SET", &key, &value, &"KEEPTTL"]),
            5 => command(&[&"SET", &key, &value, &self.random.pick(&["NX", "XX"])]),
            6 => command(&[&"SET", &key, &number]),
            7 => command(&[&"PSETEX", &key, &self.random.below(DAY_MS).saturating_add(DAY_MS).to_string(), &value]),
            8 => command(&[&"GETSET", &key, &value]),
            9..12 if is_number => match self.random.below(3) {
                0 => command(&[&"INCR", &key]),
                1 => command(&[&"INCRBY", &key, &number]),
                _ => command(&[&"DECRBY", &key, &number]),
            },
            12 if is_number => command(&[&"INCRBYFLOAT", &key, &self.quarters()]),
            13..16 if may_grow => command(&[&"APPEND", &key, &value]),
            16 if may_grow => {
                let start = self.random.below(old.map_or(20, |old| old.len() + 20));
                command(&[&"SETRANGE", &key, &start.to_string(), &self.short_value()])
            }
            17 => {
                let bit = self.random.pick(&["0", "1"]);
                command(&[&"SETBIT", &key, &self.random.below(2000).to_string(), &bit])
            }
            18 => self.bitop(ahead, db)?,
            _ => {
                let keys: Vec<String> = (0..2 + self.random.below(6)).map(|_| self.any_key()).collect();
                if !keys.iter().all(|key| may_replace(ahead, db, key)) {
                    return None;
                }
                let pairs: Vec<Vec<u8>> = keys.into_iter().flat_map(|key| [key.into_bytes(), self.value()]).collect();
                let name = self.random.pick(&["MSET", "MSET", "MSETNX"]);
                [name.into()].into_iter().chain(pairs).collect()
            }
        })
    }

    fn bitop(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let sources = [self.any_key(), self.any_key()];
        let usable = sources
            .iter()
            .all(|key| ahead.get(db, key.as_bytes()).is_none_or(|entry| matches!(&entry.value, Value::String(_))));
        let target = self.any_key();
        (usable && may_replace(ahead, db, &target))
            .then(|| command(&[&"BITOP", &"XOR", &target, &sources[0], &sources[1]]))
    }

    fn write_hash(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let key = self.any_key();
        let fields = match ahead.get(db, key.as_bytes()).map(|entry| &entry.value) {
            Some(Value::Hash(fields)) => Some(fields),
            Some(_) => return None,
            None => None,
        };
        let field = self.field();
        let value_now = fields.and_then(|fields| fields.get(field.as_bytes())).map(|field| field.value.as_slice());
        let is_number = value_now.is_none_or(|value| parse_int(value).is_some_and(|n| n.abs() < 1 << 40));
        Some(match self.random.below(12) {
            0..4 => self.hset("HSET", &key, 8),
            4 => self.hset("HMSET", &key, 8),
            // More fields than a packed hash takes.
            5 if self.random.one_in(20) => self.hset("HSET", &key, 600),
            6 => command(&[&"HSETNX", &key, &field, &self.value()]),
            7 if is_number => command(&[&"HINCRBY", &key, &field, &self.random.below(1000).to_string()]),
            8 if is_number => command(&[&"HINCRBYFLOAT", &key, &field, &self.quarters()]),
            9 => command(&[&"HSET", &key, &field, &self.random.below(1000).to_string()]),
            10 => command(&[&"HDEL", &key, &field, &self.field(), &self.field()]),
            // To the last field: the key goes too.
            11 => {
                let names = fields.filter(|_| self.random.one_in(3))?.keys().cloned();
                [b"HDEL".to_vec(), key.into()].into_iter().chain(names).collect()
            }
            _ => return None,
        })
    }

    fn hset(&mut self, name: &str, key: &str, pairs_max: usize) -> Command {
        let wide = pairs_max > 100;
        let pairs = (0..1 + self.random.below(pairs_max)).flat_map(|number| {
            let field = if wide { format!("wide{number}") } else { self.field() };
            [field.into_bytes(), if wide { self.short_value() } else { self.value() }]
        });
        let pairs: Vec<Vec<u8>> = pairs.collect();
        [name.into(), key.into()].into_iter().chain(pairs).collect()
    }

    fn write_scores(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let (key, other) = (self.any_key(), self.any_key());
        if !matches!(ahead.get(db, key.as_bytes()).map(|entry| &entry.value), Some(Value::Scores(_)) | None) {
            return None;
        }
        let few = (1 + self.random.below(4)).to_string();
        Some(match self.random.below(12) {
            0..4 => self.zadd(&key, &[], 8),
            // More members than a packed set takes.
            4 if self.random.one_in(20) => self.zadd(&key, &[], 300),
            5 => self.zadd(&key, &["NX"], 4),
            6 => self.zadd(&key, &["XX", "CH"], 4),
            7 => command(&[&"ZINCRBY", &key, &self.quarters(), &self.member()]),
            8 => command(&[&"ZREM", &key, &self.member(), &self.member(), &self.member()]),
            9 => command(&[&"ZPOPMIN", &key, &few]),
            10 => command(&[&"ZREMRANGEBYRANK", &key, &"0", &few]),
            11 if key != other && may_replace(ahead, db, &other) => {
                command(&[&"ZRANGESTORE", &other, &key, &"0", &few])
            }
            _ => return None,
        })
    }

    fn write_list(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let (key, other) = (self.any_key(), self.any_key());
        let held = |key: &str| ahead.get(db, key.as_bytes()).map(|entry| &entry.value);
        let len = match held(&key) {
            Some(Value::List(list)) => list.len(),
            Some(_) => return None,
            None => 0,
        };
        let few = (1 + self.random.below(4)).to_string();
        let end = self.random.pick(&["L", "R"]);
        Some(match self.random.below(14) {
            0..5 => self.push(&format!("{end}PUSH"), &key, 8),
            // More elements than one chunk takes.
            5 if self.random.one_in(20) => self.push("RPUSH", &key, 600),
            6..9 => command(&[&format!("{end}POP"), &key, &few]),
            9 if key != other && matches!(held(&other), Some(Value::List(_)) | None) => {
                command(&[&"LMOVE", &key, &other, &"LEFT", &"RIGHT"])
            }
            10 => command(&[&"LTRIM", &key, &"0", &self.random.pick(&["3", "50", "400"])]),
            11 => command(&[&"LREM", &key, &"0", &self.member()]),
            12 if len > 0 => command(&[&"LSET", &key, &"0", &self.value()]),
            13 => command(&[&"LINSERT", &key, &"AFTER", &self.member(), &self.short_value()]),
            _ => return None,
        })
    }

    fn push(&mut self, name: &str, key: &str, elements_max: usize) -> Command {
        let wide = elements_max > 100;
        let elements = (0..1 + self.random.below(elements_max)).map(|number| match self.random.below(4) {
            _ if wide => format!("an element of some length, number {number}").into_bytes(),
            0 => self.value(),
            _ => self.member().into_bytes(),
        });
        let elements: Vec<Vec<u8>> = elements.collect();
        [name.as_bytes().to_vec(), key.into()].into_iter().chain(elements).collect()
    }

    fn zadd(&mut self, key: &str, options: &[&str], pairs_max: usize) -> Command {
        let wide = pairs_max > 100;
        let pairs = (0..1 + self.random.below(pairs_max)).flat_map(|number| {
            let member = if wide { format!("wide{number}") } else { self.member() };
            [self.quarters(), member]
        });
        let pairs: Vec<String> = pairs.collect();
        let head = ["ZADD", key].into_iter().chain(options.iter().copied()).map(|word| word.as_bytes().to_vec());
        head.chain(pairs.into_iter().map(String::into_bytes)).collect()
    }

    /// HCAS, most often of a value that is there.
    fn compare_and_swap(&mut self, ahead: &State, db: u32) -> Option<Command> {
        if !self.features.own_commands {
            return None;
        }
        let key = self.any_key();
        let Value::Hash(fields) = &ahead.get(db, key.as_bytes())?.value else { return None };
        let (one, field) = fields.iter().nth(self.random.below(fields.len()))?;
        let (other, value) = (self.field(), self.value());
        if other.as_bytes() == one {
            return None;
        }
        let old = if self.random.one_in(4) { self.short_value() } else { field.value.clone() };
        Some(match self.random.below(6) {
            0 => command(&[&"HCAS", &key, one, &old, &value]),
            1 => command(&[&"HCAS", &key, &"IF", &"1", one, &old, &"SET", &"2", one, &value, &other, &value]),
            2 => command(&[&"HCAS", &key, &"IF", &"1", one, &old, &"DEL", &"2", one, &other]),
            3 => command(&[&"HCAS", &key, &"IF", &"1", one, &old, &"PXAT", &self.far_ms()]),
            4 => command(&[&"HCAS", &key, &"IF", &"1", one, &old, &"SET", &"1", &other, &value, &"PERSIST"]),
            _ => command(&[&"HCAS", &key, &"ABSENT", &"1", &other, &"SET", &"1", &other, &value]),
        })
    }

    /// CLAIM of the first record of an index. The field it sets may be the one that the index is of, or the one that says
    /// what is held.
    fn claim(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let name = self.owner.key("index", self.random.below(DEFINITIONS_OF_EACH_KIND));
        let has_groups = indexes::find(ahead, name.as_bytes())?.groups.is_some();
        let (mut set, mut value, counter) = (self.field(), self.quarters(), self.field());
        if has_groups && self.random.one_in(2) {
            (set, value) = (grouped::HELD.into(), self.random.pick(&[grouped::RUNNING, "done"]).into());
        }
        let is_refused =
            has_groups && ([&set, &counter].contains(&&grouped::GROUP.to_owned()) || counter == grouped::HELD);
        if set == counter || is_refused {
            return None;
        }
        let is_counted = self.random.one_in(2);
        if has_groups {
            let (pair, counted) = (command(&[&set, &value]), counter.clone().into_bytes());
            let first = grouped::claimable(ahead, db, name.as_bytes(), &pair, is_counted.then_some(&counted));
            // Equal scores are in no order in an index with groups.
            if first.len() > 1 && first[0].1 == first[1].1 {
                return None;
            }
        }
        let change: [&dyn AsRef<[u8]>; 4] = [&"SET", &"1", &set, &value];
        let start: [&dyn AsRef<[u8]>; 3] = [&"CLAIM", &"1", &name];
        let counter: &[&dyn AsRef<[u8]>] = if is_counted { &[&"COUNTER", &counter] } else { &[] };
        let order: &[&dyn AsRef<[u8]>] = if has_groups { &[&"ORDER", &"score", &"KEYS"] } else { &[&"KEYS"] };
        Some(command(&[&start[..], &change[..], counter, order].concat()))
    }

    /// What an index with groups counts: a record of one of a few groups, held or not.
    fn write_job(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let key = self.any_key();
        if !matches!(ahead.get(db, key.as_bytes()).map(|entry| &entry.value), Some(Value::Hash(_)) | None) {
            return None;
        }
        let (group, score, field) = (self.group(), self.quarters(), self.field());
        let state = self.random.pick(&["pending", "pending", grouped::RUNNING, "5"]);
        Some(match field == grouped::GROUP || field == grouped::HELD {
            true => command(&[&"HSET", &key, &grouped::GROUP, &group, &grouped::HELD, &state]),
            false => command(&[&"HSET", &key, &field, &score, &grouped::GROUP, &group, &grouped::HELD, &state]),
        })
    }

    /// Limits of an index with groups, for one group, for each, or for all, or none any more.
    fn limit(&mut self, index: &str) -> Command {
        let group = self.group();
        let scope: &[&dyn AsRef<[u8]>] = match self.random.below(8) {
            0 if self.random.one_in(2) => return command(&[&"IDX.LIMIT", &index, &"RESET"]),
            0 | 1 => &[&"ALL"],
            2 | 3 => &[&"EACH"],
            _ => &[&"GROUP", &group],
        };
        let head = command(&[&[&"IDX.LIMIT" as &dyn AsRef<[u8]>, &index], scope].concat());
        if self.random.one_in(6) {
            return [head, command(&[&"RESET"])].concat();
        }
        let held = self.random.pick(&["0", "1", "2", "3", "8", "NONE"]);
        let pause = if self.random.one_in(5) { "yes" } else { "no" };
        // More than the load ever takes: when a client asks is no part of the model.
        let burst = (1_000_000 + self.random.below(1000)).to_string();
        let rate = command(&[&"RATE", &"1000000", &"1", &"BURST", &burst]);
        let weight = self.random.pick(&["0.5", "1", "3", "250"]);
        let weight = if scope.len() == 1 && head[2] == b"ALL" { Vec::new() } else { command(&[&"WEIGHT", &weight]) };
        [head, command(&[&"HELD", &held]), rate, weight, command(&[&"PAUSE", &pause])].concat()
    }

    fn group(&mut self) -> String {
        self.random.pick(&["a", "b", "c", "d"]).to_string()
    }

    fn write_cell(&mut self, ahead: &State, db: u32) -> Option<Command> {
        if !self.features.own_commands {
            return None;
        }
        // Of a fork only what is there: a new key under its prefix would be in the way of the next.
        let forked = self.random.one_in(4);
        let key = if forked { self.owner.key("fork", self.random.below(KEYS)) } else { self.any_key() };
        let version = match ahead.get(db, key.as_bytes()).map(|entry| &entry.value) {
            Some(Value::Cell(cell)) => cell.version,
            None if !forked => 0,
            _ => return None,
        };
        let (value, ttl_ms) = (self.value(), (DAY_MS + self.random.below(DAY_MS)).to_string());
        let expected = if self.random.one_in(4) { version + 1 } else { version }.to_string();
        Some(match self.random.below(12) {
            0 => command(&[&"CELL.INIT", &key, &value]),
            1..4 => command(&[&"CELL.SET", &key, &value]),
            4 => command(&[&"CELL.SET", &key, &value, &"PX", &ttl_ms]),
            5 => command(&[&"CELL.CAS", &key, &expected, &value, &"PERSIST"]),
            6..10 => command(&[&"CELL.CAS", &key, &expected, &value]),
            10 if expected != "0" => command(&[&"CELL.DEL", &key, &"IF", &expected]),
            _ => command(&[&"CELL.DEL", &key]),
        })
    }

    /// RUN.APPEND of an event that is new, or of one that may be there: as it was, or another under its key.
    fn append_event(&mut self, ahead: &State, db: u32) -> Option<Command> {
        if !self.features.own_commands {
            return None;
        }
        // One that is never removed gets long.
        let key = if db == 0 && self.random.one_in(4) { self.owner.key("log", 0) } else { self.any_key() };
        let events = match ahead.get(db, key.as_bytes()).map(|entry| &entry.value) {
            Some(Value::Run(events)) => events.as_slice(),
            None => &[],
            Some(_) => return None,
        };
        let last = events.len();
        if last > 0 && self.random.one_in(3) {
            let known = &events[self.random.below(last)];
            let data = if self.random.one_in(3) { self.value() } else { known.data.clone() };
            return Some(command(&[&"RUN.APPEND", &key, &known.key, &known.event_type, &data, &"EVENTID", &"another"]));
        }
        if last >= EVENTS_MAX {
            return None;
        }
        let (data, step) = (self.value(), format!("step{}", self.random.below(30)));
        let id = format!("event-{}", self.sequence);
        // A digest, which is kept packed, or a key that is used again when the run begins anew.
        let event = match self.random.one_in(2) {
            true => format!("{:064x}", self.sequence),
            false => format!("again-{}", self.random.below(40)),
        };
        let event_type =
            self.random.pick(&["RunStarted", "RunPaused", "RunCompleted", "StepStarted", "StepCompleted", "custom"]);
        let if_last = (last + usize::from(self.random.one_in(4))).to_string();
        Some(match self.random.below(4) {
            0 => command(&[&"RUN.APPEND", &key, &event, &event_type, &data, &"EVENTID", &id]),
            1 => command(&[&"RUN.APPEND", &key, &event, &event_type, &data, &"EVENTID", &id, &"IFLAST", &if_last]),
            _ => command(&[&"RUN.APPEND", &key, &event, &event_type, &data, &"EVENTID", &id, &"STEP", &step]),
        })
    }

    /// A stream as a queue: entries are added, delivered to consumers of its group, acknowledged, claimed by others and deleted.
    fn write_stream(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let key = if self.random.one_in(4) { self.any_key() } else { self.owner.key("queue", self.random.below(3)) };
        let stream = match ahead.get(db, key.as_bytes()).map(|entry| &entry.value) {
            Some(Value::Stream(stream)) => stream,
            None => return Some(command(&[&"XGROUP", &"CREATE", &key, &GROUP, &"0", &"MKSTREAM"])),
            Some(_) => return None,
        };
        let consumer = self.random.pick(&["alice", "bob", "carol"]);
        let (value, kept) = (self.value(), self.random.below(300).to_string());
        let next = streams::id(stream.last + 1 + self.random.below(3) as u64);
        let some = |numbers: Vec<&u64>, random: &mut Random| match numbers.len() {
            0 => None,
            len => Some(streams::id(*numbers[random.below(len)])),
        };
        let pending = some(stream.pending.keys().collect(), &mut self.random);
        Some(match self.random.below(12) {
            0..4 => command(&[&"XADD", &key, &next, &"v", &value]),
            4 => command(&[&"XADD", &key, &"MAXLEN", &kept, &next, &"v", &value]),
            5..8 => {
                let count = (1 + self.random.below(5)).to_string();
                command(&[&"XREADGROUP", &"GROUP", &GROUP, &consumer, &"COUNT", &count, &"STREAMS", &key, &">"])
            }
            8 | 9 => command(&[&"XACK", &key, &GROUP, &pending?]),
            10 => command(&[&"XCLAIM", &key, &GROUP, &consumer, &"0", &pending?, &"JUSTID"]),
            _ => command(&[&"XDEL", &key, &some(stream.entries.keys().collect(), &mut self.random)?]),
        })
    }

    /// A version of a register: the next, one that comes early, or one that was sent before, as it was or another.
    fn write_register(&mut self, ahead: &State, db: u32) -> Option<Command> {
        if !self.features.registers {
            return None;
        }
        let is_any = self.random.one_in(4);
        let key = if is_any { self.any_key() } else { self.owner.key("register", self.random.below(REGISTERS)) };
        let none = Register::default();
        let register = match ahead.get(db, key.as_bytes()).map(|entry| &entry.value) {
            Some(Value::Register(register)) => register,
            Some(_) => return None,
            None => &none,
        };
        let near = register.next().map_or(1, |next| next.saturating_sub(3).max(1));
        let round = near + self.random.below(8) as u64;
        // What this version did when it came before, if that is known.
        let known = match register.current.as_ref().filter(|current| current.version == (0, round)) {
            Some(current) => Some(&current.by),
            None => register.buffer.get(&round),
        };
        let known = known.filter(|_| !self.random.one_in(4)).cloned();
        let (version, number) = (round.to_string(), (self.random.below(200) as i64 - 50).to_string());
        let ordered: &[&dyn AsRef<[u8]>] = if self.random.one_in(4) { &[] } else { &[&"ORDERED"] };
        let operation = match known {
            Some(operation) => operation,
            None if register.takes_additions() && self.random.one_in(2) => Operation::Add(number.parse().ok()?),
            None => Operation::Put(self.value()),
        };
        Some(match self.random.below(24) {
            0 => command(&[&"REG.SEAL", &key, &version]),
            1 => command(&[&"DEL", &key]),
            2 => command(&[&"PEXPIREAT", &key, &self.far_ms()]),
            3 if register.takes_puts() => {
                let epoch = register.version().map_or(0, |(epoch, _)| epoch) + self.random.below(2) as u64;
                command(&[&"REG.PUT", &key, &show_version((epoch, round)), &self.value()])
            }
            _ => match operation {
                Operation::Put(value) if register.takes_puts() => {
                    command(&[&[&"REG.PUT" as &dyn AsRef<[u8]>, &key, &version, &value], ordered].concat())
                }
                Operation::Add(number) if register.takes_additions() => {
                    let number = number.to_string();
                    command(&[&[&"REG.INCRBY" as &dyn AsRef<[u8]>, &key, &version, &number], ordered].concat())
                }
                _ => return None,
            },
        })
    }

    /// A checkpoint of the registers, a restore, or the end of a checkpoint.
    fn checkpoint(&mut self, ahead: &State, db: u32) -> Option<Command> {
        if !self.features.registers {
            return None;
        }
        let key = self.owner.key("checkpoint", self.random.below(CHECKPOINTS));
        let is_there = ahead.get(db, key.as_bytes()).is_some();
        let (prefix, position) = (format!("c{}:register:", self.owner.number), self.short_value());
        Some(match self.random.below(8) {
            0..4 if is_there => {
                let policy = self.random.pick(&["MERGE", "REPLACE"]);
                command(&[&"REG.RESTORE", &"FROM", &key, &policy])
            }
            4 if is_there => command(&[&"DEL", &key]),
            _ => command(&[&"REG.SNAPSHOT", &"PREFIX", &prefix, &"POSITION", &position, &"STORE", &key]),
        })
    }

    /// A session is opened, called, called again, sent requests, or closed. Not for transactions and scripts.
    pub(crate) fn session(&mut self, ahead: &State, db: u32) -> Command {
        let key = self.owner.key("session", self.random.below(SESSIONS));
        let open = command(&[&"SESSION.OPEN", &"ID", &key, &"TTL", &DAY_MS.to_string()]);
        let Some(Entry { value: Value::Session(session), .. }) = ahead.get(db, key.as_bytes()) else { return open };
        let newest = session.answers.keys().next_back().copied().unwrap_or(session.low);
        match self.random.below(30) {
            0 if self.random.one_in(3) => command(&[&"SESSION.CLOSE", &key]),
            1 => open,
            2..8 if session.pending.len() < PENDING_MAX => command(&[&"SESSION.PUSH", &key, &self.value()]),
            8..10 => {
                let upto = (session.last_id + 2 - self.random.below(6) as i64).max(0).to_string();
                command(&[&"SESSION.ACK", &key, &upto])
            }
            10..16 if !session.answers.is_empty() => {
                let (id, (known, _)) =
                    session.answers.iter().nth(self.random.below(session.answers.len())).expect("one");
                let head = command(&[&"SESSION.CALL", &key, &id.to_string(), &"LOW", &"0"]);
                head.into_iter().chain(known.iter().cloned()).collect()
            }
            _ => {
                let id = newest + 1 + self.random.below(3) as i64;
                let low = if self.random.one_in(3) { (id - self.random.below(15) as i64).max(0) } else { 0 };
                let head = command(&[&"SESSION.CALL", &key, &id.to_string(), &"LOW", &low.to_string()]);
                // Their replies are short, so that those that are kept are.
                let make: Make = self.random.pick(&[Author::write_hash, Author::write_scores, Author::write_cell]);
                // Its keys may all hold other values.
                let Some(called) = (0..20).find_map(|_| make(self, ahead, db)) else { return open };
                head.into_iter().chain(called).collect()
            }
        }
    }

    /// A fork of all cells, or, if there is one, its end.
    pub(crate) fn fork(&mut self, ahead: &State, db: u32) -> Command {
        let (from, to) = (format!("c{}:key:", self.owner.number), format!("c{}:fork:", self.owner.number));
        let is_forked = |place: &Place| place.db == db && place.key.starts_with(to.as_bytes());
        match ahead.entries.keys().any(is_forked) {
            true => command(&[&"CELL.DROP", &to]),
            false => command(&[&"CELL.FORK", &from, &to]),
        }
    }

    /// A library of functions, an index or its limits come, change or go.
    pub(crate) fn definition(&mut self, ahead: &State) -> Option<Command> {
        let number = self.random.below(DEFINITIONS_OF_EACH_KIND);
        if self.random.one_in(2) {
            let name = self.library_name(number);
            let is_there = ahead.get(DEFINITIONS, name.as_bytes()).is_some();
            return self.features.functions.then(|| match is_there && self.random.one_in(3) {
                true => command(&[&"FUNCTION", &"DELETE", &name]),
                false => {
                    let mark = String::from_utf8(self.short_value()).expect("a mark is ASCII");
                    command(&[&"FUNCTION", &"LOAD", &"REPLACE", &scripts::library(&name, &mark)])
                }
            });
        }
        let name = self.owner.key("index", number);
        let is_there = ahead.get(DEFINITIONS, name.as_bytes()).is_some();
        let has_groups = indexes::find(ahead, name.as_bytes()).is_some_and(|index| index.groups.is_some());
        self.features.own_commands.then(|| match is_there {
            true if has_groups && !self.random.one_in(8) => self.limit(&name),
            true => command(&[&"IDX.DROP", &name]),
            false => {
                let (prefix, field) = (format!("c{}:key:", self.owner.number), self.field());
                let create = if self.random.one_in(3) { indexes::create } else { grouped::create };
                create(&name, &prefix, &field)
            }
        })
    }

    /// A script or a function that runs these.
    pub(crate) fn script(&mut self, ahead: &State, commands: &[Command]) -> Command {
        let number = self.random.below(DEFINITIONS_OF_EACH_KIND);
        let library = self.library_name(number);
        match ahead.get(DEFINITIONS, library.as_bytes()) {
            Some(_) => scripts::call_library(&library, commands),
            None => scripts::call_batch(self.random.one_in(2), commands),
        }
    }

    /// A script that declares its keys: the second must not hold another type than a hash.
    pub(crate) fn pair(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let (string, hash) = (self.any_key(), self.any_key());
        let usable = matches!(ahead.get(db, hash.as_bytes()).map(|entry| &entry.value), Some(Value::Hash(_)) | None);
        let usable = usable && may_replace(ahead, db, &string);
        let (value, field) = (self.value(), self.field());
        (usable && string != hash).then(|| scripts::call_pair(self.random.one_in(2), &string, &hash, &value, &field))
    }

    fn library_name(&self, number: usize) -> String {
        format!("c{}_library_{number}", self.owner.number)
    }

    fn write_field_deadlines(&mut self, ahead: &State, db: u32) -> Option<Command> {
        if !self.features.field_deadlines {
            return None;
        }
        let key = self.any_key();
        let Value::Hash(fields) = &ahead.get(db, key.as_bytes())?.value else { return None };
        let at = self.random.below(fields.len());
        let one = fields.keys().nth(at)?.as_slice();
        let other = self.field();
        if other.as_bytes() == one {
            return None;
        }
        Some(match self.random.below(9) {
            0..3 => command(&[&"HPEXPIREAT", &key, &self.far_ms(), &"FIELDS", &"2", &one, &other]),
            3 => command(&[&"HEXPIRE", &key, &self.far_seconds(), &"FIELDS", &"1", &one]),
            4 => command(&[&"HPERSIST", &key, &"FIELDS", &"2", &one, &other]),
            5..7 => command(&[&"HPEXPIRETIME", &key, &"FIELDS", &"1", &one]),
            7 if self.features.field_options => {
                let (deadline, value) = (self.far_ms(), self.value());
                command(&[&"HSETEX", &key, &"PXAT", &deadline, &"FIELDS", &"2", &one, &value, &other, &value])
            }
            8 if self.features.field_options => command(&[&"HGETDEL", &key, &"FIELDS", &"2", &one, &other]),
            _ => return None,
        })
    }

    fn delete(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let key = self.any_key();
        let is_string = matches!(ahead.get(db, key.as_bytes())?.value, Value::String(_));
        Some(match self.random.below(4) {
            0 => command(&[&"DEL", &key]),
            1 => command(&[&"UNLINK", &key, &self.any_key()]),
            2 => command(&[&"DEL", &key, &self.any_key(), &self.any_key(), &"c:never"]),
            _ if is_string => command(&[&"GETDEL", &key]),
            _ => return None,
        })
    }

    fn write_deadline(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let key = self.any_key();
        let entry = ahead.get(db, key.as_bytes())?;
        let is_string = matches!(entry.value, Value::String(_));
        Some(match self.random.below(8) {
            0..2 => command(&[&"PEXPIREAT", &key, &self.far_ms()]),
            2 => command(&[&"EXPIRE", &key, &self.far_seconds()]),
            3 => command(&[&"PERSIST", &key]),
            4 if is_string => command(&[&"GETEX", &key, &"PXAT", &self.far_ms()]),
            5 if is_string => command(&[&"GETEX", &key, &"PERSIST"]),
            _ => command(&[&"PEXPIRETIME", &key]),
        })
    }

    /// To another name or database.
    fn relocate(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let (key, other) = (self.any_key(), self.any_key());
        ahead.get(db, key.as_bytes())?;
        let to = self.database();
        if key == other {
            return None;
        }
        Some(match self.random.below(5) {
            0 if may_replace(ahead, db, &other) => command(&[&"RENAME", &key, &other]),
            1 => command(&[&"RENAMENX", &key, &other]),
            2 => command(&[&"COPY", &key, &other, &"DB", &to.to_string()]),
            3 if may_replace(ahead, to, &other) => {
                command(&[&"COPY", &key, &other, &"DB", &to.to_string(), &"REPLACE"])
            }
            _ if to != db => command(&[&"MOVE", &key, &to.to_string()]),
            _ => return None,
        })
    }

    fn write_small_ones(&mut self, _ahead: &State, db: u32) -> Option<Command> {
        if db != 0 {
            return None;
        }
        let start = self.random.below(SMALL_KEYS - SMALL_AT_ONCE);
        let owner = self.owner;
        let keys = (start..start + SMALL_AT_ONCE).map(|number| owner.key("small", number).into_bytes());
        Some(if self.random.one_in(3) {
            [b"DEL".to_vec()].into_iter().chain(keys).collect()
        } else {
            let value = self.short_value();
            [b"MSET".to_vec()].into_iter().chain(keys.flat_map(|key| [key, value.clone()])).collect()
        })
    }

    /// A key that is written once: no later write hides that this one was lost. Those that are old go.
    fn write_trail(&mut self, ahead: &State, db: u32) -> Option<Command> {
        if db != 0 {
            return None;
        }
        let value = self.value();
        let key = self.trail_key(self.sequence);
        if self.random.one_in(20) {
            let places = Place::new(0, self.trail_key(0).as_bytes())
                ..Place::new(0, self.trail_key(self.sequence.checked_sub(TRAIL_VALUES)?).as_bytes());
            let old = ahead.entries.range(places).take(2 * SMALL_AT_ONCE).map(|(place, _)| place.key.clone());
            let old: Vec<Vec<u8>> = old.collect();
            return (!old.is_empty()).then(|| [b"UNLINK".to_vec()].into_iter().chain(old).collect());
        }
        Some(match self.random.below(4) {
            0 => command(&[&"HSET", &key, &"one", &value, &"two", &self.short_value()]),
            1 => command(&[&"ZADD", &key, &self.quarters(), &value]),
            _ => command(&[&"SET", &key, &value]),
        })
    }

    /// In the order of numbers, which is the order of the model too.
    fn trail_key(&self, number: u64) -> String {
        format!("c{}:trail:{number:012}", self.owner.number)
    }

    /// All of a database at once.
    fn write_database(&mut self, _ahead: &State, db: u32) -> Option<Command> {
        let [one, other] = self.owner.databases_of_its_own().filter(|_| db != 0)?;
        Some(match self.random.below(4) {
            0 => command(&[&"FLUSHDB"]),
            1 => command(&[&"FLUSHDB", &"ASYNC"]),
            _ => command(&[&"SWAPDB", &one.to_string(), &other.to_string()]),
        })
    }

    fn read(&mut self, ahead: &State, db: u32) -> Option<Command> {
        let key = self.any_key();
        match &ahead.get(db, key.as_bytes())?.value {
            Value::String(_) => Some(command(&[&"GET", &key])),
            Value::Hash(_) => Some(command(&[&"HGET", &key, &self.field()])),
            Value::Scores(_) => Some(command(&[&"ZSCORE", &key, &self.member()])),
            Value::List(_) => Some(command(&[&"LINDEX", &key, &"0"])),
            Value::Cell(_) => Some(command(&[&"CELL.GET", &key])),
            Value::Register(_) => Some(command(&[&"REG.GET", &key])),
            Value::Run(_) | Value::Session(_) | Value::Stream(_) | Value::Checkpoint(_) | Value::Definition(_) => None,
        }
    }

    pub(crate) fn database(&mut self) -> u32 {
        match self.owner.databases_of_its_own() {
            Some([one, other]) => self.random.pick(&[0, 0, 0, one, other]),
            None => 0,
        }
    }

    fn any_key(&mut self) -> String {
        let number = self.random.below(KEYS);
        self.owner.key("key", number)
    }

    fn member(&mut self) -> String {
        format!("member{}", self.random.below(12))
    }

    fn field(&mut self) -> String {
        format!("field{}", self.random.below(12))
    }

    fn quarters(&mut self) -> String {
        (self.random.below(400) as f64 / 4.0 - 50.0).to_string()
    }

    fn far_ms(&mut self) -> String {
        (now_ms() + (DAY_MS + self.random.below(1000 * DAY_MS)) as i64).to_string()
    }

    fn far_seconds(&mut self) -> String {
        ((DAY_MS + self.random.below(1000 * DAY_MS)) / 1000).to_string()
    }

    pub(crate) fn value(&mut self) -> Vec<u8> {
        let len = match self.random.below(100) {
            0..70 => self.random.below(30),
            70..97 => self.random.below(300),
            97..99 => self.random.below(5_000),
            _ => self.random.below(70_000),
        };
        self.value_of(len)
    }

    pub(crate) fn short_value(&mut self) -> Vec<u8> {
        self.value_of(0)
    }

    /// A mark of its own, then bytes of any kind up to the length.
    pub(crate) fn value_of(&mut self, len: usize) -> Vec<u8> {
        self.sequence += 1;
        let mut value = format!("<{}.{}>", self.owner.number, self.sequence).into_bytes();
        while value.len() < len {
            value.extend_from_slice(&self.random.next_u64().to_le_bytes());
        }
        value
    }
}

/// True when a command may put another value under a name: the types that Redis does not have refuse that.
fn may_replace(ahead: &State, db: u32, key: &str) -> bool {
    let value = ahead.get(db, key.as_bytes()).map(|entry| &entry.value);
    !matches!(value, Some(Value::Cell(_) | Value::Run(_) | Value::Register(_) | Value::Session(_)))
}
