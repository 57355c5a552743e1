//! Sums and refusals recorded from Redis, and the edges of the range.

use super::*;
use test_random::Random;

fn sum(a: &str, b: &str) -> String {
    let [a, b] = [a, b].map(|text| LongDouble::parse(text.as_bytes()).expect(text));
    String::from_utf8(a.add(b).format_human()).unwrap()
}

#[test]
fn seconds_in_milliseconds() {
    for (seconds, ms) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("1", Some(1000)),
        ("0.1", Some(100)),
        ("0.0001", Some(1)),
        ("1e-400", Some(1)),
        ("1.0001", Some(1001)),
        ("-0.0001", Some(0)),
        ("-0.0015", Some(-1)),
        ("-2.5", Some(-2500)),
        ("0x0.01p0", Some(4)),
        ("9223372036854775", Some(9_223_372_036_854_775_000)),
        ("9223372036854776", None),
        ("1e300", None),
        ("-1e300", None),
        ("inf", None),
    ] {
        let number = LongDouble::parse(seconds.as_bytes()).expect(seconds);
        assert_eq!(number.thousandfold_rounded_up(), ms, "{seconds}");
    }
}

/// SET the first, INCRBYFLOAT by the second: collected from Redis 7.0.15 and 8.0.2, which agree.
const SUMS: &[(&str, &str, &str)] = &[
    ("0.1", "0.2", "0.3"),
    ("10.50", "0.1", "10.6"),
    ("5.0e3", "2.0e2", "5200"),
    ("3", "1.1", "4.1"),
    ("1", "-1.1", "-0.1"),
    ("0", "0", "0"),
    ("-0", "-0", "0"),
    ("-0.0", "0", "0"),
    ("1e-17", "0", "0.00000000000000001"),
    ("5e-18", "0", "0"),
    ("4.9e-18", "0", "0"),
    ("-1e-30", "0", "0"),
    ("1.5", "-1.5", "0"),
    ("0.1", "-0.1", "0"),
    ("1e18", "0.1", "1000000000000000000.125"),
    ("1e19", "0.1", "10000000000000000000"),
    ("18446744073709551615", "0", "18446744073709551615"),
    ("18446744073709551615", "1", "18446744073709551616"),
    ("18446744073709551617", "0", "18446744073709551616"),
    ("36893488147419103233", "0", "36893488147419103232"),
    ("36893488147419103235", "0", "36893488147419103236"),
    ("9223372036854775807", "1", "9223372036854775808"),
    ("-9223372036854775808", "-1", "-9223372036854775809"),
    ("1e20", "1", "100000000000000000000"),
    ("1e22", "0", "10000000000000000000000"),
    ("1e30", "0", "1000000000000000000024696061952"),
    ("123456789012345678901234567890", "0.5", "123456789012345678899921813504"),
    ("3.14159265358979323846", "2.71828182845904523536", "5.85987448204883847"),
    ("0x1.8p3", "0x10", "28"),
    ("0x.1", "-0x1p-4", "0"),
    (
        "1e100",
        "1",
        "9999999999999999999669353532207342619498699019828496079271391541752018669482644324418977840117055488",
    ),
    (
        "1.7976931348623157e308",
        "0",
        "179769313486231569995921046774104434048386446944329178485314420765176628523124396354701868608387085564428793419425520689308708363451136055357897278026477617073498977686288394835618163294045594434929537447290627480669417384648879122776218333598953852832103282504751611691208117720159985926376802466863339536384",
    ),
    ("1.", "0", "1"),
    (".5", "+.5", "1"),
    ("00012.50", "0", "12.5"),
    ("1E3", "1e+3", "2000"),
    ("99999999999999999.999999999999999999", "0", "100000000000000000"),
    ("0.99999999999999999999", "0", "1"),
    ("0.000000000000000005", "0", "0"),
    ("0.000000000000000015", "0", "0.00000000000000002"),
    ("12345.678901234567890123", "0", "12345.6789012345678902"),
    ("1e-400", "1", "1"),
    ("3.6e-4951", "0", "0"),
    ("0x1p-16445", "0x1p-16445", "0"),
    ("1000000.1", "-0.1", "1000000"),
    ("33.3333333333333333", "66.6666666666666666", "99.9999999999999999"),
    ("0.30000000000000004", "0", "0.30000000000000004"),
    ("1e16", "0.0005", "10000000000000000.0009765625"),
    ("17179869184.00001", "0", "17179869184.00001000054180622"),
    ("2.5", "0.00000000000000000", "2.5"),
    ("-5", "4.999999999999999999", "0"),
    ("-5", "4.9999999999999999999", "0"),
];

