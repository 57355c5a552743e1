//! A script that does not end holds up no client but those that need its keys, wherever Lua can run: new connections are served, the
//! replies meanwhile are Redis's, and what has not written can be killed.

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, ok};

const BUSY: &str = "BUSY Redis is busy running a";

/// A place where Lua runs: how it is prepared and begun with a script, and whether FUNCTION KILL is what stops it.
struct Place {
    name: &'static str,
    begin: fn(&mut Connection, &str),
    is_function: bool,
}

const PLACES: &[Place] = &[
    Place { name: "EVAL", begin: |client, body| send(client, &["EVAL", body, "1", "k"]), is_function: false },
    Place { name: "EVALSHA", begin: evalsha, is_function: false },
    Place {
        name: "FCALL",
        begin: |client, body| {
            load(client, body);
            send(client, &["FCALL", "f", "1", "k"]);
        },
        is_function: true,
    },
    Place {
        name: "EVAL in MULTI",
        begin: |client, body| {
            ok(client, "MULTI");
            assert_eq!(client.run("INCR before").to_string(), "+QUEUED");
            assert_eq!(client.run_args(&["EVAL", body, "1", "k"]).to_string(), "+QUEUED");
            send(client, &["EXEC"]);
        },
        is_function: false,
    },
    Place {
        name: "FCALL in MULTI",
        begin: |client, body| {
            load(client, body);
            ok(client, "MULTI");
            assert_eq!(client.run("FCALL f 1 k").to_string(), "+QUEUED");
            send(client, &["EXEC"]);
        },
        is_function: true,
    },
    Place {
        name: "EVAL in an interactive transaction",
        begin: |client, body| {
            ok(client, "TXN.BEGIN");
            ok(client, "SET t 1");
            send(client, &["EVAL", body, "1", "k"]);
        },
        is_function: false,
    },
    Place {
        name: "EVAL in a session",
        begin: |client, body| {
            client.run("SESSION.OPEN ID s");
            let id = client.run("INCR id").integer().to_string();
            send(client, &["SESSION.CALL", "s", &id, "LOW", &id, "EVAL", body, "1", "k"]);
        },
        is_function: false,
    },
    Place {
        name: "FCALL in a session",
        begin: |client, body| {
            load(client, body);
            client.run("SESSION.OPEN ID s");
            let id = client.run("INCR id").integer().to_string();
            send(client, &["SESSION.CALL", "s", &id, "LOW", &id, "FCALL", "f", "1", "k"]);
        },
        is_function: true,
    },
    Place {
        name: "the hook of a session that is opened",
        begin: |client, body| {
            load(client, body);
            ok(client, "SESSION.HOOK CREATED f");
            send(client, &["SESSION.OPEN", "ID", "hooked"]);
        },
        is_function: true,
    },
    Place {
        name: "the hook of a session that is opened in MULTI",
        begin: |client, body| {
            load(client, body);
            ok(client, "SESSION.HOOK CREATED f");
            ok(client, "MULTI");
            client.run("SESSION.OPEN ID hooked");
            send(client, &["EXEC"]);
        },
        is_function: true,
    },
    Place {
        name: "the hook of a session that is closed",
        begin: |client, body| {
            client.run("SESSION.OPEN ID hooked");
            load(client, body);
            ok(client, "SESSION.HOOK EXPIRED f");
            send(client, &["SESSION.CLOSE", "hooked"]);
        },
        is_function: true,
    },
    Place {
        name: "the hook of a session that expires",
        begin: |client, body| {
            load(client, body);
            ok(client, "SESSION.HOOK EXPIRED f");
            client.run("SESSION.OPEN ID short TTL 1");
            // Its own request ends at once.
            send(client, &["PING"]);
        },
        is_function: true,
    },
];

