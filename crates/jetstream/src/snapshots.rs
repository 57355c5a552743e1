//! Snapshots in an object store: blocks of parts, then a manifest that makes them a snapshot. Knows which snapshots
//! count; refuses to know what a part contains and where objects are kept.
//!
//! ```text
//! blocks/<nonce>/<number>                     parts, one after the other, compressed
//! snapshots/<position>-<epoch>-<nonce>        the manifest
//! ```
//!
//! A manifest names the frame behind which a reader goes on: the last one that has nothing newer than the oldest part. It
//! is stored when all batches up to the newest part are, by the writer that made them: a snapshot of a writer that was
//! fenced meanwhile may have what never happened. Manifests never change. Two are kept, and the log from the older one on.

use crate::blocks;
use crate::context::Context;
use crate::frame::{Link, Nonce, Position};
use crate::lease::has_passed;
use crate::log::StreamLog;
use crate::mutation::{Mutation, is_broken};
use crate::objects::received;
use journal::{
    Epoch, Failure, Log, Operation, ReadSnapshot, Sequence, SnapshotError, SnapshotInfo, SnapshotReadError,
    SnapshotStore, Stamp, StoredPart, WriteSnapshot,
};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

const BLOCKS: &str = "blocks/";
const MANIFESTS: &str = "snapshots/";
/// A block is stored when it has this many bytes, not yet compressed.
const BLOCK_BYTES: usize = 4 * 1024 * 1024;
/// How many blocks are on the way while one is read.
const BLOCKS_AHEAD: usize = 2;
/// How many snapshots are kept.
const KEPT: usize = 2;
/// How long the batches of a snapshot may take to be stored.
const STORED_WITHIN: Duration = Duration::from_secs(10);
pub(crate) const MAGIC: &[u8; 4] = b"HFM2";
const PART_HEADER_LEN: usize = 28;

/// What makes a snapshot of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) log: u64,
    pub(crate) nonce: Nonce,
    /// The frame behind which a reader goes on.
    pub(crate) link: Link,
    pub(crate) min: Sequence,
    pub(crate) max: Sequence,
    /// The epoch of the writer that made it.
    pub(crate) epoch: Epoch,
    pub(crate) created_ms: u64,
    pub(crate) parts: u64,
    pub(crate) entries: u64,
    /// Of all parts, not compressed.
    pub(crate) bytes: u64,
    pub(crate) meta: Vec<u8>,
    /// The checksum of each block as it is stored.
    pub(crate) blocks: Vec<u32>,
}

impl Manifest {
    pub(crate) fn name(&self) -> String {
        format!("{MANIFESTS}{:020}-{:010}-{:032x}", self.link.position, self.epoch.0, self.nonce.0)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(MAGIC);
        let Link { position, crc, epoch, nonce, sequence, time_ms, ceiling_ms } = self.link;
        bytes.extend_from_slice(&self.log.to_le_bytes());
        bytes.extend_from_slice(&self.nonce.0.to_le_bytes());
        bytes.extend_from_slice(&nonce.0.to_le_bytes());
        let numbers = [
            position,
            crc.into(),
            epoch.0.into(),
            sequence.0,
            time_ms,
            ceiling_ms,
            self.min.0,
            self.max.0,
            self.epoch.0.into(),
            self.created_ms,
            self.parts,
            self.entries,
            self.bytes,
            self.meta.len() as u64,
            self.blocks.len() as u64,
        ];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(&self.meta);
        self.blocks.iter().for_each(|crc| bytes.extend_from_slice(&crc.to_le_bytes()));
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Manifest> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let mut rest = Input(body);
        if rest.take(4)? != MAGIC {
            return None;
        }
        let log = rest.u64()?;
        let (nonce, link_nonce) = (Nonce(rest.u128()?), Nonce(rest.u128()?));
        let link = Link {
            position: rest.u64()?,
            crc: rest.u64()?.try_into().ok()?,
            epoch: Epoch(rest.u64()?.try_into().ok()?),
            nonce: link_nonce,
            sequence: Sequence(rest.u64()?),
            time_ms: rest.u64()?,
            ceiling_ms: rest.u64()?,
        };
        let (min, max) = (Sequence(rest.u64()?), Sequence(rest.u64()?));
        let epoch = Epoch(rest.u64()?.try_into().ok()?);
        let (created_ms, parts, entries, bytes) = (rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?);
        let (meta_len, count) = (rest.u64()?, rest.u64()?);
        let meta = rest.take(meta_len.try_into().ok()?)?.to_vec();
        let blocks = rest.take(usize::try_from(count).ok()?.checked_mul(4)?)?;
        let blocks = blocks.chunks_exact(4).map(|crc| u32::from_le_bytes(crc.try_into().unwrap())).collect();
        let manifest = Manifest { log, nonce, link, min, max, epoch, created_ms, parts, entries, bytes, meta, blocks };
        rest.0.is_empty().then_some(manifest)
    }

