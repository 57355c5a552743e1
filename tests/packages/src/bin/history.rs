//! Runs a history with the Rust package: reads one operation a line, as JSON, and prints its result in the neutral form
//! of README.md. Knows how operations are called in Rust; refuses to know what their results should be.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, SystemTime};

use holdfast_client::redis::{Cmd, Value as Reply};
use holdfast_client::{
    Append, Applied, Bound, Cell, Claim, Encode, Error, ExactlyOnceState, Exchange, Fate, Fields, Filter,
    IndexDefinition, Indexed, Job, Json, Limits, MemoryState, NewEvent, NodeState, Order, OrderedVersion,
    PreparedRequest, Query, Queue, QueueConfig, Rate, Run, Scope, Session, SessionConfig, Snapshot, StateBackend,
    StateStore, StateVersion, StatefulNode, Store, Swap, Sweep, Transaction, Version,
};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::time::sleep;

const HOUR: Duration = Duration::from_secs(3600);

/// What operations are asked of.
enum On<'a> {
    Store,
    Transaction(&'a Transaction),
    Reader(&'a holdfast_client::ReadTransaction),
    Session(&'a Session),
}

/// Why an operation has no result: an error of the package, or the body of a transaction gives up.
enum Failure {
    Package(Error),
    Abort,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Package(error)
    }
}

type Result<T = Value> = std::result::Result<T, Failure>;

#[derive(Clone)]
struct Driver {
    store: Store,
    queue: Queue,
    grouped: Queue,
    kept: Arc<tokio::sync::Mutex<Kept>>,
}

/// What later operations refer to.
#[derive(Default)]
struct Kept {
    jobs: HashMap<u64, Job>,
    sessions: HashMap<u64, Session>,
    requests: HashMap<u64, PreparedRequest>,
    /// Of requests that were sent. A request that is held keeps the server's replies.
    replies: HashMap<u64, Value>,
    memory: HashMap<String, MemoryState<Vec<u8>>>,
    memory_of_nodes: HashMap<String, MemoryState<NodeState<Value, Value>>>,
    nodes: HashMap<String, StatefulNode<Value, Value>>,
    snapshots: HashMap<u64, Vec<u8>>,
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let [url, protocol] = [1, 2].map(|number| std::env::args().nth(number));
    let (url, protocol) = url.zip(protocol).ok_or("the address of a server or the protocol is missing")?;
    let store = Store::connect(&format!("{url}/?protocol=resp{protocol}")).await?;
    let queue = Queue::new(&store, QueueConfig { attempts_max: Some(3), ..QueueConfig::new(["due"]) });
    let config = QueueConfig { lease: HOUR, attempts_max: Some(3), ..QueueConfig::new(["turns"]) };
    let grouped = Queue::new(&store, QueueConfig { group_by: Some("tenant".into()), ..config });
    let driver = Driver { store, queue, grouped, kept: Arc::default() };
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let op: Value = serde_json::from_str(&line)?;
        println!("{}", driver.perform(&On::Store, &op).await.unwrap_or(json!("aborted")));
    }
    Ok(())
}

/// The record operations that a store, a transaction and a session have in common.
macro_rules! record {
    ($on:expr, $op:expr, $key:expr) => {
        match text($op, "op") {
            "r.get" => match $on.get($key).await? {
                None => Value::Null,
                Some(record) => json!({"fields": shown_fields(&record.fields), "ttl": record.ttl.is_some()}),
            },
            "r.put" => done($on.put($key, &fields(&$op["fields"]), millis(&$op["ttl"])).await?),
            "r.delete" => json!($on.delete($key).await?),
            "r.get_field" => shown_option($on.get_field($key, text($op, "field").as_bytes()).await?.as_deref()),
            "r.set_field" => {
                let value = $op["value"].as_str().map(data);
                done($on.set_field($key, text($op, "field").as_bytes(), value.as_deref()).await?)
            }
            "r.set_fields" => done($on.set_fields($key, &fields(&$op["fields"])).await?),
            "r.cas" => {
                let [expected, value] = ["expected", "value"].map(|name| data(text($op, name)));
                json!($on.compare_and_swap($key, text($op, "field").as_bytes(), &expected, &value).await?)
            }
            "r.exchange" => {
                let outcome = $on.exchange($key, &exchange($op)).await?;
                json!({"applied": outcome.applied, "current": shown_fields(&outcome.current)})
            }
            other => panic!("no operation {other}"),
        }
    };
}

impl Driver {
    fn perform<'a>(
        &'a self,
        on: &'a On<'a>,
        op: &'a Value,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result> + Send + 'a>> {
        Box::pin(async move {
            match self.operation(on, op).await {
                Err(Failure::Package(error)) => Ok(failed(&error)),
                result => result,
            }
        })
    }

