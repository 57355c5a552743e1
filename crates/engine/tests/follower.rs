//! An engine that only applies the batches of another, while clients read from it: each reply shows a state between two
//! batches, subscribers and caching clients are notified of changes, and in the end both engines hold the same.
//!
//! Prints its seed; `HOLDFAST_TEST_SEED=… cargo test -p engine --test follower` asks for the same requests again,
//! though never for the same interleaving.

mod common;
#[path = "follower/groups.rs"]
mod groups;
#[path = "follower/histories.rs"]
mod histories;
#[path = "follower/publication.rs"]
mod publication;
#[path = "follower/states.rs"]
mod states;
#[path = "follower/threads.rs"]
mod threads;

use common::peer::tokens;
use common::place::{Kept, Place};
use common::seed;
use common::state::State;
use engine::Persistence;
use engine::execution::replay::Replay;
use fastrand::Rng;
use keyspace::BadEffect;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

/// The worker of a follower that applies batches; clients have those from 1 on.
const APPLIES: usize = 0;

/// Applies the batches of a leader one by one, when it is told to.
pub(crate) struct Follower<'p> {
    leader: &'p Kept,
    replay: Replay<'p>,
    applied: u64,
}

impl<'p> Follower<'p> {
    pub(crate) fn new(leader: &'p Place, place: &'p Place) -> Follower<'p> {
        let replay = place.replay(None).go_live(place.engine.worker(APPLIES));
        Follower { leader: &leader.kept, replay, applied: 0 }
    }

    /// Applies all new batches. Returns how many there were.
    pub(crate) fn catch_up(&mut self) -> usize {
        let batches = self.leader.batches_after(self.applied);
        for (sequence, batch) in &batches {
            self.replay.batch(*sequence, batch).expect("what was recorded can be applied");
            self.applied = *sequence;
        }
        batches.len()
    }

    /// Applies batches as they come, and the last ones when the leader has stopped.
    pub(crate) fn follow_until(mut self, has_stopped: &AtomicBool) {
        let _stop = SetAtEnd(has_stopped);
        loop {
            // Loaded first: batches that came before it are found then.
            let is_last = has_stopped.load(SeqCst);
            if self.catch_up() == 0 {
                if is_last {
                    return;
                }
                thread::yield_now();
            }
        }
    }
}

/// Sets a flag when it is dropped, even by a panic: threads that wait for it must not wait for ever.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn a_follower_takes_no_writes_and_records_nothing() {
    let (leader, place) = (Place::new(4, 1, &[]), Place::new(4, 2, &[]));
    let mut follower = Follower::new(&leader, &place);
    let (mut writer, mut reader) = (leader.asker(0), place.asker(1));
    writer.say("SET a 1");
    follower.catch_up();
    const REFUSED: &[u8] = b"-READONLY You can't write against a read only replica.\r\n";
    for request in ["SET a 2", "DEL a", "BZPOPMIN z 0", "FLUSHALL", "IDX.DROP index:all"] {
        assert_eq!(reader.say(request), REFUSED, "{request}");
    }
    let script = [b"eval".to_vec(), b"return redis.call('set', KEYS[1], 2)".to_vec(), b"1".to_vec(), b"a".to_vec()];
    let reply = String::from_utf8(reader.ask(&script)).expect("text");
    assert!(reply.starts_with("-READONLY "), "{reply}");
    assert_eq!((tokens(&reader.say("GET a")), place.kept.tail()), (vec!["1".to_owned()], 0));
    // The leader is gone, and the follower is promoted.
    drop(follower);
    engine::end_following(&place.engine, &mut place.engine.worker(APPLIES));
    assert_eq!(reader.say("SET a 2"), b"+OK\r\n");
}

