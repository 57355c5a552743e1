//! What each command of the load does to the model, and the reply it must get. Understands commands as the load writes
//! them, and no more: the load never sends one that Redis would refuse.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::Reply;

use crate::grouped;
use crate::indexes;
use crate::model::{DEFINITIONS, Deadline, Entry, Field, Place, State, Value, int};
use crate::request::command;

impl State {
    /// Changes the state as the server must, and returns the reply it must give: `None` if that cannot be known.
    pub(crate) fn apply(&mut self, db: u32, args: &[Vec<u8>], sent_ms: i64) -> Option<Reply> {
        match args[0].as_slice() {
            b"EVAL" | b"EVALSHA" => return self.run_script(db, args, sent_ms),
            b"FCALL" => return self.run_function(db, args, sent_ms),
            b"SESSION.CALL" => return self.session_call(db, args, sent_ms),
            b"FUNCTION" => return Some(self.change_functions(args)),
            _ => {}
        }
        let key_at = match args[0].as_slice() {
            b"XGROUP" => 2,
            b"XREADGROUP" => args.len() - 2,
            _ => 1,
        };
        let mut call = Call { state: self, db, key: args.get(key_at).map_or(&b""[..], |key| key), sent_ms };
        let rest = args.get(2..).unwrap_or(&[]);
        let name = std::str::from_utf8(&args[0]).expect("command names are ASCII");
        Some(match name {
            "GET" => bulk_or_nil(call.string().cloned()),
            "SET" => call.set(rest),
            "PSETEX" => call.psetex(rest),
            "GETSET" => call.getset(rest),
            "GETDEL" => bulk_or_nil(call.take().map(into_string)),
            "GETEX" => call.getex(rest),
            "APPEND" => call.append(rest),
            "SETRANGE" => call.setrange(rest),
            "SETBIT" => call.setbit(rest),
            "BITOP" => call.bitop_xor(rest),
            "INCR" => call.add(1),
            "INCRBY" => call.add(int(&rest[0])),
            "DECRBY" => call.add(-int(&rest[0])),
            "INCRBYFLOAT" => call.add_float(&rest[0]),
            "MSET" => call.mset(&args[1..]),
            "MSETNX" => call.msetnx(&args[1..]),
            "HGET" => bulk_or_nil(call.fields().and_then(|fields| fields.get(&rest[0])).map(|f| f.value.clone())),
            "HSET" => Reply::Integer(call.hset(rest)),
            "HMSET" => {
                call.hset(rest);
                ok()
            }
            "HSETNX" => call.hsetnx(rest),
            "HDEL" => call.hdel(rest),
            "HINCRBY" => call.hincrby(rest),
            "HINCRBYFLOAT" => call.hincrbyfloat(rest),
            "HCAS" => call.hcas(rest),
            "CLAIM" => call.claim(rest),
            "HSETEX" => call.hsetex(rest),
            "HGETDEL" => call.hgetdel(rest),
            "HPEXPIREAT" => call.expire_fields(Some(Deadline::at(int(&rest[0]))), &rest[1..]),
            "HEXPIRE" => call.expire_fields(Some(Deadline::within(sent_ms, int(&rest[0]) * 1000)), &rest[1..]),
            "HPERSIST" => call.expire_fields(None, rest),
            "HPEXPIRETIME" => return call.field_deadline_if_exact(rest),
            "ZSCORE" => {
                let score = call.scores().and_then(|scores| scores.get(&rest[0]));
                bulk_or_nil(score.map(|score| score.to_string().into_bytes()))
            }
            "ZADD" => call.zadd(rest),
            "ZINCRBY" => call.zincrby(rest),
            "ZREM" => call.zrem(rest),
            "ZPOPMIN" => call.zpopmin(rest),
            "ZREMRANGEBYRANK" => call.zremrangebyrank(rest),
            "ZRANGESTORE" => call.zrangestore(rest),
            "LINDEX" => bulk_or_nil(call.list().and_then(|list| list.first()).cloned()),
            "LPUSH" => call.push(rest, true),
            "RPUSH" => call.push(rest, false),
            "LPOP" => call.pop(rest, true),
            "RPOP" => call.pop(rest, false),
            "LMOVE" => call.lmove(rest),
            "LTRIM" => call.ltrim(rest),
            "LREM" => call.lrem(rest),
            "LSET" => call.lset(rest),
            "LINSERT" => call.linsert(rest),
            "CELL.GET" => bulk_or_nil(call.cell_value()),
            "CELL.INIT" => call.cell_init(rest),
            "CELL.SET" => call.cell_set(rest),
            "CELL.CAS" => call.cell_cas(rest),
            "CELL.DEL" => call.cell_del(rest),
            "CELL.FORK" => call.cell_fork(&rest[0]),
            "CELL.DROP" => call.cell_drop(),
            "RUN.APPEND" => call.run_append(rest),
            "REG.GET" => call.reg_get(),
            "REG.PUT" => call.reg_put(rest),
            "REG.INCRBY" => call.reg_incrby(rest),
            "REG.SEAL" => call.reg_seal(rest),
            "REG.SNAPSHOT" => call.reg_snapshot(rest),
            "REG.RESTORE" => call.reg_restore(rest),
            "SESSION.OPEN" => call.session_open(rest),
            "SESSION.PUSH" => call.session_push(rest),
            "SESSION.ACK" => call.session_ack(rest),
            "SESSION.CLOSE" => Reply::Integer(call.take().is_some().into()),
            "XGROUP" => call.xgroup_create(),
            "XADD" => call.xadd(rest),
            "XDEL" => call.xdel(rest),
            "XREADGROUP" => call.xreadgroup(args),
            "XACK" => call.xack(rest),
            "XCLAIM" => call.xclaim(rest),
            "IDX.CREATE" => {
                call.state.define(&args[1], indexes::definition(&args[2..]));
                ok()
            }
            "IDX.DROP" => {
                grouped::forget_limits(call.state, &args[1], None);
                Reply::Integer(call.take_at(DEFINITIONS, &args[1]).is_some().into())
            }
            "IDX.LIMIT" => {
                grouped::set_limits(call.state, &args[1], rest);
                ok()
            }
            "DEL" | "UNLINK" => call.del(&args[1..]),
            "PEXPIREAT" => call.expire(Some(Deadline::at(int(&rest[0])))),
            "EXPIRE" => call.expire(Some(Deadline::within(sent_ms, int(&rest[0]) * 1000))),
            "PERSIST" => call.expire(None),
            "PEXPIRETIME" => return call.deadline_if_exact(),
            "RENAME" => {
                call.rename(&rest[0]);
                ok()
            }
            "RENAMENX" => call.renamenx(rest),
            "COPY" => call.copy(rest),
            "MOVE" => call.move_to(int(&rest[0]) as u32),
            "SWAPDB" => call.swapdb(int(&args[1]) as u32, int(&rest[0]) as u32),
            "FLUSHDB" => {
                call.state.entries.retain(|place, _| place.db != db);
                ok()
            }
            other => panic!("the model does not know {other}"),
        })
    }
}

