//! Functions, called by name. A server may come with libraries of its own, so the tests ask for theirs by name.

use std::sync::Barrier;
use std::thread;

use redis::{Client, Cmd, Commands, Connection, ToRedisArgs, Value};
use redis_crate_suite::{COMPARE_AND_SWAP, both_clients, lacks};

/// Runs a test with the library `jobs` loaded and no other of ours, and leaves none.
fn with_functions(test: impl Fn(&Client, &mut Connection)) {
    both_clients(|client, con| {
        if lacks(con, "fcall") {
            return;
        }
        function("FLUSH").exec(con).unwrap();
        assert_eq!(function("LOAD").arg(library()).query::<String>(con).unwrap(), "jobs");
        let _: () = con.hset("job", "state", "pending").unwrap();
        test(client, con);
        function("FLUSH").exec(con).unwrap();
    });
}

fn library() -> String {
    format!(
        "#!lua name=jobs
redis.register_function('claim', function(KEYS, ARGV)
{COMPARE_AND_SWAP}
end)
redis.register_function{{
    function_name = 'state_of',
    callback = function(keys, args) return redis.call('HGET', keys[1], 'state') end,
    flags = {{'no-writes'}},
}}
"
    )
}

fn function(subcommand: &str) -> Cmd {
    let mut cmd = redis::cmd("FUNCTION");
    cmd.arg(subcommand);
    cmd
}

fn fcall(name: &str, job: &str) -> Cmd {
    let mut cmd = redis::cmd("FCALL");
    cmd.arg(name).arg(1).arg(job);
    cmd
}

fn claim(con: &mut Connection, job: &str, worker: impl ToRedisArgs) -> bool {
    fcall("claim", job).arg("state").arg("pending").arg(worker).query(con).unwrap()
}

fn is_loaded(con: &mut Connection, name: &str) -> bool {
    let libraries: Vec<Value> = function("LIST").arg("LIBRARYNAME").arg(name).query(con).unwrap();
    !libraries.is_empty()
}

#[test]
fn functions_are_called_by_name() {
    with_functions(|_, con| {
        assert!(claim(con, "job", "claimed"));
        assert!(!claim(con, "job", "claimed"));
        let state: String = redis::cmd("FCALL_RO").arg("state_of").arg(1).arg("job").query(con).unwrap();
        assert_eq!(state, "claimed");
        let refusal = redis::cmd("FCALL_RO").arg("claim").arg(1).arg("job").arg("state").exec(con).unwrap_err();
        assert!(
            refusal.to_string().contains("Can not execute a script with write flag using *_ro command"),
            "{refusal}"
        );
        let refusal = redis::cmd("FCALL").arg("nosuch").arg(0).exec(con).unwrap_err();
        assert_eq!(refusal.detail(), Some("Function not found"));
    });
}

#[test]
fn functions_in_transactions() {
    with_functions(|_, con| {
        let mut swap = fcall("claim", "job");
        swap.arg("state").arg("pending").arg("claimed");
        let (first, second, state): (bool, bool, String) = redis::pipe()
            .atomic()
            .add_command(swap.clone())
            .add_command(swap)
            .add_command(fcall("state_of", "job"))
            .query(con)
            .unwrap();
        assert_eq!((first, second, state.as_str()), (true, false, "claimed"));
    });
}

#[test]
fn every_job_is_claimed_once() {
    with_functions(|client, con| {
        let jobs: Vec<String> = (0..200).map(|i| format!("gbe:state:tasks:email-send:job_{i}")).collect();
        for job in &jobs {
            let _: () = con.hset(job, "state", "pending").unwrap();
        }
        let start = Barrier::new(8);
        let work = |worker: usize| {
            let mut con = client.get_connection().unwrap();
            start.wait();
            jobs.iter().filter(|job| claim(&mut con, job, worker)).collect::<Vec<_>>()
        };
        let wins: Vec<Vec<&String>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|worker| scope.spawn(move || work(worker))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(wins.iter().map(Vec::len).sum::<usize>(), jobs.len());
        for (worker, won) in wins.iter().enumerate() {
            for job in won {
                assert_eq!(fcall("state_of", job).query::<usize>(con).unwrap(), worker);
            }
        }
    });
}

#[test]
fn libraries_are_loaded_listed_replaced_and_deleted() {
    with_functions(|_, con| {
        assert!(is_loaded(con, "j?bs") && !is_loaded(con, "nosuch"));
        let refusal = function("LOAD").arg(library()).exec(con).unwrap_err();
        assert_eq!(refusal.detail(), Some("Library 'jobs' already exists"));
        let other = "#!lua name=jobs\nredis.register_function('other', function() return 'new' end)";
        function("LOAD").arg("REPLACE").arg(other).exec(con).unwrap();
        assert_eq!(redis::cmd("FCALL").arg("other").arg(0).query::<String>(con).unwrap(), "new");
        function("DELETE").arg("jobs").exec(con).unwrap();
        assert!(!is_loaded(con, "jobs"));
        let refusal = function("DELETE").arg("jobs").exec(con).unwrap_err();
        assert_eq!(refusal.detail(), Some("Library not found"));
    });
}

#[test]
fn libraries_travel_as_bytes() {
    with_functions(|_, con| {
        let payload: Vec<u8> = function("DUMP").query(con).unwrap();
        function("FLUSH").exec(con).unwrap();
        assert!(!is_loaded(con, "jobs"));
        function("RESTORE").arg(&payload).exec(con).unwrap();
        assert!(claim(con, "job", "claimed"));
        let refusal = function("RESTORE").arg(&payload).exec(con).unwrap_err();
        assert!(refusal.to_string().contains("Library jobs already exists"), "{refusal}");
        function("RESTORE").arg(&payload).arg("REPLACE").exec(con).unwrap();
        let damaged = &payload[..payload.len() - 1];
        let refusal = function("RESTORE").arg(damaged).arg("REPLACE").exec(con).unwrap_err();
        assert!(refusal.to_string().contains("payload version or checksum are wrong"), "{refusal}");
        assert!(is_loaded(con, "jobs"));
    });
}
