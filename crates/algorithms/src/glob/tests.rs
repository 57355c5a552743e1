//! Patterns against a plain matcher, and what Redis does with odd ones.

use super::*;
use test_random::Random;

/// Rows collected from Redis 7.0.15 and 8.0.2 (KEYS for a keyspace that holds just the text).
const WITH_CASE: &[(&[u8], &[u8], bool)] = &[
    // Not compared with Redis: KEYS has a fast path for this pattern.
    (b"*", b"", false),
    (b"", b"", true),
    (b"**", b"", false),
    (b"***", b"", false),
    (b"", b"a", false),
    (b"*", b"a", true),
    (b"a*", b"a", true),
    (b"a**", b"a", true),
    (b"*a", b"a", true),
    (b"a?", b"a", false),
    (b"?", b"a", true),
    (b"h?llo", b"hello", true),
    (b"h*llo", b"heeeello", true),
    (b"h*llo", b"hllo", true),
    (b"h*l?o", b"hello", true),
    (b"*.jpg.*", b"a.jpg.b.jpg", true),
    (b"*.jpg", b"a.jpg.b", false),
    (b"h[ae]llo", b"hallo", true),
    (b"h[ae]llo", b"hillo", false),
    (b"h[^e]llo", b"hallo", true),
    (b"h[^e]llo", b"hello", false),
    (b"h[a-b]llo", b"hbllo", true),
    (b"h[b-a]llo", b"hallo", true),
    (b"h[a-b]llo", b"hcllo", false),
    (b"[a-]", b"-", false),
    (b"[a-]", b"a", true),
    (b"[a-]", b"_", true),
    (b"[a-z-9]", b"-", true),
    (b"[]", b"]", false),
    (b"[]a]", b"a]", false),
    (b"[^]", b"a", true),
    (b"[^]", b"^", true),
    (b"[\\]]", b"]", true),
    (b"[\\", b"\\", true),
    (b"[", b"[", false),
    (b"[", b"a", false),
    (b"[^", b"a", true),
    (b"[a", b"a", true),
    (b"[a", b"b", false),
    (b"[a-", b"-", true),
    (b"[a-z", b"q", true),
    (b"[^a", b"b", true),
    (b"*[a", b"bba", true),
    (b"\\", b"\\", true),
    (b"\\*", b"*", true),
    (b"\\*", b"a", false),
    (b"a\\", b"a\\", true),
    (b"\\a", b"a", true),
    (b"A", b"a", false),
    (b"*?", b"a", true),
    (b"*?*?*", b"a", false),
    (b"*?*?*", b"ab", true),
    (b"*ab*ab*ab", b"ababab", true),
    (b"*ab*ab*ab", b"abab", false),
    // Signed comparison: 0x01..0xff is really -1..1, and 0x80..0x7f is everything.
    (b"[\x01-\xff]", b"@", false),
    (b"[\x01-\xff]", b"\xff", true),
    (b"[\x80-\x7f]", b"@", true),
    (b"[a-\xff]", b"b", false),
    (b"[a-\xff]", b"Z", true),
];

#[test]
fn redis_agrees_on_fixed_patterns() {
    for &(pattern, text, expected) in WITH_CASE {
        assert_eq!(
            matches(pattern, text, false),
            expected,
            "{:?} on {:?}",
            pattern.escape_ascii().to_string(),
            text.escape_ascii().to_string()
        );
    }
}

#[test]
fn case_can_be_ignored() {
    for (pattern, text, expected) in [
        (&b"HELLO*"[..], &b"hello world"[..], true),
        (b"[A-C]x", b"bX", true),
        (b"[a-Z]", b"b", false),
        (b"[\\A]", b"a", false),
        (b"[\\a]", b"a", true),
        (b"[A]", b"a", true),
        (b"\\A", b"a", true),
        (b"\xc0", b"\xe0", false),
    ] {
        assert_eq!(matches(pattern, text, true), expected, "{pattern:?} on {text:?}");
    }
}

#[test]
fn abusive_patterns_are_cheap_and_flat() {
    let text = vec![b'a'; 100_000];
    let mut pattern = b"a*".repeat(50_000);
    assert!(matches(&pattern, &text, false));
    pattern.push(b'b');
    assert!(!matches(&pattern, &text, false));
    assert!(matches(&vec![b'*'; 1_000_000], &text, false));
    // The pattern of CVE-2022-36021, which took Redis exponential time.
    assert!(!matches(&[&b"a*".repeat(30)[..], b"b"].concat(), &text[..1000], false));
}

#[test]
fn no_input_panics() {
    let alphabet = b"ab*?[]^-\\\0\xff";
    let mut random = Random::new();
    for _ in 0..50_000 {
        let pattern = random.bytes(9, alphabet);
        let text = random.bytes(7, alphabet);
        matches(&pattern, &text, false);
        matches(&pattern, &text, true);
    }
}

/// The rules as Redis applies them, element by element: what compiled patterns are compared with.
mod plain {
    use super::super::in_range;

    pub(super) fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
        if text.is_empty() {
            return pattern.is_empty();
        }

