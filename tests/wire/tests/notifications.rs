//! Keyspace notifications: what `notify-keyspace-events` has the server tell of each command.

use wire::{Connection, Reply, Session, check};

/// Runs commands and compares what the `__keyevent@*` channels tell of each: `SET a 1 => new a, set a`. The event comes
/// before the key, and the number of the database before both where it is not 0. `# needs redis >= 7.4` leaves out the
/// rest on an older Redis; `# sleep 20` waits so many milliseconds.
#[track_caller]
fn tells(lines: &str) {
    let session = Session::start();
    let (mut client, mut listener) = (session.connect(), session.connect());
    client.run("DEBUG SET-ACTIVE-EXPIRE 0");
    client.run("CONFIG SET notify-keyspace-events EAnm");
    listener.run("PSUBSCRIBE __keyevent@*");
    let mut wrong = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(version) = line.strip_prefix("# needs redis >= ") {
            if session.has_redis(version) { continue } else { break }
        }
        if let Some(ms) = line.strip_prefix("# sleep ") {
            std::thread::sleep(std::time::Duration::from_millis(ms.parse().expect("a number of milliseconds")));
            continue;
        }
        let (command, expected) = line.split_once("=>").expect("a command and its events");
        client.run(command);
        let told = heard(&mut listener).join(", ");
        if told != expected.trim() {
            wrong.push(format!("{} => {told}, not {}", command.trim(), expected.trim()));
        }
    }
    client.run("CONFIG SET notify-keyspace-events ''");
    client.run("DEBUG SET-ACTIVE-EXPIRE 1");
    assert!(wrong.is_empty(), "{} told:\n{}", session.product(), wrong.join("\n"));
}

/// All that the listener has heard up to now.
fn heard(listener: &mut Connection) -> Vec<String> {
    listener.queue_line("PING");
    let text = |reply: &Reply| String::from_utf8_lossy(reply.bytes()).into_owned();
    let mut events = Vec::new();
    loop {
        match listener.read() {
            Reply::Array(parts) if parts.len() == 4 => {
                let (channel, key) = (text(&parts[2]), text(&parts[3]));
                let channel = channel.strip_prefix("__keyevent@").expect("a channel of events");
                let (db, event) = channel.split_once("__:").expect("a database and an event");
                events.push(if db == "0" { format!("{event} {key}") } else { format!("{db} {event} {key}") });
            }
            _ => return events,
        }
    }
}

#[test]
fn strings() {
    tells(
        r#"
        SET a 1 => new a, set a
        SET a 2 => set a
        SET a 2 EX 100 => set a, expire a
        SET a 1 KEEPTTL => set a
        SET a 1 NX =>
        SET none 1 XX =>
        SET b 5 NX GET => keymiss b, new b, set b
        SET a 2 GET => set a
        SET none 2 XX GET => keymiss none
        GETSET a 4 => set a
        GETSET c 4 => keymiss c, new c, set c
        SETNX d 1 => new d, set d
        SETNX d 1 =>
        SETEX e 100 v => new e, set e, expire e
        PSETEX e 100000 v => set e, expire e
        GET none => keymiss none
        GETDEL none => keymiss none
        GETDEL e => del e
        GETEX none => keymiss none
        GETEX a =>
        GETEX a EX 100 => expire a
        GETEX a PERSIST => persist a
        GETEX a PERSIST =>
        GETEX a PXAT 1 => del a
        MGET b none none2 => keymiss none, keymiss none2
        MSET b 1 f 2 => set b, new f, set f
        MSETNX b 1 g 1 =>
        MSETNX g 1 h 1 => new g, set g, new h, set h
        MSETNX i 1 i 2 => new i, set i, set i
        INCR n => new n, incrby n
        DECR n => incrby n
        INCRBY n 3 => incrby n
        DECRBY n 3 => incrby n
        INCRBYFLOAT n 3.5 => incrbyfloat n
        INCRBYFLOAT nf 3.5 => new nf, incrbyfloat nf
        INCR nf =>
        APPEND s x => new s, append s
        APPEND s x => append s
        APPEND s "" => append s
        APPEND s0 "" => new s0, append s0
        SETRANGE r 2 x => new r, setrange r
        SETRANGE r 2 x => setrange r
        SETRANGE r 2 "" =>
        SETRANGE none 2 "" =>
        STRLEN none => keymiss none
        GETRANGE none 0 1 => keymiss none
        LCS none s => keymiss none
        "#,
    );
}

