//! Waits of CLAIM that once went wrong, each as short as it can be. Refuses to know how waiters are kept.

use super::parse;
use crate::common::peer::Peer;
use crate::common::place::Place;
use engine::Persistence;
use std::task::Waker;

const DUE: &str = "IDX.CREATE due PREFIX 1 job: FIELD run_at";

fn place() -> Place {
    let place = Place::new(8, 1, &[]);
    Peer::new(&place, 0).say(DUE);
    place
}

/// The names that a client has got.
fn got(peer: &mut Peer<'_>) -> Vec<String> {
    parse(&peer.outcome(false).unwrap_or(b"*0\r\n".to_vec())).into_iter().map(|row| row.0).collect()
}

/// What the server's timer does, if it is set for a time up to now. Returns how often it did.
pub(crate) fn timer(place: &Place) -> usize {
    let is_due = engine::next_due_record(&place.engine, Waker::noop()).is_some_and(|due_ms| due_ms <= place.now_ms());
    if is_due {
        let mut peer = Peer::new(place, 0);
        place.engine.begin(&mut peer.worker);
        engine::serve_due_records(&place.engine, &mut peer.worker);
    }
    usize::from(is_due)
}

#[test]
fn a_waiter_for_any_score_is_searched_for_once() {
    let place = place();
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due SET 1 owner w BLOCK 0");
    assert_eq!(engine::next_due_record(&place.engine, Waker::noop()), None);
    Peer::new(&place, 0).say("HSET job:1 run_at 5");
    assert_eq!(got(&mut waiting), ["job:1"]);
}

#[test]
fn a_record_that_is_written_twice_is_claimed_once() {
    let place = place();
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due MAX 10 SET 1 owner w COUNTER attempt COUNT 5 BLOCK 0");
    let mut writer = Peer::new(&place, 0);
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
    let (mut first, mut second) = (Peer::waiting(&place, claim), Peer::waiting(&place, claim));
    let mut writer = Peer::new(&place, 0);
    writer.say("HSET job:1 run_at 5 attempt 3");
    assert_eq!(place.kept.tail(), 3, "the index, HSET and ELSE");
    assert_eq!((got(&mut first).len(), got(&mut second).len()), (0, 0));
    // As soon as it is written again, it is looked at again.
    writer.say("HSET job:1 attempt 0");
    assert_eq!((got(&mut first), got(&mut second)), (vec!["job:1".into()], vec!["job:1".into()]));
}

#[test]
fn a_record_below_the_time_of_the_last_search_is_found() {
    let place = place();
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due MAX NOW SET 1 run_at 0 BLOCK 0");
    // As with a thread that has read the clock a little earlier than another.
    place.step_ms(-3);
    Peer::new(&place, 0).say(&format!("HSET job:1 run_at {}", place.now_ms() + 1));
    assert!(got(&mut waiting).is_empty());
    place.pass_ms(1);
    timer(&place);
    assert_eq!(got(&mut waiting), ["job:1"]);
}

#[test]
fn a_record_that_was_too_old_is_found_when_the_clock_is_set_back() {
    let place = place();
    let mut writer = Peer::new(&place, 0);
    writer.say(&format!("HSET job:1 run_at {}", place.now_ms() - 100));
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due MIN NOW MAX NOW+60000 SET 1 run_at 0 BLOCK 0");
    place.step_ms(-200);
    engine::expire_cycle(&place.engine, &mut writer.worker, 0, 1, 1_000_000);
    assert_eq!(got(&mut waiting), ["job:1"]);
}

/// Of a record that is due and one that was just written, the one with the lower score is first, though the timer is
/// late.
#[test]
fn due_and_written_records_are_served_in_order() {
    for (due_in, score) in [(5, 7), (7, 5)] {
        let place = place();
        let (mut writer, now_ms) = (Peer::new(&place, 0), place.now_ms());
        writer.say(&format!("HSET job:due run_at {}", now_ms + due_in));
        let claim = "CLAIM 1 due MAX NOW SET 1 run_at none BLOCK 0";
        let (mut first, mut second) = (Peer::waiting(&place, claim), Peer::waiting(&place, claim));
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
        if timer(place) == 0 {
            return turn;
        }
    }
    panic!("it never ends");
}

