//! Groups, limits and rates on a follower: it tells what its leader tells, and keeps to the same limits once it is promoted.

use crate::Follower;
use crate::common::peer::tokens;
use crate::common::place::{Asker, Place};
use crate::common::seed;
use crate::common::state::State;
use fastrand::Rng;
use std::collections::BTreeMap;

const HISTORIES: usize = 6;
const CHANGES: usize = 250;
const JOBS: usize = 40;
const TENANTS: usize = 4;
/// How many of the first two tenants may be held, whose limits do not change.
const CAPS: [i64; 2] = [3, 2];
/// Of the first one: takes, in so many milliseconds, and at once.
const RATE: (u64, u64, u64) = (2, 10_000, 4);
const CLAIM: &str = "CLAIM 1 due MAX NOW SET 3 state running at NOW+700 taken NOW COUNTER takes";

#[test]
fn a_follower_tells_the_same_groups_and_keeps_to_the_same_limits() {
    let mut random = Rng::with_seed(seed());
    let (mut takes_before, mut takes_after, mut reached_cap) = (0, 0, false);
    for _ in 0..HISTORIES {
        let shards = [random.choice([1, 8, 64]), random.choice([1, 8])].map(|count| count.unwrap_or(1));
        let (leader, place) = (Place::new(shards[0], 1, &[]), Place::new(shards[1], 2, &[]));
        let mut follower = Follower::new(&leader, &place);
        let (mut writer, mut reader) = (leader.asker(0), place.asker(1));
        writer.say(
            "IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 2 pending running GROUP tenant HELD state 1 running",
        );
        let (takes, per_ms, burst) = RATE;
        writer.say(&format!("IDX.LIMIT due GROUP t0 HELD {} RATE {takes} {per_ms} BURST {burst} PAUSE no", CAPS[0]));
        writer.say(&format!("IDX.LIMIT due GROUP t1 HELD {} RATE NONE PAUSE no", CAPS[1]));
        let mut taken = Takes::default();
        for number in 0..CHANGES {
            change(&mut random, &leader, &mut writer, &mut taken);
            if number % 5 == 0 || number == CHANGES - 1 {
                follower.catch_up();
                place.set_time_of(&leader);
                assert_eq!(groups(&mut reader), groups(&mut writer), "after change {number}");
                assert_eq!(reader.say("IDX.LIMIT due"), writer.say("IDX.LIMIT due"), "after change {number}");
            }
        }
        State::of(&place.engine).assert_is(&State::of(&leader.engine), "and what is counted is what is there");
        drop(follower);
        engine::end_following(&place.engine, &mut place.engine.worker(0));
        let before = taken.0[0].len();
        // From here on only claims make anything held.
        reader.say("IDX.LIMIT due ALL RESET");
        for number in 0..JOBS {
            reader.say(&format!("HSET job:{number} state pending at 1 tenant t{}", number % TENANTS));
        }
        for _ in 0..40 {
            place.pass_ms(random.u64(..400));
            claim(&mut random, &place, &mut reader, &mut taken);
            for (tenant, cap) in CAPS.iter().enumerate() {
                let held = held(&mut reader, &format!("t{tenant}"));
                assert!(held <= *cap, "{held} of t{tenant} are held");
                reached_cap |= tenant == 1 && held == *cap;
            }
        }
        takes_before += before;
        takes_after += taken.0[0].len() - before;
        State::of(&place.engine);
        taken.0.iter().for_each(|taken| assert_rate_was_kept(taken));
    }
    println!("the tenant had {takes_before} takes before, and {takes_after} after");
    assert!(takes_before > 0 && takes_after > 0 && reached_cap);
}

/// When the first tenant had takes, in two databases. Rates go with a database.
#[derive(Default)]
struct Takes([Vec<u64>; 2]);

/// In any `t` milliseconds there are at most `burst + t * takes / per_ms` takes, whichever server has made them.
fn assert_rate_was_kept(taken: &[u64]) {
    let (takes, per_ms, burst) = RATE;
    for (at, first) in taken.iter().enumerate() {
        for (count, last) in (1..).zip(&taken[at..]) {
            let bound = burst + (last - first) * takes / per_ms;
            assert!(count <= bound, "{count} takes in {} ms", last - first);
        }
    }
}

