//! What Redis's scripts need of a binding, and that ours has it. `bench/mlua/tests/needs.rs` has tests of the same names for
//! `mlua`; `crates/lua/tests` tests all that ours does.

use fiber::{Fiber, FiberState};
use lua::{Host, Limits, Protocol, ScriptArguments, State, Tick, sha1hex};

/// A server whose one command, `WAIT`, pauses the fiber that it is called in.
#[derive(Default)]
struct Server {
    ticks: u32,
    /// Whether a tick pauses the fiber, too.
    pauses: bool,
    /// Kills the script at this tick.
    kill_at: Option<u32>,
}

impl Host for Server {
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>) {
        match args[0] {
            b"WAIT" => {
                fiber::pause();
                reply.extend_from_slice(b"+done\r\n");
            }
            _ => reply.extend_from_slice(b"-ERR unknown command\r\n"),
        }
    }
    fn log(&mut self, _: i64, _: &[u8]) {}
    fn set_resp(&mut self, _: u8) {}
    fn acl_check(&mut self, _: &[&[u8]]) -> Result<bool, String> {
        Ok(true)
    }
    fn set_repl(&mut self, _: i64) {}
    fn tick(&mut self) -> Tick {
        self.ticks += 1;
        if self.pauses {
            fiber::pause();
        }
        match self.kill_at {
            Some(at) if self.ticks >= at => Tick::Kill("killed".into()),
            _ => Tick::Continue,
        }
    }
}

fn state() -> State {
    State::new(Limits { memory_bytes_max: 8 << 20, ..Limits::default() })
}

fn eval(state: &mut State, server: &mut Server, script: &str) -> String {
    let (sha, mut reply) = (sha1hex(script.as_bytes()), Vec::new());
    state.load(&sha, script.as_bytes()).unwrap();
    state.run(server, &sha, ScriptArguments::default(), Protocol::Resp2, &mut reply);
    String::from_utf8(reply).unwrap()
}

/// The reply to a script that needs no server.
fn reply(script: &str) -> String {
    eval(&mut state(), &mut Server::default(), script)
}

#[test]
fn too_much_memory_is_an_error_that_can_be_caught() {
    let mut state = state();
    let mut eval = |script| eval(&mut state, &mut Server::default(), script);
    assert_eq!(eval("local ok, e = pcall(string.rep, 'x', 1e9) return e"), "$17\r\nnot enough memory\r\n");
    let failed = eval("local t = {} while true do t = {t} end");
    assert!(failed.starts_with('-') && failed.contains("not enough memory"), "{failed}");
    assert_eq!(eval("return 'works'"), "$5\r\nworks\r\n");
}

#[test]
fn an_endless_script_can_be_stopped() {
    let mut server = Server { kill_at: Some(2), ..Server::default() };
    let stopped = eval(&mut state(), &mut server, "while true do pcall(function() while true do end end) end");
    assert!(stopped.starts_with("-ERR killed"), "{stopped}");
}

#[test]
fn tables_can_be_readonly() {
    for script in ["redis.call = 1", "rawset(redis, 'call', 1)", "table.insert(redis, 1)", "setmetatable(redis, {})"] {
        let refused = reply(script);
        assert!(refused.contains("Attempt to modify a readonly table"), "{script}: {refused}");
    }
    assert_eq!(reply("return type(next(redis))"), "$6\r\nstring\r\n");
}

#[test]
fn long_library_functions_can_be_stopped() {
    let slow = "return string.find(string.rep('a', 22), string.rep('a?', 22) .. 'b')";
    let mut server = Server::default();
    assert_eq!(eval(&mut state(), &mut server, slow), "$-1\r\n");
    assert!(server.ticks > 0);
    let stopped = eval(&mut state(), &mut Server { kill_at: Some(1), ..Server::default() }, slow);
    assert!(stopped.starts_with("-ERR killed"), "{stopped}");
}

#[test]
fn patterns_do_not_exhaust_the_stack() {
    let deep = reply("return string.find(string.rep('a', 3e5), string.rep('a?', 3e5) .. 'b')");
    assert!(deep.contains("pattern too complex"), "{deep}");
}

/// The reply to a script that runs in a fiber, which a thread of its own resumes each time after a pause; and how often it
/// has paused.
fn moved(script: &'static str) -> (String, u32) {
    let work = move || eval(&mut state(), &mut Server { pauses: true, ..Server::default() }, script);
    let stack = fiber::Stack::new(1 << 20).unwrap();
    // SAFETY: a script keeps nothing of a thread on its stack.
    let mut fiber = unsafe { Fiber::new(stack, work) };
    let mut pauses = 0;
    loop {
        match std::thread::spawn(|| fiber.resume()).join().unwrap() {
            FiberState::Paused(paused) => (fiber, pauses) = (paused, pauses + 1),
            FiberState::Done(reply, _) => return (reply, pauses),
        }
    }
}

#[test]
fn a_loop_can_be_suspended() {
    let (reply, pauses) = moved("local n = 0 while n < 1e6 do n = n + 1 end return n");
    assert_eq!(reply, ":1000000\r\n");
    assert!(pauses > 0);
}

#[test]
fn a_call_can_be_suspended_wherever_it_is() {
    for script in [
        "return redis.call('WAIT')",
        "return select(2, pcall(redis.call, 'WAIT'))",
        "return setmetatable({}, {__index = function() return redis.call('WAIT') end}).x",
        "local r table.sort({2, 1}, function() r = redis.call('WAIT') return r.ok == 'done' end) return r",
    ] {
        let (reply, pauses) = moved(script);
        assert_eq!(reply, "+done\r\n", "{script}");
        assert!(pauses > 0, "{script}");
    }
}

#[test]
fn an_error_of_a_call_is_text() {
    let script = "local ok, e = pcall(redis.call, 'NONE') return {type(e), string.sub(e, 1, 3)}";
    assert_eq!(reply(script), "*2\r\n$6\r\nstring\r\n$3\r\nERR\r\n");
}

#[test]
fn bytecode_is_refused() {
    let refused = reply("return loadstring(string.dump(function() return 'ran' end))()");
    assert!(refused.starts_with('-'), "{refused}");
}
