//! Pins what journals and snapshots on disk hold: every tag and the bytes of every effect. A row that fails says that
//! this version could not read what another one has written; the cure is a new tag, not a new row.
//! docs/effect-format.md shows the layout.

use keyspace::effects::codec::{Decoder, encode, tag};
use keyspace::snapshot::Placement;
use keyspace::types::cell::{self, Version};
use keyspace::types::list::{self, Side};
use keyspace::types::register::{self, Current, Operation};
use keyspace::types::run::{self, EVENT_FIELDS, EventId, NewEvent, PackedKey, put_attributes};
use keyspace::types::session::{self, RequestDigest};
use keyspace::types::stream::{self, Delivery, Remembered, Retention, StreamId};
use keyspace::types::{hash, set, sorted_set, string};
use keyspace::{BadEffect, Cause, Change, Definable, Effect, Image, Key, Keyspace, Scalar, Thresholds, ValueType};
use std::collections::BTreeSet;
use std::path::Path;

/// A moment in 2025, in unix milliseconds.
const THEN: Option<u64> = Some(1_763_172_000_000);

type Row = (usize, Effect<'static>, &'static str);

/// Every effect with its bytes, in the order of the tags. IMPORTANT: rows are added, never changed.
fn pinned() -> Vec<Row> {
    [
        changes_of_strings(),
        changes_of_hashes(),
        changes_of_sorted_sets(),
        changes_of_sets(),
        changes_of_cells(),
        changes_of_runs(),
        changes_of_registers(),
        changes_of_sessions(),
        changes_of_lists(),
        changes_of_streams(),
        images(),
        effects_on_keys(),
    ]
    .concat()
}

fn changes_of_strings() -> Vec<Row> {
    use string::Change::{Set, Splice, Write};
    let text = |bytes| Scalar::Bytes(bytes);
    let change = |name, change: string::Change<'static>| Effect::change(Key::new(name), change);
    vec![
        (0, change(b"k", Set { value: text(b"v"), deadline: None }), "0100 016b 0101 00 00 0176"),
        (3, change(b"k", Set { value: Scalar::Number(-2), deadline: THEN }), "0103 016b 0101 81c2f6a9a833 01 03"),
        (0, change(b"", Set { value: Scalar::Number(300), deadline: None }), "0100 00 0101 00 01 d804"),
        (1, change(b"k", Write { offset: 300, bytes: b"xyz" }), "0101 016b 0102 ac02 0378797a"),
        (1, change(b"k", Splice { offset: 300, removed: 2, bytes: b"xyz" }), "0101 016b 0103 ac02 02 0378797a"),
    ]
}

fn changes_of_hashes() -> Vec<Row> {
    use hash::Change::{Deadline, Delete, Set};
    let (deleted, expired) = (Cause::Deleted, Cause::Expired);
    let change = |change: hash::Change<'static>| Effect::change(Key::new(b"h"), change);
    vec![
        (
            0,
            change(Set { fields: &[(b"f", b"v"), (b"g", b"10")], keep_deadlines: false }),
            "0100 0168 0201 02 0166 0176 0167 023130",
        ),
        (0, change(Set { fields: &[(b"f", b"")], keep_deadlines: true }), "0100 0168 0202 01 0166 00"),
        (0, change(Delete { fields: &[b"f", b"g"], cause: deleted }), "0100 0168 0203 02 0166 0167"),
        (0, change(Delete { fields: &[b"f"], cause: expired }), "0100 0168 0204 01 0166"),
        (0, change(Deadline { field: b"f", deadline: THEN }), "0100 0168 0205 0166 81c2f6a9a833"),
        (0, change(Deadline { field: b"f", deadline: None }), "0100 0168 0205 0166 00"),
    ]
}

fn changes_of_sorted_sets() -> Vec<Row> {
    use sorted_set::Change::{Add, Remove};
    let change = |change: sorted_set::Change<'static>| Effect::change(Key::new(b"z"), change);
    vec![
        (
            0,
            change(Add { members: &[(1.0, b"a"), (-2.0, b"b"), (0.5, b"")] }),
            "0100 017a 0301 03 01 02 0161 01 03 0162 00 000000000000e03f 00",
        ),
        (
            0,
            change(Add { members: &[(-0.0, b"a"), (f64::INFINITY, b"b"), (1e300, b"c")] }),
            "0100 017a 0301 03 00 0000000000000080 0161 00 000000000000f07f 0162 00 9c7500883ce4377e 0163",
        ),
        (4, change(Remove { members: &[b"a", b"b"] }), "0104 017a 0302 02 0161 0162"),
    ]
}

fn changes_of_sets() -> Vec<Row> {
    use set::Change::{Add, Rebuild, Remove};
    let change = |change: set::Change<'static>| Effect::change(Key::new(b"s"), change);
    vec![
        (0, change(Add { members: &[b"a", b"", b"12"] }), "0100 0173 0401 03 0161 00 023132"),
        (4, change(Remove { members: &[b"a", b"b"] }), "0104 0173 0402 02 0161 0162"),
        (0, change(Rebuild), "0100 0173 0403"),
    ]
}

fn changes_of_lists() -> Vec<Row> {
    use list::Change::{Insert, Pop, Push, Remove, Set};
    let change = |change: list::Change<'static>| Effect::change(Key::new(b"l"), change);
    let (left, right) = (Side::Left, Side::Right);
    vec![
        (0, change(Push { side: left, elements: &[b"a", b"", b"12"] }), "0100 016c 0901 03 0161 00 023132"),
        (4, change(Push { side: right, elements: &[b"a"] }), "0104 016c 0902 01 0161"),
        (0, change(Pop { side: left, count: 1 }), "0100 016c 0903 01"),
        (0, change(Pop { side: right, count: 300 }), "0100 016c 0904 ac02"),
        (0, change(Set { index: 300, element: b"v" }), "0100 016c 0905 ac02 0176"),
        (0, change(Insert { index: 0, element: b"" }), "0100 016c 0906 00 00"),
        (0, change(Remove { side: left, count: 2, element: b"v" }), "0100 016c 0907 02 0176"),
        (0, change(Remove { side: right, count: 1, element: b"v" }), "0100 016c 0908 01 0176"),
    ]
}

fn changes_of_cells() -> Vec<Row> {
    use cell::Change::Write;
    let write = |number, older, time_us, value| {
        let version = Version { number, time_us, value };
        Effect::change(Key::new(b"c"), Write { version, older })
    };
    vec![
        (0, write(1, 0, 1_763_172_000_000_000, b"v"), "0100 0163 0501 00 00 80d0f3c587f39003 0176"),
        (3, write(300, 127, 5, b""), "0103 0163 0501 ab02 7f 05 00"),
        (
            0,
            write(i64::MAX as u64, i64::MAX as u64 - 1, i64::MAX as u64, b"v"),
            "0100 0163 0501 feffffffffffffff7f feffffffffffffff7f ffffffffffffffff7f 0176",
        ),
    ]
}

