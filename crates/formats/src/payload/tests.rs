//! Payloads of Redis read and written, and hostile payloads.

use super::*;
use crate::HashEntry;
use crate::rdb::writer::encode_string;
use crate::values::hash::{DEADLINE_MS_MAX, encode_hash};
use crate::values::set::encode_set;
use crate::values::sorted_set::encode_sorted_set;
use test_random::Random;

const BYTES_MAX: usize = 1 << 20;

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// A footer for a body that was made by hand.
fn sealed(body: &[u8], version: u16) -> Vec<u8> {
    let writer = Writer::behind(body.to_vec());
    writer.finish(version)
}

fn entry(field: &str, value: &str, deadline: Option<u64>) -> HashEntry {
    (field.into(), value.into(), deadline)
}

fn borrowed(entries: &[HashEntry]) -> impl Iterator<Item = (&[u8], &[u8], Option<u64>)> + Clone {
    entries.iter().map(|(field, value, ms)| (&field[..], &value[..], *ms))
}

/// DUMPs of Redis 7.0.15 (version 10) and 8.0.2 (version 12).
#[test]
fn redis_s_strings_are_read() {
    for (hex, expected) in [
        ("00000a005d9b5c400f7fa2da", b"".to_vec()),
        ("00000c0096ed6880f5553c93", b"".to_vec()),
        ("00c0050a00632f5f66832fb351", b"5".to_vec()),
        ("00c0050c00a8596ba679052d18", b"5".to_vec()),
        ("00c17fff0a001760822854808480", b"-129".to_vec()),
        ("00c17fff0c00dc16b6e8aeaa1ac9", b"-129".to_vec()),
        ("00c12c010a00954261f265825c10", b"300".to_vec()),
        ("00c12c010c005e3455329fa8c259", b"300".to_vec()),
        ("00c2701101000a0001a408fe953095a5", b"70000".to_vec()),
        ("00c2701101000c00cad23c3e6f1a0bec", b"70000".to_vec()),
        ("00c2000000800a00c74f873e33558187", b"-2147483648".to_vec()),
        ("00c2000000800c000c39b3fec97f1fce", b"-2147483648".to_vec()),
        ("000a323134373438333634380a00e7b129a34c1d76ee", b"2147483648".to_vec()),
        ("000a323134373438333634380c002cc71d63b637e8a7", b"2147483648".to_vec()),
        ("00033030370a007258e27b4c69bad9", b"007".to_vec()),
        ("00033030370c00b92ed6bbb6432490", b"007".to_vec()),
        ("00036162630a00d9ac303d4172a2e2", b"abc".to_vec()),
        ("00036162630c0012da04fdbb583cab", b"abc".to_vec()),
        ("00156162636465666768696a6b6c6d6e6f7071727374750a00ad1c23029a10e306", b"abcdefghijklmnopqrstu".to_vec()),
        ("00156162636465666768696a6b6c6d6e6f7071727374750c00666a17c2603a7d4f", b"abcdefghijklmnopqrstu".to_vec()),
        ("00c30615016161e00a000a00fd0cb36807413f68", vec![b'a'; 21]),
        ("00c30615016161e00a000c00367a87a8fd6ba121", vec![b'a'; 21]),
        ("00c31240640a6162636465666768696a61e04e0901696a0a00d485292a1f2eff66", b"abcdefghij".repeat(10)),
        ("00c31240640a6162636465666768696a61e04e0901696a0c001ff31deae504612f", b"abcdefghij".repeat(10)),
    ] {
        assert_eq!(decode(&unhex(hex), BYTES_MAX), Ok(Value::String(expected)), "{hex}");
    }
}

