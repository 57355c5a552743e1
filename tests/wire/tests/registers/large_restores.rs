//! Restores of more registers than one batch has: what others see of them, what is refused meanwhile, and that neither a kill nor an
//! emptied database leaves one half done.

use crate::start;
use std::thread;
use wire::{Connection, Random, Reply, Server, Session, fresh_dir};

const MANY: usize = 12_000;
/// Registers are long, so that they are many pieces.
const PADDING: usize = 1_000;

/// Puts `r0`, `r1`… with this version.
fn fill(connection: &mut Connection, version: u64, value: &str) {
    let value = format!("{value:.<PADDING$}");
    for block in 0..MANY / 1_000 {
        let lines: Vec<String> =
            (0..1_000).map(|number| format!("REG.PUT r{} {version} {value}", block * 1_000 + number)).collect();
        assert!(connection.pipeline(&lines).iter().all(|reply| reply.to_string() == "+APPLIED"));
    }
}

/// What a register holds: the version, and the value without its padding.
fn shown(reply: &Reply) -> String {
    match reply.is_nil() || reply.is_error() {
        true => reply.to_string(),
        false => format!("{} {}", reply.items()[1].text(), reply.items()[0].text().trim_end_matches('.')),
    }
}

fn held(connection: &mut Connection, name: usize) -> String {
    shown(&connection.run(&format!("REG.GET r{name}")))
}

/// What all registers hold.
fn all(connection: &mut Connection) -> Vec<String> {
    let mut found = Vec::with_capacity(MANY);
    for block in 0..MANY / 1_000 {
        let lines: Vec<String> = (0..1_000).map(|number| format!("REG.GET r{}", block * 1_000 + number)).collect();
        found.extend(connection.pipeline(&lines).iter().map(shown));
    }
    found
}

/// Registers of version 5 are in the checkpoint; those that are there have version 2, and `extra` is covered and not in it.
fn prepare(connection: &mut Connection) {
    fill(connection, 5, "saved");
    assert_eq!(connection.run("REG.SNAPSHOT POSITION here STORE check").integer() as usize, MANY);
    connection.run("RENAME check {1}check");
    connection.run("MOVE {1}check 1");
    connection.run("FLUSHDB");
    connection.run("SELECT 1");
    connection.run("MOVE {1}check 0");
    connection.run("SELECT 0");
    fill(connection, 2, "old");
    connection.run("REG.PUT extra 1 dropped");
}

const BUSY: &str = "-BUSY a REG.RESTORE is under way in this database: try again when it has ended";
const RESTORED: &str = "5 saved";

/// Sends a restore and returns once it has set some registers; the client whose restore it is waits.
fn begin(mut restorer: Connection, connection: &mut Connection) -> Connection {
    restorer.queue_line("REG.RESTORE FROM {1}check");
    restorer.flush();
    let sample: Vec<String> = (0..200).map(|number| format!("REG.GET r{}", number * (MANY / 200))).collect();
    while !connection.pipeline(&sample).iter().any(|reply| shown(reply) == RESTORED) {
        thread::yield_now();
    }
    restorer
}

fn prepared() -> Option<(Session, Connection)> {
    let session = start()?;
    let mut connection = session.connect();
    prepare(&mut connection);
    Some((session, connection))
}

