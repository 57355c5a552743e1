//! A wall clock that jumps: lengths of time stay what they are, points in time follow it.

mod common;

use common::peer::{Peer, text};
use common::place::Place;
use engine::Flow;
use resp::OwnedRequest;

/// How far the clock jumps, back and forward.
const JUMPS_MS: [i64; 2] = [-5 * HOUR_MS, 5 * HOUR_MS];
const HOUR_MS: i64 = 3_600_000;

fn place() -> Place {
    Place::new(4, 1, &[])
}

/// Executes a request, however that ends.
fn flow(peer: &mut Peer<'_>, line: &str) -> Flow {
    let request: OwnedRequest = line.split(' ').map(str::as_bytes).collect();
    peer.engine.begin(&mut peer.worker);
    engine::execute(peer.engine, &mut peer.worker, &mut peer.client, request.as_request(), &mut Vec::new())
}

#[test]
fn a_pause_lasts_as_long_as_it_was_asked_for() {
    for jump_ms in JUMPS_MS {
        let place = place();
        let mut peer = Peer::new(&place, 0);
        let is_paused = |peer: &mut Peer<'_>| matches!(flow(peer, "SET a 1"), Flow::Paused(_));
        peer.say("CLIENT PAUSE 2000 WRITE");
        place.step_ms(jump_ms);
        assert!(is_paused(&mut peer), "after no time at all");
        place.pass_ms(1_900);
        assert!(is_paused(&mut peer), "after 1.9 seconds");
        place.pass_ms(200);
        assert!(!is_paused(&mut peer), "after 2.1 seconds");
    }
}

#[test]
fn a_client_is_idle_for_as_long_as_it_says_nothing() {
    for jump_ms in JUMPS_MS {
        let place = place();
        let mut peer = Peer::new(&place, 0);
        peer.say("PING");
        place.step_ms(jump_ms);
        place.pass_ms(3_000);
        assert_eq!(peer.client.handle.idle_s(place.engine.clock.monotonic_ns()), 3);
        assert!(peer.say("CLIENT INFO").contains(" idle=0 "));
    }
}

#[test]
fn the_server_is_up_for_as_long_as_it_runs() {
    for jump_ms in JUMPS_MS {
        let place = place();
        place.step_ms(jump_ms);
        place.pass_ms(7_000);
        let info = Peer::new(&place, 0).say("INFO server");
        assert!(info.contains("\r\nuptime_in_seconds:7\r\n"), "{info}");
    }
}

#[test]
fn a_wait_lasts_as_long_as_it_was_asked_for() {
    for jump_ms in JUMPS_MS {
        let place = place();
        place.step_ms(jump_ms);
        let peer = Peer::waiting(&place, "BZPOPMIN a 2");
        // The connection measures from the instant that the request has seen.
        let until_ms = peer.blocked.as_ref().and_then(|blocked| blocked.until_ms);
        assert_eq!(until_ms.map(|until_ms| until_ms - peer.worker.now_ms), Some(2000));
    }
}

/// Regression: the thread that says that time stands still was late, and a TTL was counted from before it was given.
#[test]
fn what_needs_the_time_waits_while_it_stands() {
    let place = place();
    let mut peer = Peer::new(&place, 0);
    place.set_stands(true);
    for line in ["SET a 1 EX 100", "GET a", "TTL a"] {
        let Flow::Paused(until_ms) = flow(&mut peer, line) else { panic!("{line} is executed") };
        let in_ms = until_ms - place.engine.clock.monotonic_ms();
        assert!((1..=100).contains(&in_ms), "{line} is tried again in {in_ms} ms");
    }
    for (line, reply) in [("CLIENT GETNAME", "nil"), ("MULTI", "OK"), ("DISCARD", "OK")] {
        assert_eq!(peer.ask(line), reply);
    }
    place.engine.restrictions.refuse_writes(Some("the log has failed".into()));
    assert_eq!(peer.ask("SET a 1"), "-MISCONF the log has failed");
    place.engine.restrictions.refuse_writes(None);
    place.set_stands(false);
    assert_eq!(peer.ask("GET a"), "nil");
}

#[test]
fn a_deadline_is_a_point_in_time() {
    let place = place();
    let mut peer = Peer::new(&place, 0);
    peer.say("SET a 1 EX 100");
    place.step_ms(-5 * HOUR_MS);
    assert_eq!(peer.ask("TTL a"), (100 + 5 * HOUR_MS / 1000).to_string());
    place.step_ms(10 * HOUR_MS);
    assert_eq!(peer.ask("GET a"), "nil");
}

