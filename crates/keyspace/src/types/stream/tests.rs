use super::*;
use crate::encoding::{BadEffect, Reader};
use crate::types::{Change as AnyChange, Lists, Shapes, Thresholds as AllThresholds};
use test_random::Random;

type OwnedFields = Vec<(Vec<u8>, Vec<u8>)>;

/// A stream as plainly as it can be.
#[derive(Default)]
struct Model {
    entries: BTreeMap<StreamId, OwnedFields>,
    last: StreamId,
    added: u64,
    max_deleted: StreamId,
}

fn entry_of(stream: Stream) -> Entry {
    Entry::with_object(b"s", Box::new(Object::Stream(stream)), None)
}

fn image(entry: &Entry) -> Vec<u8> {
    let mut out = Vec::new();
    (TYPE.write_image)(entry, &Shapes::default(), &mut out);
    out
}

fn checked(bytes: &[u8]) -> Result<(), BadEffect> {
    let mut reader = Reader::new(bytes);
    (TYPE.check_image)(&mut reader)?;
    if reader.is_empty() { Ok(()) } else { Err(BadEffect::OutOfRange) }
}

/// Makes a change as a journal would: written, read, made.
fn make(entry: &mut Entry, change: Change<'_>, thresholds: &AllThresholds) -> usize {
    let (mut bytes, mut lists) = (Vec::new(), Lists::default());
    AnyChange::from(change).encode(&mut bytes);
    let mut reader = Reader::new(&bytes);
    let read = AnyChange::decode(&mut reader, &mut lists).unwrap();
    assert_eq!(read, AnyChange::from(change));
    assert!(reader.is_empty());
    read.apply(entry, &mut Shapes::default(), thresholds).count
}

fn fields_of(entry: &EntryRef<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let fields: Vec<_> =
        entry.fields().map(|(name, value)| (name.bytes().into_owned(), value.bytes().into_owned())).collect();
    assert_eq!(fields.len(), entry.len());
    fields
}

fn random_fields(random: &mut Random) -> Vec<(Vec<u8>, Vec<u8>)> {
    let names: &[&str] =
        [&["a", "b"][..], &["a", "b"], &["a"], &["7", "long name of a field"], &["a", "c"]][random.below(5)];
    let value = |random: &mut Random| match random.below(6) {
        0 => (random.below(200) as i64 - 100).to_string().into_bytes(),
        1 => (random.next() as i64).to_string().into_bytes(),
        2 => vec![b'x'; random.below(40)],
        3 => vec![b'x'; 60 + random.below(200)],
        4 if random.below(20) == 0 => vec![b'x'; 4090 + random.below(10)],
        _ => b"value".to_vec(),
    };
    names.iter().map(|name| (name.as_bytes().to_vec(), value(random))).collect()
}

fn check_all(entry: &Entry, model: &Model, random: &mut Random) {
    let stream = stream(entry);
    assert_eq!(stream.len(), model.entries.len() as u64);
    assert_eq!(stream.first(), model.entries.keys().next().copied().unwrap_or_default());
    assert_eq!(stream.last_entry(), model.entries.keys().next_back().copied());
    assert_eq!((stream.last(), stream.added(), stream.max_deleted()), (model.last, model.added, model.max_deleted));
    let id =
        |random: &mut Random| StreamId::new(random.below(model.last.ms as usize + 2) as u64, random.below(4) as u64);
    let (mut from, mut to) = (id(random), id(random));
    if random.below(3) == 0 {
        (from, to) = (StreamId::MIN, StreamId::MAX);
    }
    let found: Vec<_> = stream.range(from, to).map(|entry| (entry.id, fields_of(&entry))).collect();
    let expected: Vec<_> = model
        .entries
        .iter()
        .filter(|(id, _)| **id >= from && **id <= to)
        .map(|(id, fields)| (*id, fields.clone()))
        .collect();
    assert_eq!(found, expected, "from {from} to {to}");
    let mut back: Vec<_> = stream.range_back(to, from).map(|entry| entry.id).collect();
    back.reverse();
    assert_eq!(back, expected.iter().map(|(id, _)| *id).collect::<Vec<_>>(), "from {to} down to {from}");
    assert_eq!(stream.get(from).is_some(), model.entries.contains_key(&from));
}

