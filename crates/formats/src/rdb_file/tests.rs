//! Real files, files made by hand, and damaged ones. `tests/fixtures/rdb/README.md` says where each came from.

use super::*;
use crate::rdb::CHECKSUM;
use test_random::Random;

const REDIS_7: &[u8] = include_bytes!("../../tests/fixtures/rdb/redis-7.0.rdb");
const REDIS_8: &[u8] = include_bytes!("../../tests/fixtures/rdb/redis-8.0.rdb");
const VALKEY_9: &[u8] = include_bytes!("../../tests/fixtures/rdb/valkey-9.1.rdb");
const OLD: &[u8] = include_bytes!("../../tests/fixtures/rdb/old-encodings.rdb");
const EXPIRED: &[u8] = include_bytes!("../../tests/fixtures/rdb/expired.rdb");

const BYTES_MAX: usize = 1 << 20;
/// The year 2100, which the fixtures have deadlines in.
const FUTURE_MS: u64 = 4_102_444_800_000;

/// Gives its bytes in pieces of random length, as a pipe would.
struct InPieces<'a>(&'a [u8], Random);

impl Read for InPieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = (1 + self.1.below(7)).min(buffer.len());
        self.0.read(&mut buffer[..len])
    }
}

fn read(bytes: &[u8]) -> Result<Vec<Item>, FileError> {
    RdbFile::new(bytes, BYTES_MAX).collect()
}

/// What a file holds as one line for each thing, in order.
fn lines(bytes: &[u8]) -> Vec<String> {
    let items = read(bytes).unwrap_or_else(|error| panic!("{error}"));
    let mut lines: Vec<String> = items.into_iter().map(line).collect();
    lines.sort();
    lines
}

fn line(item: Item) -> String {
    let item = match item {
        Item::Key(item) => item,
        Item::Library(code) => {
            let first_line = code.split(|byte| *byte == b'\n').next().unwrap_or_default();
            return format!("library: {}", first_line.escape_ascii());
        }
        Item::Aside(kind) => return kind.to_string(),
    };
    let value = match item.value {
        Value::Unsupported(kind) => kind.to_string(),
        Value::Own(_) => panic!("no file of Redis's holds one"),
        Value::String(bytes) => match bytes.len() {
            0..100 => format!("\"{}\"", bytes.escape_ascii()),
            len => format!("{len} bytes"),
        },
        Value::Hash(mut fields) => {
            fields.sort();
            let fields = fields.iter().map(|(field, value, deadline)| {
                let value = if value.len() > 20 { "long".into() } else { value.escape_ascii().to_string() };
                format!("{}={value}{}", field.escape_ascii(), at(*deadline))
            });
            fields.collect::<Vec<_>>().join(" ")
        }
        Value::List(elements) => {
            let elements = elements.iter().map(|element| match element.len() {
                0..=20 => element.escape_ascii().to_string(),
                len => format!("{len} bytes"),
            });
            elements.collect::<Vec<_>>().join(" ")
        }
        Value::Set(members) | Value::SmallSet(members) => {
            let mut members: Vec<&[u8]> = members.iter().collect();
            members.sort();
            let members = members.iter().map(|member| match member.len() {
                0..=20 => member.escape_ascii().to_string(),
                _ => "long".into(),
            });
            members.collect::<Vec<_>>().join(" ")
        }
        Value::Stream(stream) => {
            let entries = stream.nodes.iter().flat_map(|node| node.entries());
            let entries =
                entries.filter(|entry| !entry.is_deleted).map(|entry| format!("{}-{}", entry.id.0, entry.id.1));
            let groups = stream.groups.iter().map(|group| {
                let pending: usize = group.consumers.iter().map(|consumer| consumer.pending.len()).sum();
                format!("{}({pending} for {})", group.name.escape_ascii(), group.consumers.len())
            });
            entries.chain(groups).collect::<Vec<_>>().join(" ")
        }
        Value::SortedSet(mut members) => {
            members.sort_by(|a, b| a.1.total_cmp(&b.1));
            let members = members.iter().map(|(name, score)| {
                let name = if name.len() > 20 { "long".into() } else { name.escape_ascii().to_string() };
                format!("{score}:{name}")
            });
            members.collect::<Vec<_>>().join(" ")
        }
    };
    format!("{} {}{}: {value}", item.db, item.key.escape_ascii(), at(item.deadline))
}

