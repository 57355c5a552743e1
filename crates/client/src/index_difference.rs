//! What differs between an index that exists and one that is wanted, and what is done about it. Knows no connection.

use std::fmt;

use crate::index_definition::IndexDefinition;

/// What creating an index does if one of that name exists with another definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDifference {
    /// It is [`Error::IndexDiffers`](crate::Error::IndexDiffers).
    #[default]
    Raise,
    /// The existing index is left unchanged.
    Keep,
    /// The new index takes its place in one step, during which the server does nothing else. Limits are kept if groups
    /// and held records are the same.
    Replace,
}

/// An index that has another definition than the one that was to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDiffers {
    /// The name of the index.
    pub index: Vec<u8>,
    /// What differs, each as a sentence.
    pub differences: Vec<String>,
}

/// A key that is in no index of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideIndex {
    /// The key of the job.
    pub key: Vec<u8>,
    /// The prefixes of the queue's indexes.
    pub prefixes: Vec<Vec<u8>>,
}

impl fmt::Display for IndexDiffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, differences) = (self.index.escape_ascii(), self.differences.join("; "));
        write!(
            f,
            "there is an index {index} already, with another definition: {differences}. Choose another name, or say with \
             OnDifference whether to keep it or to replace it"
        )
    }
}

impl fmt::Display for OutsideIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes: Vec<String> = self.prefixes.iter().map(|prefix| format!("'{}'", prefix.escape_ascii())).collect();
        let key = self.key.escape_ascii();
        write!(f, "the key '{key}' is in no index of the queue: their keys begin with {}", prefixes.join(", "))
    }
}

/// Returns what differs, each as a sentence.
pub(crate) fn differences(there: &IndexDefinition, wanted: &IndexDefinition) -> Vec<String> {
    let pairs = parts(there).into_iter().zip(parts(wanted));
    let differing = pairs.filter(|(there, wanted)| there != wanted);
    let shown = differing
        .map(|((part, there), (_, wanted))| format!("{part} is {} there, and {} here", shown(&there), shown(&wanted)));
    shown.collect()
}

/// Returns true if limits of the one index have the same meaning in the other.
pub(crate) fn keeps_limits(there: &IndexDefinition, wanted: &IndexDefinition) -> bool {
    let of_groups = |definition| parts(definition).split_off(5);
    of_groups(there) == of_groups(wanted)
}

/// The parts of a definition in the words of IDX.CREATE, those of groups last. The order of prefixes and values has no
/// meaning.
fn parts(definition: &IndexDefinition) -> Vec<(&'static str, Vec<&[u8]>)> {
    fn set(values: &[Vec<u8>]) -> Vec<&[u8]> {
        let mut values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
    fn condition(given: &Option<(Vec<u8>, Vec<Vec<u8>>)>) -> Vec<&[u8]> {
        let Some((field, values)) = given else { return Vec::new() };
        [vec![field.as_slice()], set(values)].concat()
    }
    vec![
        ("PREFIX", set(&definition.prefixes)),
        ("FIELD", vec![&definition.field]),
        ("ONLY", condition(&definition.only)),
        ("EXCLUDE", condition(&definition.exclude)),
        ("STAMP", if definition.stamp { vec![b"yes"] } else { Vec::new() }),
        ("GROUP", definition.group.iter().map(Vec::as_slice).collect()),
        ("HELD", condition(&definition.held)),
    ]
}

fn shown(part: &[&[u8]]) -> String {
    if part.is_empty() {
        return "not given".into();
    }
    let words = part.iter().map(|word| if word.is_empty() { "''".into() } else { word.escape_ascii().to_string() });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_prefixes_and_values_is_no_difference() {
        let one = IndexDefinition::new(["a:", "b:"], "at").only("state", ["pending", "running"]);
        let other = IndexDefinition::new(["b:", "a:", "b:"], "at").only("state", ["running", "pending"]);
        assert_eq!(differences(&one, &other), Vec::<String>::new());
        assert!(keeps_limits(&one, &other));
    }

    #[test]
    fn each_part_that_differs_is_named() {
        let there = IndexDefinition::new(["a:"], "at").exclude("state", ["done", ""]);
        let wanted = IndexDefinition::new(["b:"], "at").stamp().group("tenant").held("state", ["running"]);
        assert_eq!(
            differences(&there, &wanted),
            [
                "PREFIX is a: there, and b: here",
                "EXCLUDE is state '' done there, and not given here",
                "STAMP is not given there, and yes here",
                "GROUP is not given there, and tenant here",
                "HELD is not given there, and state running here",
            ]
        );
        assert!(!keeps_limits(&there, &wanted));
    }
}