#[test]
fn a_stream_is_what_its_changes_say() {
    let mut random = Random::new();
    for _ in 0..60 {
        let limits =
            Thresholds { entries_max: [0, 3, 10, 100][random.below(4)], bytes_max: [0, 300, 4096][random.below(3)] };
        let thresholds = AllThresholds { stream: limits, ..AllThresholds::default() };
        let (mut entry, mut model) = (entry_of(Stream::default()), Model::default());
        for step in 0..400 {
            match random.below(12) {
                0 => {
                    let ids: Vec<StreamId> = (0..1 + random.below(3))
                        .map(|_| match model.entries.len() {
                            0 => StreamId::new(1, 1),
                            len => *model.entries.keys().nth(random.below(len)).unwrap(),
                        })
                        .collect();
                    let before = model.entries.len();
                    for id in &ids {
                        if model.entries.remove(id).is_some() {
                            model.max_deleted = model.max_deleted.max(*id);
                        }
                    }
                    assert_eq!(
                        make(&mut entry, Change::Delete { ids: &ids }, &thresholds),
                        before - model.entries.len()
                    );
                }
                1 => {
                    let count = random.below(model.entries.len() + 5) as u64;
                    let trimming = Trimming {
                        keep: Keep::Newest(count),
                        is_approximate: random.below(2) == 0,
                        limit: 0,
                        references: References::Keep,
                    };
                    if let Some(Trimmed { upto, count: gone }) = stream(&entry).trimmed(&trimming) {
                        assert_eq!(make(&mut entry, Change::Trim { upto }, &thresholds) as u64, gone);
                        model.entries.retain(|id, _| *id > upto);
                    }
                    if !trimming.is_approximate {
                        assert!(model.entries.len() as u64 <= count);
                    }
                }
                2 if random.below(4) == 0 => {
                    // Back to the last entry, behind which a deleted one may lie.
                    let last = model.entries.keys().next_back().copied().unwrap_or(StreamId::new(1, 0));
                    let change = Change::SetId { last, added: model.added, max_deleted: model.max_deleted };
                    assert_eq!(make(&mut entry, change, &thresholds), 1);
                    model.last = last;
                }
                _ => {
                    let step = [0, 0, 1, 1, 5, 20, 1000][random.below(7)];
                    let id = match step {
                        0 => StreamId::new(model.last.ms, model.last.seq + 1 + random.below(2) as u64),
                        _ => StreamId::new(model.last.ms + step, random.below(2) as u64),
                    };
                    let fields = random_fields(&mut random);
                    let borrowed: Vec<Field<'_>> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
                    assert_eq!(make(&mut entry, Change::Append { id, fields: &borrowed }, &thresholds), 1);
                    model.entries.insert(id, fields);
                    (model.last, model.added) = (id, model.added + 1);
                }
            }
            if step % 10 == 0 {
                check_all(&entry, &model, &mut random);
            }
        }
        check_all(&entry, &model, &mut random);
        // The image is the stream, and so is what Redis makes of it.
        let bytes = image(&entry);
        checked(&bytes).unwrap();
        let again = (TYPE.read_image)(b"s", Reader::new(&bytes), &mut Shapes::default(), None);
        assert_eq!(image(&again), bytes);
        check_all(&again, &model, &mut random);
        let formats::Value::Stream(redis) = to_redis(stream(&entry)) else { panic!("a stream is a stream") };
        let mut from_redis = Vec::new();
        image_of(&redis, &mut from_redis);
        assert_eq!(from_redis, bytes);
        for (chunk, node) in stream(&entry).log.chunks().zip(&redis.nodes) {
            assert_eq!(chunk.node_bytes(), node.bytes().len() as u64, "bytes of a node are counted as Redis does");
        }
    }
}

fn deliver(stream: &mut Entry, consumer: &'static [u8], ids: &[StreamId], at_ms: i64) {
    let thresholds = AllThresholds::default();
    let last = *ids.last().unwrap();
    let group = b"g";
    make(stream, Change::CreateConsumer { group, consumer, at_ms }, &thresholds);
    let change = Change::Deliver { group, consumer, last, entries_read: Some(2), at_ms, ids };
    make(stream, change, &thresholds);
}

