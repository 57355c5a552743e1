//! SESSION.HOOK: functions that are called when a session is opened and when it ends.

use crate::{info, must, must_all, server_info, start};
use wire::own::OwnServer;
use wire::{Connection, Session};

const LIBRARY: &str = "#!lua name=hooks
redis.register_function('note', function(keys, args) redis.call('append', 'log', keys[1] .. '(' .. table.concat(args, ' ') .. ')') return 'note' end)
redis.register_function('fail', function(keys, args) redis.call('incr', 'failed') return redis.error_reply('MY no') end)
redis.register_function('boom', function(keys, args) redis.call('incr', 'failed') error('boom') end)
redis.register_function('bye', function(keys, args) redis.call('session.push', keys[1], 'to the dying') redis.call('session.push', 'other', keys[1] .. ' is gone') end)
redis.register_function('greet', function(keys, args) redis.call('session.push', keys[1], 'welcome') end)
redis.register_function('self', function(keys, args) redis.call('set', 'seen', tostring(redis.call('exists', keys[1])) .. redis.call('type', keys[1]).ok .. redis.call('session.alive', keys[1])) end)
redis.register_function('opens', function(keys, args) redis.call('session.open', 'id', 'x') end)
redis.register_function('closes', function(keys, args) redis.call('session.close', keys[1]) end)
redis.register_function('deletes', function(keys, args) redis.call('del', keys[1]) end)
redis.register_function('sets', function(keys, args) redis.call('del', keys[1]) redis.call('set', keys[1], 'a string') end)
redis.register_function('swaps', function(keys, args) redis.call('swapdb', 0, 1) end)
redis.register_function('flushes', function(keys, args) redis.call('flushall') redis.call('set', 'after', 'flush') end)
";

fn load(connection: &mut Connection) {
    let reply = connection.run_args(&["FUNCTION", "LOAD", "REPLACE", LIBRARY]);
    assert_eq!(reply.text(), "hooks");
}

/// Runs a transcript against a server with the library.
#[track_caller]
fn check(transcript: &str) {
    if let Some(session) = start_with_library() {
        session.check(transcript);
    }
}

fn start_with_library() -> Option<Session> {
    let session = start()?;
    load(&mut session.connect());
    Some(session)
}

#[test]
fn hooks_are_set_and_shown() {
    check(
        r#"
        > SESSION.HOOK
        ["created", (nil), "expired", (nil)]
        ! SESSION.HOOK CREATED note
        > session.hook expired bye
        +OK
        > SESSION.HOOK
        ["created", "note", "expired", "bye"]
        ! SESSION.HOOK CREATED fail
        SESSION.HOOK CREATED nosuch => ~-ERR *nosuch*
        SESSION.HOOK CREATED => ~-ERR *
        SESSION.HOOK NOSUCH note => ~-ERR *
        SESSION.HOOK CREATED note more => ~-ERR *
        > SESSION.HOOK
        ["created", "fail", "expired", "bye"]
        ! SESSION.HOOK expired none
        ! HELLO 3
        > SESSION.HOOK
        {"created" => "fail", "expired" => _}
        ! SESSION.HOOK CREATED NONE
        ! SESSION.HOOK CREATED NONE
        "#,
    );
}

#[test]
fn created_is_called_once_with_the_capabilities() {
    check(
        r#"
        ! SESSION.HOOK CREATED note
        ! SESSION.OPEN ID a CAP 2 x 1 y 2
        ! SESSION.OPEN ID a CAP 1 z 3
        ! SESSION.OPEN ID b
        GET log => "a(x 1 y 2)b()"
        // Not where there is none made.
        SESSION.OPEN ID log => ~-WRONGTYPE *
        SESSION.OPEN ID c TTL 0 => ~-ERR *
        ! MULTI
        ! SESSION.OPEN ID d
        ! GET log
        > EXEC
        ["d", "a(x 1 y 2)b()d()"]
        EVAL "redis.call('session.open', 'id', 'e') return redis.call('get', 'log')" 0 => "a(x 1 y 2)b()d()e()"
        SESSION.CALL a 1 LOW 1 SESSION.OPEN ID f => "f"
        SESSION.CALL a 1 LOW 1 SESSION.OPEN ID f => "f"
        > GET log
        "a(x 1 y 2)b()d()e()f()"
        ! SESSION.HOOK CREATED greet
        ! SESSION.OPEN ID g
        > SESSION.PENDING g
        [[:1, "welcome", *]]
        ! SESSION.HOOK CREATED NONE
        ! SESSION.OPEN ID h
        SESSION.PENDING h => []
        "#,
    );
}

