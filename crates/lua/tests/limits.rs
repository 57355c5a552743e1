//! Scripts that need too much memory, time or C stack. Each ends with an error, and the state stays usable.

mod host;

use host::Fake;
use lua::{Limits, Protocol, Ran, ScriptArguments, State, sha1hex};

struct Session {
    state: State,
}

impl Session {
    fn new(memory_bytes_max: usize) -> Self {
        Session { state: State::new(Limits { memory_bytes_max, reply_bytes_max: 1 << 20, ..Limits::default() }) }
    }

    fn eval_with(&mut self, host: &mut Fake, script: &str) -> (Ran, String) {
        let sha = sha1hex(script.as_bytes());
        let mut out = Vec::new();
        if let Err(message) = self.state.load(&sha, script.as_bytes()) {
            return (Ran::Error, format!("-{message}"));
        }
        let ran = self.state.run(host, &sha, ScriptArguments::default(), Protocol::Resp2, &mut out);
        (ran, String::from_utf8_lossy(&out).trim_end().to_string())
    }

    fn eval(&mut self, script: &str) -> (Ran, String) {
        self.eval_with(&mut Fake::default(), script)
    }

    /// The script fails with a text that contains `expected`, and the state still works.
    #[track_caller]
    fn fails(&mut self, script: &str, expected: &str) {
        let (ran, reply) = self.eval(script);
        assert_eq!(ran, Ran::Error, "{script}: {reply}");
        assert!(reply.starts_with('-') && reply.contains(expected), "{script}: {reply}");
        self.works();
    }

    #[track_caller]
    fn works(&mut self) {
        let script = "local t = {} for i = 1, 100 do t[i] = 'x' .. i end return #table.concat(t)";
        assert_eq!(self.eval(script), (Ran::Ok, ":292".into()));
    }
}

/// Worker threads have small stacks; so has this one.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(test).unwrap().join().unwrap();
}

#[test]
fn memory_is_limited() {
    on_a_small_stack(|| {
        let mut session = Session::new(8 << 20);
        session.fails("return string.rep('x', 2e9)", "not enough memory");
        session.fails("return ('x'):rep(1e9):len()", "not enough memory");
        session.fails("local s = 'x' while true do s = s .. s end", "not enough memory");
        session.fails("local t = {} for i = 1, 1e9 do t[i] = {i} end", "not enough memory");
        session.fails("local t = {} for i = 1, 1e9 do t['k' .. i] = i end", "not enough memory");
        session.fails("local t = {} while true do t = {t} end", "not enough memory");
        session.fails("local t = {} for i=1,1e7 do t[i] = coroutine.create(function() end) end", "not enough memory");
        session.fails("return table.concat({('x'):rep(3e6), ('y'):rep(3e6)})", "not enough memory");
        session.fails("local t = {} for i = 1, 30 do t = {t, t} end return cjson.encode(t)", "not enough memory");
        session.fails(
            "local t = {1} for i = 1, 15 do t = {t, t, t, t, t, t, t, t} end return cmsgpack.pack(t)",
            "not enough memory",
        );
        session.fails("cjson.encode_sparse_array(true, 0) return cjson.encode({[2e9] = 1})", "not enough memory");
        session.fails("return cmsgpack.unpack(('\\145'):rep(1e6))", "stack overflow");
        session.fails("return cjson.decode(('[1,'):rep(5e5))", "nested");
        session.fails("local s = ('x'):rep(1e6) return redis.call('mget', s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s) and error(s:rep(20))", "not enough memory");
        // Caught, it is only an error.
        let caught = "local ok, e = pcall(function() return ('x'):rep(1e9) end) return e";
        assert_eq!(session.eval(caught), (Ran::Ok, "$17\r\nnot enough memory".into()));
        session.works();
        assert!(session.state.memory_bytes() < 8 << 20);
    });
}

