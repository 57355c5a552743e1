//! What the commands mean, over plain maps: the shortest program that says it, with no regard for speed. Knows only the
//! spellings that `Commands::sound` produces, and no nodes: what depends on how entries are packed is no part of it.
//!
//! It has no clock. What was delivered by a command is idle for no time; what was given another time is idle for long.

use std::collections::BTreeMap;

use wire::{Reply, split_args};

#[derive(Default)]
pub(crate) struct Model {
    streams: BTreeMap<Vec<u8>, Stream>,
}

#[derive(Clone, Default)]
struct Stream {
    entries: Entries,
    last: Id,
    max_deleted: Id,
    added: i64,
    groups: BTreeMap<Vec<u8>, Group>,
}

#[derive(Clone, Default)]
struct Group {
    last: Id,
    /// `None` when it is not known.
    read: Option<i64>,
    pending: BTreeMap<Id, Pending>,
    /// Whether each has ever got an entry.
    consumers: BTreeMap<Vec<u8>, bool>,
}

#[derive(Clone)]
struct Pending {
    consumer: Vec<u8>,
    delivered_ms: i64,
    deliveries: i64,
}

type Id = (u64, u64);
/// Fields and values, one behind the other.
type Entries = BTreeMap<Id, Vec<Vec<u8>>>;
type Args<'a> = &'a [&'a [u8]];
type Outcome = Result<Reply, String>;

/// Times that are compared as times of now, whatever they are.
const NOW_MS: i64 = i64::MAX;
const LONG_AGO_MS: i64 = i64::MAX - 1;

const MIN: Id = (0, 0);
const MAX: Id = (u64::MAX, u64::MAX);

impl Model {
    pub(crate) fn run(&mut self, command: &str) -> Reply {
        let args = split_args(command).expect("a command that can be split");
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let outcome = match text(args[0]) {
            "XGROUP" => self.group(text(args[1]), &args[2..]),
            "XINFO" => self.info(text(args[1]), &args[2..]),
            name => self.execute(name, &args[1..]),
        };
        outcome.unwrap_or_else(|error| Reply::Error(error.into()))
    }

    fn execute(&mut self, name: &str, args: Args) -> Outcome {
        let key = args[0];
        Ok(match (name, args) {
            ("XADD", [_, rest @ ..]) => self.add(key, rest)?,
            ("XTRIM", [_, rest @ ..]) => {
                let threshold = Threshold::take(rest).expect("a threshold").0;
                self.streams.get_mut(key).map_or(count(0), |stream| count(stream.trim(&threshold)))
            }
            ("XLEN", [_]) => count(self.streams.get(key).map_or(0, |stream| stream.entries.len())),
            ("XDEL", [_, ids @ ..]) => {
                let Some(stream) = self.streams.get_mut(key) else { return Ok(count(0)) };
                let gone: Vec<Id> =
                    ids.iter().map(|id| parsed(id, 0)).filter(|id| stream.entries.remove(id).is_some()).collect();
                stream.max_deleted = gone.iter().copied().fold(stream.max_deleted, Id::max);
                count(gone.len())
            }
            ("XRANGE" | "XREVRANGE", [_, first, second, more @ ..]) => {
                let (start, end) = if name == "XRANGE" { (first, second) } else { (second, first) };
                let (start, end) = interval(start, end)?;
                let most = option(more, "COUNT").map_or(usize::MAX, |count| number(count) as usize);
                let mut found = self.streams.get(key).map_or(Vec::new(), |stream| stream.range(start, end));
                if name == "XREVRANGE" {
                    found.reverse();
                }
                found.truncate(most);
                Reply::Array(found)
            }
            ("XREAD", _) => {
                let most = option(args, "COUNT").map_or(usize::MAX, |count| number(count) as usize);
                let mut found = Vec::new();
                for (key, after) in streams_of(args) {
                    let Some(stream) = self.streams.get(key) else { continue };
                    let mut entries = stream.range(next(parsed(after, 0)), MAX);
                    entries.truncate(most);
                    if !entries.is_empty() {
                        found.push(Reply::Array(vec![bulk(key), Reply::Array(entries)]));
                    }
                }
                array_or_nil(found)
            }
            ("XSETID", [_, id, more @ ..]) => self.set_id(key, parsed(id, 0), more)?,
            ("XREADGROUP", [_, group, consumer, more @ ..]) => self.read_group(group, consumer, more)?,
            ("XACK", [_, group, ids @ ..]) => {
                let Some(group) = self.streams.get_mut(key).and_then(|stream| stream.groups.get_mut(*group)) else {
                    return Ok(count(0));
                };
                count(ids.iter().filter(|id| group.pending.remove(&parsed(id, 0)).is_some()).count())
            }
            ("XPENDING", [_, group]) => self.existing(key, group)?.1.summary(),
            ("XPENDING", [_, group, rest @ ..]) => self.pending(key, group, rest)?,
            ("XCLAIM", [_, group, consumer, idle, rest @ ..]) => self.claim(key, group, consumer, idle, rest)?,
            ("XAUTOCLAIM", [_, group, consumer, idle, from, rest @ ..]) => {
                self.claim_next(key, group, consumer, idle, from, rest)?
            }
            ("DEL", [_]) => count(self.streams.remove(key).is_some().into()),
            ("TYPE", [_]) => {
                Reply::Simple(if self.streams.contains_key(key) { b"stream".into() } else { b"none".into() })
            }
            ("OBJECT", [_, key]) => match self.streams.contains_key(*key) {
                true => bulk(b"stream"),
                false => Reply::NilBulk,
            },
            ("RENAME", [_, to]) => {
                let stream = self.streams.remove(key).ok_or("ERR no such key")?;
                self.streams.insert(to.to_vec(), stream);
                ok()
            }
            ("COPY", [_, to, _]) => {
                if key == *to {
                    return Err("ERR source and destination objects are the same".into());
                }
                let stream = self.streams.get(key).cloned();
                let copied = stream.is_some();
                stream.map(|stream| self.streams.insert(to.to_vec(), stream));
                count(copied.into())
            }
            _ => panic!("the model does not know {name} with {} arguments", args.len()),
        })
    }

    fn add(&mut self, key: &[u8], mut rest: Args) -> Outcome {
        const NOT_ABOVE: &str = "ERR The ID specified in XADD is equal or smaller than the target stream top item";
        let makes_stream = rest[0] != b"NOMKSTREAM";
        if !makes_stream {
            rest = &rest[1..];
        }
        let mut threshold = None;
        if let Some((found, words)) = Threshold::take(rest) {
            (threshold, rest) = (Some(found), &rest[words..]);
        }
        let (asked, fields) = (text(rest[0]), &rest[1..]);
        if !asked.ends_with('*') && parsed(rest[0], 0) == MIN {
            return Err("ERR The ID specified in XADD must be greater than 0-0".into());
        }
        if !makes_stream && !self.streams.contains_key(key) {
            return Ok(Reply::NilBulk);
        }
        let last = self.streams.get(key).map_or(MIN, |stream| stream.last);
        let id = match asked.strip_suffix("-*") {
            Some(ms) => match ms.parse().expect("milliseconds") {
                ms if ms == last.0 => (ms, last.1 + 1),
                ms => (ms, 0),
            },
            None => parsed(rest[0], 0),
        };
        if id <= last {
            return Err(NOT_ABOVE.into());
        }
        let stream = self.streams.entry(key.to_vec()).or_default();
        stream.entries.insert(id, fields.iter().map(|field| field.to_vec()).collect());
        (stream.last, stream.added) = (id, stream.added + 1);
        threshold.map(|threshold| stream.trim(&threshold));
        Ok(id_reply(id))
    }

    fn set_id(&mut self, key: &[u8], id: Id, more: Args) -> Outcome {
        let added = option(more, "ENTRIESADDED").map(number);
        let max_deleted = option(more, "MAXDELETEDID").map_or(MIN, |id| parsed(id, 0));
        if id < max_deleted {
            return Err("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id".into());
        }
        let stream = self.streams.get_mut(key).ok_or("ERR no such key")?;
        if id < stream.max_deleted {
            return Err("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id".into());
        }
        if stream.entries.last_key_value().is_some_and(|(top, _)| id < *top) {
            return Err("ERR The ID specified in XSETID is smaller than the target stream top item".into());
        }
        if added.is_some_and(|added| stream.entries.len() as i64 > added) {
            let error = "ERR The entries_added specified in XSETID is smaller than the target stream length";
            return Err(error.into());
        }
        stream.last = id;
        stream.added = added.unwrap_or(stream.added);
        if max_deleted != MIN {
            stream.max_deleted = max_deleted;
        }
        Ok(ok())
    }

    fn group(&mut self, name: &str, args: Args) -> Outcome {
        let (key, group) = (args[0], args[1]);
        let read = option(args, "ENTRIESREAD").map(number).filter(|read| *read >= 0);
        if name == "CREATE" && args.contains(&&b"MKSTREAM"[..]) {
            self.streams.entry(key.to_vec()).or_default();
        }
        let stream = self.streams.get_mut(key).ok_or(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
             MKSTREAM option to create an empty stream automatically.",
        )?;
        let last = |stream: &Stream| if args[2] == b"$" { stream.last } else { parsed(args[2], 0) };
        if name == "CREATE" {
            if stream.groups.contains_key(group) {
                return Err("BUSYGROUP Consumer Group name already exists".into());
            }
            let new = Group { last: last(stream), read, ..Group::default() };
            stream.groups.insert(group.to_vec(), new);
            return Ok(ok());
        }
        if name == "DESTROY" {
            return Ok(count(stream.groups.remove(group).is_some().into()));
        }
        let last = (name == "SETID").then(|| last(stream));
        let found = stream.groups.get_mut(group).ok_or_else(|| no_group(key, group))?;
        Ok(match name {
            "SETID" => {
                (found.last, found.read) = (last.expect("an id"), read);
                ok()
            }
            "CREATECONSUMER" => {
                let is_new = !found.consumers.contains_key(args[2]);
                found.consumers.entry(args[2].to_vec()).or_default();
                count(is_new.into())
            }
            "DELCONSUMER" => {
                let before = found.pending.len();
                found.pending.retain(|_, pending| pending.consumer != args[2]);
                found.consumers.remove(args[2]);
                count(before - found.pending.len())
            }
            _ => panic!("the model does not know XGROUP {name}"),
        })
    }

    fn read_group(&mut self, group: &[u8], consumer: &[u8], more: Args) -> Outcome {
        let most = option(more, "COUNT").map_or(usize::MAX, |count| number(count) as usize);
        let no_ack = more.contains(&&b"NOACK"[..]);
        for (key, _) in streams_of(more) {
            if self.streams.get(key).is_none_or(|stream| !stream.groups.contains_key(group)) {
                return Err(format!(
                    "NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP option",
                    text(key),
                    text(group)
                ));
            }
        }
        let mut found = Vec::new();
        for (key, from) in streams_of(more) {
            let stream = self.streams.get_mut(key).expect("it was there");
            let entries = match from {
                b">" => stream.deliver(group, consumer, most, no_ack),
                after => Some(stream.deliver_again(group, consumer, next(parsed(after, 0)), most)),
            };
            found.extend(entries.map(|entries| Reply::Array(vec![bulk(key), Reply::Array(entries)])));
        }
        Ok(array_or_nil(found))
    }

    fn existing(&mut self, key: &[u8], group: &[u8]) -> Result<(&Entries, &mut Group), String> {
        let stream = self.streams.get_mut(key);
        let found = stream.and_then(|stream| Some((&stream.entries, stream.groups.get_mut(group)?)));
        found.ok_or_else(|| format!("NOGROUP No such key '{}' or consumer group '{}'", text(key), text(group)))
    }

    fn pending(&mut self, key: &[u8], group: &[u8], mut rest: Args) -> Outcome {
        let mut idle = 0;
        if rest[0] == b"IDLE" {
            (idle, rest) = (number(rest[1]), &rest[2..]);
        }
        let (start, end) = interval(rest[0], rest[1])?;
        let (_, group) = self.existing(key, group)?;
        let is_asked = |pending: &Pending| rest.get(3).is_none_or(|name| pending.consumer == *name);
        let found = group
            .pending
            .iter()
            .filter(|(id, pending)| start <= **id && **id <= end && is_asked(pending) && pending.is_idle(idle));
        let row = |(id, pending): (&Id, &Pending)| {
            let (consumer, deliveries) = (bulk(&pending.consumer), Reply::Integer(pending.deliveries));
            Reply::Array(vec![id_reply(*id), consumer, Reply::Integer(0), deliveries])
        };
        Ok(Reply::Array(found.take(number(rest[2]) as usize).map(row).collect()))
    }

    fn claim(&mut self, key: &[u8], group: &[u8], consumer: &[u8], idle: &[u8], rest: Args) -> Outcome {
        let options = rest.iter().position(|word| !word[0].is_ascii_digit()).unwrap_or(rest.len());
        let (ids, options) = rest.split_at(options);
        let has = |word: &str| options.contains(&word.as_bytes());
        let delivered_ms = match (option(options, "TIME"), option(options, "IDLE")) {
            (Some(time), _) => number(time),
            (None, Some(_)) => LONG_AGO_MS,
            (None, None) => NOW_MS,
        };
        let (entries, group) = self.existing(key, group)?;
        group.last = option(options, "LASTID").map_or(MIN, |id| parsed(id, 0)).max(group.last);
        group.consumers.entry(consumer.to_vec()).or_default();
        let mut claimed = Vec::new();
        for id in ids.iter().map(|id| parsed(id, 0)) {
            let Some(fields) = entries.get(&id) else {
                group.pending.remove(&id);
                continue;
            };
            let before = match group.pending.get(&id) {
                Some(pending) if !pending.is_idle(number(idle)) => continue,
                Some(pending) => pending.deliveries,
                None if has("FORCE") => 1,
                None => continue,
            };
            let deliveries = match option(options, "RETRYCOUNT") {
                Some(count) => number(count),
                None => before + i64::from(!has("JUSTID")),
            };
            group.consumers.insert(consumer.to_vec(), true);
            group.pending.insert(id, Pending { consumer: consumer.to_vec(), delivered_ms, deliveries });
            claimed.push(if has("JUSTID") { id_reply(id) } else { entry_reply(id, fields) });
        }
        Ok(Reply::Array(claimed))
    }

    fn claim_next(
        &mut self,
        key: &[u8],
        group: &[u8],
        consumer: &[u8],
        idle: &[u8],
        from: &[u8],
        rest: Args,
    ) -> Outcome {
        let (from, _) = interval(from, b"+")?;
        let mut left = option(rest, "COUNT").map_or(100, |count| number(count) as usize);
        let looked_at = 10 * left;
        let just_ids = rest.contains(&&b"JUSTID"[..]);
        let (entries, group) = self.existing(key, group)?;
        group.consumers.entry(consumer.to_vec()).or_default();
        let (mut claimed, mut gone, mut cursor) = (Vec::new(), Vec::new(), MIN);
        let ids: Vec<Id> = group.pending.range(from..).map(|(id, _)| *id).collect();
        for (number_of, id) in ids.into_iter().enumerate() {
            if left == 0 || number_of == looked_at {
                cursor = id;
                break;
            }
            let Some(fields) = entries.get(&id) else {
                group.pending.remove(&id);
                gone.push(id_reply(id));
                left -= 1;
                continue;
            };
            let pending = group.pending.get_mut(&id).expect("it is pending");
            if !pending.is_idle(number(idle)) {
                continue;
            }
            let deliveries = pending.deliveries + i64::from(!just_ids);
            *pending = Pending { consumer: consumer.to_vec(), delivered_ms: NOW_MS, deliveries };
            group.consumers.insert(consumer.to_vec(), true);
            claimed.push(if just_ids { id_reply(id) } else { entry_reply(id, fields) });
            left -= 1;
        }
        Ok(Reply::Array(vec![id_reply(cursor), Reply::Array(claimed), Reply::Array(gone)]))
    }

    fn info(&self, name: &str, args: Args) -> Outcome {
        let stream = self.streams.get(args[0]).ok_or("ERR no such key")?;
        Ok(match (name, args) {
            ("GROUPS", [_]) => {
                let row = |(name, group): (&Vec<u8>, &Group)| {
                    named(&[
                        ("name", bulk(name)),
                        ("consumers", count(group.consumers.len())),
                        ("pending", count(group.pending.len())),
                        ("last-delivered-id", id_reply(group.last)),
                        ("entries-read", group.read.map_or(Reply::NilBulk, Reply::Integer)),
                        ("lag", stream.lag(group).map_or(Reply::NilBulk, Reply::Integer)),
                    ])
                };
                Reply::Array(stream.groups.iter().map(row).collect())
            }
            ("CONSUMERS", [key, group]) => {
                let group = stream.groups.get(*group).ok_or_else(|| no_group(key, group))?;
                let row = |(name, is_active): (&Vec<u8>, &bool)| {
                    let pending = count(group.pending_of(name).count());
                    let inactive = Reply::Integer(if *is_active { 0 } else { -1 });
                    let idle = Reply::Integer(0);
                    named(&[("name", bulk(name)), ("pending", pending), ("idle", idle), ("inactive", inactive)])
                };
                Reply::Array(group.consumers.iter().map(row).collect())
            }
            ("STREAM", [_]) => {
                let mut pairs = stream.head();
                let entry = |found: Option<(&Id, &Vec<Vec<u8>>)>| {
                    found.map_or(Reply::NilBulk, |(id, fields)| entry_reply(*id, fields))
                };
                pairs.push(("groups", count(stream.groups.len())));
                pairs.push(("first-entry", entry(stream.entries.first_key_value())));
                pairs.push(("last-entry", entry(stream.entries.last_key_value())));
                named(&pairs)
            }
            ("STREAM", [_, _, _, most]) => {
                let most = if *most == b"0" { usize::MAX } else { number(most) as usize };
                let mut pairs = stream.head();
                let entries = stream.range(MIN, MAX).into_iter().take(most).collect();
                pairs.push(("entries", Reply::Array(entries)));
                let groups = stream.groups.iter().map(|(name, group)| stream.whole_group(name, group, most));
                pairs.push(("groups", Reply::Array(groups.collect())));
                named(&pairs)
            }
            _ => panic!("the model does not know XINFO {name}"),
        })
    }
}

enum Threshold {
    Len(usize),
    Id(Id),
}

impl Threshold {
    /// The threshold that these words begin with, and how many words it takes.
    fn take(words: Args) -> Option<(Threshold, usize)> {
        if words[0] != b"MAXLEN" && words[0] != b"MINID" {
            return None;
        }
        let at = if words[1] == b"=" { 2 } else { 1 };
        let threshold = match words[0] {
            b"MAXLEN" => Threshold::Len(number(words[at]) as usize),
            _ => Threshold::Id(parsed(words[at], 0)),
        };
        Some((threshold, at + 1))
    }
}

impl Stream {
    fn trim(&mut self, threshold: &Threshold) -> usize {
        let before = self.entries.len();
        match threshold {
            Threshold::Len(len) => {
                while self.entries.len() > *len {
                    self.entries.pop_first();
                }
            }
            Threshold::Id(id) => self.entries = self.entries.split_off(id),
        }
        before - self.entries.len()
    }

    fn range(&self, start: Id, end: Id) -> Vec<Reply> {
        let found = self.entries.iter().filter(|(id, _)| start <= **id && **id <= end);
        found.map(|(id, fields)| entry_reply(*id, fields)).collect()
    }

    /// Entries that no consumer of the group has got; `None` when there are none.
    fn deliver(&mut self, group: &[u8], consumer: &[u8], most: usize, no_ack: bool) -> Option<Vec<Reply>> {
        let mut found = self.groups.remove(group).expect("it was there");
        let ids: Vec<Id> = self.entries.keys().copied().filter(|id| *id > found.last).take(most).collect();
        for id in &ids {
            found.read = match found.read {
                Some(read) if found.last >= self.first() && !self.has_deleted_from(found.last) => Some(read + 1),
                _ if self.added > 0 => self.read_at(*id),
                read => read,
            };
            found.last = *id;
            if !no_ack {
                let pending = Pending { consumer: consumer.to_vec(), delivered_ms: NOW_MS, deliveries: 1 };
                found.pending.insert(*id, pending);
            }
        }
        *found.consumers.entry(consumer.to_vec()).or_default() |= !ids.is_empty() && !no_ack;
        self.groups.insert(group.to_vec(), found);
        (!ids.is_empty()).then(|| ids.iter().map(|id| entry_reply(*id, &self.entries[id])).collect())
    }

    /// What is pending for the consumer.
    fn deliver_again(&mut self, group: &[u8], consumer: &[u8], from: Id, most: usize) -> Vec<Reply> {
        let group = self.groups.get_mut(group).expect("it was there");
        group.consumers.entry(consumer.to_vec()).or_default();
        let mine = group.pending.range_mut(from..).filter(|(_, pending)| pending.consumer == consumer);
        let mut found = Vec::new();
        for (id, pending) in mine.take(most) {
            found.push(match self.entries.get(id) {
                Some(fields) => {
                    (pending.delivered_ms, pending.deliveries) = (NOW_MS, pending.deliveries + 1);
                    entry_reply(*id, fields)
                }
                None => Reply::Array(vec![id_reply(*id), Reply::NilArray]),
            });
        }
        found
    }

    /// True when an entry may have been deleted at this id or behind it.
    fn has_deleted_from(&self, id: Id) -> bool {
        let is_within = !self.entries.is_empty() && self.first() <= self.max_deleted;
        is_within && self.max_deleted != MIN && id <= self.max_deleted
    }

    fn first(&self) -> Id {
        self.entries.first_key_value().map_or(MIN, |(id, _)| *id)
    }

    /// How many entries were added up to an id, where that can be known.
    fn read_at(&self, id: Id) -> Option<i64> {
        let len = self.entries.len() as i64;
        if self.added == 0 {
            return Some(0);
        }
        if id == self.last || len == 0 && id < self.last {
            return Some(self.added);
        }
        if id > self.last || self.max_deleted != MIN && self.max_deleted >= self.first() {
            return None;
        }
        match id.cmp(&self.first()) {
            std::cmp::Ordering::Less => Some(self.added - len),
            std::cmp::Ordering::Equal => Some(self.added - len + 1),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// How many entries the group has not read.
    fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries.is_empty() {
            return Some(0);
        }
        if group.last < self.first() && self.max_deleted < self.first() {
            return Some(self.entries.len() as i64);
        }
        let read = group.read.filter(|_| !self.has_deleted_from(group.last));
        Some(self.added - read.or_else(|| self.read_at(group.last))?)
    }

    fn head(&self) -> Vec<(&'static str, Reply)> {
        vec![
            ("length", count(self.entries.len())),
            ("radix-tree-keys", Reply::Integer(0)),
            ("radix-tree-nodes", Reply::Integer(0)),
            ("last-generated-id", id_reply(self.last)),
            ("max-deleted-entry-id", id_reply(self.max_deleted)),
            ("entries-added", Reply::Integer(self.added)),
            ("recorded-first-entry-id", id_reply(self.first())),
        ]
    }

    fn whole_group(&self, name: &[u8], group: &Group, most: usize) -> Reply {
        let integers = |pending: &Pending| {
            [Reply::Integer(pending.delivered_ms), Reply::Integer(pending.deliveries)].into_iter().collect::<Vec<_>>()
        };
        let row = |(id, pending): (&Id, &Pending)| {
            Reply::Array([vec![id_reply(*id), bulk(&pending.consumer)], integers(pending)].concat())
        };
        let consumer = |(name, is_active): (&Vec<u8>, &bool)| {
            let row = |(id, pending): (&Id, &Pending)| Reply::Array([vec![id_reply(*id)], integers(pending)].concat());
            named(&[
                ("name", bulk(name)),
                ("seen-time", Reply::Integer(NOW_MS)),
                ("active-time", Reply::Integer(if *is_active { NOW_MS } else { -1 })),
                ("pel-count", count(group.pending_of(name).count())),
                ("pending", Reply::Array(group.pending_of(name).take(most).map(row).collect())),
            ])
        };
        named(&[
            ("name", bulk(name)),
            ("last-delivered-id", id_reply(group.last)),
            ("entries-read", group.read.map_or(Reply::NilBulk, Reply::Integer)),
            ("lag", self.lag(group).map_or(Reply::NilBulk, Reply::Integer)),
            ("pel-count", count(group.pending.len())),
            ("nacked-count", count(0)),
            ("pending", Reply::Array(group.pending.iter().take(most).map(row).collect())),
            ("consumers", Reply::Array(group.consumers.iter().map(consumer).collect())),
        ])
    }
}

impl Group {
    fn pending_of<'a>(&'a self, consumer: &'a [u8]) -> impl Iterator<Item = (&'a Id, &'a Pending)> {
        self.pending.iter().filter(move |(_, pending)| pending.consumer == consumer)
    }

    fn summary(&self) -> Reply {
        let (Some((first, _)), Some((last, _))) = (self.pending.first_key_value(), self.pending.last_key_value())
        else {
            return Reply::Array(vec![count(0), Reply::NilBulk, Reply::NilBulk, Reply::NilArray]);
        };
        let row = |name: &Vec<u8>| {
            let pending = self.pending_of(name).count();
            (pending > 0).then(|| Reply::Array(vec![bulk(name), bulk(pending.to_string().as_bytes())]))
        };
        let rows = Reply::Array(self.consumers.keys().filter_map(row).collect());
        Reply::Array(vec![count(self.pending.len()), id_reply(*first), id_reply(*last), rows])
    }
}

impl Pending {
    fn is_idle(&self, ms: i64) -> bool {
        ms == 0 || self.delivered_ms != NOW_MS
    }
}

/// Both ends included.
fn interval(start: &[u8], end: &[u8]) -> Result<(Id, Id), String> {
    let start = match start {
        [b'(', id @ ..] => next(parsed(id, 0)),
        id => parsed(id, 0),
    };
    let end = match end {
        [b'(', id @ ..] => match parsed(id, u64::MAX) {
            MIN => return Err("ERR invalid end ID for the interval".into()),
            (ms, 0) => (ms - 1, u64::MAX),
            (ms, seq) => (ms, seq - 1),
        },
        id => parsed(id, u64::MAX),
    };
    Ok((start, end))
}

/// An id; with that sequence number if it has none.
fn parsed(id: &[u8], missing: u64) -> Id {
    let part = |part: &str| part.parse().expect("a number");
    match text(id) {
        "-" => MIN,
        "+" => MAX,
        id => id.split_once('-').map_or_else(|| (part(id), missing), |(ms, seq)| (part(ms), part(seq))),
    }
}

fn next((ms, seq): Id) -> Id {
    seq.checked_add(1).map_or((ms + 1, 0), |seq| (ms, seq))
}

/// Each stream of XREAD and XREADGROUP with what stands for it behind them all.
fn streams_of<'a>(args: Args<'a>) -> Vec<(&'a [u8], &'a [u8])> {
    let at = args.iter().position(|word| *word == b"STREAMS").expect("STREAMS") + 1;
    let (keys, ids) = args[at..].split_at((args.len() - at) / 2);
    keys.iter().copied().zip(ids.iter().copied()).collect()
}

