//! A follower takes a directory over from a writer that still runs. Whatever the writer was doing and whenever it wakes
//! up: what it has confirmed is in the new log, and it damages nothing. `HOLDFAST_TEST_SEED` runs one history again.

mod common;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{SeedOnPanic, options, seeds};
use fastrand::Rng;
use journal::{
    Directory, DirectoryFollower, DirectoryLock, Epoch, Failure, Fault, FaultyStorage, Fence, FileLog, FileLogOptions,
    Follow, History, Log, LogFiles, Operation, ReadError, Recovery, RecoveryError, Sequence, Storage, StorageFile,
};
use parking_lot::{Condvar, Mutex};

/// All batches, by sequence. A snapshot holds them all as text, so that a state can be told from a directory alone.
type State = BTreeMap<u64, String>;

fn to_text(state: &State) -> String {
    state.iter().map(|(sequence, text)| format!("{sequence}={text}\n")).collect()
}

fn from_text(text: &[u8]) -> State {
    let lines = std::str::from_utf8(text).unwrap().lines();
    lines
        .map(|line| {
            let (sequence, text) = line.split_once('=').unwrap();
            (sequence.parse().unwrap(), text.to_owned())
        })
        .collect()
}

/// Reads all that a start would read.
fn load(recovery: &mut Recovery) -> Result<State, RecoveryError> {
    let mut state = State::new();
    while let Some(part) = recovery.next_part()? {
        state = from_text(part.payload);
    }
    while let Some(batch) = recovery.next_batch()? {
        state.insert(batch.sequence.0, String::from_utf8(batch.payload.to_vec()).unwrap());
    }
    Ok(state)
}

fn state_of(storage: &FaultyStorage) -> State {
    load(&mut Recovery::open(Arc::new(storage.clone())).unwrap()).unwrap()
}

/// A process that follows a directory, with the state that it has read.
struct Standby {
    storage: Arc<dyn Storage>,
    follower: DirectoryFollower,
    state: State,
}

impl Standby {
    fn start(storage: Arc<dyn Storage>) -> Result<Standby, RecoveryError> {
        let mut recovery = Recovery::open_live(storage.clone())?;
        let state = load(&mut recovery)?;
        Ok(Standby { storage, follower: recovery.into_follower()?, state })
    }

    /// While another process writes, a file may be removed between listing and opening it.
    fn start_live(storage: Arc<dyn Storage>) -> Standby {
        loop {
            match Standby::start(storage.clone()) {
                Err(RecoveryError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                started => return started.unwrap(),
            }
        }
    }

    fn drain(&mut self) -> Result<(), ReadError> {
        while let Some(batch) = self.follower.try_next()? {
            assert!(batch.time_ms <= self.follower.time_ms());
            self.state.insert(batch.sequence.0, String::from_utf8(batch.payload).unwrap());
        }
        Ok(())
    }

    /// Follows as far as it can, without taking anything over.
    fn catch_up(&mut self) {
        if self.drain().is_err() {
            *self = Standby::start_live(self.storage.clone());
        }
    }

    fn take_over(mut self, options: &FileLogOptions) -> Result<(FileLog, State), RecoveryError> {
        for _ in 0..5 {
            let epoch = self.follower.raise_fence()?;
            match self.drain() {
                Ok(()) => {
                    let reached = self.follower.reached();
                    let log = self.follower.into_log(options.clone())?;
                    assert_eq!((log.epoch(), log.tail(), log.durable()), (epoch, reached, reached));
                    return Ok((log, self.state));
                }
                Err(ReadError::Io { operation, file, offset, source }) => {
                    return Err(RecoveryError::Io { operation, file, offset, source });
                }
                Err(ReadError::Damaged { file, offset, detail }) => panic!("{file} at {offset}: {detail}"),
                Err(_) => self = Standby::start(self.storage.clone())?,
            }
        }
        panic!("it never reads to the end");
    }
}

/// Stops all threads of a process at its next operation on the directory, as SIGSTOP does.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    /// How many operations there are before it stops.
    left: Option<usize>,
    has_stopped: bool,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock();
        if let Some(left) = &mut state.left {
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => {
                    state.has_stopped = true;
                    self.changed.notify_all();
                    while state.left.is_some() {
                        self.changed.wait(&mut state);
                    }
                }
            }
        }
    }

    fn stop_after(&self, operations: usize) {
        self.state.lock().left = Some(operations);
    }

    fn resume(&self) {
        self.state.lock().left = None;
        self.changed.notify_all();
    }
}