/// The bytes of three events: the smallest, one whose parts are all there, and one in which all that can be is packed.
const SMALL_EVENT: &[u8] = b"\x00\x01k\x00\x01t";
const WHOLE_EVENT: &[u8] = b"\xf8\x1f\x01k\x02id\x01t\x01a\x01b\x01c\x01d\x01e\x01f\x01g\x01h\x01idata";
const PACKED_EVENT: &[u8] =
    b"\x07KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK\x01\x23\x45\x67\x89\xab\x4d\xef\x81\x23\x45\x67\x89\xab\xcd\xef\x0bd";

fn changes_of_runs() -> Vec<Row> {
    let append =
        |number, time_ms, event| Effect::change(Key::new(b"r"), run::Change::Append { number, time_ms, event });
    vec![
        (0, append(1, 1_763_172_000_000, SMALL_EVENT), "0100 0172 0601 00 80c2f6a9a833 06 00 016b 00 0174"),
        (
            3,
            append(300, 5, WHOLE_EVENT),
            "0103 0172 0601 ab02 05 1f f81f 016b 026964 0174 0161 0162 0163 0164 0165 0166 0167 0168 0169 64617461",
        ),
        (
            0,
            append(u32::MAX.into(), i64::MAX as u64, PACKED_EVENT),
            "0100 0172 0601 feffffff0f ffffffffffffffff7f 33 07 \
             4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b 0123456789ab4def8123456789abcdef 0b 64",
        ),
    ]
}

fn changes_of_registers() -> Vec<Row> {
    use register::Change::{Buffer, Order, Seal, Set};
    use register::Order::{OneByOne, UntilSealed};
    let change = |change: register::Change<'static>| Effect::change(Key::new(b"g"), change);
    let version = |epoch, round| register::Version { epoch, round };
    let current = |epoch, round, added, value| Set(Current { version: version(epoch, round), added, value });
    let buffer = |epoch, round, order, operation| Buffer { version: version(epoch, round), order, operation };
    vec![
        (0, change(current(0, 300, None, b"v")), "0100 0167 0701 00 ac02 0176"),
        (3, change(current(7, 0, None, b"")), "0103 0167 0701 01 07 00 00"),
        (0, change(current(0, 5, Some(-2), b"40")), "0100 0167 0701 02 05 03 023430"),
        (
            0,
            change(current(u64::MAX, u64::MAX, Some(i64::MIN), b"v")),
            "0100 0167 0701 03 ffffffffffffffffff01 ffffffffffffffffff01 ffffffffffffffffff01 0176",
        ),
        (0, change(buffer(0, 300, OneByOne, Operation::Put(b"v"))), "0100 0167 0702 ac02 00 0176"),
        (4, change(buffer(0, 1, OneByOne, Operation::Add(-2))), "0104 0167 0702 01 01 03"),
        (0, change(Seal { below: version(0, 300) }), "0100 0167 0703 ac02"),
        (0, change(Order(OneByOne)), "0100 0167 0704 01"),
        (0, change(Order(UntilSealed)), "0100 0167 0704 02"),
        (0, change(buffer(7, 300, UntilSealed, Operation::Put(b"v"))), "0100 0167 0705 07 ac02 00 0176"),
        (0, change(buffer(0, 0, UntilSealed, Operation::Add(-2))), "0100 0167 0705 00 00 01 03"),
        (0, change(Seal { below: version(7, 0) }), "0100 0167 0706 07 00"),
    ]
}

fn changes_of_streams() -> Vec<Row> {
    use stream::Change::*;
    let change = |change: stream::Change<'static>| Effect::change(Key::new(b"s"), change);
    let (group, consumer, last, at_ms): (&[u8], &[u8], _, _) = (b"g", b"c", StreamId::new(5, 1), 5);
    let deliveries = const { &[Delivery { id: StreamId::new(5, 1), delivered_ms: 4, deliveries: 7 }] };
    let retention = Retention { duration_ms: 300, ids_max: 7 };
    let remembered = Remembered { producer: b"p", id: b"i", entry: last, at_ms: 300 };
    let released = const { &[Delivery { id: StreamId::new(5, 1), delivered_ms: 0, deliveries: 7 }] };
    let deliver =
        Deliver { group, consumer, last, entries_read: Some(2), at_ms, ids: const { &[StreamId::new(5, 1)] } };
    vec![
        (
            0,
            change(Append { id: last, fields: &[(b"f", b"v"), (b"g", b"10")] }),
            "0100 0173 0a01 05 01 02 0166 0176 0167 023130",
        ),
        (0, change(Trim { upto: StreamId::new(300, 0) }), "0100 0173 0a02 ac02 00"),
        (
            0,
            change(Delete { ids: const { &[StreamId::new(5, 1), StreamId::new(7, 0)] } }),
            "0100 0173 0a03 02 0a 01 04 00",
        ),
        (0, change(SetId { last: StreamId::new(9, 0), added: 3, max_deleted: last }), "0100 0173 0a04 09 00 03 05 01"),
        (0, change(CreateGroup { group, last, entries_read: None }), "0100 0173 0a05 0167 05 01 00"),
        (0, change(SetGroup { group, last, entries_read: Some(2) }), "0100 0173 0a06 0167 05 01 03"),
        (0, change(DestroyGroup { group }), "0100 0173 0a07 0167"),
        (0, change(CreateConsumer { group, consumer, at_ms }), "0100 0173 0a08 0167 0163 0a"),
        (0, change(DeleteConsumer { group, consumer }), "0100 0173 0a09 0167 0163"),
        (0, change(deliver), "0100 0173 0a0a 0167 0163 05 01 03 0a 01 0a 01"),
        (0, change(Claim { group, consumer, at_ms, deliveries }), "0100 0173 0a0b 0167 0163 0a 01 0a 01 01 07"),
        (0, change(Acknowledge { group, ids: const { &[StreamId::new(5, 1)] } }), "0100 0173 0a0c 0167 01 0a 01"),
        (0, change(Advance { group, last }), "0100 0173 0a0d 0167 05 01"),
        (0, change(See { group, consumer, at_ms, deliveries }), "0100 0173 0a0e 0167 0163 0a 01 0a 01 01 07"),
        (0, change(Release { group, deliveries: released }), "0100 0173 0a0f 0167 01 0a 01 07"),
        (0, change(Order { group }), "0100 0173 0a10 0167"),
        (0, change(Configure { retention }), "0100 0173 0a11 ac02 07"),
        (0, change(Remember { remembered }), "0100 0173 0a12 0170 0169 05 01 ac02"),
        (0, change(Duplicate), "0100 0173 0a13"),
    ]
}

