//! What calling Lua costs with the package `mlua`. `lua_calls` of `bench/lua` runs this program and says what is compared;
//! `tests/` shows what else scripts need, and whether `mlua` has it.
//!
//! Written as the package's documents recommend, with what makes it fast: functions are compiled once, `pcall` is Lua's own,
//! arguments are borrowed.
#![forbid(unsafe_code)]

use bstr::BStr;
use libraries::CountingAllocator;
use libraries::scripts::{self, ARGUMENTS, Figures, SCRIPTS, Script};
use mlua::{
    Function, HookTriggers, IntoLua, Lua, LuaOptions, LuaString, Result, StdLib, Table, Value, Variadic, VmState,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// As in `crates/lua`: how often a running script asks whether it may go on, and what it may hold.
const TICK_INSTRUCTIONS: u32 = 100_000;
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// The argument that lifts the limit on memory: with one, mlua makes a protected call of whatever may allocate.
const NO_LIMIT: &str = "--no-memory-limit";

fn main() {
    let bytes_max = match std::env::args().nth(1).as_deref() {
        None => MEMORY_BYTES_MAX,
        Some(NO_LIMIT) => 0,
        Some(other) => panic!("there is no `{other}`"),
    };
    let figures: Result<Vec<Figures>> = SCRIPTS.iter().map(|script| measure(script, bytes_max)).collect();
    match figures {
        Ok(figures) => print!("{}", scripts::to_lines(&figures)),
        Err(error) => {
            eprintln!("mlua_calls: {error}");
            std::process::exit(1);
        }
    }
}

fn measure(script: &Script, bytes_max: usize) -> Result<Figures> {
    let mut binding = Binding::load(script, bytes_max)?;
    let mut failed = Ok(());
    let cost = scripts::METER.measure(
        |request| request,
        |request| {
            if let Err(error) = binding.run(request) {
                failed = Err(error);
            }
        },
    );
    failed?;
    Ok(Figures { cost, reply: binding.reply })
}

struct Binding {
    lua: Lua,
    globals: Table,
    script: Function,
    reply: Vec<u8>,
}

impl Binding {
    fn load(script: &Script, bytes_max: usize) -> Result<Binding> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        // Its own `pcall`, which stops panics, would be slower than Lua's.
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        lua.set_memory_limit(bytes_max)?;
        let ticks = HookTriggers::new().every_nth_instruction(TICK_INSTRUCTIONS);
        lua.set_global_hook(ticks, |_, _| Ok(VmState::Continue))?;
        let redis = lua.create_table()?;
        redis.raw_set("call", lua.create_function(call)?)?;
        let globals = lua.globals();
        globals.raw_set("redis", redis)?;
        let script = lua.load(script.text).set_name("@user_script").into_function()?;
        Ok(Binding { lua, globals, script, reply: Vec::new() })
    }

    /// What EVALSHA does.
    fn run(&mut self, request: u32) -> Result<()> {
        self.reply.clear();
        let key = scripts::key(request);
        let strings = |all: &[&[u8]]| self.lua.create_sequence_from(all.iter().map(BStr::new));
        self.globals.raw_set("KEYS", strings(&[&key])?)?;
        self.globals.raw_set("ARGV", strings(&ARGUMENTS)?)?;
        let result: Value = self.script.call(())?;
        write(&result, &mut self.reply)
    }
}

/// `redis.call`.
fn call(lua: &Lua, args: Variadic<LuaString>) -> Result<Value> {
    let borrowed: Vec<_> = args.iter().map(|arg| arg.as_bytes()).collect();
    let mut reply = Vec::new();
    scripts::answer(&borrowed[0], &mut reply);
    read(lua, &mut &reply[..])
}

/// A reply of RESP2 as a Lua value.
fn read(lua: &Lua, reply: &mut &[u8]) -> Result<Value> {
    let end = reply.iter().position(|&byte| byte == b'\r').expect("a reply has lines");
    let (kind, number) = (reply[0], integer(&reply[1..end]));
    *reply = &reply[end + 2..];
    match kind {
        b':' => number.into_lua(lua),
        b'$' => {
            let (bytes, rest) = reply.split_at(number as usize);
            *reply = &rest[2..];
            Ok(Value::String(lua.create_string(bytes)?))
        }
        b'*' => {
            let items = (0..number).map(|_| read(lua, reply)).collect::<Result<Vec<_>>>()?;
            Ok(Value::Table(lua.create_sequence_from(items)?))
        }
        _ => unreachable!("the server answers with these"),
    }
}

fn integer(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}

/// A result as a reply, by Redis's rules.
fn write(value: &Value, reply: &mut Vec<u8>) -> Result<()> {
    match value {
        Value::Integer(number) => write_number(b':', *number, reply),
        Value::Number(number) => write_number(b':', *number as i64, reply),
        Value::String(text) => {
            let text = text.as_bytes();
            write_number(b'$', text.len() as i64, reply);
            reply.extend_from_slice(&text);
            reply.extend_from_slice(b"\r\n");
        }
        Value::Table(table) => {
            write_number(b'*', table.raw_len() as i64, reply);
            for item in table.sequence_values::<Value>() {
                write(&item?, reply)?;
            }
        }
        _ => reply.extend_from_slice(b"$-1\r\n"),
    }
    Ok(())
}

fn write_number(kind: u8, number: i64, reply: &mut Vec<u8>) {
    let (mut digits, mut at, mut rest) = ([0; 20], 20, number.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    reply.push(kind);
    if number < 0 {
        reply.push(b'-');
    }
    reply.extend_from_slice(&digits[at..]);
    reply.extend_from_slice(b"\r\n");
}
