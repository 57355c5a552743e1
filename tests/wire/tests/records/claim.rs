//! CLAIM without a wait: which records it takes, what becomes of them, what it replies and what it refuses.

use crate::support::{check, start};
use wire::Random;

#[test]
fn the_lowest_scores_are_claimed_first() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HSET job:b at 5
        ! HSET job:a at 5
        ! HSET job:c at -1.5 state new
        ! HSET job:d at 7
        ! HSET job:text at soon
        ! HSET other at 1
        ! SET job:string 1
        CLAIM 1 due SET 2 at 100 owner w1 => [["job:c", "-1.5", ["at", "100", "state", "new", "owner", "w1"]]]
        // Of equal scores the first name; several at once in their order.
        CLAIM 1 due SET 1 at 200 COUNT 2 => [["job:a", "5", ["at", "200"]], ["job:b", "5", ["at", "200"]]]
        // Each record once, though it would qualify again.
        CLAIM 1 due SET 1 owner w2 COUNT 100 KEYS => ["job:d", "job:c", "job:a", "job:b"]
        > claim 1 due keys count 1 set 1 owner w3
        ["job:d"]
        > HGETALL job:d
        ["at", "7", "owner", "w3"]
        ! DEL job:a job:b job:c job:d
        > CLAIM 1 due SET 1 at 1
        []
        ! SELECT 1
        ! HSET job:1 at 1
        > CLAIM 1 due SET 1 at 2 KEYS
        ["job:1"]
        ! SELECT 0
        CLAIM 1 due SET 1 at 2 KEYS => []
        "##,
    );
}

