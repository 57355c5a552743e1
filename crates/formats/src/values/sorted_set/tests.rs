//! Values that Redis wrote, values made by hand, and values written here.

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

/// The members in their order, with the bits of their scores.
fn members(payload: &[u8]) -> Option<Vec<(String, u64)>> {
    let Ok(Value::SortedSet(mut members)) = decode(payload, BYTES_MAX) else { return None };
    members.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    Some(members.into_iter().map(|(name, score)| (String::from_utf8(name).unwrap(), score.to_bits())).collect())
}

fn expected(members: &[(&str, f64)]) -> Option<Vec<(String, u64)>> {
    Some(members.iter().map(|(name, score)| (name.to_string(), score.to_bits())).collect())
}

/// DUMPs of Redis 7.0.15: `ZADD z 1 a -2.5 b inf c 1e18 d 0.1 12`, and one past its threshold with a score of -0.
const PACKED: &str = "11c338404115410000000a00816202842d322e35050c0193302e3130e005001c31148161020101816402f4000064a7b3b6e00d\
    0981630283696e6604ff0a00485419168127502c";
const TABLE: &str =
    "05040163000000000000f07f0161000000000000f03f01640000000000000080016200000000000004c00a009a58d65354dd531d";
const IN_PACKED: &[(&str, f64)] = &[("b", -2.5), ("12", 0.1), ("a", 1.0), ("d", 1e18), ("c", f64::INFINITY)];
const IN_TABLE: &[(&str, f64)] = &[("b", -2.5), ("d", -0.0), ("a", 1.0), ("c", f64::INFINITY)];

#[test]
fn redis_s_sorted_sets_are_read() {
    assert_eq!(members(&unhex(PACKED)), expected(IN_PACKED));
    assert_eq!(members(&unhex(TABLE)), expected(IN_TABLE));
    // As Redis 2.4 wrote them: text scores, and the three that are none.
    let text = sealed(b"\x03\x04\x01a\x041.25\x01b\xfe\x01c\xff\x01d\x02-3", 6);
    assert_eq!(members(&text), expected(&[("c", f64::NEG_INFINITY), ("d", -3.0), ("a", 1.25), ("b", f64::INFINITY)]));
    // A ziplist (Redis 2.6 to 6.2): a text score, and one that is a small number.
    let ziplist = b"\x0c\x18\x18\0\0\0\x14\0\0\0\x04\0\0\x01a\x03\x031.5\x05\x01b\x03\xf3\xff";
    assert_eq!(members(&sealed(ziplist, 9)), expected(&[("a", 1.5), ("b", 2.0)]));
}

#[test]
fn what_is_written_is_what_redis_writes() {
    let table = encode_sorted_set(IN_TABLE.iter().map(|(name, score)| (name.as_bytes(), *score)), false);
    assert_eq!(table, unhex(TABLE));
    let packed = encode_sorted_set(IN_PACKED.iter().map(|(name, score)| (name.as_bytes(), *score)), true);
    // Compressed bytes may differ; their contents may not.
    assert_eq!((members(&packed), packed[0]), (expected(IN_PACKED), kind::SORTED_SET_LISTPACK));
}

#[test]
fn sorted_sets_round_trip() {
    let mut random = Random::new();
    for _ in 0..200 {
        let count = *random.pick(&[1, 2, 30, 400]);
        let mut set: Vec<(Vec<u8>, f64)> = (0..count)
            .map(|number| {
                let score = match random.below(4) {
                    0 => random.below(10) as f64,
                    1 => -(random.below(1 << 40) as f64),
                    2 => random.below(1 << 40) as f64 / 1024.0,
                    _ => f64::from_bits(random.next()),
                };
                let name = [random.bytes(30, b"abc-019"), format!("#{number}").into_bytes()].concat();
                (name, if score.is_nan() || score == 0.0 { 0.0 } else { score })
            })
            .collect();
        set.sort_by(|a, b| a.1.total_cmp(&b.1));
        for packed in [true, false] {
            let payload = encode_sorted_set(set.iter().map(|(name, score)| (name.as_slice(), *score)), packed);
            let Ok(Value::SortedSet(mut read)) = decode(&payload, BYTES_MAX) else { panic!("{set:?}") };
            if !packed {
                read.reverse();
            }
            assert_eq!(read, set, "a score comes back to the bit");
        }
    }
}

#[test]
fn lies_are_refused() {
    let refused = |body: &[u8]| {
        assert_eq!(decode(&sealed(body, 10), BYTES_MAX), Err(BadPayload::Format), "{body:?}");
    };
    refused(b"\x05\0");
    refused(b"\x03\0");
    refused(b"\x05\x01\x01a\0\0\0");
    refused(b"\x05\x02\x01a\0\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\xf0\x3f");
    refused(b"\x05\x01\x01a\0\0\0\0\0\0\xf8\x7f");
    refused(b"\x05\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a\0\0\0\0\0\0\0\0");
    refused(b"\x03\x01\x01a\xfd");
    refused(b"\x03\x01\x01a\x03abc");
    refused(b"\x03\x01\x01a\0");
    refused(b"\x05\x01\x01a\0\0\0\0\0\0\0\0x");
    // A listpack of one element, of none, and one whose score is no number.
    refused(b"\x11\x0a\x0a\0\0\0\x01\0\x81a\x02\xff");
    refused(b"\x11\x07\x07\0\0\0\0\0\xff");
    refused(b"\x11\x0d\x0d\0\0\0\x02\0\x81a\x02\x81b\x02\xff");
}
