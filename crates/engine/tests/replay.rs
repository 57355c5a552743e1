//! Running a history through `execute` and replaying what it recorded gives an equal keyspace: from nothing, and from
//! the parts of a snapshot that was taken while the history went on, with one client and with many at once.
//!
//! Prints its seed; `HOLDFAST_TEST_SEED=… cargo test -p engine --test replay` asks for the same again. Where keys lie,
//! and so what the parts of a snapshot are, is another matter in every process.

mod common;
#[path = "replay/damage.rs"]
mod damage;
#[path = "replay/indexes.rs"]
mod indexes;
#[path = "replay/polls.rs"]
mod polls;
#[path = "replay/threads.rs"]
mod threads;

use common::place::{Asker, Place, Taken};
use common::requests::Source;
use common::seed;
use common::state::{Content, State};
use engine::execution::walk::{Placement, SnapshotPart, Walk};
use engine::{Engine, Persistence};
use fastrand::Rng;
use keyspace::Key;
use keyspace::NameHasher;
use keyspace::effects::codec::{self, Decoder, encode};
use std::collections::{BTreeMap, BTreeSet};

const HISTORIES: usize = 3;
const HISTORIES_MAX: usize = 200;
const REQUESTS: usize = 600;
/// Walks of one history, no more than two of them at once.
const WALKS_MAX: usize = 4;
const SHARD_COUNTS: &[usize] = &[1, 2, 8, 64];

#[test]
fn replaying_a_history_gives_an_equal_keyspace() {
    let mut random = Rng::with_seed(seed());
    let mut recorded = BTreeSet::new();
    for number in 0..HISTORIES_MAX {
        let seed = random.u64(..);
        println!("history {number}");
        let mut history = History::new(seed);
        // A command that never changed anything here was not tested: as long as chance has left some out, it goes on.
        if !history.source.want_missing(&recorded) && number >= HISTORIES {
            return;
        }
        history.run(&mut recorded);
    }
    panic!("not all effects are among those of {recorded:?}");
}

/// One engine with a random life.
struct History {
    source: Source,
    settings: Vec<(&'static str, &'static str)>,
    live: Place,
    /// Thresholds change on the way. They are no part of the journal: what is replayed is kept in the form that the
    /// settings ask for then, as in Redis.
    changes_thresholds: bool,
    /// What the keyspace was when it had so many batches.
    marks: Vec<(u64, State)>,
}

impl History {
    fn new(seed: u64) -> History {
        let mut source = Source::new(seed);
        let entries_max = source.random.choice(["0", "4", "20", "512", "100000"]).unwrap_or_default();
        let value_max = source.random.choice(["4", "64", "64", "100000"]).unwrap_or_default();
        let settings = vec![
            ("hash-max-listpack-entries", entries_max),
            ("hash-max-listpack-value", value_max),
            ("zset-max-listpack-entries", entries_max),
            ("zset-max-listpack-value", value_max),
            ("stream-node-max-entries", entries_max),
        ];
        let shards = source.random.choice(SHARD_COUNTS).copied().unwrap_or(1);
        let changes_thresholds = source.random.u8(..4) == 0;
        let live = Place::new(shards, 2, &settings);
        History { source, settings, live, changes_thresholds, marks: Vec::new() }
    }

    /// Lives, and compares what can be replayed with what there is.
    fn run(mut self, recorded: &mut BTreeSet<String>) {
        let taken = self.live(recorded);
        let expected = State::of(&self.live.engine);
        let batches = self.live.kept.batches();
        self.replay_from_nothing(&batches, &expected);
        for taken in &taken {
            self.replay_snapshot(taken, &batches, &expected);
        }
    }

