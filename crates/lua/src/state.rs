//! One Lua state: scripts and libraries by name, running them, and what is left behind when one fails. Knows no command.

use std::collections::HashMap;
use std::ffi::c_int;
use std::hash::{BuildHasherDefault, Hasher};

use mlua_sys as ffi;
use resp::Protocol;

use crate::Host;
use crate::api::Version;
use crate::cjson;
use crate::context::{Context, Task};
use crate::functions::{self, FunctionInfo};
use crate::random::Random;
use crate::reply::{self, Names};
use crate::sandbox::{self, Globals, upvalue};
use crate::shebang;
use crate::stack::{GLOBALS, REGISTRY, Returned, Stack, Type, function_of};
use crate::text::Digits;

/// One Lua state, for one thread at a time.
pub struct State {
    lua: *mut ffi::lua_State,
    /// Boxed: Lua knows its address. Dropped after the state is closed.
    context: Box<Context>,
    globals: Globals,
    current: Environment,
    scripts: HashMap<[u8; 40], c_int, BuildHasherDefault<DigestHasher>>,
    libraries: HashMap<String, Vec<(String, c_int)>>,
    limits: Limits,
}

/// What a state may use, and what it tells scripts about the server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// All that Lua holds: scripts, libraries, and what a running script makes.
    pub memory_bytes_max: usize,
    /// The longest reply a script may return.
    pub reply_bytes_max: usize,
    /// `redis.REDIS_VERSION`.
    pub redis_version: String,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { memory_bytes_max: 256 << 20, reply_bytes_max: 512 << 20, redis_version: "7.4.0".into() }
    }
}

/// How a run ended. In every case one reply was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    Ok,
    /// The script raised an error (a script that returns an error reply ended well).
    Error,
    /// The host's tick stopped it.
    Killed,
}

/// Which globals Lua's main thread has now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Environment {
    Eval,
    Functions,
}

/// What lies at the bottom of the stack for as long as the state lives.
mod base {
    use std::ffi::c_int;
    pub(super) const HANDLER: c_int = 1;
    pub(super) const ENTER: c_int = 2;
    pub(super) const ERR: c_int = 3;
    pub(super) const SOURCE: c_int = 4;
    pub(super) const LINE: c_int = 5;
    pub(super) const LEN: c_int = 5;
}

/// What the function that enters a task has bound to it.
mod bound {
    use std::ffi::c_int;
    pub(super) const EVAL_GLOBALS: c_int = 1;
    pub(super) const KEYS: c_int = 2;
    pub(super) const ARGV: c_int = 3;
    /// The first of `reply::NAMES`.
    pub(super) const NAMES: c_int = 4;
}

const NAMES: Names = Names {
    err: upvalue_index(bound::NAMES),
    ok: upvalue_index(bound::NAMES + 1),
    double: upvalue_index(bound::NAMES + 2),
    big_number: upvalue_index(bound::NAMES + 3),
    verbatim_string: upvalue_index(bound::NAMES + 4),
    map: upvalue_index(bound::NAMES + 5),
    set: upvalue_index(bound::NAMES + 6),
    format: upvalue_index(bound::NAMES + 7),
    string: upvalue_index(bound::NAMES + 8),
};

const fn upvalue_index(position: c_int) -> c_int {
    ffi::lua_upvalueindex(position)
}

/// The collector waits until memory has grown to this percentage of what survived the last cycle, then works at this
/// multiple of the speed of allocation. A longer pause than Lua's own 200: a state's live data is small, and a cycle over it
/// costs as much as dozens of scripts.
const COLLECTOR_PAUSE: c_int = 400;
const COLLECTOR_SPEED: c_int = 200;

