//! What others hear of a transaction, they hear at TXN.COMMIT, all together; of one that is rolled back, nothing.

use crate::check;

#[test]
fn notifications_are_published_at_the_commit() {
    check(
        r#"
        # config notify-keyspace-events KEAn
        2> SUBSCRIBE __keyevent@0__:set __keyevent@0__:hset __keyevent@0__:del
        ["subscribe", "__keyevent@0__:set", :1]
        ["subscribe", "__keyevent@0__:hset", :2]
        ["subscribe", "__keyevent@0__:del", :3]
        4> SUBSCRIBE __keyevent@0__:new
        ["subscribe", "__keyevent@0__:new", :1]
        ! TXN.BEGIN
        ! SET lost 1
        ! TXN.ROLLBACK
        ! TXN.BEGIN
        ! SET a 1
        ! HSET h f v
        ! HSET h f w
        ! DEL a
        3! SET between 1
        ! TXN.COMMIT
        2< ["message", "__keyevent@0__:set", "between"]
        2< ["message", "__keyevent@0__:set", "a"]
        2< ["message", "__keyevent@0__:hset", "h"]
        2< ["message", "__keyevent@0__:hset", "h"]
        2< ["message", "__keyevent@0__:del", "a"]
        // A new key is announced once.
        4< ["message", "__keyevent@0__:new", "between"]
        4< ["message", "__keyevent@0__:new", "a"]
        4< ["message", "__keyevent@0__:new", "h"]
        "#,
    );
}

#[test]
fn a_waiting_client_is_served_at_the_commit() {
    check(
        r#"
        2> BZPOPMIN z 0
        # until blocked_clients:1
        ! TXN.BEGIN
        ! ZADD z 1 a 2 b
        > ZRANGE z 0 -1
        ["a", "b"]
        3> EXISTS z
        :0
        ! TXN.COMMIT
        2< ["z", "a", "1"]
        > ZRANGE z 0 -1
        ["b"]
        "#,
    );
}

#[test]
fn indexes_and_claims_see_records_at_the_commit() {
    check(
        r#"
        ! IDX.CREATE txn:by_at PREFIX 1 txn:r: FIELD at
        ! IDX.CREATE txn:stamped PREFIX 1 txn:r: FIELD stamp STAMP
        ! HSET txn:r:1 at 15 stamp 5
        3> CLAIM 1 txn:by_at MAX 9 SET 2 at 10 owner me BLOCK 0 KEYS
        # until blocked_clients:1
        ! TXN.BEGIN
        ! HSET txn:r:1 at 19
        ! HSET txn:r:2 at 7
        // Stamped with the time of its command.
        HEXISTS txn:r:2 stamp => :1
        HGET txn:r:2 owner => (nil)
        2> ZRANGE txn:by_at 0 -1 WITHSCORES
        ["txn:r:1", "15"]
        2> ZRANGE txn:stamped 0 -1 WITHSCORES
        ["txn:r:1", "5"]
        ! TXN.COMMIT
        3< ["txn:r:2"]
        2> ZRANGE txn:by_at 0 -1 WITHSCORES
        ["txn:r:2", "10", "txn:r:1", "19"]
        2> ZCARD txn:stamped
        :2
        HGET txn:r:2 owner => "me"
        ! IDX.DROP txn:by_at
        ! IDX.DROP txn:stamped
        "#,
    );
}

#[test]
fn caching_clients_hear_of_a_commit() {
    check(
        r#"
        ! SET a 1
        2! HELLO 3
        2! CLIENT TRACKING on
        2> GET a
        "1"
        ! TXN.BEGIN
        ! SET a 2
        ! TXN.COMMIT
        2< push["invalidate", ["a"]]
        // What it reads inside a transaction is tracked as any read.
        2! TXN.BEGIN
        2> GET a
        "2"
        2! TXN.COMMIT
        ! SET a 3
        2< push["invalidate", ["a"]]
        "#,
    );
}

#[test]
fn a_caching_client_does_not_keep_what_it_has_not_committed() {
    check(
        r#"
        ! SET a 1
        ! HELLO 3
        ! CLIENT TRACKING on
        ! TXN.BEGIN
        ! SET a 2
        > GET a
        "2"
        push["invalidate", ["a"]]
        ! TXN.ROLLBACK
        GET a => "1"
        "#,
    );
}

#[test]
fn the_keyspace_counts_nothing_of_an_open_transaction() {
    check(
        r##"
        ! TXN.BEGIN
        ! SET a 1 EX 100
        ! HSET h f v
        2> DBSIZE
        :0
        2> KEYS *
        []
        2> INFO keyspace
        "# Keyspace\r\n"
        "##,
    );
}
