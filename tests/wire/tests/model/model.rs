//! What commands on strings, hashes, sorted sets, lists and runs mean, over plain maps: the shortest program that says it, with no regard for
//! speed. Knows only the spellings that `commands`, and the authors of the binary `linearizable`, produce.

use std::collections::{BTreeMap, BTreeSet};

use wire::Reply;

/// A deadline that has passed. All others lie in the far future, so the model needs no clock.
pub(crate) const PAST_MS: i64 = 1;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NO_INTEGER: &str = "ERR value is not an integer or out of range";
const OVERFLOW: &str = "ERR increment or decrement would overflow";

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Model {
    entries: BTreeMap<Vec<u8>, Entry>,
    /// The keys that were changed since they were last taken. Writing the value that was there is a change too.
    pub(crate) changed: BTreeSet<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Entry {
    value: Value,
    deadline: Option<i64>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Value {
    Text(Vec<u8>),
    Hash(Fields),
    Scores(Scores),
    List(Vec<Vec<u8>>),
    Run(Vec<Event>),
}

type Fields = BTreeMap<Vec<u8>, Field>;
type Scores = BTreeMap<Vec<u8>, i64>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Field {
    value: Vec<u8>,
    deadline: Option<i64>,
}

/// An event of a run, by its number less 1.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Event {
    key: Vec<u8>,
    data: Vec<u8>,
    id: Vec<u8>,
}

/// A reply, or the text of an error. What a script did before its error stays.
pub(crate) type Outcome = Result<Reply, &'static str>;
type Args<'a> = &'a [&'a [u8]];

impl Model {
    pub(crate) fn run(&mut self, words: &[impl AsRef<[u8]>]) -> Outcome {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        self.execute(std::str::from_utf8(words[0]).expect("a command's name"), &words[1..])
    }

    fn execute(&mut self, name: &str, args: Args) -> Outcome {
        match (name, args) {
            ("SET", [key, value, options @ ..]) => self.set(key, value, options),
            ("GET", [key]) => Ok(bulk(self.text(key)?)),
            ("GETSET", [key, value]) => self.set(key, value, &[b"GET"]),
            ("GETDEL", [key]) => {
                let old = bulk(self.text(key)?);
                self.remove(key);
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
                pairs.chunks(2).try_for_each(|pair| self.pass_replace(pair[0]))?;
                pairs.chunks(2).for_each(|pair| self.put(pair[0], Value::Text(pair[1].to_vec()), None));
                Ok(ok())
            }
            ("MSETNX", pairs) => {
                let all_new = pairs.chunks(2).all(|pair| !self.entries.contains_key(pair[0]));
                if all_new {
                    pairs.chunks(2).for_each(|pair| self.put(pair[0], Value::Text(pair[1].to_vec()), None));
                }
                Ok(flag(all_new))
            }
            ("MGET", keys) => Ok(array(keys.iter().map(|key| bulk(self.text(key).unwrap_or_default())))),
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
            ("DEL" | "UNLINK", keys) => Ok(count(keys.iter().filter(|key| self.remove(key).is_some()).count())),
            ("EXISTS" | "TOUCH", keys) => Ok(count(keys.iter().filter(|key| self.entries.contains_key(**key)).count())),
            ("DBSIZE", []) => Ok(count(self.entries.len())),
            ("FLUSHALL", []) => {
                self.changed.extend(std::mem::take(&mut self.entries).into_keys());
                Ok(ok())
            }
            ("KEYS", [b"*"]) => Ok(array(self.entries.keys().map(|key| Reply::Bulk(key.clone())))),
            ("TYPE", [key]) => Ok(Reply::Simple(match self.entries.get(*key).map(|entry| &entry.value) {
                None => b"none".to_vec(),
                Some(Value::Text(_)) => b"string".to_vec(),
                Some(Value::Hash(_)) => b"hash".to_vec(),
                Some(_) => panic!("the model does not know the names of other types"),
            })),
            ("RENAME", [from, to]) => self.rename(from, to, true).map(|_| ok()),
            ("RENAMENX", [from, to]) => self.rename(from, to, false).map(flag),
            ("COPY", [from, to, ..]) if from == to => Err("ERR source and destination objects are the same"),
            ("COPY", [from, to, options @ ..]) => {
                let may = options.contains(&b"REPLACE".as_slice()) || !self.entries.contains_key(*to);
                let copy = self.entries.get(*from).filter(|_| may).cloned();
                let Some(Entry { value, deadline }) = copy else { return Ok(flag(false)) };
                self.pass_replace(to)?;
                self.put(to, value, deadline);
                Ok(flag(true))
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
            ("IDX.RANGE", [b"by_f", b"-inf", b"+inf", b"KEYS"]) => {
                Ok(array(self.indexed().into_iter().map(|(_, key)| bulk(Some(key)))))
            }
            ("ZRANGE", [b"by_f", b"0", b"-1", b"WITHSCORES"]) => Ok(with_scores(self.indexed())),
            ("LMOVE" | "BLMOVE", [from, to, b"LEFT", b"RIGHT", ..]) => {
                if self.list(from)?.is_empty() {
                    return Ok(Reply::NilBulk);
                }
                self.list(to)?;
                let mut rest = self.list(from)?;
                let element = rest.remove(0);
                self.write(from, Value::List(rest));
                let mut list = self.list(to)?;
                list.push(element.clone());
                self.write(to, Value::List(list));
                Ok(bulk(Some(&element)))
            }
            (_, [key, rest @ ..]) if name.starts_with("RUN.") => self.execute_run(name, key, rest),
            (_, [key, rest @ ..]) if name.starts_with('Z') => self.execute_scores(name, key, rest),
            (_, [key, rest @ ..]) if name.starts_with('H') => self.execute_hash(name, key, rest),
            (_, [key, rest @ ..]) => self.execute_list(name, key, rest),
            _ => panic!("the model does not know {name}"),
        }
    }

    fn execute_hash(&mut self, name: &str, key: &[u8], args: Args) -> Outcome {
        let before = self.typed(key, |value| if let Value::Hash(hash) = value { Some(hash) } else { None })?;
        let mut hash = before.clone();
        let reply = hash_command(&mut hash, name, args)?;
        if hash != before || name == "HSET" || name == "HCAS" && reply == flag(true) {
            self.write(key, Value::Hash(hash));
        }
        Ok(reply)
    }

    fn execute_scores(&mut self, name: &str, key: &[u8], args: Args) -> Outcome {
        let before = self.typed(key, |value| if let Value::Scores(scores) = value { Some(scores) } else { None })?;
        let mut scores = before.clone();
        let reply = scores_command(&mut scores, name, args);
        // The score that it had is no change.
        if scores != before {
            self.write(key, Value::Scores(scores));
        }
        Ok(reply)
    }

    fn execute_list(&mut self, name: &str, key: &[u8], args: Args) -> Outcome {
        let before = self.list(key)?;
        let mut list = before.clone();
        let end = |list: &Vec<Vec<u8>>| if name.contains("LP") { 0 } else { list.len().saturating_sub(1) };
        let reply = match (name, args) {
            ("LPUSH" | "RPUSH", elements) => {
                for element in elements {
                    let at = if name == "LPUSH" { 0 } else { list.len() };
                    list.insert(at, element.to_vec());
                }
                count(list.len())
            }
            ("LPOP" | "RPOP", []) if list.is_empty() => Reply::NilBulk,
            ("LPOP" | "RPOP", []) => bulk(Some(&list.remove(end(&list)))),
            // Where there is nothing it waits for a moment, and gives up.
            ("BLPOP" | "BRPOP", [_]) if list.is_empty() => Reply::NilArray,
            ("BLPOP" | "BRPOP", [_]) => array([bulk(Some(key)), bulk(Some(&list.remove(end(&list))))]),
            ("LLEN", []) => count(list.len()),
            ("LRANGE", [b"0", b"-1"]) => array(list.iter().map(|element| bulk(Some(element)))),
            _ => panic!("the model does not know {name}"),
        };
        if list != before {
            self.write(key, Value::List(list));
        }
        Ok(reply)
    }

    fn execute_run(&mut self, name: &str, key: &[u8], args: Args) -> Outcome {
        let mut events = self.typed(key, |value| if let Value::Run(events) = value { Some(events) } else { None })?;
        let last = events.len();
        Ok(match (name, args) {
            ("RUN.APPEND", [event, b"t", data, b"EVENTID", id, condition @ ..]) => {
                let holds = match condition {
                    [] => true,
                    [b"IFLAST", wanted] => parse(wanted) == last as i64,
                    _ => panic!("the model does not know {condition:?}"),
                };
                match events.iter().position(|known| known.key == *event) {
                    Some(at) => appended(at + 1, [1, 0], Some(&events[at].id), events[at].data != *data),
                    None if !holds => appended(last, [0, 0], None, false),
                    None => {
                        events.push(Event { key: event.to_vec(), data: data.to_vec(), id: id.to_vec() });
                        self.write(key, Value::Run(events));
                        appended(last + 1, [0, 1], Some(id), false)
                    }
                }
            }
            ("RUN.EVENTS", after) => {
                let after = after.get(1).map_or(0, |after| parse(after) as usize);
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
            _ => panic!("the model does not know {name}"),
        })
    }

    /// What the index has, in its order.
    fn indexed(&self) -> Vec<(i64, &[u8])> {
        let score = |entry: &Entry| match &entry.value {
            Value::Hash(hash) => integer(&hash.get(b"f".as_slice())?.value),
            _ => None,
        };
        let indexed = self.entries.iter().filter_map(|(key, entry)| Some((score(entry)?, key.as_slice())));
        BTreeSet::from_iter(indexed).into_iter().collect()
    }

    /// The value of a key as one type has it; nothing where there is none.
    fn typed<T: Clone + Default>(&self, key: &[u8], of: fn(&Value) -> Option<&T>) -> Result<T, &'static str> {
        match self.entries.get(key) {
            None => Ok(T::default()),
            Some(entry) => of(&entry.value).cloned().ok_or(WRONG_TYPE),
        }
    }

    fn list(&self, key: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
        self.typed(key, |value| if let Value::List(list) = value { Some(list) } else { None })
    }

    fn text(&self, key: &[u8]) -> Result<Option<&Vec<u8>>, &'static str> {
        match self.entries.get(key).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    /// A run is not replaced by another value.
    fn pass_replace(&self, key: &[u8]) -> Result<(), &'static str> {
        match self.entries.get(key).map(|entry| &entry.value) {
            Some(Value::Run(_)) => Err(WRONG_TYPE),
            _ => Ok(()),
        }
    }

    fn put(&mut self, key: &[u8], value: Value, deadline: Option<i64>) {
        self.changed.insert(key.to_vec());
        self.entries.insert(key.to_vec(), Entry { value, deadline });
        self.drop_if_past(key);
    }

    /// Writes a value where there may be one; its deadline stays. One without elements is no key.
    fn write(&mut self, key: &[u8], value: Value) {
        let is_empty = match &value {
            Value::Hash(hash) => hash.is_empty(),
            Value::Scores(scores) => scores.is_empty(),
            Value::List(list) => list.is_empty(),
            Value::Text(_) | Value::Run(_) => false,
        };
        let deadline = self.entries.get(key).and_then(|entry| entry.deadline);
        match is_empty {
            true => drop(self.remove(key)),
            false => self.put(key, value, deadline),
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let removed = self.entries.remove(key)?;
        self.changed.insert(key.to_vec());
        Some(removed)
    }

    /// Changes a text, from nothing if there is none.
    fn edit(&mut self, key: &[u8], change: impl FnOnce(&mut Vec<u8>) -> Reply) -> Outcome {
        let mut text = self.text(key)?.cloned().unwrap_or_default();
        let reply = change(&mut text);
        self.write(key, Value::Text(text));
        Ok(reply)
    }

    fn drop_if_past(&mut self, key: &[u8]) {
        if self.entries.get(key).is_some_and(|entry| entry.deadline == Some(PAST_MS)) {
            self.remove(key);
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8], options: Args) -> Outcome {
        let has = |option: &[u8]| options.contains(&option);
        let old = if has(b"GET") { bulk(self.text(key)?) } else { Reply::NilBulk };
        let exists = self.entries.contains_key(key);
        if has(b"NX") && exists || has(b"XX") && !exists {
            return Ok(old);
        }
        self.pass_replace(key)?;
        let kept = self.entries.get(key).and_then(|entry| entry.deadline);
        let deadline = if has(b"KEEPTTL") { kept } else { deadline_option(options) };
        self.put(key, Value::Text(value.to_vec()), deadline);
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
        if !self.entries.contains_key(from) {
            return Err("ERR no such key");
        }
        // To its own name is no change.
        if from == to || !replace && self.entries.contains_key(to) {
            return Ok(replace);
        }
        self.pass_replace(to)?;
        if let Some(Entry { value, deadline }) = self.remove(from) {
            self.put(to, value, deadline);
        }
        Ok(true)
    }
}

fn hash_command(hash: &mut Fields, name: &str, args: Args) -> Outcome {
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
        ("HCAS", [field, old, new]) => swap(hash, (field, old), &[field, new]),
        ("HCAS", [b"IF", b"1", field, old, b"SET", b"2", new @ ..]) => swap(hash, (field, old), new),
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

/// Writes fields if one of them has a value.
fn swap(hash: &mut Fields, (field, old): (&[u8], &[u8]), new: Args) -> Reply {
    let same = hash.get(field).is_some_and(|field| field.value == old);
    if same {
        new.chunks(2).for_each(|pair| drop(hash.insert(pair[0].to_vec(), Field::new(pair[1]))));
    }
    flag(same)
}

fn scores_command(scores: &mut Scores, name: &str, args: Args) -> Reply {
    match (name, args) {
        ("ZADD", [b"NX", _, member]) if scores.contains_key(*member) => flag(false),
        ("ZADD", [b"NX", pairs @ ..] | pairs) => {
            let add = |pair: &&[&[u8]]| scores.insert(pair[1].to_vec(), parse(pair[0])).is_none();
            count(pairs.chunks(2).filter(add).count())
        }
        ("ZINCRBY", [by, member]) => {
            let sum = scores.get(*member).unwrap_or(&0) + parse(by);
            scores.insert(member.to_vec(), sum);
            bulk(Some(&sum.to_string()))
        }
        ("ZREM", [member]) => flag(scores.remove(*member).is_some()),
        ("ZPOPMIN", []) => {
            let first = ordered(scores).first().map(|(score, member)| (*score, member.to_vec()));
            scores.retain(|member, _| first.iter().all(|(_, popped)| popped != member));
            with_scores(first.iter().map(|(score, member)| (*score, member.as_slice())))
        }
        ("ZSCORE", [member]) => bulk(scores.get(*member).map(i64::to_string).as_ref()),
        ("ZCARD", []) => count(scores.len()),
        ("ZRANGE", [b"0", b"-1", b"WITHSCORES"]) => with_scores(ordered(scores)),
        _ => panic!("the model does not know {name}"),
    }
}

/// In the order of a sorted set.
fn ordered(scores: &Scores) -> Vec<(i64, &[u8])> {
    let mut ordered: Vec<_> = scores.iter().map(|(member, score)| (*score, member.as_slice())).collect();
    ordered.sort_unstable();
    ordered
}

fn with_scores<'a>(items: impl IntoIterator<Item = (i64, &'a [u8])>) -> Reply {
    array(items.into_iter().flat_map(|(score, member)| [bulk(Some(member)), bulk(Some(&score.to_string()))]))
}

/// What RUN.APPEND tells, without the time.
pub(crate) fn appended(at: usize, idempotent_persisted: [i64; 2], id: Option<&[u8]>, mismatch: bool) -> Reply {
    let [idempotent, persisted] = idempotent_persisted.map(Reply::Integer);
    let told = [count(at), idempotent, persisted, bulk(id), flag(mismatch)];
    let names = ["runSeq", "idempotent", "persisted", "eventId", "mismatch"];
    array(names.into_iter().zip(told).flat_map(|(name, told)| [bulk(Some(name)), told]))
}

impl Field {
    fn new(value: &[u8]) -> Field {
        Field { value: value.to_vec(), deadline: None }
    }
}

fn drop_field_if_past(hash: &mut Fields, name: &[u8]) -> bool {
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

pub(crate) fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

fn flag(yes: bool) -> Reply {
    Reply::Integer(i64::from(yes))
}

fn count(n: usize) -> Reply {
    Reply::Integer(n as i64)
}

pub(crate) fn bulk<T: AsRef<[u8]> + ?Sized>(text: Option<&T>) -> Reply {
    text.map_or(Reply::NilBulk, |text| Reply::Bulk(text.as_ref().to_vec()))
}

pub(crate) fn array(items: impl IntoIterator<Item = Reply>) -> Reply {
    Reply::Array(items.into_iter().collect())
}
