//! What the load's commands on streams do to the model. Each stream has one group; ids are `number-1`, one after the other.

use std::collections::BTreeMap;

use wire::Reply;

use crate::commands::Call;
use crate::model::{Entry, Value};

/// The one group of a stream.
pub(crate) const GROUP: &str = "g";

/// A stream and its group.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Stream {
    /// The value of each entry by the number of its id.
    pub(crate) entries: BTreeMap<u64, Vec<u8>>,
    /// The number of the last id.
    pub(crate) last: u64,
    /// Up to where the group has read.
    pub(crate) read: u64,
    /// The consumer of each entry that is delivered and not acknowledged.
    pub(crate) pending: BTreeMap<u64, Vec<u8>>,
}

/// The id of a number.
pub(crate) fn id(number: u64) -> Vec<u8> {
    format!("{number}-1").into_bytes()
}

/// The number of an id.
pub(crate) fn number(id: &[u8]) -> Option<u64> {
    std::str::from_utf8(id).ok()?.split_once('-')?.0.parse().ok()
}

fn entry(number: u64, value: &[u8]) -> Reply {
    let fields = Reply::Array(vec![Reply::Bulk(b"v".to_vec()), Reply::Bulk(value.to_vec())]);
    Reply::Array(vec![Reply::Bulk(id(number)), fields])
}

impl Call<'_> {
    fn stream(&mut self) -> &mut Stream {
        match self.entry_mut().map(|entry| &mut entry.value) {
            Some(Value::Stream(stream)) => stream,
            _ => panic!("a command for streams on something else"),
        }
    }

    /// `XGROUP CREATE key group 0 MKSTREAM`, of a key that is not there.
    pub(crate) fn xgroup_create(&mut self) -> Reply {
        self.put(Entry { value: Value::Stream(Stream::default()), deadline: None });
        Reply::Simple(b"OK".to_vec())
    }

    /// `XADD key [MAXLEN count] id v value`
    pub(crate) fn xadd(&mut self, rest: &[Vec<u8>]) -> Reply {
        let (id, value) = (&rest[rest.len() - 3], &rest[rest.len() - 1]);
        let number = number(id).expect("the load gives ids");
        let stream = self.stream();
        stream.entries.insert(number, value.clone());
        stream.last = number;
        if rest[0] == b"MAXLEN" {
            let kept: usize = String::from_utf8_lossy(&rest[1]).parse().expect("the load gives a number");
            while stream.entries.len() > kept {
                stream.entries.pop_first();
            }
        }
        Reply::Bulk(id.clone())
    }

    /// `XDEL key id`
    pub(crate) fn xdel(&mut self, rest: &[Vec<u8>]) -> Reply {
        let number = number(&rest[0]).expect("the load gives ids");
        Reply::Integer(self.stream().entries.remove(&number).is_some().into())
    }

    /// `XREADGROUP GROUP group consumer COUNT count STREAMS key >`
    pub(crate) fn xreadgroup(&mut self, args: &[Vec<u8>]) -> Reply {
        let count: usize = String::from_utf8_lossy(&args[5]).parse().expect("the load gives a number");
        let key = self.key.to_vec();
        let stream = self.stream();
        let read = stream.read + 1;
        let new: Vec<(u64, Vec<u8>)> =
            stream.entries.range(read..).take(count).map(|(number, value)| (*number, value.clone())).collect();
        let Some((last, _)) = new.last() else { return Reply::NilArray };
        stream.read = *last;
        for (number, _) in &new {
            stream.pending.insert(*number, args[3].clone());
        }
        let entries = new.iter().map(|(number, value)| entry(*number, value)).collect();
        Reply::Array(vec![Reply::Array(vec![Reply::Bulk(key), Reply::Array(entries)])])
    }

    /// `XACK key group id …`
    pub(crate) fn xack(&mut self, rest: &[Vec<u8>]) -> Reply {
        let stream = self.stream();
        let gone =
            rest[1..].iter().filter_map(|id| number(id)).filter(|number| stream.pending.remove(number).is_some());
        Reply::Integer(gone.count() as i64)
    }

    /// `XCLAIM key group consumer 0 id JUSTID`
    pub(crate) fn xclaim(&mut self, rest: &[Vec<u8>]) -> Reply {
        let number = number(&rest[3]).expect("the load gives ids");
        let stream = self.stream();
        if !stream.pending.contains_key(&number) {
            return Reply::Array(Vec::new());
        }
        // An entry that is deleted is pending no longer.
        if !stream.entries.contains_key(&number) {
            stream.pending.remove(&number);
            return Reply::Array(Vec::new());
        }
        stream.pending.insert(number, rest[1].clone());
        Reply::Array(vec![Reply::Bulk(id(number))])
    }
}

/// A stream from `XINFO STREAM key FULL COUNT 0`; `None` when the reply is no such thing.
pub(crate) fn observed(reply: &Reply) -> Option<Stream> {
    let mut stream = Stream { last: number(bytes(field(reply, "last-generated-id")?)?)?, ..Stream::default() };
    for entry in items(field(reply, "entries")?)? {
        let [id, fields] = items(entry)? else { return None };
        let [_, value] = items(fields)? else { return None };
        stream.entries.insert(number(bytes(id)?)?, bytes(value)?.to_vec());
    }
    let [group] = items(field(reply, "groups")?)? else { return None };
    stream.read = number(bytes(field(group, "last-delivered-id")?)?)?;
    for pending in items(field(group, "pending")?)? {
        let [id, consumer, ..] = items(pending)? else { return None };
        stream.pending.insert(number(bytes(id)?)?, bytes(consumer)?.to_vec());
    }
    // What is pending is said twice: for the group and for each consumer.
    let mut owned = BTreeMap::new();
    for consumer in items(field(group, "consumers")?)? {
        let name = bytes(field(consumer, "name")?)?;
        for pending in items(field(consumer, "pending")?)? {
            let [id, ..] = items(pending)? else { return None };
            owned.insert(number(bytes(id)?)?, name.to_vec());
        }
    }
    (owned == stream.pending).then_some(stream)
}

fn field<'r>(reply: &'r Reply, name: &str) -> Option<&'r Reply> {
    let pairs = items(reply)?.chunks(2);
    pairs
        .filter_map(|pair| <&[Reply; 2]>::try_from(pair).ok())
        .find(|[key, _]| bytes(key) == Some(name.as_bytes()))
        .map(|[_, value]| value)
}

fn items(reply: &Reply) -> Option<&[Reply]> {
    match reply {
        Reply::Array(items) => Some(items),
        _ => None,
    }
}

fn bytes(reply: &Reply) -> Option<&[u8]> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes),
        _ => None,
    }
}