#[test]
fn conditional_strings() {
    tells(
        r#"
        # needs redis >= 8.4
        MSETEX 2 a 1 b 2 => new a, set a, new b, set b
        MSETEX 2 a 1 b 2 EX 100 => set a, expire a, set b, expire b
        MSETEX 2 a 1 c 2 NX =>
        SET a 2 IFDEQ 0000000000000000 =>
        SET a 2 IFDNE 0000000000000000 => set a
        DIGEST a =>
        DIGEST none => keymiss none
        DELEX a IFEQ 1 =>
        DELEX a IFDNE 0000000000000000 => del a
        DELEX a =>
        DELEX b => del b
        # needs redis >= 8.8
        INCREX k => new k, incrby k
        INCREX k BYFLOAT 0.5 => incrbyfloat k
        SET k 10 EX 100 => set k, expire k
        INCREX k PERSIST => incrby k, persist k
        INCREX k PERSIST => incrby k
        INCREX k EX 100 => incrby k, expire k
        INCREX k EX 200 ENX => incrby k
        INCREX k UBOUND 5 EX 50 =>
        INCREX k EXAT 1 => del k
        INCREX k EXAT 1 =>
        "#,
    );
}

#[test]
fn bits() {
    tells(
        r#"
        SETBIT a 1 1 => new a, setbit a
        SETBIT a 1 1 =>
        SETBIT a 1 0 => setbit a
        SETBIT a 100 0 => setbit a
        GETBIT none 1 => keymiss none
        BITCOUNT none => keymiss none
        BITPOS none 1 => keymiss none
        BITOP AND to a none => keymiss none, new to, set to
        BITOP NOT to a => set to
        BITOP AND to none none2 => keymiss none, keymiss none2, del to
        BITOP AND to none none2 => keymiss none, keymiss none2
        BITFIELD f SET u8 0 1 => new f, setbit f
        BITFIELD f SET u8 0 1 =>
        BITFIELD f SET u8 0 1 SET u8 0 2 INCRBY u8 0 1 => setbit f
        BITFIELD f SET u8 100 0 => setbit f
        BITFIELD f GET u8 0 =>
        BITFIELD none GET u8 0 => keymiss none
        BITFIELD_RO none GET u8 0 => keymiss none
        BITFIELD f OVERFLOW FAIL INCRBY u8 0 255 =>
        BITFIELD g OVERFLOW FAIL INCRBY u8 0 300 => new g
        "#,
    );
}

#[test]
fn hashes() {
    tells(
        r#"
        HSET h f v => new h, hset h
        HSET h f v => hset h
        HSET h f v g w => hset h
        HMSET h f v => hset h
        HMSET h2 f v => new h2, hset h2
        HSETNX h f v =>
        HSETNX h k v => hset h
        HSETNX h3 k v => new h3, hset h3
        HINCRBY h n 1 => hincrby h
        HINCRBY h4 n 1 => new h4, hincrby h4
        HINCRBYFLOAT h n 1.5 => hincrbyfloat h
        HINCRBYFLOAT h5 n 1.5 => new h5, hincrbyfloat h5
        HINCRBY h f 1 =>
        HDEL h none =>
        HDEL h f none => hdel h
        HDEL h g k n => hdel h, del h
        HDEL none f =>
        HGET none f => keymiss none
        HGET h2 none =>
        HMGET none f => keymiss none
        HGETALL none => keymiss none
        HKEYS none => keymiss none
        HVALS none => keymiss none
        HLEN none => keymiss none
        HEXISTS none f => keymiss none
        HSTRLEN none f => keymiss none
        HSCAN none 0 => keymiss none
        HRANDFIELD none => keymiss none
        HRANDFIELD none 2 => keymiss none
        SET s 1 => new s, set s
        HSET s f v =>
        HGET s f =>
        MGET h2 s =>
        "#,
    );
}

