//! Makes the definitions of indexes live: at the start, and with the effects that create and drop an index.

use super::catalogue::is_key;
use crate::engine::Engine;
use crate::error::{CommandError, shown};
use keyspace::Locked;
use keyspace::index::groups::{self, Limits};
use keyspace::index::{Definition, INDEXES_MAX, Index, Indexes};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The states of rates that are looked at with each tick, in each database of one shard.
const TIDIED_RATES: usize = 2048;

/// What a start reports about indexes.
#[derive(Debug, Default)]
pub struct RevivedIndexes {
    /// Names of indexes of the configuration that a client has dropped.
    pub dropped: Vec<String>,
    pub conflicts: Vec<IndexConflict>,
    pub failures: Vec<IndexFailure>,
}

/// An index that a client has defined in another way than the configuration. The client's definition is used.
#[derive(Debug)]
pub struct IndexConflict {
    pub index: String,
    pub kept: Definition,
    pub configured: Definition,
}

/// An index that cannot be created.
#[derive(Debug, PartialEq, Eq)]
pub struct IndexFailure {
    pub index: String,
    pub reason: String,
}

impl fmt::Display for IndexFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the index '{}' cannot be created: {}", self.index, self.reason)
    }
}

/// Builds indexes from the recovered records after a start: those that clients have created, and those of the
/// configuration that no client has created or dropped.
///
/// Acknowledged commands win: a client's definition, or its drop, takes precedence over the configuration.
pub fn revive_indexes(engine: &Engine, configured: &[(Vec<u8>, Definition)]) -> RevivedIndexes {
    let mut locked = engine.keyspace.lock_all();
    let mut revived = RevivedIndexes::default();
    let decided: BTreeMap<Vec<u8>, Option<Vec<u8>>> = locked
        .definitions()
        .indexes()
        .map(|(name, definition)| (name.to_vec(), definition.map(<[u8]>::to_vec)))
        .collect();
    let mut made: Vec<(Vec<u8>, Definition)> = Vec::new();
    for (name, definition) in &decided {
        let Some(bytes) = definition else { continue };
        match Definition::decode(bytes) {
            Some(definition) => made.push((name.clone(), definition)),
            None => revived.failures.push(failure(name, "its definition is of another version")),
        }
    }
    let decided_count = made.len();
    for (name, definition) in configured {
        match decided.get(name) {
            Some(None) => revived.dropped.push(name.escape_ascii().to_string()),
            Some(Some(_)) => {
                let kept = made.iter().find(|(other, kept)| other == name && kept != definition);
                revived.conflicts.extend(kept.map(|(_, kept)| IndexConflict {
                    index: name.escape_ascii().to_string(),
                    kept: kept.clone(),
                    configured: definition.clone(),
                }));
            }
            None if is_key(&locked, name, unix_ms(engine)) => {
                revived.failures.push(failure(name, "there is a key of that name"));
            }
            None if made.len() >= INDEXES_MAX => {
                revived.failures.push(failure(name, &format!("there are {INDEXES_MAX} others")));
            }
            None => made.push((name.clone(), definition.clone())),
        }
    }
    // Indexes of the configuration are listed first.
    made.rotate_left(decided_count);
    let indexes = made
        .into_iter()
        .fold(Indexes::default(), |indexes, (name, definition)| indexes.with(Arc::new(Index::new(&name, definition))));
    locked.set_indexes(&indexes);
    for (at, index) in indexes.iter().enumerate() {
        load_limits(&locked, index);
        locked.build_index(at);
        index.set_built();
    }
    engine.indexes.set(indexes);
    engine.indexes.set_configured(configured.iter().map(|(name, _)| name.clone()));
    revived
}

fn failure(name: &[u8], reason: &str) -> IndexFailure {
    IndexFailure { index: name.escape_ascii().to_string(), reason: reason.to_owned() }
}

