//! Redis's glob patterns, as KEYS, SCAN MATCH, PSUBSCRIBE, ACL key rules and CONFIG GET use them.
//! Knows nothing of keys or channels, and nothing of UTF-8: patterns and texts are bytes.
//!
//! The rules follow Redis to the bit, quirks included, because a pattern that selects one key more here than there
//! is a data bug in somebody's clean-up script. The quirks worth knowing:
//! - an empty text matches only the empty pattern, not `*` (KEYS answers `*` without asking the matcher);
//! - a class that is never closed ends where the pattern ends: `[ab` is `[ab]`, and `[` matches nothing;
//! - bytes in a range compare as *signed* characters, as they do in Redis on x86;
//! - without case, a range is put in order first and lowered second, and an escaped byte in a class keeps its case.

/// Whether `pattern` matches all of `text`.
///
/// Redis recurses at every `*` and gives up early through a shared flag; here it is a loop that remembers only the
/// last `*`. That gives the same answers: once the rest of the pattern has been reached, a longer match for an earlier
/// `*` can only leave less text to match it with. So the stack is flat whatever the pattern, and the time is at most
/// `text` times the longest run between two stars. (Since 7.2.6 Redis spares its own stack by matching nothing with
/// more than a thousand stars; here such a pattern simply works.)
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
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

/// Where the part of a pattern that follows a `*` can start to match, at `from` or later; `first` is its first byte.
/// A `*` is only ever tried on text that is not empty, so there is no start at the very end.
#[inline]
fn next_start(first: u8, text: &[u8], from: usize, nocase: bool) -> Option<usize> {
    let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
    let skip = match first {
        b'?' | b'[' | b'\\' => 0,
        literal => rest.iter().position(|&byte| same(literal, byte, nocase))?,
    };
    Some(from + skip)
}

/// Matches the element of `pattern` at `p`, which is not a `*`, with one byte; answers where the next element starts.
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

fn in_range(first: u8, last: u8, byte: u8, nocase: bool) -> bool {
    let (mut first, mut last) = (first, last);
    // Order first, lower second: without case `[a-Z]` becomes `[z-a]`, which is empty. Redis does that.
    if (first as i8) > (last as i8) {
        std::mem::swap(&mut first, &mut last);
    }
    if nocase {
        (c_tolower(first)..=c_tolower(last)).contains(&c_tolower(byte))
    } else {
        (first as i8..=last as i8).contains(&(byte as i8))
    }
}

#[inline]
fn same(a: u8, b: u8, nocase: bool) -> bool {
    a == b || (nocase && a.eq_ignore_ascii_case(&b))
}

/// glibc's `tolower` of a signed character in the C locale. Its table answers bytes above 127 as unsigned, all but
/// 0xff, which is also EOF and stays -1.
fn c_tolower(byte: u8) -> i32 {
    if byte == 0xff { -1 } else { byte.to_ascii_lowercase().into() }
}

#[cfg(test)]
mod tests {
    use super::super::test_random::Random;
    use super::*;

    /// Rows collected from Redis 7.0.15 and 8.0.2 (KEYS for a keyspace that holds just the text).
    const WITH_CASE: &[(&[u8], &[u8], bool)] = &[
        // Not asked of Redis: KEYS takes a short cut for this one pattern.
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
}
