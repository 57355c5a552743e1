//! CLAIM against a plain list, one step after the other: claims with every option, renewals, completions and failures,
//! workers that stop, records that expire or are renamed, indexes that are dropped, databases that are exchanged,
//! clocks that are set. After every step each client that waits has what the list says, and no other has anything.
//!
//! Prints its seed; `HOLDFAST_TEST_SEED=… cargo test -p engine --test claims` repeats a run. `HOLDFAST_TEST_ROUNDS`
//! asks for more histories.

mod common;
#[path = "claims/model.rs"]
mod model;
#[path = "claims/rates.rs"]
mod rates;
#[path = "claims/waits.rs"]
mod waits;

use common::peer::Peer;
use common::place::Place;
use common::seed;
use engine::Persistence;
use engine::clients::Unblock;
use fastrand::Rng;
use model::{Bound, Claim, Fields, INDEXES, Model, Record, Row, Set, Waiter};
use std::task::Waker;

const STEPS: usize = 250;

#[test]
fn every_history_is_that_of_a_list() {
    let mut random = Rng::with_seed(seed());
    let rounds = std::env::var("HOLDFAST_TEST_ROUNDS").map_or(9, |text| text.parse().expect("a number of rounds"));
    let mut counts = Counts::default();
    for round in 0..rounds {
        let shards = [1, 4, 64][round % 3];
        let place = Place::new(shards, 1, &[]);
        let mut queue = Queue::new(&place, random.fork(), &mut counts);
        for _ in 0..STEPS {
            queue.step();
        }
    }
    println!("{counts:?}");
    let Counts { claimed, waited, served, timed_out, unblocked, dropped, set_aside, by_time } = counts;
    let met = [claimed, waited, served, timed_out, unblocked, dropped, set_aside, by_time];
    assert!(met.iter().all(|count| *count > 0), "not everything was met: {met:?}");
}

/// How often what has happened.
#[derive(Debug, Default)]
struct Counts {
    claimed: usize,
    waited: usize,
    served: usize,
    timed_out: usize,
    unblocked: usize,
    dropped: usize,
    set_aside: usize,
    by_time: usize,
}

/// An engine, and what it must be equal to.
struct Queue<'p, 'c> {
    place: &'p Place,
    random: Rng,
    model: Model,
    counts: &'c mut Counts,
    /// Writes, and keeps the time of the server.
    writer: Peer<'p>,
    waiting: Vec<(usize, Peer<'p>)>,
    last_id: usize,
    /// Claims are about the first index alone, so that the order of what is due and what is asked for is the list's.
    is_plain: bool,
    has_index: [bool; INDEXES.len()],
    log: Vec<String>,
}

impl Drop for Queue<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let from = self.log.len().saturating_sub(120);
            println!("{}", self.log[from..].join("\n"));
        }
    }
}

impl<'p, 'c> Queue<'p, 'c> {
    fn new(place: &'p Place, mut random: Rng, counts: &'c mut Counts) -> Queue<'p, 'c> {
        let mut writer = Peer::new(place, 0);
        INDEXES.iter().for_each(|index| drop(writer.say(index.create)));
        let (is_plain, model) = (random.u8(..3) == 0, Model::default());
        let has_index = [true; INDEXES.len()];
        Queue {
            place,
            random,
            model,
            counts,
            writer,
            waiting: Vec::new(),
            last_id: 0,
            is_plain,
            has_index,
            log: Vec::new(),
        }
    }

