//! Indexes with groups: what they count, the limits that a client has set, and which records a claim may take. Knows the
//! rules of the documentation; refuses to know how a server keeps them.

use std::collections::BTreeMap;

use wire::Reply;

use crate::indexes::{self, Definition, Groups};
use crate::model::{DEFINITIONS, Field, State, Value, int, parse_int};
use crate::request::{Command, command, excerpt};

/// A record whose group has a longer name is not in the index.
pub(crate) const NAME_MAX: usize = 1024;
/// Of the indexes of one client.
pub(crate) const GROUP: &str = "field0";
pub(crate) const HELD: &str = "field1";
pub(crate) const RUNNING: &str = "running";

/// What IDX.GROUPS tells of a group.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Counts {
    pub(crate) records: i64,
    pub(crate) held: i64,
    pub(crate) first_score: Option<f64>,
}

/// `IDX.CREATE` of an index with groups.
pub(crate) fn create(name: &str, prefix: &str, field: &str) -> Command {
    let groups = command(&[&"GROUP", &GROUP, &"HELD", &HELD, &"2", &RUNNING, &"5"]);
    [indexes::create(name, prefix, field), groups].concat()
}

/// Counts the records of an index by their groups.
pub(crate) fn count<'a>(
    records: impl Iterator<Item = (&'a [u8], &'a BTreeMap<Vec<u8>, Field>)>,
    index: &Definition<'_>,
) -> BTreeMap<Vec<u8>, Counts> {
    let mut counted: BTreeMap<Vec<u8>, Counts> = BTreeMap::new();
    for (_, fields) in records {
        let Some(group) = group_of(fields, index) else { continue };
        let (score, is_held) = (index.score(fields), is_held(fields, index));
        if score.is_some() || is_held {
            let counts = counted.entry(group).or_default();
            counts.records += i64::from(score.is_some());
            counts.held += i64::from(is_held);
            counts.first_score = counts.first_score.into_iter().chain(score).min_by(f64::total_cmp);
        }
    }
    counted
}

/// The group of a record; `None` if the index has no groups, or that one's name is too long.
fn group_of(fields: &BTreeMap<Vec<u8>, Field>, index: &Definition<'_>) -> Option<Vec<u8>> {
    let name = fields.get(index.groups.as_ref()?.field).map_or(&b""[..], |group| &group.value);
    (name.len() <= NAME_MAX).then(|| name.to_vec())
}

fn is_held(fields: &BTreeMap<Vec<u8>, Field>, index: &Definition<'_>) -> bool {
    let is_held = |groups: &Groups<'_>| fields.get(groups.held).is_some_and(|held| groups.holds(&held.value));
    index.groups.as_ref().is_some_and(is_held)
}

/// What a server says of its groups must be what a look at every record finds.
pub(crate) fn compare(said: &BTreeMap<Vec<u8>, Counts>, counted: &BTreeMap<Vec<u8>, Counts>) -> Result<(), String> {
    let names = said.keys().chain(counted.keys());
    for name in names {
        let (said, counted) = (said.get(name).copied(), counted.get(name).copied());
        if said != counted {
            let name = excerpt(name);
            return Err(format!("of the group {name} it says {said:?}, and a look at every record finds {counted:?}"));
        }
    }
    Ok(())
}

/// Reads the reply of IDX.GROUPS, without groups that have nothing. `None` if it is something else.
pub(crate) fn told(reply: &Reply) -> Option<BTreeMap<Vec<u8>, Counts>> {
    let [Reply::Bulk(_), groups] = reply.items() else { return None };
    let mut told = BTreeMap::new();
    for group in groups.items() {
        let [Reply::Bulk(name), state] = group.items() else { return None };
        let part =
            |name: &str| state.items().chunks(2).find(|pair| pair[0] == Reply::Bulk(name.into())).map(|pair| &pair[1]);
        let first_score = match part("first_score")? {
            Reply::Bulk(digits) => Some(std::str::from_utf8(digits).ok()?.parse().ok()?),
            _ => None,
        };
        let counts = Counts { records: part("records")?.integer(), held: part("held")?.integer(), first_score };
        if counts != Counts::default() {
            told.insert(name.clone(), counts);
        }
    }
    Some(told)
}

