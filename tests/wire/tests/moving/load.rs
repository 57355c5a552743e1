//! Clients that write every type of Redis's at random, with commands that must not be applied twice. Knows nothing of the move.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wire::{Connection, Random, Reply};

/// Clients that write until they are told to stop, or their server is killed.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts two clients. `has_field_deadlines`: the server knows HPEXPIRE.
    pub(crate) fn start(address: SocketAddr, has_field_deadlines: bool) -> Load {
        let (stop, written) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let threads = (0..2).map(|_| {
            let (stop, written) = (stop.clone(), written.clone());
            let mut random = Random::from_env();
            thread::spawn(move || {
                let Ok(mut connection) = Connection::open(address) else { return };
                while !stop.load(Relaxed) {
                    let lines: Vec<String> = (0..20).map(|_| line(&mut random, has_field_deadlines)).collect();
                    lines.iter().for_each(|line| connection.queue_line(line));
                    for _ in &lines {
                        if connection.read_until_killed() == Reply::Closed {
                            return;
                        }
                    }
                    written.fetch_add(20, Relaxed);
                    // A debug build has to keep up.
                    thread::sleep(PAUSE);
                }
            })
        });
        let threads = threads.collect();
        Load { stop, written, threads }
    }

    /// Waits until so many commands more were written.
    pub(crate) fn wait_for(&self, more: u64) {
        let until = self.written.load(Relaxed) + more;
        while self.written.load(Relaxed) < until && self.threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn stop(self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads {
            thread.join().expect("no client panics");
        }
    }
}

/// Between twenty commands of a client.
const PAUSE: Duration = Duration::from_millis(20);

/// A random command; each client begins in database 0 and changes it now and then.
fn line(random: &mut Random, has_field_deadlines: bool) -> String {
    let key = |random: &mut Random, kind: &str| format!("{kind}:{}", random.below(12));
    let number = random.below(50);
    let one_of = |random: &mut Random, kind: &str, lines: &[&str]| {
        let line = random.pick(lines);
        let (key, other) = (key(random, kind), key(random, kind));
        line.replace('K', &key).replace('J', &other).replace('#', &number.to_string())
    };
    let one =
        |random: &mut Random, kind: &str, lines: &str| one_of(random, kind, &lines.split(" | ").collect::<Vec<_>>());
    match random.below(if has_field_deadlines { 11 } else { 10 }) {
        0 | 1 => one(
            random,
            "string",
            "INCR K | INCRBYFLOAT f:K 0.25 | APPEND a:K x# | SET K # PX 60000 | SETRANGE a:K # zz | \
                    GETDEL K | SET K # | GETEX K EX 500 | SETBIT b:K # 1 | BITOP OR b:J b:K b:J | PFADD p:K # | \
                    COPY K J REPLACE | SET e:K # PX 30",
        ),
        2 => one(
            random,
            "list",
            "RPUSH K # | LPUSH K # | LPOP K | RPOPLPUSH K J | LINSERT K BEFORE # x | LTRIM K 0 30 | \
                    LREM K 1 # | SORT K STORE J",
        ),
        3 => one(
            random,
            "hash",
            "HSET K f# # | HINCRBY K n 1 | HINCRBYFLOAT K d 0.5 | HDEL K f# | HSETNX K f# x | RENAME K J",
        ),
        4 => {
            one(random, "set", "SADD K # a b | SPOP K | SREM K # | SMOVE K J # | SUNIONSTORE J K J | SDIFFSTORE J J K")
        }
        5 => one(
            random,
            "zset",
            "ZADD K # a# | ZINCRBY K 1.5 a# | ZPOPMIN K | ZREMRANGEBYRANK K 20 -1 | ZUNIONSTORE J 2 K J | \
                    GEOADD g:K 13.#1 38.# p#",
        ),
        6 => one(
            random,
            "stream",
            "XADD K * f # | XADD K MAXLEN ~ 20 * f # | XGROUP CREATE K g 0 MKSTREAM | \
                    XREADGROUP GROUP g c# COUNT 3 STREAMS K > | XAUTOCLAIM K g c# 0 0 COUNT 2 | XTRIM K MAXLEN 30 | \
                    XADD K * g # h #",
        ),
        7 => one(
            random,
            "string",
            "EXPIRE K 300 | PERSIST K | PEXPIRE K 40 | DEL K | UNLINK K J | EXPIRE list:1 200 | \
                    EXPIRE hash:# 400 | PEXPIRE set:# 50",
        ),
        8 => one_of(
            random,
            "string",
            &[
                "EVAL \"redis.call('INCR', KEYS[1]); redis.call('RPUSH', 'list:0', ARGV[1]); return redis.call('SPOP', 'set:1')\" 1 K #",
                "EVAL \"for i = 1, 5 do redis.call('HINCRBY', 'hash:0', 'script', i) end\" 0",
                "PUBLISH channel #",
            ],
        ),
        9 => ["MULTI", "INCR t:0", "RPUSH t:1 x", "EXEC", "SELECT 0", "SELECT 3", "MOVE string:1 5", "SWAPDB 3 5"]
            [random.below(8)]
        .to_owned(),
        _ => one(
            random,
            "hash",
            "HPEXPIRE K 60000 FIELDS 1 f# | HPEXPIRE K 30 FIELDS 1 f# | HPERSIST K FIELDS 1 f# | \
                    HGETEX K EX 100 FIELDS 1 f#",
        ),
    }
}