    fn step(&mut self) {
        let db = self.db();
        match self.random.u8(..40) {
            0..=8 => self.create(db),
            9..=14 => self.claim(db, None),
            15..=20 => {
                let block_ms = self.pick(&[0, 0, 10, 400]);
                self.claim(db, Some(block_ms));
            }
            21..=25 => self.work(db),
            26..=27 => self.delete(db),
            28 => self.transaction(db),
            29 => self.rename(db),
            30 => self.lifetime(db),
            31 => self.index(),
            32 => self.databases(db),
            33 => self.leave(),
            34 => {
                // The clock is set. The regular work notices.
                let ms = self.random.i64(-300..300);
                // What has expired by now is gone whatever the time is then.
                self.settle();
                engine::expire_cycle(self.writer.engine, &mut self.writer.worker, 0, 1, u64::MAX / 4);
                self.log.push(format!("the clock is set by {ms}"));
                self.place.step_ms(ms);
                self.model.expire(self.place.now_ms());
                engine::expire_cycle(self.writer.engine, &mut self.writer.worker, 0, 1, u64::MAX / 4);
            }
            _ => {
                let ms = self.random.u64(1..60);
                self.log.push(format!("{ms} ms pass"));
                self.place.pass_ms(ms);
                self.model.expire(self.place.now_ms());
                if self.is_plain && self.random.bool() {
                    // The timer is late: the next client has to serve the waiters.
                    return self.time_out();
                }
            }
        }
        self.settle();
    }

    /// What the server does after every command and when its timer fires; then all that wait are looked at.
    fn settle(&mut self) {
        let (now_ms, batches) = (self.place.now_ms(), self.place.kept.tail());
        self.serve();
        assert!(self.place.kept.tail() < batches + 1_000, "records are set aside again and again");
        let served = self.model.serve(&[0, 1], now_ms);
        self.end_waits(served);
        self.time_out();
        self.compare();
    }

    /// Does what the server's timer does, until there is no more to do.
    fn serve(&mut self) {
        let (engine, now_ms) = (self.writer.engine, self.place.now_ms());
        let mut turns = 0;
        while engine::next_due_record(engine, Waker::noop()).is_some_and(|due_ms| due_ms <= now_ms) {
            engine.begin(&mut self.writer.worker);
            engine::serve_due_records(engine, &mut self.writer.worker);
            self.counts.by_time += 1;
            turns += 1;
            assert!(turns < 100, "the timer is never done");
        }
    }

    /// Sees that these have been served.
    fn end_waits(&mut self, served: Vec<(Waiter, Vec<Row>)>) {
        let now_ms = self.place.now_ms();
        for (waiter, rows) in served {
            let reply = self.peer(waiter.id).outcome(false);
            let reply = reply.unwrap_or_else(|| panic!("{waiter:?} at {now_ms} should have {rows:?}"));
            self.log.push(format!("{} was served with {}", waiter.id, reply.escape_ascii()));
            assert_eq!(parse(&reply), rows, "{waiter:?} at {now_ms}");
            self.counts.served += 1;
            self.end(waiter.id);
        }
    }

    /// Ends the waits whose time is up, and sees that no other has ended.
    fn time_out(&mut self) {
        for waiter in self.model.time_out(self.place.now_ms()) {
            self.log.push(format!("the time of {} is up", waiter.id));
            assert_eq!(self.peer(waiter.id).outcome(true).as_deref(), Some(&b"*0\r\n"[..]), "{waiter:?}");
            self.counts.timed_out += 1;
            self.end(waiter.id);
        }
        let now_ms = self.place.now_ms();
        for (id, peer) in &mut self.waiting {
            if let Some(reply) = peer.outcome(false) {
                panic!("{id} has {} at {now_ms}", reply.escape_ascii());
            }
        }
    }

    /// The records are as they should be.
    fn compare(&mut self) {
        for db in 0..2 {
            self.writer.say(&format!("SELECT {db}"));
            let keys = self.writer.say("KEYS *");
            assert_eq!(count(&mut keys.split("\r\n"), '*'), self.model.dbs[db].len(), "{keys}");
            for (name, record) in self.model.dbs[db].iter() {
                let reply = self.writer.say(&format!("HGETALL {name}"));
                assert_eq!(fields(&mut reply.split("\r\n")), record.fields, "{name} in {db}");
            }
        }
    }