fn with_group() -> Entry {
    let thresholds = AllThresholds::default();
    let mut entry = entry_of(Stream::default());
    for ms in 1..=9 {
        make(&mut entry, Change::Append { id: StreamId::new(ms, 0), fields: &[(b"f", b"v")] }, &thresholds);
    }
    let change = Change::CreateGroup { group: b"g", last: StreamId::MIN, entries_read: None };
    assert_eq!(make(&mut entry, change, &thresholds), 1);
    assert_eq!(make(&mut entry, change, &thresholds), 0, "there is one");
    deliver(&mut entry, b"c1", &[StreamId::new(1, 0), StreamId::new(2, 0)], 1000);
    deliver(&mut entry, b"c2", &[StreamId::new(3, 0)], 2000);
    entry
}

fn pending_of(entry: &Entry, consumer: &[u8]) -> Vec<u64> {
    stream(entry).group(b"g").unwrap().consumer(consumer).unwrap().pending(..).map(|id| id.ms).collect()
}

#[test]
fn an_entry_is_pending_for_one_consumer() {
    let thresholds = AllThresholds::default();
    let mut entry = with_group();
    let delivery = Delivery { id: StreamId::new(2, 0), delivered_ms: 2500, deliveries: 7 };
    let change = Change::Claim { group: b"g", consumer: b"c2", at_ms: 3000, deliveries: &[delivery] };
    assert_eq!(make(&mut entry, change, &thresholds), 1);
    assert_eq!((pending_of(&entry, b"c1"), pending_of(&entry, b"c2")), (vec![1], vec![2, 3]));
    let group = stream(&entry).group(b"g").unwrap();
    let pending = group.get(StreamId::new(2, 0)).unwrap();
    assert_eq!((pending.delivered_ms, pending.deliveries(), group.owner_of(pending)), (2500, 7, &b"c2"[..]));
    let times = |entry: &Entry| {
        let c2 = stream(entry).group(b"g").unwrap().consumer(b"c2").unwrap();
        (c2.seen_ms(), c2.active_ms())
    };
    assert_eq!(times(&entry), (3000, 3000));
    make(&mut entry, Change::See { group: b"g", consumer: b"c2", at_ms: 3500, deliveries: &[] }, &thresholds);
    assert_eq!(times(&entry), (3500, 3000), "it was seen and got nothing");
    make(&mut entry, Change::CreateConsumer { group: b"g", consumer: b"c9", at_ms: 4 }, &thresholds);
    assert_eq!(stream(&entry).group(b"g").unwrap().consumer(b"c9").unwrap().active_ms(), NEVER_ACTIVE);
    make(&mut entry, Change::DeleteConsumer { group: b"g", consumer: b"c9" }, &thresholds);

    let ids = [StreamId::new(2, 0), StreamId::new(2, 0), StreamId::new(8, 0)];
    assert_eq!(make(&mut entry, Change::Acknowledge { group: b"g", ids: &ids }, &thresholds), 1);
    assert_eq!((pending_of(&entry, b"c1"), pending_of(&entry, b"c2")), (vec![1], vec![3]));

    assert_eq!(make(&mut entry, Change::DeleteConsumer { group: b"g", consumer: b"c1" }, &thresholds), 1);
    let group = stream(&entry).group(b"g").unwrap();
    assert_eq!((group.len(), group.consumers().len()), (1, 1));
    // Its place is given to the next consumer, with nothing pending.
    deliver(&mut entry, b"c3", &[StreamId::new(4, 0)], 4000);
    assert_eq!((pending_of(&entry, b"c2"), pending_of(&entry, b"c3")), (vec![3], vec![4]));
    assert_eq!(make(&mut entry, Change::DestroyGroup { group: b"g" }, &thresholds), 1);
    assert_eq!(make(&mut entry, Change::Acknowledge { group: b"g", ids: &ids }, &thresholds), 0);
}

#[test]
fn groups_are_part_of_the_image() {
    let entry = with_group();
    let bytes = image(&entry);
    checked(&bytes).unwrap();
    let again = (TYPE.read_image)(b"s", Reader::new(&bytes), &mut Shapes::default(), None);
    assert_eq!(image(&again), bytes);
    assert_eq!((pending_of(&again, b"c1"), pending_of(&again, b"c2")), (vec![1, 2], vec![3]));
    let formats::Value::Stream(redis) = to_redis(stream(&entry)) else { panic!("a stream is a stream") };
    let mut from_redis = Vec::new();
    image_of(&redis, &mut from_redis);
    assert_eq!(from_redis, bytes);
}

