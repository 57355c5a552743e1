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
    Directory, DirectoryError, DirectoryFollower, DirectoryLock, Epoch, Failure, Fault, FaultyStorage, Fence, FileLog,
    FileLogOptions, Follow, History, Log, Maintenance, Operation, ReadError, Recovery, RecoveryError, Sequence,
    Storage, StorageFile, Warning,
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
    fn start_live(storage: Arc<dyn Storage>) -> Result<Standby, RecoveryError> {
        loop {
            match Standby::start(storage.clone()) {
                Err(RecoveryError::Directory(DirectoryError::Io { source, .. }))
                    if source.kind() == io::ErrorKind::NotFound => {}
                started => return started,
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
            *self = Standby::start_live(self.storage.clone()).unwrap();
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
                Err(ReadError::Io { operation, target: file, offset, source }) => {
                    return Err(DirectoryError::Io { operation, file, offset, source }.into());
                }
                Err(ReadError::Damaged { target: file, offset, detail }) => panic!("{file} at {offset}: {detail}"),
                Err(_) => self = Standby::start_live(self.storage.clone())?,
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
    /// The operations that count, on files whose name begins so; `None`: all.
    kind: Option<(Operation, &'static str)>,
    has_stopped: bool,
}

impl Gate {
    fn pass(&self, operation: Operation, file: &str) {
        let mut state = self.state.lock();
        let counts =
            state.has_stopped || state.kind.is_none_or(|(kind, name)| kind == operation && file.starts_with(name));
        match state.left {
            Some(0) if counts => {
                state.has_stopped = true;
                while state.left.is_some() {
                    self.changed.wait(&mut state);
                }
            }
            Some(left) if counts => state.left = Some(left - 1),
            _ => {}
        }
    }

    fn stop_after(&self, operations: usize, kind: Option<(Operation, &'static str)>) {
        *self.state.lock() = GateState { left: Some(operations), kind, has_stopped: false };
    }

    fn resume(&self) {
        self.state.lock().left = None;
        self.changed.notify_all();
    }
}

/// Wakes a process up even if the test fails, so that it fails instead of waiting.
struct ResumeOnDrop<'a>(&'a Gate);

impl Drop for ResumeOnDrop<'_> {
    fn drop(&mut self) {
        self.0.resume();
    }
}

/// A directory as a process sees it that can be stopped.
#[derive(Clone)]
struct Gated {
    storage: FaultyStorage,
    gate: Arc<Gate>,
}

struct GatedFile {
    name: String,
    file: Box<dyn StorageFile>,
    gate: Arc<Gate>,
}

impl Gated {
    fn gated(&self, name: &str, file: io::Result<Box<dyn StorageFile>>) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(GatedFile { name: name.to_owned(), file: file?, gate: self.gate.clone() }))
    }
}

