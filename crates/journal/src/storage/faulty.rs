//! A directory in memory with injected faults. Knows nothing of segments or snapshots, only what POSIX promises of
//! files.
//!
//! Every operation is counted and named as a [`Site`], so that a test can run a history once, see how many sites it
//! has, and make each of them fail in turn. [`FaultyStorage::kill`] returns the directory after the death of the
//! process, [`FaultyStorage::crash`] a possible state after a power failure.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use parking_lot::Mutex;

use super::file_system::{Storage, StorageFile};
use crate::failure::Operation;
use crate::fence::Fence;

/// The granularity at which a power failure tears writes.
const SECTOR_BYTES: u64 = 512;

/// How an operation fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// EIO. A write may be done half. A failed sync loses its data, and as on Linux a later sync reports success.
    Io,
    /// ENOSPC. A write may be done half.
    NoSpace,
    /// EMFILE: nothing can be opened or created. Other operations are not affected.
    NoDescriptors,
    /// A write takes only part of the bytes, without error; other operations are not affected.
    Short,
}

/// One operation that was requested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    pub operation: Operation,
    pub file: String,
}

/// A [`Storage`] in memory. Clones share one directory.
#[derive(Clone, Default)]
pub struct FaultyStorage {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Clone, Default)]
struct Disk {
    files: Vec<FileState>,
    /// The directory as programs see it: names to indexes into `files`.
    names: BTreeMap<String, usize>,
    /// The directory after a power failure, at least.
    names_synced: BTreeMap<String, usize>,
    /// The changes between the two.
    names_pending: Vec<NameChange>,
    sites: Vec<Site>,
    faults: BTreeMap<usize, Fault>,
    fault_from: Option<(usize, Fault)>,
    space_bytes_max: Option<u64>,
    fence: Arc<AtomicU64>,
}

#[derive(Clone, Default)]
struct FileState {
    /// As programs see it.
    bytes: Vec<u8>,
    /// The synced contents: what a power failure leaves at least.
    synced: Vec<u8>,
    /// The changes between the two, without those that a failed sync lost.
    pending: Vec<Change>,
    /// The end of the reserved space, whatever the length.
    reserved_end: u64,
}

impl FileState {
    fn space_bytes(&self) -> u64 {
        self.reserved_end.max(self.bytes.len() as u64)
    }
}

#[derive(Clone)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
}

#[derive(Clone)]
enum NameChange {
    Create { name: String, file: usize },
    Rename { from: String, to: String, file: usize },
    Remove { name: String },
}

impl FaultyStorage {
    pub fn new() -> FaultyStorage {
        FaultyStorage::default()
    }

    /// Makes the operation with this number, counted from 0 since the storage was made, fail.
    pub fn fail_at(&self, number: usize, fault: Fault) {
        self.disk.lock().faults.insert(number, fault);
    }

    /// Makes every operation from this number on fail.
    pub fn fail_from(&self, number: usize, fault: Fault) {
        self.disk.lock().fault_from = Some((number, fault));
    }

    /// Ends all faults and limits.
    pub fn heal(&self) {
        let mut disk = self.disk.lock();
        disk.faults.clear();
        disk.fault_from = None;
        disk.space_bytes_max = None;
    }

    /// Sets the size of the disk: an operation that would exceed it fails with ENOSPC; `None` removes the limit.
    pub fn limit_space(&self, bytes_max: Option<u64>) {
        self.disk.lock().space_bytes_max = bytes_max;
    }

    /// The size of all files together, including reserved space.
    pub fn space_bytes(&self) -> u64 {
        self.disk.lock().space_used_bytes()
    }

    /// The operations so far; the index of a site is its number.
    pub fn sites(&self) -> Vec<Site> {
        self.disk.lock().sites.clone()
    }

    /// The number of operations so far, which is the number of the next one.
    pub fn operations(&self) -> usize {
        self.disk.lock().sites.len()
    }

    /// Returns the directory after the death of the process: everything written is there. It has no faults.
    pub fn kill(&self) -> FaultyStorage {
        self.disk.lock().clone().in_good_health()
    }

    /// Returns a possible state of the directory after a power failure: everything synced is there; of the rest any
    /// part, in any order, torn at sectors. The seed chooses. It has no faults.
    pub fn crash(&self, seed: u64) -> FaultyStorage {
        let mut rng = Rng::with_seed(seed);
        // All, nothing and anything between must occur.
        let survival = [0.0, 0.1, 0.5, 0.9, 1.0][rng.usize(..5)];
        let mut disk = self.disk.lock().clone();
        for file in &mut disk.files {
            for change in std::mem::take(&mut file.pending) {
                survive_in_part(&mut file.synced, &change, survival, &mut rng);
            }
            file.bytes = file.synced.clone();
            file.reserved_end = 0;
        }
        for change in std::mem::take(&mut disk.names_pending) {
            if rng.f64() < survival {
                change.apply(&mut disk.names_synced);
            }
        }
        disk.names = disk.names_synced.clone();
        disk.in_good_health()
    }