/// Two clients with different limits set aside more records of one shard than are noted one by one; the records stay in
/// the index.
#[test]
fn two_waiters_that_set_a_record_aside_come_to_an_end() {
    const RECORDS: usize = 2500;
    let place = place();
    let claim =
        |max: usize| format!("CLAIM 1 due MAX 10 SET 1 run_at 9 COUNTER attempt UPTO {max} ELSE 1 note NOW BLOCK 0");
    let (mut first, mut second) = (Peer::waiting(&place, &claim(5)), Peer::waiting(&place, &claim(6)));
    let mut writer = Peer::new(&place, 0);
    let before = place.kept.tail();
    writer.say("MULTI");
    (0..RECORDS).for_each(|number| drop(writer.say(&format!("HSET job:{{tag}}{number} run_at 5 attempt 9"))));
    writer.say("EXEC");
    serve_all(&place);
    assert_eq!((got(&mut first).len(), got(&mut second).len()), (0, 0));
    let written = (place.kept.tail() - before) as usize;
    assert!((RECORDS..=4 * RECORDS).contains(&written), "{written} batches for {RECORDS} records");
}

/// However many clients want other records, a write is offered to those that want it.
#[test]
fn of_many_waiters_with_conditions_the_matching_ones_are_served() {
    let place = place();
    let claim = |kind: usize| format!("CLAIM 1 due WHERE kind 2 k{kind} all SET 1 run_at none BLOCK 0");
    let mut waiting: Vec<_> = (0..300).map(|kind| Peer::waiting(&place, &claim(kind))).collect();
    let mut writer = Peer::new(&place, 0);
    writer.say("HSET job:1 run_at 5 kind k217");
    writer.say("HSET job:2 run_at 5 kind other");
    writer.say("HSET job:3 run_at 5 kind all");
    let served: Vec<_> = waiting.iter_mut().map(got).enumerate().filter(|(_, got)| !got.is_empty()).collect();
    assert_eq!(served, [(0, vec!["job:3".to_owned()]), (217, vec!["job:1".to_owned()])]);
    // Served clients want nothing more, and a record that changes its kind is for another client.
    writer.say("HSET job:2 kind k217");
    writer.say("HSET job:2 kind k218");
    assert_eq!(got(&mut waiting[218]), ["job:2"]);
    assert_eq!(engine::next_due_record(&place.engine, Waker::noop()), None);
}