    async fn operation(&self, on: &On<'_>, op: &Value) -> Result {
        match text(op, "op").split_once('.').map(|(family, _)| family) {
            Some("r") => self.record(on, op).await,
            Some("i") => self.index(op).await,
            Some("q") => self.job(op).await,
            Some("g") => self.group(op).await,
            Some("c" | "b") => self.cell(on, op).await,
            Some("t") => self.transaction(op).await,
            Some("e") => self.run(on, op).await,
            Some("s") => self.state(on, op).await,
            Some("n") => self.node(op).await,
            Some("v") => self.session(op).await,
            _ => panic!("no operation {op}"),
        }
    }

    async fn record(&self, on: &On<'_>, op: &Value) -> Result {
        if text(op, "op") == "r.scan" {
            return self.scan(op).await;
        }
        let key = &*data(text(op, "key"));
        Ok(match on {
            On::Store | On::Reader(_) => record!(self.store, op, key),
            On::Transaction(transaction) => record!(transaction, op, key),
            On::Session(session) => record!(session, op, key),
        })
    }

    async fn scan(&self, op: &Value) -> Result {
        let mut query = Query { filters: filters(op), ..Query::prefix(data(text(op, "prefix"))) };
        if let Some(limit) = op["limit"].as_u64() {
            query = query.limit(limit as usize);
        }
        if op["fields"].is_array() {
            query = query.fields(list(&op["fields"]).iter().map(|field| field.as_str().expect("text")));
        }
        let found = self.store.scan(query).collect().await?;
        let row = |(key, record): &(Vec<u8>, holdfast_client::Record)| {
            (shown(key), json!([shown(key), shown_fields(&record.fields), record.ttl.is_some()]))
        };
        let mut rows: Vec<(String, Value)> = found.iter().map(row).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(match op["limit"].is_u64() {
            true => json!(rows.len()),
            false => rows.into_iter().map(|(_, row)| row).collect(),
        })
    }

    async fn index(&self, op: &Value) -> Result {
        let indexed = |(key, score, fields): Indexed| json!([shown(&key), score, shown_fields(&fields)]);
        let values = || list(&op["values"]).iter().map(|value| data(value.as_str().expect("text"))).collect::<Vec<_>>();
        Ok(match text(op, "op") {
            "i.create" => json!(self.store.create_index("by-n", &IndexDefinition::new(["rec:"], "n")).await?),
            "i.drop" => json!(self.store.drop_index("by-n").await?),
            "i.list" => {
                let mut names: Vec<String> = self.store.indexes().await?.iter().map(|name| shown(name)).collect();
                names.sort();
                json!(names)
            }
            "i.range" => {
                let limit = op["limit"].as_u64().map(|limit| limit as usize);
                let (min, max, filters) = (text(op, "min"), text(op, "max"), filters(op));
                let found = self.store.range(b"by-n", min, max, &filters, limit).await?;
                found.into_iter().map(indexed).collect()
            }
            "i.sweep" => {
                let sweep = Sweep {
                    index: b"by-n".to_vec(),
                    before_ms: number(op, "before"),
                    only: Some((b"state".to_vec(), values())),
                    retry: Some((b"swept".to_vec(), number(op, "max"), Fields::new().with("state", "given up"))),
                    set: fields(&op["set"]),
                    ..Sweep::default()
                };
                let row = |(key, fate): (Vec<u8>, Fate)| json!([shown(&key), shown_fate(fate)]);
                self.store.sweep(&sweep).await?.into_iter().map(row).collect()
            }
            _ => {
                let claim =
                    Claim::new(["by-n"]).only("state", values()).counter("claims").count(number(op, "count") as usize);
                let claim = fields(&op["set"]).iter().fold(claim, |claim, (name, value)| claim.set(name, value));
                self.store.claim(&claim).await?.into_iter().map(indexed).collect()
            }
        })
    }

    async fn job(&self, op: &Value) -> Result {
        match text(op, "op") {
            "q.index" => Ok(json!(self.queue.create_index("due", "job:").await?)),
            "q.add" => {
                sleep(Duration::from_millis(2)).await; // two jobs of one millisecond come in the order of their keys
                let delay = millis(&op["delay"]).unwrap_or_default();
                Ok(json!(self.queue.add(text(op, "key").as_bytes(), &fields(&op["fields"]), delay).await?))
            }
            "q.next" => {
                let wait = millis(&op["wait"]).unwrap_or_default();
                Ok(self.taken(op, self.queue.next(text(op, "worker"), wait).await?).await)
            }
            _ => {
                let job = self.kept.lock().await.jobs.get(&number(op, "slot")).cloned();
                let Some(job) = job else { return Ok(json!("no job")) };
                let fields = fields(&op["fields"]);
                Ok(match text(op, "how") {
                    "complete" => done(job.complete(&fields).await?),
                    "fail" => done(job.fail(&fields).await?),
                    "retry" => {
                        sleep(Duration::from_millis(2)).await;
                        json!(shown_fate(job.retry(millis(&op["after"]).unwrap_or_default(), &fields).await?))
                    }
                    "renew" => done(job.renew(HOUR).await?),
                    _ => {
                        let outcome = job.update(&exchange(op)).await?;
                        json!({"applied": outcome.applied, "current": shown_fields(&outcome.current)})
                    }
                })
            }
        }
    }

