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

fn elements(payload: &[u8]) -> Vec<String> {
    let Ok(Value::List(elements)) = decode(payload, BYTES_MAX) else { panic!("{payload:?}") };
    elements.iter().map(|element| String::from_utf8(element.to_vec()).unwrap()).collect()
}

/// A DUMP of Redis 7.0.15: `RPUSH a x 12 "" -70000`.
const REDIS: &str = "120102131300000004008178020c018001f290eefe04ff0a000a166aeec8ccb7fb";

#[test]
fn redis_s_lists_are_read_and_written_as_there() {
    assert_eq!(elements(&unhex(REDIS)), ["x", "12", "", "-70000"]);
    assert_eq!(encode_list(&["x", "12", "", "-70000"].into_iter().collect()), unhex(REDIS));
}

#[test]
fn older_lists_are_read() {
    assert_eq!(elements(&sealed(b"\x01\x03\x01b\xc0\x0c\x01b", 9)), ["b", "12", "b"]);
    let ziplist = b"\x0f\0\0\0\x0c\0\0\0\x02\0\0\xf3\x02\x01a\xff";
    let long = u8::try_from(ziplist.len()).unwrap();
    let ziplist = [&[long][..], &long.to_le_bytes(), &ziplist[1..]].concat();
    assert_eq!(elements(&sealed(&[b"\x0a", &ziplist[..]].concat(), 9)), ["2", "a"]);
    let nodes = [&b"\x0e\x02"[..], &ziplist, &ziplist].concat();
    assert_eq!(elements(&sealed(&nodes, 9)), ["2", "a", "2", "a"]);
}

#[test]
fn nodes_that_are_one_element_are_read() {
    let listpack = b"\x09\x09\0\0\0\x01\0\x05\x01\xff";
    let body = [&b"\x12\x03\x01\x03abc\x02"[..], listpack, b"\x01\x0212"].concat();
    assert_eq!(elements(&sealed(&body, 10)), ["abc", "5", "12"]);
}

/// Of elements of a hundred bytes, Redis 7.0.15 puts 79 into each node.
#[test]
fn nodes_are_as_full_as_in_redis() {
    let mut random = Random::new();
    let mut list: Vec<Vec<u8>> = (0..158).map(|_| (0..100).map(|_| random.next() as u8 | 0x80).collect()).collect();
    assert_eq!(encode_list(&list.iter().collect())[1], 2);
    list.push(list[0].clone());
    assert_eq!(encode_list(&list.iter().collect())[1], 3);
    // An element that is larger than a node gets a separate node.
    assert_eq!(encode_list(&[b"a", &[b'b'; 9000][..], b"c"].into_iter().collect())[1], 3);
}

#[test]
fn lists_round_trip() {
    let mut random = Random::new();
    for _ in 0..200 {
        let count = *random.pick(&[1, 2, 30, 700]);
        let list: Texts = (0..count)
            .map(|_| match random.below(3) {
                0 => ((random.next() as i64) >> random.below(64)).to_string().into_bytes(),
                1 => random.bytes(30, b"abc-019"),
                _ => random.bytes(5000, b"abc-019"),
            })
            .collect();
        assert_eq!(decode(&encode_list(&list), 1 << 26), Ok(Value::List(list)));
    }
}

#[test]
fn commands_make_the_list_again() {
    let list: Vec<Vec<u8>> = (0..1_001).map(|number| format!("m{number}").into_bytes()).collect();
    let mut made = Vec::new();
    Value::List(list.iter().collect())
        .commands(b"k", |command| {
            made.push(command.iter().map(|word| word.to_vec()).collect::<Vec<_>>());
            Ok::<(), ()>(())
        })
        .unwrap();
    assert_eq!(made[0], [b"DEL".to_vec(), b"k".to_vec()]);
    assert!(made[1..].iter().all(|command| command[..2] == [b"RPUSH".to_vec(), b"k".to_vec()]));
    let elements: Vec<Vec<u8>> = made[1..].iter().flat_map(|command| command[2..].to_vec()).collect();
    assert_eq!(elements, list);
}

#[test]
fn lies_are_refused() {
    let refused = |body: &[u8]| {
        assert_eq!(decode(&sealed(body, 10), BYTES_MAX), Err(BadPayload::Format), "{body:?}");
    };
    // No elements.
    refused(b"\x01\0");
    refused(b"\x12\0");
    refused(b"\x12\x01\x02\x07\x07\0\0\0\0\0\xff");
    refused(b"\x0e\0");
    // Fewer than are claimed, more, and as many as there cannot be.
    refused(b"\x01\x02\x01a");
    refused(b"\x01\x01\x01ax");
    refused(b"\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a");
    refused(b"\x12\x02\x01\x01a");
    // A node that is neither.
    refused(b"\x12\x01\x03\x01a");
    refused(b"\x12\x01\x00\x01a");
    // Damaged nodes.
    refused(b"\x12\x01\x02\x09\x09\0\0\0\x02\0\x05\x01\xff");
    refused(b"\x12\x01\x02\x09\x08\0\0\0\x01\0\x05\x01\xff");
    refused(b"\x0a\x03abc");
}
