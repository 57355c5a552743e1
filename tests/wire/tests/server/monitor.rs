//! MONITOR.

use wire::check;

#[test]
fn commands_are_shown_as_they_run() {
    check(
        r#"
        2> MONITOR
        +OK
        > SET "a b" "x\x00\n\"\\"
        +OK
        2< ~+1*.* [0 127.0.0.1:*] "SET" "a b" "x\x00\n\"\\"
        > SELECT 3
        +OK
        2< ~+1*.* [3 127.0.0.1:*] "SELECT" "3"
        > INCR "a b" x
        -ERR wrong number of arguments for 'incr' command
        > NOSUCH
        ~-ERR unknown command*
        > APPEND "a b" ""
        :0
        2< ~+1*.* [3 127.0.0.1:*] "APPEND" "a b" ""
        "#,
    );
}

#[test]
fn dangerous_commands_and_passwords_are_not_shown() {
    check(
        r#"
        2> MONITOR
        +OK
        > CONFIG GET port
        *
        > DEBUG SLEEP 0
        +OK
        > AUTH default secret
        +OK
        2< ~+* "AUTH" "(redacted)" "(redacted)"
        > AUTH nobody wrong
        -WRONGPASS invalid username-password pair or user is disabled.
        2< ~+* "AUTH" "(redacted)" "(redacted)"
        > HELLO 2 AUTH default secret SETNAME me
        *
        2< ~+* "HELLO" "2" "AUTH" "(redacted)" "(redacted)" "SETNAME" "me"
        "#,
    );
}

#[test]
fn a_monitor_goes_on_as_a_client() {
    check(
        r#"
        > MONITOR
        +OK
        > PING
        +PONG
        ~+* "PING"
        // A second MONITOR has no reply.
        > MONITOR
        > RESET
        +RESET
        > PING
        +PONG
        2> SET a 1
        +OK
        "#,
    );
}

#[test]
fn nothing_is_shown_after_reset() {
    check(
        r#"
        > MONITOR
        > PING
        > RESET
        > PING
        +OK
        +PONG
        ~+* "PING"
        +RESET
        +PONG
        "#,
    );
}

#[test]
fn what_a_script_calls_is_told_as_luas() {
    check(
        r#"
        2> MONITOR
        +OK
        > EVAL "return redis.call('SET', KEYS[1], ARGV[1])" 1 a 5
        +OK
        2< ~+*[0 127.0.0.1:*] "EVAL" "return redis.call('SET', KEYS[1], ARGV[1])" "1" "a" "5"
        2< ~+*[0 lua] "SET" "a" "5"
        > EVAL_RO "for i = 1, 2 do redis.call('GET', KEYS[1]) end" 1 a
        (nil)
        2< ~+*[0 127.0.0.1:*] "EVAL_RO" "for i = 1, 2 do redis.call('GET', KEYS[1]) end" "1" "a"
        2< ~+*[0 lua] "GET" "a"
        2< ~+*[0 lua] "GET" "a"
        > MULTI
        +OK
        > EVAL "return redis.call('GET', KEYS[1])" 1 a
        +QUEUED
        > EXEC
        ["5"]
        2< ~+*"MULTI"
        2< ~+*[0 127.0.0.1:*] "EVAL" "return redis.call('GET', KEYS[1])" "1" "a"
        2< ~+*[0 lua] "GET" "a"
        2< ~+*"EXEC"
        "#,
    );
}

#[test]
fn scripts_that_are_refused_are_shown() {
    check(
        r##"
        2> MONITOR
        +OK
        > EVALSHA ffffffffffffffffffffffffffffffffffffffff 0
        -NOSCRIPT No matching script. Please use EVAL.
        2< ~+* "EVALSHA" "ffffffffffffffffffffffffffffffffffffffff" "0"
        > EVALSHA_RO short 0
        -NOSCRIPT No matching script. Please use EVAL.
        2< ~+* "EVALSHA_RO" "short" "0"
        > EVAL "return 1" -1
        -ERR Number of keys can't be negative
        2< ~+* "EVAL" "return 1" "-1"
        > EVAL "return 1" 2 a
        -ERR Number of keys can't be greater than number of args
        2< ~+* "EVAL" "return 1" "2" "a"
        > EVAL "return 1" many
        -ERR value is not an integer or out of range
        2< ~+* "EVAL" "return 1" "many"
        > EVAL "#!lua flags=nosuch\nreturn 1" 0
        ~-ERR *
        2< ~+* "EVAL" "#!lua flags=nosuch\nreturn 1" "0"
        > EVAL "return +" 0
        ~-ERR Error compiling script*
        2< ~+* "EVAL" "return +" "0"
        > FCALL nosuch 0
        -ERR Function not found
        2< ~+* "FCALL" "nosuch" "0"
        > FCALL_RO nosuch 0
        -ERR Function not found
        2< ~+* "FCALL_RO" "nosuch" "0"
        > MULTI
        +OK
        2< ~+* "MULTI"
        > FCALL nosuch 0
        +QUEUED
        > EXEC
        [-"ERR Function not found"]
        2< ~+* "FCALL" "nosuch" "0"
        2< ~+* "EXEC"
        "##,
    );
}

#[test]
fn scripts_are_counted() {
    check(
        r#"
        > CONFIG RESETSTAT
        +OK
        > EVAL "return 1" 0
        :1
        > EVAL "for i = 1, 2 do end return 2" 0
        :2
        > EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
        :1
        > INFO commandstats
        ~"*cmdstat_eval:calls=2,*"
        > INFO commandstats
        ~"*cmdstat_evalsha_ro:calls=1,*"
        "#,
    );
}

/// A script that runs on the script thread is in the books with the time that it took.
#[test]
fn a_long_script_is_slow() {
    check(
        r#"
        # config slowlog-log-slower-than 1000
        > SLOWLOG RESET
        +OK
        > CONFIG RESETSTAT
        +OK
        > EVAL "local x = 0 for i = 1, 3000000 do x = x + i end return KEYS[1]" 1 k a
        "k"
        > SLOWLOG LEN
        :1..
        > SLOWLOG GET 1
        [[:0.., :0.., :1000.., ["EVAL", "local x = 0 for i = 1, 3000000 do x = x + i end return KEYS[1]", "1", "k", "a"], *, *]]
        > INFO commandstats
        ~"*cmdstat_eval:calls=1,usec=????*"
        "#,
    );
}