fn changes_of_sessions() -> Vec<Row> {
    use session::Change::{Acknowledge, Answer, Low, Open, Push, Sent, Ttl};
    let change = |change: session::Change<'static>| Effect::change(Key::new(b"s"), change);
    let request = RequestDigest { crc: 0x0102_0304, lengths: 0x0506_0708 };
    vec![
        (
            0,
            change(Open { created_ms: 300, ttl_ms: 9, capabilities: b"\x01n\x01v" }),
            "0100 0173 0801 ac02 09 04 016e0176",
        ),
        (2, change(Open { created_ms: 0, ttl_ms: 0, capabilities: b"" }), "0102 0173 0801 00 00 00"),
        (0, change(Ttl { ttl_ms: 300 }), "0100 0173 0802 ac02"),
        (
            0,
            change(Answer { id: 300, request, is_resp3: false, low: 299, reply: b"+OK\r\n" }),
            "0100 0173 0803 ac02 01 04030201 08070605 00 05 2b4f4b0d0a",
        ),
        (
            0,
            change(Answer { id: 1, request, is_resp3: true, low: 0, reply: b"" }),
            "0100 0173 0803 01 01 04030201 08070605 01 00",
        ),
        (0, change(Low { low: 300 }), "0100 0173 0804 ac02"),
        (0, change(Push { id: 1, at_ms: 300, payload: b"p" }), "0100 0173 0805 01 ac02 0170"),
        (0, change(Acknowledge { upto: 300 }), "0100 0173 0806 ac02"),
        (0, change(Sent { first: 2, last: 5, at_ms: 300 }), "0100 0173 0807 02 03 ac02"),
    ]
}

