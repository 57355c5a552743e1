//! Imports of the files in `crates/formats/tests/fixtures/rdb`, whose README says what is in them.

use super::importer::{Player, import};
use super::progress::ImportProgress;
use super::report::ImportReport;
use crate::test_host::IdleHost;
use engine::{Engine, Settings};
use resp::OwnedRequest;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A time after everything that expires in the fixtures, and before what does not.
struct In2030;

impl engine::Clock for In2030 {
    fn unix_us(&self) -> u64 {
        1_900_000_000_000_000
    }
    fn monotonic_ns(&self) -> u64 {
        7
    }
}

fn engine() -> Engine {
    engine::with_all_commands(Arc::new(Settings::new()), Arc::new(IdleHost), Arc::new(In2030), 4, 1)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/fixtures/rdb").join(name)
}

/// What the import says, and an engine with the result.
fn imported(path: &Path) -> (Engine, ImportReport) {
    let engine = engine();
    let mut last = ImportProgress::default();
    let report = import(&engine, path, &mut |progress| last = progress).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(last.bytes, last.bytes_total, "all of it is done at the end");
    (engine, report)
}

/// Writes a file to import.
fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

fn aof(commands: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        bytes.extend(format!("*{}\r\n", words.len()).bytes());
        words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    }
    bytes
}

/// The reply to a command in a database.
fn ask(engine: &Engine, db: usize, command: &str) -> String {
    let (mut worker, mut out) = (engine.worker(0), Vec::new());
    let mut client = Player::new(engine).client;
    client.db = db;
    let request: OwnedRequest = command.split(' ').map(str::as_bytes).collect();
    engine.begin(&mut worker);
    engine::execute(engine, &mut worker, &mut client, request.as_request(), &mut out);
    String::from_utf8_lossy(&out).trim_end().replace("\r\n", " ")
}

#[test]
fn an_rdb_file_comes_in_with_its_deadlines() {
    let (engine, report) = imported(&fixture("redis-7.0.rdb"));
    assert_eq!(
        report.to_string(),
        "Loaded 10 strings, 3 hashes, 2 sorted sets, 2 sets, 2 lists, 2 streams and 1 function library"
    );
    assert_eq!(ask(&engine, 0, "DBSIZE"), ":20");
    assert_eq!(ask(&engine, 9, "KEYS *"), "*1 $7 in nine");
    assert_eq!(ask(&engine, 0, "GET str:32"), "$6 -70000");
    assert_eq!(ask(&engine, 0, "PEXPIRETIME hash:ttl"), ":4102444800001");
    assert_eq!(ask(&engine, 0, "HGET hash:packed c"), "$5 70000");
    assert_eq!(ask(&engine, 0, "OBJECT ENCODING hash:table"), "$9 hashtable");
    assert_eq!(ask(&engine, 0, "OBJECT IDLETIME str:8"), ":0", "in use since now");
}

#[test]
fn field_deadlines_come_in() {
    let (engine, report) = imported(&fixture("redis-8.0.rdb"));
    assert!(report.to_string().contains("1 value of the module type vectorset"), "{report}");
    assert_eq!(
        ask(&engine, 0, "HPEXPIRETIME hash:fields:packed FIELDS 3 a b c"),
        "*3 :-1 :4102444800000 :4102444800000"
    );
}

#[test]
fn expired_keys_are_left_out_and_counted() {
    for copy_as in ["file.rdb", "file.aof"] {
        let (_directory, path) = written(copy_as, &std::fs::read(fixture("expired.rdb")).unwrap());
        let (engine, report) = imported(&path);
        // With commands to come, values are read first and go when it turns out that none has saved them.
        let expired = if copy_as == "file.rdb" { (2, 1) } else { (1, 2) };
        assert_eq!((report.keys_expired, report.fields_expired), expired, "{copy_as}: {report}");
        assert_eq!(ask(&engine, 0, "DBSIZE"), ":2");
        assert_eq!(ask(&engine, 0, "HGETALL h"), "*2 $1 b $1 2");
        assert_eq!(ask(&engine, 0, "EXISTS gone all"), ":0");
    }
}

#[test]
fn a_history_is_read_at_its_own_time() {
    for name in ["plain.aof", "preamble.aof", "appendonlydir", "appendonlydir/appendonly.aof.manifest", "."] {
        let (engine, report) = imported(&fixture(name));
        for tag in if name == "plain.aof" { &["first"][..] } else { &["first", "second"] } {
            let asked = |db, command: &str, key: &str| ask(&engine, db, &format!("{command} {tag}:{key}"));
            assert_eq!(asked(0, "GET", "string"), "$1 2", "{name}");
            assert_eq!(asked(0, "HGETALL", "hash"), "*2 $1 a $3 2.5");
            assert_eq!(asked(0, "PEXPIRETIME", "slide"), ":4102444800000", "given more time while it had some");
            assert_eq!(asked(0, "PEXPIRETIME", "kept"), ":-1", "and for ever");
            assert_eq!(asked(0, "EXISTS", "gone"), ":0");
            assert_eq!(asked(0, "OBJECT IDLETIME", "kept"), ":0");
            assert_eq!(asked(3, "GET", "three"), "$1 x");
            assert_eq!(asked(0, "GET", "multi"), "$1 1");
            assert_eq!(asked(2, "GET", "multi2"), "$1 2");
        }
        assert!(report.failed.is_empty(), "{report}");
        assert_eq!(report.keys_expired, if name == "plain.aof" { 1 } else { 2 }, "{name}: {report}");
    }
}