    fn live(&mut self, recorded: &mut BTreeSet<String>) -> Vec<Taken> {
        let (live, source) = (&self.live, &mut self.source);
        let mut askers = [live.asker(0), live.asker(1)];
        let mut walks: Vec<(Walk<'_>, Taken)> = Vec::new();
        let mut finished = Vec::new();
        let steps_at_once = source.random.choice([1, 2, 10]).unwrap_or(1);
        for _ in 0..REQUESTS {
            match source.random.u8(..100) {
                0..10 => live.pass_ms(source.random.u64(..900)),
                10..15 => askers[0].expire(),
                15 | 16 if walks.len() < 2 && walks.len() + finished.len() < WALKS_MAX => {
                    let (begun_after, walk) = (live.kept.tail(), engine::walk(&live.engine));
                    let taken = Taken::of(&walk, begun_after);
                    walks.push((walk, taken));
                }
                17..57 => {
                    walks.retain_mut(|(walk, taken)| {
                        let more = (0..source.random.usize(..=steps_at_once)).all(|_| taken.step(walk));
                        if !more {
                            let nothing =
                                Taken { placement: taken.placement, begun_after: taken.begun_after, parts: Vec::new() };
                            finished.push(std::mem::replace(taken, nothing));
                        }
                        more
                    });
                }
                57 => self.marks.push((live.kept.tail(), State::of(&live.engine))),
                58 if self.changes_thresholds => {
                    let max = source.random.choice([0, 3, 50, 512]).unwrap_or_default();
                    let which = source.random.choice(["entries", "value"]).unwrap_or_default();
                    let what = source.random.choice(["hash", "zset"]).unwrap_or_default();
                    askers[0].say(&format!("config set {what}-max-listpack-{which} {max}"));
                }
                _ => {}
            }
            source.now_ms = live.now_ms();
            let asker = &mut askers[usize::from(source.random.u8(..4) == 0)];
            let (request, tail) = (source.request(), live.kept.tail());
            let reply = asker.ask(&request);
            source.hear(&request, &reply);
            if live.kept.tail() > tail {
                recorded.insert(Source::name_of(&request));
            }
        }
        for (mut walk, mut taken) in walks {
            while taken.step(&mut walk) {}
            finished.push(taken);
        }
        finished
    }

    fn replay_from_nothing(&mut self, batches: &[(u64, Vec<u8>)], expected: &State) {
        let restored = self.restored();
        let mut replay = restored.replay(None);
        let mut marks = std::mem::take(&mut self.marks).into_iter().peekable();
        for (sequence, batch) in batches {
            assert_written_the_same(batch);
            while let Some((_, state)) = marks.next_if(|(tail, _)| tail < sequence) {
                self.assert_equal(&restored.engine, &state, &format!("from nothing, before batch {sequence}"));
            }
            replay.batch(*sequence, batch).expect("what was recorded can be applied");
        }
        self.assert_equal(&restored.engine, expected, "from nothing");
        // Indexes that the journal tells of are made from what there is, as at a start.
        engine::revive_indexes(&restored.engine, &[]);
        self.assert_equal(&restored.engine, expected, "from nothing, with its indexes");
        assert_replies_the_same(&self.live, &restored, !self.changes_thresholds);
    }

    fn replay_snapshot(&mut self, taken: &Taken, batches: &[(u64, Vec<u8>)], expected: &State) {
        taken.parts.iter().for_each(|(_, keys)| assert_written_the_same(keys));
        // The least that is needed, what came since the walk began, and everything.
        for after in [taken.oldest(), taken.begun_after, 0] {
            let restored = self.restored();
            let what = format!("parts of {} to {}, batches after {after}", taken.oldest(), taken.newest());
            restore(&restored, taken.placement, &taken.parts, batches, after);
            self.assert_equal(&restored.engine, expected, &what);
        }
    }

    /// An engine to replay into, with a random number of shards.
    fn restored(&mut self) -> Place {
        Place::new(self.source.random.choice(SHARD_COUNTS).copied().unwrap_or(1), 1, &self.settings)
    }

    fn assert_equal(&self, engine: &Engine, expected: &State, what: &str) {
        let found = State::of(engine);
        match self.changes_thresholds {
            true => found.without_forms().assert_is(&expected.clone().without_forms(), what),
            false => found.assert_is(expected, what),
        }
    }
}

/// Brings parts and later batches into a place, on one thread or several.
pub(crate) fn restore(
    place: &Place,
    placement: Placement,
    parts: &[(SnapshotPart, Vec<u8>)],
    batches: &[(u64, Vec<u8>)],
    after: u64,
) {
    let mut replay = place.replay(Some(placement)).on_threads(&place.engine, 1 + parts.len() % 3);
    for parts in parts.chunks(9) {
        replay.parts(parts.to_vec()).expect("what was walked over can be put back");
    }
    let later: Vec<_> = batches.iter().filter(|(sequence, _)| *sequence > after).cloned().collect();
    for batches in later.chunks(200) {
        replay.many(batches.to_vec()).expect("what was recorded can be applied");
    }
}

/// What is read must be written as the same bytes.
fn assert_written_the_same(bytes: &[u8]) {
    let (mut effects, mut again) = (Decoder::new(bytes), Vec::new());
    while let Some((db, effect)) = effects.next().expect("what was written can be read") {
        encode(db, &effect, &mut again);
    }
    assert!(bytes == again, "\"{}\" is written again as \"{}\"", bytes.escape_ascii(), again.escape_ascii());
}

/// Asks both places about every key and compares the replies. The live one may expire keys in doing so.
fn assert_replies_the_same(live: &Place, restored: &Place, forms: bool) {
    restored.set_time_of(live);
    let (mut a, mut b) = (live.asker(0), restored.asker(0));
    let mut ask = |request: &[Vec<u8>]| {
        let (expected, found) = (a.ask(request), b.ask(request));
        let shown = request.join(&b' ');
        let (shown, found, expected) = (shown.escape_ascii(), &found, &expected);
        assert!(found == expected, "{shown}: \"{}\", not \"{}\"", found.escape_ascii(), expected.escape_ascii());
    };
    let words = |text: &str| text.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    ask(&words("debug digest"));
    for ((db, name), held) in State::of(&live.engine).0 {
        ask(&words(&format!("select {db}")));
        ask(&words("dbsize"));
        let small = matches!(held.content, Content::Packed(_)) && forms;
        let always: &[&str] = match held.content {
            // After a start it has its full time again.
            Content::Session { .. } => &["exists", "type", "session.info", "session.pending"],
            _ => &["exists", "type", "pttl", "get", "hlen", "zcard", "scard", "llen", "xlen", "xinfo groups"],
        };
        let of_form: &[&str] = if forms { &["object encoding"] } else { &[] };
        let of_small: &[&str] = if small { &["hgetall", "dump"] } else { &[] };
        for command in always.iter().chain(of_form).chain(of_small) {
            let mut request = words(command);
            request.push(name.clone());
            ask(&request);
        }
        // All that it holds, in its order.
        let (command, rest) = match held.content {
            Content::Set { members, .. } => ("smismember", members),
            Content::List { .. } => ("lrange", words("0 -1")),
            Content::SortedSet { .. } => ("zrevrange", words("0 -1 withscores")),
            Content::Table { fields, .. } => {
                let count = fields.len().to_string().into_bytes();
                ("hpttl", [b"FIELDS".to_vec(), count].into_iter().chain(fields.into_keys()).collect())
            }
            _ => continue,
        };
        ask(&[vec![command.as_bytes().to_vec(), name], rest].concat());
    }
}

/// The process that reads a snapshot finds keys where it likes: what counts is where they were.
#[test]
fn a_snapshot_of_a_process_with_another_seed_and_other_shards() {
    let mut random = Rng::with_seed(seed());
    for _ in 0..12 {
        let placement = Placement { family: NameHasher::FAMILY, seed: random.u64(..), shards: 1 << random.u32(..=9) };
        let names: Vec<String> = (0..random.usize(1..60)).map(|number| format!("{{{}}}{number}", number % 7)).collect();
        // One batch for each key and step; the key's part has the first few of them.
        let hasher = NameHasher::of_family(placement.family, placement.seed).expect("a known family");
        let place_of = |name: &str| {
            let key = Key::hashed_by(&hasher, name.as_bytes());
            (key.shard(placement.shards as usize), key.hash.position())
        };
        let mut batches = Vec::new();
        let steps: usize = random.usize(1..6);
        for step in 0..steps {
            for name in &names {
                let request = format!("append {name} {step}");
                batches.push((name, request));
            }
        }
        let live = Place::new(4, 1, &[]);
        let mut asker = live.asker(0);
        let mut parts = BTreeMap::new();
        let cuts: BTreeSet<(usize, u32)> = names.iter().map(|name| place_of(name)).collect();
        // A part ends at each key, and each has its own stamp.
        let stamps: Vec<u64> = cuts.iter().map(|_| random.u64(..=batches.len() as u64)).collect();
        for sequence in 0..=batches.len() as u64 {
            for (cut, _) in cuts.iter().zip(&stamps).filter(|(_, stamp)| **stamp == sequence) {
                let mut keys = Vec::new();
                for name in names.iter().filter(|name| place_of(name) == *cut) {
                    live.engine.keyspace.lock_all().encode_key(0, Key::new(name.as_bytes()), &mut keys);
                }
                parts.insert(*cut, (SnapshotPart { shard: cut.0 as u32, end: cut.1, sequence, keys: 1 }, keys));
            }
            if let Some((_, request)) = batches.get(sequence as usize) {
                asker.say(request);
            }
        }
        let restored = Place::new(8, 1, &[]);
        let parts: Vec<_> = parts.into_values().collect();
        let known = Placement::decode(&placement.encode()).expect("it is a placement");
        assert_eq!(known, placement);
        restore(&restored, known, &parts, &live.kept.batches(), 0);
        State::of(&restored.engine).assert_is(&State::of(&live.engine), "a snapshot of another process");
    }
}

#[test]
fn a_walk_keeps_batches_from_referring_to_other_keys() {
    let live = Place::new(1, 1, &[]);
    let mut asker = live.asker(0);
    for step in ["set a 1", "set b 2", "set c 3"] {
        asker.say(step);
    }
    let effects_of = |asker: &mut Asker<'_>, request: &str| {
        asker.say(request);
        let (_, batch) = live.kept.batches().pop().expect("there are batches");
        batch
    };
    assert_eq!(effects_of(&mut asker, "rename a d")[0], codec::tag::RENAME);
    let walk = engine::walk(&live.engine);
    assert_eq!(effects_of(&mut asker, "rename d a"), b"\x03\0\x01d\x02\0\x01a\0\x01\x01\x02");
    assert_eq!(effects_of(&mut asker, "copy b e"), b"\x02\0\x01e\0\x01\x01\x04");
    // One key in two databases is one place in a snapshot.
    assert_eq!(effects_of(&mut asker, "copy b b db 7"), b"\x07\0\x01b\x01b\x07");
    assert_eq!(effects_of(&mut asker, "move c 7"), b"\x08\0\x01c\x07");
    drop(walk);
    assert_eq!(effects_of(&mut asker, "copy b f"), b"\x07\0\x01b\x01f\0");
}

