//! One Lua state: scripts and libraries by name, running them, and what is left behind when one fails. Knows no
//! command.

use std::collections::HashMap;
use std::ffi::c_int;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::{Duration, Instant};

use resp::Protocol;

use crate::context::{Context, FunctionInfo};
use crate::convert;
use crate::host::Host;
use crate::sandbox::{self, Globals, Version};
use crate::shebang;
use crate::vm::{self, Digits, REGISTRY, Stack, Type, function_of, until_nul};

/// One Lua state, for one thread at a time.
pub struct State {
    lua: *mut vm::lua_State,
    /// Boxed: Lua has its address. Dropped after the state is closed.
    context: Box<Context>,
    globals: Globals,
    current: Environment,
    scripts: HashMap<[u8; 40], c_int, BuildHasherDefault<DigestHasher>>,
    libraries: HashMap<String, Vec<(String, c_int)>>,
    limits: Limits,
    /// How long the code of the last library ran.
    last_load: Duration,
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

/// What a script is called with: KEYS and ARGV.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScriptArguments<'a> {
    pub keys: &'a [&'a [u8]],
    pub args: &'a [&'a [u8]],
}

/// A compiled function that the state keeps.
struct KeptFunction<'a> {
    /// Its reference in Lua's registry.
    function: c_int,
    environment: Environment,
    /// Its digest or name, for error replies.
    name: &'a [u8],
}

/// Which globals Lua's main thread has now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Environment {
    Eval,
    Functions,
}

/// What is at the bottom of the stack for as long as the state lives.
mod base {
    use std::ffi::c_int;

    use crate::convert::{NAMES, Names};

    pub(super) const HANDLER: c_int = 1;
    pub(super) const EVAL_GLOBALS: c_int = 2;
    pub(super) const KEYS: c_int = 3;
    pub(super) const ARGV: c_int = 4;
    pub(super) const SOURCE: c_int = 5;
    pub(super) const LINE: c_int = 6;
    /// The first of `convert::NAMES`.
    const FIRST_NAME: c_int = 7;
    pub(super) const ERR: c_int = FIRST_NAME;
    pub(super) const LEN: c_int = FIRST_NAME + NAMES.len() as c_int - 1;

    pub(super) const NAMES_AT: Names = Names {
        err: FIRST_NAME,
        ok: FIRST_NAME + 1,
        double: FIRST_NAME + 2,
        big_number: FIRST_NAME + 3,
        verbatim_string: FIRST_NAME + 4,
        map: FIRST_NAME + 5,
        set: FIRST_NAME + 6,
        format: FIRST_NAME + 7,
        string: FIRST_NAME + 8,
    };
}

/// Room on the stack above the base for what this file and the conversions push without asking.
const ROOM: c_int = 40;

/// A library that is being loaded gets this long; it should only register functions.
const LOAD_TIME_MAX: Duration = Duration::from_millis(500);

/// The collector waits until memory has grown to this percentage of what survived the last cycle, then works at this
/// multiple of the speed of allocation. A longer pause than Lua's own 200: a state's live data is small, and a cycle
/// over it costs as much as dozens of scripts.
const COLLECTOR_PAUSE: c_int = 400;
const COLLECTOR_SPEED: c_int = 200;

