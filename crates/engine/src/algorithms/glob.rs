//! Redis's glob patterns, as KEYS, SCAN MATCH, PSUBSCRIBE, ACL key rules and CONFIG GET use them.
//! Knows nothing of keys or channels, and nothing of UTF-8: patterns and texts are bytes.
//!
//! The rules follow Redis to the bit, quirks included, because a pattern that selects one key more here than there is a
//! data bug in a user's clean-up script. The quirks worth knowing:
//! - an empty text matches only the empty pattern, not `*` (KEYS answers `*` without asking the matcher);
//! - a class that is never closed ends where the pattern ends: `[ab` is `[ab]`, and `[` matches nothing;
//! - bytes in a range compare as *signed* characters, as they do in Redis on x86;
//! - without case, a range is put in order first and lowered second, and an escaped byte in a class keeps its case.

//!
//! A pattern is compiled once and then matched with many texts. Every element but `*` stands for exactly one byte, so the
//! part before the first `*` is compared with the beginning of a text, the part behind the last `*` with its end, and those
//! between are searched for one after the other: once a part is found, a later place for it could only leave less text for
//! the rest. So there is no recursion and nothing is tried twice. (Since 7.2.6 Redis spares its stack by matching nothing with
//! more than a thousand stars; here such a pattern simply works.)

use memchr::memmem;

/// A compiled pattern. It takes about as many bytes as its text, and at most nine times as many (all small classes).
pub struct Pattern {
    /// One instruction after the other: see `op`.
    program: Vec<u8>,
    /// How many bytes a text has at least: one for each element that is not a `*`.
    bytes_min: usize,
    /// Where the program's first `*` and what follows its last one are; `None` without a `*`.
    stars: Option<Stars>,
    nocase: bool,
    /// It has a class of no bytes, so nothing matches it.
    never: bool,
}

struct Stars {
    first: usize,
    /// The part behind the last `*`, and how many bytes of text it takes.
    tail: usize,
    tail_bytes: usize,
}

/// The instructions of a program.
mod op {
    pub(super) const STAR: u8 = 0;
    /// Any one byte.
    pub(super) const ANY: u8 = 1;
    /// These bytes: four bytes of length, and the bytes.
    pub(super) const RUN: u8 = 2;
    /// One byte of a set of 256 bits.
    pub(super) const SET: u8 = 3;
}

const SET_BYTES: usize = 32;
/// The longest run of one instruction: longer ones take several.
const RUN_MAX: usize = u32::MAX as usize;

/// Work, in bytes of text times elements, beyond which a part with `?` or classes is searched for bit by bit rather than
/// tried at every place; and the longest part for which that is done, since it takes 32 bytes for each element.
const TRIES_MAX: usize = 1 << 14;
const BITWISE_MAX: usize = 1 << 16;