/// The error is that of OPEN, and there is nothing: no session, and nothing that the function wrote before it failed. OPEN does not answer
/// with the name of a session that is not there, either.
#[test]
fn a_failing_created_makes_no_session() {
    const GONE: &str = "ERR the function that was called for the session has removed, replaced or moved it: set another one with SESSION.HOOK";
    for (function, error) in [
        ("fail", "MY no*"),
        ("boom", "ERR *boom*"),
        ("opens", "ERR *"),
        ("closes", "ERR *"),
        ("deletes", GONE),
        ("sets", GONE),
        ("swaps", GONE),
        ("flushes", GONE),
    ] {
        check(&format!(
            r#"
            ! SET before 0
            ! SELECT 1
            ! SET before 1
            ! SELECT 0
            ! SESSION.HOOK CREATED {function}
            > SESSION.OPEN ID s
            ~-{error}
            KEYS * => ["before"]
            GET before => "0"
            SESSION.ALIVE s => :0
            SESSION.LIST => ["0", []]
            ! MULTI
            ! SESSION.OPEN ID t
            ! SET k 1
            > EXEC
            [~-"{error}", +OK]
            ! SELECT 1
            KEYS * => ["before"]
            GET before => "1"
            ! SELECT 0
            ! SESSION.HOOK CREATED NONE
            ! SESSION.OPEN ID s
            // What is there is only renewed.
            ! SESSION.HOOK CREATED {function}
            SESSION.OPEN ID s => "s"
            "#
        ));
    }
}

#[test]
fn expired_is_called_on_close_and_on_nothing_else_but_expiry() {
    check(
        r#"
        ! SESSION.HOOK EXPIRED note
        ! SESSION.OPEN ID a CAP 1 x 1
        SESSION.CLOSE a => :1
        SESSION.CLOSE a => :0
        > GET log
        "a(x 1)"
        ! SESSION.OPEN ID b
        ! DEL b
        > GET log
        "a(x 1)"
        ! SESSION.OPEN ID d TTL 20
        # eventually
        > GET log
        "a(x 1)d()"
        ! SESSION.OPEN ID e
        ! FLUSHALL
        > GET log
        (nil)
        ! MULTI
        ! SESSION.OPEN ID f
        ! SESSION.CLOSE f
        ! GET log
        EXEC => ["f", :1, "f()"]
        "#,
    );
}

#[test]
fn a_failing_expired_lets_the_session_go_and_is_counted() {
    let Some(session) = start_with_library() else { return };
    let mut connection = session.connect();
    for function in ["fail", "boom"] {
        let failures = |connection: &mut Connection| {
            server_info(connection, "session_hook_failures").parse::<u64>().expect("a number")
        };
        let before = failures(&mut connection);
        must(&mut connection, &format!("SESSION.HOOK EXPIRED {function}"));
        must(&mut connection, "SESSION.OPEN ID s");
        assert_eq!(connection.run("SESSION.CLOSE s").integer(), 1);
        assert_eq!(connection.run("EXISTS s").integer(), 0);
        assert_eq!(failures(&mut connection), before + 1);
        must(&mut connection, "SESSION.OPEN ID s TTL 10");
        while failures(&mut connection) == before + 1 {}
        assert_eq!(connection.run("EXISTS s").integer(), 0);
        assert_eq!(failures(&mut connection), before + 2);
    }
    // A function that is gone is one that fails; what was set stays set.
    must(&mut connection, "SESSION.HOOK EXPIRED note");
    must_all(&mut connection, "SESSION.HOOK CREATED note; SESSION.OPEN ID s; FUNCTION FLUSH");
    assert_eq!(connection.run("SESSION.CLOSE s").integer(), 1);
    assert_eq!(connection.run("EXISTS s").integer(), 0);
    assert!(connection.run("SESSION.OPEN ID s").is_error());
    assert_eq!(connection.run("EXISTS s").integer(), 0);
    assert_eq!(connection.run("SESSION.HOOK").to_string(), "[\"created\", \"note\", \"expired\", \"note\"]");
    load(&mut connection);
    must(&mut connection, "SESSION.OPEN ID s");
}

