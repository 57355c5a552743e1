//! Readers that follow a log while it is written, rotated, forgotten, fails, is restarted and is opened again: each sees
//! exactly the batches there are, in order, each once. `HOLDFAST_TEST_SEED` runs one random history again.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{SeedOnPanic, open, open_with, options, seeds};
use fastrand::Rng;
use journal::{
    Batch, Epoch, Failure, Fault, FaultyStorage, FileLog, FileLogOptions, Follow, FollowUpTo, Followed, Log, LogFiles,
    MemoryLog, ReadError, Sequence,
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
    fn new(log: &dyn Log, upto: FollowUpTo) -> Reader {
        Reader { upto, follow: log.follow(Sequence(1), upto), state: Vec::new() }
    }

    /// Reads what there is. `snapshot` is the newest one: it holds all batches up to that stamp.
    fn catch_up(&mut self, log: &dyn Log, appended: &Appended, snapshot: Option<Sequence>) {
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
    fn check(&self, log: &dyn Log, appended: &Appended, snapshot: Option<Sequence>) {
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
        let sequence = self.log().append(&payload);
        let epoch = self.log().epoch();
        self.appended.push(Batch { epoch, sequence, payload });
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
                    // What was durable was seen once and for all; of what was only written, a reader drops what was lost.
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
                // Reading fails, too, when a fault hits it; that is an error like any other, and no batch is lost by it.
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
    for seed in seeds(0..500) {
        live(seed);
    }
}

/// What follows a log to its end on another thread, through restarts, with a snapshot where it has to.
fn follow_to_the_end(log: &dyn Log, newest_snapshot: impl Fn() -> (Sequence, Vec<Batch>)) -> Vec<Batch> {
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
    for seed in seeds(0..12) {
        let _seed = SeedOnPanic(seed);
        let mut rng = Rng::with_seed(seed);
        let storage = FaultyStorage::new();
        let timed = FileLogOptions {
            sync_every: Some(Duration::from_millis(1)),
            zero_ahead: rng.bool(),
            ..options([400, 3000][rng.usize(..2)])
        };
        let log = open_with(&storage, timed).unwrap();
        let snapshot = parking_lot::Mutex::new((Sequence::NONE, Vec::new()));
        let (appended, read) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| follow_to_the_end(&log, || snapshot.lock().clone()));
            let mut appended: Appended = Vec::new();
            let mut append = |bytes: usize| {
                let payload = vec![7; bytes];
                let sequence = log.append(&payload);
                appended.push(Batch { epoch: log.epoch(), sequence, payload });
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

fn check_waiting(log: &dyn Log, sync: impl Fn()) {
    let mut written = log.follow(Sequence(1), FollowUpTo::Written);
    let mut durable = log.follow(Sequence(2), FollowUpTo::Durable);
    assert_eq!(written.try_next().unwrap(), None);
    std::thread::scope(|scope| {
        let read = scope.spawn(move || (written.next().unwrap(), durable.next().unwrap()));
        let one = log.append(b"one");
        log.write(one).unwrap();
        log.append(b"");
        log.append(b"three");
        sync();
        let batch = |sequence, payload: &[u8]| {
            Followed::Batch(Batch { epoch: log.epoch(), sequence: Sequence(sequence), payload: payload.to_vec() })
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
        log.write(log.append(&[b'x'; 60])).unwrap();
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
        log.wait_durable(log.append(b"batch")).unwrap();
        if epoch == 3 {
            // Neither the file MARKS nor a failure is needed to count on.
            log.restart().unwrap();
            assert_eq!(log.epoch(), Epoch(epoch));
            let info = common::snapshot(&log, "all");
            log.accept(info.min).unwrap();
            log.wait_durable(log.append(b"batch")).unwrap();
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
        log.wait_durable(log.append(b"batch")).unwrap();
    }
    let segments: Vec<String> = storage.names().into_iter().filter(|name| name.ends_with(".seg")).collect();
    let mut first = storage.bytes_of(&segments[0]).unwrap();
    first[48] = 9;
    let crc = crc32c::crc32c(&first[..52]);
    first[52..56].copy_from_slice(&crc.to_le_bytes());
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
    old.wait_durable(old.append(b"kept")).unwrap();
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
    let lost = old.append(b"never acknowledged");
    assert!(is_fenced(&old.wait_durable(lost).unwrap_err()));
    assert_eq!((old.durable(), old.fenced_by()), (Sequence(1), Some(Epoch(2))));
    assert_eq!(tell.recv_timeout(Duration::from_secs(30)).unwrap(), Epoch(2));
    assert!(matches!(follow.next(), Err(ReadError::Fenced { by: Epoch(2) })));
    // Not even a failure of its own makes it forget, and there is no way back.
    assert!(is_fenced(&old.restart().unwrap_err()));
    assert!(is_fenced(&old.close().unwrap_err()));
    new.wait_durable(new.append(b"of the new writer")).unwrap();
    assert_eq!(new.fenced_by(), None);
}

#[test]
fn a_log_in_memory_fails_and_is_fenced_when_it_is_told_to() {
    let log = MemoryLog::new(Epoch(1));
    log.set_syncs(false);
    log.write(log.append(b"one")).unwrap();
    log.request_sync();
    assert_eq!((log.written(), log.durable()), (Sequence(1), Sequence::NONE));
    log.set_syncs(true);
    assert_eq!(log.durable(), Sequence(1));
    log.fail(Failure::AwaitingSnapshot);
    let lost = log.append(b"two");
    assert!(log.write(lost).is_err() && log.fenced_by().is_none());
    log.fence(Epoch(4));
    assert_eq!((log.tail(), log.written(), log.fenced_by()), (Sequence(2), Sequence(1), Some(Epoch(4))));
    assert!(matches!(log.follow(Sequence(1), FollowUpTo::Written).next(), Err(ReadError::Fenced { by: Epoch(4) })));
}
