//! A pool of workers that die, and a queue that loses no job.
//!
//! Workers claim jobs, urgent ones first, and work in steps. Some jobs kill their worker in the middle of a step, some make it
//! sleep past its lease, some fail and are tried again; a few do so every time, and become dead letters. At the end every other
//! job must be completed, each exactly once. The server may be killed and started again meanwhile.
//!
//!     cargo run -p holdfast-client --example workers -- --url redis://127.0.0.1:6379
//!
//! Exit code: 0 all is well, 1 a job was lost or done twice, 2 it could not run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use holdfast_client::{
    Error, Exchange, Fate, Fields, IndexDefinition, Job, Query, Queue, QueueConfig, StateStore, Store,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Job types, and how many steps each takes. Reports take longer than a lease, so they need renewals.
const TYPES: [(&str, i64); 3] = [("email-send", 2), ("image-resize", 3), ("report-build", 5)];

#[derive(Clone, Parser)]
#[command(about = "A pool of workers that die, and a queue that loses no job")]
struct Options {
    #[arg(long, default_value = "redis://127.0.0.1:6379")]
    url: String,
    #[arg(long, default_value_t = 60)]
    jobs: usize,
    #[arg(long, default_value_t = 8)]
    workers: usize,
    /// How often a job is tried
    #[arg(long, default_value_t = 5)]
    attempts: u64,
    /// How long a worker has a job unless it renews
    #[arg(long, default_value_t = 500)]
    lease_ms: u64,
    /// Give up after so long
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// What goes wrong with a job.
#[derive(Clone, Copy, PartialEq)]
enum Mishap {
    /// The worker dies in the middle of a step, and cleans nothing up.
    Crash,
    /// The worker sleeps past its lease.
    Stall,
    /// The job fails, and may succeed later.
    Error,
    /// The job fails, and never will succeed.
    Hopeless,
}

/// What goes wrong with an attempt at a job. It depends on nothing but the two, so the dead letters are known beforehand.
fn mishap(number: usize, attempt: i64) -> Option<Mishap> {
    match (number % 20, attempt) {
        (19, _) => Some(Mishap::Crash),
        (18, _) => Some(Mishap::Error),
        (17, _) => Some(Mishap::Hopeless),
        (n, 1) if n % 5 == 0 => Some(Mishap::Crash),
        (n, 1) if n % 5 == 1 => Some(Mishap::Stall),
        (n, 1) if n % 5 == 2 => Some(Mishap::Error),
        _ => None,
    }
}

fn becomes_dead(number: usize) -> bool {
    number % 20 >= 17
}

/// How a worker's turn at a job ends.
enum End {
    Completed,
    Retried,
    Dead,
    Crashed,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let run = format!("demo:{}-{}", now_ms(), std::process::id());
    match Demo::start(options, run).await {
        Ok(demo) => demo.run().await.unwrap_or_else(cannot_run),
        Err(error) => cannot_run(error),
    }
}

fn cannot_run(error: impl Display) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(2)
}

struct Demo {
    options: Options,
    /// How the keys of this run begin.
    run: String,
    store: Store,
    queue: Queue,
    is_over: AtomicBool,
    counts: Counts,
    /// The completions that workers were told of: key and token.
    completions: Mutex<Vec<(Vec<u8>, i64)>>,
}

/// What happened, as far as workers were told.
#[derive(Default)]
struct Counts {
    claimed: AtomicU64,
    crashed: AtomicU64,
    stalled: AtomicU64,
    lost: AtomicU64,
    retried: AtomicU64,
    dead: AtomicU64,
    completed: AtomicU64,
}

impl Demo {
    /// Makes the indexes and the jobs.
    async fn start(options: Options, run: String) -> Result<Demo, Error> {
        let store = Store::connect(&options.url).await?;
        if !store.is_holdfast() {
            return Err(Error::NeedsHoldfast("claim"));
        }
        let config = QueueConfig {
            lease: Duration::from_millis(options.lease_ms),
            attempts_max: Some(options.attempts),
            ..QueueConfig::new([format!("{run}:due:high"), format!("{run}:due:low")])
        };
        let queue = Queue::new(&store, config);
        for priority in ["high", "low"] {
            queue.create_index(&format!("{run}:due:{priority}"), &format!("{run}:job:{priority}:")).await?;
        }
        let dead = IndexDefinition::new([format!("{run}:job:")], "run_at").only("state", ["dead"]);
        store.create_index(format!("{run}:dead"), &dead).await?;

        for number in 0..options.jobs {
            let (task_type, steps) = TYPES[number % TYPES.len()];
            let job = Fields::new().with("task_type", task_type).with("number", number).with("step_count", steps);
            let delay = Duration::from_millis(if number % 10 == 3 { 300 } else { 0 });
            queue.add(key(&run, number).as_bytes(), &job, delay).await?;
        }
        let (is_over, counts, completions) = Default::default();
        Ok(Demo { options, run, store, queue, is_over, counts, completions })
    }

