//! What every action does when it runs alone: the shortest program that says it, over plain maps.
//! Knows only the spellings that `author` and `scripts` produce.

use std::collections::{BTreeMap, BTreeSet};

use wire::Reply;

use crate::action::{Action, Command, Ending};
use crate::scripts::SCRIPTS;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NO_INTEGER: &str = "ERR value is not an integer or out of range";
const OVERFLOW: &str = "ERR increment or decrement would overflow";
const DISCARDED: &str = "EXECABORT Transaction discarded because of previous errors.";

pub(crate) type Outcome = Result<Reply, &'static str>;

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Model {
    entries: BTreeMap<String, Value>,
    /// By client.
    watches: BTreeMap<usize, Watch>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Value {
    Text(String),
    Hash(BTreeMap<String, String>),
    /// Scores by member.
    Scores(BTreeMap<String, i64>),
    Run(Vec<Event>),
    List(Vec<String>),
}

/// An event of a run, by its number less 1.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Event {
    key: String,
    data: String,
    id: String,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Watch {
    Untouched(BTreeSet<String>),
    Touched,
}

impl Model {
    pub(crate) fn act(&mut self, client: usize, action: &Action) -> Reply {
        match action {
            Action::Run(command) => self.command(command),
            Action::Watch(keys) => {
                let watch = self.watches.entry(client).or_insert(Watch::Untouched(BTreeSet::new()));
                if let Watch::Untouched(watched) = watch {
                    watched.extend(keys.iter().cloned());
                }
                ok()
            }
            Action::Unwatch | Action::Transaction(_, Ending::Discard) => {
                self.watches.remove(&client);
                ok()
            }
            Action::Transaction(commands, ending) => match (self.watches.remove(&client), ending) {
                (_, Ending::ExecInVain) => Reply::Error(DISCARDED.into()),
                (Some(Watch::Touched), _) => Reply::NilArray,
                _ => array(commands.iter().map(|command| self.command(command))),
            },
        }
    }

    fn command(&mut self, command: &Command) -> Reply {
        let outcome = match command {
            Command::Plain(words) => self.run(&strs(words)),
            Command::Script { script, keys, args, .. } => (SCRIPTS[*script].model)(self, &strs(keys), &strs(args)),
        };
        outcome.unwrap_or_else(|error| Reply::Error(error.into()))
    }

    /// A run is not replaced by another value.
    fn pass_replace(&self, key: &str) -> Result<(), &'static str> {
        match self.entries.get(key) {
            Some(Value::Run(_)) => Err(WRONG_TYPE),
            _ => Ok(()),
        }
    }

    /// Runs a command outside of or inside of a script.
    pub(crate) fn run(&mut self, words: &[&str]) -> Outcome {
        Ok(match words {
            ["GET", key] => bulk(self.text(key)?),
            ["MGET", keys @ ..] => array(keys.iter().map(|key| bulk(self.text(key).unwrap_or_default()))),
            ["SET", key, value] => {
                self.pass_replace(key)?;
                self.put(key, Value::Text((*value).into()));
                ok()
            }
            ["SET", key, _, "NX"] if self.entries.contains_key(*key) => Reply::NilBulk,
            ["SET", key, value, "NX"] => self.run(&["SET", key, value])?,
            ["GETSET", key, value] => {
                let old = bulk(self.text(key)?);
                self.put(key, Value::Text((*value).into()));
                old
            }
            ["GETDEL", key] => {
                let old = bulk(self.text(key)?);
                self.remove(key);
                old
            }
            ["INCR", key] => {
                let sum = integer(self.text(key)?.unwrap_or("0")).ok_or(NO_INTEGER)?.checked_add(1).ok_or(OVERFLOW)?;
                self.put(key, Value::Text(sum.to_string()));
                number(sum)
            }
            ["APPEND", key, more] => {
                let text = self.text(key)?.unwrap_or_default().to_owned() + more;
                let len = text.len();
                self.put(key, Value::Text(text));
                count(len)
            }
            ["MSET", pairs @ ..] => {
                pairs.chunks(2).try_for_each(|pair| self.pass_replace(pair[0]))?;
                pairs.chunks(2).for_each(|pair| self.put(pair[0], Value::Text(pair[1].into())));
                ok()
            }
            ["MSETNX", pairs @ ..] => {
                let all_new = pairs.chunks(2).all(|pair| !self.entries.contains_key(pair[0]));
                if all_new {
                    pairs.chunks(2).for_each(|pair| self.put(pair[0], Value::Text(pair[1].into())));
                }
                number(all_new.into())
            }
            ["DEL", keys @ ..] => count(keys.iter().filter(|key| self.remove(key).is_some()).count()),
            ["EXISTS", keys @ ..] => count(keys.iter().filter(|key| self.entries.contains_key(**key)).count()),
            ["DBSIZE"] => count(self.entries.len()),
            ["FLUSHALL"] => {
                let keys: Vec<String> = self.entries.keys().cloned().collect();
                keys.iter().for_each(|key| drop(self.remove(key)));
                ok()
            }
            ["RENAME", from, to] => {
                if !self.entries.contains_key(*from) {
                    return Err("ERR no such key");
                }
                // To its own name is no change.
                if from != to {
                    self.pass_replace(to)?;
                }
                if from != to
                    && let Some(value) = self.remove(from)
                {
                    self.put(to, value);
                }
                ok()
            }
            ["COPY", from, to, ..] if from == to => return Err("ERR source and destination objects are the same"),
            ["COPY", from, to, options @ ..] => {
                let may = options.contains(&"REPLACE") || !self.entries.contains_key(*to);
                let copy = self.entries.get(*from).filter(|_| may).cloned();
                let copied = copy.is_some();
                if copied {
                    self.pass_replace(to)?;
                }
                copy.into_iter().for_each(|value| self.put(to, value));
                number(copied.into())
            }
            ["IDX.RANGE", "by_f", "-inf", "+inf", "KEYS"] => {
                array(self.indexed().into_iter().map(|(_, key)| bulk(Some(key))))
            }
            ["ZRANGE", "by_f", "0", "-1", "WITHSCORES"] => with_scores(self.indexed()),
            [name @ ("LPUSH" | "RPUSH"), key, elements @ ..] => {
                let mut list = self.list(key)?;
                for element in elements {
                    let at = if *name == "LPUSH" { 0 } else { list.len() };
                    list.insert(at, (*element).into());
                }
                let len = list.len();
                self.put(key, Value::List(list));
                count(len)
            }
            [name @ ("LPOP" | "RPOP"), key] => bulk(self.take(key, *name == "LPOP")?.as_deref()),
            // Where there is nothing it waits for a moment, and gives up.
            [name @ ("BLPOP" | "BRPOP"), key, _] => match self.take(key, *name == "BLPOP")? {
                Some(element) => array([bulk(Some(key)), bulk(Some(&element))]),
                None => Reply::NilArray,
            },
            ["LMOVE" | "BLMOVE", from, to, "LEFT", "RIGHT", ..] => bulk(self.shift(from, to)?.as_deref()),
            ["LLEN", key] => count(self.list(key)?.len()),
            ["LRANGE", key, "0", "-1"] => array(self.list(key)?.iter().map(|element| bulk(Some(element)))),
            [name, key, args @ ..] if name.starts_with("RUN.") => self.run_on_run(name, key, args)?,
            [name, key, args @ ..] if name.starts_with('Z') => self.run_on_scores(name, key, args)?,
            [name, key, args @ ..] => self.run_on_hash(name, key, args)?,
            _ => panic!("the model does not know {words:?}"),
        })
    }

    fn run_on_hash(&mut self, name: &str, key: &str, args: &[&str]) -> Outcome {
        let mut hash = match self.entries.get(key) {
            None => BTreeMap::new(),
            Some(Value::Hash(hash)) => hash.clone(),
            Some(_) => return Err(WRONG_TYPE),
        };
        Ok(match (name, args) {
            ("HCAS", [field, old, new]) => self.swap(key, hash, (field, old), &[field, new]),
            ("HCAS", ["IF", "1", field, old, "SET", "2", new @ ..]) => self.swap(key, hash, (field, old), new),
            ("HGET", [field]) => bulk(hash.get(*field).map(String::as_str)),
            ("HLEN", []) => count(hash.len()),
            ("HGETALL", []) => {
                array(hash.iter().flat_map(|(field, value)| [field, value]).map(|text| bulk(Some(text.as_str()))))
            }
            ("HSET", pairs) => {
                let new = pairs.chunks(2).filter(|pair| hash.insert(pair[0].into(), pair[1].into()).is_none()).count();
                self.put(key, Value::Hash(hash));
                count(new)
            }
            ("HDEL", fields) => {
                let gone = fields.iter().filter(|field| hash.remove(**field).is_some()).count();
                if hash.is_empty() {
                    self.remove(key);
                } else if gone > 0 {
                    self.put(key, Value::Hash(hash));
                }
                count(gone)
            }
            ("HINCRBY", [field, by]) => {
                let old = hash.get(*field).map_or(Some(0), |value| integer(value));
                let by = integer(by).ok_or(NO_INTEGER)?;
                let sum = old.ok_or("ERR hash value is not an integer")?.checked_add(by).ok_or(OVERFLOW)?;
                hash.insert((*field).into(), sum.to_string());
                self.put(key, Value::Hash(hash));
                number(sum)
            }
            _ => panic!("the model does not know {name} {key} {args:?}"),
        })
    }

    /// Writes fields if one of them has a value.
    fn swap(&mut self, key: &str, mut hash: BTreeMap<String, String>, if_has: (&str, &str), new: &[&str]) -> Reply {
        let (field, old) = if_has;
        let same = hash.get(field).is_some_and(|value| value == old);
        if same {
            new.chunks(2).for_each(|pair| drop(hash.insert(pair[0].into(), pair[1].into())));
            self.put(key, Value::Hash(hash));
        }
        number(same.into())
    }

    fn run_on_scores(&mut self, name: &str, key: &str, args: &[&str]) -> Outcome {
        let before = match self.entries.get(key) {
            None => BTreeMap::new(),
            Some(Value::Scores(scores)) => scores.clone(),
            Some(_) => return Err(WRONG_TYPE),
        };
        let mut scores = before.clone();
        let reply = match (name, args) {
            ("ZADD", ["NX", score, member]) => match before.contains_key(*member) {
                true => number(0),
                false => return self.run_on_scores("ZADD", key, &[score, member]),
            },
            ("ZADD", pairs) => {
                let add = |pair: &&[&str]| scores.insert(pair[1].into(), integer(pair[0]).expect("a score")).is_none();
                let new = pairs.chunks(2).filter(add).count();
                count(new)
            }
            ("ZINCRBY", [by, member]) => {
                let sum = before.get(*member).unwrap_or(&0) + integer(by).expect("an increment");
                scores.insert((*member).into(), sum);
                bulk(Some(&sum.to_string()))
            }
            ("ZREM", [member]) => number(scores.remove(*member).is_some().into()),
            ("ZPOPMIN", []) => {
                let first = ordered(&before).into_iter().take(1);
                scores.retain(|member, _| first.clone().all(|(_, popped)| popped != member));
                with_scores(first)
            }
            ("ZSCORE", [member]) => bulk(before.get(*member).map(i64::to_string).as_deref()),
            ("ZCARD", []) => count(before.len()),
            ("ZRANGE", ["0", "-1", "WITHSCORES"]) => with_scores(ordered(&before)),
            _ => panic!("the model does not know {name} {key} {args:?}"),
        };
        // The score that it had is no change.
        if scores.is_empty() {
            self.remove(key);
        } else if scores != before {
            self.put(key, Value::Scores(scores));
        }
        Ok(reply)
    }

    fn list(&self, key: &str) -> Result<Vec<String>, &'static str> {
        match self.entries.get(key) {
            None => Ok(Vec::new()),
            Some(Value::List(list)) => Ok(list.clone()),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    fn take(&mut self, key: &str, left: bool) -> Result<Option<String>, &'static str> {
        let mut list = self.list(key)?;
        if list.is_empty() {
            return Ok(None);
        }
        let element = list.remove(if left { 0 } else { list.len() - 1 });
        match list.is_empty() {
            true => drop(self.remove(key)),
            false => self.put(key, Value::List(list)),
        }
        Ok(Some(element))
    }

    /// From the left end of one to the right end of another.
    fn shift(&mut self, from: &str, to: &str) -> Result<Option<String>, &'static str> {
        if self.list(from)?.is_empty() {
            return Ok(None);
        }
        self.list(to)?;
        let Some(element) = self.take(from, true)? else { return Ok(None) };
        let mut list = self.list(to)?;
        list.push(element.clone());
        self.put(to, Value::List(list));
        Ok(Some(element))
    }

    fn run_on_run(&mut self, name: &str, key: &str, args: &[&str]) -> Outcome {
        let mut events = match self.entries.get(key) {
            None => Vec::new(),
            Some(Value::Run(events)) => events.clone(),
            Some(_) => return Err(WRONG_TYPE),
        };
        let last = events.len();
        Ok(match (name, args) {
            ("RUN.APPEND", [event, "t", data, "EVENTID", id, condition @ ..]) => {
                let holds = match condition {
                    [] => true,
                    ["IFLAST", wanted] => *wanted == last.to_string(),
                    _ => panic!("the model does not know {condition:?}"),
                };
                match events.iter().position(|known| known.key == *event) {
                    Some(at) => appended(at + 1, [1, 0], Some(&events[at].id), events[at].data != *data),
                    None if !holds => appended(last, [0, 0], None, false),
                    None => {
                        events.push(Event { key: (*event).into(), data: (*data).into(), id: (*id).into() });
                        self.put(key, Value::Run(events));
                        appended(last + 1, [0, 1], Some(id), false)
                    }
                }
            }
            ("RUN.EVENTS", after) => {
                let after: usize = after.get(1).map_or(0, |after| after.parse().expect("a number"));
                if last > 0 && after > last {
                    let text = format!(
                        "ERR the run has been made anew: its last runSeq is {last}, and AFTER is {after}; read it again from AFTER 0"
                    );
                    return Ok(Reply::Error(text.into()));
                }
                let shown = |(number, event): (usize, &Event)| {
                    let Event { key, data, id } = event;
                    let texts = [("eventId", id), ("idempotencyKey", key), ("eventData", data)];
                    let texts = texts.into_iter().flat_map(|(name, text)| [bulk(Some(name)), bulk(Some(text))]);
                    array([bulk(Some("runSeq")), count(number)].into_iter().chain(texts))
                };
                array((1..).zip(&events).skip(after).map(shown))
            }
            _ => panic!("the model does not know {name} {key} {args:?}"),
        })
    }

    /// What the index has, in its order.
    fn indexed(&self) -> Vec<(i64, &str)> {
        let score = |value: &Value| match value {
            Value::Hash(hash) => integer(hash.get("f")?),
            _ => None,
        };
        let mut indexed: Vec<_> =
            self.entries.iter().filter_map(|(key, value)| Some((score(value)?, key.as_str()))).collect();
        indexed.sort_unstable();
        indexed
    }

    fn text(&self, key: &str) -> Result<Option<&str>, &'static str> {
        match self.entries.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    fn put(&mut self, key: &str, value: Value) {
        self.entries.insert(key.into(), value);
        self.touch(key);
    }

    fn remove(&mut self, key: &str) -> Option<Value> {
        let removed = self.entries.remove(key)?;
        self.touch(key);
        Some(removed)
    }

    /// Writing the value that was there is a change too.
    fn touch(&mut self, key: &str) {
        for watch in self.watches.values_mut() {
            if matches!(watch, Watch::Untouched(keys) if keys.contains(key)) {
                *watch = Watch::Touched;
            }
        }
    }
}

