//! Patterns such as `weight_*` and `object_*->name`, which name a value for each element. Knows how a pattern is
//! resolved; refuses to know what is done with the value.

use execution::view::View;
use keyspace::{Key, Scalar, Value};

/// What BY and GET look up.
#[derive(Clone, Copy)]
pub(super) enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// The string at a key, or a field of the hash there; the element is between the two parts of the name.
    Key { before: &'a [u8], behind: &'a [u8], field: Option<&'a [u8]> },
    /// Without a `*` it has no value.
    Nothing,
}

impl<'a> Pattern<'a> {
    pub(super) fn of(text: &'a [u8]) -> Pattern<'a> {
        if text == b"#" {
            return Pattern::Element;
        }
        let Some(star) = text.iter().position(|byte| *byte == b'*') else { return Pattern::Nothing };
        let (before, behind) = (&text[..star], &text[star + 1..]);
        let arrow = behind.windows(2).position(|pair| pair == b"->").filter(|at| at + 2 < behind.len());
        match arrow {
            Some(at) => Pattern::Key { before, behind: &behind[..at], field: Some(&behind[at + 2..]) },
            None => Pattern::Key { before, behind, field: None },
        }
    }

    /// True when it looks up keys that the request does not name.
    pub(super) fn is_of_keys(&self) -> bool {
        matches!(self, Pattern::Key { .. })
    }

    /// Passes the value for an element to `look`.
    pub(super) fn look_up<T>(&self, keys: &View<'_>, element: &[u8], look: impl FnOnce(Option<Scalar<'_>>) -> T) -> T {
        let (before, behind, field) = match *self {
            Pattern::Element => return look(Some(Scalar::Bytes(element))),
            Pattern::Nothing => return look(None),
            Pattern::Key { before, behind, field } => (before, behind, field),
        };
        let name = [before, element, behind].concat();
        let key = Key::new(&name);
        let value = keys.get(key);
        keys.looked_up(key, value.is_some());
        match (value, field) {
            (Some(Value::String(string)), None) => look(Some(string)),
            (Some(Value::Hash(hash)), Some(field)) => look(hash.get(field)),
            _ => look(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_field_follows_an_arrow_behind_the_star() {
        let parts = |text: &'static str| match Pattern::of(text.as_bytes()) {
            Pattern::Key { before, behind, field } => {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                format!("{} {} {:?}", text(before), text(behind), field.map(text))
            }
            Pattern::Element => "element".to_owned(),
            Pattern::Nothing => "nothing".to_owned(),
        };
        assert_eq!(parts("w_*"), "w_  None");
        assert_eq!(parts("w_*_x"), "w_ _x None");
        assert_eq!(parts("w_*->f"), "w_  Some(\"f\")");
        assert_eq!(parts("w->*_x->f->g"), "w-> _x Some(\"f->g\")");
        assert_eq!(parts("w_*->"), "w_ -> None");
        assert_eq!(parts("*"), "  None");
        assert_eq!(parts("#"), "element");
        assert_eq!(parts("#x"), "nothing");
        assert_eq!(parts(""), "nothing");
    }
}
