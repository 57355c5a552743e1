//! Waits of CLAIM that once went wrong, each as short as it can be. Refuses to know how waiters are kept.

use super::{Peer, parse};
use crate::common::place::Place;
use engine::Persistence;
use std::task::Waker;

const DUE: &str = "IDX.CREATE due PREFIX 1 job: FIELD run_at";

fn place() -> Place {
    let place = Place::new(8, 1, &[]);
    Peer::new(&place).say(DUE);
    place
}

/// A client that waits for what `claim` asks for.
fn waits<'p>(place: &'p Place, claim: &str) -> Peer<'p> {
    let mut peer = Peer::new(place);
    assert_eq!(peer.ask(claim), None, "{claim} waits");
    peer
}

/// The names that a client has got.
fn got(peer: &mut Peer<'_>) -> Vec<String> {
    parse(&peer.outcome(false).unwrap_or(b"*0\r\n".to_vec())).into_iter().map(|row| row.0).collect()
}

/// What the server's timer does, if it is set for a time up to now.
fn timer(place: &Place) {
    let mut peer = Peer::new(place);
    if place.engine.next_due_record(Waker::noop()).is_some_and(|due_ms| due_ms <= place.now_ms()) {
        place.engine.begin(&mut peer.worker);
        place.engine.serve_due_records(&mut peer.worker);
    }
}

#[test]
fn one_that_waits_for_any_score_is_not_looked_for_again_and_again() {
    let place = place();
    let mut waiting = waits(&place, "CLAIM 1 due SET 1 owner w BLOCK 0");
    assert_eq!(place.engine.next_due_record(Waker::noop()), None);
    Peer::new(&place).say("HSET job:1 run_at 5");
    assert_eq!(got(&mut waiting), ["job:1"]);
}

#[test]
fn a_record_that_is_written_twice_is_claimed_once() {
    let place = place();
    let mut waiting = waits(&place, "CLAIM 1 due MAX 10 SET 1 owner w COUNTER attempt COUNT 5 BLOCK 0");
    let mut writer = Peer::new(&place);
    for line in ["MULTI", "HSET job:1 run_at 5", "HSET job:1 state pending", "EXEC"] {
        writer.say(line);
    }
    assert_eq!(got(&mut waiting), ["job:1"]);
    assert_eq!(writer.say("HGET job:1 attempt"), "$1\r\n1\r\n");
}

#[test]
fn a_record_that_stays_where_it_was_is_set_aside_once() {
    let place = place();
    let claim = "CLAIM 1 due MAX 10 SET 1 run_at 9 COUNTER attempt UPTO 3 ELSE 1 note NOW BLOCK 0";
    let (mut first, mut second) = (waits(&place, claim), waits(&place, claim));
    let mut writer = Peer::new(&place);
    writer.say("HSET job:1 run_at 5 attempt 3");
    assert_eq!(place.kept.tail(), 3, "the index, HSET and ELSE");
    assert_eq!((got(&mut first).len(), got(&mut second).len()), (0, 0));
    // As soon as it is written again, it is looked at again.
    writer.say("HSET job:1 attempt 0");
    assert_eq!((got(&mut first), got(&mut second)), (vec!["job:1".into()], vec!["job:1".into()]));
}

#[test]
fn what_is_written_below_the_time_of_the_last_search_is_found() {
    let place = place();
    let mut waiting = waits(&place, "CLAIM 1 due MAX NOW SET 1 run_at 0 BLOCK 0");
    // As with a thread that has read the clock a little earlier than another.
    place.step_ms(-3);
    Peer::new(&place).say(&format!("HSET job:1 run_at {}", place.now_ms() + 1));
    assert!(got(&mut waiting).is_empty());
    place.pass_ms(1);
    timer(&place);
    assert_eq!(got(&mut waiting), ["job:1"]);
}

#[test]
fn what_was_too_old_is_found_when_the_clock_is_set_back() {
    let place = place();
    let mut writer = Peer::new(&place);
    writer.say(&format!("HSET job:1 run_at {}", place.now_ms() - 100));
    let mut waiting = waits(&place, "CLAIM 1 due MIN NOW MAX NOW+60000 SET 1 run_at 0 BLOCK 0");
    place.step_ms(-200);
    place.engine.expire_cycle(&mut writer.worker, 0, 1, 1_000_000);
    assert_eq!(got(&mut waiting), ["job:1"]);
}

