//! The key patterns of a selector that are literal text and `*`, so that a key finds its own among many. Knows
//! texts and rights; refuses to know other patterns.

use super::key_right::KeyRight;
use std::collections::VecDeque;

/// Patterns that are literal text and `*`, by the right that a command needs.
#[derive(Clone)]
pub(super) struct Prefixes {
    /// By the bits of the right.
    by_right: Box<[Table; RIGHTS]>,
}

/// How many rights there are: none, to read, to write, and both.
const RIGHTS: usize = KeyRight::all().bits() as usize + 1;

/// The literal texts that give one right, as a tree by their bytes, without those that begin with another. It has no nodes
/// if there are no texts.
#[derive(Clone)]
struct Table {
    /// The first is the root. Those below one node are next to each other.
    nodes: Box<[Node]>,
}

/// A place in the tree.
#[derive(Clone)]
struct Node {
    /// What all texts go on with that come here.
    literal: Box<[u8]>,
    /// The bytes that follow it; none, if a text ends here.
    bytes: [u64; WORDS],
    /// For each word of `bytes`, where the nodes of its bytes are.
    starts: [u32; WORDS],
    is_end: bool,
}

/// A bit for each byte.
const WORDS: usize = 256 / u64::BITS as usize;

impl Prefixes {
    pub(super) fn new<'a>(patterns: impl Iterator<Item = (KeyRight, &'a [u8])> + Clone) -> Prefixes {
        let table = |bits: usize| {
            let needed = KeyRight::from_bits_truncate(bits as u8);
            Table::new(patterns.clone().filter(|(right, _)| right.contains(needed)).map(|(_, text)| text).collect())
        };
        Prefixes { by_right: Box::new(std::array::from_fn(table)) }
    }

    /// True when one of them gives a right to a key. None does to the empty one: as in Redis, `*` is at least one byte there.
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
        let mut nodes: Vec<Node> = Vec::new();
        // What is below each node: the texts, without the bytes above it.
        let mut below: VecDeque<Vec<&[u8]>> = (!kept.is_empty()).then_some(kept).into_iter().collect();
        while let Some(texts) = below.pop_front() {
            let (node, groups) = Node::new(&texts, nodes.len() + 1 + below.len());
            nodes.push(node);
            below.extend(groups);
        }
        Table { nodes: nodes.into() }
    }

    #[inline]
    fn covers(&self, mut key: &[u8]) -> bool {
        let Some(mut node) = self.nodes.first().filter(|_| !key.is_empty()) else { return false };
        loop {
            let Some(rest) = strip(key, &node.literal) else { return false };
            if node.is_end {
                return true;
            }
            let Some((byte, rest)) = rest.split_first() else { return false };
            let Some(next) = node.next(*byte).and_then(|at| self.nodes.get(at)) else { return false };
            (node, key) = (next, rest);
        }
    }
}

impl Node {
    /// The node of texts that are in order, and the texts of each node below it, which are at `first` and behind it.
    fn new<'a>(texts: &[&'a [u8]], first: usize) -> (Node, Vec<Vec<&'a [u8]>>) {
        let (least, most) = (texts[0], texts[texts.len() - 1]);
        let shared = least.iter().zip(most).take_while(|(a, b)| a == b).count();
        let mut node =
            Node { literal: least[..shared].into(), bytes: [0; WORDS], starts: [0; WORDS], is_end: texts.len() == 1 };
        let mut groups = Vec::new();
        if !node.is_end {
            // None of several is at its end: the others would begin with it.
            for group in texts.chunk_by(|a, b| a[shared] == b[shared]) {
                let (word, bit) = place(group[0][shared]);
                if node.bytes[word] == 0 {
                    node.starts[word] = (first + groups.len()) as u32;
                }
                node.bytes[word] |= bit;
                groups.push(group.iter().map(|text| &text[shared + 1..]).collect());
            }
        }
        (node, groups)
    }

    /// Where the node is that follows with a byte.
    #[inline]
    fn next(&self, byte: u8) -> Option<usize> {
        let (word, bit) = place(byte);
        let before = || (self.bytes[word] & (bit - 1)).count_ones();
        (self.bytes[word] & bit != 0).then(|| (self.starts[word] + before()) as usize)
    }
}

/// What follows a literal. Most are a few bytes long, for which a call is too much.
#[inline]
fn strip<'k>(key: &'k [u8], literal: &[u8]) -> Option<&'k [u8]> {
    if literal.len() > SHORT {
        return key.strip_prefix(literal);
    }
    let (begin, rest) = key.split_at_checked(literal.len())?;
    begin.iter().zip(literal).all(|(a, b)| a == b).then_some(rest)
}

const SHORT: usize = 12;

/// The word and the bit of a byte.
#[inline]
fn place(byte: u8) -> (usize, u64) {
    (usize::from(byte) / u64::BITS as usize, 1 << (u32::from(byte) % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    fn word(random: &mut Random, begin: &[u8]) -> Vec<u8> {
        let begin = &begin[..random.below(4).min(1) * begin.len()];
        begin.iter().copied().chain((0..random.below(5)).map(|_| *random.pick(b"\x00ab\xff"))).collect()
    }

    #[test]
    fn a_key_has_the_rights_of_the_patterns_that_it_begins_with() {
        let mut random = Random::new();
        for round in 0..500 {
            // Literals that are compared in both ways.
            let begin = [&b""[..], b"a-common-beginning:"][round % 2];
            let patterns: Vec<(KeyRight, Vec<u8>)> = (0..random.below(12))
                .map(|_| (KeyRight::from_bits_truncate(1 + random.below(3) as u8), word(&mut random, begin)))
                .collect();
            let prefixes = Prefixes::new(patterns.iter().map(|(right, text)| (*right, &**text)));
            for _ in 0..50 {
                let (key, needed) =
                    (word(&mut random, begin), KeyRight::from_bits_truncate(random.below(RIGHTS) as u8));
                let gives = |(right, text): &(KeyRight, Vec<u8>)| right.contains(needed) && key.starts_with(text);
                let expected = !key.is_empty() && patterns.iter().any(gives);
                assert_eq!(prefixes.allow(&key, needed), expected, "{key:?} {needed:?} {patterns:?}");
            }
        }
    }
}