    async fn taken(&self, op: &Value, job: Option<Job>) -> Value {
        let Some(job) = job else { return Value::Null };
        let mut found = shown_fields(&job.fields);
        found.as_object_mut().expect("a map").remove("run_at");
        let result = json!({"key": shown(&job.key), "token": job.token, "fields": found});
        self.kept.lock().await.jobs.insert(number(op, "slot"), job);
        result
    }

    async fn group(&self, op: &Value) -> Result {
        let queue = &self.grouped;
        Ok(match text(op, "op") {
            "g.index" => json!(queue.create_index(text(op, "index"), "task:").await?),
            "g.add" => {
                sleep(Duration::from_millis(2)).await;
                let delay = millis(&op["delay"]).unwrap_or_default();
                let (key, fields) = (text(op, "key").as_bytes(), fields(&op["fields"]));
                json!(match op["group"].as_str() {
                    Some(group) => {
                        let group = data(group).repeat(op["repeat"].as_u64().unwrap_or(1) as usize);
                        queue.add_to(group, key, &fields, delay).await?
                    }
                    None => queue.add(key, &fields, delay).await?,
                })
            }
            "g.next" => {
                let worker = text(op, "worker");
                let job = match op["order"].as_str() {
                    None => queue.next(worker, Duration::ZERO).await?,
                    Some("fair") => queue.claim(queue.request(worker).order(Order::Fair)).await?.pop(),
                    _ => queue.claim(queue.request(worker).order(Order::Score)).await?.pop(),
                };
                self.taken(op, job).await
            }
            "g.limit" => done(queue.limit(&scope(op), &limits(op)).await?),
            "g.reset" => {
                let scope = op["scope"].is_string().then(|| scope(op));
                done(queue.reset_limits(scope.as_ref()).await?)
            }
            "g.limits" => {
                let entry = |(scope, limits): (Scope, Limits)| {
                    let name = match scope {
                        Scope::Group(group) => format!("group {}", shown(&group)),
                        Scope::Each => "each".to_owned(),
                        Scope::All => "all".to_owned(),
                    };
                    let (held, rate) = (limits.held.map(shown_bound), limits.rate.map(shown_rate));
                    (name, json!({"held": held, "rate": rate, "weight": limits.weight, "pause": limits.pause}))
                };
                Value::Object(queue.limits().await?.into_iter().map(entry).collect())
            }
            _ => {
                let mut found = Map::new();
                let mut groups = queue.groups()?;
                while let Some(group) = groups.next().await? {
                    let allowed = match group.allowed_at {
                        None => "not by time",
                        Some(at) if at.is_zero() => "now",
                        Some(_) => "later",
                    };
                    let limits = group.limits;
                    let limits = json!({
                        "held": limits.held, "rate": limits.rate.map(|rate| shown_rate(rate.into())),
                        "weight": limits.weight, "pause": limits.pause,
                    });
                    let state = json!({
                        "records": group.records, "held": group.held, "first": group.first_score.is_some(),
                        "allowed": allowed, "limits": limits,
                    });
                    found.insert(format!("group {}", shown(&group.name)), state);
                }
                Value::Object(found)
            }
        })
    }

    async fn cell(&self, on: &On<'_>, op: &Value) -> Result {
        match text(op, "op") {
            "b.fork" => return Ok(json!(self.store.branch(text(op, "branch"))?.fork(text(op, "to")).await?)),
            "b.drop" => return Ok(json!(self.store.branch(text(op, "branch"))?.drop_cells().await?)),
            "b.cells" => {
                let found = self.store.branch(text(op, "branch"))?.cells().await?;
                let mut names: Vec<String> = found.iter().map(|name| shown(name)).collect();
                names.sort();
                return Ok(json!(names));
            }
            "c.mget" => {
                let names: Vec<Vec<u8>> =
                    list(&op["names"]).iter().map(|name| data(name.as_str().expect("text"))).collect();
                let found: Vec<Option<Version<Vec<u8>>>> = match on {
                    On::Store => self.store.get_cells(names).await?,
                    On::Transaction(transaction) => transaction.get_cells(names).await?,
                    On::Reader(reader) => reader.get_cells(names).await?,
                    On::Session(session) => session.get_cells(names).await?,
                };
                return Ok(found.iter().map(|each| held(each.as_ref())).collect());
            }
            _ => {}
        }
        match op["codec"].as_str().unwrap_or("text") {
            "text" => cell_operation(self.named(on, op)?, op, |value| value.as_str().expect("text").to_owned()).await,
            "integer" => cell_operation(self.named(on, op)?, op, |value| value.as_i64().expect("a number")).await,
            "json" => cell_operation(self.named(on, op)?, op, |value| Json(value.clone())).await,
            _ => cell_operation(self.named(on, op)?, op, |value| data(value.as_str().expect("text"))).await,
        }
    }

