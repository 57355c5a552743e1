//! What an index holds, by the records that are there. Knows nothing of who wrote them.

use crate::model::{DEFINITIONS, State, Value, parse_score};
use crate::request::{Command, command, excerpt};

/// What one index gave in one database, in its order.
pub(crate) struct Indexed {
    pub(crate) db: u32,
    pub(crate) name: Vec<u8>,
    pub(crate) entries: Vec<(Vec<u8>, f64)>,
}

/// How an index is defined: the model and the server are compared by this.
pub(crate) fn definition(prefix: &[u8], field: &[u8]) -> Vec<u8> {
    [b"PREFIX 1 ", prefix, b" FIELD ", field].concat()
}

/// `IDX.CREATE`
pub(crate) fn create(name: &str, prefix: &str, field: &str) -> Command {
    command(&[&"IDX.CREATE", &name, &"PREFIX", &"1", &prefix, &"FIELD", &field])
}

/// Every index has the records that were found, and no others.
pub(crate) fn check(state: &State, indexed: &[Indexed]) -> Result<(), String> {
    for Indexed { db, name, entries } in indexed {
        let expected = expected(state, *db, name);
        if expected != *entries {
            let missing = expected.iter().filter(|entry| !entries.contains(entry)).count();
            let strange = entries.iter().find(|entry| !expected.contains(entry));
            return Err(format!(
                "the index {} of db {db} has {} entries and must have {}; {missing} are missing, {}",
                excerpt(name),
                entries.len(),
                expected.len(),
                strange.map_or("none is strange".into(), |(key, score)| format!("{} {score} is strange", excerpt(key)))
            ));
        }
    }
    Ok(())
}

/// The records of an index and their scores, in its order.
pub(crate) fn expected(state: &State, db: u32, name: &[u8]) -> Vec<(Vec<u8>, f64)> {
    let Some(Value::Definition(definition)) = state.get(DEFINITIONS, name).map(|entry| &entry.value) else {
        return Vec::new();
    };
    let mut words = definition.split(|byte| *byte == b' ');
    let (prefix, field) = (words.nth(2).unwrap_or_default(), words.nth(1).unwrap_or_default());
    let of_db = state.entries.iter().filter(|(place, _)| place.db == db && place.key.starts_with(prefix));
    let mut expected: Vec<_> = of_db
        .filter_map(|(place, entry)| match &entry.value {
            Value::Hash(fields) => Some((place.key.clone(), parse_score(&fields.get(field)?.value)?)),
            _ => None,
        })
        .collect();
    expected.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    expected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let mut state = State::default();
        for line in ["HSET c0:key:1 f 2.5 g 1", "HSET c0:key:2 f <no.1>", "HSET c0:key:3 f -1", "SET c0:key:4 1"] {
            let words: Command = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            state.apply(0, &words, 0);
        }
        state.apply(0, &create("c0:index:0", "c0:key:", "f"), 0);
        state
    }

    fn found(db: u32, entries: &[(&str, f64)]) -> Vec<Indexed> {
        let entries = entries.iter().map(|(key, score)| (key.as_bytes().to_vec(), *score)).collect();
        vec![Indexed { db, name: b"c0:index:0".to_vec(), entries }]
    }

    #[test]
    fn an_index_has_the_records_with_a_number_in_order() {
        assert!(check(&state(), &found(0, &[("c0:key:3", -1.0), ("c0:key:1", 2.5)])).is_ok());
        assert!(check(&state(), &found(1, &[])).is_ok());
    }

    #[test]
    fn an_index_that_is_not_in_step_is_found() {
        for wrong in [
            &[][..],
            &[("c0:key:3", -1.0)],
            &[("c0:key:1", 2.5), ("c0:key:3", -1.0)],
            &[("c0:key:3", -1.0), ("c0:key:1", 2.25)],
            &[("c0:key:3", -1.0), ("c0:key:1", 2.5), ("c0:key:9", 3.0)],
        ] {
            assert!(check(&state(), &found(0, wrong)).is_err(), "{wrong:?}");
        }
    }
}