/// DUMPs of Valkey 9.1 (version 80).
#[test]
fn valkey_s_values_are_read() {
    let read = |hex: &str| decode(&unhex(hex), BYTES_MAX);
    assert_eq!(read("000568656c6c6f5000ac5816e7fb6647fe"), Ok(Value::String(b"hello".to_vec())));
    let timed = "16030161c001ffffffffffffffff0162c00200d8c32cbb0300000163c0037bd8c32cbb0300005000801c4df4eccc060d";
    let Ok(Value::Hash(mut fields)) = read(timed) else { panic!("{:?}", read(timed)) };
    fields.sort();
    let deadlines = [None, Some(4_102_444_800_000), Some(4_102_444_800_123)];
    let expected = ["a", "b", "c"].iter().zip(["1", "2", "3"]).zip(deadlines);
    assert_eq!(fields, expected.map(|((field, value), at)| entry(field, value, at)).collect::<Vec<_>>());
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    for (hex, expected) in [
        ("1410100000000300816102816202816302ff5000cbc02085a8c5174a", ["a", "b", "c"]),
        ("0b14040000000300000001000000020000007011010050004aff0897c54fb7a1", ["1", "2", "70000"]),
    ] {
        let Ok(Value::Set(members) | Value::SmallSet(members)) = read(hex) else { panic!("{:?}", read(hex)) };
        assert_eq!(members.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), texts(&expected));
    }
    let zset = read("1115150000000400816202842d302e35058161020101ff50007541ee9b05defa7e");
    assert_eq!(zset, Ok(Value::SortedSet(vec![(b"b".to_vec(), -0.5), (b"a".to_vec(), 1.0)])));
    let stream = "1501100000000000000001000000000000000126260000000f0002010001010181610200010201000100010101040102010001010102010401ff02010201010000020101670101010100000000000000010000000000000001391548f1a101000001010163391548f1a1010000391548f1a101000001000000000000000100000000000000015000b4f0ded7971fac1e";
    assert!(matches!(read(stream), Ok(Value::Stream(stream)) if stream.groups.len() == 1));
}

/// Between Redis's versions and Valkey's there are numbers that neither has written.
#[test]
fn a_version_decides_what_a_type_byte_means() {
    let of_valkey = b"\x16\x01\x01a\x01b\x07\0\0\0\0\0\0\0";
    let of_redis = b"\x16\x01\x07\x01a\x01b";
    assert_eq!(decode(&sealed(of_valkey, 80), BYTES_MAX), Ok(Value::Hash(vec![entry("a", "b", Some(7))])));
    assert_eq!(decode(&sealed(of_redis, 12), BYTES_MAX), Ok(Value::Hash(vec![entry("a", "b", Some(7))])));
    assert_eq!(decode(&sealed(of_redis, 80), BYTES_MAX), Err(BadPayload::Format));
    let late = b"\x16\x01\x01a\x01b\xff\xff\xff\xff\xff\xff\xff\x7f";
    assert_eq!(
        decode(&sealed(late, 80), BYTES_MAX),
        Ok(Value::Hash(vec![entry("a", "b", Some(DEADLINE_MS_MAX))])),
        "later than Redis and we allow"
    );
    let before_time = b"\x16\x01\x01a\x01b\xfe\xff\xff\xff\xff\xff\xff\xff";
    assert_eq!(decode(&sealed(before_time, 80), BYTES_MAX), Err(BadPayload::Format));
    for version in [13, 79, 81, u16::MAX] {
        assert_eq!(decode(&sealed(b"\0\x01a", version), BYTES_MAX), Err(BadPayload::Footer), "{version}");
    }
    for kind in 23..=25 {
        assert_eq!(decode(&sealed(&[kind, 0], 80), BYTES_MAX), Err(BadPayload::Format), "{kind}");
    }
}

#[test]
fn redis_s_hashes_are_read() {
    for (hex, expected) in [
        (
            "101c1c000000060081610201018162028378797a04816302f270110104ff0a00ea8f983ea6f82035",
            vec![entry("a", "1", None), entry("b", "xyz", None), entry("c", "70000", None)],
        ),
        (
            "040401620378797a03626967c3094064017676e057000176760161c0010163c2701101000a00ba5ca37436e2b825",
            vec![
                entry("a", "1", None),
                entry("b", "xyz", None),
                entry("big", &"v".repeat(100), None),
                entry("c", "70000", None),
            ],
        ),
        (
            "101c1c000000060081610201018162028378797a04816302f270110104ff0c0021f9acfe5cd2be7c",
            vec![entry("a", "1", None), entry("b", "xyz", None), entry("c", "70000", None)],
        ),
        (
            "040403626967c3094064017676e057000176760163c2701101000161c00101620378797a0c003113baec739c25c5",
            vec![
                entry("a", "1", None),
                entry("b", "xyz", None),
                entry("big", &"v".repeat(100), None),
                entry("c", "70000", None),
            ],
        ),
        (
            "197b204aa9d101000032320000000900816302f270110104f464204aa9d1010000098162028378797a04f47b204aa9d10100000981610201010001ff0c00bfb633c62a2e4205",
            vec![
                entry("a", "1", None),
                entry("b", "xyz", Some(2000000000123)),
                entry("c", "70000", Some(2000000000100)),
            ],
        ),
        (
            "1864204aa9d1010000040003626967c3094064017676e05700017676010163c270110100000161c0011801620378797a0c001a927d2e5d64e506",
            vec![
                entry("a", "1", None),
                entry("b", "xyz", Some(2000000000123)),
                entry("big", &"v".repeat(100), None),
                entry("c", "70000", Some(2000000000100)),
            ],
        ),
        // A ziplist, made by hand (RDB version 9, Redis 6); Redis 7.0.15 restores it to the same hash.
        (
            "0d20200000001a000000060000016103f2020162030378797a05016303f0701101ff0900af22f30574344c66",
            vec![entry("a", "1", None), entry("b", "xyz", None), entry("c", "70000", None)],
        ),
    ] {
        let Ok(Value::Hash(mut entries)) = decode(&unhex(hex), BYTES_MAX) else {
            panic!("{hex}");
        };
        entries.sort();
        assert_eq!(entries, expected, "{hex}");
    }
}