fn at(deadline: Option<u64>) -> String {
    match deadline {
        None => String::new(),
        Some(ms) if ms >= FUTURE_MS => format!("@future+{}", ms - FUTURE_MS),
        Some(ms) => format!("@{ms}"),
    }
}

#[test]
fn everything_that_redis_7_0_wrote_is_read_or_passed_over() {
    let binary: Vec<u8> = (0..70).collect();
    let binary = format!("0 str:binary: \"{}\"", binary.escape_ascii());
    let mut expected = vec![
        "0 hash:packed: a=1 b=xyz c=70000",
        "0 hash:table: a=1 big=long neg=-3",
        "0 hash:ttl@future+1: f=v",
        "0 list:packed: a b 3",
        "0 list:plain: small 120 bytes",
        "0 set:int: 1 2 70000",
        "0 set:table: a b long",
        "0 str:16: \"300\"",
        "0 str:32: \"-70000\"",
        "0 str:8: \"-5\"",
        "0 str:big: \"9223372036854775807\"",
        &binary,
        "0 str:empty: \"\"",
        "0 str:lzf: 500 bytes",
        "0 str:plain: \"hello\"",
        "0 str:ttl@future+0: \"later\"",
        "0 stream: 1-1 2-1 g1(2 for 2) g2(0 for 1)",
        "0 stream:empty: ",
        "0 zset:packed: 1:a 2.5:b",
        "0 zset:table: -inf:y 3:x inf:long",
        "9 in nine: \"9\"",
        "library: #!lua name=lib",
    ];
    expected.sort();
    assert_eq!(lines(REDIS_7), expected);
}

#[test]
fn everything_that_redis_8_0_wrote_is_read_or_passed_over() {
    let lines = lines(REDIS_8);
    for expected in [
        "0 hash:fields:packed: a=1 b=xyz@future+0 c=70000@future+0",
        "0 hash:fields:table: a=1@future+0 big=long@future+5 c=70000@future+5",
        "0 hash:packed: a=1 b=xyz c=70000",
        "0 set:packed: a b",
        "0 stream: 1-1 2-1 g1(2 for 2) g2(0 for 1)",
        "0 vectors: module:vectorset",
        "9 in nine: \"9\"",
        "library: #!lua name=lib",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} in {lines:#?}");
    }
    assert_eq!(lines.len(), 26);
}

#[test]
fn everything_that_valkey_9_1_wrote_is_read() {
    let mut expected = vec![
        "0 aside@future+0: \"x\"",
        "0 intset: 1 2 70000",
        "0 list: a b 12",
        "0 number: \"-129\"",
        "0 packed: a=1 b=2",
        "0 set: a b c",
        "0 stream: 1-1 1-2 g(1 for 1)",
        "0 table: a=1 b=2",
        "0 text: \"hello\"",
        "0 timed: a=1 b=2@future+0 c=3@future+123",
        "0 zset: -0.5:b 1:a",
        "9 other: \"1\"",
        "library: #!lua name=lib",
    ];
    expected.sort();
    assert_eq!(lines(VALKEY_9), expected);
}

/// In a file of Valkey's, some bytes mean something else than in one of Redis's.
#[test]
fn valkey_s_own_meanings_are_known() {
    let valkey = |version: &str, body: &[u8]| {
        let bytes = [b"VALKEY", version.as_bytes(), body, b"\xff", &[0; 8]].concat();
        read(&bytes).map(|items| items.into_iter().map(line).collect::<Vec<_>>()).map_err(|error| error.to_string())
    };
    let hash = b"\x16\x01h\x01\x01a\x01b\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_eq!(valkey("080", hash).unwrap(), ["0 h: a=b"]);
    assert_eq!(read(&file(12, b"\x16\x01h\x01\x07\x01a\x01b")).map(|items| items.len()).unwrap(), 1, "of Redis");
    let slots = b"\xf3\x04name\x02\x01\x02\x09\x0a\0\x01a\x01b";
    assert_eq!(valkey("080", slots).unwrap(), ["0 a: \"b\""]);
    for kind in 23..=25 {
        let refused = valkey("080", &[kind, 1, b'h']).unwrap_err();
        assert!(refused.contains(&format!("a value of type {kind}, which is not known here")), "{refused}");
    }
    for version in ["012", "079", "081", "999"] {
        let refused = valkey(version, b"").unwrap_err();
        assert!(refused.contains("version"), "{refused}");
    }
    assert!(valkey("08x", b"").unwrap_err().contains("not a file of Redis"));
    assert!(read(&file(80, b"")).is_err(), "Redis has no such version");
}

