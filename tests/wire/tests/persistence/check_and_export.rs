//! `holdfast check` and `holdfast export`: a data directory looked at, and taken elsewhere.

use std::fs::{self, File};
use std::process::{Command, Output, Stdio};

use wire::{Connection, binary};

use crate::support::{End, Home, assert_same, contents, furnish, ok};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    text(&output.stdout)
}

/// Sends an export to a server, which has to take all of it.
#[track_caller]
fn take(connection: &mut Connection, exported: &Output) {
    succeeded(exported);
    connection.queue_raw(&exported.stdout);
    connection.queue_line("ECHO done");
    while let reply = connection.read()
        && reply.to_string() != "\"done\""
    {
        assert!(!reply.is_error(), "{reply}");
    }
}

#[test]
fn check_says_what_there_is() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    for line in ["SET a 1", "SET b 2", "HSET h f v", "SELECT 7", "SET c 3"] {
        assert!(!connection.run(line).is_error());
    }
    End::Kill.of(server);
    let before = home.files();
    let said = succeeded(&home.tool("check"));
    for line in ["no snapshot\n", "database 0: 1 hash, 2 string\n", "database 7: 1 string\n", "all of it is sound\n"] {
        assert!(said.contains(line), "{line:?} is not in {said:?}");
    }
    assert!(home.files() == before, "check has changed the directory");
    let server = home.start(&[]);
    ok(&mut server.connect(), "SAVE");
    End::Term.of(server);
    let said = succeeded(&home.tool("check"));
    assert!(said.contains("snapshot snapshot-") && said.contains(": 4 keys in "), "{said}");
    assert!(said.contains("all of it is sound\n"), "{said}");
}

#[test]
fn check_tells_of_a_torn_tail() {
    let Some((home, server)) = Home::serve(&[]) else { return };
    ok(&mut server.connect(), "SET a 1");
    server.kill();
    let file = home.files_named(".seg")[0].clone();
    home.change(&file, |bytes| bytes.extend_from_slice(b"garbage"));
    let before = home.files();
    let said = succeeded(&home.tool("check"));
    assert!(said.contains(&format!("note: {file} ends in 7 bytes")), "{said}");
    assert!(home.files() == before, "check has changed the directory");
}

#[test]
fn check_of_nothing() {
    let Some(home) = Home::fresh() else { return };
    for tool in ["check", "export"] {
        let output = home.tool(tool);
        assert!(!output.status.success(), "the directory does not exist");
        let said = text(&output.stderr);
        assert!(said.contains(home.data().to_str().expect("a plain name")), "{said}");
        assert!(!home.data().exists(), "{tool} has made a directory");
    }
    fs::create_dir(home.data()).expect("cannot create a directory");
    let said = succeeded(&home.tool("check"));
    assert!(said.contains("no snapshot"), "{said}");
    assert_eq!(succeeded(&home.tool("export")), "");
}

/// A directory that cannot be written, while this lives.
struct ReadOnly<'a>(&'a Home);

impl ReadOnly<'_> {
    /// `None`, and the test is skipped, where that is not permitted.
    fn mount(home: &Home) -> Option<ReadOnly<'_>> {
        let mount = |args: &[&str]| {
            let mounted = Command::new("mount").args(args).arg(home.data()).output();
            mounted.is_ok_and(|output| output.status.success())
        };
        let data = home.data();
        if !mount(&["--bind", data.to_str().expect("a plain name")]) {
            wire::skip("mount is not permitted");
            return None;
        }
        let read_only = ReadOnly(home);
        assert!(mount(&["-o", "remount,bind,ro"]), "cannot make the mount read-only");
        assert!(fs::write(data.join("probe"), b"").is_err(), "the mount can be written");
        Some(read_only)
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.data()).status();
    }
}

/// A directory that may only be read is looked at all the same, and nothing is written to it.
#[test]
fn check_and_export_of_a_directory_that_cannot_be_written() {
    for end in [End::Kill, End::Term] {
        let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
        ok(&mut connection, "SET a 1");
        ok(&mut connection, "SAVE");
        ok(&mut connection, "SET b 2");
        end.of(server);
        let with_lock_file = home.data().join("LOCK");
        for with_file in [true, false] {
            if !with_file {
                fs::remove_file(&with_lock_file).expect("cannot remove the lock file");
            }
            let before = home.files();
            let Some(mounted) = ReadOnly::mount(&home) else { return };
            let said = succeeded(&home.tool("check"));
            assert!(said.contains("database 0: 2 string\n") && said.contains("all of it is sound\n"), "{said}");
            let exported = succeeded(&home.tool("export"));
            assert!(exported.contains("$1\r\nb\r\n$1\r\n2\r\n"), "{exported}");
            drop(mounted);
            assert!(home.files() == before, "something was written");
            assert_eq!(with_lock_file.exists(), with_file, "something was written");
        }
    }
}

