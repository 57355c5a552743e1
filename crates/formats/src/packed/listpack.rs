//! Listpacks: Redis's packed lists, as small hashes travel in DUMP payloads.
//! Knows nothing of hashes or RDB; reads any bytes without trusting them.
//!
//! ```text
//! total bytes: u32 | elements: u16, 65535 = many | element ... | 0xff
//! element = encoding and data | length of that, in 7-bit groups for reading backwards
//! ```

use super::{COUNT_UNKNOWN, END, Element, Malformed, little_endian, walk};
use numbers::parse_i64;

const HEADER_BYTES: usize = 6;
/// The most bytes that a text takes in addition to its own: an encoding with its length, and the back length.
const TEXT_OVERHEAD_MAX: usize = 5 + 5;

// Reading -------------------------------------------------------------------------------------------------------------

/// The elements of a listpack, each checked as it is reached.
pub(crate) fn elements(listpack: &[u8]) -> Result<impl Iterator<Item = Result<Element<'_>, Malformed>>, Malformed> {
    let (header, body) = listpack.split_first_chunk::<HEADER_BYTES>().ok_or(Malformed)?;
    let [t0, t1, t2, t3, c0, c1] = *header;
    let total = u32::from_le_bytes([t0, t1, t2, t3]);
    if total as usize != listpack.len() {
        return Err(Malformed);
    }
    Ok(walk(body, u16::from_le_bytes([c0, c1]), read))
}

fn read<'a>(rest: &mut &'a [u8]) -> Option<Element<'a>> {
    let before = rest.len();
    let element = read_data(rest)?;
    let (expected, groups) = back_length(before - rest.len());
    (rest.split_off(..groups)? == &expected[..groups]).then_some(element)
}

fn read_data<'a>(rest: &mut &'a [u8]) -> Option<Element<'a>> {
    let first = *rest.split_off_first()?;
    let mut bytes_of = |len: usize| rest.split_off(..len);
    Some(match first {
        0x00..=0x7f => Element::Integer(first.into()),
        0x80..=0xbf => Element::Bytes(bytes_of((first & 0x3f).into())?),
        0xc0..=0xdf => {
            let low = bytes_of(1)?[0];
            let raw = i64::from(first & 0x1f) << 8 | i64::from(low);
            Element::Integer(if raw >= 1 << 12 { raw - (1 << 13) } else { raw })
        }
        0xe0..=0xef => {
            let low = bytes_of(1)?[0];
            Element::Bytes(bytes_of(usize::from(first & 0x0f) << 8 | usize::from(low))?)
        }
        0xf0 => {
            let len = u32::from_le_bytes(bytes_of(4)?.try_into().ok()?);
            Element::Bytes(bytes_of(len as usize)?)
        }
        0xf1 => Element::Integer(little_endian(bytes_of(2)?)),
        0xf2 => Element::Integer(little_endian(bytes_of(3)?)),
        0xf3 => Element::Integer(little_endian(bytes_of(4)?)),
        0xf4 => Element::Integer(little_endian(bytes_of(8)?)),
        _ => return None,
    })
}

// Writing -------------------------------------------------------------------------------------------------------------

