//! Libraries: registering functions in every form, what code may do while it loads, running them.

mod host;

use host::Fake;
use lua::{Limits, Protocol, Ran, ScriptArguments, State};

fn load(code: &str) -> Result<Vec<String>, String> {
    let mut state = State::new(Limits::default());
    state.load_library("lib", code.as_bytes()).map(|all| {
        all.into_iter()
            .map(|one| {
                let flags: Vec<&str> = one.flags.names().collect();
                let description = one.description.map(|text| String::from_utf8(text).unwrap());
                format!("{} {:?} {}", one.name, description, flags.join(","))
            })
            .collect()
    })
}

fn call(code: &str, function: &str) -> (Ran, String) {
    let mut state = State::new(Limits::default());
    state.load_library("lib", code.as_bytes()).expect("a valid library");
    let mut out = Vec::new();
    let ran = state.run_function(
        &mut Fake::default(),
        "lib",
        function,
        ScriptArguments { keys: &[b"k1", b"k2"], args: &[b"a1"] },
        Protocol::Resp2,
        &mut out,
    );
    (ran, String::from_utf8_lossy(&out).into_owned())
}

#[test]
fn every_form_of_registration() {
    assert_eq!(load("#!lua name=lib\nredis.register_function('f', function() end)"), Ok(vec!["f None ".into()]));
    let named = "#!lua name=lib
        redis.register_function{function_name='f', callback=function() end, description='d', flags={'no-writes', 'allow-oom'}}
        redis.register_function{FUNCTION_NAME='g', CALLBACK=function() end}";
    assert_eq!(load(named), Ok(vec!["f Some(\"d\") no-writes,allow-oom".into(), "g None ".into()]));
}

#[test]
fn what_redis_says_to_mistakes() {
    let cases = [
        ("redis.register_function()", "wrong number of arguments to redis.register_function"),
        ("redis.register_function('a', function() end, 3)", "wrong number of arguments to redis.register_function"),
        (
            "redis.register_function('a')",
            "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).",
        ),
        ("redis.register_function({}, function() end)", "first argument to redis.register_function must be a string"),
        ("redis.register_function('a', 1)", "second argument to redis.register_function must be a function"),
        ("redis.register_function{1}", "named argument key given to redis.register_function is not a string"),
        ("redis.register_function{x=1}", "unknown argument given to redis.register_function"),
        (
            "redis.register_function{function_name={}}",
            "function_name argument given to redis.register_function must be a string",
        ),
        (
            "redis.register_function{callback=1}",
            "callback argument given to redis.register_function must be a function",
        ),
        (
            "redis.register_function{flags=1}",
            "flags argument to redis.register_function must be a table representing function flags",
        ),
        ("redis.register_function{flags={'bad'}}", "unknown flag given"),
        (
            "redis.register_function{callback=function() end}",
            "redis.register_function must get a function name argument",
        ),
        ("redis.register_function{function_name='x'}", "redis.register_function must get a callback argument"),
        ("for i = 1, 2 do redis.register_function('a', function() end) end", "Function already exists in the library"),
        (
            "redis.register_function('a b', function() end)",
            "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
        ),
    ];
    for (code, message) in cases {
        assert_eq!(load(code), Err(format!("Error registering functions: ERR {message}")), "{code}");
    }
    assert_eq!(
        load("x = 1"),
        Err("Error registering functions: ERR user_function:1: Attempt to modify a readonly table".into())
    );
    assert_eq!(
        load("redis.call('ping')"),
        Err("Error registering functions: ERR user_function:1: Script attempted to access nonexistent global variable 'call'".into())
    );
    assert_eq!(load("return 1"), Err("No functions registered".into()));
    assert_eq!(load("foo("), Err("Error compiling function: user_function:1: unexpected symbol near '<eof>'".into()));
    assert_eq!(load("while true do end"), Err("Error registering functions: ERR FUNCTION LOAD timeout".into()));
}

#[test]
fn functions_run() {
    let library = "#!lua name=lib
local calls = 0
redis.register_function('f', function(keys, args) return {keys[1], keys[2], args[1]} end)
redis.register_function('count', function() calls = calls + 1 return calls end)
redis.register_function('fails', function() return redis.call('nosuch') end)
redis.register_function('globals', function() return {type(string), type(cjson), rawget(_G, 'KEYS') == nil} end)
redis.register_function('missing', function() return KEYS end)
redis.register_function('writes', function() x = 1 end)
redis.register_function('registers', function() return redis.register_function end)
redis.register_function('evaluates', function() return loadstring('return type(math)')() end)";
    assert_eq!(call(library, "f"), (Ran::Ok, "*3\r\n$2\r\nk1\r\n$2\r\nk2\r\n$2\r\na1\r\n".into()));
    assert_eq!(call(library, "count"), (Ran::Ok, ":1\r\n".into()));
    assert_eq!(
        call(library, "fails"),
        (Ran::Error, "-ERR Unknown Redis command called from script script: fails, on @user_function:5.\r\n".into())
    );
    assert_eq!(call(library, "globals"), (Ran::Ok, "*3\r\n$5\r\ntable\r\n$5\r\ntable\r\n:1\r\n".into()));
    let (ran, reply) = call(library, "missing");
    assert_eq!(ran, Ran::Error);
    assert!(reply.contains("Script attempted to access nonexistent global variable 'KEYS'"), "{reply}");
    assert!(call(library, "writes").1.contains("Attempt to modify a readonly table"));
    assert_eq!(call(library, "registers"), (Ran::Ok, "$-1\r\n".into()));
    assert_eq!(call(library, "evaluates"), (Ran::Ok, "$5\r\ntable\r\n".into()));
    assert_eq!(call(library, "nosuch"), (Ran::Error, "-ERR Function not found\r\n".into()));
}

#[test]
fn scripts_and_functions_do_not_see_each_other() {
    let mut state = State::new(Limits::default());
    state.load_library("lib", b"redis.register_function('f', function(keys) return keys[1] end)").unwrap();
    let script = b"return {KEYS[1], type(redis.breakpoint), tostring(redis.register_function)}";
    let sha = lua::sha1hex(script);
    state.load(&sha, script).unwrap();
    for _ in 0..3 {
        let mut out = Vec::new();
        state.run(&mut Fake::default(), &sha, ScriptArguments { keys: &[b"k"], args: &[] }, Protocol::Resp2, &mut out);
        assert_eq!(out, b"*3\r\n$1\r\nk\r\n$8\r\nfunction\r\n$3\r\nnil\r\n");
        out.clear();
        state.run_function(
            &mut Fake::default(),
            "lib",
            "f",
            ScriptArguments { keys: &[b"q"], args: &[] },
            Protocol::Resp2,
            &mut out,
        );
        assert_eq!(out, b"$1\r\nq\r\n");
    }
    state.forget_library("lib");
    assert!(!state.has_library("lib"));
    state.forget_all();
    assert!(!state.has(&sha));
}