        let (mut p, mut t) = (0, 0);
        // Where to resume when the part after the last `*` does not fit: that part, and the text it was last tried on.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let fits = match pattern.get(p) {
                None if t == text.len() => return true,
                None => None,
                Some(_) if t == text.len() => {
                    if pattern[p..].iter().all(|&byte| byte == b'*') {
                        return true;
                    }
                    None
                }
                Some(b'*') => {
                    while pattern.get(p) == Some(&b'*') {
                        p += 1;
                    }
                    if p == pattern.len() {
                        return true;
                    }
                    let Some(start) = next_start(pattern[p], text, t, nocase) else {
                        return false;
                    };
                    t = start;
                    retry = Some((p, t));
                    continue;
                }
                Some(_) => match_one(pattern, p, text[t], nocase),
            };
            match (fits, retry) {
                (Some(next), _) => {
                    p = next;
                    t += 1;
                }
                (None, Some((after_star, tried))) => {
                    let Some(start) = next_start(pattern[after_star], text, tried + 1, nocase) else {
                        return false;
                    };
                    p = after_star;
                    t = start;
                    retry = Some((p, t));
                }
                (None, None) => return false,
            }
        }
    }

    /// Where the part of a pattern that follows a `*` can start to match, at `from` or later; `first` is its first
    /// byte. A `*` is only ever tried on text that is not empty, so there is no start at the very end.
    #[inline]
    fn next_start(first: u8, text: &[u8], from: usize, nocase: bool) -> Option<usize> {
        let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
        let skip = match first {
            b'?' | b'[' | b'\\' => 0,
            literal => rest.iter().position(|&byte| same(literal, byte, nocase))?,
        };
        Some(from + skip)
    }

    /// Matches the element of `pattern` at `p`, which is not a `*`, with one byte; returns where the next element
    /// starts.
    #[inline]
    fn match_one(pattern: &[u8], p: usize, byte: u8, nocase: bool) -> Option<usize> {
        match pattern[p] {
            b'?' => Some(p + 1),
            b'[' => match_class(pattern, p + 1, byte, nocase),
            // A backslash that ends the pattern stands for itself.
            b'\\' if p + 1 < pattern.len() => same(pattern[p + 1], byte, nocase).then_some(p + 2),
            literal => same(literal, byte, nocase).then_some(p + 1),
        }
    }

    /// Matches the class whose first byte after `[` is at `p`.
    fn match_class(pattern: &[u8], mut p: usize, byte: u8, nocase: bool) -> Option<usize> {
        let negated = pattern.get(p) == Some(&b'^');
        if negated {
            p += 1;
        }
        let mut found = false;
        loop {
            match &pattern[p..] {
                [] => break,
                [b'\\', escaped, ..] => {
                    found |= *escaped == byte;
                    p += 2;
                }
                [b']', ..] => {
                    p += 1;
                    break;
                }
                [first, b'-', last, ..] => {
                    found |= in_range(*first, *last, byte, nocase);
                    p += 3;
                }
                [literal, ..] => {
                    found |= same(*literal, byte, nocase);
                    p += 1;
                }
            }
        }
        (found != negated).then_some(p)
    }

    #[inline]
    fn same(a: u8, b: u8, nocase: bool) -> bool {
        a == b || (nocase && a.eq_ignore_ascii_case(&b))
    }
}

#[test]
fn compiled_patterns_agree_with_the_rules() {
    let mut random = Random::new();
    for round in 0..150_000 {
        let alphabet: &[u8] = if round % 2 == 0 { b"aAb*?[]^-\\" } else { b"abcABC**??[[]]^-\\\0\xff\x80z" };
        let pattern = random.bytes(12, alphabet);
        let text = random.bytes(14, if round % 3 == 0 { alphabet } else { b"aAb" });
        for nocase in [false, true] {
            assert_eq!(
                matches(&pattern, &text, nocase),
                plain::matches(&pattern, &text, nocase),
                "{:?} on {:?}, {nocase}",
                pattern.escape_ascii().to_string(),
                text.escape_ascii().to_string()
            );
        }
    }
}

#[test]
fn long_parts_agree_with_the_rules() {
    let mut random = Random::new();
    for _ in 0..300 {
        let mut pattern = b"*".to_vec();
        pattern.extend((0..random.below(150)).flat_map(|_| [&b"a"[..], b"?", b"[ab]", b"b"][random.below(4)].to_vec()));
        pattern.extend_from_slice(b"*a?*");
        let text: Vec<u8> = (0..2000).map(|_| b"aaaB"[random.below(4)]).collect();
        for nocase in [false, true] {
            assert_eq!(matches(&pattern, &text, nocase), plain::matches(&pattern, &text, nocase));
        }
    }
}

#[test]
fn a_class_is_looked_at_once() {
    // A megabyte of class, and a megabyte of ranges: tried at every place of every text this would take hours.
    let literals = [b"*[".as_slice(), &b"abc".repeat(350_000), b"]x*"].concat();
    let ranges: Vec<u8> = (0..350_000u32).flat_map(|n| [(n % 90) as u8 + 1, b'-', (n / 90 % 90) as u8 + 1]).collect();
    let ranges = [b"*[".as_slice(), &ranges, b"]x*"].concat();
    let text = vec![b'c'; 100_000];
    for pattern in [literals, ranges] {
        let pattern = Pattern::new(&pattern, false);
        assert!(pattern.program.len() < 100);
        for _ in 0..100 {
            assert!(!pattern.matches(&text));
        }
    }
}

#[test]
fn long_parts_are_searched_for_in_one_pass() {
    // At every place, all but the last element fit.
    let text = vec![b'a'; 400_000];
    let run = [b"*".as_slice(), &vec![b'a'; 200_000], b"b*"].concat();
    assert!(!matches(&run, &text, false));
    let mixed = [b"*?".as_slice(), &vec![b'a'; 5_000], b"b*"].concat();
    assert!(!matches(&mixed, &text, false));
}
