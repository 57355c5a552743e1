//! Several workers: connections move between them under way, and their clients never know.

use std::fs;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, info, ok};

const THREADS: usize = 4;
const CONNECTIONS_PER_THREAD: usize = 10;
const PIPELINE: usize = 50;

/// What the load threads are to do.
const HAMMER: u8 = 0;
const TRICKLE: u8 = 1;
const END: u8 = 2;

/// A connection with two keys of its own, and what they must hold.
struct Counting {
    connection: Connection,
    id: i64,
    name: String,
    count: i64,
}

impl Counting {
    fn open(server: &Holdfast, number: usize) -> Counting {
        let mut connection = server.connect();
        let id = connection.run("CLIENT ID").integer();
        Counting { connection, id, name: format!("c{number}"), count: 0 }
    }

    fn send(&mut self, pipeline: usize) {
        let name = &self.name;
        for count in self.count + 1..=self.count + pipeline as i64 {
            self.connection.queue_line(&format!("INCR {name}:n"));
            self.connection.queue_line(&format!("SET {name}:last {name}-{count}"));
            self.connection.queue_line(&format!("GET {name}:last"));
        }
        self.connection.flush();
    }

    fn receive(&mut self, pipeline: usize) {
        for _ in 0..pipeline {
            self.count += 1;
            assert_eq!(self.connection.read(), Reply::Integer(self.count), "{}", self.name);
            assert_eq!(self.connection.read().to_string(), "+OK");
            assert_eq!(self.connection.read().text(), format!("{}-{}", self.name, self.count));
        }
    }
}

#[test]
fn connections_move_between_workers_unnoticed() {
    // How many workers the load needs is for the machine to say; the test says it instead.
    let Some(server) = Holdfast::start(&["--threads", "4", "--worker-balance", "gather"]) else { return };
    let mut control = server.connect();
    let mut groups: Vec<Vec<Counting>> = (0..THREADS)
        .map(|thread| {
            let numbers = thread * CONNECTIONS_PER_THREAD..(thread + 1) * CONNECTIONS_PER_THREAD;
            numbers.map(|number| Counting::open(&server, number)).collect()
        })
        .collect();
    let ids: Vec<i64> = groups.iter().flatten().map(|counting| counting.id).collect();

    let phase = AtomicU8::new(HAMMER);
    thread::scope(|scope| {
        let _end = EndOnDrop(&phase);
        for group in &mut groups {
            scope.spawn(|| count(group, &phase));
        }
        let burden = server.connect();
        scope.spawn(|| keep_busy(burden, &phase));
        // The load goes on meanwhile; what happens is checked where the replies arrive. The second worker only ever
        // works for connections that have moved to it.
        thread::sleep(Duration::from_millis(500));
        assert_eq!(control.run("CONFIG SET worker-balance spread").to_string(), "+OK");
        thread::sleep(Duration::from_millis(500));
        if cpu_ticks(&server, "worker-1").is_some() {
            eventually("a second worker is at work", || cpu_ticks(&server, "worker-1") > Some(5));
        }
        assert_eq!(listed(&mut control, &ids), ids.len(), "while they move");
        a_wait_and_a_pause(&server, &mut control);
        phase.store(TRICKLE, Relaxed);
        a_wait_and_a_pause(&server, &mut control);
        assert_eq!(control.run("CONFIG SET worker-balance gather").to_string(), "+OK");
        thread::sleep(Duration::from_secs(1));
        assert_eq!(listed(&mut control, &ids), ids.len(), "after they have moved back");
        phase.store(HAMMER, Relaxed);
        for balance in ["spread", "gather", "spread", "elastic"] {
            assert_eq!(control.run(&format!("CONFIG SET worker-balance {balance}")).to_string(), "+OK");
            thread::sleep(Duration::from_millis(300));
        }
    });

    let mut counting: Vec<Counting> = groups.into_iter().flatten().collect();
    for one in &mut counting {
        one.send(1);
        one.receive(1);
    }
    for (at, one) in counting.iter_mut().enumerate() {
        assert_eq!(control.run(&format!("CLIENT KILL ID {}", one.id)).integer(), 1);
        assert_eq!(one.connection.read(), Reply::Closed);
        assert_eq!(listed(&mut control, &ids), ids.len() - at - 1);
    }
    eventually("they are all gone", || info::<u32>(&mut control, "connected_clients") == 1);
    for one in &counting {
        assert_eq!(control.run(&format!("GET {}:n", one.name)).text(), one.count.to_string(), "no request was lost");
    }
}

/// Keeps a few connections busy, all at once or now and then.
fn count(group: &mut [Counting], phase: &AtomicU8) {
    loop {
        let pipeline = match phase.load(Relaxed) {
            HAMMER => PIPELINE,
            TRICKLE => 1,
            _ => return,
        };
        group.iter_mut().for_each(|one| one.send(pipeline));
        group.iter_mut().for_each(|one| one.receive(pipeline));
        if pipeline == 1 {
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Costs the server more than the client, so that one worker is not enough even for an optimized server.
fn keep_busy(mut connection: Connection, phase: &AtomicU8) {
    const BYTES: usize = 64 * 1024;
    assert_eq!(connection.run_with("SET burden", &[&[0xff; BYTES]]).to_string(), "+OK");
    loop {
        match phase.load(Relaxed) {
            HAMMER => {
                (0..PIPELINE).for_each(|_| connection.queue_line("BITCOUNT burden"));
                (0..PIPELINE).for_each(|_| assert_eq!(connection.read().integer(), BYTES as i64 * 8));
            }
            TRICKLE => thread::sleep(Duration::from_millis(50)),
            _ => return,
        }
    }
}

/// Clients that wait cannot move; they must still be answered.
fn a_wait_and_a_pause(server: &Holdfast, control: &mut Connection) {
    let (mut blocked, mut unblocked, mut paused) = (server.connect(), server.connect(), server.connect());
    blocked.queue_line("WAIT 1 500");
    blocked.queue_line("ECHO after");
    blocked.flush();
    let id = unblocked.run("CLIENT ID").integer();
    unblocked.queue_line("WAIT 1 0");
    unblocked.flush();
    eventually("it can be unblocked", || control.run(&format!("CLIENT UNBLOCK {id} ERROR")).integer() == 1);
    assert_eq!(unblocked.read().to_string(), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    ok(control, "CLIENT PAUSE 200 ALL");
    ok(&mut paused, "SET paused 1");
    ok(control, "CLIENT PAUSE 60000 WRITE");
    paused.queue_line("SET paused 2");
    paused.flush();
    assert_eq!(control.run("GET paused").text(), "1");
    ok(control, "CLIENT UNPAUSE");
    assert_eq!(paused.read().to_string(), "+OK");
    assert_eq!(blocked.read().integer(), 0);
    assert_eq!(blocked.read().text(), "after");
}

/// How many of these CLIENT LIST has.
fn listed(control: &mut Connection, ids: &[i64]) -> usize {
    let list = control.run("CLIENT LIST");
    let there = |id: &i64| list.text().lines().any(|line| line.starts_with(&format!("id={id} ")));
    ids.iter().filter(|id| there(id)).count()
}

/// CPU time that a thread of the server has used, on systems that tell.
fn cpu_ticks(server: &Holdfast, thread: &str) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.process_id())).ok()?;
    let named =
        |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim_end() == thread);
    let task = tasks.flatten().find(named)?;
    let stat = fs::read_to_string(task.path().join("stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

struct EndOnDrop<'a>(&'a AtomicU8);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(END, Relaxed);
    }
}
