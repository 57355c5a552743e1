//! Commands whose work grows with the data do it in slices: between two of them others are served, and what comes of it is
//! the same as if they had done it at once.

mod common;

use common::place::Place;
use engine::{Client, ClientHandle, Engine, Flow, Worker};
use resp::OwnedRequest;
use std::sync::Arc;

struct Peer<'e> {
    engine: &'e Engine,
    worker: Worker,
    client: Client,
}

impl<'e> Peer<'e> {
    fn new(place: &'e Place, index: usize) -> Peer<'e> {
        let engine = &place.engine;
        let handle = ClientHandle::new(engine.clients.next_id(), String::new(), String::new(), -1, 0, Box::new(|| {}));
        Peer { engine, worker: engine.worker(index), client: Client::new(Arc::new(handle), true) }
    }

    /// Executes a request, and `between` between two of its slices. The reply, and how many slices there were.
    fn ask(&mut self, words: &str, mut between: impl FnMut()) -> (String, usize) {
        let request: OwnedRequest = words.split(' ').map(str::as_bytes).collect();
        let (mut out, mut slices) = (Vec::new(), 1);
        loop {
            self.engine.begin(&mut self.worker);
            match self.engine.execute(&mut self.worker, &mut self.client, request.as_request(), &mut out) {
                Flow::Continue => return (String::from_utf8(out).expect("text"), slices),
                Flow::Again => {
                    assert!(out.is_empty(), "there is no reply before the end");
                    slices += 1;
                    between();
                }
                _ => panic!("{words} neither ends nor goes on"),
            }
        }
    }

    fn say(&mut self, words: &str) -> String {
        self.ask(words, || {}).0
    }
}

const RECORDS: usize = 20_000;

/// A server with an index `i` over records `r:n` whose scores are their numbers.
fn filled() -> Place {
    let place = Place::new(16, 2, &[]);
    let mut peer = Peer::new(&place, 0);
    assert_eq!(peer.say("IDX.CREATE i PREFIX 1 r: FIELD n"), "+OK\r\n");
    for number in 0..RECORDS {
        peer.say(&format!("HSET r:{number:05} n {number} state old"));
    }
    drop(peer);
    // A slice is over after a few looks at the clock.
    place.set_look_ns(50_000);
    place
}

#[test]
fn a_range_over_everything_lets_others_in() {
    let place = filled();
    let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    let (reply, slices) = reader.ask("IDX.RANGE i -inf +inf FILTER state eq none KEYS", || {
        other.say("SET k v");
    });
    assert_eq!(reply, "*0\r\n");
    assert!(slices > 10, "{RECORDS} records were looked at in one slice");
    // All there are, each once, in their order, though others write meanwhile.
    let mut moved = 0;
    let (reply, _) = reader.ask("IDX.RANGE i -inf +inf KEYS", || {
        // It was told of, and will be met again.
        other.say(&format!("HSET r:{moved:05} n {}", RECORDS + moved));
        moved += 1;
    });
    let names: Vec<&str> = reply.lines().filter(|line| line.starts_with("r:")).collect();
    let expected: Vec<String> = (0..RECORDS).map(|number| format!("r:{number:05}")).collect();
    assert!(names == expected, "{} names", names.len());
}

#[test]
fn a_sweep_of_everything_lets_others_in() {
    let place = filled();
    let (mut sweeper, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    let mut finished = Vec::new();
    let (reply, slices) =
        sweeper.ask("SWEEP i BEFORE 100000000 WHERE state 1 old SET 1 state new LIMIT 1000000", || {
            // A record that has not been met yet is no longer what the sweep looks for.
            let name = format!("r:{:05}", RECORDS - 1 - finished.len());
            if other.say(&format!("HCAS {name} state old done")) == ":1\r\n" {
                finished.push(name);
            }
        });
    assert!(slices > 10, "{slices}");
    assert!(reply.starts_with(&format!("*{}\r\n", RECORDS - finished.len())), "{}", &reply[..20]);
    for name in &finished {
        assert_eq!(other.say(&format!("HGET {name} state")), "$4\r\ndone\r\n");
    }
}

#[test]
fn what_expires_together_is_removed_in_slices_before_an_index_is_read() {
    for command in ["IDX.RANGE i -inf +inf LIMIT 10", "ZCARD i", "IDX.INFO i", "SWEEP i BEFORE 9 SET 1 a b", "EXEC"] {
        let place = filled();
        let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        for number in 0..RECORDS - 1 {
            reader.say(&format!("PEXPIRE r:{number:05} 1"));
        }
        place.pass_ms(1000);
        if command == "EXEC" {
            reader.say("MULTI");
            reader.say("ZCARD i");
        }
        let (reply, slices) = reader.ask(command, || {
            other.say("SET k v");
        });
        assert!(slices > 10, "{command}: {slices}");
        match command {
            "ZCARD i" => assert_eq!(reply, ":1\r\n"),
            "EXEC" => assert_eq!(reply, "*1\r\n:1\r\n"),
            "SWEEP i BEFORE 9 SET 1 a b" => assert_eq!(reply, "*0\r\n"),
            "IDX.INFO i" => assert!(reply.contains("entries\r\n:1\r\n"), "{reply}"),
            _ => assert!(reply.starts_with("*1\r\n"), "{reply}"),
        }
    }
}