/// Of a record that is due and one that was just written, the one with the lower score is first, though the timer is late.
#[test]
fn what_is_due_and_what_was_written_are_in_order() {
    for (due_in, score) in [(5, 7), (7, 5)] {
        let place = place();
        let (mut writer, now_ms) = (Peer::new(&place), place.now_ms());
        writer.say(&format!("HSET job:due run_at {}", now_ms + due_in));
        let claim = "CLAIM 1 due MAX NOW SET 1 run_at none BLOCK 0";
        let (mut first, mut second) = (waits(&place, claim), waits(&place, claim));
        place.pass_ms(10);
        writer.say(&format!("HSET job:new run_at {}", now_ms + score));
        timer(&place);
        let mut order = ["job:due", "job:new"];
        order.sort_by_key(|name| if *name == "job:due" { due_in } else { score });
        assert_eq!([got(&mut first), got(&mut second)].concat(), order);
    }
}

/// Serves until there is nothing more to do, and tells how often that took a turn.
fn serve_all(place: &Place) -> usize {
    for turn in 0..10_000 {
        if place.engine.next_due_record(Waker::noop()).is_none_or(|due_ms| due_ms > place.now_ms()) {
            return turn;
        }
        timer(place);
    }
    panic!("it never ends");
}

/// More records than are noted one by one, in one shard, are set aside by two clients that differ in what is too often, and
/// stay in the index.
#[test]
fn what_two_set_aside_again_and_again_comes_to_an_end() {
    const RECORDS: usize = 2500;
    let place = place();
    let claim =
        |max: usize| format!("CLAIM 1 due MAX 10 SET 1 run_at 9 COUNTER attempt UPTO {max} ELSE 1 note NOW BLOCK 0");
    let (mut first, mut second) = (waits(&place, &claim(5)), waits(&place, &claim(6)));
    let mut writer = Peer::new(&place);
    let before = place.kept.tail();
    writer.say("MULTI");
    (0..RECORDS).for_each(|number| drop(writer.say(&format!("HSET job:{{tag}}{number} run_at 5 attempt 9"))));
    writer.say("EXEC");
    serve_all(&place);
    assert_eq!((got(&mut first).len(), got(&mut second).len()), (0, 0));
    let written = (place.kept.tail() - before) as usize;
    assert!((RECORDS..=4 * RECORDS).contains(&written), "{written} batches for {RECORDS} records");
}

/// However many want other records, a write is looked at by those that want it.
#[test]
fn of_many_with_conditions_the_right_ones_are_served() {
    let place = place();
    let claim = |kind: usize| format!("CLAIM 1 due WHERE kind 2 k{kind} all SET 1 run_at none BLOCK 0");
    let mut waiting: Vec<_> = (0..300).map(|kind| waits(&place, &claim(kind))).collect();
    let mut writer = Peer::new(&place);
    writer.say("HSET job:1 run_at 5 kind k217");
    writer.say("HSET job:2 run_at 5 kind other");
    writer.say("HSET job:3 run_at 5 kind all");
    let served: Vec<_> = waiting.iter_mut().map(got).enumerate().filter(|(_, got)| !got.is_empty()).collect();
    assert_eq!(served, [(0, vec!["job:3".to_owned()]), (217, vec!["job:1".to_owned()])]);
    // Those that were served want nothing more, and a record that changes its kind is for another.
    writer.say("HSET job:2 kind k217");
    writer.say("HSET job:2 kind k218");
    assert_eq!(got(&mut waiting[218]), ["job:2"]);
    assert_eq!(place.engine.next_due_record(Waker::noop()), None);
}

/// A client whose search takes long does not keep those from their records that wait in another line.
#[test]
fn a_long_search_lets_other_lines_go_first() {
    let place = place();
    let mut writer = Peer::new(&place);
    writer.say("IDX.CREATE other PREFIX 1 other: FIELD run_at");
    let later = place.now_ms() + 10;
    writer.say("MULTI");
    (0..5000).for_each(|number| drop(writer.say(&format!("HSET job:{number} run_at {later} kind no"))));
    writer.say("EXEC");
    let mut long = waits(&place, "CLAIM 1 due MAX NOW WHERE kind 1 yes SET 1 run_at none BLOCK 0");
    let mut short = waits(&place, "CLAIM 1 other MAX NOW SET 1 run_at none BLOCK 0");
    writer.say(&format!("HSET other:1 run_at {later}"));
    place.pass_ms(10);
    // A slice is over after a few looks at the clock.
    place.set_look_ns(100_000);
    let mut turns = 0;
    let served = loop {
        timer(&place);
        turns += 1;
        match got(&mut short) {
            names if names.is_empty() => assert!(turns < 5, "it waits for the other's search"),
            names => break names,
        }
    };
    assert_eq!(served, ["other:1"]);
    assert!(serve_all(&place) > 0, "the long search was not at its end");
    assert!(got(&mut long).is_empty());
}

