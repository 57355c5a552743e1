//! What the commands mean, over a plain map: the shortest program that says it, with no regard for speed.
//! Knows only the spellings that `commands` produces.

use std::collections::BTreeMap;

use wire::{Reply, split_args};

/// A deadline that has passed. All others lie in the far future, so the model needs no clock.
pub(crate) const PAST_MS: i64 = 1;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NO_INTEGER: &str = "ERR value is not an integer or out of range";
const OVERFLOW: &str = "ERR increment or decrement would overflow";

#[derive(Default)]
pub(crate) struct Model {
    entries: BTreeMap<Vec<u8>, Entry>,
}

#[derive(Clone)]
struct Entry {
    value: Value,
    deadline: Option<i64>,
}

#[derive(Clone)]
enum Value {
    Text(Vec<u8>),
    Hash(BTreeMap<Vec<u8>, Field>),
}

#[derive(Clone)]
struct Field {
    value: Vec<u8>,
    deadline: Option<i64>,
}

type Outcome = Result<Reply, &'static str>;
type Args<'a> = &'a [&'a [u8]];

impl Model {
    pub(crate) fn run(&mut self, command: &str) -> Reply {
        let args = split_args(command).expect("a command that can be split");
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let outcome = self.execute(std::str::from_utf8(args[0]).expect("a command's name"), &args[1..]);
        outcome.unwrap_or_else(|error| Reply::Error(error.into()))
    }

    fn execute(&mut self, name: &str, args: Args) -> Outcome {
        match (name, args) {
            ("SET", [key, value, options @ ..]) => self.set(key, value, options),
            ("GET", [key]) => Ok(bulk(self.text(key)?)),
            ("GETSET", [key, value]) => self.set(key, value, &[b"GET"]),
            ("GETDEL", [key]) => {
                let old = bulk(self.text(key)?);
                self.entries.remove(*key);
                Ok(old)
            }
            ("GETEX", [key, options @ ..]) => {
                let old = bulk(self.text(key)?);
                if let (Some(entry), [_, ..]) = (self.entries.get_mut(*key), options) {
                    entry.deadline = deadline_option(options);
                    self.drop_if_past(key);
                }
                Ok(old)
            }
            ("SETNX", [key, value]) => Ok(flag(self.set(key, value, &[b"NX"])? == ok())),
            ("MSET", pairs) => {
                pairs.chunks(2).for_each(|pair| self.put(pair[0], pair[1].to_vec(), None));
                Ok(ok())
            }
            ("MSETNX", pairs) => {
                let all_new = pairs.chunks(2).all(|pair| !self.entries.contains_key(pair[0]));
                if all_new {
                    pairs.chunks(2).for_each(|pair| self.put(pair[0], pair[1].to_vec(), None));
                }
                Ok(flag(all_new))
            }
            ("MGET", keys) => Ok(array(keys.iter().map(|key| bulk(self.text(key).unwrap_or(None))))),
            ("INCR", [key]) => self.incr(key, 1),
            ("DECR", [key]) => self.incr(key, -1),
            ("INCRBY", [key, by]) => self.incr(key, integer(by).ok_or(NO_INTEGER)?),
            ("STRLEN", [key]) => Ok(count(self.text(key)?.map_or(0, |text| text.len()))),
            ("APPEND", [key, more]) => self.edit(key, |text| {
                text.extend_from_slice(more);
                count(text.len())
            }),
            ("GETRANGE", [key, from, to]) => {
                let text = self.text(key)?.cloned().unwrap_or_default();
                Ok(Reply::Bulk(range(&text, parse(from), parse(to)).to_vec()))
            }
            ("SETRANGE", [key, _, b""]) => Ok(count(self.text(key)?.map_or(0, |text| text.len()))),
            ("SETRANGE", [key, offset, value]) => self.edit(key, |text| {
                let offset = parse(offset) as usize;
                text.resize(text.len().max(offset + value.len()), 0);
                text[offset..offset + value.len()].copy_from_slice(value);
                count(text.len())
            }),
            ("SETBIT", [key, offset, bit]) => self.edit(key, |text| {
                let (byte, mask) = bit_at(offset);
                text.resize(text.len().max(byte + 1), 0);
                let old = text[byte] & mask != 0;
                if parse(bit) == 1 {
                    text[byte] |= mask;
                } else {
                    text[byte] &= !mask;
                }
                flag(old)
            }),
            ("GETBIT", [key, offset]) => {
                let (byte, mask) = bit_at(offset);
                Ok(flag(self.text(key)?.and_then(|text| text.get(byte)).is_some_and(|byte| byte & mask != 0)))
            }
            ("BITCOUNT", [key]) => {
                let ones = |text: &Vec<u8>| text.iter().map(|byte| byte.count_ones() as usize).sum();
                Ok(count(self.text(key)?.map_or(0, ones)))
            }
            ("DEL" | "UNLINK", keys) => {
                Ok(count(keys.iter().filter(|key| self.entries.remove(**key).is_some()).count()))
            }
            ("EXISTS" | "TOUCH", keys) => Ok(count(keys.iter().filter(|key| self.entries.contains_key(**key)).count())),
            ("DBSIZE", []) => Ok(count(self.entries.len())),
            ("KEYS", [b"*"]) => Ok(array(self.entries.keys().map(|key| Reply::Bulk(key.clone())))),
            ("TYPE", [key]) => Ok(Reply::Simple(match self.entries.get(*key).map(|entry| &entry.value) {
                None => b"none".to_vec(),
                Some(Value::Text(_)) => b"string".to_vec(),
                Some(Value::Hash(_)) => b"hash".to_vec(),
            })),
            ("RENAME", [from, to]) => self.rename(from, to, true).map(|_| ok()),
            ("RENAMENX", [from, to]) => self.rename(from, to, false).map(flag),
            ("COPY", [from, to, ..]) if from == to => Err("ERR source and destination objects are the same"),
            ("COPY", [from, to, options @ ..]) => {
                let may = options.contains(&b"REPLACE".as_slice()) || !self.entries.contains_key(*to);
                let copy = self.entries.get(*from).filter(|_| may).cloned();
                Ok(flag(copy.map(|entry| self.entries.insert(to.to_vec(), entry)).is_some()))
            }
            ("PEXPIREAT", [key, at, condition @ ..]) => {
                let at = parse(at);
                let Some(entry) = self.entries.get_mut(*key) else {
                    return Ok(flag(false));
                };
                let applies = condition_holds(condition.first().copied(), entry.deadline, at);
                if applies {
                    entry.deadline = Some(at);
                    self.drop_if_past(key);
                }
                Ok(flag(applies))
            }
            ("PERSIST", [key]) => {
                Ok(flag(self.entries.get_mut(*key).is_some_and(|entry| entry.deadline.take().is_some())))
            }
            ("PEXPIRETIME", [key]) => {
                Ok(Reply::Integer(self.entries.get(*key).map_or(-2, |entry| entry.deadline.unwrap_or(-1))))
            }
            (_, [key, rest @ ..]) => self.execute_hash(name, key, rest),
            _ => panic!("the model does not know {name}"),
        }
    }

    fn execute_hash(&mut self, name: &str, key: &[u8], args: Args) -> Outcome {
        // Work on a copy and put it back: a hash without fields is no key.
        let mut hash = match self.entries.get(key).map(|entry| &entry.value) {
            None => BTreeMap::new(),
            Some(Value::Hash(hash)) => hash.clone(),
            Some(Value::Text(_)) => return Err(WRONG_TYPE),
        };
        let reply = hash_command(&mut hash, name, args)?;
        if hash.is_empty() {
            self.entries.remove(key);
        } else {
            let deadline = self.entries.get(key).and_then(|entry| entry.deadline);
            self.entries.insert(key.to_vec(), Entry { value: Value::Hash(hash), deadline });
        }
        Ok(reply)
    }

    fn text(&self, key: &[u8]) -> Result<Option<&Vec<u8>>, &'static str> {
        match self.entries.get(key).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Hash(_)) => Err(WRONG_TYPE),
        }
    }

    fn put(&mut self, key: &[u8], text: Vec<u8>, deadline: Option<i64>) {
        self.entries.insert(key.to_vec(), Entry { value: Value::Text(text), deadline });
        self.drop_if_past(key);
    }

    /// Changes a text, from nothing if there is none; its deadline stays.
    fn edit(&mut self, key: &[u8], change: impl FnOnce(&mut Vec<u8>) -> Reply) -> Outcome {
        let mut text = self.text(key)?.cloned().unwrap_or_default();
        let reply = change(&mut text);
        let deadline = self.entries.get(key).and_then(|entry| entry.deadline);
        self.put(key, text, deadline);
        Ok(reply)
    }

    fn drop_if_past(&mut self, key: &[u8]) {
        if self.entries.get(key).is_some_and(|entry| entry.deadline == Some(PAST_MS)) {
            self.entries.remove(key);
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8], options: Args) -> Outcome {
        let has = |option: &[u8]| options.contains(&option);
        let old = if has(b"GET") { bulk(self.text(key)?) } else { Reply::NilBulk };
        let exists = self.entries.contains_key(key);
        if has(b"NX") && exists || has(b"XX") && !exists {
            return Ok(old);
        }
        let kept = self.entries.get(key).and_then(|entry| entry.deadline);
        let deadline = if has(b"KEEPTTL") { kept } else { deadline_option(options) };
        self.put(key, value.to_vec(), deadline);
        Ok(if has(b"GET") { old } else { ok() })
    }

    fn incr(&mut self, key: &[u8], by: i64) -> Outcome {
        let old = self.text(key)?.map_or(Some(0), |text| integer(text)).ok_or(NO_INTEGER)?;
        let sum = old.checked_add(by).ok_or(OVERFLOW)?;
        self.edit(key, |text| {
            *text = sum.to_string().into_bytes();
            Reply::Integer(sum)
        })
    }

    fn rename(&mut self, from: &[u8], to: &[u8], replace: bool) -> Result<bool, &'static str> {
        let entry = self.entries.get(from).cloned().ok_or("ERR no such key")?;
        if !replace && self.entries.contains_key(to) {
            return Ok(false);
        }
        self.entries.remove(from);
        self.entries.insert(to.to_vec(), entry);
        Ok(true)
    }
}

