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