/// What a script does for ever, each in another way that a script could hold its thread.
const LOOPS: &[&str] = &[
    "while true do end",
    "while true do redis.call('TIME') end",
    "while true do redis.call('PUBLISH', 'c', 'm') end",
    "while true do redis.log(redis.LOG_DEBUG, 'm') end",
    "while true do redis.pcall('GET', KEYS[1]) end",
    "while true do pcall(function() error('again') end) end",
    "string.find(string.rep('a', 400), string.rep('a*', 40) .. 'b')",
    // Each of these takes long for one step of Lua.
    "while true do string.rep('x', 3000000) end",
    "local s = string.rep('x', 10000000) while true do s:find('y', 1, true) end",
    "local t = {} for i = 1, 300000 do t[i] = -i end while true do table.insert(t, 1, 0) table.remove(t, 1) end",
    "local t = {} for i = 1, 300000 do t[i] = i % 977 end while true do table.sort(t) end",
    "local t = {} for i = 1, 300000 do t[i] = 'x' end while true do table.concat(t) end",
    "local t = {} for i = 1, 300000 do t['k' .. i] = i end for i = 1, 300000 do t['k' .. i] = nil end while true do next(t) end",
    "local t = {} for i = 1, 100000 do t[i] = {} end while true do collectgarbage() end",
    "while true do cjson.encode({string.rep('x', 1000000)}) end",
    "local t = {} for i = 1, 10000 do t[i] = i end while true do pcall(cjson.encode, t) end",
    "local t = {} for i = 1, 10000 do t[i] = i end local s = cjson.encode(t) while true do cjson.decode(s) end",
    "local t = {} for i = 1, 10000 do t[i] = i end while true do cmsgpack.unpack(cmsgpack.pack(t)) end",
    "while true do redis.pcall('NOSUCH') end",
];

fn send(client: &mut Connection, words: &[&str]) {
    client.queue(words);
    client.flush();
}

fn evalsha(client: &mut Connection, body: &str) {
    // Quick at first, so often that a server could come to rely on it.
    let script = format!("if ARGV[1] == 'quick' then return 1 end {body}");
    let sha = client.run_args(&["SCRIPT", "LOAD", &script]).text().to_owned();
    for _ in 0..100 {
        assert_eq!(client.run(&format!("EVALSHA {sha} 1 k quick")).integer(), 1);
    }
    send(client, &["EVALSHA", &sha, "1", "k", "long"]);
}

fn load(client: &mut Connection, body: &str) {
    let code = format!(
        "#!lua name=l\nredis.register_function('f', function(KEYS, ARGV) redis.pcall('GET', KEYS[1]) {body} return 'end' end)"
    );
    assert_eq!(client.run_args(&["FUNCTION", "LOAD", "REPLACE", &code]).text(), "l");
}

/// All hooks off, so that the next place is alone.
fn clean_up(server: &Holdfast) {
    let mut client = server.connect();
    ok(&mut client, "SESSION.HOOK CREATED NONE");
    ok(&mut client, "SESSION.HOOK EXPIRED NONE");
    client.run("SESSION.CLOSE hooked");
}

fn every_loop_can_be_killed(threads: &[&str]) {
    let args = [threads, &["--busy-reply-threshold", "50"]].concat();
    let Some(server) = Holdfast::start(&args) else { return };
    for (number, place) in PLACES.iter().enumerate() {
        // All ways in the first place, and each place in some of them.
        for (_, body) in LOOPS.iter().enumerate().filter(|(at, _)| number == 0 || at % 4 == number % 4) {
            can_be_killed(&server, place, body);
            clean_up(&server);
        }
    }
}

fn can_be_killed(server: &Holdfast, place: &Place, body: &str) {
    let context = format!("{}: {body}", place.name);
    let mut runner = server.connect();
    (place.begin)(&mut runner, body);
    // Each time on a new connection: the server must accept it, and serve it.
    eventually(&format!("{context}: busy"), || server.connect().run("PING").to_string().contains(BUSY));
    let mut other = server.connect();
    let (kill, wrong) = match place.is_function {
        true => ("FUNCTION KILL", "SCRIPT KILL"),
        false => ("SCRIPT KILL", "FUNCTION KILL"),
    };
    for refused in ["GET other", "SET other 1", "DBSIZE", wrong] {
        let reply = other.run(refused).to_string();
        assert!(reply.contains(BUSY), "{context}: {refused}: {reply}");
    }
    assert_eq!(other.run(kill).to_string(), "+OK", "{context}");
    let reply = runner.read().to_string();
    let is_background = reply == "+PONG" || reply == ":1";
    assert!(is_background || reply.contains("Script killed by user with SCRIPT KILL"), "{context}: {reply}");
    eventually(&format!("{context}: served again"), || server.connect().run("PING").to_string() == "+PONG");
    ok(&mut other, "SET other 1");
    ok(&mut other, "SET k 1");
}

