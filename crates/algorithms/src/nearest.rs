//! Finds the known word that a mistyped word is nearest to.

/// The longest word that is compared.
const BYTES_MAX: usize = 64;

/// Returns the known word with the fewest changed letters, or `None` if more than a third of the letters differ.
pub fn nearest<'k>(given: &[u8], known: &[&'k str]) -> Option<&'k str> {
    if given.len() > BYTES_MAX {
        return None;
    }
    let given = given.to_ascii_lowercase();
    let distances = known.iter().map(|word| (distance(&given, word.to_ascii_lowercase().as_bytes()), *word));
    let (distance, word) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= given.len().max(word.len())).then_some(word)
}

/// Counts the letters to insert, remove, replace or exchange with the next one that turn one word into the other.
fn distance(from: &[u8], to: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, &a) in from.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, &b) in to.iter().enumerate() {
            let replaced = row[j] + usize::from(a != b);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a == to[j - 1] && from[i - 1] == b {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_word_has_a_nearest_one() {
        let known = ["maxmemory", "maxmemory-policy", "maxclients", "IF", "DEL"];
        for (given, expected) in [
            ("maxmemry", Some("maxmemory")),
            ("MAXMEMROY", Some("maxmemory")),
            ("maxmemory-polic", Some("maxmemory-policy")),
            ("maxclient", Some("maxclients")),
            ("dle", Some("DEL")),
            ("1", None),
            ("a", None),
            ("", None),
            ("nonsense", None),
        ] {
            assert_eq!(nearest(given.as_bytes(), &known), expected, "{given}");
        }
        assert_eq!(nearest(b"x", &[]), None);
        assert_eq!(nearest(&[b'x'; 100], &known), None);
    }

    #[test]
    fn distances_are_counted_in_letters() {
        for (from, to, expected) in [("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("", "ab", 2)]
        {
            assert_eq!(distance(from.as_bytes(), to.as_bytes()), expected, "{from} {to}");
            assert_eq!(distance(to.as_bytes(), from.as_bytes()), expected, "{to} {from}");
        }
    }
}