impl State {
    pub fn new(limits: Limits) -> State {
        // The sandbox is built without a limit, then the limit holds for everything.
        let context = Context::new(usize::MAX);
        let lua = context.open_lua();
        assert!(!lua.is_null(), "no memory for a Lua state");
        let version = Version { text: limits.redis_version.clone() };
        // SAFETY: a new state. There is no protected call yet, but nothing here can fail except for memory, of which there is no limit yet.
        let stack = unsafe { Stack::of(lua) };
        // SAFETY: a new state.
        unsafe { ffi::lua_atpanic(lua, panicked) };
        let globals = sandbox::open(stack, &version);
        stack.set_len(0);
        stack.push_function(function_of(sandbox::error_handler), 0);
        stack.raw_get_at(REGISTRY, globals.eval);
        stack.push_bytes(b"KEYS");
        stack.push_bytes(b"ARGV");
        for name in reply::NAMES {
            stack.push_bytes(name);
        }
        stack.push_function(function_of(enter), 3 + reply::NAMES.len() as c_int);
        for name in [b"err".as_slice(), b"source", b"line"] {
            stack.push_bytes(name);
        }
        assert_eq!(stack.len(), base::LEN);
        set_collector(lua);
        // A full cycle, so that the first script does not pay for the libraries.
        // SAFETY: a live state; nothing has a finalizer.
        unsafe { ffi::lua_gc(lua, ffi::LUA_GCCOLLECT, 0) };
        context.set_memory_bytes_max(limits.memory_bytes_max);
        State {
            lua,
            context,
            globals,
            current: Environment::Eval,
            scripts: HashMap::default(),
            libraries: HashMap::default(),
            limits,
        }
    }

    /// Compiles a script and keeps it under its digest. The error is the whole reply without its dash.
    pub fn load(&mut self, sha: &[u8; 40], source: &[u8]) -> Result<(), String> {
        if self.scripts.contains_key(sha) {
            return Ok(());
        }
        self.use_environment(Environment::Eval);
        let mut function = None;
        let compiled = self.protected(&mut |stack| {
            if !stack.compile(shebang::body(source), c"@user_script") {
                return Err(stack.raise());
            }
            function = Some(stack.keep());
            Ok(())
        });
        match (compiled, function) {
            (0, Some(function)) => {
                self.scripts.insert(*sha, function);
                Ok(())
            }
            _ => {
                let message = self.take_error_text();
                self.recover_memory();
                Err(format!("ERR Error compiling script (new function): {message}"))
            }
        }
    }

    pub fn has(&self, sha: &[u8; 40]) -> bool {
        self.scripts.contains_key(sha)
    }

    /// Forgets one script.
    pub fn forget(&mut self, sha: &[u8; 40]) {
        if let Some(function) = self.scripts.remove(sha) {
            self.drop_functions(&[function]);
        }
    }

    /// Forgets all scripts; libraries stay.
    pub fn forget_all(&mut self) {
        let functions: Vec<c_int> = self.scripts.drain().map(|(_, function)| function).collect();
        self.drop_functions(&functions);
        self.collect();
    }

    /// Runs a loaded script (a script that is not loaded is answered with NOSCRIPT).
    pub fn run(
        &mut self,
        host: &mut dyn Host,
        sha: &[u8; 40],
        keys: &[&[u8]],
        args: &[&[u8]],
        protocol: Protocol,
        out: &mut Vec<u8>,
    ) -> Ran {
        let Some(&function) = self.scripts.get(sha) else {
            out.extend_from_slice(b"-NOSCRIPT No matching script. Please use EVAL.\r\n");
            return Ran::Error;
        };
        self.use_environment(Environment::Eval);
        self.run_kept(host, function, Environment::Eval, sha, keys, args, protocol, out)
    }