#[test]
fn a_truncated_file_gives_its_complete_part() {
    let (engine, report) = imported(&fixture("truncated.aof"));
    assert!(report.to_string().contains("ends in the middle of a transaction that begins at byte 707"), "{report}");
    assert_eq!(ask(&engine, 0, "EXISTS first:multi first:string"), ":1");
}

#[test]
fn only_the_last_part_may_be_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("a"), b"*1\r\n$").unwrap();
    std::fs::write(path("b"), aof(&["SET a 1"])).unwrap();
    std::fs::write(path("x.manifest"), "file a seq 1 type i\nfile b seq 2 type i\n").unwrap();
    let error = import(&engine(), directory.path(), &mut |_| {}).unwrap_err();
    assert!(format!("{error:#}").ends_with("at byte 0, and is not the last file"), "{error:#}");
    std::fs::write(path("x.manifest"), "file b seq 1 type i\nfile a seq 2 type i\n").unwrap();
    assert!(imported(directory.path()).1.cut.is_some());
}

#[test]
fn refused_commands_are_counted_by_name() {
    let commands = ["SET a 1", "HSET a f v", "HSET a f w", "FROB x", "SHUTDOWN", "CLIENT REPLY OFF", "QUIT", "INCR a"];
    let (_directory, path) = written("x.aof", &aof(&commands));
    let (engine, report) = imported(&path);
    assert_eq!(
        report.to_string(),
        "Loaded no values; executed 2 commands\n\
         Refused: 6 commands\n  \
         CLIENT: 1, for example: not a command that changes keys\n  \
         FROB: 1, for example: ERR unknown command 'FROB', with args beginning with: 'x'\n  \
         HSET: 2, for example: WRONGTYPE Operation against a key holding the wrong kind of value\n  \
         QUIT: 1, for example: not a command that changes keys\n  \
         SHUTDOWN: 1, for example: not a command that changes keys"
    );
    assert_eq!(ask(&engine, 0, "GET a"), "$1 2");
    let (_directory, path) = written("x.aof", &aof(&["FROB \x1b[2J"]));
    assert!(imported(&path).1.to_string().ends_with("'.[2J'"), "nothing in a file reaches the terminal as it is");
}

#[test]
fn keys_of_a_missing_database_are_stored_in_no_other() {
    let (_directory, path) = written("x.aof", &aof(&["SET a 1", "SELECT 77", "SET a 2", "SELECT 1", "SET a 3"]));
    let (engine, report) = imported(&path);
    assert!(report.to_string().ends_with("1 record of databases that do not exist here, the first of them 77"));
    assert_eq!((ask(&engine, 0, "GET a"), ask(&engine, 1, "GET a")), ("$1 1".into(), "$1 3".into()));
    let (_directory, path) = written("x.rdb", b"REDIS0003\xfe\x40\x4d\0\x01a\x01b\xff");
    assert_eq!(imported(&path).1.outside, Some((1, 77)));
}

#[test]
fn spans_of_time_count_from_now() {
    let commands =
        ["SET a 1 PX 1000", "SET b 1", "EXPIRE b 10", "SETEX c 10 EX", "HSET h f v", "HEXPIRE h 5 FIELDS 1 f"];
    let (_directory, path) = written("x.aof", &aof(&commands));
    let (engine, report) = imported(&path);
    assert_eq!(report.to_string(), "Loaded no values; executed 6 commands");
    for (command, reply) in [("PTTL a", ":1000"), ("TTL b", ":10"), ("TTL c", ":10"), ("HTTL h FIELDS 1 f", "*1 :5")] {
        assert_eq!(ask(&engine, 0, command), reply, "{command}");
    }
}

#[test]
fn damage_is_an_error_with_its_place() {
    let said = |name: &str, bytes: &[u8]| {
        let (_directory, path) = written(name, bytes);
        format!("{:#}", import(&engine(), &path, &mut |_| {}).unwrap_err())
    };
    let damaged = said("x.rdb", b"REDIS0010\0\x01a\x01b\0\x01c\x09short");
    assert!(damaged.contains("x.rdb: stopped after 1 keys and commands: at byte 23"), "{damaged}");
    assert!(said("x.rdb", b"").ends_with("is empty"));
    assert!(said("x.rdb", &aof(&["SET a 1"])).contains("not a file of Redis"));
    assert!(said("x.aof", b"SET a 1\r\n").contains("at byte 0: 'S' where a command should begin"));
    assert!(said("x.manifest", b"file gone seq 1 type b\n").contains("gone"));
    let nowhere = import(&engine(), Path::new("/nowhere"), &mut |_| {}).unwrap_err();
    assert!(format!("{nowhere:#}").contains("cannot read /nowhere"), "{nowhere:#}");
}
