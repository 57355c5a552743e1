//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.

use wire::check;

#[test]
fn queued_commands_are_executed_together() {
    check(
        r#"
        > MULTI
        +OK
        > SET a 1
        +QUEUED
        > INCR a
        +QUEUED
        2> EXISTS a
        :0
        > HSET h f v g w
        +QUEUED
        > GET a
        +QUEUED
        > EXEC
        [+OK, :2, :2, "2"]
        2> MGET a h
        ["2", (nil)]
        > EXEC
        -ERR EXEC without MULTI
        "#,
    );
}

#[test]
fn an_empty_transaction_has_an_empty_reply() {
    check(
        r#"
        > MULTI
        +OK
        > EXEC
        []
        "#,
    );
}

#[test]
fn words_out_of_place() {
    check(
        r#"
        > EXEC
        -ERR EXEC without MULTI
        > DISCARD
        -ERR DISCARD without MULTI
        > MULTI
        +OK
        > MULTI
        -ERR MULTI calls can not be nested
        > WATCH a
        -ERR WATCH inside MULTI is not allowed
        > SET a 1
        +QUEUED
        > EXEC
        [+OK]
        > MULTI x
        -ERR wrong number of arguments for 'multi' command
        > WATCH
        -ERR wrong number of arguments for 'watch' command
        > UNWATCH
        +OK
        "#,
    );
}

#[test]
fn an_error_while_running_stops_nothing() {
    check(
        r#"
        > SET s text
        +OK
        > MULTI
        +OK
        > INCR s
        +QUEUED
        > HSET s f v
        +QUEUED
        > APPEND s !
        +QUEUED
        > EXEC
        [-"ERR value is not an integer or out of range",
         -"WRONGTYPE Operation against a key holding the wrong kind of value",
         :5]
        > GET s
        "text!"
        "#,
    );
}

#[test]
fn a_command_that_cannot_be_queued_ends_it_all() {
    check(
        r#"
        > MULTI
        +OK
        > SET a 1
        +QUEUED
        > NOSUCH x
        ~-ERR unknown command *
        > SET b 1
        +QUEUED
        > EXEC
        -EXECABORT Transaction discarded because of previous errors.
        > EXISTS a b
        :0
        > MULTI
        +OK
        > GET
        -ERR wrong number of arguments for 'get' command
        > EXEC
        -EXECABORT Transaction discarded because of previous errors.
        > PING
        +PONG
        > MULTI
        +OK
        > SAVE
        -ERR Command not allowed inside a transaction
        > EXEC
        -EXECABORT Transaction discarded because of previous errors.
        "#,
    );
}

#[test]
fn discarding_forgets_everything() {
    check(
        r#"
        > WATCH w
        +OK
        > MULTI
        +OK
        > SET a 1
        +QUEUED
        > DISCARD
        +OK
        > EXISTS a
        :0
        2> SET w 2
        +OK
        > MULTI
        +OK
        > SET a 2
        +QUEUED
        > EXEC
        [+OK]
        "#,
    );
}

#[test]
fn a_watched_key_that_changes_ends_it() {
    check(
        r#"
        > SET k 1
        +OK
        > WATCH k other
        +OK
        > MULTI
        +OK
        > SET k mine
        +QUEUED
        2> SET k theirs
        +OK
        > EXEC
        (nil array)
        > GET k
        "theirs"
        // Once it is over, nothing is watched.
        2> SET k again
        +OK
        > MULTI
        +OK
        > SET k mine
        +QUEUED
        > EXEC
        [+OK]
        "#,
    );
}

#[test]
fn changes_of_any_kind_count() {
    for change in [
        "DEL k",
        "UNLINK k",
        "EXPIRE k 100",
        "PERSIST t",
        "RENAME k z",
        "RENAME z2 k",
        "COPY z2 k REPLACE",
        "MOVE k 5",
        "HSET h f v2",
        "HDEL h f",
        "HINCRBY h n 1",
        "APPEND k x",
        "SETRANGE k 0 x",
        "INCR n",
        "GETDEL k",
        "GETEX k EX 100",
        "SET k 1",
        "MSET k 1 z 2",
        "SETBIT k 1 1",
        "FLUSHDB",
        "FLUSHALL",
        "SWAPDB 0 1",
    ] {
        check(&format!(
            r#"
            > SET k 1
            +OK
            > SET z2 1
            +OK
            > SET n 1
            +OK
            > HSET h f v n 1
            :2
            > SET t 1 EX 1000
            +OK
            > WATCH k t h n
            +OK
            2> {change}
            *
            > MULTI
            +OK
            > PING
            +QUEUED
            > EXEC
            (nil array)
            > FLUSHALL
            +OK
            "#
        ));
    }
}

#[test]
fn what_does_not_change_a_watched_key_does_not_count() {
    for other in
        ["GET k", "SET x 1", "DEL nosuch", "HDEL h nosuch", "EXPIRE nosuch 5", "SETNX k 5", "TOUCH k", "PERSIST k"]
    {
        check(&format!(
            r#"
            > SET k 1
            +OK
            > HSET h f v
            :1
            > WATCH k h gone
            +OK
            2> {other}
            *
            > MULTI
            +OK
            > PING
            +QUEUED
            > EXEC
            [+PONG]
            "#
        ));
    }
}

