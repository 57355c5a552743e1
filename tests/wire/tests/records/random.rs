//! Random commands from several connections in several databases: whatever they do, every index is what a look at all keys
//! says; also after a kill and after a snapshot.

use std::env;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wire::{Connection, Random};

use crate::exact::INDEXES;
use crate::support::{Home, assert_all_exact, check, eventually, ok, start, unix_ms};

const DATABASES: &[usize] = &[0, 1, 2];
const KEYS: &[&str] = &["j:1", "j:2", "j:3", "j:11", "k:1", "k:2", "s:1", "s:2", "other", "j"];
const FIELDS: &[&str] = &["n", "n", "m", "state", "state", "at", "tries"];
const VALUES: &[&str] =
    &["1", "2", "2", "-3", "4.5", "7", "done", "new", "failed", "nan", "1e400", "9223372036854775807", "\"\"", "-0"];
/// How far away a deadline is that the next comparison waits for.
const SOON_MS: u64 = 4;

/// How many rounds of a hundred commands there are.
fn rounds() -> usize {
    const ROUNDS: usize = 30;
    env::var("HOLDFAST_TEST_ROUNDS").map_or(ROUNDS, |given| given.parse().expect("HOLDFAST_TEST_ROUNDS is a number"))
}

#[test]
fn one_command_after_another() {
    let Some(session) = start() else { return };
    let mut random = Random::from_env();
    let mut connections: Vec<Connection> = (0..3).map(|_| session.connect()).collect();
    let mut reader = session.connect();
    INDEXES.iter().for_each(|index| drop(index.create(&mut reader)));
    let mut history: Vec<String> = Vec::new();
    for _ in 0..rounds() * 4 {
        // Looked for in the background, or by those who read alone.
        ok(&mut reader, &format!("DEBUG SET-ACTIVE-EXPIRE {}", random.below(2)));
        for _ in 0..10 {
            let at = random.below(connections.len());
            for command in commands(&mut random) {
                connections[at].run(&command);
                history.push(format!("{at}> {command}"));
            }
        }
        wait_for_deadlines(&mut reader);
        let shown = history[history.len().saturating_sub(20)..].join("\n");
        assert_all_exact(&mut reader, DATABASES, INDEXES, &shown);
    }
}

#[test]
fn many_at_once() {
    let Some(session) = start() else { return };
    let mut random = Random::from_env();
    let mut reader = session.connect();
    INDEXES.iter().for_each(|index| drop(index.create(&mut reader)));
    for round in 0..rounds().div_ceil(3) {
        let threads: Vec<_> =
            (0..4).map(|_| write_apart(session.connect(), Random::new(random.next_u64()), 100)).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("a writer failed"));
        wait_for_deadlines(&mut reader);
        assert_all_exact(&mut reader, DATABASES, INDEXES, &format!("round {round}"));
    }
}

#[test]
fn a_server_that_is_killed_comes_back_with_exact_indexes() {
    let Some(home) = Home::fresh() else { return };
    let mut random = Random::from_env();
    let mut server = home.start();
    INDEXES.iter().for_each(|index| drop(index.create(&mut server.connect())));
    for round in 0..rounds().div_ceil(10) {
        let address = server.address();
        let threads: Vec<_> = (0..3).map(|_| write_until_it_ends(address, Random::new(random.next_u64()))).collect();
        thread::sleep(Duration::from_millis(50 + random.below(100) as u64));
        if random.one_in(2) {
            server.connect().run("BGSAVE");
        }
        server.kill();
        threads.into_iter().for_each(|thread| thread.join().expect("a writer failed"));
        server = home.start();
        check_after_start(&server, &format!("after kill {round}"));
    }
    for how in ["SAVE", "BGREWRITEAOF"] {
        let mut connection = server.connect();
        (0..100).for_each(|_| drop(connection.run(&command(&mut random))));
        let mut connection = server.connect();
        assert!(!connection.run(how).is_error());
        server.kill();
        server = home.start();
        check_after_start(&server, &format!("after {how}"));
    }
}

