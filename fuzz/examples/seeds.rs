//! Writes what the fuzz targets begin with to `corpus`: real values in every form that Redis has for them, files that Redis
//! wrote, and effects of random lives. Random bytes alone hardly ever become a stream with a pending entry.
//!
//! The values come from a `redis-server` in the path, and from our own engine where there is none: DUMP gives the same bytes.

#[path = "../fuzz_targets/footer.rs"]
mod footer;
#[path = "../../crates/engine/tests/common/host.rs"]
mod host;
#[path = "../../crates/engine/tests/common/place.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod place;
#[path = "../../crates/engine/tests/common/requests.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod requests;

use place::{Place, Taken};
use requests::Source;
use std::fs;
use std::path::{Path, PathBuf};
use wire::{Redis, Reply};

/// What makes the values, one key for each form. `#` is an element too long for a node that it would share.
const LINES: &[&str] = &[
    "SET string:int 12",
    "SET string:text some-text-that-is-longer-than-an-embedded-string-may-be-some-text",
    "HSET hash a 1 b text",
    "ZADD zset 1 a -0.5 b",
    "SADD set a b c",
    "SADD intset 1 2 70000",
    "RPUSH list a 12 -70000 99999999999 text",
    "RPUSH list:nodes a # b #",
    "PFADD hll:sparse a b c d",
    "PFADD hll:empty",
    "PFADD hll:dense a b c d",
    "PFDEBUG TODENSE hll:dense",
    "XADD stream 1-1 a 1 b text",
    "XADD stream 1-2 a 2 b more",
    "XADD stream 5-0 c -70000",
    "XADD stream 1526919030474-55 a 3 b 4",
    "XGROUP CREATE stream g 0",
    "XGROUP CREATE stream h 1-1 ENTRIESREAD 1",
    "XREADGROUP GROUP g c COUNT 2 STREAMS stream >",
    "XREADGROUP GROUP g d COUNT 1 STREAMS stream >",
    "XCLAIM stream g d 0 1-1 TIME 1000 RETRYCOUNT 7",
    "XDEL stream 1-2",
    "XADD stream:empty MAXLEN 0 5-1 a 1",
    "XGROUP CREATE stream:new g $ MKSTREAM",
    "XGROUP CREATECONSUMER stream:new g c",
    "XADD stream:short 1-1 a 1",
    "XGROUP CREATE stream:short g 0",
    "XREADGROUP GROUP g c STREAMS stream:short >",
];

/// Forms that Redis 7.0 reads but does not write, with the type byte, without the footer.
const OTHER_FORMS: &[(&str, &[u8])] = &[
    ("list-1", b"\x01\x03\x01b\xc0\x0c\x01b"),
    ("list-ziplist", b"\x0a\x10\x10\0\0\0\x0c\0\0\0\x02\0\0\xf3\x02\x01a\xff"),
    (
        "list-quicklist",
        b"\x0e\x02\x10\x10\0\0\0\x0c\0\0\0\x02\0\0\xf3\x02\x01a\xff\x10\x10\0\0\0\x0c\0\0\0\x02\0\0\xf3\x02\x01a\xff",
    ),
    ("list-plain-nodes", b"\x12\x03\x01\x03abc\x02\x09\x09\0\0\0\x01\0\x05\x01\xff\x01\x0212"),
    // One entry, 1-1, and a group that has given it to a consumer: of Redis 5, of 7.0 and of 7.2.
    (
        "stream-1",
        b"\x0f\x01\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x1c\x1c\0\0\0\x0a\0\x01\x01\0\x01\x01\x01\x81a\x02\0\x01\x02\x01\0\x01\0\x01\x01\x01\x04\x01\xff\
          \x01\x01\x01\x01\x01g\x01\x01\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x05\0\0\0\0\0\0\0\x03\x01\x01c\x09\0\0\0\0\0\0\0\
          \x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01",
    ),
    (
        "stream-2",
        b"\x13\x01\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x1c\x1c\0\0\0\x0a\0\x01\x01\0\x01\x01\x01\x81a\x02\0\x01\x02\x01\0\x01\0\x01\x01\x01\x04\x01\xff\
          \x01\x01\x01\x01\x01\0\0\x01\x01\x01g\x01\x01\x01\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x05\0\0\0\0\0\0\0\x03\x01\x01c\x09\0\0\0\0\0\0\0\
          \x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01",
    ),
    (
        "stream-3",
        b"\x15\x01\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x1c\x1c\0\0\0\x0a\0\x01\x01\0\x01\x01\x01\x81a\x02\0\x01\x02\x01\0\x01\0\x01\x01\x01\x04\x01\xff\
          \x01\x01\x01\x01\x01\0\0\x01\x01\x01g\x01\x01\x01\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x05\0\0\0\0\0\0\0\x03\x01\x01c\x09\0\0\0\0\0\0\0\
          \x08\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01",
    ),
];

/// Values of types that Redis does not have.
const OWN_LINES: &[&str] = &[
    "CELL.SET cell one",
    "CELL.SET cell two",
    "REG.PUT plain 1 a ORDERED",
    "REG.PUT plain 3 c ORDERED",
    "REG.INCRBY dotted 2.7 10 ORDERED",
    "REG.SEAL dotted 1.5",
    "RUN.APPEND run key RunStarted data STEP s",
    "SESSION.OPEN ID session TTL 5000 CAP 1 kind worker",
    "SESSION.CALL session 1 LOW 1 INCR n",
    "SESSION.CALL session 2 LOW 2 ECHO text",
    "SESSION.PUSH session one",
    "SESSION.PUSH session two",
    "SESSION.ACK session 1",
];
const OWN_KEYS: &[&str] = &["cell", "plain", "dotted", "run", "session"];

