//! Rates and time: a clock that is set, a rate that is changed, and time that stands still while a script runs. When clients
//! that wait because of limits are served, and what groups leave behind.

use super::waits::timer;
use crate::common::peer::Peer;
use crate::common::place::Place;

const HOUR_MS: u64 = 3_600_000;
const CLAIM: &str = "CLAIM 1 due SET 1 state running KEYS";

/// An index with groups, and one without. Which limit is set for a rate in the first, and in the second.
const SCOPES: [(&str, &str); 4] =
    [(" GROUP tenant", "GROUP a"), (" GROUP tenant", "EACH"), (" GROUP tenant", "ALL"), ("", "ALL")];

fn place(groups: &str) -> Place {
    let place = Place::new(8, 1, &[]);
    let mut peer = Peer::new(&place, 0);
    peer.say(&format!("IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 1 pending{groups}"));
    for number in 0..100 {
        peer.say(&format!("HSET job:{number} at {number} state pending tenant a"));
    }
    place
}

fn takes(place: &Place, line: &str) -> usize {
    Peer::new(place, 0).ask(line).matches("job:").count()
}

/// How many milliseconds it takes until there are so many takes, in steps of ten.
fn waits_for(place: &Place, count: usize) -> u64 {
    let (mut taken, mut waited_ms) = (0, 0);
    loop {
        taken += takes(place, CLAIM);
        if taken >= count {
            return waited_ms;
        }
        place.pass_ms(10);
        waited_ms += 10;
        assert!(waited_ms < 5_000, "{taken} takes in {waited_ms} ms");
    }
}

#[test]
fn a_rate_that_is_raised_is_not_in_the_way_for_longer_than_it_takes_itself() {
    for (groups, scope) in SCOPES {
        let place = place(groups);
        let mut peer = Peer::new(&place, 0);
        peer.say(&format!("IDX.LIMIT due {scope} RATE 1 {HOUR_MS} BURST 3"));
        assert_eq!([(); 5].map(|()| takes(&place, CLAIM)), [1, 1, 1, 0, 0], "{scope}");
        peer.say(&format!("IDX.LIMIT due {scope} RATE 10 1000 BURST 2"));
        let waited_ms = waits_for(&place, 10);
        assert!((800..=1200).contains(&waited_ms), "{scope}: ten takes at ten in a second come in {waited_ms} ms");
    }
}

#[test]
fn a_clock_that_is_set_back_costs_no_more_than_a_burst() {
    for (groups, scope) in SCOPES {
        let place = place(groups);
        let mut peer = Peer::new(&place, 0);
        peer.say(&format!("IDX.LIMIT due {scope} RATE 10 1000 BURST 2"));
        assert_eq!([(); 4].map(|()| takes(&place, CLAIM)), [1, 1, 0, 0], "{scope}");
        place.step_ms(-(HOUR_MS as i64));
        let waited_ms = waits_for(&place, 10);
        assert!((800..=1200).contains(&waited_ms), "{scope}: ten takes at ten in a second come in {waited_ms} ms");
    }
}

/// For the commands of a script it is all the time when the script began. A take is made when it is made.
#[test]
fn takes_of_a_long_script_count_from_when_they_are_made() {
    for (groups, scope) in SCOPES {
        let place = place(groups);
        let mut peer = Peer::new(&place, 0);
        peer.say(&format!("IDX.LIMIT due {scope} RATE 1 2000"));
        let claim = CLAIM.split(' ').map(|word| format!("'{word}'")).collect::<Vec<_>>().join(",");
        place.set_unix_look_ms(3_000);
        let script = format!("EVAL return{{redis.call('TIME')[1],redis.call({claim})}} 0");
        let reply = Peer::new(&place, 0).say(&script);
        place.set_unix_look_ms(0);
        assert_eq!(reply.matches("job:").count(), 1, "{scope}: {reply}");
        let began_ms = reply.lines().nth(2).and_then(|second| second.parse::<i64>().ok()).expect("a time") * 1000;
        place.step_ms(began_ms + 3_000 - place.now_ms() as i64);
        assert_eq!(takes(&place, CLAIM), 0, "{scope}: the script has taken one just now");
        place.pass_ms(20_000);
        assert_eq!(takes(&place, CLAIM), 1, "{scope}");
    }
}