#[test]
fn one_that_does_not_end_can_be_killed_wherever_it_runs() {
    every_loop_can_be_killed(&[]);
}

#[test]
fn so_it_can_with_one_thread() {
    every_loop_can_be_killed(&["--threads", "1"]);
}

/// What has written cannot be killed: SHUTDOWN NOSAVE ends it, and the server.
#[test]
fn one_that_has_written_ends_with_the_server() {
    for place in PLACES {
        let Some((mut server, mut runner)) =
            Holdfast::start_with_client(&["--threads", "1", "--busy-reply-threshold", "20"])
        else {
            return;
        };
        (place.begin)(&mut runner, "redis.pcall('SET', KEYS[1], 'written') while true do end");
        eventually(place.name, || server.connect().run("PING").to_string().contains(BUSY));
        let mut other = server.connect();
        let kill = if place.is_function { "FUNCTION KILL" } else { "SCRIPT KILL" };
        let reply = other.run(kill).to_string();
        match place.name.contains("interactive") {
            // Nobody has seen what it has written, and it is taken back.
            true => {
                assert_eq!(reply, "+OK");
                assert!(runner.read().to_string().contains("killed by user"));
                assert_eq!((runner.run("GET t").text(), runner.run("GET k")), ("1", Reply::NilBulk));
            }
            false => assert!(reply.starts_with("-UNKILLABLE"), "{}: {reply}", place.name),
        }
        send(&mut server.connect(), &["SHUTDOWN", "NOSAVE"]);
        assert_eq!(server.wait_for_end().code(), Some(0), "{}", place.name);
    }
}

/// Until `busy-reply-threshold`, clients whose keys it has not locked go on, and the others wait without holding anybody up.
#[test]
fn clients_that_need_other_keys_go_on() {
    for threads in ["1", "2"] {
        let Some((server, mut runner)) =
            Holdfast::start_with_client(&["--threads", threads, "--busy-reply-threshold", "100000"])
        else {
            return;
        };
        ok(&mut runner, "MSET k old other 0");
        runner.run("HSET r:1 updated_at 5");
        let (mut watching, mut open) = (server.connect(), server.connect());
        ok(&mut watching, "WATCH k");
        ok(&mut watching, "MULTI");
        watching.run("GET k");
        ok(&mut open, "TXN.BEGIN");
        assert_eq!(open.run("GET k").text(), "old");
        send(&mut runner, &["EVAL", "while true do redis.call('GET', KEYS[1]) end", "1", "k"]);
        // It has become long when a kill would find it: `FUNCTION KILL` does not stop it.
        eventually("it runs", || server.connect().run("FUNCTION KILL").to_string().contains(BUSY));
        let waiting = [
            "GET k",
            "SET k new",
            "DEL k",
            "RENAME k z",
            "DBSIZE",
            "KEYS *",
            "FLUSHALL",
            "CLAIM 1 idx:updated_at SET 1 x 1",
            "SWEEP idx:updated_at BEFORE 9 SET 1 x 2",
            "IDX.RANGE idx:updated_at -inf +inf KEYS",
        ];
        let mut held_up: Vec<Connection> = waiting.iter().map(|_| server.connect()).collect();
        for (client, request) in held_up.iter_mut().zip(waiting) {
            client.queue_line(request);
            client.queue_line("PING");
            client.flush();
        }
        send(&mut watching, &["EXEC"]);
        send(&mut open, &["TXN.COMMIT"]);
        for number in 1..=100 {
            assert_eq!(server.connect().run("INCR other").integer(), number, "{threads} threads");
            assert_eq!(server.connect().run("PING").to_string(), "+PONG");
        }
        // Two of those that wait are gone before it ends.
        held_up.truncate(waiting.len() - 2);
        let mut other = server.connect();
        assert_eq!(other.run("SCRIPT KILL").to_string(), "+OK");
        assert!(runner.read().to_string().contains("killed by user"));
        for (client, request) in held_up.iter_mut().zip(waiting) {
            let reply = client.read().to_string();
            assert!(!reply.starts_with("-BUSY"), "{request}: {reply}");
            assert_eq!(client.read().to_string(), "+PONG", "{request}");
        }
        // These may have been overtaken by the write.
        let reply = watching.read().to_string();
        assert!(reply == "(nil)" || reply.starts_with('['), "{reply}");
        let reply = open.read().to_string();
        assert!(reply.starts_with(':') || reply.starts_with("-CONFLICT"), "{reply}");
        ok(&mut other, "SET k last");
        assert_eq!(watching.run("GET k").text(), "last");
    }
}

