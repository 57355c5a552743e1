//! A restore of more registers than one batch has, through kills. `crates/engine/tests/databases/long_writes.rs` has what others see of it
//! meanwhile, and what is refused.

use std::env;
use std::thread;
use wire::own::{OwnServer, run_all, start};
use wire::{Connection, Random, Reply};

const MANY: usize = 10_500;
/// Registers are long, so that they are many pieces.
const PADDING: usize = 400;
/// Kills, if HOLDFAST_TEST_ROUNDS does not ask for more.
const KILLS: usize = 2;
const RESTORED: &str = "5 saved";

/// What happens between the begin of a restore and the kill.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meanwhile {
    /// The restore may not have begun: it is checked, or given to the journal.
    Nothing,
    Puts,
    Flush,
    Snapshot,
}

/// Registers `r0`, `r1`… of this version, as a snapshot.
fn snapshot(connection: &mut Connection, version: u64, value: &str) -> Vec<u8> {
    let value = format!("{value:.<PADDING$}");
    run_all(connection, (0..MANY).map(|number| format!("REG.PUT r{number} {version} {value}")));
    connection.run("REG.SNAPSHOT POSITION here").bytes().to_vec()
}

/// What a register holds: the version, and the value without its padding.
fn shown(reply: &Reply) -> String {
    match reply.is_nil() || reply.is_error() {
        true => reply.to_string(),
        false => format!("{} {}", reply.items()[1].text(), reply.items()[0].text().trim_end_matches('.')),
    }
}

fn held(connection: &mut Connection, names: impl IntoIterator<Item = usize>) -> Vec<String> {
    let reads = names.into_iter().map(|number| format!("REG.GET r{number}"));
    run_all(connection, reads).iter().map(shown).collect()
}

#[test]
fn of_two_restores_at_a_time_one_is_refused() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let saved = snapshot(&mut connection, 5, "saved");
    connection.run_with("SET check", &[&saved]);
    let mut restorers = [session.connect(), session.connect()];
    for restorer in &mut restorers {
        restorer.queue_line("REG.RESTORE FROM check");
        restorer.flush();
    }
    let mut replies = restorers.map(|mut restorer| restorer.read().to_string());
    replies.sort();
    let busy = "-BUSY a REG.RESTORE is under way in this database: try again when it has ended";
    assert_eq!(replies, [busy.to_owned(), format!("[:{MANY}, \"here\"]")]);
    assert!(held(&mut connection, 0..MANY).iter().all(|found| found == RESTORED));
}

/// The server is killed while the restore is prepared or made true; a snapshot may lie between. After the start all of it is there or
/// nothing, and what was put into a restored register stays.
#[test]
fn a_restore_is_whole_after_a_kill() {
    let args: &[&str] = &["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    let Some(own) = OwnServer::start(args) else { return };
    let kills = env::var("HOLDFAST_TEST_ROUNDS").map_or(KILLS, |text| text.parse().expect("a number of rounds"));
    let (mut connection, mut random) = (own.connect(), Random::from_env());
    let (old, saved) = (snapshot(&mut connection, 2, "old"), snapshot(&mut connection, 5, "saved"));
    for round in 0..kills {
        let meanwhile =
            random.pick(&[Meanwhile::Nothing, Meanwhile::Puts, Meanwhile::Puts, Meanwhile::Flush, Meanwhile::Snapshot]);
        println!("kill {round}: {meanwhile:?}");
        connection.run("FLUSHALL");
        connection.run_with("REG.RESTORE", &[&old]);
        connection.run_with("SET check", &[&saved]);
        // Covered by the snapshot, and not in it.
        connection.run("REG.PUT extra 1 dropped");
        let mut restorer = own.connect();
        restorer.queue_line("REG.RESTORE FROM check");
        restorer.flush();
        let mut kept = Vec::new();
        if meanwhile == Meanwhile::Nothing {
            (0..random.below(30)).for_each(|_| drop(connection.run("PING")));
        } else {
            let sample = || (0..200).map(|number| number * (MANY / 200));
            while !held(&mut connection, sample()).iter().any(|found| found == RESTORED) {
                thread::yield_now();
            }
            for name in (0..random.below(40)).map(|_| random.below(MANY)).collect::<Vec<_>>() {
                if held(&mut connection, [name])[0] == RESTORED {
                    assert_eq!(connection.run(&format!("REG.PUT r{name} 9 mine")).to_string(), "+APPLIED");
                    kept.push(name);
                }
            }
        }
        match meanwhile {
            Meanwhile::Flush => drop(connection.run("FLUSHALL")),
            Meanwhile::Snapshot => {
                connection.run("BGSAVE");
                while connection.run("INFO persistence").text().contains("rdb_bgsave_in_progress:1") {
                    thread::yield_now();
                }
            }
            Meanwhile::Nothing | Meanwhile::Puts => {}
        }
        own.kill_and_start();
        connection = own.connect();
        if meanwhile == Meanwhile::Flush {
            assert_eq!(connection.run("DBSIZE").integer(), 0, "after kill {round}");
            continue;
        }
        let found = held(&mut connection, 0..MANY);
        let expected = if meanwhile == Meanwhile::Nothing { found[0].clone() } else { RESTORED.to_owned() };
        assert!([RESTORED, "2 old"].contains(&&*expected), "{expected}");
        for (name, found) in found.iter().enumerate() {
            let expected = if kept.contains(&name) { "9 mine" } else { &expected };
            assert_eq!(found, expected, "r{name} after kill {round}");
        }
        assert_eq!(connection.run("EXISTS extra").integer() == 0, expected == RESTORED);
    }
    // The last one has ended: the next one can begin.
    connection.run_with("SET check", &[&saved]);
    assert_eq!(connection.run("REG.RESTORE FROM check").to_string(), format!("[:{MANY}, \"here\"]"));
}
