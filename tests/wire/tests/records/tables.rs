//! The tables `[[index]]` and `[[sweeper]]` of a configuration file.

use wire::{Connection, Reply, Server};

use crate::process::{Holdfast, fail_to_start};
use crate::support::{Dir, can_start_holdfast, eventually};

/// A server with a configuration of its own.
fn start_with(dir: &Dir, config: &str) -> Option<Holdfast> {
    let file = dir.write("h.toml", config);
    Holdfast::start(&["--config", &file])
}

/// Starts a server on data that stays in the directory. Every change is on the disk before it is acknowledged.
fn start_on(dir: &Dir, config: &str) -> (Server, Connection) {
    let file = dir.write("h.toml", config);
    let args = ["--config", &file, "--appendfsync", "always"];
    let server = Server::start_with(&dir.path().join("data"), |command| dir.keep_output(command.args(args)));
    let connection = server.connect();
    (server, connection)
}

#[test]
fn without_a_word_there_is_one_index() {
    let Some(server) = Holdfast::start(&[]) else { return };
    let mut connection = server.connect();
    assert_eq!(connection.run("IDX.LIST").to_string(), "[\"idx:updated_at\"]");
    connection.run("HSET anything updated_at 5");
    connection.run("SELECT 9");
    connection.run("HSET job updated_at 7.5");
    assert_eq!(connection.run("ZRANGE idx:updated_at 0 -1 WITHSCORES").to_string(), "[\"job\", \"7.5\"]");
    drop(server);
    let dir = Dir::fresh();
    let server = start_with(&dir, "timeout = 0\n").expect("there is one");
    assert_eq!(server.connect().run("IDX.LIST").to_string(), "[\"idx:updated_at\"]");
    drop(server);
    let server = start_with(&dir, "index = []\n").expect("there is one");
    assert_eq!(server.connect().run("IDX.LIST").to_string(), "[]");
}

#[test]
fn a_file_has_the_indexes_that_it_names() {
    let dir = Dir::fresh();
    let config = "
        [[index]]
        name = 'jobs'
        prefixes = ['job:', 'run:']
        field = 'at'
        exclude = { field = 'state', values = ['done', ''] }
        stamp = true
        [[index]]
        name = 'open'
        field = 'n'
        only = { field = 'state', values = ['open'] }
    ";
    let Some(server) = start_with(&dir, config) else { return };
    let mut connection = server.connect();
    assert_eq!(connection.run("IDX.LIST").to_string(), "[\"jobs\", \"open\"]");
    connection.run("HSET job:1 state new n 1");
    connection.run("HSET other state open n 2");
    assert_eq!(
        connection.run("IDX.INFO jobs").items()[..12].iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        "\"prefixes\" [\"job:\", \"run:\"] \"field\" \"at\" \"only\" (nil) \"exclude\" [\"state\", \"done\", \"\"] \
         \"stamp\" :1 \"entries\" :1"
    );
    assert_eq!(connection.run("ZRANGE open 0 -1").to_string(), "[\"other\"]");
    assert_eq!(connection.run("ZRANGE jobs 0 -1").to_string(), "[\"job:1\"]");
}

/// An index of the file is made of the data that is there; one that was made by command under its name is no obstacle.
#[test]
fn indexes_of_the_file_meet_data_that_is_there() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let (server, mut connection) = start_on(&dir, "index = []\n");
    connection.run("HSET job:1 at 5 n 1");
    connection.run("IDX.CREATE own PREFIX 1 job: FIELD n");
    server.kill();
    let (server, mut connection) = start_on(&dir, "[[index]]\nname = 'jobs'\nfield = 'at'\n");
    assert_eq!(connection.run("IDX.LIST").to_string(), "[\"jobs\", \"own\"]");
    assert_eq!(connection.run("ZRANGE jobs 0 -1 WITHSCORES").to_string(), "[\"job:1\", \"5\"]");
    assert_eq!(connection.run("ZRANGE own 0 -1 WITHSCORES").to_string(), "[\"job:1\", \"1\"]");
    // A name that is free again may be a key's.
    connection.run("IDX.DROP own");
    connection.run("SET own text");
    server.kill();
    // A key has the name of an index that the operator asks for: one of them has to go.
    let (file, data) = (dir.write("h.toml", "[[index]]\nname = 'own'\nfield = 'at'\n"), dir.path().join("data"));
    let failure = fail_to_start(&["--config", &file, "--dir", data.to_str().expect("UTF-8")], &[]);
    let said = &failure.stderr;
    assert!(said.contains("the index 'own' cannot be created: there is a key of that name"), "{said}");
}

