//! Makes up what one client does next, from a seed and from what it was told. Knows nothing of what is right.

use wire::{Random, Reply};

use crate::action::{Action, By, Command, Ending};
use crate::scripts::{SCRIPTS, Takes};

/// The keys in play. The first two share a shard.
pub(crate) const KEYS: &[&str] = &["a", "{a}b", "c", "d"];
const FIELDS: &[&str] = &["f", "g"];
const MEMBERS: &[&str] = &["m", "n"];

/// Of the field `f` of all keys in play, where the server can have it.
pub(crate) fn index_definition() -> String {
    format!("IDX.CREATE {INDEX} PREFIX {} {} FIELD f", KEYS.len(), KEYS.join(" "))
}

const INDEX: &str = "by_f";

const PIPELINE_MAX: usize = 4;
const QUEUED_MAX: usize = 4;

pub(crate) struct Author {
    random: Random,
    client: usize,
    keys: &'static [&'static str],
    /// The server knows Holdfast's own commands.
    has_own_commands: bool,
    /// What was made up so far, so that every new text is another.
    texts: usize,
    /// The last text that it was told.
    seen: String,
    plan: Plan,
}

/// Where it is in an increment that watches, reads and writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plan {
    None,
    Watching(&'static str),
    HasRead(&'static str),
}

impl Author {
    pub(crate) fn new(random: Random, client: usize, keys: &'static [&'static str], has_own_commands: bool) -> Author {
        Author { random, client, keys, has_own_commands, texts: 0, seen: "1".into(), plan: Plan::None }
    }

    /// What is there before the clients begin.
    pub(crate) fn opening(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        for key in self.keys {
            match self.random.below(5) {
                0 => actions.push(run(format!("SET {key} {}", self.number()))),
                1 => actions.push(run(format!("HSET {key} f {}", self.number()))),
                2 => actions.push(run(format!("ZADD {key} {} m", self.number()))),
                3 if self.random.one_in(2) => {
                    actions.push(run(format!("RPUSH {key} {} {}", self.number(), self.number())))
                }
                3 if self.has_own_commands => actions.push(Action::Run(self.append(key))),
                _ => {}
            }
        }
        actions
    }

    /// What is sent next, in one write.
    pub(crate) fn next(&mut self) -> Vec<Action> {
        match self.plan {
            Plan::Watching(key) => {
                self.plan = Plan::HasRead(key);
                vec![run(format!("GET {key}"))]
            }
            Plan::HasRead(key) => {
                self.plan = Plan::None;
                vec![self.increment(key)]
            }
            Plan::None if self.random.one_in(6) => self.watch(),
            Plan::None => {
                let len = if self.random.one_in(3) { 2 + self.random.below(PIPELINE_MAX - 1) } else { 1 };
                (0..len).map(|_| self.action()).collect()
            }
        }
    }

    /// Whether a transaction's requests are sent one by one.
    pub(crate) fn in_steps(&mut self) -> bool {
        self.random.one_in(2)
    }

    pub(crate) fn is_told(&mut self, replies: &[Reply]) {
        for reply in replies {
            match reply {
                Reply::Bulk(text) => self.seen = String::from_utf8_lossy(text).into_owned(),
                Reply::NilBulk => self.seen = "0".into(),
                _ => {}
            }
        }
    }

    /// What lets it stop here.
    pub(crate) fn ending(&mut self) -> Vec<Action> {
        match self.plan {
            Plan::None => Vec::new(),
            _ => vec![Action::Unwatch],
        }
    }

    fn watch(&mut self) -> Vec<Action> {
        let key = self.key();
        let mut keys = vec![key.to_owned()];
        if self.random.one_in(4) {
            keys.push(self.key().into());
        }
        let watch = Action::Watch(keys);
        if self.random.one_in(2) {
            self.plan = Plan::Watching(key);
            vec![watch]
        } else {
            self.plan = Plan::HasRead(key);
            vec![watch, run(format!("GET {key}"))]
        }
    }

    fn increment(&mut self, key: &str) -> Action {
        if self.random.one_in(8) {
            return Action::Unwatch;
        }
        let sum = self.seen.parse().map_or(1, |seen: i64| seen.saturating_add(1));
        let mut commands = vec![Command::plain(format!("SET {key} {sum}"))];
        if self.random.one_in(3) {
            commands.push(self.command());
        }
        Action::Transaction(commands, self.transaction_ending())
    }

    fn action(&mut self) -> Action {
        if self.random.one_in(4) {
            let len = 2 + self.random.below(QUEUED_MAX - 1);
            let commands = (0..len).map(|_| self.command()).collect();
            Action::Transaction(commands, self.transaction_ending())
        } else {
            Action::Run(self.command())
        }
    }

    fn transaction_ending(&mut self) -> Ending {
        match self.random.below(16) {
            0 => Ending::ExecInVain,
            1 => Ending::Discard,
            _ => Ending::Exec,
        }
    }

    fn command(&mut self) -> Command {
        if self.random.one_in(4) {
            return self.script();
        }
        if self.random.one_in(4) {
            return self.on_sorted_set();
        }
        if self.random.one_in(4) {
            return self.on_list();
        }
        if self.has_own_commands && self.random.one_in(6) {
            return self.own_command();
        }
        if self.has_own_commands && self.random.one_in(5) {
            return self.on_run();
        }
        let (key, other, field) = (self.key(), self.key(), self.random.pick(FIELDS));
        Command::plain(match self.random.below(32) {
            0..3 => format!("SET {key} {}", self.number()),
            3..6 => format!("GET {key}"),
            6..9 => format!("INCR {key}"),
            9..11 => format!("APPEND {key} {}", self.random.pick(&["1", "2", "x"])),
            11 => format!("SET {key} {} NX", self.number()),
            12 => format!("GETSET {key} {}", self.number()),
            13 => format!("GETDEL {key}"),
            14 => format!("DEL {key}"),
            15 => format!("DEL {key} {other}"),
            16 => format!("EXISTS {}", self.keys.join(" ")),
            17 => self.random.pick(&["DBSIZE", "DBSIZE", "FLUSHALL"]).to_owned(),
            18 => format!("RENAME {key} {other}"),
            19 => format!("COPY {key} {other}"),
            20 => format!("COPY {key} {other} REPLACE"),
            21 => {
                let number = self.number();
                format!("MSET {key} {number} {other} {number}")
            }
            22..24 => format!("MGET {}", self.keys.join(" ")),
            24 => {
                let number = self.number();
                format!("MSETNX {key} {number} {other} {number}")
            }
            25 => format!("HSET {key} {field} {}", self.number()),
            26 => {
                let number = self.number();
                format!("HSET {key} f {number} g {number}")
            }
            27 => format!("HGET {key} {field}"),
            28 => format!("HDEL {key} {field}"),
            29 => format!("HINCRBY {key} {field} {}", self.random.pick(&["1", "-2"])),
            30 => format!("HGETALL {key}"),
            _ => format!("HLEN {key}"),
        })
    }

    /// Each element is another, so that it shows who has taken which.
    fn on_list(&mut self) -> Command {
        let (key, other, element) = (self.key(), self.key(), self.number());
        Command::plain(match self.random.below(12) {
            0..2 => format!("LPUSH {key} {element}"),
            2..4 => format!("RPUSH {key} {element} {element}x"),
            4 => format!("LPOP {key}"),
            5 => format!("RPOP {key}"),
            6..8 => format!("BLPOP {key} 0.002"),
            8 => format!("BRPOP {key} 0.002"),
            9 => format!("LMOVE {key} {other} LEFT RIGHT"),
            10 => format!("BLMOVE {key} {other} LEFT RIGHT 0.002"),
            _ => format!("LRANGE {key} 0 -1"),
        })
    }

    fn on_sorted_set(&mut self) -> Command {
        let (key, member) = (self.key(), self.random.pick(MEMBERS));
        Command::plain(match self.random.below(10) {
            0..2 => format!("ZADD {key} {} {member}", self.number()),
            2 => format!("ZADD {key} NX {} {member}", self.number()),
            3 => format!("ZADD {key} {} m {} n", self.number(), self.number()),
            4 => format!("ZINCRBY {key} {} {member}", self.random.pick(&["1", "-2"])),
            5 => format!("ZREM {key} {member}"),
            6 => format!("ZPOPMIN {key}"),
            7 => format!("ZSCORE {key} {member}"),
            8 => format!("ZCARD {key}"),
            _ => format!("ZRANGE {key} 0 -1 WITHSCORES"),
        })
    }

    /// Commands that Redis has not.
    fn own_command(&mut self) -> Command {
        let (key, field, old) = (self.key(), self.random.pick(FIELDS), self.seen.clone());
        Command::plain(match self.random.below(4) {
            0 => format!("HCAS {key} {field} {old} {}", self.number()),
            1 => {
                let number = self.number();
                format!("HCAS {key} IF 1 {field} {old} SET 2 f {number} g {number}")
            }
            2 => format!("IDX.RANGE {INDEX} -inf +inf KEYS"),
            _ => format!("ZRANGE {INDEX} 0 -1 WITHSCORES"),
        })
    }

    fn on_run(&mut self) -> Command {
        let key = self.key();
        match self.random.below(4) {
            0 => Command::plain(format!("RUN.EVENTS {key}")),
            1 => Command::plain(format!("RUN.EVENTS {key} AFTER {}", self.random.below(3))),
            _ => self.append(key),
        }
    }

    /// An append of an event that other clients append too, with other data, or of one that is new. Its id is given, so that
    /// the model knows it.
    fn append(&mut self, key: &str) -> Command {
        let (number, last) = (self.number(), self.random.below(3));
        let event = self.random.pick(&["i", "j", "k", number.as_str()]);
        let condition = if self.random.one_in(3) { format!(" IFLAST {last}") } else { String::new() };
        Command::plain(format!("RUN.APPEND {key} {event} t {number} EVENTID e{number}{condition}"))
    }

    fn script(&mut self) -> Command {
        let script = self.random.below(SCRIPTS.len());
        let about = &SCRIPTS[script];
        let keys = (0..about.keys).map(|_| self.key().into()).collect();
        let undeclared: Vec<String> = (0..about.undeclared).map(|_| self.key().into()).collect();
        let taken = about.takes.iter().map(|takes| match takes {
            Takes::Old => self.seen.clone(),
            Takes::New => self.number(),
        });
        let args = undeclared.into_iter().chain(taken.collect::<Vec<_>>()).collect();
        Command::Script { script, by: self.random.pick(&[By::Source, By::Digest, By::Function]), keys, args }
    }

    fn key(&mut self) -> &'static str {
        self.random.pick(self.keys)
    }

    /// One that no other client makes up.
    fn number(&mut self) -> String {
        self.texts += 1;
        (self.client * 1000 + self.texts).to_string()
    }
}

fn run(line: String) -> Action {
    Action::Run(Command::plain(line))
}

/// Everything that is there, read by one client at one instant.
pub(crate) fn readings(has_own_commands: bool) -> Vec<Action> {
    let of_key = |key| [format!("GET {key}"), format!("HGETALL {key}"), format!("ZRANGE {key} 0 -1 WITHSCORES")];
    let of_run = |key: &&str| has_own_commands.then(|| format!("RUN.EVENTS {key}"));
    let of_index = has_own_commands.then(|| format!("ZRANGE {INDEX} 0 -1 WITHSCORES"));
    let commands =
        KEYS.iter().flat_map(of_key).chain(KEYS.iter().filter_map(of_run)).chain(of_index).map(Command::plain);
    vec![Action::Transaction(commands.collect(), Ending::Exec)]
}
