//! What takes long to free leaves the keyspace as garbage, which is freed after the locks are released: also parts of
//! streams, whose keys remain.

use keyspace::shard::Shard;
use keyspace::types::stream::{Change, Remembered, Retention, StreamId};
use keyspace::{Effect, Key, Locked, Thresholds};

const MANY: u64 = 100_000;

#[test]
fn large_parts_of_a_stream_are_freed_later() {
    let (mut shard, thresholds, key) = (Shard::default(), Thresholds::default(), Key::new(b"s"));
    let mut locked = Locked::alone(&mut shard);
    let mut make = |change: Change<'_>| {
        locked.apply(0, &Effect::change(key, change), &thresholds);
        !locked.take_garbage().is_empty()
    };
    let ids: Vec<StreamId> = (1..=MANY).map(|ms| StreamId::new(ms, 0)).collect();
    for many in [false, true] {
        let group = b"g";
        make(Change::CreateGroup { group, last: StreamId::MIN, entries_read: None });
        make(Change::CreateConsumer { group, consumer: b"c", at_ms: 1 });
        let ids = if many { &ids[..] } else { &ids[..1] };
        let last = StreamId::MIN;
        make(Change::Deliver { group, consumer: b"c", last, entries_read: None, at_ms: 1, ids });
        assert_eq!(make(Change::DestroyGroup { group }), many, "a group");
        assert!(!make(Change::Configure { retention: Retention { duration_ms: MANY, ids_max: 1 } }));
        for id in ids {
            let name = id.ms.to_string();
            make(Change::Remember {
                remembered: Remembered { producer: name.as_bytes(), id: b"i", entry: *id, at_ms: 1 },
            });
        }
        assert_eq!(make(Change::Configure { retention: Retention { duration_ms: MANY, ids_max: 2 } }), many, "ids");
    }
}