/// What a client has decided about an index of the configuration holds through restarts and snapshots.
#[test]
fn what_a_client_has_decided_holds() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let start = || start_on(&dir, "");
    let (server, mut connection) = start();
    connection.run("HSET job:1 updated_at 5 deadline 7");
    assert_eq!(connection.run("IDX.DROP idx:updated_at").integer(), 1);
    server.kill();
    let (server, mut connection) = start();
    assert_eq!(connection.run("IDX.LIST").to_string(), "[]");
    // There may be as many others as ever.
    for number in 0..64 {
        let created = connection.run(&format!("IDX.CREATE i{number} PREFIX 1 x{number}: FIELD n"));
        assert_eq!(created.to_string(), "+OK");
    }
    connection.run("SAVE");
    server.kill();
    let (server, mut connection) = start();
    assert_eq!(connection.run("IDX.LIST").items().len(), 64);
    connection.run("IDX.DROP i7");
    connection.run("IDX.CREATE idx:updated_at PREFIX 1 job: FIELD deadline");
    server.kill();
    let (server, mut connection) = start();
    let range = connection.run("ZRANGE idx:updated_at 0 -1 WITHSCORES");
    assert_eq!(range.to_string(), "[\"job:1\", \"7\"]");
    let said = dir.read("stderr") + &dir.read("stdout");
    let expected =
        "index=idx:updated_at kept=PREFIX 1 'job:' FIELD 'deadline' configured=PREFIX 1 '' FIELD 'updated_at'";
    assert!(said.contains(expected), "{said}");
    // Dropped once more, it stays dropped.
    assert_eq!(connection.run("IDX.DROP idx:updated_at").integer(), 1);
    server.kill();
    assert_eq!(start().1.run("IDX.LIST").items().len(), 63);
}

const SWEEPER: &str = "
    [[index]]
    name = 'jobs'
    prefixes = ['job:']
    field = 'at'
    [[sweeper]]
    index = 'jobs'
    every-ms = 20
    older-than-ms = 1000
    where = { field = 'state', values = ['running', 'claimed'] }
    retry = { field = 'tries', max = 2, else = { state = 'failed', at = 'NOW' } }
    set = { state = 'pending', at = 'NOW' }
    limit = 2
    publish = 'swept'
";

#[test]
fn a_sweeper_sweeps_by_itself() {
    let dir = Dir::fresh();
    let Some(server) = start_with(&dir, SWEEPER) else { return };
    let (mut connection, mut listener) = (server.connect(), server.connect());
    listener.run("SUBSCRIBE swept");
    for number in 0..5 {
        connection.run(&format!("HSET job:{number} at {number} state running"));
    }
    connection.run("HSET job:worn at 1 state claimed tries 2");
    connection.run("HSET job:done at 1 state done");
    connection.run("HSET job:young at 33177117420123 state running");
    connection.run("HSET other at 1 state running");
    connection.run("SELECT 1");
    connection.run("HSET job:elsewhere at 1 state running");
    connection.run("SELECT 0");
    let state =
        |connection: &mut Connection, job: &str| connection.run(&format!("HMGET job:{job} state tries")).to_string();
    for job in ["0", "1", "2", "3", "4"] {
        eventually("it is requeued", || state(&mut connection, job) == "[\"pending\", \"1\"]");
    }
    eventually("it has failed", || state(&mut connection, "worn") == "[\"failed\", \"2\"]");
    let mut heard: Vec<String> = (0..6).map(|_| listener.read().items()[2].text().to_owned()).collect();
    heard.sort();
    assert_eq!(heard, ["job:0", "job:1", "job:2", "job:3", "job:4", "job:worn"]);
    assert_eq!(state(&mut connection, "done"), "[\"done\", (nil)]");
    assert_eq!(state(&mut connection, "young"), "[\"running\", (nil)]");
    assert_eq!(connection.run("HMGET other state at").to_string(), "[\"running\", \"1\"]");
    // Again and again, as often as there is something.
    connection.run("HSET job:0 at 1 state running");
    eventually("it is requeued again", || state(&mut connection, "0") == "[\"pending\", \"2\"]");
    connection.run("HSET job:0 at 1 state running");
    eventually("it has failed", || state(&mut connection, "0") == "[\"failed\", \"2\"]");
    connection.run("SELECT 1");
    assert_eq!(state(&mut connection, "elsewhere"), "[\"running\", (nil)]");
}

