//! Jobs of a queue: which worker holds one, what the holder may write, and that no other worker can. A store over a
//! plain Redis says that it cannot claim; what else a queue does works there too.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_client::{
    Error, Exchange, Fate, Fields, Job, JobFields, JobStates, Queue, QueueConfig, StateStore, Store,
};
use tokio::task::JoinSet;

use crate::places::on_holdfast;

const LONG: Duration = Duration::from_secs(60);
const AT_ONCE: Duration = Duration::ZERO;

/// Runs a test with a queue.
fn with_queue(config: QueueConfig, test: impl AsyncFn(&Queue, &Store)) {
    on_holdfast(async |_, store| {
        let queue = Queue::new(&store, config.clone());
        for index in config.indexes.iter() {
            queue.create_index(index, &format!("{index}:")).await.unwrap();
        }
        test(&queue, &store).await;
    });
}

fn due() -> QueueConfig {
    QueueConfig::new(["due"])
}

async fn add(queue: &Queue, key: &str) {
    assert!(queue.add(key.as_bytes(), &Fields::new(), AT_ONCE).await.unwrap());
}

async fn next(queue: &Queue) -> Job {
    queue.next("w", LONG).await.unwrap().expect("there is a job")
}

async fn record(store: &Store, key: &str) -> Fields {
    store.get(key.as_bytes()).await.unwrap().unwrap_or_default().fields
}

/// Every write of a job that is not this worker's any more is refused, and changes nothing.
async fn assert_lost(store: &Store, job: &Job) {
    let before = store.get(&job.key).await.unwrap();
    let fields = Fields::new().with("late", "yes");
    for (i, written) in [
        job.renew(LONG).await,
        job.complete(&fields).await,
        job.update(&Exchange::new().set("late", "yes")).await.map(drop),
    ]
    .into_iter()
    .enumerate()
    {
        let Err(Error::Lost(lost)) = written else { panic!("write {i}: {written:?}") };
        assert_eq!((&lost.key, lost.token), (&job.key, job.token));
        let current = before.clone().unwrap_or_default().fields;
        assert_eq!(lost.current.text("state"), current.text("state"));
        assert_eq!(lost.current.text("attempt"), current.text("attempt"));
    }
    assert_eq!(store.get(&job.key).await.unwrap(), before);
}

#[test]
fn a_job_is_claimed_renewed_changed_and_completed() {
    let hour = Duration::from_secs(3600);
    with_queue(QueueConfig { completed_ttl: Some(hour), ..due() }, async |queue, store| {
        queue.add(b"due:1", &Fields::new().with("image", "cat.png"), AT_ONCE).await.unwrap();
        let added = record(store, "due:1").await;
        assert_eq!((added.text("state"), added.text("attempt")), (Some("pending"), None));
        let job = next(queue).await;
        assert_eq!((&*job.key, job.token, job.fields.text("image")), (&b"due:1"[..], 1, Some("cat.png")));
        assert_eq!(job.score as i64, added.number("run_at").unwrap());
        let claimed = record(store, "due:1").await;
        assert_eq!(claimed, job.fields);
        assert_eq!((claimed.text("state"), claimed.text("worker")), (Some("running"), Some("w")));
        let lease_ms = claimed.number("run_at").unwrap() - added.number("run_at").unwrap();
        assert!(lease_ms >= 30_000, "{lease_ms}");

        job.renew(hour).await.unwrap();
        let renewed = record(store, "due:1").await.number("run_at").unwrap();
        assert!(renewed - claimed.number("run_at").unwrap() >= 3_500_000 - 30_000);
        assert!(job.update(&Exchange::new().set("current_step", 1)).await.unwrap().applied);
        let own = Exchange::new().expected("current_step", 7).set("current_step", 8);
        assert!(!job.update(&own).await.unwrap().applied, "its own condition does not hold, but the job is not lost");
        assert_eq!(record(store, "due:1").await.number("current_step"), Some(1));

        job.complete(&Fields::new().with("result", "small.png")).await.unwrap();
        let done = store.get(b"due:1").await.unwrap().unwrap();
        assert_eq!((done.fields.text("state"), done.fields.text("result")), (Some("completed"), Some("small.png")));
        assert!(done.ttl.is_some_and(|ttl| ttl <= hour));
        assert!(queue.next("w", AT_ONCE).await.unwrap().is_none());
        assert!(!queue.add(b"due:1", &Fields::new(), AT_ONCE).await.unwrap(), "a job that has ended is not new");
    });
}