    fn named<T>(&self, on: &On<'_>, op: &Value) -> Result<Cell<T>> {
        let name = data(text(op, "name"));
        if let Some(branch) = op["branch"].as_str() {
            return Ok(self.store.branch(branch)?.cell(name)?);
        }
        Ok(match on {
            On::Store => self.store.cell(name),
            On::Transaction(transaction) => transaction.cell(name),
            On::Reader(reader) => reader.cell(name),
            On::Session(session) => session.cell(name),
        })
    }

    async fn transaction(&self, op: &Value) -> Result {
        if text(op, "op") == "t.read" {
            return self.store.read_transaction(|transaction| self.read(transaction, op)).await;
        }
        let tried = AtomicUsize::new(0);
        let tries = number(op, "tries") as usize;
        match self.store.transaction(tries, |transaction| self.attempt(transaction, op, &tried)).await {
            Ok(results) => Ok(json!({"results": results, "tried": tried.load(SeqCst)})),
            Err(Failure::Abort) => Ok(json!({"aborted": tried.load(SeqCst)})),
            Err(failure) => Err(failure),
        }
    }

    async fn attempt(&self, transaction: Transaction, op: &Value, tried: &AtomicUsize) -> Result {
        let tried = tried.fetch_add(1, SeqCst) + 1;
        let mut results = Vec::new();
        for each in list(&op["ops"]) {
            results.push(self.perform(&On::Transaction(&transaction), each).await?);
        }
        if !op["outside"].is_null() && tried as u64 <= number(op, "outside_times") {
            self.perform(&On::Store, &op["outside"]).await?;
        }
        if op["fails"] == true { Err(Failure::Abort) } else { Ok(json!(results)) }
    }

    async fn read(&self, transaction: holdfast_client::ReadTransaction, op: &Value) -> Result {
        if !op["outside"].is_null() {
            self.perform(&On::Store, &op["outside"]).await?;
        }
        let mut results = Vec::new();
        for each in list(&op["ops"]) {
            results.push(self.perform(&On::Reader(&transaction), each).await?);
        }
        Ok(json!(results))
    }

    async fn run(&self, on: &On<'_>, op: &Value) -> Result {
        if text(op, "op") == "e.list" {
            let statuses: Vec<&str> = list(&op["statuses"]).iter().map(|each| each.as_str().expect("text")).collect();
            let found = self.store.runs(text(op, "prefix"), &statuses).await?;
            let mut names: Vec<String> = found.iter().map(|name| shown(name)).collect();
            names.sort();
            return Ok(json!(names));
        }
        let name = text(op, "run");
        let run: Run<Json<Value>> = match on {
            On::Store | On::Reader(_) => self.store.run(name),
            On::Transaction(transaction) => transaction.run(name),
            On::Session(session) => session.run(name),
        };
        Ok(match text(op, "op") {
            "e.append" => match run.append(&new_event(op)).await? {
                Append::Persisted(event) => {
                    json!({"outcome": "appended", "seq": event.run_seq, "mismatch": false, "event_id": event_id(&event.event_id)})
                }
                Append::Known { event, mismatch } => {
                    json!({"outcome": "duplicate", "seq": event.run_seq, "mismatch": mismatch, "event_id": event_id(&event.event_id)})
                }
                Append::Refused { last } => json!({"outcome": "behind", "seq": last}),
            },
            "e.events" => {
                let events = run.events(number(op, "after"), number(op, "limit") as usize).await?;
                let shown_event = |event: holdfast_client::Event<Json<Value>>| {
                    let emitted_at = shown(&event.emitted_at);
                    let attributes: Map<String, Value> =
                        event.attributes.iter().map(|(name, value)| (shown(name), json!(shown(value)))).collect();
                    json!({
                        "run": name, "seq": event.run_seq, "type": shown(&event.event_type), "data": event.data.0,
                        "key": shown(&event.key), "event_id": event_id(&event.event_id),
                        "emitted_at": if emitted_at.starts_with("at-") { &emitted_at } else { "now" },
                        "step": shown_option(event.step_id.as_deref()),
                        "logical_attempt": shown_option(event.logical_attempt_id.as_deref()),
                        "ref": shown_option(event.engine_run_ref.as_deref()),
                        "plan": shown_option(event.plan_version.as_deref()), "attributes": attributes,
                    })
                };
                events.into_iter().map(shown_event).collect()
            }
            "e.snapshot" => run.snapshot().await?.map_or(Value::Null, shown_snapshot),
            "e.project" => shown_snapshot(match op["up_to"].as_u64() {
                None => run.project().await?,
                Some(up_to) => run.project_up_to(up_to).await?,
            }),
            "e.fold" => {
                let types = run.fold(Vec::new(), |mut types, event| {
                    types.push(shown(&event.event_type));
                    types
                });
                json!(types.await?)
            }
            "e.lag" => json!(run.lag(number(op, "position")).await?.events),
            "e.info" => {
                run.info().await?.map_or(Value::Null, |info| json!({"status": info.status, "events": info.events}))
            }
            _ => json!(run.delete().await?),
        })
    }