    fn create(&mut self, db: usize) {
        let name = self.name();
        let fields = self.new_fields();
        self.write(db, &name, &fields);
    }

    fn new_fields(&mut self) -> Vec<(&'static str, String)> {
        let now_ms = self.place.now_ms() as i64;
        let run_at = match self.random.u8(..12) {
            0 => "none".to_owned(),
            1 => format!("{}.5", now_ms + self.random.i64(-5..50)),
            2 => "-7".to_owned(),
            3..=6 => (now_ms - self.random.i64(0..3)).to_string(),
            _ => (now_ms + self.random.i64(-100..200)).to_string(),
        };
        let state = self.pick(&["pending", "pending", "pending", "running", "done"]).to_owned();
        let mut fields =
            vec![("run_at", run_at), ("state", state), ("attempt", self.pick(&["0", "0", "2", "x"]).into())];
        if self.random.bool() {
            fields.push(("prio", self.random.u8(..5).to_string()));
        }
        fields
    }

    fn write(&mut self, db: usize, name: &str, fields: &[(&str, String)]) {
        let pairs: String = fields.iter().map(|(field, value)| format!(" {field} {value}")).collect();
        let line = match self.random.u8(..4) {
            0 => format!("HPUT {name} FIELDS {}{pairs}", fields.len()),
            1 => format!("HCAS {name} SET {}{pairs}", fields.len()),
            _ => format!("HSET {name}{pairs}"),
        };
        self.say(db, &line);
        self.model.set(db, name, fields);
    }

    /// A worker renews, completes or fails a job, or gives one up that it has lost.
    fn work(&mut self, db: usize) {
        let Some((name, record)) = self.any_record(db) else { return };
        let Some(attempt) = record.fields.get("attempt").cloned() else { return };
        let now_ms = self.place.now_ms();
        let change: Vec<(&str, String)> = match self.random.u8(..5) {
            0 => vec![("run_at", (now_ms + 30).to_string())],
            1 | 2 => vec![("state", "done".into())],
            3 => vec![("state", "pending".into()), ("run_at", (now_ms + self.random.u64(..20)).to_string())],
            // It begins anew, whatever it was.
            _ => vec![("state", "pending".into()), ("attempt", "0".into())],
        };
        let has_token = self.random.u8(..4) > 0;
        let token = if has_token { attempt } else { "77".into() };
        let pairs: String = change.iter().map(|(field, value)| format!(" {field} {value}")).collect();
        let reply = self.say(db, &format!("HCAS {name} IF 1 attempt {token} SET {}{pairs}", change.len()));
        assert_eq!(reply, if has_token { ":1\r\n" } else { ":0\r\n" });
        if has_token {
            self.model.set(db, &name, &change);
        }
    }

    fn delete(&mut self, db: usize) {
        let Some((name, _)) = self.any_record(db) else { return };
        let fields = self.pick(&["", "state attempt", "run_at", "prio", "note"]);
        match fields {
            "" => {
                self.say(db, &format!("DEL {name}"));
                self.model.dbs[db].remove(&name);
            }
            fields => {
                self.say(db, &format!("HDEL {name} {fields}"));
                let fields: Vec<&str> = fields.split(' ').collect();
                self.model.delete_fields(db, &name, &fields);
            }
        }
    }