#[test]
fn emptying_a_database_changes_only_keys_that_are_there() {
    check(
        r#"
        > WATCH nosuch
        +OK
        2> FLUSHALL
        +OK
        > MULTI
        +OK
        > PING
        +QUEUED
        > EXEC
        [+PONG]
        > WATCH x
        +OK
        2> SELECT 1
        +OK
        2> SET x 1
        +OK
        2> SWAPDB 0 1
        +OK
        > MULTI
        +OK
        > PING
        +QUEUED
        > EXEC
        (nil array)
        "#,
    );
}

#[test]
fn a_watched_key_whose_time_comes_has_changed() {
    check(
        r#"
        > DEBUG SET-ACTIVE-EXPIRE 0
        +OK
        > SET k 1 PX 500
        +OK
        > WATCH k
        +OK
        # sleep 600ms
        > MULTI
        +OK
        > PING
        +QUEUED
        > EXEC
        (nil array)
        // One that was gone already, though nobody had noticed, has not.
        > SET k 1 PX 1
        +OK
        # sleep 20ms
        > WATCH k
        +OK
        2> GET k
        (nil)
        > MULTI
        +OK
        > PING
        +QUEUED
        > EXEC
        [+PONG]
        > DEBUG SET-ACTIVE-EXPIRE 1
        +OK
        "#,
    );
}

#[test]
fn unwatching_and_own_changes() {
    check(
        r#"
        > SET k 1
        +OK
        > WATCH k
        +OK
        > SET k 2
        +OK
        > MULTI
        +OK
        > PING
        +QUEUED
        > EXEC
        (nil array)
        > WATCH k
        +OK
        > SET k 3
        +OK
        > UNWATCH
        +OK
        > MULTI
        +OK
        > UNWATCH
        +QUEUED
        > EXEC
        [+OK]
        > WATCH k
        +OK
        > MULTI
        +OK
        > SET k 4
        +QUEUED
        > SET k 5
        +QUEUED
        > EXEC
        [+OK, +OK]
        "#,
    );
}

#[test]
fn watching_is_of_one_database() {
    check(
        r#"
        > WATCH k
        +OK
        2> SELECT 3
        +OK
        2> SET k 1
        +OK
        > MULTI
        +OK
        > SELECT 3
        +QUEUED
        > GET k
        +QUEUED
        > SELECT 0
        +QUEUED
        > GET k
        +QUEUED
        > EXEC
        [+OK, "1", +OK, (nil)]
        "#,
    );
}

#[test]
fn commands_about_everything_run_inside() {
    check(
        r#"
        > MSET a 1 b 2 c 3
        +OK
        > MULTI
        +OK
        > DBSIZE
        +QUEUED
        > SCAN 0 COUNT 1000
        +QUEUED
        > RANDOMKEY
        +QUEUED
        > FLUSHDB
        +QUEUED
        > SET d 1
        +QUEUED
        > KEYS *
        +QUEUED
        > WAIT 1 0
        +QUEUED
        > INFO keyspace
        +QUEUED
        > CLIENT ID
        +QUEUED
        > CONFIG GET maxmemory
        +QUEUED
        > EXEC
        [:3, ["0", ~["a", "b", "c"]], *, +OK, +OK, ["d"], :0, *, *, ["maxmemory", *]]
        "#,
    );
}

#[test]
fn quit_and_reset_are_not_queued() {
    check(
        r#"
        > MULTI
        +OK
        > SET a 1
        +QUEUED
        > RESET
        +RESET
        > EXEC
        -ERR EXEC without MULTI
        > MULTI
        +OK
        > QUIT
        +OK
        (closed)
        2> EXISTS a
        :0
        "#,
    );
}

#[test]
fn others_can_see_a_transaction_in_progress() {
    check(
        r#"
        > CLIENT SETNAME worker
        +OK
        > WATCH a
        +OK
        > MULTI
        +OK
        > PING
        +QUEUED
        2> CLIENT LIST TYPE normal
        ~"*name=worker* flags=x *multi=1*"
        > EXEC
        [+PONG]
        "#,
    );
}

#[test]
fn it_speaks_resp3() {
    check(
        r#"
        > HELLO 3
        *
        > HSET h f v
        :1
        > MULTI
        +OK
        > HGETALL h
        +QUEUED
        > GET nosuch
        +QUEUED
        > EXEC
        [{"f" => "v"}, _]
        > WATCH h
        +OK
        > HSET h f w
        :0
        > MULTI
        +OK
        > EXEC
        _
        "#,
    );
}

#[test]
fn hello_counts_for_the_replies_behind_it() {
    check(
        r#"
        > MULTI
        > HGETALL nosuch
        > HELLO 3
        > HGETALL nosuch
        > GET nosuch
        > HELLO 2
        > GET nosuch
        > EXEC
        +OK
        +QUEUED
        +QUEUED
        +QUEUED
        +QUEUED
        +QUEUED
        +QUEUED
        [[], {"server" => "redis", ...}, {}, _, ["server", "redis", ...], (nil)]
        > GET nosuch
        (nil)
        "#,
    );
}