    /// False if a block is missing from these names: a writer that was fenced at the last moment has left its manifest, and
    /// the next one has removed its blocks.
    pub(crate) fn has_all_blocks(&self, names: &[String]) -> bool {
        (0..self.blocks.len()).all(|number| names.contains(&block_name(self.nonce, number)))
    }

    fn info(&self) -> SnapshotInfo {
        SnapshotInfo {
            name: self.name(),
            created_ms: self.created_ms,
            parts: self.parts,
            entries: self.entries,
            min: self.min,
            max: self.max,
            epoch: self.epoch,
            bytes: self.bytes,
        }
    }
}

/// Bytes that are read from the front.
struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().unwrap()))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().unwrap()))
    }

    fn u128(&mut self) -> Option<u128> {
        Some(u128::from_le_bytes(self.take(16)?.try_into().unwrap()))
    }
}

fn block_name(nonce: Nonce, number: usize) -> String {
    format!("{BLOCKS}{:032x}/{number:08}", nonce.0)
}

/// The position in the name of a manifest.
fn position_of(name: &str) -> Option<Position> {
    name.strip_prefix(MANIFESTS)?.split('-').next()?.parse().ok()
}

/// Those of the names that are of manifests, the newest first.
pub(crate) fn manifests(names: &[String]) -> Vec<&String> {
    let mut manifests: Vec<&String> = names.iter().filter(|name| position_of(name).is_some()).collect();
    manifests.sort_unstable_by(|left, right| right.cmp(left));
    manifests
}

/// The frame of the newest of the snapshots that have these names; 0 if there is none.
pub(crate) fn newest_position(names: &[String]) -> Position {
    names.iter().filter_map(|name| position_of(name)).max().unwrap_or(0)
}

fn read_failed(operation: Operation, target: &str) -> impl FnOnce(io::Error) -> SnapshotReadError {
    let target = target.to_owned();
    move |source| SnapshotReadError::Io { operation, target, offset: 0, source }
}

/// The newest snapshot that can be read.
pub(crate) fn newest(context: &Arc<Context>) -> Result<Option<StreamSnapshotReader>, SnapshotReadError> {
    let names = context.objects.list().map_err(read_failed(Operation::List, &context.name))?;
    let unreadable = context.unreadable.lock().clone();
    let mut damaged = None;
    for name in manifests(&names) {
        if unreadable.contains(name) {
            let (target, detail) = (name.clone(), "part of it cannot be read");
            damaged.get_or_insert(SnapshotReadError::Damaged { target, offset: 0, detail });
            continue;
        }
        match StreamSnapshotReader::open(context, name).and_then(|reader| reader.with_all_blocks(&names)) {
            Ok(reader) => return Ok(Some(reader)),
            // The one before it and the log since have the same.
            Err(error) => {
                tracing::warn!(snapshot = name, %error, "a snapshot cannot be read: the one before it is tried");
                damaged.get_or_insert(error);
            }
        }
    }
    // Each may be tried once more: perhaps its parts did not arrive in time.
    context.unreadable.lock().clear();
    damaged.map_or(Ok(None), Err)
}

