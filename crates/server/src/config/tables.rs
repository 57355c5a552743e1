//! The tables of the configuration file: `[[index]]` and `[[sweeper]]`. Knows their syntax; refuses to know what an
//! index or a sweep does.

use anyhow::{Context, Result, bail};
use engine::background::Sweeper;
use keyspace::DATABASES;
use keyspace::index::{Condition, Definition, HeldWhere};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The tables of a configuration file.
pub(crate) struct Tables {
    pub(crate) indexes: ConfiguredIndexes,
    pub(crate) sweepers: Vec<Sweeper>,
    /// Users by name, with their rules.
    pub(crate) users: Vec<ConfiguredUser>,
}

/// The indexes to create at the start, unless a client has decided otherwise.
pub(crate) struct ConfiguredIndexes {
    pub(crate) definitions: Vec<(Vec<u8>, Definition)>,
    /// The configuration does not mention indexes.
    pub(crate) are_defaults: bool,
}

impl ConfiguredIndexes {
    pub(crate) fn none() -> ConfiguredIndexes {
        ConfiguredIndexes { definitions: Vec::new(), are_defaults: false }
    }
}

impl Default for Tables {
    /// A configuration that does not mention indexes has one, on the field that job records have.
    fn default() -> Tables {
        let definition =
            Definition { prefixes: vec![Vec::new()], field: b"updated_at".to_vec(), ..Definition::default() };
        let definitions = vec![(b"idx:updated_at".to_vec(), definition)];
        Tables {
            indexes: ConfiguredIndexes { definitions, are_defaults: true },
            sweepers: Vec::new(),
            users: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct IndexTable {
    name: String,
    #[serde(default = "every_name")]
    prefixes: Vec<String>,
    field: String,
    only: Option<ConditionTable>,
    exclude: Option<ConditionTable>,
    #[serde(default)]
    stamp: bool,
    group: Option<String>,
    held: Option<ConditionTable>,
}

fn every_name() -> Vec<String> {
    vec![String::new()]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionTable {
    field: String,
    values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserTable {
    name: String,
    rules: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SweeperTable {
    index: String,
    every_ms: u64,
    older_than_ms: u64,
    #[serde(default)]
    db: usize,
    r#where: Option<ConditionTable>,
    retry: Option<RetryTable>,
    set: BTreeMap<String, String>,
    limit: Option<u64>,
    publish: Option<String>,
    user: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryTable {
    field: String,
    max: u64,
    r#else: BTreeMap<String, String>,
}

/// A user of the configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredUser {
    pub(crate) name: String,
    pub(crate) rules: String,
    /// Where the user is configured, for errors.
    pub(crate) place: String,
}

impl Tables {
    /// Removes the tables from a file; the rest are settings.
    pub(crate) fn take(file: &mut toml::Table) -> Result<Tables> {
        let mut tables = Tables::default();
        if let Some(value) = file.remove("index") {
            let indexes: Vec<IndexTable> = value.try_into().context("a table [[index]]")?;
            let definitions: Vec<_> = indexes.into_iter().map(index).collect::<Result<_>>()?;
            let mut names = BTreeSet::new();
            if let Some((twice, _)) = definitions.iter().find(|(name, _)| !names.insert(name)) {
                let name = String::from_utf8_lossy(twice);
                bail!("two tables [[index]] have the name {name}: an index has one definition");
            }
            tables.indexes = ConfiguredIndexes { definitions, are_defaults: false };
        }
        if let Some(value) = file.remove("user") {
            let users: Vec<UserTable> = value.try_into().context("a table [[user]]")?;
            tables.users = users
                .into_iter()
                .enumerate()
                .map(|(at, UserTable { name, rules })| ConfiguredUser {
                    place: format!("table [[user]] number {} ({name})", at + 1),
                    name,
                    rules,
                })
                .collect();
        }
        if let Some(value) = file.remove("sweeper") {
            let sweepers: Vec<SweeperTable> = value.try_into().context("a table [[sweeper]]")?;
            tables.sweepers = sweepers.into_iter().map(sweeper).collect::<Result<_>>()?;
        }
        Ok(tables)
    }
}

fn index(table: IndexTable) -> Result<(Vec<u8>, Definition)> {
    let bytes = |texts: Vec<String>| texts.into_iter().map(String::into_bytes).collect();
    let condition =
        |table: ConditionTable, only| Condition { field: table.field.into_bytes(), values: bytes(table.values), only };
    let condition = match (table.only, table.exclude) {
        (Some(_), Some(_)) => bail!("the index {} has both `only` and `exclude`; choose one", table.name),
        (Some(only), None) => Some(condition(only, true)),
        (None, exclude) => exclude.map(|exclude| condition(exclude, false)),
    };
    if table.prefixes.is_empty() {
        bail!("the index {} has no prefixes; the empty one, [\"\"], is all names", table.name);
    }
    let held = table.held.map(|held| HeldWhere { field: held.field.into_bytes(), values: bytes(held.values) });
    let definition = Definition {
        prefixes: bytes(table.prefixes),
        field: table.field.into_bytes(),
        condition,
        stamp: table.stamp,
        group: table.group.map(String::into_bytes),
        held,
    };
    Ok((table.name.into_bytes(), definition))
}

fn sweeper(table: SweeperTable) -> Result<Sweeper> {
    const EVERY_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1000;
    if !(1..=EVERY_MS_MAX).contains(&table.every_ms) {
        let (index, given) = (table.index, table.every_ms);
        bail!("the sweeper of {index} has every-ms = {given}: from 1 to {EVERY_MS_MAX} make sense");
    }
    if table.db >= DATABASES {
        bail!("the sweeper of {} has db = {}: databases are 0 to {}", table.index, table.db, DATABASES - 1);
    }
    if table.limit == Some(0) {
        bail!("the sweeper of {} has limit = 0: it would never change anything", table.index);
    }
    if table.set.is_empty() {
        bail!("the sweeper of {} sets nothing", table.index);
    }
    let mut options: Vec<Vec<u8>> = Vec::new();
    let mut say = |words: &[&str]| options.extend(words.iter().map(|word| word.as_bytes().to_vec()));
    if let Some(condition) = table.r#where {
        say(&["WHERE", &condition.field, &condition.values.len().to_string()]);
        condition.values.iter().for_each(|value| say(&[value]));
    }
    if let Some(retry) = table.retry {
        if retry.r#else.is_empty() {
            bail!("the sweeper of {} says nothing of records that were tried too often (retry.else)", table.index);
        }
        say(&["RETRY", &retry.field, &retry.max.to_string(), "ELSE", &retry.r#else.len().to_string()]);
        retry.r#else.iter().for_each(|(field, value)| say(&[field, value]));
    }
    say(&["SET", &table.set.len().to_string()]);
    table.set.iter().for_each(|(field, value)| say(&[field, value]));
    if let Some(limit) = table.limit {
        say(&["LIMIT", &limit.to_string()]);
    }
    if let Some(channel) = &table.publish {
        say(&["PUBLISH", channel]);
    }
    let sweeper = Sweeper {
        index: table.index,
        every: Duration::from_millis(table.every_ms),
        older_than_ms: table.older_than_ms,
        db: table.db,
        options,
        user: table.user,
    };
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64);
    if let Err(why) = sweeper.check(now_ms) {
        bail!("the sweeper of {} cannot work: {}", sweeper.index, why.trim_start_matches("ERR "));
    }
    Ok(sweeper)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(text: &str) -> Result<Tables> {
        Tables::take(&mut text.parse().unwrap())
    }

    #[test]
    fn without_tables_there_is_one_index() {
        let tables = tables("").unwrap();
        assert_eq!(tables.indexes.definitions.len(), 1);
        assert_eq!(tables.indexes.definitions[0].0, b"idx:updated_at");
        assert_eq!(self::tables("index = []").unwrap().indexes.definitions, vec![]);
    }

    #[test]
    fn a_sweeper_is_a_request() {
        let tables = tables(
            "[[index]]
             name = 'jobs'
             prefixes = ['job:']
             field = 'updated_at'
             exclude = { field = 'state', values = ['done'] }
             stamp = true
             [[sweeper]]
             index = 'jobs'
             every-ms = 1000
             older-than-ms = 30000
             where = { field = 'state', values = ['running', 'claimed'] }
             retry = { field = 'tries', max = 3, else = { state = 'failed' } }
             set = { state = 'pending', updated_at = 'NOW' }
             limit = 10
             publish = 'requeued'",
        )
        .unwrap();
        let words: Vec<_> = tables.sweepers[0].options.iter().map(|word| String::from_utf8_lossy(word)).collect();
        assert_eq!(
            words.join(" "),
            "WHERE state 2 running claimed RETRY tries 3 ELSE 1 state failed SET 2 state pending updated_at NOW \
             LIMIT 10 PUBLISH requeued"
        );
        assert_eq!(tables.indexes.definitions[0].1.condition.as_ref().map(|condition| condition.only), Some(false));
        assert!(tables.indexes.definitions[0].1.stamp);
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (text, expected) in [
            ("[[index]]\nname = 'x'", "missing field `field`"),
            ("[[index]]\nname = 'x'\nfield = 'f'\nprefix = 'y'", "unknown field `prefix`"),
            ("[[index]]\nname = 'x'\nfield = 'f'\nprefixes = []", "has no prefixes"),
            (
                "[[index]]\nname='x'\nfield='f'\nonly={field='a',values=[]}\nexclude={field='a',values=[]}",
                "both `only` and `exclude`",
            ),
            (
                "[[index]]\nname='x'\nfield='f'\n[[index]]\nname='y'\nfield='f'\n[[index]]\nname='x'\nfield='f'",
                "two tables [[index]] have the name x",
            ),
            ("[[sweeper]]\nindex = 'x'", "missing field `every-ms`"),
            ("[[sweeper]]\nindex='x'\nevery-ms=0\nolder-than-ms=1\nset={a='b'}", "every-ms = 0"),
            ("[[sweeper]]\nindex='x'\nevery-ms=1\nolder-than-ms=1\nset={}", "sets nothing"),
            (
                "[[sweeper]]\nindex='x'\nevery-ms=1\nolder-than-ms=1\nset={at='NOW+5s'}",
                "the sweeper of x cannot work: 'NOW+5s' must be NOW, NOW+ms or NOW-ms",
            ),
            (
                "[[sweeper]]\nindex='x'\nevery-ms=1\nolder-than-ms=1\nset={a='b'}\n\
                 retry={field='n',max=3,else={at='NOW-9223372036854775807'}}",
                "the sweeper of x cannot work: 'NOW-9223372036854775807' must be",
            ),
            ("index = 5", "a table [[index]]"),
        ] {
            let Err(error) = tables(text) else { panic!("{text}") };
            assert!(format!("{error:#}").contains(expected), "{text}: {error:#}");
        }
    }
}