#[test]
fn deadlines_of_fields() {
    tells(
        r#"
        # needs redis >= 8.0
        HSET h a 1 b 2 c 3 d 4 => new h, hset h
        HEXPIRE h 100 FIELDS 2 a b => hexpire h
        HEXPIRE h 100 FIELDS 1 none =>
        HEXPIRE h 100 NX FIELDS 1 a =>
        HEXPIRE h 100 NX FIELDS 2 a c => hexpire h
        HPERSIST h FIELDS 1 a => hpersist h
        HPERSIST h FIELDS 1 a =>
        HPERSIST h FIELDS 3 a b c => hpersist h
        HEXPIREAT h 1 FIELDS 1 a => hdel h
        HPEXPIRE h 0 FIELDS 2 b none => hdel h
        HPEXPIRE h 0 FIELDS 2 c d => hdel h, del h
        HEXPIRE none 10 FIELDS 1 a =>
        HPERSIST none FIELDS 1 a =>
        HTTL none FIELDS 1 a => keymiss none
        HEXPIRETIME none FIELDS 1 a => keymiss none
        HSETEX h FIELDS 1 a 1 => new h, hset h
        HSETEX h EX 100 FIELDS 2 a 1 b 2 => hset h, hexpire h
        HSETEX h KEEPTTL FIELDS 1 a 1 => hset h
        HSETEX h FNX FIELDS 1 a 1 =>
        HSETEX none FXX FIELDS 1 a 1 =>
        HSETEX h EXAT 1 FIELDS 1 a 1 => hset h, hdel h
        HSETEX h EXAT 1 FIELDS 1 a 1 => hset h, hdel h
        HSETEX h EXAT 1 FIELDS 1 b 1 => hset h, hdel h, del h
        HSETEX h EXAT 1 FIELDS 2 b 1 c 2 => new h, hset h, hdel h, del h
        HSET h a 1 b 2 c 3 => new h, hset h
        HGETEX h FIELDS 1 a =>
        HGETEX h EX 100 FIELDS 2 a b => hexpire h
        HGETEX h EX 100 FIELDS 1 none =>
        HGETEX h PERSIST FIELDS 1 c =>
        HGETEX h PERSIST FIELDS 2 a c => hpersist h
        HGETEX h PXAT 1 FIELDS 1 a => hdel h
        HGETEX h PXAT 1 FIELDS 2 b c => hdel h, del h
        HGETEX none EX 10 FIELDS 1 a =>
        HSET h a 1 b 2 c 3 => new h, hset h
        HGETDEL h FIELDS 2 a none => hdel h
        HGETDEL h FIELDS 1 none =>
        HGETDEL h FIELDS 2 b c => hdel h, del h
        HGETDEL none FIELDS 1 a =>
        HSET h z 1 => new h, hset h
        HPEXPIRE h 20 FIELDS 1 z => hexpire h
        # sleep 40
        HINCRBY h z 5 => hexpired h, del h, new h, hincrby h
        HPEXPIRE h 20 FIELDS 1 z => hexpire h
        # sleep 40
        HSETNX h z 5 => hexpired h, del h, new h, hset h
        HPEXPIRE h 20 FIELDS 1 z => hexpire h
        # sleep 40
        HGETDEL h FIELDS 1 z => hexpired h, del h
        "#,
    );
}

