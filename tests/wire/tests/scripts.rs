//! EVAL, EVALSHA, SCRIPT: how scripts run and what they may do. What Lua itself does is in `lua`'s own tests.

use std::thread;
use std::time::Duration;
use wire::{Connection, Reply, Session, check};

const CAS: &str = "local current = redis.call('HGET', KEYS[1], ARGV[1])\nif current == ARGV[2] then\n    redis.call('HSET', \
                   KEYS[1], ARGV[1], ARGV[3])\n    return 1\nelse\n    return 0\nend";

#[test]
fn a_script_sees_its_keys_and_arguments() {
    check(
        r##"
        EVAL "return {KEYS[1],KEYS[2],ARGV[1],ARGV[2],#KEYS,#ARGV}" 2 a b c d => ["a", "b", "c", "d", :2, :2]
        EVAL "return 1" 0 => :1
        EVAL "return" 0 => (nil)
        EVAL "return 'x'" 0 => "x"
        EVAL "return {1,2,{3,'four'},nil,5}" 0 => [:1, :2, [:3, "four"]]
        EVAL "return 3.99" 0 => :3
        EVAL "return true" 0 => :1
        EVAL "return false" 0 => (nil)
        EVAL "return {ok='fine'}" 0 => +fine
        EVAL "return {err='MY error'}" 0 => -MY error
        EVAL "return redis.status_reply('x')" 0 => +x
        EVAL "return redis.error_reply('x y')" 0 => ~-*x y
        "##,
    );
}

#[test]
fn a_script_runs_commands() {
    check(
        r#"
        EVAL "return redis.call('SET',KEYS[1],ARGV[1])" 1 k v => +OK
        EVAL "return redis.call('GET',KEYS[1])" 1 k => "v"
        EVAL "return redis.call('GET','nosuch')" 0 => (nil)
        > EVAL "redis.call('HSET',KEYS[1],'a',1,'b',2.5) return redis.call('HGETALL',KEYS[1])" 1 h
        ["a", "1", "b", "2.5"]
        EVAL "return redis.call('INCRBY','n',5)" 0 => :5
        EVAL "return redis.pcall('INCR',KEYS[1])" 1 k => ~-ERR value is not an integer or out of range*
        EVAL "return redis.call('INCR',KEYS[1])" 1 k => ~-ERR value is not an integer or out of range*
        > EVAL "return redis.pcall('HGET',KEYS[1],'f').err" 1 k
        ~"WRONGTYPE Operation against a key holding the wrong kind of value*"
        EVAL "local r = redis.pcall('nosuch') return r.err" 0 => ~"ERR Unknown Redis command called from script*"
        EVAL "return redis.call('get')" 0 => ~-ERR Wrong number of args calling Redis command from script*
        EVAL "return redis.call('subscribe','x')" 0 => ~-ERR This Redis command is not allowed from script*
        EVAL "return redis.call('select',3)" 0 => +OK
        GET k => "v"
        EVAL "redis.call('select',3) redis.call('set','x',1) return 1" 0 => :1
        EXISTS x => :0
        ! FLUSHALL
        // Loops and functions run too.
        EVAL "local n = 0 for i = 1, 1000 do n = n + i end return n" 0 => :500500
        EVAL "for i = 1, tonumber(ARGV[1]) do redis.call('RPUSHX','l',i) end return 1" 0 0 => :1
        EVAL "local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end return fib(15)" 0 => :610
        > EVAL "local keys = {} for i = 1, 100 do keys[i] = 'k'..i redis.call('SET', keys[i], i) end return redis.call('MGET', unpack(keys, 1, 3))" 0
        ["1", "2", "3"]
        DBSIZE => :100
        ! FLUSHALL
        // Its keys are found.
        COMMAND GETKEYS EVAL "return 1" 2 a b c => ["a", "b"]
        COMMAND GETKEYS EVAL "return 1" 0 => []
        "#,
    );
}

