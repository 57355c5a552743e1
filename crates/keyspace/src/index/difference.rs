//! Writes the parts of an index's definition as arguments of IDX.CREATE, and compares two definitions part by part.

use super::Definition;
use std::collections::HashSet;
use std::fmt::Write;

/// The most items of a list that a difference shows.
const ITEMS_MAX: usize = 8;
/// The most bytes of a name or value that a difference shows.
const BYTES_MAX: usize = 64;

/// A part of a definition: words, then perhaps a list whose order has no meaning.
#[derive(Default)]
struct Part<'a> {
    option: &'static str,
    field: Option<&'a [u8]>,
    items: Option<&'a [Vec<u8>]>,
}

impl Definition {
    /// Returns the parts in the order in which Display writes them. A part that the definition lacks is `no …`.
    fn parts(&self) -> [Part<'_>; 6] {
        let field = |field| Part { option: "FIELD", field: Some(field), items: None };
        let flag = |option| Part { option, ..Part::default() };
        [
            Part { option: "PREFIX", field: None, items: Some(&self.prefixes) },
            field(&self.field),
            match &self.condition {
                None => flag("no ONLY or EXCLUDE"),
                Some(condition) => Part {
                    option: if condition.only { "ONLY" } else { "EXCLUDE" },
                    field: Some(&condition.field),
                    items: Some(&condition.values),
                },
            },
            match &self.group {
                None => flag("no GROUP"),
                Some(group) => Part { option: "GROUP", field: Some(group), items: None },
            },
            match &self.held {
                None => flag("no HELD"),
                Some(held) => Part { option: "HELD", field: Some(&held.field), items: Some(&held.values) },
            },
            flag(if self.stamp { "STAMP" } else { "no STAMP" }),
        ]
    }

    /// Returns what differs from another definition, one sentence for each part, or nothing if both define the same
    /// index. The order of prefixes and values has no meaning.
    pub fn differences(&self, asked: &Definition) -> Vec<String> {
        let pairs = self.parts().into_iter().zip(asked.parts());
        let differing = pairs.filter(|(here, asked)| !here.is_same(asked));
        differing.map(|(here, asked)| format!("it has {}, not {}", here.beside(&asked), asked.beside(&here))).collect()
    }
}

impl Part<'_> {
    fn is_same(&self, other: &Part<'_>) -> bool {
        let items = |part: &Part<'_>| {
            let mut items: Vec<Vec<u8>> = part.items.unwrap_or_default().to_vec();
            items.sort_unstable();
            items.dedup();
            items
        };
        (self.option, self.field) == (other.option, other.field) && items(self) == items(other)
    }

    /// Returns the part as arguments of bounded length. Of a long list, items that the other part lacks are shown first.
    fn beside(&self, other: &Part<'_>) -> String {
        let mut text = self.option.to_owned();
        if let Some(field) = self.field {
            let _ = write!(text, " {}", bounded(field));
        }
        let Some(items) = self.items else { return text };
        let others: HashSet<&Vec<u8>> = other.items.unwrap_or_default().iter().collect();
        let is_own = |item: &&Vec<u8>| !others.contains(item);
        let (mut shown, common): (Vec<_>, Vec<_>) = match items.len() > ITEMS_MAX {
            true => items.iter().partition(is_own),
            false => (items.iter().collect(), Vec::new()),
        };
        shown.extend(common);
        let _ = write!(text, " {}", items.len());
        shown.iter().take(ITEMS_MAX).for_each(|item| {
            let _ = write!(text, " {}", bounded(item));
        });
        if items.len() > ITEMS_MAX {
            text.push_str(" ...");
        }
        text
    }
}

fn bounded(bytes: &[u8]) -> String {
    let more = if bytes.len() > BYTES_MAX { "..." } else { "" };
    format!("'{}{more}'", bytes[..bytes.len().min(BYTES_MAX)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Condition;

    /// A time that grows with the square of the number of values would be hours.
    #[test]
    fn very_many_values_are_compared() {
        let values = |from: u32| (from..from + 400_000).map(|value| value.to_string().into_bytes()).collect();
        let definition = |from| Definition {
            prefixes: vec![b"p".to_vec()],
            field: b"f".to_vec(),
            condition: Some(Condition { field: b"s".to_vec(), values: values(from), only: true }),
            ..Definition::default()
        };
        let (here, asked) = (definition(0), definition(2));
        assert!(here.differences(&here).is_empty());
        assert_eq!(
            here.differences(&asked),
            [
                "it has ONLY 's' 400000 '0' '1' '2' '3' '4' '5' '6' '7' ..., not ONLY 's' 400000 '400000' '400001' '2' '3' '4' \
                 '5' '6' '7' ..."
            ]
        );
    }
}
