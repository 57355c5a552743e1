//! After every command that can change a record, every index is what a look at all keys says.

use wire::Connection;

use crate::support::{Condition, Definition, assert_all_exact, check, ok, start};

const STATE_DONE: Condition = Condition { only: false, field: "state", values: &["done", "failed"] };
const STATE_NEW: Condition = Condition { only: true, field: "state", values: &["new", "7"] };

/// One of each sort. The stamping ones have names of their own, as their records are never what was written.
pub(crate) const INDEXES: &[Definition] = &[
    Definition { name: "all", prefixes: &[""], field: "n", condition: None, stamp: false },
    Definition { name: "jobs", prefixes: &["j:"], field: "n", condition: None, stamp: false },
    Definition { name: "two", prefixes: &["j:1", "k:"], field: "m", condition: None, stamp: false },
    Definition { name: "open", prefixes: &["j:"], field: "n", condition: Some(STATE_DONE), stamp: false },
    Definition { name: "new", prefixes: &["j:", "k:"], field: "n", condition: Some(STATE_NEW), stamp: false },
    Definition { name: "stamped", prefixes: &["s:"], field: "at", condition: Some(STATE_DONE), stamp: true },
];

/// Commands after each of which the indexes are compared; `wait` is for what is about to expire.
const STEPS: &[&str] = &[
    "HSET j:1 n 5 m 6 state new",
    "HSET j:2 n 5 state done",
    "HSET k:1 n 1 m 1 state 7",
    "HSET other n 0",
    "SET j:text 5",
    "ZADD j:sorted 5 n",
    "HSET j:1 n 4",
    "HSET j:1 n 4.5 state done",
    "HSET j:1 state 7",
    "HSET j:1 n x",
    "HSET j:1 n 3",
    "HMSET j:1 n 2 m 1",
    "HDEL j:1 n",
    "HSETNX j:1 n 9",
    "HSETNX j:1 n 10",
    "HINCRBY j:1 n 5",
    "HINCRBY j:1 n -50",
    "HINCRBYFLOAT j:1 n 0.25",
    "HINCRBY j:1 m 9223372036854775807",
    "HDEL j:1 state",
    "HDEL j:1 n m state",
    "HPUT j:1 FIELDS 3 n 5 m 6 state new",
    "HPUT j:1 REPLACE FIELDS 1 state new",
    "HPUT j:1 REPLACE FIELDS 2 n 8 m 9",
    "HPUT j:1 PX 100000 FIELDS 1 n 7",
    "PERSIST j:1",
    "HCAS j:1 n 7 17",
    "HCAS j:1 n 7 18",
    "HCAS j:1 IF 1 n 17 SET 1 state failed DEL 1 m",
    "HCAS j:1 IF 1 state failed DEL 1 state",
    "HSETEX j:1 PX 100000 FIELDS 1 n 16",
    "HGETDEL j:1 FIELDS 1 n",
    "HSET j:1 n 15",
    "DEL j:1",
    "UNLINK j:2",
    "HSET j:1 n 1 m 2 state new",
    "PEXPIRE j:1 1",
    "wait",
    "HSET j:1 n 1 m 2 state new",
    "EXPIRE j:1 100",
    "PERSIST j:1",
    "PEXPIREAT j:1 1",
    "HSET j:1 n 1 m 2 state new",
    "HPEXPIRE j:1 1 FIELDS 1 n",
    "wait",
    "HSET j:1 n 1 state done",
    "HPEXPIRE j:1 1 FIELDS 1 state",
    "wait",
    "HSET j:1 state new",
    "HPEXPIRE j:1 1 FIELDS 1 state",
    "wait",
    "HSET j:1 state 7",
    "HPEXPIRE j:1 100000 FIELDS 2 state n",
    "HPERSIST j:1 FIELDS 2 state n",
    "HPEXPIREAT j:1 1 FIELDS 1 state",
    "HGETEX j:1 PX 1 FIELDS 1 n",
    "wait",
    "HPUT j:3 PX 1 FIELDS 1 n 1",
    "wait",
    "HSET j:1 n 1 m 2 state new",
    "RENAME j:1 away",
    "RENAME away k:2",
    "RENAME k:2 j:1",
    "HSET j:2 n 7 state done",
    "RENAME j:1 j:2",
    "RENAMENX j:2 j:1",
    "RENAMENX j:1 k:1",
    "COPY j:1 k:3",
    "COPY k:1 k:3 REPLACE",
    "COPY j:1 j:1 DB 1",
    "COPY j:1 away",
    "MOVE j:1 2",
    "MOVE j:1 1",
    "SELECT 2",
    "HSET j:5 n 5",
    "SELECT 0",
    "SWAPDB 0 2",
    "SWAPDB 1 2",
    "SWAPDB 0 1",
    "SWAPDB 2 2",
    "SET k:3 text",
    "SET k:3 text",
    "HSET j:1 n 5 state new",
    "SET j:1 text",
    "DEL j:1",
    "HSET j:1 n 5 state new",
    "MSET j:1 text other text",
    "GETDEL j:1",
    "HSET j:1 n 5 state new",
    "HSET j:2 n 6",
    "RENAME j:text j:1",
    "HSET j:1x n 1",
    "ZUNIONSTORE j:2 1 all",
    "ZRANGESTORE j:1x all 0 -1",
    "DEL j:2 j:1 j:1x",
    "HSET s:1 state new",
    "HSET s:1 at 5",
    "HSET s:1 at 5 state done",
    "HSET s:1 state new",
    "HDEL s:1 at",
    "HINCRBY s:1 tries 1",
    "RENAME s:1 j:1",
    "RENAME j:1 s:1",
    "COPY s:1 s:2",
    "DEL s:2",
    "MULTI",
    "HSET j:8 n 1 m 2",
    "HSET j:8 n 2 state new",
    "COPY j:8 k:8",
    "DEL j:8",
    "ZCARD all",
    "EXEC",
    "MULTI",
    "HSET j:8 n 1",
    "DISCARD",
    "EVAL \"for i = 1, 9 do redis.call('HSET', 'j:' .. i, 'n', i, 'state', 'new') end return redis.call('ZCARD', 'jobs')\" 0",
    "EVAL \"redis.call('HDEL', KEYS[1], 'n') redis.call('HSET', KEYS[2], 'n', 77) redis.call('DEL', KEYS[3])\" 3 j:1 j:2 j:3",
    "EVAL \"redis.call('HSET', KEYS[1], 'n', 3) error('half done')\" 1 j:1",
    "FUNCTION LOAD REPLACE \"#!lua name=records\\nredis.register_function('put', function(keys, args) return redis.call('HSET', keys[1], 'n', args[1]) end)\"",
    "FCALL put 1 j:4 44",
    "FCALL compare_and_swap 1 j:4 n 44 45",
    "FUNCTION DELETE records",
    "SWEEP jobs BEFORE 50 WHERE state 1 new RETRY tries 1 ELSE 2 state failed n x SET 1 n 60",
    "SWEEP jobs BEFORE 70 RETRY tries 1 ELSE 2 state failed n x SET 1 n 60",
    "DEBUG RELOAD",
    "HSET j:4 n 1",
    "SAVE",
    "SELECT 2",
    "FLUSHDB",
    "SELECT 0",
    "HSET j:4 n 2",
    "FLUSHALL",
    "HSET j:4 n 2 state new",
    "HSET s:4 n 2 state new",
    "DEBUG RELOAD",
    "FLUSHALL ASYNC",
    "HSET j:4 n 2 state new",
];