#[test]
fn hostile_images_are_refused_and_do_no_harm() {
    let mut random = Random::new();
    let bytes = image(&with_group());
    for end in 0..bytes.len() {
        assert!(checked(&bytes[..end]).is_err(), "cut at {end}");
    }
    let thresholds = AllThresholds::default();
    for _ in 0..100_000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(damaged.len());
            damaged[at] = random.next() as u8;
        }
        if checked(&damaged).is_err() {
            continue;
        }
        let mut entry = (TYPE.read_image)(b"s", Reader::new(&damaged), &mut Shapes::default(), None);
        let read = stream(&entry);
        let live =
            read.range(StreamId::MIN, StreamId::MAX).map(|entry| fields_of(&entry)).collect::<Vec<_>>().len() as u64;
        assert_eq!((live, read.range_back(StreamId::MAX, StreamId::MIN).count() as u64), (read.len(), read.len()));
        let first = read.first();
        make(&mut entry, Change::Delete { ids: &[first] }, &thresholds);
        make(&mut entry, Change::Trim { upto: StreamId::MAX }, &thresholds);
        assert_eq!(stream(&entry).len(), 0);
    }
}

#[test]
fn a_lag_is_known_where_nothing_is_missing() {
    let thresholds = AllThresholds::default();
    let mut entry = with_group();
    let lag = |entry: &Entry| stream(entry).lag(stream(entry).group(b"g").unwrap());
    assert_eq!(lag(&entry), Some(7), "two of nine were read");
    make(&mut entry, Change::Delete { ids: &[StreamId::new(6, 0)] }, &thresholds);
    assert_eq!(lag(&entry), None, "an entry is missing ahead");
    let change = Change::SetGroup { group: b"g", last: StreamId::new(9, 0), entries_read: None };
    make(&mut entry, change, &thresholds);
    assert_eq!(lag(&entry), Some(0), "it has read up to the end");
    let read = |last, id| stream(&entry).entries_read(Some(2), StreamId::new(last, 0), StreamId::new(id, 0));
    assert_eq!(read(6, 7), None, "an entry is missing where it stands");
    assert_eq!(read(7, 8), Some(3), "nothing is missing behind it");
    assert_eq!(read(5, 7), None);
}

#[test]
fn a_radix_tree_has_as_many_nodes_as_redis_s() {
    assert_eq!(radix::nodes(&[]), 1);
    assert_eq!(radix::nodes(&[StreamId::new(1, 0)]), 2);
    // They part in the seventh byte: what is common, the branch, and for each a rest and an end.
    assert_eq!(radix::nodes(&[StreamId::new(1, 0), StreamId::new(256, 0)]), 6);
    assert_eq!(radix::nodes(&[StreamId::new(1, 0), StreamId::new(1, 1)]), 4);
}

#[test]
fn a_trim_passes_over_what_a_group_needs() {
    let limits = Thresholds { entries_max: 2, bytes_max: 4096 };
    let thresholds = AllThresholds { stream: limits, ..AllThresholds::default() };
    let mut entry = entry_of(Stream::default());
    let ids: Vec<StreamId> = (1..=5).map(|ms| StreamId::new(ms, 0)).collect();
    for id in &ids {
        make(&mut entry, Change::Append { id: *id, fields: &[(b"f", b"v")] }, &thresholds);
    }
    let removed = |entry: &Entry, keep, is_approximate, limit| {
        let trimming = Trimming { keep, is_approximate, limit, references: References::Acknowledged };
        stream(entry).trimmed_acknowledged(&trimming).iter().map(|id| id.ms).collect::<Vec<_>>()
    };
    assert_eq!(removed(&entry, Keep::Newest(2), false, 0), [1, 2, 3], "there is no group");
    make(&mut entry, Change::CreateGroup { group: b"g", last: StreamId::MIN, entries_read: None }, &thresholds);
    assert_eq!(removed(&entry, Keep::Newest(0), false, 0), [0u64; 0], "it has read none");
    deliver(&mut entry, b"c", &ids, 1000);
    assert_eq!(removed(&entry, Keep::Newest(0), false, 0), [0u64; 0], "it has acknowledged none");
    make(&mut entry, Change::Acknowledge { group: b"g", ids: &[ids[0], ids[1], ids[3]] }, &thresholds);
    assert_eq!(removed(&entry, Keep::From(StreamId::new(6, 0)), true, 0), [1, 2, 4]);
    assert_eq!(removed(&entry, Keep::From(StreamId::new(4, 0)), false, 0), [1, 2]);
    assert_eq!(removed(&entry, Keep::Newest(4), false, 0), [1]);
    assert_eq!(removed(&entry, Keep::Newest(0), true, 3), [1, 2], "no more than two nodes fit the limit");
    assert_eq!(removed(&entry, Keep::Newest(4), true, 0), [0u64; 0], "no whole node");
}