    async fn state(&self, on: &On<'_>, op: &Value) -> Result {
        let name = text(op, "state");
        let state: Arc<dyn StateBackend<Vec<u8>>> = match on {
            _ if name.starts_with("memory:") => {
                Arc::new(self.kept.lock().await.memory.entry(name.to_owned()).or_default().clone())
            }
            On::Store | On::Reader(_) => Arc::new(self.store.exactly_once_state(name)),
            On::Transaction(transaction) => Arc::new(transaction.exactly_once_state(name)),
            On::Session(session) => Arc::new(session.exactly_once_state(name)),
        };
        let key = &*data(op["key"].as_str().unwrap_or_default());
        let position = op["position"].as_str().map(data);
        let position = position.as_deref();
        let version = &op["version"];
        let merges = op["merges"] == true;
        Ok(match text(op, "op") {
            "s.put" => {
                let value = data(text(op, "value"));
                applied(match op["ordered"] == true {
                    true => state.put_ordered(key, value, ordered(version)).await?,
                    false => state.put(key, value, ordered(version).into()).await?,
                })
            }
            "s.add" => {
                let number = op["number"].as_i64().expect("a number");
                applied(match op["ordered"] == true {
                    true => state.add_ordered(key, ordered(version), number).await?,
                    false => state.add(key, ordered(version).into(), number).await?,
                })
            }
            "s.seal" => json!(state.seal(key, ordered(version)).await?),
            "s.get" => held_state(state.get(key).await?),
            "s.mget" => {
                let keys: Vec<Vec<u8>> =
                    list(&op["keys"]).iter().map(|key| data(key.as_str().expect("text"))).collect();
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                state.mget(&keys).await?.into_iter().map(held_state).collect()
            }
            "s.snapshot" => {
                let blob = state.snapshot(position).await?;
                let shown = json!({"_blob": hex(&blob)});
                self.kept.lock().await.snapshots.insert(number(op, "slot"), blob);
                shown
            }
            "s.take" => {
                let blob = match op["_blob"].as_str() {
                    Some(blob) => data(&format!("hex:{blob}")),
                    None => self.kept.lock().await.snapshots[&number(op, "slot")].clone(),
                };
                let position = if merges { state.merge(&blob).await? } else { state.restore(&blob).await? };
                json!({"position": shown_option(position.as_deref())})
            }
            "s.checkpoint" => json!(state.checkpoint(key, position).await?),
            _ => {
                let restored =
                    if merges { state.merge_checkpoint(key).await? } else { state.restore_checkpoint(key).await? };
                restored.map_or(Value::Null, |restored| json!({"position": shown_option(restored.position.as_deref())}))
            }
        })
    }

    async fn node(&self, op: &Value) -> Result {
        let name = text(op, "node");
        let node = {
            let mut kept = self.kept.lock().await;
            if op["again"] == true || !kept.nodes.contains_key(name) {
                let backend: Arc<dyn StateBackend<NodeState<Value, Value>>> = match name.starts_with("memory:") {
                    true => Arc::new(kept.memory_of_nodes.entry(name.to_owned()).or_default().clone()),
                    false => {
                        let state: ExactlyOnceState<NodeState<Value, Value>> =
                            self.store.exactly_once_state(format!("{name}/"));
                        Arc::new(state)
                    }
                };
                kept.nodes.insert(name.to_owned(), StatefulNode::new(name, backend));
            }
            kept.nodes[name].clone()
        };
        match text(op, "op") {
            "n.process" => {
                let update = |state: Option<Value>| {
                    let state = state.unwrap_or(json!({"count": 0, "total": 0}));
                    let part = |name: &str| state[name].as_i64().expect("a number");
                    let (count, total) = (part("count") + 1, part("total") + op["amount"].as_i64().expect("a number"));
                    let mut outputs = vec![
                        json!({"count": count, "key": op["key"]}),
                        json!(format!("the total is {total}")),
                        Value::Null,
                    ];
                    outputs.truncate(number(op, "outputs") as usize);
                    (json!({"count": count, "total": total}), outputs)
                };
                let version: StateVersion = ordered(&op["version"]).into();
                let outputs = node.process(data(text(op, "key")), version, update).await?;
                let shown = |outputs: Vec<holdfast_client::Output<Value>>| -> Value {
                    outputs.into_iter().map(|output| json!([output.id, output.value])).collect()
                };
                Ok(outputs.map_or(Value::Null, shown))
            }
            "n.checkpoint" => Ok(done(node.checkpoint(data(text(op, "position"))).await?)),
            _ => Ok(shown_option(node.recover().await?.as_deref())),
        }
    }