/// What is read back was used when it was read, not at the beginning of time.
#[test]
fn recovered_keys_count_as_just_used() {
    let live = Place::new(1, 1, &[]);
    let mut asker = live.asker(0);
    asker.say("set string 1");
    asker.say("hset hash f v");
    let (mut walk, batches) = (engine::walk(&live.engine), live.kept.batches());
    let mut taken = Taken::of(&walk, 0);
    while taken.step(&mut walk) {}
    for parts in [&taken.parts[..], &[]] {
        let restored = Place::new(1, 1, &[]);
        restore(&restored, taken.placement, parts, &batches, 0);
        let mut asker = restored.asker(0);
        for key in ["string", "hash"] {
            assert_eq!(asker.say(&format!("object idletime {key}")), b":0\r\n", "{key}, {} parts", parts.len());
        }
    }
}

/// Most effects can be applied twice without harm. Not this one.
#[test]
fn a_batch_that_a_part_has_is_not_applied_again() {
    let live = Place::new(1, 1, &[]);
    let mut asker = live.asker(0);
    asker.say("set a 1");
    asker.say("swapdb 0 1");
    let mut walk = engine::walk(&live.engine);
    let mut taken = Taken::of(&walk, 0);
    assert!(taken.step(&mut walk));
    asker.say("swapdb 1 2");
    assert_eq!((taken.oldest(), live.kept.tail()), (2, 3));
    let restored = Place::new(1, 1, &[]);
    restore(&restored, taken.placement, &taken.parts, &live.kept.batches(), 0);
    State::of(&restored.engine).assert_is(&State::of(&live.engine), "swapped once each");
}

/// A lock is not held for longer than a large value takes.
#[test]
fn a_part_has_few_large_values() {
    let live = Place::new(1, 1, &[]);
    let mut asker = live.asker(0);
    for db in [0, 3] {
        asker.say(&format!("select {db}"));
        asker.say("debug populate 150 small 10");
        asker.say("debug populate 150 large 30000");
    }
    let mut walk = engine::walk(&live.engine);
    let mut taken = Taken::of(&walk, 0);
    while taken.step(&mut walk) {}
    // Beside 64 KiB, the last key in two databases.
    let longest = taken.parts.iter().map(|(_, keys)| keys.len()).max();
    assert!(longest < Some(64 * 1024 + 2 * 31_000), "{longest:?} bytes");
    let keys: u32 = taken.parts.iter().map(|(part, _)| part.keys).sum();
    assert_eq!(keys, 600);
    let restored = Place::new(1, 1, &[]);
    restore(&restored, taken.placement, &taken.parts, &[], 0);
    State::of(&restored.engine).assert_is(&State::of(&live.engine), "large values");
}