    /// Runs a library's code so that it registers its functions. On failure nothing of it stays; the error is the reply's text without its code.
    pub fn load_library(&mut self, name: &str, code: &[u8]) -> Result<Vec<FunctionInfo>, String> {
        self.use_environment(Environment::Functions);
        // SAFETY: no script runs, so nobody else borrows the cell.
        unsafe { *self.context.loading.get() = Some(Vec::new()) };
        self.context.killed.set(false);
        let loading = self.globals.loading;
        let mut compiled = false;
        let status = functions::within_load_time(|| {
            self.protected(&mut |stack| {
                set_window(stack, loading);
                if !stack.compile(shebang::body(code), c"@user_function") {
                    return Err(stack.raise());
                }
                compiled = true;
                sandbox::set_hook(stack, true);
                stack.call(0, 0);
                Ok(())
            })
        });
        let message = (status != 0).then(|| self.take_registration_error(compiled));
        // SAFETY: as above.
        let registered = unsafe { (*self.context.loading.get()).take() }.unwrap_or_default();
        self.context.killed.set(false);
        let functions = self.globals.functions_table;
        let restored = self.protected(&mut |stack| {
            sandbox::set_hook(stack, false);
            set_window(stack, functions);
            Ok(())
        });
        assert_eq!(restored, 0, "putting back a value into an existing field needs no memory");
        if let Some(message) = message {
            let dropped: Vec<c_int> = registered.iter().map(|one| one.function).collect();
            self.drop_functions(&dropped);
            self.recover_memory();
            return Err(message);
        }
        if registered.is_empty() {
            return Err("No functions registered".into());
        }
        self.forget_library(name);
        let kept = registered.iter().map(|one| (one.info.name.clone(), one.function)).collect();
        self.libraries.insert(name.into(), kept);
        Ok(registered.into_iter().map(|one| one.info).collect())
    }

    pub fn has_library(&self, name: &str) -> bool {
        self.libraries.contains_key(name)
    }

    pub fn forget_library(&mut self, name: &str) {
        if let Some(functions) = self.libraries.remove(name) {
            let functions: Vec<c_int> = functions.into_iter().map(|(_, function)| function).collect();
            self.drop_functions(&functions);
        }
    }

    /// Runs a function of a loaded library.
    #[expect(clippy::too_many_arguments, reason = "they are what a call consists of")]
    pub fn run_function(
        &mut self,
        host: &mut dyn Host,
        library: &str,
        function: &str,
        keys: &[&[u8]],
        args: &[&[u8]],
        protocol: Protocol,
        out: &mut Vec<u8>,
    ) -> Ran {
        let found = self.libraries.get(library).and_then(|all| all.iter().find(|(name, _)| name == function));
        let Some(&(_, kept)) = found else {
            out.extend_from_slice(b"-ERR Function not found\r\n");
            return Ran::Error;
        };
        self.use_environment(Environment::Functions);
        self.run_kept(host, kept, Environment::Functions, function.as_bytes(), keys, args, protocol, out)
    }

    /// All that Lua holds now, garbage included.
    pub fn memory_bytes(&self) -> usize {
        self.context.used_bytes()
    }

    /// What it takes of the process's memory: also what it keeps of objects that are gone.
    pub fn footprint_bytes(&self) -> usize {
        self.context.footprint_bytes()
    }

    #[expect(clippy::too_many_arguments, reason = "they are what a call consists of")]
    #[inline]
    fn run_kept(
        &mut self,
        host: &mut dyn Host,
        function: c_int,
        environment: Environment,
        name: &[u8],
        keys: &[&[u8]],
        args: &[&[u8]],
        protocol: Protocol,
        out: &mut Vec<u8>,
    ) -> Ran {
        let start = out.len();
        let context = &*self.context;
        context.killed.set(false);
        context.resp3.set(false);
        context.random.set(Random::default());
        let reply_bytes_max = self.limits.reply_bytes_max;
        let status = context.with_host(host, || {
            self.protected(&mut |stack| {
                sandbox::set_hook(stack, true);
                match environment {
                    Environment::Eval => {
                        stack.copy(upvalue(bound::KEYS));
                        push_strings(stack, keys);
                        stack.raw_set_force(upvalue(bound::EVAL_GLOBALS));
                        stack.copy(upvalue(bound::ARGV));
                        push_strings(stack, args);
                        stack.raw_set_force(upvalue(bound::EVAL_GLOBALS));
                        stack.raw_get_at(REGISTRY, function);
                        stack.call(0, 1);
                    }
                    Environment::Functions => {
                        stack.raw_get_at(REGISTRY, function);
                        push_strings(stack, keys);
                        push_strings(stack, args);
                        stack.call(2, 1);
                    }
                }
                let context = Context::of(stack);
                reply::write(stack, &NAMES, protocol, context.resp3.get(), reply_bytes_max, context.open(), out)
            })
        });
        if status == 0 && !context.collector_touched.get() && !context.settings_touched.get() {
            return Ran::Ok;
        }
        self.after_trouble(status, name, start, out)
    }

