//! Loads a server through the Rust package while that is killed: jobs, transactions, appends, a stateful node and a session
//! that counts. What was acknowledged goes into a ledger, from which the program goes on when it was killed itself.
//! README.md has the ledger's lines.
//!
//!     packages-load URL LEDGER NAME SECONDS

use std::collections::hash_map::RandomState;
use std::error::Error as StdError;
use std::fs::{File, OpenOptions, read_to_string, write};
use std::hash::BuildHasher;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_client::redis::Cmd;
use holdfast_client::{
    Append, Config, Error, Fields, Json, NewEvent, Queue, QueueConfig, SessionConfig, StateStore, StatefulNode, Store,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const ACCOUNTS: [&str; 6] = ["account/0", "account/1", "account/2", "account/3", "account/4", "account/5"];
const LEASE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

type Failure = Box<dyn StdError + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, path, name, seconds] = args.as_slice() else { return Err("URL LEDGER NAME SECONDS".into()) };
    let ledger = Ledger::open(path)?;
    let config = Config { response_timeout: Duration::from_secs(2), ..Config::new(url) };
    let store = insist(async || Store::connect_with(&config).await).await?;
    let queue = Queue::new(&store, QueueConfig { lease: LEASE, ..QueueConfig::new(["due"]) });
    let until = Instant::now() + Duration::from_secs_f64(seconds.parse()?);
    let load = Load { store, queue, ledger: Arc::new(ledger), name: name.clone(), until };
    println!("begins");
    tokio::try_join!(
        load.add_jobs(),
        load.work("a"),
        load.work("b"),
        load.transfer(),
        load.append(),
        load.process(),
        load.count()
    )?;
    Ok(())
}

struct Load {
    store: Store,
    queue: Queue,
    ledger: Arc<Ledger>,
    name: String,
    until: Instant,
}

