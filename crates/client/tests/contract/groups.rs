//! A queue with groups: caps, rates, turns and pauses, with several workers; the limits that are set, and the groups as
//! they fare. A store over a plain Redis says that it has none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use holdfast_client::{
    Bound, Claim, Error, Exchange, Fields, GroupLimits, GroupState, IndexDefinition, Job, JobFields, JobStates, Limits,
    OnDifference, Order, Queue, QueueConfig, Rate, Scope, StateStore, Store, redis,
};
use tokio::task::JoinSet;

use crate::places::{on_holdfast, until_blocked};

const LONG: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const AT_ONCE: Duration = Duration::ZERO;

/// A queue with groups by tenant.
fn with_groups(test: impl AsyncFn(&Queue, &Store)) {
    on_holdfast(async |_, store| {
        let queue = Queue::new(&store, config(["due"]));
        queue.create_index("due", "job:").await.unwrap();
        test(&queue, &store).await;
    });
}

fn config<const N: usize>(indexes: [&str; N]) -> QueueConfig {
    QueueConfig { group_by: Some("tenant".into()), ..QueueConfig::new(indexes) }
}

async fn add<const N: usize>(queue: &Queue, group: &str, numbers: [usize; N]) {
    for number in numbers {
        let key = format!("job:{group}:{number}");
        assert!(queue.add_to(group, key.as_bytes(), &Fields::new(), AT_ONCE).await.unwrap());
    }
}

/// All jobs that may be claimed now.
async fn claim_all(queue: &Queue) -> Vec<Job> {
    queue.claim(queue.request("w").count(100)).await.unwrap()
}

/// How many jobs of each group may be claimed now.
async fn claim_counts(queue: &Queue) -> Vec<(String, usize)> {
    counts(&claim_all(queue).await)
}

fn counts(jobs: &[Job]) -> Vec<(String, usize)> {
    let mut counts = BTreeMap::new();
    jobs.iter().for_each(|job| *counts.entry(group_of(job)).or_default() += 1);
    counts.into_iter().collect()
}

fn group_of(job: &Job) -> String {
    job.fields.text("tenant").unwrap().to_owned()
}

fn expected(counts: &[(&str, usize)]) -> Vec<(String, usize)> {
    counts.iter().map(|(group, count)| ((*group).to_owned(), *count)).collect()
}

async fn group(queue: &Queue, name: impl AsRef<[u8]>) -> GroupState {
    let groups = queue.groups().unwrap().collect().await.unwrap();
    groups.into_iter().find(|group| group.name == name.as_ref()).expect("the group is there")
}

/// The next job of a worker that waits in the background.
fn wait_for_job(queue: &Queue) -> tokio::task::JoinHandle<Job> {
    let queue = queue.clone();
    tokio::spawn(async move { queue.next("waiting", LONG).await.unwrap().expect("there is a job") })
}