    /// Waiters see what it has come to, and not what was in between.
    fn transaction(&mut self, db: usize) {
        self.say(db, "MULTI");
        let queue = |line: &str, log: &mut Vec<String>, writer: &mut Peer<'_>| {
            log.push(line.to_owned());
            writer.say(line);
        };
        let mut writes = Vec::new();
        for _ in 0..self.random.usize(1..5) {
            let (name, fields) = (self.name(), self.new_fields());
            let pairs: String = fields.iter().map(|(field, value)| format!(" {field} {value}")).collect();
            queue(&format!("HSET {name}{pairs}"), &mut self.log, &mut self.writer);
            writes.push((name, fields));
        }
        let claim = self.random.bool().then(|| self.any_claim(Some(0)));
        if let Some(claim) = &claim {
            queue(&claim.line(), &mut self.log, &mut self.writer);
        }
        // Those whose time has come are served before it, though the timer is late.
        let served = self.model.serve(&[0, 1], self.place.now_ms());
        let reply = self.writer.say("EXEC");
        self.end_waits(served);
        writes.iter().for_each(|(name, fields)| self.model.set(db, name, fields));
        let Some(claim) = claim else { return };
        if claim.indexes.iter().any(|index| !self.has_index[*index]) {
            return assert!(reply.contains("-ERR there is no index"), "{reply}");
        }
        // It does not wait, and no waiter is before it.
        let claim = Claim { block_ms: None, ..claim };
        let rows = self.model.claim(db, &claim, self.place.now_ms());
        let own = format!("*{}\r\n", writes.len() + 1).len() + reply[4..].find('*').expect("its reply is an array");
        assert_eq!(parse(&reply.as_bytes()[own..]), rows, "{} in {reply}", claim.line());
    }

    fn rename(&mut self, db: usize) {
        let Some((name, record)) = self.any_record(db) else { return };
        let to = self.name();
        match self.random.u8(..3) {
            0 => {
                self.say(db, &format!("RENAME {name} {to}"));
                self.model.dbs[db].remove(&name);
                self.model.put(db, &to, record);
            }
            1 => {
                let other = 1 - db;
                let is_new = !self.model.dbs[other].contains_key(&name);
                assert_eq!(self.say(db, &format!("MOVE {name} {other}")), format!(":{}\r\n", usize::from(is_new)));
                if is_new {
                    self.model.dbs[db].remove(&name);
                    self.model.put(other, &name, record);
                }
            }
            _ if name == to => {}
            _ => {
                let other = self.db();
                self.say(db, &format!("COPY {name} {to} DB {other} REPLACE"));
                self.model.put(other, &to, record);
            }
        }
    }

    fn lifetime(&mut self, db: usize) {
        let Some((name, _)) = self.any_record(db) else { return };
        let deadline_ms = self.random.bool().then(|| self.place.now_ms() + self.random.u64(1..300));
        match deadline_ms {
            Some(deadline_ms) => self.say(db, &format!("PEXPIREAT {name} {deadline_ms}")),
            None => self.say(db, &format!("PERSIST {name}")),
        };
        self.model.dbs[db].get_mut(&name).expect("it was just found").deadline_ms = deadline_ms;
    }

    /// Drops an index, or makes it again.
    fn index(&mut self) {
        if self.random.bool() {
            return;
        }
        let at = self.random.usize(..INDEXES.len());
        if !self.has_index[at] {
            self.say(0, INDEXES[at].create);
            self.has_index[at] = true;
            return;
        }
        // Waiters whose records have become due meanwhile are served first.
        self.settle();
        self.say(0, &format!("IDX.DROP {}", INDEXES[at].name));
        self.has_index[at] = false;
        let concerned = |waiter: &Waiter| waiter.claim.indexes.contains(&at);
        let dropped: Vec<usize> = self.model.waiters.iter().filter(|one| concerned(one)).map(|one| one.id).collect();
        self.model.waiters.retain(|waiter| !concerned(waiter));
        for id in dropped {
            let reply = self.peer(id).outcome(false).expect("its index was dropped");
            assert_eq!(reply, format!("-ERR the index '{}' was dropped\r\n", INDEXES[at].name).into_bytes());
            self.counts.dropped += 1;
            self.end(id);
        }
    }

    fn databases(&mut self, db: usize) {
        match self.random.u8(..6) {
            0 => {
                self.say(db, "FLUSHDB");
                self.model.dbs[db].clear();
            }
            1 | 2 => {
                self.say(db, "SWAPDB 0 1");
                self.model.swap();
            }
            _ => {}
        }
    }

    /// A client that waits is unblocked, or goes.
    fn leave(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let at = self.random.usize(..self.waiting.len());
        let id = self.waiting[at].0;
        let how = self.random.u8(..3);
        self.log.push(format!("{id} leaves"));
        let peer = self.peer(id);
        match how {
            0 => {
                assert!(peer.client.handle.unblock(Unblock::Error));
                let reply = peer.outcome(false).expect("it was unblocked");
                assert_eq!(reply, b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
            }
            1 => {
                assert!(peer.client.handle.unblock(Unblock::Timeout));
                assert_eq!(peer.outcome(false).expect("it was unblocked"), b"*0\r\n");
            }
            _ => engine::forget(peer.engine, &mut peer.client),
        }
        self.counts.unblocked += 1;
        self.model.waiters.retain(|waiter| waiter.id != id);
        self.end(id);
    }

    fn claim(&mut self, db: usize, block_ms: Option<u64>) {
        let claim = self.any_claim(block_ms);
        let mut peer = Peer::new(self.place, 0);
        peer.say(&format!("SELECT {db}"));
        self.last_id += 1;
        let (id, now_ms) = (self.last_id, self.place.now_ms());
        self.log.push(format!("{id} in {db} at {now_ms}: {}", claim.line()));
        let mut reply = peer.execute(&claim.line());
        if reply.is_none() {
            // What was there before may still have to be searched for it.
            self.serve();
            reply = peer.outcome(false);
        }
        if let Some(missing) = claim.indexes.iter().find(|index| !self.has_index[**index]) {
            let error = format!("-ERR there is no index '{}'\r\n", INDEXES[*missing].name);
            return assert_eq!(reply, Some(error.into_bytes()));
        }
        // Those that wait come first, if something was due by now.
        let served = if self.is_plain { self.model.serve(&[db], now_ms) } else { Vec::new() };
        for (waiter, rows) in served {
            let reply = self.peer(waiter.id).outcome(false);
            let reply = reply.unwrap_or_else(|| panic!("{waiter:?} at {now_ms} should have {rows:?} before {id}"));
            assert_eq!(parse(&reply), rows, "{waiter:?} at {now_ms}");
            self.counts.served += 1;
            self.end(waiter.id);
        }
        let rows = self.model.claim(db, &claim, now_ms);
        self.counts.claimed += rows.len();
        match reply {
            Some(reply) => {
                assert_eq!(parse(&reply), rows, "{}", claim.line());
                assert!(!rows.is_empty() || block_ms.is_none(), "it should wait");
                self.counts.set_aside += usize::from(claim.counter.is_some_and(|counter| counter.1.is_some()));
                engine::forget(&self.place.engine, &mut peer.client);
            }
            None => {
                assert!(rows.is_empty(), "it waits, and there is {rows:?}");
                self.counts.waited += 1;
                let until_ms = block_ms.filter(|ms| *ms > 0).map(|ms| now_ms + ms);
                self.model.waiters.push(Waiter { id, db, claim, until_ms });
                self.waiting.push((id, peer));
            }
        }
    }

    fn any_claim(&mut self, block_ms: Option<u64>) -> Claim {
        let lists: [&[usize]; 8] = [&[0], &[0], &[0], &[1], &[2], &[1, 0], &[0, 2], &[0, 0]];
        let indexes = if self.is_plain { &[0] } else { lists[self.random.usize(..lists.len())] };
        let by_prio = indexes == [1];
        let min = match self.random.u8(..10) {
            0 => Some(Bound::Score(1.0, true)),
            1 => Some(Bound::Now(-40, false)),
            2 => Some(Bound::Score(f64::NEG_INFINITY, false)),
            _ => None,
        };
        let max = match self.random.u8(..10) {
            0 => Some(Bound::Now(20, self.random.bool())),
            1 => Some(Bound::Now(-5, false)),
            2 => None,
            3 => Some(Bound::Score(3.0, self.random.bool())),
            4 => Some(Bound::Score(f64::INFINITY, false)),
            _ if by_prio => None,
            _ => Some(Bound::Now(0, self.random.u8(..4) == 0)),
        };
        let conditions = [("state", vec!["pending"]), ("state", vec!["running", "x"]), ("owner", vec!["w"])];
        let condition = (self.random.u8(..4) == 0).then(|| conditions[self.random.usize(..3)].clone());
        let set = match self.random.u8(..4) {
            // The next client finds it again.
            0 => vec![("owner", Set::Text("w"))],
            1 => vec![("state", Set::Text("running")), ("run_at", Set::Now(0))],
            _ => vec![("state", Set::Text("running")), ("owner", Set::Text("w")), ("run_at", Set::Now(30))],
        };
        let dead = vec![("state", Set::Text("dead")), ("run_at", Set::Text("none"))];
        let counter = match self.random.u8(..5) {
            0 => None,
            1 => Some(("attempt", None)),
            // It stays where it is found again.
            2 => Some(("attempt", Some((1, vec![("note", Set::Text("tried"))])))),
            _ => Some(("attempt", Some((3, dead)))),
        };
        let count = self.pick(&[None, None, Some(1), Some(2), Some(100)]);
        Claim { indexes: indexes.to_vec(), min, max, condition, set, counter, count, block_ms }
    }

    fn any_record(&mut self, db: usize) -> Option<(String, Record)> {
        let count = self.model.dbs[db].len();
        if count == 0 {
            return None;
        }
        let (name, record) = self.model.dbs[db].iter().nth(self.random.usize(..count))?;
        Some((name.clone(), record.clone()))
    }

    fn say(&mut self, db: usize, line: &str) -> String {
        self.writer.say(&format!("SELECT {db}"));
        self.log.push(format!("in {db} at {}: {line}", self.place.now_ms()));
        self.writer.say(line)
    }

    fn peer(&mut self, id: usize) -> &mut Peer<'p> {
        &mut self.waiting.iter_mut().find(|waiting| waiting.0 == id).expect("it waits").1
    }

    /// A client has its reply, and goes.
    fn end(&mut self, id: usize) {
        let at = self.waiting.iter().position(|waiting| waiting.0 == id).expect("it waits");
        let (_, mut peer) = self.waiting.swap_remove(at);
        engine::forget(&self.place.engine, &mut peer.client);
    }

    fn name(&mut self) -> String {
        let prefix = self.pick(&["job", "job", "job", "job", "old"]);
        format!("{prefix}:{}", self.random.u8(..12))
    }

    fn db(&mut self) -> usize {
        usize::from(self.random.u8(..5) == 0)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.usize(..choices.len())]
    }
}

/// The rows of a reply of RESP2.
fn parse(reply: &[u8]) -> Vec<Row> {
    let mut lines = std::str::from_utf8(reply).expect("text").split("\r\n");
    let rows = count(&mut lines, '*');
    let row = |_| {
        assert_eq!(count(&mut lines, '*'), 3);
        let (name, score) = (bulk(&mut lines), bulk(&mut lines));
        (name, score.parse().expect("a score"), fields(&mut lines))
    };
    (0..rows).map(row).collect()
}

/// Fields and values of a reply of RESP2.
fn fields<'r>(lines: &mut impl Iterator<Item = &'r str>) -> Fields {
    (0..count(lines, '*') / 2).map(|_| (bulk(lines), bulk(lines))).collect()
}

fn bulk<'r>(lines: &mut impl Iterator<Item = &'r str>) -> String {
    count(lines, '$');
    lines.next().expect("a text").to_owned()
}

fn count<'r>(lines: &mut impl Iterator<Item = &'r str>, mark: char) -> usize {
    let line = lines.next().expect("a line");
    line.strip_prefix(mark).and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}
