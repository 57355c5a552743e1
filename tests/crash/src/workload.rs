//! What one client sends: random requests over the keys that it alone writes, and over the shared ones. Knows nothing
//! of sockets and crashes.

use wire::Reply;

use crate::author::Author;
use crate::model::{Entry, State, Value};
use crate::request::{Bracket, Command, Request, Subject, command, now_ms};
use crate::shared::{COUNTERS, GROUPS, Shared};

pub(crate) struct Workload<'a> {
    pub(crate) author: Author,
    pub(crate) shared: &'a Shared,
}

/// A request and the reply it must get, `None` if any that is no error will do.
pub(crate) type Expected = (Request, Option<Reply>);

const NEAR_KEYS: usize = 6;
const BIG_KEYS: usize = 2;
const BIG_BYTES: usize = 1 << 20;
const PIPELINE_MAX: usize = 24;
/// Within the test, so that these are seen to go.
pub(crate) const NEAR_MS: usize = 1500;

impl Workload<'_> {
    /// The next requests to send in one write.
    pub(crate) fn batch(&mut self, acknowledged: &State) -> Vec<Expected> {
        let len = if self.author.random.one_in(2) { 1 } else { 1 + self.author.random.below(PIPELINE_MAX) };
        let mut ahead = acknowledged.clone();
        let mut batch = Vec::new();
        while batch.len() < len {
            for request in self.requests(&ahead) {
                let reply = request.apply(&mut ahead);
                batch.push((request, reply));
            }
        }
        batch
    }

    /// One request, or a few that belong together.
    fn requests(&mut self, ahead: &State) -> Vec<Request> {
        match self.author.random.below(100) {
            0..5 => {
                let (counter, by) = (self.author.random.below(COUNTERS), 1 + self.author.random.below(9) as i64);
                vec![self.shared.add(counter, by)]
            }
            5..8 => {
                let value = if self.author.random.one_in(5) { None } else { Some(self.author.short_value()) };
                vec![self.shared.write_group(self.author.random.below(GROUPS), value)]
            }
            8..14 => self.near(),
            14..17 if self.author.features.transactions => {
                vec![self.shared.transfer(self.author.random.below(100), self.author.random.below(50) as i64)]
            }
            17..22 if self.author.features.transactions => vec![self.transaction(ahead)],
            23 if self.author.features.forks => self.fork(ahead),
            24..30 => vec![self.script(ahead)],
            30 => {
                let definition = self.author.definition(ahead);
                definition.map(|command| Request::new(0, command)).into_iter().collect()
            }
            31..39 if self.author.features.own_commands => {
                let db = self.author.database();
                vec![Request::new(db, self.author.session(ahead, db))]
            }
            22 if self.author.random.one_in(3) => vec![self.big(ahead)],
            39..46 if self.shared.queue.is_made() => vec![self.shared.queue.write(&mut self.author.random)],
            46..54 if self.author.features.registers => vec![self.shared.registers.write(&mut self.author.random)],
            _ => {
                let db = self.author.database();
                vec![Request::new(db, self.author.own(ahead, db))]
            }
        }
    }

    fn transaction(&mut self, ahead: &State) -> Request {
        let db = self.author.database();
        let txn = self.author.features.own_commands && self.author.random.one_in(2);
        let bracket = if txn { Bracket::Txn } else { Bracket::Multi };
        Request { commands: self.several(ahead, db, bracket), bracket, ..Request::new(db, Vec::new()) }
    }

    /// The end of a fork is in a transaction: alone it would be several batches.
    fn fork(&mut self, ahead: &State) -> Vec<Request> {
        let db = self.author.database();
        let mut commands = vec![self.author.fork(ahead, db)];
        if commands[0][0] == b"CELL.DROP" {
            commands.push(command(&[&"PERSIST", &self.author.owner.key("fork", 0)]));
        }
        vec![Request { commands, ..Request::new(db, Vec::new()) }]
    }

    /// Several commands in one script or function.
    fn script(&mut self, ahead: &State) -> Request {
        let db = self.author.database();
        let pair = if self.author.random.one_in(3) { self.author.pair(ahead, db) } else { None };
        let command = pair.unwrap_or_else(|| {
            let commands = self.several(ahead, db, Bracket::Multi);
            self.author.script(ahead, &commands)
        });
        Request::new(db, command)
    }

    fn several(&mut self, ahead: &State, db: u32, bracket: Bracket) -> Vec<Command> {
        let mut ahead = ahead.clone();
        let commands = (0..2 + self.author.random.below(4)).map(|_| {
            let command = loop {
                let command = self.author.own(&ahead, db);
                if bracket == Bracket::Multi || may_be_in_txn(&command) {
                    break command;
                }
            };
            ahead.apply(db, &command, now_ms());
            command
        });
        commands.collect()
    }

    /// Keys and fields that expire within the test. Only commands whose result does not depend on whether the key is
    /// still there, since the client cannot know.
    fn near(&mut self) -> Vec<Request> {
        let deadline = (now_ms() + self.author.random.below(NEAR_MS) as i64).to_string();
        let number = self.author.random.below(NEAR_KEYS);
        let (string, hash) = (self.author.owner.key("near", number), self.author.owner.key("nearhash", number));
        let field = format!("f{}", self.author.random.below(4));
        let value = self.author.value();
        let commands = match self.author.random.below(6) {
            0..3 => vec![command(&[&"SET", &string, &value, &"PXAT", &deadline])],
            3 => vec![command(&[&"DEL", &string])],
            _ if !self.author.features.field_deadlines => {
                vec![command(&[&"SET", &string, &value]), command(&[&"PEXPIREAT", &string, &deadline])]
            }
            _ => vec![
                command(&[&"HSET", &hash, &field, &value]),
                command(&[&"HPEXPIREAT", &hash, &deadline, &"FIELDS", &"1", &field]),
            ],
        };
        commands.into_iter().map(|command| Request::new(0, command).about(Subject::Near)).collect()
    }

    /// A megabyte, or a few bytes more in one.
    fn big(&mut self, ahead: &State) -> Request {
        let key = self.author.owner.key("big", self.author.random.below(BIG_KEYS));
        let value = self.author.short_value();
        let room = ahead.get(0, key.as_bytes()).is_some_and(|entry| string_len(entry) < 2 * BIG_BYTES);
        let command = match self.author.random.below(4) {
            0 if room => command(&[&"APPEND", &key, &value]),
            1 if room => command(&[&"SETRANGE", &key, &self.author.random.below(BIG_BYTES).to_string(), &value]),
            _ => command(&[&"SET", &key, &self.author.value_of(BIG_BYTES)]),
        };
        Request::new(0, command)
    }
}

/// Those that find their keys by an index or a prefix, or touch another database, may not.
fn may_be_in_txn(command: &Command) -> bool {
    !matches!(&*command[0], b"CLAIM" | b"SWAPDB" | b"FLUSHDB" | b"MOVE" | b"COPY" | b"REG.SNAPSHOT" | b"REG.RESTORE")
}

fn string_len(entry: &Entry) -> usize {
    match &entry.value {
        Value::String(bytes) => bytes.len(),
        _ => 0,
    }
}