/// As after a start, whichever batch of the fork was the last that arrived.
#[test]
fn a_promoted_follower_undoes_an_unfinished_fork() {
    let leader = Place::new(4, 1, &[]);
    let mut writer = leader.asker(0);
    for number in 0..40 {
        writer.say(&format!("CELL.SET from/{number} {number}"));
    }
    writer.say("SET other 1");
    let before = leader.kept.tail();
    assert_eq!(writer.say("CELL.FORK from/ to/"), b":40\r\n");
    let batches = leader.kept.batches();
    let last = leader.kept.tail();
    assert!(last - before >= 3, "a beginning, copies and an end");
    let mut undone = 0;
    for cut in before..=last {
        let place = Place::new(4, 2, &[]);
        let mut replay = place.replay(None).go_live(place.engine.worker(APPLIES));
        let mut unforked = None;
        for (sequence, batch) in batches.iter().filter(|(sequence, _)| *sequence <= cut) {
            replay.batch(*sequence, batch).expect("what was recorded can be applied");
            if *sequence == before {
                unforked = Some(State::of(&place.engine));
            }
        }
        drop(replay);
        let removed = engine::end_following(&place.engine, &mut place.engine.worker(APPLIES));
        let mut client = place.asker(1);
        if cut == last {
            assert_eq!((removed, place.kept.tail()), (0, 0), "it was complete");
            State::of(&place.engine).assert_is(&State::of(&leader.engine), "a complete fork");
        } else {
            State::of(&place.engine).assert_is(&unforked.expect("it was applied"), "before the fork");
            // The removal is in the journal of the new leader.
            assert_eq!(place.kept.tail() > 0, cut > before, "after batch {cut}");
            assert_eq!(client.say("CELL.FORK from/ to/"), b":40\r\n", "after batch {cut}");
        }
        undone += removed;
    }
    assert!(undone > 0, "some cells were copied before the last batch");
}

/// As after a start, whichever batch of the restore was the last that arrived: all of it is there, or nothing.
#[test]
fn a_promoted_follower_finishes_a_restore_that_has_begun() {
    const MANY: usize = 10_500;
    let leader = Place::new(4, 1, &[]);
    let mut writer = leader.asker(0);
    let fill = format!("for n = 0, {} do redis.call('REG.PUT', 'r' .. n, 5, 'saved') end", MANY - 1);
    writer.ask(&["EVAL", &fill, "0"].map(|word| word.as_bytes().to_vec()));
    writer.say("REG.SNAPSHOT POSITION here STORE check");
    writer.say("REG.PUT r7 9 newer");
    writer.say("REG.PUT other 1 dropped");
    writer.say("DEL r8");
    let before = leader.kept.tail();
    assert_eq!(writer.say("REG.RESTORE FROM check"), format!("*2\r\n:{MANY}\r\n$4\r\nhere\r\n").into_bytes());
    let batches = leader.kept.batches();
    let last = leader.kept.tail();
    assert!(last - before >= 7, "pieces, the beginning, and pieces that are done");
    let (mut has_begun, mut finished) = (false, 0);
    // The first, the last, and some between them.
    let mut cuts = Rng::with_seed(seed()).choose_multiple(before + 1..last, 4);
    cuts.sort_unstable();
    for cut in [before].into_iter().chain(cuts).chain([last]) {
        let place = Place::new(4, 2, &[]);
        let mut replay = place.replay(None).go_live(place.engine.worker(APPLIES));
        let mut unrestored = None;
        for (sequence, batch) in batches.iter().filter(|(sequence, _)| *sequence <= cut) {
            replay.batch(*sequence, batch).expect("what was recorded can be applied");
            if *sequence == before {
                unrestored = Some(State::of(&place.engine));
            }
        }
        drop(replay);
        let set = engine::end_following(&place.engine, &mut place.engine.worker(APPLIES));
        let mut client = place.asker(1);
        let is_there = client.say("EXISTS r8") == b":1\r\n";
        assert!(is_there || !has_begun, "what has begun stays so: batch {cut}");
        has_begun = is_there;
        let expected = if is_there { State::of(&leader.engine) } else { unrestored.expect("it was applied") };
        State::of(&place.engine).assert_is(&expected, &format!("after batch {cut}"));
        assert_eq!(place.kept.tail() > 0, cut > before && cut < last, "what was done or forgotten is in the journal");
        assert_eq!(engine::finish_restores(&place.engine, &mut place.engine.worker(APPLIES)), 0, "nothing is left");
        finished += set;
    }
    println!("{finished} registers were set by the followers");
    assert!(has_begun);
}