/// What RUN.APPEND tells, without the time.
pub(crate) fn appended(at: usize, idempotent_persisted: [i64; 2], id: Option<&str>, mismatch: bool) -> Reply {
    let [idempotent, persisted] = idempotent_persisted.map(number);
    let told = [count(at), idempotent, persisted, bulk(id), number(mismatch.into())];
    let names = ["runSeq", "idempotent", "persisted", "eventId", "mismatch"];
    array(names.into_iter().zip(told).flat_map(|(name, told)| [bulk(Some(name)), told]))
}

/// In the order of a sorted set.
fn ordered(scores: &BTreeMap<String, i64>) -> Vec<(i64, &str)> {
    let mut ordered: Vec<_> = scores.iter().map(|(member, score)| (*score, member.as_str())).collect();
    ordered.sort_unstable();
    ordered
}

fn with_scores<'a>(items: impl IntoIterator<Item = (i64, &'a str)>) -> Reply {
    array(items.into_iter().flat_map(|(score, member)| [bulk(Some(member)), bulk(Some(&score.to_string()))]))
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// As Redis reads one: no sign but a minus, no zeros in front.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

pub(crate) fn ok() -> Reply {
    Reply::Simple("OK".into())
}

pub(crate) fn bulk(text: Option<&str>) -> Reply {
    text.map_or(Reply::NilBulk, |text| Reply::Bulk(text.into()))
}

pub(crate) fn number(number: i64) -> Reply {
    Reply::Integer(number)
}

fn count(count: usize) -> Reply {
    Reply::Integer(count as i64)
}

pub(crate) fn array(items: impl IntoIterator<Item = Reply>) -> Reply {
    Reply::Array(items.into_iter().collect())
}
