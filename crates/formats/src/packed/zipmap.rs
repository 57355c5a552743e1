//! Zipmaps: small hashes as Redis 2.4 packed them, still found in old RDB files. Reading only; trusts nothing.
//!
//! ```text
//! fields: u8, 254 and above = many | field length | field | value length | free: u8 | value | free bytes ... | 0xff
//! length = u8 below 254, or 254 and a u32
//! ```

use super::{END, Element, Malformed};

/// From here on the count means "unknown".
const COUNT_UNKNOWN: u8 = 254;

/// Returns field, value, field, value. Each is checked when it is reached; the walk ends after the first error.
pub(crate) fn elements(zipmap: &[u8]) -> Result<impl Iterator<Item = Result<Element<'_>, Malformed>>, Malformed> {
    let (&count, mut rest) = zipmap.split_first().ok_or(Malformed)?;
    let mut due = (count < COUNT_UNKNOWN).then_some(2 * u32::from(count));
    let (mut is_value, mut done) = (false, false);
    Ok(std::iter::from_fn(move || {
        if done {
            return None;
        }
        if rest == [END] && !is_value && due.unwrap_or(0) == 0 {
            done = true;
            return None;
        }
        let element = match due {
            Some(0) => None,
            _ => read(&mut rest, is_value),
        };
        due = due.map(|due| due.saturating_sub(1));
        is_value = !is_value;
        done = element.is_none();
        Some(element.map(Element::Bytes).ok_or(Malformed))
    }))
}

fn read<'a>(rest: &mut &'a [u8], is_value: bool) -> Option<&'a [u8]> {
    let len = match *rest.split_off_first()? {
        END => return None,
        254 => u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?) as usize,
        short => usize::from(short),
    };
    let free = if is_value { *rest.split_off_first()? } else { 0 };
    let bytes = rest.split_off(..len)?;
    rest.split_off(..usize::from(free))?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    fn texts_of(zipmap: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
        elements(zipmap)?.map(|element| Ok(element?.to_vec())).collect()
    }

    const GOOD: &[u8] = b"\x02\x01a\x01\x001\x03bcd\x02\x03xy...\xff";

    #[test]
    fn fields_and_values_are_read_and_free_bytes_passed_over() {
        let expected: Vec<Vec<u8>> = ["a", "1", "bcd", "xy"].map(Vec::from).to_vec();
        assert_eq!(texts_of(GOOD), Ok(expected.clone()));
        let many = [b"\xfe", &GOOD[1..]].concat();
        assert_eq!(texts_of(&many), Ok(expected), "to be counted");
        let long = [b"\x01\xfe\x2c\x01\0\0", &[b'f'; 300][..], b"\0\0\xff"].concat();
        assert_eq!(texts_of(&long), Ok(vec![vec![b'f'; 300], vec![]]));
        assert_eq!(texts_of(b"\0\xff"), Ok(vec![]));
    }

    #[test]
    fn damage_is_noticed() {
        assert!(texts_of(b"").is_err());
        assert!(texts_of(b"\0").is_err(), "no end");
        assert!(texts_of(b"\x01\xff").is_err(), "a field is missing");
        assert!(texts_of(b"\x01\x01a\xff").is_err(), "its value is missing");
        assert!(texts_of(b"\0\x01a\x01\x001\xff").is_err(), "one too many");
        assert!(texts_of(b"\x01\x01a\x01\x001\xff\xff").is_err(), "bytes after the end");
        assert!(texts_of(b"\x01\xfe\xff\xff\xff\xffa\xff").is_err(), "longer than the zipmap");
        assert!(texts_of(b"\x01\x01a\x01\xff1\xff").is_err(), "more free than there is");
    }

    #[test]
    fn no_bytes_panic() {
        let mut random = Random::new();
        for _ in 0..50_000 {
            let mut bytes = GOOD.to_vec();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
            let _ = texts_of(&bytes);
        }
    }
}