/// Scripts that wait behind two endless ones have not begun when the server becomes busy: they are refused as others are, and what a client
/// had sent behind them is executed.
#[test]
fn scripts_that_wait_for_others_are_refused_when_the_server_is_busy() {
    for threads in ["1", "2"] {
        // Long enough for all of them to be sent on a busy machine.
        let Some(server) = Holdfast::start(&["--threads", threads, "--busy-reply-threshold", "3000"]) else { return };
        let mut endless = [server.connect(), server.connect()];
        for (client, key) in endless.iter_mut().zip(["a", "b"]) {
            send(client, &["EVAL", "while true do redis.call('GET', KEYS[1]) end", "1", key]);
            // The second begins where the others then wait.
            eventually("it runs", || server.connect().run("FUNCTION KILL").to_string().contains(BUSY));
        }
        let mut waiting: Vec<Connection> = (0..3).map(|_| server.connect()).collect();
        // One without a loop would not wait.
        let eval = ["EVAL", "while not ARGV[1] do end return redis.call('INCR', KEYS[1])", "1", "c", "ends"];
        waiting[0].queue(&eval);
        waiting[0].queue_line("ECHO behind");
        ok(&mut waiting[1], "MULTI");
        assert_eq!(waiting[1].run_args(&eval).to_string(), "+QUEUED");
        waiting[1].queue_line("EXEC");
        waiting[2].queue_line("CLIENT REPLY SKIP");
        waiting[2].queue(&eval);
        waiting[2].queue_line("CLIENT ID");
        waiting.iter_mut().for_each(Connection::flush);
        let gone = {
            let mut client = server.connect();
            let id = client.run("CLIENT ID").integer();
            send(&mut client, &eval);
            id
        };
        let reply = waiting[0].read().to_string();
        assert!(reply.contains(BUSY), "{threads} threads: {reply}");
        assert!(waiting[0].read().to_string().contains(BUSY), "ECHO is refused, too");
        let reply = waiting[1].read().to_string();
        assert!(reply.contains("EXECABORT") && reply.contains(BUSY), "{reply}");
        assert!(waiting[2].read().to_string().contains(BUSY), "CLIENT ID");
        let mut other = server.connect();
        eventually("both are killed", || other.run("SCRIPT KILL").to_string().starts_with("-NOTBUSY"));
        for client in &mut endless {
            assert!(client.read().to_string().contains("killed by user"));
        }
        assert_eq!(waiting[0].run_args(&eval).integer(), 1, "nothing was executed before");
        eventually("the client that is gone is forgotten", || {
            !other.run("CLIENT LIST").text().contains(&format!("id={gone} "))
        });
    }
}

