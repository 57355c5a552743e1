//! Requests about one job at one time. Knows nothing of what they ask for.

use crate::load::Template;

/// One or several requests, sent at once, with places for the number of the job and for the time.
pub(crate) struct Requests {
    template: Template,
    /// What goes into its places.
    numbers: Vec<Number>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Job,
    Time,
}

/// Where the job's number goes.
pub(crate) const JOB_PLACE: &str = "{job}";

/// Thirteen digits, as milliseconds have; twelve of them are the number.
pub(crate) const TIME: &str = "1{time}";

/// What a time has in front of the digits of a number.
pub(crate) const TIME_BASE_MS: u64 = 1_000_000_000_000;

impl Requests {
    pub(crate) fn new(requests: &[&[&str]]) -> Self {
        let mut numbers = Vec::new();
        let mut template: Option<Template> = None;
        for words in requests {
            for word in *words {
                numbers.extend(word.contains(JOB_PLACE).then_some(Number::Job));
                numbers.extend(word.contains("{time}").then_some(Number::Time));
            }
            let place = |word: &&str| word.replace(JOB_PLACE, "__rand_int__").replace("{time}", "__rand_int__");
            let words: Vec<_> = words.iter().map(place).collect();
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            template = Some(match template {
                None => Template::new(&words),
                Some(template) => template.followed_by(&words),
            });
        }
        Requests { template: template.expect("at least one request"), numbers }
    }

    /// Adds them to others. The time is without its first digit.
    pub(crate) fn write(&self, job: u64, time: u64, requests: &mut Vec<u8>) {
        let numbers = self.numbers.iter().map(|number| match number {
            Number::Job => job,
            Number::Time => time,
        });
        self.template.write(requests, numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_the_order_of_the_words() {
        let requests = Requests::new(&[&["HSET", "job:{job}", "t", TIME], &["ZADD", "due", TIME, "job:{job}"]]);
        assert_eq!(requests.numbers, [Number::Job, Number::Time, Number::Time, Number::Job]);
        let mut bytes = Vec::new();
        requests.write(7, 42, &mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("job:000000000007\r\n$1\r\nt\r\n$13\r\n1000000000042\r\n*4"), "{text}");
        assert!(text.ends_with("$13\r\n1000000000042\r\n$16\r\njob:000000000007\r\n"), "{text}");
    }
}