    /// What a run that failed, or that touched the collector, leaves to do.
    #[cold]
    fn after_trouble(&mut self, status: c_int, name: &[u8], start: usize, out: &mut Vec<u8>) -> Ran {
        if status != 0 {
            out.truncate(start);
            self.write_error(name, out);
        }
        if self.context.collector_touched.replace(false) {
            set_collector(self.lua);
        }
        if self.context.settings_touched.replace(false) {
            let globals = self.globals.eval;
            self.protected(&mut |stack| {
                stack.raw_get_at(REGISTRY, globals);
                stack.get_field(-1, c"cjson");
                cjson::reset(stack, c"encode");
                Ok(())
            });
        }
        self.context.shrink_buffers();
        self.recover_memory();
        match (self.context.killed.get(), status) {
            (true, _) => Ran::Killed,
            (false, 0) => Ran::Ok,
            (false, _) => Ran::Error,
        }
    }

    /// Runs the task where a Lua error ends it and nothing else. Not zero: the error value is on top of the base.
    #[inline]
    fn protected(&self, task: &mut Task<'_>) -> c_int {
        self.context.with_task(task, || {
            // SAFETY: a live state; the base of the stack holds the handler and `enter`, and has room.
            unsafe {
                ffi::lua_settop(self.lua, base::LEN);
                ffi::lua_pushvalue(self.lua, base::ENTER);
                ffi::lua_pcall(self.lua, 0, 0, base::HANDLER)
            }
        })
    }

    /// The stack outside of any protected call: good for what cannot fail.
    fn bottom(&self) -> Stack<'_> {
        // SAFETY: a live state; users only read, or change what needs no memory.
        unsafe { Stack::of(self.lua) }
    }

    fn use_environment(&mut self, environment: Environment) {
        if self.current == environment {
            return;
        }
        self.current = environment;
        let stack = self.bottom();
        stack.set_len(base::LEN);
        let globals = match environment {
            Environment::Eval => self.globals.eval,
            Environment::Functions => self.globals.functions,
        };
        stack.raw_get_at(REGISTRY, globals);
        stack.replace(GLOBALS);
    }

    /// Writes the reply for the error on top of the base. Reads only strings and numbers that are there: nothing can fail.
    fn write_error(&self, name: &[u8], out: &mut Vec<u8>) {
        let stack = self.bottom();
        let mut message = Vec::new();
        if stack.kind(-1) == Type::Table {
            if !self.error_field(base::ERR, &mut message) {
                message.extend_from_slice(b"ERR unknown error");
            }
            let (mut source, mut line) = (Vec::new(), Vec::new());
            if self.error_field(base::SOURCE, &mut source) && self.error_field(base::LINE, &mut line) {
                for part in [b" script: ".as_slice(), name, b", on ", &source, b":", &line, b"."] {
                    message.extend_from_slice(part);
                }
            }
        } else {
            message.extend_from_slice(b"ERR Error running script ");
            message.extend_from_slice(name);
            message.extend_from_slice(b", ");
            let text = stack.string(-1).unwrap_or(b"execution failure");
            message.extend_from_slice(&text[..text.len().min(100)]);
        }
        reply::error_line(out, &message);
        stack.set_len(base::LEN);
    }

    /// Appends a field of the error table on top, if it is a text or a number.
    fn error_field(&self, name: c_int, to: &mut Vec<u8>) -> bool {
        let stack = self.bottom();
        stack.copy(name);
        stack.raw_get(-2);
        let found = match stack.kind(-1) {
            Type::String => {
                to.extend_from_slice(reply::until_nul(stack.string(-1).unwrap_or_default()));
                true
            }
            Type::Number => {
                to.extend_from_slice(Digits::new().general(stack.number(-1), 14));
                true
            }
            _ => false,
        };
        stack.pop(1);
        found
    }

    /// The text of a compile error. The handler does not see those: it is a string still, unless memory ran out.
    fn take_error_text(&self) -> String {
        let stack = self.bottom();
        let mut message = Vec::new();
        match stack.kind(-1) {
            Type::Table => {
                self.error_field(base::ERR, &mut message);
                if message.starts_with(b"ERR ") {
                    message.drain(..4);
                }
            }
            _ => message.extend_from_slice(stack.string(-1).unwrap_or(b"execution failure")),
        }
        stack.set_len(base::LEN);
        String::from_utf8_lossy(reply::until_nul(&message)).into_owned()
    }

    fn take_registration_error(&self, compiled: bool) -> String {
        if !compiled {
            return format!("Error compiling function: {}", self.take_error_text());
        }
        let mut message = Vec::new();
        let stack = self.bottom();
        if stack.kind(-1) != Type::Table || !self.error_field(base::ERR, &mut message) {
            message.extend_from_slice(b"ERR ");
            message.extend_from_slice(stack.string(-1).unwrap_or(b"execution failure"));
        }
        stack.set_len(base::LEN);
        format!("Error registering functions: {}", String::from_utf8_lossy(&message))
    }

    fn drop_functions(&self, functions: &[c_int]) {
        self.protected(&mut |stack| {
            for &function in functions {
                stack.drop_kept(function);
            }
            Ok(())
        });
    }

    /// A full cycle of the collector. It may need a little memory to free much, so the limit waits.
    fn collect(&self) {
        self.context.set_memory_bytes_max(usize::MAX);
        let status = self.protected(&mut |stack| {
            // SAFETY: a live state inside a protected call.
            unsafe { ffi::lua_gc(stack.raw(), ffi::LUA_GCCOLLECT, 0) };
            Ok(())
        });
        assert_eq!(status, 0, "a cycle without finalizers and without a limit cannot fail");
        self.context.set_memory_bytes_max(self.limits.memory_bytes_max);
    }

    /// After a script that failed: if it left much behind, the next one should not have to fail for it.
    fn recover_memory(&self) {
        if self.context.used_bytes() > self.limits.memory_bytes_max / 2 {
            self.collect();
        }
    }
}