const DATABASES: &[usize] = &[0, 1, 2];

#[test]
fn every_index_follows_every_command() {
    // Once with the server looking for what has expired, and once with nobody but whoever reads.
    for active in ["1", "0"] {
        let Some(session) = start() else { return };
        let (mut connection, mut reader) = (session.connect(), session.connect());
        ok(&mut connection, &format!("DEBUG SET-ACTIVE-EXPIRE {active}"));
        for index in INDEXES {
            assert_eq!(index.create(&mut connection).to_string(), "+OK", "{}", index.command());
        }
        for (number, step) in STEPS.iter().enumerate() {
            if *step == "wait" {
                // Every short deadline above is a millisecond.
                std::thread::sleep(std::time::Duration::from_millis(3));
            } else {
                let reply = connection.run(step);
                let may_fail = step.contains("half done") || step.contains("m 9223372036854775807");
                assert!(!reply.is_error() || may_fail, "{step}: {reply}");
                // What is about to expire is looked at when it has.
                if STEPS.get(number + 1) == Some(&"wait") {
                    continue;
                }
            }
            assert_all_exact(&mut reader, DATABASES, INDEXES, &format!("step {number}: {step}"));
        }
        ok(&mut connection, "DEBUG SET-ACTIVE-EXPIRE 1");
    }
}

