//! The longest common subsequence of two byte strings, with the same choices Redis makes among equally long ones.
//! Knows nothing of keys or of the reply's shape.
//!
//! Redis fills a table of (n+1)(m+1) 32-bit lengths. Neighbours in a row differ by 0 or 1, so one bit a cell says as
//! much, and 64 cells advance with one addition (Hyyrö, "Bit-parallel LCS-length computation revisited"). That is a
//! thirtieth of the memory and much less time, for the same answers: where the bytes differ, Redis walks up in the
//! table exactly if the cell above is greater than the one to the left, which is exactly where that bit is set.

/// The answer to LCS: how long, and from which pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lcs<'a> {
    pub len: usize,
    /// The contiguous pieces, in Redis's order: the last one in the strings first.
    pub matches: Vec<Match>,
    a: &'a [u8],
}

impl Lcs<'_> {
    /// The subsequence itself.
    pub fn string(&self) -> Vec<u8> {
        let mut string = Vec::with_capacity(self.len);
        for piece in self.matches.iter().rev() {
            string.extend_from_slice(&self.a[piece.a.0..=piece.a.1]);
        }
        string
    }
}

/// A piece both strings have: its first and last position in each, both inclusive, as IDX replies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    pub a: (usize, usize),
    pub b: (usize, usize),
    pub len: usize,
}

/// The table would be larger than the caller allows (or than the machine has).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// Length and pieces. `bytes_max` limits the table as Redis would allocate it, so that both refuse the same requests;
/// it bounds the time, too.
pub fn lcs<'a>(a: &'a [u8], b: &[u8], bytes_max: u64) -> Result<Lcs<'a>, TooLarge> {
    check_size(a, b, bytes_max)?;
    let columns = Columns::new(a, b)?;
    let words = columns.words;

    // All rows, one after the other; row i is about the first i+1 bytes of `a`.
    let mut rows = Vec::new();
    rows.try_reserve_exact(words * a.len()).map_err(|_| TooLarge)?;
    let mut row = vec![u64::MAX; words];
    for &byte in a {
        columns.advance(&mut row, byte);
        rows.extend_from_slice(&row);
    }
    let grows_at = |i: usize, j: usize| rows[words * i + j / 64] >> (j % 64) & 1 == 0;

    let mut matches = Vec::new();
    let mut open: Option<Match> = None;
    let (mut i, mut j) = (a.len(), b.len());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            i -= 1;
            j -= 1;
            // A piece that is open ends at (i + 1, j + 1): whatever else moves i or j closes it first.
            let piece = open.get_or_insert(Match { a: (i, i), b: (j, j), len: 0 });
            piece.a.0 = i;
            piece.b.0 = j;
            piece.len += 1;
        } else {
            matches.extend(open.take());
            if grows_at(i - 1, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
    }
    matches.extend(open);
    Ok(Lcs { len: columns.len(&row), matches, a })
}

/// The length alone; needs a single row.
pub fn length(a: &[u8], b: &[u8], bytes_max: u64) -> Result<usize, TooLarge> {
    check_size(a, b, bytes_max)?;
    let columns = Columns::new(a, b)?;
    let mut row = vec![u64::MAX; columns.words];
    for &byte in a {
        columns.advance(&mut row, byte);
    }
    Ok(columns.len(&row))
}

fn check_size(a: &[u8], b: &[u8], bytes_max: u64) -> Result<(), TooLarge> {
    let cells = (a.len() as u128 + 1) * (b.len() as u128 + 1);
    if cells * 4 > u128::from(bytes_max) {
        return Err(TooLarge);
    }
    Ok(())
}

/// For every byte value in `a`, where `b` has it: a bit per position of `b`.
struct Columns {
    words: usize,
    width: usize,
    /// Which row of `masks` belongs to a byte value. Row 0 stays empty, for bytes that `b` need not be searched for.
    row_of: [u16; 256],
    masks: Vec<u64>,
}

impl Columns {
    fn new(a: &[u8], b: &[u8]) -> Result<Self, TooLarge> {
        let words = b.len().div_ceil(64);
        let mut row_of = [0_u16; 256];
        let mut rows = 1;
        for &byte in a {
            let row = &mut row_of[usize::from(byte)];
            if *row == 0 {
                *row = rows;
                rows += 1;
            }
        }
        // Never more rows than `a` has bytes: small beside the table that was allowed.
        let mut masks = Vec::new();
        let size = words * usize::from(rows);
        masks.try_reserve_exact(size).map_err(|_| TooLarge)?;
        masks.resize(size, 0);
        for (at, &byte) in b.iter().enumerate() {
            let row = usize::from(row_of[usize::from(byte)]);
            if row != 0 {
                masks[words * row + at / 64] |= 1 << (at % 64);
            }
        }
        Ok(Self { words, width: b.len(), row_of, masks })
    }