    async fn session(&self, op: &Value) -> Result {
        let sessions = self.store.sessions();
        let session = self.kept.lock().await.sessions.get(&op["slot"].as_u64().unwrap_or_default()).cloned();
        let session = || session.as_ref().expect("a session of this slot");
        let command = || {
            let mut command = Cmd::new();
            list(&op["words"]).iter().for_each(|word| _ = command.arg(data(word.as_str().expect("text"))));
            command
        };
        Ok(match text(op, "op") {
            "v.open" => {
                let capabilities = op["capabilities"].as_object().expect("a map").iter();
                let capabilities =
                    capabilities.map(|(name, value)| (name.clone(), value.as_str().expect("text").to_owned()));
                let opened = sessions
                    .open(&SessionConfig { capabilities: capabilities.collect(), ..SessionConfig::default() })
                    .await?;
                let result = json!({"_id": shown(opened.id())});
                self.kept.lock().await.sessions.insert(number(op, "slot"), opened);
                result
            }
            "v.resume" => {
                let retry_for = SessionConfig::default().retry_for;
                let resumed = sessions.resume(text(op, "_id"), number(op, "next"), retry_for).await?;
                let following = resumed.next_request_id();
                self.kept.lock().await.sessions.insert(number(op, "slot"), resumed);
                json!(following)
            }
            "v.do" => return self.perform(&On::Session(session()), &op["inner"]).await,
            "v.call" => shown_reply(session().call::<Reply>(&command()).await?),
            "v.prepare" => {
                let request = match op["request_id"].as_u64() {
                    None => session().prepare(&command()),
                    Some(id) => session().prepare_as(id, &command())?,
                };
                let id = request.id();
                self.kept.lock().await.requests.insert(number(op, "request"), request);
                json!(id)
            }
            "v.send" => {
                let (id, mut kept) = (number(op, "request"), self.kept.lock().await);
                if let Some(request) = kept.requests.remove(&id) {
                    let reply = match request.send::<Reply>().await {
                        Ok(reply) => shown_reply(reply),
                        Err(error) => failed(&error),
                    };
                    kept.replies.insert(id, reply);
                }
                kept.replies.get(&id).cloned().unwrap_or(json!("no request"))
            }
            "v.push" => {
                let (id, payload) = (text(op, "_id"), data(text(op, "payload")));
                json!(match op["through"].as_u64() {
                    None => sessions.push(id, payload).await?,
                    Some(through) => {
                        let through = self.kept.lock().await.sessions[&through].clone();
                        through.push(id, payload).await?
                    }
                })
            }
            "v.pending" => {
                let found = session().pending(number(op, "after"), number(op, "limit") as usize).await?;
                found.iter().map(|each| json!([each.id, shown(&each.payload)])).collect()
            }
            "v.ack" => json!(session().ack(number(op, "id")).await?),
            "v.info" => sessions.info(text(op, "_id")).await?.map_or(Value::Null, |info| {
                json!({
                    "low": info.low, "replies": info.replies, "pending": info.pending, "last_id": info.last_id,
                    "attached": info.attached, "capabilities": info.capabilities, "ttl": info.ttl.as_millis() as u64,
                })
            }),
            "v.close" => json!(session().close().await?),
            "v.ids" => {
                let mut ids: Vec<String> = sessions.ids().await?.iter().map(|id| shown(id)).collect();
                ids.sort();
                json!({"_ids": ids})
            }
            _ => {
                sleep(Duration::from_millis(2)).await; // what was sent in this very millisecond is not sent again
                let now = SystemTime::UNIX_EPOCH.elapsed().expect("a clock") + HOUR;
                let before = now.as_millis() as u64;
                let has = sessions.has_retry(before).await?;
                let found = sessions.retry(before, 1000).await?;
                let rows = found.iter().map(|each| json!([shown(&each.session_id), each.id, shown(&each.payload)]));
                json!({"has": has, "_rows": rows.collect::<Value>()})
            }
        })
    }
}

