//! What reaches the host, and what of its replies reaches the script.

mod host;

use host::Fake;
use lua::{Limits, Protocol, Ran, ScriptArguments, State, sha1hex};

fn eval(host: &mut Fake, script: &str, keys: &[&[u8]], args: &[&[u8]]) -> String {
    let mut state = State::new(Limits::default());
    let sha = sha1hex(script.as_bytes());
    state.load(&sha, script.as_bytes()).expect("a valid script");
    let mut out = Vec::new();
    state.run(host, &sha, ScriptArguments { keys, args }, Protocol::Resp3, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn arguments_reach_the_host_as_bytes() {
    let mut host = Fake::default();
    eval(&mut host, "redis.call('reply', '+x\\r\\n', 1, 0.1, -0, 1e20, 12345678901234567890, '\\0\\255')", &[], &[]);
    let expected: Vec<&[u8]> =
        vec![b"reply", b"+x\r\n", b"1", b"0.10000000000000001", b"-0", b"1e+20", b"1.2345678901234567e+19", b"\0\xff"];
    // -0 is a constant expression: Lua folds it to the number zero with a sign.
    assert_eq!(host.calls, [expected]);
}

#[test]
fn many_arguments_reach_the_host() {
    let mut host = Fake::default();
    eval(&mut host, "local t = {} for i = 1, 500 do t[i] = i end redis.call('mget', unpack(t))", &[], &[]);
    assert_eq!(host.calls[0].len(), 501);
    assert_eq!(host.calls[0][500], b"500");
}

#[test]
fn every_kind_of_reply_becomes_a_value() {
    let cases = [
        (":-5\\r\\n", ":-5\r\n"),
        ("$3\\r\\nabc\\r\\n", "$3\r\nabc\r\n"),
        ("$-1\\r\\n", "#f\r\n"),
        ("*-1\\r\\n", "#f\r\n"),
        ("_\\r\\n", "_\r\n"),
        ("#t\\r\\n", "#t\r\n"),
        ("#f\\r\\n", "#f\r\n"),
        (",3.25\\r\\n", ",3.25\r\n"),
        (",inf\\r\\n", ",inf\r\n"),
        (",-inf\\r\\n", ",-inf\r\n"),
        ("(12345678901234567890\\r\\n", "(12345678901234567890\r\n"),
        ("=7\\r\\ntxt:abc\\r\\n", "=7\r\ntxt:abc\r\n"),
        ("%1\\r\\n$1\\r\\na\\r\\n:1\\r\\n", "%1\r\n$1\r\na\r\n:1\r\n"),
        ("~2\\r\\n:1\\r\\n:2\\r\\n", "~2\r\n:1\r\n:2\r\n"),
        ("*2\\r\\n*1\\r\\n:1\\r\\n+OK\\r\\n", "*2\r\n*1\r\n:1\r\n+OK\r\n"),
        ("*3\\r\\n:1\\r\\n_\\r\\n:3\\r\\n", "*1\r\n:1\r\n"),
        ("|1\\r\\n+ttl\\r\\n:3600\\r\\n:7\\r\\n", ":7\r\n"),
        ("", "_\r\n"),
    ];
    for (reply, expected) in cases {
        let script = format!("redis.setresp(3) return redis.call('reply', '{reply}')");
        assert_eq!(eval(&mut Fake::default(), &script, &[], &[]), expected, "{reply}");
    }
}

/// 31 bits each, so that two of ten are the same once in a hundred million runs.
#[test]
fn random_numbers_go_on_from_script_to_script_and_differ_between_states() {
    let script = b"return tostring(math.random())";
    let sha = sha1hex(script);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..2 {
        let mut state = State::new(Limits::default());
        state.load(&sha, script).expect("a valid script");
        for _ in 0..5 {
            let mut out = Vec::new();
            state.run(&mut Fake::default(), &sha, ScriptArguments::default(), Protocol::Resp2, &mut out);
            assert!(seen.insert(out.clone()), "{:?} again", String::from_utf8_lossy(&out));
        }
    }
}

#[test]
fn broken_replies_break_nothing() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut state = State::new(Limits { memory_bytes_max: 8 << 20, ..Limits::default() });
    let script = b"return redis.pcall('reply', ARGV[1])";
    let sha = sha1hex(script);
    state.load(&sha, script).unwrap();
    for _ in 0..20_000 {
        let len = random.usize(..40);
        let reply: Vec<u8> = (0..len).map(|_| *random.choice(b"*$:+-_#,(=%~|>019\r\n\r\n\r\nax").unwrap()).collect();
        state.run(
            &mut Fake::default(),
            &sha,
            ScriptArguments { keys: &[], args: &[&reply] },
            Protocol::Resp3,
            &mut Vec::new(),
        );
    }
}

#[test]
fn the_host_is_told() {
    let mut host = Fake::default();
    eval(
        &mut host,
        "redis.log(redis.LOG_WARNING, 'a', 1, {}, 'b') redis.set_repl(redis.REPL_AOF) redis.setresp(3)",
        &[],
        &[],
    );
    assert_eq!(host.logged, [(3, b"a 1 b".to_vec())]);
    assert_eq!(host.repl, Some(1));
    assert!(host.resp3);
}

#[test]
fn keys_and_arguments_are_new_for_every_run() {
    let mut state = State::new(Limits::default());
    let script = b"local n = #KEYS + #ARGV table.insert(KEYS, 'x') ARGV[1] = nil return {n, KEYS[1], ARGV[2]}";
    let sha = sha1hex(script);
    state.load(&sha, script).unwrap();
    for (keys, args, expected) in [
        (vec![b"k1".as_slice()], vec![b"a".as_slice(), b"b"], "*3\r\n:3\r\n$2\r\nk1\r\n$1\r\nb\r\n"),
        (vec![], vec![], "*2\r\n:0\r\n$1\r\nx\r\n"),
    ] {
        let mut out = Vec::new();
        assert_eq!(
            state.run(
                &mut Fake::default(),
                &sha,
                ScriptArguments { keys: &keys, args: &args },
                Protocol::Resp2,
                &mut out
            ),
            Ran::Ok
        );
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}

#[test]
fn seeded_random_numbers_are_those_of_redis() {
    let script = "math.randomseed(10)
        return {tostring(math.random()), tostring(math.random()), math.random(100), math.random(5, 10), math.random(1000000)}";
    for _ in 0..2 {
        assert_eq!(
            eval(&mut Fake::default(), script, &[], &[]),
            "*5\r\n$16\r\n0.87885112309775\r\n$15\r\n0.7958066229689\r\n:49\r\n:8\r\n:459163\r\n"
        );
    }
}

#[test]
fn an_error_table_may_say_itself_what_an_assignment_does() {
    let fails_with = |metatable: &str, expected: &str| {
        let script = format!("error(setmetatable({{err = 'MY own'}}, {metatable}))");
        let reply = eval(&mut Fake::default(), &script, &[], &[]);
        let (text, place) = reply.split_once(" script: ").unwrap_or((&reply, ""));
        assert_eq!(
            (text.trim_end(), place.split_once(", ").unwrap_or_default().1.trim_end()),
            (expected, "on @user_script:1."),
            "{reply}"
        );
    };
    fails_with("{}", "-MY own");
    fails_with("{__newindex = rawset}", "-MY own");
    fails_with("{__newindex = function() error('nested') end}", "-ERR user_script:1: nested");
    let reply =
        eval(&mut Fake::default(), "error(setmetatable({err = 'MY own'}, {__newindex = function() end}))", &[], &[]);
    assert_eq!(reply, "-MY own\r\n");
    let reply = eval(&mut Fake::default(), "error(redis)", &[], &[]);
    assert!(reply.starts_with("-ERR Attempt to modify a readonly table"), "{reply}");
}

#[test]
fn scripts_without_a_name_are_unknown() {
    let mut state = State::new(Limits::default());
    let mut out = Vec::new();
    let ran = state.run(&mut Fake::default(), &[b'0'; 40], ScriptArguments::default(), Protocol::Resp2, &mut out);
    assert_eq!((ran, out.as_slice()), (Ran::Error, b"-NOSCRIPT No matching script. Please use EVAL.\r\n".as_slice()));
}

#[test]
fn shebangs() {
    use lua::Shebang;
    assert_eq!(Shebang::of_script(b"return 1").unwrap().flags, None);
    let flags = Shebang::of_script(b"#!lua flags=no-writes,allow-oom\nreturn 1").unwrap().flags.unwrap();
    assert!(flags.no_writes && flags.allow_oom && !flags.allow_stale);
    for (script, message) in [
        ("#!lua flags=bad\nreturn 1", "Unexpected flag in script shebang: bad"),
        ("#!py\nreturn 1", "Unexpected engine in script shebang: #!py"),
        ("#!lua", "Invalid script shebang"),
    ] {
        assert_eq!(Shebang::of_script(script.as_bytes()), Err(message.into()));
    }
    let reply = eval(&mut Fake::default(), "#!lua\nerror('x')", &[], &[]);
    assert!(
        reply.starts_with("-ERR user_script:2: x script: ") && reply.ends_with(", on @user_script:2.\r\n"),
        "{reply}"
    );
}