#[test]
fn a_record_that_is_restored_is_indexed() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    INDEXES.iter().for_each(|index| drop(index.create(&mut connection)));
    connection.run("HSET j:1 n 5 m 6 state new");
    connection.run("HSET j:2 n 6 state done");
    let restore = |connection: &mut Connection, from: &str, to: &str, options: &str| {
        let dump = connection.run(&format!("DUMP {from}"));
        let mut args = wire::split_args(&format!("RESTORE {to} 0")).expect("plain words");
        args.push(dump.bytes().to_vec());
        args.extend(wire::split_args(options).expect("plain words"));
        let reply = connection.run_args(&args);
        assert_eq!(reply.to_string(), "+OK", "RESTORE {to}");
        assert_all_exact(connection, &[0], INDEXES, &format!("RESTORE of {from} to {to}"));
    };
    restore(&mut connection, "j:1", "k:1", "");
    restore(&mut connection, "j:1", "away", "");
    restore(&mut connection, "j:1", "j:2", "REPLACE");
    restore(&mut connection, "k:1", "s:1", "REPLACE");
    connection.run("SET text x");
    restore(&mut connection, "text", "j:1", "REPLACE");
}

/// At once: the very next command sees it, though nobody has removed anything.
#[test]
fn what_has_expired_has_left() {
    check(
        r##"
        # holdfast only
        > DEBUG SET-ACTIVE-EXPIRE 0
        +OK
        > IDX.CREATE open PREFIX 1 j: FIELD n EXCLUDE state 1 done
        +OK
        > IDX.CREATE done PREFIX 1 j: FIELD n ONLY state 1 done
        +OK
        > HSET j:1 n 1
        > HSET j:2 n 2 x 1
        > HSET j:3 n 3 state done
        > PEXPIRE j:1 1
        > HPEXPIRE j:2 1 FIELDS 1 n
        > HPEXPIRE j:3 1 FIELDS 1 state
        :1
        :2
        :2
        :1
        [:1]
        [:1]
        # sleep 5ms
        > ZRANGE open 0 -1
        ["j:3"]
        > ZRANGE done 0 -1
        []
        > HSET j:1 n 1
        :1
        > PEXPIRE j:1 1
        :1
        # sleep 5ms
        > IDX.RANGE open 0 9 KEYS
        ["j:3"]
        > HSET j:1 n 1
        :1
        > PEXPIRE j:1 1
        :1
        # sleep 5ms
        > SWEEP open BEFORE 9 SET 1 n 4
        [["j:3", "requeued"]]
        > HSET j:1 n 1
        :1
        > PEXPIRE j:1 1
        :1
        # sleep 5ms
        > ZCARD open
        :1
        > HSET j:1 n 1
        :1
        > PEXPIRE j:1 1
        :1
        # sleep 5ms
        > IDX.INFO open
        ["prefixes", ["j:"], "field", "n", "only", (nil), "exclude", ["state", "done"], "stamp", :0, "entries", :1, "bytes", *]
        > HSET j:1 n 1
        :1
        > PEXPIRE j:1 1
        :1
        # sleep 5ms
        > ZSCORE open j:1
        (nil)
        > HSET j:1 n 1
        :1
        > PEXPIRE j:1 1
        :1
        # sleep 5ms
        > MULTI
        +OK
        > ZRANK open j:3
        +QUEUED
        > EXEC
        [:0]
        > HSET j:1 n 1
        :1
        > PEXPIRE j:1 1
        :1
        # sleep 5ms
        > EVAL "return redis.call('ZRANGE', KEYS[1], 0, -1)" 1 open
        ["j:3"]
        > HSET j:1 n 1
        :1
        > PEXPIRE j:1 1
        :1
        # sleep 5ms
        > EVAL_RO "return redis.call('ZRANGE', KEYS[1], 0, -1)" 1 open
        ["j:3"]
        > DEBUG SET-ACTIVE-EXPIRE 1
        +OK
        "##,
    );
}
