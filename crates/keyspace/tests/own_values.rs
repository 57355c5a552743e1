//! A database knows whether it has values of types that Redis does not have, whatever effects have put them there or
//! taken them away.

use keyspace::effects::codec::Decoder;
use keyspace::shard::Shard;
use keyspace::types::{cell, session, string};
use keyspace::{Cause, Effect, Entry, Image, Key, Locked, Scalar, Thresholds, ValueType};
use test_random::Random;

const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];
const CELL: &[u8] = &[0, 1, 0, 5, 1, b'v'];

#[test]
fn a_database_knows_whether_it_has_own_values() {
    let (mut random, mut shard) = (Random::new(), Shard::default());
    for step in 0..20_000 {
        let mut locked = Locked::alone(&mut shard);
        let (db, to_db) = (random.below(2), random.below(2));
        let [key, to] = [0, 1].map(|_| Key::new(NAMES[random.below(NAMES.len())]));
        let cell = Image { value_type: &cell::TYPE, bytes: CELL };
        let effect = match random.below(16) {
            0..4 => Effect::Put { key, value: cell, deadline: (random.below(2) == 0).then_some(7) },
            4..7 => Effect::change(key, string::Change::Set { value: Scalar::of(b"v"), deadline: None }),
            7 | 8 => Effect::Delete { key, cause: Cause::Deleted },
            9 if key.name != to.name => Effect::Rename { from: key, to },
            10 if db != to_db || key.name != to.name => Effect::Copy { from: key, to, to_db },
            11 if db != to_db => Effect::Move { key, to_db },
            12 => Effect::SwapDb { a: 0, b: 1 },
            13 => Effect::FlushDb,
            14 if random.below(4) == 0 => Effect::FlushAll,
            _ => Effect::Deadline { key, deadline: Some(9) },
        };
        locked.apply(db, &effect, &Thresholds::default());
        if random.below(4) == 0 {
            let copy = locked.copy_of(db, key);
            locked.put_copy(to_db, key, copy);
        }
        for (_, shard) in locked.shards() {
            for db in [0, 1].map(|db| shard.db(db)) {
                let has_any = db.iter(0).any(|entry: &Entry| ValueType::of(entry).is_own);
                assert_eq!(db.has_own_values(), has_any, "step {step}");
            }
        }
    }
}

/// Commands give a session no deadline, but damaged bytes may.
#[test]
fn a_session_has_no_deadline_but_its_own() {
    let (mut shard, key, mut image) = (Shard::default(), Key::new(b"session"), Vec::new());
    let mut locked = Locked::alone(&mut shard);
    let thresholds = Thresholds::default();
    let open = session::Change::Open { created_ms: 1, ttl_ms: 1_000, capabilities: b"" };
    locked.apply(0, &Effect::change(key, open), &thresholds);
    locked.encode_key(0, key, &mut image);
    let mut effects = Decoder::new(&image);
    let put = match effects.next() {
        Ok(Some((0, Effect::Put { key, value, deadline: None }))) => Effect::Put { key, value, deadline: Some(9) },
        _ => panic!("the image of a session is one effect"),
    };
    for (effect, what) in [(Effect::Deadline { key, deadline: Some(7) }, "a deadline"), (put, "an image")] {
        locked.apply(0, &effect, &thresholds);
        for (_, shard) in locked.shards() {
            let db = shard.db(0);
            assert!(db.entry(key).is_some_and(|entry| entry.deadline().is_none()), "{what}");
            assert_eq!((db.with_deadline(), db.time_left_sum(0), db.has_expired(10)), (0, 0, false));
        }
    }
}