/// The code of a library is no place for a loop: it is given half a second, and nobody waits for it.
#[test]
fn a_library_that_takes_long_to_load_holds_nobody_up() {
    let Some(server) = Holdfast::start(&["--threads", "1"]) else { return };
    let (mut loader, mut other) = (server.connect(), server.connect());
    let code = "#!lua name=slow\nredis.register_function('f', function() return 1 end) while true do end";
    send(&mut loader, &["FUNCTION", "LOAD", code]);
    let mut served = 0;
    eventually("others are served", || {
        served += usize::from(other.run("PING").to_string() == "+PONG");
        served > 100
    });
    let reply = loader.read().to_string();
    assert!(reply.contains("FUNCTION LOAD timeout"), "{reply}");
    // One that takes long and ends is loaded again by whichever thread calls it.
    let code = "#!lua name=slow\nlocal n = 0 for i = 1, 1e6 do n = n + 1 end redis.register_function('f', function() return n end)";
    assert_eq!(loader.run_args(&["FUNCTION", "LOAD", code]).text(), "slow");
    for _ in 0..3 {
        assert_eq!(loader.run("FCALL f 0").integer(), 1_000_000);
        assert_eq!(other.run("FCALL f 0").integer(), 1_000_000);
    }
    // While another script has its key, its call waits, and is answered.
    let mut holder = server.connect();
    send(&mut holder, &["EVAL", "while true do redis.call('GET', KEYS[1]) end", "1", "k"]);
    eventually("it runs", || server.connect().run("FUNCTION KILL").to_string().contains(BUSY));
    send(&mut other, &["FCALL", "f", "1", "k"]);
    assert_eq!(loader.run("SCRIPT KILL").to_string(), "+OK");
    assert!(holder.read().to_string().contains("killed by user"));
    assert_eq!(other.read().integer(), 1_000_000);
    let dump = loader.run("FUNCTION DUMP").bytes().to_vec();
    ok(&mut loader, "FUNCTION FLUSH");
    assert_eq!(loader.run_with("FUNCTION RESTORE", &[&dump]).to_string(), "+OK");
    ok(&mut loader, "MULTI");
    loader.run("FCALL f 0");
    assert_eq!(loader.run("EXEC").to_string(), "[:1000000]");
}

/// The client of a long script goes while it runs; all that it had is given back.
#[test]
fn a_client_that_goes_while_its_script_runs_leaves_nothing_behind() {
    let Some(server) = Holdfast::start(&["--busy-reply-threshold", "100000"]) else { return };
    for round in 0..20 {
        let mut runner = server.connect();
        ok(&mut runner, "WATCH a b");
        runner.run("CLIENT TRACKING on");
        send(&mut runner, &["EVAL", "while true do redis.call('GET', KEYS[1]) end", "1", "k"]);
        eventually("it runs", || server.connect().run("FUNCTION KILL").to_string().contains(BUSY));
        if round % 2 == 0 {
            drop(runner);
        } else {
            let id = {
                let list = server.connect().run("CLIENT LIST").text().to_owned();
                let line = list.lines().find(|line| line.contains("cmd=eval")).expect("it is listed").to_owned();
                line.split(['=', ' ']).nth(1).expect("a number").to_owned()
            };
            assert_eq!(server.connect().run(&format!("CLIENT KILL ID {id}")).integer(), 1);
        }
        assert_eq!(server.connect().run("SCRIPT KILL").to_string(), "+OK");
        eventually("it has ended", || server.connect().run("SCRIPT KILL").to_string().starts_with("-NOTBUSY"));
        eventually("it is gone", || server.connect().run("CLIENT LIST").text().lines().count() == 1);
    }
    let clients = server.connect().run("INFO clients").text().to_owned();
    for figure in ["watching_clients:0", "total_watched_keys:0", "tracking_clients:0"] {
        assert!(clients.contains(figure), "{figure} in {clients}");
    }
}

/// What a script does to its connection, and what its connection had before, is there after a long run.
#[test]
fn a_client_is_the_same_after_its_script_has_run_elsewhere() {
    let Some((server, mut client)) = Holdfast::start_with_client(&[]) else { return };
    client.run("HELLO 3");
    ok(&mut client, "SELECT 3");
    ok(&mut client, "WATCH w");
    client.run("SUBSCRIBE c");
    for line in [
        "EVAL \"for i = 1, 3e6 do end redis.call('SET', KEYS[1], 1) return redis.call('INCR', KEYS[1])\" 1 k",
        "EVAL \"for i = 1, 3e6 do end redis.call('PUBLISH', 'c', 'm') return 2\" 1 k",
    ] {
        client.queue_line(line);
    }
    for line in [
        "GET k",
        "MULTI",
        "SELECT 5",
        "EVAL \"for i = 1, 3e6 do end return redis.call('SET', 'in5', 1)\" 0",
        "EXEC",
        "GET in5",
    ] {
        client.queue_line(line);
    }
    client.flush();
    let mut replies = Vec::new();
    while replies.len() < 8 {
        match client.read() {
            Reply::Push(_) => {}
            reply => replies.push(reply.to_string()),
        }
    }
    assert_eq!(replies, [":2", ":2", "\"2\"", "+OK", "+QUEUED", "+QUEUED", "[+OK, +OK]", "\"1\""]);
    assert_eq!(server.connect().run("EXISTS in5 k").integer(), 0, "they are in their databases");
}

