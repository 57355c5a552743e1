//! Clients that send calls, repeat them, lose their replies and their connections, while the server is killed now and then: each
//! (session, request) takes effect once, and every answer to it is the same.

use crate::must;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use wire::own::OwnServer;
use wire::{Connection, Random, Reply};

const ARGS: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];
const CLIENTS: usize = 6;
const REQUESTS: u64 = 400;

/// A request, always the same for its client and id. What it comes to is told by the registers of effects: a list of (client, id) in
/// the order in which they took effect, and counters.
fn request(client: usize, id: u64) -> Vec<String> {
    let line: &[&str] = match id % 9 {
        0 => &["INCR", "shared"],
        1 => &["HINCRBY", "{c}:h", "n", "1"],
        2 => &[
            "EVAL",
            "redis.call('append', KEYS[1], ARGV[1] .. ',') return redis.call('incr', 'shared')",
            "1",
            "{c}:log",
            "{id}",
        ],
        // Fails after it has changed something.
        3 => &["EVAL", "redis.call('append', KEYS[1], ARGV[1] .. ',') error('as it has to')", "1", "{c}:log", "{id}"],
        // Fails, and would not later.
        4 => &[
            "EVAL",
            "if redis.call('incr', KEYS[1]) % 2 == 1 then return redis.error_reply('ODD') end return 'even'",
            "1",
            "{c}:odd",
        ],
        5 => &["RUN.APPEND", "{c}:run", "k{id}", "t", "d"],
        6 => &["CELL.SET", "{c}:cell", "{id}"],
        7 => &["SESSION.PUSH", "{c}", "{id}"],
        _ => &["APPEND", "{c}:log", "{id},"],
    };
    line.iter().map(|part| part.replace("{c}", &format!("client{client}")).replace("{id}", &id.to_string())).collect()
}

/// One client's life: keeps a window of requests open, sends any of them in any order, again and again, and says below which it has
/// all replies.
struct Client<'a> {
    number: usize,
    own: &'a OwnServer,
    connection: Connection,
    random: Random,
    replies: BTreeMap<u64, Reply>,
    low: u64,
}

impl Client<'_> {
    /// Sends a command; `None` if the server was killed before it replied. Then the client connects again.
    fn ask(&mut self, args: &[impl AsRef<[u8]>]) -> Option<Reply> {
        self.connection.queue(args);
        let reply = self.connection.read_until_killed();
        if reply != Reply::Closed {
            return Some(reply);
        }
        self.connection = self.own.connect();
        None
    }

    fn send(&mut self, id: u64, protocol: &str) {
        let (sid, low) = (format!("client{}", self.number), self.low);
        let mut args: Vec<String> =
            ["SESSION.CALL", &sid, &id.to_string(), "LOW", &low.min(id).to_string()].map(str::to_owned).into();
        args.extend(request(self.number, id));
        // The version belongs to the connection, which may be new.
        if self.ask(&["HELLO", protocol]).is_none() {
            return;
        }
        let Some(reply) = self.ask(&args) else { return };
        let text = reply.to_string();
        for trouble in ["-MISMATCH", "-NOSESSION", "-BUSY", "-MISCONF"] {
            assert!(!text.starts_with(trouble), "{text} for {id} of {sid}");
        }
        if text.starts_with("-EVICTED") {
            assert!(id < self.low, "{text} for {id}, with all replies below {low}");
            return;
        }
        // Sometimes a reply is lost on the way.
        if self.random.one_in(5) {
            return;
        }
        match self.replies.get(&id) {
            Some(first) => assert_eq!(*first, reply, "of the request {id} of {sid}"),
            None => drop(self.replies.insert(id, reply)),
        }
        while self.replies.contains_key(&self.low) && self.random.below(8) > 0 {
            self.low += 1;
        }
    }

    fn live(mut self, protocol: &str) -> BTreeMap<u64, Reply> {
        while self.replies.len() < REQUESTS as usize {
            let highest = (self.low + 12).min(REQUESTS);
            let from = self.low.saturating_sub(3).max(1);
            let id = from + self.random.below((highest - from + 1) as usize) as u64;
            self.send(id, protocol);
            if self.random.one_in(40) {
                self.connection = self.own.connect();
            }
        }
        self.replies
    }
}

