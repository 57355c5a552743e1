//! Readers that follow a log while it is written, rotated, forgotten, fails, is restarted and is opened again: each
//! sees exactly the batches there are, in order, each once. `HOLDFAST_TEST_SEED` runs one random history again.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{ReadableLog, SeedOnPanic, open, open_with, options, seeds};
use fastrand::Rng;
use journal::{
    Batch, DirectoryFollower, Epoch, Failure, Fault, FaultyStorage, FileLog, FileLogOptions, Follow, FollowUpTo,
    Followed, History, Log, LogReader, Maintenance, MemoryLog, ReadError, Recovery, Sequence,
};

/// All batches that were appended: what a reader must see of them is those up to a mark.
type Appended = Vec<Batch>;

/// A follower as a server would run one: it holds a state, and loads a snapshot when it cannot read on.
struct Reader {
    upto: FollowUpTo,
    follow: Box<dyn Follow>,
    state: Vec<Batch>,
}

impl Reader {
    fn new(log: &dyn ReadableLog, upto: FollowUpTo) -> Reader {
        Reader { upto, follow: log.follow(Sequence(1), upto), state: Vec::new() }
    }

    /// Reads what there is. `snapshot` is the newest one: it holds all batches up to that stamp.
    fn catch_up(&mut self, log: &dyn ReadableLog, appended: &Appended, snapshot: Option<Sequence>) {
        loop {
            match self.follow.try_next() {
                Ok(Some(batch)) => self.see(batch),
                Ok(None) => return,
                Err(ReadError::Restarted { .. } | ReadError::Forgotten { .. }) => {
                    let stamp = snapshot.expect("a log is restarted or forgets only together with a snapshot");
                    self.state = appended.iter().filter(|batch| batch.sequence <= stamp).cloned().collect();
                    self.follow = log.follow(stamp.next(), self.upto);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn see(&mut self, batch: Batch) {
        if let Some(last) = self.state.last() {
            assert!(batch.sequence > last.sequence, "{} comes after {}", batch.sequence, last.sequence);
            assert!(batch.epoch >= last.epoch, "epochs never go back");
        }
        self.state.push(batch);
    }

    /// Once it has caught up, its state is that of the log up to the mark, or of a snapshot that was ahead of it.
    fn check(&self, log: &dyn ReadableLog, appended: &Appended, snapshot: Option<Sequence>) {
        let mark = match self.upto {
            FollowUpTo::Written => log.written(),
            FollowUpTo::Durable => log.durable(),
        };
        let upto = self.state.last().map_or(Sequence::NONE, |last| last.sequence);
        assert!(upto <= mark || snapshot.is_some_and(|stamp| upto <= stamp), "{upto} is beyond {mark}");
        // In a log that has failed, what was appended since exists in no log.
        let expected: Vec<&Batch> = appended.iter().filter(|batch| batch.sequence <= mark.max(upto)).collect();
        assert!(self.state.iter().eq(expected), "the reader has another state than the log up to {mark}");
    }
}

struct Writer {
    log: Option<FileLog>,
    storage: FaultyStorage,
    options: FileLogOptions,
    appended: Appended,
    /// The stamp of the newest snapshot.
    snapshot: Option<Sequence>,
    rng: Rng,
}

impl Writer {
    fn log(&self) -> &FileLog {
        self.log.as_ref().unwrap()
    }

    fn append(&mut self) {
        let bytes = if self.rng.u8(..10) == 0 { self.rng.usize(1..2000) } else { self.rng.usize(1..80) };
        let payload: Vec<u8> = (0..bytes).map(|_| self.rng.u8(..)).collect();
        let sequence = self.log().append(&payload, 0);
        let epoch = self.log().epoch();
        self.appended.push(Batch { epoch, sequence, time_ms: 0, payload });
    }

    /// A snapshot of everything so far.
    fn snapshot(&mut self) -> Option<Sequence> {
        let mut writer = self.log().snapshots().create(b"", 0).ok()?;
        let stamp = self.log().tail();
        writer.part(common::stamp(0, stamp), b"state", 1).ok()?;
        let info = writer.finish(self.log()).ok()?;
        self.snapshot = Some(stamp);
        assert_eq!(info.min, stamp);
        Some(stamp)
    }

    fn compact(&mut self) {
        if self.log().rotate().is_ok()
            && let Some(stamp) = self.snapshot()
        {
            let _ = self.log().forget(stamp);
        }
    }

    fn restart(&mut self) {
        if self.log().restart().is_err() {
            return;
        }
        if self.rng.bool() {
            self.append();
        }
        if let Some(stamp) = self.snapshot() {
            let _ = self.log().accept(stamp);
        }
    }

    /// The process dies, or the power fails, and the log is opened again.
    fn lose_and_open(&mut self) {
        let (written, durable) = (self.log().written(), self.log().durable());
        self.log = None;
        let (storage, promised) = match self.rng.bool() {
            true => (self.storage.kill(), written),
            false => (self.storage.crash(self.rng.u64(..)), durable),
        };
        self.storage = storage;
        let log = open_with(&self.storage, self.options.clone()).unwrap();
        assert!(log.tail() >= promised, "what was promised is there");
        // What was lost never happened; the sequences are given out again, in another epoch.
        let reached = log.tail();
        self.appended.retain(|batch| batch.sequence <= reached);
        self.log = Some(log);
    }
}

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
    let log = open_with(&storage, options.clone()).unwrap();
    let mut readers = [FollowUpTo::Written, FollowUpTo::Durable].map(|upto| Reader::new(&log, upto));
    let faults = [0, 0, 3][rng.usize(..3)];
    let mut writer = Writer {
        log: Some(log),
        storage,
        options,
        appended: Vec::new(),
        snapshot: None,
        rng: Rng::with_seed(seed + 1),
    };
    for _ in 0..rng.usize(20..200) {
        if rng.u8(..40) < faults {
            let number = writer.storage.operations() + rng.usize(..6);
            writer.storage.fail_at(number, [Fault::Io, Fault::NoSpace, Fault::NoDescriptors][rng.usize(..3)]);
        }
        match rng.u8(..100) {
            0..45 => writer.append(),
            45..60 => {
                let _ = writer.log().write(writer.log().tail());
            }
            60..72 => {
                let _ = writer.log().wait_durable(writer.log().tail());
            }
            72..76 => {
                let _ = writer.log().rotate();
            }
            76..80 => writer.compact(),
            80..82 => writer.restart(),
            82..88 if writer.log().has_failed() => {
                writer.storage.heal();
                writer.restart();
            }
            88..90 => {
                writer.storage.heal();
                if writer.log().has_failed() {
                    // What is in memory only dies with the process, and its readers start anew with a snapshot.
                    writer.restart();
                }
                if writer.log().has_failed() {
                    continue;
                }
                writer.lose_and_open();
                for reader in &mut readers {
                    // What was durable was seen once and for all; of what was only written, a reader drops what was
                    // lost.
                    let reached = writer.log().tail();
                    if reader.upto == FollowUpTo::Written {
                        reader.state.retain(|batch| batch.sequence <= reached);
                    }
                    let last = reader.state.last().map_or(Sequence::NONE, |last| last.sequence);
                    assert!(last <= reached);
                    reader.follow = writer.log().follow(last.next(), reader.upto);
                }
            }
            _ => {
                let reader = &mut readers[rng.usize(..2)];
                // Reading fails, too, when a fault hits it; that is an error like any other, and no batch is lost by
                // it.
                writer.storage.heal();
                reader.catch_up(writer.log(), &writer.appended, writer.snapshot);
                reader.check(writer.log(), &writer.appended, writer.snapshot);
            }
        }
    }
    writer.storage.heal();
    if writer.log().has_failed() {
        writer.restart();
    }
    writer.log().wait_durable(writer.log().tail()).unwrap();
    for reader in &mut readers {
        reader.catch_up(writer.log(), &writer.appended, writer.snapshot);
        reader.check(writer.log(), &writer.appended, writer.snapshot);
        assert_eq!(reader.state.len(), writer.appended.len());
    }
}

#[test]
fn readers_see_exactly_the_batches_in_order_once() {
    for seed in seeds(100) {
        live(seed);
    }
}

/// What follows a log to its end on another thread, through restarts, with a snapshot where it has to.
fn follow_to_the_end(log: &dyn ReadableLog, newest_snapshot: impl Fn() -> (Sequence, Vec<Batch>)) -> Vec<Batch> {
    let mut state: Vec<Batch> = Vec::new();
    let mut follow = log.follow(Sequence(1), FollowUpTo::Durable);
    loop {
        match follow.next() {
            Ok(Followed::Batch(batch)) => {
                assert!(state.last().is_none_or(|last| last.sequence < batch.sequence));
                state.push(batch);
            }
            Ok(Followed::Closed) => return state,
            Ok(Followed::Stopped) => panic!("nothing stops it"),
            Err(ReadError::Restarted { .. } | ReadError::Forgotten { .. }) => {
                let (stamp, loaded) = newest_snapshot();
                state = loaded;
                follow = log.follow(stamp.next(), FollowUpTo::Durable);
            }
            // The fault that was meant for the writer has hit the reader, which has lost nothing by it.
            Err(ReadError::Io { .. }) => {
                let last = state.last().map_or(Sequence::NONE, |last| last.sequence);
                follow = log.follow(last.next(), FollowUpTo::Durable);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_reader_on_another_thread_follows_to_the_end() {
    for seed in seeds(4) {
        let _seed = SeedOnPanic(seed);
        let mut rng = Rng::with_seed(seed);
        let storage = FaultyStorage::new();
        let timed = FileLogOptions {
            sync_every: Some(Duration::from_millis(1)),
            zero_ahead: rng.bool(),
            prepare_next: rng.bool(),
            ..options([400, 3000][rng.usize(..2)])
        };
        let log = open_with(&storage, timed).unwrap();
        let snapshot = parking_lot::Mutex::new((Sequence::NONE, Vec::new()));
        let (appended, read) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| follow_to_the_end(&log, || snapshot.lock().clone()));
            let mut appended: Appended = Vec::new();
            let mut append = |bytes: usize| {
                let payload = vec![7; bytes];
                let sequence = log.append(&payload, 0);
                appended.push(Batch { epoch: log.epoch(), sequence, time_ms: 0, payload });
                appended.clone()
            };
            for round in 0..400 {
                let all = append(rng.usize(1..120));
                match rng.u8(..100) {
                    0..50 => {
                        let _ = log.write(log.tail());
                    }
                    50..60 => {
                        let _ = log.wait_durable(log.tail());
                    }
                    60..66 => {
                        let _ = log.rotate();
                    }
                    66..70 if !log.has_failed() => {
                        let _ = log.rotate();
                        let stamp = log.tail();
                        let mut writer = log.snapshots().create(b"", 0).unwrap();
                        writer.part(common::stamp(0, stamp), b"", 0).unwrap();
                        if writer.finish(&log).is_ok() {
                            *snapshot.lock() = (stamp, all);
                            log.forget(stamp).unwrap();
                        }
                    }
                    70..73 if round % 3 == 0 => {
                        storage.fail_at(storage.operations(), Fault::Io);
                        let _ = log.wait_durable(log.tail());
                        storage.heal();
                        log.restart().unwrap();
                        let stamp = log.tail();
                        let mut writer = log.snapshots().create(b"", 0).unwrap();
                        writer.part(common::stamp(0, stamp), b"", 0).unwrap();
                        writer.finish(&log).unwrap();
                        // IMPORTANT: first, because readers learn of the restart when it is accepted.
                        *snapshot.lock() = (stamp, all);
                        log.accept(stamp).unwrap();
                    }
                    _ => {}
                }
            }
            if log.has_failed() {
                let all = append(1);
                log.restart().unwrap();
                let stamp = log.tail();
                let mut writer = log.snapshots().create(b"", 0).unwrap();
                writer.part(common::stamp(0, stamp), b"", 0).unwrap();
                writer.finish(&log).unwrap();
                *snapshot.lock() = (stamp, all);
                log.accept(stamp).unwrap();
            }
            log.close().unwrap();
            (appended, reader.join().unwrap())
        });
        assert!(read == appended, "{} of {} batches", read.len(), appended.len());
    }
}

fn check_waiting(log: &dyn ReadableLog, sync: impl Fn()) {
    let mut written = log.follow(Sequence(1), FollowUpTo::Written);
    let mut durable = log.follow(Sequence(2), FollowUpTo::Durable);
    assert_eq!(written.try_next().unwrap(), None);
    std::thread::scope(|scope| {
        let read = scope.spawn(move || (written.next().unwrap(), durable.next().unwrap()));
        let one = log.append(b"one", 0);
        log.write(one).unwrap();
        log.append(b"", 0);
        log.append(b"three", 0);
        sync();
        let batch = |sequence, payload: &[u8]| {
            Followed::Batch(Batch {
                epoch: log.epoch(),
                sequence: Sequence(sequence),
                time_ms: 0,
                payload: payload.to_vec(),
            })
        };
        assert_eq!(read.join().unwrap(), (batch(1, b"one"), batch(3, b"three")), "an empty batch is not shown");
    });
    let mut stopped = log.follow(Sequence(4), FollowUpTo::Durable);
    let stopper = stopped.stopper();
    std::thread::scope(|scope| {
        let read = scope.spawn(move || (stopped.next().unwrap(), stopped.next().unwrap()));
        stopper.stop();
        assert_eq!(read.join().unwrap(), (Followed::Stopped, Followed::Stopped));
    });
    let mut to_the_end = log.follow(Sequence(3), FollowUpTo::Durable);
    assert!(matches!(to_the_end.next().unwrap(), Followed::Batch(_)));
    std::thread::scope(|scope| {
        let read = scope.spawn(move || to_the_end.next().unwrap());
        log.close().unwrap();
        assert_eq!(read.join().unwrap(), Followed::Closed);
    });
}

#[test]
fn a_reader_waits_until_there_is_more_or_it_is_stopped_or_the_log_ends() {
    let log = open(&FaultyStorage::new());
    check_waiting(&log, || log.wait_durable(log.tail()).unwrap());
    let log = MemoryLog::new(Epoch(3));
    check_waiting(&log, || log.wait_durable(log.tail()).unwrap());
}

#[test]
fn what_was_forgotten_is_said_to_be() {
    let storage = FaultyStorage::new();
    let log = open_with(&storage, options(200)).unwrap();
    let mut slow = log.follow(Sequence(1), FollowUpTo::Written);
    for _ in 0..20 {
        log.write(log.append(&[b'x'; 60], 0)).unwrap();
    }
    assert_eq!(slow.try_next().unwrap().unwrap().sequence, Sequence(1));
    log.wait_durable(log.tail()).unwrap();
    log.forget(Sequence(15)).unwrap();
    let gone = slow.try_next().unwrap_err();
    assert!(matches!(gone, ReadError::Forgotten { oldest } if oldest > Sequence(3)), "{gone}");
    assert_eq!(slow.try_next().unwrap(), None, "there is nothing after an error");
}

#[test]
fn each_start_begins_an_epoch_and_batches_carry_it() {
    let storage = FaultyStorage::new();
    for epoch in 1..5 {
        let log = open(&storage);
        assert_eq!(log.epoch(), Epoch(epoch));
        log.wait_durable(log.append(b"batch", 0)).unwrap();
        if epoch == 3 {
            // Neither the file MARKS nor a failure is needed to count on.
            log.restart().unwrap();
            assert_eq!(log.epoch(), Epoch(epoch));
            let info = common::snapshot(&log, "all");
            log.accept(info.min).unwrap();
            log.wait_durable(log.append(b"batch", 0)).unwrap();
            drop(log);
            journal::Storage::remove(&storage, "MARKS").unwrap();
        }
    }
    let log = open(&storage);
    let mut follow = log.follow(Sequence(5), FollowUpTo::Durable);
    let epochs: Vec<u32> = std::iter::from_fn(|| follow.try_next().unwrap()).map(|batch| batch.epoch.0).collect();
    assert_eq!(epochs, [3, 4]);
}

#[test]
fn segments_whose_epochs_go_back_are_refused() {
    let storage = FaultyStorage::new();
    for _ in 0..2 {
        let log = open(&storage);
        log.wait_durable(log.append(b"batch", 0)).unwrap();
    }
    let segments: Vec<String> = storage.names().into_iter().filter(|name| name.ends_with(".seg")).collect();
    let mut first = storage.bytes_of(&segments[0]).unwrap();
    first[48] = 9;
    for end in [52, 96] {
        let crc = crc32c::crc32c(&first[..end]);
        first[end..end + 4].copy_from_slice(&crc.to_le_bytes());
    }
    let file = journal::Storage::open(&storage, &segments[0]).unwrap();
    file.write_at(&first, 0).unwrap();
    let error = common::contents(&storage).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("{} is of epoch 2, but {}, which comes before it, is of epoch 9", segments[1], segments[0])
    );
}

/// There is no lock on a storage in memory: as on a file system that does not keep a second process out.
#[test]
fn a_later_writer_fences_an_earlier_one() {
    let storage = FaultyStorage::new();
    let old = Arc::new(open(&storage));
    old.wait_durable(old.append(b"kept", 0)).unwrap();
    let mut follow = old.follow(Sequence(2), FollowUpTo::Durable);
    let (told, tell) = std::sync::mpsc::channel();
    let watched = Arc::downgrade(&old);
    old.watch(Box::new(move || {
        if let Some(by) = watched.upgrade().and_then(|log| log.fenced_by()) {
            let _ = told.send(by);
        }
    }));
    let new = open(&storage);
    assert_eq!((old.epoch(), new.epoch()), (Epoch(1), Epoch(2)));
    let is_fenced = |failure: &Failure| matches!(failure, Failure::Fenced { own: Epoch(1), by: Epoch(2) });
    let lost = old.append(b"never acknowledged", 0);
    assert!(is_fenced(&old.wait_durable(lost).unwrap_err()));
    assert_eq!((old.durable(), old.fenced_by()), (Sequence(1), Some(Epoch(2))));
    assert_eq!(tell.recv_timeout(Duration::from_secs(30)).unwrap(), Epoch(2));
    assert!(matches!(follow.next(), Err(ReadError::Fenced { by: Epoch(2) })));
    // Even after it fails itself it stays fenced, and there is no way back.
    assert!(is_fenced(&old.restart().unwrap_err()));
    assert!(is_fenced(&old.close().unwrap_err()));
    new.wait_durable(new.append(b"of the new writer", 0)).unwrap();
    assert_eq!(new.fenced_by(), None);
}

#[test]
fn a_log_in_memory_fails_and_is_fenced_when_it_is_told_to() {
    let log = MemoryLog::new(Epoch(1));
    log.set_syncs(false);
    log.write(log.append(b"one", 0)).unwrap();
    log.request_sync();
    assert_eq!((log.written(), log.durable()), (Sequence(1), Sequence::NONE));
    log.set_syncs(true);
    assert_eq!(log.durable(), Sequence(1));
    log.fail(Failure::AwaitingSnapshot);
    let lost = log.append(b"two", 0);
    assert!(log.write(lost).is_err() && log.fenced_by().is_none());
    log.fence(Epoch(4));
    assert_eq!((log.tail(), log.written(), log.fenced_by()), (Sequence(2), Sequence(1), Some(Epoch(4))));
    assert!(matches!(log.follow(Sequence(1), FollowUpTo::Written).next(), Err(ReadError::Fenced { by: Epoch(4) })));
}

/// A follower of a directory that another process writes: all that it knows are the files.
struct Outsider {
    follow: DirectoryFollower,
    state: Vec<Batch>,
}

impl Outsider {
    /// Loads what the directory holds. A snapshot has all batches up to its stamp.
    fn load(storage: &FaultyStorage, appended: &Appended) -> Outsider {
        let mut recovery = Recovery::open_live(Arc::new(storage.clone())).unwrap();
        let stamp = recovery.snapshot().map_or(Sequence::NONE, |snapshot| snapshot.min);
        let mut state: Vec<Batch> = appended.iter().filter(|batch| batch.sequence <= stamp).cloned().collect();
        while recovery.next_part().unwrap().is_some() {}
        while let Some(Batch { epoch, sequence, time_ms, payload }) = recovery.next_batch().unwrap() {
            state.push(Batch { epoch, sequence, time_ms, payload: payload.to_vec() });
        }
        Outsider { follow: recovery.into_follower().unwrap(), state }
    }

    /// Reads what there is, and loads again where it has to. False if even that does not bring it further: the snapshot
    /// of a restart is missing yet.
    fn catch_up(&mut self, storage: &FaultyStorage, appended: &Appended) -> bool {
        for _ in 0..3 {
            loop {
                match self.follow.try_next() {
                    Ok(Some(batch)) => {
                        let last = self.state.last().map_or(Sequence::NONE, |last| last.sequence);
                        assert!(batch.sequence > last, "{} comes after {last}", batch.sequence);
                        self.state.push(batch);
                    }
                    Ok(None) => return true,
                    Err(ReadError::Restarted { .. } | ReadError::Forgotten { .. } | ReadError::Rewritten { .. }) => {
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            *self = Outsider::load(storage, appended);
        }
        false
    }
}

fn live_outside(seed: u64) {
    let _seed = SeedOnPanic(seed);
    let mut rng = Rng::with_seed(seed);
    let options = FileLogOptions {
        zero_ahead: rng.bool(),
        prepare_next: rng.bool(),
        reserve_bytes: [0, 400][rng.usize(..2)],
        ..options([300, 1500, u64::MAX][rng.usize(..3)])
    };
    let storage = FaultyStorage::new();
    let log = open_with(&storage, options.clone()).unwrap();
    let mut writer = Writer {
        log: Some(log),
        storage,
        options,
        appended: Vec::new(),
        snapshot: None,
        rng: Rng::with_seed(seed + 1),
    };
    let mut outsider = Outsider::load(&writer.storage, &writer.appended);
    for _ in 0..rng.usize(20..200) {
        match rng.u8(..100) {
            0..45 => writer.append(),
            45..60 => writer.log().write(writer.log().tail()).unwrap(),
            60..68 => writer.log().wait_durable(writer.log().tail()).unwrap(),
            68..74 => writer.log().rotate().unwrap(),
            74..80 => writer.compact(),
            80..82 => writer.restart(),
            82..88 => {
                // The writer ends, or dies; another one goes on in the same directory, and the follower does not
                // notice.
                if rng.bool() {
                    writer.log().close().unwrap();
                }
                writer.log = None;
                let log = open_with(&writer.storage, writer.options.clone()).unwrap();
                let reached = log.tail();
                writer.appended.retain(|batch| batch.sequence <= reached);
                writer.log = Some(log);
            }
            _ => {
                if outsider.catch_up(&writer.storage, &writer.appended) {
                    // Batches without contents count.
                    let (last, written) = (outsider.follow.reached(), writer.log().written());
                    assert!(last >= written, "{last} is all, {written} is written");
                    let expected = writer.appended.iter().filter(|batch| batch.sequence <= last);
                    assert!(outsider.state.iter().eq(expected), "the follower has another state than the log");
                }
            }
        }
    }
}

#[test]
fn a_follower_in_another_process_sees_the_batches_in_order_once() {
    for seed in seeds(100) {
        live_outside(seed);
    }
}

#[test]
fn a_follower_in_another_process_waits_for_more_until_it_is_stopped() {
    let storage = FaultyStorage::new();
    let log = open(&storage);
    log.write(log.append(b"one", 5)).unwrap();
    let mut outsider = Outsider::load(&storage, &Vec::new());
    let stopper = outsider.follow.stopper();
    let (sender, seen) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        while let Followed::Batch(batch) = outsider.follow.next().unwrap() {
            sender.send((batch.sequence, batch.time_ms, batch.payload)).unwrap();
        }
    });
    let expected: Vec<(Sequence, u64, Vec<u8>)> =
        (2..50).map(|number| (Sequence(number), number, format!("batch {number}").into_bytes())).collect();
    for (_, time_ms, payload) in &expected {
        log.write(log.append(payload, *time_ms)).unwrap();
    }
    // A writer that ends is no end: another may come.
    log.close().unwrap();
    drop(log);
    let log = open(&storage);
    let last = (log.append(b"of the next writer", 99), 99, b"of the next writer".to_vec());
    log.write(last.0).unwrap();
    for batch in
        expected.into_iter().map(|(sequence, time_ms, payload)| (sequence, time_ms.max(5), payload)).chain([last])
    {
        assert_eq!(seen.recv().unwrap(), batch);
    }
    stopper.stop();
    reader.join().unwrap();
    assert!(seen.recv().is_err(), "it has ended");
}

/// It reads ahead: many short batches take few reads.
#[test]
fn a_follower_in_another_process_reads_many_batches_at_once() {
    let storage = FaultyStorage::new();
    let log = open_with(&storage, options(u64::MAX)).unwrap();
    let mut outsider = Outsider::load(&storage, &Vec::new());
    for _ in 0..5_000 {
        log.append(b"short", 1);
    }
    log.write(log.tail()).unwrap();
    let reads = || storage.sites().iter().filter(|site| site.operation == journal::Operation::Read).count();
    let before = reads();
    assert!(outsider.catch_up(&storage, &Vec::new()));
    assert_eq!(outsider.state.len(), 5_000);
    assert!(reads() - before < 50, "{} reads", reads() - before);
}