/// One command on its way through the model: where it acts and when it was sent.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) db: u32,
    pub(crate) key: &'a [u8],
    pub(crate) sent_ms: i64,
}

impl Call<'_> {
    /// The same call for a while, so that a part of it can be another.
    pub(crate) fn reborrow(&mut self) -> Call<'_> {
        Call { state: self.state, db: self.db, key: self.key, sent_ms: self.sent_ms }
    }

    pub(crate) fn entry(&self) -> Option<&Entry> {
        self.state.get(self.db, self.key)
    }

    pub(crate) fn entry_mut(&mut self) -> Option<&mut Entry> {
        self.state.entry_mut(self.db, self.key)
    }

    pub(crate) fn put(&mut self, entry: Entry) {
        self.state.entries.insert(Place::new(self.db, self.key), Arc::new(entry));
    }

    pub(crate) fn take(&mut self) -> Option<Entry> {
        self.take_at(self.db, self.key)
    }

    fn take_at(&mut self, db: u32, key: &[u8]) -> Option<Entry> {
        self.state.entries.remove(&Place::new(db, key)).map(Arc::unwrap_or_clone)
    }

    // Strings.

    fn string(&self) -> Option<&Vec<u8>> {
        self.entry().map(|entry| match &entry.value {
            Value::String(bytes) => bytes,
            _ => panic!("a string command on another type"),
        })
    }

    /// The string to be changed in place, empty if there was none. Its deadline stays.
    fn string_mut(&mut self) -> &mut Vec<u8> {
        if self.entry().is_none() {
            self.put(string_entry(Vec::new()));
        }
        match &mut self.entry_mut().expect("it was just put").value {
            Value::String(bytes) => bytes,
            _ => panic!("a string command on another type"),
        }
    }

    /// `SET key value [NX | XX] [KEEPTTL | PXAT ms | EX s]`
    fn set(&mut self, rest: &[Vec<u8>]) -> Reply {
        let mut deadline = None;
        let mut options = rest[1..].iter();
        while let Some(option) = options.next() {
            match option.as_slice() {
                b"NX" if self.entry().is_some() => return Reply::NilBulk,
                b"XX" if self.entry().is_none() => return Reply::NilBulk,
                b"NX" | b"XX" => {}
                b"KEEPTTL" => deadline = self.entry().and_then(|entry| entry.deadline),
                b"PXAT" => deadline = Some(Deadline::at(int(options.next().expect("PXAT ms")))),
                b"EX" => {
                    let seconds = int(options.next().expect("EX s"));
                    deadline = Some(Deadline::within(self.sent_ms, seconds * 1000));
                }
                other => panic!("the model does not know SET's {}", wire::quote(other)),
            }
        }
        self.put(Entry { deadline, ..string_entry(rest[0].clone()) });
        ok()
    }

    fn psetex(&mut self, rest: &[Vec<u8>]) -> Reply {
        let deadline = Some(Deadline::within(self.sent_ms, int(&rest[0])));
        self.put(Entry { deadline, ..string_entry(rest[1].clone()) });
        ok()
    }

    fn getset(&mut self, rest: &[Vec<u8>]) -> Reply {
        let old = self.take().map(into_string);
        self.put(string_entry(rest[0].clone()));
        bulk_or_nil(old)
    }

    /// `GETEX key PERSIST | PXAT ms`
    fn getex(&mut self, rest: &[Vec<u8>]) -> Reply {
        let value = self.string().cloned();
        if let Some(entry) = self.entry_mut() {
            entry.deadline = rest.get(1).map(|ms| Deadline::at(int(ms)));
        }
        bulk_or_nil(value)
    }

    fn append(&mut self, rest: &[Vec<u8>]) -> Reply {
        let string = self.string_mut();
        string.extend_from_slice(&rest[0]);
        length(string)
    }

    fn setrange(&mut self, rest: &[Vec<u8>]) -> Reply {
        let (start, bytes) = (int(&rest[0]) as usize, &rest[1]);
        let string = self.string_mut();
        let end = start + bytes.len();
        if string.len() < end {
            string.resize(end, 0);
        }
        string[start..end].copy_from_slice(bytes);
        length(string)
    }

    fn setbit(&mut self, rest: &[Vec<u8>]) -> Reply {
        let (offset, bit) = (int(&rest[0]) as usize, int(&rest[1]) as u8);
        let string = self.string_mut();
        if string.len() <= offset / 8 {
            string.resize(offset / 8 + 1, 0);
        }
        let mask = 0x80 >> (offset % 8);
        let byte = &mut string[offset / 8];
        let old = i64::from(*byte & mask != 0);
        *byte = if bit == 1 { *byte | mask } else { *byte & !mask };
        Reply::Integer(old)
    }

    /// `BITOP XOR destination a b`: here `self.key` is the word XOR.
    fn bitop_xor(&mut self, rest: &[Vec<u8>]) -> Reply {
        let [destination, sources @ ..] = rest else { panic!("BITOP XOR destination source…") };
        let mut result = Vec::new();
        for source in sources {
            let Some(entry) = self.state.get(self.db, source) else { continue };
            let bytes = into_string(entry.clone());
            if result.len() < bytes.len() {
                result.resize(bytes.len(), 0);
            }
            result.iter_mut().zip(&bytes).for_each(|(into, byte)| *into ^= byte);
        }
        let reply = length(&result);
        self.take_at(self.db, destination);
        if !result.is_empty() {
            self.state.entries.insert(Place::new(self.db, destination), Arc::new(string_entry(result)));
        }
        reply
    }

    fn add(&mut self, by: i64) -> Reply {
        let sum = self.string().map_or(0, |old| int(old)) + by;
        *self.string_mut() = sum.to_string().into_bytes();
        Reply::Integer(sum)
    }

    fn add_float(&mut self, by: &[u8]) -> Reply {
        let sum = add_quarters(self.string().map_or(b"0", |old| old), by);
        self.string_mut().clone_from(&sum);
        Reply::Bulk(sum)
    }

    fn mset(&mut self, pairs: &[Vec<u8>]) -> Reply {
        for pair in pairs.chunks(2) {
            self.state.entries.insert(Place::new(self.db, &pair[0]), Arc::new(string_entry(pair[1].clone())));
        }
        ok()
    }

    fn msetnx(&mut self, pairs: &[Vec<u8>]) -> Reply {
        if pairs.chunks(2).any(|pair| self.state.get(self.db, &pair[0]).is_some()) {
            return Reply::Integer(0);
        }
        self.mset(pairs);
        Reply::Integer(1)
    }

    // Hashes.

    fn fields(&self) -> Option<&BTreeMap<Vec<u8>, Field>> {
        self.entry().map(|entry| match &entry.value {
            Value::Hash(fields) => fields,
            _ => panic!("a hash command on another type"),
        })
    }

    fn field(&self, name: &[u8]) -> Option<&Field> {
        self.fields().and_then(|fields| fields.get(name))
    }

    /// The fields to be changed in place. An empty hash is left behind only until `drop_if_empty`.
    fn fields_mut(&mut self) -> &mut BTreeMap<Vec<u8>, Field> {
        if self.entry().is_none() {
            self.put(Entry { value: Value::Hash(BTreeMap::new()), deadline: None });
        }
        match &mut self.entry_mut().expect("it was just put").value {
            Value::Hash(fields) => fields,
            _ => panic!("a hash command on another type"),
        }
    }

    fn drop_if_empty(&mut self) {
        if self.fields().is_some_and(BTreeMap::is_empty) {
            self.take();
        }
    }

    /// Sets fields without deadlines and returns how many of them are new.
    fn hset(&mut self, pairs: &[Vec<u8>]) -> i64 {
        let fields = self.fields_mut();
        let before = fields.len();
        for pair in pairs.chunks(2) {
            fields.insert(pair[0].clone(), Field { value: pair[1].clone(), deadline: None });
        }
        (fields.len() - before) as i64
    }

    fn hsetnx(&mut self, rest: &[Vec<u8>]) -> Reply {
        if self.field(&rest[0]).is_some() {
            return Reply::Integer(0);
        }
        Reply::Integer(self.hset(rest))
    }

    fn hdel(&mut self, names: &[Vec<u8>]) -> Reply {
        let fields = self.fields_mut();
        let before = fields.len();
        fields.retain(|name, _| !names.contains(name));
        let gone = before - fields.len();
        self.drop_if_empty();
        Reply::Integer(gone as i64)
    }

    /// `CLAIM 1 index SET 1 field value [COUNTER field] [ORDER score] KEYS`: of the first record whose counter is a number or
    /// absent, and which limits allow.
    fn claim(&mut self, rest: &[Vec<u8>]) -> Reply {
        let (index, set) = (&rest[0], &rest[3..5]);
        let counter = (rest[5] == b"COUNTER").then(|| &rest[6]);
        let claimable = grouped::claimable(self.state, self.db, index, set, counter);
        let Some((key, _)) = claimable.into_iter().next() else { return Reply::Array(Vec::new()) };
        let mut record = Call { key: &key, ..self.reborrow() };
        let count = counter.map(|counter| record.field(counter).map_or(0, |count| int(&count.value)) + 1);
        record.hset(set);
        if let (Some(counter), Some(count)) = (counter, count) {
            record.hset(&command(&[counter, &count.to_string()]));
        }
        Reply::Array(vec![Reply::Bulk(key)])
    }

    /// `HCAS key field expected new`, or conditions and changes:
    /// `HCAS key [IF n field value …] [ABSENT n field …] [SET n field value …] [DEL n field …] [PXAT ms | PERSIST]`
    fn hcas(&mut self, rest: &[Vec<u8>]) -> Reply {
        if let [field, expected, new] = rest {
            return self.hcas(&command(&[&"IF", &"1", field, expected, &"SET", &"1", field, new]));
        }
        let (mut holds, mut set, mut del, mut deadline) = (true, Vec::new(), Vec::new(), None);
        let mut words = rest;
        while let Some((word, after)) = words.split_first() {
            let counted = |width: usize| after[1..].split_at(int(&after[0]) as usize * width);
            words = match word.as_slice() {
                b"IF" => {
                    let (pairs, after) = counted(2);
                    let has = |pair: &[Vec<u8>]| self.field(&pair[0]).is_some_and(|field| field.value == pair[1]);
                    holds &= pairs.chunks(2).all(has);
                    after
                }
                b"ABSENT" => {
                    let (names, after) = counted(1);
                    holds &= names.iter().all(|name| self.field(name).is_none());
                    after
                }
                b"SET" => {
                    let (pairs, after) = counted(2);
                    set.extend_from_slice(pairs);
                    after
                }
                b"DEL" => {
                    let (names, after) = counted(1);
                    del.extend_from_slice(names);
                    after
                }
                b"PXAT" => {
                    deadline = Some(Some(Deadline::at(int(&after[0]))));
                    &after[1..]
                }
                b"PERSIST" => {
                    deadline = Some(None);
                    after
                }
                other => panic!("the model does not know HCAS's {}", wire::quote(other)),
            };
        }
        if holds {
            self.hset(&set);
            self.hdel(&del);
            if let (Some(entry), Some(deadline)) = (self.entry_mut(), deadline) {
                entry.deadline = deadline;
            }
        }
        Reply::Integer(holds.into())
    }

    fn hincrby(&mut self, rest: &[Vec<u8>]) -> Reply {
        let sum = self.field(&rest[0]).map_or(0, |field| int(&field.value)) + int(&rest[1]);
        self.set_field_value(&rest[0], sum.to_string().into_bytes());
        Reply::Integer(sum)
    }

    fn hincrbyfloat(&mut self, rest: &[Vec<u8>]) -> Reply {
        let sum = add_quarters(self.field(&rest[0]).map_or(b"0", |field| &field.value), &rest[1]);
        self.set_field_value(&rest[0], sum.clone());
        Reply::Bulk(sum)
    }

    /// Changes a field's value and leaves its deadline.
    fn set_field_value(&mut self, name: &[u8], value: Vec<u8>) {
        let field = self.fields_mut().entry(name.to_vec());
        field.or_insert(Field { value: Vec::new(), deadline: None }).value = value;
    }

    /// `HSETEX key PXAT ms FIELDS n field value …`
    fn hsetex(&mut self, rest: &[Vec<u8>]) -> Reply {
        let deadline = Some(Deadline::at(int(&rest[1])));
        for pair in rest[4..].chunks(2) {
            self.fields_mut().insert(pair[0].clone(), Field { value: pair[1].clone(), deadline });
        }
        Reply::Integer(1)
    }

    /// `HGETDEL key FIELDS n field …`
    fn hgetdel(&mut self, rest: &[Vec<u8>]) -> Reply {
        let fields = self.fields_mut();
        let taken = rest[2..].iter().map(|name| bulk_or_nil(fields.remove(name).map(|field| field.value))).collect();
        self.drop_if_empty();
        Reply::Array(taken)
    }

    /// `… FIELDS n field …`; no deadline is HPERSIST.
    fn expire_fields(&mut self, deadline: Option<Deadline>, rest: &[Vec<u8>]) -> Reply {
        let names = &rest[2..];
        if self.entry().is_none() {
            return Reply::Array(names.iter().map(|_| Reply::Integer(-2)).collect());
        }
        let fields = self.fields_mut();
        let outcomes = names.iter().map(|name| match fields.get_mut(name) {
            None => Reply::Integer(-2),
            Some(field) if deadline.is_none() && field.deadline.is_none() => Reply::Integer(-1),
            Some(field) => {
                field.deadline = deadline;
                Reply::Integer(1)
            }
        });
        Reply::Array(outcomes.collect())
    }

    fn field_deadline_if_exact(&self, rest: &[Vec<u8>]) -> Option<Reply> {
        let ms = match self.field(&rest[2]) {
            None => -2,
            Some(field) => field.deadline.map_or(Some(-1), Deadline::exact_ms)?,
        };
        Some(Reply::Array(vec![Reply::Integer(ms)]))
    }

    // Keys.

    fn del(&mut self, keys: &[Vec<u8>]) -> Reply {
        Reply::Integer(keys.iter().filter(|key| self.take_at(self.db, key).is_some()).count() as i64)
    }

    /// No deadline is PERSIST.
    fn expire(&mut self, deadline: Option<Deadline>) -> Reply {
        match self.entry_mut() {
            Some(entry) if entry.deadline.is_some() || deadline.is_some() => {
                entry.deadline = deadline;
                Reply::Integer(1)
            }
            _ => Reply::Integer(0),
        }
    }

    fn deadline_if_exact(&self) -> Option<Reply> {
        let ms = match self.entry() {
            None => -2,
            Some(entry) => entry.deadline.map_or(Some(-1), Deadline::exact_ms)?,
        };
        Some(Reply::Integer(ms))
    }

    fn rename(&mut self, to: &[u8]) {
        let entry = self.take().expect("RENAME of a key that exists");
        self.state.entries.insert(Place::new(self.db, to), Arc::new(entry));
    }

    fn renamenx(&mut self, rest: &[Vec<u8>]) -> Reply {
        if self.state.get(self.db, &rest[0]).is_some() {
            return Reply::Integer(0);
        }
        self.rename(&rest[0]);
        Reply::Integer(1)
    }

    /// `COPY source destination DB n [REPLACE]`
    fn copy(&mut self, rest: &[Vec<u8>]) -> Reply {
        let to = Place::new(int(&rest[2]) as u32, &rest[0]);
        let taken = self.state.entries.contains_key(&to) && rest.len() < 4;
        match self.state.entries.get(&Place::new(self.db, self.key)).cloned() {
            Some(entry) if !taken => {
                self.state.entries.insert(to, entry);
                Reply::Integer(1)
            }
            _ => Reply::Integer(0),
        }
    }

    fn move_to(&mut self, db: u32) -> Reply {
        let to = Place::new(db, self.key);
        if self.entry().is_none() || self.state.entries.contains_key(&to) {
            return Reply::Integer(0);
        }
        let entry = self.take().expect("it was there");
        self.state.entries.insert(to, Arc::new(entry));
        Reply::Integer(1)
    }

    fn swapdb(&mut self, a: u32, b: u32) -> Reply {
        let swapped = std::mem::take(&mut self.state.entries).into_iter().map(|(mut place, entry)| {
            place.db = match place.db {
                db if db == a => b,
                db if db == b => a,
                db => db,
            };
            (place, entry)
        });
        self.state.entries = swapped.collect();
        ok()
    }
}

/// Sums of quarters are exact in every float format, and Rust prints them as Redis does.
fn add_quarters(a: &[u8], b: &[u8]) -> Vec<u8> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    (number(a).expect("a number") + number(b).expect("a number")).to_string().into_bytes()
}

fn string_entry(bytes: Vec<u8>) -> Entry {
    Entry { value: Value::String(bytes), deadline: None }
}

fn into_string(entry: Entry) -> Vec<u8> {
    match entry.value {
        Value::String(bytes) => bytes,
        _ => panic!("a string command on another type"),
    }
}

fn bulk_or_nil(bytes: Option<Vec<u8>>) -> Reply {
    bytes.map_or(Reply::NilBulk, Reply::Bulk)
}

fn length(bytes: &[u8]) -> Reply {
    Reply::Integer(bytes.len() as i64)
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}
