//! Sets as sources of ZUNION, ZINTER, ZDIFF, ZINTERCARD and their STORE forms: each member has the score 1.

use wire::check;

#[test]
fn a_members_score_is_1() {
    check(
        r#"
        ! SADD s a b
        ! SADD n 1 2
        ! ZADD z 2.5 b 7 c
        ZUNION 1 s WITHSCORES => ["a", "1", "b", "1"]
        ZUNION 2 s z WITHSCORES => ["a", "1", "b", "3.5", "c", "7"]
        ZUNION 2 z s WITHSCORES => ["a", "1", "b", "3.5", "c", "7"]
        ZUNION 2 s s WITHSCORES => ["a", "2", "b", "2"]
        ZUNION 3 s n z => ["1", "2", "a", "b", "c"]
        ZINTER 2 s z WITHSCORES => ["b", "3.5"]
        ZINTER 2 z s => ["b"]
        ZINTER 2 n s => []
        ZINTER 1 n WITHSCORES => ["1", "1", "2", "1"]
        ZDIFF 2 s z WITHSCORES => ["a", "1"]
        ZDIFF 2 z s WITHSCORES => ["c", "7"]
        ZDIFF 1 n WITHSCORES => ["1", "1", "2", "1"]
        ZDIFF 2 n n => []
        ZINTERCARD 2 s z => :1
        ZINTERCARD 1 n => :2
        ZINTERCARD 2 n n LIMIT 1 => :1
        ZUNION 2 s nosuch WITHSCORES => ["a", "1", "b", "1"]
        ZINTER 2 s nosuch => []
        ZDIFF 2 nosuch s => []
        ! HELLO 3
        > ZUNION 2 s z WITHSCORES
        [["a", ,1], ["b", ,3.5], ["c", ,7]]
        > ZDIFF 2 s z
        ["a"]
        "#,
    );
}

#[test]
fn weights_and_aggregation() {
    check(
        r#"
        ! SADD s a b
        ! ZADD z 2.5 b 7 c
        ZUNION 2 s z WEIGHTS 3 2 WITHSCORES => ["a", "3", "b", "8", "c", "14"]
        ZUNION 2 s z WEIGHTS -1 1 WITHSCORES => ["a", "-1", "b", "1.5", "c", "7"]
        ZUNION 2 s z AGGREGATE MIN WITHSCORES => ["a", "1", "b", "1", "c", "7"]
        ZUNION 2 s z AGGREGATE MAX WITHSCORES => ["a", "1", "b", "2.5", "c", "7"]
        ZUNION 2 s z WEIGHTS 5 1 AGGREGATE MAX WITHSCORES => ["a", "5", "b", "5", "c", "7"]
        ZINTER 2 s z WEIGHTS 10 1 WITHSCORES => ["b", "12.5"]
        ZINTER 2 s z WEIGHTS 0 0 WITHSCORES => ["b", "0"]
        ZINTER 2 s z WEIGHTS inf 1 AGGREGATE MIN WITHSCORES => ["b", "2.5"]
        ZINTER 3 s s z AGGREGATE SUM WITHSCORES => ["b", "4.5"]
        ZUNION 1 s WEIGHTS 0.5 WITHSCORES => ["a", "0.5", "b", "0.5"]
        ZUNION 1 s WEIGHTS x => -ERR weight value is not a float
        "#,
    );
}

#[test]
fn results_are_stored_as_sorted_sets() {
    check(
        r#"
        ! SADD s a b
        ! SADD n 1 2 10
        ! ZADD z 2.5 b 7 c
        > ZUNIONSTORE to 2 s z
        :3
        > ZRANGE to 0 -1 WITHSCORES
        ["a", "1", "b", "3.5", "c", "7"]
        > ZINTERSTORE to 2 s z WEIGHTS 2 1
        :1
        > ZRANGE to 0 -1 WITHSCORES
        ["b", "4.5"]
        > ZDIFFSTORE to 2 s z
        :1
        > ZRANGE to 0 -1 WITHSCORES
        ["a", "1"]
        > ZUNIONSTORE to 1 n
        :3
        ZRANGE to 0 -1 WITHSCORES => ["1", "1", "10", "1", "2", "1"]
        TYPE to => +zset
        OBJECT ENCODING to => "listpack"
        // A set becomes a sorted set, and the other way round.
        > ZUNIONSTORE s 1 s
        :2
        > TYPE s
        +zset
        > SUNIONSTORE s n
        :3
        > TYPE s
        +set
        > ZINTERSTORE s 2 s nosuch
        :0
        > EXISTS s
        :0
        > ZDIFFSTORE n 2 n n
        :0
        > EXISTS n
        :0
        "#,
    );
}

#[test]
fn large_and_mixed_sources() {
    check(
        r#"
        # config set-max-intset-entries 2
        ! SADD n 1 2
        ! SADD table 1 2 3 4
        ! SADD words 2 3 x
        OBJECT ENCODING n => "intset"
        OBJECT ENCODING table => "hashtable" | "listpack"
        ZINTER 3 n table words WITHSCORES => ["2", "3"]
        ZUNION 2 n words WITHSCORES => ["1", "1", "3", "1", "x", "1", "2", "2"]
        ZDIFF 3 table n words WITHSCORES => ["4", "1"]
        ZDIFF 2 words table => ["x"]
        ZINTERCARD 2 table words => :2
        // The sources stay as they are.
        > SMEMBERS words
        ~["x", "2", "3"]
        > OBJECT ENCODING n
        "intset"
        "#,
    );
}

#[test]
fn set_commands_take_no_sorted_sets() {
    check(
        r#"
        ! ZADD z 1 a
        ! SADD s a
        -WRONGTYPE Operation against a key holding the wrong kind of value
            SUNION s z
            SINTER z s
            SDIFF s z
            SUNIONSTORE to s z
            SINTERCARD 2 s z
            SMOVE z s a
        EXISTS to => :0
        "#,
    );
}

/// A client that waits for a sorted set gets no member of a set, but one of a sorted set that is made of sets.
#[test]
fn a_set_wakes_no_client_that_waits_for_a_sorted_set() {
    check(
        r#"
        2> BZPOPMIN k 0
        # until blocked_clients:1
        ! SADD k a
        ! SADD from x y
        > SUNIONSTORE k k from
        :3
        > SMOVE k other x
        :1
        > SMEMBERS k
        ~["a", "y"]
        > DEL k
        :1
        > ZINTERSTORE k 2 from from WEIGHTS 2 1
        :2
        2< ["k", "x", "3"]
        > ZRANGE k 0 -1 WITHSCORES
        ["y", "3"]
        "#,
    );
}
