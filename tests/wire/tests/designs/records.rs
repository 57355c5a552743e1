//! Records: the commands to which the design of the state store maps its operations, as workers and a sweeper use them.
//! Where only Redis's commands are used, a Redis has the same answers.

use crate::{at_once, check};
use wire::Session;

/// Each operation of the store by the commands of the design, with its names of keys and fields.
#[test]
fn the_operations_of_the_store_are_commands_of_redis() {
    wire::check(
        r#"
        PING => +PONG
        HGETALL gbe:state:tasks:email-send:job_abc123 => []
        HGET gbe:state:tasks:email-send:job_abc123 state => (nil)
        ! HSET gbe:state:tasks:email-send:job_abc123 state pending task_type email-send task_id job_abc123 created_at 1760000000000 updated_at 1760000000000
        ! PEXPIRE gbe:state:tasks:email-send:job_abc123 86400000
        > PTTL gbe:state:tasks:email-send:job_abc123
        :86000000..86400000
        > HGET gbe:state:tasks:email-send:job_abc123 state
        "pending"
        ! HSET gbe:state:tasks:email-send:job_abc123 params_ref s3://bucket/in
        > HGETALL gbe:state:tasks:email-send:job_abc123
        ["state", "pending", "task_type", "email-send", "task_id", "job_abc123", "created_at", "1760000000000", "updated_at", "1760000000000", "params_ref", "s3://bucket/in"]
        > PERSIST gbe:state:tasks:email-send:job_abc123
        :1
        > PTTL gbe:state:tasks:email-send:job_abc123
        :-1
        // Dots separate as well: a key is any bytes.
        ! HSET gbe.state.tasks.email-send.job_123 state pending
        > SCAN 0 MATCH gbe:state:tasks:* COUNT 1000
        ["0", ["gbe:state:tasks:email-send:job_abc123"]]
        ! DEL gbe:state:tasks:email-send:job_abc123
        > DEL gbe:state:tasks:email-send:job_abc123
        :0
        > HGETALL gbe:state:tasks:email-send:job_abc123
        []
        "#,
    );
}

/// A job is claimed, goes through its steps and is completed. The swap is the design's script.
#[test]
fn a_job_is_claimed_by_one_worker_and_taken_to_its_end() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("HSET job state pending task_id 123 created_at 1 updated_at 1");
    let script = "local current = redis.call('HGET', KEYS[1], ARGV[1]) \
                  if current == ARGV[2] then redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) return 1 end return 0";
    let won = at_once(&session, |mut connection, worker| {
        let swap: [&[u8]; 6] = [script.as_bytes(), b"1", b"job", b"state", b"pending", b"claimed"];
        let has_won = connection.run_with("EVAL", &swap).integer() == 1;
        if has_won {
            connection.run(&format!("HSET job worker w{worker} updated_at 2 timeout_at 30002"));
        }
        has_won
    });
    let winners: Vec<usize> = (0..won.len()).filter(|worker| won[*worker]).collect();
    assert_eq!(winners.len(), 1);
    for step in 1..=3 {
        connection
            .run(&format!("HSET job state running current_step {step} updated_at {0} timeout_at 3000{0}", step + 2));
    }
    connection.run("HSET job state completed updated_at 6 result_ref s3://bucket/out");
    connection.run("HDEL job timeout_at");
    let worker = format!("w{}", winners[0]);
    let fields = "HMGET job state task_id worker current_step created_at updated_at timeout_at result_ref";
    assert_eq!(
        connection.run(fields).to_string(),
        format!("[\"completed\", \"123\", \"{worker}\", \"3\", \"1\", \"6\", (nil), \"s3://bucket/out\"]")
    );
}

/// Clients that write different fields of one record overwrite nothing of each other.
#[test]
fn writers_of_different_fields_keep_each_others_values() {
    const EACH: usize = 200;
    let session = Session::start();
    at_once(&session, |mut connection, client| {
        for number in 1..=EACH {
            connection.run(&format!("HSET job field-{client} {number} twin-{client} {number}"));
            let mine = connection.run(&format!("HMGET job field-{client} twin-{client}"));
            assert_eq!(mine.to_string(), format!("[\"{number}\", \"{number}\"]"));
        }
    });
    let all = session.connect().run("HVALS job");
    assert_eq!(all.items().len(), 2 * crate::CLIENTS);
    assert!(all.items().iter().all(|value| value.text() == EACH.to_string()), "{all}");
}

/// The sweeper's question: jobs that are not over and were not written since a time; then each is told of and reset.
#[test]
fn a_sweeper_finds_stuck_jobs_and_resets_them() {
    check(
        r#"
        ! HSET gbe:state:tasks:a:1 state running updated_at 100
        ! HSET gbe:state:tasks:a:2 state completed updated_at 100
        ! HSET gbe:state:tasks:b:3 state pending updated_at 100
        ! HSET gbe:state:tasks:b:4 state running updated_at 900
        ! HSET gbe:state:tasks:b:5 state cancelled updated_at 100
        ! HSET gbe:state:tasks:b:6 state running
        ! HSET gbe:state:other:7 state running updated_at 100
        > HFIND gbe:state:tasks: FILTER updated_at lt 500 KEYS
        ["0", ~["gbe:state:tasks:a:1", "gbe:state:tasks:a:2", "gbe:state:tasks:b:3", "gbe:state:tasks:b:5"]]
        > HFIND gbe:state:tasks: FILTER updated_at lt 500 FILTER state notin 3 completed failed cancelled FIELDS 2 state updated_at
        ["0", ~[["gbe:state:tasks:a:1", ["state", "running", "updated_at", "100"]], ["gbe:state:tasks:b:3", ["state", "pending", "updated_at", "100"]]]]
        > HFIND gbe:state:tasks:a: FILTER updated_at gt 99 FILTER state eq running KEYS
        ["0", ["gbe:state:tasks:a:1"]]
        > HFIND gbe:state:tasks: FILTER updated_at lt 500 LIMIT 100 FILTER state eq failed
        ["0", []]
        ! IDX.CREATE tasks PREFIX 1 gbe:state:tasks: FIELD updated_at EXCLUDE state 3 completed failed cancelled
        > ZRANGEBYSCORE tasks -inf (500
        ["gbe:state:tasks:a:1", "gbe:state:tasks:b:3"]
        2> SUBSCRIBE gbe.tasks.queue
        ["subscribe", "gbe.tasks.queue", :1]
        > SWEEP tasks BEFORE 500 WHERE state 2 pending running SET 2 state pending updated_at 1000 PUBLISH gbe.tasks.queue
        [["gbe:state:tasks:a:1", "requeued"], ["gbe:state:tasks:b:3", "requeued"]]
        2< ["message", "gbe.tasks.queue", "gbe:state:tasks:a:1"]
        2< ["message", "gbe.tasks.queue", "gbe:state:tasks:b:3"]
        > SWEEP tasks BEFORE 500 WHERE state 2 pending running SET 2 state pending updated_at 1000 PUBLISH gbe.tasks.queue
        []
        > HGETALL gbe:state:tasks:a:1
        ["state", "pending", "updated_at", "1000"]
        ! IDX.DROP tasks
        "#,
    );
}
