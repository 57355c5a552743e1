//! What a page has shown of a record, as it travels through a form and back: it becomes the conditions of the HCAS, so that a
//! change is made to that record alone and not to what another client has made of it. Refuses to know what is changed.

use crate::forms::Fields;
use crate::html::{Html, Packed, html};
use crate::reply::Reply;
use crate::talk::request;

/// The longest value that is a condition, and the longest key of a record that can be changed here: a form has little room.
pub(super) const BYTES_MAX: usize = 1024;

/// A record as a page has shown it: which of the fields that matter it had, with what, and which it did not have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) key: Vec<u8>,
    pub(super) held: Vec<(Vec<u8>, Vec<u8>)>,
    absent: Vec<Vec<u8>>,
}

impl Shown {
    /// What `fields` has of those that matter. `None` if the record has none of them, or they are too long: then nothing would show
    /// that another client was faster.
    pub(super) fn of(key: &[u8], fields: &Reply, matter: &[&[u8]]) -> Option<Shown> {
        let mut shown = Shown { key: key.to_vec(), ..Shown::default() };
        for (number, name) in matter.iter().enumerate() {
            if matter[..number].contains(name) {
                continue;
            }
            match fields.get(name) {
                Reply::Null => shown.absent.push(name.to_vec()),
                value => shown.held.push((name.to_vec(), value.bytes().into_owned())),
            }
        }
        let is_short = shown.held.iter().all(|(_, value)| value.len() <= BYTES_MAX) && key.len() <= BYTES_MAX;
        (!shown.held.is_empty() && is_short).then_some(shown)
    }

    /// As the value of a field of a form.
    pub(super) fn packed(&self) -> Html {
        let mut text = html("key={}", &[&Packed(&self.key)]);
        for (name, value) in &self.held {
            text.put("&amp;is-{}={}", &[&Packed(name), &Packed(value)]);
        }
        for name in &self.absent {
            text.put("&amp;no-{}", &[&Packed(name)]);
        }
        text
    }

    /// Reads what [`Shown::packed`] wrote. `None` if it is not that.
    pub(super) fn unpacked(text: &[u8]) -> Option<Shown> {
        let fields = Fields::parse(text)?;
        let mut shown = Shown { key: fields.get("key").to_vec(), ..Shown::default() };
        for (name, value) in fields.pairs() {
            if let Some(name) = name.strip_prefix(b"is-") {
                shown.held.push((name.to_vec(), value.to_vec()));
            } else if let Some(name) = name.strip_prefix(b"no-") {
                shown.absent.push(name.to_vec());
            }
        }
        (!shown.held.is_empty()).then_some(shown)
    }

    /// What a field held; empty if the record did not have it.
    pub(super) fn value(&self, name: &[u8]) -> &[u8] {
        self.held.iter().find(|(known, _)| known == name).map_or(b"", |(_, value)| value)
    }

    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.held.iter().any(|(known, _)| known == name)
    }

    /// HCAS that sets fields, and others to the time in so many milliseconds.
    pub(super) fn set(&self, set: &[(&[u8], &[u8])], stamps: &[(&[u8], u64)]) -> Vec<u8> {
        let mut words = self.conditions();
        words.extend([b"SET".to_vec(), count(set.len())]);
        words.extend(set.iter().flat_map(|(name, value)| [name.to_vec(), value.to_vec()]));
        if !stamps.is_empty() {
            words.extend([b"STAMP".to_vec(), count(stamps.len())]);
            words.extend(stamps.iter().flat_map(|(name, after)| [name.to_vec(), after.to_string().into_bytes()]));
        }
        encoded(&words)
    }

    /// HCAS that removes fields: with all of them the record is gone.
    pub(super) fn remove<'a>(&self, names: impl ExactSizeIterator<Item = &'a Reply>) -> Vec<u8> {
        let mut words = self.conditions();
        words.extend([b"DEL".to_vec(), count(names.len())]);
        words.extend(names.map(|name| name.bytes().into_owned()));
        encoded(&words)
    }

    fn conditions(&self) -> Vec<Vec<u8>> {
        let mut words = vec![b"HCAS".to_vec(), self.key.clone(), b"IF".to_vec(), count(self.held.len())];
        words.extend(self.held.iter().flat_map(|(name, value)| [name.clone(), value.clone()]));
        if !self.absent.is_empty() {
            words.extend([b"ABSENT".to_vec(), count(self.absent.len())]);
            words.extend(self.absent.iter().cloned());
        }
        words
    }
}

fn count(number: usize) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn encoded(words: &[Vec<u8>]) -> Vec<u8> {
    request(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(texts: &[&str]) -> Reply {
        Reply::Map(texts.iter().map(|text| Reply::Bulk(text.as_bytes().to_vec())).collect())
    }

    const MATTER: [&[u8]; 4] = [b"state", b"run_at", b"attempt", b"state"];

    #[test]
    fn every_change_has_the_conditions_that_were_shown() {
        let shown = Shown::of(b"job:1", &fields(&["state", "dead", "run_at", "5", "x", "y"]), &MATTER).unwrap();
        let begin: Vec<&[u8]> =
            vec![b"HCAS", b"job:1", b"IF", b"2", b"state", b"dead", b"run_at", b"5", b"ABSENT", b"1", b"attempt"];
        let with = |words: &[&'static [u8]]| request(&[&begin, words].concat());
        assert_eq!(
            shown.set(&[(b"state", b"pending")], &[(b"run_at", 1000)]),
            with(&[b"SET", b"1", b"state", b"pending", b"STAMP", b"1", b"run_at", b"1000"])
        );
        let names = [Reply::Bulk(b"state".to_vec()), Reply::Bulk(b"x".to_vec())];
        assert_eq!(shown.remove(names.iter()), with(&[b"DEL", b"2", b"state", b"x"]));
    }

    #[test]
    fn nothing_is_changed_without_a_condition() {
        assert_eq!(Shown::of(b"job:1", &fields(&["x", "y"]), &MATTER), None);
        assert_eq!(Shown::of(b"job:1", &fields(&["state", &"x".repeat(BYTES_MAX + 1)]), &MATTER), None);
        assert_eq!(Shown::of(&[b'k'; BYTES_MAX + 1], &fields(&["state", "dead"]), &MATTER), None);
        for text in ["", "key=job:1", "key=job:1&no-state", "is=1", "%", "job:1"] {
            assert_eq!(Shown::unpacked(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn any_bytes_come_back_from_a_form() {
        let odd = Reply::Bulk((0..=255).collect());
        let fields = Reply::Map(vec![Reply::Bulk(b"state".to_vec()), odd, Reply::Bulk(b"a=&%".to_vec()), Reply::Null]);
        let shown = Shown::of(b"k&e=y%\xff", &fields, &[b"state", b"a=&%", b""]).unwrap();
        let text = shown.packed().into_bytes();
        let text = String::from_utf8(text).unwrap().replace("&amp;", "&");
        assert_eq!(Shown::unpacked(text.as_bytes()), Some(shown));
    }
}