/// Where the model has the limits of a scope of an index: among the definitions, behind the name of the index.
fn place(index: &[u8], scope: &[Vec<u8>]) -> Vec<u8> {
    [index.to_vec()]
        .into_iter()
        .chain(scope.iter().map(|word| word.to_ascii_lowercase()))
        .collect::<Vec<_>>()
        .join(&b' ')
}

/// The limits of an index in the model, by their places.
fn limits<'a>(state: &'a State, index: &[u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let prefix = [index, b" "].concat();
    state.entries.iter().filter_map(move |(place, entry)| match &entry.value {
        Value::Definition(text) if place.db == DEFINITIONS && place.key.starts_with(&prefix) => {
            Some((&place.key[prefix.len()..], &text[..]))
        }
        _ => None,
    })
}

/// Forgets all limits of an index, or all of one scope.
pub(crate) fn forget_limits(state: &mut State, index: &[u8], scope: Option<&[Vec<u8>]>) {
    let (of_scope, of_index) = (scope.map(|scope| place(index, scope)), [index, b" "].concat());
    state.entries.retain(|place, _| match &of_scope {
        _ if place.db != DEFINITIONS => true,
        Some(of_scope) => place.key != *of_scope,
        None => !place.key.starts_with(&of_index),
    });
}

/// `IDX.LIMIT index [GROUP g | EACH | ALL] (RESET | HELD … [RATE …] [WEIGHT w] PAUSE …)`: each names all that it can.
pub(crate) fn set_limits(state: &mut State, index: &[u8], words: &[Vec<u8>]) {
    let scope_len = match &*words[0] {
        b"GROUP" => 2,
        b"EACH" | b"ALL" => 1,
        _ => 0,
    };
    let (scope, set) = words.split_at(scope_len);
    if set[0] == b"RESET" {
        return forget_limits(state, index, (scope_len > 0).then_some(scope));
    }
    let text: Vec<Vec<u8>> =
        set.iter().filter(|word| **word != b"BURST").map(|word| word.to_ascii_lowercase()).collect();
    state.define(&place(index, scope), text.join(&b' '));
}

/// Reads what `IDX.LIMIT index` lists into the state. `None` if it is something else.
pub(crate) fn read_limits(state: &mut State, index: &[u8], reply: &Reply) -> Option<()> {
    for limits in reply.items() {
        let (mut scope, mut words) = (Vec::new(), Vec::new());
        for pair in limits.items().chunks(2) {
            let [Reply::Bulk(name), value] = pair else { return None };
            match &name[..] {
                b"scope" => scope.insert(0, value.bytes().to_vec()),
                b"group" => scope.push(value.bytes().to_vec()),
                _ => {
                    words.push(name.clone());
                    words.extend(flat(value));
                }
            }
        }
        state.define(&place(index, &scope), words.join(&b' '));
    }
    Some(())
}

fn flat(value: &Reply) -> Vec<Vec<u8>> {
    match value {
        Reply::Array(items) => items.iter().flat_map(flat).collect(),
        Reply::Integer(number) => vec![number.to_string().into_bytes()],
        other => vec![other.bytes().to_vec()],
    }
}

/// The word behind an attribute of the limits of a scope.
fn attribute<'a>(limits: &BTreeMap<&'a [u8], &'a [u8]>, scope: &[u8], name: &str) -> Option<&'a [u8]> {
    let mut words = limits.get(scope)?.split(|byte| *byte == b' ');
    words.by_ref().find(|word| *word == name.as_bytes())?;
    words.next()
}

