//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.

use wire::check;

#[test]
fn queued_commands_are_executed_together() {
    check(
        r#"
        MULTI => +OK
        SET a 1 => +QUEUED
        INCR a => +QUEUED
        2> EXISTS a => :0
        HSET h f v g w => +QUEUED
        GET a => +QUEUED
        EXEC => [+OK, :2, :2, "2"]
        2> MGET a h => ["2", (nil)]
        EXEC => -ERR EXEC without MULTI
        ! FLUSHALL
        // An empty one has an empty reply.
        MULTI => +OK
        EXEC => []
        ! FLUSHALL
        // Words out of place.
        EXEC => -ERR EXEC without MULTI
        DISCARD => -ERR DISCARD without MULTI
        MULTI => +OK
        MULTI => -ERR MULTI calls can not be nested
        WATCH a => -ERR WATCH inside MULTI is not allowed
        SET a 1 => +QUEUED
        EXEC => [+OK]
        MULTI x => -ERR wrong number of arguments for 'multi' command
        WATCH => -ERR wrong number of arguments for 'watch' command
        UNWATCH => +OK
        ! FLUSHALL
        // An error while it runs stops nothing.
        SET s text => +OK
        MULTI => +OK
        INCR s => +QUEUED
        HSET s f v => +QUEUED
        APPEND s ! => +QUEUED
        > EXEC
        [-"ERR value is not an integer or out of range",
         -"WRONGTYPE Operation against a key holding the wrong kind of value",
         :5]
        GET s => "text!"
        "#,
    );
}

#[test]
fn a_command_that_cannot_be_queued_ends_it_all() {
    check(
        r#"
        MULTI => +OK
        SET a 1 => +QUEUED
        NOSUCH x => ~-ERR unknown command *
        SET b 1 => +QUEUED
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        EXISTS a b => :0
        MULTI => +OK
        GET => -ERR wrong number of arguments for 'get' command
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        PING => +PONG
        MULTI => +OK
        SAVE => -ERR Command not allowed inside a transaction
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        ! FLUSHALL
        // DISCARD forgets everything, also what is watched.
        WATCH w => +OK
        MULTI => +OK
        SET a 1 => +QUEUED
        DISCARD => +OK
        EXISTS a => :0
        2! SET w 2
        MULTI => +OK
        SET a 2 => +QUEUED
        EXEC => [+OK]
        "#,
    );
}

#[test]
fn a_watched_key_that_changes_ends_it() {
    check(
        r#"
        SET k 1 => +OK
        WATCH k other => +OK
        MULTI => +OK
        SET k mine => +QUEUED
        2! SET k theirs
        EXEC => (nil array)
        GET k => "theirs"
        // Once it is over, nothing is watched.
        2! SET k again
        MULTI => +OK
        SET k mine => +QUEUED
        EXEC => [+OK]
        ! FLUSHALL
        // Own changes count too, until UNWATCH.
        SET k 1 => +OK
        WATCH k => +OK
        SET k 2 => +OK
        MULTI => +OK
        PING => +QUEUED
        EXEC => (nil array)
        WATCH k => +OK
        SET k 3 => +OK
        UNWATCH => +OK
        MULTI => +OK
        UNWATCH => +QUEUED
        EXEC => [+OK]
        WATCH k => +OK
        MULTI => +OK
        SET k 4 => +QUEUED
        SET k 5 => +QUEUED
        EXEC => [+OK, +OK]
        ! FLUSHALL
        // In the transaction, UNWATCH comes too late and has nothing to do.
        SET k 1 => +OK
        WATCH k => +OK
        MULTI => +OK
        UNWATCH => +QUEUED
        GET k => +QUEUED
        EXEC => [+OK, "1"]
        // The shards of those keys are free again.
        2! SET k 2
        WATCH k => +OK
        2! SET k 3
        MULTI => +OK
        UNWATCH => +QUEUED
        EXEC => (nil array)
        ! FLUSHALL
        // A key of that name in another database is another key.
        WATCH k => +OK
        2! SELECT 3
        2! SET k 1
        MULTI => +OK
        SELECT 3 => +QUEUED
        GET k => +QUEUED
        SELECT 0 => +QUEUED
        GET k => +QUEUED
        EXEC => [+OK, "1", +OK, (nil)]
        ! FLUSHALL
        // Emptying a database changes the keys that are there.
        WATCH nosuch => +OK
        2! FLUSHALL
        MULTI => +OK
        PING => +QUEUED
        EXEC => [+PONG]
        WATCH x => +OK
        2! SELECT 1
        2! SET x 1
        2! SWAPDB 0 1
        MULTI => +OK
        PING => +QUEUED
        EXEC => (nil array)
        "#,
    );
}

