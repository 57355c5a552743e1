//! What Redis's scripts need of a binding, and whether `mlua` has it with Lua 5.1. `bench/lua/tests/needs.rs` has tests of the
//! same names for our binding. A test here that fails after an update of `mlua` says that `mlua` can do more than before.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::process::Command;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use fiber::{Fiber, FiberState};
use mlua::{Error, Function, HookTriggers, Lua, Result, Value, VmState};

fn eval(lua: &Lua, script: &str) -> Value {
    lua.load(script).eval().unwrap_or_else(|error| panic!("{script}: {error}"))
}

fn text(lua: &Lua, script: &str) -> String {
    lua.load(script).eval().unwrap_or_else(|error| panic!("{script}: {error}"))
}

// What mlua has.

/// Errors pass through functions in Rust as results, so what they hold is dropped.
#[test]
fn an_error_drops_what_functions_hold() {
    struct Held(Rc<Cell<u32>>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let (lua, dropped) = (Lua::new(), Rc::new(Cell::new(0)));
    let counter = dropped.clone();
    let call = move |_: &Lua, function: Function| -> Result<()> {
        let _held = Held(counter.clone());
        function.call(())
    };
    lua.globals().set("call", lua.create_function(call).unwrap()).unwrap();
    assert_eq!(text(&lua, "return tostring((pcall(call, error)))"), "false");
    assert_eq!(text(&lua, "return tostring((pcall(call, function() call(error) end)))"), "false");
    assert_eq!(dropped.get(), 3);
}

#[test]
fn too_much_memory_is_an_error_that_can_be_caught() {
    let lua = Lua::new();
    lua.set_memory_limit(8 << 20).unwrap();
    let caught = text(&lua, "local ok, e = pcall(string.rep, 'x', 1e9) return tostring(e)");
    assert_eq!(caught, "not enough memory");
    assert!(matches!(lua.load("local t = {} while true do t = {t} end").exec(), Err(Error::MemoryError(_))));
    // What the script has left behind is in the way of the next.
    assert!(matches!(lua.load("return 'works'").exec(), Err(Error::MemoryError(_))));
    lua.gc_collect().unwrap();
    assert_eq!(text(&lua, "return 'works'"), "works");
}

/// After the first refusal every instruction asks again, so that a `pcall` around the loop does not help.
#[test]
fn an_endless_script_can_be_stopped() {
    let lua = Lua::new();
    let stop = |_: &Lua, _: &mlua::debug::Debug| Err(Error::runtime("killed"));
    let every = |instructions| HookTriggers::new().every_nth_instruction(instructions);
    let first = move |lua: &Lua, _: &mlua::debug::Debug| {
        lua.set_hook(every(1), stop)?;
        Err(Error::runtime("killed"))
    };
    lua.set_hook(every(1000), first).unwrap();
    let error = lua.load("while true do pcall(function() while true do end end) end").exec().unwrap_err();
    assert!(error.to_string().contains("killed"), "{error}");
}

/// What we do with long scripts would work with mlua too, though its types say that a state stays in its thread.
#[test]
fn a_script_in_a_fiber_continues_in_another_thread() {
    let work = || {
        let lua = Lua::new();
        let pause = |_: &Lua, _: &mlua::debug::Debug| {
            fiber::pause();
            Ok(VmState::Continue)
        };
        lua.set_hook(HookTriggers::new().every_nth_instruction(1000), pause).unwrap();
        text(&lua, "local n = 0 pcall(function() while n < 1e4 do n = n + 1 end end) return tostring(n)")
    };
    let stack = fiber::Stack::new(1 << 20).unwrap();
    // SAFETY: mlua keeps nothing of a thread while a script runs, unless it is built with its feature `send`.
    let fiber = unsafe { Fiber::new(stack, work) };
    let FiberState::Paused(fiber) = fiber.resume() else { panic!("it was over before the first tick") };
    let elsewhere = std::thread::spawn(move || {
        let mut fiber = fiber;
        loop {
            match fiber.resume() {
                FiberState::Paused(paused) => fiber = paused,
                FiberState::Done(result, _) => return result,
            }
        }
    });
    assert_eq!(elsewhere.join().unwrap(), "10000");
}

// What it has not.

/// With a metatable only assignments can be refused; what goes round metatables is not, and the table is empty to `next`.
#[test]
fn tables_can_be_readonly() {
    let lua = Lua::new();
    eval(
        &lua,
        "
        local real = {call = 'call'}
        redis = setmetatable({}, {__index = real, __newindex = function() error('readonly') end, __metatable = false})
        ",
    );
    assert_eq!(text(&lua, "return tostring((pcall(function() redis.call = 1 end)))"), "false");
    assert_eq!(text(&lua, "rawset(redis, 'call', 'mine') return redis.call"), "mine");
    assert_eq!(text(&lua, "table.insert(redis, 'mine') return redis[1]"), "mine");
    assert_eq!(text(&lua, "rawset(redis, 'call', nil) redis[1] = nil return type(next(redis))"), "nil");
}

/// The hook counts instructions, and a pattern is one, however long it takes.
#[test]
fn long_library_functions_can_be_stopped() {
    let (lua, ticks) = (Lua::new(), Rc::new(Cell::new(0u32)));
    let counter = ticks.clone();
    let tick = move |_: &Lua, _: &mlua::debug::Debug| {
        counter.set(counter.get() + 1);
        Ok(VmState::Continue)
    };
    lua.set_hook(HookTriggers::new().every_nth_instruction(100), tick).unwrap();
    // It tries some millions of ways to match.
    let slow = "return tostring(string.find(string.rep('a', 22), string.rep('a?', 22) .. 'b'))";
    assert_eq!(text(&lua, slow), "nil");
    assert_eq!(ticks.get(), 0);
}

/// Patterns recurse on the C stack without a limit: a deep one ends the process.
#[test]
fn patterns_do_not_exhaust_the_stack() {
    const IN_CHILD: &str = "MLUA_CALLS_DEEP_PATTERN";
    if std::env::var_os(IN_CHILD).is_some() {
        eval(&Lua::new(), "return string.find(string.rep('a', 3e5), string.rep('a?', 3e5) .. 'b')");
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "patterns_do_not_exhaust_the_stack"]).env(IN_CHILD, "yes");
    let ended = child.output().unwrap();
    assert_eq!(ended.status.code(), None, "no signal ended it: {}", String::from_utf8_lossy(&ended.stdout));
}