impl State {
    pub fn new(limits: Limits) -> State {
        // The sandbox is built without a limit, then the limit holds for everything.
        let context = Context::new();
        // SAFETY: the context is boxed, and `drop` closes the state before the context goes.
        let lua = unsafe { context.open_lua() };
        assert!(!lua.is_null(), "no memory for a Lua state");
        // SAFETY: a new state, made by `open_lua`. The limit on memory is lifted while Rust runs, as it does now.
        let stack = unsafe { Stack::of(lua) };
        stack.anchor_messages();
        let globals = sandbox::open(stack, &Version { text: limits.redis_version.clone() });
        stack.set_len(0);
        assert!(stack.has_room(base::LEN + ROOM), "a new state has all of its stack");
        stack.push_function(function_of(sandbox::error_handler), 0);
        stack.raw_get_at(REGISTRY, globals.eval);
        for name in [b"KEYS".as_slice(), b"ARGV", b"source", b"line"].iter().chain(&convert::NAMES) {
            stack.push_bytes(name);
        }
        assert_eq!(stack.len(), base::LEN);
        stack.set_collector(COLLECTOR_PAUSE, COLLECTOR_SPEED);
        // A full cycle, so that the first script does not pay for the libraries.
        stack.collect();
        context.interpreter().set_bytes_max(limits.memory_bytes_max);
        State {
            lua,
            context,
            globals,
            current: Environment::Eval,
            scripts: HashMap::default(),
            libraries: HashMap::default(),
            limits,
            last_load: Duration::ZERO,
        }
    }

    /// How long the code of the library took that was loaded last.
    pub fn last_load(&self) -> Duration {
        self.last_load
    }