#[test]
fn the_compare_and_swap_of_job_records() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("HSET job state pending");
    let sha = connection.run_with("SCRIPT LOAD", &[CAS.as_bytes()]).text().to_owned();
    for (expected, new, outcome) in
        [("pending", "claimed", ":1"), ("pending", "claimed", ":0"), ("claimed", "done", ":1"), ("", "x", ":0")]
    {
        let args: [&[u8]; 4] = [b"1", b"job", b"state", expected.as_bytes()];
        let args: Vec<&[u8]> = args.into_iter().chain([new.as_bytes()]).collect();
        assert_eq!(connection.run_with(&format!("EVALSHA {sha}"), &args).to_string(), outcome);
    }
    assert_eq!(connection.run("HGET job state").text(), "done");
    let args: [&[u8]; 6] = [CAS.as_bytes(), b"1", b"job", b"state", b"done", b"pending"];
    assert_eq!(connection.run_with("EVAL", &args).to_string(), ":1");
}

#[test]
fn scripts_are_known_by_their_digest() {
    check(
        r##"
        SCRIPT FLUSH => +OK
        EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 => -NOSCRIPT No matching script. Please use EVAL.
        SCRIPT LOAD "return 1" => "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
        EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 => :1
        EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0 => :1
        SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db nosuch => [:1, :0]
        SCRIPT FLUSH ASYNC => +OK
        SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db => [:0]
        EVAL "return 1" 0 => :1
        EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 => :1
        EVALSHA short 0 => -NOSCRIPT No matching script. Please use EVAL.
        SCRIPT FLUSH SYNC => +OK
        EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 => -NOSCRIPT No matching script. Please use EVAL.
        SCRIPT FLUSH NOW => -ERR SCRIPT FLUSH only support SYNC|ASYNC option
        SCRIPT NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try SCRIPT HELP.
        ~-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'*
            SCRIPT LOAD "return ("
            EVAL "return (" 0
        SCRIPT KILL => -NOTBUSY No scripts in execution right now.
        "##,
    );
}

#[test]
fn a_refused_script_is_not_kept() {
    check(
        r#"
        // The number of keys is checked before the script.
        EVAL "return 1" -1 => -ERR Number of keys can't be negative
        EVAL "return 1" 2 a => -ERR Number of keys can't be greater than number of args
        EVAL "return 1" x => -ERR value is not an integer or out of range
        EVAL "return 1" => -ERR wrong number of arguments for 'eval' command
        // The digest of a script that was refused finds nothing.
        SCRIPT FLUSH => +OK
        EVAL "return 41" -1 => -ERR Number of keys can't be negative
        EVAL "return 41" x => -ERR value is not an integer or out of range
        EVAL_RO "return 41" 3 a b => -ERR Number of keys can't be greater than number of args
        EVALSHA 063d98099a90c63456a3c8b9adbfd87b5d09674e 0 => -NOSCRIPT No matching script. Please use EVAL.
        EVALSHA 063d98099a90c63456a3c8b9adbfd87b5d09674e -1 => -ERR Number of keys can't be negative
        EVALSHA abc -1 => -NOSCRIPT No matching script. Please use EVAL.
        EVAL "return (" -1 => -ERR Number of keys can't be negative
        EVAL "return (" 0 => ~-ERR Error compiling script *
        SCRIPT EXISTS 063d98099a90c63456a3c8b9adbfd87b5d09674e 728acb63e2aaef0ee859ece5db586bff5d800d1e => [:0, :0]
        EVAL "return 41" 0 => :41
        SCRIPT EXISTS 063d98099a90c63456a3c8b9adbfd87b5d09674e => [:1]
        "#,
    );
}