async fn cell_operation<T>(cell: Cell<T>, op: &Value, value: impl Fn(&Value) -> T) -> Result
where
    T: Encode + holdfast_client::redis::FromRedisValue + Shown,
{
    let ttl = millis(&op["ttl"]);
    let value = || value(&op["value"]);
    Ok(match text(op, "op") {
        "c.init" => json!(cell.init(&value()).await?),
        "c.set" => json!(match ttl {
            None => cell.set(&value()).await?,
            Some(ttl) => cell.set_for(&value(), ttl).await?,
        }),
        "c.cas" => {
            let expected = number(op, "expected");
            match ttl {
                None => swapped(cell.cas(expected, &value()).await?),
                Some(ttl) => swapped(cell.cas_for(expected, &value(), ttl).await?),
            }
        }
        "c.get" => held(cell.get().await?.as_ref()),
        "c.get_version" => held(cell.get_version(number(op, "version")).await?.as_ref()),
        "c.wait_after" => held(cell.wait_after(number(op, "version"), Duration::from_millis(1)).await?.as_ref()),
        "c.history" => {
            let versions = cell.history(op["before"].as_u64(), number(op, "limit") as usize).await?;
            versions.iter().map(|version| held(Some(version))).collect()
        }
        "c.delete" => json!(cell.delete().await?),
        "c.delete_if" => json!(cell.delete_if(number(op, "version")).await?),
        other => panic!("no operation {other}"),
    })
}

/// A typed value in the neutral form.
trait Shown {
    fn shown(&self) -> Value;
}

impl Shown for String {
    fn shown(&self) -> Value {
        json!(self)
    }
}

impl Shown for i64 {
    fn shown(&self) -> Value {
        json!(self)
    }
}

impl Shown for Json<Value> {
    fn shown(&self) -> Value {
        self.0.clone()
    }
}

impl Shown for Vec<u8> {
    fn shown(&self) -> Value {
        json!(shown(self))
    }
}

fn held<T: Shown>(version: Option<&Version<T>>) -> Value {
    version.map_or(Value::Null, |version| json!({"value": version.value.shown(), "version": version.version}))
}

fn held_state(held: Option<(Vec<u8>, StateVersion)>) -> Value {
    held.map_or(Value::Null, |(value, version)| json!({"value": shown(&value), "version": version.to_string()}))
}

fn swapped<T: Shown>(swap: Swap<T>) -> Value {
    match swap {
        Swap::Done(version) => json!({"done": version}),
        Swap::Refused(None) => json!({"current": null}),
        Swap::Refused(Some((value, version))) => json!({"current": [value.shown(), version]}),
    }
}

fn applied(applied: Applied) -> Value {
    json!(match applied {
        Applied::Applied => "applied",
        Applied::Duplicate => "duplicate",
        Applied::Mismatch => "mismatch",
        Applied::Stale => "stale",
        Applied::Buffered => "buffered",
    })
}

fn ordered(version: &Value) -> OrderedVersion {
    match version.as_u64() {
        Some(number) => OrderedVersion::Number(number),
        None => {
            let [epoch, round] = [0, 1].map(|part| version[part].as_u64().expect("a number"));
            OrderedVersion::Pair(epoch, round)
        }
    }
}

fn new_event(op: &Value) -> NewEvent<Json<Value>> {
    let mut event = NewEvent::new(text(op, "type"), Json(op["data"].clone()));
    for (name, set) in [
        ("key", NewEvent::key as fn(_, String) -> _),
        ("event_id", NewEvent::event_id),
        ("step", NewEvent::step_id),
        ("logical_attempt", NewEvent::logical_attempt_id),
        ("emitted_at", NewEvent::emitted_at),
        ("ref", NewEvent::engine_run_ref),
        ("plan", NewEvent::plan_version),
    ] {
        if let Some(value) = op[name].as_str() {
            event = set(event, value.to_owned());
        }
    }
    if let Some(last) = op["if_last"].as_u64() {
        event = event.if_last(last);
    }
    for (name, value) in op["attributes"].as_object().into_iter().flatten() {
        event = event.attribute(name, data(value.as_str().expect("text")));
    }
    event
}

fn event_id(id: &[u8]) -> String {
    let id = shown(id);
    if id.starts_with("ev-") { id } else { "random".to_owned() }
}

fn shown_snapshot(snapshot: Snapshot<Json<Value>>) -> Value {
    let steps = snapshot.steps.iter().map(|(name, step)| {
        let state = json!({
            "status": step.status, "attempts": step.attempts, "data": step.data.0, "started": step.started_at_ms.is_some(),
        });
        (shown(name), state)
    });
    json!({
        "status": snapshot.status, "seq": snapshot.last_event_seq, "data": snapshot.data.map(|data| data.0),
        "started": snapshot.started_at_ms.is_some(), "updated": snapshot.updated_at_ms.is_some(),
        "steps": steps.collect::<Map<_, _>>(),
    })
}

fn shown_reply(reply: Reply) -> Value {
    match reply {
        Reply::Nil => Value::Null,
        Reply::Int(number) => json!(number.to_string()),
        Reply::BulkString(bytes) => json!(shown(&bytes)),
        Reply::SimpleString(text) => json!(text),
        Reply::Okay => json!("OK"),
        Reply::Array(parts) => parts.into_iter().map(shown_reply).collect(),
        other => panic!("a reply of another form: {other:?}"),
    }
}

fn failed(error: &Error) -> Value {
    json!({"error": kind(error), "_message": format!("{error:?}")})
}