/// Makes a random change on the leader, and notes the takes of the first tenant.
fn change(random: &mut Rng, leader: &Place, writer: &mut Asker<'_>, taken: &mut Takes) {
    let (job, other) = (random.usize(..JOBS), random.usize(..JOBS));
    let tenant = random.usize(..TENANTS);
    let state = random.choice(["pending", "pending", "running", "done"]).unwrap_or_default();
    let line = match random.u8(..20) {
        0..4 => format!("HSET job:{job} state {state} at {} tenant t{tenant}", random.u64(..9)),
        4 => format!("DEL job:{job}"),
        5 => format!("HDEL job:{job} tenant"),
        6 => format!("PEXPIRE job:{job} {}", random.u64(1..900)),
        7 => format!("HPEXPIRE job:{job} {} FIELDS 1 state", random.u64(1..900)),
        8 => format!("RENAME job:{job} job:{other}"),
        9 => format!("COPY job:{job} job:{other} REPLACE"),
        10 => format!("HCAS job:{job} state running done"),
        11 => format!("MOVE job:{job} 1"),
        12 if random.u8(..8) == 0 => {
            taken.0.swap(0, 1);
            "SWAPDB 0 1".to_owned()
        }
        12 => format!("SWEEP due BEFORE {} SET 1 state {state}", random.u64(..9)),
        13 | 14 => {
            let scope = random.choice(["ALL".to_owned(), "EACH".to_owned(), format!("GROUP t{}", 2 + tenant % 2)]);
            let scope = scope.unwrap_or_default();
            let set = random.choice([
                "RESET",
                "HELD 1",
                "HELD NONE",
                "RATE 3 1000",
                "RATE 1 50 BURST 9",
                "PAUSE yes",
                "PAUSE no",
            ]);
            format!("IDX.LIMIT due {scope} {}", set.unwrap_or_default())
        }
        15 => {
            leader.pass_ms(random.u64(..500));
            return writer.expire();
        }
        16 if random.u8(..10) == 0 => "FLUSHDB".to_owned(),
        _ => return claim(random, leader, writer, taken),
    };
    writer.say(&line);
}

/// Claims in one of the ways in which a client can, and notes the takes of the first tenant.
fn claim(random: &mut Rng, place: &Place, asker: &mut Asker<'_>, taken: &mut Takes) {
    let order = random.choice(["fair", "score"]).unwrap_or_default();
    let line = format!("{CLAIM} ORDER {order} COUNT {} FIELDS 1 tenant", random.u8(1..4));
    let reply = match random.u8(..4) {
        0 => {
            for line in ["MULTI", &line, &line] {
                asker.say(line);
            }
            asker.say("EXEC")
        }
        1 => {
            let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
            let script = format!("return redis.call({})", words.join(","));
            asker.ask(&[b"EVAL".to_vec(), script.into_bytes(), b"0".to_vec()])
        }
        _ => asker.say(&line),
    };
    let tokens = tokens(&reply);
    let of_tenant = tokens.windows(2).filter(|pair| pair[0] == "tenant" && pair[1] == "t0").count();
    taken.0[0].extend(std::iter::repeat_n(place.now_ms(), of_tenant));
}

fn held(asker: &mut Asker<'_>, tenant: &str) -> i64 {
    groups(asker).get(tenant).map_or(0, |state| state[3].parse().expect("a count"))
}

/// What IDX.GROUPS tells of each group that has something: records, held, first_score and limits.
fn groups(asker: &mut Asker<'_>) -> BTreeMap<String, Vec<String>> {
    let tokens = tokens(&asker.say("IDX.GROUPS due"));
    assert_eq!(tokens[0], "0", "all groups at once");
    let starts: Vec<usize> =
        (1..tokens.len()).filter(|at| tokens.get(at + 1).is_some_and(|next| next == "records")).collect();
    let ends = starts.iter().skip(1).copied().chain([tokens.len()]);
    let told = starts.iter().zip(ends).map(|(start, end)| {
        let mut state = tokens[start + 1..end].to_vec();
        // When a group may give is a matter of the clock.
        let at = state.iter().position(|word| word == "allowed_at").expect("it is told");
        state.drain(at..at + 2);
        (tokens[*start].clone(), state)
    });
    // Groups are kept for their rates and turns, too.
    told.filter(|(_, state)| state[1] != "0" || state[3] != "0").collect()
}
