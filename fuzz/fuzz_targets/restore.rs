//! Any bytes as what RESTORE is given: what it takes, every command of the value's type can work with, and DUMP gives a
//! payload that makes an equal value. `rdb_payload` does the same for the reading alone.

#![no_main]

mod footer;
#[path = "../../crates/engine/tests/common/host.rs"]
mod host;
#[path = "../../crates/engine/tests/common/place.rs"]
#[allow(dead_code, reason = "the test uses more of it")]
mod place;
#[path = "../../crates/engine/tests/common/state.rs"]
#[allow(dead_code, reason = "the test uses more of it")]
mod state;

use engine::Settings;
use libfuzzer_sys::fuzz_target;
use place::{Asker, Place, settings};
use state::State;
use std::sync::{Arc, LazyLock};

/// Made once: that takes longer than most restores. Small thresholds, so that short values meet every form.
static SETTINGS: LazyLock<Arc<Settings>> = LazyLock::new(|| {
    settings(&[
        ("hash-max-listpack-entries", "4"),
        ("zset-max-listpack-entries", "4"),
        ("set-max-intset-entries", "4"),
        ("list-max-listpack-size", "8"),
        ("stream-node-max-entries", "4"),
    ])
});

/// What is asked of a value, whatever its type: most of it is refused for most values.
const READS: &[&str] = &[
    "object encoding k",
    "memory usage k samples 0",
    "debug digest-value k",
    "strlen k",
    "pfcount k",
    "pfdebug encoding k",
    "hgetall k",
    "zrange k 0 -1 rev withscores",
    "smembers k",
    "lrange k 1 -2",
    "lindex k -1",
    "lpos k a rank -1 count 0",
    "sort_ro k alpha",
    "xinfo stream k full count 0",
    "xinfo groups k",
    "xrevrange k + - count 3",
    "xread count 2 streams k 0",
    "xpending k g",
    "xpending k g idle 1 - + 10 c",
    "cell.history k",
    "reg.get k",
    "run.project k",
    "run.events k",
    "session.info k",
    "session.pending k",
];

/// Writes that a value is given one after the other.
const WRITES: &[&str] = &[
    "pfadd k a b",
    "pfmerge m k",
    "pfdebug getreg k",
    "append k x",
    "hset k f v",
    "hdel k f",
    "zadd k 1 f",
    "zpopmin k",
    "sadd k f",
    "spop k",
    "rpush k a b a",
    "linsert k before a c",
    "lset k 1 d",
    "lrem k -1 a",
    "lmove k k left right",
    "lpop k",
    "ltrim k 1 -2",
    "xgroup create k g 0",
    "xreadgroup group g c count 2 streams k >",
    "xautoclaim k g d 0 0",
    "xclaim k g c 0 1-1 force",
    "xadd k maxlen ~ 6 * f v",
    "xack k g 1-1",
    "xdel k 1-1",
    "xgroup delconsumer k g c",
    "xtrim k maxlen 2",
    "xsetid k 1-1",
    "cell.set k v",
    "reg.incrby k 5 1 ordered",
    "reg.seal k 9",
    "reg.incrby k 3.5 1 ordered",
    "reg.seal k 4.0",
    "run.append k i RunStarted d",
    "session.push k p",
    "session.call k 1 low 0 incr n",
    "session.call k 2 low 2 incr n",
    "session.call k 3 low 3 incr n",
    "session.retry 9999999999999",
    "session.ack k 2",
];

fuzz_target!(|body: &[u8]| {
    let place = Place::with(1, 1, SETTINGS.clone());
    let mut asker = place.asker(0);
    if !restored(&mut asker, "k", &footer::with_footer(body, 12)) {
        assert_eq!(asker.say("dbsize"), b":0\r\n", "a payload that was refused has changed something");
        assert!(place.kept.batches().is_empty(), "a payload that was refused has recorded something");
        return;
    }
    READS.iter().for_each(|line| drop(asker.say(line)));
    let digest = |asker: &mut Asker<'_>, key: &str| asker.say(&format!("debug digest-value {key}"));
    let before = digest(&mut asker, "k");
    if let Some(payload) = dumped(&mut asker) {
        assert!(restored(&mut asker, "j", &payload), "DUMP gave what RESTORE refuses");
        assert_eq!(digest(&mut asker, "j"), before, "another value than was dumped");
    }
    asker.say("debug reload");
    assert_eq!(digest(&mut asker, "k"), before, "another value after a reload");
    for line in WRITES {
        asker.say(line);
        State::of(&place.engine);
    }
    let before = digest(&mut asker, "k");
    asker.say("debug reload");
    assert_eq!(digest(&mut asker, "k"), before, "another value after writes and a reload");
});

fn restored(asker: &mut Asker<'_>, key: &str, payload: &[u8]) -> bool {
    asker.ask(&[b"restore".to_vec(), key.into(), b"0".to_vec(), payload.to_vec()]) == b"+OK\r\n"
}

/// The payload of the key; `None` when there is none any more, as when every field of a hash has expired.
fn dumped(asker: &mut Asker<'_>) -> Option<Vec<u8>> {
    let reply = asker.say("dump k");
    let head = reply.iter().position(|byte| *byte == b'\n')? + 1;
    (reply[0] == b'$' && reply[1] != b'-').then(|| reply[head..reply.len() - 2].to_vec())
}