/// A server that holds the directory is seen, through another mount of it, too.
#[test]
fn check_of_a_directory_in_use() {
    let Some((home, server)) = Home::serve(&[]) else { return };
    let is_refused = || {
        for tool in ["check", "export"] {
            let output = home.tool(tool);
            let said = text(&output.stderr);
            assert!(!output.status.success() && text(&output.stdout).is_empty());
            assert!(said.contains(&format!("is in use by process {}", server.process_id())), "{said}");
        }
    };
    is_refused();
    ok(&mut server.connect(), "SET still here");
    let Some(_mounted) = ReadOnly::mount(&home) else { return };
    is_refused();
}

#[test]
fn an_export_makes_an_equal_server() {
    let Some((home, server)) = Home::serve(&[]) else { return };
    furnish(&mut server.connect(), true);
    let expected = contents(&mut server.connect(), true);
    End::Kill.of(server);
    let before = home.files();
    let exported = home.tool("export");
    assert!(home.files() == before, "export has changed the directory");
    let Some(other) = Home::fresh() else { return };
    let server = other.start(&[]);
    let mut connection = server.connect();
    take(&mut connection, &exported);
    assert_same(&contents(&mut connection, true), &expected, "after an export");
}

/// What an index with groups knows: its definition, limits, and how its groups fare.
fn groups(connection: &mut Connection) -> [String; 4] {
    let shown = |items: &[wire::Reply]| items.iter().map(|item| item.to_string()).collect::<Vec<_>>();
    let limits = ["jobs", "plain"].map(|name| connection.run(&format!("IDX.LIMIT {name}")).to_string());
    let [of_jobs, of_plain] = limits;
    // But for its bytes, which come last.
    let info = shown(&connection.run("IDX.INFO jobs").items()[..18]).join(" ");
    // In no order.
    let mut groups = shown(connection.run("IDX.GROUPS jobs").items()[1].items());
    groups.sort();
    [info, of_jobs, of_plain, groups.join(" ")]
}

#[test]
fn groups_and_their_limits_are_exported() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    for line in [
        "IDX.CREATE jobs PREFIX 2 job: \"o\\xffd:\" FIELD due ONLY state 2 ready running GROUP tenant HELD state 2 running \"\"",
        "IDX.CREATE plain PREFIX 1 job: FIELD due",
        "IDX.LIMIT jobs ALL HELD 100 RATE 7 1000 BURST 9",
        "IDX.LIMIT jobs EACH HELD 5 RATE 1 250 WEIGHT 0.333 PAUSE yes",
        "IDX.LIMIT jobs GROUP acme HELD NONE RATE NONE WEIGHT 1000 PAUSE no",
        "IDX.LIMIT jobs GROUP \"\" HELD 0",
        "IDX.LIMIT jobs GROUP \"\\xff\\r\\n\\x00\" WEIGHT 0.01",
        "IDX.LIMIT plain ALL PAUSE yes",
    ] {
        ok(&mut connection, line);
    }
    for line in [
        "HSET job:1 due 1 state ready tenant acme",
        "HSET job:2 due 2 state running tenant acme",
        "HSET job:3 due 3 state ready",
        "HSET job:4 due 4 state \"\" tenant bolt",
    ] {
        assert!(!connection.run(line).is_error(), "{line}");
    }
    let expected = groups(&mut connection);
    assert!(expected[1].contains("acme") && expected[1].matches("scope").count() == 5, "{expected:?}");
    drop(connection);
    End::Term.of(server);
    let exported = home.tool("export");
    let Some(other) = Home::fresh() else { return };
    let server = other.start(&[]);
    let mut connection = server.connect();
    take(&mut connection, &exported);
    assert_eq!(groups(&mut connection), expected);
}