/// The records that a claim may take by score, first to last: `SET 1 field value`, with a counter that is a number or absent.
pub(crate) fn claimable(
    state: &State,
    db: u32,
    name: &[u8],
    set: &[Vec<u8>],
    counter: Option<&Vec<u8>>,
) -> Vec<(Vec<u8>, f64)> {
    let Some(index) = indexes::find(state, name) else { return Vec::new() };
    let counted = count(indexes::covered(state, db, &index), &index);
    let limits: BTreeMap<&[u8], &[u8]> = limits(state, name).collect();
    let held_in_all: i64 = counted.values().map(|counts| counts.held).sum();
    let holds = index.groups.as_ref().is_some_and(|groups| set[0] == groups.held && groups.holds(&set[1]));
    let is_below = |held: i64, max: Option<&[u8]>| max.is_none_or(|max| max == b"none" || held < int(max));
    let allows = |fields: &BTreeMap<Vec<u8>, Field>| {
        let Some(group) = group_of(fields, &index) else { return true };
        let own = [b"group ", &group[..]].concat();
        let of_group = |name| attribute(&limits, &own, name).or_else(|| attribute(&limits, b"each", name));
        let adds = holds && !is_held(fields, &index);
        let held = counted.get(&group).map_or(0, |counts| counts.held);
        let is_paused = of_group("pause") == Some(b"yes") || attribute(&limits, b"all", "pause") == Some(b"yes");
        !is_paused
            && (!adds || is_below(held, of_group("held")) && is_below(held_in_all, attribute(&limits, b"all", "held")))
    };
    let fields_of = |key: &[u8]| match state.get(db, key).map(|entry| &entry.value) {
        Some(Value::Hash(fields)) => fields,
        _ => unreachable!("an index has hashes"),
    };
    let counts = |fields: &BTreeMap<Vec<u8>, Field>| {
        let count = counter.and_then(|counter| fields.get(counter));
        count.is_none_or(|count| parse_int(&count.value).is_some())
    };
    let mut records = indexes::expected(state, db, name);
    records.retain(|(key, _)| allows(fields_of(key)) && counts(fields_of(key)));
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Command {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn state(limits: &[&str]) -> State {
        let mut state = State::default();
        state.apply(0, &create("c0:index:0", "c0:key:", "at"), 0);
        for line in [
            "HSET c0:key:1 at 1 field0 a field1 running",
            "HSET c0:key:2 at 2 field0 a",
            "HSET c0:key:3 at 3 field0 b",
            "HSET c0:key:4 field0 b field1 running",
        ] {
            state.apply(0, &words(line), 0);
        }
        for limit in limits {
            state.apply(0, &words(&format!("IDX.LIMIT c0:index:0 {limit}")), 0);
        }
        state
    }

    fn claimable_keys(limits: &[&str]) -> Vec<String> {
        let records = claimable(&state(limits), 0, b"c0:index:0", &words("field1 running"), None);
        records.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()["c0:key:".len()..].to_owned()).collect()
    }

    #[test]
    fn a_claim_may_take_what_limits_allow() {
        assert_eq!(claimable_keys(&[]), ["1", "2", "3"]);
        assert_eq!(claimable_keys(&["EACH HELD 1 PAUSE no"]), ["1"], "what is held already adds nothing");
        assert_eq!(claimable_keys(&["EACH HELD 1 PAUSE no", "GROUP b HELD NONE PAUSE no"]), ["1", "3"]);
        assert_eq!(claimable_keys(&["EACH HELD 1 PAUSE no", "GROUP b HELD 2 PAUSE no"]), ["1", "3"]);
        assert_eq!(claimable_keys(&["ALL HELD 2 PAUSE no"]), ["1"]);
        assert_eq!(claimable_keys(&["GROUP a HELD 9 PAUSE yes"]), ["3"]);
        assert_eq!(claimable_keys(&["EACH HELD 1 PAUSE no", "EACH RESET"]), ["1", "2", "3"]);
        assert_eq!(claimable_keys(&["ALL HELD 0 PAUSE yes", "GROUP a HELD 1 PAUSE yes", "RESET"]), ["1", "2", "3"]);
    }

    #[test]
    fn a_count_that_is_wrong_is_found() {
        let state = state(&[]);
        let index = indexes::find(&state, b"c0:index:0").unwrap();
        let counted = count(indexes::covered(&state, 0, &index), &index);
        let right = |records, held, first| Counts { records, held, first_score: Some(first) };
        let said = BTreeMap::from([(b"a".to_vec(), right(2, 1, 1.0)), (b"b".to_vec(), right(1, 1, 3.0))]);
        assert_eq!(compare(&said, &counted), Ok(()));
        for wrong in [right(2, 0, 1.0), right(2, 2, 1.0), right(1, 1, 1.0), right(2, 1, 2.0)] {
            let said = BTreeMap::from([(b"a".to_vec(), wrong), (b"b".to_vec(), right(1, 1, 3.0))]);
            assert!(compare(&said, &counted).is_err(), "{wrong:?}");
        }
        assert!(compare(&BTreeMap::new(), &counted).is_err());
    }
}