    /// The contents of a file, if there is one of that name.
    pub fn bytes_of(&self, name: &str) -> Option<Vec<u8>> {
        let disk = self.disk.lock();
        disk.names.get(name).map(|file| disk.files[*file].bytes.clone())
    }

    /// The names of all files, in order.
    pub fn names(&self) -> Vec<String> {
        self.disk.lock().names.keys().cloned().collect()
    }

    /// Damages a byte, on disk and in memory.
    pub fn flip(&self, name: &str, offset: usize, bits: u8) {
        self.alter(name, |bytes| bytes[offset] ^= bits);
    }

    /// Truncates a file, on disk and in memory.
    pub fn truncate(&self, name: &str, len: usize) {
        self.alter(name, |bytes| bytes.truncate(len));
    }

    fn alter(&self, name: &str, alter: impl Fn(&mut Vec<u8>)) {
        let mut disk = self.disk.lock();
        let file = *disk.names.get(name).unwrap_or_else(|| panic!("there is no file {name}"));
        let file = &mut disk.files[file];
        alter(&mut file.bytes);
        file.synced = file.bytes.clone();
        file.pending.clear();
    }
}

/// Applies the surviving part of a change.
fn survive_in_part(synced: &mut Vec<u8>, change: &Change, survival: f64, rng: &mut Rng) {
    match change {
        Change::SetLen(_) => {
            if rng.f64() < survival {
                change.apply(synced);
            }
        }
        Change::Write { offset, bytes } => {
            let end = offset + bytes.len() as u64;
            let mut at = *offset;
            while at < end {
                let sector_end = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
                if rng.f64() < survival {
                    let piece = bytes[(at - offset) as usize..(sector_end - offset) as usize].to_vec();
                    Change::Write { offset: at, bytes: piece }.apply(synced);
                }
                at = sector_end;
            }
        }
    }
}

impl Change {
    fn apply(&self, contents: &mut Vec<u8>) {
        match self {
            Change::SetLen(len) => contents.resize(*len as usize, 0),
            Change::Write { offset, bytes } => {
                let (start, end) = (*offset as usize, *offset as usize + bytes.len());
                if contents.len() < end {
                    contents.resize(end, 0);
                }
                contents[start..end].copy_from_slice(bytes);
            }
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Create { name, file } => {
                names.insert(name.clone(), *file);
            }
            NameChange::Rename { from, to, file } => {
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
                names.insert(to.clone(), *file);
            }
            NameChange::Remove { name } => {
                names.remove(name);
            }
        }
    }
}

impl Disk {
    /// The same files, on a storage that counts from 0 and has no faults.
    fn in_good_health(mut self) -> FaultyStorage {
        self.sites.clear();
        self.faults.clear();
        self.fault_from = None;
        self.space_bytes_max = None;
        self.fence = Arc::new(AtomicU64::new(self.fence.load(Ordering::SeqCst)));
        FaultyStorage { disk: Arc::new(Mutex::new(self)) }
    }

    /// Counts an operation and returns its fault, if it has one.
    fn begin(&mut self, operation: Operation, file: &str) -> Option<Fault> {
        let number = self.sites.len();
        self.sites.push(Site { operation, file: file.to_owned() });
        let lasting = self.fault_from.filter(|(from, _)| number >= *from).map(|(_, fault)| fault);
        self.faults.get(&number).copied().or(lasting)
    }

    /// [`Disk::begin`] for an operation that is atomic.
    fn begin_whole(&mut self, operation: Operation, file: &str) -> io::Result<()> {
        match self.begin(operation, file) {
            Some(fault @ (Fault::Io | Fault::NoSpace)) => Err(fault.error()),
            Some(Fault::NoDescriptors) if operation.needs_descriptor() => Err(Fault::NoDescriptors.error()),
            Some(Fault::Short | Fault::NoDescriptors) | None => Ok(()),
        }
    }

    /// [`Disk::begin`] for an open file, under its current name.
    fn begin_in(&mut self, operation: Operation, file: usize) -> Option<Fault> {
        let name = self.name_of(file);
        self.begin(operation, &name)
    }

    fn begin_whole_in(&mut self, operation: Operation, file: usize) -> io::Result<()> {
        let name = self.name_of(file);
        self.begin_whole(operation, &name)
    }

