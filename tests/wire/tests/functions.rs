//! FUNCTION, FCALL and FCALL_RO: libraries that are kept by name. What Lua itself does is in `lua`'s own tests.

use std::time::{Duration, Instant};
use wire::{Connection, Session, check};

#[test]
fn a_library_is_loaded_listed_called_and_deleted() {
    check(
        r##"
        FUNCTION FLUSH => +OK
        > FUNCTION LOAD "#!lua name=mylib\nredis.register_function('Echo', function(keys, args) return {keys[1], args[1], #keys, #args} end)"
        "mylib"
        FCALL Echo 1 k a b => ["k", "a", :1, :2]
        FCALL echo 0 => []
        > FUNCTION LIST
        [["library_name", "mylib", "engine", "LUA", "functions", [["name", "Echo", "description", (nil), "flags", []]]]]
        > FUNCTION LIST WITHCODE LIBRARYNAME MY*
        [["library_name", "mylib", "engine", "LUA", "functions", [["name", "Echo", "description", (nil), "flags", []]], "library_code", "#!lua name=mylib\nredis.register_function('Echo', function(keys, args) return {keys[1], args[1], #keys, #args} end)"]]
        FUNCTION LIST LIBRARYNAME other* => []
        FUNCTION STATS => ["running_script", (nil), "engines", ["LUA", ["libraries_count", :1, "functions_count", :1]]]
        FUNCTION DELETE mylib => +OK
        FUNCTION DELETE mylib => -ERR Library not found
        FCALL echo 0 => -ERR Function not found
        FUNCTION LIST => []
        // In a transaction.
        FUNCTION FLUSH => +OK
        MULTI => +OK
        > FUNCTION LOAD "#!lua name=lib\nredis.register_function('inc', function(keys) return redis.call('INCR', keys[1]) end)"
        +QUEUED
        FCALL inc 1 n => +QUEUED
        FCALL inc 1 n => +QUEUED
        FUNCTION DELETE lib => +QUEUED
        FCALL inc 1 n => +QUEUED
        EXEC => ["lib", :1, :2, +OK, -"ERR Function not found"]
        GET n => "2"
        FUNCTION LIST => []
        // In RESP3, lists have maps and sets.
        FUNCTION FLUSH SYNC => +OK
        HELLO 3 => *
        > FUNCTION LOAD "#!lua name=lib\nredis.register_function{function_name='f', description='says one', callback=function() return 1 end, flags={'no-writes', 'allow-stale'}}"
        "lib"
        > FUNCTION LIST
        [{"library_name" => "lib", "engine" => "LUA", "functions" => [{"name" => "f", "description" => "says one", "flags" => set[+no-writes, +allow-stale]}]}]
        > FUNCTION STATS
        {"running_script" => _, "engines" => {"LUA" => {"libraries_count" => :1, "functions_count" => :1}}}
        "##,
    );
}

#[test]
fn what_cannot_be_loaded_changes_nothing() {
    check(
        r##"
        FUNCTION FLUSH ASYNC => +OK
        FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)" => "lib"
        > FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 2 end)"
        -ERR Library 'lib' already exists
        > FUNCTION LOAD "#!lua name=other\nredis.register_function('F', function() return 2 end)"
        -ERR Function F already exists
        FUNCTION LOAD REPLACE "#!lua name=lib\nreturn (" => ~-ERR Error compiling function: user_function:2:*
        FUNCTION LOAD REPLACE "#!lua name=lib\nlocal x = 1" => -ERR No functions registered
        > FUNCTION LOAD "#!lua name=lib2\nredis.call('set', 'x', 1)"
        -ERR Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable 'call'
        FUNCTION LOAD "redis.register_function('g', function() end)" => -ERR Missing library metadata
        FUNCTION LOAD "#!lua name=x" => -ERR Invalid library metadata
        FUNCTION LOAD "#!lua\nx" => -ERR Library name was not given
        FUNCTION LOAD "#!lua name=a name=b\nx" => -ERR Invalid metadata value, name argument was given multiple times
        FUNCTION LOAD "#!lua nam=a\nx" => -ERR Invalid metadata value given: nam=a
        > FUNCTION LOAD "#!lua name=a-b\nx"
        -ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long
        FUNCTION LOAD "#!js name=a\nx" => -ERR Engine 'js' not found
        FUNCTION LOAD ANYWAY "#!lua name=a\nx" => -ERR Unknown option given: ANYWAY
        FUNCTION LOAD REPLACE => -ERR Missing library metadata
        FCALL f 0 => :1
        FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('g', function() return 3 end)" => "lib"
        FCALL f 0 => -ERR Function not found
        FCALL g 0 => :3
        FUNCTION LIST NOSUCH => -ERR Unknown argument NOSUCH
        FUNCTION LIST LIBRARYNAME => -ERR library name argument was not given
        FUNCTION FLUSH NOW => -ERR FUNCTION FLUSH only supports SYNC|ASYNC option
        FUNCTION FLUSH SYNC SYNC => -ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.
        FUNCTION NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try FUNCTION HELP.
        "##,
    );
}