/// The snapshots of the log, for the process that writes it.
pub(crate) struct StreamSnapshots {
    pub(crate) context: Arc<Context>,
    pub(crate) log: Weak<StreamLog>,
}

impl StreamSnapshots {
    fn log(&self) -> Result<Arc<StreamLog>, SnapshotError> {
        self.log.upgrade().ok_or(SnapshotError::Journal(Failure::Closed))
    }

    fn check(&self) -> Result<(), SnapshotError> {
        self.log()?.failure().map_or(Ok(()), |failure| Err(failure.into()))
    }
}

impl SnapshotStore for StreamSnapshots {
    fn list(&self) -> Result<Vec<SnapshotInfo>, SnapshotReadError> {
        let names = self.context.objects.list().map_err(read_failed(Operation::List, &self.context.name))?;
        let readable =
            manifests(&names).into_iter().filter_map(|name| StreamSnapshotReader::open(&self.context, name).ok());
        Ok(readable.map(|reader| reader.info.clone()).collect())
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadSnapshot>, SnapshotReadError> {
        Ok(Box::new(StreamSnapshotReader::open(&self.context, name)?))
    }

    fn create(&self, meta: &[u8], created_ms: u64) -> Result<Box<dyn WriteSnapshot>, SnapshotError> {
        self.check()?;
        let log = self.log()?;
        Ok(Box::new(StreamSnapshotWriter {
            context: self.context.clone(),
            epoch: log.epoch(),
            log,
            nonce: self.context.stream.nonce(),
            meta: meta.to_vec(),
            created_ms,
            block: Vec::new(),
            blocks: Vec::new(),
            parts: 0,
            entries: 0,
            min: Sequence(u64::MAX),
            max: Sequence::NONE,
            bytes: 0,
            is_published: false,
        }))
    }

    fn remove_older(&self, _newest: &SnapshotInfo) -> Result<(), SnapshotError> {
        self.check()?;
        let objects = &*self.context.objects;
        let failed = |operation, target: &str| {
            let target = target.to_owned();
            move |source| SnapshotError::Io { operation, target, source }
        };
        let names = objects.list().map_err(failed(Operation::List, &self.context.name))?;
        let mut kept = manifests(&names);
        for name in kept.split_off(kept.len().min(KEPT)) {
            objects.remove(name).map_err(failed(Operation::Remove, name))?;
        }
        // Blocks of no snapshot: of one that was removed, or was never finished. IMPORTANT: only this process writes any,
        // one snapshot at a time, so none is being written.
        let nonces: Vec<&str> = kept.iter().filter_map(|name| name.rsplit('-').next()).collect();
        for name in &names {
            let nonce = name.strip_prefix(BLOCKS).and_then(|rest| rest.split('/').next());
            if nonce.is_some_and(|nonce| !nonces.contains(&nonce)) {
                self.check()?;
                objects.remove(name).map_err(failed(Operation::Remove, name))?;
            }
        }
        // Readers may begin with the older one.
        if let Some(position) = kept.last().filter(|_| kept.len() == KEPT).and_then(|name| position_of(name)) {
            self.context.kept_from.store(position, Ordering::SeqCst);
        }
        Ok(())
    }
}

struct StreamSnapshotWriter {
    context: Arc<Context>,
    log: Arc<StreamLog>,
    epoch: Epoch,
    nonce: Nonce,
    meta: Vec<u8>,
    created_ms: u64,
    /// The parts of the next block.
    block: Vec<u8>,
    blocks: Vec<u32>,
    parts: u64,
    entries: u64,
    min: Sequence,
    max: Sequence,
    bytes: u64,
    is_published: bool,
}

impl StreamSnapshotWriter {
    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), SnapshotError> {
        let failed = |source| SnapshotError::Io { operation: Operation::Write, target: name.to_owned(), source };
        self.context.objects.put(name, bytes).map_err(failed)
    }

