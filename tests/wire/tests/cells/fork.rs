//! CELL.FORK and CELL.DROP: exact while others write, and gone after a crash in the middle.

use crate::{check, start};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use wire::{Connection, Random, Server, Session, fresh_dir};

#[test]
fn a_fork_has_versions_history_and_deadlines() {
    check(
        r#"
        > CELL.SET dev/a 1
        > CELL.SET dev/a 2
        > CELL.SET dev/a 3
        > CELL.SET dev/b x EX 1000
        > CELL.SET dev y
        > SET dev/s string
        :1
        :2
        :3
        :1
        :1
        +OK
        > CELL.FORK dev/ prod/
        :2
        > CELL.HISTORY prod/a
        [["3", :3, *], ["2", :2, *], ["1", :1, *]]
        > TTL prod/b
        :999..1000
        > TTL prod/a
        :-1
        > EXISTS prod/s prod
        :0
        > CELL.CAS prod/a 3 fork
        :4
        > CELL.GET dev/a
        "3"
        > CELL.SET dev/a 4
        :4
        > CELL.GET prod/a
        "fork"
        > CELL.DEL dev/b
        :1
        > CELL.GET prod/b
        "x"
        > CELL.FORK dev/ prod/
        -ERR there is a key under 'prod/' already: fork to another prefix, or CELL.DROP this one first
        > CELL.FORK nosuch/ other/
        :0
        > CELL.DROP prod/
        :2
        > CELL.DROP prod/
        :0
        > EXISTS dev/a dev dev/s
        :3
        > CELL.DROP dev/
        :1
        > EXISTS dev dev/s
        :2
        "#,
    );
}

#[test]
fn what_cannot_be_forked() {
    check(&format!(
        r#"
        > CELL.SET a/x v
        :1
        > CELL.FORK a/ a/b/
        -ERR one prefix contains the other, and a fork would copy its own cells: choose another ('a/' and 'a/b/')
        > CELL.FORK a/b/ a/
        -ERR one prefix contains the other, and a fork would copy its own cells: choose another ('a/b/' and 'a/')
        > CELL.FORK a/ a/
        -ERR one prefix contains the other, and a fork would copy its own cells: choose another ('a/' and 'a/')
        > CELL.FORK a/ _strata/
        -ERR the name of a cell must not begin with '_strata/', which is reserved: choose another name
        > CELL.FORK a/ "b\x00/"
        -ERR the name of a cell must not contain a NUL byte: choose another name
        > CELL.FORK a/ {longest}xx/
        -ERR the branch of a cell, before the first '/', must have at most 1024 bytes
        > DBSIZE
        :1
        > HSET c/h f v
        :1
        > CELL.FORK a/ c/
        -ERR there is a key under 'c/' already: fork to another prefix, or CELL.DROP this one first
        > CELL.FORK a/ d/
        :1
        > SELECT 3
        +OK
        > CELL.FORK a/ d/
        :0
        "#,
        longest = "x".repeat(1023)
    ));
}

#[test]
fn a_prefix_ends_in_a_separator() {
    check(
        r#"
        > CELL.SET main/x v
        > CELL.SET main:x v
        > CELL.SET maintenance/x v
        :1
        :1
        :1
        > CELL.DROP main
        -ERR the prefix must end in '/' or ':', not 'main'
        > CELL.DROP ""
        -ERR the prefix must end in '/' or ':', not ''
        > CELL.FORK main trial/
        -ERR the prefix to copy from must end in '/' or ':', not 'main'
        > CELL.FORK "" trial/
        -ERR the prefix to copy from must end in '/' or ':', not ''
        > CELL.FORK main/ trial
        -ERR the prefix to copy to must end in '/' or ':', not 'trial'
        > MULTI
        +OK
        > CELL.DROP main
        +QUEUED
        > CELL.FORK main trial
        +QUEUED
        > EXEC
        [-"ERR the prefix must end in '/' or ':', not 'main'",
         -"ERR the prefix to copy from must end in '/' or ':', not 'main'"]
        > DBSIZE
        :3
        > CELL.FORK main: trial/
        :1
        > CELL.GET trial/x
        "v"
        > CELL.DROP main/
        :1
        > CELL.DROP main:
        :1
        > CELL.LIST
        ["0", ~["maintenance/x", "trial/x"]]
        "#,
    );
}