/// A directory as a process sees it that can be stopped.
#[derive(Clone)]
struct Gated {
    storage: FaultyStorage,
    gate: Arc<Gate>,
}

struct GatedFile {
    file: Box<dyn StorageFile>,
    gate: Arc<Gate>,
}

impl Gated {
    fn gated(&self, file: io::Result<Box<dyn StorageFile>>) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(GatedFile { file: file?, gate: self.gate.clone() }))
    }
}

impl Storage for Gated {
    fn list(&self) -> io::Result<Vec<String>> {
        self.gate.pass();
        self.storage.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.gate.pass();
        self.gated(self.storage.create(name))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.gate.pass();
        self.gated(self.storage.open(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.gate.pass();
        self.storage.rename(from, to)
    }

    fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        self.gate.pass();
        self.storage.rename_new(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.gate.pass();
        self.storage.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.gate.pass();
        self.storage.sync_directory()
    }

    fn fence(&self) -> io::Result<Fence> {
        self.storage.fence()
    }
}

impl StorageFile for GatedFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.gate.pass();
        self.file.write_at(bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.gate.pass();
        self.file.read_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.gate.pass();
        self.file.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.gate.pass();
        self.file.set_len(len)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        self.gate.pass();
        self.file.reserve(offset, len)
    }
}

/// A process that writes: what it holds in memory, and what it has confirmed.
struct Server {
    log: Arc<FileLog>,
    state: State,
    confirmed: Arc<Mutex<Confirmed>>,
    rng: Rng,
}

#[derive(Default)]
struct Confirmed {
    batches: State,
    durable: State,
}

impl Server {
    fn append(&mut self) -> Sequence {
        let epoch = self.log.epoch();
        let filler = "x".repeat(if self.rng.u8(..10) == 0 { self.rng.usize(..900) } else { self.rng.usize(..60) });
        let text = format!("{epoch}-{}-{filler}", self.state.len());
        let sequence = self.log.append(text.as_bytes(), self.state.len() as u64);
        self.state.insert(sequence.0, text);
        sequence
    }

    /// Notes what its clients may know by now.
    fn confirm(&self, upto: Sequence) {
        let upto_of = |mark: Sequence| self.state.range(..=mark.0).map(|(at, text)| (*at, text.clone()));
        let (written, durable) = (self.log.written(), self.log.durable());
        let mut confirmed = self.confirmed.lock();
        confirmed.batches.extend(upto_of(written.max(upto)));
        confirmed.durable.extend(upto_of(durable));
    }

    fn snapshot(&mut self) -> Option<Sequence> {
        let snapshots = self.log.snapshots();
        let mut writer = snapshots.create(b"", 0).ok()?;
        let stamp = self.log.tail();
        writer.part(common::stamp(0, stamp), to_text(&self.state).as_bytes(), 1).ok()?;
        if self.rng.u8(..8) == 0 {
            return None;
        }
        let info = writer.finish(&*self.log).ok()?;
        if self.rng.bool() {
            snapshots.remove_older(&info).ok()?;
            self.log.forget(info.min).ok()?;
        }
        Some(stamp)
    }

