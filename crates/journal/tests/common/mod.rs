//! What the tests of this crate share: opening a storage, and reading all that is in it.

#![allow(dead_code, reason = "each test file uses its own part of this")]

pub(crate) mod world;

use std::sync::Arc;

use journal::{
    FaultyStorage, FileJournal, Journal, JournalOptions, Recovery, RecoveryError, Sequence, SnapshotInfo,
    SnapshotWriter, Stamp, Warning,
};

/// Small segments, and no sync but those that are asked for, so that a history is the same each time it is run.
pub(crate) fn options(segment_bytes_max: u64) -> JournalOptions {
    JournalOptions { segment_bytes_max, sync_every: None, zero_ahead: false, zero_ahead_bytes: 3000, reserve_bytes: 0 }
}

pub(crate) fn open(storage: &FaultyStorage) -> FileJournal {
    open_with(storage, options(4096)).expect("nothing is wrong with the storage")
}

pub(crate) fn open_with(storage: &FaultyStorage, options: JournalOptions) -> Result<FileJournal, RecoveryError> {
    Recovery::open(Arc::new(storage.clone()))?.into_journal(options)
}

/// All that a storage holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) meta: Option<Vec<u8>>,
    pub(crate) parts: Vec<(Stamp, Vec<u8>)>,
    pub(crate) batches: Vec<(u64, Vec<u8>)>,
}

pub(crate) fn contents(storage: &FaultyStorage) -> Result<(Contents, Vec<Warning>), RecoveryError> {
    let mut recovery = Recovery::open(Arc::new(storage.clone()))?;
    let mut contents = Contents { meta: recovery.meta().map(<[u8]>::to_vec), ..Contents::default() };
    while let Some(part) = recovery.next_part()? {
        contents.parts.push((part.stamp, part.payload.to_vec()));
    }
    while let Some((sequence, batch)) = recovery.next_batch()? {
        contents.batches.push((sequence.0, batch.to_vec()));
    }
    Ok((contents, recovery.warnings().to_vec()))
}

/// The batches of a storage that must be in order, as text.
pub(crate) fn batches(storage: &FaultyStorage) -> Vec<String> {
    let (contents, _) = contents(storage).expect("nothing is wrong with the storage");
    contents.batches.into_iter().map(|(_, batch)| String::from_utf8(batch).unwrap()).collect()
}

/// A snapshot with one part that is complete up to the journal's tail.
pub(crate) fn snapshot(storage: &FaultyStorage, journal: &dyn Journal, payload: &str) -> SnapshotInfo {
    let mut writer =
        SnapshotWriter::create(Arc::new(storage.clone()), journal.directory_id(), b"meta", 1_700_000_000_000).unwrap();
    writer.part(stamp(0, journal.tail()), payload.as_bytes(), 1).unwrap();
    writer.finish(journal).unwrap()
}

pub(crate) fn stamp(shard: u32, sequence: Sequence) -> Stamp {
    Stamp { shard, end: shard + 1, sequence }
}

/// The seed in `HOLDFAST_TEST_SEED`, or each of the usual ones.
pub(crate) fn seeds(usual: std::ops::Range<u64>) -> Vec<u64> {
    match std::env::var("HOLDFAST_TEST_SEED") {
        Ok(seed) => vec![seed.parse().expect("HOLDFAST_TEST_SEED is a number")],
        Err(_) => usual.collect(),
    }
}

/// Says which seed it was when a random test fails.
pub(crate) struct SeedOnPanic(pub(crate) u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("run it again with HOLDFAST_TEST_SEED={}", self.0);
        }
    }
}