#[test]
fn forks_and_drops_in_transactions_and_scripts() {
    check(
        r#"
        > MULTI
        > CELL.SET a/x 1
        > CELL.SET a/y 1
        > CELL.FORK a/ b/
        > CELL.SET a/x 2
        > CELL.FORK a/ b/
        > CELL.DROP a/
        > EXEC
        +OK
        +QUEUED
        +QUEUED
        +QUEUED
        +QUEUED
        +QUEUED
        +QUEUED
        [:1, :1, :2, :2, -"ERR there is a key under 'b/' already: fork to another prefix, or CELL.DROP this one first", :2]
        > CELL.GETV b/x
        ["1", :1, *]
        > EVAL "redis.call('cell.set', 'b/x', 2) return redis.call('cell.fork', 'b/', 'c/') + redis.call('cell.drop', 'b/')" 0
        :4
        > CELL.LIST
        ["0", ~["c/x", "c/y"]]
        > CELL.GETV c/x
        ["2", :2, *]
        "#,
    );
}

#[test]
fn copies_and_drops_are_told() {
    if start().is_none() {
        return;
    }
    wire::check_events(
        r#"
        CELL.SET a/x 1 => new a/x, cell.set a/x
        CELL.FORK a/ b/ => new b/x, cell.fork b/x
        CELL.DROP b/ => cell.drop b/x
        CELL.DROP b/ =>
        "#,
    );
}

/// A watch on a name that a fork makes.
#[test]
fn a_fork_wakes_those_who_wait_for_its_cells() {
    check(
        r#"
        > CELL.SET a/x 1
        :1
        2> CELL.GETV b/x AFTER 0 BLOCK 0
        # until blocked_clients:1
        > CELL.FORK a/ b/
        :1
        2< ["1", :1, *]
        2> CELL.GETV b/x AFTER 1 BLOCK 0
        # until blocked_clients:1
        > CELL.DROP b/
        :1
        2< (nil)
        "#,
    );
}

fn fill(connection: &mut Connection, prefix: &str, count: usize, value: &str) {
    let writes: Vec<String> = (0..count).map(|number| format!("CELL.SET {prefix}{number} {value}")).collect();
    for some in writes.chunks(1_000) {
        connection.pipeline(some);
    }
}

/// Every cell under a prefix.
fn names(connection: &mut Connection, prefix: &str) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let reply = connection.run(&format!("CELL.LIST PREFIX {prefix} CURSOR {cursor} LIMIT 5000"));
        names.extend(reply.items()[1].items().iter().map(|name| name.text().to_owned()));
        cursor = reply.items()[0].text().to_owned();
        if cursor == "0" {
            return names;
        }
    }
}