#[test]
fn calls_are_checked() {
    check(
        r##"
        FUNCTION FLUSH => +OK
        > FUNCTION LOAD "#!lua name=lib\nredis.register_function('w', function(keys) return redis.call('SET', keys[1], 1) end)\nredis.register_function{function_name='r', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}\nredis.register_function{function_name='liar', callback=function(keys) return redis.call('SET', keys[1], 1) end, flags={'no-writes'}}\nredis.register_function('e', function() error('boo') end)\nredis.register_function('g', function() return KEYS[1] end)"
        "lib"
        FCALL w 1 k => +OK
        FCALL_RO w 1 k => -ERR Can not execute a script with write flag using *_ro command.
        FCALL_RO r 1 k => "1"
        > FCALL liar 1 k
        ~-ERR Write commands are not allowed from read-only scripts. script: liar, on @user_function:*.
        FCALL e 0 => -ERR user_function:5: boo script: e, on @user_function:5.
        > FCALL g 0
        ~-ERR user_function:6: Script attempted to access nonexistent global variable 'KEYS' script: g, on @user_function:6.
        FCALL w x => -ERR Bad number of keys provided
        FCALL w -1 => -ERR Number of keys can't be negative
        FCALL w 2 k => -ERR Number of keys can't be greater than number of args
        FCALL nosuch 0 => -ERR Function not found
        EVAL "return redis.call('FCALL', 'w', 1, 'k')" 0 => ~-ERR This Redis command is not allowed from script*
        EVAL_RO "#!lua\nreturn 1" 0 => -ERR Can not execute a script with write flag using *_ro command.
        "##,
    );
}

#[test]
fn libraries_go_to_another_server_and_back() {
    check(
        r##"
        FUNCTION FLUSH => +OK
        FUNCTION RESTORE "\xf5\x02ab" => -ERR DUMP payload version or checksum are wrong
        > FUNCTION RESTORE x APPEND y
        -ERR unknown subcommand or wrong number of arguments for 'RESTORE'. Try FUNCTION HELP.
        FUNCTION RESTORE x SOMEHOW => -ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.
        FUNCTION LOAD "#!lua name=two\nredis.register_function('g', function() return 2 end)" => "two"
        // What FUNCTION DUMP of Redis 7.0.15 says of a library `one` with a function `f` that returns 1.
        > FUNCTION RESTORE "\xf5@D#!lua name=one\nredis.register_function('f', function() return 1 end)\n\x00Or\xcds\xf1\xe4\x1d\t"
        +OK
        FCALL f 0 => :1
        > FUNCTION RESTORE "\xf5@D#!lua name=one\nredis.register_function('f', function() return 1 end)\n\x00Or\xcds\xf1\xe4\x1d\t" APPEND
        -ERR Library one already exists
        +OK
            FUNCTION RESTORE "\xf5@D#!lua name=one\nredis.register_function('f', function() return 1 end)\n\x00Or\xcds\xf1\xe4\x1d\t" REPLACE
            FUNCTION DELETE one
        FUNCTION LOAD "#!lua name=three\nredis.register_function('f', function() return 3 end)" => "three"
        > FUNCTION RESTORE "\xf5@D#!lua name=one\nredis.register_function('f', function() return 1 end)\n\x00Or\xcds\xf1\xe4\x1d\t" REPLACE
        -ERR Function f already exists
        FCALL f 0 => :3
        > FUNCTION RESTORE "\xf5@D#!lua name=one\nredis.register_function('f', function() return 1 end)\n\x00Or\xcds\xf1\xe4\x1d\t" FLUSH
        +OK
        FCALL f 0 => :1
        FCALL g 0 => -ERR Function not found
        > FUNCTION DUMP
        "\xf5@D#!lua name=one\nredis.register_function('f', function() return 1 end)\n\x00Or\xcds\xf1\xe4\x1d\t"
        "##,
    );
}

