//! The elements that SORT orders, with their weights. Knows how Redis orders them; refuses to know where they come
//! from.

use algorithms::partial_sort::partial_sort;
use numbers::parse_f64_loosely;
use std::cmp::Ordering;
use std::ops::Range;

/// Start and end of a text in `Elements::bytes`.
type Place = (usize, usize);

/// What an element is compared by.
#[derive(Clone, Copy)]
pub(super) enum Weight {
    Number(f64),
    /// `None` comes before every text.
    Text(Option<Place>),
}

/// Elements; all texts concatenated.
#[derive(Default)]
pub(super) struct Elements {
    bytes: Vec<u8>,
    items: Vec<(Place, Weight)>,
}

/// How texts are compared.
#[derive(Clone, Copy)]
pub(super) struct SortOrder {
    pub(super) is_descending: bool,
    /// As a whole, byte by byte; otherwise as C's `strcoll` does without a locale, up to the first NUL.
    pub(super) is_binary: bool,
}

impl Elements {
    pub(super) fn push(&mut self, element: &[u8]) {
        let place = self.keep(element);
        self.items.push((place, Weight::Number(0.0)));
    }

    fn keep(&mut self, text: &[u8]) -> Place {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        (start, self.bytes.len())
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        self.text(self.items[at].0)
    }

    fn text(&self, (start, end): Place) -> &[u8] {
        &self.bytes[start..end]
    }

    pub(super) fn weigh_by_number(&mut self, at: usize, number: f64) {
        self.items[at].1 = Weight::Number(number);
    }

    pub(super) fn weigh_by_text(&mut self, at: usize, text: Option<&[u8]>) {
        self.items[at].1 = Weight::Text(text.map(|text| self.keep(text)));
    }

    /// Each element is its own weight.
    pub(super) fn weigh_by_themselves(&mut self) {
        self.items.iter_mut().for_each(|(place, weight)| *weight = Weight::Text(Some(*place)));
    }

    /// Sorts all elements, or, if only a range of elements with weights is wanted, sorts that range only. This
    /// determines the order of equal elements.
    pub(super) fn sort(&mut self, order: SortOrder, part: Option<Range<usize>>) {
        let mut items = std::mem::take(&mut self.items);
        let compare = |a: &(Place, Weight), b: &(Place, Weight)| {
            let ordering = self.compare(a, b, order.is_binary);
            if order.is_descending { ordering.reverse() } else { ordering }
        };
        match part {
            Some(part) if !part.is_empty() => partial_sort(&mut items, part.start, part.end - 1, &compare),
            Some(_) => {}
            None => items.sort_by(compare),
        }
        self.items = items;
    }

    fn compare(&self, (a, weight_a): &(Place, Weight), (b, weight_b): &(Place, Weight), is_binary: bool) -> Ordering {
        match (weight_a, weight_b) {
            (Weight::Number(one), Weight::Number(other)) => {
                // Elements with equal weights are ordered by their bytes.
                one.partial_cmp(other).unwrap_or(Ordering::Equal).then_with(|| self.text(*a).cmp(self.text(*b)))
            }
            (Weight::Text(one), Weight::Text(other)) => match (one, other) {
                (Some(one), Some(other)) if is_binary => self.text(*one).cmp(self.text(*other)),
                (Some(one), Some(other)) => up_to_nul(self.text(*one)).cmp(up_to_nul(self.text(*other))),
                (one, other) => one.is_some().cmp(&other.is_some()),
            },
            _ => unreachable!("all are weighed in the same way"),
        }
    }
}

fn up_to_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Parses a text as C's `strtod` does; `None` when it is not a number, or out of range.
pub(super) fn weight_of(text: &[u8]) -> Option<f64> {
    let number = parse_f64_loosely(text)?;
    let text = up_to_nul(text);
    let is_spelled_out = || text.iter().any(|byte| matches!(byte, b'n' | b'N'));
    let is_in_range = match number {
        _ if number.is_infinite() => is_spelled_out(),
        // Below the least normal number, though it has digits: out of range.
        _ if number == 0.0 || number.is_subnormal() => {
            let is_hex = text.iter().any(|byte| matches!(byte, b'x' | b'X'));
            let mut mantissa = text.iter().take_while(|byte| is_hex || !matches!(byte, b'e' | b'E'));
            !mantissa.any(|byte| matches!(byte, b'1'..=b'9'))
        }
        _ => true,
    };
    is_in_range.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::weight_of;

    /// Quadratic time would not end.
    #[test]
    fn the_weight_of_a_long_text_is_read_in_one_pass() {
        assert_eq!(weight_of(&vec![b'0'; 16 << 20]), Some(0.0));
        assert_eq!(weight_of(&[&vec![b'0'; 16 << 20][..], b"x"].concat()), None);
    }

    #[test]
    fn weights_are_read_as_strtod_does() {
        for (text, number) in [
            ("", Some(0.0)),
            (" 12", Some(12.0)),
            ("1.5e3", Some(1500.0)),
            ("0x10", Some(16.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("0e5", Some(0.0)),
            ("-0", Some(-0.0)),
            ("nan", None),
            ("12 ", None),
            ("12a", None),
            ("1e400", None),
            ("1e-400", None),
            ("1\0abc", Some(1.0)),
        ] {
            assert_eq!(weight_of(text.as_bytes()), number, "{text}");
        }
    }
}