/// Redis refuses these two in a transaction when it is executed, but not SUBSCRIBE and PSUBSCRIBE.
#[test]
fn monitor_and_ssubscribe_are_refused_inside() {
    check(
        r#"
        > MULTI
        > MONITOR
        > SSUBSCRIBE channel
        > EXEC
        +OK
        +QUEUED
        +QUEUED
        [-"ERR MONITOR isn't allowed for DENY BLOCKING client", -"ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"]
        > GET nosuch
        (nil)
        > MULTI
        > SUBSCRIBE channel
        > PSUBSCRIBE pattern
        > EXEC
        +OK
        +QUEUED
        +QUEUED
        [["subscribe", "channel", :1], ["psubscribe", "pattern", :2]]
        "#,
    );
}

#[test]
fn unwatch_is_queued_and_has_nothing_to_do() {
    check(
        r#"
        > SET k 1
        +OK
        > WATCH k
        +OK
        > MULTI
        +OK
        > UNWATCH
        +QUEUED
        > GET k
        +QUEUED
        > EXEC
        [+OK, "1"]
        // The shards of those keys are free again.
        2> SET k 2
        +OK
        > WATCH k
        +OK
        2> SET k 3
        +OK
        > MULTI
        +OK
        > UNWATCH
        +QUEUED
        > EXEC
        (nil array)
        "#,
    );
}

#[test]
fn exec_that_is_refused_in_a_pipeline_of_one_key_ends_the_transaction() {
    // Requests of a pipeline that touch one key are looked at ahead, with their shards locked.
    check(
        r#"
        > WATCH k
        +OK
        > SUBSCRIBE ch
        ["subscribe", "ch", :1]
        > GET k
        > GET k
        > EXEC
        ~-ERR Can't execute 'get': *
        ~-ERR Can't execute 'get': *
        -EXECABORT Transaction discarded because of: Can't execute 'exec': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        2> SET k 1
        +OK
        "#,
    );
}

#[test]
fn exec_with_an_argument_ends_the_transaction() {
    check(
        r#"
        > WATCH k
        +OK
        > MULTI
        +OK
        > SET k 1
        +QUEUED
        > EXEC now
        -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
        > GET k
        (nil)
        > EXEC
        -ERR EXEC without MULTI
        > EXEC now
        -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
        > GET k
        > GET k
        > EXEC now
        (nil)
        (nil)
        -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
        // DISCARD is another matter.
        > MULTI
        +OK
        > DISCARD now
        -ERR wrong number of arguments for 'discard' command
        > EXEC
        -EXECABORT Transaction discarded because of previous errors.
        "#,
    );
}

#[test]
fn a_key_that_had_expired_when_it_was_watched_may_go() {
    check(
        r#"
        > DEBUG SET-ACTIVE-EXPIRE 0
        +OK
        > SET flushed 1 PX 1
        +OK
        > SET swapped 1 PX 1
        +OK
        # eventually
        2> PTTL flushed
        :-2
        > SET flushed 1 PX 1
        +OK
        > SET swapped 1 PX 1
        +OK
        # sleep 10ms
        > WATCH flushed swapped
        +OK
        2> FLUSHDB
        +OK
        > MULTI
        +OK
        > PING
        +QUEUED
        > EXEC
        [+PONG]
        > SET swapped 1 PX 1
        +OK
        # sleep 10ms
        > WATCH swapped
        +OK
        2> SWAPDB 0 1
        +OK
        > MULTI
        +OK
        > PING
        +QUEUED
        > EXEC
        [+PONG]
        > SELECT 1
        +OK
        > WATCH swapped
        +OK
        2> SELECT 1
        +OK
        2> SET swapped 2
        +OK
        > MULTI
        +OK
        > PING
        +QUEUED
        > EXEC
        (nil array)
        2> FLUSHALL
        +OK
        2> SELECT 0
        +OK
        2> DEBUG SET-ACTIVE-EXPIRE 1
        +OK
        "#,
    );
}

/// A queue takes memory: beyond maxmemory no command is queued, not even one that needs none. DISCARD, EXEC and RESET end it.
#[test]
fn beyond_maxmemory_nothing_is_queued() {
    check(
        r#"
        > SET a 1
        +OK
        > MULTI
        > GET a
        +OK
        +QUEUED
        # config maxmemory 1
        > GET a
        -OOM command not allowed when used memory > 'maxmemory'.
        > SET b 1
        -OOM command not allowed when used memory > 'maxmemory'.
        > PING
        -OOM command not allowed when used memory > 'maxmemory'.
        > EXEC
        -EXECABORT Transaction discarded because of previous errors.
        > MULTI
        +OK
        > DEL a
        -OOM command not allowed when used memory > 'maxmemory'.
        > DISCARD
        +OK
        > MULTI
        +OK
        > EXEC
        []
        > MULTI
        +OK
        > RESET
        +RESET
        > DEL a
        :1
        "#,
    );
}
