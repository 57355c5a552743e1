//! Real files, cut ones and damaged ones. `tests/fixtures/rdb/README.md` says where each came from.

use super::*;
use test_random::Random;

const PLAIN: &[u8] = include_bytes!("../../tests/fixtures/rdb/plain.aof");
const PREAMBLE: &[u8] = include_bytes!("../../tests/fixtures/rdb/preamble.aof");
const TRUNCATED: &[u8] = include_bytes!("../../tests/fixtures/rdb/truncated.aof");

const BYTES_MAX: usize = 1 << 20;

/// Records as text, where the file was cut off, and the error that ended it.
fn read(bytes: &[u8]) -> (Vec<String>, Option<Cut>, Option<FileError>) {
    let mut file = AofFile::new(bytes, BYTES_MAX);
    let (mut records, mut error) = (Vec::new(), None);
    for record in &mut file {
        match record {
            Ok(record) => records.push(text(record)),
            Err(found) => error = Some(found),
        }
    }
    (records, file.cut(), error)
}

fn text(record: Record) -> String {
    match record {
        Record::Item(item) => format!("{item:?}"),
        Record::Command(command) => {
            let args = command.as_request().iter().map(|arg| arg.escape_ascii().to_string());
            args.collect::<Vec<_>>().join(" ")
        }
    }
}

fn commands(bytes: &[u8]) -> Vec<String> {
    let (records, cut, error) = read(bytes);
    assert!(cut.is_none() && error.is_none(), "{cut:?} {error:?}");
    records
}

#[test]
fn commands_are_read_without_annotations_and_the_words_around_transactions() {
    let commands = commands(PLAIN);
    assert_eq!(commands[..2], ["SELECT 0", "SET first:string 1"]);
    assert_eq!(commands[commands.len() - 3..], ["SET first:multi 1", "SELECT 2", "SET first:multi2 2"]);
    assert!(PLAIN.starts_with(b"#TS:"));
}

#[test]
fn values_in_front_are_read_before_the_commands() {
    let records = commands(PREAMBLE);
    assert!(records[0].starts_with("Key("));
    assert_eq!(records.iter().filter(|record| record.starts_with("Key(")).count(), 10);
    assert_eq!(records.last().unwrap(), "SET second:multi2 2");
}

#[test]
fn an_rdb_file_alone_may_be_followed_by_anything() {
    let rdb = include_bytes!("../../tests/fixtures/rdb/redis-7.0.rdb");
    let followed = [rdb.as_slice(), b"\0\0\0\0"].concat();
    assert_eq!(AofFile::new(followed.as_slice(), BYTES_MAX).rdb_only().map(Result::unwrap).count(), 22);
    assert!(read(&followed).2.is_some(), "but not with commands to come");
    assert!(AofFile::new(PLAIN, BYTES_MAX).rdb_only().next().unwrap().is_err(), "and it must be one");
}

#[test]
fn a_transaction_that_is_cut_off_is_left_out() {
    let (records, cut, error) = read(TRUNCATED);
    let offset = TRUNCATED.windows(5).position(|five| five == b"MULTI").unwrap() as u64 - 8;
    let bytes = TRUNCATED.len() as u64 - offset;
    assert_eq!(cut, Some(Cut { offset, bytes, in_transaction: true }));
    assert!(error.is_none() && records.last().unwrap() == "SELECT 0", "{records:?}");
    // Whole commands, but no EXEC.
    let (records, cut, _) = read(b"*1\r\n$4\r\nPING\r\n*1\r\n$5\r\nmulti\r\n*1\r\n$4\r\nPING\r\n");
    assert_eq!((records.len(), cut), (1, Some(Cut { offset: 14, bytes: 29, in_transaction: true })));
}

#[test]
fn a_file_cut_off_anywhere_gives_what_was_whole() {
    let whole = commands(PLAIN);
    for len in 0..PLAIN.len() {
        let (records, cut, error) = read(&PLAIN[..len]);
        assert!(error.is_none(), "{len} bytes: {error:?}");
        assert_eq!(records, whole[..records.len()]);
        if let Some(cut) = cut {
            assert_eq!(cut.offset + cut.bytes, len as u64);
        }
    }
    assert!(commands(b"").is_empty());
    assert!(read(&PREAMBLE[..290]).2.is_some(), "values in front must be whole");
}