/// One instruction, decoded.
enum Step<'a> {
    Star,
    Any,
    Run(&'a [u8]),
    Set(&'a [u8]),
}

impl Pattern {
    pub fn new(pattern: &[u8], nocase: bool) -> Pattern {
        let mut writer = Writer::default();
        let mut never = false;
        let mut p = 0;
        while p < pattern.len() {
            match pattern[p] {
                b'*' => {
                    p += 1;
                    writer.star();
                }
                b'?' => {
                    p += 1;
                    writer.any();
                }
                b'[' => {
                    let (set, next) = class(pattern, p + 1, nocase);
                    p = next;
                    never |= set == [0; SET_BYTES];
                    writer.set(&set);
                }
                // A backslash that ends the pattern stands for itself.
                b'\\' if p + 1 < pattern.len() => {
                    writer.literal(pattern[p + 1]);
                    p += 2;
                }
                literal => {
                    writer.literal(literal);
                    p += 1;
                }
            }
        }
        writer.finish(nocase, never)
    }

    /// Whether it matches all of `text`.
    pub fn matches(&self, text: &[u8]) -> bool {
        if text.is_empty() {
            return self.program.is_empty();
        }
        if self.never || text.len() < self.bytes_min {
            return false;
        }
        let Some(stars) = &self.stars else {
            return text.len() == self.bytes_min && self.fits(0, self.program.len(), text);
        };
        // There is enough text for both ends, as there is for the whole.
        let (rest, tail) = text.split_at(text.len() - stars.tail_bytes);
        if !self.fits(0, stars.first, rest) || !self.fits(stars.tail, self.program.len(), tail) {
            return false;
        }
        let head_bytes = self.part_bytes(0, stars.first);
        self.find_parts(stars, &rest[head_bytes..])
    }

    /// Whether the parts between stars are in `text`, one behind the other.
    fn find_parts(&self, stars: &Stars, mut text: &[u8]) -> bool {
        let mut from = stars.first + 1;
        while from < stars.tail {
            let to = self.next_star(from);
            let found = match self.step(from) {
                (Step::Run(run), next) if next == to && !self.nocase => {
                    memmem::find(text, run).map(|at| at + run.len())
                }
                _ => self.find_part(from, to, text),
            };
            let Some(end) = found else { return false };
            text = &text[end..];
            from = to + 1;
        }
        true
    }

    /// Where the first match of the part `from..to` of the program in `text` ends.
    fn find_part(&self, from: usize, to: usize, text: &[u8]) -> Option<usize> {
        let bytes = self.part_bytes(from, to);
        let places = (text.len() + 1).checked_sub(bytes)?;
        if bytes <= BITWISE_MAX && bytes.saturating_mul(places) > TRIES_MAX {
            return self.find_bitwise(from, to, bytes, text);
        }
        (0..places).find(|at| self.fits(from, to, &text[*at..])).map(|at| at + bytes)
    }

    /// Finds a part in one pass over the text (Shift-And): bit n of `reached` says that the last n + 1 bytes match the
    /// first n + 1 elements.
    fn find_bitwise(&self, from: usize, to: usize, bytes: usize, text: &[u8]) -> Option<usize> {
        let words = bytes.div_ceil(64);
        // For each byte, the elements that it fits.
        let mut fits = vec![0u64; 256 * words];
        let mut add = |byte: u8, element: usize| fits[byte as usize * words + element / 64] |= 1 << (element % 64);
        let (mut at, mut element) = (from, 0);
        while at < to {
            let (step, next) = self.step(at);
            match step {
                Step::Star => unreachable!("a part has no stars"),
                Step::Any => (0..=255).for_each(|byte| add(byte, element)),
                Step::Set(set) => (0..=255).filter(|byte| has(set, *byte)).for_each(|byte| add(byte, element)),
                Step::Run(run) => {
                    for (offset, byte) in run.iter().enumerate() {
                        add(*byte, element + offset);
                        if self.nocase {
                            add(byte.to_ascii_uppercase(), element + offset);
                            add(byte.to_ascii_lowercase(), element + offset);
                        }
                    }
                }
            }
            element += step.bytes();
            at = next;
        }
        let mut reached = vec![0u64; words];
        let last = 1 << ((bytes - 1) % 64);
        for (at, byte) in text.iter().enumerate() {
            let fits = &fits[*byte as usize * words..][..words];
            let mut carry = 1;
            for (word, fits) in reached.iter_mut().zip(fits) {
                let shifted = *word << 1 | carry;
                carry = *word >> 63;
                *word = shifted & fits;
            }
            if reached[words - 1] & last != 0 {
                return Some(at + 1);
            }
        }
        None
    }

    /// Whether the part `from..to` of the program matches the beginning of `text`.
    #[inline]
    fn fits(&self, from: usize, to: usize, text: &[u8]) -> bool {
        let (mut at, mut rest) = (from, text);
        while at < to {
            let (step, next) = self.step(at);
            let Some((here, behind)) = rest.split_at_checked(step.bytes()) else { return false };
            let is_good = match step {
                Step::Star | Step::Any => true,
                Step::Run(run) if self.nocase => run.eq_ignore_ascii_case(here),
                Step::Run(run) => run == here,
                Step::Set(set) => has(set, here[0]),
            };
            if !is_good {
                return false;
            }
            (at, rest) = (next, behind);
        }
        true
    }

    /// How many bytes of text a part of the program takes.
    fn part_bytes(&self, from: usize, to: usize) -> usize {
        let (mut at, mut bytes) = (from, 0);
        while at < to {
            let (step, next) = self.step(at);
            bytes += step.bytes();
            at = next;
        }
        bytes
    }

    /// Where the next `*` is.
    fn next_star(&self, from: usize) -> usize {
        let mut at = from;
        while let (Step::Any | Step::Run(_) | Step::Set(_), next) = self.step(at) {
            at = next;
        }
        at
    }

    /// The instruction at `at`, and where the next one is.
    #[inline]
    fn step(&self, at: usize) -> (Step<'_>, usize) {
        let operands = &self.program[at + 1..];
        match self.program[at] {
            op::STAR => (Step::Star, at + 1),
            op::ANY => (Step::Any, at + 1),
            op::RUN => {
                let (len, run) = operands.split_first_chunk().expect("a run begins with its length");
                let len = u32::from_le_bytes(*len) as usize;
                (Step::Run(&run[..len]), at + 5 + len)
            }
            _ => (Step::Set(&operands[..SET_BYTES]), at + 1 + SET_BYTES),
        }
    }
}

impl Step<'_> {
    /// How many bytes of text it takes.
    #[inline]
    fn bytes(&self) -> usize {
        match self {
            Step::Star => 0,
            Step::Any | Step::Set(_) => 1,
            Step::Run(run) => run.len(),
        }
    }
}

/// Writes a program.
#[derive(Default)]
struct Writer {
    program: Vec<u8>,
    /// Where the length of the run is that is being written.
    run: Option<usize>,
    bytes: usize,
    stars: Option<Stars>,
}