/// The kinds of errors. A wrong argument and the server's ERR are one: nothing was changed.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::WrongType(_) => "wrong-type",
        Error::Conflict(_) => "conflict",
        Error::Refused(cause) if cause.code() == Some("CONFLICT") => "conflict",
        Error::NoSession(_) => "no-session",
        Error::Mismatch(_) => "mismatch",
        Error::Evicted(_) => "evicted",
        Error::IndexDiffers(_) => "refused",
        Error::Lost(_) => "lost",
        Error::SessionLost(_) => "session-lost",
        Error::Closed => "closed",
        Error::Reply(_) => "reply",
        Error::Unavailable(_) | Error::Unanswered { .. } => "unavailable",
        _ => "refused",
    }
}

fn scope(op: &Value) -> Scope {
    match text(op, "scope") {
        "group" => Scope::Group(data(text(op, "group"))),
        "each" => Scope::Each,
        _ => Scope::All,
    }
}

fn limits(op: &Value) -> Limits {
    let rate = |numbers: &[Value]| {
        let number = |at: usize| numbers.get(at).and_then(Value::as_u64);
        let takes = number(0).expect("a rate has takes");
        let per = Duration::from_millis(number(1).expect("a rate has milliseconds"));
        Rate { takes, per, burst: number(2).unwrap_or(takes) }
    };
    Limits {
        held: bound(&op["held"], |value| value.as_u64().expect("a number")),
        rate: bound(&op["rate"], |value| rate(list(value))),
        weight: op["weight"].as_f64(),
        pause: op["pause"].as_bool(),
    }
}

fn bound<T>(value: &Value, read: impl Fn(&Value) -> T) -> Option<Bound<T>> {
    match value.as_str() {
        None if value.is_null() => None,
        None => Some(Bound::Is(read(value))),
        Some("none") => Some(Bound::None),
        Some(_) => Some(Bound::Default),
    }
}

fn shown_bound(bound: Bound<u64>) -> Value {
    match bound {
        Bound::Is(max) => json!(max),
        Bound::None => json!("none"),
        Bound::Default => Value::Null,
    }
}

fn shown_rate(bound: Bound<Rate>) -> Value {
    match bound {
        Bound::Is(Rate { takes, per, burst }) => json!([takes, per.as_millis() as u64, burst]),
        Bound::None => json!("none"),
        Bound::Default => Value::Null,
    }
}

fn shown_fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Requeued => "requeued",
        Fate::Exhausted => "exhausted",
    }
}

fn filters(op: &Value) -> Vec<Filter> {
    let filter = |each: &Value| {
        let (field, value) = (text(each, "field"), each["value"].as_str().map(data).unwrap_or_default());
        let values = || list(&each["values"]).iter().map(|value| data(value.as_str().expect("text")));
        match text(each, "op") {
            "eq" => Filter::eq(field, value),
            "ne" => Filter::ne(field, value),
            "lt" => Filter::lt(field, value),
            "le" => Filter::le(field, value),
            "gt" => Filter::gt(field, value),
            "ge" => Filter::ge(field, value),
            "in" => Filter::is_in(field, values()),
            _ => Filter::not_in(field, values()),
        }
    };
    list(&op["filters"]).iter().map(filter).collect()
}

fn exchange(op: &Value) -> Exchange {
    let names = |list_: &Value| list(list_).iter().map(|name| name.as_str().expect("text").into()).collect();
    Exchange {
        expected: fields(&op["if"]),
        absent: names(&op["absent"]),
        set: fields(&op["set"]),
        remove: names(&op["remove"]),
        ttl: millis(&op["ttl"]),
        ..Exchange::new()
    }
}

fn fields(fields: &Value) -> Fields {
    let pairs = fields.as_object().into_iter().flatten();
    pairs.map(|(name, value)| (name.clone().into_bytes(), value.as_str().map(data))).collect()
}

fn shown_fields(fields: &Fields) -> Value {
    Value::Object(fields.iter().map(|(name, value)| (shown(name), json!(shown(value)))).collect())
}

fn data(text: &str) -> Vec<u8> {
    let Some(digits) = text.strip_prefix("hex:") else { return text.as_bytes().to_vec() };
    let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect()
}

fn shown(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("hex:{}", hex(bytes)),
    }
}

fn shown_option(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| json!(shown(bytes)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text<'a>(op: &'a Value, name: &str) -> &'a str {
    op[name].as_str().unwrap_or_else(|| panic!("{name} is missing in {op}"))
}

fn number(op: &Value, name: &str) -> u64 {
    op[name].as_u64().unwrap_or_else(|| panic!("{name} is missing in {op}"))
}

fn list(values: &Value) -> &[Value] {
    values.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn millis(value: &Value) -> Option<Duration> {
    value.as_u64().map(Duration::from_millis)
}

fn done((): ()) -> Value {
    Value::Null
}