fn hash_command(hash: &mut BTreeMap<Vec<u8>, Field>, name: &str, args: Args) -> Outcome {
    Ok(match (name, args) {
        ("HSET", pairs) => {
            let new = pairs.chunks(2).filter(|pair| hash.insert(pair[0].to_vec(), Field::new(pair[1])).is_none());
            count(new.count())
        }
        ("HSETNX", [field, value]) => {
            let is_new = !hash.contains_key(*field);
            if is_new {
                hash.insert(field.to_vec(), Field::new(value));
            }
            flag(is_new)
        }
        ("HGET", [field]) => bulk(hash.get(*field).map(|field| &field.value)),
        ("HMGET", fields) => array(fields.iter().map(|field| bulk(hash.get(*field).map(|field| &field.value)))),
        ("HDEL", fields) => count(fields.iter().filter(|field| hash.remove(**field).is_some()).count()),
        ("HGETALL", []) => {
            array(hash.iter().flat_map(|(name, field)| [Reply::Bulk(name.clone()), Reply::Bulk(field.value.clone())]))
        }
        ("HKEYS", []) => array(hash.keys().map(|name| Reply::Bulk(name.clone()))),
        ("HVALS", []) => array(hash.values().map(|field| Reply::Bulk(field.value.clone()))),
        ("HLEN", []) => count(hash.len()),
        ("HEXISTS", [field]) => flag(hash.contains_key(*field)),
        ("HSTRLEN", [field]) => count(hash.get(*field).map_or(0, |field| field.value.len())),
        ("HINCRBY", [name, by]) => {
            let by = integer(by).ok_or(NO_INTEGER)?;
            let old = hash.get(*name).map_or(Some(0), |field| integer(&field.value));
            let sum = old.ok_or("ERR hash value is not an integer")?.checked_add(by).ok_or(OVERFLOW)?;
            hash.entry(name.to_vec()).or_insert(Field::new(b"")).value = sum.to_string().into_bytes();
            Reply::Integer(sum)
        }
        ("HPEXPIREAT", [at, options @ ..]) => {
            let (at, condition) = (parse(at), options.first().copied().filter(|option| *option != b"FIELDS"));
            array(fields_of(options).iter().map(|name| {
                let Some(field) = hash.get_mut(*name) else {
                    return Reply::Integer(-2);
                };
                if !condition_holds(condition, field.deadline, at) {
                    return Reply::Integer(0);
                }
                field.deadline = Some(at);
                Reply::Integer(if drop_field_if_past(hash, name) { 2 } else { 1 })
            }))
        }
        ("HPEXPIRETIME", options) => {
            let told = |name: &&[u8]| hash.get(*name).map_or(-2, |field| field.deadline.unwrap_or(-1));
            array(fields_of(options).iter().map(|name| Reply::Integer(told(name))))
        }
        ("HPERSIST", options) => array(fields_of(options).iter().map(|name| match hash.get_mut(*name) {
            None => Reply::Integer(-2),
            Some(field) => Reply::Integer(if field.deadline.take().is_some() { 1 } else { -1 }),
        })),
        ("HGETEX", options) => array(fields_of(options).iter().map(|name| {
            let Some(field) = hash.get_mut(*name) else {
                return Reply::NilBulk;
            };
            let value = Reply::Bulk(field.value.clone());
            if options[0] != b"FIELDS" {
                field.deadline = deadline_option(options);
                drop_field_if_past(hash, name);
            }
            value
        })),
        ("HSETEX", options) => {
            let has = |option: &[u8]| options.contains(&option);
            let [name, value] = fields_of(options) else { panic!("one field and its value") };
            let exists = hash.contains_key(*name);
            let applies = !(has(b"FNX") && exists || has(b"FXX") && !exists);
            if applies {
                let kept = hash.get(*name).and_then(|field| field.deadline).filter(|_| has(b"KEEPTTL"));
                let deadline = kept.or(deadline_option(options));
                hash.insert(name.to_vec(), Field { value: value.to_vec(), deadline });
                drop_field_if_past(hash, name);
            }
            flag(applies)
        }
        ("HGETDEL", options) => {
            array(fields_of(options).iter().map(|name| bulk(hash.remove(*name).map(|field| field.value).as_ref())))
        }
        _ => panic!("the model does not know {name}"),
    })
}