    /// Keeps the pool full until no job is open; then checks and reports.
    async fn run(self) -> Result<ExitCode, Error> {
        let demo = Arc::new(self);
        let deadline = Instant::now() + Duration::from_secs(demo.options.seconds);
        // A worker that dies at once. It has got an urgent job, though others were there first.
        let first = answer(|| demo.queue.next("w-0", Duration::ZERO)).await?;
        let urgent_first = first.is_some_and(|job| job.key.starts_with(format!("{}:job:high:", demo.run).as_bytes()));
        println!("{} jobs for {} workers", demo.options.jobs, demo.options.workers);
        let (mut pool, mut hired) = (JoinSet::new(), 0);
        while answer(|| demo.open()).await? > 0 && Instant::now() < deadline {
            while let Some(ended) = pool.try_join_next() {
                ended.expect("a worker does not panic")?;
            }
            while pool.len() < demo.options.workers {
                hired += 1;
                let (demo, name) = (Arc::clone(&demo), format!("w-{hired}"));
                pool.spawn(async move { demo.work(&name).await });
            }
            sleep(Duration::from_millis(20)).await;
        }
        let in_time = Instant::now() < deadline;
        // Those who sleep wake up to find that their job is another's.
        demo.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = pool.join_next().await {
            ended.expect("a worker does not panic")?;
        }
        demo.report(in_time, urgent_first).await
    }