    /// Compiles a script and keeps it under its digest. The error is the whole reply without its dash.
    pub fn load(&mut self, sha: &[u8; 40], source: &[u8]) -> Result<(), String> {
        if self.scripts.contains_key(sha) {
            return Ok(());
        }
        self.use_environment(Environment::Eval);
        let stack = self.stack();
        if !stack.compile(shebang::body(source), c"@user_script") {
            let message = self.take_error_text();
            self.recover_memory();
            return Err(format!("ERR Error compiling script (new function): {message}"));
        }
        let function = stack.keep();
        self.scripts.insert(*sha, function);
        Ok(())
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

    /// Forgets all scripts; libraries stay. Their memory is free when the collector has come round.
    pub fn forget_all(&mut self) {
        let functions: Vec<c_int> = self.scripts.drain().map(|(_, function)| function).collect();
        self.drop_functions(&functions);
    }

    /// Runs a loaded script (a script that is not loaded is answered with NOSCRIPT).
    pub fn run(
        &mut self,
        host: &mut dyn Host,
        sha: &[u8; 40],
        arguments: ScriptArguments<'_>,
        protocol: Protocol,
        out: &mut Vec<u8>,
    ) -> Ran {
        let Some(&function) = self.scripts.get(sha) else {
            out.extend_from_slice(b"-NOSCRIPT No matching script. Please use EVAL.\r\n");
            return Ran::Error;
        };
        self.use_environment(Environment::Eval);
        let kept = KeptFunction { function, environment: Environment::Eval, name: sha };
        self.run_kept(host, kept, arguments, protocol, out)
    }

    /// Runs a library's code so that it registers its functions. On failure nothing of it stays; the error is the
    /// reply's text without its code.
    pub fn load_library(&mut self, name: &str, code: &[u8]) -> Result<Vec<FunctionInfo>, String> {
        self.use_environment(Environment::Functions);
        let (stack, context) = (self.stack(), &*self.context);
        *context.loading.borrow_mut() = Some(Vec::new());
        context.killed.set(false);
        sandbox::set_proxied(stack, self.globals.loading);
        let mut took = Duration::ZERO;
        let message = if !stack.compile(shebang::body(code), c"@user_function") {
            Some(format!("Error compiling function: {}", self.take_error_text()))
        } else {
            let began = Instant::now();
            context.load_deadline.set(Some(began + LOAD_TIME_MAX));
            sandbox::set_hook(stack, true);
            let status = stack.protected_call(0, 0, base::HANDLER);
            sandbox::set_hook(stack, false);
            context.load_deadline.set(None);
            took = began.elapsed();
            (status != 0).then(|| self.take_registration_error())
        };
        let registered = context.loading.take().unwrap_or_default();
        context.killed.set(false);
        sandbox::set_proxied(stack, self.globals.functions_table);
        self.last_load = took;
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
    pub fn run_function(
        &mut self,
        host: &mut dyn Host,
        library: &str,
        function: &str,
        arguments: ScriptArguments<'_>,
        protocol: Protocol,
        out: &mut Vec<u8>,
    ) -> Ran {
        let found = self.libraries.get(library).and_then(|all| all.iter().find(|(name, _)| name == function));
        let Some(&(_, reference)) = found else {
            out.extend_from_slice(b"-ERR Function not found\r\n");
            return Ran::Error;
        };
        self.use_environment(Environment::Functions);
        let kept = KeptFunction { function: reference, environment: Environment::Functions, name: function.as_bytes() };
        self.run_kept(host, kept, arguments, protocol, out)
    }

    /// Does a few steps of the collector's work, some kilobytes. True when a cycle has ended.
    pub fn collect_some(&mut self) -> bool {
        self.stack().collect_some()
    }

    /// All that Lua holds now, garbage included.
    pub fn memory_bytes(&self) -> usize {
        self.context.interpreter().used_bytes()
    }

    /// What it takes of the process's memory: also what it keeps of objects that are gone.
    pub fn footprint_bytes(&self) -> usize {
        self.context.interpreter().footprint_bytes()
    }

    #[inline]
    fn run_kept(
        &mut self,
        host: &mut dyn Host,
        KeptFunction { function, environment, name }: KeptFunction<'_>,
        ScriptArguments { keys, args }: ScriptArguments<'_>,
        protocol: Protocol,
        out: &mut Vec<u8>,
    ) -> Ran {
        let start = out.len();
        let context = &*self.context;
        context.killed.set(false);
        context.resp3.set(false);
        let succeeded = context.with_host(host, || {
            let stack = self.stack();
            sandbox::set_hook(stack, true);
            let called = match environment {
                Environment::Eval => {
                    for (name, strings) in [(base::KEYS, keys), (base::ARGV, args)] {
                        push_strings(stack, strings);
                        stack.raw_set_key(base::EVAL_GLOBALS, name).expect("the globals have these names");
                    }
                    stack.raw_get_at(REGISTRY, function);
                    call_kept(stack, 0)
                }
                Environment::Functions => {
                    stack.raw_get_at(REGISTRY, function);
                    push_strings(stack, keys);
                    push_strings(stack, args);
                    call_kept(stack, 2)
                }
            };
            called && {
                let (resp3, reply_bytes_max) = (context.resp3.get(), self.limits.reply_bytes_max);
                convert::write(stack, &base::NAMES_AT, protocol, resp3, reply_bytes_max, &mut context.nesting(), out)
                    .is_ok()
            }
        });
        if succeeded && !context.collector_changed.get() && !context.cjson_changed.get() {
            context.shrink_buffers();
            return Ran::Ok;
        }
        self.finish_run(succeeded, name, start, out)
    }

    /// What is left to do after a run that failed, or that changed settings of the state.
    #[cold]
    fn finish_run(&mut self, succeeded: bool, name: &[u8], start: usize, out: &mut Vec<u8>) -> Ran {
        let stack = self.stack_as_is();
        if !succeeded {
            out.truncate(start);
            self.write_error(name, out);
        }
        if self.context.collector_changed.replace(false) {
            stack.set_collector(COLLECTOR_PAUSE, COLLECTOR_SPEED);
        }
        if self.context.cjson_changed.replace(false) {
            sandbox::reset_cjson(stack, &self.globals);
        }
        self.context.shrink_buffers();
        self.recover_memory();
        match (self.context.killed.get(), succeeded) {
            (true, _) => Ran::Killed,
            (false, true) => Ran::Ok,
            (false, false) => Ran::Error,
        }
    }

    /// The stack with nothing above the base.
    #[inline]
    fn stack(&self) -> Stack<'_> {
        let stack = self.stack_as_is();
        stack.set_len(base::LEN);
        stack
    }

    /// The stack with what a run left on it.
    #[inline]
    fn stack_as_is(&self) -> Stack<'_> {
        // SAFETY: a live state of ours; the limit on memory is lifted while Rust runs.
        unsafe { Stack::of(self.lua) }
    }