#[test]
fn what_is_written_for_small_values_is_what_redis_writes() {
    for (bytes, hex) in [
        (&b""[..], "00000a005d9b5c400f7fa2da"),
        (&b"5"[..], "00c0050a00632f5f66832fb351"),
        (&b"-129"[..], "00c17fff0a001760822854808480"),
        (&b"300"[..], "00c12c010a00954261f265825c10"),
        (&b"70000"[..], "00c2701101000a0001a408fe953095a5"),
        (&b"2147483648"[..], "000a323134373438333634380a00e7b129a34c1d76ee"),
        (&b"007"[..], "00033030370a007258e27b4c69bad9"),
        (&b"abc"[..], "00036162630a00d9ac303d4172a2e2"),
    ] {
        assert_eq!(encode_string(bytes), unhex(hex));
    }
}

#[test]
fn strings_round_trip() {
    let mut random = Random::new();
    for _ in 0..1_000 {
        let limit = *random.pick(&[2, 12, 30, 70, 20_000]);
        let alphabet = *random.pick(&[&b"0123456789"[..], b"-0123456789", b"ab", b"abcdefghijkl\0\xff"]);
        let bytes = random.bytes(limit, alphabet);
        assert_eq!(decode(&encode_string(&bytes), BYTES_MAX), Ok(Value::String(bytes)));
    }
}

#[test]
fn hashes_round_trip() {
    let mut random = Random::new();
    for _ in 0..300 {
        let mut entries: Vec<HashEntry> = Vec::new();
        let with_deadlines = random.below(2) == 1;
        let count = *random.pick(&[1, 2, 30, 600]);
        for number in 0..count {
            let mut field = random.bytes(8, b"abc-019");
            field.extend(format!("#{number}").bytes());
            let limit = *random.pick(&[3, 30, 200]);
            let value = random.bytes(limit, b"xyz0123456789");
            let ms = (with_deadlines && random.below(3) > 0).then(|| 1_900_000_000_000 + random.next() % 100_000);
            entries.push((field, value, ms));
        }
        entries.sort();
        for form in [true, false] {
            let payload = encode_hash(borrowed(&entries), form);
            let Ok(Value::Hash(mut read)) = decode(&payload, BYTES_MAX) else {
                panic!("{entries:?}");
            };
            read.sort();
            assert_eq!(read, entries);
        }
    }
}

#[test]
fn only_deadlines_need_the_newer_version() {
    let version = |payload: &[u8]| payload[payload.len() - FOOTER_BYTES];
    for form in [true, false] {
        assert_eq!(version(&encode_hash(borrowed(&[entry("f", "v", None)]), form)), 10);
        assert_eq!(version(&encode_hash(borrowed(&[entry("f", "v", Some(5))]), form)), 12);
    }
    assert_eq!(version(&encode_string(b"x")), 10);
}