/// Returns the index of that name if it has this definition, or `None` if there is no index of that name. Another
/// definition is an error that says what differs.
pub fn find_same(engine: &Engine, name: &[u8], definition: &Definition) -> Result<Option<Arc<Index>>, CommandError> {
    let Some(index) = engine.indexes.list().find(name).cloned() else { return Ok(None) };
    let differences = index.definition.differences(definition);
    if differences.is_empty() {
        return Ok(Some(index));
    }
    let (name, differences) = (shown(name), differences.join("; "));
    Err(CommandError::said(format!("ERR the index {name} has another definition: {differences}")))
}

/// Registers a new index, to be backfilled. Everything is locked.
pub fn begin_index(
    engine: &Engine,
    locked: &mut Locked<'_>,
    name: &[u8],
    definition: Definition,
) -> Result<Arc<Index>, CommandError> {
    engine.indexes.pass_limits(locked, name, unix_ms(engine))?;
    let index = Arc::new(Index::new(name, definition));
    set_indexes(engine, locked, engine.indexes.list().with(index.clone()));
    Ok(index)
}

/// Sets the indexes. Everything is locked.
fn set_indexes(engine: &Engine, locked: &mut Locked<'_>, indexes: Indexes) {
    locked.set_indexes(&indexes);
    engine.indexes.set(indexes.clone());
    // IMPORTANT: after the shards have them. A client that is about to wait checks whether its index still exists.
    engine.waiting.records.keep_only(&indexes);
}

/// Applies the definition of an index to the live catalogue: creates or drops it. Everything is locked. On the server
/// that ran the backfill the index is complete already; elsewhere it is built here.
pub fn define_index(engine: &Engine, locked: &mut Locked<'_>, name: &[u8], definition: Option<&[u8]>) {
    let indexes = engine.indexes.list();
    let Some(definition) = definition.and_then(Definition::decode) else {
        if indexes.position(name).is_some() {
            set_indexes(engine, locked, indexes.without(name));
        }
        return;
    };
    let index = match indexes.find(name) {
        Some(known) if known.definition == definition => known.clone(),
        _ => {
            let index = Arc::new(Index::new(name, definition));
            let indexes = indexes.without(name).with(index.clone());
            let at = indexes.position(name).expect("it was just added");
            set_indexes(engine, locked, indexes);
            load_limits(locked, &index);
            locked.build_index(at);
            index
        }
    };
    index.set_built();
}

/// Sets the limits that are defined for an index. Everything is locked.
fn load_limits(locked: &Locked<'_>, index: &Index) {
    for (name, limits) in locked.definitions().limits() {
        match (groups::decode_name(name), Limits::decode(limits)) {
            (Some((of, scope)), Some(limits)) if of == index.name => index.groups.set_limits(scope, limits),
            _ => {}
        }
    }
}

/// Applies limits to the live index. Clients that wait for its records search again. Everything is locked.
pub fn set_limits(engine: &Engine, name: &[u8], definition: Option<&[u8]>) {
    let Some((index, scope)) = groups::decode_name(name) else { return };
    let limits = definition.map_or(Some(Limits::default()), Limits::decode).unwrap_or_default();
    if let Some(index) = engine.indexes.list().find(index) {
        index.groups.set_limits(scope, limits);
        engine.waiting.records.search_index_anew(index);
    }
}

/// Does some of the work that is left in the groups of indexes.
pub fn tidy_groups(engine: &Engine) {
    let now_ns = unix_ns(engine);
    engine.indexes.list().iter().for_each(|index| index.groups.work(now_ns));
}

/// Forgets some states of rates that are over, in the next shard. The caller holds no lock.
pub fn tidy_rates(engine: &Engine) {
    let shard = engine.indexes.next_tidied() % engine.keyspace.shard_count();
    if let Some(mut locked) = engine.keyspace.lock_shard_unless_busy(shard) {
        locked.forget_rates_over(unix_ns(engine), TIDIED_RATES);
    }
}

fn unix_ns(engine: &Engine) -> u64 {
    engine.clock.unix_us().saturating_mul(1000)
}

fn unix_ms(engine: &Engine) -> u64 {
    engine.clock.unix_us() / 1000
}
