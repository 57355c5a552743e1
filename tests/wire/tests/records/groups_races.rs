//! Many workers and other writers at once: no cap is exceeded by claims, no window has more takes than its rate allows, every
//! job runs once, and the counts are those of a look at every record. Prints its seed.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use wire::{Connection, Random};

use crate::support::{eventually, start};

const JOBS: usize = 1_500;
const WORKERS: u64 = 6;
const TENANTS: usize = 4;
const CAP: i64 = 2;
const CAP_OF_ALL: i64 = 5;

fn field<'r>(reply: &'r wire::Reply, name: &str) -> Option<&'r wire::Reply> {
    let fields = reply.items();
    let at = fields.iter().step_by(2).position(|field| field.bytes() == name.as_bytes())?;
    fields.get(at * 2 + 1)
}

/// IDX.GROUPS, and the same by a look at every record, in one moment.
const LOOK: &str = r#""local counts = {} for job = 0, ARGV[1] - 1 do
    local record = redis.call('HMGET', 'job:' .. job, 'state', 'tenant') local state, tenant = record[1], record[2]
    if state == 'pending' or state == 'running' then
        local count = counts[tenant] or {0, 0} counts[tenant] = count
        count[1] = count[1] + 1 if state == 'running' then count[2] = count[2] + 1 end
    end