#[test]
fn a_cap_holds_with_several_workers() {
    const JOBS: usize = 20;
    with_groups(async |queue, _| {
        queue.limit(&Scope::Each, &Limits::new().held(2)).await.unwrap();
        for tenant in ["acme", "bolt"] {
            for number in 0..JOBS {
                add(queue, tenant, [number]).await;
            }
        }
        let running: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let done: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let mut workers = JoinSet::new();
        for number in 0..6 {
            let (queue, running, done) = (queue.clone(), Arc::clone(&running), Arc::clone(&done));
            workers.spawn(async move {
                while done.lock().unwrap().values().sum::<usize>() < 2 * JOBS {
                    let job = queue.next(&format!("w-{number}"), Duration::from_millis(50)).await.unwrap();
                    let Some(job) = job else { continue };
                    {
                        let mut running = running.lock().unwrap();
                        let count = running.entry(group_of(&job)).or_default();
                        *count += 1;
                        assert!(*count <= 2, "{count} jobs of {} run", group_of(&job));
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    // Before the server knows it: it may give the next one at once.
                    *running.lock().unwrap().get_mut(&group_of(&job)).unwrap() -= 1;
                    job.complete(&Fields::new()).await.unwrap();
                    *done.lock().unwrap().entry(group_of(&job)).or_default() += 1;
                }
            });
        }
        workers.join_all().await;
        let done = done.lock().unwrap().clone();
        assert_eq!(done.into_iter().collect::<Vec<_>>(), expected(&[("acme", JOBS), ("bolt", JOBS)]));
    });
}

#[test]
fn a_cap_is_reached_and_a_job_that_ends_makes_room() {
    with_groups(async |queue, store| {
        queue.limit(&Scope::Each, &Limits::new().held(2)).await.unwrap();
        queue.limit(&Scope::group("bolt"), &Limits::new().held(1)).await.unwrap();
        queue.limit(&Scope::group("free"), &Limits::new().held(Bound::None)).await.unwrap();
        for tenant in ["acme", "bolt", "free"] {
            add(queue, tenant, [1, 2, 3, 4]).await;
        }
        let jobs = claim_all(queue).await;
        assert_eq!(counts(&jobs), expected(&[("acme", 2), ("bolt", 1), ("free", 4)]));
        assert_eq!(claim_counts(queue).await, []);

        let first = |tenant| jobs.iter().find(|job| group_of(job) == tenant).unwrap();
        first("acme").complete(&Fields::new()).await.unwrap();
        first("bolt").retry(AT_ONCE, &Fields::new()).await.unwrap();
        assert_eq!(claim_counts(queue).await, expected(&[("acme", 1), ("bolt", 1)]));
        queue.limit(&Scope::group("bolt"), &Limits::new().held(Bound::Default)).await.unwrap();
        assert_eq!(claim_counts(queue).await, expected(&[("bolt", 1)]));
        // A lease that has run out: the job counts already, and may be claimed again.
        let ended = Exchange::new().expected("state", "running").stamp("run_at", -1);
        assert!(store.exchange(&first("free").key, &ended).await.unwrap().applied);
        assert_eq!(claim_counts(queue).await, expected(&[("free", 1)]));
    });
}

#[test]
fn a_cap_for_all() {
    with_groups(async |queue, _| {
        queue.limit(&Scope::All, &Limits::new().held(3)).await.unwrap();
        add(queue, "acme", [1, 2, 3]).await;
        add(queue, "bolt", [1, 2, 3]).await;
        assert_eq!(claim_all(queue).await.len(), 3);
        queue.limit(&Scope::All, &Limits::new().held(Bound::None)).await.unwrap();
        assert_eq!(claim_all(queue).await.len(), 3);
    });
}

#[test]
fn a_paused_group_gives_nothing_and_then_to_the_worker_that_waits() {
    with_groups(async |queue, store| {
        let acme = Scope::group("acme");
        queue.limit(&acme, &Limits::new().pause(true)).await.unwrap();
        add(queue, "acme", [1]).await;
        add(queue, "bolt", [1]).await;
        assert_eq!(claim_counts(queue).await, expected(&[("bolt", 1)]));
        let waiting = wait_for_job(queue);
        until_blocked(store, 1).await;
        let state = group(queue, "acme").await;
        assert!(state.limits.pause && state.allowed_at.is_none() && !waiting.is_finished());
        queue.limit(&acme, &Limits::new().pause(false)).await.unwrap();
        assert_eq!(waiting.await.unwrap().key, b"job:acme:1");
    });
}

#[test]
fn all_can_be_paused_in_a_queue_without_groups_too() {
    with_groups(async |_, store| {
        let plain = Queue::new(store, QueueConfig::new(["plain"]));
        plain.create_index("plain", "plain:").await.unwrap();
        plain.limit(&Scope::All, &Limits::new().pause(true)).await.unwrap();
        plain.add(b"plain:1", &Fields::new(), AT_ONCE).await.unwrap();
        let waiting = wait_for_job(&plain);
        until_blocked(store, 1).await;
        plain.reset_limits(Some(&Scope::All)).await.unwrap();
        assert_eq!(waiting.await.unwrap().key, b"plain:1");
    });
}

#[test]
fn a_job_that_ends_wakes_the_worker_that_waits_for_room() {
    with_groups(async |queue, store| {
        queue.limit(&Scope::Each, &Limits::new().held(1)).await.unwrap();
        add(queue, "acme", [1, 2]).await;
        let job = queue.next("w", AT_ONCE).await.unwrap().unwrap();
        let waiting = wait_for_job(queue);
        until_blocked(store, 1).await;
        job.complete(&Fields::new()).await.unwrap();
        let mut keys = [job.key.clone(), waiting.await.unwrap().key];
        keys.sort();
        assert_eq!(keys, [b"job:acme:1", b"job:acme:2"]);
    });
}

#[test]
fn a_rate_bounds_what_is_taken() {
    with_groups(async |queue, _| {
        let slow = Rate::new(2, HOUR);
        queue.limit(&Scope::Each, &Limits::new().rate(slow)).await.unwrap();
        queue.limit(&Scope::group("bolt"), &Limits::new().rate(slow.burst(3))).await.unwrap();
        queue.limit(&Scope::group("free"), &Limits::new().rate(Bound::None)).await.unwrap();
        for tenant in ["acme", "bolt", "free"] {
            add(queue, tenant, [1, 2, 3, 4, 5]).await;
        }
        assert_eq!(claim_counts(queue).await, expected(&[("acme", 2), ("bolt", 3), ("free", 5)]));
        assert_eq!(claim_counts(queue).await, []);
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        assert!(group(queue, "acme").await.allowed_at.is_some_and(|time| time > now));
        assert_eq!(group(queue, "free").await.allowed_at, Some(Duration::ZERO));
        queue.limit(&Scope::group("acme"), &Limits::new().rate(Bound::None)).await.unwrap();
        assert_eq!(claim_counts(queue).await, expected(&[("acme", 3)]));
    });
}

#[test]
fn a_rate_gives_to_the_worker_that_waits_when_its_time_comes() {
    with_groups(async |queue, _| {
        queue.limit(&Scope::All, &Limits::new().rate(Rate::new(1, Duration::from_millis(20)))).await.unwrap();
        add(queue, "acme", [0, 1, 2, 3, 4]).await;
        let mut keys = Vec::new();
        while keys.len() < 5 {
            keys.push(queue.next("w", LONG).await.unwrap().expect("there is a job").key);
        }
        keys.sort();
        assert_eq!(keys, [0, 1, 2, 3, 4].map(|number| format!("job:acme:{number}").into_bytes()));
    });
}

#[test]
fn groups_take_turns_in_proportion_to_their_weights() {
    with_groups(async |queue, _| {
        for number in 0..40 {
            add(queue, "noisy", [number]).await;
            add(queue, "heavy", [number]).await;
        }
        add(queue, "small", [1]).await;
        queue.limit(&Scope::group("heavy"), &Limits::new().weight(3.0)).await.unwrap();
        let take = async |count| {
            let mut jobs = Vec::new();
            while jobs.len() < count {
                jobs.push(queue.next("w", AT_ONCE).await.unwrap().expect("there is a job"));
            }
            counts(&jobs).into_iter().collect::<BTreeMap<_, _>>()
        };
        assert_eq!(take(8).await.get("small"), Some(&1));
        let taken = take(40).await;
        assert!(taken["heavy"].abs_diff(30) <= 2 && taken["heavy"] + taken["noisy"] == 40, "{taken:?}");
    });
}

#[test]
fn a_claim_by_score_takes_the_oldest_job_of_all_groups() {
    with_groups(async |queue, store| {
        let keys = [0, 1, 2, 3, 4].map(|number| format!("job:{number}").into_bytes());
        for (number, (key, tenant)) in keys.iter().zip(["a", "a", "b", "a", "b"]).enumerate() {
            queue.add_to(tenant, key, &Fields::new(), AT_ONCE).await.unwrap();
            store.set_field(key, b"run_at", Some(number.to_string().as_bytes())).await.unwrap();
        }
        let jobs = queue.claim(queue.request("w").count(5).order(Order::Score)).await.unwrap();
        assert_eq!(jobs.into_iter().map(|job| job.key).collect::<Vec<_>>(), keys);
    });
}

#[test]
fn limits_are_read_as_they_were_set_and_taken_back() {
    with_groups(async |queue, _| {
        let limits = async || {
            let mut limits = queue.limits().await.unwrap();
            limits.sort_by_key(|(scope, _)| format!("{scope:?}"));
            limits
        };
        assert_eq!(limits().await, []);
        let (acme, second) = (Scope::group("acme"), Duration::from_secs(1));
        let all = Limits::new().held(100).rate(Rate::new(10, second));
        let each = Limits::new().held(2).pause(false);
        let own = Limits::new().held(Bound::None).rate(Rate::new(5, second).burst(9)).weight(2.5);
        queue.limit(&Scope::All, &all).await.unwrap();
        queue.limit(&Scope::Each, &each).await.unwrap();
        queue.limit(&acme, &own).await.unwrap();
        queue.limit(&acme, &Limits::new().pause(true)).await.unwrap(); // the others stay
        let own = own.pause(true);
        let set = limits().await;
        assert_eq!(set, [(Scope::All, all.clone()), (Scope::Each, each), (acme.clone(), own)]);

        queue.reset_limits(Some(&Scope::Each)).await.unwrap();
        queue.limit(&acme, &Limits::new().held(Bound::Default).rate(Bound::Default)).await.unwrap();
        assert_eq!(limits().await, [(Scope::All, all), (acme, Limits::new().weight(2.5).pause(true))]);
        queue.reset_limits(None).await.unwrap();
        assert_eq!(limits().await, []);
        for (scope, limits) in &set {
            queue.limit(scope, limits).await.unwrap(); // what was read can be set again
        }
        assert_eq!(limits().await, set);
    });
}

#[test]
fn groups_come_page_by_page() {
    with_groups(async |queue, store| {
        let mut names: Vec<Vec<u8>> = (0..620).map(|number| format!("tenant-{number}").into_bytes()).collect();
        names.extend([vec![], "ü".into(), vec![0xff]]);
        for (number, name) in names.iter().enumerate() {
            let job = Fields::new().with("state", "pending").with("run_at", 5).with("tenant", name.as_slice());
            store.put(format!("job:{number}").as_bytes(), &job, None).await.unwrap();
        }
        let mut groups = queue.groups().unwrap().collect().await.unwrap();
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        names.sort();
        assert_eq!(groups.iter().map(|group| group.name.clone()).collect::<Vec<_>>(), names);
        for group in &groups {
            assert_eq!((group.records, group.held), (1, 0));
            assert_eq!((group.first_score, group.allowed_at), (Some(5.0), Some(Duration::ZERO)));
        }
        queue.limit(&Scope::group([0xff]), &Limits::new().held(0)).await.unwrap();
        assert_eq!(group(queue, [0xff]).await.limits.held, Some(0));
        assert_eq!(queue.limits().await.unwrap()[0].0, Scope::Group(vec![0xff]));
    });
}

#[test]
fn a_group_as_it_fares() {
    with_groups(async |queue, _| {
        let rate = Rate::new(2, HOUR);
        queue.limit(&Scope::Each, &Limits::new().held(3).rate(rate)).await.unwrap();
        queue.limit(&Scope::group("acme"), &Limits::new().weight(2.0).held(1)).await.unwrap();
        add(queue, "acme", [1, 2, 3]).await;
        let job = queue.next("w", AT_ONCE).await.unwrap().unwrap();
        let state = group(queue, "acme").await;
        assert!(state.first_score.is_some_and(|score| score >= job.score));
        assert_eq!((state.records, state.held, state.allowed_at), (3, 1, None));
        assert_eq!(state.limits, GroupLimits { held: Some(1), rate: Some(rate), weight: 2.0, pause: false });
        job.complete(&Fields::new()).await.unwrap();
        let after = group(queue, "acme").await;
        assert_eq!((after.records, after.held, after.allowed_at), (2, 0, Some(Duration::ZERO)));
    });
}

#[test]
fn the_group_of_a_job() {
    with_groups(async |queue, store| {
        let of_the_fields = Fields::new().with("tenant", "bolt");
        assert!(queue.add_to("acme", b"job:1", &of_the_fields, AT_ONCE).await.unwrap());
        assert!(queue.add(b"job:2", &of_the_fields, AT_ONCE).await.unwrap());
        assert!(queue.add(b"job:3", &Fields::new(), AT_ONCE).await.unwrap());
        assert!(queue.add_to([0xff], b"job:4", &Fields::new(), HOUR).await.unwrap());
        assert!(!queue.add_to("other", b"job:4", &Fields::new(), AT_ONCE).await.unwrap());
        let mut groups = queue.groups().unwrap().collect().await.unwrap();
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        assert!(groups.iter().all(|group| group.records == 1));
        let names: Vec<&[u8]> = groups.iter().map(|group| &*group.name).collect();
        assert_eq!(names, [&b""[..], b"acme", b"bolt", &[0xff]]);

        let refused = queue.add_to([b'x'; 1025], b"job:5", &Fields::new(), AT_ONCE).await;
        assert!(refused.is_err_and(|error| error.to_string().contains("at most 1024 bytes, and this one has 1025")));
        assert!(queue.add_to([b'x'; 1024], b"job:5", &Fields::new(), AT_ONCE).await.unwrap());
        let plain = Queue::new(store, QueueConfig::new(["due"]));
        let refused = plain.add_to("acme", b"job:6", &Fields::new(), AT_ONCE).await;
        assert!(matches!(refused, Err(Error::Groups(_))), "{refused:?}");
        assert_eq!(store.get(b"job:6").await.unwrap(), None);
    });
}

#[test]
fn a_worker_need_not_know_of_the_groups() {
    with_groups(async |queue, store| {
        queue.limit(&Scope::Each, &Limits::new().held(1)).await.unwrap();
        add(queue, "acme", [1, 2]).await;
        let worker = Queue::new(store, QueueConfig::new(["due"]));
        assert!(!worker.create_index_with("due", "job:", OnDifference::Keep).await.unwrap());
        let job = worker.next("w", AT_ONCE).await.unwrap().unwrap();
        assert!(worker.next("w", AT_ONCE).await.unwrap().is_none());
        job.complete(&Fields::new()).await.unwrap();
        assert_ne!(worker.next("w", AT_ONCE).await.unwrap().unwrap().key, job.key);
    });
}

#[test]
fn names_are_the_programs_choice() {
    with_groups(async |_, store| {
        let [state, run_at, attempt, worker] = ["s", "at", "n", "w"].map(String::from);
        let fields = JobFields { state, run_at, attempt, worker };
        let [pending, running, completed, dead] = ["P", "R", "C", "D"].map(String::from);
        let states = JobStates { pending, running, completed, dead };
        let config = QueueConfig { fields, states, group_by: Some("g".into()), ..QueueConfig::new(["mine"]) };
        let queue = Queue::new(store, config);
        queue.create_index("mine", "task:").await.unwrap();
        queue.limit(&Scope::Each, &Limits::new().held(1)).await.unwrap();
        for key in [b"task:1", b"task:2"] {
            queue.add_to("x", key, &Fields::new(), AT_ONCE).await.unwrap();
        }
        let job = queue.next("w", AT_ONCE).await.unwrap().unwrap();
        assert_eq!(job.fields.text("g"), Some("x"));
        assert!(queue.next("w", AT_ONCE).await.unwrap().is_none());
        job.complete(&Fields::new()).await.unwrap();
        assert_ne!(queue.next("w", AT_ONCE).await.unwrap().unwrap().key, job.key);
    });
}

#[test]
fn an_index_that_is_there_has_to_keep_the_groups() {
    with_groups(async |queue, store| {
        assert!(!queue.create_index("due", "job:").await.unwrap());
        let open = || IndexDefinition::new(["x:"], "run_at").only("state", ["pending", "running"]);
        let held = ["running"];
        for (number, wrong) in [
            open(),
            open().group("tenant"),
            open().held("state", held),
            open().group("customer").held("state", held),
            open().group("tenant").held("state", ["pending"]),
            open().group("tenant").held("s", held),
            open().group("tenant").held("state", ["resting", "running"]),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("wrong-{number}");
            assert!(store.create_index(&name, &wrong).await.unwrap());
            let refused = queue.create_index(&name, "x:").await.expect_err("another index is there");
            let Error::IndexDiffers(differs) = refused else { panic!("{refused:?}") };
            assert_eq!(differs.index, name.as_bytes());
            let is_of_groups = |part: &String| part.starts_with("GROUP ") || part.starts_with("HELD ");
            assert!(differs.differences.iter().all(is_of_groups), "{differs}");
        }
    });
}

#[test]
fn a_queue_without_groups_makes_the_index_that_it_made() {
    with_groups(async |_, store| {
        let plain = Queue::new(store, QueueConfig::new(["plain"]));
        plain.create_index("plain", "plain:").await.unwrap();
        let mut connection = store.connection().unwrap();
        let info: BTreeMap<String, redis::Value> =
            redis::cmd("IDX.INFO").arg("plain").query_async(&mut connection).await.unwrap();
        assert_eq!(info.get("field"), Some(&redis::Value::BulkString(b"run_at".to_vec())));
        assert!(!info.contains_key("group") && !info.contains_key("held"), "{info:?}");
    });
}

#[test]
fn what_the_server_refuses_reaches_the_caller() {
    with_groups(async |queue, store| {
        let plain = Queue::new(store, QueueConfig::new(["plain"]));
        plain.create_index("plain", "plain:").await.unwrap();
        let (acme, held) = (Scope::group("acme"), Limits::new().held(1));
        let none = Rate::new(0, Duration::from_secs(1));
        let moved = Claim::new(["due"]).set("tenant", "other");
        for (refused, message) in [
            (plain.limit(&acme, &Limits::new().pause(true)).await, "has no groups: it was created without GROUP"),
            (plain.limit(&Scope::All, &held).await, "does not know what is held: it was created without HELD"),
            (queue.limit(&Scope::All, &Limits::new().weight(2.0)).await, "WEIGHT is for groups, not for ALL"),
            (queue.limit(&Scope::Each, &Limits::new().weight(0.0)).await, "a number from 0.01 to 1000"),
            (queue.limit(&Scope::Each, &Limits::new().rate(none)).await, "the number behind RATE"),
            (queue.limit(&Scope::Each, &Limits::new().rate(Rate::new(1, Duration::MAX))).await, "behind RATE"),
            (queue.limit(&Scope::Each, &Limits::new()).await, "nothing is set"),
            (store.limit("none", &acme, &held).await, "there is no index"),
            (store.limits("none").await.map(drop), "there is no index"),
            (store.reset_limits("none", None).await, "there is no index"),
            (store.groups("none").collect().await.map(drop), "there is no index"),
            (store.claim(&moved).await.map(drop), "tenant"),
        ] {
            let error = refused.expect_err(message);
            assert!(
                matches!(error, Error::Refused(_)) && error.to_string().contains(message),
                "{error}, not {message}"
            );
        }
        assert_eq!(plain.groups().unwrap().next().await.unwrap(), None);
        assert_eq!(queue.limits().await.unwrap(), []);
    });
}

#[test]
fn a_queue_with_several_indexes_limits_each_by_name() {
    with_groups(async |queue, store| {
        let several = Queue::new(store, config(["due", "due:low"]));
        let limits = Limits::new().held(1);
        for refused in [
            several.limit(&Scope::Each, &limits).await,
            several.reset_limits(None).await,
            several.limits().await.map(drop),
            several.groups().map(drop),
        ] {
            assert!(matches!(refused, Err(Error::Groups(_))), "{refused:?}");
        }
        store.limit("due", &Scope::Each, &limits).await.unwrap();
        assert_eq!(store.limits("due").await.unwrap(), [(Scope::Each, limits)]);
        assert_eq!(queue.limits().await.unwrap(), store.limits("due").await.unwrap());
    });
}