/// `NOW` is the time of the slice that claims, not of the one in which a long search began.
#[test]
fn a_lease_begins_when_the_record_is_claimed() {
    let place = place();
    let mut writer = Peer::new(&place);
    let later = place.now_ms() + 10;
    writer.say("MULTI");
    (0..5000).for_each(|number| drop(writer.say(&format!("HSET job:{number:04} run_at {later} kind no"))));
    writer.say(&format!("HSET job:last run_at {} kind yes", later + 1));
    writer.say("EXEC");
    let mut waiting = waits(&place, "CLAIM 1 due MAX NOW WHERE kind 1 yes SET 1 run_at NOW+5 BLOCK 0");
    place.pass_ms(20);
    place.set_look_ns(100_000);
    // Many slices, of which each begins a second later.
    for _ in 0..10_000 {
        timer(&place);
        let found = got(&mut waiting);
        if !found.is_empty() {
            assert_eq!(found, ["job:last"]);
            break;
        }
        place.pass_ms(1000);
    }
    place.set_look_ns(0);
    assert!(place.now_ms() > later + 5000, "it took several slices");
    let run_at = writer.say("HGET job:last run_at");
    let run_at: u64 = run_at.lines().nth(1).and_then(|line| line.parse().ok()).expect("a time");
    assert!((place.now_ms()..=place.now_ms() + 1000).contains(&run_at), "{run_at} at {}", place.now_ms());
}

/// The client of a claim that is refused meanwhile counts as one whose command has failed.
#[test]
fn an_index_that_is_dropped_is_an_error_that_counts() {
    let place = place();
    let mut waiting = waits(&place, "CLAIM 1 due SET 1 owner w BLOCK 0");
    let mut peer = Peer::new(&place);
    peer.say("IDX.DROP due");
    assert_eq!(waiting.outcome(false).expect("an error"), b"-ERR the index 'due' was dropped\r\n");
    let stats = peer.say("INFO commandstats errorstats");
    let claim = stats.lines().find(|line| line.starts_with("cmdstat_claim:")).expect("it was called");
    assert!(claim.contains("calls=1,") && claim.contains("failed_calls=1"), "{claim}");
    assert!(stats.contains("errorstat_ERR:count=1"), "{stats}");
}

/// As a command that waits for a key: logged once, with the client that has sent it, when it is served.
#[test]
fn a_claim_that_waited_is_logged_once_as_slow() {
    let place = Place::new(8, 1, &[("slowlog-log-slower-than", "0")]);
    let mut writer = Peer::new(&place);
    writer.say(DUE);
    let mut waiting = waits(&place, "CLAIM 1 due SET 1 owner w BLOCK 0");
    let logged = |writer: &mut Peer<'_>| writer.say("SLOWLOG GET 100").matches("CLAIM").count();
    assert_eq!(logged(&mut writer), 0);
    writer.say("HSET job:1 run_at 5");
    assert_eq!(got(&mut waiting), ["job:1"]);
    assert_eq!(logged(&mut writer), 1);
}

/// A client's memory has in it what it waits with.
#[test]
fn the_memory_of_a_client_has_the_command_in_it_with_which_it_waits() {
    let place = place();
    let value = "v".repeat(1 << 20);
    let mut waiting = waits(&place, &format!("CLAIM 1 due WHERE kind 1 {value} SET 1 owner w BLOCK 0"));
    let memory = |peer: &Peer<'_>| peer.client.handle.memory_bytes();
    assert!(memory(&waiting) > 1 << 20, "{}", memory(&waiting));
    Peer::new(&place).say(&format!("HSET job:1 run_at 5 kind {value}"));
    assert_eq!(got(&mut waiting), ["job:1"]);
    assert!(memory(&waiting) < 1 << 20, "{}", memory(&waiting));
}

/// With offsets beyond what a score can tell apart, a time may come before its record is in the range. It keeps nobody else
/// from being served.
#[test]
fn a_time_that_cannot_be_told_exactly_keeps_nobody_waiting() {
    let place = place();
    let (mut writer, offset) = (Peer::new(&place), 1u64 << 62);
    // In the range when the sum is rounded to a higher score, half a second after its time.
    let score = offset + place.now_ms().next_multiple_of(1024) + 1024;
    writer.say(&format!("HSET job:far run_at {score}"));
    let mut odd = waits(&place, &format!("CLAIM 1 due MIN {offset} MAX (NOW+{offset} SET 1 run_at none BLOCK 0"));
    place.pass_ms(score - offset - place.now_ms());
    let mut even = waits(&place, "CLAIM 1 due MAX NOW SET 1 run_at none BLOCK 0");
    writer.say(&format!("HSET job:near run_at {}", place.now_ms() + 1));
    place.pass_ms(1);
    timer(&place);
    assert_eq!(got(&mut even), ["job:near"]);
    assert!(got(&mut odd).is_empty());
    place.pass_ms(1024);
    timer(&place);
    assert_eq!(got(&mut odd), ["job:far"]);
}