#[test]
fn released_entries_come_first_and_have_no_consumer() {
    let thresholds = AllThresholds::default();
    let mut entry = with_group();
    let id = |ms| StreamId::new(ms, 0);
    let released = |ms, deliveries| Delivery { id: id(ms), delivered_ms: 0, deliveries };
    let claimable = |entry: &Entry, upto_ms| {
        let group = stream(entry).group(b"g").unwrap();
        group.claimable(upto_ms).map(|(id, _)| id.ms).collect::<Vec<_>>()
    };
    make(&mut entry, Change::Order { group: b"g" }, &thresholds);
    assert_eq!(
        (claimable(&entry, 999), claimable(&entry, 1000), claimable(&entry, 5000)),
        (vec![], vec![1, 2], vec![1, 2, 3])
    );
    let change = Change::Release { group: b"g", deliveries: &[released(3, 1), released(1, DELIVERIES_MAX)] };
    assert_eq!(make(&mut entry, change, &thresholds), 2);
    assert_eq!((pending_of(&entry, b"c1"), pending_of(&entry, b"c2")), (vec![2], vec![]));
    assert_eq!((claimable(&entry, 0), claimable(&entry, 5000)), (vec![3, 1], vec![3, 1, 2]));
    // What is released again goes behind the others; what was not pending becomes so.
    let change = Change::Release { group: b"g", deliveries: &[released(3, 0), released(7, 5)] };
    make(&mut entry, change, &thresholds);
    assert_eq!(claimable(&entry, 5000), [1, 3, 7, 2]);
    let group = stream(&entry).group(b"g").unwrap();
    let of = |ms| group.get(id(ms)).map(|pending| (pending.deliveries(), group.owner_of(pending).to_vec()));
    assert_eq!((of(1), of(2), of(7)), (Some((DELIVERIES_MAX, vec![])), Some((1, b"c1".to_vec())), Some((5, vec![]))));
    assert_eq!((group.len(), group.released_len()), (4, 3));

    let bytes = image(&entry);
    checked(&bytes).unwrap();
    (0..bytes.len()).for_each(|end| assert!(checked(&bytes[..end]).is_err(), "cut at {end}"));
    let mut again = (TYPE.read_image)(b"s", Reader::new(&bytes), &mut Shapes::default(), None);
    assert_eq!(image(&again), bytes);
    make(&mut again, Change::Order { group: b"g" }, &thresholds);
    assert_eq!(claimable(&again, 5000), [1, 3, 7, 2]);
    let formats::Value::Own(own) = (TYPE.to_redis)(&entry, &Shapes::default(), 0) else { panic!("Redis has no place") };
    assert_eq!(own.image, bytes);

    // Claimed, acknowledged, and gone with their consumer.
    let claim = Delivery { id: id(3), delivered_ms: 7000, deliveries: 1 };
    make(&mut entry, Change::Claim { group: b"g", consumer: b"c2", at_ms: 7000, deliveries: &[claim] }, &thresholds);
    assert_eq!((claimable(&entry, 9000), pending_of(&entry, b"c2")), (vec![1, 7, 2, 3], vec![3]));
    assert_eq!(make(&mut entry, Change::Acknowledge { group: b"g", ids: &[id(1), id(2)] }, &thresholds), 2);
    make(&mut entry, Change::DeleteConsumer { group: b"g", consumer: b"c2" }, &thresholds);
    assert_eq!(claimable(&entry, 9000), [7]);
    assert_eq!(stream(&entry).group(b"g").unwrap().released_len(), 1);
}
