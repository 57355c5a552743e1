//! The locks of a take: of a record, and of the states of rates that it changes. And times of rates, which are in
//! nanoseconds. Refuses to know which record is taken.

use execution::conditions;
use execution::engine::Engine;
use execution::error::CommandError;
use keyspace::db::Db;
use keyspace::index::Index;
use keyspace::index::groups::{Scope, encode_name};
use keyspace::{Key, Locked};
use smallvec::SmallVec;

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_US: u64 = 1_000;

/// A time of a rate in milliseconds, rounded up: before it a take is refused.
pub(super) fn ms_of(ns: u64) -> u64 {
    ns.div_ceil(NS_PER_MS)
}

/// The time that counts for the rates of an index.
///
/// IMPORTANT: not that of the command. It stands still in a script and in a transaction, and what is taken at the end of
/// one would count as taken at its beginning: the next claim would be allowed as many again.
pub(in crate::records) fn rates_now_ns(engine: &Engine, index: &Index, now_ms: u64) -> u64 {
    match index.groups.has_rates() {
        true => engine.clock.unix_us().saturating_mul(NS_PER_US),
        false => now_ms.saturating_mul(NS_PER_MS),
    }
}

/// The database of one of the locked shards.
pub(super) fn shard_db<'l>(locked: &'l Locked<'_>, shard: usize, db: usize) -> &'l Db {
    let (_, shard) = locked.shards().find(|(number, _)| *number == shard).expect("the shard is locked");
    shard.db(db)
}

/// The shards of the states of rates that a take from a group changes.
fn rate_shards(engine: &Engine, index: &Index, group: Option<&[u8]>) -> SmallVec<[usize; 16]> {
    let scopes = [Some(Scope::All), group.map(Scope::Group)];
    scopes.into_iter().flatten().map(|scope| engine.keyspace.shard_of(&encode_name(&index.name, scope))).collect()
}

/// Locks the shard of a record, and those of the states of rates that a take of it changes.
pub(super) fn lock_for_take<'e>(
    engine: &'e Engine,
    shard: usize,
    index: &Index,
    group: Option<&[u8]>,
) -> Result<Locked<'e>, CommandError> {
    loop {
        let has_rates = index.groups.has_rates();
        let locked = match has_rates {
            false => engine.keyspace.lock_shard_unless_busy(shard),
            true => {
                let mut shards = rate_shards(engine, index, group);
                shards.push(shard);
                engine.keyspace.lock_shards_unless_busy(shards)
            }
        };
        let locked = locked.ok_or_else(|| conditions::busy(engine))?;
        // Limits change under all locks: from here on they stay.
        if index.groups.has_rates() == has_rates {
            return Ok(locked);
        }
    }
}

/// Locks the shard of a record by its name, and those of the states of rates that a take of it changes.
pub(super) fn lock_for_take_of<'e>(
    engine: &'e Engine,
    db: usize,
    key: Key<'_>,
    index: &Index,
) -> Result<Locked<'e>, CommandError> {
    let shard = engine.keyspace.shard_of_key(key);
    let mut group: Option<Vec<u8>> = None;
    loop {
        let locked = lock_for_take(engine, shard, index, group.as_deref())?;
        if !index.groups.has_rates() {
            return Ok(locked);
        }
        let within = locked.db(db, key);
        let is_in = within.typed_hash(key).and_then(|hash| index.definition.group(hash));
        if is_in.is_none() || is_in == group {
            return Ok(locked);
        }
        group = is_in;
    }
}