impl Writer {
    fn star(&mut self) {
        self.run = None;
        let at = self.program.len();
        match &mut self.stars {
            // Two in a row are as good as one.
            Some(stars) if stars.tail == at => return,
            Some(stars) => (stars.tail, stars.tail_bytes) = (at + 1, self.bytes),
            None => self.stars = Some(Stars { first: at, tail: at + 1, tail_bytes: self.bytes }),
        }
        self.program.push(op::STAR);
    }

    fn any(&mut self) {
        self.run = None;
        self.bytes += 1;
        self.program.push(op::ANY);
    }

    fn set(&mut self, set: &[u8; SET_BYTES]) {
        self.run = None;
        self.bytes += 1;
        self.program.push(op::SET);
        self.program.extend_from_slice(set);
    }

    fn literal(&mut self, byte: u8) {
        self.bytes += 1;
        let at = match self.run {
            Some(at) if self.program.len() - at - 4 < RUN_MAX => at,
            _ => {
                self.program.push(op::RUN);
                self.program.extend_from_slice(&[0; 4]);
                self.program.len() - 4
            }
        };
        self.run = Some(at);
        self.program.push(byte);
        let len = (self.program.len() - at - 4) as u32;
        self.program[at..at + 4].copy_from_slice(&len.to_le_bytes());
    }

    fn finish(mut self, nocase: bool, never: bool) -> Pattern {
        if let Some(stars) = &mut self.stars {
            // Until here it was how many bytes came before.
            stars.tail_bytes = self.bytes - stars.tail_bytes;
        }
        self.program.shrink_to_fit();
        Pattern { program: self.program, bytes_min: self.bytes, stars: self.stars, nocase, never }
    }
}

/// The bytes of the class whose first byte after `[` is at `p`, and where the next element is.
fn class(pattern: &[u8], mut p: usize, nocase: bool) -> ([u8; SET_BYTES], usize) {
    let is_negated = pattern.get(p) == Some(&b'^');
    p += usize::from(is_negated);
    let mut set = [0; SET_BYTES];
    // Ranges that are in the set already: of a million there are at most 65,536 different ones.
    let mut ranges = RangesSeen::default();
    loop {
        match &pattern[p..] {
            [] => break,
            [b'\\', escaped, ..] => {
                add(&mut set, *escaped);
                p += 2;
            }
            [b']', ..] => {
                p += 1;
                break;
            }
            [first, b'-', last, ..] => {
                if ranges.is_new(*first, *last) {
                    (0..=255)
                        .filter(|byte| in_range(*first, *last, *byte, nocase))
                        .for_each(|byte| add(&mut set, byte));
                }
                p += 3;
            }
            [literal, ..] => {
                add(&mut set, *literal);
                if nocase {
                    add(&mut set, literal.to_ascii_lowercase());
                    add(&mut set, literal.to_ascii_uppercase());
                }
                p += 1;
            }
        }
    }
    if is_negated {
        set.iter_mut().for_each(|bits| *bits = !*bits);
    }
    (set, p)
}

/// Ranges by their ends; a class has few, as a rule.
#[derive(Default)]
struct RangesSeen {
    few: Vec<(u8, u8)>,
    many: Option<Box<[u64; 1024]>>,
}

impl RangesSeen {
    fn is_new(&mut self, first: u8, last: u8) -> bool {
        if self.many.is_none() && self.few.len() < 16 {
            let is_new = !self.few.contains(&(first, last));
            self.few.extend(is_new.then_some((first, last)));
            return is_new;
        }
        let bits = self.many.get_or_insert_with(|| Box::new([0; 1024]));
        let at = usize::from(first) << 8 | usize::from(last);
        let is_new = bits[at / 64] >> (at % 64) & 1 == 0;
        bits[at / 64] |= 1 << (at % 64);
        is_new
    }
}

fn add(set: &mut [u8; SET_BYTES], byte: u8) {
    set[byte as usize / 8] |= 1 << (byte % 8);
}

#[inline]
fn has(set: &[u8], byte: u8) -> bool {
    set[byte as usize / 8] >> (byte % 8) & 1 != 0
}

/// Whether `pattern` matches all of `text`, for a pattern that is used once.
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    Pattern::new(pattern, nocase).matches(text)
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

/// glibc's `tolower` of a signed character in the C locale. Its table answers bytes above 127 as unsigned, all but
/// 0xff, which is also EOF and stays -1.
fn c_tolower(byte: u8) -> i32 {
    if byte == 0xff { -1 } else { byte.to_ascii_lowercase().into() }
}

#[cfg(test)]
mod tests {
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
            pattern.extend(
                (0..random.below(150)).flat_map(|_| [&b"a"[..], b"?", b"[ab]", b"b"][random.below(4)].to_vec()),
            );
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
        let ranges: Vec<u8> =
            (0..350_000u32).flat_map(|n| [(n % 90) as u8 + 1, b'-', (n / 90 % 90) as u8 + 1]).collect();
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
}