#[test]
fn an_event_has_the_bytes_it_always_had() {
    let event = |key, id, event_type, parts: &[&'static [u8]], data| {
        let (key, id) = (PackedKey::of(key), EventId::of(id));
        let mut event = NewEvent { key, id, event_type, data, fields: [None; EVENT_FIELDS] };
        parts.iter().enumerate().for_each(|(at, part)| event.fields[at] = Some(part));
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        bytes
    };
    let parts: [&[u8]; 9] = [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i"];
    assert_eq!(event(b"k", b"", b"t", &[], b""), SMALL_EVENT);
    assert_eq!(event(b"k", b"id", b"t", &parts, b"data"), WHOLE_EVENT);
    let mut attributes = Vec::new();
    put_attributes([(&b"n"[..], &b"v"[..]), (b"", b"w")], &mut attributes);
    assert_eq!(attributes, b"\x01n\x01v\x00\x01w");
    let mut event_with_attributes = NewEvent {
        key: PackedKey::of(b"k"),
        id: EventId::of(b""),
        event_type: b"t",
        data: b"d",
        fields: [None; EVENT_FIELDS],
    };
    event_with_attributes.fields[EVENT_FIELDS - 1] = Some(&attributes);
    let mut bytes = Vec::new();
    event_with_attributes.encode(&mut bytes);
    assert_eq!(bytes, b"\x80\x20\x01k\x00\x01t\x07\x01n\x01v\x00\x01wd");
    let (key, id) = ("4b".repeat(32).into_bytes(), b"01234567-89ab-4def-8123-456789abcdef");
    assert_eq!(event(&key, id, b"StepCorrected", &[], b"d"), PACKED_EVENT);
}

fn images() -> Vec<Row> {
    let put = |name, deadline, value_type, bytes| Effect::Put {
        key: Key::new(name),
        value: Image { value_type, bytes },
        deadline,
    };
    let string = |bytes, deadline| put(b"k", deadline, &string::TYPE, bytes);
    let hash = |bytes, deadline| put(b"h", deadline, &hash::TYPE, bytes);
    let sorted_set = |bytes, deadline| put(b"z", deadline, &sorted_set::TYPE, bytes);
    let set = |bytes, deadline| put(b"s", deadline, &set::TYPE, bytes);
    let cell = |bytes, deadline| put(b"c", deadline, &cell::TYPE, bytes);
    let run = |bytes, deadline| put(b"r", deadline, &run::TYPE, bytes);
    let list = |bytes, deadline| put(b"l", deadline, &list::TYPE, bytes);
    let register = |bytes, deadline| put(b"g", deadline, &register::TYPE, bytes);
    vec![
        (0, string(b"\x00\x01v", THEN), "0200 016b 81c2f6a9a833 01 00 0176"),
        (0, string(b"\x02\x01v", None), "0200 016b 00 01 02 0176"),
        (0, string(b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", None), "0200 016b 00 01 01 ffffffffffffffffff01"),
        (0, hash(b"\x00\x02\x01f\x01v\x01g\x01w", THEN), "0200 0168 81c2f6a9a833 02 00 02 0166 0176 0167 0177"),
        (0, hash(b"\x01\x01\x01f\x01v", None), "0200 0168 00 02 01 01 0166 0176"),
        (0, hash(b"\x02\x01\x01f\x01v", None), "0200 0168 00 02 02 01 0166 0176"),
        (0, hash(b"\x03\x01\x01f\x01v", None), "0200 0168 00 02 03 01 0166 0176"),
        (
            0,
            hash(b"\x82\x02\x01f\x01v\x81\xc2\xf6\xa9\xa8\x33\x01g\x01w\x00", None),
            "0200 0168 00 02 82 02 0166 0176 81c2f6a9a833 0167 0177 00",
        ),
        (0, hash(b"\x83\x01\x01f\x01v\x81\xc2\xf6\xa9\xa8\x33", None), "0200 0168 00 02 83 01 0166 0176 81c2f6a9a833"),
        (
            0,
            sorted_set(b"\x00\x02\x01\x02\x01a\x01\xd8\x04\x01b", THEN),
            "0200 017a 81c2f6a9a833 03 00 02 01 02 0161 01 d804 0162",
        ),
        (0, sorted_set(b"\x01\x01\x01\x02\x01a", None), "0200 017a 00 03 01 01 01 02 0161"),
        (
            0,
            sorted_set(b"\x02\x01\x00\x00\x00\x00\x00\x00\x00\xe0\x3f\x01a", None),
            "0200 017a 00 03 02 01 00 000000000000e03f 0161",
        ),
        (0, set(b"\x00\x03\x03\x02\xd8\x04", THEN), "0200 0173 81c2f6a9a833 04 00 03 03 02 d804"),
        (0, set(b"\x01\x03\x01a\x00\x0212", None), "0200 0173 00 04 01 03 0161 00 023132"),
        (0, set(b"\x02\x02\x01a\x011", None), "0200 0173 00 04 02 02 0161 0131"),
        (0, set(b"\x03\x02\x01a\x011", None), "0200 0173 00 04 03 02 0161 0131"),
        (0, list(b"\x00\x03\x01a\x00\x0212", THEN), "0200 016c 81c2f6a9a833 09 00 03 0161 00 023132"),
        (0, list(b"\x01\x02\x01a\x0212", None), "0200 016c 00 09 01 02 0161 023132"),
        // A small list that the default settings would call a large one.
        (0, list([b"\x02\x01\x88\x40".as_slice(), &[b'x'; 8200]].concat().leak(), None), {
            format!("0200 016c 00 09 02 01 8840 {}", "78".repeat(8200)).leak()
        }),
        (0, cell(b"\x00\x01\x00\x05\x01v", THEN), "0200 0163 81c2f6a9a833 05 00 01 00 05 0176"),
        (0, cell(b"\x00\x02\xac\x02\x05\x01v\x01\x00", None), "0200 0163 00 05 00 02 ac02 05 0176 01 00"),
        (
            0,
            run(b"\x00\x02\x05\x06\x00\x01k\x00\x01t\x00\x09\x04\x01m\x02id\x00xy", THEN),
            "0200 0172 81c2f6a9a833 06 00 02 05 06 00 016b 00 0174 00 09 04 016d 026964 00 7879",
        ),
        (0, register(b"\x00\x01\x00\xac\x02\x01v", THEN), "0200 0167 81c2f6a9a833 07 00 01 00 ac02 0176"),
        (0, register(b"\x00\x01\x03\x07\x05\x03\x0240", None), "0200 0167 00 07 00 01 03 07 05 03 023430"),
        (0, register(b"\x00\x02\x09", None), "0200 0167 00 07 00 02 09"),
        (
            0,
            register(b"\x00\x07\x00\x05\x01v\x08\x02\x09\x00\x01x\x02\x01\x03", None),
            "0200 0167 00 07 00 07 00 05 0176 08 02 09 00 0178 02 01 03",
        ),
        (0, register(b"\x00\x09\x00\x05\x01v", None), "0200 0167 00 07 00 09 00 05 0176"),
        (
            0,
            register(b"\x00\x37\x01\x02\x05\x01v\x03\x09\x02\x03\x09\x00\x01x\x00\x02\x01\x03", None),
            "0200 0167 00 07 00 37 01 02 05 0176 03 09 02 03 09 00 0178 00 02 01 03",
        ),
        (
            0,
            put(b"s", None, &session::TYPE, b"\x00\x05\x09\x04\x01n\x01v\x02\x01\x03\x04\x03\x02\x01\x08\x07\x06\x05\x00\x01x\x04\x02\x04\x08\x01q\x03\x09\x01p"),
            "0200 0173 00 08 00 05 09 04 016e0176 02 01 03 04030201 08070605 00 0178 04 02 04 08 0171 03 09 0170",
        ),
        (
            0,
            put(b"s", None, &stream::TYPE, b"\x00\x09\x00\x05\x01\x03\x01\x05\x00\x07\x01\x01f\x06\x00\x01v\x01\x01g\x05\x01\x03\x01\x01c\x0a\x01\x05\x01\x08\x07"),
            "0200 0173 00 0a 00 0900 0501 03 01 0500 07 01016606000176 01 0167 0501 03 01 0163 0a 01 0501 08 07",
        ),
        (
            0,
            put(b"s", None, &stream::TYPE, b"\x01\x09\x00\x05\x01\x03\x01\x05\x00\x07\x01\x01f\x06\x00\x01v\x01\x01g\x05\x01\x03\x01\x01c\x0a\x01\x01\x05\x01\x08\x07"),
            "0200 0173 00 0a 01 0900 0501 03 01 0500 07 01016606000176 01 0167 0501 03 01 0163 0a 01 01 0501 08 07",
        ),
        (
            0,
            put(b"s", None, &stream::TYPE, b"\x02\x09\x00\x05\x01\x03\x01\x05\x00\x07\x01\x01f\x06\x00\x01v\x01\x01g\x05\x01\x03\x01\x01c\x0a\x01\x00\x01\x05\x01\x07"),
            "0200 0173 00 0a 02 0900 0501 03 01 0500 07 01016606000176 01 0167 0501 03 01 0163 0a 01 00 01 0501 07",
        ),
        (
            0,
            put(b"s", None, &stream::TYPE, b"\x03\x09\x00\x05\x01\x03\x01\x05\x00\x07\x01\x01f\x06\x00\x01v\x00\xac\x02\x07\x01\x01p\x01i\x05\x00\x05\x02\x01"),
            "0200 0173 00 0a 03 0900 0501 03 01 0500 07 01016606000176 00 ac02 07 01 0170 0169 0500 05 02 01",
        ),
    ]
}

fn effects_on_keys() -> Vec<Row> {
    let key = Key::new;
    let (library, index, fork) = (Definable::Library, Definable::Index, Definable::Fork);
    let (restore, hook, limits) = (Definable::Restore, Definable::Hook, Definable::Limits);
    vec![
        (15, Effect::Delete { key: key(b"k"), cause: Cause::Deleted }, "030f 016b"),
        (0, Effect::Delete { key: key(b"k"), cause: Cause::Expired }, "0400 016b"),
        (0, Effect::Delete { key: key(b"k"), cause: Cause::Evicted }, "0e00 016b"),
        (0, Effect::Deadline { key: key(b"k"), deadline: THEN }, "0500 016b 81c2f6a9a833"),
        (0, Effect::Deadline { key: key(b"k"), deadline: None }, "0500 016b 00"),
        (2, Effect::Rename { from: key(b"old"), to: key(b"new") }, "0602 036f6c64 036e6577"),
        (0, Effect::Copy { from: key(b"a"), to: key(b"b"), to_db: 9 }, "0700 0161 0162 09"),
        (0, Effect::Move { key: key(b"k"), to_db: 9 }, "0800 016b 09"),
        (7, Effect::FlushDb, "0907"),
        (0, Effect::FlushAll, "0a00"),
        (0, Effect::SwapDb { a: 0, b: 15 }, "0b00 00 0f"),
        (0, Effect::Define { what: library, name: b"lib", definition: b"#!" }, "0c00 01 036c6962 022321"),
        (0, Effect::Define { what: index, name: b"i", definition: b"\x01\x00" }, "0c00 02 0169 020100"),
        (0, Effect::Undefine { what: library, name: b"lib" }, "0d00 01 036c6962"),
        (0, Effect::Undefine { what: index, name: b"i" }, "0d00 02 0169"),
        (0, Effect::Define { what: fork, name: b"\x02to/", definition: b"" }, "0c00 03 04 02746f2f 00"),
        (0, Effect::Undefine { what: fork, name: b"\x02to/" }, "0d00 03 04 02746f2f"),
        (0, Effect::Define { what: restore, name: b"\x02", definition: b"" }, "0c00 04 01 02 00"),
        (
            0,
            Effect::Define {
                what: restore,
                name: b"\x02\x00\x00\x01\x07",
                definition: b"\x01\x01a\x00\x06\x00\x01\x00\x05\x01v\x02\x01b\x09\x03\x00\x02\x09\x03\x01c",
            },
            "0c00 04 05 0200000107 16 010161 00 06 000100050176 020162 09 03 000209 030163",
        ),
        (0, Effect::Undefine { what: restore, name: b"\x02" }, "0d00 04 01 02"),
        (0, Effect::Define { what: hook, name: b"expired", definition: b"f" }, "0c00 05 07 65787069726564 0166"),
        (0, Effect::Undefine { what: hook, name: b"expired" }, "0d00 05 07 65787069726564"),
        (
            0,
            Effect::Define { what: limits, name: b"\0\0\0\x01ie", definition: b"\x01\x02\0\0\0\0\0\0\0" },
            "0c00 06 06 000000016965 09 010200000000000000",
        ),
        (0, Effect::Undefine { what: limits, name: b"\0\0\0\x01ie" }, "0d00 06 06 000000016965"),
        (
            2,
            Effect::Rate { key: key(b"\0\0\0\x01iga"), until_ns: 1_763_172_000_001_000_000, now_ns: 5 },
            "0f02 07 00000001696761 05 c084e68ffaf282bc18",
        ),
    ]
}

#[test]
fn every_effect_has_the_bytes_it_always_had() {
    for (db, effect, hex) in pinned() {
        let shown = describe(db, &effect);
        let mut bytes = Vec::new();
        encode(db, &effect, &mut bytes);
        assert_eq!(as_hex(&bytes), hex.replace(' ', ""), "{shown}");
        assert_eq!(describe_all(&bytes), [&*shown], "read back");
    }
}

/// A row of an image says only that its bytes are carried along. They are also what the value is written as.
#[test]
fn every_value_is_written_as_the_image_it_came_from() {
    for (db, effect, hex) in images() {
        let Effect::Put { key, .. } = effect else { panic!("it is an image") };
        let keyspace = Keyspace::new(1);
        let mut locked = keyspace.lock_all();
        locked.apply(db, &effect, &Thresholds::default());
        let db_of_key = locked.db(db, key);
        let entry = db_of_key.entry(key).expect("it was put there");
        let mut written = Vec::new();
        locked.encode_key(db, key, &mut written);
        let is_ordered = db_of_key.elements(entry) == 1 || entry.object().is_none();
        drop(locked);
        // The fields of a table are in no order.
        if !is_ordered {
            assert_eq!(describe_all(&written), [describe(db, &effect)]);
            assert_eq!(written.len(), from_hex(hex).len());
        } else {
            assert_eq!(as_hex(&written), hex.replace(' ', ""));
        }
    }
}

/// What is wrong with bytes that begin so, with enough behind them for whatever they may be.
fn error_of(begin: &[u8]) -> Option<BadEffect> {
    Decoder::new(&[begin, &[0; 64]].concat()).next().err()
}

#[test]
fn every_tag_is_pinned() {
    let pinned: BTreeSet<u8> = pinned().iter().map(|(.., hex)| from_hex(hex)[0]).collect();
    let known: BTreeSet<u8> =
        (0..=u8::MAX).filter(|tag| error_of(&[*tag]) != Some(BadEffect::UnknownTag(*tag))).collect();
    assert_eq!(known, pinned);
}

#[test]
fn every_change_of_every_type_is_pinned() {
    // Behind tag, database and the name of the key.
    let tags = |hex: &str| {
        let bytes = from_hex(hex);
        let at = 3 + usize::from(bytes[2]);
        (bytes[at], bytes[at + 1])
    };
    let rows = pinned();
    let changes = rows.iter().filter(|(_, effect, _)| matches!(effect, Effect::Change { .. }));
    let pinned: BTreeSet<(u8, u8)> = changes.map(|(.., hex)| tags(hex)).collect();
    let is_known = |(value_type, change): &(u8, u8)| {
        let error = error_of(&[tag::CHANGE, 0, 1, b'k', *value_type, *change]);
        !matches!(error, Some(BadEffect::UnknownChange(..)))
    };
    let all = (0..=u8::MAX).flat_map(|value_type| (0..=u8::MAX).map(move |change| (value_type, change)));
    assert_eq!(all.filter(is_known).collect::<BTreeSet<(u8, u8)>>(), pinned);
}

#[test]
fn an_image_of_every_type_and_form_is_pinned() {
    // The type, and the byte that its image begins with: bits of a scalar, or a form.
    let pinned: BTreeSet<(u8, u8)> = images()
        .iter()
        .map(|(_, effect, _)| match effect {
            Effect::Put { value, .. } => (value.value_type.tag, value.bytes[0]),
            _ => panic!("it is an image"),
        })
        .collect();
    for value_type in 0..=u8::MAX {
        let is_pinned = pinned.iter().any(|(known, _)| *known == value_type);
        assert_eq!(ValueType::with_tag(value_type).is_ok(), is_pinned, "type {value_type}");
        let error = error_of(&[tag::PUT, 0, 1, b'k', 0, value_type]);
        assert_eq!(error != Some(BadEffect::UnknownChange(value_type, 0)), is_pinned, "type {value_type}");
    }
    // Bits that can be set beside each other are pinned one by one: a number that was changed in place is none any
    // more, and the forms without deadlines never have the bit of deadlines.
    let unseen = BTreeSet::from([(1, 3), (2, 128), (2, 129)]);
    for value_type in pinned.iter().map(|(value_type, _)| *value_type).collect::<BTreeSet<u8>>() {
        for first in 0..=u8::MAX {
            // An element of nothing but zeros; an event of a run has a length and a key.
            let one: &[u8] = if value_type == run::TYPE.tag { &[0, 5, 0, 1, b'k'] } else { &[] };
            let is_read = error_of(&[&[tag::PUT, 0, 1, b'k', 0, value_type, first, 1], one].concat()).is_none();
            let is_expected = pinned.contains(&(value_type, first)) || unseen.contains(&(value_type, first));
            assert_eq!(is_read, is_expected, "type {value_type}, first byte {first}");
        }
    }
}

#[test]
fn whatever_can_be_defined_is_pinned() {
    let pinned: BTreeSet<u8> = effects_on_keys()
        .iter()
        .filter(|(_, effect, _)| matches!(effect, Effect::Define { .. } | Effect::Undefine { .. }))
        .map(|(.., hex)| from_hex(hex)[2])
        .collect();
    for tag in [tag::DEFINE, tag::UNDEFINE] {
        let known = (0..=u8::MAX).filter(|what| Decoder::new(&[tag, 0, *what, 0, 0]).next().is_ok());
        assert_eq!(known.collect::<BTreeSet<u8>>(), pinned);
    }
}

#[test]
fn an_unknown_tag_tells_of_a_newer_version() {
    for (bytes, error, text) in [
        (&[200, 0, 1, b'k'][..], BadEffect::UnknownTag(200), "unknown effect 200: was it written by a newer version?"),
        (
            &[tag::CHANGE, 0, 1, b'k', 2, 99],
            BadEffect::UnknownChange(2, 99),
            "unknown change 99 of type 2: was it written by a newer version?",
        ),
        (
            &[tag::PUT, 0, 1, b'k', 0, 77],
            BadEffect::UnknownChange(77, 0),
            "unknown change 0 of type 77: was it written by a newer version?",
        ),
    ] {
        let said = Decoder::new(bytes).next().err().expect("nothing has this tag");
        assert_eq!(said, error);
        assert_eq!(said.to_string(), text);
    }
}

/// Bytes that no version has written: had they a meaning, it would be guessed at.
#[test]
fn what_no_version_wrote_is_refused() {
    for (hex, error) in [
        ("01", BadEffect::CutShort),
        ("0100 016b", BadEffect::CutShort),
        ("0100 016b 01", BadEffect::CutShort),
        ("0110 016b 0101 00 00 0176", BadEffect::OutOfRange), // database 16
        ("0100 016b 0101 00 04 0176", BadEffect::OutOfRange), // an unknown bit beside the kind of a scalar
        ("0100 016b 0101 00 02 0176", BadEffect::OutOfRange), // a mark where there is none
        ("0100 026b", BadEffect::CutShort),
        ("0100 ffffffffffffffffff02", BadEffect::OutOfRange), // a number of more than 64 bits
        ("0100 016b 0102 ffffffff0f 01 78", BadEffect::OutOfRange), // a string of more than 4 GiB
        ("0100 0168 0201 00", BadEffect::OutOfRange),         // a hash without fields
        ("0100 0168 0202 00", BadEffect::OutOfRange),
        ("0200 0168 00 02 00 00", BadEffect::OutOfRange),
        ("0200 0168 00 02 04 01 0166 0176", BadEffect::OutOfRange), // an unknown form
        ("0200 0168 00 02 82 01 0166 0176", BadEffect::CutShort),   // a deadline is missing
        ("0b00 00 10", BadEffect::OutOfRange),
        ("0100 016c 0901 00", BadEffect::OutOfRange), // a list without elements
        ("0200 016c 00 09 00 00", BadEffect::OutOfRange),
        ("0200 016c 00 09 03 01 0161", BadEffect::OutOfRange), // an unknown form
        ("0100 016c 0905 00", BadEffect::CutShort),
        ("0100 017a 0301 00", BadEffect::OutOfRange), // a sorted set without members
        ("0200 017a 00 03 00 00", BadEffect::OutOfRange),
        ("0200 017a 00 03 03 01 01 02 0161", BadEffect::OutOfRange), // an unknown form
        ("0100 017a 0301 01 02 02 0161", BadEffect::OutOfRange),     // an unknown kind of score
        ("0100 017a 0301 01 00 000000000000f87f 0161", BadEffect::OutOfRange), // NaN
        ("0100 017a 0301 01 00 0000000000", BadEffect::CutShort),
        ("0100 0173 0401 00", BadEffect::OutOfRange), // a set without members
        ("0200 0173 00 04 00 00", BadEffect::OutOfRange),
        ("0200 0173 00 04 04 01 0161", BadEffect::OutOfRange), // an unknown form
        ("0200 0173 00 04 01 02 0161", BadEffect::CutShort),
        ("0c00 07 0161 0162", BadEffect::OutOfRange), // something unknown is defined
        ("0100 0163 0501 ffffffffffffffff7f 00 05 00", BadEffect::OutOfRange), // a version of more than 63 bits
        ("0100 0163 0501 01 02 05 00", BadEffect::OutOfRange), // more older versions than there were
        ("0100 0163 0501 00 00 80808080808080808001 00", BadEffect::OutOfRange), // a time of more than 63 bits
        ("0200 0163 00 05 01 01 00 05 00", BadEffect::OutOfRange), // an unknown form
        ("0200 0163 00 05 00 00 00", BadEffect::OutOfRange), // a cell without a version
        ("0200 0163 00 05 00 01 ffffffffffffffff7f 05 00", BadEffect::OutOfRange),
        ("0200 0163 00 05 00 02 00 05 00 00 00", BadEffect::OutOfRange), // two versions of one time
        ("0200 0163 00 05 00 02 00 ffffffffffffffff7f 00 01 00", BadEffect::OutOfRange),
        ("0200 0163 00 05 00 02 00 05 00", BadEffect::CutShort),
        ("0100 0172 0601 ffffffff0f 05 06 00 016b 00 0174", BadEffect::OutOfRange), // more events than a run can have
        ("0100 0172 0601 00 80808080808080808001 06 00 016b 00 0174", BadEffect::OutOfRange), // a time of more than 63 bits
        ("0100 0172 0601 00 05 07 8040 016b 00 0174", BadEffect::OutOfRange),                 // an unknown part
        ("0100 0172 0601 00 05 05 04 016b 00 0c", BadEffect::OutOfRange), // an unknown type by number
        ("0100 0172 0601 00 05 0f 00 016b 00 0a 52756e53746172746564", BadEffect::OutOfRange), // a known one by name
        ("0100 0172 0601 00 05 05 00 00 00 0174", BadEffect::OutOfRange), // an empty key
        ("0100 0172 0601 00 05 05 00 016b 00 01", BadEffect::CutShort),
        ("0200 0172 00 06 01 01 05 06 00 016b 00 0174", BadEffect::OutOfRange), // an unknown form
        ("0200 0172 00 06 00 00", BadEffect::OutOfRange),                       // a run without an event
        ("0200 0172 00 06 00 02 ffffffffffffffff7f 06 00 016b 00 0174 01 06 00 016c 00 0174", BadEffect::OutOfRange),
        ("0200 0172 00 06 00 02 05 06 00 016b 00 0174", BadEffect::CutShort),
        ("0100 0167 0701 04 05 00", BadEffect::OutOfRange), // an unknown flag
        ("0100 0167 0701 01 00 05 00", BadEffect::OutOfRange), // an epoch that is written and 0
        ("0100 0167 0702 00 01 03", BadEffect::OutOfRange), // no version from 1 on
        ("0100 0167 0702 01 02 03", BadEffect::OutOfRange), // an unknown operation
        ("0200 0167 00 07 00 00", BadEffect::OutOfRange),   // a register of nothing
        ("0200 0167 00 07 00 08 00", BadEffect::OutOfRange), // an unknown part
        ("0200 0167 00 07 00 05 00 05 00 01 05 0100", BadEffect::OutOfRange), // an operation that was overtaken
        ("0200 0167 00 07 00 03 00 05 00 06", BadEffect::OutOfRange), // a seal that says nothing
        ("0200 0167 00 07 00 01 00 05 02 76", BadEffect::CutShort),
        ("0100 0173 0801 80808080808080808001 09 00", BadEffect::OutOfRange), // a time of more than 63 bits
        ("0100 0173 0801 05 09 02 0161", BadEffect::CutShort),                // a capability without a value
        ("0100 0173 0803 05 06 04030201 08070605 00 00", BadEffect::OutOfRange), // a lowest id below nothing
        ("0100 0173 0803 05 00 04030201 08070605 02 00", BadEffect::OutOfRange), // an unknown protocol
        ("0100 0173 0807 02 ffffffffffffffff7f 05", BadEffect::OutOfRange),   // ids beyond 63 bits
        ("0200 0173 00 08 01", BadEffect::OutOfRange),                        // an unknown form
        ("0200 0173 00 08 00 05 09 00 02 01 01 04030201 08070605 00 00 00 00", BadEffect::OutOfRange), // below the lowest id
        ("0200 0173 00 08 00 05 09 00 00 00 01 02 01 05 00 01 05 00", BadEffect::OutOfRange), // more pending than there were
        ("0200 0173 00 08 00 05 09 00 00 00 02 02 01 06 00 02 05 00", BadEffect::OutOfRange), // sent before the one before
        ("0200 0173 00 08 00 05 09 00 00 00 02 02 02 05 00 02 05 00", BadEffect::OutOfRange), // one id twice
        ("0100 0173 0a01 05 01 00", BadEffect::OutOfRange),                                   // an entry without fields
        ("0200 0173 00 0a 09 0900 0501 03 00 00", BadEffect::OutOfRange),                     // an unknown form
        ("0200 0173 00 0a 00 0900 0501 03 01 0500 03 010166 00", BadEffect::OutOfRange),      // a chunk without entries
        ("0200 0173 00 0a 00 0400 0501 03 01 0500 07 01016606000176 00", BadEffect::OutOfRange), // an entry behind the last
        ("0200 0173 00 0a 00 0900 0501 03 02 0500 07 01016606000176 0500 07 01016606000176 00", BadEffect::OutOfRange), // one chunk twice
        ("0200 0173 00 0a 00 0900 0501 03 01 0500 0c 010166 0400 06 01 0166 0176 00 00", BadEffect::OutOfRange), // a value too many
        ("0200 0173 00 0a 00 0900 0501 03 00 02 0167 0501 03 00 0167 0501 03 00", BadEffect::OutOfRange), // one group twice
    ] {
        assert_eq!(Decoder::new(&from_hex(hex)).next().err(), Some(error), "{hex}");
    }
}

#[test]
fn a_placement_has_the_bytes_it_always_had() {
    let placement = Placement { family: 1, seed: 0x0102_0304_0506_0708, shards: 128 };
    assert_eq!(as_hex(&placement.encode()), "01080706050403020180000000");
    assert_eq!(Placement::decode(&placement.encode()), Some(placement));
    let newer = Placement { family: 2, ..placement };
    assert_eq!(as_hex(&newer.encode()), "02080706050403020180000000");
    assert_eq!(Placement::decode(&newer.encode()), Some(newer));
    for unknown in [
        "",
        "0108070605040302018000000000",
        "00080706050403020180000000",
        "03080706050403020180000000",
        "01080706050403020181000000",
    ] {
        assert_eq!(Placement::decode(&from_hex(unknown)), None, "{unknown}");
    }
}

/// Batches as the versions before this one wrote them, each beside what it says. A new effect comes with a new pair of
/// files: `HOLDFAST_TEST_BLESS=1` writes those that are missing, from the rows above, and leaves the others alone.
#[test]
fn old_batches_say_what_they_always_said() {
    const BATCHES: &[&str] = &[
        "strings-hashes-sorted-sets",
        "sets",
        "cells",
        "forks",
        "runs",
        "registers",
        "sessions",
        "lists",
        "streams",
        "orders-of-registers",
        "small-sets",
        "consumers-of-streams",
        "released-entries",
        "forms-of-lists",
        "ids-of-producers",
        "rebuilt-sets",
        "limits-of-groups",
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/effects");
    for name in BATCHES {
        let (batch, text) = (folder.join(format!("{name}.batch")), folder.join(format!("{name}.txt")));
        if std::env::var_os("HOLDFAST_TEST_BLESS").is_some() && !batch.exists() {
            let bytes: Vec<u8> = pinned().iter().flat_map(|(.., hex)| from_hex(hex)).collect();
            std::fs::write(&text, describe_all(&bytes).join("\n") + "\n").expect("the fixture can be written");
            std::fs::write(&batch, bytes).expect("the fixture can be written");
        }
        let bytes = std::fs::read(&batch).expect("the fixture is there");
        let text = std::fs::read_to_string(&text).expect("the fixture is there");
        assert_eq!(describe_all(&bytes), text.lines().collect::<Vec<_>>(), "{name}");
    }
}

// Effects as text -----------------------------------------------------------------------------------------------------

fn describe_all(bytes: &[u8]) -> Vec<String> {
    let (mut effects, mut said) = (Decoder::new(bytes), Vec::new());
    while let Some((db, effect)) = effects.next().expect("the bytes are effects") {
        said.push(describe(db, &effect));
    }
    said
}

/// One line that says all there is to an effect.
fn describe(db: usize, effect: &Effect<'_>) -> String {
    let name = |key: Key<'_>| quoted(key.name);
    let what = match *effect {
        Effect::Change { key, change } => describe_change(&name(key), change),
        Effect::Put { key, value, deadline } => {
            format!("put {} {}{}", name(key), describe_image(value), until(deadline))
        }
        Effect::Delete { key, cause } => format!("delete {} {cause:?}", name(key)),
        Effect::Deadline { key, deadline } => format!("deadline {}{}", name(key), until(deadline)),
        Effect::Rename { from, to } => format!("rename {} {}", name(from), name(to)),
        Effect::Copy { from, to, to_db } => format!("copy {} {} into {to_db}", name(from), name(to)),
        Effect::Move { key, to_db } => format!("move {} into {to_db}", name(key)),
        Effect::Rate { key, until_ns, now_ns } => format!("rate {} until {until_ns} from {now_ns}", name(key)),
        Effect::FlushDb => "flush-db".into(),
        Effect::FlushAll => "flush-all".into(),
        Effect::SwapDb { a, b } => format!("swap-db {a} {b}"),
        Effect::Define { what, name, definition } => {
            format!("define {what:?} {} {}", quoted(name), quoted(definition))
        }
        Effect::Undefine { what, name } => format!("undefine {what:?} {}", quoted(name)),
    };
    format!("{db}: {what}")
}

fn describe_change(key: &str, change: Change<'_>) -> String {
    match change {
        Change::String(string::Change::Set { value, deadline }) => {
            format!("string-set {key} {}{}", scalar(value), until(deadline))
        }
        Change::String(string::Change::Write { offset, bytes }) => {
            format!("string-write {key} at {offset} {}", quoted(bytes))
        }
        Change::String(string::Change::Splice { offset, removed, bytes }) => {
            format!("string-splice {key} at {offset} for {removed} bytes {}", quoted(bytes))
        }
        Change::Hash(hash::Change::Set { fields, keep_deadlines }) => {
            let keeping = if keep_deadlines { " keeping deadlines" } else { "" };
            let fields = fields.iter().map(|(field, value)| format!("{}={}", quoted(field), quoted(value)));
            format!("hash-set {key} {}{keeping}", joined(fields))
        }
        Change::Hash(hash::Change::Delete { fields, cause }) => {
            format!("hash-delete {key} {} {cause:?}", joined(fields.iter().map(|field| quoted(field))))
        }
        Change::Hash(hash::Change::Deadline { field, deadline }) => {
            format!("hash-deadline {key} {}{}", quoted(field), until(deadline))
        }
        Change::SortedSet(sorted_set::Change::Add { members }) => {
            let members = members.iter().map(|(score, name)| format!("{}={score:?}", quoted(name)));
            format!("sorted-set-add {key} {}", joined(members))
        }
        Change::SortedSet(sorted_set::Change::Remove { members }) => {
            format!("sorted-set-remove {key} {}", joined(members.iter().map(|member| quoted(member))))
        }
        Change::Set(set::Change::Add { members }) => {
            format!("set-add {key} {}", joined(members.iter().map(|member| quoted(member))))
        }
        Change::Set(set::Change::Remove { members }) => {
            format!("set-remove {key} {}", joined(members.iter().map(|member| quoted(member))))
        }
        Change::Set(set::Change::Rebuild) => format!("set-rebuild {key}"),
        Change::Register(register::Change::Set(current)) => format!("register-set {key} {}", shown_current(current)),
        Change::Register(register::Change::Buffer { version, order: register::Order::OneByOne, operation }) => {
            format!("register-buffer {key} {}", shown_operation(version, operation))
        }
        Change::Register(register::Change::Buffer { version, order: register::Order::UntilSealed, operation }) => {
            format!("register-buffer-until-sealed {key} {}", shown_operation(version, operation))
        }
        Change::Register(register::Change::Order(order)) => {
            format!("register-order {key} {order:?}")
        }
        Change::List(change) => format!("list {key} {change:?}"),
        Change::Session(change) => format!("session {key} {change:?}"),
        Change::Stream(change) => format!("stream {key} {change:?}"),
        Change::Register(register::Change::Seal { below }) => format!("register-seal {key} {below}"),
        Change::Run(run::Change::Append { number, time_ms, event }) => {
            format!("run-append {key} {number} at {time_ms} {}", quoted(event))
        }
        Change::Cell(cell::Change::Write { version: Version { number, time_us, value }, older }) => {
            format!("cell-write {key} version {number} at {time_us} {} keeping {older} older", quoted(value))
        }
        other => format!("{} {key} {other:?}", other.value_type().name),
    }
}

/// What a key holds once an image has been put there.
fn describe_image(value: Image<'_>) -> String {
    let (keyspace, key) = (Keyspace::new(1), Key::new(b"k"));
    let mut locked = keyspace.lock_all();
    locked.apply(0, &Effect::Put { key, value, deadline: None }, &Thresholds::default());
    let db = locked.db(0, key);
    let entry = db.entry(key).expect("it was put there");
    let elements = match db.to_redis(entry, 0) {
        formats::Value::String(bytes) => quoted(&bytes),
        formats::Value::Hash(mut fields) => {
            if entry.object().is_some() {
                // The fields of a table are in no order.
                fields.sort();
            }
            let field = |(name, value, deadline): &formats::HashEntry| {
                format!("{}={}{}", quoted(name), quoted(value), until(*deadline))
            };
            joined(fields.iter().map(field))
        }
        formats::Value::SortedSet(members) => {
            joined(members.iter().map(|(name, score)| format!("{}={score:?}", quoted(name))))
        }
        formats::Value::Set(members) | formats::Value::SmallSet(members) => {
            let mut members: Vec<&[u8]> = members.iter().collect();
            if entry.object().is_some() {
                members.sort();
            }
            joined(members.iter().map(|member| quoted(member)))
        }
        formats::Value::List(elements) => joined(elements.iter().map(quoted)),
        formats::Value::Own(own) if own.tag == run::TYPE.tag => {
            let shown =
                |found: run::Numbered<'_>| format!("{}@{}={}", found.number, found.time_ms, quoted(found.event.bytes));
            joined(run::run(entry).after(0).map(shown))
        }
        formats::Value::Own(own) if own.tag == register::TYPE.tag => {
            let register = register::register(entry);
            let current = register.current().map(shown_current);
            let sealed = register.sealed().map(|sealed| format!("sealed {sealed}"));
            let buffered = register.buffered_from(register::Version::of_round(0));
            let buffered = buffered.map(|(version, operation)| shown_operation(version, operation));
            let order = register.order().map(|order| format!("{order:?}")).filter(|_| register.buffered_len() == 0);
            joined(order.into_iter().chain(current).chain(sealed).chain(buffered))
        }
        formats::Value::Own(own) if own.tag == session::TYPE.tag => {
            let session = session::session(entry);
            let capabilities =
                session.capabilities().map(|(name, value)| format!("{}={}", quoted(name), quoted(value)));
            let answers = (0..10).filter_map(|id| session.answer(id)).map(|answer| format!("{answer:?}"));
            let head = format!("created {} ttl {} low {}", session.created_ms(), session.ttl_ms(), session.low());
            let pending = session.sent_before(u64::MAX).map(|request| format!("{request:?}"));
            joined([head].into_iter().chain(capabilities).chain(answers).chain(pending))
        }
        formats::Value::Own(own) if own.tag == cell::TYPE.tag => {
            let shown =
                |version: Version<'_>| format!("{}@{}={}", version.number, version.time_us, quoted(version.value));
            joined(cell::cell(entry).oldest_first().map(shown))
        }
        formats::Value::Stream(stream) => {
            let entries = stream.nodes.iter().flat_map(|node| node.entries()).map(|entry| format!("{entry:?}"));
            // As it was shown when consumers had one time.
            let groups = stream.groups.iter().map(|group| {
                // The versions that wrote older batches did not know released entries.
                let shown = format!("{group:?}").replace(", released: []", "");
                group.consumers.iter().fold(shown, |shown, consumer| {
                    let one_time = format!("seen_ms: {0}, active_ms: {0},", consumer.seen_ms);
                    shown.replace(&one_time, &format!("seen_ms: {},", consumer.seen_ms))
                })
            });
            let head = format!("last {:?} {:?}", stream.last, stream.counts);
            joined([head].into_iter().chain(entries).chain(groups))
        }
        formats::Value::Own(own) => as_hex(&own.image),
        formats::Value::Unsupported(_) => panic!("it is kept here"),
    };
    let value_type = ValueType::of(entry);
    let (kept, marked) = (entry.object().map_or("", |_| " table"), if entry.is_marked() { " marked" } else { "" });
    format!("{} {}{kept}{marked} {elements}", value_type.name, (value_type.encoding)(entry))
}

fn shown_current(current: Current<'_>) -> String {
    let added = current.added.map_or(String::new(), |added| format!(" added {added}"));
    format!("{}={}{added}", current.version, quoted(current.value))
}

fn shown_operation(version: register::Version, operation: Operation<'_>) -> String {
    match operation {
        Operation::Put(value) => format!("{version} put {}", quoted(value)),
        Operation::Add(number) => format!("{version} add {number}"),
    }
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" ")
}

fn scalar(value: Scalar<'_>) -> String {
    match value {
        Scalar::Bytes(bytes) => quoted(bytes),
        Scalar::Number(number) => number.to_string(),
    }
}

fn until(deadline: Option<u64>) -> String {
    deadline.map_or(String::new(), |deadline| format!(" until {deadline}"))
}

fn as_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
