//! A database knows how many values of each type and how many runs of each status it has, whatever effects have put them there or
//! taken them away.

use keyspace::shard::Shard;
use keyspace::types::run::{EVENT_FIELDS, EventId, NewEvent, PackedKey, RunStatus, run};
use keyspace::types::{TYPES, cell, hash, run, string};
use keyspace::{Cause, Effect, Entry, Image, Key, Locked, Scalar, Thresholds, ValueType};
use test_random::Random;

const STRINGS: [&[u8]; 3] = [b"a", b"b", b"c"];
const RUNS: [&[u8]; 3] = [b"r", b"s", b"t"];
const CELL: &[u8] = &[0, 1, 0, 5, 1, b'v'];
const EVENTS: [&[u8]; 7] =
    [b"RunStarted", b"RunPaused", b"RunResumed", b"RunCompleted", b"RunFailed", b"RunCancelled", b"other"];

fn event(event_type: &[u8], number: u64) -> Vec<u8> {
    let (key, mut bytes) = (number.to_string(), Vec::new());
    let key = PackedKey::of(key.as_bytes());
    NewEvent { key, id: EventId::of(b"id"), event_type, fields: [None; EVENT_FIELDS], data: b"" }.encode(&mut bytes);
    bytes
}

#[test]
fn a_database_counts_its_types_and_runs() {
    let (mut random, mut shard) = (Random::new(), Shard::default());
    let mut has_seen = [false; RunStatus::ALL.len()];
    for step in 0..20_000 {
        let mut locked = Locked::alone(&mut shard);
        let (db, to_db) = (random.below(2), random.below(2));
        let names = if random.below(2) == 0 { STRINGS } else { RUNS };
        let [key, to] = [0, 1].map(|_| Key::new(names[random.below(names.len())]));
        let cell = Image { value_type: &cell::TYPE, bytes: CELL };
        let (is_of, last) = locked
            .shards()
            .find_map(|(_, shard)| {
                let entry = shard.db(db).entry(key)?;
                let value_type = ValueType::of(entry);
                Some((Some(value_type), value_type.is(&run::TYPE).then(|| run(entry).len())))
            })
            .unwrap_or_default();
        let event = event(EVENTS[random.below(EVENTS.len())], last.unwrap_or(0));
        let effect = match random.below(20) {
            0..8 if names == RUNS => {
                let number = last.unwrap_or(0) + 1;
                Effect::change(key, run::Change::Append { number, time_ms: step, event: &event })
            }
            0..4 => Effect::change(key, string::Change::Set { value: Scalar::of(b"v"), deadline: None }),
            4..6 => Effect::Put { key, value: cell, deadline: (random.below(2) == 0).then_some(7) },
            6..8 if names == STRINGS => {
                Effect::change(key, hash::Change::Set { fields: &[(b"f", b"v")], keep_deadlines: false })
            }
            8..10 => Effect::Delete { key, cause: Cause::Deleted },
            10 if key.name != to.name => Effect::Rename { from: key, to },
            11 if db != to_db || key.name != to.name => Effect::Copy { from: key, to, to_db },
            12 if db != to_db => Effect::Move { key, to_db },
            13 => Effect::SwapDb { a: 0, b: 1 },
            14 if random.below(4) == 0 => Effect::FlushDb,
            15 if random.below(8) == 0 => Effect::FlushAll,
            _ => Effect::Deadline { key, deadline: Some(9) },
        };
        // Commands refuse to put another value in the place of a run, and to change a value of another type.
        let may_change = |wanted: &ValueType| is_of.is_none_or(|value_type| value_type.is(wanted));
        let is_refused = match &effect {
            Effect::Change { change, .. } if !change.replaces_other_types() => !may_change(change.value_type()),
            Effect::Change { .. } | Effect::Put { .. } => last.is_some(),
            _ => false,
        };
        if !is_refused {
            locked.apply(db, &effect, &Thresholds::default());
        }
        if random.below(4) == 0 {
            let copy = locked.copy_of(db, key);
            locked.put_copy(to_db, key, copy);
        }
        for (_, shard) in locked.shards() {
            for db in [0, 1].map(|db| shard.db(db)) {
                let entries = || db.iter(0);
                for value_type in TYPES {
                    let count = entries().filter(|entry: &&Entry| ValueType::of(entry).is(value_type)).count();
                    assert_eq!(db.count_of_type(value_type), count, "{}, step {step}", value_type.name);
                }
                let runs = || entries().filter(|entry| ValueType::of(entry).is(&run::TYPE));
                for status in RunStatus::ALL {
                    let count = runs().filter(|entry| run(entry).status() == status).count();
                    assert_eq!(db.run_count(status), count, "{}, step {step}", status.name());
                    has_seen[status as usize] |= count > 0;
                }
                let open = runs().filter(|entry| !run(entry).status().is_final()).count();
                assert_eq!(db.open_run_count(), open, "step {step}");
            }
        }
    }
    assert_eq!(has_seen, [true; RunStatus::ALL.len()]);
}