impl Storage for Gated {
    fn list(&self) -> io::Result<Vec<String>> {
        self.gate.pass(Operation::List, "");
        self.storage.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.gate.pass(Operation::Create, name);
        self.gated(name, self.storage.create(name))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.gate.pass(Operation::Open, name);
        self.gated(name, self.storage.open(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.gate.pass(Operation::Rename, to);
        self.storage.rename(from, to)
    }

    fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        self.gate.pass(Operation::Rename, to);
        self.storage.rename_new(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.gate.pass(Operation::Remove, name);
        self.storage.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.gate.pass(Operation::SyncDirectory, "");
        self.storage.sync_directory()
    }

    fn fence(&self) -> io::Result<Fence> {
        self.storage.fence()
    }
}

impl StorageFile for GatedFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.gate.pass(Operation::Write, &self.name);
        self.file.write_at(bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.gate.pass(Operation::Read, &self.name);
        self.file.read_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.gate.pass(Operation::Sync, &self.name);
        self.file.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.gate.pass(Operation::Truncate, &self.name);
        self.file.set_len(len)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        self.gate.pass(Operation::Reserve, &self.name);
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
        // After its end, a log has no number for a batch.
        if sequence != Sequence::LOST {
            self.state.insert(sequence.0, text);
        }
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
        // What changes names is rare, and what matters most.
        let (operations_max, kind) = match rng.u8(..8) {
            0 => (10, None),
            1 => (150, None),
            2 | 3 => (8, Some((Operation::Rename, ""))),
            4 => (8, Some((Operation::Remove, ""))),
            5 => (3, Some((Operation::Truncate, ""))),
            6 => (8, Some((Operation::Create, ""))),
            _ => (20, Some((Operation::Sync, ""))),
        };
        gate.stop_after(rng.usize(..operations_max), kind);
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
            (state.left, state.kind) = (Some(0), None);
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

/// Takes a directory over, and does something else at some operation in the middle of it.
fn meanwhile(
    gate: &Gate,
    stop: Option<(usize, Option<(Operation, &'static str)>)>,
    standby: Standby,
    options: &FileLogOptions,
    act: impl FnOnce(),
) -> Result<(FileLog, State), RecoveryError> {
    let Some((operations, kind)) = stop else { return standby.take_over(options) };
    gate.stop_after(operations, kind);
    std::thread::scope(|scope| {
        let _resume = ResumeOnDrop(gate);
        let taking = scope.spawn(|| standby.take_over(options));
        while !taking.is_finished() && !gate.state.lock().has_stopped {
            std::thread::yield_now();
        }
        if gate.state.lock().has_stopped {
            act();
        }
        gate.resume();
        taking.join().unwrap()
    })
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
        let mut standby = Standby::start_live(Arc::new(next.clone())).unwrap();
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
        // In some rounds the old writer wakes up in the middle of it.
        let mut old = Some(current);
        let confirmed = old.as_ref().unwrap().confirmed.clone();
        let kind = (rng.u8(..4) > 0).then_some((Operation::Remove, ""));
        let wakes_after = rng.bool().then(|| rng.usize(..if kind.is_some() { 3 } else { 40 }));
        let taken = meanwhile(&next.gate, wakes_after.map(|operations| (operations, kind)), standby, &options, || {
            old.take().map(Process::wake);
        });
        let (log, state) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                assert!(has_failed, "{error}: {:?}", std::error::Error::source(&error));
                storage.heal();
                Standby::start(Arc::new(next.clone())).unwrap().take_over(&options).unwrap()
            }
        };
        storage.heal();
        contains(&state, &confirmed.lock().batches, "is not in the new log");
        // What was taken over is durable.
        assert_eq!(state_of(&storage.crash(rng.u64(..))), state);
        if has_failed {
            // The state of a directory without its writers.
            assert_eq!(state_of(&storage.kill()), state);
        }
        asleep.extend(old);
        current = Process::run(log, state, next.gate, rng.u64(..));
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
    for seed in seeds(60) {
        live(seed);
    }
}

/// Here the writer runs on while it is taken over from.
#[test]
fn a_writer_that_runs_is_taken_over_from() {
    for seed in seeds(25) {
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
                let taken = Standby::start_live(shared.clone()).unwrap().take_over(&options).unwrap();
                writer.join().unwrap();
                (taken, confirmed)
            });
            (log, state) = taken;
            contains(&state, &noted.lock().batches, "is not in the new log");
            assert_eq!(state_of(&storage), state);
        }
    }
}

/// When the old writer wakes up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wakes {
    /// While the new one takes the directory over: it has listed the files, and removed none.
    Meanwhile,
    Afterwards,
}