#[test]
fn encodings_of_older_redis_are_read_or_passed_over() {
    let items = read(OLD).unwrap();
    let lines: Vec<String> = items.into_iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "0 list: a 5",
            "0 list:ziplist: a b -5",
            "0 list:quicklist: a b c",
            "0 set: 300 a",
            "0 set:intset: -1 300 5",
            "0 zset: -inf:c -12.5:d 1.5:a inf:b",
            "0 zset:2: 1.5:a",
            "0 zset:ziplist: 1:a 2.5:b",
            "0 stream: 1-1 g(1 for 1)",
            "0 hash@2000000000000: a=1 b=xyz",
            "0 hash:zipmap: a=1 bcd=xy",
            "0 hash:ziplist@future+1: a=1 b=xyz",
            "0 string: \"plain\"",
            "0 last: \"-70000\"",
        ]
    );
}

#[test]
fn what_has_expired_is_read_all_the_same() {
    let items = read(EXPIRED).unwrap();
    assert_eq!(items.len(), 4, "{items:?}");
    assert_eq!(EXPIRED[EXPIRED.len() - 8..], [0; 8], "written without a checksum");
}

#[test]
fn a_file_in_pieces_reads_the_same() {
    for file in [REDIS_7, REDIS_8, VALKEY_9, OLD, EXPIRED] {
        let in_pieces: Vec<Item> = RdbFile::new(InPieces(file, Random::new()), BYTES_MAX).map(Result::unwrap).collect();
        assert_eq!(in_pieces, read(file).unwrap());
    }
}

/// A file of one part, with a checksum.
fn file(version: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("REDIS{version:04}").into_bytes();
    bytes.extend_from_slice(body);
    bytes.push(0xff);
    if version >= 5 {
        let checksum = CHECKSUM.checksum(&bytes);
        bytes.extend(checksum.to_le_bytes());
    }
    bytes
}

#[test]
fn every_version_and_part_is_known() {
    assert_eq!(lines(b"REDIS0001\xfe\x03\0\x01a\x01b\xff"), ["3 a: \"b\""], "without a checksum");
    for version in 1..=VERSION_MAX {
        assert_eq!(lines(&file(version, b"\0\x01a\x01b")), ["0 a: \"b\""]);
    }
    let one = |body: &[u8]| {
        let body = [body, b"\0\x01a\x01b"].concat();
        let mut lines = lines(&file(12, &body));
        assert_eq!(lines.remove(0), "0 a: \"b\"", "what comes after is read as well");
        lines
    };
    assert_eq!(one(b"\xf4\x05\x01\0"), Vec::<String>::new(), "slot");
    assert_eq!(one(b"\xf5\x03lib"), ["library: lib"]);
    assert_eq!(one(b"\xf6\x01n\x03LUA\x01\x04what\x04code"), ["function library"], "with a description");
    assert_eq!(one(b"\xf6\x01n\x03LUA\0\x04code"), ["function library"], "and without");
    // A module type called AAAAAAAAB, version 0: one of each, then the end.
    let parts = b"\x02\x05\x01\x07\x03abcd\x04abcdefgh\x05\x03xyz\x05\xc0\x07\0";
    let aux = [&b"\xf7\x44\0\x02\x01"[..], parts].concat();
    assert_eq!(one(&aux), ["module data:AAAAAAAAB"]);
    let value = [&b"\x07\x01m\x44\0"[..], parts].concat();
    assert_eq!(one(&value), ["0 m: module:AAAAAAAAB"]);
    let beside = [&b"\xf3\x02abcd"[..], parts, b"efgh", parts].concat();
    assert_eq!(one(&beside), Vec::<String>::new(), "what modules keep beside a key");
}

#[test]
fn a_deadline_belongs_to_the_next_key_alone() {
    let body = b"\xfc\x01\0\0\0\0\0\0\0\0\x01a\x01b\0\x01c\x01d\xfc\xff\xff\xff\xff\xff\xff\xff\xff\0\x01e\x01f\
        \xfd\xfe\xff\xff\xff\0\x01g\x01h";
    assert_eq!(lines(&file(12, body)), ["0 a@1: \"b\"", "0 c: \"d\"", "0 e: \"f\"", "0 g@0: \"h\""]);
}

#[test]
fn an_empty_hash_is_no_damage() {
    assert_eq!(lines(&file(10, b"\x04\x01h\0\0\x01a\x01b")), ["0 a: \"b\"", "0 h: "]);
}