end
local flat = {} for tenant, count in pairs(counts) do for _, part in ipairs({tenant, count[1], count[2]}) do flat[#flat + 1] = part end end
return {redis.call('IDX.GROUPS', 'due'), flat}""#;

/// Records and held records of each group, as IDX.GROUPS tells, and as a look at every record finds.
fn look(connection: &mut Connection, jobs: usize) -> [BTreeMap<String, (i64, i64)>; 2] {
    let reply = connection.run(&format!("EVAL {} 0 {jobs}", LOOK.replace('\n', " ")));
    let [told, counted] = reply.items() else { panic!("{reply}") };
    let counted = counted.items().chunks(3).map(|group| {
        let [name, records, held] = group else { panic!("{reply}") };
        (name.text().to_owned(), (records.integer(), held.integer()))
    });
    [told_groups(told), counted.collect()]
}

fn groups(connection: &mut Connection) -> BTreeMap<String, (i64, i64)> {
    told_groups(&connection.run("IDX.GROUPS due"))
}

fn told_groups(reply: &wire::Reply) -> BTreeMap<String, (i64, i64)> {
    let groups = reply.items()[1].items().iter().map(|group| {
        let [name, state] = group.items() else { panic!("{group}") };
        let number = |name: &str| field(state, name).expect("it is told").integer();
        (name.text().to_owned(), (number("records"), number("held")))
    });
    groups.filter(|(_, counts)| *counts != (0, 0)).collect()
}

#[test]
fn no_cap_is_exceeded_and_every_job_runs_once() {
    let Some(session) = start() else { return };
    let seed = Random::from_env().next_u64();
    let mut connection = session.connect();
    connection
        .run("IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 2 pending running GROUP tenant HELD state 1 running");
    connection.run(&format!("IDX.LIMIT due EACH HELD {CAP}"));
    connection.run(&format!("IDX.LIMIT due ALL HELD {CAP_OF_ALL}"));
    for job in 0..JOBS {
        connection.queue_line(&format!("HSET job:{job} at {} state pending tenant t{}", job % 7, job % TENANTS));
    }
    connection.flush();
    (0..JOBS).for_each(|_| drop(connection.read()));
    let held: Vec<AtomicI64> = (0..TENANTS).map(|_| AtomicI64::new(0)).collect();
    let (held_in_all, done, ran) = (AtomicI64::new(0), AtomicUsize::new(0), Mutex::new(vec![0; JOBS]));
    thread::scope(|scope| {
        for number in 0..WORKERS {
            let (mut worker, mut random) = (session.connect(), Random::new(seed + number));
            let (held, held_in_all, done, ran) = (&held, &held_in_all, &done, &ran);
            scope.spawn(move || {
                while done.load(SeqCst) < JOBS {
                    let (order, block) = (random.pick(&["", " ORDER score"]), random.pick(&["", " BLOCK 50"]));
                    let count = 1 + random.below(2);
                    let claim = format!(
                        "CLAIM 1 due MAX NOW SET 2 state running at NOW+600000 COUNT {count}{order}{block} FIELDS 1 tenant"
                    );
                    // A script takes all locks, and must obey limits all the same.
                    let reply = match random.one_in(8) {
                        true => {
                            let args: Vec<String> = claim.replace(block, "").split(' ').map(|word| format!("'{word}'")).collect();
                            worker.run(&format!("EVAL \"return redis.call({})\" 1 due", args.join(", ")))
                        }
                        false => worker.run(&claim),
                    };
                    for job in reply.items() {
                        let key = job.items()[0].text().to_owned();
                        let tenant: usize = field(&job.items()[2], "tenant").unwrap().text()[1..].parse().unwrap();
                        // Counted down before the write that makes room, so never too high.
                        let now = held[tenant].fetch_add(1, SeqCst) + 1;
                        assert!(now <= CAP, "{now} jobs of t{tenant} run");
                        let now = held_in_all.fetch_add(1, SeqCst) + 1;
                        assert!(now <= CAP_OF_ALL, "{now} jobs run");
                        ran.lock().unwrap()[key["job:".len()..].parse::<usize>().unwrap()] += 1;
                        held[tenant].fetch_sub(1, SeqCst);
                        held_in_all.fetch_sub(1, SeqCst);
                        let write = random.pick(&["HSET KEY state done", "HCAS KEY state running done", "HDEL KEY at state"]);
                        worker.run(&write.replace("KEY", &key));
                        done.fetch_add(1, SeqCst);
                    }
                }
            });
        }
    });
    assert!(ran.into_inner().unwrap().iter().all(|times| *times == 1), "every job runs once");
    assert_eq!(groups(&mut connection), BTreeMap::new());
}

#[test]
fn counts_are_those_of_all_records_after_any_writes() {
    let Some(session) = start() else { return };
    let seed = Random::from_env().next_u64();
    let mut connection = session.connect();
    connection
        .run("IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 2 pending running GROUP tenant HELD state 1 running");
    for job in 0..JOBS {
        connection.run(&format!("HSET job:{job} at {job} state pending tenant t0"));
    }
    thread::scope(|scope| {
        for number in 0..4 {
            let (mut writer, mut random) = (session.connect(), Random::new(seed + number));
            scope.spawn(move || {
                for _ in 0..1_500 {
                    let job = random.below(JOBS);
                    let line = match random.below(8) {
                        0 => format!("HSET job:{job} state {}", random.pick(&["pending", "running", "done"])),
                        1 => format!("HSET job:{job} tenant t{}", random.below(TENANTS)),
                        2 => format!("HINCRBY job:{job} at 5"),
                        3 => "CLAIM 1 due SET 2 state running at 7 COUNT 3 KEYS".to_owned(),
                        4 => format!("EVAL \"redis.call('HSET', KEYS[1], 'state', 'running')\" 1 job:{job}"),
                        5 => format!("COPY job:{job} job:{} REPLACE", (job + 1 + random.below(JOBS - 1)) % JOBS),
                        6 => format!("IDX.LIMIT due GROUP t{} WEIGHT {}", random.below(TENANTS), 1 + random.below(9)),
                        _ => format!("HCAS job:{job} state running pending"),
                    };
                    assert!(!writer.run(&line).to_string().starts_with("-ERR"), "{line}");
                }
            });
        }
        // At any moment, too: in a script nothing changes.
        let mut looks = session.connect();
        for _ in 0..20 {
            let [told, counted] = look(&mut looks, JOBS);
            assert_eq!(told, counted, "while others write");
        }
    });
    let [told, counted] = look(&mut connection, JOBS);
    assert_eq!(told, counted);
}

/// Jobs that are claimed, alone and in every bracket, lose their leases, expire, and are deleted, renamed and ended. Only claims
/// make a job held here, and a job is renamed within its group, so no look may find more than the caps allow.
#[test]
fn caps_hold_whatever_becomes_of_held_records() {
    const KEYS: usize = 60;
    const TAKEN_MIN: usize = 100;
    const STEPS_MAX: usize = 100_000;
    const CLAIM: &str = "CLAIM 1 due MAX NOW SET 2 state running at NOW+40 COUNT 2 KEYS";
    let Some(session) = start() else { return };
    let seed = Random::from_env().next_u64();
    let mut connection = session.connect();
    connection
        .run("IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 2 pending running GROUP tenant HELD state 1 running");
    connection.run(&format!("IDX.LIMIT due EACH HELD {CAP}"));
    connection.run(&format!("IDX.LIMIT due ALL HELD {CAP_OF_ALL}"));
    connection.run("TXN.BEGIN");
    assert!(connection.run(CLAIM).to_string().starts_with("-ERR"), "a transaction that answers at once has no claims");
    connection.run("TXN.ROLLBACK");
    let (working, taken) = (AtomicUsize::new(WORKERS as usize), AtomicUsize::new(0));
    thread::scope(|scope| {
        for number in 0..WORKERS {
            let (mut worker, mut random) = (session.connect(), Random::new(seed + number));
            let (working, taken) = (&working, &taken);
            scope.spawn(move || {
                let _end = OneLess(working);
                worker.run(&format!("SESSION.OPEN ID worker:{number} TTL 600000"));
                // Room for claims comes with time, too, when leases end: a fast server has made few after so many steps.
                for step in (1..=STEPS_MAX).take_while(|step| *step <= 300 || taken.load(SeqCst) <= TAKEN_MIN) {
                    let job = random.below(KEYS);
                    let other = (job + TENANTS * (1 + random.below(5))) % KEYS;
                    let words: Vec<String> = CLAIM.split(' ').map(|word| format!("'{word}'")).collect();
                    let lines = match random.below(16) {
                        0..5 => vec![format!("HSET job:{job} state pending at {} tenant t{}", job % 9, job % TENANTS)],
                        5 => vec![format!("DEL job:{job}")],
                        6 => vec![format!("PEXPIRE job:{job} {}", 1 + random.below(30))],
                        7 => vec![format!("RENAME job:{job} job:{other}")],
                        8 => vec![format!("HCAS job:{job} state running done")],
                        9 => vec![format!("SESSION.CALL worker:{number} {step} LOW {step} {CLAIM}")],
                        10 => vec!["MULTI".into(), CLAIM.into(), CLAIM.into(), "EXEC".into()],
                        11 => vec![format!("EVAL \"return {{redis.call({0}), redis.call({0})}}\" 0", words.join(","))],
                        12 => vec![format!("{CLAIM} ORDER score BLOCK 5")],
                        _ => vec![CLAIM.to_owned()],
                    };
                    for line in lines {
                        let reply = worker.run(&line).to_string();
                        let is_refused = reply.starts_with('-') && reply != "-ERR no such key";
                        assert!(!is_refused, "{line}: {reply}");
                        taken.fetch_add(usize::from(line.contains("CLAIM") && reply.contains("job:")), SeqCst);
                    }
                }
            });
        }
        let mut looks = session.connect();
        while working.load(SeqCst) > 0 {
            let held: Vec<i64> = groups(&mut looks).into_values().map(|(_, held)| held).collect();
            assert!(held.iter().all(|held| *held <= CAP), "{held:?} are held");
            assert!(held.iter().sum::<i64>() <= CAP_OF_ALL, "{held:?} are held");
        }
    });
    assert!(taken.into_inner() > TAKEN_MIN);
    // What has expired is counted until it is removed.
    eventually("the counts are those of a look at every record", || {
        let [told, counted] = look(&mut connection, KEYS);
        told == counted
    });
}

/// Counts down at its end, even by a panic.
struct OneLess<'a>(&'a AtomicUsize);

