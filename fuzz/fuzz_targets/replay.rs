//! Any bytes as a part of a snapshot and as batches behind it: they are refused, or they are effects that are written as
//! they were read, and leave a keyspace whose indexes are right and that commands can work with.
//! `crates/engine/tests/replay/damage.rs` is the short form of this, for every test run.

#![no_main]

#[path = "../../crates/engine/tests/common/host.rs"]
mod host;
#[path = "../../crates/engine/tests/common/place.rs"]
#[allow(dead_code, reason = "the test uses more of it")]
mod place;
#[path = "../../crates/engine/tests/common/state.rs"]
#[allow(dead_code, reason = "the test uses more of it")]
mod state;

use engine::Settings;
use engine::execution::walk::{Placement, SnapshotPart};
use keyspace::effects::codec::{Decoder, encode};
use libfuzzer_sys::fuzz_target;
use place::{Place, settings};
use state::{State, is_tame};
use std::sync::{Arc, LazyLock};

/// Made once: that takes longer than a replay.
static SETTINGS: LazyLock<Arc<Settings>> = LazyLock::new(|| {
    settings(&[
        ("hash-max-listpack-entries", "4"),
        ("hash-max-listpack-value", "16"),
        ("zset-max-listpack-entries", "4"),
        ("zset-max-listpack-value", "16"),
        ("set-max-intset-entries", "4"),
    ])
});

// Two bytes of numbers, two that say where the part ends and the batch begins, effects.
fuzz_target!(|input: &[u8]| {
    let Some((&[numbers, end, cut_high, cut_low], effects)) = input.split_first_chunk() else { return };
    let cut = usize::from(u16::from_be_bytes([cut_high, cut_low])) % (effects.len() + 1);
    let (keys, batch) = effects.split_at(cut);
    let place = Place::with(2, 1, SETTINGS.clone());
    let mut replay = place.replay((numbers & 1 > 0).then_some(Placement { family: 1, seed: 7, shards: 2 }));
    let (shard, end) = (u32::from(numbers >> 1 & 1), u32::from(end) << 24 | 0xff_ffff);
    let (stamp, sequence) = (u64::from(numbers >> 2 & 3), u64::from(numbers >> 4 & 3));
    if are_tame(keys) {
        let _ = replay.part(SnapshotPart { shard, end, sequence: stamp, keys: 1 }, keys);
    }
    if are_tame(batch) {
        let _ = replay.batch(sequence, batch);
    }
    look_at(&place);
});

/// Reads effects and writes them again. True when all of them can be replayed here.
fn are_tame(bytes: &[u8]) -> bool {
    let mut effects = Decoder::new(bytes);
    let mut tame = true;
    while let Ok(Some((db, effect))) = effects.next() {
        tame &= is_tame(&effect, 1 << 16);
        // A number may have been written longer than it need be; written again, it is not.
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        encode(db, &effect, &mut once);
        let mut again = Decoder::new(&once);
        let (db, effect) = again.next().expect("what was written can be read").expect("there is an effect");
        encode(db, &effect, &mut twice);
        assert_eq!(once, twice);
    }
    tame
}

/// Asks for whatever there is.
fn look_at(place: &Place) {
    let mut asker = place.asker(0);
    for (db, name) in State::of(&place.engine).0.into_keys() {
        asker.say(&format!("select {db}"));
        for command in [
            "dump",
            "hgetall",
            "hrandfield",
            "get",
            "object encoding",
            "memory usage",
            "cell.history",
            "run.events",
            "run.snapshot",
            "run.project",
            "reg.get",
        ] {
            let mut request: Vec<Vec<u8>> = command.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            request.push(name.clone());
            asker.ask(&request);
        }
        asker.ask(&[b"hset".to_vec(), name.clone(), b"f".to_vec(), b"v".to_vec()]);
        asker.ask(&[b"hdel".to_vec(), name.clone(), b"f".to_vec(), b"g".to_vec()]);
        asker.ask(&[b"zpopmin".to_vec(), name.clone()]);
        asker.ask(&[b"cell.set".to_vec(), name.clone(), b"v".to_vec()]);
        for version in ["1", "5", "2.0"] {
            asker.ask(&[b"reg.incrby".to_vec(), name.clone(), version.into(), b"1".to_vec()]);
        }
        asker.ask(&[b"reg.put".to_vec(), name.clone(), b"7".to_vec(), b"v".to_vec(), b"ordered".to_vec()]);
        asker.ask(&[b"reg.seal".to_vec(), name.clone(), b"6".to_vec()]);
        asker.ask(&[b"run.append".to_vec(), name.clone(), b"k".to_vec(), b"StepStarted".to_vec(), b"d".to_vec()]);
        asker.ask(&[b"sadd".to_vec(), name.clone(), b"f".to_vec()]);
        asker.ask(&[b"rpush".to_vec(), name.clone(), b"f".to_vec()]);
        asker.ask(&[b"zadd".to_vec(), name.clone(), b"1".to_vec(), b"f".to_vec()]);
        asker.ask(&[b"zrem".to_vec(), name.clone(), b"f".to_vec(), b"g".to_vec()]);
        for line in [
            "xadd # maxlen 3 * f v",
            "xgroup create # g 0",
            "xreadgroup group g c streams # >",
            "xautoclaim # g d 0 0",
            "xdel # 1-1",
            "xinfo stream # full",
            "linsert # before f g",
            "lrem # 1 f",
            "lrange # 0 -1",
            "pfadd # a",
            "pfcount #",
        ] {
            let word = |word: &str| if word == "#" { name.clone() } else { word.as_bytes().to_vec() };
            asker.ask(&line.split(' ').map(word).collect::<Vec<_>>());
        }
        asker.ask(&[b"append".to_vec(), name, b"x".to_vec()]);
    }
    asker.expire();
    asker.say("debug reload");
    State::of(&place.engine);
}
