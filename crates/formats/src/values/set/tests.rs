//! What Redis wrote, what was made by hand, and what is made here.

use super::*;
use crate::Value;
use crate::payload::decode;
use test_random::Random;

const BYTES_MAX: usize = 1 << 20;

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn sealed(body: &[u8], version: u16) -> Vec<u8> {
    Writer::behind(body.to_vec()).finish(version)
}

fn members(payload: &[u8]) -> Option<Vec<String>> {
    let Ok(Value::Set(members) | Value::SmallSet(members)) = decode(payload, BYTES_MAX) else { return None };
    Some(members.iter().map(|member| String::from_utf8(member.to_vec()).unwrap()).collect())
}

fn named(members: &[&str]) -> Texts {
    members.iter().collect()
}

/// DUMPs of Redis 7.0.15: `SADD i 1 -2 300`, `SADD w 1 -70000 5000000000`, `SADD t apple 12 ""`.
const NARROW: &str = "0b0e0200000003000000feff01002c010a005b0aa862f794600a";
const WIDE: &str = "0b20080000000300000090eefeffffffffff010000000000000000f2052a010000000a0052409d858a56c17e";
const TABLE: &str = "0203c00c056170706c65000a00b7be66896a4d6e2f";

#[test]
fn redis_s_sets_are_read_and_written_as_there() {
    for (hex, expected, packed) in [
        (NARROW, &["-2", "1", "300"][..], true),
        (WIDE, &["-70000", "1", "5000000000"], true),
        (TABLE, &["12", "apple", ""], false),
    ] {
        assert_eq!(members(&unhex(hex)).unwrap(), expected);
        // Compressed bytes may differ; what is in them may not.
        let (made, redis) = (encode_set(&named(expected), packed), unhex(hex));
        assert_eq!((made[0], members(&made).unwrap()), (redis[0], members(&redis).unwrap()));
        assert!(made == redis || made[1] == 0xc3, "{made:?}");
    }
    // A set of Redis 7.2: a number and a text.
    let listpack = b"\x14\x0c\x0c\0\0\0\x02\0\x0c\x01\x81a\x02\xff";
    assert_eq!(members(&sealed(listpack, 11)).unwrap(), ["12", "a"]);
}

#[test]
fn numbers_out_of_order_are_written_in_order() {
    assert_eq!(encode_set(&named(&["300", "1", "-2"]), true), unhex(NARROW));
    // What is no number makes no intset.
    assert_eq!(encode_set(&named(&["01"]), true)[0], kind::SET);
}

#[test]
fn sets_round_trip() {
    let mut random = Random::new();
    for _ in 0..200 {
        let count = *random.pick(&[1, 2, 30, 700]);
        let is_numbers = random.below(2) == 0;
        let mut set: Vec<Vec<u8>> = (0..count)
            .map(|_| match is_numbers {
                true => ((random.next() as i64) >> random.below(64)).to_string().into_bytes(),
                false => random.bytes(30, b"abc-019"),
            })
            .collect();
        set.sort();
        set.dedup();
        for packed in [true, false] {
            let encoded = encode_set(&set.iter().collect(), packed);
            let Ok(Value::Set(read)) = decode(&encoded, BYTES_MAX) else { panic!("{set:?}") };
            let mut read: Vec<&[u8]> = read.iter().collect();
            read.sort();
            assert_eq!(read, set);
        }
    }
}

#[test]
fn commands_make_the_set_again() {
    let set: Vec<Vec<u8>> = (0..1_001).map(|number| format!("m{number}").into_bytes()).collect();
    let mut made = Vec::new();
    Value::Set(set.iter().collect())
        .commands(b"k", |command| {
            made.push(command.iter().map(|word| word.to_vec()).collect::<Vec<_>>());
            Ok::<(), ()>(())
        })
        .unwrap();
    assert_eq!(made[0], [b"DEL".to_vec(), b"k".to_vec()]);
    assert_eq!(made.len(), 4);
    assert!(made[1..].iter().all(|command| command[..2] == [b"SADD".to_vec(), b"k".to_vec()]));
    let members: Vec<Vec<u8>> = made[1..].iter().flat_map(|command| command[2..].to_vec()).collect();
    assert_eq!(members, set);
}

#[test]
fn lies_are_refused() {
    let refused = |body: &[u8]| {
        assert_eq!(decode(&sealed(body, 10), BYTES_MAX), Err(BadPayload::Format), "{body:?}");
    };
    refused(b"\x02\0");
    refused(b"\x02\x02\x01a\x01a");
    refused(b"\x02\x02\xc0\x01\x011");
    refused(b"\x02\x02\x01a");
    refused(b"\x02\x01\x01ax");
    refused(b"\x02\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a");
    // Intsets: none, of a width that there is not, too short, too long, out of order, twice the same.
    refused(b"\x0b\x08\x02\0\0\0\0\0\0\0");
    refused(b"\x0b\x0b\x03\0\0\0\x01\0\0\0\x01\x02\x03");
    refused(b"\x0b\x07\x02\0\0\0\x01\0\0");
    refused(b"\x0b\x0a\x02\0\0\0\x02\0\0\0\x01\0");
    refused(b"\x0b\x0c\x02\0\0\0\x01\0\0\0\x01\0\x02\0");
    refused(b"\x0b\x0c\x02\0\0\0\x02\0\0\0\x02\0\x01\0");
    refused(b"\x0b\x0c\x02\0\0\0\x02\0\0\0\x01\0\x01\0");
    refused(b"\x0b\x0c\x02\0\0\0\xff\xff\xff\xff\x01\0\x02\0");
    // Listpacks: none, and twice the same.
    refused(b"\x14\x07\x07\0\0\0\0\0\xff");
    refused(b"\x14\x0d\x0d\0\0\0\x02\0\x81a\x02\x81a\x02\xff");
    refused(b"\x14\x0c\x0c\0\0\0\x02\0\x01\x01\x811\x02\xff");
}