    /// Waits until every batch that the snapshot has is stored, but not for ever: a server that is told to stop waits for its
    /// snapshot first.
    fn wait_stored(&self, log: &dyn Log) -> Result<(), SnapshotError> {
        log.write(self.max)?;
        let stream = &self.context.stream;
        let began_ns = stream.now_ns();
        while log.durable() < self.max {
            if let Some(failure) = log.failure() {
                return Err(failure.into());
            }
            if has_passed(stream.now_ns(), began_ns, STORED_WITHIN) {
                let source =
                    io::Error::new(io::ErrorKind::TimedOut, "the stream does not store what it has to contain");
                let target = self.context.name.clone();
                return Err(SnapshotError::Io { operation: Operation::Write, target, source });
            }
            stream.pause();
        }
        Ok(())
    }

    fn put_block(&mut self) -> Result<(), SnapshotError> {
        if let Some(failure) = self.log.failure() {
            return Err(failure.into());
        }
        let parts = std::mem::take(&mut self.block);
        self.bytes += parts.len() as u64;
        let block = blocks::compress(&parts);
        let (name, crc) = (block_name(self.nonce, self.blocks.len()), crc32c::crc32c(&block));
        self.blocks.push(crc);
        self.put(&name, block)
    }
}

impl WriteSnapshot for StreamSnapshotWriter {
    fn part(&mut self, stamp: Stamp, payload: &[u8], entries: u32) -> Result<(), SnapshotError> {
        self.parts += 1;
        self.entries += u64::from(entries);
        (self.min, self.max) = (self.min.min(stamp.sequence), self.max.max(stamp.sequence));
        self.block.extend_from_slice(&stamp.shard.to_le_bytes());
        self.block.extend_from_slice(&stamp.end.to_le_bytes());
        self.block.extend_from_slice(&stamp.sequence.0.to_le_bytes());
        self.block.extend_from_slice(&entries.to_le_bytes());
        self.block.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        self.block.extend_from_slice(payload);
        if self.block.len() >= BLOCK_BYTES { self.put_block() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>, log: &dyn Log) -> Result<SnapshotInfo, SnapshotError> {
        if self.parts == 0 {
            return Err(SnapshotError::Empty);
        }
        self.put_block()?;
        // IMPORTANT: before the manifest, and by the same writer. Otherwise it may have what never happened.
        if !is_broken(Mutation::SnapshotBeforeBatches) {
            self.wait_stored(log)?;
        }
        let Some(link) = self.log.boundary(self.min) else {
            return Err(SnapshotError::Journal(Failure::SnapshotTooOld {
                stamped: self.min,
                needed: self.log.link().sequence,
            }));
        };
        let manifest = Manifest {
            log: self.context.log.0,
            nonce: self.nonce,
            link,
            min: self.min,
            max: self.max,
            epoch: self.epoch,
            created_ms: self.created_ms,
            parts: self.parts,
            entries: self.entries,
            bytes: self.bytes,
            meta: std::mem::take(&mut self.meta),
            blocks: std::mem::take(&mut self.blocks),
        };
        self.put(&manifest.name(), manifest.encode())?;
        self.is_published = true;
        Ok(manifest.info())
    }
}

impl Drop for StreamSnapshotWriter {
    fn drop(&mut self) {
        if !self.is_published && self.log.failure().is_none() {
            // What stays is removed with the next snapshot.
            for number in 0..self.blocks.len() {
                let _ = self.context.objects.remove(&block_name(self.nonce, number));
            }
        }
    }
}

/// A snapshot being read.
pub(crate) struct StreamSnapshotReader {
    context: Arc<Context>,
    manifest: Manifest,
    info: SnapshotInfo,
    next_block: usize,
    /// Blocks that are on the way, beginning with the next one.
    ahead: VecDeque<mpsc::Receiver<io::Result<Vec<u8>>>>,
    block: Vec<u8>,
    at: usize,
    parts: u64,
    bytes_read: u64,
}

impl StreamSnapshotReader {
    fn open(context: &Arc<Context>, name: &str) -> Result<StreamSnapshotReader, SnapshotReadError> {
        let bytes = context.objects.get(name).map_err(read_failed(Operation::Open, name))?;
        let damaged = |detail| SnapshotReadError::Damaged { target: name.to_owned(), offset: 0, detail };
        let manifest = Manifest::decode(&bytes).ok_or_else(|| damaged("its checksum does not match"))?;
        if manifest.log != context.log.0 {
            return Err(damaged("it belongs to another log"));
        }
        let info = manifest.info();
        let context = context.clone();
        Ok(StreamSnapshotReader {
            context,
            manifest,
            info,
            next_block: 0,
            ahead: VecDeque::new(),
            block: Vec::new(),
            at: 0,
            parts: 0,
            bytes_read: 0,
        })
    }

