//! A program that keeps its state by a journal, and knows what it was promised. Its state is so simple that what
//! recovery gives back can be judged: each change has a number and touches two of a few shards, and a shard is the
//! list of the changes it has seen. Whatever happens, what comes back must be the state after the first so many
//! changes, for all shards alike, and no fewer than were promised.

use std::sync::Arc;

use fastrand::Rng;
use journal::{
    Batch, Epoch, FaultyStorage, FileLog, FileLogOptions, History, Log, Maintenance, Recovery, RecoveryError, Sequence,
    SnapshotError, SnapshotInfo, Storage,
};

use super::stamp;

const SHARDS: usize = 3;

pub(crate) struct World {
    pub(crate) storage: FaultyStorage,
    pub(crate) journal: Option<FileLog>,
    options: FileLogOptions,
    rng: Rng,
    /// All changes so far, with the sequences that they got; those that were recovered have none any more.
    sequences: Vec<Sequence>,
    shards: [Vec<u32>; SHARDS],
    /// How many changes must be there after the process dies, and after the power fails.
    written: usize,
    durable: usize,
}

impl World {
    /// A world on an empty storage, with nothing open yet.
    pub(crate) fn new(storage: FaultyStorage, options: FileLogOptions, seed: u64) -> World {
        World {
            storage,
            journal: None,
            options,
            rng: Rng::with_seed(seed),
            sequences: Vec::new(),
            shards: Default::default(),
            written: 0,
            durable: 0,
        }
    }

    /// Opens the storage for writing. Checks, and then takes on, the state that is in it.
    pub(crate) fn open(&mut self, must_be_there: usize) -> Result<(), RecoveryError> {
        assert!(self.journal.is_none());
        let (count, recovery) = self.recover(&self.storage, must_be_there)?;
        let journal = recovery.into_log(self.options.clone())?;
        self.shards = shards_after(count);
        self.sequences = vec![Sequence::NONE; count];
        // Opening makes all that it found durable.
        (self.written, self.durable) = (count, count);
        assert!(!journal.has_failed() && journal.durable() == journal.tail());
        self.journal = Some(journal);
        Ok(())
    }

    fn journal(&self) -> &FileLog {
        self.journal.as_ref().expect("the journal is open")
    }

    /// Makes a change with so many bytes of ballast.
    pub(crate) fn change(&mut self, ballast: usize) {
        let number = self.sequences.len() as u32;
        let mut batch = number.to_le_bytes().to_vec();
        batch.extend((0..ballast).map(|at| (number as usize * 31 + at) as u8));
        // A clock that runs, and is set back now and then.
        let time_ms = 1_000_000 + u64::from(number) * 10 - self.rng.u64(..200);
        let sequence = self.journal().append(&batch, time_ms);
        self.sequences.push(sequence);
        for shard in shards_of(number) {
            self.shards[shard].push(number);
        }
    }

    pub(crate) fn write(&mut self) -> bool {
        let done = self.journal().write(self.journal().tail());
        self.note_promises();
        assert!(done.is_err() || self.written == self.sequences.len());
        done.is_ok()
    }

    pub(crate) fn sync(&mut self) -> bool {
        let durable_before = self.journal().durable();
        let has_failed = self.journal().has_failed();
        let done = self.journal().wait_durable(self.journal().tail());
        self.note_promises();
        assert!(done.is_err() || self.durable == self.sequences.len());
        if has_failed {
            assert_eq!(self.journal().durable(), durable_before, "nothing becomes durable in a failed journal");
        }
        done.is_ok()
    }

    /// What the marks say is promised, whether anyone asked for it or not.
    fn note_promises(&mut self) {
        let up_to = |mark| self.sequences.partition_point(|sequence| *sequence <= mark);
        self.written = self.written.max(up_to(self.journal().written()));
        self.durable = self.durable.max(up_to(self.journal().durable()));
    }

    /// Takes a snapshot, shard by shard, while changes go on.
    pub(crate) fn snapshot(&mut self) -> Result<SnapshotInfo, SnapshotError> {
        let mut writer = self.journal().snapshots().create(b"world", 0)?;
        for shard in 0..SHARDS {
            let payload: Vec<u8> = self.shards[shard].iter().flat_map(|number| number.to_le_bytes()).collect();
            writer.part(stamp(shard as u32, self.journal().tail()), &payload, self.shards[shard].len() as u32)?;
            for _ in 0..self.rng.usize(..3) {
                let ballast = self.rng.usize(..300);
                self.change(ballast);
            }
            if self.rng.bool() {
                self.write();
            }
        }
        let info = writer.finish(self.journal());
        self.note_promises();
        info
    }

