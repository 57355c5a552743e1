//! Tables of what Redis reads and prints, and random numbers there and back.

use super::*;
use test_random::Random;

/// Replies of Redis 7.0.15 to `ZADD key INCR score member`.
#[test]
fn seventeen_digits_are_those_of_redis_7_0() {
    for (number, text) in [
        (0.1, "0.10000000000000001"),
        (1e17, "1e+17"),
        (123456789012345678.0, "1.2345678901234568e+17"),
        (1e-5, "1.0000000000000001e-05"),
        (0.0001, "0.0001"),
        (0.00001234, "1.234e-05"),
        (1e22, "1e+22"),
        (5e-324, "4.9406564584124654e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (3.0, "3"),
        (-0.0, "-0"),
        (0.0, "0"),
        (2.5, "2.5"),
        (-1234.5678, "-1234.5678"),
        (1e16, "10000000000000000"),
        (12345678901234567.0, "12345678901234568"),
        (0.3, "0.29999999999999999"),
        (1e20, "1e+20"),
        (1.5e-10, "1.5e-10"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (4611686018427387904.0, "4.6116860184273879e+18"),
        (1e23, "9.9999999999999992e+22"),
        (9007199254740993.0, "9007199254740992"),
        (0.00012345678901234567, "0.00012345678901234567"),
        (333333333333333.3, "333333333333333.31"),
    ] {
        assert_eq!(format_f64_in_17_digits(number, &mut [0; F64_CHARS_MAX]), text.as_bytes());
    }
    let mut random = Random::new();
    for _ in 0..20_000 {
        let number = f64::from_bits(random.next());
        let mut buffer = [0; F64_CHARS_MAX];
        let text = str::from_utf8(format_f64_in_17_digits(number, &mut buffer)).unwrap();
        let read: f64 = text.parse().unwrap();
        assert!(read.to_bits() == number.to_bits() || number.is_nan(), "{number} is {text}");
    }
}

/// What Redis 7.0.15 makes of them as the bounds of ZRANGEBYSCORE.
#[test]
fn bounds_are_read_as_strtod_reads_them() {
    for (text, number) in [
        ("", 0.0),
        ("5", 5.0),
        (" 5", 5.0),
        ("\t\n\x0b\x0c\r1", 1.0),
        ("1e400", f64::INFINITY),
        ("-1e400", f64::NEG_INFINITY),
        ("1e-400", 0.0),
        ("0x10", 16.0),
        ("0x1p-3", 0.125),
        ("0x1p5000", f64::INFINITY),
        ("-0x1p5000", f64::NEG_INFINITY),
        ("0x1p-5000", 0.0),
        ("0x0p5000", 0.0),
        ("inf", f64::INFINITY),
        ("-INF", f64::NEG_INFINITY),
        ("+infinity", f64::INFINITY),
        ("1\0junk", 1.0),
        ("\0", 0.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("+5", 5.0),
    ] {
        assert_eq!(parse_f64_loosely(text.as_bytes()), Some(number), "{text:?}");
    }
    for text in ["5 ", "infinit", "nan", "-nan", "x", "1e", "1e+", ".", "--5", "0x", "1_000", "1,5", " ", "\u{661}"] {
        assert_eq!(parse_f64_loosely(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn integers_have_one_spelling() {
    for number in [0, 1, -1, 9, 10, 99, 100, -100, 12_345, i64::MAX, i64::MIN, i64::MIN + 1] {
        let text = number.to_string();
        assert_eq!(parse_i64(text.as_bytes()), Some(number));
        assert_eq!(format_i64(number, &mut [0; I64_CHARS_MAX]), text.as_bytes());
        assert!(is_canonical_i64(text.as_bytes()));
    }
    for text in [
        "",
        "-",
        "+1",
        " 1",
        "1 ",
        "01",
        "-01",
        "-0",
        "00",
        "1.0",
        "0x1",
        "1e3",
        "abc",
        "--1",
        "1-",
        "/",
        ":",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "99999999999999999999",
        "100000000000000000000",
        "1\0",
    ] {
        assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn unsigned_integers_use_all_bits() {
    assert_eq!(parse_u64(b"0"), Some(0));
    assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
    for text in ["18446744073709551616", "-1", "01", "", "1844674407370955161:", "999999999999999999999"] {
        assert_eq!(parse_u64(text.as_bytes()), None, "{text:?}");
    }
}

/// One wrong byte anywhere, in the eight-digit blocks and outside of them.
#[test]
fn every_byte_must_be_a_digit() {
    for len in 1..=20 {
        let text = &b"12345678901234567890"[..len];
        assert_eq!(parse_u64(text).map(|number| number.to_string().into_bytes()), Some(text.to_vec()));
        for at in 0..len {
            for byte in (0..=255).filter(|byte: &u8| !byte.is_ascii_digit()) {
                let mut text = text.to_vec();
                text[at] = byte;
                assert_eq!(parse_u64(&text), None, "{text:?}");
            }
        }
    }
}

#[test]
fn random_integers_round_trip() {
    let mut random = Random::new();
    for _ in 0..50_000 {
        let number = (random.next() as i64) >> random.below(64);
        let text = number.to_string();
        assert_eq!(format_i64(number, &mut [0; I64_CHARS_MAX]), text.as_bytes());
        assert_eq!(parse_i64(text.as_bytes()), Some(number));
    }
}

/// Checked against ZADD on Redis 7.0.15 and 8.0.2, which agree.
#[test]
fn doubles_are_read_as_redis_reads_them() {
    for (text, expected) in [
        ("0x10", 16.0),
        ("0x1p3", 8.0),
        ("0x1.8p1", 3.0),
        ("-0x.8", -0.5),
        ("0x1p-1074", 5e-324),
        ("0x1.fffffffffffffp1023", f64::MAX),
        ("0x1.00000000000008p0", 1.0),
        ("0x1.000000000000080000000000000000000000000001p0", 1.0 + f64::EPSILON),
        ("1e-310", 1e-310),
        ("inf", f64::INFINITY),
        ("+inf", f64::INFINITY),
        ("INFINITY", f64::INFINITY),
        ("-Inf", f64::NEG_INFINITY),
        ("+1", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("00012", 12.0),
        ("1e5", 100_000.0),
        ("1E+5", 100_000.0),
        ("0e999999999999999999999", 0.0),
        ("0.000e-9999", 0.0),
        ("0x0p9999999999999999999", 0.0),
    ] {
        assert_eq!(parse_f64(text.as_bytes()), Some(expected), "{text:?}");
    }
    assert!(parse_f64(b"-0").unwrap().is_sign_negative());
    for text in [
        "",
        " ",
        " 1",
        "1 ",
        ".",
        "1e",
        "1e+",
        "e5",
        "0x",
        "0x.",
        "0x1p",
        "nan",
        "NaN",
        "nan(1)",
        "-nan",
        "infinit",
        "1_0",
        "1\0",
        "1e400",
        "-1e400",
        "1e-400",
        "0x1p1024",
        "0x1p-1076",
        "0x1p99999999999999999999",
        "1,5",
        "--1",
        "١",
    ] {
        assert_eq!(parse_f64(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(parse_f64(b"\xff"), None);
}

fn printed(number: f64) -> String {
    String::from_utf8(format_f64(number, &mut [0; F64_CHARS_MAX]).to_vec()).unwrap()
}

/// Collected with ZSCORE from Redis 8.0.2.
#[test]
fn doubles_are_printed_as_redis_prints_them() {
    for (number, expected) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
        (3.0, "3"),
        (-3.25, "-3.25"),
        (0.1, "0.1"),
        (0.1 + 0.2, "0.30000000000000004"),
        (123.456, "123.456"),
        (1e15, "1000000000000000"),
        (-1e15, "-1000000000000000"),
        (1e17, "100000000000000000"),
        (123_456_789_012_345_680.0, "123456789012345680"),
        (4_611_686_018_427_387_904.0, "4611686018427387904"),
        (-4_611_686_018_427_387_904.0, "-4611686018427387904"),
        (4.7e18, "4.7e+18"),
        (-4.7e18, "-4.7e+18"),
        (1e20, "1e+20"),
        (1.5e22, "1.5e+22"),
        (12_345_678_901_234_567e6, "12345678901234568000000"),
        (1e100, "1e+100"),
        (0.0001, "0.0001"),
        (0.00001, "0.00001"),
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (2.5e-5, "0.000025"),
        (1.234567e-5, "1.234567e-5"),
        (1.234567e-4, "1.234567e-4"),
        (1.234567e-3, "0.001234567"),
        (1.2345678912345e-3, "0.0012345678912345"),
        (1e-310, "1e-310"),
        (5e-324, "5e-324"),
        (-f64::MAX, "-1.7976931348623157e+308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (12_345.678_901_234_567, "1.2345678901234567e+4"),
        (1_234.567_890_123_456_7, "1234.5678901234567"),
    ] {
        assert_eq!(printed(number), expected);
    }
}

#[test]
fn random_doubles_round_trip() {
    let mut random = Random::new();
    for _ in 0..50_000 {
        let number = match random.below(3) {
            0 => f64::from_bits(random.next()),
            1 => (random.next() >> 11) as f64 / (1_u64 << random.below(64)) as f64,
            _ => random.below(1_000_000) as f64 / *random.pick(&[1e1, 1e3, 1e5, 1e9]),
        };
        if !number.is_nan() {
            let text = printed(number);
            assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), Some(number.to_bits()), "{text}");
        }
    }
}
