//! The threads that help to apply: each takes part in tasks, beside the thread that reads. Knows threads and how they wait
//! for each other; refuses to know what a task does.

use super::Replay;
use crate::engine::Engine;
use crate::worker::Worker;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// How a thread waits for the others: it asks so often, then lets other threads run, and then sleeps between looks.
const SPINS: usize = 2_000;
const YIELDS: usize = 200;
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// Something that all threads do together.
pub(super) trait Task: Send + Sync + 'static {
    /// Does the part of one of the threads. The task ends for all of them together.
    fn take_part(&self, engine: &Engine, worker: &mut Worker, number: usize);

    fn meeting(&self) -> &Meeting;
}

/// Lets the threads of a task wait for each other.
#[derive(Default)]
pub(super) struct Meeting {
    /// A thread has panicked.
    is_abandoned: AtomicBool,
}

impl Meeting {
    /// Waits until so many threads have come to a step.
    pub(super) fn wait_until(&self, step: &AtomicUsize, threads: usize) {
        for look in 0.. {
            if step.load(SeqCst) >= threads {
                return;
            }
            assert!(!self.is_abandoned.load(SeqCst), "another thread that applies has panicked");
            match look {
                0..SPINS => std::hint::spin_loop(),
                _ if look < SPINS + YIELDS => std::thread::yield_now(),
                _ => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
}

/// Tells the other threads of a panic, so that they do not wait for this one.
struct AbandonAtPanic<'t>(&'t Meeting);

impl Drop for AbandonAtPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_abandoned.store(true, SeqCst);
        }
    }
}

/// Takes part in a task; if that panics, the others know.
pub(super) fn take_part(task: &dyn Task, engine: &Engine, worker: &mut Worker, number: usize) {
    let _abandon = AbandonAtPanic(task.meeting());
    task.take_part(engine, worker, number);
}

/// The threads that apply beside the one that reads. They are started when they are first needed, and end
/// with this.
pub(super) struct Appliers {
    engine: Arc<Engine>,
    /// With the thread that reads.
    threads: usize,
    helpers: Vec<Helper>,
    /// How many batches all of them have applied.
    pub(super) batches: u64,
}

struct Helper {
    tasks: mpsc::Sender<Arc<dyn Task>>,
    thread: JoinHandle<()>,
}

impl Appliers {
    /// The number of threads, once those are started that are missing.
    pub(super) fn start(&mut self) -> usize {
        for number in self.helpers.len() + 1..self.threads {
            let (tasks, received) = mpsc::channel::<Arc<dyn Task>>();
            let engine = self.engine.clone();
            let helper = move || {
                let mut worker = engine.worker_with(engine.statistics.uncounted(), false);
                for task in received {
                    engine.begin(&mut worker);
                    take_part(&*task, &engine, &mut worker, number);
                }
            };
            match std::thread::Builder::new().name(format!("apply-{number}")).spawn(helper) {
                Ok(thread) => self.helpers.push(Helper { tasks, thread }),
                Err(error) => {
                    tracing::warn!(%error, "a thread that applies cannot be started");
                    self.threads = number;
                }
            }
        }
        self.helpers.len() + 1
    }

    pub(super) fn has_several(&self) -> bool {
        self.threads > 1
    }

    /// Lets the other threads take part in a task.
    pub(super) fn share<T: Task>(&self, task: &Arc<T>) {
        for helper in &self.helpers {
            helper.tasks.send(task.clone()).expect("the thread ends when its sender is dropped");
        }
    }
}

impl Drop for Appliers {
    fn drop(&mut self) {
        for Helper { tasks, thread } in self.helpers.drain(..) {
            drop(tasks);
            // If it has panicked, that was told at the time.
            let _ = thread.join();
        }
    }
}

impl Replay<'_> {
    /// Lets [`Replay::many`] and [`Replay::parts`] use so many threads, one of which is the caller's.
    pub fn on_threads(mut self, engine: &Arc<Engine>, threads: usize) -> Self {
        let threads = threads.min(engine.keyspace.shard_count());
        self.appliers = Some(Appliers { engine: engine.clone(), threads, helpers: Vec::new(), batches: 0 });
        self
    }
}