/// Builds a listpack.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    count: u64,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Creates a writer with room for `bytes` bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut listpack = Vec::with_capacity(bytes.max(HEADER_BYTES));
        listpack.resize(HEADER_BYTES, 0);
        Self { bytes: listpack, count: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a text; one that spells a number is packed as that number, as in Redis.
    pub(crate) fn push(&mut self, text: &[u8]) {
        if matches!(text.first(), Some(b'-' | b'0'..=b'9'))
            && let Some(number) = parse_i64(text)
        {
            return self.push_integer(number);
        }
        let start = self.bytes.len();
        self.bytes.reserve(text.len() + TEXT_OVERHEAD_MAX);
        match text.len() {
            len @ 0..64 => self.bytes.push(0x80 | len as u8),
            len @ 64..4096 => self.bytes.extend_from_slice(&[0xe0 | (len >> 8) as u8, len as u8]),
            len => {
                self.bytes.push(0xf0);
                self.bytes.extend_from_slice(&(len as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(text);
        let (bytes, groups) = back_length(self.bytes.len() - start);
        self.bytes.extend_from_slice(&bytes[..groups]);
        self.count += 1;
    }

    /// Appends a number. The byte after it is its length, for readers that go backwards.
    pub(crate) fn push_integer(&mut self, number: i64) {
        let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
        let bytes = &mut self.bytes;
        match number {
            0..128 => bytes.extend_from_slice(&[a, 1]),
            -4096..4096 => bytes.extend_from_slice(&[0xc0 | (b & 0x1f), a, 2]),
            -0x8000..0x8000 => bytes.extend_from_slice(&[0xf1, a, b, 3]),
            -0x80_0000..0x80_0000 => bytes.extend_from_slice(&[0xf2, a, b, c, 4]),
            -0x8000_0000..0x8000_0000 => bytes.extend_from_slice(&[0xf3, a, b, c, d, 5]),
            _ => bytes.extend_from_slice(&[0xf4, a, b, c, d, e, f, g, h, 9]),
        }
        self.count += 1;
    }

    /// True until something is pushed.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Starts a new listpack in the same memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
        self.count = 0;
    }

    /// Ends the listpack; nothing may be pushed afterwards. It must stay below 4 GiB.
    pub(crate) fn close(&mut self) -> &[u8] {
        self.bytes.push(END);
        let total = u32::try_from(self.bytes.len()).expect("callers keep listpacks small");
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        self.bytes[..4].copy_from_slice(&total.to_le_bytes());
        self.bytes[4..6].copy_from_slice(&count.to_le_bytes());
        &self.bytes
    }

    /// The finished listpack; it must stay below 4 GiB.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.close();
        self.bytes
    }
}

/// The length of an element's data, for readers that go backwards: 7 bits a byte, most significant first, and every
/// byte but the first marked. Redis's limits for two and more bytes are one lower than what would fit; its check on
/// loading has the same limits.
#[inline]
fn back_length(len: usize) -> ([u8; 5], usize) {
    if len <= 127 {
        return ([len as u8, 0, 0, 0, 0], 1);
    }
    let groups = match len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    let mut bytes = [0; 5];
    for (at, byte) in bytes[..groups].iter_mut().enumerate() {
        let marker = if at == 0 { 0 } else { 0x80 };
        *byte = (len >> (7 * (groups - 1 - at))) as u8 & 0x7f | marker;
    }
    (bytes, groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    fn texts_of(listpack: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
        elements(listpack)?.map(|element| Ok(element?.to_vec())).collect()
    }

    /// The listpack inside a DUMP of Redis 8.0.2: HSET h a 1 b xyz c 70000.
    const FROM_REDIS: &[u8] = b"\x1c\0\0\0\x06\0\x81a\x02\x01\x01\x81b\x02\x83xyz\x04\x81c\x02\xf2\x70\x11\x01\x04\xff";

    #[test]
    fn redis_s_bytes_are_read_and_written() {
        let texts = ["a", "1", "b", "xyz", "c", "70000"];
        assert_eq!(texts_of(FROM_REDIS), Ok(texts.map(|text| text.as_bytes().to_vec()).to_vec()));
        let mut writer = Writer::new();
        texts.iter().for_each(|text| writer.push(text.as_bytes()));
        assert_eq!(writer.finish(), FROM_REDIS);
    }

    #[test]
    fn every_encoding_reads_back() {
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for edge in [0, 127, 128, 4095, 4096, 0x7fff, 0x8000, 0x7f_ffff, 0x80_0000, 0x7fff_ffff, 0x8000_0000, i64::MAX]
        {
            for number in [edge, -edge, edge.wrapping_add(1), (-edge).wrapping_sub(1)] {
                texts.push(number.to_string().into_bytes());
            }
        }
        for len in
            [0, 1, 63, 64, 123, 124, 125, 126, 127, 128, 4095, 4096, 16_377, 16_378, 16_379, 16_380, 16_384, 2_097_160]
        {
            texts.push(vec![b'x'; len]);
        }
        texts.extend([b"-0".to_vec(), b"007".to_vec(), b"9223372036854775808".to_vec()]);
        let mut writer = Writer::new();
        texts.iter().for_each(|text| writer.push(text));
        assert_eq!(texts_of(&writer.finish()), Ok(texts));
    }

    #[test]
    fn many_elements_are_counted_by_walking() {
        let mut writer = Writer::new();
        (0..70_000).for_each(|number| writer.push_integer(number));
        let listpack = writer.finish();
        assert_eq!(&listpack[4..6], b"\xff\xff");
        assert_eq!(texts_of(&listpack).unwrap().len(), 70_000);
    }

    #[test]
    fn damage_is_noticed() {
        assert!(texts_of(b"").is_err());
        assert_eq!(texts_of(b"\x07\0\0\0\0\0\xff"), Ok(vec![]));
        assert!(texts_of(b"\x07\0\0\0\x01\0\xff").is_err(), "an element is missing");
        assert!(texts_of(b"\x09\0\0\0\0\0\x01\x01\xff").is_err(), "one too many");
        assert!(texts_of(b"\x09\0\0\0\x01\0\x01\x02\xff").is_err(), "wrong length for the way back");
        assert!(texts_of(b"\x08\0\0\0\0\0\xff\xff").is_err(), "bytes after the end");
        assert!(texts_of(b"\x07\0\0\0\0\0\x00").is_err(), "no end");
        assert!(texts_of(b"\x0d\0\0\0\x01\0\xf0\xff\xff\xff\xff\x05\xff").is_err(), "longer than the listpack");
    }

    #[test]
    fn no_bytes_panic() {
        let mut random = Random::new();
        for _ in 0..50_000 {
            let mut bytes = FROM_REDIS.to_vec();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
            let _ = texts_of(&bytes);
        }
    }
}
