//! What holds for every history of a session: the invariants of the design, each for random histories.

use crate::retry::next_ms;
use crate::{info, must, start};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Connection, Random, Reply};

const SESSIONS: usize = 5;

/// What should be there of a session.
#[derive(Clone, Default)]
struct Model {
    low: u64,
    replies: BTreeMap<u64, (String, Reply)>,
    last_id: i64,
    pending: BTreeMap<i64, String>,
}

/// A step of a history, checked against the model.
fn step(connection: &mut Connection, random: &mut Random, models: &mut BTreeMap<usize, Model>, effects: &mut i64) {
    let at = random.below(SESSIONS);
    let sid = format!("s{at}");
    match random.below(100) {
        0 => {
            must(connection, &format!("{} {sid}", random.pick(&["SESSION.CLOSE", "DEL"])));
            models.remove(&at);
        }
        1..8 => {
            assert_eq!(must(connection, &format!("SESSION.OPEN ID {sid} TTL 600000")).text(), sid);
            models.entry(at).or_default();
        }
        8..30 => {
            let payload = format!("p{}", random.below(1_000));
            let reply = connection.run(&format!("SESSION.PUSH {sid} {payload}"));
            match models.get_mut(&at) {
                None => assert!(reply.to_string().starts_with("-NOSESSION")),
                // Monotonic, without a gap, never one that there was.
                Some(model) => {
                    model.last_id += 1;
                    assert_eq!(reply.integer(), model.last_id);
                    model.pending.insert(model.last_id, payload);
                }
            }
        }
        30..38 => {
            let upto = models.get(&at).map_or(1, |model| model.last_id) - random.below(12) as i64 + 3;
            let reply = connection.run(&format!("SESSION.ACK {sid} {}", upto.max(0)));
            match models.get_mut(&at) {
                None => assert!(reply.to_string().starts_with("-NOSESSION")),
                // Cumulative.
                Some(model) => {
                    let before = model.pending.len();
                    model.pending.retain(|id, _| *id > upto);
                    assert_eq!(reply.integer() as usize, before - model.pending.len());
                }
            }
        }
        38..42 => {
            let reply = must(connection, &format!("SESSION.RETRY 99999999999999 LIMIT {}", random.below(30)));
            for item in reply.items() {
                let (sid, id, payload) = (item.items()[0].text(), item.items()[1].integer(), item.items()[2].text());
                let at: usize = sid[1..].parse().expect("a number");
                assert_eq!(models[&at].pending[&id], payload);
            }
        }
        _ => {
            let known = models.get(&at).and_then(|model| model.replies.keys().next_back().copied()).unwrap_or(0);
            let id = (known + 4).saturating_sub(random.below(16) as u64).max(1);
            let low = if random.one_in(6) { id.saturating_sub(random.below(6) as u64) } else { 0 };
            let other = random.one_in(10);
            let command = match id % 4 {
                _ if other => format!("INCRBY n {}", random.below(5) + 2),
                0 => "INCR n".to_owned(),
                1 => "EVAL \"return {redis.call('incr', 'n'), {err='MY error'}}\" 0".to_owned(),
                2 => "EVAL \"redis.call('incr', 'n') error('x')\" 0".to_owned(),
                _ => "HSET n a b".to_owned(),
            };
            let reply = connection.run(&format!("SESSION.CALL {sid} {id} LOW {low} {command}"));
            let text = reply.to_string();
            let Some(model) = models.get_mut(&at) else {
                return assert!(text.starts_with("-NOSESSION"), "{text}");
            };
            match model.replies.get(&id) {
                // Idempotent: the same reply for the same request, and nothing for another.
                Some((first, kept)) if *first == command => {
                    assert_eq!(reply, *kept);
                    model.low = model.low.max(low);
                }
                Some(_) => assert!(text.starts_with("-MISMATCH"), "{text}"),
                None if id < model.low => assert!(text.starts_with("-EVICTED"), "{text}"),
                None => {
                    *effects += match command.strip_prefix("INCRBY n ") {
                        Some(by) => by.parse::<i64>().expect("a number"),
                        None => i64::from(id % 4 != 3),
                    };
                    model.replies.insert(id, (command, reply));
                    model.low = model.low.max(low);
                }
            }
            let low = model.low;
            model.replies.retain(|id, _| *id >= low);
        }
    }
}

/// Compares everything that can be seen.
fn compare(connection: &mut Connection, models: &BTreeMap<usize, Model>, effects: i64) {
    let mut is_pending = 0;
    for at in 0..SESSIONS {
        let sid = format!("s{at}");
        let Some(model) = models.get(&at) else {
            assert_eq!(connection.run(&format!("EXISTS {sid}")).integer(), 0);
            assert!(connection.run(&format!("SESSION.INFO {sid}")).is_nil());
            continue;
        };
        for (name, expected) in [
            ("low", model.low as i64),
            ("replies", model.replies.len() as i64),
            ("pending", model.pending.len() as i64),
            ("last_id", model.last_id),
        ] {
            assert_eq!(info(connection, &sid, name).integer(), expected, "{name} of {sid}");
        }
        let pending: Vec<(i64, String)> = connection
            .run(&format!("SESSION.PENDING {sid} LIMIT 1000000"))
            .items()
            .iter()
            .map(|item| (item.items()[0].integer(), item.items()[1].text().to_owned()))
            .collect();
        // No id twice, and none above the last that there was.
        let ids: BTreeSet<i64> = pending.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), pending.len());
        assert!(ids.iter().all(|id| *id <= model.last_id));
        assert_eq!(pending, model.pending.clone().into_iter().collect::<Vec<_>>());
        is_pending |= i64::from(!pending.is_empty());
        for (id, (command, reply)) in &model.replies {
            assert_eq!(connection.run(&format!("SESSION.CALL {sid} {id} LOW 0 {command}")), *reply, "{id} of {sid}");
        }
    }
    // What a retry has just returned is found again from the next millisecond on.
    next_ms(connection);
    assert_eq!(connection.run("SESSION.HASRETRY 99999999999999").integer(), is_pending);
    let n = connection.run("GET n");
    assert_eq!(if n.is_nil() { 0 } else { n.text().parse().expect("a number") }, effects);
    // The keys of sessions are their ids and nothing else: what users keep is theirs.
    let keys = connection.run("DBSIZE").integer();
    assert_eq!(keys, models.len() as i64 + connection.run("EXISTS n").integer());
}

/// Idempotency, cumulative acknowledgement, monotonic and unique ids, and that sessions and users' keys keep apart.
#[test]
fn histories_agree_with_a_model() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    let (mut models, mut effects) = (BTreeMap::new(), 0);
    // Scalars of users and sessions share a key space, and `n` is the only one of theirs.
    must(&mut connection, "SET n 0");
    for round in 0..60 {
        for _ in 0..100 {
            step(&mut connection, &mut random, &mut models, &mut effects);
        }
        if round % 3 == 0 {
            compare(&mut connection, &models, effects);
        }
    }
    compare(&mut connection, &models, effects);
}
