//! LZF, the compression inside RDB strings. Knows nothing of RDB.
//!
//! Written by hand because a decoder for hostile bytes should be short enough to check by eye, and allocate no more
//! than the caller allows. A stream is a row of runs: a byte below 32 says how many literal bytes follow (less one);
//! any other byte holds three bits of length and the high five bits of how far back to copy from.

/// The furthest a copy can reach back, and the longest it can be.
const DISTANCE_MAX: usize = 1 << 13;
const COPY_MAX: usize = 7 + 255 + 2;
/// Copies of three bytes and more pay for themselves.
const COPY_MIN: usize = 3;
const LITERALS_MAX: usize = 32;

/// The most that three bytes of input can expand to; a larger claim is refused without decompressing.
pub(crate) const EXPANSION_MAX: usize = COPY_MAX / 3;

/// Decompresses to exactly `len` bytes, or not at all.
pub(crate) fn decompress(mut input: &[u8], len: usize) -> Option<Vec<u8>> {
    if len > input.len().saturating_mul(EXPANSION_MAX) {
        return None;
    }
    let mut output = Vec::with_capacity(len);
    while let Some(&control) = input.split_off_first() {
        let control = usize::from(control);
        if control < LITERALS_MAX {
            let literals = input.split_off(..control + 1)?;
            if output.len() + literals.len() > len {
                return None;
            }
            output.extend_from_slice(literals);
            continue;
        }
        let mut copy = control >> 5;
        if copy == 7 {
            copy += usize::from(*input.split_off_first()?);
        }
        copy += 2;
        let distance = (control & 0x1f) << 8 | usize::from(*input.split_off_first()?);
        let from = output.len().checked_sub(distance + 1)?;
        if output.len() + copy > len {
            return None;
        }
        if from + copy <= output.len() {
            output.extend_from_within(from..from + copy);
        } else {
            // The copy overlaps its own output: that encodes a run of one byte.
            for at in from..from + copy {
                output.push(output[at]);
            }
        }
    }
    (output.len() == len).then_some(output)
}

/// Compresses several inputs in the same memory.
#[derive(Default)]
pub(crate) struct Compressor {
    /// The last position of three bytes with this hash. Positions continue from one input to the next, so that those of
    /// earlier inputs are lower than the current start, and the table is not cleared between inputs.
    seen: Vec<u32>,
    /// The end of the previous input.
    end: u32,
    output: Vec<u8>,
}

impl Compressor {
    /// Compresses to at most `bytes_max` bytes; `None` when the result would be longer.
    pub(crate) fn compress(&mut self, input: &[u8], bytes_max: usize) -> Option<&[u8]> {
        // As small as the input allows: most are short, and clearing the table would take longer than compressing them.
        let bits = (usize::BITS - input.len().leading_zeros()).clamp(6, 14);
        if self.seen.len() < 1 << bits {
            self.seen.resize(1 << bits, 0);
        }
        let len = u32::try_from(input.len()).ok()?;
        if self.end.checked_add(1).and_then(|start| start.checked_add(len)).is_none() {
            self.seen.fill(0);
            self.end = 0;
        }
        let start = self.end + 1;
        self.end = start.checked_add(len)?;
        // Three bytes, from where there are four: the last one is always literal.
        let three = |at: usize| input[at..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four) & 0xff_ffff);
        let slot = |word: u32| (word.wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize;

        let (seen, output) = (&mut self.seen[..1 << bits], &mut self.output);
        output.clear();
        let (mut at, mut written) = (0, 0);
        while at + COPY_MIN < input.len() {
            let word = three(at);
            let candidate = std::mem::replace(&mut seen[slot(word)], start + at as u32);
            let from = candidate.wrapping_sub(start) as usize;
            if candidate < start || at - from > DISTANCE_MAX || three(from) != word {
                at += 1;
                continue;
            }
            let copy = equal_bytes(&input[at..input.len().min(at + COPY_MAX)], &input[from..]);

            push_literals(&input[written..at], output);
            let (distance, length) = (at - from - 1, copy - 2);
            let high = (distance >> 8) as u8;
            if length < 7 {
                output.push((length as u8) << 5 | high);
            } else {
                output.push(7 << 5 | high);
                output.push((length - 7) as u8);
            }
            output.push(distance as u8);
            if output.len() > bytes_max {
                return None;
            }
            // Note the last position of the copy as well, so that periodic data is found again.
            at += copy;
            written = at;
            if at + 2 < input.len() {
                seen[slot(three(at - 1))] = start + (at as u32 - 1);
            }
        }
        push_literals(&input[written..], output);
        (output.len() <= bytes_max).then_some(&self.output[..])
    }
}