#[test]
fn ranges_are_those_of_zrangebyscore_or_of_the_time() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HSET job:1 at 1
        ! HSET job:2 at 2
        ! HSET job:3 at 3
        CLAIM 1 due MIN 2 MAX 2 SET 1 seen 1 KEYS COUNT 9 => ["job:2"]
        CLAIM 1 due MIN (1 MAX (3 SET 1 seen 1 KEYS COUNT 9 => ["job:2"]
        CLAIM 1 due MIN (2 SET 1 seen 1 KEYS COUNT 9 => ["job:3"]
        CLAIM 1 due MAX (1 SET 1 seen 1 KEYS COUNT 9 => []
        CLAIM 1 due MIN -inf MAX +inf SET 1 seen 1 KEYS COUNT 9 => ["job:1", "job:2", "job:3"]
        CLAIM 1 due MIN 3 MAX 1 SET 1 seen 1 KEYS COUNT 9 => []
        CLAIM 1 due MAX NOW SET 1 at NOW+60000 KEYS => ["job:1"]
        CLAIM 1 due MIN NOW MAX NOW+70000 SET 1 at NOW+600000 KEYS COUNT 9 => ["job:1"]
        CLAIM 1 due MIN (NOW MAX (NOW+700000 SET 1 at NOW-60000 KEYS COUNT 9 => ["job:1"]
        CLAIM 1 due MIN NOW-70000 MAX NOW-50000 SET 1 at 9 KEYS COUNT 9 => ["job:1"]
        // In small letters it is no time.
        CLAIM 1 due MAX now SET 1 at 9 => -ERR MAX must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not 'now'
        CLAIM 1 due MIN x SET 1 at 9 => -ERR MIN must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not 'x'
        CLAIM 1 due MAX nan SET 1 at 9 => -ERR MAX must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not 'nan'
        // A value that only begins like one.
        CLAIM 1 due MIN 9 SET 2 a NOWHERE b now KEYS => ["job:1"]
        HMGET job:1 a b => ["NOWHERE", "now"]
        "##,
    );
}

#[test]
fn conditions_and_counters_judge_each_record() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HSET job:1 at 1 state done
        ! HSET job:2 at 2 state new kind a
        ! HSET job:3 at 3 state new kind b attempt x
        ! HSET job:4 at 4 state new kind b attempt 2
        CLAIM 1 due WHERE state 1 new WHERE kind 2 b c SET 1 seen 1 KEYS => ["job:3"]
        CLAIM 1 due WHERE state 0 SET 1 seen 1 KEYS => []
        CLAIM 1 due WHERE nosuch 1 "" SET 1 seen 1 KEYS => []
        // A counter that is no integer passes the record over; a missing one is 0.
        > CLAIM 1 due WHERE state 1 new SET 0 COUNTER attempt COUNT 9 FIELDS 1 attempt
        [["job:2", "2", ["attempt", "1"]], ["job:4", "4", ["attempt", "3"]]]
        // With a limit, it is as one that was claimed too often.
        > CLAIM 1 due WHERE state 1 new SET 1 seen 2 COUNTER attempt UPTO 3 ELSE 2 state dead at NOW COUNT 9 KEYS
        ["job:2"]
        HMGET job:2 attempt seen state => ["2", "2", "new"]
        HMGET job:3 attempt seen state => ["x", "1", "dead"]
        HMGET job:4 attempt seen state => ["3", (nil), "dead"]
        // ELSE of all, and nothing is left.
        CLAIM 1 due WHERE state 1 new SET 0 COUNTER attempt UPTO 0 ELSE 1 state dead => []
        HGET job:2 state => "dead"
        HSET job:2 attempt 9223372036854775807 => :0
        CLAIM 1 due MAX 2 WHERE state 1 dead SET 0 COUNTER attempt => []
        > CLAIM 1 due MAX 2 WHERE state 1 dead SET 0 COUNTER attempt UPTO 9223372036854775807 ELSE 1 state full
        []
        HMGET job:2 attempt state => ["9223372036854775807", "full"]
        "##,
    );
}

#[test]
fn several_indexes_are_asked_in_their_order() {
    check(
        r##"
        ! IDX.CREATE high PREFIX 1 job: FIELD at ONLY prio 1 high
        ! IDX.CREATE low PREFIX 1 job: FIELD at EXCLUDE prio 1 high
        ! HSET job:1 at 1 prio low
        ! HSET job:2 at 2 prio high
        ! HSET job:3 at 3 prio high
        // From the first that has any, though not as many as are wanted.
        CLAIM 2 high low SET 1 at 10 COUNT 9 KEYS MAX 9 => ["job:2", "job:3"]
        CLAIM 2 high low SET 1 at 10 COUNT 9 KEYS MAX 9 => ["job:1"]
        CLAIM 2 high low SET 1 at 10 COUNT 9 KEYS MAX 9 => []
        CLAIM 2 low low SET 1 at 11 COUNT 9 KEYS => ["job:1"]
        // What ELSE brings into the second index was judged in the first.
        CLAIM 2 high low SET 1 at 12 COUNTER n UPTO 0 ELSE 1 prio low COUNT 9 KEYS => []
        IDX.RANGE low -inf +inf KEYS => ["job:2", "job:3", "job:1"]
        CLAIM 2 high nosuch SET 1 at 10 => -ERR there is no index 'nosuch'
        "##,
    );
}

#[test]
fn replies_are_rows_of_names_scores_and_maps() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HSET job:1 at 1 a x
        ! PEXPIRE job:1 100000
        CLAIM 1 due SET 1 at 2 WITHTTL => [["job:1", "1", ["at", "2", "a", "x"], :1..100000]]
        CLAIM 1 due SET 1 at 3 KEYS WITHTTL => [["job:1", :1..100000]]
        PERSIST job:1 => :1
        CLAIM 1 due SET 1 at 4 FIELDS 2 a nosuch WITHTTL => [["job:1", "3", ["a", "x"], :-1]]
        > CLAIM 1 due SET 1 at 5 FIELDS 0
        [["job:1", "4", []]]
        ! HELLO 3
        CLAIM 1 due SET 1 at 6.5 => [["job:1", ,5, {"at" => "6.5", "a" => "x"}]]
        CLAIM 1 due SET 1 at 7 FIELDS 1 at WITHTTL => [["job:1", ,6.5, {"at" => "7"}, :-1]]
        CLAIM 1 due MIN 8 SET 1 at 9 => []
        CLAIM 1 due MIN 8 SET 1 at 9 BLOCK 1 => []
        "##,
    );
}