#[test]
fn a_sweeper_may_have_another_database_and_company() {
    let dir = Dir::fresh();
    let config = "
        [[index]]
        name = 'jobs'
        field = 'at'
        stamp = true
        [[index]]
        name = 'dropped'
        field = 'other'
        [[sweeper]]
        index = 'dropped'
        every-ms = 10
        older-than-ms = 0
        set = { a = 'b' }
        [[sweeper]]
        index = 'jobs'
        every-ms = 10
        older-than-ms = 1000
        db = 3
        set = { state = 'pending' }
    ";
    let Some(server) = start_with(&dir, config) else { return };
    let mut connection = server.connect();
    assert_eq!(connection.run("IDX.DROP dropped").integer(), 1);
    connection.run("HSET here at 1 state running");
    connection.run("SELECT 3");
    connection.run("HSET there at 1 state running");
    eventually("it is swept", || connection.run("HGET there state").text() == "pending");
    connection.run("SELECT 0");
    assert_eq!(connection.run("HMGET here at state").to_string(), "[\"1\", \"running\"]");
    // One that has nothing to sweep says so, and does not keep the other from it.
    eventually("it is told", || server.stderr().contains("dropped") || server.stdout().contains("dropped"));
}

#[test]
fn tables_that_are_wrong_are_told_by_their_fields() {
    if !can_start_holdfast() {
        return;
    }
    let index = "[[index]]\nname = 'jobs'\nfield = 'at'\n";
    let sweeper = "[[sweeper]]\nindex = 'jobs'\nevery-ms = 10\nolder-than-ms = 0\n";
    let set = "set = { a = 'b' }\n";
    for (text, named) in [
        ("[[index]]\nfield = 'at'\n".to_owned(), "name"),
        ("[[index]]\nname = 'jobs'\n".to_owned(), "field"),
        (format!("{index}prefix = 'x'\n"), "prefix"),
        (format!("{index}prefixes = []\n"), "prefixes"),
        (format!("{index}prefixes = 'x'\n"), "prefixes"),
        (format!("{index}prefixes = [1]\n"), "prefixes"),
        (format!("{index}stamp = 'yes'\n"), "stamp"),
        (format!("{index}only = {{ field = 'a' }}\n"), "values"),
        (format!("{index}only = {{ field = 'a', values = [], more = 1 }}\n"), "more"),
        (
            format!("{index}only = {{ field = 'a', values = [] }}\nexclude = {{ field = 'a', values = [] }}\n"),
            "exclude",
        ),
        ("index = 5\n".to_owned(), "index"),
        ("[[sweeper]]\nindex = 'jobs'\n".to_owned(), "every-ms"),
        (format!("[[sweeper]]\nindex = 'jobs'\nevery-ms = 5\n{set}"), "older-than-ms"),
        (sweeper.to_owned(), "set"),
        (format!("{sweeper}set = {{}}\n"), "set"),
        (format!("{sweeper}set = {{ a = 5 }}\n"), "set"),
        (format!("[[sweeper]]\nindex = 'jobs'\nevery-ms = 0\nolder-than-ms = 0\n{set}"), "every-ms"),
        (format!("[[sweeper]]\nindex = 'jobs'\nevery-ms = -1\nolder-than-ms = 0\n{set}"), "every-ms"),
        (format!("{sweeper}{set}every = 5\n"), "every"),
        (format!("{sweeper}{set}limit = 'x'\n"), "limit"),
        (format!("{sweeper}{set}where = {{ field = 'a' }}\n"), "values"),
        (format!("{sweeper}{set}retry = {{ field = 'a', max = 3 }}\n"), "else"),
        (format!("{sweeper}{set}retry = {{ field = 'a', max = 3, else = {{}} }}\n"), "else"),
        (format!("{sweeper}{set}retry = {{ field = 'a', max = -3, else = {{ a = 'b' }} }}\n"), "max"),
    ] {
        refuse(&text, named);
    }
}