    /// Takes a snapshot and drops what it replaces.
    pub(crate) fn compact(&mut self) -> bool {
        let Ok(info) = self.snapshot() else { return false };
        self.journal().snapshots().remove_older(&info).is_ok() && self.journal().forget(info.min).is_ok()
    }

    /// What a server does about a journal that failed.
    pub(crate) fn restart(&mut self) -> bool {
        if self.journal().restart().is_err() {
            return false;
        }
        let Ok(info) = self.snapshot() else { return false };
        let accepted = self.journal().accept(info.min).is_ok();
        self.note_promises();
        accepted
    }

    pub(crate) fn close(&mut self) {
        let closed = self.journal().close();
        self.note_promises();
        assert!(closed.is_err() || self.durable == self.sequences.len());
        self.journal = None;
    }

    /// The process dies and comes back.
    pub(crate) fn kill(&mut self) {
        self.journal = None;
        self.storage = self.storage.kill();
        self.open(self.written).expect("nothing is wrong with what a dead process leaves");
    }

    /// The power fails and comes back.
    pub(crate) fn crash(&mut self, seed: u64) {
        self.journal = None;
        self.storage = self.storage.crash(seed);
        self.open(self.durable).expect("nothing is wrong with what a power failure leaves");
    }

    /// Checks, without disturbing anything, that what was promised is there after either.
    pub(crate) fn check(&self, seeds: std::ops::Range<u64>) {
        self.recover(&self.storage.kill(), self.written).expect("nothing is wrong with what a dead process leaves");
        for seed in seeds {
            let crashed = self.storage.crash(seed);
            self.recover(&crashed, self.durable).expect("nothing is wrong with what a power failure leaves");
        }
    }

    /// Cuts off or removes a segment, in a copy. What was durable is there all the same, or it is not opened. For a
    /// world in which nothing fails: a mark that could not be written proves nothing.
    pub(crate) fn check_that_loss_is_noticed(&mut self) {
        let damaged = self.storage.kill();
        let segments: Vec<String> = damaged.names().into_iter().filter(|name| name.ends_with(".seg")).collect();
        let name = &segments[self.rng.usize(..segments.len())];
        match self.rng.u8(..4) {
            0 => damaged.remove(name).unwrap(),
            _ => damaged.truncate(name, self.rng.usize(..=damaged.bytes_of(name).unwrap().len())),
        }
        let _ = self.recover(&damaged, self.durable);
    }

    /// How many changes must be there if the process dies right now.
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// Reads a storage and says how many changes it holds.
    fn recover(&self, storage: &FaultyStorage, must_be_there: usize) -> Result<(usize, Recovery), RecoveryError> {
        let mut recovery = Recovery::open(Arc::new(storage.clone()))?;
        let mut shards: [Vec<u32>; SHARDS] = Default::default();
        let mut stamps = [Sequence::NONE; SHARDS];
        while let Some(part) = recovery.next_part()? {
            let shard = part.stamp.shard as usize;
            stamps[shard] = part.stamp.sequence;
            shards[shard] =
                part.payload.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
        }
        let (mut epoch, mut time_ms) = (Epoch::NONE, 0);
        while let Some(Batch { epoch: of_batch, sequence, time_ms: of_clock, payload }) = recovery.next_batch()? {
            assert!(of_batch >= epoch && of_clock >= time_ms, "neither epochs nor times go back");
            (epoch, time_ms) = (of_batch, of_clock);
            let number = u32::from_le_bytes(payload[..4].try_into().unwrap());
            let latest_ms = 1_000_000 + u64::from(number) * 10;
            assert!((latest_ms - 200..=latest_ms).contains(&time_ms), "change {number} was made at {time_ms}");
            for shard in shards_of(number) {
                if sequence > stamps[shard] {
                    shards[shard].push(number);
                }
            }
        }
        let count = shards.iter().flatten().max().map_or(0, |last| *last as usize + 1);
        assert_eq!(shards, shards_after(count), "the state is that after the first {count} changes");
        assert!(count >= must_be_there, "{must_be_there} changes were promised, {count} are there");
        assert!(count <= self.sequences.len(), "{} changes were made, {count} are there", self.sequences.len());
        Ok((count, recovery))
    }
}

fn shards_of(number: u32) -> [usize; 2] {
    let first = number as usize % SHARDS;
    [first, (first + 1 + number as usize / SHARDS % (SHARDS - 1)) % SHARDS]
}

fn shards_after(count: usize) -> [Vec<u32>; SHARDS] {
    let mut shards: [Vec<u32>; SHARDS] = Default::default();
    for number in 0..count as u32 {
        for shard in shards_of(number) {
            shards[shard].push(number);
        }
    }
    shards
}
