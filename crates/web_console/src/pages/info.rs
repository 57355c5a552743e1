//! Reads the reply of INFO. Refuses to know what fields mean.

use crate::reply::Reply;
use std::collections::BTreeMap;

/// The fields of INFO.
pub(super) struct Info(BTreeMap<String, String>);

impl Info {
    pub(super) fn of(reply: &Reply) -> Info {
        let text = reply.text();
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Info(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// A field; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        self.get(name).parse().unwrap_or(0.0)
    }

    /// The fields whose names begin so, without that beginning.
    pub(super) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }
}

/// The value of `name` in `a=1,b=2`.
pub(super) fn part<'a>(value: &'a str, name: &str) -> &'a str {
    let mut parts = value.split(',').filter_map(|part| part.split_once('='));
    parts.find(|(known, _)| *known == name).map(|(_, value)| value).unwrap_or_default()
}
