//! What calling Lua costs: our binding, `crates/lua`, beside the package `mlua`. `scripts/bench --only lua` builds and
//! runs it.
//!
//! Both run the same scripts as EVALSHA does: KEYS and ARGV are set, the script calls the same server, and its result becomes
//! a reply. The two cannot be in one program (`bench/mlua/Cargo.toml` says why), so the other is a program of its own, which
//! runs in turns with this one.
//!
//! `lua_calls RUNS [PART]` only runs our side, so many times each script whose name contains PART, for tools that count
//! instructions. It has scripts with Redis's libraries too, which `mlua` does not have:
//!
//! ```sh
//! valgrind --tool=callgrind target/release/lua_calls 500 JSON
//! ```
#![forbid(unsafe_code)]

use std::process::Command;

use libraries::scripts::{self, ARGUMENTS, Figures, SCRIPTS, Script};
use libraries::{Cost, CountingAllocator, Row, median, print};
use lua::{Host, Limits, Protocol, ScriptArguments, State, Tick, sha1hex};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ROUNDS: usize = 7;

fn main() {
    match std::env::args().nth(1) {
        Some(runs) => run_only(runs.parse().expect("RUNS is a number"), &std::env::args().nth(2).unwrap_or_default()),
        None => compare(),
    }
}

/// The columns beside ours: a name, and the arguments of the other program.
const BESIDE: [(&str, &[&str]); 2] = [("`mlua`", &[]), ("`mlua` without a memory limit", &["--no-memory-limit"])];

fn compare() {
    let mut rounds = vec![vec![Vec::new(); 1 + BESIDE.len()]; SCRIPTS.len()];
    for _ in 0..ROUNDS {
        let ours: Vec<Figures> = SCRIPTS.iter().map(measure).collect();
        for (rounds, ours) in rounds.iter_mut().zip(&ours) {
            rounds[0].push(ours.cost);
        }
        for (column, (_, arguments)) in (1..).zip(BESIDE) {
            let theirs = run_beside(arguments);
            for (i, (cost, reply)) in scripts::from_lines(&theirs).expect("lines of figures").into_iter().enumerate() {
                assert_eq!(ours[i].reply.escape_ascii().to_string(), reply, "{}", SCRIPTS[i].name);
                rounds[i][column].push(cost);
            }
        }
    }
    let costs = |rounds: &Vec<Vec<Cost>>| rounds.iter().map(|rounds| median(rounds)).collect();
    let rows: Vec<Row> =
        SCRIPTS.iter().zip(&rounds).map(|(script, rounds)| Row { name: script.name, costs: costs(rounds) }).collect();
    println!("One EVALSHA, by our binding and by mlua (× is its time as a multiple of ours):\n");
    print("script", &["`crates/lua`", BESIDE[0].0, BESIDE[1].0], &rows);
}

/// What `mlua_calls`, which is built beside this program, prints.
fn run_beside(arguments: &[&str]) -> String {
    let program = std::env::current_exe().expect("this program has a path").with_file_name("mlua_calls");
    let output = Command::new(&program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    String::from_utf8(output.stdout).expect("figures are text")
}

const WITH_LIBRARIES: [Script; 2] = [
    Script {
        name: "JSON, decoded and encoded",
        text: r#"return cjson.encode(cjson.decode('{"id":17,"tags":["a","b",1.5],"ok":true}'))"#,
    },
    Script {
        name: "MessagePack, packed and unpacked",
        text: "return cmsgpack.unpack(cmsgpack.pack({id = 17, tags = {'a', 'b', 1.5}}))",
    },
];

fn run_only(runs: u32, part_of_name: &str) {
    for script in SCRIPTS.iter().chain(&WITH_LIBRARIES).filter(|script| script.name.contains(part_of_name)) {
        let mut ours = Ours::load(script);
        (0..runs).for_each(|request| ours.run(request));
        println!("{}: {runs} runs; Lua holds {} bytes", script.name, ours.state.memory_bytes());
    }
}

fn measure(script: &Script) -> Figures {
    let mut ours = Ours::load(script);
    let cost = scripts::METER.measure(|request| request, |request| ours.run(request));
    Figures { cost, reply: ours.reply }
}

struct Ours {
    state: State,
    sha: [u8; 40],
    reply: Vec<u8>,
}

impl Ours {
    fn load(script: &Script) -> Ours {
        let mut state = State::new(Limits::default());
        let sha = sha1hex(script.text.as_bytes());
        state.load(&sha, script.text.as_bytes()).expect("a valid script");
        Ours { state, sha, reply: Vec::new() }
    }

    fn run(&mut self, request: u32) {
        self.reply.clear();
        let key = scripts::key(request);
        self.state.run(
            &mut Server,
            &self.sha,
            ScriptArguments { keys: &[&key], args: &ARGUMENTS },
            Protocol::Resp2,
            &mut self.reply,
        );
    }
}

struct Server;

impl Host for Server {
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>) {
        scripts::answer(args[0], reply);
    }
    fn log(&mut self, _: i64, _: &[u8]) {}
    fn set_resp(&mut self, _: u8) {}
    fn acl_check(&mut self, _: &[&[u8]]) -> Result<bool, String> {
        Ok(true)
    }
    fn set_repl(&mut self, _: i64) {}
    fn tick(&mut self) -> Tick {
        Tick::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_replies() {
        let reply = |name: &str| {
            let script = SCRIPTS.iter().chain(&WITH_LIBRARIES).find(|script| script.name == name).unwrap();
            let mut ours = Ours::load(script);
            ours.run(0);
            String::from_utf8(ours.reply).unwrap()
        };
        assert_eq!(reply("return 1"), ":1\r\n");
        assert_eq!(reply("one call"), "$7\r\npending\r\n");
        assert_eq!(reply("compare and swap, three calls"), ":1\r\n");
        assert_eq!(reply("a call that returns 100 strings"), ":100\r\n");
        assert!(reply("returns a table of 100 numbers").starts_with("*100\r\n:1\r\n:2\r\n"));
        for script in SCRIPTS.iter().chain(&WITH_LIBRARIES) {
            assert!(!reply(script.name).starts_with('-'), "{}", script.name);
        }
    }
}
