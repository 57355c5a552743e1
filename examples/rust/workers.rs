//! A pool of workers that die, and a sweeper that loses no job.
//!
//! Workers claim jobs, work in steps, and now and then die in the middle of one (without clean-up) or fall asleep for
//! longer than their lease. A sweeper gives back jobs whose lease has run out, a bounded number of times. At the end every
//! job must be completed or exhausted, and none completed twice.
//!
//!     cargo run -p holdfast-client --example workers -- --url redis://127.0.0.1:6379           # Holdfast
//!     cargo run -p holdfast-client --example workers -- --url redis://127.0.0.1:6379 --plain   # any Redis
//!
//! Exit code: 0 all is well, 1 a job was lost or done twice, 2 it could not run.

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use holdfast_client::redis::{self, Script};
use holdfast_client::{Config, Error, Exchange, Fate, Fields, Filter, Query, StateStore, Store, Sweep};
use tokio::task::JoinSet;

/// Job types, and how many steps each takes.
const TYPES: [(&str, i64); 3] = [("email-send", 2), ("image-resize", 3), ("report-build", 5)];
/// States of jobs that are not done with.
const OPEN: [&str; 3] = ["pending", "claimed", "running"];

#[derive(Clone, Parser)]
#[command(about = "A pool of workers that die, and a sweeper that loses no job")]
struct Options {
    #[arg(long, default_value = "redis://127.0.0.1:6379")]
    url: String,
    /// Use only what every Redis has
    #[arg(long)]
    plain: bool,
    #[arg(long, default_value_t = 120)]
    jobs: usize,
    #[arg(long, default_value_t = 8)]
    workers: u64,
    /// How often a job is given back
    #[arg(long, default_value_t = 3)]
    retries: i64,
    /// How long a step may take
    #[arg(long, default_value_t = 250)]
    lease_ms: u64,
    /// Chance to die in a step
    #[arg(long, default_value_t = 0.05)]
    crash: f64,
    /// Chance to sleep past the lease in a step
    #[arg(long, default_value_t = 0.01)]
    stall: f64,
    /// Give up after so long
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// What happened, as far as anybody was told.
#[derive(Default)]
struct Counts {
    claimed: AtomicU64,
    crashed: AtomicU64,
    stalled: AtomicU64,
    fenced_off: AtomicU64,
    requeued: AtomicU64,
    exhausted: AtomicU64,
    completed: AtomicU64,
}

/// Names of this run's keys.
struct Names {
    prefix: String,
    ledger: String,
    index: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let run = format!("demo:{}-{}", now_ms(), std::process::id());
    let names =
        Names { prefix: format!("{run}:job:"), ledger: format!("{run}:completions"), index: format!("{run}:stuck") };
    match Demo::start(options, names).await {
        Ok(demo) => demo.run().await.unwrap_or_else(cannot_run),
        Err(Error::NeedsHoldfast(_)) => cannot_run("This server does not know HCAS, HFIND and SWEEP: try --plain."),
        Err(error) => cannot_run(error),
    }
}

fn cannot_run(error: impl Display) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(2)
}

struct Demo {
    options: Options,
    names: Names,
    counts: Counts,
    store: Store,
    complete: Script,
}

impl Demo {
    async fn start(options: Options, names: Names) -> Result<Demo, Error> {
        let store = connect(&options).await?;
        if !options.plain {
            if !store.is_holdfast() {
                return Err(Error::NeedsHoldfast("sweep"));
            }
            // Jobs that somebody works on, by the end of their lease.
            let mut create = redis::cmd("IDX.CREATE");
            create.arg(&names.index).arg("PREFIX").arg(1).arg(&names.prefix).arg("FIELD").arg("timeout_at");
            create.arg("ONLY").arg("state").arg(2).arg("claimed").arg("running");
            let _: () = create.query_async(&mut store.connection()?).await?;
        }
        for number in 0..options.jobs {
            let (task_type, steps) = TYPES[number % TYPES.len()];
            let job = Fields::new()
                .with("state", "pending")
                .with("task_type", task_type)
                .with("task_id", number)
                .with("attempt", 0)
                .with("current_step", 0)
                .with("step_count", steps)
                .with("created_at", now_ms())
                .with("updated_at", now_ms());
            store.put(format!("{}{task_type}:{number}", names.prefix).as_bytes(), &job, None).await?;
        }
        let complete = Script::new(if options.plain { COMPLETE_PLAIN } else { COMPLETE });
        Ok(Demo { options, names, counts: Counts::default(), store, complete })
    }