#[test]
fn redis_agrees_on_fixed_sums() {
    for &(a, b, expected) in SUMS {
        assert_eq!(sum(a, b), expected, "{a} + {b}");
    }
}

/// A line is `SET` value, `INCRBYFLOAT` value and the reply of Redis 7.0.15, for random texts: 64 and 65 significant
/// bits, exactly half-way between two long doubles or just above it, decimal and hexadecimal.
#[test]
fn redis_agrees_on_random_sums() {
    let lines = include_str!("sums.txt").lines();
    assert!(lines.clone().count() >= 100);
    for line in lines {
        let [a, b, expected] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("three words: {line}") };
        assert_eq!(sum(a, b), expected, "{a} + {b}");
    }
}

/// The addend is half a unit of the sum's last bit, or differs from that only in bits that fall off when it is aligned.
/// From Redis 7.0.15.
#[test]
fn adding_rounds_ties_to_even() {
    for (a, b, expected) in [
        ("0x8000000000000000", "0x0.8p0", "9223372036854775808"),
        ("0x8000000000000000", "0x0.8000000000000001p0", "9223372036854775809"),
        ("0x8000000000000001", "0x0.8p0", "9223372036854775810"),
        ("0x8000000000000001", "0x0.7fffffffffffffffp0", "9223372036854775809"),
        ("0x8000000000000002", "-0x0.8p0", "9223372036854775810"),
        ("0x8000000000000002", "-0x0.8000000000000001p0", "9223372036854775809"),
        ("0x8000000000000001", "-0x0.8000000000000001p0", "9223372036854775808"),
        ("0x8000000000000003", "-0x0.7fffffffffffffffp0", "9223372036854775811"),
        ("-0x8000000000000002", "0x0.8000000000000001p0", "-9223372036854775809"),
    ] {
        assert_eq!(sum(a, b), expected, "{a} + {b}");
    }
}

/// Multiples of 2^-18 have 18 decimals, the last one a 5. From Redis 7.0.15.
#[test]
fn printing_rounds_ties_to_even() {
    for (number, expected) in [
        ("0x1p-18", "0.00000381469726562"),
        ("0x3p-18", "0.00001144409179688"),
        ("-0x5p-18", "-0.00001907348632812"),
        ("0x7p-18", "0.00002670288085938"),
        ("0x200000001p-18", "32768.00000381469726562"),
    ] {
        assert_eq!(sum(number, "0"), expected);
    }
}

