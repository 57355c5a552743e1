//! Reads a setting's value from text and prints it back, with Redis's error texts. Knows no setting by name.

use super::events::{self, Events};
use super::limits::BufferLimits;
use super::memory::parse_memory;

/// The kind of values that a setting accepts.
#[derive(Clone, Copy)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A switch for a feature that this server does not have: `no` is accepted, `yes` fails with the reason.
    AlwaysNo(&'static str),
    Integer {
        min: i64,
        max: i64,
    },
    /// Any `int` from 0 is accepted and clamped to `low` and `high`.
    Clamped {
        low: i64,
        high: i64,
    },
    /// A file mode, read and printed in base eight.
    Octal {
        max: i64,
    },
    /// Bytes, with an optional unit. The number slot holds the `u64`'s bits.
    Memory {
        min: u64,
        max: u64,
    },
    /// Bytes, or a share of `maxmemory`; a percentage is kept as a negative number.
    MemoryOrPercent,
    /// One of these words. Words with equal numbers are synonyms; the first is printed.
    Choice(&'static [(&'static str, i64)]),
    /// A set of SHUTDOWN's options.
    ShutdownOptions,
    /// Letters that select keyspace notifications.
    Events,
    /// Text that passes the check, which also normalises it.
    Text(fn(&str) -> Result<String, &'static str>),
    /// Output buffer limits of the client classes; a new value may name some of the classes only.
    BufferLimits,
}

/// A value that was parsed and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(i64),
    Text(String),
    Limits(BufferLimits),
}

pub(super) const INT_MAX: i64 = i32::MAX as i64;

const SAVE: i64 = 1;
const NOSAVE: i64 = 2;
const SHUTDOWN_OPTIONS: &[(&str, i64)] =
    &[("default", 0), ("save", SAVE), ("nosave", NOSAVE), ("now", 4), ("force", 8)];

impl Kind {
    /// Parses `input`; classes that a buffer limit leaves out keep their `limits`.
    pub(super) fn parse(&self, input: &[u8], limits: &BufferLimits) -> Result<Value, String> {
        // Bytes that are not UTF-8 become a character that no number or word contains, and fail with the kind's own
        // text.
        let text = String::from_utf8_lossy(input);
        let text: &str = &text;
        let number = match *self {
            Kind::Bool => parse_bool(text)?,
            Kind::AlwaysNo(reason) => match parse_bool(text)? {
                0 => 0,
                _ => return Err(reason.to_owned()),
            },
            Kind::Integer { min, max } => parse_integer(text, min, max)?,
            Kind::Clamped { low, high } => parse_integer(text, 0, INT_MAX)?.clamp(low, high),
            Kind::Octal { max } => parse_octal(text, max)?,
            Kind::Memory { min, max } => parse_memory_between(text, min, max)?,
            Kind::MemoryOrPercent => parse_memory_or_percent(text)?,
            Kind::Choice(words) => parse_word(text, words)?,
            Kind::ShutdownOptions => parse_shutdown_options(text)?,
            Kind::Events => i64::from(events::parse(text)?.bits()),
            Kind::Text(check) => {
                let text = std::str::from_utf8(input).map_err(|_| "argument must be valid UTF-8")?;
                return Ok(Value::Text(check(text)?));
            }
            Kind::BufferLimits => return Ok(Value::Limits(limits.updated(text)?)),
        };
        Ok(Value::Number(number))
    }

    pub(super) fn print_number(&self, number: i64) -> String {
        match *self {
            Kind::Bool | Kind::AlwaysNo(_) => (if number != 0 { "yes" } else { "no" }).to_owned(),
            Kind::Integer { .. } | Kind::Clamped { .. } => number.to_string(),
            Kind::Octal { .. } => format!("{number:o}"),
            Kind::Memory { .. } => number.cast_unsigned().to_string(),
            Kind::MemoryOrPercent if number < 0 => format!("{}%", number.unsigned_abs()),
            Kind::MemoryOrPercent => number.to_string(),
            Kind::Choice(words) => word_of(words, number).to_owned(),
            Kind::ShutdownOptions => print_shutdown_options(number),
            Kind::Events => events::print(Events::from_bits_retain(number as u32)),
            Kind::Text(_) | Kind::BufferLimits => unreachable!("not kept as a number"),
        }
    }
}