/// A hook that yields would let a script continue in another thread in the midst of a loop. Lua 5.1 has no such hook.
#[test]
fn a_loop_can_be_suspended() {
    let lua = Lua::new();
    let script = lua.load("local n = 0 while n < 1e5 do n = n + 1 end return n").into_function().unwrap();
    let thread = lua.create_thread(script).unwrap();
    thread.set_hook(HookTriggers::new().every_nth_instruction(1000), |_, _| Ok(VmState::Yield)).unwrap();
    let error = thread.resume::<Value>(()).unwrap_err();
    assert!(error.to_string().contains("attempt to yield from a hook"), "{error}");
}

/// A function that waits suspends the coroutine it was called in, but not inside of `pcall`, a metamethod or `table.sort`.
#[test]
fn a_call_can_be_suspended_wherever_it_is() {
    async fn wait(_: Lua, (): ()) -> Result<&'static str> {
        let mut waited = false;
        std::future::poll_fn(|_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending })
            .await;
        Ok("done")
    }
    let lua = Lua::new();
    lua.globals().set("wait", lua.create_async_function(wait).unwrap()).unwrap();
    let run = |script: &str| -> Result<String> {
        let chunk = lua.load(script);
        let mut future = pin!(chunk.eval_async());
        loop {
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return result;
            }
        }
    };
    assert_eq!(run("return wait()").unwrap(), "done");
    let refused = "attempt to yield across metamethod/C-call boundary";
    assert_eq!(run("local ok, e = pcall(wait) return tostring(e)").unwrap(), refused);
    for script in [
        "return tostring(setmetatable({}, {__tostring = wait}))",
        "return setmetatable({}, {__index = function() return wait() end}).x",
        "table.sort({2, 1}, function() return wait() == 'done' end)",
    ] {
        assert!(run(script).unwrap_err().to_string().contains(refused), "{script}");
    }
}

/// Redis's scripts take what `pcall` returns for text. What a function in Rust raises is an object of mlua's.
#[test]
fn an_error_of_a_call_is_text() {
    let lua = Lua::new();
    let call = |_: &Lua, (): ()| -> Result<()> { Err(Error::runtime("ERR unknown command")) };
    lua.globals().set("call", lua.create_function(call).unwrap()).unwrap();
    assert_eq!(text(&lua, "local ok, e = pcall(call) return type(e)"), "userdata");
    let error = lua.load("local ok, e = pcall(call) return string.sub(e, 1, 3)").eval::<String>().unwrap_err();
    assert!(error.to_string().contains("string expected"), "{error}");
}

/// Lua 5.1 does not verify bytecode, which can corrupt memory. That `load` of mlua refuses it does not help scripts.
#[test]
fn bytecode_is_refused() {
    let lua = Lua::new();
    assert_eq!(text(&lua, "return loadstring(string.dump(function() return 'ran' end))()"), "ran");
}