#[test]
fn what_only_reads_may_not_write() {
    check(
        r##"
        SET k v => +OK
        EVAL_RO "return redis.call('GET',KEYS[1])" 1 k => "v"
        ~-ERR Write commands are not allowed from read-only scripts.*
            EVAL_RO "return redis.call('SET',KEYS[1],'w')" 1 k
            EVAL "#!lua flags=no-writes\nreturn redis.call('SET',KEYS[1],'w')" 1 k
        EVAL "#!lua flags=nosuch\nreturn 1" 0 => ~-ERR Unexpected flag in script shebang*
        EVAL "#!nosuch\nreturn 1" 0 => ~-ERR Unexpected engine in script shebang*
        SCRIPT LOAD "return redis.call('GET',KEYS[1])" => "620cd258c2c9c88c9d10db67812ccf663d96bdc6"
        EVALSHA_RO 620cd258c2c9c88c9d10db67812ccf663d96bdc6 1 k => "v"
        GET k => "v"
        ! FLUSHALL
        // What is published is told to others: a script that promises to change nothing may not.
        ~-ERR Write commands are not allowed from read-only scripts.*
            EVAL_RO "return redis.call('PUBLISH', 'ch', 'm')" 0
            EVAL "#!lua flags=no-writes\nreturn redis.call('SPUBLISH', 'ch', 'm')" 0
        EVAL "return redis.call('PUBLISH', 'ch', 'm')" 0 => :0
        "##,
    );
}

#[test]
fn errors_say_where() {
    check(
        r##"
        EVAL "error('boom')" 0 => ~-ERR user_script:1: boom script: *, on @user_script:1.
        > EVAL "return nosuch" 0
        ~-ERR user_script:1: Script attempted to access nonexistent global variable 'nosuch' script: *
        EVAL "nosuch = 1" 0 => ~-ERR user_script:1: Attempt to modify a readonly table script: *
        > EVAL "\n\nlocal x = nil + 1" 0
        ~-ERR user_script:3: attempt to perform arithmetic on a nil value script: *, on @user_script:3.
        EVAL "redis.call('set','a',1) error('late')" 0 => ~-ERR *late*
        GET a => "1"
        "##,
    );
}

#[test]
fn scripts_in_transactions() {
    check(
        r##"
        MULTI => +OK
        SET k 1 => +QUEUED
        EVAL "return redis.call('INCR',KEYS[1])" 1 k => +QUEUED
        EVAL "for i=1,3 do redis.call('INCR','k') end return redis.call('GET','k')" 0 => +QUEUED
        EXEC => [+OK, :2, "5"]
        WATCH k => +OK
        EVAL "return redis.call('SET','k','x')" 0 => +OK
        MULTI => +OK
        PING => +QUEUED
        EXEC => (nil array)
        "##,
    );
}

#[test]
fn replies_in_resp3() {
    check(
        r##"
        HELLO 3 => *
        HSET h f v => :1
        EVAL "return redis.call('HGETALL',KEYS[1])" 1 h => ["f", "v"]
        EVAL "redis.setresp(3) return redis.call('HGETALL',KEYS[1])" 1 h => {"f" => "v"}
        EVAL "return redis.call('GET','nosuch')" 0 => _
        EVAL "return {double=3.5}" 0 => ,3.5
        EVAL "return true" 0 => :1
        EVAL "redis.setresp(3) return true" 0 => #t
        "##,
    );
}

/// A script that does not end, stopped from another connection.
#[test]
fn an_endless_script_can_be_killed() {
    check(
        r##"
        # config busy-reply-threshold 50
        SET k v => +OK
        > EVAL "while true do end" 0
        # eventually
        2> PING => -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        2> GET k => -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        2> SCRIPT KILL => +OK
        1< ~-ERR Script killed by user with SCRIPT KILL... script: *, on @user_script:1.
        # eventually
        2> PING => +PONG
        2> GET k => "v"
        > EVAL "pcall(function() while true do end end) while true do pcall(function() while true do end end) end" 0
        # eventually
        2> PING => -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        2> SCRIPT KILL => +OK
        1< ~-ERR Script killed by user with SCRIPT KILL... script: *, on @user_script:1.
        "##,
    );
}

#[test]
fn one_that_has_written_cannot_be_killed() {
    check(
        r##"
        # config busy-reply-threshold 50
        3> SUBSCRIBE written => ["subscribe", "written", :1]
        > EVAL "redis.call('SET','w',1) redis.call('PUBLISH','written','now') for i = 1, 1e8 do end return 'end'" 0
        3< ["message", "written", "now"]
        2> SCRIPT KILL
        -UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.
        1< "end"
        2> GET w => "1"
        "##,
    );
}