/// Whether a transaction runs that watches keys of every kind, after another client's request.
#[track_caller]
fn check_watched(request: &str, outcome: &str) {
    check(&format!(
        r#"
        ! MSET k 1 z2 1 n 1
        ! SET t 1 EX 1000
        ! HSET h f v n 1
        ! XADD s 1-1 f v
        ! RPUSH l 1
        ! GEOADD g 1 1 m
        WATCH k t h n s l g gone => +OK
        2> {request}
        *
        ! MULTI
        ! PING
        EXEC => {outcome}
        ! FLUSHALL
        "#
    ));
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
        "XADD s 1-2 f v",
        "XDEL s 1-1",
        "XGROUP CREATE gone g $ MKSTREAM",
        "SORT l STORE gone",
        "GEORADIUS g 1 1 100 km STORE gone",
        "EVAL \"return redis.call('SET', 'k', 'x')\" 0",
        "FLUSHDB",
        "FLUSHALL",
        "SWAPDB 0 1",
    ] {
        check_watched(change, "(nil array)");
    }
}

#[test]
fn what_does_not_change_a_watched_key_does_not_count() {
    for other in [
        "GET k",
        "SET x 1",
        "DEL nosuch",
        "HDEL h nosuch",
        "EXPIRE nosuch 5",
        "SETNX k 5",
        "TOUCH k",
        "PERSIST k",
        "XTRIM s MAXLEN 5",
        "XDEL s 9-9",
        "XRANGE s - +",
    ] {
        check_watched(other, "[+PONG]");
    }
}

#[test]
fn a_watched_key_whose_time_comes_has_changed() {
    check(
        r#"
        DEBUG SET-ACTIVE-EXPIRE 0 => +OK
        // In one write: the key is there when it is watched, however busy the machine is.
        > SET k 1 PX 200
        > WATCH k
        +OK
        +OK
        # sleep 210ms
        MULTI => +OK
        PING => +QUEUED
        EXEC => (nil array)
        // One that was gone already, though nobody had noticed, has not.
        SET k 1 PX 1 => +OK
        # sleep 20ms
        WATCH k => +OK
        2> GET k => (nil)
        MULTI => +OK
        PING => +QUEUED
        EXEC => [+PONG]
        DEBUG SET-ACTIVE-EXPIRE 1 => +OK
        "#,
    );
}

#[test]
fn commands_about_everything_run_inside() {
    check(
        r#"
        MSET a 1 b 2 c 3 => +OK
        MULTI => +OK
        DBSIZE => +QUEUED
        SCAN 0 COUNT 1000 => +QUEUED
        RANDOMKEY => +QUEUED
        FLUSHDB => +QUEUED
        SET d 1 => +QUEUED
        KEYS * => +QUEUED
        WAIT 1 0 => +QUEUED
        INFO keyspace => +QUEUED
        CLIENT ID => +QUEUED
        CONFIG GET maxmemory => +QUEUED
        EXEC => [:3, ["0", ~["a", "b", "c"]], *, +OK, +OK, ["d"], :0, *, *, ["maxmemory", *]]
        ! FLUSHALL
        // Others can see a transaction in progress.
        CLIENT SETNAME worker => +OK
        WATCH a => +OK
        MULTI => +OK
        PING => +QUEUED
        2> CLIENT LIST TYPE normal => ~"*name=worker* flags=x *multi=1*"
        EXEC => [+PONG]
        ! FLUSHALL
        // QUIT and RESET are not queued.
        MULTI => +OK
        SET a 1 => +QUEUED
        RESET => +RESET
        EXEC => -ERR EXEC without MULTI
        MULTI => +OK
        > QUIT
        +OK
        (closed)
        2> EXISTS a => :0
        "#,
    );
}