    /// Makes the table's next row, for one more byte of `a`. A *clear* bit says that the length grows by one there.
    #[inline]
    fn advance(&self, row: &mut [u64], byte: u8) {
        let from = self.words * usize::from(self.row_of[usize::from(byte)]);
        let masks = &self.masks[from..from + self.words];
        let mut carry = false;
        for (word, &mask) in row.iter_mut().zip(masks) {
            let (sum, first) = word.overflowing_add(*word & mask);
            let (sum, second) = sum.overflowing_add(carry.into());
            carry = first | second;
            *word = sum | (*word & !mask);
        }
    }

    fn len(&self, row: &[u64]) -> usize {
        // Bits past the width are never cleared: no mask has them.
        let set: usize = row.iter().map(|word| word.count_ones() as usize).sum();
        self.width - (set - (self.words * 64 - self.width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    /// Redis's algorithm, word for word: the full table and the walk back.
    fn by_the_book(a: &[u8], b: &[u8]) -> (Vec<u8>, Vec<Match>) {
        let mut table = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
        for i in 1..=a.len() {
            for j in 1..=b.len() {
                table[i][j] =
                    if a[i - 1] == b[j - 1] { table[i - 1][j - 1] + 1 } else { table[i - 1][j].max(table[i][j - 1]) };
            }
        }
        let (mut string, mut matches, mut open) = (Vec::new(), Vec::new(), None::<Match>);
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                i -= 1;
                j -= 1;
                string.push(a[i]);
                open = Some(match open {
                    None => Match { a: (i, i), b: (j, j), len: 1 },
                    Some(piece) => Match { a: (i, piece.a.1), b: (j, piece.b.1), len: piece.len + 1 },
                });
            } else {
                matches.extend(open.take());
                if table[i - 1][j] > table[i][j - 1] {
                    i -= 1;
                } else {
                    j -= 1;
                }
            }
        }
        matches.extend(open);
        string.reverse();
        assert_eq!(string.len(), table[a.len()][b.len()] as usize);
        (string, matches)
    }

    /// The example of Redis's own documentation.
    #[test]
    fn the_documented_example() {
        let found = lcs(b"ohmytext", b"mynewtext", 1 << 20).unwrap();
        assert_eq!(found.string(), b"mytext");
        assert_eq!(found.len, 6);
        let piece = |a, b, len| Match { a, b, len };
        assert_eq!(found.matches, [piece((4, 7), (5, 8), 4), piece((2, 3), (0, 1), 2)]);
    }

    #[test]
    fn empty_strings_have_nothing_in_common() {
        for (a, b) in [(&b""[..], &b""[..]), (b"a", b""), (b"", b"a"), (b"abc", b"xyz")] {
            let found = lcs(a, b, 1000).unwrap();
            assert_eq!((found.len, found.string(), found.matches), (0, vec![], vec![]));
            assert_eq!(length(a, b, 1000), Ok(0));
        }
    }

    #[test]
    fn the_limit_is_on_the_table_redis_would_make() {
        assert!(lcs(&[0; 9], &[0; 9], 400).is_ok());
        assert_eq!(lcs(&[0; 9], &[0; 9], 399), Err(TooLarge));
        assert_eq!(length(&[0; 9], &[0; 10], 439), Err(TooLarge));
    }

    #[test]
    fn random_strings_agree_with_the_book() {
        let mut random = Random::new();
        for round in 0..3_000 {
            let limit = *random.pick(&[5, 30, 70, 200]);
            let alphabet = *random.pick(&[&b"ab"[..], b"abcd", b"abcdefghijklmnopqrstuvwxyz\0\xff"]);
            let (a, b) = (random.bytes(limit, alphabet), random.bytes(limit, alphabet));
            let (string, matches) = by_the_book(&a, &b);
            let found = lcs(&a, &b, u64::MAX).unwrap();
            assert_eq!(found.string(), string, "round {round}");
            assert_eq!(found.matches, matches, "round {round}");
            assert_eq!(found.len, string.len());
            assert_eq!(length(&a, &b, u64::MAX), Ok(string.len()));
        }
    }
}