    /// One worker's life. It ends when all is done, or earlier.
    async fn work(&self, name: &str) -> Result<(), Error> {
        while !self.is_over.load(Ordering::Relaxed) {
            // If the answer is lost, so is the job that it may have brought: until its lease ends.
            let job = match self.queue.next(name, Duration::from_millis(200)).await {
                Ok(Some(job)) => job,
                Ok(None) => continue,
                Err(error) if error.is_temporary() => continue,
                Err(error) => return Err(error),
            };
            count(&self.counts.claimed);
            match self.attempt(&job, name).await {
                Ok(End::Completed) => {
                    count(&self.counts.completed);
                    self.completions.lock().expect("no worker panics").push((job.key, job.token));
                }
                Ok(End::Retried) => count(&self.counts.retried),
                Ok(End::Dead) => count(&self.counts.dead),
                Ok(End::Crashed) => {
                    count(&self.counts.crashed);
                    return Ok(()); // the job keeps its state and its lease, which ends by itself
                }
                Err(Error::Lost(_)) => count(&self.counts.lost),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The steps of a job. Each write is made only as long as the job is this worker's.
    async fn attempt(&self, job: &Job, name: &str) -> Result<End, Error> {
        let (number, steps) = (number(&job.fields, "number"), number(&job.fields, "step_count"));
        let mishap = mishap(number as usize, job.token);
        let lease = self.queue.config().lease;
        for step in 1..=steps {
            let is_long = job.fields.text("task_type") == Some("report-build");
            sleep(if is_long { lease / 4 } else { Duration::from_millis(2) }).await;
            match mishap.filter(|_| step == steps) {
                None => {}
                Some(Mishap::Crash) => return Ok(End::Crashed),
                Some(Mishap::Stall) => {
                    count(&self.counts.stalled);
                    sleep(2 * lease).await;
                }
                Some(Mishap::Error) => {
                    let error = Fields::new().with("error", "no network");
                    let fate = answer(|| job.retry(Duration::from_millis(50), &error)).await?;
                    return Ok(if fate == Fate::Requeued { End::Retried } else { End::Dead });
                }
                Some(Mishap::Hopeless) => {
                    let error = Fields::new().with("error", "no such image");
                    return answer(|| job.fail(&error)).await.map(|()| End::Dead);
                }
            }
            answer(|| job.renew(lease)).await?;
            let progress = Exchange::new().set("current_step", step);
            answer(|| job.update(&progress)).await?;
        }
        let result = Fields::new().with("result", format!("attempt {} by {name}", job.token));
        answer(|| job.complete(&result)).await.map(|()| End::Completed)
    }

    /// How many jobs have not ended.
    async fn open(&self) -> Result<u64, Error> {
        let (mut connection, mut open) = (self.store.connection()?, 0);
        for index in &self.queue.config().indexes {
            let jobs: u64 = redis::cmd("ZCARD").arg(index).query_async(&mut connection).await?;
            open += jobs;
        }
        Ok(open)
    }

    async fn report(&self, in_time: bool, urgent_first: bool) -> Result<ExitCode, Error> {
        let (mut troubles, counts) = (self.troubles().await?, &self.counts);
        if !in_time {
            troubles.push(format!("jobs were still open after {} s", self.options.seconds));
        }
        if !urgent_first {
            troubles.push("the first job that was claimed is not an urgent one".into());
        }
        let words = [
            ("claimed", &counts.claimed),
            ("crashed", &counts.crashed),
            ("stalled", &counts.stalled),
            ("lost", &counts.lost),
            ("retried", &counts.retried),
            ("given up", &counts.dead),
            ("completed", &counts.completed),
        ];
        let words = words.map(|(word, count)| format!("{} {word}", count.load(Ordering::Relaxed)));
        println!("{}", words.join(", "));
        self.clean_up().await?;
        if troubles.is_empty() {
            println!("Every job was completed exactly once, but for the dead letters that were expected.");
            return Ok(ExitCode::SUCCESS);
        }
        println!("{}", troubles.join("\n"));
        Ok(ExitCode::FAILURE)
    }

    /// What is wrong with the jobs, in sentences.
    async fn troubles(&self) -> Result<Vec<String>, Error> {
        let mut troubles = Vec::new();
        let prefix = format!("{}:job:", self.run);
        let found = self.store.scan(Query::prefix(prefix)).collect().await?.into_iter();
        let jobs: BTreeMap<Vec<u8>, Fields> = found.map(|(key, record)| (key, record.fields)).collect();
        let mut told: BTreeMap<Vec<u8>, Vec<i64>> = BTreeMap::new();
        for (key, token) in self.completions.lock().expect("no worker panics").iter() {
            told.entry(key.clone()).or_default().push(*token);
        }
        let dead = self.store.range(format!("{}:dead", self.run).as_bytes(), "-inf", "+inf", &[], None).await?;
        let dead: BTreeSet<Vec<u8>> = dead.into_iter().map(|(key, _, _)| key).collect();
        for number in 0..self.options.jobs {
            let key = key(&self.run, number);
            let Some(job) = jobs.get(key.as_bytes()) else {
                troubles.push(format!("{key} is lost"));
                continue;
            };
            let (state, attempt) = (job.text("state").unwrap_or_default(), job.number("attempt").unwrap_or(0));
            let told = told.get(key.as_bytes()).map_or(&[][..], Vec::as_slice);
            let (expected, completions) =
                if becomes_dead(number) { ("dead", vec![]) } else { ("completed", vec![attempt]) };
            if state != expected || told != completions {
                troubles
                    .push(format!("{key} is {state} after {attempt} attempts; it was completed in those: {told:?}"));
            }
            if dead.contains(key.as_bytes()) != (state == "dead") {
                troubles.push(format!("{key} is {state}, but the index of dead letters says otherwise"));
            }
            if state == "completed" && job.number("current_step") != job.number("step_count") {
                troubles.push(format!("{key} is completed after {:?} steps", job.number("current_step")));
            }
            if attempt as u64 > self.options.attempts {
                troubles.push(format!("{key} was tried {attempt} times"));
            }
        }
        Ok(troubles)
    }

    async fn clean_up(&self) -> Result<(), Error> {
        for index in ["due:high", "due:low", "dead"] {
            self.store.drop_index(format!("{}:{index}", self.run)).await?;
        }
        for number in 0..self.options.jobs {
            self.store.delete(key(&self.run, number).as_bytes()).await?;
        }
        Ok(())
    }
}

/// Asks until there is an answer: what a job does may be repeated when it is not known whether it was done.
async fn answer<T, F: Future<Output = Result<T, Error>>>(ask: impl Fn() -> F) -> Result<T, Error> {
    loop {
        match ask().await {
            Err(error) if error.is_temporary() => sleep(Duration::from_millis(20)).await,
            answer => return answer,
        }
    }
}

/// The key of a job: its prefix says how urgent it is.
fn key(run: &str, number: usize) -> String {
    let priority = if number % 4 == 3 { "high" } else { "low" };
    format!("{run}:job:{priority}:{number}")
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
