//! Packs bytes of few different values, with as few bits as distinguish them. Knows nothing of lists.
//!
//! Ids, hexadecimal digits and texts use a part of all byte values: those of a chunk of job ids are told apart by four
//! or five bits, those of any ASCII text by seven. LZ4 was rejected: it finds nothing in ids that are random digits,
//! which is what queues hold most of, and where it does better, on texts that repeat each other, it takes longer. Eight
//! bytes become as many as a byte has bits, so either way takes about two cycles a byte.
//!
//! ```text
//! u8    bits of a byte, 1 to 7
//! u16   how many bytes there are
//! u8    how many values there are, and the values; 0 if each byte stands for itself, with seven bits
//! ...   groups of eight bytes, the first one lowest
//! ```

/// The longest run that can be packed.
pub(super) const BYTES_MAX: usize = u16::MAX as usize;
/// The number of bytes that unpacking may write after the result.
pub(super) const SLACK: usize = 8;

const HEADER: usize = 4;
const GROUP: usize = 8;

/// Packs bytes, if that saves at least an eighth.
pub(super) fn pack(bytes: &[u8]) -> Option<Vec<u8>> {
    debug_assert!(bytes.len() <= BYTES_MAX);
    let (codes, values) = codes_of(bytes)?;
    let bits = match values.len() {
        0 => 7,
        count => (usize::BITS - (count - 1).leading_zeros()).max(1) as usize,
    };
    let mut packed = Vec::with_capacity(HEADER + values.len() + bytes.len().div_ceil(GROUP) * bits);
    packed.push(bits as u8);
    packed.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    packed.push(values.len() as u8);
    packed.extend_from_slice(&values);
    let mut groups = bytes.chunks_exact(GROUP);
    let join = |group: &[u8; GROUP]| {
        let each = group.iter().enumerate();
        each.fold(0, |joined, (at, byte)| joined | u64::from(codes[usize::from(*byte)]) << (at * bits))
    };
    for group in &mut groups {
        let group = group.try_into().expect("a group has eight bytes");
        packed.extend_from_slice(&join(group).to_le_bytes()[..bits]);
    }
    if !groups.remainder().is_empty() {
        let mut last = [bytes[0]; GROUP];
        last[..groups.remainder().len()].copy_from_slice(groups.remainder());
        packed.extend_from_slice(&join(&last).to_le_bytes()[..bits]);
    }
    (packed.len() <= bytes.len() / 8 * 7 + HEADER + GROUP).then_some(packed)
}

/// The code of each byte value, and the values in the order of their codes; empty when each value is its own code.
/// `None` when there are too many.
fn codes_of(bytes: &[u8]) -> Option<([u8; 256], Vec<u8>)> {
    const VALUES_MAX: usize = 64;
    let mut seen = [false; 256];
    for some in bytes.chunks(512) {
        some.iter().for_each(|byte| seen[usize::from(*byte)] = true);
        // Most data that does not pack shows it soon.
        if seen[128..].contains(&true) && seen.iter().filter(|seen| **seen).count() > VALUES_MAX {
            return None;
        }
    }
    let values: Vec<u8> = (0..=u8::MAX).filter(|value| seen[usize::from(*value)]).collect();
    let mut codes = [0; 256];
    if values.len() > VALUES_MAX {
        (0..128_u8).for_each(|value| codes[usize::from(value)] = value);
        return Some((codes, Vec::new()));
    }
    values.iter().enumerate().for_each(|(code, value)| codes[usize::from(*value)] = code as u8);
    Some((codes, values))
}

/// The unpacked length.
pub(super) fn unpacked_len(packed: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([packed[1], packed[2]]))
}

/// Unpacks to the start of a buffer, which has [`SLACK`] more bytes than needed, and returns the length.
pub(super) fn unpack(packed: &[u8], to: &mut [u8]) -> usize {
    let (bits, len, count) = (usize::from(packed[0]), unpacked_len(packed), usize::from(packed[3]));
    let (values, groups) = packed[HEADER..].split_at(count);
    let mut table = [0; 128];
    match count {
        0 => (0..128_u8).for_each(|value| table[usize::from(value)] = value),
        _ => table[..count].copy_from_slice(values),
    }
    let to = &mut to[..len.next_multiple_of(GROUP)];
    match bits {
        1 => unpack_groups::<1>(groups, &table, to),
        2 => unpack_groups::<2>(groups, &table, to),
        3 => unpack_groups::<3>(groups, &table, to),
        4 => unpack_groups::<4>(groups, &table, to),
        5 => unpack_groups::<5>(groups, &table, to),
        6 => unpack_groups::<6>(groups, &table, to),
        _ => unpack_groups::<7>(groups, &table, to),
    }
    len
}

/// Unpacks groups of eight values of `BITS` bits.
fn unpack_groups<const BITS: usize>(groups: &[u8], table: &[u8; 128], to: &mut [u8]) {
    for (at, to) in to.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
        let group = match groups.get(at * BITS..).and_then(|rest| rest.first_chunk::<GROUP>()) {
            Some(group) => u64::from_le_bytes(*group),
            None => {
                let mut last = [0; GROUP];
                last[..BITS].copy_from_slice(&groups[at * BITS..][..BITS]);
                u64::from_le_bytes(last)
            }
        };
        *to = std::array::from_fn(|place| table[(group >> (place * BITS)) as usize & ((1 << BITS) - 1)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(bytes: &[u8]) -> Option<usize> {
        let packed = pack(bytes)?;
        let mut buffer = vec![0; bytes.len() + SLACK];
        assert_eq!(unpack(&packed, &mut buffer), bytes.len());
        assert_eq!(&buffer[..bytes.len()], bytes);
        Some(packed.len())
    }

    #[test]
    fn bytes_are_what_they_were() {
        let mut random = fastrand::Rng::with_seed(5);
        for values in [1, 2, 3, 4, 5, 16, 17, 32, 33, 64, 65, 100, 128] {
            for len in [64, 65, 71, 72, 1000, 8064, 8065, 8192] {
                let bytes: Vec<u8> = (0..len).map(|_| random.u8(..values)).collect();
                let packed = round_trip(&bytes);
                assert!(packed.is_some() || len < 1000, "{values} values in {len} bytes");
                // The same with values that are not their own codes.
                let shifted: Vec<u8> = bytes.iter().map(|byte| 255 - byte).collect();
                assert_eq!(round_trip(&shifted).is_some() || len < 1000, values <= 64 || len < 1000, "{values} {len}");
            }
        }
    }

    #[test]
    fn what_has_all_values_is_not_packed() {
        let mut random = fastrand::Rng::with_seed(5);
        let noise: Vec<u8> = (0..8192).map(|_| random.u8(..)).collect();
        assert!(pack(&noise).is_none());
    }

    #[test]
    fn ids_take_half_of_their_text() {
        let hex: Vec<u8> = (0..8000_u64).map(|at| b"0123456789abcdef"[(at * at % 16) as usize]).collect();
        assert!(round_trip(&hex).unwrap() < 4050);
    }
}