/// The first word with the value `number`.
pub(super) fn word_of(words: &[(&'static str, i64)], number: i64) -> &'static str {
    let found = words.iter().find(|(_, value)| *value == number);
    found.expect("a choice holds only numbers from its own table").0
}

fn parse_bool(text: &str) -> Result<i64, String> {
    match text {
        _ if text.eq_ignore_ascii_case("yes") => Ok(1),
        _ if text.eq_ignore_ascii_case("no") => Ok(0),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

fn parse_integer(text: &str, min: i64, max: i64) -> Result<i64, String> {
    let number: i64 = text.parse().unwrap_or_default();
    // Only the plain spelling counts as a number: no plus sign, no leading zeros, no minus zero.
    if number.to_string() != text {
        return Err("argument couldn't be parsed into an integer".to_owned());
    }
    between(number, min, max)
}

fn parse_octal(text: &str, max: i64) -> Result<i64, String> {
    let number = i64::from_str_radix(text, 8).map_err(|_| "argument couldn't be parsed as an octal number")?;
    if !(0..=max).contains(&number) {
        return Err(format!("argument must be between 0 and {max:o} inclusive"));
    }
    Ok(number)
}

fn parse_memory_between(text: &str, min: u64, max: u64) -> Result<i64, String> {
    let bytes = parse_memory(text).ok_or("argument must be a memory value")?;
    Ok(between(bytes, min, max)?.cast_signed())
}

fn parse_memory_or_percent(text: &str) -> Result<i64, String> {
    let wrong = "argument must be a memory or percent value";
    if let Some(digits) = text.strip_suffix('%') {
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong.to_owned());
        }
        return match digits.parse() {
            Ok(percent @ 0..=100) => Ok(-percent),
            _ => Err("percentage argument must be less or equal to 100".to_owned()),
        };
    }
    let bytes = parse_memory(text).and_then(|bytes| i64::try_from(bytes).ok());
    bytes.ok_or(wrong.to_owned())
}

fn parse_word(text: &str, words: &[(&str, i64)]) -> Result<i64, String> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let known = known.join(", ");
        format!("argument(s) must be one of the following: {known}")
    })
}

fn parse_shutdown_options(text: &str) -> Result<i64, String> {
    let mut options = 0;
    for word in text.split(' ') {
        options |= parse_word(word, SHUTDOWN_OPTIONS)?;
    }
    if options & SAVE != 0 && options & NOSAVE != 0 {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".to_owned());
    }
    Ok(options)
}

fn print_shutdown_options(options: i64) -> String {
    if options == 0 {
        return word_of(SHUTDOWN_OPTIONS, 0).to_owned();
    }
    let set = SHUTDOWN_OPTIONS.iter().filter(|(_, bit)| options & bit != 0);
    set.map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
}

