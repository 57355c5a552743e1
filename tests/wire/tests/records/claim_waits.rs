//! CLAIM with BLOCK: what ends a wait, in which order clients are served, and how they are seen and sent away.

use crate::support::{check, eventually, start};

/// Everything that can make a record one to claim. Each line of writes serves one client that waits.
#[test]
fn any_write_can_end_a_wait() {
    let Some(session) = start() else { return };
    let (mut waiting, mut writer) = (session.connect(), session.connect());
    writer.run("IDX.CREATE due PREFIX 1 job: FIELD at EXCLUDE state 1 done");
    let payload = {
        writer.run("HSET src at 7");
        writer.run("DUMP src").bytes().to_vec()
    };
    let writes: &[&[&str]] = &[
        &["HSET job:1 at 7"],
        &["HPUT job:1 FIELDS 1 at 7"],
        &["HCAS job:1 SET 1 at 7"],
        &["HMSET job:1 at 7"],
        &["HSETNX job:1 at 7"],
        &["HINCRBY job:1 at 7"],
        &["HINCRBYFLOAT job:1 at 7"],
        &["HSET job:1 at 7 state done", "HDEL job:1 state"],
        &["HSET job:1 at 7 state done", "HSET job:1 state new"],
        &["HSET job:1 at 7 state done", "HPEXPIRE job:1 1 FIELDS 1 state"],
        &["RENAME src job:1", "HSET src at 7"],
        &["COPY src job:1"],
        &["RESTORE"],
        &["SELECT 1", "HSET job:1 at 7", "MOVE job:1 0", "SELECT 0"],
        &["SELECT 1", "HSET job:1 at 7", "SELECT 0", "SWAPDB 0 1", "HSET src at 7"],
        &["EVAL \"redis.call('HSET', 'job:1', 'at', 7)\" 0"],
        &["MULTI", "HSET job:1 at 7", "EXEC"],
        &["HSET job:1 at no", "SET job:1 x", "DEL job:1", "HSET job:1 at 7"],
    ];
    for lines in writes {
        waiting.queue_line("CLAIM 1 due SET 1 at never BLOCK 0 KEYS");
        waiting.flush();
        eventually("it waits", || writer.run("INFO clients").text().contains("blocked_clients:1\r\n"));
        for line in *lines {
            let reply = match *line {
                "RESTORE" => writer.run_args(&[&b"RESTORE"[..], b"job:1", b"0", &payload]),
                line => writer.run(line),
            };
            assert!(!reply.to_string().starts_with('-'), "{line}: {reply}");
        }
        assert_eq!(waiting.read().to_string(), r#"["job:1"]"#, "{lines:?}");
        writer.run("DEL job:1");
    }
}

#[test]
fn time_can_end_a_wait() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HSET job:1 at 1
        // In a moment it is due again.
        CLAIM 1 due MAX NOW SET 1 at NOW+30 KEYS => ["job:1"]
        CLAIM 1 due MAX NOW SET 1 at NOW+60000 KEYS BLOCK 0 => ["job:1"]
        CLAIM 1 due MAX (NOW+59990 SET 1 at 5 KEYS BLOCK 20000 => ["job:1"]
        // It is not, and the wait is over. What expires ends no wait.
        ! PEXPIRE job:1 5
        CLAIM 1 due MIN 6 SET 1 at 7 BLOCK 20 => []
        CLAIM 1 due SET 1 at 7 BLOCK 1 => []
        "##,
    );
}

#[test]
fn clients_that_wait_are_seen_and_sent_away() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! CLIENT SETNAME waits
        > CLAIM 1 due SET 1 at 10 BLOCK 0
        # until blocked_clients:1
        2> CLIENT LIST
        ~"*name=waits *flags=b *cmd=claim*"
        2> CLIENT KILL TYPE normal SKIPME yes
        :1..
        1< (closed)
        # until blocked_clients:0
        // What comes later is still there.
        2! HSET job:1 at 1
        2> HGET job:1 at
        "1"
        "##,
    );
}

#[test]
fn a_wait_can_be_unblocked() {
    let Some(session) = start() else { return };
    let (mut waiting, mut other) = (session.connect(), session.connect());
    other.run("IDX.CREATE due PREFIX 1 job: FIELD at");
    let id = waiting.run("CLIENT ID").integer();
    for (how, reply) in [("", "[]"), (" TIMEOUT", "[]"), (" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK")] {
        waiting.queue_line("CLAIM 1 due SET 1 at 10 BLOCK 0");
        waiting.flush();
        let unblock = format!("CLIENT UNBLOCK {id}{how}");
        eventually("it waits", || other.run(&unblock).integer() == 1);
        assert_eq!(waiting.read().to_string(), reply);
    }
    other.run("HSET job:1 at 1");
    assert_eq!(waiting.run("CLAIM 1 due SET 1 at 10 KEYS BLOCK 0").to_string(), r#"["job:1"]"#);
}

#[test]
fn a_dropped_index_ends_the_wait() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! IDX.CREATE other PREFIX 1 job: FIELD at
        > CLAIM 2 other due SET 1 at 10 BLOCK 0
        # until blocked_clients:1
        2> CLAIM 1 due SET 1 at 10 BLOCK 0 KEYS
        # until blocked_clients:2
        3! IDX.DROP other
        1< -ERR the index 'other' was dropped
        # until blocked_clients:1
        3! HSET job:1 at 1
        2< ["job:1"]
        > CLAIM 1 due MIN 11 SET 1 at 10 BLOCK 0
        # until blocked_clients:1
        3! MULTI
        3! IDX.DROP due
        3! IDX.CREATE due PREFIX 1 job: FIELD at
        3> EXEC
        *
        1< -ERR the index 'due' was dropped
        "##,
    );
}

/// While writes are paused nobody is served; then all are.
#[test]
fn a_pause_holds_waiters_back() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        > EVAL "local now = redis.call('TIME'); return redis.call('HSET', 'job:1', 'at', now[1] * 1000 + 4000)" 0
        :1
        > CLAIM 1 due MAX NOW SET 1 at never BLOCK 0 KEYS
        # until blocked_clients:1
        2! CLIENT PAUSE 100000 WRITE
        # eventually
        2> EVAL_RO "return redis.call('TIME')[1] * 1000 > redis.call('HGET', 'job:1', 'at') + 0" 0
        :1
        2> HGET job:1 owner
        (nil)
        2> INFO clients
        ~"*blocked_clients:1*"
        2! CLIENT UNPAUSE
        1< ["job:1"]
        "##,
    );
}

#[test]
fn a_reply_is_in_the_protocol_and_database_of_the_client_that_waits() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        ! HELLO 3
        > CLAIM 1 due SET 1 at 10 BLOCK 0
        # until blocked_clients:1
        2! HSET job:1 at 1.5
        1< [["job:1", ,1.5, {"at" => "10"}]]
        // In its database.
        ! SELECT 2
        > CLAIM 1 due SET 1 at 10 BLOCK 0 WITHTTL FIELDS 1 at
        # until blocked_clients:1
        2> HSET job:1 at 5
        :0
        2! SELECT 2
        2! HPUT job:1 PX 100000 FIELDS 1 at 5
        1< [["job:1", ,5, {"at" => "10"}, :1..100000]]
        "##,
    );
}