/// Lets time pass by milliseconds, with the server's timer, until a client is served. Returns how many passed, and how often
/// the timer went off.
fn pass_until_served(place: &Place, waiting: &mut Peer<'_>) -> (u64, usize) {
    let (mut waited_ms, mut served) = (0, 0);
    while waiting.outcome(false).is_none() {
        assert!(waited_ms < 5_000, "it is not served");
        place.pass_ms(1);
        waited_ms += 1;
        served += timer(place);
    }
    (waited_ms, served)
}

#[test]
fn clients_that_wait_for_a_rate_are_served_in_time_and_not_searched_for_all_the_time() {
    for (groups, scope) in SCOPES {
        let place = place(groups);
        Peer::new(&place, 0).say(&format!("IDX.LIMIT due {scope} RATE 1 1000"));
        assert_eq!(takes(&place, CLAIM), 1);
        let mut waiting = [(); 3].map(|()| Peer::new(&place, 0));
        for peer in &mut waiting {
            peer.wait(&format!("{CLAIM} BLOCK 0"));
        }
        for peer in &mut waiting {
            let (waited_ms, served) = pass_until_served(&place, peer);
            assert_eq!(waited_ms, 1000, "{scope}");
            assert!(served <= 3, "{scope}: the timer went off {served} times for one take");
        }
    }
}

#[test]
fn clients_that_wait_for_the_end_of_a_pause_cost_nothing_until_then() {
    for (groups, scope) in SCOPES {
        let place = place(groups);
        let mut peer = Peer::new(&place, 0);
        peer.say(&format!("IDX.LIMIT due {scope} PAUSE yes RATE 1 10"));
        let mut waiting = Peer::new(&place, 0);
        waiting.wait(&format!("{CLAIM} BLOCK 0"));
        let mut served = 0;
        for _ in 0..500 {
            place.pass_ms(10);
            served += timer(&place);
        }
        assert!(served <= 1, "{scope}: the timer went off {served} times");
        assert_eq!(waiting.outcome(false), None, "{scope}");
        peer.say(&format!("IDX.LIMIT due {scope} PAUSE no"));
        pass_until_served(&place, &mut waiting);
    }
}

#[test]
fn groups_that_are_gone_leave_no_bytes_behind() {
    let place = Place::new(8, 1, &[]);
    let mut peer = Peer::new(&place, 0);
    peer.say("IDX.CREATE due PREFIX 1 job: FIELD at GROUP tenant HELD state 1 running");
    peer.say("IDX.LIMIT due EACH RATE 1 50 HELD 1");
    peer.say("HSET job:first at 0 state pending tenant first");
    // How many groups there are, and the bytes of the index.
    let size = |peer: &mut Peer<'_>| {
        let info = peer.say("IDX.INFO due");
        let number = |name| info.split_once(name).and_then(|(_, rest)| rest[3..].lines().next()?.parse::<usize>().ok());
        ["\ngroups", "\nbytes"].map(|name| number(name).expect("a number"))
    };
    let before = size(&mut peer);
    for number in 0..3_000 {
        peer.say(&format!("HSET job:{number} at 1 state pending tenant t{number}"));
    }
    assert_eq!(takes(&place, "CLAIM 1 due SET 1 state running COUNT 2000 KEYS"), 2_000);
    let most = size(&mut peer);
    assert_eq!((before[0], most[0]), (1, 3_001));
    for number in 0..3_000 {
        peer.say(&format!("DEL job:{number}"));
    }
    // Groups are remembered until their rates are not used up any more, and the others had their turns.
    for _ in 0..3 {
        place.pass_ms(1_000);
        peer.say("HSET job:first at 0 state pending tenant first");
        assert_eq!(takes(&place, CLAIM), 1);
    }
    peer.say("HSET job:first at 0 state pending tenant first");
    (0..100).for_each(|_| execution::indexes::tidy_groups(&place.engine));
    let after = size(&mut peer);
    assert_eq!(after[0], 1);
    // The sorted set of the index has some room left.
    assert!(after[1] < most[1] / 20, "{after:?} after {most:?}");
}