fn between<N: PartialOrd + std::fmt::Display>(number: N, min: N, max: N) -> Result<N, String> {
    if number < min || number > max {
        return Err(format!("argument must be between {min} and {max} inclusive"));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(kind: Kind, input: &str) -> Result<String, String> {
        match kind.parse(input.as_bytes(), &BufferLimits::default())? {
            Value::Number(number) => Ok(kind.print_number(number)),
            Value::Text(text) => Ok(text),
            Value::Limits(limits) => Ok(limits.to_string()),
        }
    }

    #[track_caller]
    fn accepts(kind: Kind, cases: &[(&str, &str)]) {
        for (input, printed) in cases {
            assert_eq!(round_trip(kind, input).as_deref(), Ok(*printed), "{input}");
        }
    }

    #[track_caller]
    fn refuses(kind: Kind, reason: &str, inputs: &[&str]) {
        for input in inputs {
            let got = round_trip(kind, input);
            assert_eq!(got.as_ref().map_err(String::as_str), Err(reason), "{input}");
        }
    }

    #[test]
    fn switches_are_yes_or_no_in_any_case() {
        accepts(Kind::Bool, &[("yes", "yes"), ("YES", "yes"), ("No", "no")]);
        let wrong = ["", "true", "1", "y", "yes "];
        refuses(Kind::Bool, "argument must be 'yes' or 'no'", &wrong);
        refuses(Kind::AlwaysNo("there is none"), "there is none", &["yes"]);
        accepts(Kind::AlwaysNo("there is none"), &[("no", "no")]);
    }

    #[test]
    fn integers_have_one_spelling_and_two_ends() {
        let kind = Kind::Integer { min: 0, max: INT_MAX };
        accepts(kind, &[("0", "0"), ("2147483647", "2147483647")]);
        let not_numbers = ["", "zzz", "+5", " 5", "5 ", "05", "-0", "1e3", "0x5", "9223372036854775808"];
        refuses(kind, "argument couldn't be parsed into an integer", &not_numbers);
        let range = "argument must be between 0 and 2147483647 inclusive";
        refuses(kind, range, &["-1", "2147483648", "-9223372036854775808"]);
        let wide = Kind::Integer { min: i64::MIN, max: i64::MAX };
        accepts(wide, &[("-9223372036854775808", "-9223372036854775808")]);
    }

    #[test]
    fn clamped_integers_move_to_the_nearer_end() {
        let kind = Kind::Clamped { low: 1, high: 500 };
        accepts(kind, &[("0", "1"), ("10", "10"), ("9999", "500")]);
        let range = "argument must be between 0 and 2147483647 inclusive";
        refuses(kind, range, &["-1"]);
    }

    #[test]
    fn file_modes_are_octal() {
        let kind = Kind::Octal { max: 0o777 };
        accepts(kind, &[("0", "0"), ("755", "755")]);
        let not_octal = ["888", "abc"];
        refuses(kind, "argument couldn't be parsed as an octal number", &not_octal);
        refuses(kind, "argument must be between 0 and 777 inclusive", &["1777"]);
    }

    #[test]
    fn memory_takes_decimal_and_binary_units() {
        let kind = Kind::Memory { min: 0, max: u64::MAX };
        accepts(
            kind,
            &[
                ("", "0"),
                ("kb", "0"),
                ("7", "7"),
                ("1b", "1"),
                ("1k", "1000"),
                ("1KB", "1024"),
                ("1M", "1000000"),
                ("1mb", "1048576"),
                ("1g", "1000000000"),
                ("1Gb", "1073741824"),
                ("18446744073709551616", "18446744073709551615"),
                ("17179869184gb", "18446744073709551615"),
            ],
        );
        let wrong = ["zzz", "-1", "+5", " 5", "5 ", "1 kb", "1t", "1tb", "1.5gb", "0x10", "1kbx"];
        refuses(kind, "argument must be a memory value", &wrong);
        assert!(parse_memory(&"1".repeat(127)).is_some());
        assert!(parse_memory(&"1".repeat(128)).is_none());
        let narrow = Kind::Memory { min: 1 << 20, max: i64::MAX as u64 };
        let range = "argument must be between 1048576 and 9223372036854775807 inclusive";
        refuses(narrow, range, &["1kb", "9223372036854775808"]);
    }

    #[test]
    fn memory_or_percent_distinguishes_the_two() {
        let kind = Kind::MemoryOrPercent;
        accepts(kind, &[("5%", "5%"), ("100%", "100%"), ("0%", "0"), ("1kb", "1024")]);
        refuses(kind, "percentage argument must be less or equal to 100", &["101%"]);
        let wrong = ["%", "-5%", "5 %", "5%%", "1.5%", "+5%", "zzz", "-1"];
        refuses(kind, "argument must be a memory or percent value", &wrong);
    }

    #[test]
    fn choices_accept_synonyms_and_list_their_words() {
        let kind = Kind::Choice(&[("no", 0), ("yes", 1), ("relative", 1), ("absolute", 2)]);
        accepts(kind, &[("relative", "yes"), ("ABSOLUTE", "absolute")]);
        let known = "argument(s) must be one of the following: no, yes, relative, absolute";
        refuses(kind, known, &["", "maybe", "no ", "no no"]);
    }

    #[test]
    fn shutdown_options_print_in_table_order() {
        let kind = Kind::ShutdownOptions;
        accepts(
            kind,
            &[
                ("default", "default"),
                ("default SAVE", "save"),
                ("now save", "save now"),
                ("force now nosave", "nosave now force"),
            ],
        );
        let known = "argument(s) must be one of the following: default, save, nosave, now, force";
        refuses(kind, known, &["", "save  now", " save", "later"]);
        let both = "shutdown options SAVE and NOSAVE can't be used simultaneously";
        refuses(kind, both, &["nosave save"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let limits = BufferLimits::default();
        let text = Kind::Text(crate::settings::text::any);
        let got = text.parse(b"\xff", &limits);
        assert_eq!(got, Err("argument must be valid UTF-8".to_owned()));
        let got = Kind::Bool.parse(b"yes\xff", &limits);
        assert_eq!(got, Err("argument must be 'yes' or 'no'".to_owned()));
    }
}