#[test]
fn errors_name_the_argument_and_change_nothing() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HSET job:1 at 1
        CLAIM 1 due => ~-ERR wrong number of arguments for 'claim' command. Usage: CLAIM*
        CLAIM 0 SET 1 a b => -ERR CLAIM needs the name of at least one index
        CLAIM x due SET 1 a b => -ERR the count behind CLAIM must be a whole number not below 0, not 'x'
        CLAIM 9 due SET 1 a b => ~-ERR CLAIM counts 9 items of*
        CLAIM 1 due KEYS WITHTTL => ~-ERR missing: SET, which says what becomes of a record. Usage: *
        CLAIM 1 due SET 0 => -ERR SET must set at least one field, or the record would be found again and again
        CLAIM 1 due SET 1 n 1 COUNTER n => -ERR the field 'n' is counted, and cannot be in SET too
        CLAIM 1 due SET 1 a b UPTO 3 ELSE 1 a c => ~-ERR missing: COUNTER, without which UPTO has no meaning. Usage: *
        > CLAIM 1 due SET 1 a b COUNTER n UPTO 3
        ~-ERR missing: ELSE, which says what becomes of a record above UPTO. Usage: *
        > CLAIM 1 due SET 1 a b COUNTER n ELSE 1 a c
        ~-ERR missing: UPTO, without which ELSE has no meaning. Usage: *
        > CLAIM 1 due SET 1 a b COUNTER n UPTO 3 ELSE 0
        -ERR ELSE must set at least one field, or the record would be found again
        CLAIM 1 due SET 1 a b COUNT 0 => -ERR the number behind COUNT must be a whole number not below 1, not '0'
        CLAIM 1 due SET 1 a b KEYS FIELDS 1 a => ~-ERR *
        CLAIM 1 due SET 1 a b LIMIT 3 => ~-ERR unknown option 'LIMIT'. *
        CLAIM 1 nosuch SET 1 a b BLOCK 0 => -ERR there is no index 'nosuch'
        ! ZADD due2 1 job:1
        CLAIM 1 due2 SET 1 a b => -ERR there is no index 'due2'
        HGETALL job:1 => ["at", "1"]
        "##,
    );
}

#[test]
fn transactions_and_scripts_claim_without_waiting() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HSET job:1 at 1
        ! MULTI
        ! HSET job:2 at 0
        ! CLAIM 1 due MAX 9 SET 1 at 10 COUNT 5 BLOCK 0 KEYS
        ! CLAIM 1 due MAX 9 SET 1 at 10 COUNT 5 BLOCK 0 KEYS
        ! CLAIM 1 nosuch SET 1 at 10
        > EXEC
        [:1, ["job:2", "job:1"], [], -"ERR there is no index 'nosuch'"]
        > EVAL "return redis.call('CLAIM', '1', 'due', 'SET', '1', 'at', '20', 'COUNTER', 'n', 'BLOCK', '0')" 0
        [["job:1", "10", ["at", "20", "n", "1"]]]
        EVAL "return redis.call('CLAIM', '1', 'due', 'MAX', '5', 'SET', '1', 'at', '20', 'BLOCK', '0')" 0 => []
        EVAL "return redis.pcall('CLAIM', '1', 'due', 'SET', '0')" 0 => ~-ERR SET must set at least one field*
        > EVAL_RO "return redis.call('CLAIM', '1', 'due', 'SET', '1', 'at', '20')" 0
        ~-ERR Write commands are not allowed from read-only scripts*
        // A watched record that is claimed ends the transaction.
        ! WATCH job:2
        2> CLAIM 1 due SET 1 at 30 KEYS
        ["job:2"]
        ! MULTI
        ! PING
        > EXEC
        (nil array)
        "##,
    );
}

/// A counter that has expired begins again.
#[test]
fn an_expired_counter_is_none() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! DEBUG SET-ACTIVE-EXPIRE 0
        ! HSET job:3 at 3 n 5
        ! HPEXPIRE job:3 1 FIELDS 1 n
        # sleep 5ms
        > CLAIM 1 due SET 1 at 10 COUNTER n UPTO 5 ELSE 1 state done FIELDS 2 at n
        [["job:3", "3", ["at", "10", "n", "1"]]]
        "##,
    );
}

#[test]
fn those_who_watch_the_server_see_one_write() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        # config notify-keyspace-events KEA
        ! HSET job:1 at 1
        ! HSET job:2 at 2
        2> PSUBSCRIBE __key*__:*
        ["psubscribe", "__key*__:*", :1]
        3> MONITOR
        +OK
        ! CONFIG RESETSTAT
        > CLAIM 1 due MAX 9 SET 1 at 10 COUNT 2 KEYS
        ["job:1", "job:2"]
        2< ["pmessage", "__key*__:*", "__keyspace@0__:job:1", "hset"]
        2< ["pmessage", "__key*__:*", "__keyevent@0__:hset", "job:1"]
        2< ["pmessage", "__key*__:*", "__keyspace@0__:job:2", "hset"]
        2< ["pmessage", "__key*__:*", "__keyevent@0__:hset", "job:2"]
        3< ~+*"CLAIM" "1" "due" "MAX" "9" "SET" "1" "at" "10" "COUNT" "2" "KEYS"
        3> RESET
        +RESET
        2> RESET
        +RESET
        CLAIM 1 due MAX 9 SET 1 at 10 => []
        CLAIM 1 due SET 0 => ~-ERR SET must*
        INFO commandstats => ~"*cmdstat_claim:calls=3,*rejected_calls=0,failed_calls=1*"
        COMMAND INFO claim => *
        # config slowlog-log-slower-than 0
        > CLAIM 1 due SET 1 at 20 KEYS
        ["job:1"]
        # config slowlog-log-slower-than -1
        > SLOWLOG GET 2
        [*, [:0.., :0.., :0.., ["CLAIM", "1", "due", "SET", "1", "at", "20", "KEYS"], *, *]]
        "##,
    );
}