#[test]
fn an_export_may_go_to_a_file() {
    let Some((home, server)) = Home::serve(&[]) else { return };
    ok(&mut server.connect(), "SET a 1");
    End::Term.of(server);
    let file = home.data().with_file_name("exported");
    let output = Command::new(binary()).arg("export").arg(home.data()).arg("--output").arg(&file).output();
    assert_eq!(succeeded(&output.expect("cannot start the server's binary")), "");
    let expected = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
    assert_eq!(text(&fs::read(file).expect("it is there")), expected);
}

#[test]
fn redis_takes_an_export() {
    let Some(home) = Home::fresh() else { return };
    let Some(judge) = wire::Redis::start() else { return wire::skip("there is no redis-server") };
    let mut redis = judge.connect();
    let port = redis.run("CONFIG GET port").items()[1].text().to_owned();
    // The field deadlines of Redis 7.4 are no command in the Redis of many distributions.
    let field_deadlines = !redis.run("HPEXPIRETIME nosuch FIELDS 1 f").is_error();
    let server = home.start(&[]);
    furnish(&mut server.connect(), field_deadlines);
    let expected = contents(&mut server.connect(), field_deadlines);
    End::Kill.of(server);
    let path = home.data().with_file_name("exported");
    let export = Command::new(binary()).arg("export").arg(home.data()).arg("-o").arg(&path).output();
    succeeded(&export.expect("cannot start the server's binary"));
    let mut pipe = Command::new("redis-cli");
    pipe.args(["-p", &port, "--pipe"]).stdin(File::open(&path).expect("it is there"));
    match pipe.output() {
        Ok(output) => assert!(succeeded(&output).contains("errors: 0,"), "{}", text(&output.stdout)),
        Err(_) => return wire::skip("there is no redis-cli"),
    }
    assert_same(&contents(&mut redis, field_deadlines), &expected, "in Redis");
}

