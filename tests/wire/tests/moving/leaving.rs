//! `holdfast export --to`: the way back to Redis and Valkey, and from one Holdfast to another.

use std::path::Path;
use std::process::{Command, Output};

use wire::{Connection, Server, binary};

use crate::compare::assert_equal;
use crate::load::Load;
use crate::servers::{Product, Source};
use crate::support::{Dir, Holdfast, can_start_holdfast};

fn export(dir: &Path, to: &str) -> Output {
    let mut command = Command::new(binary());
    command.arg("export").arg(dir).args(["--to", to]).output().expect("cannot start the tool")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a Holdfast that is filled, and ends it; then it is there once more, to be compared with.
fn filled(dir: &Dir, has_field_deadlines: bool) {
    let mut server = Server::start(dir.path(), &[]);
    let load = Load::start(server.address(), has_field_deadlines);
    load.wait_for(1500);
    load.stop();
    server.connect().run_args(&[
        "FUNCTION",
        "LOAD",
        "#!lua name=lib\nredis.register_function('f', function() return 1 end)",
    ]);
    server.signal("TERM");
    server.wait_for_end();
}

#[test]
fn redis_and_valkey_take_everything_of_redis() {
    for product in [Product::Redis, Product::Valkey] {
        let has_field_deadlines = product == Product::Valkey;
        let Some(taker) = Source::start(product, &[]) else { continue };
        let dir = Dir::fresh();
        filled(&dir, has_field_deadlines);
        let done = export(dir.path(), &taker.url());
        assert_eq!(done.status.code(), Some(0), "{}", said(&done));
        let server = Server::start(dir.path(), &[]);
        assert_equal(&mut server.connect(), &mut taker.connect());
        assert_eq!(taker.connect().run("FCALL f 0").to_string(), ":1");
    }
}

/// What Redis has no type for.
const OWN: &[&str] = &[
    "CELL.SET cell 1",
    "CELL.SET cell 2",
    "REG.PUT register 1 v",
    "HSET job:1 due 5 state ready",
    "IDX.CREATE jobs PREFIX 1 job: FIELD due ONLY state 2 ready waiting STAMP",
];

fn furnish(connection: &mut Connection) {
    for line in OWN {
        let reply = connection.run(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
}

#[test]
fn what_a_server_refuses_is_listed_and_is_exit_code_3() {
    let Some(taker) = Source::start(Product::Redis, &["--databases", "2", "--requirepass", "secret"]) else { return };
    let dir = Dir::fresh();
    let mut server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    furnish(&mut client);
    for line in ["SET plain 1", "HSET h f v", "HPEXPIREAT h 4102444800000 FIELDS 1 f", "SELECT 3", "SET far 1"] {
        client.run(line);
    }
    server.signal("TERM");
    server.wait_for_end();
    let refused = export(dir.path(), &taker.url());
    assert_eq!(refused.status.code(), Some(1), "without the password: {}", said(&refused));
    let done = export(dir.path(), &taker.url().replace("//", "//:secret@"));
    assert_eq!(done.status.code(), Some(3), "{}", said(&done));
    for line in [
        "refused: cell: 1, for example: ERR Bad data format",
        "refused: register: 1, ",
        "refused: index: 1, for example: ERR unknown command 'IDX.CREATE'",
        "refused: deadline of a hash field: 1, for example: ERR unknown command 'HPEXPIREAT'",
        "refused: key of a database that the server does not have: 1, ",
    ] {
        assert!(said(&done).contains(line), "{line}: {}", said(&done));
    }
    let mut client = taker.connect();
    client.run("AUTH secret");
    assert_eq!(client.run("MGET plain far").to_string(), "[\"1\", (nil)]");
    assert_eq!(client.run("HGET h f").to_string(), "\"v\"");
    assert_eq!(client.run("HGET job:1 state").to_string(), "\"ready\"");
}

#[test]
fn another_holdfast_takes_all_types() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    filled(&dir, true);
    let debug = ["--enable-debug-command", "yes"];
    let mut server = Server::start(dir.path(), &debug);
    furnish(&mut server.connect());
    let digest = server.connect().run("DEBUG DIGEST").to_string();
    server.signal("TERM");
    server.wait_for_end();
    let other = Holdfast::start(&debug).expect("there is a Holdfast");
    let done = export(dir.path(), &format!("redis://{}", other.address()));
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let mut client = other.connect();
    assert_eq!(client.run("DEBUG DIGEST").to_string(), digest);
    assert_eq!(client.run("CELL.GETV cell").items()[0].to_string(), "\"2\"");
    assert_eq!(client.run("IDX.LIST").to_string(), "[\"idx:updated_at\", \"jobs\"]");
    assert_eq!(client.run("IDX.RANGE jobs 0 10").items().len(), 1);
}

/// Streams with entries that consumers have released, for which servers before Redis 8.8 have no place.
fn release(connection: &mut Connection) {
    for line in [
        "XADD s 1-1 f a",
        "XADD s 2-1 f b",
        "XADD s 3-1 f c",
        "XADD s 4-1 f d",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g alice COUNT 2 STREAMS s >",
        "XREADGROUP GROUP g bob COUNT 1 STREAMS s >",
        "XNACK s g FAIL IDS 2 2-1 1-1",
        // In a group that has no consumer.
        "XGROUP CREATE s lonely 0",
        "XNACK s lonely SILENT IDS 1 4-1 RETRYCOUNT 6 FORCE",
        // Its entry is gone: only a payload has it.
        "XADD orphaned 1-1 f a",
        "XADD orphaned 2-1 f b",
        "XGROUP CREATE orphaned g 0",
        "XREADGROUP GROUP g alice STREAMS orphaned >",
        "XNACK orphaned g FAIL IDS 1 1-1",
        "XDEL orphaned 1-1",
        "XADD ids IDMP producer 1 * f v",
    ] {
        let reply = connection.run(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
}

#[test]
fn released_entries_are_pending_where_they_cannot_be_released() {
    for product in [Product::Redis, Product::Valkey] {
        let Some(taker) = Source::start(product, &[]) else { continue };
        let dir = Dir::fresh();
        let mut server = Server::start(dir.path(), &[]);
        release(&mut server.connect());
        server.signal("TERM");
        server.wait_for_end();
        let done = export(dir.path(), &taker.url());
        assert_eq!(done.status.code(), Some(3), "{}", said(&done));
        assert!(said(&done).contains("refused: release of pending entries"), "{}", said(&done));
        assert!(!said(&done).contains("refused: stream"), "{}", said(&done));
        let mut client = taker.connect();
        assert_eq!(client.run("XLEN s").to_string(), ":4");
        // Everything else is there: who has what, how often it was delivered, and what was not delivered.
        let pending = |client: &mut Connection, key: &str, group: &str| -> Vec<String> {
            let pending = client.run(&format!("XPENDING {key} {group} - + 10"));
            pending
                .items()
                .iter()
                .map(|one| format!("{} {} {}", one.items()[0], one.items()[1], one.items()[3]))
                .collect()
        };
        assert_eq!(
            pending(&mut client, "s", "g"),
            ["\"1-1\" \"alice\" :1", "\"2-1\" \"alice\" :1", "\"3-1\" \"bob\" :1"]
        );
        assert_eq!(pending(&mut client, "s", "lonely"), ["\"4-1\" \"released\" :6"]);
        assert_eq!(pending(&mut client, "orphaned", "g").len(), 2);
        // Anyone can claim what was released, at once.
        let claimed = client.run("XAUTOCLAIM s g carol 86400000 0 JUSTID");
        assert_eq!(claimed.items()[1].to_string(), "[\"1-1\", \"2-1\"]");
        assert_eq!(client.run("XREADGROUP GROUP g dave COUNT 9 STREAMS s >").items().len(), 1);
    }
}

#[test]
fn another_holdfast_takes_released_entries_and_ids_of_producers() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let mut server = Server::start(dir.path(), &[]);
    release(&mut server.connect());
    server.signal("TERM");
    server.wait_for_end();
    let other = Holdfast::start(&[]).expect("there is a Holdfast");
    let done = export(dir.path(), &format!("redis://{}", other.address()));
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    // By a file too, but for a consumer that a group without one gets for a moment.
    let file = Command::new(binary()).arg("export").arg(dir.path()).output().expect("cannot start the tool");
    assert!(said(&file).contains("XNACK"), "{}", said(&file));
    let by_file = Holdfast::start(&[]).expect("there is a Holdfast");
    let mut piped = by_file.connect();
    piped.queue_raw(&file.stdout);
    piped.queue_line("ECHO end");
    loop {
        let reply = piped.read();
        assert!(!reply.is_error(), "{reply}");
        if reply.to_string() == "\"end\"" {
            break;
        }
    }
    let server = Server::start(dir.path(), &[]);
    let mut client = other.connect();
    let here = released(&mut server.connect());
    let again = "XADD ids IDMP producer 1 * f v";
    assert_eq!(client.run(again), server.connect().run(again), "the id of a producer is known");
    assert!(here.iter().any(|line| line.contains("1-1")), "{here:?}");
    assert_eq!(released(&mut client), here);
    assert_eq!(released(&mut piped), here);
}

/// What is pending, and in which order it is claimed: what was released first.
fn released(client: &mut Connection) -> Vec<String> {
    let lines = [
        "XPENDING s g - + 10 alice",
        "XPENDING s lonely - + 10",
        "XPENDING orphaned g",
        "XREADGROUP GROUP g carol COUNT 2 CLAIM 3600000 STREAMS s >",
    ];
    lines.map(|line| client.run(line).to_string()).to_vec()
}
