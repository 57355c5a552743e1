//! What the tests of this crate share: opening a storage, and reading all that is in it.

#![allow(dead_code, reason = "each test file uses its own part of this")]

pub(crate) mod world;

use std::sync::Arc;

use journal::{
    Batch, Epoch, FaultyStorage, FileLog, FileLogOptions, FollowUpTo, History, Log, LogReader, ReadError, Recovery,
    RecoveryError, Sequence, SnapshotInfo, Stamp, Warning,
};

/// Small segments, and no sync but those that are asked for, so that a history is the same each time it is run.
/// The lengths of headers, as `docs/journal-format.md` has them.
pub(crate) const SEGMENT_HEADER_LEN: usize = 100;
pub(crate) const FRAME_HEADER_LEN: usize = 32;

pub(crate) fn options(segment_bytes_max: u64) -> FileLogOptions {
    FileLogOptions {
        segment_bytes_max,
        sync_every: None,
        zero_ahead: false,
        zero_ahead_bytes: 3000,
        reserve_bytes: 0,
        prepare_next: false,
    }
}

pub(crate) fn open(storage: &FaultyStorage) -> FileLog {
    open_with(storage, options(4096)).expect("nothing is wrong with the storage")
}

pub(crate) fn open_with(storage: &FaultyStorage, options: FileLogOptions) -> Result<FileLog, RecoveryError> {
    Recovery::open(Arc::new(storage.clone()))?.into_log(options)
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
    let mut epoch = Epoch::NONE;
    while let Some(batch) = recovery.next_batch()? {
        assert!(batch.epoch >= epoch, "epochs never go back");
        epoch = batch.epoch;
        contents.batches.push((batch.sequence.0, batch.payload.to_vec()));
    }
    Ok((contents, recovery.warnings().to_vec()))
}

/// The batches of a storage that must be in order, as text.
pub(crate) fn batches(storage: &FaultyStorage) -> Vec<String> {
    let (contents, _) = contents(storage).expect("nothing is wrong with the storage");
    contents.batches.into_iter().map(|(_, batch)| String::from_utf8(batch).unwrap()).collect()
}

/// A snapshot with one part that is complete up to the journal's tail.
pub(crate) fn snapshot(journal: &FileLog, payload: &str) -> SnapshotInfo {
    let mut writer = journal.snapshots().create(b"meta", 1_700_000_000_000).unwrap();
    writer.part(stamp(0, journal.tail()), payload.as_bytes(), 1).unwrap();
    writer.finish(journal).unwrap()
}

/// What a reader finds from `from` on without waiting, up to an error, if there is one.
pub(crate) fn read(log: &dyn LogReader, from: u64) -> (Vec<Batch>, Option<ReadError>) {
    let mut reader = log.follow(Sequence(from), FollowUpTo::Written);
    let mut batches = Vec::new();
    loop {
        match reader.try_next() {
            Ok(Some(batch)) => batches.push(batch),
            Ok(None) => return (batches, None),
            Err(error) => return (batches, Some(error)),
        }
    }
}

pub(crate) fn stamp(shard: u32, sequence: Sequence) -> Stamp {
    Stamp { shard, end: shard + 1, sequence }
}

/// The seed in `HOLDFAST_TEST_SEED`, or new ones: as many as usual, or `HOLDFAST_TEST_ROUNDS`.
pub(crate) fn seeds(usual: u64) -> Vec<u64> {
    if let Some(seed) = number("HOLDFAST_TEST_SEED") {
        return vec![seed];
    }
    let first = fastrand::u64(..1 << 32);
    (first..first + number("HOLDFAST_TEST_ROUNDS").unwrap_or(usual)).collect()
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("it is a number"))
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

/// A log that is written and read through the same handle.
pub(crate) trait ReadableLog: Log + LogReader {}

impl<L: Log + LogReader> ReadableLog for L {}