/// The word behind this one.
fn option<'a>(words: Args<'a>, name: &str) -> Option<&'a [u8]> {
    let at = words.iter().position(|word| *word == name.as_bytes())?;
    Some(words[at + 1])
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("plain words")
}

fn number(bytes: &[u8]) -> i64 {
    text(bytes).parse().expect("a number")
}

fn no_group(key: &[u8], group: &[u8]) -> String {
    format!("NOGROUP No such consumer group '{}' for key name '{}'", text(group), text(key))
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

fn bulk(bytes: &[u8]) -> Reply {
    Reply::Bulk(bytes.to_vec())
}

fn count(count: usize) -> Reply {
    Reply::Integer(count as i64)
}

fn id_reply((ms, seq): Id) -> Reply {
    bulk(format!("{ms}-{seq}").as_bytes())
}

fn entry_reply(id: Id, fields: &[Vec<u8>]) -> Reply {
    Reply::Array(vec![id_reply(id), Reply::Array(fields.iter().map(|field| bulk(field)).collect())])
}

fn array_or_nil(items: Vec<Reply>) -> Reply {
    if items.is_empty() { Reply::NilArray } else { Reply::Array(items) }
}

fn named(pairs: &[(&str, Reply)]) -> Reply {
    Reply::Array(pairs.iter().flat_map(|(name, reply)| [bulk(name.as_bytes()), reply.clone()]).collect())
}
