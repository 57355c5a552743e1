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
//! A pattern is compiled once and then matched with many texts. Every element but `*` stands for exactly one byte, so
//! the part before the first `*` is compared with the beginning of a text, the part behind the last `*` with its end,
//! and those between are searched for one after the other: once a part is found, a later place for it could only leave
//! less text for the rest. So there is no recursion and nothing is tried twice. (Since 7.2.6 Redis spares its stack by
//! matching nothing with more than a thousand stars; here such a pattern simply works.)

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

/// Work, in bytes of text times elements, beyond which a part with `?` or classes is searched for bit by bit rather
/// than tried at every place; and the longest part for which that is done, since it takes 32 bytes for each element.
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
mod tests;
