//! Requests that differ only in numbers. Knows nothing of connections.

use crate::servers::write_request;

/// Requests with places for numbers, each twelve digits, where the words say `__rand_int__`: as redis-benchmark has it,
/// and put together once rather than for every operation.
pub(crate) struct Template {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

const PLACE: &str = "__rand_int__";

/// A text with the same number in each place.
pub(crate) fn numbered(text: &str, number: u64) -> String {
    text.replace(PLACE, &format!("{number:012}"))
}

impl Template {
    pub(crate) fn new(words: &[&str]) -> Self {
        Template { bytes: Vec::new(), places: Vec::new() }.followed_by(words)
    }

    /// One more request, sent right after.
    pub(crate) fn followed_by(mut self, words: &[&str]) -> Self {
        let start = self.bytes.len();
        write_request(&mut self.bytes, words);
        let added = self.bytes[start..].windows(PLACE.len()).enumerate();
        self.places.extend(added.filter(|(_, window)| *window == PLACE.as_bytes()).map(|(place, _)| start + place));
        self
    }

    /// Adds this to other requests, with a number in each place.
    pub(crate) fn write(&self, requests: &mut Vec<u8>, mut numbers: impl Iterator<Item = u64>) {
        let start = requests.len();
        requests.extend_from_slice(&self.bytes);
        for place in &self.places {
            let mut number = numbers.next().expect("a number for every place");
            for digit in requests[start + place..][..PLACE.len()].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_a_number_in_each_place() {
        let template = Template::new(&["SET", "k:__rand_int__", "<__rand_int__>"]);
        let mut requests = b"before".to_vec();
        template.write(&mut requests, [42, 7].into_iter());
        assert_eq!(
            String::from_utf8(requests).unwrap(),
            "before*3\r\n$3\r\nSET\r\n$14\r\nk:000000000042\r\n$14\r\n<000000000007>\r\n"
        );
    }

    #[test]
    fn a_text_is_numbered_as_a_template_is() {
        assert_eq!(numbered("k:__rand_int__", 42), "k:000000000042");
    }
}