#[test]
fn empty_transactions_lead_nowhere() {
    let many = b"*1\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nEXEC\r\n".repeat(100_000);
    assert_eq!(commands(&many), Vec::<String>::new());
}

#[test]
fn errors_say_where_and_what() {
    let said = |bytes: &[u8]| read(bytes).2.unwrap().to_string();
    let ping = b"*1\r\n$4\r\nPING\r\n";
    let after_ping = |bytes: &[u8]| said(&[ping.as_slice(), bytes].concat());
    assert_eq!(after_ping(b"PING\r\n"), "at byte 14: 'P' where a command should begin, in a command");
    assert_eq!(after_ping(b"\0\0"), "at byte 14: '\\x00' where a command should begin, in a command");
    assert_eq!(after_ping(b"*x\r\n"), "at byte 14: Protocol error: invalid multibulk length, in a command");
    assert_eq!(after_ping(b"*1\r\n:1\r\n"), "at byte 14: Protocol error: expected '$', got ':', in a command");
    assert_eq!(after_ping(b"*0\r\n"), "at byte 14: damaged bytes, in a command");
    let annotation = [b'#'; 2_000];
    assert_eq!(after_ping(&annotation), "at byte 14: damaged bytes, in an annotation");
    let ended = [&annotation[..], b"\n"].concat();
    assert_eq!(after_ping(&ended), "at byte 14: damaged bytes, in an annotation", "all of it at hand or not");
    let nested = b"*1\r\n$5\r\nMULTI\r\n".repeat(2);
    assert_eq!(said(&nested), "at byte 30: MULTI inside of a transaction, in a command that begins at byte 15");
}

#[test]
fn a_long_argument_in_pieces_reads_the_same() {
    let long = vec![b'x'; 300_000];
    let mut file = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", long.len()).into_bytes();
    file.extend_from_slice(&long);
    file.extend_from_slice(b"\r\n*1\r\n$4\r\nPING\r\n");
    let commands = commands(&file);
    assert_eq!((commands[0].len(), commands[1].as_str()), (300_005, "PING"));
}

#[test]
fn no_file_panics() {
    let mut random = Random::new();
    let interesting = b"*$#\r\n0123456789-MULTIEXEC\xff";
    for _ in 0..20_000 {
        let mut bytes = random.pick(&[PLAIN, PREAMBLE, TRUNCATED]).to_vec();
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes[at] = *random.pick(interesting),
                2 => bytes.insert(at, *random.pick(interesting)),
                _ => drop(bytes.drain(at..(at + random.below(20)).min(bytes.len()))),
            }
        }
        let (_, cut, error) = read(&bytes);
        assert!(cut.is_none() || error.is_none());
        if let Some(error) = error {
            assert!(error.offset <= bytes.len() as u64, "{error}");
        }
    }
}

#[test]
fn manifests_name_files_in_order() {
    let files = |text: &str| parse_manifest(text.as_bytes());
    let refused = |text: &str| files(text).unwrap_err().to_string();
    let real = include_bytes!("../../tests/fixtures/rdb/appendonlydir/appendonly.aof.manifest");
    assert_eq!(parse_manifest(real).unwrap(), ["appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof"],);
    let several = "# by hand\nfile a.2 seq 2 type i\nfile old seq 1 type h\nfile \"a 3\" seq 3 type i\r\n\
        file base seq 1 type b later words\n";
    assert_eq!(files(several).unwrap(), ["base", "a.2", "a 3"]);
    assert_eq!(refused(""), "line 1 of the manifest: no file at all");
    assert_eq!(refused("file a seq 1 type b\nfile b seq 2 type b"), "line 2 of the manifest: a second base file");
    assert!(refused("file a seq 2 type i\nfile b seq 2 type i").contains("not newer"));
    assert!(refused("file ../../etc/passwd seq 1 type i").contains("a path"));
    assert!(refused("file a seq x type i").contains("not of the form"));
    assert!(refused("file a seq 1 type q").contains("other than"));
    assert!(refused("file \"a seq 1 type i").contains("not of the form"));
    assert!(refused("*1\r\n$1\r\n").contains("not of the form"));
}