/// A writer that stops in the middle of `act`, at the first operation of this kind, and is taken over from. Then both
/// go on. Returns the directory and what the new writer has.
fn stop_at(kind: (Operation, &'static str), wakes: Wakes, act: impl Fn(&FileLog) + Send) -> (FaultyStorage, State) {
    let storage = FaultyStorage::new();
    let gated = || Gated { storage: storage.clone(), gate: Arc::default() };
    let (old_side, new_side) = (gated(), gated());
    let old = Recovery::open(Arc::new(old_side.clone())).unwrap().into_log(options(400)).unwrap();
    write_one(&old);
    old_side.gate.stop_after(0, Some(kind));
    let (log, mut state) = std::thread::scope(|scope| {
        let (old, _resume) = (&old, ResumeOnDrop(&old_side.gate));
        let acting = scope.spawn(move || act(old));
        while !old_side.gate.state.lock().has_stopped {
            assert!(!acting.is_finished(), "it never comes to {kind:?}");
            std::thread::yield_now();
        }
        let mut acting = Some(acting);
        let mut wake = || {
            old_side.gate.resume();
            if let Some(acting) = acting.take() {
                acting.join().unwrap();
            }
        };
        let standby = Standby::start(Arc::new(new_side.clone())).unwrap();
        let stop = (wakes == Wakes::Meanwhile).then_some((0, Some((Operation::Remove, ""))));
        let (log, mut state) = meanwhile(&new_side.gate, stop, standby, &options(400), &mut wake).unwrap();
        assert_eq!(texts(&state), ["one"]);
        write_some(&log, &mut state);
        wake();
        (log, state)
    });
    assert!(old.is_fenced_now());
    assert_eq!(state_of(&storage.kill()), state);
    let mut standby = Standby::start(Arc::new(storage.clone())).unwrap();
    // The new writer is not in the way of what the old one has left.
    write_some(&log, &mut state);
    standby.drain().unwrap();
    assert_eq!(standby.state, state);
    (storage, state)
}

/// Enough for some segments.
fn write_some(log: &FileLog, state: &mut State) {
    for number in 0..12 {
        let text = format!("{} of epoch {} {}", number, log.epoch(), "x".repeat(60));
        let sequence = log.append(text.as_bytes(), 0);
        log.wait_durable(sequence).unwrap();
        state.insert(sequence.0, text);
    }
}

fn write_one(log: &FileLog) {
    let _ = log.write(log.append(b"one", 0));
}

/// A snapshot that holds all that was written, as [`State`] does.
fn publish(log: &FileLog, text: &str) -> Result<Sequence, journal::SnapshotError> {
    let mut writer = log.snapshots().create(b"", 0)?;
    let stamp = log.tail();
    writer.part(common::stamp(0, stamp), text.as_bytes(), 1)?;
    Ok(writer.finish(log)?.min)
}

fn left_behind(storage: &FaultyStorage) -> Vec<String> {
    let recovery = Recovery::open(Arc::new(storage.clone())).unwrap();
    let file = |warning: &Warning| match warning {
        Warning::LeftBehind { file } => Some(file.clone()),
        _ => None,
    };
    recovery.warnings().iter().filter_map(file).collect()
}

/// The batch is neither confirmed nor read.
#[test]
fn a_batch_that_is_written_too_late_is_not_read() {
    for wakes in [Wakes::Meanwhile, Wakes::Afterwards] {
        let (storage, state) = stop_at((Operation::Write, "journal-"), wakes, |log| {
            let late = log.append(b"late", 0);
            assert!(matches!(log.write(late), Err(Failure::Fenced { own: Epoch(1), by: Epoch(2) })));
            assert_eq!(log.written(), Sequence(1));
        });
        assert!(!state.values().any(|text| text == "late"));
        assert_eq!(left_behind(&storage), Vec::<String>::new());
    }
}

/// The new writer needs a segment of that name.
#[test]
fn a_segment_that_is_begun_too_late_replaces_none() {
    for wakes in [Wakes::Meanwhile, Wakes::Afterwards] {
        let (storage, state) = stop_at((Operation::Rename, "journal-"), wakes, |log| {
            assert!(log.rotate().is_err());
            write_one(log);
        });
        assert_eq!(left_behind(&storage), Vec::<String>::new());
        assert_eq!(state.len(), 25);
    }
}

/// A restart leaves a gap, so its segment comes behind the first of the new writer.
#[test]
fn a_segment_that_is_left_behind_is_ignored_and_removed() {
    for wakes in [Wakes::Meanwhile, Wakes::Afterwards] {
        let (storage, state) = stop_at((Operation::Rename, "journal-"), wakes, |log| {
            let _ = log.restart();
            assert!(log.write(log.append(b"late", 0)).is_err());
        });
        let left = left_behind(&storage);
        // Afterwards, the file that was to become a segment is gone.
        let expected = if wakes == Wakes::Meanwhile { &["journal-00000000000000000003.seg"][..] } else { &[] };
        assert_eq!(left, expected);
        drop(common::open(&storage));
        assert!(left.iter().all(|name| !storage.names().contains(name)));
        assert_eq!((left_behind(&storage), state_of(&storage)), (Vec::new(), state));
    }
}

/// The old writer is about to remove the segment of a restart that has failed. If the new writer had one of that name,
/// it would be lost.
#[test]
fn a_segment_that_is_removed_too_late_is_none_of_the_new_writer() {
    for wakes in [Wakes::Meanwhile, Wakes::Afterwards] {
        let (storage, state) = stop_at((Operation::Remove, "journal-00000000000000000004"), wakes, |log| {
            log.append(b"in memory only", 0);
            log.restart().unwrap();
            let _ = log.restart();
        });
        assert_eq!((left_behind(&storage), state_of(&storage)), (Vec::new(), state));
    }
}

/// The snapshot of a restart that never counted holds what the new writer does not have.
#[test]
fn a_snapshot_that_is_left_behind_is_ignored_and_removed() {
    for wakes in [Wakes::Meanwhile, Wakes::Afterwards] {
        let (storage, state) = stop_at((Operation::Rename, "snapshot-"), wakes, |log| {
            log.restart().unwrap();
            let late = log.append(b"late", 0);
            assert!(publish(log, "1=one\n3=late\n").is_err());
            assert!(log.accept(late).is_err());
        });
        let left = left_behind(&storage);
        let name = "snapshot-0000000001-00000000000000000003.snap";
        assert_eq!(left.iter().any(|left| left == name), wakes == Wakes::Meanwhile);
        drop(common::open(&storage));
        assert!(!storage.names().contains(&name.to_owned()));
        assert_eq!((left_behind(&storage), state_of(&storage)), (Vec::new(), state));
    }
}

/// It holds only what is durable, so it is as good as any.
#[test]
fn a_snapshot_that_is_published_too_late_may_be_used() {
    for wakes in [Wakes::Meanwhile, Wakes::Afterwards] {
        let (storage, state) = stop_at((Operation::Rename, "snapshot-"), wakes, |log| {
            assert!(publish(log, "1=one\n").is_err());
        });
        assert_eq!(storage.names().iter().any(|name| name.ends_with(".snap")), wakes == Wakes::Meanwhile);
        assert_eq!((left_behind(&storage), state_of(&storage)), (Vec::new(), state));
    }
}

/// The old writer marks what it has synced, in a file that is not read any more.
#[test]
fn a_mark_that_is_written_too_late_is_not_read() {
    for wakes in [Wakes::Meanwhile, Wakes::Afterwards] {
        for closes in [false, true] {
            let (storage, _) = stop_at((Operation::Write, "MARKS"), wakes, |log| {
                let _ = if closes { log.close() } else { log.wait_durable(log.tail()) };
            });
            let marks = storage.bytes_of("MARKS").unwrap();
            assert_eq!([0, 4096].map(|slot| marks[slot + 56]), [2, 2], "the epochs of both slots");
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
    assert!(DirectoryFollower::behind_closed(&log).is_none(), "it is not closed");
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
        let follower = DirectoryFollower::behind_closed(&log).expect("it is closed");
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
    assert!(DirectoryFollower::behind_closed(&log).is_none());
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
    assert!(matches!(refused, RecoveryError::Log(Failure::Fenced { own: Epoch(3), by: Epoch(4) })), "{refused}");
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
    assert!(
        matches!(&error, RecoveryError::Directory(DirectoryError::Damaged { file, .. }) if file == name),
        "{error}"
    );
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