    /// Keeps the pool full and sweeps until no job is open; then checks and reports.
    async fn run(self) -> Result<ExitCode, Error> {
        let demo = Arc::new(self);
        let deadline = Instant::now() + Duration::from_secs(demo.options.seconds);
        let (mut pool, mut hired) = (JoinSet::new(), 0);
        while demo.any_open().await? && Instant::now() < deadline {
            while let Some(ended) = pool.try_join_next() {
                ended.expect("a worker does not panic")?;
            }
            while pool.len() < demo.options.workers as usize {
                hired += 1;
                let (demo, name) = (Arc::clone(&demo), format!("w-{hired}"));
                pool.spawn(async move { demo.work(&name).await });
            }
            demo.sweep().await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let in_time = Instant::now() < deadline;
        // Those who sleep wake up to find that their job is somebody else's.
        let everybody = async {
            while let Some(ended) = pool.join_next().await {
                ended.expect("a worker does not panic")?;
            }
            Ok::<(), Error>(())
        };
        if in_time {
            everybody.await?;
        }
        demo.report(in_time).await
    }

    /// One worker's life, over a connection of its own. It ends when nothing is left to do, or earlier.
    async fn work(&self, name: &str) -> Result<(), Error> {
        let store = connect(&self.options).await?;
        loop {
            let jobs = store.scan(self.jobs(&["pending"]).limit(16)).collect().await?;
            if jobs.is_empty() {
                if !self.any_open().await? {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
            let (key, job) = &jobs[fastrand::usize(..jobs.len())];
            let (attempt, steps) = (number(job, "attempt"), number(job, "step_count"));
            let claim = Exchange::new().expect("state", "pending").expect("attempt", attempt);
            let claim = self.stamp(claim).set("state", "claimed").set("worker", name);
            if !store.exchange(key, &claim).await?.applied {
                continue; // somebody else was faster
            }
            count(&self.counts.claimed);
            match self.steps(&store, key, name, attempt, steps).await? {
                End::Completed => count(&self.counts.completed),
                End::FencedOff => count(&self.counts.fenced_off),
                End::Crashed => {
                    count(&self.counts.crashed);
                    return Ok(()); // nothing is cleaned up: the job keeps its state, its worker and its lease
                }
            }
        }
    }

    /// The steps of a job, each written only as long as the lease holds: this worker, on this attempt.
    async fn steps(&self, store: &Store, key: &[u8], name: &str, attempt: i64, steps: i64) -> Result<End, Error> {
        let lease = || Exchange::new().expect("worker", name).expect("attempt", attempt);
        let mut state = "claimed";
        for step in 1..=steps {
            tokio::time::sleep(Duration::from_micros(fastrand::u64(..4000))).await;
            if fastrand::f64() < self.options.crash {
                return Ok(End::Crashed);
            }
            if fastrand::f64() < self.options.stall {
                count(&self.counts.stalled);
                tokio::time::sleep(Duration::from_millis(3 * self.options.lease_ms)).await;
            }
            let write = self.stamp(lease()).expect("state", state).set("state", "running").set("current_step", step);
            if !store.exchange(key, &write).await?.applied {
                return Ok(End::FencedOff);
            }
            state = "running";
        }
        let mut call = self.complete.key(key);
        call.key(&self.names.ledger).arg(name).arg(attempt).arg(now_ms());
        let completed: bool = call.invoke_async(&mut store.connection()?).await?;
        Ok(if completed { End::Completed } else { End::FencedOff })
    }

    fn stamp(&self, exchange: Exchange) -> Exchange {
        exchange.set("updated_at", now_ms()).set("timeout_at", now_ms() + self.options.lease_ms)
    }

    /// Gives back jobs whose lease has run out, or calls them failed when they were given back often enough.
    async fn sweep(&self) -> Result<(), Error> {
        let failed =
            |now: &str| Fields::new().with("state", "failed").with("error", "its workers died").with("updated_at", now);
        if !self.options.plain {
            let sweep = Sweep {
                index: self.names.index.clone().into(),
                before_ms: now_ms(),
                only: Some(("state".into(), vec!["claimed".into(), "running".into()])),
                retry: Some(("attempt".into(), self.options.retries as u64, failed("NOW"))),
                set: Fields::new().with("state", "pending").with("updated_at", "NOW"),
                ..Sweep::default()
            };
            for (_, fate) in self.store.sweep(&sweep).await? {
                self.count_fate(fate);
            }
            return Ok(());
        }
        let overdue = self.jobs(&["claimed", "running"]).filter(Filter::lt("timeout_at", now_ms()));
        for (key, job) in self.store.scan(overdue).collect().await? {
            let attempt = number(&job, "attempt");
            // A job that has moved on since the scan is left alone.
            let expected = ["state", "attempt", "timeout_at"].map(|field| (field, job.text(field).unwrap_or_default()));
            let seen = expected.into_iter().fold(Exchange::new(), |seen, (field, value)| seen.expect(field, value));
            let (fate, set) = if attempt < self.options.retries {
                let again = Fields::new().with("state", "pending").with("attempt", attempt + 1);
                (Fate::Requeued, again.with("updated_at", now_ms()))
            } else {
                (Fate::Exhausted, failed(&now_ms().to_string()))
            };
            if self.store.exchange(&key, &Exchange { set, ..seen }).await?.applied {
                self.count_fate(fate);
            }
        }
        Ok(())
    }

    fn count_fate(&self, fate: Fate) {
        count(if fate == Fate::Requeued { &self.counts.requeued } else { &self.counts.exhausted });
    }

    fn jobs(&self, states: &[&str]) -> Query {
        Query::prefix(&self.names.prefix).filter(Filter::is_in("state", states.iter().copied()))
    }

    async fn any_open(&self) -> Result<bool, Error> {
        Ok(self.store.scan(self.jobs(&OPEN).limit(1)).next().await?.is_some())
    }

    async fn report(&self, in_time: bool) -> Result<ExitCode, Error> {
        let (troubles, counts) = (self.troubles(in_time).await?, &self.counts);
        let words = [
            ("claimed", &counts.claimed),
            ("crashed", &counts.crashed),
            ("stalled", &counts.stalled),
            ("fenced off", &counts.fenced_off),
            ("requeued", &counts.requeued),
            ("exhausted", &counts.exhausted),
            ("completed", &counts.completed),
        ];
        let words: Vec<String> =
            words.iter().map(|(word, count)| format!("{} {word}", count.load(Ordering::Relaxed))).collect();
        println!("{} jobs of {} types: {}", self.options.jobs, TYPES.len(), words.join(", "));
        self.clean_up().await?;
        if troubles.is_empty() {
            println!("No job was lost, and none ran to completion twice.");
            return Ok(ExitCode::SUCCESS);
        }
        println!("{}", troubles.join("\n"));
        Ok(ExitCode::FAILURE)
    }

    /// What is wrong with the jobs, in sentences.
    async fn troubles(&self, in_time: bool) -> Result<Vec<String>, Error> {
        let mut troubles = Vec::new();
        let mut jobs = self.store.scan(Query::prefix(&self.names.prefix)).collect().await?;
        jobs.sort_by(|a, b| a.0.cmp(&b.0));
        jobs.dedup_by(|a, b| a.0 == b.0);
        let ledger = self.store.get(self.names.ledger.as_bytes()).await?.unwrap_or_default().fields;
        if !in_time {
            troubles.push(format!("jobs were still open after {} s", self.options.seconds));
        }
        if jobs.len() != self.options.jobs {
            troubles.push(format!("{} jobs were created and {} are there", self.options.jobs, jobs.len()));
        }
        let told = self.counts.completed.load(Ordering::Relaxed) as usize;
        if told != ledger.len() {
            troubles.push(format!("workers were told of {told} completions, but the ledger has {}", ledger.len()));
        }
        for (key, job) in &jobs {
            let key = str::from_utf8(key).unwrap_or_default();
            let (state, completions) = (job.text("state").unwrap_or_default(), ledger.number(key).unwrap_or(0));
            if !["completed", "failed"].contains(&state) {
                troubles.push(format!("{key} is lost: it is {state} for ever"));
            }
            if completions != i64::from(state == "completed") {
                troubles.push(format!("{key} is {state} and ran to completion {completions} times"));
            }
            if state == "completed" && number(job, "current_step") != number(job, "step_count") {
                troubles.push(format!("{key} is completed after {} steps", number(job, "current_step")));
            }
            if number(job, "attempt") > self.options.retries {
                troubles.push(format!("{key} was tried again {} times", number(job, "attempt")));
            }
        }
        Ok(troubles)
    }

    async fn clean_up(&self) -> Result<(), Error> {
        if !self.options.plain {
            let mut connection = self.store.connection()?;
            let _: i64 = redis::cmd("IDX.DROP").arg(&self.names.index).query_async(&mut connection).await?;
        }
        for (key, _) in self.store.scan(Query::prefix(&self.names.prefix)).collect().await? {
            self.store.delete(&key).await?;
        }
        self.store.delete(self.names.ledger.as_bytes()).await?;
        Ok(())
    }
}

/// How a worker's turn at a job ends.
enum End {
    Completed,
    FencedOff,
    Crashed,
}

/// Completes a job if the lease still holds, and counts it in a ledger in the same step.
const COMPLETE: &str = "
    local done = redis.call('HCAS', KEYS[1], 'IF', 3, 'state', 'running', 'worker', ARGV[1], 'attempt', ARGV[2],
        'SET', 2, 'state', 'completed', 'updated_at', ARGV[3], 'DEL', 1, 'timeout_at')
    if done == 1 then redis.call('HINCRBY', KEYS[2], KEYS[1], 1) end
    return done";

/// The same with what every Redis has.
const COMPLETE_PLAIN: &str = "
    local job = redis.call('HMGET', KEYS[1], 'state', 'worker', 'attempt')
    if job[1] ~= 'running' or job[2] ~= ARGV[1] or job[3] ~= ARGV[2] then return 0 end
    redis.call('HSET', KEYS[1], 'state', 'completed', 'updated_at', ARGV[3])
    redis.call('HDEL', KEYS[1], 'timeout_at')
    redis.call('HINCRBY', KEYS[2], KEYS[1], 1)
    return 1";

async fn connect(options: &Options) -> Result<Store, Error> {
    Store::connect_with(&Config { plain: options.plain, ..Config::new(&options.url) }).await
}

fn number(job: &Fields, field: &str) -> i64 {
    job.number(field).unwrap_or_default()
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