/// The version and the checksum at the end of a payload.
const FOOTER_BYTES: usize = 10;
/// `scripts/fuzz` tries nothing longer.
const SEED_BYTES_MAX: usize = 4096;

fn main() {
    let live = Place::new(2, 1, &[]);
    let mut asker = live.asker(0);
    let mut ask = |request: &[Vec<u8>]| asker.ask(request);
    LINES.iter().for_each(|line| accepted(line, &ask(&request(line))));

    for (name, body) in OTHER_FORMS {
        let payload = footer::with_footer(body, 12);
        let restored = ask(&[b"RESTORE".to_vec(), name.as_bytes().to_vec(), b"0".to_vec(), payload]);
        accepted(name, &restored);
        write_value(name, body);
    }
    OWN_LINES.iter().for_each(|line| accepted(line, &ask(&request(line))));
    for key in OWN_KEYS {
        let reply = ask(&[b"DUMP".to_vec(), key.as_bytes().to_vec()]);
        let payload = Reply::read(&mut &reply[..]).expect("a whole reply").bytes().to_vec();
        write_value(key, &payload[..payload.len() - FOOTER_BYTES]);
    }
    let mut redis = Redis::start().map(|redis| (redis.connect(), redis));
    if let Some((connection, _)) = &mut redis {
        for line in LINES {
            let reply = connection.run_args(&request(line));
            assert!(!reply.is_error(), "{line}: {reply}");
        }
    }
    let mut keys: Vec<&str> = LINES.iter().map(|line| key_of(line)).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let payload = match &mut redis {
            Some((connection, _)) => connection.run_args(&["DUMP", key]).bytes().to_vec(),
            None => {
                let reply = ask(&[b"DUMP".to_vec(), key.into()]);
                Reply::read(&mut &reply[..]).expect("a whole reply").bytes().to_vec()
            }
        };
        write_value(key, &payload[..payload.len() - FOOTER_BYTES]);
    }

    write_effects("values", &live);
    for seed in 0..4 {
        write_effects(&format!("life-{seed}"), &random_life(seed));
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/formats/tests/fixtures/rdb");
    copy_files(&fixtures, "rdb", "rdb_file");
    copy_files(&fixtures, "aof", "aof_file");
    copy_files(&fixtures.join("appendonlydir"), "aof", "aof_file");
}

fn request(line: &str) -> Vec<Vec<u8>> {
    let bytes = |word: &str| if word == "#" { vec![b'x'; 9_000] } else { word.as_bytes().to_vec() };
    line.split(' ').map(bytes).collect()
}

/// The key that a line is about.
fn key_of(line: &str) -> &str {
    let words: Vec<&str> = line.split(' ').collect();
    match words[0] {
        "XGROUP" | "PFDEBUG" => words[2],
        "XREADGROUP" => words[words.len() - 2],
        _ => words[1],
    }
}

fn accepted(what: &str, reply: &[u8]) {
    assert_ne!(reply[0], b'-', "{what}: {}", String::from_utf8_lossy(reply));
}

fn random_life(seed: u64) -> Place {
    let live = Place::new(2, 1, &[]);
    let (mut asker, mut source) = (live.asker(0), Source::new(seed));
    for _ in 0..600 {
        source.now_ms = live.now_ms();
        let request = source.request();
        let reply = asker.ask(&request);
        source.hear(&request, &reply);
        live.pass_ms(source.random.u64(..100));
    }
    drop(asker);
    live
}

/// A value for each target that is given one.
fn write_value(name: &str, body: &[u8]) {
    write("rdb_payload", name, body);
    write("restore", name, body);
    // A key of one byte, between what stands before and behind keys.
    let file = [b"REDIS0012\xfe\0", &body[..1], b"\x01k", &body[1..], b"\xff\0\0\0\0\0\0\0\0"].concat();
    write("rdb_file", name, &file);
}

/// What an engine has recorded, and what a snapshot of it says, as `replay` reads them.
fn write_effects(name: &str, live: &Place) {
    let mut walk = engine::walk(&live.engine);
    let mut taken = Taken::of(&walk, 0);
    while taken.step(&mut walk) {}
    for (number, (_, keys)) in taken.parts.iter().enumerate() {
        let cut = u16::try_from(keys.len()).unwrap_or(u16::MAX).to_be_bytes();
        write("replay", &format!("{name}-part-{number}"), &[&[0, 255, cut[0], cut[1]], &keys[..]].concat());
    }
    let mut together = Vec::new();
    for (number, batch) in live.kept.batches() {
        if together.len() + batch.len() > SEED_BYTES_MAX / 2 {
            write("replay", &format!("{name}-batch-{number}"), &[&[0x30, 255, 0, 0], &together[..]].concat());
            together.clear();
        }
        together.extend(batch);
    }
}

fn copy_files(from: &Path, extension: &str, target: &str) {
    for file in fs::read_dir(from).expect("the fixtures are there").map(|file| file.expect("a file").path()) {
        if file.extension().is_some_and(|found| found == extension) {
            let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
            write(target, &name, &fs::read(&file).expect("a fixture can be read"));
        }
    }
}

fn write(target: &str, name: &str, bytes: &[u8]) {
    if bytes.len() > SEED_BYTES_MAX {
        return;
    }
    let dir: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&dir).expect("cannot create a directory for seeds");
    fs::write(dir.join(format!("seed-{}", name.replace([':', '.'], "-"))), bytes).expect("cannot write a seed");
}