/// How many bytes at the beginning of two runs are equal.
fn equal_bytes(a: &[u8], b: &[u8]) -> usize {
    let (words, _) = a.as_chunks::<8>();
    let mut equal = 0;
    for (one, other) in words.iter().zip(b.as_chunks::<8>().0) {
        let differ = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return equal + differ.trailing_zeros() as usize / 8;
        }
        equal += 8;
    }
    equal + a[equal..].iter().zip(&b[equal..]).take_while(|(a, b)| a == b).count()
}

fn push_literals(literals: &[u8], output: &mut Vec<u8>) {
    for run in literals.chunks(LITERALS_MAX) {
        output.push(run.len() as u8 - 1);
        output.extend_from_slice(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    /// From a DUMP of Redis 8.0.2: "abcdefghij" ten times.
    #[test]
    fn redis_s_own_streams_are_read() {
        let stream = b"\x0aabcdefghija\xe0\x4e\x09\x01ij";
        assert_eq!(decompress(stream, 100), Some(b"abcdefghij".repeat(10)));
        assert_eq!(decompress(stream, 99), None);
        assert_eq!(decompress(stream, 101), None);
    }

    #[test]
    fn what_is_compressed_reads_back() {
        let mut random = Random::new();
        let mut compressor = Compressor::default();
        for round in 0..1_000 {
            if round == 500 {
                // Positions begin again before they run over.
                compressor.end = u32::MAX - 100_000;
            }
            let limit = *random.pick(&[4, 40, 300, 20_000]);
            let alphabet = *random.pick(&[&b"a"[..], b"ab", b"abcdefgh", b"\"state\":running,0123456789"]);
            let mut input = random.bytes(limit, alphabet);
            if random.below(2) == 0 {
                input = input.repeat(3);
            }
            if let Some(packed) = compressor.compress(&input, input.len() + input.len() / 32 + 1) {
                assert_eq!(decompress(packed, input.len()), Some(input));
            } else {
                panic!("even literals alone would have fitted");
            }
        }
    }

    #[test]
    fn long_runs_shrink_and_noise_is_refused() {
        let mut compressor = Compressor::default();
        assert!(compressor.compress(&[b'a'; 10_000], 200).is_some());
        assert!(compressor.compress(&b"state=running;".repeat(50), 100).is_some());
        let mut random = Random::new();
        let noise: Vec<u8> = (0..1_000).map(|_| random.next() as u8).collect();
        assert_eq!(compressor.compress(&noise, noise.len() - 4), None);
    }

    #[test]
    fn hostile_streams_are_refused() {
        assert_eq!(decompress(b"", 0), Some(vec![]));
        assert_eq!(decompress(b"", 1), None);
        assert_eq!(decompress(b"\x00", 1), None, "literals missing");
        assert_eq!(decompress(b"\x20\x00", 3), None, "nothing to copy from yet");
        assert_eq!(decompress(b"\xe0", 9), None, "length missing");
        assert_eq!(decompress(b"\x00a\x20", 4), None, "distance missing");
        assert_eq!(decompress(b"\x00a", usize::MAX), None);
        let mut random = Random::new();
        for _ in 0..50_000 {
            let bytes = random.bytes(30, &[0, 1, 2, 31, 32, 33, 64, 96, 0xe0, 0xff]);
            decompress(&bytes, random.below(400));
        }
    }
}