#[test]
fn pushes_to_the_dying_are_dropped_and_to_others_kept() {
    for how in ["SESSION.CLOSE s\n:1", "SESSION.CALL other 1 LOW 1 SESSION.CLOSE s\n:1", "SESSION.ALIVE other\n:1"] {
        let ttl = if how.contains("CLOSE") { "60000" } else { "30" };
        check(&format!(
            r#"
            ! SESSION.HOOK EXPIRED bye
            ! SESSION.OPEN ID other
            2! HELLO 3
            3! HELLO 3
            2! SESSION.ATTACH other
            ! SESSION.OPEN ID s TTL {ttl}
            // It may have expired by now.
            3> SESSION.ATTACH s
            *
            > {how}
            2< push["session", "other", :1, "s is gone"]
            3> PING
            +PONG
            EXISTS s => :0
            SESSION.PENDING other => [[:1, "s is gone", *]]
            > SESSION.RETRY 99999999999999
            [["other", :1, "s is gone", :1700000000000..]]
            ! SESSION.OPEN ID s
            ! SESSION.PUSH s first
            "#
        ));
    }
}

#[test]
fn an_expired_hook_may_not_open_close_or_call() {
    for function in ["opens", "closes"] {
        check(&format!(
            r#"
            ! SESSION.HOOK EXPIRED {function}
            ! SESSION.OPEN ID s
            SESSION.CLOSE s => :1
            EXISTS s x => :0
            "#
        ));
    }
}

/// What a function may do to the session that it is called for, or under it.
#[test]
fn hooks_that_remove_or_replace_the_session() {
    for function in ["deletes", "sets", "swaps", "flushes"] {
        let Some(session) = start_with_library() else { return };
        let mut connection = session.connect();
        must(&mut connection, "SESSION.OPEN ID other");
        must(&mut connection, &format!("SESSION.HOOK CREATED {function}"));
        for _ in 0..3 {
            connection.run("SESSION.OPEN ID s");
            connection.run("SESSION.PUSH s x");
        }
        must(&mut connection, "SESSION.HOOK CREATED NONE");
        connection.run("DEL s");
        must(&mut connection, &format!("SESSION.HOOK EXPIRED {function}"));
        for _ in 0..3 {
            // The hook of the last one may have run just now, and its key be in the way.
            connection.run("SESSION.OPEN ID s");
            connection.run("SESSION.PUSH s x");
            connection.run("SESSION.CLOSE s");
            connection.run("DEL s");
            connection.run("SESSION.OPEN ID s TTL 5");
            while connection.run("TYPE s").to_string() == "+session" {}
            connection.run("DEL s");
        }
        must_all(&mut connection, "SESSION.HOOK EXPIRED NONE; FLUSHALL");
        assert_eq!(connection.run("SESSION.RETRY 99999999999999").to_string(), "[]", "{function}");
        must(&mut connection, "SESSION.OPEN ID s");
        assert_eq!(info(&mut connection, "s", "last_id").integer(), 0);
    }
}