/// Lets the clock jump, or a little time pass.
fn disturb(place: &Place, random: &mut fastrand::Rng) {
    match random.u8(..4) {
        0 => place.step_ms(JUMPS_MS[0]),
        1 => place.step_ms(JUMPS_MS[1]),
        _ => place.pass_ms(random.u64(..3)),
    }
}

/// A cell has a past that does not depend on the clock: each version is later than the one before, and as of its time
/// it is that version, whatever the clock does.
#[test]
fn the_versions_of_a_cell_never_go_back_in_time() {
    let place = place();
    let (mut peer, mut random) = (Peer::new(&place, 0), fastrand::Rng::with_seed(13));
    let (mut times, mut expected_us) = (Vec::new(), 0);
    for number in 1..=100 {
        disturb(&place, &mut random);
        expected_us = place.engine.clock.unix_us().max(expected_us + 1);
        assert_eq!(peer.raw(&format!("CELL.SET a v{number}")), format!(":{number}\r\n"));
        let shown = peer.raw("CELL.GETV a");
        let time_us: u64 = shown.trim_end().rsplit(':').next().unwrap().parse().unwrap();
        assert_eq!(time_us, expected_us, "{shown}");
        times.push(time_us);
    }
    for (at, time_us) in times.iter().enumerate() {
        let found = peer.raw(&format!("CELL.GETV a ASOF {time_us}"));
        assert!(found.contains(&format!("v{}\r\n", at + 1)), "{found}");
    }
    assert_eq!(peer.raw(&format!("CELL.GETV a ASOF {}", times[0] - 1)), "$-1\r\n");
}

/// The same for the events of a run, of which two may have the same time.
#[test]
fn the_events_of_a_run_never_go_back_in_time() {
    let place = place();
    let (mut peer, mut random) = (Peer::new(&place, 0), fastrand::Rng::with_seed(14));
    let (mut expected_ms, mut times) = (0, Vec::new());
    for number in 1..=200 {
        disturb(&place, &mut random);
        expected_ms = (place.engine.clock.unix_us() / 1000).max(expected_ms);
        let reply = peer.raw(&format!("RUN.APPEND r k{number} RunResumed d"));
        assert!(reply.contains(&format!("$11\r\npersistedAt\r\n:{expected_ms}\r\n")), "{reply}");
        // What is derived of it does not either.
        let snapshot = peer.raw("RUN.SNAPSHOT r");
        assert!(snapshot.contains(&format!("$9\r\nupdatedAt\r\n:{expected_ms}\r\n")), "{snapshot}");
        times.push(expected_ms);
    }
    assert!(times.windows(2).any(|pair| pair[0] == pair[1]) && times.windows(2).any(|pair| pair[0] < pair[1]));
    let events = peer.raw("RUN.EVENTS r");
    let shown: Vec<u64> = events
        .split("persistedAt\r\n:")
        .skip(1)
        .map(|rest| rest.split('\r').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(shown, times);
    // An event that is made before the time of a run that was brought from elsewhere is not earlier either.
    place.step_ms(2 * JUMPS_MS[0]);
    peer.raw("COPY r s");
    let reply = peer.raw("RUN.APPEND s next t d");
    assert!(reply.contains(&format!("persistedAt\r\n:{expected_ms}\r\n")), "{reply}");
}

/// Regression: what a script took at its end counted as taken at its beginning, and the next claim found the rate rested
/// since.
#[test]
fn a_rate_counts_a_take_when_it_is_made_also_where_time_stands() {
    const CLAIM: &str = "CLAIM 1 due SET 1 at 9";
    for limit in ["GROUP g", "EACH", "ALL"] {
        let place = place();
        let mut peer = Peer::new(&place, 0);
        peer.say("IDX.CREATE due PREFIX 1 job: FIELD at GROUP tenant");
        peer.say(&format!("IDX.LIMIT due {limit} RATE 1 1000"));
        for job in 0..5 {
            peer.say(&format!("HSET job:{job} at {job} tenant g"));
        }
        peer.engine.begin(&mut peer.worker);
        place.pass_ms(5_000);
        let began_ms = peer.worker.now_ms;
        let mut out = Vec::new();
        let request: OwnedRequest = CLAIM.split(' ').map(str::as_bytes).collect();
        engine::execute(peer.engine, &mut peer.worker, &mut peer.client, request.as_request(), &mut out);
        assert!(out.starts_with(b"*1"), "{limit}: {}", text(out));
        assert!(place.now_ms() - began_ms == 5_000, "it was late");
        place.pass_ms(900);
        assert_eq!(peer.say(CLAIM), "*0\r\n", "{limit}: 0.9 seconds after the last");
        place.pass_ms(100);
        assert!(peer.say(CLAIM).starts_with("*1"), "{limit}: a second after the last");
    }
}