/// A client whose search takes long does not delay waiters of another line.
#[test]
fn a_long_search_yields_to_other_lines() {
    let place = place();
    let mut writer = Peer::new(&place, 0);
    writer.say("IDX.CREATE other PREFIX 1 other: FIELD run_at");
    let later = place.now_ms() + 10;
    writer.say("MULTI");
    (0..5000).for_each(|number| drop(writer.say(&format!("HSET job:{number} run_at {later} kind no"))));
    writer.say("EXEC");
    let mut long = Peer::waiting(&place, "CLAIM 1 due MAX NOW WHERE kind 1 yes SET 1 run_at none BLOCK 0");
    let mut short = Peer::waiting(&place, "CLAIM 1 other MAX NOW SET 1 run_at none BLOCK 0");
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
    let mut writer = Peer::new(&place, 0);
    let later = place.now_ms() + 10;
    writer.say("MULTI");
    (0..5000).for_each(|number| drop(writer.say(&format!("HSET job:{number:04} run_at {later} kind no"))));
    writer.say(&format!("HSET job:last run_at {} kind yes", later + 1));
    writer.say("EXEC");
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due MAX NOW WHERE kind 1 yes SET 1 run_at NOW+5 BLOCK 0");
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
fn a_dropped_index_ends_the_wait_with_an_error_that_is_counted() {
    let place = place();
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due SET 1 owner w BLOCK 0");
    let mut peer = Peer::new(&place, 0);
    peer.say("IDX.DROP due");
    assert_eq!(waiting.outcome(false).expect("an error"), b"-ERR the index 'due' was dropped\r\n");
    assert_eq!(waiting.client.depends_on, peer.client.last_batch, "the error waits for the journal as any reply does");
    let stats = peer.say("INFO commandstats errorstats");
    let claim = stats.lines().find(|line| line.starts_with("cmdstat_claim:")).expect("it was called");
    assert!(claim.contains("calls=1,") && claim.contains("failed_calls=1"), "{claim}");
    assert!(stats.contains("errorstat_ERR:count=1"), "{stats}");
}

/// As a command that waits for a key: logged once, with the client that has sent it, when it is served.
#[test]
fn a_claim_that_waited_is_logged_once_as_slow() {
    let place = Place::new(8, 1, &[("slowlog-log-slower-than", "0")]);
    let mut writer = Peer::new(&place, 0);
    writer.say(DUE);
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due SET 1 owner w BLOCK 0");
    let logged = |writer: &mut Peer<'_>| writer.say("SLOWLOG GET 100").matches("CLAIM").count();
    assert_eq!(logged(&mut writer), 0);
    writer.say("HSET job:1 run_at 5");
    assert_eq!(got(&mut waiting), ["job:1"]);
    assert_eq!(logged(&mut writer), 1);
}

/// A client's memory includes its waiting command.
#[test]
fn the_memory_of_a_client_includes_its_waiting_command() {
    let place = place();
    let value = "v".repeat(1 << 20);
    let mut waiting = Peer::waiting(&place, &format!("CLAIM 1 due WHERE kind 1 {value} SET 1 owner w BLOCK 0"));
    let memory = |peer: &Peer<'_>| peer.client.handle.memory_bytes();
    assert!(memory(&waiting) > 1 << 20, "{}", memory(&waiting));
    Peer::new(&place, 0).say(&format!("HSET job:1 run_at 5 kind {value}"));
    assert_eq!(got(&mut waiting), ["job:1"]);
    assert!(memory(&waiting) < 1 << 20, "{}", memory(&waiting));
}

/// With offsets beyond the precision of a score, a time may come before its record is in the range. That delays no
/// other waiter.
#[test]
fn an_inexact_time_delays_no_other_waiter() {
    let place = place();
    let (mut writer, offset) = (Peer::new(&place, 0), 1u64 << 62);
    // In the range when the sum is rounded to a higher score, half a second after its time.
    let score = offset + place.now_ms().next_multiple_of(1024) + 1024;
    writer.say(&format!("HSET job:far run_at {score}"));
    let mut odd =
        Peer::waiting(&place, &format!("CLAIM 1 due MIN {offset} MAX (NOW+{offset} SET 1 run_at none BLOCK 0"));
    place.pass_ms(score - offset - place.now_ms());
    let mut even = Peer::waiting(&place, "CLAIM 1 due MAX NOW SET 1 run_at none BLOCK 0");
    writer.say(&format!("HSET job:near run_at {}", place.now_ms() + 1));
    place.pass_ms(1);
    timer(&place);
    assert_eq!(got(&mut even), ["job:near"]);
    assert!(got(&mut odd).is_empty());
    place.pass_ms(1024);
    timer(&place);
    assert_eq!(got(&mut odd), ["job:far"]);
}

/// A slice that is over at once.
const LOOK_NS: u64 = 500_000;

#[test]
fn a_claim_of_several_takes_all_records_though_its_slice_is_over() {
    let place = place();
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due MAX 5 SET 1 run_at 20 COUNT 3 BLOCK 0");
    place.set_look_ns(LOOK_NS);
    let mut writer = Peer::new(&place, 0);
    for line in ["MULTI", "HSET job:1 run_at 1", "HSET job:2 run_at 2", "HSET job:3 run_at 3", "EXEC"] {
        writer.say(line);
    }
    serve_all(&place);
    assert_eq!(got(&mut waiting), ["job:1", "job:2", "job:3"]);
    // By a search: all of them are due at the same time.
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due MIN 100 MAX NOW SET 1 run_at 20 COUNT 40 BLOCK 0");
    for number in 0..50 {
        writer.say(&format!("HSET job:{number:02} run_at {}", place.now_ms() + 10));
    }
    place.pass_ms(10);
    serve_all(&place);
    let expected: Vec<String> = (0..40).map(|number| format!("job:{number:02}")).collect();
    assert_eq!(got(&mut waiting), expected);
}

#[test]
fn records_left_by_a_disconnected_waiter_are_for_the_next() {
    let place = place();
    let claim = |count: usize| format!("CLAIM 1 due MAX 5 SET 1 run_at 20 COUNT {count} BLOCK 0");
    let (mut first, mut second) = (Peer::waiting(&place, &claim(9)), Peer::waiting(&place, &claim(9)));
    place.set_look_ns(LOOK_NS);
    let mut writer = Peer::new(&place, 0);
    writer.say("MULTI");
    (1..=6).for_each(|number| drop(writer.say(&format!("HSET job:{number} run_at {}", number % 5))));
    writer.say("EXEC");
    // It has taken some, and does not time out any more.
    assert_eq!(first.outcome(true), None);
    engine::stop_waiting(&place.engine, &mut first.client);
    serve_all(&place);
    let left = got(&mut second);
    assert!(!left.is_empty() && left.len() < 6, "{left:?}");
    assert!(writer.say("SWAPDB 0 1").starts_with('+'), "nothing is left that works in the database");
}

const PASSED_OVER: usize = 2000;

/// A queue whose records are for others.
fn backlog() -> Place {
    let place = place();
    let mut writer = Peer::new(&place, 0);
    for number in 0..PASSED_OVER {
        writer.say(&format!("HSET job:{number:04} run_at {number} kind common"));
    }
    place.set_look_ns(LOOK_NS / 5);
    place
}

const RARE: &str = "CLAIM 1 due MAX NOW WHERE kind 1 rare SET 1 kind taken";

#[test]
fn clients_with_the_same_criteria_share_one_search() {
    let alone = backlog();
    let _first = Peer::waiting(&alone, &format!("{RARE} BLOCK 0"));
    let turns = serve_all(&alone);
    assert!(turns > 5, "{turns}");
    // Later ones know that there is nothing.
    let _second = Peer::waiting(&alone, &format!("{RARE} BLOCK 5"));
    assert_eq!(serve_all(&alone), 0);
    let place = backlog();
    let mut all: Vec<_> = (0..30).map(|_| Peer::waiting(&place, &format!("{RARE} BLOCK 0"))).collect();
    assert!(serve_all(&place) <= turns, "thirty take no longer than one");
    // They are served in the order in which they came, with what is rare.
    let mut writer = Peer::new(&place, 0);
    for (number, waiting) in all.iter_mut().enumerate() {
        writer.say(&format!("HSET job:{:04} kind rare", number * 7));
        serve_all(&place);
        assert_eq!(got(waiting), [format!("job:{:04}", number * 7)]);
    }
}

#[test]
fn a_client_does_not_time_out_before_its_first_search_is_complete() {
    for is_there in [true, false] {
        let place = backlog();
        let mut writer = Peer::new(&place, 0);
        if is_there {
            writer.say(&format!("HSET job:{:04} kind rare", PASSED_OVER - 1));
        }
        let (mut first, mut second) =
            (Peer::waiting(&place, &format!("{RARE} BLOCK 1")), Peer::waiting(&place, &format!("{RARE} BLOCK 1")));
        place.pass_ms(5);
        assert_eq!((first.outcome(true), second.outcome(true)), (None, None));
        // A client whose wait is ended leaves.
        let mut third = Peer::waiting(&place, &format!("{RARE} BLOCK 0"));
        assert!(third.client.handle.unblock(engine::clients::Unblock::Timeout));
        assert_eq!(third.outcome(false), Some(b"*0\r\n".to_vec()));
        serve_all(&place);
        let expected = if is_there { vec![format!("job:{:04}", PASSED_OVER - 1)] } else { Vec::new() };
        assert_eq!(parse(&first.outcome(true).expect("its time is up")).len(), expected.len());
        assert_eq!(second.outcome(true), Some(b"*0\r\n".to_vec()));
    }
}

/// While one client's search rejects many records, other clients take theirs.
#[test]
fn a_long_search_delays_no_other_client() {
    let place = backlog();
    let _rare = Peer::waiting(&place, &format!("{RARE} BLOCK 0"));
    timer(&place);
    let mut other = Peer::new(&place, 0);
    let took = other.say("CLAIM 1 due MAX NOW WHERE kind 1 common SET 1 kind taken KEYS");
    assert_eq!(took, "*1\r\n$8\r\njob:0000\r\n");
    let mut waiting = Peer::waiting(&place, "CLAIM 1 due MIN 900000 WHERE kind 1 new SET 1 kind taken BLOCK 0");
    other.say("HSET job:new run_at 1000000 kind new");
    assert_eq!(got(&mut waiting), ["job:new"]);
    assert!(serve_all(&place) > 3);
}

#[test]
fn records_that_an_index_excludes_are_not_searched() {
    for (condition, never) in [("ONLY state 2 pending running", "1 done"), ("EXCLUDE state 2 done dead", "2 dead done")]
    {
        let place = Place::new(8, 1, &[]);
        let mut peer = Peer::new(&place, 0);
        peer.say(&format!("IDX.CREATE due PREFIX 1 job: FIELD run_at {condition}"));
        (0..500).for_each(|number| drop(peer.say(&format!("HSET job:{number} run_at {number} state pending"))));
        place.set_look_ns(LOOK_NS);
        let claim = format!("CLAIM 1 due WHERE state {never} SET 1 a b");
        assert_eq!(peer.slice(&claim).as_deref(), Some(&b"*0\r\n"[..]), "{condition}: it needs another slice");
        // For a waiter they are not searched either.
        let mut waiting = Peer::waiting(&place, &format!("{claim} BLOCK 0"));
        assert_eq!(serve_all(&place), 0);
        // Other values are found.
        assert_eq!(peer.say("CLAIM 1 due WHERE state 2 done pending SET 1 a b KEYS"), "*1\r\n$5\r\njob:0\r\n");
        assert_eq!(got(&mut waiting), Vec::<String>::new());
    }
}