impl Load {
    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    async fn add_jobs(&self) -> Result<(), Failure> {
        let mut number = self.ledger.last("added");
        while self.goes_on() {
            number += 1;
            let (key, fields) = (format!("job:{}:{number:06}", self.name), Fields::new().with("n", number));
            insist(async || self.queue.add(key.as_bytes(), &fields, Duration::ZERO).await).await?;
            self.ledger.write(&json!({"added": number}));
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    async fn work(&self, worker: &str) -> Result<(), Failure> {
        let worker = format!("{}-{worker}", self.name);
        loop {
            let Some(job) = insist(async || self.queue.next(&worker, 2 * LEASE).await).await? else {
                if self.goes_on() {
                    continue;
                }
                return Ok(());
            };
            let key = String::from_utf8_lossy(&job.key);
            let ended = match random(100) {
                0..5 => continue, // as a worker that dies: its lease ends
                5..10 => insist(async || job.retry(Duration::ZERO, &Fields::new()).await).await.map(|_| false),
                _ => {
                    let fields = Fields::new().with("by", &*self.name).with("token", job.token);
                    insist(async || job.complete(&fields).await).await.map(|()| true)
                }
            };
            match ended {
                Ok(false) => {}
                Ok(true) => self.ledger.write(&json!({"completed": key, "token": job.token})),
                Err(Error::Lost(_)) => self.ledger.write(&json!({"lost": key, "token": job.token})),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn transfer(&self) -> Result<(), Failure> {
        let mut number = self.ledger.last("transfer");
        while self.goes_on() {
            number += 1;
            let source = random(ACCOUNTS.len() as u64) as usize;
            let target = (source + 1 + random(ACCOUNTS.len() as u64 - 1) as usize) % ACCOUNTS.len();
            let (from, to, amount) = (ACCOUNTS[source], ACCOUNTS[target], 1 + random(9) as i64);
            self.ledger.write(&json!({"transfer": number}));
            let moved = self.store.transaction(10, |txn| {
                let run = format!("transfers/{}", self.name);
                async move {
                    let (payer, payee) = (txn.cell::<i64>(from), txn.cell::<i64>(to));
                    let (before, after) = (payer.get().await?, payee.get().await?);
                    payer.set(&(before.expect("an account").value - amount)).await?;
                    payee.set(&(after.expect("an account").value + amount)).await?;
                    let data = Json(json!({"amount": amount, "from": from, "to": to}));
                    txn.run(run).append(&NewEvent::new("Moved", data).key(format!("t-{number}"))).await?;
                    Ok::<_, Error>(())
                }
            });
            match moved.await {
                Ok(()) => self.ledger.write(&json!({"moved": number})),
                Err(Error::Conflict(_)) => self.ledger.write(&json!({"conflict": number})),
                Err(error) if error.is_temporary() => sleep(PAUSE).await, // it was made or not
                Err(error) => return Err(error.into()),
            }
            if number.is_multiple_of(5) {
                let cells = insist(async || self.store.get_cells::<i64>(ACCOUNTS).await).await?;
                let sum: i64 = cells.iter().flatten().map(|cell| cell.value).sum();
                self.ledger.write(&json!({"sum": sum}));
            }
        }
        Ok(())
    }

    async fn append(&self) -> Result<(), Failure> {
        let run = self.store.run::<u64>(format!("log/{}", self.name));
        let mut number = self.ledger.last("appended");
        while self.goes_on() {
            number += 1;
            let event = NewEvent::new("Noted", number).key(format!("k-{number}"));
            let (seq, mismatch) = match insist(async || run.append(&event).await).await? {
                Append::Persisted(event) => (event.run_seq, false),
                Append::Known { event, mismatch } => (event.run_seq, mismatch),
                Append::Refused { .. } => return Err("an append without if_last was refused".into()),
            };
            self.ledger.write(&json!({"appended": number, "seq": seq, "mismatch": mismatch}));
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Reads an input that can be read again from any position: the key and the amount of each follow from its number.
    async fn process(&self) -> Result<(), Failure> {
        let (node_name, sink) = (format!("sums-{}", self.name), format!("sink-{}", self.name));
        while self.goes_on() {
            // A new node, as after a crash of the pipeline.
            let state = self.store.exactly_once_state(format!("{node_name}/"));
            let node: StatefulNode<i64, String> = StatefulNode::new(&node_name, Arc::new(state));
            let mut position: u64 = match insist(async || node.recover().await).await? {
                Some(position) => String::from_utf8(position)?.parse()?,
                None => 0,
            };
            for _ in 0..5 + random(36) {
                position += 1;
                let update = |held: Option<i64>| {
                    let total = held.unwrap_or(0) + (position % 7) as i64;
                    (total, vec![format!("{position}: {total}")])
                };
                let key = format!("key-{}", position % 3);
                let outputs = insist(async || node.process(&key, position, update).await).await?;
                for output in outputs.unwrap_or_default() {
                    let (id, value) = (output.id.as_bytes(), Some(output.value.as_bytes()));
                    insist(async || self.store.set_field(sink.as_bytes(), id, value).await).await?;
                }
                if position.is_multiple_of(10) {
                    insist(async || node.checkpoint(position.to_string()).await).await?;
                    self.ledger.write(&json!({"checkpoint": position}));
                }
            }
        }
        Ok(())
    }

    async fn count(&self) -> Result<(), Failure> {
        let sessions = self.store.sessions();
        let increment = Cmd::incr(format!("count:{}", self.name), 1);
        let prepared = self.ledger.last("prepared");
        let mut request = None;
        let opened = self.ledger.lines.iter().rev().find_map(|line| line["session"].as_str());
        let session = match opened {
            None => {
                let session = insist(async || sessions.open(&SessionConfig::default()).await).await?;
                self.ledger.write(&json!({"session": String::from_utf8_lossy(session.id())}));
                session
            }
            Some(id) => {
                let retry_for = SessionConfig::default().retry_for;
                insist(async || sessions.resume(id, prepared + 1, retry_for).await).await?
            }
        };
        if prepared > self.ledger.last("answered") {
            request = Some(session.prepare_as(prepared, &increment)?);
        }
        while self.goes_on() {
            let request = request.take().unwrap_or_else(|| {
                let request = session.prepare(&increment);
                self.ledger.write(&json!({"prepared": request.id()}));
                request
            });
            let value: i64 = match request.send().await {
                Err(Error::Unanswered { request, .. }) => request.send().await?,
                value => value?,
            };
            self.ledger.write(&json!({"answered": request.id(), "value": value}));
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

/// Calls again while the server is away.
async fn insist<T>(call: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match call().await {
            Err(error) if error.is_temporary() && Instant::now() < deadline => sleep(PAUSE).await,
            result => return result,
        }
    }
}

/// Lines of JSON, each written before the program goes on.
struct Ledger {
    /// What an earlier program has written.
    lines: Vec<Value>,
    file: Mutex<File>,
}

impl Ledger {
    fn open(path: &str) -> Result<Ledger, Failure> {
        let mut lines = Vec::new();
        if let Ok(text) = read_to_string(path) {
            // A line that was cut off was not acknowledged to anybody.
            let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
            lines = whole.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
            write(path, whole)?;
        }
        let file = Mutex::new(OpenOptions::new().create(true).append(true).open(path)?);
        Ok(Ledger { lines, file })
    }

    fn write(&self, line: &Value) {
        self.file.lock().expect("no writer panics").write_all(format!("{line}\n").as_bytes()).expect("a ledger");
    }

    /// The number of the last line of a kind.
    fn last(&self, what: &str) -> u64 {
        self.lines.iter().filter_map(|line| line[what].as_u64()).max().unwrap_or(0)
    }
}

/// A number below a bound.
fn random(below: u64) -> u64 {
    RandomState::new().hash_one(below) % below
}