#[test]
fn it_speaks_resp3() {
    check(
        r#"
        HELLO 3 => *
        HSET h f v => :1
        MULTI => +OK
        HGETALL h => +QUEUED
        GET nosuch => +QUEUED
        EXEC => [{"f" => "v"}, _]
        WATCH h => +OK
        HSET h f w => :0
        MULTI => +OK
        EXEC => _
        ! FLUSHALL
        // HELLO counts for the replies behind it.
        HELLO 2 => *
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
        GET nosuch => (nil)
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
        GET nosuch => (nil)
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
fn exec_that_is_refused_ends_the_transaction() {
    check(
        r#"
        WATCH k => +OK
        MULTI => +OK
        SET k 1 => +QUEUED
        EXEC now => -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
        GET k => (nil)
        EXEC => -ERR EXEC without MULTI
        EXEC now => -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
        > GET k
        > GET k
        > EXEC now
        (nil)
        (nil)
        -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
        // DISCARD is another matter.
        MULTI => +OK
        DISCARD now => -ERR wrong number of arguments for 'discard' command
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        ! FLUSHALL
        // Requests of a pipeline that touch one key are looked at ahead, with their shards locked.
        WATCH k => +OK
        SUBSCRIBE ch => ["subscribe", "ch", :1]
        > GET k
        > GET k
        > EXEC
        ~-ERR Can't execute 'get': *
        ~-ERR Can't execute 'get': *
        -EXECABORT Transaction discarded because of: Can't execute 'exec': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        2! SET k 1
        "#,
    );
}

#[test]
fn a_key_that_had_expired_when_it_was_watched_may_go() {
    check(
        r#"
        DEBUG SET-ACTIVE-EXPIRE 0 => +OK
        SET flushed 1 PX 1 => +OK
        SET swapped 1 PX 1 => +OK
        # eventually
        2> PTTL flushed => :-2
        SET flushed 1 PX 1 => +OK
        SET swapped 1 PX 1 => +OK
        # sleep 10ms
        WATCH flushed swapped => +OK
        2! FLUSHDB
        MULTI => +OK
        PING => +QUEUED
        EXEC => [+PONG]
        SET swapped 1 PX 1 => +OK
        # sleep 10ms
        WATCH swapped => +OK
        2! SWAPDB 0 1
        MULTI => +OK
        PING => +QUEUED
        EXEC => [+PONG]
        SELECT 1 => +OK
        WATCH swapped => +OK
        2! SELECT 1
        2! SET swapped 2
        MULTI => +OK
        PING => +QUEUED
        EXEC => (nil array)
        2! FLUSHALL
        2! SELECT 0
        2! DEBUG SET-ACTIVE-EXPIRE 1
        "#,
    );
}

/// A queue takes memory: beyond maxmemory no command is queued, not even one that needs none. DISCARD, EXEC and RESET end it.
#[test]
fn beyond_maxmemory_nothing_is_queued() {
    check(
        r#"
        SET a 1 => +OK
        > MULTI
        > GET a
        +OK
        +QUEUED
        # config maxmemory 1
        GET a => -OOM command not allowed when used memory > 'maxmemory'.
        SET b 1 => -OOM command not allowed when used memory > 'maxmemory'.
        PING => -OOM command not allowed when used memory > 'maxmemory'.
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        MULTI => +OK
        DEL a => -OOM command not allowed when used memory > 'maxmemory'.
        DISCARD => +OK
        MULTI => +OK
        EXEC => []
        MULTI => +OK
        RESET => +RESET
        DEL a => :1
        "#,
    );
}