    fn use_environment(&mut self, environment: Environment) {
        if self.current == environment {
            return;
        }
        self.current = environment;
        let stack = self.stack();
        let globals = match environment {
            Environment::Eval => self.globals.eval,
            Environment::Functions => self.globals.functions,
        };
        stack.raw_get_at(REGISTRY, globals);
        stack.set_globals();
    }

    /// Writes the reply for the error on top.
    fn write_error(&self, name: &[u8], out: &mut Vec<u8>) {
        let stack = self.stack_as_is();
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
            let start = message.len();
            self.append_text(&mut message);
            message.truncate(start + 100);
        }
        convert::error_line(out, &message);
        stack.set_len(base::LEN);
    }

    /// Appends a field of the error table on top, if it is a text or a number.
    fn error_field(&self, name: c_int, to: &mut Vec<u8>) -> bool {
        let stack = self.stack_as_is();
        stack.copy(name);
        let found = match stack.raw_get(-2) {
            Type::String => {
                stack.with_string(-1, |text| to.extend_from_slice(until_nul(text)));
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

    /// Appends the error on top, if it is a text.
    fn append_text(&self, to: &mut Vec<u8>) {
        if self.stack_as_is().with_string(-1, |text| to.extend_from_slice(text)).is_none() {
            to.extend_from_slice(b"execution failure");
        }
    }

    /// The text of a compile error. The handler does not see those: it is a string still, unless memory ran out.
    fn take_error_text(&self) -> String {
        let stack = self.stack_as_is();
        let mut message = Vec::new();
        match stack.kind(-1) {
            Type::Table => {
                self.error_field(base::ERR, &mut message);
                if message.starts_with(b"ERR ") {
                    message.drain(..4);
                }
            }
            _ => self.append_text(&mut message),
        }
        stack.set_len(base::LEN);
        String::from_utf8_lossy(until_nul(&message)).into_owned()
    }

    /// The text of an error of a library that ran.
    fn take_registration_error(&self) -> String {
        let mut message = Vec::new();
        let stack = self.stack_as_is();
        if stack.kind(-1) != Type::Table || !self.error_field(base::ERR, &mut message) {
            message.extend_from_slice(b"ERR ");
            self.append_text(&mut message);
        }
        stack.set_len(base::LEN);
        format!("Error registering functions: {}", String::from_utf8_lossy(&message))
    }

    fn drop_functions(&self, functions: &[c_int]) {
        for &function in functions {
            self.stack_as_is().drop_kept(function);
        }
    }

    /// After a script that failed: if it left much behind, the next one should not have to fail for it.
    fn recover_memory(&self) {
        if self.memory_bytes() > self.limits.memory_bytes_max / 2 {
            self.stack().collect();
        }
    }
}

// SAFETY: all that the pointers lead to (Lua's memory, the context) belongs to the state alone and is reached only
// through it; nothing in it is tied to a thread between two calls.
unsafe impl Send for State {}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: the state is ours and is not used again; its memory is the context's, which is dropped after.
        unsafe { vm::close(self.lua) };
    }
}

/// Calls the function below its arguments, which have to fit into memory as all else.
#[inline]
fn call_kept(stack: Stack<'_>, arguments: c_int) -> bool {
    if stack.check_memory(0).is_err() {
        // What earlier scripts left behind is not held against this one.
        stack.collect();
        if stack.check_memory(0).is_err() {
            stack.push_bytes(b"not enough memory");
            return false;
        }
    }
    stack.protected_call(arguments, 1, base::HANDLER) == 0
}

#[inline]
fn push_strings(stack: Stack<'_>, strings: &[&[u8]]) {
    stack.push_table(strings.len(), 0);
    for (position, string) in (1..).zip(strings) {
        stack.set_string_at(-1, position, string).expect("a request has fewer arguments than a table has room for");
    }
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
