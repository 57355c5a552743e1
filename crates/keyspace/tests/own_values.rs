//! A database knows whether it has values of types that Redis does not have, whatever effects have put them there or
//! taken them away.

use keyspace::shard::Shard;
use keyspace::types::{cell, string};
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