    fn act(&mut self) {
        let mut confirmed = Sequence::NONE;
        match self.rng.u8(..100) {
            0..35 => {
                self.append();
            }
            35..60 => {
                let upto = self.append();
                if self.log.write(upto).is_ok() {
                    confirmed = upto;
                }
            }
            60..75 => {
                let upto = self.append();
                if self.log.wait_durable(upto).is_ok() {
                    confirmed = upto;
                }
            }
            75..82 => {
                let _ = self.log.rotate();
            }
            82..90 => {
                let _ = self.log.rotate();
                self.snapshot();
            }
            90..94 => {
                if self.log.restart().is_ok() {
                    for _ in 0..self.rng.usize(..3) {
                        let upto = self.append();
                        let _ = self.log.write(upto);
                    }
                    if let Some(stamp) = self.snapshot() {
                        let _ = self.log.accept(stamp);
                    }
                }
            }
            _ => {
                self.log.is_fenced_now();
            }
        }
        self.confirm(confirmed);
    }

    fn close(&mut self) {
        let closed = self.log.close();
        self.confirm(if closed.is_ok() { self.log.tail() } else { Sequence::NONE });
    }
}

/// A [`Server`] on a thread, which is stopped at some operation, or else when it has nothing to do.
struct Process {
    gate: Arc<Gate>,
    confirmed: Arc<Mutex<Confirmed>>,
    is_idle: Receiver<()>,
    go_on: Sender<()>,
    thread: JoinHandle<()>,
}

impl Process {
    fn run(log: FileLog, state: State, gate: Arc<Gate>, seed: u64) -> Process {
        let mut rng = Rng::with_seed(seed);
        let confirmed: Arc<Mutex<Confirmed>> = Arc::default();
        let (tell_idle, is_idle) = channel();
        let (go_on, told_to_go_on) = channel();
        let log = Arc::new(log);
        let mut server = Server { log, state, confirmed: confirmed.clone(), rng: rng.fork() };
        let operations_max = [5, 40, 150][rng.usize(..3)];
        gate.stop_after(rng.usize(..operations_max));
        let (before, after, closes_first) = (rng.usize(..40), rng.usize(..12), rng.u8(..10) == 0);
        let thread = std::thread::spawn(move || {
            for _ in 0..before {
                server.act();
            }
            if closes_first {
                server.close();
            }
            let _ = tell_idle.send(());
            let _ = told_to_go_on.recv();
            for _ in 0..after {
                server.act();
            }
            server.close();
        });
        Process { gate, confirmed, is_idle, go_on, thread }
    }

    fn wait_until_stopped(&self) {
        while self.is_idle.try_recv().is_err() && !self.gate.state.lock().has_stopped {
            std::thread::yield_now();
        }
        // One that is idle is stopped at whatever it does next.
        let mut state = self.gate.state.lock();
        if !state.has_stopped {
            state.left = Some(0);
        }
    }