/// Its commands passed the gates while the server was the leader.
#[test]
fn a_transaction_cannot_be_committed_on_a_follower() {
    let (leader, place) = (Place::new(4, 1, &[]), Place::new(4, 2, &[]));
    let mut client = place.asker(1);
    for request in ["TXN.BEGIN", "SET a 1", "SET b 1"] {
        assert_eq!(client.say(request), b"+OK\r\n", "{request}");
    }
    let follower = Follower::new(&leader, &place);
    const REFUSED: &[u8] = b"-READONLY You can't write against a read only replica.\r\n";
    assert_eq!(client.say("TXN.COMMIT"), REFUSED);
    assert_eq!((client.say("EXISTS a b"), place.kept.tail()), (b":0\r\n".to_vec(), 0));
    // A new one reads, and what it would write is refused at once.
    assert_eq!(client.say("TXN.BEGIN"), b"+OK\r\n");
    assert_eq!((client.say("SET a 1"), client.say("GET a")), (REFUSED.to_vec(), b"$-1\r\n".to_vec()));
    assert_eq!(client.say("TXN.COMMIT"), b":0\r\n");
    assert_eq!((client.say("EXISTS a b"), place.kept.tail()), (b":0\r\n".to_vec(), 0));
    drop(follower);
    engine::end_following(&place.engine, &mut place.engine.worker(APPLIES));
    for (request, reply) in [("TXN.BEGIN", "+OK\r\n"), ("SET a 1", "+OK\r\n"), ("TXN.COMMIT", ":1\r\n")] {
        assert_eq!(client.say(request), reply.as_bytes(), "{request}");
    }
}

/// The leader may have extended a deadline before the key expired; a follower cannot know.
#[test]
fn a_follower_removes_nothing_by_itself() {
    let (leader, place) = (Place::new(4, 1, &[]), Place::new(4, 2, &[]));
    let mut follower = Follower::new(&leader, &place);
    let (mut writer, mut reader) = (leader.asker(0), place.asker(1));
    for request in ["SET a 1 PX 1000", "HSET h f v g w", "HPEXPIRE h 1000 FIELDS 1 f", "SET b 1 PX 1000"] {
        writer.say(request);
    }
    follower.catch_up();
    // Its clock is ahead.
    place.pass_ms(2_000);
    for (request, reply) in
        [("GET a", "$-1\r\n"), ("HGET h f", "$-1\r\n"), ("EXISTS b", ":0\r\n"), ("HLEN h", ":1\r\n")]
    {
        assert_eq!(reader.say(request), reply.as_bytes(), "{request}");
    }
    reader.expire();
    writer.say("PERSIST a");
    writer.say("HPERSIST h FIELDS 1 f");
    leader.pass_ms(2_000);
    assert_eq!(writer.say("GET b"), b"$-1\r\n");
    follower.catch_up();
    assert_eq!(tokens(&reader.say("GET a")), ["1"]);
    assert_eq!(tokens(&reader.say("HGET h f")), ["v"]);
    State::of(&place.engine).assert_is(&State::of(&leader.engine), "after all");
    assert_eq!(place.kept.tail(), 0);
}

#[test]
fn a_batch_that_is_cut_short_changes_nothing() {
    let (leader, place) = (Place::new(4, 1, &[]), Place::new(4, 2, &[]));
    let mut writer = leader.asker(0);
    let code = "#!lua name=l\nredis.register_function('f', function() return 1 end)";
    for request in
        ["SET a 1", "HSET h f v g w", "ZADD z 1 m 2 n", "PEXPIRE a 5000", "COPY a b", "RENAME b c", "SWAPDB 0 3"]
    {
        writer.say(request);
    }
    writer.ask(&[b"function".to_vec(), b"load".to_vec(), code.as_bytes().to_vec()]);
    let mut replay = place.replay(None).go_live(place.engine.worker(APPLIES));
    for (sequence, batch) in leader.kept.batches() {
        let before = State::of(&place.engine);
        for len in 1..batch.len() {
            assert!(replay.batch(sequence, &batch[..len]).is_err(), "{len} bytes of \"{}\"", batch.escape_ascii());
        }
        State::of(&place.engine).assert_is(&before, "what was refused");
        replay.batch(sequence, &batch).expect("the whole batch can be applied");
    }
    State::of(&place.engine).assert_is(&State::of(&leader.engine), "after all");
}

#[test]
fn a_batch_for_another_type_is_refused() {
    for (here, there) in [("SET k 1", "HSET k f v"), ("HSET k f v", "ZADD k 1 m"), ("ZADD k 1 m", "SETRANGE k 1 x")] {
        let (leader, place) = (Place::new(1, 1, &[]), Place::new(1, 2, &[]));
        leader.asker(0).say(there);
        place.asker(1).say(here);
        let (sequence, batch) = leader.kept.batches().remove(0);
        let before = State::of(&place.engine);
        let mut replay = place.replay(None).go_live(place.engine.worker(APPLIES));
        assert!(matches!(replay.batch(sequence, &batch), Err(BadEffect::WrongType)), "{there} after {here}");
        State::of(&place.engine).assert_is(&before, "what was refused");
    }
}