/// A function that changes values of every type, indexes and databases, and then fails, has changed nothing: not here,
/// not for those who listen, wait or cache, and not after a restart.
#[test]
fn what_a_failing_created_has_changed_is_undone() {
    const WRECKS: &str = "#!lua name=wrecks
redis.register_function('wreck', function(keys, args)
  local c = redis.call
  c('append', 'string', 'x') c('hset', 'hash', 'f', '2', 'g', '3') c('rpush', 'list', 'b') c('del', 'set')
  c('zadd', 'zset', '7', 'm') c('xadd', 'stream', '9-9', 'f', 'v') c('cell.set', 'cell', 'w')
  c('run.append', 'run', 'k2', 't', 'd') c('reg.put', 'register', '2', 'w') c('session.push', 'other', 'x')
  c('session.ack', 'other', '1') c('pexpire', 'string', '100000') c('rename', 'zset', 'moved') c('copy', 'list', 'copied')
  c('set', 'new', 'v') c('idx.drop', 'i') c('idx.create', 'j', 'PREFIX', '1', 'h', 'FIELD', 'f')
  c('swapdb', '0', '1') c('set', 'swapped', 'v') c('flushall') c('hset', 'hash', 'f', '9') c('swapdb', '0', '2')
  error('wrecked')
end)";
    const STATE: &str = "DEBUG DIGEST; DBSIZE; PTTL string; CELL.HISTORY cell; RUN.EVENTS run; REG.GET register; \
        SESSION.PENDING other; IDX.LIST; ZRANGE i 0 -1 WITHSCORES; SESSION.LIST; SESSION.HOOK";
    let args = &["--enable-debug-command", "yes", "--appendfsync", "always"];
    let Some(own) = OwnServer::start(args) else { return };
    let mut connection = own.connect();
    assert_eq!(connection.run_args(&["FUNCTION", "LOAD", WRECKS]).text(), "wrecks");
    for line in "SET string s; HSET hash f 1; RPUSH list a; SADD set a 1; ZADD zset 1 m 2 n; XADD stream 1-1 f v; \
         CELL.SET cell v; RUN.APPEND run k t d; REG.PUT register 1 v; SESSION.OPEN ID other TTL 3600000; \
         SESSION.PUSH other first; IDX.CREATE i PREFIX 1 hash FIELD f; SESSION.HOOK CREATED wreck"
        .split("; ")
    {
        must(&mut connection, line);
    }
    let (mut attached, mut listener) = (own.connect(), own.connect());
    must(&mut attached, "HELLO 3");
    attached.queue_line("SESSION.ATTACH other");
    attached.flush();
    assert_eq!(attached.read().to_string(), "+OK");
    assert_eq!(attached.read().to_string(), "push[\"session\", \"other\", :1, \"first\"]");
    must(&mut connection, "CONFIG SET notify-keyspace-events EA");
    must(&mut listener, "PSUBSCRIBE __key*");
    let state = |connection: &mut Connection| connection.pipeline(&STATE.split("; ").collect::<Vec<_>>());
    let before = state(&mut connection);
    for open in ["SESSION.OPEN ID s", "EVAL \"return redis.call('session.open', 'id', 's')\" 0"] {
        let reply = connection.run(open).to_string();
        assert!(reply.contains("wrecked"), "{reply}");
        assert_eq!(state(&mut connection), before, "{open}");
    }
    // The first that they hear of is this.
    must(&mut connection, "SESSION.PUSH other second");
    assert_eq!(attached.read().to_string(), "push[\"session\", \"other\", :2, \"second\"]");
    let event = listener.read().to_string();
    assert!(event.contains("session.push"), "{event}");
    let before = state(&mut connection);
    own.kill_and_start();
    assert_eq!(state(&mut own.connect()), before);
}

/// For all others it is absent; the function can still read what it had.
#[test]
fn the_hook_sees_the_session_that_ends() {
    check(
        r#"
        ! SESSION.HOOK EXPIRED self
        ! SESSION.OPEN ID s TTL 20
        # eventually
        > EXISTS seen
        :1
        GET seen => "1session1"
        "#,
    );
}

/// One that has expired and was not removed yet is opened anew: the hook of the old one runs all the same.
#[test]
fn an_expired_session_that_is_opened_again_had_its_hook() {
    check(
        r#"
        ! SESSION.HOOK EXPIRED note
        ! DEBUG SET-ACTIVE-EXPIRE 0
        ! SESSION.OPEN ID s TTL 5 CAP 1 old 1
        ! SESSION.OPEN ID t TTL 5 CAP 1 old 2
        # eventually
        > EXISTS s t
        :0
        TYPE s => +none
        > SESSION.PUSH s x
        ~-NOSESSION *
        ! SESSION.OPEN ID s
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :0, "last_id", :0, "attached", :0, "capabilities", []]
        ! DEBUG SET-ACTIVE-EXPIRE 1
        # eventually
        > STRLEN log
        :16
        "#,
    );
}

/// What the hook of the expired one leaves under its name is in the way of the new one, and the server lives.
#[test]
fn an_expired_session_whose_hook_takes_its_name_is_not_opened_again() {
    check(
        r#"
        ! SESSION.HOOK EXPIRED sets
        ! DEBUG SET-ACTIVE-EXPIRE 0
        ! SESSION.OPEN ID s TTL 5
        # eventually
        > EXISTS s
        :0
        SESSION.OPEN ID s => ~-WRONGTYPE *
        GET s => "a string"
        // Both databases have an expired one, and the function swaps them.
        ! DEL s
        ! SESSION.HOOK EXPIRED swaps
        ! SESSION.OPEN ID s TTL 5
        ! SELECT 1
        ! SESSION.OPEN ID s TTL 5
        # eventually
        > EXISTS s
        :0
        ! SESSION.OPEN ID s
        ! DEBUG SET-ACTIVE-EXPIRE 1
        > SESSION.ALIVE s
        :1
        ! SELECT 0
        DBSIZE => :0
        "#,
    );
}