    /// Wakes it up, and lets it do all that it wanted to.
    fn wake(self) -> Arc<Mutex<Confirmed>> {
        self.gate.resume();
        let _ = self.go_on.send(());
        self.thread.join().unwrap();
        self.confirmed
    }
}

fn contains(state: &State, part: &State, what: &str) {
    for (sequence, text) in part {
        assert_eq!(state.get(sequence), Some(text), "batch {sequence}, which was confirmed, {what}");
    }
}

/// Writers that are stopped one after the other and taken over from, and wake up sooner or later.
fn live(seed: u64) {
    let _seed = SeedOnPanic(seed);
    let mut rng = Rng::with_seed(seed);
    let options = FileLogOptions {
        zero_ahead: rng.bool(),
        prepare_next: rng.bool(),
        reserve_bytes: [0, 400][rng.usize(..2)],
        ..options([300, 1500, u64::MAX][rng.usize(..3)])
    };
    let storage = FaultyStorage::new();
    let gated = || Gated { storage: storage.clone(), gate: Arc::default() };
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let first = gated();
    let log = Recovery::open(Arc::new(first.clone())).unwrap().into_log(options.clone()).unwrap();
    let mut current = Process::run(log, State::new(), first.gate, rng.u64(..));
    let mut asleep: Vec<Process> = Vec::new();
    for _ in 0..rng.usize(1..5) {
        let next = gated();
        let mut standby = Standby::start_live(Arc::new(next.clone()));
        // Of the writers before, some wake up while the next one runs.
        while !asleep.is_empty() && rng.bool() {
            let confirmed = asleep.swap_remove(rng.usize(..asleep.len())).wake();
            standby.catch_up();
            contains(&standby.state, &confirmed.lock().batches, "is not in the directory");
        }
        current.wait_until_stopped();
        if rng.bool() {
            standby.catch_up();
        }
        while !asleep.is_empty() && rng.u8(..3) == 0 {
            let confirmed = asleep.swap_remove(rng.usize(..asleep.len())).wake();
            contains(&state_of(&storage), &confirmed.lock().batches, "has been damaged");
        }
        let mut has_failed = false;
        if rng.u8(..4) == 0 {
            storage.fail_at(storage.operations() + rng.usize(..40), Fault::Io);
            has_failed = true;
        }
        let (log, state) = match standby.take_over(&options) {
            Ok(taken) => taken,
            Err(error) => {
                assert!(has_failed, "{error}: {:?}", std::error::Error::source(&error));
                storage.heal();
                Standby::start(Arc::new(next.clone())).unwrap().take_over(&options).unwrap()
            }
        };
        storage.heal();
        contains(&state, &current.confirmed.lock().batches, "is not in the new log");
        // What was taken over is durable.
        assert_eq!(state_of(&storage.crash(rng.u64(..))), state);
        if has_failed {
            // The state of a directory without its writers.
            assert_eq!(state_of(&storage.kill()), state);
        }
        asleep.push(std::mem::replace(&mut current, Process::run(log, state, next.gate, rng.u64(..))));
    }
    current.wait_until_stopped();
    let last = current.confirmed.clone();
    for process in asleep {
        let confirmed = process.wake();
        contains(&state_of(&storage), &confirmed.lock().batches, "has been damaged");
    }
    contains(&state_of(&storage), &last.lock().batches, "has been damaged");
    contains(&state_of(&storage.crash(rng.u64(..))), &last.lock().durable, "has been damaged in a power failure");
    let confirmed = current.wake();
    let state = state_of(&storage);
    contains(&state, &confirmed.lock().batches, "is lost in the end");
    // A start goes on with exactly that.
    let mut recovery = Recovery::open(shared.clone()).unwrap();
    assert_eq!(load(&mut recovery).unwrap(), state);
    let log = recovery.into_log(options).unwrap();
    let sequence = log.append(b"after all", 0);
    log.wait_durable(sequence).unwrap();
    log.close().unwrap();
    let mut expected = state;
    expected.insert(sequence.0, "after all".to_owned());
    assert_eq!(state_of(&storage.crash(0)), expected);
    let left: Vec<String> = storage.names().into_iter().filter(|name| name.ends_with(".tmp")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_writer_that_is_stopped_anywhere_loses_nothing_and_damages_nothing() {
    for seed in seeds(0..std::env::var("SEEDS").map_or(400, |s| s.parse().unwrap())) {
        live(seed);
    }
}

/// Here the writer runs on while it is taken over from.
#[test]
fn a_writer_that_runs_is_taken_over_from() {
    for seed in seeds(0..100) {
        let _seed = SeedOnPanic(seed);
        let mut rng = Rng::with_seed(seed);
        let storage = FaultyStorage::new();
        let shared: Arc<dyn Storage> = Arc::new(storage.clone());
        let options = FileLogOptions {
            sync_every: Some(Duration::from_micros(200)),
            prepare_next: rng.bool(),
            ..options([300, 1500, u64::MAX][rng.usize(..3)])
        };
        let mut log = Recovery::open(shared.clone()).unwrap().into_log(options.clone()).unwrap();
        let mut state = State::new();
        for _ in 0..3 {
            let confirmed: Arc<Mutex<Confirmed>> = Arc::default();
            let has_begun = AtomicBool::new(false);
            let (taken, noted) = std::thread::scope(|scope| {
                let begun = std::mem::take(&mut state);
                let mut server =
                    Server { log: Arc::new(log), state: begun, confirmed: confirmed.clone(), rng: rng.fork() };
                let has_begun = &has_begun;
                let writer = scope.spawn(move || {
                    let started = Instant::now();
                    while !server.log.is_fenced_now() && started.elapsed() < Duration::from_secs(20) {
                        server.act();
                        has_begun.store(true, Ordering::Release);
                    }
                    assert!(matches!(server.log.failure(), Some(Failure::Fenced { .. })));
                    for _ in 0..5 {
                        server.act();
                    }
                    assert!(server.log.close().is_err());
                });
                while !has_begun.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_micros(rng.u64(..3000)));
                let taken = Standby::start_live(shared.clone()).take_over(&options).unwrap();
                writer.join().unwrap();
                (taken, confirmed)
            });
            (log, state) = taken;
            contains(&state, &noted.lock().batches, "is not in the new log");
            assert_eq!(state_of(&storage), state);
        }
    }
}

fn texts(state: &State) -> Vec<&str> {
    state.values().map(String::as_str).collect()
}

/// Both sides on a real file system, with locks.
#[test]
fn a_directory_on_disk_is_taken_over_and_back() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path();
    let open = || -> Arc<dyn Storage> { Arc::new(Directory::open(path).unwrap()) };
    let options = FileLogOptions { sync_every: None, ..FileLogOptions::default() };
    let mut lock = DirectoryLock::acquire(path).unwrap();
    let mut log = Recovery::open(open()).unwrap().into_log(options.clone()).unwrap();
    lock.settle();
    let mut expected = Vec::new();
    for round in 0..4 {
        let standby = Standby::start(open()).unwrap();
        let kept = format!("round {round}");
        log.write(log.append(kept.as_bytes(), 7)).unwrap();
        expected.push(kept);
        let next_lock = DirectoryLock::acquire_for_takeover(path).unwrap();
        let (next, state) = standby.take_over(&options).unwrap();
        next_lock.settle();
        assert_eq!(texts(&state), expected);
        // The old one wakes up.
        assert!(log.is_fenced_now());
        let lost = log.append(b"never confirmed", 8);
        assert!(matches!(log.write(lost), Err(Failure::Fenced { .. })));
        assert!(log.snapshots().create(b"", 0).is_err() && log.rotate().is_err() && log.forget(lost).is_err());
        assert!(log.restart().is_err() && log.close().is_err());
        assert!(!next.is_fenced_now());
        (log, lock) = (next, next_lock);
    }
    log.close().unwrap();
    drop((log, lock));
    let mut recovery = Recovery::open(open()).unwrap();
    assert_eq!(texts(&load(&mut recovery).unwrap()), expected);
    assert!(recovery.warnings().is_empty(), "{:?}", recovery.warnings());
}

/// The writer has closed the log: nothing is written again, and it follows the next one.
#[test]
fn a_log_is_handed_over_and_back() {
    let storage = FaultyStorage::new();
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let mut log = common::open(&storage);
    assert!(log.follow_as_reader().is_none(), "it is not closed");
    let mut standby = Standby::start(shared.clone()).unwrap();
    let mut state = State::new();
    for round in 0..6 {
        // In some rounds nothing is written at all.
        for number in 0..round % 3 {
            let text = format!("{round} {number}");
            let sequence = log.append(text.as_bytes(), 10 * round);
            state.insert(sequence.0, text);
        }
        log.close().unwrap();
        let follower = log.follow_as_reader().expect("it is closed");
        assert_eq!((follower.reached(), follower.epoch()), (log.tail(), Some(log.epoch())));
        let before = storage.operations();
        let (next, taken) = standby.take_over(&options(4096)).unwrap();
        assert_eq!(taken, state);
        let copies = storage.sites()[before..].iter().filter(|site| site.file.starts_with("journal-copy")).count();
        assert_eq!(copies, 0, "nothing is written again");
        assert!(log.is_fenced_now());
        standby = Standby { storage: shared.clone(), follower, state: state.clone() };
        log = next;
    }
    assert_eq!(state_of(&storage), state);
    log.close().unwrap();
    log.append(b"in memory only", 0);
    assert!(log.follow_as_reader().is_none());
}

#[test]
fn a_take_over_without_its_steps_is_refused() {
    let storage = FaultyStorage::new();
    let log = common::open(&storage);
    log.write(log.append(b"one", 0)).unwrap();
    let standby = || Standby::start(Arc::new(storage.clone())).unwrap();
    let options = options(4096);
    assert!(matches!(standby().follower.into_log(options.clone()), Err(RecoveryError::Unfinished)));
    assert!(!log.is_fenced_now(), "following needs no fence");
    let mut not_drained = standby();
    assert_eq!(not_drained.follower.raise_fence().unwrap(), Epoch(2));
    assert!(matches!(not_drained.follower.into_log(options.clone()), Err(RecoveryError::Unfinished)));
    let mut late = standby();
    late.follower.raise_fence().unwrap();
    late.drain().unwrap();
    let (log, _) = standby().take_over(&options).unwrap();
    assert_eq!(log.epoch(), Epoch(4));
    let refused = late.follower.into_log(options).err().unwrap();
    assert!(matches!(refused, RecoveryError::Journal(Failure::Fenced { own: Epoch(3), by: Epoch(4) })), "{refused}");
}

/// A batch that was durable is missing at the end.
#[test]
fn a_loss_is_an_error_and_not_taken_over() {
    let storage = FaultyStorage::new();
    let log = common::open(&storage);
    for text in ["one", "two", "three"] {
        log.wait_durable(log.append(text.as_bytes(), 0)).unwrap();
    }
    drop(log);
    let name = "journal-00000000000000000001.seg";
    let len = storage.bytes_of(name).unwrap().len();
    storage.truncate(name, len - 1);
    let standby = Standby::start(Arc::new(storage.clone())).unwrap();
    assert_eq!(standby.state.len(), 2);
    let error = standby.take_over(&options(4096)).err().unwrap();
    assert!(matches!(&error, RecoveryError::Damaged { file, .. } if file == name), "{error}");
}

/// The fence costs nothing that is counted, and a take-over reads and writes only the end.
#[test]
fn a_take_over_writes_only_the_last_segment_again() {
    let storage = FaultyStorage::new();
    let log = common::open_with(&storage, options(600)).unwrap();
    for _ in 0..40 {
        log.wait_durable(log.append(&[b'x'; 100], 0)).unwrap();
    }
    log.write(log.append(b"not durable", 0)).unwrap();
    let mut standby = Standby {
        storage: Arc::new(storage.clone()),
        follower: Recovery::open_live(Arc::new(storage.clone())).unwrap().into_follower().unwrap(),
        state: State::new(),
    };
    standby.follower.raise_fence().unwrap();
    standby.drain().unwrap();
    let before = storage.operations();
    let new = standby.follower.into_log(options(600)).unwrap();
    let sites = storage.sites().split_off(before);
    let segments = storage.names().iter().filter(|name| name.ends_with(".seg")).count();
    let count = |operation| sites.iter().filter(|site| site.operation == operation).count();
    assert!(segments > 8 && count(Operation::Read) < segments + 8, "{sites:?}");
    assert_eq!(sites.iter().filter(|site| site.file == "journal-copy-2.tmp").count(), 4, "{sites:?}");
    assert_eq!(new.tail(), Sequence(41));
}