/// No command makes them but RESTORE: XCLAIM drops what is pending of an entry that is gone.
#[test]
fn pending_entries_of_deleted_entries_are_exported() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    for line in [
        "XADD s 1-0 a 1",
        "XADD s 2-0 a 2",
        "XADD s 3-0 a 3",
        "XADD s 4-0 a 4",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g alice COUNT 2 STREAMS s >",
        "XREADGROUP GROUP g bob COUNT 1 STREAMS s >",
        "XCLAIM s g bob 0 2-0 RETRYCOUNT 7",
        "XDEL s 2-0 3-0",
        "PEXPIREAT s 33177117420123",
        // All of its entries are gone.
        "XADD t 5-0 a 1",
        "XGROUP CREATE t g 0",
        "XREADGROUP GROUP g alice STREAMS t >",
        "XDEL t 5-0",
    ] {
        let reply = connection.run(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
    let seen = |connection: &mut Connection| {
        let mut seen = Vec::new();
        for line in ["XPENDING s g - + 10", "XPENDING t g - + 10"] {
            for pending in connection.run(line).items() {
                // Without the time that has passed since.
                let [id, consumer, _, deliveries] = pending.items() else { panic!("{pending}") };
                seen.push(format!("{id} {consumer} {deliveries}"));
            }
        }
        for line in
            ["XRANGE s - +", "XRANGE t - +", "XINFO GROUPS s", "XINFO GROUPS t", "PEXPIRETIME s", "PEXPIRETIME t"]
        {
            seen.push(connection.run(line).to_string());
        }
        seen
    };
    let expected = seen(&mut connection);
    assert_eq!(
        expected[..4],
        ["\"1-0\" \"alice\" :1", "\"2-0\" \"bob\" :7", "\"3-0\" \"bob\" :1", "\"5-0\" \"alice\" :1"]
    );
    End::Kill.of(server);
    let exported = home.tool("export");
    let verify = |connection: &mut Connection, what: &str| {
        take(connection, &exported);
        assert_eq!(seen(connection), expected, "{what}");
    };
    let Some(other) = Home::fresh() else { return };
    verify(&mut other.start(&[]).connect(), "another Holdfast");
    match wire::Redis::start() {
        Some(redis) => verify(&mut redis.connect(), "Redis"),
        None => wire::skip("there is no redis-server"),
    }
}

/// Kept replies, pending requests and numbers: a client that retries its last request at the new server gets the reply of
/// the old one, whether the export was sent to it or imported.
#[test]
fn sessions_are_exported_whole() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    for line in [
        "SESSION.OPEN ID s TTL 600000 CAP 1 kind worker",
        "SESSION.CALL s 1 LOW 1 INCR n",
        "SESSION.CALL s 2 LOW 2 INCR n",
        "SESSION.PUSH s one",
        "SESSION.PUSH s two",
        "SESSION.ACK s 1",
        "SELECT 3",
        "SESSION.OPEN ID other",
        "SESSION.CALL other 9 LOW 9 SET k v",
        "SELECT 0",
    ] {
        let reply = connection.run(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
    End::Kill.of(server);
    let exported = home.tool("export");
    let file = home.data().with_file_name("exported.aof");
    fs::write(&file, &exported.stdout).expect("the export can be written");
    let verify = |connection: &mut Connection, how: &str| {
        for (line, expected) in [
            ("SELECT 0", "+OK"),
            ("SESSION.CALL s 2 LOW 2 INCR n", ":2"),
            ("SESSION.CALL s 2 LOW 2 INCR m", "-MISMATCH"),
            ("SESSION.CALL s 1 LOW 1 INCR n", "-EVICTED"),
            ("GET n", "\"2\""),
            ("SESSION.PENDING s", "[[:2, \"two\", "),
            ("SESSION.CALL s 3 LOW 3 INCR n", ":3"),
            ("SESSION.PUSH s three", ":3"),
            ("SELECT 3", "+OK"),
            ("SESSION.CALL other 9 LOW 9 SET k v", "+OK"),
            ("GET k", "\"v\""),
            ("SELECT 0", "+OK"),
        ] {
            let reply = connection.run(line).to_string();
            assert!(reply.starts_with(expected), "{how}: {line}: {reply}");
        }
        let ttl = connection.run("PTTL s").integer();
        assert!((500_000..=600_000).contains(&ttl), "{how}: {ttl}");
    };
    let Some(fed) = Home::fresh() else { return };
    let server = fed.start(&[]);
    let mut connection = server.connect();
    take(&mut connection, &exported);
    verify(&mut connection, "sent");
    let Some(imported) = Home::fresh() else { return };
    let output = Command::new(binary()).arg("import").arg(&file).arg("--dir").arg(imported.data()).output();
    succeeded(&output.expect("cannot start the server's binary"));
    let server = imported.start(&[]);
    verify(&mut server.connect(), "imported");
    End::Kill.of(server);
    let server = imported.start(&[]);
    assert_eq!(server.connect().run("SESSION.CALL s 3 LOW 3 INCR n").to_string(), ":3");
}

/// `holdfast check --repair`, with stdin that is no terminal.
fn repair(home: &Home, more: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(["check", "--repair"]).args(more).arg(home.data()).stdin(Stdio::null());
    command.output().expect("cannot start the server's binary")
}

#[test]
fn a_damaged_end_is_cut_off_after_it_was_shown() {
    let Some((home, server, mut connection)) = Home::serve_client(&["--appendfsync", "always"]) else { return };
    for number in 1..=20 {
        ok(&mut connection, &format!("SET k{number} v{number}"));
    }
    let refused = repair(&home, &["--yes"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("in use"), "{}", text(&refused.stderr));
    server.kill();
    assert!(succeeded(&repair(&home, &["--yes"])).contains("the journal is whole"));
    // In the last batch: nothing can be read behind it.
    let file = home.files_named(".seg")[0].clone();
    let whole = home.files();
    let last = whole[&file].iter().rposition(|byte| *byte != 0).expect("there is data");
    home.change(&file, |bytes| bytes[last] ^= 1);
    let damaged = home.files();
    let check = home.tool("check");
    assert_eq!(check.status.code(), Some(1));
    let said = text(&check.stderr);
    assert!(said.contains("holdfast check --repair") && said.contains(&file) && said.contains("batch 20"), "{said}");
    let unconfirmed = repair(&home, &[]);
    assert!(!unconfirmed.status.success() && text(&unconfirmed.stderr).contains("--yes"), "{unconfirmed:?}");
    assert!(text(&unconfirmed.stdout).contains("batches up to 19 stay"), "{unconfirmed:?}");
    assert!(home.files() == damaged, "nothing is changed without a confirmation");
    let said = succeeded(&repair(&home, &["--yes"]));
    assert!(said.contains("with 0 batches that can still be read") && said.contains("all of it is sound"), "{said}");
    let copies = home.files_named(".cut-1");
    assert_eq!(copies.len(), 2, "the end of the segment, and MARKS: {copies:?}");
    let server = home.start(&[]);
    let mut connection = server.connect();
    assert_eq!(connection.run("EXISTS k20").integer(), 0);
    assert_eq!(connection.run("DBSIZE").integer(), 19);
    ok(&mut connection, "SET k20 again");
    server.kill();
    assert_eq!(home.files_named(".cut-1"), copies, "a start leaves the copies alone");
    assert!(succeeded(&home.tool("check")).contains("20 string"));
}

#[test]
fn batches_behind_the_damage_are_lost_only_if_that_is_said() {
    let Some((home, server, mut connection)) = Home::serve_client(&["--appendfsync", "always"]) else { return };
    for number in 1..=20 {
        ok(&mut connection, &format!("SET k{number} v{number}"));
    }
    server.kill();
    let file = home.files_named(".seg")[0].clone();
    home.change(&file, |bytes| bytes[300] ^= 1);
    let before = home.files();
    let refused = repair(&home, &["--yes"]);
    let said = text(&refused.stderr);
    let named =
        said.split("--lose-after ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("it is named");
    let stays: usize = named.parse().expect("a number");
    assert!(!refused.status.success() && stays < 10 && said.contains(&format!("{} batches", 20 - stays - 1)), "{said}");
    assert!(!repair(&home, &["--yes", "--lose-after", "20"]).status.success(), "another number is no consent");
    assert!(home.files() == before, "what is refused changes nothing");
    succeeded(&repair(&home, &["--yes", "--lose-after", named]));
    let server = home.start(&[]);
    assert_eq!(server.connect().run("DBSIZE").integer(), stays as i64);
}

#[test]
fn a_missing_segment_is_no_case_for_a_repair() {
    let Some((home, server)) = Home::serve(&["--appendfsync", "always"]) else { return };
    ok(&mut server.connect(), "SET a 1");
    server.kill();
    let file = home.files_named(".seg")[0].clone();
    fs::remove_file(home.data().join(&file)).expect("cannot remove a segment");
    let before = home.files();
    for output in [home.tool("check"), repair(&home, &["--yes"])] {
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("no cut mends this") && said.contains(&file), "{said}");
    }
    assert!(home.files() == before, "what is refused changes nothing");
}

#[test]
fn a_damaged_fence_is_named_and_made_anew() {
    let Some((home, server)) = Home::serve(&["--appendfsync", "always"]) else { return };
    ok(&mut server.connect(), "SET a 1");
    server.kill();
    let last_epoch = [b"HFFENCE1".as_slice(), &[255, 255, 255, 255, 0, 0, 0, 0], &[0; 4080]].concat();
    for damaged in [b"no fence, but garbage".to_vec(), last_epoch] {
        fs::write(home.data().join("FENCE"), damaged).expect("cannot damage the fence");
        let check = home.tool("check");
        let said = text(&check.stderr);
        assert!(check.status.code() == Some(1) && said.contains("FENCE") && said.contains("--repair"), "{said}");
        let said = home.fail_to_start(&[]);
        assert!(said.contains("FENCE") && !said.contains("panicked"), "{said}");
        assert!(text(&repair(&home, &[]).stderr).contains("--yes"), "it asks first");
        let said = succeeded(&repair(&home, &["--yes"]));
        assert!(said.contains("the journal is whole") && said.contains("all of it is sound"), "{said}");
        let server = home.start(&[]);
        assert_eq!(server.connect().run("GET a").to_string(), "\"1\"");
        server.kill();
    }
}

#[test]
fn a_directory_with_a_follower_is_not_repaired() {
    let Some((home, server)) = Home::serve(&["--appendfsync", "always"]) else { return };
    ok(&mut server.connect(), "SET a 1");
    let data = home.data().to_str().expect("a plain name").to_owned();
    let follower = home.start(&["--follow", &data]);
    assert_eq!(follower.connect().run("GET a").to_string(), "\"1\"");
    server.kill();
    let file = home.files_named(".seg")[0].clone();
    home.change(&file, |bytes| {
        let last = bytes.iter().rposition(|byte| *byte != 0).expect("there is data");
        bytes[last] ^= 1;
    });
    let before = home.files();
    let refused = repair(&home, &["--yes"]);
    let said = text(&refused.stderr);
    assert!(!refused.status.success() && said.contains("followed by another server"), "{said}");
    assert!(home.files() == before, "what is refused changes nothing");
    follower.kill();
    succeeded(&repair(&home, &["--yes"]));
}
