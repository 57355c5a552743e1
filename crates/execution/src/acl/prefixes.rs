//! The key patterns of a selector that are literal text and `*`, in order, so that a key finds its own among many. Knows
//! texts and rights; refuses to know other patterns.

use super::key_right::KeyRight;

/// Patterns that are literal text and `*`, by the right that a command needs.
#[derive(Clone)]
pub(super) struct Prefixes {
    /// By the bits of the right.
    by_right: Box<[Table; RIGHTS]>,
}

/// How many rights there are: none, to read, to write, and both.
const RIGHTS: usize = KeyRight::all().bits() as usize + 1;

/// The literal texts that give one right. None of them begins with another.
#[derive(Clone)]
struct Table {
    texts: Box<[Box<[u8]>]>,
    /// For each byte, where the texts that begin with it start; the last entry is their number.
    starts: Box<[u32; 257]>,
    /// The text is empty: the pattern is `*`.
    has_all: bool,
}

impl Prefixes {
    pub(super) fn new<'a>(patterns: impl Iterator<Item = (KeyRight, &'a [u8])> + Clone) -> Prefixes {
        let table = |bits: usize| {
            let needed = KeyRight::from_bits_truncate(bits as u8);
            Table::new(patterns.clone().filter(|(right, _)| right.contains(needed)).map(|(_, text)| text).collect())
        };
        Prefixes { by_right: Box::new(std::array::from_fn(table)) }
    }

    /// True when one of them gives a right to a key.
    #[inline]
    pub(super) fn allow(&self, key: &[u8], right: KeyRight) -> bool {
        self.by_right[usize::from(right.bits()) % RIGHTS].covers(key)
    }
}

impl Table {
    fn new(mut texts: Vec<&[u8]>) -> Table {
        texts.sort_unstable();
        // A text comes behind those that it begins with.
        let mut kept: Vec<&[u8]> = Vec::new();
        for text in texts {
            if kept.last().is_none_or(|before| !text.starts_with(before)) {
                kept.push(text);
            }
        }
        let has_all = kept.first().is_some_and(|text| text.is_empty());
        let start =
            |byte: usize| kept.partition_point(|text| text.first().is_some_and(|first| usize::from(*first) < byte));
        let starts = std::array::from_fn(|byte| if has_all { 0 } else { start(byte) as u32 });
        Table { texts: kept.into_iter().map(Box::from).collect(), starts: Box::new(starts), has_all }
    }

    #[inline]
    fn covers(&self, key: &[u8]) -> bool {
        let Some(first) = key.first().map(|first| usize::from(*first)) else { return self.has_all };
        match self.texts.get(self.starts[first] as usize..self.starts[first + 1] as usize) {
            Some([text]) => key.starts_with(text),
            None | Some([]) => self.has_all,
            Some(texts) => covers(texts, key),
        }
    }
}

/// True when a key begins with one of these texts, which are in order. If it begins with one, no other text is between the two: that
/// one would begin with it as well.
#[inline(never)]
fn covers(texts: &[Box<[u8]>], key: &[u8]) -> bool {
    let behind = texts.partition_point(|text| **text <= *key);
    behind.checked_sub(1).is_some_and(|at| key.starts_with(&texts[at]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    fn word(random: &mut Random) -> Vec<u8> {
        (0..random.below(5)).map(|_| *random.pick(b"\x00ab\xff")).collect()
    }

    #[test]
    fn a_key_has_the_rights_of_the_patterns_that_it_begins_with() {
        let mut random = Random::new();
        for _ in 0..500 {
            let patterns: Vec<(KeyRight, Vec<u8>)> = (0..random.below(12))
                .map(|_| (KeyRight::from_bits_truncate(1 + random.below(3) as u8), word(&mut random)))
                .collect();
            let prefixes = Prefixes::new(patterns.iter().map(|(right, text)| (*right, &**text)));
            for _ in 0..50 {
                let (key, needed) = (word(&mut random), KeyRight::from_bits_truncate(random.below(RIGHTS) as u8));
                let expected = patterns.iter().any(|(right, text)| right.contains(needed) && key.starts_with(text));
                assert_eq!(prefixes.allow(&key, needed), expected, "{key:?} {needed:?} {patterns:?}");
            }
        }
    }
}