/// Takes a while, in which it writes first and counts then.
const FINITE: &str = "redis.call('INCR', KEYS[1]) for i = 1, 3e7 do end return redis.call('INCR', KEYS[1])";

/// A client that has sent all and ended its side gets all its replies.
#[test]
fn a_client_that_stops_sending_gets_the_replies_of_long_scripts() {
    let Some(server) = Holdfast::start(&["--threads", "1"]) else { return };
    let (mut one, mut two) = (server.connect(), server.connect());
    one.queue(&["EVAL", FINITE, "1", "k"]);
    one.queue_line("INCR k");
    one.close_sending();
    eventually("it runs", || server.connect().run("SCRIPT KILL").to_string().starts_with("-UNKILLABLE"));
    // This one may have to wait for the lock.
    two.queue_line("INCR k");
    two.queue_line("PING");
    two.close_sending();
    assert_eq!(one.read().integer(), 2);
    let (first, second) = (one.read().integer(), two.read().integer());
    assert_eq!(first + second, 3 + 4);
    assert_eq!(two.read().to_string(), "+PONG");
    assert_eq!((one.read(), two.read()), (Reply::Closed, Reply::Closed));
}

/// A stop in good order waits for a script that ends before it is too long; its client gets the reply.
#[test]
fn a_stop_waits_for_a_script_that_ends() {
    let Some((mut server, mut runner)) =
        Holdfast::start_with_client(&["--threads", "1", "--busy-reply-threshold", "60000"])
    else {
        return;
    };
    send(&mut runner, &["EVAL", FINITE, "1", "k"]);
    eventually("it runs", || server.connect().run("SCRIPT KILL").to_string().starts_with("-UNKILLABLE"));
    server.signal("TERM");
    assert_eq!(runner.read().integer(), 2);
    assert_eq!(server.wait_for_end().code(), Some(0));
}

/// One that is too long is not waited for, not even by a snapshot that needs its locks.
#[test]
fn shutdown_without_saving_ends_a_server_whose_snapshot_waits_for_a_script() {
    for save in ["BGSAVE", "SAVE", "BGREWRITEAOF"] {
        let Some(mut server) = Holdfast::start(&["--threads", "1", "--busy-reply-threshold", "100"]) else { return };
        let (mut runner, mut saver) = (server.connect(), server.connect());
        send(&mut runner, &["EVAL", "redis.call('INCR', 'k') while true do end", "0"]);
        send(&mut saver, &[save]);
        eventually("busy", || server.connect().run("PING").to_string().contains(BUSY));
        for refused in ["SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN NOW"] {
            let reply = server.connect().run(refused).to_string();
            assert!(reply.contains(BUSY), "{refused}: {reply}");
        }
        send(&mut server.connect(), &["SHUTDOWN", "NOSAVE"]);
        assert_eq!(server.wait_for_end().code(), Some(0), "{save}");
    }
}

/// The script has no loop, and one of its commands has a long reply: it goes on to its end, whatever the threshold.
#[test]
fn a_script_with_a_long_reply_is_not_cut_short() {
    let Some((_server, mut client)) =
        Holdfast::start_with_client(&["--appendonly", "no", "--busy-reply-threshold", "1"])
    else {
        return;
    };
    for first in (0..300_000).step_by(10_000) {
        let members: Vec<String> = (first..first + 10_000).map(|number| format!("m{number}")).collect();
        client.run_args(&[vec!["SADD".to_owned(), "set".to_owned()], members].concat());
    }
    let body =
        "redis.call('INCR', KEYS[2]) local n = #redis.call('SMEMBERS', KEYS[1]) redis.call('INCR', KEYS[2]) return n";
    assert_eq!(client.run_args(&["EVAL", body, "2", "set", "count"]).integer(), 300_000);
    assert_eq!(client.run("GET count").to_string(), "\"2\"");
    let code = "#!lua name=long\nredis.register_function('long', function(k) return #redis.call('SMEMBERS', k[1]) end)";
    assert!(!client.run_args(&["FUNCTION", "LOAD", code]).is_error());
    assert_eq!(client.run_args(&["FCALL", "long", "1", "set"]).integer(), 300_000);
}