#[test]
fn errors_say_where_and_what() {
    let said = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(said(b""), "at byte 0: not a file of Redis, in the first bytes");
    assert_eq!(said(b"*1\r\n$4\r\nPING"), "at byte 0: not a file of Redis, in the first bytes");
    assert_eq!(said(b"REDIS"), "at byte 0: the file ends too early, in the first bytes");
    assert_eq!(
        said(b"REDIS0099"),
        "at byte 9: version 99 of the RDB format, which is not known here, in the first bytes that begins at byte 0"
    );
    assert_eq!(
        said(b"REDIS0010\0\x03key\x0aabc"),
        "at byte 18: the file ends too early, in the string of the key \"key\" that begins at byte 9"
    );
    assert_eq!(
        said(b"REDIS0010\x04\x03key\x02\x01a\x01b\x01a\x01c"),
        "at byte 23: damaged bytes, in the hash of the key \"key\" that begins at byte 9"
    );
    assert_eq!(
        said(b"REDIS0010\x63\x03key"),
        "at byte 10: a value of type 99, which is not known here, in what comes next that begins at byte 9"
    );
    assert!(said(b"REDIS0010\x06\x01k\x44\0").contains("only that module can read"));
    let mut changed = REDIS_7.to_vec();
    let at = changed.windows(5).position(|five| five == b"hello").unwrap();
    changed[at] = b'j';
    assert!(said(&changed).starts_with("at byte 1057: the checksum is "), "{}", said(&changed));
}

#[test]
fn claims_are_not_believed() {
    let said = |body: &[u8]| read(&[b"REDIS0010", body].concat()).unwrap_err().to_string();
    // Lengths and counts of 2⁶⁴ − 1.
    let huge = b"\x81\xff\xff\xff\xff\xff\xff\xff\xff";
    for body in [&b"\0\x01k"[..], b"\0", b"\x01\x01k", b"\x04\x01k", b"\x05\x01k", b"\x0a\x01k", b"\x12\x01k", b"\xf5"]
    {
        assert!(said(&[body, huge].concat()).contains("the file ends too early"), "{body:?}");
    }
    assert!(said(b"\0\x01k\xc3\x02\x80\x20\0\0\0\0x").contains("larger than allowed"));
}

/// What errors have to be: somewhere in the file.
fn check(bytes: &[u8]) -> bool {
    match read(bytes) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.offset <= bytes.len() as u64 && error.began <= error.offset, "{error}");
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_is_an_error() {
    for file in [REDIS_7, REDIS_8, OLD, EXPIRED] {
        for len in 0..file.len() {
            assert!(!check(&file[..len]), "{len} bytes");
        }
        assert!(check(&[file, b"anything"].concat()), "what comes after the end is not looked at");
    }
}

#[test]
fn a_changed_bit_is_noticed_and_nothing_panics() {
    for file in [REDIS_7, REDIS_8, OLD] {
        for at in 0..file.len() {
            for bit in 0..8 {
                let mut bytes = file.to_vec();
                bytes[at] ^= 1 << bit;
                // A file of version 1 to 4 has no checksum.
                assert!(!check(&bytes) || (5..9).contains(&at), "bit {bit} of byte {at}");
            }
        }
    }
}

#[test]
fn no_file_panics() {
    let mut random = Random::new();
    let interesting = [
        0, 1, 2, 3, 4, 5, 7, 9, 13, 16, 18, 19, 21, 22, 24, 25, 0x40, 0x80, 0x81, 0xc0, 0xc3, 0xf3, 0xf5, 0xf7, 0xfc,
        0xfe, 0xff,
    ];
    for _ in 0..20_000 {
        let mut bytes = random.pick(&[REDIS_7, REDIS_8, OLD, EXPIRED]).to_vec();
        for _ in 0..1 + random.below(6) {
            let at = 9 + random.below(bytes.len() - 9);
            match random.below(4) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes[at] = *random.pick(&interesting),
                2 => bytes.insert(at, *random.pick(&interesting)),
                _ => drop(bytes.drain(at..(at + random.below(20)).min(bytes.len()))),
            }
            if bytes.len() < 20 {
                break;
            }
        }
        // Without a checksum, so that it is the reader that has to notice.
        if bytes.len() > 8 {
            let end = bytes.len() - 8;
            bytes[end..].fill(0);
        }
        check(&bytes);
    }
}
