//! PFDEBUG and PFSELFTEST.

use super::counting::{Splice, corrupt, look};
use algorithms::hyperloglog::{Draft, HyperLogLog, Observation, REGISTERS};
use execution::args::is_word;
use execution::context::{ServerCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use keyspace::Key;

pub(super) fn pfdebug(cx: &mut WriteCx<'_>) -> CommandResult {
    let (word, key) = (cx.args.bytes()?, cx.args.key()?);
    cx.keys.remove_if_expired(cx.keys.db(), key);
    let missing = CommandError::fixed("ERR The specified key does not exist");
    let is_dense = look(cx.keys.view(), key, |known| known.is_dense())?.ok_or(missing)?;
    if is_word(word, "GETREG") {
        make_dense(cx, key)?;
        let registers = look(cx.keys.view(), key, |known| known.registers())?.expect("it is there");
        let registers = registers.map_err(corrupt)?;
        cx.reply.array(REGISTERS);
        registers.values.iter().for_each(|value| cx.reply.integer(i64::from(*value)));
    } else if is_word(word, "DECODE") {
        if is_dense {
            return Err(CommandError::fixed("ERR HLL encoding is not sparse"));
        }
        let decoded = look(cx.keys.view(), key, |known| known.decoded())?.expect("it is there");
        cx.reply.bulk(decoded.as_bytes());
    } else if is_word(word, "ENCODING") {
        cx.reply.simple(if is_dense { "dense" } else { "sparse" });
    } else if is_word(word, "TODENSE") {
        let was_sparse = make_dense(cx, key)?;
        cx.reply.integer(i64::from(was_sparse));
    } else {
        let word = String::from_utf8_lossy(word);
        return Err(CommandError::said(format!("ERR Unknown PFDEBUG subcommand '{word}'")));
    }
    Ok(())
}

/// Converts a HyperLogLog to its dense form. True when it was sparse.
fn make_dense(cx: &mut WriteCx<'_>, key: Key<'_>) -> Result<bool, CommandError> {
    let splice = look(cx.keys.view(), key, |known| {
        let mut draft = Draft::of(known, usize::MAX);
        Ok(draft.make_dense()?.then(|| Splice::between(known.bytes(), draft.bytes())))
    })?;
    let splice = splice.transpose().map_err(corrupt)?.flatten();
    if let Some(splice) = &splice {
        splice.record(&mut cx.keys, key);
    }
    Ok(splice.is_some())
}

/// Elements that PFSELFTEST adds: as many as take a few milliseconds. Redis's test blocks the server for seconds.
const TESTED_ELEMENTS: u64 = 100_000;

/// Adds random elements to a sparse and to a dense HyperLogLog: both must agree, and be near the true count.
pub(super) fn pfselftest(cx: &mut ServerCx<'_>) -> CommandResult {
    let sparse_bytes_max = cx.engine.settings.hll_sparse_max_bytes() as usize;
    let failed = |what: String| CommandError::said(format!("ERR TESTFAILED {what}"));
    let (mut sparse, mut dense) = (Draft::new(sparse_bytes_max), Draft::new(sparse_bytes_max));
    dense.make_dense().map_err(corrupt)?;
    let (seed, mut checkpoint) = (cx.worker.random.u64(..), 1);
    for number in 1..=TESTED_ELEMENTS {
        let observed = Observation::of(&(number ^ seed).to_le_bytes());
        for draft in [&mut sparse, &mut dense] {
            draft.observe(observed).map_err(corrupt)?;
        }
        if number != checkpoint {
            continue;
        }
        let [of_sparse, of_dense] = [&sparse, &dense].map(|draft| HyperLogLog::of(draft.bytes()).expect("it is one"));
        if number < sparse_bytes_max as u64 / 2 && of_sparse.is_dense() {
            return Err(failed("sparse encoding not used".into()));
        }
        let count = of_dense.count().map_err(corrupt)?;
        if of_sparse.count() != Ok(count) {
            return Err(failed("dense/sparse disagree".into()));
        }
        // Six times the standard error.
        let error_max = (6.0 * 1.04 / (REGISTERS as f64).sqrt() * checkpoint as f64).ceil() as u64;
        let error = count.abs_diff(checkpoint);
        if error > error_max {
            return Err(failed(format!("Too big error. card:{checkpoint} abserr:{error}")));
        }
        checkpoint *= 10;
    }
    cx.reply.ok();
    Ok(())
}