/// A value of any type takes the place of an expired session: then it was overwritten, and no hook runs.
#[test]
fn an_expired_session_gives_way_to_another_value() {
    let Some(session) = start_with_library() else { return };
    let mut connection = session.connect();
    must(&mut connection, "SESSION.HOOK EXPIRED note");
    let writes = [
        ("SET s x", "string"),
        ("APPEND s x", "string"),
        ("HSET s a b", "hash"),
        ("SADD s a", "set"),
        ("ZADD s 1 a", "zset"),
        ("CELL.SET s x", "cell"),
        ("RUN.APPEND s k RunStarted x", "run"),
        ("REG.PUT s 1 x", "register"),
        ("EVAL \"return redis.call('hset', KEYS[1], 'a', 'b')\" 1 s", "hash"),
    ];
    for (write, kind) in writes {
        must_all(&mut connection, "DEL log s; DEBUG SET-ACTIVE-EXPIRE 0; SESSION.OPEN ID s TTL 2");
        while connection.run("EXISTS s").integer() == 1 {}
        must(&mut connection, write);
        must_all(&mut connection, "DEBUG SET-ACTIVE-EXPIRE 1; DEBUG RELOAD");
        assert_eq!(connection.run("TYPE s").to_string(), format!("+{kind}"), "{write}");
        assert!(connection.run("GET log").is_nil(), "{write}: it was overwritten, and had its hook");
    }
}

/// Reads, and deletions of what is no longer there, leave the expired session to the expiry cycle.
#[test]
fn what_meets_an_expired_session_leaves_it_to_its_hook() {
    let Some(session) = start_with_library() else { return };
    let mut connection = session.connect();
    must(&mut connection, "SESSION.HOOK EXPIRED note");
    let meetings = "DEL s; UNLINK s; GET s; TYPE s; SESSION.CLOSE s; SESSION.ALIVE s; SESSION.INFO s; SESSION.PUSH s x; \
         SESSION.PENDING s; SESSION.CALL s 1 LOW 1 INCR n; SESSION.CALL other 1 LOW 1 DEL s; EXPIRE s 100; \
         PERSIST s; RENAME s t; COPY s t; MOVE s 1; DUMP s; SCAN 0 COUNT 1000; KEYS *; RANDOMKEY; DBSIZE; \
         OBJECT ENCODING s; HGET s a; MEMORY USAGE s; GETEX s EX 5; HDEL s a; HEXPIRE s 5 FIELDS 1 a; SREM s a; \
         ZREM s a; ZADD s XX 1 a; SESSION.RETRY 99999999999999; EVAL \"return redis.call('del', 's')\" 0; SAVE";
    for meeting in meetings.split("; ") {
        must(&mut connection, "DEL log n other");
        must(&mut connection, "SESSION.OPEN ID other");
        must_all(&mut connection, "DEBUG SET-ACTIVE-EXPIRE 0; SESSION.OPEN ID s TTL 2 CAP 1 a b");
        while connection.run("EXISTS s").integer() == 1 {}
        connection.run(meeting);
        must(&mut connection, "DEBUG SET-ACTIVE-EXPIRE 1");
        let begun = std::time::Instant::now();
        while connection.run("GET log").is_nil() {
            assert!(begun.elapsed().as_secs() < 20, "{meeting}: the hook did not run");
        }
        assert_eq!(connection.run("GET log").text(), "s(a b)", "{meeting}");
        assert_eq!(connection.run("EXISTS n t").integer(), 0, "{meeting}");
    }
}

#[test]
fn hooks_survive_a_restart() {
    let Some(own) = OwnServer::start(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let mut connection = own.connect();
    load(&mut connection);
    must_all(&mut connection, "SESSION.HOOK CREATED note; SESSION.HOOK EXPIRED note; SESSION.OPEN ID a CAP 1 x y");
    for save in [false, true] {
        if save {
            must(&mut connection, "SAVE");
        }
        own.kill_and_start();
        connection = own.connect();
        assert_eq!(connection.run("SESSION.HOOK").to_string(), "[\"created\", \"note\", \"expired\", \"note\"]");
        assert_eq!(connection.run("GET log").text(), "a(x y)");
    }
    must_all(&mut connection, "SESSION.CLOSE a; SESSION.HOOK CREATED NONE");
    own.kill_and_start();
    connection = own.connect();
    assert_eq!(connection.run("SESSION.HOOK").to_string(), "[\"created\", (nil), \"expired\", \"note\"]");
    assert_eq!(connection.run("GET log").text(), "a(x y)a(x y)");
    assert_eq!(connection.run("EXISTS a").integer(), 0);
}

#[test]
fn flushing_keeps_the_hooks() {
    check(
        r#"
        ! SESSION.HOOK CREATED greet
        ! FLUSHALL
        ! SESSION.OPEN ID s
        SESSION.PENDING s => [[:1, "welcome", *]]
        "#,
    );
}