// SAFETY: all that the pointers lead to (Lua's memory, the context) belongs to the state alone and is touched only
// through it; nothing in it is tied to a thread between two calls.
unsafe impl Send for State {}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: the state is ours and is not used again; its memory lives in the context, which is dropped after.
        unsafe { ffi::lua_close(self.lua) };
    }
}

/// Lua's entry to a task.
fn enter(stack: Stack<'_>) -> Returned {
    Context::of(stack).do_task(stack)?;
    Ok(0)
}

#[inline]
fn push_strings(stack: Stack<'_>, strings: &[&[u8]]) {
    stack.push_table(strings.len(), 0);
    for (position, string) in (1..).zip(strings) {
        stack.push_bytes(string);
        stack.raw_set_at(-2, position);
    }
}

/// Makes the globals of functions (a window, see `sandbox`) show the kept table.
fn set_window(stack: Stack<'_>, shown: c_int) {
    stack.copy(GLOBALS);
    stack.metatable(-1);
    stack.push_bytes(b"__index");
    stack.raw_get_at(REGISTRY, shown);
    stack.raw_set_force(-3);
    stack.pop(2);
}

fn set_collector(lua: *mut ffi::lua_State) {
    // SAFETY: a live state; these only set numbers.
    unsafe {
        ffi::lua_gc(lua, ffi::LUA_GCRESTART, 0);
        ffi::lua_gc(lua, ffi::LUA_GCSETPAUSE, COLLECTOR_PAUSE);
        ffi::lua_gc(lua, ffi::LUA_GCSETSTEPMUL, COLLECTOR_SPEED);
    }
}

/// An error outside of every protected call: this crate's mistake, and the state is beyond repair.
unsafe extern "C-unwind" fn panicked(_: *mut ffi::lua_State) -> c_int {
    eprintln!("a Lua error outside of a protected call");
    std::process::abort()
}

/// Digests are random enough to be their own hash.
#[derive(Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        // Hex digits fill four of eight bits each, so two words are folded into one.
        if let Some((low, rest)) = bytes.split_first_chunk::<8>()
            && let Some((high, _)) = rest.split_first_chunk::<8>()
        {
            let (low, high) = (u64::from_le_bytes(*low), u64::from_le_bytes(*high));
            self.0 = (low ^ high.rotate_left(4)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
