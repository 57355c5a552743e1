//! Ziplists: the predecessor of listpacks before Redis 7, still found in old DUMP payloads. Reading only; trusts
//! nothing.
//!
//! ```text
//! total bytes: u32 | offset of the last element: u32 | elements: u16, 65535 = many | element ... | 0xff
//! element = bytes of the element before: u8, or 0xfe and a u32 | encoding and data
//! ```

use super::{Element, Malformed, little_endian, walk};

const HEADER_BYTES: usize = 10;

/// The elements of a ziplist, each checked as it is reached.
pub(crate) fn elements(ziplist: &[u8]) -> Result<impl Iterator<Item = Result<Element<'_>, Malformed>>, Malformed> {
    let (header, body) = ziplist.split_first_chunk::<HEADER_BYTES>().ok_or(Malformed)?;
    // The offset of the last element only helps readers that go backwards; it is ignored.
    let [t0, t1, t2, t3, _, _, _, _, c0, c1] = *header;
    let total = u32::from_le_bytes([t0, t1, t2, t3]);
    if total as usize != ziplist.len() {
        return Err(Malformed);
    }
    // The length of the previous element: the next one must agree.
    let mut previous = 0;
    Ok(walk(body, u16::from_le_bytes([c0, c1]), move |rest| {
        let before = rest.len();
        let claimed = match *rest.split_off_first()? {
            0xfe => u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?) as usize,
            short => usize::from(short),
        };
        if claimed != previous {
            return None;
        }
        let element = read_data(rest)?;
        previous = before - rest.len();
        Some(element)
    }))
}

fn read_data<'a>(rest: &mut &'a [u8]) -> Option<Element<'a>> {
    let first = *rest.split_off_first()?;
    let mut bytes_of = |len: usize| rest.split_off(..len);
    Some(match first {
        0x00..=0x3f => Element::Bytes(bytes_of(first.into())?),
        0x40..=0x7f => {
            let low = bytes_of(1)?[0];
            Element::Bytes(bytes_of(usize::from(first & 0x3f) << 8 | usize::from(low))?)
        }
        // Redis writes zeros in the other six bits, and reads anything.
        0x80..=0xbf => {
            let len = u32::from_be_bytes(bytes_of(4)?.try_into().ok()?);
            Element::Bytes(bytes_of(len as usize)?)
        }
        0xc0 => Element::Integer(little_endian(bytes_of(2)?)),
        0xd0 => Element::Integer(little_endian(bytes_of(4)?)),
        0xe0 => Element::Integer(little_endian(bytes_of(8)?)),
        0xf0 => Element::Integer(little_endian(bytes_of(3)?)),
        0xfe => Element::Integer(little_endian(bytes_of(1)?)),
        0xf1..=0xfd => Element::Integer(i64::from(first) - 0xf1),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    fn texts_of(ziplist: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
        elements(ziplist)?.map(|element| Ok(element?.to_vec())).collect()
    }

    /// Wraps elements, given without the length of the previous one, the way Redis 6 does.
    fn ziplist(elements: &[&[u8]]) -> Vec<u8> {
        let (mut body, mut previous, mut tail) = (Vec::new(), 0, HEADER_BYTES);
        for element in elements {
            tail = HEADER_BYTES + body.len();
            let start = body.len();
            if previous < 0xfe {
                body.push(previous as u8);
            } else {
                body.push(0xfe);
                body.extend((previous as u32).to_le_bytes());
            }
            body.extend_from_slice(element);
            previous = body.len() - start;
        }
        let mut bytes = ((HEADER_BYTES + body.len() + 1) as u32).to_le_bytes().to_vec();
        bytes.extend((tail as u32).to_le_bytes());
        bytes.extend((elements.len() as u16).to_le_bytes());
        bytes.extend(body);
        bytes.push(0xff);
        bytes
    }

    #[test]
    fn every_encoding_is_read() {
        let (medium, long) = (vec![b'm'; 300], vec![b'l'; 20_000]);
        let bytes = ziplist(&[
            b"\x03abc",
            &[b"\x41\x2c", &medium[..]].concat(),
            &[b"\x80\x00\x00\x4e\x20", &long[..]].concat(),
            b"\xc0\x2c\x01",
            b"\xd0\x70\x11\x01\x00",
            b"\xe0\xff\xff\xff\xff\xff\xff\xff\x7f",
            b"\xf0\xff\xff\x7f",
            b"\xf0\x00\x00\x80",
            b"\xfe\x80",
            b"\xf1",
            b"\xfd",
            b"\x00",
        ]);
        let mut expected: Vec<Vec<u8>> = vec![b"abc".to_vec(), medium, long];
        for text in ["300", "70000", "9223372036854775807", "8388607", "-8388608", "-128", "0", "12", ""] {
            expected.push(text.as_bytes().to_vec());
        }
        assert_eq!(texts_of(&bytes), Ok(expected));
    }

    #[test]
    fn damage_is_noticed() {
        let good = ziplist(&[b"\x01a", b"\x01b"]);
        assert!(texts_of(&good).is_ok());
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            texts_of(&bytes)
        };
        assert!(changed(0, 99).is_err(), "total");
        assert!(changed(8, 1).is_err(), "count");
        assert!(changed(8, 3).is_err(), "count");
        assert!(changed(13, 9).is_err(), "length of the element before");
        assert!(changed(14, 0xff).is_err(), "encoding");
        assert!(changed(14, 0x3f).is_err(), "longer than the ziplist");
        assert!(texts_of(b"").is_err());
    }

    #[test]
    fn no_bytes_panic() {
        let good = ziplist(&[b"\x03abc", b"\xc0\x2c\x01", b"\x41\x02xx", b"\xfe\x80"]);
        let mut random = Random::new();
        for _ in 0..50_000 {
            let mut bytes = good.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
            let _ = texts_of(&bytes);
        }
    }
}