/// Runs a script so often, for a moment each time, that a server may come to think that it always is quick.
fn train(connection: &mut Connection, script: &str) -> String {
    let Reply::Bulk(sha) = connection.run_args(&["SCRIPT", "LOAD", script]) else { panic!("no digest") };
    let sha = String::from_utf8(sha).expect("a digest is text");
    let quick: Vec<String> = (0..200).map(|_| format!("EVALSHA {sha} 1 k 1")).collect();
    for reply in connection.pipeline(&quick) {
        assert!(!reply.is_error(), "{reply}");
    }
    sha
}

#[test]
fn a_script_that_was_quick_can_take_long_and_does_everything_once() {
    let session = Session::start();
    let (mut one, mut two) = (session.connect(), session.connect());
    two.run("SUBSCRIBE c");
    one.run("SET k 7");
    // It reads, takes its time, and then writes.
    let sha = train(
        &mut one,
        "local v = redis.call('GET', KEYS[1]) for i = 1, tonumber(ARGV[1]) do end redis.call('INCR', 'n') return v",
    );
    let before = one.run("GET n").text().parse::<i64>().expect("a number");
    for _ in 0..3 {
        assert_eq!(one.run(&format!("EVALSHA {sha} 1 k 3000000")).text(), "7");
    }
    assert_eq!(one.run("GET n").text(), (before + 3).to_string());
    // It takes its time in commands that read, and catches whatever they say.
    let sha = train(
        &mut one,
        "local n = 0 for i = 1, tonumber(ARGV[1]) do if redis.pcall('GET', KEYS[1]) == '7' then n = n + 1 end end redis.call('INCR', 'm') return n",
    );
    let before = one.run("GET m").text().parse::<i64>().expect("a number");
    assert_eq!(one.run(&format!("EVALSHA {sha} 1 k 30000")).integer(), 30_000);
    assert_eq!(one.run("GET m").text(), (before + 1).to_string());
    // It writes first, or sends a message.
    let sha = train(&mut one, "redis.call('INCR', 'w') for i = 1, tonumber(ARGV[1]) do end return 1");
    let before = one.run("GET w").text().parse::<i64>().expect("a number");
    assert_eq!(one.run(&format!("EVALSHA {sha} 1 k 3000000")).integer(), 1);
    assert_eq!(one.run("GET w").text(), (before + 1).to_string());
    let sha = train(
        &mut one,
        "if ARGV[1] ~= '1' then redis.call('PUBLISH', 'c', 'once') end for i = 1, tonumber(ARGV[1]) do end return 1",
    );
    assert_eq!(one.run(&format!("EVALSHA {sha} 1 k 3000000")).integer(), 1);
    one.run("PUBLISH c end");
    assert_eq!(two.read().to_string(), message("once"));
    assert_eq!(two.read().to_string(), message("end"));
}

fn message(text: &str) -> String {
    Reply::Array(["message", "c", text].map(|word| Reply::Bulk(word.as_bytes().to_vec())).to_vec()).to_string()
}

#[test]
fn a_script_that_was_quick_and_does_not_end_can_be_killed() {
    let session = Session::start();
    let (mut one, mut two) = (session.connect(), session.connect());
    one.run("SET k 7");
    two.run("CONFIG SET busy-reply-threshold 50");
    for body in ["", "redis.call('GET', KEYS[1])", "redis.pcall('GET', KEYS[1])"] {
        let sha =
            train(&mut one, &format!("local n = 0 while n ~= tonumber(ARGV[1]) do n = n + 1 {body} end return n"));
        one.queue_line(&format!("EVALSHA {sha} 1 k -1"));
        one.flush();
        while !two.run("PING").to_string().contains("BUSY") {}
        assert_eq!(two.run("SCRIPT KILL").to_string(), "+OK");
        let killed = one.read().to_string();
        assert!(killed.contains("Script killed by user with SCRIPT KILL"), "{killed}");
        assert_eq!(one.run("GET k").text(), "7");
    }
}