#[test]
fn keys() {
    tells(
        r#"
        MSET a 1 b 2 c 3 d 4 => new a, set a, new b, set b, new c, set c, new d, set d
        DEL a none b => del a, del b
        UNLINK c none => del c
        EXPIRE d 100 => expire d
        EXPIRE d 100 NX =>
        EXPIRE none 1 =>
        PERSIST d => persist d
        PERSIST d =>
        EXPIRE d -1 => del d
        SET d 1 => new d, set d
        PEXPIREAT d 1 => del d
        TTL none => keymiss none
        EXPIRETIME none => keymiss none
        EXISTS none none => keymiss none, keymiss none
        TYPE none => keymiss none
        TOUCH none => keymiss none
        OBJECT ENCODING none =>
        MEMORY USAGE none =>
        DUMP none => keymiss none
        SET p 1 => new p, set p
        RENAME p q => new q, rename_from p, rename_to q
        SET p 1 => new p, set p
        RENAME p q => new q, rename_from p, rename_to q
        RENAME q q =>
        SET p 1 => new p, set p
        RENAMENX q p =>
        RENAMENX q r => new r, rename_from q, rename_to r
        COPY r s => new s, copy_to s
        COPY r s =>
        COPY r s REPLACE => new s, copy_to s
        COPY r s DB 1 => 1 new s, 1 copy_to s
        COPY none s => keymiss none
        MOVE r 1 => 1 new r, move_from r, 1 move_to r
        MOVE none 1 =>
        MOVE s 1 =>
        SWAPDB 0 1 =>
        SWAPDB 0 1 =>
        RESTORE x 0 "\x00\xc0\x01\n\x00&x\xe7\xb6\xd1\x01\x11\xfc" => new x, restore x
        RESTORE x 0 "\x00\xc0\x01\n\x00&x\xe7\xb6\xd1\x01\x11\xfc" REPLACE => new x, restore x
        RESTORE x 0 "\x00\xc0\x01\n\x00&x\xe7\xb6\xd1\x01\x11\xfc" =>
        RESTORE x 1 "\x00\xc0\x01\n\x00&x\xe7\xb6\xd1\x01\x11\xfc" REPLACE ABSTTL => del x
        RESTORE x 1 "\x00\xc0\x01\n\x00&x\xe7\xb6\xd1\x01\x11\xfc" ABSTTL =>
        KEYS * =>
        SCAN 0 =>
        RANDOMKEY =>
        WATCH none p =>
        FLUSHDB =>
        FLUSHALL =>
        "#,
    );
}

/// What each command tells that meets a key whose time has come.
#[test]
fn keys_past_their_time() {
    let cases = r#"
        GET e => expired e, keymiss e
        MGET e f e => expired e, keymiss e, keymiss f, keymiss e
        SET e 1 => expired e, new e, set e
        SET e 1 KEEPTTL => expired e, new e, set e
        SET e 1 GET => expired e, keymiss e, new e, set e
        SET e 1 XX => expired e
        SET e 1 NX => expired e, new e, set e
        SETNX e 1 => expired e, new e, set e
        GETDEL e => expired e, keymiss e
        MSET e 1 f 1 => expired e, new e, set e, new f, set f
        MSETNX e 1 f 1 => expired e, new e, set e, new f, set f
        INCR e => expired e, new e, incrby e
        INCRBYFLOAT e 1 => expired e, new e, incrbyfloat e
        APPEND e 1 => expired e, new e, append e
        SETRANGE e 1 a => expired e, new e, setrange e
        SETBIT e 1 1 => expired e, new e, setbit e
        BITFIELD e SET u8 0 9 => expired e, new e, setbit e
        BITFIELD e GET u8 0 => expired e, keymiss e
        BITOP NOT e a => expired e, new e, set e
        HSET e f v => expired e, new e, hset e
        HGET e f => expired e, keymiss e
        HDEL e f => expired e
        HINCRBY e f 1 => expired e, new e, hincrby e
        DEL e => expired e
        UNLINK e => expired e
        EXISTS e => expired e, keymiss e
        TYPE e => expired e, keymiss e
        TTL e => expired e, keymiss e
        OBJECT ENCODING e => expired e
        PERSIST e => expired e
        EXPIRE e 10 => expired e
        RENAME e b => expired e
        RENAME a e => expired e, new e, rename_from a, rename_to e
        RENAMENX a e => expired e, new e, rename_from a, rename_to e
        COPY e b => expired e, keymiss e
        COPY a e => expired e, new e, copy_to e
        MOVE e 1 => expired e
        KEYS * =>
        WATCH e =>
        "#;
    let mut lines = String::new();
    for case in cases.lines().map(str::trim).filter(|line| !line.is_empty()) {
        lines += "FLUSHALL =>\n SET a 1 => new a, set a\n SET e 1 PX 10 => new e, set e, expire e\n # sleep 20\n";
        lines += &format!("{case}\n");
    }
    tells(&lines);
}

