//! Whole databases: FLUSHDB, FLUSHALL, SWAPDB.

use wire::check;

#[test]
fn flushdb_and_flushall() {
    check(
        r#"
        // FLUSHDB empties the selected database.
        MSET a 1 b 2 => +OK
        SELECT 1 => +OK
        SET c 3 => +OK
        FLUSHDB => +OK
        DBSIZE => :0
        SELECT 0 => +OK
        DBSIZE => :2
        FLUSHDB SYNC => +OK
        GET a => (nil)
        FLUSHDB async => +OK
        ! FLUSHALL
        // FLUSHALL empties each.
        SET a 1 EX 100 => +OK
        SELECT 15 => +OK
        HSET h f v => :1
        FLUSHALL => +OK
        DBSIZE => :0
        SELECT 0 => +OK
        EXISTS a => :0
        SET a 1 => +OK
        TTL a => :-1
        FLUSHALL ASYNC => +OK
        FLUSHALL sync => +OK
        KEYS * => []
        ! FLUSHALL
        SET a 1 => +OK
        -ERR syntax error
            FLUSHDB NOSUCH
            FLUSHALL NOSUCH
            FLUSHDB ASYNC SYNC
            FLUSHALL SYNC SYNC
        EXISTS a => :1
        "#,
    );
}

#[test]
fn swapdb() {
    check(
        r#"
        SWAPDB abc 1 => -ERR invalid first DB index
        SWAPDB 1 abc => -ERR invalid second DB index
        SWAPDB 0 3000000000 => -ERR invalid second DB index
        SWAPDB 0 16 => -ERR DB index is out of range
        SWAPDB -1 0 => -ERR DB index is out of range
        SWAPDB 99 abc => -ERR invalid second DB index
        SWAPDB 0 => -ERR wrong number of arguments for 'swapdb' command
        SWAPDB 0 1 2 => -ERR wrong number of arguments for 'swapdb' command
        SET a 1 EXAT 33177117420 => +OK
        SELECT 3 => +OK
        SET b 2 => +OK
        SWAPDB 0 3 => +OK
        MGET a b => ["1", (nil)]
        EXPIRETIME a => :33177117420
        DBSIZE => :1
        SELECT 0 => +OK
        KEYS * => ["b"]
        // Seen by those who had it selected before.
        2> GET b => "2"
        SWAPDB 3 3 => +OK
        SWAPDB 3 0 => +OK
        2> MGET a b => ["1", (nil)]
        "#,
    );
}
