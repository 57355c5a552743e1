use super::*;
use crate::payload::{decode, encode};
use crate::rdb::Dialect;
use crate::values::Value;
use test_random::Random;

fn entry(
    id: EntryId,
    is_deleted: bool,
    shares_names: bool,
    fields: &[(&'static str, &'static str)],
) -> NodeEntry<'static> {
    let fields = fields.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into()));
    NodeEntry { id, is_deleted, shares_names, fields: fields.collect() }
}

fn node(first: EntryId, names: &[&str], entries: &[NodeEntry<'_>]) -> StreamNode {
    let deleted = entries.iter().filter(|entry| entry.is_deleted).count() as u64;
    let names = names.iter().map(|name| name.as_bytes());
    let mut writer = NodeWriter::new(first, 0, entries.len() as u64 - deleted, deleted, names);
    entries.iter().for_each(|entry| push(&mut writer, entry));
    writer.finish()
}

fn push(writer: &mut NodeWriter, entry: &NodeEntry<'_>) {
    writer.begin_entry(entry.id, entry.is_deleted, entry.shares_names, entry.fields.len());
    for (name, value) in &entry.fields {
        if !entry.shares_names {
            writer.text(name);
        }
        writer.text(value);
    }
    writer.end_entry();
}

fn sample() -> Stream {
    let pending = |id, deliveries| StreamPending { id, delivered_ms: 1_763_172_000_000, deliveries };
    let consumer = |name: &str, pending| StreamConsumer {
        name: name.into(),
        seen_ms: 1_763_172_000_001,
        active_ms: 1_763_172_000_000,
        pending,
    };
    let first = [
        entry((5, 0), false, true, &[("a", "1"), ("b", "x")]),
        entry((5, 1), true, true, &[("a", "2"), ("b", "y")]),
        entry((6, 0), false, false, &[("c", "-70000")]),
    ];
    Stream {
        nodes: vec![
            node((5, 0), &["a", "b"], &first),
            node((7, 0), &["a"], &[entry((7, 0), false, true, &[("a", "")])]),
        ],
        last: (9, 0),
        counts: Some(StreamCounts { first: (5, 0), max_deleted: (5, 1), added: 5 }),
        groups: vec![
            StreamGroup {
                name: b"g".to_vec(),
                last: (6, 0),
                entries_read: Some(3),
                consumers: vec![
                    consumer("c1", vec![pending((5, 0), 1), pending((6, 0), 7)]),
                    consumer("c2", vec![pending((5, 1), 2)]),
                ],
                released: vec![],
            },
            StreamGroup { name: b"h".to_vec(), last: (0, 0), entries_read: None, consumers: vec![], released: vec![] },
        ],
    }
}

#[test]
fn a_stream_reads_back_as_it_was_written() {
    for stream in [sample(), Stream { counts: sample().counts, ..Stream::default() }] {
        let value = Value::Stream(Box::new(stream));
        assert_eq!(decode(&encode(&value, true), 1 << 20), Ok(value));
    }
}

#[test]
fn a_node_says_what_is_in_it() {
    let nodes = sample().nodes;
    assert_eq!(nodes[0].names(), [b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(nodes[0].entries()[1], entry((5, 1), true, true, &[("a", "2"), ("b", "y")]));
    assert_eq!(nodes[0].entries()[2], entry((6, 0), false, false, &[("c", "-70000")]));
}

/// Changes a stream that is fine, and expects that it is refused.
#[track_caller]
fn refused(change: impl FnOnce(&mut Stream)) {
    let mut stream = sample();
    change(&mut stream);
    assert_eq!(decode(&encode_stream(&stream), 1 << 20), Err(BadPayload::Format));
}

#[test]
fn what_redis_never_writes_is_refused() {
    let live = |id| entry(id, false, true, &[("a", "1")]);
    refused(|stream| stream.nodes.swap(0, 1));
    refused(|stream| stream.nodes[1] = stream.nodes[0].clone());
    refused(|stream| stream.last = (6, 9));
    refused(|stream| stream.groups[1].name = b"g".to_vec());
    refused(|stream| stream.groups[0].consumers[1].name = b"c1".to_vec());
    refused(|stream| stream.nodes[1] = node((7, 0), &["a"], &[live((7, 1)), live((7, 0))]));
    refused(|stream| stream.nodes[1] = node((7, 0), &["a"], &[live((6, 9))]));
    refused(|stream| stream.nodes[1] = node((7, 0), &["a"], &[]));
    refused(|stream| {
        let mut writer = NodeWriter::new((7, 0), 0, 2, 0, [&b"a"[..]].into_iter());
        push(&mut writer, &live((7, 0)));
        stream.nodes[1] = writer.finish();
    });
    refused(|stream| {
        let twice = stream.groups[0].consumers[0].pending[0];
        stream.groups[0].consumers[1].pending.push(twice);
    });
}

#[test]
fn older_and_newer_forms_are_read() {
    let payload = encode_stream(&sample());
    let body = &payload[1..payload.len() - 10];
    let mut reader = Reader { source: body, dialect: Dialect::Redis, bytes_left: 1 << 20 };
    assert_eq!(reader.stream(kind::STREAM_ACTIVE), Ok(sample()));
    // Of Redis 7.0: a consumer was active when it was seen.
    let payload = encode_as(kind::STREAM, VERSION_PLAIN, &sample());
    let mut reader = Reader { source: &payload[1..payload.len() - 10], dialect: Dialect::Redis, bytes_left: 1 << 20 };
    let stream = reader.stream(kind::STREAM).unwrap();
    assert!(stream.groups[0].consumers.iter().all(|consumer| consumer.active_ms == consumer.seen_ms));
    // Of Redis 5: without the counts. An empty stream with one group, which has a consumer.
    let old = b"\0\0\x07\0\x01\x01g\x07\0\0\x01\x01c\x01\0\0\0\0\0\0\0\0";
    let mut reader = Reader { source: &old[..], dialect: Dialect::Redis, bytes_left: 0 };
    let stream = reader.stream(kind::STREAM_FIRST).unwrap();
    assert_eq!((stream.last, stream.counts, stream.groups[0].entries_read), ((7, 0), None, None));
    assert_eq!(stream.groups[0].consumers[0].seen_ms, 1);
    // Of Redis 7.2: with one time more for each consumer.
    let new = b"\0\0\x07\0\0\0\0\0\x03\x01\x01g\x07\0\x02\0\x01\x01c\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0";
    let mut reader = Reader { source: &new[..], dialect: Dialect::Redis, bytes_left: 0 };
    let stream = reader.stream(kind::STREAM_ACTIVE).unwrap();
    assert!(reader.source.is_empty());
    assert_eq!((stream.counts.unwrap().added, stream.groups[0].entries_read), (3, Some(2)));
    let consumer = &stream.groups[0].consumers[0];
    assert_eq!((consumer.seen_ms, consumer.active_ms), (1, 2));
}

#[test]
fn commands_make_the_stream() {
    let emitted = |stream: &Stream, payload_bytes_max: usize| {
        let mut requests: Vec<Vec<Vec<u8>>> = Vec::new();
        let mut emit = |args: &[&[u8]]| {
            requests.push(args.iter().map(|arg| arg.to_vec()).collect());
            Ok::<(), ()>(())
        };
        let left_out = commands(b"s", stream, payload_bytes_max, &mut emit).unwrap();
        (left_out, requests)
    };
    // One of its pending entries is of an entry that was deleted: only a payload has that.
    let payload = encode_as(kind::STREAM, VERSION_PLAIN, &sample());
    let restore: Vec<Vec<u8>> = [b"RESTORE", &b"s"[..], b"0", &payload, b"REPLACE"].map(<[u8]>::to_vec).into();
    assert_eq!(emitted(&sample(), payload.len()), (0, vec![restore]));
    let (left_out, requests) = emitted(&sample(), payload.len() - 1);
    assert_eq!(left_out, 1);
    let lines_of = |requests: &[Vec<Vec<u8>>]| -> Vec<String> {
        let line =
            |args: &Vec<Vec<u8>>| args.iter().map(|arg| String::from_utf8_lossy(arg)).collect::<Vec<_>>().join(" ");
        requests.iter().map(line).collect()
    };
    assert_eq!(
        lines_of(&requests),
        [
            "XADD s 5-0 a 1 b x",
            "XADD s 6-0 c -70000",
            "XADD s 7-0 a ",
            "XSETID s 9-0 ENTRIESADDED 5 MAXDELETEDID 5-1",
            "XGROUP CREATE s g 6-0 ENTRIESREAD 3",
            "XGROUP CREATECONSUMER s g c1",
            "XCLAIM s g c1 0 5-0 TIME 1763172000000 RETRYCOUNT 1 JUSTID FORCE",
            "XCLAIM s g c1 0 6-0 TIME 1763172000000 RETRYCOUNT 7 JUSTID FORCE",
            "XGROUP CREATECONSUMER s g c2",
            "XCLAIM s g c2 0 5-1 TIME 1763172000000 RETRYCOUNT 2 JUSTID FORCE",
            "XGROUP CREATE s h 0-0 ENTRIESREAD -1",
        ]
    );
    // Released entries are at a consumer until XNACK takes them from it, in the order in which they were released.
    let mut released = sample();
    released.groups[0].consumers.iter_mut().for_each(|consumer| consumer.pending.clear());
    let pending = |id, deliveries| StreamPending { id, delivered_ms: 0, deliveries };
    released.groups[0].released = vec![pending((7, 0), 2), pending((5, 0), 2), pending((6, 0), 9)];
    released.groups[1].released = vec![pending((5, 0), 0)];
    let (left_out, requests) = emitted(&released, usize::MAX);
    assert_eq!((left_out, lines_of(&requests).len()), (0, 16));
    assert_eq!(
        lines_of(&requests)[5..],
        [
            "XGROUP CREATECONSUMER s g c1",
            "XCLAIM s g c1 0 5-0 TIME 0 RETRYCOUNT 2 JUSTID FORCE",
            "XCLAIM s g c1 0 6-0 TIME 0 RETRYCOUNT 9 JUSTID FORCE",
            "XCLAIM s g c1 0 7-0 TIME 0 RETRYCOUNT 2 JUSTID FORCE",
            "XGROUP CREATECONSUMER s g c2",
            "XGROUP CREATE s h 0-0 ENTRIESREAD -1",
            "XGROUP CREATECONSUMER s h released",
            "XCLAIM s h released 0 5-0 TIME 0 RETRYCOUNT 0 JUSTID FORCE",
            "XNACK s g SILENT IDS 2 7-0 5-0 RETRYCOUNT 2",
            "XNACK s g SILENT IDS 1 6-0 RETRYCOUNT 9",
            "XNACK s h SILENT IDS 1 5-0 RETRYCOUNT 0",
        ]
    );
    // One of an entry that was deleted comes by a payload too, and is released after that.
    released.groups[1].released.push(pending((5, 1), 3));
    let (left_out, requests) = emitted(&released, usize::MAX);
    assert_eq!((left_out, requests.len(), &requests[0][0][..]), (0, 5, &b"RESTORE"[..]));
    let Ok(Value::Stream(restored)) = decode(&requests[0][3], 1 << 20) else { panic!("a stream is restored") };
    assert_eq!(restored.groups[1].consumers[0].pending.len(), 2);
    let mut whole = sample();
    whole.groups[0].consumers[1].pending.clear();
    assert_eq!(emitted(&whole, usize::MAX).0, 0);
    assert_eq!(emitted(&whole, usize::MAX).1[0][0], b"XADD");
}

#[test]
fn no_bytes_panic() {
    let mut random = Random::new();
    let payload = encode_stream(&sample());
    let body = &payload[1..payload.len() - 10];
    for _ in 0..50_000 {
        let mut bytes = body.to_vec();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.next() as u8;
        }
        for kind in KINDS {
            let mut reader = Reader { source: &bytes[..], dialect: Dialect::Redis, bytes_left: 1 << 20 };
            if let Ok(stream) = reader.stream(kind) {
                stream.nodes.iter().for_each(|node| assert!(!node.entries().is_empty()));
            }
        }
    }
}