#[test]
fn everything_is_restored_and_what_is_not_in_the_blob_is_dropped() {
    let Some((session, mut connection)) = prepared() else { return };
    let restored = connection.run("REG.RESTORE FROM {1}check");
    assert_eq!(restored.to_string(), format!("[:{MANY}, \"here\"]"));
    assert!(all(&mut connection).iter().all(|found| found == RESTORED));
    assert_eq!(connection.run("EXISTS extra").integer(), 0);
    // By version, key by key.
    connection.run("REG.PUT r17 6 newer");
    connection.run("REG.PUT extra 1 kept");
    connection.run("DEL r18 r19");
    connection.run("REG.PUT r19 4 older");
    assert_eq!(connection.run("REG.RESTORE FROM {1}check MERGE").to_string(), "[:2, \"here\"]");
    let merged = connection.run("REG.MGET r17 r18 r19 extra");
    let merged: Vec<String> = merged.items().iter().map(shown).collect();
    assert_eq!(merged, ["6 newer", RESTORED, RESTORED, "1 kept"]);
    // Under another prefix.
    connection.run("REG.SNAPSHOT PREFIX r STORE of-r");
    let restored = connection.run("REG.RESTORE FROM of-r INTO moved:r");
    assert_eq!(restored.to_string(), format!("[:{MANY}, (nil)]"));
    assert_eq!(connection.run("REG.GET moved:r18"), connection.run("REG.GET r18"));
    assert_eq!(connection.run("DBSIZE").integer() as usize, 2 * MANY + 3);
    assert_eq!(connection.run("REG.RESTORE FROM of-r INTO r").to_string(), format!("[:{MANY}, (nil)]"));
    // Inside a transaction it is one step.
    let blob = connection.run("GET {1}check");
    fill(&mut connection, 8, "old");
    connection.run("MULTI");
    connection.run_with("REG.RESTORE", &[blob.bytes()]);
    assert_eq!(connection.run("EXEC").to_string(), format!("[[:{MANY}, \"here\"]]"));
    assert!(all(&mut session.connect()).iter().all(|found| found == RESTORED));
}

#[test]
fn what_is_in_the_way_changes_nothing() {
    let Some((_session, mut connection)) = prepared() else { return };
    connection.run("DEL r11999");
    connection.run("HSET r11999 f v");
    let refused = connection.run("REG.RESTORE FROM {1}check").to_string();
    assert!(refused.starts_with("-WRONGTYPE"), "{refused}");
    let found = all(&mut connection);
    assert!(found[..MANY - 1].iter().all(|found| found == "2 old"));
    // It does not count as under way any more.
    connection.run("DEL r11999");
    assert_eq!(connection.run("REG.RESTORE FROM {1}check").items()[0].integer() as usize, MANY);
}

#[test]
fn others_go_on_while_registers_are_restored() {
    let Some((session, mut connection)) = prepared() else { return };
    let mut restorer = begin(session.connect(), &mut connection);
    assert_eq!(connection.run("CELL.FORK a/ b/").to_string(), BUSY);
    for refused in connection.pipeline(&["SWAPDB 0 1", "SWAPDB 3 0"]) {
        assert!(refused.to_string().starts_with("-BUSY a command works in slices"), "{refused}");
    }
    // A register that is restored keeps what is put into it; one that is not yet is replaced, whole.
    let mut random = Random::from_env();
    let mut puts = Vec::new();
    for _ in 0..200 {
        let name = random.below(MANY);
        let replies = connection.pipeline(&[format!("REG.GET r{name}"), format!("REG.PUT r{name} 9 mine")]);
        puts.push((name, shown(&replies[0]), replies[1].to_string()));
    }
    let reply = restorer.read();
    assert_eq!(reply.to_string(), format!("[:{MANY}, \"here\"]"));
    let found = all(&mut connection);
    for (name, before, answer) in puts {
        match (before.as_str(), answer.as_str()) {
            (RESTORED, "+APPLIED") => assert_eq!(found[name], "9 mine", "r{name}"),
            ("2 old", "+APPLIED") => {
                assert!([RESTORED, "9 mine"].contains(&found[name].as_str()), "r{name}: {}", found[name]);
            }
            ("9 mine", "+DUPLICATE" | "+APPLIED") => {}
            other => panic!("r{name}: {other:?}"),
        }
    }
    assert_eq!(connection.run("EXISTS extra").integer(), 0);
    assert_eq!(connection.run("SWAPDB 0 1").to_string(), "+OK");
    connection.run("SWAPDB 0 1");
}

#[test]
fn of_two_restores_at_a_time_one_is_refused() {
    let Some((session, mut connection)) = prepared() else { return };
    let mut restorers = [session.connect(), session.connect()];
    for restorer in &mut restorers {
        restorer.queue_line("REG.RESTORE FROM {1}check");
        restorer.flush();
    }
    let mut replies = restorers.map(|mut restorer| restorer.read().to_string());
    replies.sort();
    assert_eq!(replies, [BUSY.to_owned(), format!("[:{MANY}, \"here\"]")]);
    assert!(all(&mut connection).iter().all(|found| found == RESTORED));
}

