//! PFADD, PFCOUNT and PFMERGE. The encoding is in `algorithms::hyperloglog`.

use algorithms::hyperloglog::{COUNT_AT, Corrupt, Draft, HyperLogLog, Observation, Registers};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use execution::settings::events::Events;
use execution::view::View;
use keyspace::types::string;
use keyspace::{Effect, Key, Scalar, StringRef};

pub(super) fn pfadd(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let sparse_bytes_max = cx.settings.hll_sparse_max_bytes() as usize;
    cx.keys.remove_if_expired(cx.keys.db(), key);
    let observed = cx.args.rest().map(Observation::of);
    let found = look(cx.keys.view(), key, |known| known.is_dense())?;
    let is_changed = match found {
        Some(true) => raise_dense(&mut cx.keys, key, observed),
        Some(false) => raise_sparse(&mut cx.keys, key, observed, sparse_bytes_max)?,
        None => {
            let mut draft = Draft::new(sparse_bytes_max);
            for observed in observed {
                draft.observe(observed).map_err(corrupt)?;
            }
            draft.mark_stale();
            cx.keys.record(&Effect::change(key, string::Change::Write { offset: 0, bytes: draft.bytes() }));
            true
        }
    };
    if is_changed {
        cx.keys.notify(Events::STRING, "pfadd", key);
    }
    cx.reply.integer(i64::from(is_changed));
    Ok(())
}

/// Raises registers of a dense HyperLogLog in place. True when any was lower.
fn raise_dense(keys: &mut Recorder<'_>, key: Key<'_>, observed: impl Iterator<Item = Observation>) -> bool {
    let mut is_changed = false;
    for observed in observed {
        let update = look(keys.view(), key, |known| known.dense_update(observed)).ok().flatten().flatten();
        if let Some((offset, pair, len)) = update {
            keys.record(&Effect::change(key, string::Change::Write { offset, bytes: &pair[..len] }));
            is_changed = true;
        }
    }
    if is_changed
        && let Some((offset, byte)) = look(keys.view(), key, |known| known.stale_update()).ok().flatten().flatten()
    {
        keys.record(&Effect::change(key, string::Change::Write { offset, bytes: &[byte] }));
    }
    is_changed
}

/// Raises registers of a sparse HyperLogLog, in a copy: runs may be split, and it may become dense. True when any was
/// lower.
fn raise_sparse(
    keys: &mut Recorder<'_>,
    key: Key<'_>,
    observed: impl Iterator<Item = Observation>,
    sparse_bytes_max: usize,
) -> Result<bool, CommandError> {
    let splice = look(keys.view(), key, |known| {
        let (mut draft, mut is_changed) = (Draft::of(known, sparse_bytes_max), false);
        for observed in observed {
            is_changed |= draft.observe(observed)?;
        }
        if is_changed {
            draft.mark_stale();
        }
        Ok(is_changed.then(|| Splice::between(known.bytes(), draft.bytes())))
    })?;
    let splice = splice.transpose().map_err(corrupt)?.flatten();
    if let Some(splice) = &splice {
        splice.record(keys, key);
    }
    Ok(splice.is_some())
}

pub(super) fn pfcount(cx: &mut ReadCx<'_>) -> CommandResult {
    if cx.args.left() == 1 {
        return count_one(cx);
    }
    let mut registers = Registers::default();
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        let merged = look(&cx.keys, key, |known| known.merge_into(&mut registers))?;
        cx.keys.looked_up(key, merged.is_some());
        merged.transpose().map_err(corrupt)?;
    }
    cx.reply.integer(registers.count() as i64);
    Ok(())
}

fn count_one(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let found = look(&cx.keys, key, |known| match known.cached_count() {
        Some(count) => Ok((count, true)),
        None => Ok((known.count()?, false)),
    })?;
    cx.keys.looked_up(key, found.is_some());
    let count = match found.transpose().map_err(corrupt)? {
        None => 0,
        Some((count, is_cached)) => {
            if !is_cached {
                cx.keys.keep_in_string(key, COUNT_AT, &count.to_le_bytes());
            }
            count
        }
    };
    cx.reply.integer(count as i64);
    Ok(())
}

pub(super) fn pfmerge(cx: &mut WriteCx<'_>) -> CommandResult {
    let to = cx.args.key()?;
    let sparse_bytes_max = cx.settings.hll_sparse_max_bytes() as usize;
    let (mut registers, mut any_dense) = (Registers::default(), false);
    for key in std::iter::once(to).chain(cx.args.rest().map(Key::new)) {
        let merged = look(cx.keys.view(), key, |known| {
            any_dense |= known.is_dense();
            known.merge_into(&mut registers)
        })?;
        cx.keys.view().looked_up(key, merged.is_some());
        merged.transpose().map_err(corrupt)?;
    }
    cx.keys.remove_if_expired(cx.keys.db(), to);
    let merge = |mut draft: Draft<'_>, before: &[u8]| -> Result<Splice, Corrupt> {
        if any_dense {
            draft.make_dense()?;
        }
        for (register, value) in registers.values.iter().enumerate().filter(|(_, value)| **value > 0) {
            draft.observe(Observation { register, value: *value })?;
        }
        draft.mark_stale();
        Ok(Splice::between(before, draft.bytes()))
    };
    let splice = look(cx.keys.view(), to, |known| merge(Draft::of(known, sparse_bytes_max), known.bytes()))?;
    let splice = splice.unwrap_or_else(|| merge(Draft::new(sparse_bytes_max), &[]));
    splice.map_err(corrupt)?.record(&mut cx.keys, to);
    cx.keys.notify(Events::STRING, "pfadd", to);
    cx.reply.ok();
    Ok(())
}

// What the debugging commands share -----------------------------------------------------------------------------------

/// Reads the HyperLogLog at a key. An error when the key holds anything else.
pub(super) fn look<T>(
    keys: &View<'_>,
    key: Key<'_>,
    look: impl FnOnce(HyperLogLog<'_>) -> T,
) -> Result<Option<T>, CommandError> {
    let known = match keys.typed::<StringRef>(key)? {
        None => return Ok(None),
        Some(Scalar::Bytes(bytes)) => HyperLogLog::of(bytes),
        Some(Scalar::Number(_)) => None,
    };
    let refusal = CommandError::fixed("WRONGTYPE Key is not a valid HyperLogLog string value.");
    known.map(|known| Some(look(known))).ok_or(refusal)
}

pub(super) fn corrupt(_: Corrupt) -> CommandError {
    CommandError::fixed("INVALIDOBJ Corrupted HLL object detected")
}

/// The difference between two strings: which bytes are replaced, and by which.
pub(super) struct Splice {
    offset: usize,
    removed: usize,
    bytes: Vec<u8>,
}

impl Splice {
    pub(super) fn between(old: &[u8], new: &[u8]) -> Splice {
        let shorter = old.len().min(new.len());
        let offset = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let same = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        let same = same.min(shorter - offset);
        Splice { offset, removed: old.len() - same - offset, bytes: new[offset..new.len() - same].to_vec() }
    }

    pub(super) fn record(&self, keys: &mut Recorder<'_>, key: Key<'_>) {
        let Splice { offset, removed, ref bytes } = *self;
        keys.record(&Effect::change(key, string::Change::Splice { offset, removed, bytes }));
    }
}
