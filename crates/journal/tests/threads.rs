//! Several threads at once: order and completeness, on a storage that works and on one that fails.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{SeedOnPanic, batches, contents, open_with, options, read, seeds, snapshot};
use fastrand::Rng;
use journal::{Fault, FaultyStorage, FileLog, FileLogOptions, Log, Sequence};

const THREADS: usize = 4;

/// Appends numbered batches as a worker does, and says how many of them it knows to be durable.
fn work(journal: &FileLog, worker: usize, count: usize) -> usize {
    let mut rng = Rng::with_seed(worker as u64);
    let mut durable = 0;
    let mut last = Sequence::NONE;
    for number in 0..count {
        let sequence = journal.append(format!("{worker} {number} {}", "x".repeat(rng.usize(..100))).as_bytes(), 0);
        assert!(sequence > last && sequence <= journal.tail());
        last = sequence;
        let done = match rng.u8(..10) {
            0..6 => journal.write(sequence),
            6 => journal.wait_durable(sequence).inspect(|()| durable = number + 1),
            7 => {
                journal.request_sync();
                Ok(())
            }
            _ => Ok(()),
        };
        if done.is_err() {
            break;
        }
    }
    durable
}

/// How many batches of each worker are there; checks that they are in order and without a gap.
fn count_of_each(batches: &[String]) -> [usize; THREADS] {
    let mut counts = [0; THREADS];
    for batch in batches {
        let mut words = batch.split(' ');
        let mut number = || words.next().unwrap().parse::<usize>().unwrap();
        let (worker, number) = (number(), number());
        assert_eq!(number, counts[worker], "worker {worker}");
        counts[worker] += 1;
    }
    counts
}

#[test]
fn batches_of_several_threads_are_complete_and_in_order() {
    let storage = FaultyStorage::new();
    let timed = FileLogOptions { sync_every: Some(Duration::from_millis(1)), ..options(3000) };
    let journal = open_with(&storage, timed).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..THREADS {
            let journal = &journal;
            scope.spawn(move || work(journal, worker, 1000));
        }
        // A reader and snapshots at the same time.
        for _ in 0..20 {
            let (batches, error) = read(&journal, 1);
            assert!(error.is_none(), "{error:?}");
            assert!(batches.iter().map(|batch| batch.sequence.0).eq(1..=batches.len() as u64));
            let info = snapshot(&journal, "some state");
            journal.snapshots().remove_older(&info).unwrap();
        }
    });
    assert_eq!(journal.tail(), Sequence(4 * 1000));
    journal.wait_durable(journal.tail()).unwrap();
    let crashed = storage.crash(0);
    // Without the snapshots, which hold nothing but a stamp, all must be in the segments.
    let all: Vec<String> =
        read(&journal, 1).0.into_iter().map(|batch| String::from_utf8(batch.payload).unwrap()).collect();
    assert_eq!(count_of_each(&all), [1000; THREADS]);
    assert!(contents(&crashed).unwrap().1.is_empty());
}

#[test]
fn what_any_thread_was_promised_is_there_though_the_storage_fails() {
    for seed in seeds(10) {
        let _seed = SeedOnPanic(seed);
        let storage = FaultyStorage::new();
        let journal = Arc::new(open_with(&storage, options(2000)).unwrap());
        let fault = [Fault::Io, Fault::NoSpace][seed as usize % 2];
        storage.fail_at(storage.operations() + seed as usize * 5, fault);
        let durable: Vec<usize> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|worker| {
                    let journal = journal.clone();
                    scope.spawn(move || work(&journal, worker, 100))
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        for crash in 0..5 {
            let there = count_of_each(&batches(&storage.crash(crash)));
            for (there, durable) in there.iter().zip(&durable) {
                assert!(there >= durable, "{there} are there, {durable} were promised");
            }
        }
    }
}
