//! What every action means when nobody else is there: the shortest program that says it, over plain maps.
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

    /// Runs a command outside of or inside of a script.
    pub(crate) fn run(&mut self, words: &[&str]) -> Outcome {
        Ok(match words {
            ["GET", key] => bulk(self.text(key)?),
            ["MGET", keys @ ..] => array(keys.iter().map(|key| bulk(self.text(key).unwrap_or_default()))),
            ["SET", key, value] => {
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
                copy.into_iter().for_each(|value| self.put(to, value));
                number(copied.into())
            }
            [name, key, args @ ..] => self.run_on_hash(name, key, args)?,
            _ => panic!("the model does not know {words:?}"),
        })
    }

    fn run_on_hash(&mut self, name: &str, key: &str, args: &[&str]) -> Outcome {
        let mut hash = match self.entries.get(key) {
            None => BTreeMap::new(),
            Some(Value::Hash(hash)) => hash.clone(),
            Some(Value::Text(_)) => return Err(WRONG_TYPE),
        };
        Ok(match (name, args) {
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

    fn text(&self, key: &str) -> Result<Option<&str>, &'static str> {
        match self.entries.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Hash(_)) => Err(WRONG_TYPE),
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