#[test]
fn a_job_whose_lease_has_ended_is_anothers() {
    with_queue(QueueConfig { lease: Duration::from_millis(1), ..due() }, async |queue, store| {
        add(queue, "due:1").await;
        let late = next(queue).await;
        let held = next(&Queue::new(store, due())).await;
        assert_eq!((late.token, held.token), (1, 2));
        assert_lost(store, &late).await;
        assert!(matches!(late.fail(&Fields::new()).await, Err(Error::Lost(_))));
        assert!(matches!(late.retry(AT_ONCE, &Fields::new()).await, Err(Error::Lost(_))));
        held.complete(&Fields::new()).await.unwrap();
        assert_lost(store, &late).await;
        store.delete(b"due:1").await.unwrap();
        assert_lost(store, &late).await;
        assert_eq!(
            late.complete(&Fields::new()).await.unwrap_err().to_string(),
            "attempt 1 of the job due:1 is over: it is gone"
        );
    });
}

/// Its attempt is still the worker's: the state tells.
#[test]
fn a_dead_letter_is_not_revived_by_its_last_worker() {
    let config = QueueConfig { lease: Duration::from_millis(1), attempts_max: Some(1), ..due() };
    with_queue(config, async |queue, store| {
        add(queue, "due:1").await;
        let late = next(queue).await;
        while record(store, "due:1").await.text("state") != Some("dead") {
            assert!(queue.next("w", AT_ONCE).await.unwrap().is_none());
        }
        assert_lost(store, &late).await;
        late.fail(&Fields::new()).await.expect("it is dead already");
        assert_eq!(late.retry(LONG, &Fields::new()).await.unwrap(), Fate::Exhausted);
    });
}

#[test]
fn a_job_that_fails_is_tried_again_up_to_a_limit() {
    with_queue(QueueConfig { attempts_max: Some(2), ..due() }, async |queue, store| {
        add(queue, "due:1").await;
        let first = next(queue).await;
        let error = Fields::new().with("error", "no network");
        assert_eq!(first.retry(LONG, &error).await.unwrap(), Fate::Requeued);
        assert!(queue.next("w", AT_ONCE).await.unwrap().is_none(), "it waits for its time");
        let waiting = record(store, "due:1").await;
        assert_eq!((waiting.text("state"), waiting.text("error")), (Some("pending"), Some("no network")));
        assert!(matches!(first.complete(&Fields::new()).await, Err(Error::Lost(_))));
        store.set_field(b"due:1", b"run_at", Some(b"0")).await.unwrap();
        let last = next(queue).await;
        assert_eq!(last.token, 2);
        assert_eq!(last.retry(LONG, &error).await.unwrap(), Fate::Exhausted);
        assert_eq!(record(store, "due:1").await.text("state"), Some("dead"));
        add(queue, "due:2").await;
        next(queue).await.fail(&error).await.unwrap();
        assert_eq!(record(store, "due:2").await.text("state"), Some("dead"));
        assert!(queue.next("w", AT_ONCE).await.unwrap().is_none());
    });
}

/// A worker repeats what it got no answer to.
#[test]
fn ending_a_job_twice_is_the_same_as_once() {
    with_queue(due(), async |queue, store| {
        for key in ["due:a", "due:b", "due:c"] {
            add(queue, key).await;
        }
        let jobs = queue.claim(queue.request("w").count(3)).await.unwrap();
        let [first, again] = ["1", "2"].map(|by| Fields::new().with("by", by));
        for fields in [&first, &again] {
            jobs[0].complete(fields).await.unwrap();
            jobs[1].fail(fields).await.unwrap();
            assert_eq!(jobs[2].retry(LONG, fields).await.unwrap(), Fate::Requeued);
        }
        for (job, state) in jobs.iter().zip(["completed", "dead", "pending"]) {
            let key = str::from_utf8(&job.key).unwrap();
            let record = record(store, key).await;
            assert_eq!((record.text("state"), record.text("by")), (Some(state), Some("1")), "{key}");
            assert!(matches!(job.renew(LONG).await, Err(Error::Lost(_))));
        }
    });
}