impl Drop for OneLess<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[test]
fn no_window_has_more_takes_than_its_rate_allows() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 1 pending GROUP tenant");
    connection.run("IDX.LIMIT due EACH RATE 20 100 BURST 3");
    for job in 0..600 {
        connection.run(&format!("HSET job:{job} at {job} state pending tenant t{}", job % 2));
    }
    let takes: Mutex<Vec<Vec<Take>>> = Mutex::new(vec![Vec::new(), Vec::new()]);
    let is_done = || takes.lock().unwrap().iter().all(|takes| takes.len() > 50);
    thread::scope(|scope| {
        for _ in 0..4 {
            let mut worker = session.connect();
            let (takes, is_done) = (&takes, &is_done);
            scope.spawn(move || {
                while !is_done() {
                    let claim = "CLAIM 1 due MAX NOW SET 2 state running taken NOW+0 BLOCK 200 FIELDS 2 tenant taken";
                    for job in worker.run(claim).items() {
                        let fields = &job.items()[2];
                        let tenant: usize = field(fields, "tenant").unwrap().text()[1..].parse().unwrap();
                        let began_ms = field(fields, "taken").unwrap().text().parse().unwrap();
                        takes.lock().unwrap()[tenant].push(Take { began_ms, replied_ms: now_ms() });
                    }
                }
            });
        }
    });
    for takes in takes.into_inner().unwrap() {
        for (first, last) in takes.iter().flat_map(|first| takes.iter().map(move |last| (first, last))) {
            let is_between = |take: &&Take| take.began_ms >= first.began_ms && take.replied_ms <= last.replied_ms;
            let count = takes.iter().filter(is_between).count() as u64;
            // The times are whole milliseconds: a window may be up to one longer.
            let window_ms = last.replied_ms.saturating_sub(first.began_ms) + 1;
            assert!(count <= 3 + window_ms * 20 / 100, "{count} takes in {window_ms} ms");
        }
    }
}

/// The server takes a record after its command has begun and before the reply is read, on a busy machine long after.
struct Take {
    began_ms: u64,
    replied_ms: u64,
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is set").as_millis() as u64
}