#[test]
fn a_key_may_be_past_its_time_in_another_database() {
    tells(
        "
        SET a 1 => new a, set a
        SET b 1 => new b, set b
        MULTI =>
        SELECT 1 =>
        SET a 1 PX 10 =>
        SET b 1 PX 10 =>
        SELECT 0 =>
        EXEC => 1 new a, 1 set a, 1 expire a, 1 new b, 1 set b, 1 expire b
        # sleep 20
        MOVE a 1 => 1 expired a, 1 new a, move_from a, 1 move_to a
        COPY b b DB 1 => 1 expired b, 1 new b, 1 copy_to b
        ",
    );
}

#[test]
fn a_transaction_tells_what_its_commands_tell() {
    tells(
        "
        SET a 1 => new a, set a
        MULTI =>
        SET a 2 =>
        GET none =>
        INCR a =>
        LPUSH =>
        EXEC =>
        MULTI =>
        SET a 2 =>
        GET none =>
        SELECT 1 =>
        SET b x =>
        INCR b =>
        SELECT 0 =>
        DEL a =>
        EXEC => set a, keymiss none, 1 new b, 1 set b, del a
        MULTI =>
        SET a 2 =>
        DISCARD =>
        ",
    );
}

#[test]
fn a_script_tells_what_its_commands_tell() {
    tells(
        "
        EVAL \"redis.call('SET', KEYS[1], 1) redis.call('INCR', KEYS[1]) return redis.call('GET', KEYS[2])\" 2 a b => \
         new a, set a, incrby a, keymiss b
        EVAL \"for i = 1, 100 do redis.call('HSET', 'h', 'f', i) break end redis.call('DEL', 'h')\" 0 => new h, hset h, del h
        EVAL \"redis.call('SET', KEYS[1], 'x') redis.call('INCR', KEYS[1])\" 1 a => set a
        MULTI =>
        EVAL \"return redis.call('APPEND', KEYS[1], 'x')\" 1 a =>
        EXEC => append a
        ",
    );
}

/// In the background, where no command meets them.
#[test]
fn what_expires_is_told() {
    check(
        r#"
        # config notify-keyspace-events KEA
        2> PSUBSCRIBE __key*__:e* => ["psubscribe", "__key*__:e*", :1]
        SELECT 3 => +OK
        SET e 1 PX 20 => +OK
        2< ["pmessage", "__key*__:e*", "__keyspace@3__:e", "set"]
        2< ["pmessage", "__key*__:e*", "__keyspace@3__:e", "expire"]
        2< ["pmessage", "__key*__:e*", "__keyevent@3__:expire", "e"]
        2< ["pmessage", "__key*__:e*", "__keyspace@3__:e", "expired"]
        2< ["pmessage", "__key*__:e*", "__keyevent@3__:expired", "e"]
        "#,
    );
}