#[test]
fn what_redis_refuses_is_refused() {
    for text in [
        "",
        " ",
        " 1",
        "1 ",
        "-",
        "+",
        ".",
        "1e",
        "1e+",
        "e5",
        ".e1",
        "0x",
        "0x.p1",
        "0x1p",
        "nan",
        "nan(12)",
        "infinit",
        "1..2",
        "++1",
        "1e5x",
        "1\0",
        "1e4933",
        "-1e4933",
        "0x1p16384",
        "1e-4951",
        "1.8e-4951",
        "0x1p-16446",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "1.18973149535723176509e4932",
    ] {
        assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(LongDouble::parse(&[b'9'; TEXT_BYTES_MAX]), None, "overflow");
    assert!(LongDouble::parse(&[b'0'; TEXT_BYTES_MAX]).is_some());
    assert_eq!(LongDouble::parse(&[b'0'; TEXT_BYTES_MAX + 1]), None, "too long");
}

#[test]
fn the_edges_of_the_range_are_exact() {
    let bits = |text: &str| match LongDouble::parse(text.as_bytes()).expect(text).magnitude {
        Magnitude::Finite { exponent, mantissa } => (exponent, mantissa),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(bits("1.18973149535723176502e4932"), (EXPONENT_MAX, u64::MAX));
    assert_eq!(bits("3.6451995318824746025e-4951"), (EXPONENT_MIN, 1));
    assert_eq!(bits("1.9e-4951"), (EXPONENT_MIN, 1));
    assert_eq!(bits("0x1.8p-16446"), (EXPONENT_MIN, 1));
    assert_eq!(bits("3.3621031431120935063e-4932"), (EXPONENT_MIN, 1 << 63));
    assert_eq!(bits("0x1p-16382"), (EXPONENT_MIN, 1 << 63));
    assert_eq!(bits("0"), (EXPONENT_MIN, 0));
    assert_eq!(bits("1"), (-63, 1 << 63));
    assert_eq!(sum("1.18973149535723176502e4932", "1e4900").len(), 4_933);
}

#[test]
fn infinity_and_nan_are_noticed() {
    let parse = |text: &str| LongDouble::parse(text.as_bytes()).unwrap();
    let (infinite, largest) = (parse("Infinity"), parse("1.18973149535723176502e4932"));
    assert!(infinite.is_nan_or_infinite());
    assert!(infinite.add(parse("1")).is_nan_or_infinite());
    assert!(infinite.add(parse("-inf")).is_nan_or_infinite());
    assert!(largest.add(largest).is_nan_or_infinite());
    assert!(!largest.add(parse("1")).is_nan_or_infinite());
    assert_eq!(parse("1").add(parse("-inf")).format_human(), b"-inf");
    assert_eq!(infinite.add(parse("-inf")).format_human(), b"nan");
}

#[test]
fn integers_convert_exactly() {
    for number in [0, 1, -1, i64::MAX, i64::MIN, 1 << 53 | 1] {
        let text = number.to_string();
        assert_eq!(LongDouble::from(number), LongDouble::parse(text.as_bytes()).unwrap());
        assert_eq!(LongDouble::from(number).format_human(), text.as_bytes());
    }
}

/// Both conversions must agree wherever both apply.
#[test]
fn the_fast_and_the_general_conversion_agree() {
    let mut random = Random::new();
    for _ in 0..20_000 {
        let text = format!(
            "{}.{:0width$}e{}",
            random.next() >> random.below(64),
            random.next() >> random.below(64),
            random.below(9) as i32 - 4,
            width = random.below(20),
        );
        let decimal = Decimal::parse(text.as_bytes()).unwrap();
        if decimal.whole.len() + decimal.fraction.len() > 38 || decimal.number() == 0 {
            continue;
        }
        if let Some(fast) = decimal.to_binary_fast(decimal.number()) {
            let general = decimal.to_binary_general();
            assert_eq!(fast.round(PRECISION, EXPONENT_MIN), general.round(PRECISION, EXPONENT_MIN), "{text}");
        }
    }
}

#[test]
fn no_text_panics() {
    let mut random = Random::new();
    for _ in 0..50_000 {
        let text = random.bytes(12, b"0123456789.eE+-xXpPinfa \0\xff");
        if let Some(number) = LongDouble::parse(&text) {
            let printed = number.format_human();
            let again = LongDouble::parse(&printed).expect("what we print we can read");
            assert_eq!(again.format_human(), printed);
        }
    }
}

#[test]
fn doubles_are_taken_over_exactly() {
    for (number, printed) in [
        (0.0, "0"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (-179.999_997_317_790_99, "-179.99999731779098511"),
        // Halfway between two texts of 17 decimals: the even one.
        (1.0 / 262_144.0, "0.00000381469726562"),
        (3.0 / 262_144.0, "0.00001144409179688"),
        (f64::MIN_POSITIVE / 4.0, "0"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
    ] {
        assert_eq!(String::from_utf8(LongDouble::from(number).format_human()).unwrap(), printed, "{number:e}");
    }
    let mut random = Random::new();
    for _ in 0..2_000 {
        let number = f64::from_bits(random.next() >> 1);
        if number.is_finite() {
            // No double has more decimals.
            let text = format!("{number:.1080}");
            assert_eq!(LongDouble::parse(text.as_bytes()), Some(LongDouble::from(number)), "{number:e}");
        }
    }
}

#[test]
fn numbers_are_ordered() {
    let ascending = [
        "-inf",
        "-1e4932",
        "-2.5",
        "-2",
        "-1e-4940",
        "0",
        "1e-4940",
        "1e-5",
        "1",
        "1.0000000000000000001",
        "2",
        "1e4932",
        "inf",
    ];
    let mut numbers = ascending.map(|text| LongDouble::parse(text.as_bytes()).expect(text)).to_vec();
    numbers.insert(1, LongDouble::MIN);
    numbers.insert(numbers.len() - 1, LongDouble::MAX);
    for (at, number) in numbers.iter().enumerate() {
        for (other_at, other) in numbers.iter().enumerate() {
            assert_eq!(number.partial_cmp(other), Some(at.cmp(&other_at)), "{number:?} and {other:?}");
        }
        assert_eq!(number.negated().negated(), *number);
    }
    let (zero, one) = (LongDouble::ZERO, LongDouble::ONE);
    assert_eq!(zero.partial_cmp(&zero.negated()), Some(Ordering::Equal));
    assert_eq!((zero.format_human(), one.format_human()), (b"0".to_vec(), b"1".to_vec()));
    let infinite = LongDouble::parse(b"inf").expect("it is a number");
    assert_eq!(infinite.add(infinite.negated()).partial_cmp(&zero), None);
    assert!(LongDouble::MAX.add(LongDouble::MAX).is_nan_or_infinite());
    assert_eq!(LongDouble::MAX.add(LongDouble::MIN).partial_cmp(&zero), Some(Ordering::Equal));
}