/// Clients move amounts between cells, and whole cells to other names, each in one step; some of the cells are removed and
/// made again, some get a deadline and lose it. The sum of all cells is the same at every instant, and so it is in a fork.
#[test]
fn a_fork_is_of_one_instant() {
    const CELLS: usize = 3_000;
    const MOVE: &str = "local function amount(name) return tonumber(redis.call('cell.get', name) or 0) end \
        local some = math.min(amount(KEYS[1]), tonumber(ARGV[1])) \
        if ARGV[2] == 'all' then some = amount(KEYS[1]) end \
        if KEYS[1] == KEYS[2] or some == 0 then return 0 end \
        local left = amount(KEYS[1]) - some \
        if left == 0 then redis.call('cell.del', KEYS[1]) else redis.call('cell.set', KEYS[1], left, 'EX', 1000) end \
        redis.call('cell.set', KEYS[2], amount(KEYS[2]) + some, 'PERSIST') return some";
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    fill(&mut connection, "a/", CELLS, "10");
    let ended = AtomicBool::new(false);
    let seed = Random::from_env().next_u64();
    let writers: Vec<Connection> = (0..3).map(|_| session.connect()).collect();
    thread::scope(|scope| {
        let _end = SetOnDrop(&ended);
        for (number, mut writer) in writers.into_iter().enumerate() {
            let (ended, mut random) = (&ended, Random::new(seed + number as u64));
            scope.spawn(move || {
                while !ended.load(Relaxed) {
                    for _ in 0..50 {
                        let (from, to) = (random.below(CELLS), random.below(CELLS + CELLS / 2));
                        let how = random.pick(&["some", "some", "all"]);
                        let (from, to) = (format!("a/{from}"), format!("a/{to}"));
                        let args = ["EVAL", MOVE, "2", &from, &to, "3", how];
                        writer.queue(&args);
                    }
                    writer.flush();
                    for _ in 0..50 {
                        let reply = writer.read();
                        assert!(!reply.is_error(), "{reply}");
                    }
                }
            });
        }
        for round in 0..8 {
            let fork = format!("f{round}/");
            let copied = connection.run(&format!("CELL.FORK a/ {fork}"));
            assert!(!copied.is_error(), "{copied}");
            let found = names(&mut connection, &fork);
            assert_eq!(found.len() as i64, copied.integer(), "round {round}");
            let reads: Vec<String> = found.iter().map(|name| format!("CELL.GET {name}")).collect();
            let mut sum = 0;
            for some in reads.chunks(1_000) {
                sum +=
                    connection.pipeline(some).iter().map(|value| value.text().parse::<usize>().unwrap()).sum::<usize>();
            }
            assert_eq!(sum, CELLS * 10, "round {round}");
            if round % 2 == 0 {
                assert_eq!(connection.run(&format!("CELL.DROP {fork}")).integer(), copied.integer());
            }
        }
    });
}

/// Ends the writers, also when the test has failed.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Sends a fork of many cells and returns once it copies; the client whose fork it is waits.
fn begin_fork(session: &Session, connection: &mut Connection) -> Connection {
    let mut forker = session.connect();
    forker.queue_line("CELL.FORK a/ b/");
    forker.flush();
    wait_for_copies(connection);
    forker
}

fn wait_for_copies(connection: &mut Connection) {
    while connection.run("CELL.LIST PREFIX b/ LIMIT 1").items()[1].items().is_empty() {
        thread::yield_now();
    }
}

const MANY: usize = 60_000;
const BUSY: &str = "-BUSY a CELL.FORK is writing there: try again when it has ended";

#[test]
fn what_a_fork_makes_is_reserved_until_it_ends() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    fill(&mut connection, "a/", MANY, "v");
    let mut forker = begin_fork(&session, &mut connection);
    for refused in [
        "CELL.SET b/x v",
        "SET b/x v",
        "HSET b/x f v",
        "DEL b/1",
        "RENAME a/1 b/x",
        "COPY a/1 b/x",
        "MSET z 1 b/x 1",
        "EXPIRE b/1 100",
        "CELL.DROP b/",
        "CELL.DROP b/y/",
        "CELL.FORK b/ c/",
        "CELL.FORK z/ b/y/",
        "EVAL \"return redis.call('set', KEYS[1], 'v')\" 1 b/x",
    ] {
        let reply = connection.run(refused).to_string();
        assert!(reply.starts_with(BUSY) || reply.contains("BUSY a CELL.FORK"), "{refused}: {reply}");
    }
    let refused = connection.run("SWAPDB 0 1").to_string();
    assert!(refused.starts_with("-BUSY a command works in slices"), "{refused}");
    let replies = connection.pipeline(&["MULTI", "SET other v", "SET b/x v", "EXEC"]);
    assert_eq!(replies[3].to_string(), format!("[+OK, -\"{}\"]", &BUSY[1..]));
    connection.run("SELECT 1");
    assert_eq!(connection.run("SET b/x v").to_string(), "+OK");
    assert_eq!(connection.run("MOVE b/x 0").to_string(), BUSY);
    assert_eq!(connection.run("COPY b/x b/x DB 0").to_string(), BUSY);
    connection.run("SELECT 0");
    assert_eq!(connection.run("SET c/x v").to_string(), "+OK");
    assert!(!connection.run("CELL.GET b/1").is_error());
    // A transaction goes on when a write of it is refused.
    let refused = ["TXN.BEGIN", "SET kept v", "CELL.SET b/x v", "GET kept", "TXN.COMMIT"];
    let replies: Vec<String> = connection.pipeline(&refused).iter().map(ToString::to_string).collect();
    assert!(replies[4].starts_with(':'), "{}", replies[4]);
    assert_eq!(replies[..4], ["+OK", "+OK", BUSY, "\"v\""]);
    assert_eq!(forker.read().integer() as usize, MANY);
    assert_eq!(connection.run("CELL.SET b/x v").integer(), 1);
    assert_eq!(names(&mut connection, "b/").len(), MANY + 1);
}

