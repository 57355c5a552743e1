//! TXN.BEGIN READONLY: cells as they were at one instant, beside writers with which it never conflicts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use wire::{Product, Random, Server, check, fresh_dir};

#[test]
fn it_reads_cells_as_they_were() {
    check(
        r#"
        # holdfast only
        > CELL.SET a 1
        :1
        > CELL.SET a 2
        :2
        > CELL.SET gone x
        :1
        > CELL.SET same s
        :1
        > TXN.BEGIN READONLY
        +OK
        2> MULTI
        +OK
        2> CELL.SET a 3
        +QUEUED
        2> CELL.DEL gone
        +QUEUED
        2> CELL.SET new 1
        +QUEUED
        2> EXEC
        [:3, :1, :1]
        > CELL.GET a
        "2"
        > CELL.GETV a VERSION 3
        (nil)
        > CELL.GETV a AFTER 2
        (nil)
        > CELL.HISTORY a
        [["2", :2, :1..], ["1", :1, :1..]]
        > CELL.MGET a gone new same
        [["2", :2, :1..], ["x", :1, :1..], (nil), ["s", :1, :1..]]
        > CELL.LIST PREFIX gone
        ["0", ["gone"]]
        > CELL.LIST PREFIX new
        ["0", []]
        2> FLUSHALL
        +OK
        > CELL.MGET a gone new same
        [["2", :2, :1..], ["x", :1, :1..], (nil), ["s", :1, :1..]]
        > TXN.COMMIT
        :0..
        > CELL.MGET a gone new same
        [(nil), (nil), (nil), (nil)]
        "#,
    );
}

#[test]
fn time_stands_still_in_it() {
    check(
        r#"
        # holdfast only
        > CELL.SET a 1 PX 30
        :1
        > CELL.SET b 1
        :1
        > TXN.BEGIN READONLY
        +OK
        2> CELL.SET b 2 PX 1
        :2
        # eventually
        2> EXISTS a b
        :0
        > CELL.GET a
        "1"
        > CELL.GET b
        "1"
        > TXN.ROLLBACK
        +OK
        > CELL.GET a
        (nil)
        "#,
    );
}

#[test]
fn its_database_may_be_swapped() {
    check(
        r#"
        # holdfast only
        > CELL.SET a 1
        :1
        > TXN.BEGIN READONLY
        +OK
        2> SWAPDB 0 3
        +OK
        2> CELL.SET a other
        :1
        > CELL.GET a
        "1"
        2> SELECT 3
        +OK
        2> CELL.SET a 2
        :2
        > CELL.GET a
        "1"
        > CELL.LIST
        ["0", ["a"]]
        > TXN.COMMIT
        :0..
        > CELL.GET a
        "other"
        "#,
    );
}

#[test]
fn it_has_only_commands_that_read_cells() {
    check(
        r#"
        # holdfast only
        > CELL.SET a 1
        :1
        > SET s 1
        +OK
        > TXN.BEGIN READ
        ~-ERR unknown option 'READ'. *
        > TXN.BEGIN READONLY READONLY
        ~-ERR *
        > TXN.BEGIN READONLY
        +OK
        > GET s
        -ERR GET cannot be part of a read-only transaction: it has only CELL.GET, CELL.GETV, CELL.MGET, CELL.HISTORY and CELL.LIST; end it, or begin one without READONLY
        > CELL.SET a 2
        ~-ERR CELL.SET cannot be part of a read-only transaction: *
        > EVAL "return 1" 0
        ~-ERR EVAL cannot be part of a read-only transaction: *
        > EXISTS a
        ~-ERR EXISTS cannot be part of a read-only transaction: *
        > SCAN 0
        -ERR SCAN cannot be part of an interactive transaction: its keys are not all arguments; send it outside of one
        > TXN.BEGIN READONLY
        -ERR TXN.BEGIN cannot be part of an interactive transaction: it is not about data; send it outside of one
        > CELL.GETV a AFTER 1 BLOCK 10
        -ERR BLOCK cannot wait in a read-only transaction, which sees no new version: leave it out
        > CELL.GET s
        ~-WRONGTYPE *
        > PING
        +PONG
        > CELL.GET a
        "1"
        > TXN.COMMIT
        :0..
        "#,
    );
}