    fn name_of(&self, file: usize) -> String {
        let named = self.names.iter().find(|(_, named)| **named == file);
        named.map_or("(removed)", |(name, _)| name.as_str()).to_owned()
    }

    fn change(&mut self, file: usize, change: Change) {
        change.apply(&mut self.files[file].bytes);
        self.files[file].pending.push(change);
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.names_pending.push(change);
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn space_used_bytes(&self) -> u64 {
        self.names.values().map(|file| self.files[*file].space_bytes()).sum()
    }

    /// Whether the disk lacks space to extend a file to `end`, and how much it has.
    fn lacks_space(&self, file: usize, end: u64) -> (bool, u64) {
        let room = self.space_bytes_max.map_or(u64::MAX, |max| max.saturating_sub(self.space_used_bytes()));
        (end.saturating_sub(self.files[file].space_bytes()) > room, room)
    }
}

impl Operation {
    fn needs_descriptor(self) -> bool {
        matches!(self, Operation::List | Operation::Create | Operation::Open)
    }
}

impl Fault {
    fn error(self) -> io::Error {
        const EIO: i32 = 5;
        const ENOSPC: i32 = 28;
        const EMFILE: i32 = 24;
        io::Error::from_raw_os_error(match self {
            Fault::NoSpace => ENOSPC,
            Fault::NoDescriptors => EMFILE,
            Fault::Io | Fault::Short => EIO,
        })
    }
}

impl Storage for FaultyStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut disk = self.disk.lock();
        disk.begin_whole(Operation::List, "")?;
        Ok(disk.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut disk = self.disk.lock();
        disk.begin_whole(Operation::Create, name)?;
        if disk.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = disk.files.len();
        disk.files.push(FileState::default());
        disk.change_names(NameChange::Create { name: name.to_owned(), file });
        Ok(Box::new(FaultyFile { disk: self.disk.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut disk = self.disk.lock();
        disk.begin_whole(Operation::Open, name)?;
        let file = disk.find(name)?;
        Ok(Box::new(FaultyFile { disk: self.disk.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.begin_whole(Operation::Rename, from)?;
        let file = disk.find(from)?;
        disk.change_names(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), file });
        Ok(())
    }

    fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.begin_whole(Operation::Rename, from)?;
        let file = disk.find(from)?;
        if disk.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        disk.change_names(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), file });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.begin_whole(Operation::Remove, name)?;
        disk.find(name)?;
        disk.change_names(NameChange::Remove { name: name.to_owned() });
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.begin_whole(Operation::SyncDirectory, "")?;
        disk.names_synced = disk.names.clone();
        disk.names_pending.clear();
        Ok(())
    }

    fn fence(&self) -> io::Result<Fence> {
        let mut disk = self.disk.lock();
        disk.begin_whole(Operation::Map, "FENCE")?;
        Ok(Fence::in_memory(disk.fence.clone()))
    }
}

struct FaultyFile {
    disk: Arc<Mutex<Disk>>,
    file: usize,
}

impl StorageFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.disk.lock();
        let fault = disk.begin_in(Operation::Write, self.file);
        let (is_full, room) = disk.lacks_space(self.file, offset + bytes.len() as u64);
        let fault = if is_full { Some(Fault::NoSpace) } else { fault };
        let taken = match fault {
            None | Some(Fault::NoDescriptors) => bytes.len(),
            Some(Fault::Short) => bytes.len().div_ceil(2),
            Some(Fault::Io | Fault::NoSpace) => bytes.len() / 2,
        };
        // The rest of a write that fails for lack of space must itself fit.
        let taken = if is_full { taken.min(room as usize) } else { taken };
        if taken > 0 {
            disk.change(self.file, Change::Write { offset, bytes: bytes[..taken].to_vec() });
        }
        match fault {
            Some(fault @ (Fault::Io | Fault::NoSpace)) => Err(fault.error()),
            Some(Fault::Short | Fault::NoDescriptors) | None => Ok(taken),
        }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.disk.lock();
        disk.begin_whole_in(Operation::Read, self.file)?;
        let contents = &disk.files[self.file].bytes;
        let rest = contents.get(offset as usize..).unwrap_or(&[]);
        let read = rest.len().min(bytes.len());
        bytes[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let number = disk.sites.len() as u64;
        let done = disk.begin_whole_in(Operation::Sync, self.file);
        let file = &mut disk.files[self.file];
        let pending = std::mem::take(&mut file.pending);
        match done {
            // After a failed sync, the contents in memory and on disk may differ for good; so only pending changes
            // become synced, not all of `bytes`.
            Ok(()) => pending.iter().for_each(|change| change.apply(&mut file.synced)),
            Err(_) => {
                let mut rng = Rng::with_seed(number);
                pending.iter().for_each(|change| survive_in_part(&mut file.synced, change, 0.5, &mut rng));
            }
        }
        done
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.lock().files[self.file].bytes.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.begin_whole_in(Operation::Truncate, self.file)?;
        disk.change(self.file, Change::SetLen(len));
        disk.files[self.file].reserved_end = 0;
        Ok(())
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.begin_whole_in(Operation::Reserve, self.file)?;
        let end = offset + len;
        if disk.lacks_space(self.file, end).0 {
            return Err(Fault::NoSpace.error());
        }
        let file = &mut disk.files[self.file];
        file.reserved_end = file.reserved_end.max(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::write_all_at;

    #[test]
    fn a_kill_keeps_everything_and_a_crash_only_what_was_synced() {
        let storage = FaultyStorage::new();
        let kept = storage.create("kept").unwrap();
        write_all_at(&*kept, &[1; 2000], 0).unwrap();
        kept.sync().unwrap();
        storage.sync_directory().unwrap();
        write_all_at(&*kept, &[2; 2000], 2000).unwrap();
        storage.create("new").unwrap();

        let killed = storage.kill();
        assert_eq!(killed.bytes_of("kept").unwrap().len(), 4000);
        assert_eq!(killed.names(), ["kept", "new"]);

        let (mut torn, mut created) = (0, 0);
        for seed in 0..100 {
            let crashed = storage.crash(seed);
            let bytes = crashed.bytes_of("kept").unwrap();
            assert!(bytes[..2000].iter().all(|byte| *byte == 1));
            torn += usize::from(bytes.len() > 2000 && bytes[2000..].contains(&0));
            created += usize::from(crashed.bytes_of("new").is_some());
        }
        assert!(torn > 10 && (10..90).contains(&created), "torn {torn}, created {created}");
    }

    #[test]
    fn a_failed_sync_loses_bytes_that_the_next_one_pretends_to_have() {
        let storage = FaultyStorage::new();
        let file = storage.create("f").unwrap();
        storage.sync_directory().unwrap();
        write_all_at(&*file, &[1; 8 * 512], 0).unwrap();
        storage.fail_at(storage.operations(), Fault::Io);
        assert!(file.sync().is_err());
        file.sync().unwrap();
        assert_eq!(storage.kill().bytes_of("f").unwrap(), [1; 8 * 512]);
        assert_ne!(storage.crash(0).bytes_of("f").unwrap(), [1; 8 * 512]);
        // Data that is written again is synced normally.
        write_all_at(&*file, &[1; 8 * 512], 0).unwrap();
        file.sync().unwrap();
        assert_eq!(storage.crash(0).bytes_of("f").unwrap(), [1; 8 * 512]);
    }

    #[test]
    fn what_is_reserved_can_be_written_on_a_full_disk() {
        let storage = FaultyStorage::new();
        let file = storage.create("f").unwrap();
        storage.limit_space(Some(1000));
        assert_eq!(file.reserve(0, 1001).unwrap_err().kind(), io::ErrorKind::StorageFull);
        file.reserve(0, 600).unwrap();
        let other = storage.create("other").unwrap();
        other.reserve(0, 400).unwrap();
        assert_eq!((file.len().unwrap(), storage.space_bytes()), (0, 1000));
        storage.limit_space(Some(0));
        write_all_at(&*file, &[1; 600], 0).unwrap();
        assert_eq!(file.write_at(&[1; 10], 595).unwrap_err().kind(), io::ErrorKind::StorageFull);
        other.set_len(0).unwrap();
        assert_eq!(storage.space_bytes(), 600);
    }

    #[test]
    fn sites_are_counted_and_fail_when_told() {
        let storage = FaultyStorage::new();
        storage.fail_at(1, Fault::NoSpace);
        storage.fail_at(2, Fault::Short);
        let file = storage.create("f").unwrap();
        assert_eq!(file.write_at(b"abcd", 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.write_at(b"abcde", 0).unwrap(), 3);
        assert_eq!(storage.sites()[2], Site { operation: Operation::Write, file: "f".to_owned() });
        storage.fail_from(3, Fault::Io);
        assert!(storage.rename("f", "g").is_err() && storage.remove("f").is_err() && storage.list().is_err());
        storage.heal();
        storage.limit_space(Some(5));
        assert_eq!(file.write_at(b"123456", 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.write_at(b"12345", 0).unwrap(), 5);
    }
}