fn check_after_start(server: &wire::Server, when: &str) {
    let mut reader = server.connect();
    wait_for_deadlines(&mut reader);
    let mut names: Vec<String> = reader.run("IDX.LIST").items().iter().map(|name| name.text().to_owned()).collect();
    let mut expected: Vec<&str> = INDEXES.iter().map(|index| index.name).chain(["idx:updated_at"]).collect();
    names.sort();
    expected.sort();
    assert_eq!(names, expected, "{when}");
    assert_all_exact(&mut reader, DATABASES, INDEXES, when);
}

fn write_apart(mut connection: Connection, mut random: Random, count: usize) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for _ in 0..count {
            commands(&mut random).iter().for_each(|command| drop(connection.run(command)));
        }
    })
}

fn write_until_it_ends(address: SocketAddr, mut random: Random) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let Ok(mut connection) = Connection::open(address) else { return };
        while commands(&mut random).iter().all(|command| connection.run(command) != wire::Reply::Closed) {}
    })
}

/// Until every deadline that was soon has passed.
fn wait_for_deadlines(connection: &mut Connection) {
    let until = own_ms() + SOON_MS + 1;
    eventually("the server's clock goes on", || unix_ms(connection) > until);
}

fn own_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_millis() as u64
}

/// Some command, or a transaction of a few.
fn commands(random: &mut Random) -> Vec<String> {
    if !random.one_in(30) {
        return vec![command(random)];
    }
    let end = random.pick(&["EXEC", "EXEC", "DISCARD"]);
    let inside = (0..4).map(|_| command(random)).filter(|command| command != "DEBUG RELOAD");
    ["MULTI".to_owned()].into_iter().chain(inside).chain([end.to_owned()]).collect()
}

fn command(random: &mut Random) -> String {
    let key = random.pick(KEYS);
    let other = random.pick(KEYS);
    let field = random.pick(FIELDS);
    let value = random.pick(VALUES);
    let db = random.pick(DATABASES);
    let soon = if random.one_in(2) { own_ms() + SOON_MS } else { own_ms() + 1_000_000 };
    match random.below(50) {
        0..10 => format!("HSET {key} {field} {value} n {}", random.below(4)),
        10..13 => format!("HSET {key} {field} {value}"),
        13 => format!("HDEL {key} {field}"),
        14 => format!("HINCRBY {key} {field} {}", random.below(5)),
        15 => format!("HINCRBYFLOAT {key} {field} 0.5"),
        16 => format!("HSETNX {key} {field} {value}"),
        17 => format!("HPUT {key} REPLACE FIELDS 2 {field} {value} n 2"),
        18 => format!("HPUT {key} PXAT {soon} FIELDS 1 {field} {value}"),
        19 => format!("HCAS {key} state new done"),
        20 => format!("HCAS {key} IF 1 state done SET 2 state new n 3 DEL 1 m"),
        21 => format!("DEL {key} {other}"),
        22 => format!("UNLINK {key}"),
        23 => format!("PEXPIREAT {key} {soon}"),
        24 => format!("HPEXPIREAT {key} {soon} FIELDS 1 {field}"),
        25 => format!("PERSIST {key}"),
        26 => format!("HPERSIST {key} FIELDS 1 {field}"),
        27 => format!("RENAME {key} {other}"),
        28 => format!("COPY {key} {other} DB {db} REPLACE"),
        29 => format!("MOVE {key} {db}"),
        30 => format!("SWAPDB {db} {}", random.pick(DATABASES)),
        31 => format!("SET {key} {value}"),
        32 => format!("SELECT {db}"),
        33 => format!(
            "EVAL \"redis.call('HSET', KEYS[1], 'n', 2, ARGV[1], ARGV[2]) return redis.call('DEL', KEYS[2])\" 2 {key} {other} {field} {value}"
        ),
        34 => format!(
            "SWEEP jobs BEFORE 3 WHERE state 2 new 7 RETRY tries 3 ELSE 1 state failed SET 2 n {} state new LIMIT 2",
            random.below(6)
        ),
        35 => format!("ZUNIONSTORE {key} 2 all new"),
        36 if random.one_in(5) => "FLUSHDB".into(),
        37 if random.one_in(10) => random.pick(&["FLUSHALL", "FLUSHALL ASYNC"]).into(),
        38 if random.one_in(10) => "DEBUG RELOAD".into(),
        36..39 => format!("HGETDEL {key} FIELDS 1 {field}"),
        39 => format!("HMSET {key} {field} {value} m 1"),
        40 => format!("RENAMENX {key} {other}"),
        41 => format!("HGETEX {key} PXAT {soon} FIELDS 1 {field}"),
        42 => format!("HPEXPIRE {key} 1 FIELDS 1 {field}"),
        43 => format!("MSET {key} {value} {other} {value}"),
        44 => format!("GETDEL {key}"),
        45 => format!("ZRANGESTORE {key} all 0 -1"),
        46 => format!("FCALL compare_and_swap 1 {key} n 2 3"),
        47 => format!("EVAL \"redis.call('HSET', KEYS[1], 'n', 3) error('half done')\" 1 {key}"),
        48 => format!(
            "EVAL \"return redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]), 'REPLACE')\" 2 {key} {other}"
        ),
        _ => format!("HSETEX {key} PXAT {soon} FIELDS 1 {field} {value}"),
    }
}