    /// An error if a block is missing.
    fn with_all_blocks(self, names: &[String]) -> Result<StreamSnapshotReader, SnapshotReadError> {
        match self.manifest.has_all_blocks(names) {
            true => Ok(self),
            false => {
                let (target, detail) = (self.info.name, "some of its blocks are missing");
                Err(SnapshotReadError::Damaged { target, offset: 0, detail })
            }
        }
    }

    /// The frame behind which a reader goes on.
    pub(crate) fn link(&self) -> Link {
        self.manifest.link
    }

    /// Remembers that another snapshot has to be read.
    fn unreadable(&self, error: SnapshotReadError) -> SnapshotReadError {
        self.context.unreadable.lock().insert(self.info.name.clone());
        error
    }

    fn read_block(&mut self) -> Result<(), SnapshotReadError> {
        // Values can be of any size: behind a large block none is read ahead, and its memory is given back.
        let is_large = self.block.len() > 2 * BLOCK_BYTES;
        let ahead = if is_large { 0 } else { BLOCKS_AHEAD };
        if is_large {
            self.block = Vec::new();
        }
        let ends = self.manifest.blocks.len().min(self.next_block + ahead + 1);
        for number in self.next_block + self.ahead.len()..ends {
            self.ahead.push_back(self.context.objects.begin_get(&block_name(self.manifest.nonce, number)));
        }
        let name = block_name(self.manifest.nonce, self.next_block);
        let block = self.ahead.pop_front().expect("it was begun");
        let stored = received(&block).map_err(read_failed(Operation::Read, &name))?;
        let damaged = |detail| SnapshotReadError::Damaged { target: name.clone(), offset: 0, detail };
        if crc32c::crc32c(&stored) != self.manifest.blocks[self.next_block] {
            return Err(damaged("its checksum does not match"));
        }
        if !blocks::decompress(&stored, &mut self.block) {
            return Err(damaged("it cannot be decompressed"));
        }
        self.bytes_read += self.block.len() as u64;
        (self.next_block, self.at) = (self.next_block + 1, 0);
        Ok(())
    }
}

impl ReadSnapshot for StreamSnapshotReader {
    fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    fn meta(&self) -> &[u8] {
        &self.manifest.meta
    }

    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, SnapshotReadError> {
        while self.at == self.block.len() {
            if self.next_block == self.manifest.blocks.len() {
                return match self.parts == self.manifest.parts {
                    true => Ok(None),
                    false => Err(self.unreadable(SnapshotReadError::Damaged {
                        target: self.info.name.clone(),
                        offset: self.bytes_read,
                        detail: "it has fewer parts than it says",
                    })),
                };
            }
            self.read_block().map_err(|error| self.unreadable(error))?;
        }
        let begin = self.at;
        let mut rest = Input(&self.block[begin..]);
        let header = (|| {
            let (shard, end) = (rest.u32()?, rest.u32()?);
            let stamp = Stamp { shard, end, sequence: Sequence(rest.u64()?) };
            Some((stamp, rest.u32()?, usize::try_from(rest.u64()?).ok()?))
        })();
        let found = header.filter(|(_, _, length)| rest.0.len() >= *length);
        let Some((stamp, entries, length)) = found else {
            return Err(self.unreadable(SnapshotReadError::Damaged {
                target: self.info.name.clone(),
                offset: begin as u64,
                detail: "a part is cut off",
            }));
        };
        self.parts += 1;
        self.at = begin + PART_HEADER_LEN + length;
        let payload = &self.block[begin + PART_HEADER_LEN..self.at];
        Ok(Some(StoredPart { stamp, entries, payload }))
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Objects;
    use crate::simulation::World;
    use crate::testing::{Process, store, take_snapshot};
    use journal::LogPlace;
    use std::sync::atomic::AtomicUsize;

    /// The payload of the snapshot that a start begins with, and the last batch that it reads.
    fn read(process: &Process) -> (Vec<u8>, u64) {
        let mut reading = process.place.read_live().unwrap();
        let payload = reading.next_part().unwrap().map_or(Vec::new(), |part| part.payload.to_vec());
        while reading.next_part().unwrap().is_some() {}
        while reading.next_batch().unwrap().is_some() {}
        (payload, reading.reached().0)
    }

    fn count(world: &World, prefix: &str) -> usize {
        world.objects().iter().filter(|name| name.starts_with(prefix)).count()
    }

    #[test]
    fn two_snapshots_are_kept_and_the_log_from_the_older_one_on() {
        let world = World::new(21, 2, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        let mut positions = Vec::new();
        for number in 1..=4u8 {
            store(&opened, &[number]);
            let info = take_snapshot(&opened, &[number]);
            positions.push(position_of(&info.name).unwrap());
            world.advance(Duration::from_millis(20));
            let (kept, older) = (positions.len().min(KEPT), positions[positions.len().saturating_sub(KEPT)]);
            assert_eq!((count(&world, MANIFESTS), count(&world, BLOCKS)), (kept, kept));
            let first = if positions.len() < KEPT { 1 } else { older + 1 };
            assert_eq!(world.extent().first, first, "{positions:?}");
        }
        assert_eq!(read(&Process::begin(&world, 1, "b")), (vec![4], 4));
    }

    #[test]
    fn a_manifest_whose_blocks_are_missing_does_not_count() {
        let world = World::new(22, 2, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        for number in 1..=3u8 {
            store(&opened, &[number]);
            take_snapshot(&opened, &[number]);
        }
        store(&opened, b"later");
        let newest = opened.snapshots.list().unwrap()[0].name.clone();
        let nonce = newest.rsplit('-').next().unwrap();
        world.lose_object(&format!("{BLOCKS}{nonce}/00000000"));
        let reader = Process::begin(&world, 1, "b");
        assert_eq!(read(&reader), (vec![2], 4));
        // Without any, what was purged is missing.
        for name in world.objects() {
            world.lose_object(&name);
        }
        let error = reader.place.read_live().map(drop).unwrap_err();
        assert!(error.to_string().contains("part of the log is lost"), "{error}");
    }

    /// Regression: the same one was chosen again and again, although the older one was whole.
    #[test]
    fn after_a_snapshot_with_a_damaged_block_the_one_before_is_read() {
        let world = World::new(25, 2, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        for number in 1..=3u8 {
            store(&opened, &[number]);
            take_snapshot(&opened, &[number]);
        }
        let newest = opened.snapshots.list().unwrap()[0].name.clone();
        let nonce = newest.rsplit('-').next().unwrap();
        world.damage_object(&format!("{BLOCKS}{nonce}/00000000"));
        let reader = Process::begin(&world, 1, "b");
        let error = reader.place.read_live().unwrap().next_part().map(drop).unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
        assert_eq!(read(&reader), (vec![2], 3));
    }

    /// Regression: a server that was told to stop waited for its snapshot, and that for a stream that did not answer.
    #[test]
    fn a_snapshot_does_not_wait_for_ever_for_its_batches() {
        let world = World::new(26, 1, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        let last = opened.log.append(b"never stored", 1);
        world.lose_leader(Duration::from_secs(3600));
        let mut writer = opened.snapshots.create(b"", 0).unwrap();
        writer.part(Stamp { shard: 0, end: 1, sequence: last }, b"part", 1).unwrap();
        let error = writer.finish(&*opened.log).map(drop).unwrap_err();
        let SnapshotError::Io { source, .. } = &error else { panic!("{error}") };
        assert!(source.to_string().contains("does not store"), "{source}");
    }

    #[test]
    fn a_snapshot_that_is_given_up_leaves_nothing() {
        let world = World::new(23, 1, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        let mut writer = opened.snapshots.create(b"", 0).unwrap();
        let stamp = Stamp { shard: 0, end: 1, sequence: Sequence(0) };
        writer.part(stamp, &vec![1; BLOCK_BYTES], 1).unwrap();
        assert_eq!(count(&world, BLOCKS), 1);
        drop(writer);
        assert_eq!(world.objects(), Vec::<String>::new());
    }

    #[test]
    fn a_snapshot_of_many_blocks_is_read_in_order() {
        let world = World::new(25, 2, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        store(&opened, b"one");
        let mut writer = opened.snapshots.create(b"", 0).unwrap();
        let last = 2 * BLOCKS_AHEAD as u8 + 1;
        for number in 0..=last {
            let stamp = Stamp { shard: u32::from(number), end: 1, sequence: Sequence(1) };
            writer.part(stamp, &vec![number; BLOCK_BYTES], 1).unwrap();
        }
        writer.finish(&*opened.log).unwrap();
        let mut reading = Process::begin(&world, 1, "b").place.read_live().unwrap();
        for number in 0..=last {
            let part = reading.next_part().unwrap().unwrap();
            assert_eq!((part.stamp.shard, part.payload[0], part.payload.len()), (number.into(), number, BLOCK_BYTES));
        }
        assert!(reading.next_part().unwrap().is_none());
    }

    /// A list of objects that was made before the newest of them were, so many times.
    struct OldList {
        objects: Arc<dyn Objects>,
        old: AtomicUsize,
    }

    impl Objects for OldList {
        fn put(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
            self.objects.put(name, bytes)
        }
        fn begin_get(&self, name: &str) -> mpsc::Receiver<io::Result<Vec<u8>>> {
            self.objects.begin_get(name)
        }
        fn remove(&self, name: &str) -> io::Result<()> {
            self.objects.remove(name)
        }
        fn list(&self) -> io::Result<Vec<String>> {
            let is_old = self.old.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            if is_old { Ok(Vec::new()) } else { self.objects.list() }
        }
    }

    /// Regression: it was taken for damage, and the process ended; later so, if the second list was old, too.
    #[test]
    fn snapshots_that_are_published_while_a_start_looks_for_them_are_no_damage() {
        let world = World::new(24, 4, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        for number in 1..=3u8 {
            store(&opened, &[number]);
            take_snapshot(&opened, &[number]);
        }
        world.advance(Duration::from_millis(20));
        assert!(world.extent().first > 1);
        for (machine, times) in [(1, 1), (2, 2), (3, 5)] {
            let old = |objects| -> Arc<dyn Objects> { Arc::new(OldList { objects, old: times.into() }) };
            let reader = Process::begin_with(&world, machine, "b", &[], None, old);
            assert_eq!(read(&reader), (vec![3], 3), "{times}");
        }
    }

    #[test]
    fn a_manifest_comes_back_and_damage_is_noticed() {
        let manifest = Manifest {
            log: 1,
            nonce: Nonce(2),
            link: Link { position: 3, crc: 4, epoch: Epoch(5), nonce: Nonce(6), sequence: Sequence(7), ..Link::START },
            min: Sequence(8),
            max: Sequence(9),
            epoch: Epoch(10),
            created_ms: 11,
            parts: 12,
            entries: 13,
            bytes: 14,
            meta: b"meta".to_vec(),
            blocks: vec![15, 16],
        };
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Some(manifest.clone()));
        assert_eq!(position_of(&manifest.name()), Some(3));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(Manifest::decode(&flipped), None);
            assert_eq!(Manifest::decode(&bytes[..at]), None);
        }
    }
}