#[test]
fn a_transaction_that_has_written_there_before_cannot_be_committed() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    fill(&mut connection, "a/", MANY, "v");
    let mut transaction = session.connect();
    transaction.pipeline(&["TXN.BEGIN", "SET other v", "CELL.SET b/x v"]);
    let mut forker = begin_fork(&session, &mut connection);
    assert_eq!(transaction.run("TXN.COMMIT").to_string(), BUSY);
    assert_eq!(transaction.run("EXISTS other b/x").integer(), 0);
    assert_eq!(forker.read().integer() as usize, MANY);
    assert_eq!(names(&mut connection, "b/").len(), MANY);
}

#[test]
fn an_emptied_database_ends_its_fork() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for how in ["FLUSHDB", "FLUSHALL"] {
        fill(&mut connection, "a/", MANY, "v");
        let mut forker = begin_fork(&session, &mut connection);
        assert_eq!(connection.run(how).to_string(), "+OK");
        assert_eq!(
            forker.read().to_string(),
            "-ERR the database was emptied or exchanged while the command worked: send it again"
        );
        assert_eq!(connection.run("DBSIZE").integer(), 0);
        assert_eq!(connection.run("SET b/x v").to_string(), "+OK");
        connection.run("DEL b/x");
    }
}

#[test]
fn a_client_that_goes_away_does_not_end_its_fork() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    fill(&mut connection, "a/", MANY, "v");
    drop(begin_fork(&session, &mut connection));
    while connection.run("CELL.SET b/x v").is_error() {
        thread::yield_now();
    }
    assert_eq!(names(&mut connection, "b/").len(), MANY + 1);
}

/// In the middle of a fork the server is killed; a snapshot may lie between. After the start nothing of the fork is there.
#[test]
fn a_fork_that_has_not_ended_is_gone_after_a_kill() {
    if std::env::var_os("HOLDFAST_TEST_ADDR").is_some() {
        return wire::skip("this test starts a server of its own");
    }
    let dir = fresh_dir();
    let start = || Server::start(&dir, &["--appendonly", "yes", "--appendfsync", "everysec"]);
    let mut server = start();
    let mut connection = server.connect();
    fill(&mut connection, "a/", MANY, "v");
    for round in 0..3 {
        let mut forker = server.connect();
        forker.queue_line("CELL.FORK a/ b/");
        forker.flush();
        wait_for_copies(&mut connection);
        if round > 0 {
            connection.run("BGSAVE");
        }
        if round == 2 {
            while connection.run("INFO persistence").text().contains("rdb_bgsave_in_progress:1") {
                thread::yield_now();
            }
        }
        server.kill();
        server = start();
        connection = server.connect();
        assert_eq!(connection.run("DBSIZE").integer() as usize, MANY, "after kill {round}");
        assert_eq!(connection.run("SET b/x v").to_string(), "+OK");
        server.kill();
        server = start();
        connection = server.connect();
        assert_eq!(connection.run("DEL b/x").integer(), 1, "what was written since stays");
    }
    assert_eq!(connection.run("CELL.FORK a/ b/").integer() as usize, MANY);
    server.kill();
    server = start();
    assert_eq!(server.connect().run("DBSIZE").integer() as usize, 2 * MANY, "a fork that has ended stays");
    server.kill();
    std::fs::remove_dir_all(&dir).expect("cannot remove the data directory");
}