#[test]
fn a_key_of_another_type_that_is_made_meanwhile_stays() {
    let Some((session, mut connection)) = prepared() else { return };
    let mut restorer = begin(session.connect(), &mut connection);
    let names: Vec<usize> = (0..100).map(|n| n * (MANY / 100) + 7).collect();
    let replace = "EVAL \"redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 'text')\" 1";
    let lines: Vec<String> = names.iter().map(|name| format!("{replace} r{name}")).collect();
    connection.pipeline(&lines);
    let reply = restorer.read();
    assert!(!reply.is_error(), "{reply}");
    for name in names {
        assert_eq!(connection.run(&format!("GET r{name}")).to_string(), "\"text\"");
    }
}

#[test]
fn an_emptied_database_ends_its_restore() {
    let Some((session, mut connection)) = prepared() else { return };
    for how in ["FLUSHDB", "FLUSHALL"] {
        let mut restorer = begin(session.connect(), &mut connection);
        assert_eq!(connection.run(how).to_string(), "+OK");
        assert_eq!(
            restorer.read().to_string(),
            "-ERR the database was emptied or exchanged while the command worked: send it again"
        );
        assert_eq!(connection.run("DBSIZE").integer(), 0);
        prepare(&mut connection);
    }
    assert_eq!(connection.run("REG.RESTORE FROM {1}check").items()[0].integer() as usize, MANY);
}

#[test]
fn a_client_that_goes_away_does_not_end_its_restore() {
    let Some((session, mut connection)) = prepared() else { return };
    drop(begin(session.connect(), &mut connection));
    while connection.run("SWAPDB 0 1").is_error() {
        thread::yield_now();
    }
    connection.run("SWAPDB 0 1");
    assert!(all(&mut connection).iter().all(|found| found == RESTORED));
}

/// The server is killed while the restore is prepared or made true; a snapshot may lie between. After the start all of it is there or
/// nothing, and what was put into a restored register stays.
#[test]
fn a_restore_is_whole_after_a_kill() {
    if std::env::var_os("HOLDFAST_TEST_ADDR").is_some() {
        return wire::skip("this test starts a server of its own");
    }
    let (dir, mut random) = (fresh_dir(), Random::from_env());
    let start = || Server::start(&dir, &["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
    let mut server = start();
    let mut connection = server.connect();
    prepare(&mut connection);
    for round in 0..8 {
        let mut kept = Vec::new();
        let has_begun = round % 4 != 3;
        match has_begun {
            true => {
                begin(server.connect(), &mut connection);
                for _ in 0..random.below(40) {
                    let name = random.below(MANY);
                    if held(&mut connection, name) == RESTORED {
                        assert_eq!(connection.run(&format!("REG.PUT r{name} 9 mine")).to_string(), "+APPLIED");
                        kept.push(name);
                    }
                }
                if round % 4 == 1 {
                    connection.run("FLUSHALL");
                    kept.clear();
                }
                if round % 4 == 2 {
                    connection.run("BGSAVE");
                    while connection.run("INFO persistence").text().contains("rdb_bgsave_in_progress:1") {
                        thread::yield_now();
                    }
                }
            }
            // While it is checked, or given to the journal.
            false => {
                let mut restorer = server.connect();
                restorer.queue_line("REG.RESTORE FROM {1}check");
                restorer.flush();
                for _ in 0..random.below(30) {
                    connection.run("PING");
                }
            }
        }
        server.kill();
        server = start();
        connection = server.connect();
        if round % 4 == 1 {
            assert_eq!(connection.run("DBSIZE").integer(), 0, "after kill {round}");
            prepare(&mut connection);
            continue;
        }
        let found = all(&mut connection);
        let expected = if has_begun { RESTORED } else { found[0].as_str() };
        for (name, found) in found.iter().enumerate() {
            match kept.contains(&name) {
                true => assert_eq!(found, "9 mine", "r{name} after kill {round}"),
                false => assert_eq!(found, expected, "r{name} after kill {round}"),
            }
        }
        assert_eq!(connection.run("EXISTS extra").integer() == 0, expected == RESTORED);
        // It has ended: the next one can begin.
        connection.run("FLUSHALL");
        prepare(&mut connection);
    }
    assert_eq!(connection.run("REG.RESTORE FROM {1}check").items()[0].integer() as usize, MANY);
    server.kill();
    std::fs::remove_dir_all(&dir).expect("cannot remove the data directory");
}