#[test]
fn deadlines_at_the_edges_stay_deadlines() {
    for form in [true, false] {
        let entries = [entry("a", "", Some(0)), entry("b", "", Some(u64::MAX)), entry("c", "", None)];
        let Ok(Value::Hash(mut read)) = decode(&encode_hash(borrowed(&entries), form), BYTES_MAX) else {
            panic!();
        };
        read.sort();
        let expected = [Some(1), Some(DEADLINE_MS_MAX), None];
        assert_eq!(read.iter().map(|(.., ms)| *ms).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn the_footer_is_checked() {
    let good = encode_string(b"hello");
    assert!(decode(&good, 0).is_ok());
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(decode(&bad, 0), Err(BadPayload::Footer), "byte {at}");
    }
    for len in 0..good.len() {
        assert_eq!(decode(&good[..len], 0), Err(BadPayload::Footer), "{len} bytes");
    }
    assert!(decode(&sealed(b"\0\x01x", 1), 0).is_ok(), "any older version");
    assert_eq!(decode(&sealed(b"\0\x01x", 13), 0), Err(BadPayload::Footer));
    assert_eq!(decode(&sealed(b"", 10), 0), Err(BadPayload::Format));
}

#[test]
fn other_types_are_named() {
    assert_eq!(decode(&sealed(&[7, 0], 10), 0), Err(BadPayload::Unsupported("module")));
    assert_eq!(decode(&sealed(&[8, 0], 10), 0), Err(BadPayload::Format));
    assert_eq!(decode(&sealed(&[200, 0], 10), 0), Err(BadPayload::Format));
}

#[test]
fn lies_are_refused() {
    let refused = |body: &[u8]| assert_eq!(decode(&sealed(body, 12), BYTES_MAX), Err(BadPayload::Format), "{body:?}");
    refused(b"\0");
    refused(b"\0\x05abc");
    refused(b"\0\x01xx");
    refused(b"\0\x81\xff\xff\xff\xff\xff\xff\xff\xff");
    refused(b"\0\x82\0\0\0\x01x");
    refused(b"\0\xc4x");
    refused(b"\0\xc3\x02\x03\0x");
    refused(b"\x04\0");
    refused(b"\x04\x01\x01a");
    refused(b"\x04\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a\x01b");
    refused(b"\x04\x02\x01a\x01b\x01a\x01c");
    refused(b"\x10\x09\x09\0\0\0\x01\0\x01\x01\xff");
    refused(b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x01a\x01b");
    refused(b"\x16\x01\x81\xff\0\0\0\0\0\0\0\x01a\x01b");
}

#[test]
fn decompression_has_a_limit() {
    let payload = encode_string(&vec![b'a'; 10_000]);
    assert!(payload.len() < 300);
    assert!(decode(&payload, 10_000).is_ok());
    assert_eq!(decode(&payload, 9_999), Err(BadPayload::TooLarge));
    let long = "a".repeat(1_000);
    let entries = [entry("f", &long, None), entry("g", &long, None)];
    let payload = encode_hash(borrowed(&entries), false);
    assert!(decode(&payload, 2_000).is_ok());
    assert_eq!(decode(&payload, 1_999), Err(BadPayload::TooLarge), "the limit is on the sum");
    // A few bytes that claim half a gigabyte are not even tried.
    assert_eq!(decode(&sealed(b"\0\xc3\x02\x80\x20\0\0\0\0x", 10), usize::MAX), Err(BadPayload::Format));
}

#[test]
fn no_payload_panics() {
    let mut random = Random::new();
    let entries = [entry("field", "12", Some(1_900_000_000_000)), entry("x", &"long".repeat(30), None)];
    let plain = [entry("field", "12", None), entry("7", "-70000", None)];
    let mut bodies = vec![encode_string(b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbb"), encode_string(b"123")];
    for form in [true, false] {
        bodies.push(encode_hash(borrowed(&entries), form));
        bodies.push(encode_hash(borrowed(&plain), form));
    }
    let members = [(&b"a"[..], -1.5), (&b"12"[..], 3.0), (&b"member"[..], f64::INFINITY)];
    for form in [true, false] {
        bodies.push(encode_sorted_set(members.iter().copied(), form));
        bodies.push(encode_set(&["12", "-70000"].into_iter().collect(), form));
    }
    for body in &mut bodies {
        body.truncate(body.len() - FOOTER_BYTES);
    }
    let interesting = [
        0, 1, 2, 3, 4, 5, 8, 11, 12, 13, 16, 17, 20, 22, 23, 24, 25, 0x3f, 0x40, 0x7f, 0x80, 0x81, 0xc0, 0xc3, 0xf0,
        0xfe, 0xff,
    ];
    for _ in 0..50_000 {
        let mut body = match random.below(4) {
            0 => random.bytes(40, &interesting),
            _ => random.pick(&bodies).clone(),
        };
        for _ in 0..random.below(4) {
            if body.is_empty() {
                break;
            }
            let at = random.below(body.len());
            match random.below(4) {
                0 => body[at] = random.next() as u8,
                1 => body[at] = *random.pick(&interesting),
                2 => body.insert(at, *random.pick(&interesting)),
                _ => body.truncate(at),
            }
        }
        let _ = decode(&sealed(&body, 12), BYTES_MAX);
    }
}
