//! Names in a certificate. Knows as much of DER as it takes to find a subject's common name; refuses to know whether a
//! certificate is valid: rustls has verified it.

use crate::options::UserField;
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The users that a verified certificate names, the preferred first.
pub(crate) fn users(field: UserField, certificate: &CertificateDer<'_>) -> Vec<String> {
    match field {
        UserField::Off => Vec::new(),
        UserField::CommonName => common_name(certificate).into_iter().collect(),
        UserField::Uri => uris(certificate),
    }
}

/// The common name of a certificate's subject: the first, if there are several. `None` if there is none, or if it is
/// empty, not UTF-8, or contains a zero byte: a name that other software may read differently names no user.
pub fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    in_subject(certificate.subject())
}

/// The URIs among the alternative names of a certificate's subject.
pub fn uris(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Vec::new() };
    certificate.valid_uri_names().map(str::to_owned).collect()
}

/// `subject` is the content of an RDNSequence: sets of sequences of an object id and a string.
fn in_subject(mut subject: &[u8]) -> Option<String> {
    // webpki gives the content; accept the whole value too.
    if let Some((SEQUENCE, content, [])) = value(subject) {
        subject = content;
    }
    while let Some((SET, mut set, rest)) = value(subject) {
        while let Some((SEQUENCE, attribute, more)) = value(set) {
            let (tag, id, text) = value(attribute)?;
            if tag == OBJECT_ID && id == COMMON_NAME {
                let (tag, text, _) = value(text)?;
                let is_text = matches!(tag, UTF8_STRING | PRINTABLE_STRING | IA5_STRING);
                let text = std::str::from_utf8(text).ok().filter(|_| is_text)?;
                return (!text.is_empty() && !text.contains('\0')).then(|| text.to_owned());
            }
            set = more;
        }
        subject = rest;
    }
    None
}

/// The first value of `bytes`: its tag, its content, and the bytes after it.
fn value(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // Longer than 65,535 bytes is no name.
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*len)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    /// One attribute of a subject, in a set of its own.
    fn attribute(id: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
        let wrap =
            |tag: u8, content: &[u8]| [&[tag, 0x82, (content.len() >> 8) as u8, content.len() as u8], content].concat();
        wrap(SET, &wrap(SEQUENCE, &[wrap(OBJECT_ID, id), wrap(tag, text)].concat()))
    }

    #[test]
    fn the_first_common_name_counts() {
        let organization = attribute(&[0x55, 0x04, 0x0a], UTF8_STRING, b"somewhere");
        let subject =
            [organization, attribute(COMMON_NAME, PRINTABLE_STRING, b"alice"), attribute(COMMON_NAME, 12, b"bob")];
        assert_eq!(in_subject(&subject.concat()).as_deref(), Some("alice"));
        assert_eq!(in_subject(&attribute(&[0x55, 0x04, 0x0a], 12, b"x")), None);
    }

    #[test]
    fn a_name_that_could_be_read_in_two_ways_is_none() {
        for (tag, text) in [(12, &b""[..]), (12, b"alice\0bob"), (12, b"\xff"), (0x1e, b"\0a\0l"), (0x14, b"alice")] {
            assert_eq!(in_subject(&attribute(COMMON_NAME, tag, text)), None, "{tag} {text:?}");
        }
    }

    #[test]
    fn damaged_subjects_name_nothing_wrong() {
        let mut random = Random::new();
        let whole = attribute(COMMON_NAME, UTF8_STRING, b"alice");
        for _ in 0..10_000 {
            let mut damaged = whole.clone();
            let at = random.below(damaged.len());
            damaged[at] = random.next() as u8;
            damaged.truncate(random.below(damaged.len() + 1));
            let _ = in_subject(&damaged);
        }
    }
}
