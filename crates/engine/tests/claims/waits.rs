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
