//! Several workers: connections move between them under way, and their clients never know.

use std::collections::BTreeSet;
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
    let Some((server, mut control)) = Holdfast::start_with_client(&["--threads", "4", "--worker-balance", "gather"])
    else {
        return;
    };
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
        // The load goes on meanwhile; what happens is checked where the replies arrive.
        until_at_work(&server, |workers| workers == 1);
        balance(&server, &mut control, "spread");
        assert_eq!(listed(&mut control, &ids), ids.len(), "while they move");
        a_wait_and_a_pause(&server, &mut control);
        phase.store(TRICKLE, Relaxed);
        a_wait_and_a_pause(&server, &mut control);
        balance(&server, &mut control, "gather");
        assert_eq!(listed(&mut control, &ids), ids.len(), "after they have moved back");
        phase.store(HAMMER, Relaxed);
        for how in ["spread", "gather", "spread"] {
            balance(&server, &mut control, how);
        }
        ok(&mut control, "CONFIG SET worker-balance elastic");
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

/// Has connections move, and waits until they have.
fn balance(server: &Holdfast, control: &mut Connection, how: &str) {
    ok(control, &format!("CONFIG SET worker-balance {how}"));
    match how {
        "spread" => until_at_work(server, |workers| workers > 1),
        _ => until_at_work(server, |workers| workers == 1),
    }
}

/// Waits until the workers that have clients are so many, on systems that tell.
fn until_at_work(server: &Holdfast, expected: impl Fn(usize) -> bool) {
    if at_work(server).is_some() {
        eventually("clients have moved between workers", || at_work(server).is_some_and(&expected));
    }
}

/// How many workers have clients: each has an epoll of its own, and the kernel lists what an epoll watches.
fn at_work(server: &Holdfast) -> Option<usize> {
    /// More than listeners and whatever else a worker without clients watches.
    const SOCKETS_MIN: usize = 5;
    let process = format!("/proc/{}", server.process_id());
    let is_socket = |fd: &str| {
        fs::read_link(format!("{process}/fd/{fd}")).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    let sockets = |epoll: String| -> BTreeSet<String> {
        let watched = epoll.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next());
        watched.filter(|fd| is_socket(fd)).map(str::to_owned).collect()
    };
    let files = fs::read_dir(format!("{process}/fdinfo")).ok()?;
    let watched = files.flatten().filter_map(|file| fs::read_to_string(file.path()).ok()).map(sockets);
    // One epoll may have several file descriptors, which list the same.
    let workers: BTreeSet<_> = watched.filter(|sockets| sockets.len() >= SOCKETS_MIN).collect();
    Some(workers.len())
}

struct EndOnDrop<'a>(&'a AtomicU8);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(END, Relaxed);
    }
}