#[test]
fn fields_that_expire_are_told() {
    check(
        r#"
        # needs redis >= 7.4
        # config notify-keyspace-events EA
        2> PSUBSCRIBE __key* => ["psubscribe", "__key*", :1]
        HSET h a 1 b 2 => :2
        2< ["pmessage", "__key*", "__keyevent@0__:hset", "h"]
        HPEXPIRE h 20 FIELDS 1 a => [:1]
        2< ["pmessage", "__key*", "__keyevent@0__:hexpire", "h"]
        2< ["pmessage", "__key*", "__keyevent@0__:hexpired", "h"]
        HPEXPIRE h 20 FIELDS 1 b => [:1]
        2< ["pmessage", "__key*", "__keyevent@0__:hexpire", "h"]
        2< ["pmessage", "__key*", "__keyevent@0__:hexpired", "h"]
        2< ["pmessage", "__key*", "__keyevent@0__:del", "h"]
        "#,
    );
}

/// A value that would expire at once is told of as if it had been there for a moment, which in Redis it is.
#[test]
fn a_value_for_no_time_is_told() {
    check(
        r#"
        # config notify-keyspace-events EAn
        2> PSUBSCRIBE __key* => ["psubscribe", "__key*", :1]
        SET a 1 PXAT 1 => +OK
        GET a => (nil)
        2< ["pmessage", "__key*", "__keyevent@0__:new", "a"]
        2< ["pmessage", "__key*", "__keyevent@0__:set", "a"]
        2< ["pmessage", "__key*", "__keyevent@0__:expire", "a"]
        2< ["pmessage", "__key*", "__keyevent@0__:expired", "a"]
        HSET a f v => :1
        2< ["pmessage", "__key*", "__keyevent@0__:new", "a"]
        2< ["pmessage", "__key*", "__keyevent@0__:hset", "a"]
        SET a 1 PXAT 1 => +OK
        GET a => (nil)
        2< ["pmessage", "__key*", "__keyevent@0__:set", "a"]
        2< ["pmessage", "__key*", "__keyevent@0__:expire", "a"]
        2< ["pmessage", "__key*", "__keyevent@0__:expired", "a"]
        "#,
    );
}

#[test]
fn the_letters_choose_what_is_told() {
    check(
        r#"
        2> PSUBSCRIBE __key* => ["psubscribe", "__key*", :1]
        SET a 1 => +OK
        # config notify-keyspace-events K$
        SET a 1 EX 100 => +OK
        2< ["pmessage", "__key*", "__keyspace@0__:a", "set"]
        DEL a => :1
        HSET h f v => :1
        CONFIG SET notify-keyspace-events Egh => +OK
        SET a 1 EX 100 => +OK
        2< ["pmessage", "__key*", "__keyevent@0__:expire", "a"]
        HDEL h f => :1
        2< ["pmessage", "__key*", "__keyevent@0__:hdel", "h"]
        2< ["pmessage", "__key*", "__keyevent@0__:del", "h"]
        CONFIG SET notify-keyspace-events Em => +OK
        GET none => (nil)
        2< ["pmessage", "__key*", "__keyevent@0__:keymiss", "none"]
        CONFIG SET notify-keyspace-events Et => +OK
        SET a 1 => +OK
        XADD s 1-1 f v => "1-1"
        2< ["pmessage", "__key*", "__keyevent@0__:xadd", "s"]
        CONFIG SET notify-keyspace-events A => +OK
        SET a 1 => +OK
        CONFIG SET notify-keyspace-events KE => +OK
        SET a 1 => +OK
        CONFIG SET notify-keyspace-events KE$ => +OK
        SET "a\x00 b" 1 => +OK
        2< ["pmessage", "__key*", "__keyspace@0__:a\x00 b", "set"]
        2< ["pmessage", "__key*", "__keyevent@0__:set", "a\x00 b"]
        "#,
    );
}