#[test]
fn memory_is_limited_inside_of_functions_written_in_rust() {
    on_a_small_stack(|| {
        const MAX: usize = 8 << 20;
        let makers = [
            "cjson.decode('[' .. ('[],'):rep(1e6) .. '1]')",
            "cjson.decode('[' .. ('1,'):rep(1e6) .. '1]')",
            "cmsgpack.unpack('\\221\\15\\66\\64\\0' .. ('\\144'):rep(1e6))",
            "struct.unpack(('s'):rep(1000), (('x'):rep(1e4) .. '\\0'):rep(200), 1)",
            "cjson.encode(('x'):rep(3e6) .. ('y'):rep(1e6))",
            "redis.call('reply', '*1000000\\r\\n' .. ('*0\\r\\n'):rep(1e6))",
        ];
        let mut session = Session::new(MAX);
        for maker in makers {
            session.fails(&format!("return {maker}"), "not enough memory");
            // Caught, it is only an error, and the script continues.
            let caught = format!(
                "local ok, e = pcall(function() return {maker} end) local t = {{}} t[1] = e .. '!' return t[1]"
            );
            assert_eq!(session.eval(&caught), (Ran::Ok, "$18\r\nnot enough memory!".into()), "{maker}");
            assert!(session.state.memory_bytes() < MAX);
        }
    });
}

#[test]
fn arguments_count_as_memory() {
    let mut session = Session::new(4 << 20);
    let sha = sha1hex(b"return #ARGV");
    session.state.load(&sha, b"return #ARGV").unwrap();
    let long = vec![b'x'; 3 << 20];
    let mut run = |arguments: &[&[u8]]| {
        let mut out = Vec::new();
        let ran = session.state.run(
            &mut Fake::default(),
            &sha,
            ScriptArguments { keys: &[], args: arguments },
            Protocol::Resp2,
            &mut out,
        );
        (ran, String::from_utf8_lossy(&out).trim_end().to_string())
    };
    assert_eq!(run(&[&long]), (Ran::Ok, ":1".into()));
    // The first is garbage by now.
    assert_eq!(run(&[&long[1..], b"y"]), (Ran::Ok, ":2".into()));
    let (ran, reply) = run(&[&long, &[&long[1..], b"y"].concat()]);
    assert!(ran == Ran::Error && reply.ends_with("not enough memory"), "{reply}");
    assert_eq!(run(&[&long]), (Ran::Ok, ":1".into()));
}

#[test]
fn garbage_is_not_held_against_the_next_script() {
    let mut session = Session::new(4 << 20);
    for _ in 0..200 {
        let (ran, reply) = session.eval("local t = {} for i = 1, 2000 do t[i] = ('x'):rep(100) .. i end return #t");
        assert_eq!((ran, reply.as_str()), (Ran::Ok, ":2000"));
    }
}

#[test]
fn the_reply_is_limited() {
    on_a_small_stack(|| {
        let mut session = Session::new(16 << 20);
        session.fails("local t = {'x'} for i = 1, 40 do t = {t, t} end return t", "reply is too large");
        // A cycle ends where the Lua stack does, as in Redis.
        let (ran, reply) = session.eval("local t = {} t[1] = t return t");
        assert_eq!(ran, Ran::Ok);
        assert!(reply.starts_with("*1\r\n*1\r\n") && reply.ends_with("-ERR reached lua stack limit"));
        assert!(session.eval("local t = {} t.map = {[1] = t} return t").1.ends_with("-ERR reached lua stack limit"));
        session.works();
    });
}

