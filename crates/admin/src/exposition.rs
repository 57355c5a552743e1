//! Writes metrics as text: Prometheus's format 0.0.4, and OpenMetrics 1.0. Knows families and labels; refuses to know what
//! they count.

use std::fmt::{Display, Write};

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Prometheus,
    OpenMetrics,
}

impl Format {
    /// The format that a client prefers: OpenMetrics if its Accept header names it, as Prometheus's does.
    pub(crate) fn accepted(accept: &str) -> Format {
        let mut kinds = accept.split(',').map(|kind| kind.split(';'));
        let is_asked = kinds.any(|mut kind| {
            let is_named =
                kind.next().is_some_and(|name| name.trim().eq_ignore_ascii_case("application/openmetrics-text"));
            is_named && !kind.any(|parameter| matches!(parameter.trim(), "q=0" | "q=0.0"))
        });
        if is_asked { Format::OpenMetrics } else { Format::Prometheus }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// The text that is being written.
pub(crate) struct Exposition {
    format: Format,
    text: String,
}

impl Exposition {
    pub(crate) fn new(format: Format) -> Exposition {
        Exposition { format, text: String::with_capacity(64 << 10) }
    }

    pub(crate) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Begins a family of counters. Its name ends in `_total`.
    pub(crate) fn counters(&mut self, name: &'static str, help: &str) -> Family<'_> {
        assert!(name.ends_with("_total"), "{name}: OpenMetrics has no counter without _total");
        self.family(name, Kind::Counter, help)
    }

    pub(crate) fn gauges(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, Kind::Gauge, help)
    }

    pub(crate) fn histograms(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, Kind::Histogram, help)
    }

    /// A counter without labels.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.counters(name, help).add(&[], value);
    }

    /// A gauge without labels.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.gauges(name, help).add(&[], value);
    }

    fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        debug_assert!(!help.contains(['\\', '\n', '"']), "{name}: its help would have to be escaped");
        let described = match self.format {
            Format::OpenMetrics if kind == Kind::Counter => name.trim_end_matches("_total"),
            _ => name,
        };
        let _ = write!(self.text, "# HELP {described} {help}\n# TYPE {described} {}\n", kind.name());
        Family { text: &mut self.text, name }
    }
}

/// A family whose samples are being written.
pub(crate) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    pub(crate) fn add(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.sample("", labels, None, value);
    }

    /// A histogram: how many observations each bound of `upper` has, all of them, and their sum.
    pub(crate) fn add_histogram(&mut self, labels: &[(&str, &str)], upper: &[(&str, u64)], count: u64, sum: f64) {
        for (bound, below) in upper {
            self.sample("_bucket", labels, Some(bound), below);
        }
        self.sample("_bucket", labels, Some("+Inf"), count);
        self.sample("_sum", labels, None, sum);
        self.sample("_count", labels, None, count);
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], bound: Option<&str>, value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let mut opening = '{';
        for (label, content) in all {
            self.text.push(opening);
            opening = ',';
            self.text.push_str(label);
            self.text.push_str("=\"");
            escape_into(self.text, content);
            self.text.push('"');
        }
        if opening == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// Escapes a label's value.
fn escape_into(text: &mut String, content: &str) {
    for letter in content.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

/// A name that may be any bytes, as the value of a label: as it is if it is text, else with the bytes escaped.
pub(crate) fn label(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format) -> String {
        let mut text = Exposition::new(format);
        text.counter("a_total", "Things.", 7);
        text.gauges("b", "More things.").add(&[("x", "a\"b\\c\nd"), ("y", "")], 1.5);
        text.histograms("c", "Durations.").add_histogram(&[("cmd", "get")], &[("0.1", 1), ("1", 2)], 3, 4.25);
        text.finish()
    }

    #[test]
    fn prometheus() {
        assert_eq!(
            written(Format::Prometheus),
            "# HELP a_total Things.\n# TYPE a_total counter\na_total 7\n\
             # HELP b More things.\n# TYPE b gauge\nb{x=\"a\\\"b\\\\c\\nd\",y=\"\"} 1.5\n\
             # HELP c Durations.\n# TYPE c histogram\nc_bucket{cmd=\"get\",le=\"0.1\"} 1\n\
             c_bucket{cmd=\"get\",le=\"1\"} 2\nc_bucket{cmd=\"get\",le=\"+Inf\"} 3\nc_sum{cmd=\"get\"} 4.25\n\
             c_count{cmd=\"get\"} 3\n"
        );
    }

    #[test]
    fn open_metrics() {
        let text = written(Format::OpenMetrics);
        assert!(text.starts_with("# HELP a Things.\n# TYPE a counter\na_total 7\n"), "{text}");
        assert!(text.ends_with("c_count{cmd=\"get\"} 3\n# EOF\n"), "{text}");
    }

    #[test]
    fn the_accept_header_decides() {
        for (accept, format) in [
            ("", Format::Prometheus),
            ("text/plain", Format::Prometheus),
            ("*/*", Format::Prometheus),
            (
                "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            ("text/plain;q=0.5, Application/OpenMetrics-Text; version=1.0.0; q=0.75", Format::OpenMetrics),
            ("application/openmetrics-text;q=0, text/plain", Format::Prometheus),
            ("application/openmetrics-text-but-not-really", Format::Prometheus),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }

    #[test]
    fn names_that_are_no_text_are_escaped() {
        assert_eq!(label("größe".as_bytes()), "größe");
        assert_eq!(label(b"\xff\x00a"), "\\xff\\x00a");
    }
}