#[test]
fn each_request_takes_effect_once_whatever_happens() {
    let Some(own) = OwnServer::start(ARGS) else { return };
    let mut random = Random::from_env();
    let kills = std::env::var("HOLDFAST_TEST_ROUNDS").map_or(4, |rounds| rounds.parse().expect("a number"));
    let mut connection = own.connect();
    for number in 0..CLIENTS {
        must(&mut connection, &format!("SESSION.OPEN ID client{number} TTL 600000"));
    }
    let living = AtomicUsize::new(CLIENTS);
    let replies: Vec<BTreeMap<u64, Reply>> = thread::scope(|scope| {
        let (own, living) = (&own, &living);
        let live = |number| {
            let (connection, random) = (own.connect(), Random::new(random.next_u64()));
            let client = Client { number, own, connection, random, replies: BTreeMap::new(), low: 1 };
            scope.spawn(move || {
                let _leaves = Leaves(living);
                client.live(if number % 2 == 0 { "2" } else { "3" })
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(live).collect();
        let mut left = kills;
        while left > 0 && living.load(Relaxed) == CLIENTS {
            thread::sleep(Duration::from_millis(random.below(400) as u64));
            let mut connection = own.connect();
            if left % 2 == 0 {
                connection.queue_line("BGSAVE");
                connection.flush();
            }
            own.kill_and_start();
            left -= 1;
        }
        clients.into_iter().map(|client| client.join().expect("no panic")).collect()
    });
    let mut connection = own.connect();
    for (number, replies) in replies.iter().enumerate() {
        judge(&mut connection, number, replies);
    }
    let shared = (1..=REQUESTS).filter(|id| matches!(id % 9, 0 | 2)).count() * CLIENTS;
    assert_eq!(connection.run("GET shared").text(), shared.to_string());
}

/// Counts a client that has ended, also when it panics: the one that kills the server need not wait for it.
struct Leaves<'a>(&'a AtomicUsize);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Compares what there is of a client with what its requests come to when each is applied once.
fn judge(connection: &mut Connection, client: usize, replies: &BTreeMap<u64, Reply>) {
    let name = format!("client{client}");
    let ids = |kinds: &[u64]| (1..=REQUESTS).filter(|id| kinds.contains(&(id % 9))).collect::<Vec<u64>>();
    let mut log: Vec<u64> = connection
        .run(&format!("GET {name}:log"))
        .text()
        .split_terminator(',')
        .map(|id| id.parse().expect("a number"))
        .collect();
    log.sort_unstable();
    assert_eq!(log, ids(&[2, 3, 8]), "{name}:log");
    assert_eq!(connection.run(&format!("HGET {name}:h n")).text(), ids(&[1]).len().to_string());
    assert_eq!(connection.run(&format!("GET {name}:odd")).text(), ids(&[4]).len().to_string());
    let odd = replies.iter().filter(|(id, _)| *id % 9 == 4);
    assert_eq!(odd.filter(|(_, reply)| reply.is_error()).count(), ids(&[4]).len().div_ceil(2));
    assert_eq!(connection.run(&format!("CELL.GETV {name}:cell")).items()[1].integer(), ids(&[6]).len() as i64);
    let numbers: Vec<i64> = replies.iter().filter(|(id, _)| *id % 9 == 7).map(|(_, reply)| reply.integer()).collect();
    let pending = connection.run(&format!("SESSION.PENDING {name}"));
    let mut pushed: Vec<u64> =
        pending.items().iter().map(|item| item.items()[1].text().parse().expect("a number")).collect();
    pushed.sort_unstable();
    assert_eq!(pushed, ids(&[7]));
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=numbers.len() as i64).collect::<Vec<_>>());
    let events = connection.run(&format!("RUN.EVENTS {name}:run"));
    assert_eq!(events.items().len(), ids(&[5]).len());
}