#[test]
fn the_c_stack_is_limited() {
    on_a_small_stack(|| {
        let mut session = Session::new(64 << 20);
        session.fails("local function f() return 1 + f() end f()", "stack overflow");
        session.fails(
            "local function f(n) local ok, e = pcall(f, n + 1) if not ok then error(e, 0) end end f(1)",
            "stack overflow",
        );
        session.fails("local function f() return string.gsub('x', 'x', f) end f()", "stack overflow");
        session.fails("local function f() table.sort({1, 2, 3}, f) end f()", "stack overflow");
        session.fails("local function f() return coroutine.wrap(f)() end f()", "stack overflow");
        session.fails(
            "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. 'x'] end return t.a",
            "stack overflow",
        );
        session.fails("return loadstring('return ' .. ('('):rep(10000) .. '1' .. (')'):rep(10000))()", "");
        session.fails(
            "return loadstring(('do '):rep(10000) .. ('end '):rep(10000)) == nil and error('too deep')",
            "too deep",
        );
        session.fails("return ('a'):rep(100000):find(('a?'):rep(100000))", "pattern too complex");
        session
            .fails("return ('a'):rep(100000):find(('(a'):rep(31) .. (')'):rep(31) .. ('a-'):rep(100000) .. 'b')", "");
        session.fails("local t = {} for i = 1, 20000 do t[i] = i end return unpack(t)", "too many results to unpack");
        session.fails("return string.char(unpack({}, 1, 2147483647))", "too many results to unpack");
        session.fails("return unpack({}, -2147483648, 2147483647)", "too many results to unpack");
        session.fails("local t = {} for i = 1, 3000 do t = {t} end cjson.encode_max_depth(1e6) return cjson.encode(t) .. error('deep enough')", "deep enough");
        session.fails("error({})", "ERR unknown error");
        session.fails("error(redis)", "readonly table");
        session.fails("error(setmetatable({}, {__index = function() error('x') end}))", "");
        session.fails("xpcall(function() error('x') end, function(e) error(e) end) error('after')", "after");
    });
}

#[test]
fn a_kill_gets_through() {
    on_a_small_stack(|| {
        let mut session = Session::new(64 << 20);
        for script in [
            "while true do end",
            "while true do pcall(function() while true do end end) end",
            "local function f() pcall(f) end while true do f() end",
            "while true do xpcall(function() while true do end end, function() while true do end end) end",
            "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
            "while true do pcall(coroutine.wrap(function() while true do pcall(function() while true do end end) end end)) end",
            "local function f() while true do pcall(coroutine.wrap(f)) end end f()",
            "while true do redis.pcall('ping') end",
            "while true do redis.pcall({}) end",
            "while true do string.gsub('x', 'x', function() while true do end end) end",
            "return ('a'):rep(40):find(('a?'):rep(40) .. ('a*'):rep(40) .. 'b')",
            "return ('('):rep(3e5):find('%b()x')",
            "local t = setmetatable({}, {__index = function() while true do end end}) while true do pcall(function() return t.x end) end",
            "local t = {} for i = 1, 1e4 do t[i] = i end while true do pcall(table.sort, t, function(a, b) return a < b end) end",
        ] {
            let mut host = Fake { patience: Some(3), ..Fake::default() };
            let (ran, reply) = session.eval_with(&mut host, script);
            assert_eq!(ran, Ran::Killed, "{script}: {reply}");
            assert!(reply.starts_with("-ERR Script killed by user with SCRIPT KILL..."), "{script}: {reply}");
            session.works();
        }
    });
}

#[test]
fn a_panic_of_the_host_is_the_host_s() {
    let mut session = Session::new(16 << 20);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        session.eval("while true do pcall(redis.call, 'panic') end");
    }));
    assert!(panicked.is_err());
    session.works();
}

#[test]
fn the_collector_s_settings_do_not_stay() {
    let mut session = Session::new(8 << 20);
    for script in ["collectgarbage('stop') return 1", "collectgarbage('setpause', 100000) return 1"] {
        assert_eq!(session.eval(script).1, ":1");
        for i in 0..200 {
            let (_, reply) =
                session.eval(&format!("local t = {{}} for i = 1, 500 do t[i] = ('x'):rep(100) .. i end return {i}"));
            assert_eq!(reply, format!(":{i}"));
        }
    }
}

#[test]
fn bytecode_is_refused() {
    let mut session = Session::new(8 << 20);
    let script = "local f, e = loadstring(string.dump(function() return 5 end)) return {f == nil, e}";
    assert!(session.eval(script).1.contains("unexpected symbol near 'char(27)'"));
    let script = "local s, done = string.dump(function() end), false
        local f, e = load(function() if done then return nil end done = true return s end) return {f == nil, e}";
    assert!(session.eval(script).1.contains("unexpected symbol near 'char(27)'"));
    assert!(session.eval("\x1bLua").1.contains("unexpected symbol near 'char(27)'"));
}
