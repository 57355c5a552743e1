//! What Lua costs a script that does what most do: read a field, compare, write. The host's work is next to nothing,
//! so the time is the binding's.
//!
//! ```sh
//! cargo run --release -p lua --example call_speed
//! ```
//!
//! The first argument is how often each script runs in one round, the second a part of the name of the scripts to run.
//! Few runs suit an instruction count, which does not depend on what else the machine does:
//!
//! ```sh
//! valgrind --tool=callgrind target/release/examples/call_speed 500 JSON
//! ```

use std::hint::black_box;
use std::time::Instant;

use lua::{Host, Limits, Protocol, State, Tick, sha1hex};

const COMPARE_AND_SWAP: &[u8] = b"
local current = redis.call('HGET', KEYS[1], ARGV[1])
if current == ARGV[2] then
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
    redis.call('HSET', KEYS[1], 'updated_at', ARGV[4])
    return 1
end
return 0
";

const SCRIPTS: [(&str, &[u8]); 7] = [
    ("return 1", b"return 1"),
    ("one call", b"return redis.call('HGET', KEYS[1], ARGV[1])"),
    ("compare and swap, three calls", COMPARE_AND_SWAP),
    (
        "JSON, decoded and encoded",
        b"return cjson.encode(cjson.decode('{\"id\":17,\"tags\":[\"a\",\"b\",1.5],\"ok\":true}'))",
    ),
    ("MessagePack, packed and unpacked", b"return cmsgpack.unpack(cmsgpack.pack({id = 17, tags = {'a', 'b', 1.5}}))"),
    ("ten errors that are caught", b"for i = 1, 10 do pcall(error, 'x') end"),
    ("array of ten", b"local t = {} for i = 1, 10 do t[i] = redis.call('HGET', KEYS[1], i) end return t"),
];

struct Nothing;

impl Host for Nothing {
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>) {
        match black_box(args)[0] {
            b"HGET" => reply.extend_from_slice(b"$7\r\npending\r\n"),
            _ => reply.extend_from_slice(b":0\r\n"),
        }
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

fn main() {
    let runs: u32 = match std::env::args().nth(1) {
        Some(number) => number.parse().expect("the argument is how often each script runs"),
        None => 100_000,
    };
    let part_of_name = std::env::args().nth(2).unwrap_or_default();
    let mut state = State::new(Limits::default());
    println!("an empty state holds {} bytes", state.memory_bytes());
    let mut out = Vec::new();
    for (name, script) in SCRIPTS.into_iter().filter(|(name, _)| name.contains(&part_of_name)) {
        let sha = sha1hex(script);
        state.load(&sha, script).expect("a valid script");
        let mut run = |i: u32| {
            // Keys and values differ from call to call, as they do in practice.
            let (key, time) = (format_key(i), (1_700_000_000_000u64 + u64::from(i)).to_le_bytes());
            out.clear();
            state.run(
                &mut Nothing,
                &sha,
                &[&key],
                &[b"state", b"pending", b"running", &time],
                Protocol::Resp2,
                &mut out,
            );
        };
        let mut best = f64::MAX;
        for _ in 0..10 {
            let begin = cpu_ns();
            (0..runs).for_each(&mut run);
            best = best.min((cpu_ns() - begin) as f64 / f64::from(runs));
        }
        let mut each: Vec<u128> = (0..runs)
            .map(|i| {
                let begin = Instant::now();
                run(i);
                begin.elapsed().as_nanos()
            })
            .collect();
        each.sort_unstable();
        let p999 = each[each.len() * 999 / 1000];
        println!(
            "{name:32} {best:6.0} ns of CPU a run; one in a thousand takes {p999} ns; memory {} bytes",
            state.memory_bytes()
        );
    }
}

/// Processor time of this thread: the machine may be busy with other things.
fn cpu_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn format_key(i: u32) -> [u8; 20] {
    let mut key = *b"gbe:state:tasks:0000";
    for (at, digit) in key[16..].iter_mut().enumerate() {
        *digit = b'0' + (i / 10u32.pow(at as u32) % 10) as u8;
    }
    key
}