/// A server that has lost its configured index makes it again, and those that were made by command are kept.
#[test]
fn indexes_are_kept_with_the_data() {
    let Some(home) = Home::fresh() else { return };
    let server = home.start();
    let mut connection = server.connect();
    ok(&mut connection, "IDX.CREATE kept PREFIX 2 j: \"\\xff\" FIELD \"n\\x00\" EXCLUDE state 2 done \"\" STAMP");
    ok(&mut connection, "IDX.CREATE gone PREFIX 1 j: FIELD n");
    assert_eq!(connection.run("IDX.DROP gone").integer(), 1);
    assert_eq!(connection.run("IDX.DROP idx:updated_at").integer(), 1);
    connection.run("HSET j:1 updated_at 5");
    connection.run("HSET \"\\xff\" a 1 state \"\"");
    let told = definition_of(&mut connection, "kept");
    let mut server = server;
    for how in ["PING", "SAVE", "BGREWRITEAOF"] {
        assert!(!server.connect().run(how).is_error());
        server.kill();
        server = home.start();
        let mut connection = server.connect();
        assert_eq!(definition_of(&mut connection, "kept"), told, "after {how}");
        assert_eq!(connection.run("IDX.LIST").to_string(), "[\"kept\"]", "after {how}");
        assert_eq!(connection.run("ZRANGE kept 0 -1").to_string(), "[\"j:1\"]", "after {how}");
    }
    let mut connection = server.connect();
    assert_eq!(connection.run("HSET j:2 a 1").integer(), 1);
    assert_eq!(connection.run("ZRANGE kept 0 -1").to_string(), "[\"j:1\", \"j:2\"]");
}

/// All that IDX.INFO says but the bytes.
fn definition_of(connection: &mut Connection, index: &str) -> Vec<wire::Reply> {
    let mut told = connection.run(&format!("IDX.INFO {index}")).items().to_vec();
    assert_eq!(told[12].text(), "bytes");
    told.truncate(12);
    told
}

/// Two indexes that stamp the same records with fields of their own: the one that is written is not stamped, the other is.
#[test]
fn two_indexes_stamp_one_record() {
    check(
        r#"
        ! IDX.CREATE a PREFIX 1 j: FIELD a STAMP
        ! IDX.CREATE b PREFIX 1 j: FIELD b STAMP
        HSET j:1 x 1 => :1
        ZRANGE a 0 -1 WITHSCORES => ["j:1", ~"1????????????"]
        ZRANGE b 0 -1 WITHSCORES => ["j:1", ~"1????????????"]
        HSET j:1 a 5 b 5 => :0
        HSET j:1 a 6 => :0
        ZSCORE a j:1 => "6"
        ZSCORE b j:1 => ~"1????????????"
        "#,
    );
}
