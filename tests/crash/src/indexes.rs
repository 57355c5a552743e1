//! What an index holds, by the records that are there: its entries, and its groups if it has some. Knows nothing of who
//! wrote them.

use std::collections::BTreeMap;

use crate::grouped::{self, Counts};
use crate::model::{DEFINITIONS, Entry, Field, State, Value, parse_score};
use crate::request::{Command, command, excerpt};

/// What one index gave in one database, in its order.
pub(crate) struct Indexed {
    pub(crate) db: u32,
    pub(crate) name: Vec<u8>,
    pub(crate) entries: Vec<(Vec<u8>, f64)>,
    /// What IDX.GROUPS said, without groups that have nothing.
    pub(crate) groups: BTreeMap<Vec<u8>, Counts>,
}

/// How an index is defined: the words of IDX.CREATE behind the name.
pub(crate) struct Definition<'a> {
    pub(crate) prefix: &'a [u8],
    field: &'a [u8],
    pub(crate) groups: Option<Groups<'a>>,
}

/// How the records of an index are kept apart, and which of them are held.
pub(crate) struct Groups<'a> {
    pub(crate) field: &'a [u8],
    pub(crate) held: &'a [u8],
    held_values: Vec<&'a [u8]>,
}

impl Groups<'_> {
    /// True when a record with this value is held.
    pub(crate) fn holds(&self, value: &[u8]) -> bool {
        self.held_values.contains(&value)
    }
}

/// The definition as the model has it: the model and the server are compared by this.
pub(crate) fn definition(words: &[impl AsRef<[u8]>]) -> Vec<u8> {
    words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(&b' ')
}

impl Definition<'_> {
    /// Reads `PREFIX 1 prefix FIELD field [GROUP field HELD field n value …]`.
    fn read(words: &[u8]) -> Definition<'_> {
        let words: Vec<&[u8]> = words.split(|byte| *byte == b' ').collect();
        let has_groups = words.get(5) == Some(&&b"GROUP"[..]);
        let groups = has_groups.then(|| Groups { field: words[6], held: words[8], held_values: words[10..].to_vec() });
        Definition { prefix: words[2], field: words[4], groups }
    }

    pub(crate) fn score(&self, fields: &BTreeMap<Vec<u8>, Field>) -> Option<f64> {
        let group = self.groups.as_ref().and_then(|groups| fields.get(groups.field));
        let is_too_long = group.is_some_and(|group| group.value.len() > grouped::NAME_MAX);
        parse_score(&fields.get(self.field)?.value).filter(|_| !is_too_long)
    }
}

/// `IDX.CREATE`
pub(crate) fn create(name: &str, prefix: &str, field: &str) -> Command {
    command(&[&"IDX.CREATE", &name, &"PREFIX", &"1", &prefix, &"FIELD", &field])
}

/// The definition of an index, if there is one.
pub(crate) fn find<'a>(state: &'a State, name: &[u8]) -> Option<Definition<'a>> {
    match &state.get(DEFINITIONS, name)?.value {
        Value::Definition(words) => Some(Definition::read(words)),
        _ => None,
    }
}

/// The hashes that an index covers, in it or not.
pub(crate) fn covered<'a>(
    state: &'a State,
    db: u32,
    definition: &Definition<'a>,
) -> impl Iterator<Item = (&'a [u8], &'a BTreeMap<Vec<u8>, Field>)> {
    let prefix = definition.prefix;
    let of_db = state.entries.iter().filter(move |(place, _)| place.db == db && place.key.starts_with(prefix));
    of_db.filter_map(|(place, entry)| match &**entry {
        Entry { value: Value::Hash(fields), .. } => Some((&place.key[..], fields)),
        _ => None,
    })
}

/// Every index has the records that were found, and no others.
pub(crate) fn check(state: &State, indexed: &[Indexed]) -> Result<(), String> {
    for Indexed { db, name, entries, groups } in indexed {
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
        let counted =
            find(state, name).map_or(BTreeMap::new(), |index| grouped::count(covered(state, *db, &index), &index));
        grouped::compare(groups, &counted).map_err(|what| format!("the index {} of db {db}: {what}", excerpt(name)))?;
    }
    Ok(())
}

/// The records of an index and their scores, in its order.
pub(crate) fn expected(state: &State, db: u32, name: &[u8]) -> Vec<(Vec<u8>, f64)> {
    let Some(index) = find(state, name) else { return Vec::new() };
    let scored = covered(state, db, &index).filter_map(|(key, fields)| Some((key.to_vec(), index.score(fields)?)));
    let mut expected: Vec<_> = scored.collect();
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
        vec![Indexed { db, name: b"c0:index:0".to_vec(), entries, groups: BTreeMap::new() }]
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