#[test]
fn a_script_that_was_quick_and_has_written_cannot_be_killed() {
    let session = Session::start();
    let mut one = session.connect();
    one.run("CONFIG SET busy-reply-threshold 20");
    let sha = train(&mut one, "redis.call('INCR', 'w') for i = 1, tonumber(ARGV[1]) do end return 'end'");
    one.queue_line(&format!("EVALSHA {sha} 1 k 100000000"));
    one.flush();
    let mut two = session.connect();
    for _ in 0..50 {
        // Not busy yet, or not any more: this connection may be served by the same thread.
        let reply = two.run("SCRIPT KILL").to_string();
        if reply.contains("UNKILLABLE") {
            break;
        }
        assert!(reply.contains("NOTBUSY"), "{reply}");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(one.read().text(), "end");
    assert_eq!(two.run("GET w").text(), "201");
}

/// However long it runs: TIME, and what expires.
#[test]
fn time_stands_still_for_a_script() {
    check(
        r#"
        # needs redis >= 7.2
        SET soon 1 PX 40 => +OK
        > EVAL "local first = redis.call('TIME') local began = os.clock() local ttl = redis.call('PTTL', 'soon') while os.clock() - began < 0.06 do end local last = redis.call('TIME') return {tostring(first[1] == last[1] and first[2] == last[2]), tostring(ttl == redis.call('PTTL', 'soon')), redis.call('SET', 'other', 1, 'PX', 1), tostring(redis.call('PEXPIRETIME', 'other') - last[1] * 1000 - math.floor(last[2] / 1000))}" 2 soon other
        ["true", "true", +OK, "1"]
        EXISTS soon other => :0
        SET soon 1 PX 40 => +OK
        MULTI => +OK
        TIME => +QUEUED
        > EVAL "local now, began = redis.call('TIME'), os.clock() while os.clock() - began < 0.06 do end redis.call('RPUSH', 'times', now[2], redis.call('TIME')[2]) return redis.call('EXISTS', 'soon')" 2 times soon
        +QUEUED
        EXISTS soon => +QUEUED
        EXEC => [*, :1, :1]
        EVAL "return tostring(redis.call('LINDEX', 'times', 0) == redis.call('LINDEX', 'times', 1))" 1 times => "true"
        "#,
    );
}

/// What a script takes is what its commands take, and more.
#[test]
fn the_time_of_a_script_has_that_of_its_commands() {
    let session = Session::start();
    let mut one = session.connect();
    let elements: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    one.run(&format!("RPUSH l {}", elements.join(" ")));
    let sha =
        train(&mut one, "local n = 0 for i = 1, tonumber(ARGV[1]) do n = n + #redis.call('SORT', 'l') end return n");
    assert_eq!(one.run(&format!("EVALSHA {sha} 1 k 5")).integer(), 10_000);
    let usec = |connection: &mut Connection, command: &str| {
        let info = connection.run("INFO commandstats").text().to_owned();
        let line =
            info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:"))).expect("it was called");
        let usec = line.split(',').find_map(|field| field.strip_prefix("usec=")).expect("it took some time");
        usec.parse::<u64>().expect("a number")
    };
    let (script, command) = (usec(&mut one, "evalsha"), usec(&mut one, "sort"));
    assert!(script >= command, "{script} microseconds, of which {command}");
}

/// Whoever waits for what the script has locked is let go, and so is the thread that serves them all.
#[test]
fn a_transaction_does_not_wait_for_an_endless_script() {
    check(
        r##"
        # config busy-reply-threshold 300
        4> SUBSCRIBE running => ["subscribe", "running", :1]
        3> WATCH k => +OK
        3! MULTI
        3> SET k 1 => +QUEUED
        > EVAL "redis.call('GET','any') redis.call('PUBLISH','running','now') while true do end" 0
        4< ["message", "running", "now"]
        3> EXEC => ~-*BUSY*
        2> SCRIPT KILL => +OK
        1< ~-ERR Script killed by user with SCRIPT KILL*
        # eventually
        3! SET k 2
        "##,
    );
}

/// As in Redis: an EXEC that is turned away ends the transaction all the same.
#[test]
fn a_transaction_that_meets_a_busy_server_is_over() {
    check(
        r##"
        # config busy-reply-threshold 50
        3! MULTI
        3> SET k 1 => +QUEUED
        > EVAL "while true do end" 0
        # eventually
        2> PING => -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        3> EXEC
        -EXECABORT Transaction discarded because of: BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        2> SCRIPT KILL => +OK
        1< ~-ERR Script killed by user with SCRIPT KILL*
        # eventually
        2> PING => +PONG
        3> GET k => (nil)
        3> EXEC => -ERR EXEC without MULTI
        "##,
    );
}

/// An error that a script passes on from a command is counted once, at the command; the script has failed all the same. The
/// loop makes sure that it also holds for scripts that may run long.
#[test]
fn failures_in_scripts_are_counted() {
    check(
        r#"
        SET text abc => +OK
        CONFIG RESETSTAT => +OK
        EVAL "return redis.pcall('GET')" 0 => -ERR Wrong number of args calling Redis command from script
        EVAL "return redis.pcall('INCR', KEYS[1])" 1 text => -ERR value is not an integer or out of range
        > EVAL "while true do redis.call('INCR', KEYS[1]) end" 1 text
        ~-ERR value is not an integer or out of range script: *
        > EVAL_RO "return {redis.pcall('SET', KEYS[1], 1)['err']}" 1 text
        ["ERR Write commands are not allowed from read-only scripts."]
        EVAL "return {err='MINE it is'}" 0 => -MINE it is
        INFO errorstats => ~"*errorstat_ERR:count=4\r\n*"
        INFO errorstats => ~"*errorstat_MINE:count=1\r\n*"
        INFO commandstats => ~"*cmdstat_get:calls=0,*,rejected_calls=1,failed_calls=0\r\n*"
        INFO commandstats => ~"*cmdstat_set:calls=0,*,rejected_calls=1,failed_calls=0\r\n*"
        INFO commandstats => ~"*cmdstat_incr:calls=2,*,rejected_calls=0,failed_calls=2\r\n*"
        INFO commandstats => ~"*cmdstat_eval:calls=4,*,rejected_calls=0,failed_calls=4\r\n*"
        INFO commandstats => ~"*cmdstat_eval_ro:calls=1,*,rejected_calls=0,failed_calls=0\r\n*"
        "#,
    );
}

/// Valkey 8 and later have the table `redis` under this name too. The move of a Valkey compares both (`moving`).
#[test]
fn server_is_the_table_redis() {
    check(
        r##"
        # holdfast only
        > EVAL "return {tostring(server == redis), server.call('SET', KEYS[1], 1), server.pcall('INCR', KEYS[1]), server.sha1hex('')}" 1 k
        ["true", +OK, :2, "da39a3ee5e6b4b0d3255bfef95601890afd80709"]
        EVAL "server.x = 1" 0 => ~-ERR user_script:1: Attempt to modify a readonly table script: *
        EVAL "server = {}" 0 => ~-ERR user_script:1: Attempt to modify a readonly table script: *
        EVAL "rawset(server, 'call', 1)" 0 => ~-ERR *
        > EVAL_RO "return server.call('SET', KEYS[1], 1)" 1 k
        ~-ERR Write commands are not allowed from read-only scripts*
        > FUNCTION LOAD REPLACE "#!lua name=l\nserver.register_function{function_name='f', callback=function(keys) return {tostring(server == redis), server.call('GET', keys[1])} end, flags={'no-writes'}}"
        "l"
        FCALL_RO f 1 k => ["true", "2"]
        > FUNCTION LOAD "#!lua name=m\nserver.call('GET', 'k')"
        ~-ERR Error registering functions: *nonexistent global variable 'call'*
        > FUNCTION LOAD "#!lua name=m\nserver.x = 1"
        ~-ERR Error registering functions: *Attempt to modify a readonly table*
        FUNCTION DELETE l => +OK
        "##,
    );
}