/// A script that has written is not refused in the middle, also behind a command that searches.
#[test]
fn claims_are_refused_when_memory_is_short_but_not_in_the_middle_of_a_script() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HSET job:1 at 1
        # config maxmemory 1
        CLAIM 1 due SET 1 at 2 => -OOM command not allowed when used memory > 'maxmemory'.
        > EVAL "redis.call('DEL', 'x') redis.call('CLAIM', 1, 'due', 'SET', 1, 'at', 2) return redis.call('SET', 'y', 1)" 0
        +OK
        ! CONFIG SET maxmemory 0
        CLAIM 1 due MIN 2 SET 1 at 2 KEYS => ["job:1"]
        "##,
    );
}

#[test]
fn lists_that_are_too_long_are_refused() {
    let words = |count: usize| (0..count).map(|number| format!(" w{number}")).collect::<String>();
    let (indexes, values, too_many) = (words(65), words(1024), words(1025));
    check(&format!(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HSET job:1 at 1 kind w1023
        CLAIM 65{indexes} SET 1 a b => -ERR CLAIM takes at most 64 indexes
        CLAIM 1 due WHERE kind 1025{too_many} SET 1 a b => -ERR WHERE takes at most 1024 values
        CLAIM 1 due WHERE kind 1024{values} SET 1 a b KEYS => ["job:1"]
        "##
    ));
}

/// Another index on the field of WHERE, or one whose ONLY or EXCLUDE follows from it, makes a search shorter, and changes nothing else: the same records are
/// under two prefixes, and only one of them has such indexes.
#[test]
fn other_indexes_change_nothing_but_the_way() {
    let Some(session) = start() else { return };
    let mut client = session.connect();
    let mut random = Random::from_env();
    for line in [
        "IDX.CREATE plain:due PREFIX 1 plain: FIELD at",
        "IDX.CREATE side:due PREFIX 1 side: FIELD at EXCLUDE state 1 done",
        "IDX.CREATE side:kind PREFIX 1 side: FIELD kind",
        "IDX.CREATE side:cpu PREFIX 2 other: si FIELD at ONLY state 2 cpu fpu",
        "IDX.CREATE side:idle PREFIX 1 side: FIELD at EXCLUDE state 2 done gpu",
        "IDX.CREATE side:narrow PREFIX 1 side:1 FIELD kind",
    ] {
        assert_eq!(client.run(line).to_string(), "+OK", "{line}");
    }
    let wheres = [
        "WHERE kind 1 7",
        "WHERE kind 2 7 8",
        "WHERE kind 1 7.0",
        "WHERE kind 2 7 seven",
        "WHERE state 1 cpu",
        "WHERE state 2 cpu fpu WHERE kind 1 8",
        "WHERE state 2 cpu idle",
        "WHERE state 1 nothing",
        "WHERE kind 1 9",
    ];
    for step in 0..600 {
        let number = random.below(150);
        let line = match random.below(6) {
            0 => format!("DEL P:{number}"),
            1..4 => {
                let kind = random.pick(&["1", "1", "1", "1", "7", "7.0", "8", "seven"]);
                let state = random.pick(&["idle", "idle", "idle", "gpu", "cpu", "fpu"]);
                format!("HSET P:{number} at {} kind {kind} state {state} tries {}", random.below(20), random.below(5))
            }
            _ => {
                let range = random.pick(&["", "MAX 10", "MIN (3", "MIN 5 MAX (12"]);
                let counter = random.pick(&["", "COUNTER tries", "COUNTER tries UPTO 3 ELSE 1 state gpu"]);
                let (condition, count) = (random.pick(&wheres), random.pick(&[1, 1, 3, 100]));
                format!("CLAIM 1 P:due {range} {condition} SET 1 at {} {counter} COUNT {count}", random.below(30))
            }
        };
        let [plain, side] = ["plain:", "side:"].map(|prefix| {
            let reply = client.run(&line.replace("P:", prefix)).to_string();
            assert!(!reply.starts_with('-'), "{line}: {reply}");
            reply.replace(prefix, "P:")
        });
        assert_eq!(plain, side, "step {step}: {line}");
    }
}
