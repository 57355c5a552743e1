//! Engines over a log that is no files: what one has recorded, another gets from any history, or by following the log.

use super::engine;
use crate::durability::{Keeper, replay};
use crate::platform::clock::SystemClock;
use crate::platform::logging;
use engine::clients::pause::PauseMode;
use engine::execution::replay::Replay;
use engine::{Client, ClientHandle, Engine, Flow, Persistence, Settings};
use journal::{Batch, Epoch, Follow, FollowUpTo, Followed, History, LogReader, MemoryLog};
use journal::{ReadProgress, RecoveryError, Sequence, SnapshotInfo, StoredPart, Warning};
use resp::OwnedRequest;
use std::sync::Arc;

fn engine_and_keeper() -> (Arc<Engine>, Arc<Keeper>) {
    let settings = Arc::new(Settings::new());
    let keeper = Arc::new(Keeper::new(settings.clone(), 1, 0));
    let log_level = logging::start(settings.loglevel(), false);
    let (stop, _) = tokio::sync::watch::channel(None);
    (engine((&settings, Arc::new(SystemClock::new())), (None, Vec::new()), 1, log_level, stop, &keeper, None), keeper)
}

/// An engine that records in `log`.
fn writer(log: &MemoryLog) -> (Arc<Engine>, Arc<Keeper>) {
    let (engine, keeper) = engine_and_keeper();
    keeper.open(Arc::downgrade(&engine), log.opened());
    (engine, keeper)
}

fn run(engine: &Engine, command: &str) -> String {
    let (mut worker, mut out) = (engine.worker(0), Vec::new());
    let handle = ClientHandle::new(engine.clients.next_id(), String::new(), String::new(), -1, 0, Box::new(|| {}));
    let mut client = Client::new(Arc::new(handle), true);
    let request: OwnedRequest = command.split(' ').map(str::as_bytes).collect();
    engine.begin(&mut worker);
    engine::execute(engine, &mut worker, &mut client, request.as_request(), &mut out);
    String::from_utf8_lossy(&out).trim_end().replace("\r\n", " ")
}

const WRITES: &[&str] =
    &["SET a 1", "INCRBY a 41", "HSET job state running retries 2", "ZADD z 1 one 2 two", "DEL z", "SET b x"];
const READS: &[(&str, &str)] =
    &[("GET a", "$2 42"), ("HGET job retries", "$1 2"), ("EXISTS z", ":0"), ("GET b", "$1 x"), ("DBSIZE", ":3")];

fn assert_reads(engine: &Engine) {
    for (command, reply) in READS {
        assert_eq!(run(engine, command), *reply, "{command}");
    }
}

/// The batches of a log, and no snapshot.
struct Batches {
    follow: Box<dyn Follow>,
    batch: Option<Batch>,
}

impl History for Batches {
    fn snapshot(&self) -> Option<&SnapshotInfo> {
        None
    }

    fn meta(&self) -> Option<&[u8]> {
        None
    }

    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, RecoveryError> {
        Ok(None)
    }

    fn next_batch(&mut self) -> Result<Option<Batch<&[u8]>>, RecoveryError> {
        self.batch = self.follow.try_next().map_err(|_| RecoveryError::Unfinished)?;
        Ok(self.batch.as_ref().map(|Batch { epoch, sequence, time_ms, payload }| Batch {
            time_ms: *time_ms,
            epoch: *epoch,
            sequence: *sequence,
            payload: payload.as_slice(),
        }))
    }

    fn reached(&self) -> Sequence {
        self.batch.as_ref().map_or(Sequence::NONE, |batch| batch.sequence)
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress { bytes_read: 0, bytes_total: 0 }
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }
}

#[test]
fn a_start_reads_any_history() {
    let log = MemoryLog::new(Epoch(1));
    let (first, keeper) = writer(&log);
    WRITES.iter().for_each(|command| assert!(!run(&first, command).starts_with('-'), "{command}"));
    assert_reads(&first);
    keeper.write_all();
    let mut history = Batches { follow: log.follow(Sequence(1), FollowUpTo::Written), batch: None };
    let (second, _) = engine_and_keeper();
    let keys = replay(&mut history, &second, 2, |_| {}).unwrap();
    assert_eq!(keys, 3);
    assert_reads(&second);
}

#[test]
fn an_engine_that_follows_the_log_of_another_has_its_state() {
    let log = MemoryLog::new(Epoch(1));
    let (first, keeper) = writer(&log);
    let (second, _) = engine_and_keeper();
    let mut follow = log.follow(Sequence(1), FollowUpTo::Durable);
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let mut replay = Replay::new(&second, None).go_live(second.worker(0));
            while let Followed::Batch(batch) = follow.next().unwrap() {
                replay.batch(batch.sequence.0, &batch.payload).unwrap();
            }
        });
        for command in WRITES {
            run(&first, command);
            keeper.request_sync();
        }
        keeper.close().unwrap();
        follower.join().unwrap();
    });
    assert_reads(&second);
}

/// CLIENT PAUSE ALL holds every command back that passes its gates, CLIENT UNPAUSE and HELLO included, as in Redis.
#[test]
fn a_pause_of_all_commands_exempts_none() {
    let (engine, _keeper) = engine_and_keeper();
    let (mut worker, mut out) = (engine.worker(0), Vec::new());
    let handle = ClientHandle::new(engine.clients.next_id(), String::new(), String::new(), -1, 0, Box::new(|| {}));
    let mut client = Client::new(Arc::new(handle), true);
    engine.pause.begin(engine.clock.monotonic_ms(), u64::MAX, PauseMode::All);
    let lines = [
        "PING",
        "GET a",
        "SET a 1",
        "HELLO",
        "HELLO 3",
        "AUTH x",
        "RESET",
        "QUIT",
        "CLIENT ID",
        "CLIENT UNPAUSE",
        "CLIENT LIST",
        "CLIENT PAUSE 1",
        "INFO",
        "MULTI",
        "SCRIPT KILL",
        "SHUTDOWN ABORT",
        "SUBSCRIBE a",
    ];
    for line in lines {
        let request: OwnedRequest = line.split(' ').map(str::as_bytes).collect();
        engine.begin(&mut worker);
        let flow = engine::execute(&engine, &mut worker, &mut client, request.as_request(), &mut out);
        assert!(matches!(flow, Flow::Paused(_)), "{line}");
    }
    // What cannot be executed need not wait.
    for (line, error) in [("NOSUCH", "-ERR unknown command"), ("GET", "-ERR wrong number of arguments")] {
        assert!(run(&engine, line).starts_with(error), "{line}");
    }
    assert!(out.is_empty());
}