#[test]
fn urgent_jobs_come_first_and_each_at_its_time() {
    with_queue(QueueConfig::new(["high", "low"]), async |queue, _| {
        queue.add(b"high:later", &Fields::new(), LONG).await.unwrap();
        queue.add(b"low:soon", &Fields::new(), Duration::from_millis(500)).await.unwrap();
        add(queue, "low:now").await;
        add(queue, "high:now").await;
        for key in ["high:now", "low:now", "low:soon"] {
            assert_eq!(next(queue).await.key, key.as_bytes());
        }
        assert!(queue.next("w", AT_ONCE).await.unwrap().is_none());
    });
}

#[test]
fn names_are_the_programs_choice_and_fields_the_workers() {
    let names = ["s", "at", "n", "w"].map(String::from);
    let [state, run_at, attempt, worker] = names;
    let fields = JobFields { state, run_at, attempt, worker };
    let [pending, running, completed, dead] = ["P", "R", "C", "D"].map(String::from);
    let states = JobStates { pending, running, completed, dead };
    with_queue(QueueConfig { fields, states, ..due() }, async |queue, store| {
        let input = Fields::new().with("image", "cat.png").with("tenant", "acme");
        queue.add(b"due:1", &input, AT_ONCE).await.unwrap();
        let other = queue.request("w").only("tenant", ["other"]);
        assert!(queue.claim(other).await.unwrap().is_empty());
        let jobs = queue.claim(queue.request("w").only("tenant", ["acme"]).fields(["image"])).await.unwrap();
        assert_eq!(jobs[0].fields, Fields::new().with("image", "cat.png").with("n", 1), "the token comes too");
        jobs[0].complete(&Fields::new()).await.unwrap();
        assert_eq!(record(store, "due:1").await.text("s"), Some("C"));
    });
}

#[test]
fn an_index_is_made_once() {
    with_queue(due(), async |queue, store| {
        add(queue, "due:1").await;
        assert!(!queue.create_index("due", "due:").await.unwrap());
        next(queue).await;
        store.set_field(b"taken", b"a", Some(b"b")).await.unwrap();
        assert!(matches!(queue.create_index("taken", "t:").await, Err(Error::Refused(_))));
    });
}

#[test]
fn workers_share_jobs_without_doing_one_twice() {
    const JOBS: usize = 200;
    with_queue(due(), async |queue, _| {
        let mut workers = JoinSet::new();
        for number in 0..6 {
            let queue = queue.clone();
            workers.spawn(async move {
                let mut done = Vec::new();
                while let Some(job) = queue.next(&format!("w-{number}"), Duration::from_secs(2)).await.unwrap() {
                    job.complete(&Fields::new()).await.unwrap();
                    done.push((job.key, job.token));
                }
                done
            });
        }
        for number in 0..JOBS {
            add(queue, &format!("due:{number}")).await;
        }
        let done = workers.join_all().await.concat();
        assert_eq!(done.len(), JOBS);
        let done: BTreeMap<Vec<u8>, i64> = done.into_iter().collect();
        assert_eq!(done.len(), JOBS);
        assert!(done.values().all(|token| *token == 1));
    });
}

#[test]
fn a_job_is_held_through_the_death_of_the_server() {
    let dir = wire::fresh_dir();
    let server = wire::Server::start(&dir, &[]);
    let address = server.address();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::connect(&format!("redis://{address}")).await.unwrap();
        let queue = Queue::new(&store, QueueConfig { lease: Duration::from_secs(3600), ..due() });
        queue.create_index("due", "due:").await.unwrap();
        add(&queue, "due:1").await;
        add(&queue, "due:2").await;
        let job = next(&queue).await;
        server.kill();
        let server = wire::Server::launch(address, &dir, |_| {});
        let mut other = queue.next("w", LONG).await;
        while other.as_ref().is_err_and(Error::is_temporary) {
            other = queue.next("w", LONG).await;
        }
        let other = other.unwrap().expect("there is a job");
        assert_eq!((&*job.key, &*other.key), (&b"due:1"[..], &b"due:2"[..]), "the first one is still held");
        let mut completed = job.complete(&Fields::new()).await;
        while completed.as_ref().is_err_and(Error::is_temporary) {
            completed = job.complete(&Fields::new()).await;
        }
        completed.unwrap();
        assert_eq!(record(&store, "due:1").await.text("state"), Some("completed"));
        drop(server);
    });
    std::fs::remove_dir_all(dir).unwrap();
}