/// Numbers that are numbers, but none that a sweep can have.
#[test]
fn a_sweep_that_cannot_be_is_refused_at_the_start() {
    if !can_start_holdfast() {
        return;
    }
    let sweeper = "[[sweeper]]\nindex = 'jobs'\nolder-than-ms = 0\nset = { a = 'b' }\n";
    refuse(&format!("{sweeper}every-ms = 10\nlimit = 0\n"), "limit");
    refuse(&format!("{sweeper}every-ms = 10\ndb = 99\n"), "db");
    refuse(&format!("{sweeper}every-ms = 9223372036854775807\n"), "every-ms");
}

#[track_caller]
fn refuse(text: &str, named: &str) {
    let dir = Dir::fresh();
    let file = dir.write("h.toml", text);
    let failure = fail_to_start(&["--config", &file], &[]);
    assert!(failure.code.is_some_and(|code| code != 0), "{text}");
    assert!(failure.stderr.contains(&file), "{text}: {}", failure.stderr);
    let said = failure.stderr.replace(&file, "the file");
    assert!(said.contains(named), "{text}: {said}");
}

#[test]
fn a_sweeper_needs_an_index_in_the_file_or_in_the_data() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let config = "[[sweeper]]\nindex = 'jobs'\nevery-ms = 10\nolder-than-ms = 0\nset = { state = 'swept' }\n";
    let file = dir.write("h.toml", config);
    let failure = fail_to_start(&["--config", &file], &[]).stderr;
    assert!(failure.contains("[[sweeper]]") && failure.contains("jobs"), "{failure}");
    assert!(failure.contains("neither in the configuration nor in the data"), "{failure}");

    let data = Dir::fresh();
    let server = Server::start(data.path(), &[]);
    let mut connection = server.connect();
    assert_eq!(connection.run("IDX.CREATE jobs PREFIX 1 job: FIELD at").to_string(), "+OK");
    connection.run("HSET job:1 at 5 state new");
    assert_eq!(connection.run("SHUTDOWN"), Reply::Closed);
    drop(server);
    let server = Server::start(data.path(), &["--config", &file]);
    let mut connection = server.connect();
    eventually("the index of the data is swept", || connection.run("HGET job:1 state").text() == "swept");
}

/// What a client may do must not keep the server from starting.
#[test]
fn a_sweeper_whose_index_was_dropped_rests() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let text = "[[index]]\nname = 'mine'\nfield = 'at'\n[[sweeper]]\nindex = 'mine'\nevery-ms = 1\nolder-than-ms = 0\n\
                set = { state = 'pending', at = 'NOW+1000000' }\n";
    let start = || start_on(&dir, text);
    let (server, mut connection) = start();
    assert_eq!(connection.run("IDX.DROP mine").integer(), 1);
    server.kill();
    let (_server, mut connection) = start();
    assert!(
        dir.read("stderr")
            .contains("the sweeper has nothing to sweep: a client has dropped its index with IDX.DROP index=mine"),
        "{}",
        dir.read("stderr")
    );
    // It is told once that it cannot, and goes on when there is an index again.
    eventually("it has tried", || dir.read("stderr").contains("the sweeper could not sweep index=mine error="));
    connection.run("HSET job at 1");
    assert_eq!(connection.run("IDX.CREATE mine PREFIX 1 job FIELD at").to_string(), "+OK");
    eventually("it sweeps again", || connection.run("HGET job state").to_string() == "\"pending\"");
    let told = dir.read("stderr").matches("could not sweep").count();
    assert!(told <= 3, "{told} lines: {}", dir.read("stderr"));
}