impl Field {
    fn new(value: &[u8]) -> Field {
        Field { value: value.to_vec(), deadline: None }
    }
}

fn drop_field_if_past(hash: &mut BTreeMap<Vec<u8>, Field>, name: &[u8]) -> bool {
    let is_past = hash.get(name).is_some_and(|field| field.deadline == Some(PAST_MS));
    if is_past {
        hash.remove(name);
    }
    is_past
}

/// What follows `FIELDS n`.
fn fields_of<'a>(options: Args<'a>) -> Args<'a> {
    let at = options.iter().position(|option| *option == b"FIELDS").expect("FIELDS");
    &options[at + 2..]
}

/// The instant after `PXAT`, if there is one.
fn deadline_option(options: Args) -> Option<i64> {
    let at = options.iter().position(|option| *option == b"PXAT")?;
    Some(parse(options[at + 1]))
}

fn condition_holds(condition: Option<&[u8]>, current: Option<i64>, new: i64) -> bool {
    match condition {
        None => true,
        Some(b"NX") => current.is_none(),
        Some(b"XX") => current.is_some(),
        Some(b"GT") => current.is_some_and(|current| new > current),
        Some(b"LT") => current.is_none_or(|current| new < current),
        Some(other) => panic!("the model does not know the condition {other:?}"),
    }
}

fn range(text: &[u8], from: i64, to: i64) -> &[u8] {
    let len = text.len() as i64;
    let place = |at: i64| if at < 0 { (len + at).max(0) } else { at };
    if text.is_empty() || from < 0 && to < 0 && from > to {
        return b"";
    }
    let (from, to) = (place(from), place(to).min(len - 1));
    if from > to { b"" } else { &text[from as usize..=to as usize] }
}

fn bit_at(offset: &[u8]) -> (usize, u8) {
    let offset = parse(offset) as usize;
    (offset / 8, 0x80 >> (offset % 8))
}

/// An integer as Redis reads it from a value: no sign but a minus, no leading zeros, no spaces.
fn integer(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

/// A number that `commands` has written.
fn parse(text: &[u8]) -> i64 {
    integer(text).expect("a number")
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

fn flag(yes: bool) -> Reply {
    Reply::Integer(i64::from(yes))
}

fn count(n: usize) -> Reply {
    Reply::Integer(n as i64)
}

fn bulk(text: Option<&Vec<u8>>) -> Reply {
    text.map_or(Reply::NilBulk, |text| Reply::Bulk(text.clone()))
}

fn array(items: impl Iterator<Item = Reply>) -> Reply {
    Reply::Array(items.collect())
}