#[test]
fn what_cannot_be_kept_is_a_conflict() {
    check(
        r#"
        # holdfast only
        # config txn-max-bytes 1024
        > CELL.SET a 1
        :1
        > CELL.SET b 1
        :1
        > TXN.BEGIN READONLY
        +OK
        2> CELL.SET a 2
        :2
        > CELL.GET a
        "1"
        2> EVAL "for i = 1, 20 do redis.call('CELL.SET', 'n' .. i, 1) end" 0
        (nil)
        > CELL.GET b
        -CONFLICT cells that changed since TXN.BEGIN READONLY could not be kept for this transaction: begin a new one, keep it shorter, or raise txn-max-bytes
        > PING
        ~-CONFLICT *
        > TXN.COMMIT
        ~-CONFLICT *
        > CELL.GET a
        "2"
        "#,
    );
}

#[test]
fn it_ends_after_its_time() {
    check(
        r#"
        # holdfast only
        # config txn-timeout 50
        > CELL.SET a 1
        :1
        > TXN.BEGIN READONLY
        +OK
        # eventually
        > CELL.GET a
        -ERR the transaction was open for more than 50 ms (txn-timeout) and was rolled back: begin a new one
        > TXN.ROLLBACK
        +OK
        "#,
    );
}

#[test]
fn a_caching_client_does_not_keep_what_it_reads_in_it() {
    check(
        r#"
        # holdfast only
        > HELLO 3
        *
        > CLIENT TRACKING ON
        +OK
        > CELL.SET a 1
        :1
        > TXN.BEGIN READONLY
        +OK
        2> CELL.SET a 2
        :2
        > CELL.GET a
        "1"
        push["invalidate", ["a"]]
        > TXN.COMMIT
        :0..
        "#,
    );
}

#[test]
fn a_reader_beside_eight_writers_sees_every_sum_whole() {
    const CELLS: usize = 50;
    if wire::Session::start().product() != Product::Holdfast {
        return;
    }
    let server = Server::start(&fresh_dir(), &["--threads", "2", "--worker-balance", "spread"]);
    let mut reader = server.connect();
    (0..CELLS).for_each(|cell| drop(reader.run(&format!("CELL.SET n:{cell} 100"))));
    let (is_over, seed) = (AtomicBool::new(false), Random::from_env().next_u64());
    const MOVE: &str = "local a=redis.call('CELL.GET',KEYS[1]) local b=redis.call('CELL.GET',KEYS[2]) \
                        redis.call('CELL.SET',KEYS[1],a-ARGV[1]) redis.call('CELL.SET',KEYS[2],b+ARGV[1])";
    thread::scope(|scope| {
        for writer in 0..8 {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                let (mut client, mut random) = (server.connect(), Random::new(seed + writer));
                while !is_over.load(Ordering::Relaxed) {
                    let from = random.below(CELLS);
                    let to = (from + 1 + random.below(CELLS - 1)) % CELLS;
                    let (from, to, by) = (format!("n:{from}"), format!("n:{to}"), random.below(9).to_string());
                    let reply = client.run_args(&["EVAL", MOVE, "2", &from, &to, &by]);
                    assert!(reply.is_nil(), "{reply:?}");
                }
            });
        }
        let sums = thread::Builder::new().spawn_scoped(scope, || {
            let names: Vec<String> = (0..CELLS).map(|cell| format!("n:{cell}")).collect();
            for round in 0..500 {
                let one_by_one = round % CELLS;
                let mut requests = vec!["TXN.BEGIN READONLY".to_owned()];
                requests.extend(names[..one_by_one].iter().map(|name| format!("CELL.GET {name}")));
                requests.push(format!("CELL.MGET {}", names[one_by_one..].join(" ")));
                // One by one, so that writers come in between.
                let mut replies: Vec<_> = requests.iter().map(|request| reader.run(request)).collect();
                let rest = replies.pop().expect("the last is MGET");
                let mut sum: i64 =
                    replies[1..].iter().map(|reply| reply.text().parse::<i64>().expect("a number")).sum();
                sum += rest
                    .items()
                    .iter()
                    .map(|cell| cell.items()[0].text().parse::<i64>().expect("a number"))
                    .sum::<i64>();
                assert_eq!(sum, 100 * CELLS as i64);
                assert!(reader.run("TXN.COMMIT").integer() > 0);
            }
        });
        let result = sums.expect("a thread starts").join();
        is_over.store(true, Ordering::Relaxed);
        result.expect("every sum is whole");
    });
    let info = server.connect().run("INFO stats");
    assert!(info.text().contains("transactions_conflicted:0"), "{}", info.text());
    assert!(info.text().contains("transactions_committed:500"), "{}", info.text());
}
