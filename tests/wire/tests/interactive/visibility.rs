//! What others hear of a transaction, they hear at TXN.COMMIT, all together; of one that is rolled back, nothing.

use wire::check;

#[test]
fn notifications_are_published_at_the_commit() {
    check(
        r#"
        # holdfast only
        # config notify-keyspace-events KEA
        2> SUBSCRIBE __keyevent@0__:set __keyevent@0__:hset __keyevent@0__:del
        ["subscribe", "__keyevent@0__:set", :1]
        ["subscribe", "__keyevent@0__:hset", :2]
        ["subscribe", "__keyevent@0__:del", :3]
        > TXN.BEGIN
        +OK
        > SET lost 1
        +OK
        > TXN.ROLLBACK
        +OK
        > TXN.BEGIN
        +OK
        > SET a 1
        +OK
        > HSET h f v
        :1
        > DEL a
        :1
        3> SET between 1
        +OK
        > TXN.COMMIT
        :1..
        2< ["message", "__keyevent@0__:set", "between"]
        2< ["message", "__keyevent@0__:set", "a"]
        2< ["message", "__keyevent@0__:hset", "h"]
        2< ["message", "__keyevent@0__:del", "a"]
        "#,
    );
}

#[test]
fn new_keys_are_announced_once() {
    check(
        r#"
        # holdfast only
        # config notify-keyspace-events En
        2> SUBSCRIBE __keyevent@0__:new
        ["subscribe", "__keyevent@0__:new", :1]
        > TXN.BEGIN
        +OK
        > SET a 1
        +OK
        > INCR a
        :2
        > TXN.COMMIT
        :1..
        > SET last 1
        +OK
        2< ["message", "__keyevent@0__:new", "a"]
        2< ["message", "__keyevent@0__:new", "last"]
        "#,
    );
}

#[test]
fn a_waiting_client_is_served_at_the_commit() {
    check(
        r#"
        # holdfast only
        2> BZPOPMIN z 0
        # until blocked_clients:1
        > TXN.BEGIN
        +OK
        > ZADD z 1 a 2 b
        :2
        > ZRANGE z 0 -1
        ["a", "b"]
        3> EXISTS z
        :0
        > TXN.COMMIT
        :1..
        2< ["z", "a", "1"]
        > ZRANGE z 0 -1
        ["b"]
        "#,
    );
}

#[test]
fn an_index_sees_a_record_at_the_commit() {
    check(
        r#"
        # holdfast only
        > IDX.CREATE txn:by_at PREFIX 1 txn:r: FIELD at
        +OK
        > HSET txn:r:1 at 5
        :1
        > TXN.BEGIN
        +OK
        > HSET txn:r:1 at 9
        :0
        > HSET txn:r:2 at 7
        :1
        2> ZRANGE txn:by_at 0 -1 WITHSCORES
        ["txn:r:1", "5"]
        > TXN.COMMIT
        :1..
        2> ZRANGE txn:by_at 0 -1 WITHSCORES
        ["txn:r:2", "7", "txn:r:1", "9"]
        > IDX.DROP txn:by_at
        *
        "#,
    );
}

#[test]
fn records_are_stamped_with_the_time_of_their_command() {
    check(
        r#"
        # holdfast only
        > IDX.CREATE txn:stamped PREFIX 1 txn:r: FIELD at STAMP
        +OK
        > TXN.BEGIN
        +OK
        > HSET txn:r:1 f v
        :1
        > HEXISTS txn:r:1 at
        :1
        2> ZCARD txn:stamped
        :0
        > TXN.COMMIT
        :1..
        2> ZCARD txn:stamped
        :1
        > IDX.DROP txn:stamped
        *
        "#,
    );
}

#[test]
fn a_claim_that_waits_gets_a_record_at_the_commit() {
    check(
        r#"
        # holdfast only
        > IDX.CREATE txn:due PREFIX 1 txn:r: FIELD at
        +OK
        2> CLAIM 1 txn:due MAX 9 SET 2 at 10 owner me BLOCK 0 KEYS
        # until blocked_clients:1
        > TXN.BEGIN
        +OK
        > HSET txn:r:1 at 5
        :1
        > HGET txn:r:1 owner
        (nil)
        > TXN.COMMIT
        :1..
        2< ["txn:r:1"]
        > HGET txn:r:1 owner
        "me"
        > IDX.DROP txn:due
        *
        "#,
    );
}

#[test]
fn caching_clients_hear_of_a_commit() {
    check(
        r#"
        # holdfast only
        > SET a 1
        +OK
        2> HELLO 3
        *
        2> CLIENT TRACKING on
        +OK
        2> GET a
        "1"
        > TXN.BEGIN
        +OK
        > SET a 2
        +OK
        > TXN.COMMIT
        :1..
        2< push["invalidate", ["a"]]
        // What it reads inside a transaction is tracked as any read.
        2> TXN.BEGIN
        +OK
        2> GET a
        "2"
        2> TXN.COMMIT
        :0..
        > SET a 3
        +OK
        2< push["invalidate", ["a"]]
        "#,
    );
}

#[test]
fn a_caching_client_does_not_keep_what_it_has_not_committed() {
    check(
        r#"
        # holdfast only
        > SET a 1
        +OK
        > HELLO 3
        *
        > CLIENT TRACKING on
        +OK
        > TXN.BEGIN
        +OK
        > SET a 2
        +OK
        > GET a
        "2"
        push["invalidate", ["a"]]
        > TXN.ROLLBACK
        +OK
        > GET a
        "1"
        "#,
    );
}

#[test]
fn the_keyspace_counts_nothing_of_an_open_transaction() {
    check(
        r##"
        # holdfast only
        > TXN.BEGIN
        +OK
        > SET a 1 EX 100
        +OK
        > HSET h f v
        :1
        2> DBSIZE
        :0
        2> KEYS *
        []
        2> INFO keyspace
        "# Keyspace\r\n"
        "##,
    );
}
