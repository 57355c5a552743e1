//! A strict reader of the text formats of Prometheus (0.0.4) and OpenMetrics (1.0), line by line. Whatever a scraper could
//! refuse is a failure.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Prometheus,
    OpenMetrics,
}

pub(crate) type Labels = BTreeMap<String, String>;

/// All samples by name, and the type of each family.
pub(crate) struct Metrics {
    samples: BTreeMap<String, Vec<(Labels, f64)>>,
    pub(crate) types: BTreeMap<String, String>,
}

impl Metrics {
    #[track_caller]
    pub(crate) fn parse(text: &str, style: Style) -> Metrics {
        let mut metrics = Metrics { samples: BTreeMap::new(), types: BTreeMap::new() };
        let mut family: Option<String> = None;
        let mut seen: BTreeSet<(String, Labels)> = BTreeSet::new();
        assert!(text.ends_with('\n'), "the last line ends");
        let text = match style {
            Style::Prometheus => text,
            Style::OpenMetrics => text.strip_suffix("# EOF\n").expect("it ends in # EOF"),
        };
        let mut helped: Option<&str> = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
                assert!(is_name(name) && !help.is_empty(), "{line}");
                assert_eq!(helped.replace(name), None, "{line}: HELP comes before TYPE, once");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
                assert_eq!(helped.take(), Some(name), "{line}: HELP comes before TYPE");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                let known = metrics.types.insert(name.into(), kind.into());
                assert_eq!(known, None, "{name} is in one piece");
                family = Some(name.into());
            } else {
                let (name, labels, value) = sample(line);
                let family = family.as_deref().unwrap_or_else(|| panic!("{line}: no TYPE before it"));
                assert!(belongs(&name, family, &metrics.types[family], style), "{line} is in the family {family}");
                if metrics.types[family] == "counter" {
                    assert!(value >= 0.0, "{line}");
                }
                assert!(seen.insert((name.clone(), labels.clone())), "{line} comes twice");
                metrics.samples.entry(name).or_default().push((labels, value));
            }
        }
        metrics.check_histograms();
        metrics
    }

    /// Bounds ascend, counts too, and the last of them is the count of all.
    fn check_histograms(&self) {
        for (family, _) in self.types.iter().filter(|(_, kind)| *kind == "histogram") {
            let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for (labels, value) in self.all(&format!("{family}_bucket")) {
                let mut labels = labels.clone();
                let bound = labels.remove("le").expect("a bucket has a bound");
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound is a number") };
                series.entry(labels).or_default().push((bound, *value));
            }
            for (labels, buckets) in series {
                assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{labels:?}");
                let (last, count) = buckets.last().expect("there is a bucket");
                assert!(last.is_infinite(), "{labels:?}");
                let find = |suffix: &str| self.with(&format!("{family}{suffix}"), &labels);
                assert_eq!(find("_count"), Some(*count), "{labels:?}");
                assert!(find("_sum").is_some_and(|sum| sum >= 0.0), "{labels:?}");
            }
        }
    }

    /// All samples of a name.
    pub(crate) fn all(&self, name: &str) -> &[(Labels, f64)] {
        self.samples.get(name).map_or(&[], Vec::as_slice)
    }

    fn with(&self, name: &str, labels: &Labels) -> Option<f64> {
        self.all(name).iter().find(|(found, _)| found == labels).map(|(_, value)| *value)
    }

    /// A sample without labels.
    #[track_caller]
    pub(crate) fn plain(&self, name: &str) -> f64 {
        self.with(name, &Labels::new()).unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// The sample with these labels, and no others; 0 without one.
    pub(crate) fn at(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
        self.with(name, &labels).unwrap_or(0.0)
    }

    /// True if there is a sample, or a family, of that name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.samples.contains_key(name) || self.types.contains_key(name)
    }

    pub(crate) fn len(&self) -> usize {
        self.samples.values().map(Vec::len).sum()
    }
}

fn belongs(name: &str, family: &str, kind: &str, style: Style) -> bool {
    match (kind, style) {
        ("counter", Style::OpenMetrics) => name.strip_suffix("_total") == Some(family),
        ("counter", Style::Prometheus) => name == family && name.ends_with("_total"),
        ("histogram", _) => {
            name.strip_prefix(family).is_some_and(|suffix| ["_bucket", "_sum", "_count"].contains(&suffix))
        }
        _ => name == family,
    }
}

fn is_name(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic());
    first && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// `name{label="value",…} number`
#[track_caller]
fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line:?} is no sample"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}: a label has no value"));
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after).unwrap_or_else(|| panic!("{line}: a value does not end"));
            assert_eq!(labels.insert(label.into(), value), None, "{line}: {label} comes twice");
            match after.split_at_checked(1) {
                Some((",", after)) => rest = after,
                Some(("}", after)) => {
                    rest = after;
                    break;
                }
                _ => panic!("{line}: neither , nor }} after a label"),
            }
        }
    }
    let number = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}: no number"));
    let plain = number.chars().all(|letter| letter.is_ascii_digit() || "+-.e".contains(letter));
    assert!(plain, "{line}: {number:?} is no plain number");
    (name.into(), labels, number.parse().unwrap_or_else(|_| panic!("{line}: no number")))
}

/// The value up to its quote, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut letters) = (String::new(), text.char_indices());
    loop {
        match letters.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => match letters.next()?.1 {
                'n' => value.push('\n'),
                letter @ ('\\' | '"') => value.push(letter),
                _ => return None,
            },
            (_, letter) => value.push(letter),
        }
    }
}