/// A function that does not end, stopped from another connection.
#[test]
fn an_endless_function_can_be_killed() {
    check(
        r##"
        # config busy-reply-threshold 50
        FUNCTION FLUSH => +OK
        > FUNCTION LOAD REPLACE "#!lua name=loops\nredis.register_function{function_name='loop', callback=function() while true do end end, flags={'no-writes'}}\nredis.register_function('write', function(keys) redis.call('SET', keys[1], 1) local n = 0 while redis.call('EXISTS', 'stop') == 0 and n < 3000000 do n = n + 1 end end)"
        "loops"
        > fcall_ro loop 1 k a b
        # eventually
        2> PING => -BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.
        2> SCRIPT KILL => -BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.
        2> FUNCTION STATS
        ["running_script", ["name", "loop", "command", ["fcall_ro", "loop", "1", "k", "a", "b"], "duration_ms", :0..], "engines", ["LUA", ["libraries_count", :1, "functions_count", :2]]]
        2> FUNCTION KILL => +OK
        1< ~-ERR Script killed by user with SCRIPT KILL... script: loop, on @user_function:2.
        # eventually
        2> PING => +PONG
        2> FUNCTION KILL => -NOTBUSY No scripts in execution right now.
        > EVAL "while true do end" 0
        # eventually
        2> FUNCTION KILL => -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        2> FUNCTION STATS => -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        2> SCRIPT KILL => +OK
        1< ~-ERR Script killed by user with SCRIPT KILL*
        # eventually
        2> FUNCTION DELETE loops => +OK
        "##,
    );
}

#[test]
fn the_compare_and_swap_is_always_there() {
    check(
        r##"
        # holdfast only
        FUNCTION FLUSH => +OK
        HSET job state pending => :1
        FCALL compare_and_swap 1 job state pending running => :1
        FCALL compare_and_swap 1 job state pending running => :0
        FCALL compare_and_swap 1 nosuch state pending running => :0
        HGET job state => "running"
        > FCALL_RO compare_and_swap 1 job state running done
        -ERR Can not execute a script with write flag using *_ro command.
        SET text x => +OK
        > FCALL compare_and_swap 1 text state a b
        ~-WRONGTYPE Operation against a key holding the wrong kind of value script: compare_and_swap, on @user_function:3.
        FUNCTION LIST => []
        FUNCTION LIST LIBRARYNAME * => []
        FUNCTION LIST LIBRARYNAME hold* => []
        > FUNCTION LIST LIBRARYNAME Holdfast
        [["library_name", "holdfast", "engine", "LUA", "functions", [["name", "compare_and_swap", "description", (nil), "flags", []]]]]
        FUNCTION DELETE holdfast => -ERR Library 'holdfast' is part of the server and stays
        "mine"
            FUNCTION LOAD "#!lua name=mine\nredis.register_function('compare_and_swap', function() return 'mine' end)"
            FCALL compare_and_swap 0
        FUNCTION DELETE mine => +OK
        FCALL compare_and_swap 1 job state running done => :1
        "##,
    );
}

/// A number in INFO.
fn info(connection: &mut Connection, name: &str) -> i64 {
    let info = connection.run("INFO memory").to_string();
    let (_, value) = info.split_once(&format!("{name}:")).unwrap_or_else(|| panic!("{name} in {info}"));
    value.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect(name)
}

/// On the worker, and, for those with a loop, on the script thread. No request comes after the flush that could make room.
#[test]
fn libraries_that_are_gone_leave_no_memory_behind() {
    const ROUNDS: usize = 2000;
    const ROOM_BYTES: i64 = 1024 * 1024;
    let session = Session::start();
    let mut connection = session.connect();
    let load = |connection: &mut Connection, body: &str, number: usize| {
        let code = format!("#!lua name=lib\nredis.register_function('f', function() {body} return {number} end)");
        assert_eq!(connection.run_with("FUNCTION LOAD REPLACE", &[code.as_bytes()]).to_string(), "\"lib\"");
        assert_eq!(connection.run("FCALL f 0").to_string(), format!(":{number}"));
    };
    let bodies = ["", "for i = 1, 2 do end"];
    connection.run("FUNCTION FLUSH");
    bodies.iter().for_each(|body| load(&mut connection, body, 0));
    connection.run("FUNCTION FLUSH");
    let before = (info(&mut connection, "used_memory"), info(&mut connection, "used_memory_lua"));
    for number in 0..ROUNDS {
        load(&mut connection, bodies[number % 2], number);
    }
    connection.run("FUNCTION FLUSH");
    let began = Instant::now();
    loop {
        let after = (info(&mut connection, "used_memory"), info(&mut connection, "used_memory_lua"));
        if after.0 < before.0 + ROOM_BYTES && after.1 < before.1 + ROOM_BYTES {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{before:?} {after:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
